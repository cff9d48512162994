"""Transaction: stages what is to happen to a table, and commits it."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Generic

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.engine import CommitDefaults
from delta_core.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    EngineError,
    HookContractError,
    InvalidArgumentError,
    VersionNotFoundError,
)
from delta_core.expressions.ast import Expression
from delta_core.expressions.sql import DoubleQuotes
from delta_core.formats import check_place_is_free
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit import parts
from delta_core.kernel.commit.action_checks import check_added, check_removed, typed_files
from delta_core.kernel.commit.action_columns import rebase_files
from delta_core.kernel.commit.attempt import Attempt, CommitHeader, build_attempt
from delta_core.kernel.commit.base import Base, TableHandle
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.conflict import IsolationLevel, check_conflicts, check_read_since
from delta_core.kernel.commit.definition_checks import (
    changed_names,
    check_names,
    check_partition_columns,
    check_required,
    check_statistics_columns,
    check_texts,
)
from delta_core.kernel.commit.expression_texts import portable_metadata
from delta_core.kernel.commit.intents import (
    READ_FILE,
    Intents,
    Reads,
    RowRemoval,
    changes_data,
    read_columns,
    with_num_records,
)
from delta_core.kernel.commit.loop import commit_loop
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit, check_commit_fields
from delta_core.kernel.commit.post import run_post_commit
from delta_core.kernel.commit.property_requests import parse_property_requests
from delta_core.kernel.commit.row_removal import Resolved, rebase, resolve
from delta_core.kernel.commit.type_changes import check_type_changes
from delta_core.kernel.commit.upgrade import (
    check_requirements,
    check_writable,
    features_for_domains,
    new_table_protocol,
    permits_domains,
    upgrade_protocol,
)
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.names import commit_name
from delta_core.kernel.log.timestamps import parse_version
from delta_core.kernel.plugins.committer import Committed, Committer, Conflict, Proposal
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_core.kernel.protocol.properties import MANIFESTS, read_property
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.names import random_prefix
from delta_core.kernel.write.plan import WritePlan, plan_write
from delta_core.kernels.row_set import RowSet, RowSets
from delta_core.runtime.entry_points import installed_version
from delta_core.schema.fields import Path

__all__ = ["CommitResult", "Transaction"]

_log = logging.getLogger(__name__)
_LEAST_LONG = -(2**63)


class CommitResult(Struct, Generic[Base], frozen=True):
    """The result of a commit.

    Parameters
    ----------
    snapshot : Snapshot
        The table right after the commit, built without another listing.
    attempts : int
        How many tries it took.
    """

    version: int
    snapshot: Base
    attempts: int


class Transaction(Generic[Base]):
    """Stages intents against one snapshot; `commit` makes them a version.

    Parameters
    ----------
    context : TableContext
        The table.
    base : Snapshot or None
        The snapshot that is read and changed; None to create the table.
    operation : str
        The name that goes into history: WRITE, DELETE, ...
    parameters : Mapping
        Its ``operationParameters``.

    Raises
    ------
    TableExistsError
        If the table is to be created, and one of another format is at its place.
    UnsupportedFeatureError, UnsupportedVersionError
        If the table can't be written.
    """

    def __init__(
        self,
        context: TableHandle[Base],
        base: Base | None,
        operation: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        isolation: IsolationLevel | None = None,
        committer: Committer | None = None,
    ) -> None:
        self.context = context
        self.base = base
        self.operation = operation
        self.parameters: dict[str, Any] = dict(parameters or {})
        self.metrics: dict[str, Any] = {}
        self.intents: Intents = Intents()
        #: Files to add that callers described.
        self._given: list[pa.Table] = []
        self.reads: Reads = Reads()
        self.txn_id: str = str(uuid.uuid4())
        #: Vector files of attempts; deleted as soon as no commit can name them.
        self.abandoned: list[str] = []
        #: Functions that wait until files which are staged are synced; called before a commit can be seen.
        self.syncs: list[Callable[[], None]] = []
        self._failed_sync: BaseException | None = None
        #: Whether the committer calls `_begin_doubt` before a commit can be seen.
        self._is_told = False
        self._isolation = isolation
        self._committer = committer
        #: Whether the commit landed, or may have: what it names must stay.
        self.in_doubt: bool = False
        self._plan: WritePlan | None = None
        self._target: tuple[TableState, PluginSet] | None = None
        self._resolution: tuple[list[RowRemoval], Resolved] | None = None
        self._live: tuple[pa.Table, dict[str, int]] | None = None
        self._tombstones: list[pa.Table] = []
        if base is None:
            check_place_is_free(context.log.engine)
        else:
            check_writable(base.protocol, context.registry)
            self._target = base.state, base.plugins

    @cached_property
    def defaults(self) -> CommitDefaults:
        """The defaults of commits of the engine, read once."""
        return self.context.log.engine.defaults()

    # --- definition ---

    @property
    def table(self) -> TableState:
        """The target state: the base with staged protocol and metadata on top."""
        return self._definition[0]

    @property
    def plugins(self) -> PluginSet:
        """The plugins of the target's features."""
        return self._definition[1]

    @property
    def _definition(self) -> tuple[TableState, PluginSet]:
        if self._target is None:
            raise InvalidArgumentError("A table that is to be created needs its metadata first: call set_metadata.")
        return self._target

    def set_metadata(
        self,
        metadata: Metadata,
        features: Iterable[str] = (),
        replaces: bool = False,
        requests: Mapping[str, str] | None = None,
        without_nulls: Collection[Path] = (),
        protocol: Protocol | None = None,
        without_rules_of: str | None = None,
        like: TableState | None = None,
        double_quotes: DoubleQuotes = "name",
        allow_unknown: bool = False,
        is_new: bool = False,
    ) -> TableState:
        """Stage new metadata, with every feature that it switches on, and those requested.

        Parameters
        ----------
        metadata : Metadata
            The whole metadata as it is to be.
        features : iterable of str
            Further features that the table is to support.
        replaces : bool
            Whether every file of the table is removed: columns may then take any type, and be NOT NULL.
        requests : Mapping of str to str, optional
            Requests to the features of the table, beside its properties, which are never stored.
        without_nulls : collection of Path
            Columns of the new schema whose rows were checked to have a value: they may become NOT NULL.
        protocol : Protocol, optional
            The protocol to which what the metadata needs is added; that of the table unless given.
        without_rules_of : str, optional
            A feature of the table that is being dropped: it neither prepares nor checks the metadata.
        like : TableState, optional
            The table whose definition this one takes over together with its files: changes are relative to it.
        double_quotes : "name" or "text"
            The meaning of double quotes in expressions that are new to the table: ``text`` in those of a log.
        allow_unknown : bool
            Whether new properties named ``delta.*`` may be ones that neither the core nor a feature declares.
        is_new : bool
            Whether nothing of the definition so far stays: the table is created, or replaced with all of its files.

        Raises
        ------
        TypeChangeError
            For a column whose type may not change so.
        SchemaError
            For one that may not be named so, be NOT NULL or be dropped.
        InvalidArgumentError
            For a property that can't be set.

        Notes
        -----
        Features' checks raise further errors. The plan of the write is made again.
        """
        registry = self.context.registry
        previous = like or (None if self.base is None else self.base.state)
        known = [s for s in (previous, self._target and self._target[0]) if s is not None]
        asked = parse_property_requests(
            metadata.configuration, [s.configuration for s in known], registry, allow_unknown
        )
        given = replace(metadata, configuration=asked.configuration)
        check_texts(given)
        given = portable_metadata(
            given, [s.metadata for s in known], registry.everything.features.values(), double_quotes
        )
        check_partition_columns(given)
        required = registry.everything.collect("required_features", metadata=given)
        own_names = self.defaults.feature_names
        wanted = [*(own_names.get(name, name) for name in required), *asked.features, *features]
        begin = protocol or (None if self._target is None else self._target[0].protocol)
        kept: Mapping[str, str] = {}
        if is_new and self.base is not None and protocol is None and self._may_replace_protocol():
            begin, kept = None, self.base.domains()
        begin = begin or (Protocol(1, 1) if asked.lists else new_table_protocol(registry))
        protocol = upgrade_protocol(begin, wanted, registry)
        if self.intents.domains or kept:
            needed = features_for_domains({**kept, **self.intents.domains}, protocol, registry)
            protocol = upgrade_protocol(protocol, needed, registry)
        check_writable(protocol, registry)
        state, plugins = self._define(protocol, given, prepared=False)
        self._check_forbidden(frozenset() if previous is None or is_new else previous.active, state.active)
        rules = plugins.without(without_rules_of)
        prepared = rules.fold("prepare_metadata", "metadata", given, table=state, previous=previous)
        state, plugins = self._define(protocol, prepared)
        rules = plugins.without(without_rules_of)
        wishes = {**given.configuration, **(requests or {})}
        domains = _declared_domains(plugins.collect("prepare_domains", table=state, requested=wishes), plugins)
        if domains:
            self.intents.system_domains.update(domains)
            state, plugins = self._define(protocol, prepared)
        check_names(previous, state, registry, self.context.log.engine.rejected_in_names)
        check_statistics_columns(previous, state)
        if previous is not None and not replaces:
            check_type_changes(previous, state, plugins, registry)
            check_required(previous, state, without_nulls)
            names = changed_names(previous, state)
            if names:
                rules.check("check_column_changes", table=previous, paths=names)
        rules.check("check_metadata", table=state, metadata=prepared, previous=previous, is_new=is_new)
        if state.encodings or previous is not None and previous.encodings:
            written = plugins.collect("write_rules", table=state, operation=self.operation)
            parts.check_encodings(None if replaces else previous, state, written, self._has_files)
        if read_property(state.configuration, MANIFESTS):
            parts.check_manifests(previous, state, plugins)
        self.intents.metadata = prepared
        self.intents.replaces_definition = is_new and self.base is not None
        self._stage_protocol(protocol)
        self._target, self._plan = (state, plugins), None
        return state

    def _has_files(self) -> bool:
        """Whether the table has files, or has new ones once this commits.

        If not, none may be added meanwhile: the transaction has read that there are none.
        """
        files = self.base is not None and self.base.files.count or any(t.num_rows for t in self.intents.adds)
        if not files:
            self.read(None)
        return bool(files)

    def _check_forbidden(self, old: Collection[str], new: Collection[str]) -> None:
        """Raise the error of a use of features that the session forbids, by those that are active before and after."""
        for each in self.defaults.forbidden:
            if each.concerns(old, new):
                raise each.error

    def _may_replace_protocol(self) -> bool:
        """Whether a table that is replaced may lose features; one of a catalog keeps those that its catalog needs."""
        return self.defaults.replaces_protocol and self.context.log.catalog is None

    def _needed_for_domains(self, protocol: Protocol) -> list[str]:
        return features_for_domains(self.intents.domains, protocol, self.context.registry)

    def _stage_protocol(self, protocol: Protocol) -> None:
        self.intents.protocol = protocol if self.base is None or protocol != self.base.protocol else None

    def _define(self, protocol: Protocol, metadata: Metadata, prepared: bool = True) -> tuple[TableState, PluginSet]:
        """Build the target state, with the domains as this transaction leaves them."""

        def domains() -> Mapping[str, str]:
            return self.intents.domains_on({} if self.base is None else self.base.domains())

        version = -1 if self.base is None else self.base.version
        return self.context.define(protocol, metadata, version, domains, prepared)

    @property
    def plan(self) -> WritePlan:
        """How rows become files of the target state; made once."""
        if self._plan is None:
            check_requirements(self.table, self.plugins)
            known = None if self.base is None else self.base.write_plan
            self._plan = plan_write(self.table, self.plugins, self.operation, known)
        return self._plan

    # --- intents ---

    def add_files(self, files: pa.Table) -> None:
        """Stage files: columns of `intents.ADDED_FILE`; a missing count of rows is taken from the statistics.

        Parameters
        ----------
        files : pyarrow.Table or other Arrow data, **n rows**
            A row for each file: columns of `intents.ADDED_FILE`.

        Raises
        ------
        InvalidArgumentError
            For a column that is missing, unknown or of another type, and a value that no add may have. `commit` checks
            the rest: partition values, statistics, and fields that belong to features.
        """
        typed = with_num_records(typed_files(files, "add", self._declared("add")))
        self.intents.adds.append(typed)
        self._given.append(typed)

    def add_written(self, written: Written) -> None:
        """Stage files that `write_files` wrote by this transaction's plan: their actions need no check.

        Parameters
        ----------
        written : Written
            The files, and what is reported of them.
        """
        self.intents.adds.append(with_num_records(written.adds))
        self.intents.report(written.reported)

    def remove_files(self, files: pa.Table) -> None:
        """Stage the removal of files as they were read: columns of `intents.REMOVED_FILE`, with ``dvId``.

        Parameters
        ----------
        files : pyarrow.Table or other Arrow data, **n rows**
            A row for each file: the columns of `intents.REMOVED_FILE`, and ``dvId``.

        Raises
        ------
        InvalidArgumentError
            For a column that is missing, unknown or of another type, and a value that no removal may have; `commit`
            raises it for a file that is not live.
        """
        self.intents.removes.append(typed_files(files, "remove", self._declared("remove")))

    def add_tombstones(self, files: pa.Table) -> None:
        """Stage tombstones of files that are not live, so that vacuum keeps them for the retention.

        Parameters
        ----------
        files : pyarrow.Table or other Arrow data, **n rows**
            A row for each tombstone: the columns that `remove_files` takes.

        Raises
        ------
        InvalidArgumentError
            As of `remove_files`, but not for a file that is not live.
        """
        self.remove_files(files)
        self._tombstones.append(self.intents.removes[-1])

    def remove_rows(self, files: str | pa.Table, rows: RowSet | RowSets | pa.Array) -> None:
        """Stage the removal of rows of live files.

        Parameters
        ----------
        files : str or pyarrow.Table
            A file's path as the log spells it, or adds as they were read: rows with every column of
            `intents.READ_FILE`.
        rows : RowSet, RowSets, or any object with ``__arrow_c_array__``
            Physical positions. Of one file: a RowSet, or an Arrow array of integers. With one set for each row of
            ``files``: RowSets, or an Arrow array of lists, as `ScanFiles.deleted_rows` returns it.

        Raises
        ------
        InvalidArgumentError
            If the table drops no rows without rewriting files, or has no such file, and for positions that are null or
            negative.
        """
        sets = _row_sets(rows)
        count = files.num_rows if isinstance(files, pa.Table) else 1
        if not isinstance(sets, RowSets) or not isinstance(files, (str, pa.Table)) or len(sets) != count:
            raise InvalidArgumentError(
                f"Found files as {type(files).__name__} and rows as {type(rows).__name__}; expected a path and a "
                "RowSet, as delta_core.kernels.row_set.RowSet.from_positions makes it, or the files' rows and as many "
                "RowSets; or Arrow arrays of positions."
            )
        if self.plan.remove_rows is None:
            raise InvalidArgumentError(
                "The table has no feature active that drops rows without rewriting files: overwrite the rows that stay"
                f"{self.context.registry.remedies('row_removal')}."
            )
        if isinstance(files, str) or not set(READ_FILE) <= set(files.column_names):
            paths = [files] if isinstance(files, str) else files.column("path").to_pylist()
            files = pa.concat_tables([self._live_file(path) for path in paths])
        self.intents.row_removals.append(RowRemoval(files, sets))

    def _live_file(self, path: str) -> pa.Table:
        if self._live is None:
            assert self.base is not None
            files = self.base.files.columns(read_columns(self.base.action_fields))
            self._live = files, {p: i for i, p in enumerate(files.column("path").to_pylist())}
        files, rows = self._live
        if path not in rows:
            raise InvalidArgumentError(f"{path} is no live file of the table.", path=path)
        return files.slice(rows[path], 1)

    def add_change_files(self, files: pa.Table) -> None:
        """Stage change files: columns of `intents.CHANGE_FILE`.

        Parameters
        ----------
        files : pyarrow.Table or other Arrow data, **n rows**
            A row for each file: columns of `intents.CHANGE_FILE`.

        Raises
        ------
        InvalidArgumentError
            For a column that is missing, unknown or of another type, and a value that no change file may have.
        """
        self.intents.cdcs.append(typed_files(files, "cdc", self._declared("cdc")))

    def _declared(self, action: str) -> list[str] | None:
        """Return the fields that features add to an action; None before the table is defined."""
        if self._target is None:
            return None
        return [f.name for feature in self._target[1].features.values() for f in feature.fields if f.action == action]

    def set_domain(self, domain: str, configuration: str | None) -> None:
        """Stage a domain's configuration; None removes it. The feature that domains need is added if missing.

        Parameters
        ----------
        domain : str
            The name of the domain.
        configuration : str or None
            Its text; None removes it.
        """
        registry = self.context.registry
        if configuration is None and (self._target is None or not permits_domains(self._target[0].protocol, registry)):
            self.intents.domains.pop(domain, None)  # the table can't have it: there is nothing to remove
            return
        self.intents.domains[domain] = configuration
        if self._target is not None:
            # a feature may be switched on by its domain
            state = self._target[0]
            protocol = upgrade_protocol(state.protocol, self._needed_for_domains(state.protocol), registry)
            self._target, self._plan = self._define(protocol, state.metadata), None
            self._stage_protocol(protocol)

    def set_transaction(self, app_id: str, version: int) -> None:
        """Stage the version that an application reached, for writes that happen once.

        Parameters
        ----------
        app_id : str
            The application.
        version : int
            The version that it reached.
        """
        self.intents.transactions[app_id] = parse_version(version, f"version of {app_id}", least=_LEAST_LONG)

    def add_action(self, kind: str, value: Mapping[str, Any]) -> None:
        """Stage an action of a kind that a plugin declares as an `ActionKind`.

        It replaces earlier actions of its kind with the same values of the kind's ``key``.
        `Snapshot.custom_actions` returns those that are in force.

        Parameters
        ----------
        kind : str
            The kind of action, which a feature of the table declares.
        value : Mapping
            Its fields, as JSON values.

        Notes
        -----
        `commit` checks it: it raises InvalidArgumentError for fields that are not of the type of the kind, and
        UnsupportedFeatureError for a kind that no feature of the table declares. Of two transactions that stage actions
        of one key at the same time, the later one gets a CommitConflictError, unless the kind is rebasable.
        """
        self.intents.actions.append((kind, value))

    def read(self, predicate: Expression | None, files: pa.Table | None = None) -> None:
        """Note that files matching a predicate were read (None: every file), for the conflict check.

        Parameters
        ----------
        predicate : Expression or None
            The condition on the rows that were read; None: every file was read.
        files : pyarrow.Table, optional
            The files that were read, a row each.
        """
        self.reads.predicates.append(predicate)
        if files is not None:
            self.reads.files.append(files.select(["path", "dvId"]))

    def check_read_since(self, version: int, replaces: bool, predicate: Expression | None = None) -> None:
        """Reject rows that were read at an earlier version than the base, if commits since make them stale.

        Parameters
        ----------
        version : int
            The version at which rows of this table were read that the transaction writes.
        replaces : bool
            Whether they replace rows.
        predicate : Expression or None
            Which rows they replace; None: any.

        Raises
        ------
        ConcurrentDeleteReadError
            A commit since removed rows.
        ConcurrentAppendError
            A commit since added rows, and may have added some that are replaced.
        CommitConflictError
            The table was made again since, or the commits since were cleaned up.
        """
        base = self.base
        if base is None or version == base.version:
            return
        what = f"The table or the rows to write were read at version {version} of {base.uri}"
        if version > base.version:
            raise CommitConflictError(
                f"{what}, whose latest version is {base.version}: it was made again. Read the rows again.",
                version=base.version,
            )
        try:
            for winner in base.commits(version + 1, base.version):
                check_read_since(winner, replaces, predicate, self._matching(base))
        except VersionNotFoundError as e:
            raise CommitConflictError(
                f"{what}; the commits since were cleaned up, so that it is not known what they changed. Read the rows "
                "again.",
                version=base.version,
            ) from e

    # --- commit ---

    @property
    def isolation(self) -> IsolationLevel:
        """The isolation level in force: requested, else the table's property, else WriteSerializable.

        A transaction that changes no rows needs no more than SnapshotIsolation.
        """
        if self._isolation is not None:
            return self._isolation
        if self.intents.metadata is None and (self.intents.adds or self.intents.removes) and not self._changes_rows():
            return IsolationLevel.SNAPSHOT_ISOLATION
        named = read_property(self.table.configuration, "delta.isolationLevel")
        return IsolationLevel.WRITE_SERIALIZABLE if named is None else IsolationLevel(named)

    def _changes_rows(self) -> bool:
        files = (*self.intents.adds, *self.intents.removes)
        return any(changes_data(t) for t in files) or bool(self.intents.row_removals)

    def commit(
        self,
        user_metadata: str | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
        max_retries: int = MAX_COMMIT_RETRIES,
        clock: Callable[[], int] | None = None,
        post: PostCommit | None = None,
        transactions: Mapping[str, int] | None = None,
    ) -> CommitResult[Base]:
        """Commit what is staged.

        Parameters
        ----------
        user_metadata : str, optional
            ``userMetadata`` of the commit's ``commitInfo``.
        custom_metadata : Mapping, optional
            Further fields of ``commitInfo``, as of `CommitProperties`.
        max_retries : int
            How often to try again after a race is lost.
        clock : function() -> int, optional
            Returns the time of the commit in ms since epoch UTC; the system's clock unless given.
        transactions : Mapping of str to int, optional
            Application ids and versions to stage beside it, as `set_transaction`.
        post : PostCommit, optional
            Which checkpoints and checksums follow; what the table's properties specify unless given.

        Raises
        ------
        CommitConflictError
            A commit that landed meanwhile contradicts this one; each kind specifies what to do.
        TooManyAttemptsError
            Every attempt lost its race.
        CommitStateUnknownError
            The store did not specify whether the commit landed, and looking for it did not report.
        InvalidArgumentError
            The transaction was committed already, or may have been; a field of ``custom_metadata`` that a commit sets
            itself.
        FeatureRequirementError
            The table supports a feature without another one that it requires.
        """
        if self.in_doubt:
            raise InvalidArgumentError("This transaction was committed already, or may have been; begin another one.")
        check_commit_fields(custom_metadata or {})
        if user_metadata is not None and "userMetadata" in (custom_metadata or {}):
            raise InvalidArgumentError(
                "Found userMetadata in custom_metadata beside user_metadata, expected one of them."
            )
        self._check_staged()
        for app_id, version in (transactions or {}).items():
            self.set_transaction(app_id, version)
        start = time.perf_counter()
        now = clock or _now_ms
        committer = self._choose_committer()
        header = self._header(user_metadata, custom_metadata or {})

        latest: Base | None = None

        def build(base: Base | None, lost: int) -> Attempt:
            nonlocal latest
            latest = base
            state = None if base is None else base.state
            target, plugins = self._target_on(base)
            intents = self._resolved(base)
            timed = base is not None and plugins.single("commit_timestamps", table=target) is not None
            previous = base.commit_timestamp_ms if timed and base is not None else None
            attempt = build_attempt(intents, header, state, target, plugins, now(), previous, lost, base)
            if attempt.view.metadata_changed and intents.metadata is None:
                self._check_forbidden(target.active, target.active)
            return attempt

        def publish(attempt: Attempt) -> Committed | Conflict:
            # a version that is free may be that of a table which was made again at this place
            if latest is not None:
                latest.check_same_table()
            return self._propose(committer, attempt)

        try:
            won = commit_loop(self.base, build, publish, self._advance, max_retries + 1)
        except BaseException:
            if not self.in_doubt:
                self._delete_vectors(self.abandoned)
            raise
        result = self._finish(won.base, won.attempt, won.committed, committer)
        _log.info(
            "Committed version %d of %s: %s (%.1f ms)",
            result.snapshot.version,
            shown_uri(self.context.log.uri),
            self.operation,
            (time.perf_counter() - start) * 1000,
        )
        followed = run_post_commit(
            result.snapshot, won.attempt.content, won.base, post or PostCommit(), self.context.log.catalog
        )
        return replace(result, snapshot=followed)

    def _check_staged(self) -> None:
        if self._target is not None:
            check_requirements(*self._target)
            for files in self._given:
                check_added(files, *self._target, self.context.timezone)
        removed = [r for r in self.intents.removes if not any(r is t for t in self._tombstones)]
        check_removed(removed, self.reads, self.base)

    def _propose(self, committer: Committer, attempt: Attempt) -> Committed | Conflict:
        """Commit an attempt, and note whether it may be there."""
        proposal = Proposal(attempt.view.version, attempt.lines, self.txn_id, attempt.timestamp_ms)
        # an interrupt may come when the commit is there already
        self.in_doubt = not self._is_told
        try:
            outcome = committer.commit(proposal)
        except CommitError as e:
            self.in_doubt = isinstance(e, CommitStateUnknownError)
            raise
        except InvalidArgumentError as e:
            # lines that can't be formatted were put nowhere; any other such error may come after the commit
            self.in_doubt = getattr(attempt.lines, "failure", None) is not e
            raise
        except BaseException as e:
            self.in_doubt = self.in_doubt and e is not self._failed_sync
            raise
        if not isinstance(outcome, (Committed, Conflict)) or outcome.version != proposal.version:
            raise CommitStateUnknownError(
                f"The committer {type(committer).__name__} returned {outcome!r} for a commit of version "
                f"{proposal.version}; expected Committed or Conflict of this version. Whether the commit landed is "
                "unknown: look at the table's history, and correct the committer.",
                version=proposal.version,
            )
        self.in_doubt = isinstance(outcome, Committed)
        return outcome

    def _begin_doubt(self) -> None:
        """Wait for the staged files, after which the commit may be there whatever happens."""
        self._finish_syncs()
        self.in_doubt = True

    def _finish_syncs(self) -> None:
        """Wait until all staged files are synced; raises EngineError if one can't be, each time that it is called."""
        if isinstance(self._failed_sync, Exception):
            raise self._failed_sync  # another sync may succeed although bytes are lost
        try:
            for wait in self.syncs:
                wait()
        except BaseException as e:
            self._failed_sync = e
            raise
        self.syncs.clear()

    def _target_on(self, base: Base | None) -> tuple[TableState, PluginSet]:
        """Return the target with the domains of the version that an attempt builds on."""
        target, plugins = self._definition
        if base is self.base or base is None:
            return self._definition
        domains = self.intents.domains_on({**target.domains, **base.state.domains})
        return replace(target, domains={d: domains[d] for d in target.domains if d in domains}), plugins

    def _resolved(self, base: Base | None) -> Intents:
        """Return the intents with row removals as actions; their vectors are written before the commit is proposed."""
        removals = self.intents.row_removals
        if not removals:
            return self.intents
        known = self._resolution
        if known is not None and [id(r) for r in known[0]] == [id(r) for r in removals]:
            # the winning commits changed none of these files
            return self.intents.with_rows_removed(known[1].removes, known[1].adds)
        rule = self.plan.remove_rows
        assert base is not None and rule is not None
        prefix = random_prefix() if self.plan.requirements.random_prefix else ""
        found = resolve(removals, base, rule, prefix)
        if found.encoded is not None and found.encoded.path is not None:
            self.abandoned.append(found.encoded.path)
            self.context.log.engine.storage.put(found.encoded.path, found.encoded.data)
        self._resolution = list(removals), found
        return self.intents.with_rows_removed(found.removes, found.adds)

    def _delete_vectors(self, paths: list[str]) -> None:
        """Delete vectors that no commit names; a store that rejects leaves them to vacuum."""
        if paths:
            with contextlib.suppress(EngineError, OSError):
                self.context.log.engine.storage.delete(paths)

    def _header(self, user_metadata: str | None, custom: Mapping[str, Any]) -> CommitHeader:
        version = None if self.base is None else self.base.version
        blind = self.reads.is_blind and not self.intents.removes and not self.intents.row_removals
        blind = blind and (bool(self.intents.adds) or self.base is None)
        return CommitHeader(
            self.operation,
            self.parameters,
            self.metrics,
            version,
            self.isolation.value,
            blind,
            f"delta_core/{installed_version()}",
            self.txn_id,
            self.defaults.user_metadata if user_metadata is None else user_metadata,
            custom,
        )

    def _choose_committer(self) -> Committer:
        """Return the given committer, else a feature's, else the store's configured one, else put-if-absent.

        The last one waits for the staged files itself, while the commit is on its way to the disk.
        """
        given: Committer | None = self._committer or self.context.committer
        if given is not None:
            self._finish_syncs()
            return given
        state, plugins = self._definition
        storage = self.context.log.engine.storage
        chosen: Committer | None = plugins.single(
            "committer", table=state, commits=self.context.log.catalog, storage=storage
        )
        chosen = chosen or self.context.store_committer
        if chosen is None:
            self._is_told = bool(self.syncs)
            return StoreCommitter(storage, self._begin_doubt if self._is_told else None)
        self._finish_syncs()
        return chosen

    def _advance(self, base: Base | None, conflict: Conflict) -> Base:
        """Return the latest snapshot, after every winner was checked, from the last attempted version on."""
        if base is None:
            raise ConcurrentAppendError(
                f"Another writer created the table {self.context.log.uri} meanwhile. Open it and append to it instead.",
                version=conflict.version,
            )
        latest = base.update()
        base.check_id_of(latest)
        if latest.version < conflict.version and self.context.log.catalog is None:
            # the listing is stale: the store has reported that these commits exist
            missing = range(latest.version + 1, conflict.version + 1)
            latest = latest.with_commits([LogFile(commit_name(v), "commit", v, v) for v in missing])
        if latest.version <= base.version:
            taken = conflict.version
            raise VersionNotFoundError(f"Version {taken} is taken, but the log does not list it.", version=taken)
        kinds = [k for f in self.plugins.features.values() for k in f.actions]
        for winner in latest.commits(base.version + 1, latest.version):
            check_conflicts(winner, self.intents, self.reads, self.isolation, self._matching(latest), kinds)
            self.intents.row_removals = rebase(winner, self.intents.row_removals, latest)
            rebase_files(self.intents, winner.adds, latest.state, self.plugins)
        return latest

    def _matching(self, latest: Base) -> Callable[[pa.Table, Expression | None], pa.Table]:
        def matches(files: pa.Table, predicate: Expression | None) -> pa.Table:
            if predicate is None:
                return files
            state = latest.state
            plan = parts.plan_table_skipping(state, predicate)
            evaluator = latest.engine.evaluator
            found = FileSet.of(files).where(plan.partition, evaluator, latest.timezone, exact=True)
            return found.where(plan.statistics, evaluator, latest.timezone).columns(["path"])

        return matches

    def _finish(
        self, base: Base | None, attempt: Attempt, committed: Committed, committer: Committer
    ) -> CommitResult[Base]:
        version = committed.version
        if self._resolution is not None and self._resolution[1].encoded is not None:
            kept = self._resolution[1].encoded.path
            self._delete_vectors([p for p in self.abandoned if p != kept])
        self.abandoned = []
        name = commit_name(version)
        kind: Any = "commit" if committed.path == name else "staged"
        # many lines are not kept: what opening and listing need of them is in `content`
        lines = attempt.lines if committed.path is None or isinstance(attempt.lines, bytes) else None
        data = lines if lines is None or isinstance(lines, bytes) else b"".join(lines)
        file = LogFile(committed.path or name, kind, version, version, data=data)
        if base is None:
            snapshot = self.context.created(file, self._plan, self.intents.metadata)
        else:
            actions = None if attempt.content is None else attempt.content.actions
            snapshot = base.with_commits([file], attempt.timestamp_ms, actions, self._plan)
        try:
            self.plugins.check("after_commit", table=snapshot.state, committed=committed, committer=committer)
            self.context.log.engine.committed()
        except Exception as e:  # noqa: BLE001  (the commit is there, whatever a plugin's follow-up does)
            uri = self.context.log.uri
            _log.warning("Version %s of %s was committed; what follows a commit failed: %s", version, uri, e)
        return CommitResult(version, snapshot, attempt.view.lost + 1)


