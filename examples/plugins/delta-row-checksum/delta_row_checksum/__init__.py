"""example.rowChecksum: every row carries a checksum of some of its columns, and readers verify it.

The checksum is in a hidden column of the data files. Which columns it covers, and the hidden column's name,
are in a domain; each file specifies by which function its rows were summed; audits leave an action in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from delta_core.api import (
    ActionColumn,
    DomainMetadata,
    Function,
    HiddenColumn,
    Metadata,
    ReadRule,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_row_checksum import logic

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]


def _is_active(table: TableState) -> bool:
    return logic.DOMAIN in table.domains


FEATURE = TableFeature(
    "example.rowChecksum",
    "reader+writer",
    "Every row carries a checksum that readers verify.",
    requires=("domainMetadata",),
    properties={logic.REQUEST: "columns to cover, joined by commas; requires the feature and is not stored"},
    domains=(logic.DOMAIN,),
    actions=(logic.AUDIT,),
    fields=(logic.FUNCTION_FIELD,),
    active=_is_active,
    operations={
        "checksum_audits": "delta_row_checksum.audits:checksum_audits",
        "audit_checksums": "delta_row_checksum.audits:audit_checksums",
    },
)


@hookimpl
def functions() -> Iterable[Function]:
    return (logic.CHECKSUM,)


@hookimpl
def check_read(table: TableState) -> None:
    logic.coverage(table)


@hookimpl
def read_rules(table: TableState) -> Iterable[ReadRule]:
    covered = logic.coverage(table)
    return () if covered is None else (logic.read_check(covered),)


# --- writing ---


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if logic.REQUEST in metadata.configuration else []


@hookimpl
def prepare_metadata(metadata: Metadata) -> Metadata:
    return logic.without_request(metadata)


@hookimpl
def prepare_domains(table: TableState, requested: Mapping[str, str]) -> Iterable[DomainMetadata]:
    return logic.declared(table, requested)


@hookimpl
def write_rules(table: TableState) -> Iterable[HiddenColumn]:
    covered = logic.coverage(table)
    return () if covered is None else (logic.hidden_column(covered),)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[ActionColumn]:
    return () if logic.coverage(attempt.table) is None else (logic.function_column(attempt.adds),)
