"""deletionVectors: rows of a data file that no longer count. Protocol: Deletion Vectors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING

from delta_core.api import (
    AddTombstones,
    ChecksumField,
    CommitSummary,
    FeatureStep,
    FileCheck,
    FileReference,
    Metadata,
    ReadRule,
    RemoveProperties,
    RemoveRows,
    RewriteFiles,
    RowSelector,
    SetProperties,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.deletion_vectors import checksum, logic, verify, write
from delta_plugins.deletion_vectors.logic import DeletionVectorError

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE", "DeletionVectorError"]

FEATURE = TableFeature(
    "deletionVectors",
    "reader+writer",
    "Deleted rows stay in their file and are named by a vector.",
    properties={
        write.SWITCH: "true allows writers to add vectors",
        write.INLINE_BELOW: "vectors of fewer bytes are put into the log, of up to 65536; none unless given",
    },
    permits=("add.deletionVector",),
    active=methodcaller("flag", write.SWITCH),
    remedies={"row_removal": f"set the table property {write.SWITCH}=true"},
    is_layout=True,
)


@hookimpl
def read_rules() -> Iterable[ReadRule]:
    # whether or not new vectors may be written, those that are there count
    return (RowSelector(FEATURE.name, ("deletionVector",), logic.locate, logic.decode, logic.decode_all),)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if metadata.configuration.get(write.SWITCH, "").strip().lower() == "true" else []


@hookimpl
def check_metadata(table: TableState) -> None:
    write.inline_below(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[RemoveRows]:
    if table.is_active(FEATURE.name):
        inline = write.inline_below(table)
        yield RemoveRows(FEATURE.name, partial(write.encode, inline=inline) if inline else write.encode)


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    write.check_commit(attempt)


@hookimpl
def check_table() -> Iterable[FileCheck]:
    return [FileCheck(FEATURE.name, ("deletionVector", "numRecords"), verify.check_files)]


@hookimpl
def file_references() -> Iterable[FileReference]:
    return [FileReference(FEATURE.name, "deletionVector", logic.vector_paths, logic.is_absolute, logic.relocated)]


@hookimpl
def checksum_fields(commit: CommitSummary) -> Iterable[ChecksumField]:
    return [ChecksumField(FEATURE.name, name, value) for name, value in checksum.vector_counts(commit).items()]


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    if change == "drop":
        # no writer adds vectors from then on
        yield SetProperties(FEATURE.name, {write.SWITCH: None})
        yield RewriteFiles(FEATURE.name, "deletionVector")
        # older versions still need the files
        yield AddTombstones(FEATURE.name, "deletionVector", "Deletion Vector Tombstones")
        yield RemoveProperties(FEATURE.name, (write.INLINE_BELOW,))
