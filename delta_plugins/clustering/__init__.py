"""clustering: rows are laid out by columns that a domain names. Protocol: Clustered Table."""

from delta_core.api import TableFeature, TableState

__all__ = ["DOMAIN", "FEATURE"]

DOMAIN = "delta.clustering"


def _is_active(table: TableState) -> bool:
    return DOMAIN in table.domains


FEATURE = TableFeature(
    "clustering",
    "writer",
    "Rows that are close in the clustering columns are kept in the same files.",
    requires=("domainMetadata",),
    domains=(DOMAIN,),
    active=_is_active,
)
