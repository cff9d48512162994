"""Readers of predicates that few scans have, loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.expressions.pyarrow_filters import from_pyarrow
    from delta_core.expressions.sqlglot_trees import parse_with_sqlglot

__all__ = ["from_pyarrow", "parse_with_sqlglot"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.expressions.pyarrow_filters": "from_pyarrow",
        "delta_core.expressions.sqlglot_trees": "parse_with_sqlglot",
    },
)
