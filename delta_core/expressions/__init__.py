"""Expressions: the tree (`ast`), its text (`sql`, `printing`), its types (`binding`), and pruning (`skipping`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.runtime.lazy import lazy_names

if TYPE_CHECKING:
    from delta_core.expressions.binding import bind
    from delta_core.expressions.filters import from_filters, is_pyarrow, to_expression
    from delta_core.expressions.printing import format_sql
    from delta_core.expressions.skipping import SkippingPlan, plan_skipping
    from delta_core.expressions.sql import parse_sql

__all__ = [
    "SkippingPlan",
    "bind",
    "format_sql",
    "from_filters",
    "is_pyarrow",
    "parse_sql",
    "plan_skipping",
    "to_expression",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "delta_core.expressions.binding": "bind",
        "delta_core.expressions.filters": "from_filters is_pyarrow to_expression",
        "delta_core.expressions.printing": "format_sql",
        "delta_core.expressions.skipping": "SkippingPlan plan_skipping",
        "delta_core.expressions.sql": "parse_sql",
    },
)
