"""Every hook of the plugin API, on one page.

A hook is called once per snapshot, scan, transaction or attempt, never per file, batch or row. It returns
fragments (rules, names, a map); the core composes them. *Set* specifies which plugins are called: ``table`` = the
installed plugins of the features that the table supports, ``all`` = every installed plugin. *Result* specifies how
answers combine: ``list`` = concatenated; ``single`` = at most one answer, two raise PluginConflictError, None is none;
``fold`` = each sees the former's output; ``check`` = returns nothing or raises. Plugins do no I/O in hooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy
import pyarrow as pa

if TYPE_CHECKING:
    from delta_core.engines.interface import Storage
    from delta_core.expressions.plugin_functions import Function
    from delta_core.kernel.plugins.attempt import AttemptView
    from delta_core.kernel.plugins.catalog import CommitSource
    from delta_core.kernel.plugins.checkpoint_plan import CheckpointPlan
    from delta_core.kernel.plugins.checks import TableCheck
    from delta_core.kernel.plugins.committer import Committed, Committer
    from delta_core.kernel.plugins.plans import ReadRequest
    from delta_core.kernel.plugins.rules import (
        ActionColumn,
        ChecksumField,
        ColumnEncoding,
        CommitRule,
        CommitSummary,
        CommitTimestamp,
        FileReference,
        ReadRule,
        WriteRule,
    )
    from delta_core.kernel.plugins.state import TableState
    from delta_core.kernel.plugins.steps import FeatureStep
    from delta_core.kernel.protocol.actions import DomainMetadata, Metadata
    from delta_core.schema.fields import ColumnMap, Path
    from delta_core.schema.types import PrimitiveType, TypeDef

__all__ = ["PROJECT", "RESULTS", "hookimpl", "hookspec"]

# a specification has no body: plugins answer
# mypy: disable-error-code="empty-body"

PROJECT = "delta_core"
hookspec: pluggy.HookspecMarker = pluggy.HookspecMarker(PROJECT)
hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker(PROJECT)


@hookspec
def primitive_types(features: frozenset[str]) -> Iterable[TypeDef]:
    """Return the primitive types that the feature adds to schemas.

    Set: table. When: before ``schemaString`` is parsed. Result: list; default none.

    Parameters
    ----------
    features : frozenset of str
        The features that the table supports.
    """


@hookspec
def functions(features: frozenset[str]) -> Iterable[Function]:
    """Return functions for expressions.

    Set: table. When: once per PluginSet. Result: list; default none.

    Parameters
    ----------
    features : frozenset of str
        The features that the table supports.
    """


@hookspec
def required_features(metadata: Metadata) -> Iterable[str]:
    """Return the features that this metadata switches on by a property, type or annotation.

    Set: all. When: per create and alter. Result: list; default none.

    Parameters
    ----------
    metadata : Metadata
        The metadata action.
    """


@hookspec
def prepare_metadata(table: TableState, metadata: Metadata, previous: TableState | None) -> Metadata:
    """Return the metadata with what the feature assigns: ids, physical names, materialised names.

    ``table`` has the metadata as it was given: without physical names yet. ``previous`` is the table that is altered,
    None for a new one.

    Set: table. When: per metadata change, before the write is planned. Result: fold.

    Parameters
    ----------
    table : TableState
        The definition that is made so far, with the features that were requested.
    metadata : Metadata
        The metadata with the values of the plugins before.
    previous : TableState or None
        The definition before the change; None for a new table.
    """


@hookspec
def prepare_domains(table: TableState, requested: Mapping[str, str]) -> Iterable[DomainMetadata]:
    """Return the system domains that a change of metadata sets or removes, of those that the feature declares.

    ``table`` has the prepared metadata, ``requested`` the properties as they were requested: what
    ``prepare_metadata`` took out, because it is a request and no property, is still there.

    Set: table. When: per metadata change. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The definition after the change.
    requested : Mapping of str to str
        The lists that the operation takes for features, as JSON by the property that `TableFeature.requests` names.
    """


@hookspec
def check_metadata(table: TableState, metadata: Metadata, previous: TableState | None, is_new: bool) -> None:
    """Reject metadata that breaks the feature's rules.

    ``previous`` is the table that is altered, None for a new one.

    Set: table. When: per metadata change. Result: check.

    Parameters
    ----------
    table : TableState
        The definition after the change.
    metadata : Metadata
        Its metadata.
    previous : TableState or None
        The definition before the change; None for a new table.
    is_new : bool
        Whether nothing of the definition before stays, and no file: the table is new, or replaced.
    """


@hookspec
def accept_type_change(table: TableState, path: Path, old: PrimitiveType, new: PrimitiveType) -> bool | None:
    """Return True if the feature allows a column to change its type so.

    Set: table. When: per changed field. Result: single; default reject.

    Parameters
    ----------
    table : TableState
        The definition before the change.
    path : tuple of str
        The logical path of the column.
    old, new : PrimitiveType
        The types before and after.
    """


@hookspec
def check_type_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    """Reject changes of columns' types that what the feature keeps of them can't follow.

    ``table`` is the target; ``paths`` are its columns, and parts of columns, whose type changes while rows stay.

    Set: table. When: per metadata change that changes types. Result: check.

    Parameters
    ----------
    table : TableState
        The definition before the change.
    paths : tuple of Path
        The logical paths of the columns whose types change.
    """


@hookspec
def check_column_changes(table: TableState, paths: tuple[Path, ...]) -> None:
    """Reject to drop or rename columns that what the feature keeps in the metadata uses by name, such as expressions.

    ``table`` is the table before the change; ``paths`` are its columns, and parts of columns, that would be dropped or
    get another name while rows stay. The parts of such a column are left out.

    Set: table. When: per metadata change that drops or renames columns. Result: check.

    Parameters
    ----------
    table : TableState
        The definition before the change.
    paths : tuple of Path
        The logical paths of the columns.
    """


@hookspec
def check_read(table: TableState) -> None:
    """Reject a table whose metadata the feature can't read.

    Set: table. When: once per snapshot. Result: check.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def column_map(table: TableState) -> ColumnMap | None:
    """Return the map from logical to physical names.

    Set: table. When: once per snapshot. Result: single; default the identity.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def column_encodings(table: TableState) -> Iterable[ColumnEncoding]:
    """Return the columns that files store in another form, with how values are encoded and decoded.

    The expressions may call the plugins' functions. An encoding of a column stays as it is while files of the table do.

    Set: table. When: once per snapshot, after ``column_map``. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def read_rules(table: TableState, request: ReadRequest) -> Iterable[ReadRule]:
    """Return RowSelector, RowFilter, ReadCheck and MetadataColumn rules for a scan.

    Set: table. When: once per scan. Result: list; default none. Metadata columns are offered always; the core
    takes those that the request names.

    Parameters
    ----------
    table : TableState
        The version's definition.
    request : ReadRequest
        The columns, metadata columns and predicate of the scan, and its purpose.
    """


