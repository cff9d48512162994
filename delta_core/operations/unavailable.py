"""Calls of `deltalake` that are not available yet: each raises UnsupportedOperationError with what works today."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from delta_core.errors import UnsupportedOperationError

__all__ = ["TODAY", "UnavailableCalls"]

#: What to do instead of each call, by the name that scripts use for it.
TODAY = {"DeltaTable.generate": "table.file_uris() lists the files that a manifest would contain"}


def _error(name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{name} is not available in delta_core yet. Today: {TODAY[name]}.", operation=name
    )


def _call(name: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise _error(name)

    call.__name__ = name.rpartition(".")[2]
    call.__qualname__ = name
    call.__doc__ = f"Raise UnsupportedOperationError: not available yet. Today: {TODAY[name]}."
    return call


class UnavailableCalls:
    """The methods of DeltaTable that are not available yet."""

    generate = _call("DeltaTable.generate")
