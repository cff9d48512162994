"""Expressions: the tree (`ast`), its text (`sql`, `printing`), its types (`binding`), and pruning (`skipping`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_core.expressions.binding import bind
    from delta_core.expressions.filters import from_filters, to_expression
    from delta_core.expressions.printing import format_sql
    from delta_core.expressions.skipping import SkippingPlan, plan_skipping
    from delta_core.expressions.sql import parse_sql

__all__ = ["SkippingPlan", "bind", "format_sql", "from_filters", "parse_sql", "plan_skipping", "to_expression"]

_HOMES = {
    "bind": "binding",
    "format_sql": "printing",
    "from_filters": "filters",
    "to_expression": "filters",
    "SkippingPlan": "skipping",
    "plan_skipping": "skipping",
    "parse_sql": "sql",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for (PEP 562), so that the tree alone stays light to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
