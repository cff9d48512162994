"""generatedColumns: columns computed from others. Protocol: Generated Columns."""

from delta_core.api import TableFeature, TableState, walk

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return any("delta.generationExpression" in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "generatedColumns",
    "writer",
    "Columns are computed from other columns when rows are written.",
    legacy_writer=4,
    active=_is_active,
)
