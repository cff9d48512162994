"""Results as objects of `arro3`, for programs that call its methods on what `deltalake` returns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from delta_core.errors import MissingDependencyError
from delta_core.table.delta_table import DeltaTable
from delta_core.table.query import QueryBuilder

__all__ = ["return_arro3"]

#: Methods, and the class of `arro3.core` that they return in `deltalake`.
_RESULTS = (
    (DeltaTable, "get_add_actions", "Table"),
    (DeltaTable, "load_cdf", "RecordBatchReader"),
    (QueryBuilder, "execute", "RecordBatchReader"),
)
#: As they are without this.
_METHODS = {(owner, name): getattr(owner, name) for owner, name, _ in _RESULTS}


def return_arro3() -> None:
    """Let the methods of this process that return Arrow tables and readers in `deltalake` return those of `arro3`.

    Raises
    ------
    MissingDependencyError
        If `arro3` is not installed.
    """
    if find_spec("arro3") is None:
        raise MissingDependencyError(
            "Results of arro3 need arro3-core, which is not installed. Run: pip install arro3-core",
            package="arro3-core",
        )
    import arro3.core

    for owner, name, kind in _RESULTS:
        setattr(owner, name, _converted(_METHODS[owner, name], getattr(arro3.core, kind).from_arrow))


def _converted(method: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return convert(method(*args, **kwargs))

    return call