@hookspec
def commit_timestamps(table: TableState) -> CommitTimestamp | None:
    """Return where commit times are.

    Set: table. When: per time travel, history and change feed. Result: single; default file times.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def checkpoint_sidecars(table: TableState | None, checkpoint: str, actions: pa.Table) -> Iterable[str] | None:
    """Return the names of the files that hold a checkpoint's file actions, from its own actions.

    Set: table. When: per checkpoint opened that has ``sidecar`` actions. ``actions`` has the columns ``path``,
    ``sizeInBytes`` and ``modificationTime``. Result: single; default: such a checkpoint is rejected.

    Parameters
    ----------
    table : TableState or None
        The version's definition; None if it is not known yet.
    checkpoint : str
        The name of the checkpoint.
    actions : pyarrow.Table, **n rows**
        Its ``sidecar`` actions, a row each.
    """


@hookspec
def plan_checkpoint(table: TableState) -> CheckpointPlan | None:
    """Return how checkpoints of the table are written, a CheckpointPlan.

    Set: table. When: per checkpoint written. Result: single; default classic V1.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def write_rules(table: TableState, operation: str) -> Iterable[WriteRule]:
    """Return FillColumn, HiddenColumn, RowCheck, FileRequirement, RemoveRows and ChangeCapture rules.

    Set: table. When: once per transaction. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    operation : str
        The operation, as history names it: ``WRITE``, ``DELETE``.
    """


@hookspec
def commit_rules(attempt: AttemptView) -> Iterable[CommitRule]:
    """Return ActionColumn, ExtraAction, CommitInfoField and RemainingFilesCheck rules.

    Set: table. When: per attempt. Result: list; default none.

    Parameters
    ----------
    attempt : AttemptView
        The attempt to commit, with its staged actions.
    """


@hookspec
def finish_metadata(attempt: AttemptView, metadata: Metadata) -> Metadata:
    """Return the metadata with values of this attempt: configuration and identity marks only.

    ``metadata`` is the former plugin's answer; ``attempt.table`` still has what the transaction began with.

    Set: table. When: per attempt. Result: fold.

    Parameters
    ----------
    attempt : AttemptView
        The attempt to commit, with its staged actions.
    metadata : Metadata
        The metadata with the values of the plugins before.
    """


@hookspec
def check_commit(attempt: AttemptView) -> None:
    """Reject a commit that breaks the feature's rules.

    Set: table. When: per attempt, after all rules. Result: check.

    Parameters
    ----------
    attempt : AttemptView
        The attempt to commit, with its staged actions.
    """


