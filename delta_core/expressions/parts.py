"""Loaded on first use (`runtime.lazy`): long lists, patterns, and readers of filters in other forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.expressions.implied import implied_range
    from delta_core.expressions.members import (
        cast_values,
        expand,
        from_arrow,
        from_literals,
        from_python,
        from_text,
        look_up,
    )
    from delta_core.expressions.patterns import parse_like
    from delta_core.expressions.pyarrow_filters import from_pyarrow
    from delta_core.expressions.sqlglot_trees import parse_with_sqlglot

__all__ = [
    "cast_values",
    "expand",
    "from_arrow",
    "from_literals",
    "from_pyarrow",
    "from_python",
    "from_text",
    "implied_range",
    "look_up",
    "parse_like",
    "parse_with_sqlglot",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.expressions.implied": "implied_range",
        "delta_core.expressions.members": ("cast_values expand from_arrow from_literals from_python from_text look_up"),
        "delta_core.expressions.patterns": "parse_like",
        "delta_core.expressions.pyarrow_filters": "from_pyarrow",
        "delta_core.expressions.sqlglot_trees": "parse_with_sqlglot",
    },
)
