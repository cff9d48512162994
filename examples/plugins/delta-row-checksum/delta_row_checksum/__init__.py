"""example.rowChecksum: every row carries a checksum of some of its columns, and readers verify it.

The checksum stands in a hidden column of the data files. Which columns it covers, and the hidden column's name,
stand in a domain; each file says by which function its rows were summed; audits leave an action in the log.
"""

from collections.abc import Iterable

from delta_core.api import ReadRule, TableFeature, TableState, hookimpl
from delta_row_checksum import logic

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return logic.DOMAIN in table.domains


FEATURE = TableFeature(
    "example.rowChecksum",
    "reader+writer",
    "Every row carries a checksum that readers verify.",
    requires=("domainMetadata",),
    domains=(logic.DOMAIN,),
    actions=(logic.AUDIT,),
    fields=(logic.FUNCTION_FIELD,),
    active=_is_active,
    verbs={"checksum_audits": "delta_row_checksum.audits:checksum_audits"},
)


@hookimpl
def check_read(table: TableState) -> None:
    logic.coverage(table)


@hookimpl
def read_rules(table: TableState) -> Iterable[ReadRule]:
    covered = logic.coverage(table)
    return () if covered is None else (logic.read_check(covered),)