def _row_sets(rows: Any) -> Any:
    """Return positions as RowSets; what are none as it is."""
    if isinstance(rows, RowSet):
        return RowSets([rows])
    if not hasattr(rows, "__arrow_c_array__"):
        return rows
    array = pa.array(rows)
    is_nested = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    values = array.flatten() if is_nested else array
    if not pa.types.is_integer(values.type) or array.null_count or values.null_count:
        raise InvalidArgumentError(
            f"Found rows as {array.type} with {array.null_count or values.null_count} nulls, expected positions: "
            "integers, or lists of integers, without nulls."
        )
    counts = np.diff(array.offsets.to_numpy()) if is_nested else [len(array)]
    return RowSets.from_positions(len(counts), np.repeat(np.arange(len(counts)), counts), values.to_numpy())


def _declared_domains(domains: Iterable[DomainMetadata], plugins: PluginSet) -> dict[str, str | None]:
    """Return what features do to their own domains; HookContractError for a domain that none of them declares."""
    declared = {d for f in plugins.features.values() for d in f.domains}
    found: dict[str, str | None] = {}
    for d in domains:
        if d.domain not in declared or d.domain in found:
            raise HookContractError(
                f"Hook prepare_domains returned the domain {d.domain!r}; expected each once, of those that features "
                "declare.",
                hook="prepare_domains",
            )
        found[d.domain] = None if d.removed else d.configuration
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