@hookspec
def rebase_files(table: TableState, adds: pa.Table, removes: pa.Table, winner: pa.Table) -> Iterable[ActionColumn]:
    """Return fields of staged files whose values a commit that won the race has changed.

    ``table`` is the latest version, ``adds`` and ``removes`` are the staged files with the columns that an attempt has,
    ``winner`` is what the commit added: a file that it added again has the same ``path``.

    Set: table. When: per commit that won the race. Result: list; default none: the values stay.

    Parameters
    ----------
    table : TableState
        The latest version's definition.
    adds, removes : pyarrow.Table, **n rows** each
        The staged files and tombstones, a row each.
    winner : pyarrow.Table
        The files that the commit which won the race adds.
    """


@hookspec
def checksum_fields(table: TableState, commit: CommitSummary) -> Iterable[ChecksumField]:
    """Return further fields of a version's checksum file, from the table and its latest commit.

    Set: table. When: per checksum written. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    commit : CommitSummary
        The version's own commit.
    """


@hookspec
def file_references(table: TableState) -> Iterable[FileReference]:
    """Return which files actions name beside their own path.

    Set: table. When: per restore, for the files that it adds again; per vacuum, for all files and tombstones, then of
    every installed plugin. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def check_table(table: TableState) -> Iterable[TableCheck]:
    """Return the feature's checks for `DeltaTable.verify`: a `FileCheck`, `CommitCheck`, `UniqueCheck` or `Finding`.

    Set: table. When: per version that is verified. Result: list; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    """


@hookspec
def retention_limits(table: TableState, cutoff: int) -> Iterable[int]:
    """Return versions from which on cleanup keeps everything; ``cutoff`` is the first that it would like to keep.

    Set: table. When: per checkpoint at which a cleanup could stop. Result: list, the strictest wins; default none.

    Parameters
    ----------
    table : TableState
        The version's definition.
    cutoff : int
        The first version that cleanup would like to keep.
    """


@hookspec
def feature_steps(table: TableState, change: str) -> Iterable[FeatureStep]:
    """Return the steps that enable or drop the feature (``change`` is ``enable`` or ``drop``), in their order.

    A feature without this hook can't be dropped; one that returns no steps is just removed from the protocol. To be
    enabled, the feature is first added to the table, and its properties are set after the steps.

    Set: the feature's plugin alone. When: per feature that is enabled or dropped, after each step for the version that
    it made, and to drop one that readers need, for versions of the log that define the table. Result: list.

    Parameters
    ----------
    table : TableState
        The version's definition.
    change : str
        ``enable`` or ``drop``.
    """


@hookspec
def committer(table: TableState, commits: CommitSource | None, storage: Storage) -> Committer | None:
    """Return what commits for the table; ``commits`` is the CommitSource it was opened with, ``storage`` its store.

    Set: table. When: per transaction. Result: single; default the store's own.

    Parameters
    ----------
    table : TableState
        The version's definition.
    commits : CommitSource or None
        The catalog that the table was opened with.
    storage : Storage
        The table's store.
    """


@hookspec
def requires_catalog(features: frozenset[str]) -> bool | None:
    """Return True if the table's versions are decided by a catalog, not by listing its log.

    Set: table. When: once per snapshot, as soon as the protocol is known. Result: single; default False.

    Parameters
    ----------
    features : frozenset of str
        The features that the table supports.
    """


@hookspec
def after_commit(table: TableState, committed: Committed, committer: Committer) -> None:
    """Act on a commit that landed, made by ``committer``; errors are logged, never raised.

    Set: table. When: once per commit. Result: none.

    Parameters
    ----------
    table : TableState
        The definition of the version that was committed.
    committed : Committed
        The commit.
    committer : Committer
        The committer that made it.
    """


#: How each hook's answers combine; a test holds it against the specifications above.
RESULTS = {
    "primitive_types": "list", "functions": "list", "required_features": "list", "prepare_metadata": "fold",
    "prepare_domains": "list",
    "check_metadata": "check", "accept_type_change": "single",
    "check_type_changes": "check", "check_column_changes": "check", "check_read": "check", "column_map": "single",
    "column_encodings": "list",
    "read_rules": "list", "commit_timestamps": "single", "checkpoint_sidecars": "single", "plan_checkpoint": "single",
    "write_rules": "list", "commit_rules": "list", "finish_metadata": "fold", "check_commit": "check",
    "rebase_files": "list", "checksum_fields": "list",
    "file_references": "list", "check_table": "list", "retention_limits": "list", "feature_steps": "list",
    "committer": "single",
    "requires_catalog": "single", "after_commit": "check",
}  # fmt: skip
