"""Which files of a table a predicate needs."""

from __future__ import annotations

from delta_core.expressions.ast import Expression
from delta_core.expressions.skipping import SkippingPlan, plan_skipping
from delta_core.kernel.plugins.state import TableState

__all__ = ["plan_table_skipping"]


def plan_table_skipping(table: TableState, predicate: Expression | None) -> SkippingPlan:
    """Plan which files of a table a predicate needs.

    Parameters
    ----------
    table : TableState
        The table. Bounds of columns that files store in another form are ignored, unless the log has those of values.
    predicate : Expression or None
        Bound to the table's schema.
    """
    without_bounds = frozenset(name for name, rule in table.encodings.items() if not rule.statistics)
    return plan_skipping(predicate, table.schema, table.column_map, table.partition_columns, without_bounds)
