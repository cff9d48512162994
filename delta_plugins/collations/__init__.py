"""collations: string columns that compare by a collation; statistics by collation stand beside the usual ones."""

from delta_core.api import TableFeature, TableState, walk

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return any("__COLLATIONS" in f.metadata for _, f in walk(table.schema))


FEATURE = TableFeature(
    "collations",
    "writer",
    "String columns compare by a named collation.",
    aliases=("collations-preview",),
    requires=("domainMetadata",),
    active=_is_active,
)
