"""identityColumns: columns that number rows. Protocol: Identity Columns."""

from delta_core.api import TableFeature, TableState, walk

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return any("delta.identity.start" in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "identityColumns",
    "writer",
    "Columns number rows as they are written.",
    legacy_writer=6,
    active=_is_active,
)
