"""catalogManaged: a catalog decides which commits are the table's. Protocol: Catalog-managed tables."""

from delta_core.api import TableFeature, hookimpl

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "catalogManaged",
    "reader+writer",
    "A catalog decides the table's versions; its log alone does not tell them.",
    aliases=("catalogOwned", "catalogOwned-preview"),
    requires=("inCommitTimestamp",),
)


@hookimpl
def requires_catalog() -> bool:
    return True
