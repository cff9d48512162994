"""Snapshots, and the context of a table that its snapshots share."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa
from msgspec.structs import replace

from delta_core.engines.records import ActionQuery
from delta_core.errors import (
    CatalogRequiredError,
    CheckpointError,
    DeltaError,
    MetadataChangedError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.expressions.ast import Expression
from delta_core.handles.opening import Opening, Pickled
from delta_core.handles.secrets import shown_uri
from delta_core.kernel import commit as committing, log as delta_log, scan as scanning
from delta_core.kernel.log import parts
from delta_core.kernel.log.commit_chunks import BASE_COLUMNS
from delta_core.kernel.log.source import LogContents, LogMark, TableLog, concat_actions, newest_definition
from delta_core.kernel.plugins.definition import declared_domains, define_table, resolve_plugins
from delta_core.kernel.plugins.plans import Checkpoint, LogFile, LogSegment, ReadRequest
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.rules import RowSelector
from delta_core.kernel.plugins.state import TableState, advance
from delta_core.kernel.protocol.actions import Metadata, Protocol
from delta_core.kernel.snapshot.contents import SnapshotContents
from delta_core.kernel.snapshot.live_files import LaterCommits, LiveFileListing, domains_of, fields_of
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.logs import debug_log
from delta_core.runtime.structs import PublicStruct
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from delta_core.kernel.log.checksum import Checksum
    from delta_core.kernel.plugins.committer import Committer
    from delta_core.kernel.write.plan import WritePlan
    from delta_core.kernels.row_set import RowSet, RowSets

__all__ = ["Snapshot", "TableContext"]

#: For this many seconds after a listing of a remote log a commit makes no further one.
_FRESH = 10.0
#: The parts of a commit that building a version needs.
_TAIL = ActionQuery(BASE_COLUMNS, skip=frozenset({"commitInfo", "cdc"}))


class TableContext(PublicStruct, frozen=True):
    """The state that an opened table keeps over its versions.

    Parameters
    ----------
    log : TableLog
        The table's log.
    registry : PluginRegistry
        Where features come from.
    timezone : str
        The zone of partition timestamps that name none.
    committer : Committer or None
        The one that the table was opened with; it goes before any other.
    store_committer : Committer or None
        The one that is configured for the store; features' go before it.
    opening : Opening or None
        How the table was opened, which a pickle of it repeats.
    reopen : function(Pickled) -> Snapshot, or None
        Opens the version that a pickle describes.
    """

    log: TableLog
    registry: PluginRegistry
    timezone: str
    committer: Committer | None = None
    store_committer: Committer | None = None
    opening: Opening | None = None
    reopen: Callable[[Pickled], Snapshot] | None = None

    def find(self) -> Snapshot | None:
        """Open the latest version; None if there is no table."""
        with suppress(TableNotFoundError):
            return self.read(explains=False)
        return None

    def read(self, version: int | None = None, segment: LogSegment | None = None, *, explains: bool = True) -> Snapshot:
        """Open a version, None for the latest; ``segment``: its log files, if they were chosen already.

        ``explains`` as of `TableLog.read`.

        Parameters
        ----------
        version : int, optional
            The version; the latest unless given.
        segment : LogSegment, optional
            The log files of the version, if they were chosen already.
        explains : bool
            Whether the error of a place without a table states what is there, which takes a listing.
        """
        start = perf_counter()
        contents = self.log.read(version, segment=segment, explains=explains)
        for attempt in count(1):
            try:
                state, plugins = self.state(contents)
            except CheckpointError as e:
                contents = self.log.instead_of(contents, e, attempt)
            except DeltaError:
                if not contents.by_checksum:
                    raise
                contents = self.log.without_checksum(contents)
            else:
                if (log := debug_log(__name__)) is not None:
                    found = contents.segment
                    log.debug(
                        "Opened version %d of %s: checkpoint %s, %d commits (%.1f ms)",
                        found.version,
                        shown_uri(self.log.uri),
                        None if found.checkpoint is None else found.checkpoint.version,
                        len(found.deltas),
                        _ms_since(start),
                    )
                return Snapshot(self, contents, state, plugins)
        raise AssertionError  # counting does not end

    def read_segment(self, segment: LogSegment) -> Snapshot:
        """Open a version from these files of the log and no others, so that what is wrong with one of them is an error.

        Parameters
        ----------
        segment : LogSegment
            The log files.

        Raises
        ------
        LogError, CheckpointError
            For a file that can't be read; reading the live files raises them too.
        """
        contents = self.log.contents(segment)
        state, plugins = self.state(contents)
        listing = LiveFileListing(self.log, state, plugins, fields_of(plugins))
        return Snapshot(self, contents, state, plugins, files=listing.from_log(contents))

    def state(self, contents: LogContents) -> tuple[TableState, PluginSet]:
        """Build the state of what was read.

        Parameters
        ----------
        contents : LogContents
            The protocol and metadata, and where the other actions are.
        """
        version = contents.segment.version
        return self.define(contents.protocol, contents.metadata, version, lambda: domains_of(contents))

    def define(
        self,
        protocol: Protocol,
        metadata: Metadata,
        version: int,
        domains: Callable[[], Mapping[str, str]],
        prepared: bool = True,
    ) -> tuple[TableState, PluginSet]:
        """Build a state from protocol and metadata, as `define_table`, and find the plugins that serve it.

        Parameters
        ----------
        protocol : Protocol
            The protocol action.
        metadata : Metadata
            The metadata action.
        version : int
            The version that they define.
        domains : function() -> Mapping of str to str
            Returns the configuration of each domain.
        prepared : bool
            As for `define_table`.

        Raises
        ------
        CatalogRequiredError
            If a catalog decides the versions and none was given.
        """
        supported = self.registry.supported(protocol)
        plugins = resolve_plugins(supported, metadata, self.registry)
        self._check_catalog(plugins)
        return define_table(protocol, metadata, version, supported, plugins, domains, prepared), plugins

    def created(self, file: LogFile, write_plan: WritePlan | None = None, known: Metadata | None = None) -> Snapshot:
        """Return the snapshot of a table whose first commit is known; lists nothing.

        ``write_plan``: how this process wrote its files; ``known``: the metadata that it committed.

        Parameters
        ----------
        file : LogFile
            The first commit, with its content.
        write_plan : WritePlan, optional
            How this process wrote its files.
        known : Metadata, optional
            The metadata in it, if the caller has it.
        """
        tail = self.log.engine.logs.read_commits([file], _TAIL)
        protocol, metadata = newest_definition(tail.other_actions, self.log.uri)
        assert protocol is not None and metadata is not None
        if metadata == known:
            metadata = known  # its schema is parsed
        commit = _without_data(file)
        segment = LogSegment(file.version, None, (commit,), (commit,))
        contents = LogContents(segment, tail, None, protocol, metadata, mark=self.log.mark_of(segment))
        state, plugins = self.state(contents)
        return Snapshot(self, contents, state, plugins, write_plan=write_plan)

    def _check_catalog(self, plugins: PluginSet) -> None:
        needs = plugins.single("requires_catalog", False, features=frozenset(plugins.features))
        if needs and self.log.catalog is None:
            raise CatalogRequiredError(
                f"The versions of {self.log.uri} are decided by a catalog: its log alone may hold commits that were "
                "never ratified. Open it with commits=..., the catalog's CommitSource.",
                path=self.log.uri,
            )


class Snapshot(SnapshotContents):
    """One version of a table.

    Attributes
    ----------
    state : TableState
        Protocol, metadata, schema, features, column map.
    segment : LogSegment
        The log files that the version is built from, and why these.
    plugins : PluginSet
        The plugins that serve its features.
    engine : Engine
    timezone : str
    checksum : Mapping or None
        The version's checksum, if this process wrote it: the next one is computed from it.
    write_plan : WritePlan or None
        How this process wrote the version's files: the next write reuses it if it still fits.

    Parameters
    ----------
    seen : (LogMark or None, float), optional
        A file by which the table is known, and when the log was seen to have it, by the monotonic clock; as
        ``contents`` was read just now unless given.
    later : LaterCommits, optional
        Commits above an earlier version whose files are loaded.
    files : FileSet, optional
        The version's files, if they are loaded already.
    commit_timestamp_ms : int, optional
        The version's own commit time, if it is known.

    Examples
    --------
    >>> snapshot = table.snapshot()
    >>> snapshot.version, snapshot.schema.names
    (1, ['id', 'city', 'amount'])
    """

    context: TableContext

    # --- pickling ---

    def pickled(self) -> Pickled:
        """Return what a pickle of this version holds.

        Raises
        ------
        UnsupportedOperationError
            If the snapshot was not opened by `open_snapshot`.

        Examples
        --------
        >>> table.snapshot().pickled().version
        1
        """
        if self.context.opening is None:
            raise UnsupportedOperationError("This snapshot was not opened by open_snapshot: it can't be pickled.")
        return self.context.opening.pickled(self.version)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.context.reopen, (self.pickled(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    # --- other versions of the table ---

    def at(self, version: int) -> Snapshot:
        """Open another version of the table.

        Parameters
        ----------
        version : int
            The version.

        Examples
        --------
        >>> table.snapshot().at(0).scan().count()
        2
        """
        number = delta_log.parse_version(version)
        return self if number == self.version else self.context.read(number)

    def update(self) -> Snapshot:
        """Return the latest version; reads only the commits that this one lacks.

        If the log was cleaned up below it, so that this version can no longer be built, all is read again.

        Examples
        --------
        >>> snapshot = table.snapshot()
        >>> write_deltalake("table", rows, mode="append")
        >>> snapshot.update().version
        2
        """
        log = self.context.log
        if log.is_latest(self.version) and log.is_there(self._mark):
            return self
        newer = log.commits_above(self.segment, self._mark, self._is_fresh)
        if newer is None:
            found = self.context.read(None)
            # a listing that lags does not have this version yet; a table that was made again has another id
            lags = found.version < self.version and found.metadata.id == self.metadata.id
            return self if lags else found
        self._seen(newer.mark)
        if not newer.commits:
            return self
        if (debug := debug_log(__name__)) is not None:
            debug.debug("Found %d newer commits of %s", len(newer.commits), shown_uri(self.uri))
        expected = list(range(self.version + 1, self.version + 1 + len(newer.commits)))
        if [f.version for f in newer.commits] != expected:
            return self.context.read(None)
        return self.with_commits(newer.commits)

    @property
    def _is_fresh(self) -> bool:
        return time.monotonic() - self._seen_at < _FRESH

    @property
    def _last_seen(self) -> tuple[LogMark | None, float]:
        return self._mark, self._seen_at

    def _seen(self, mark: LogMark | None) -> None:
        self._mark, self._seen_at = mark, time.monotonic()

    def check_same_table(self) -> None:
        """Check that the table was not deleted, nor made again at its place, since it was opened.

        Raises
        ------
        TableNotFoundError
            If the table is gone.
        MetadataChangedError
            If the table's id is another one.

        Notes
        -----
        A look at one file on a local disk. On other stores a listing, unless one was made in the last seconds. If these
        don't report, the table is opened again. A catalog has its tables itself.

        Examples
        --------
        >>> table.snapshot().check_same_table() is None
        True
        """
        log = self.context.log
        if log.catalog is not None or log.is_there(self._mark):
            return
        is_local = log.engine.storage.local_path("") is not None
        if not is_local and self._is_fresh:
            return
        newer = log.commits_above(self.segment, self._mark)
        if newer is not None:
            self._seen(newer.mark)
            return
        try:
            found = self.context.read(None)
        except TableNotFoundError as e:
            raise TableNotFoundError(
                f"The log of the table at {self.uri} is gone: version {self.version + 1} would follow nothing. Nothing "
                "was committed. Open the table again, or create it.",
                path=self.uri,
                version=self.version + 1,
            ) from e
        self.check_id_of(found)
        self._seen(found._mark)

    def latest(self) -> Snapshot:
        """Return the latest version, to change the table from there.

        Raises
        ------
        MetadataChangedError
            If another table is at its place by now.

        Examples
        --------
        >>> table.snapshot(version=0).latest().version
        1
        """
        found = self.update()
        self.check_id_of(found)
        return found

    def check_id_of(self, latest: Snapshot) -> None:
        """Raise MetadataChangedError if a later version is one of another table.

        Parameters
        ----------
        latest : Snapshot
            The later version.

        Raises
        ------
        MetadataChangedError
            If the later version has another table id.
        """
        if latest.metadata.id != self.metadata.id:
            raise MetadataChangedError(
                f"The table at {self.uri} is another one by now: its id is {latest.metadata.id}, and that of the table "
                f"which was opened is {self.metadata.id}. Nothing was committed. Open the table again, see that the "
                "operation still fits, and repeat it.",
                version=latest.version,
            )

    def with_commits(
        self,
        newer: Sequence[LogFile],
        timestamp_ms: int | None = None,
        actions: ParsedActions | None = None,
        write_plan: WritePlan | None = None,
    ) -> Snapshot:
        """Return the snapshot after the next commits; lists nothing, and reads nothing whose content is known.

        Parameters
        ----------
        newer : sequence of LogFile
            The commits, oldest first.
        timestamp_ms : int, optional
            The last one's commit time, if the caller has it.
        actions : ParsedActions, optional
            The content of the commits, if the caller has it; at least the columns that opening a table reads.
        write_plan : WritePlan, optional
            How this process wrote the last one's files.
        """
        fresh = self.engine.logs.read_commits(newer, _TAIL) if actions is None else _narrowed(actions)
        commits = tuple(_without_data(f) for f in newer)
        protocol, metadata = newest_definition(fresh.other_actions, self.uri)
        old = self._contents
        segment = replace(
            old.segment,
            version=newer[-1].version,
            deltas=(*old.segment.deltas, *commits),
            commits=(*old.segment.commits, *commits),
        )
        contents = LogContents(
            segment, concat_actions(old.tail, fresh), old.checkpoint, protocol or old.protocol, metadata or old.metadata
        )
        if protocol is None and metadata is None:
            state, plugins = (
                advance(self.state, segment.version, declared_domains(self.plugins, lambda: domains_of(contents))),
                self.plugins,
            )
        else:
            state, plugins = self.context.state(contents)
        later = None
        if fields_of(plugins) == self.action_fields:
            if self._files is not None:
                later = LaterCommits(self._files, fresh, commits)
            elif self._later is not None:
                later = self._later.then(fresh, commits)
        return Snapshot(
            self.context,
            contents,
            state,
            plugins,
            seen=self._last_seen,
            later=later,
            commit_timestamp_ms=timestamp_ms,
            write_plan=write_plan,
        )

    def with_checksum(self, checksum: Checksum | None) -> Snapshot:
        """Return this version with the checksum that this process wrote of it, None if it wrote none.

        Parameters
        ----------
        checksum : Mapping or None
            The content of the checksum.
        """
        return Snapshot(
            self.context,
            self._contents,
            self.state,
            self.plugins,
            seen=self._last_seen,
            later=self._later,
            files=self._files,
            commit_timestamp_ms=self._commit_timestamp_ms,
            checksum=checksum,
            write_plan=self.write_plan,
        )

    def with_checkpoint(self, checkpoint: Sequence[LogFile]) -> Snapshot:
        """Return this version built from a checkpoint of it that was just written; lists nothing.

        The columns that were read of the commits below are let go, so that a table that stays open for many commits
        stays small.

        Parameters
        ----------
        checkpoint : sequence of LogFile
            The files of the checkpoint.
        """
        kind: Literal["single", "uuid"] = "uuid" if checkpoint[0].uuid else "single"
        found = Checkpoint(self.version, kind, tuple(checkpoint))
        commits = tuple(f for f in self.segment.commits if f.version == self.version)
        segment = LogSegment(self.version, found, (), commits, notes=("This process wrote the checkpoint.",))
        logs = self.engine.logs
        tail = logs.read_commits([], _TAIL)
        contents = LogContents(segment, tail, parts.CheckpointReader(logs, found), self.protocol, self.metadata)
        return Snapshot(
            self.context,
            contents,
            self.state,
            self.plugins,
            seen=self._last_seen,
            commit_timestamp_ms=self._commit_timestamp_ms,
            checksum=self.checksum,
            write_plan=self.write_plan,
        )

    # --- rows ---

    def redefined(self, state: TableState, plugins: PluginSet) -> Snapshot:
        """Return this version's files as another definition reads them: that of a transaction on it.

        Parameters
        ----------
        state : TableState
            The other definition.
        plugins : PluginSet
            The plugins that serve its features.
        """
        if state is self.state:
            return self
        same = fields_of(plugins) == self.action_fields
        return Snapshot(
            self.context,
            self._contents,
            state,
            plugins,
            seen=self._last_seen,
            later=self._later if same else None,
            files=self._files if same else None,
        )

    def begin(
        self,
        operation: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        isolation: committing.IsolationLevel | None = None,
        committer: Committer | None = None,
    ) -> committing.Transaction[Snapshot]:
        """Begin a transaction on this version.

        Parameters
        ----------
        operation : str
            The name that goes into history: WRITE, DELETE, ...
        parameters : Mapping, optional
            Its ``operationParameters``.
        isolation : IsolationLevel, optional
            The isolation from commits that land meanwhile; the table's property decides unless given.
        committer : Committer, optional
            The committer of the commit; the table's own unless given.

        Returns
        -------
        Transaction
            Stages intents; its ``commit`` makes them a version.

        Raises
        ------
        UnsupportedFeatureError, UnsupportedVersionError
            The table can't be written.

        Examples
        --------
        >>> transaction = table.snapshot().begin("MY OPERATION")
        >>> transaction.set_transaction("nightly", 7)
        >>> transaction.commit().version
        2
        """
        return committing.Transaction(
            self.context, self, operation, parameters, isolation=isolation, committer=committer
        )

    def row_sets(self, files: pa.Table) -> dict[int, RowSet]:
        """Return the rows that vectors drop, by row number in a file table; files without a vector are left out.

        Parameters
        ----------
        files : pyarrow.Table, **n rows**
            A row for each file, with the columns of its vector.
        """
        return scanning.read_row_sets(self.engine.storage, self._row_selectors(), files)

    def dropped_rows(self, files: pa.Table) -> RowSets:
        """Return the rows that vectors drop of each file of a file table, without a Python object a file.

        Parameters
        ----------
        files : pyarrow.Table, **n rows**
            A row for each file, with the columns of its vector.
        """
        return scanning.read_dropped_rows(self.engine.storage, self._row_selectors(), files)

    def _row_selectors(self) -> list[RowSelector]:
        rules = self.plugins.collect("read_rules", table=self.state, request=ReadRequest())
        return [r for r in rules if isinstance(r, RowSelector)]

    def scan(
        self,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
        predicate: str | Sequence[Any] | Expression | Any = None,
        limit: int | None = None,
        **options: Any,
    ) -> scanning.Scan:
        """Plan a scan; see `Scan` for the arguments and what it returns.

        Parameters
        ----------
        columns, metadata, predicate, limit : optional
            As for `Scan`.
        **options
            The further arguments of `Scan`, by name.

        Examples
        --------
        >>> table.snapshot().scan(columns=["id"], predicate="amount > 15").to_table().to_pydict()
        {'id': [2, 3]}
        """
        return scanning.Scan(self, columns, metadata, predicate, limit, **options)


def _ms_since(start: float) -> float:
    return (perf_counter() - start) * 1000


def _without_data(file: LogFile) -> LogFile:
    """Drop a commit's content if it can be read again; a catalog's inline commit lies nowhere else."""
    inline = file.kind == "staged" and "/" not in file.name
    return file if inline else replace(file, data=None)


def _narrowed(actions: ParsedActions) -> ParsedActions:
    """Return the columns of file actions that opening a table reads."""
    always = ("version", "line", "path")
    tables = (
        actions.adds.select([*always, *BASE_COLUMNS, "dvId"]),
        actions.removes.select([*always, "size", "dvId"]),
        actions.cdcs.select([*always, "size"]),
    )
    return ParsedActions(*tables, actions.other_actions)
