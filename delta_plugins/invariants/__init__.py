"""invariants: conditions on columns, NOT NULL among them. Protocol: Column Invariants."""

from delta_core.api import TableFeature, TableState, walk

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    not_null = any(not f.nullable for f in table.schema)
    return not_null or any("delta.invariants" in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "invariants", "writer", "Columns state conditions that every written row fulfils.", legacy_writer=2, active=_is_active
)
