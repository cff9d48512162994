"""Snapshot: one version of a table. Opening one costs protocol and metadata; files come when requested."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core import handles
from delta_core.engines.engine import Engine
from delta_core.engines.opening import make_engine
from delta_core.engines.records import ActionQuery
from delta_core.errors import (
    CatalogRequiredError,
    CheckpointError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    LogChangedError,
    MetadataChangedError,
    TableNotFoundError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.expressions.ast import Expression
from delta_core.handles.opening import Opening, Pickled
from delta_core.handles.secrets import shown_uri
from delta_core.kernel import commit as committing, log as delta_log, scan as scanning
from delta_core.kernel.log import parts, value_parts
from delta_core.kernel.log.commit_chunks import BASE_COLUMNS, CommitChunk
from delta_core.kernel.log.committers import find_committer
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.reconcile import reconcile
from delta_core.kernel.log.source import LogContents, LogMark, TableLog, concat_actions, newest_definition
from delta_core.kernel.plugins.definition import declared_domains, define_table, resolve_plugins
from delta_core.kernel.plugins.plans import Checkpoint, LogFile, LogSegment, ReadRequest
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet, default_registry
from delta_core.kernel.plugins.rules import CommitTimestamp, RowSelector
from delta_core.kernel.plugins.state import TableState, advance
from delta_core.kernel.protocol.actions import ActionField, DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.arguments import path_text
from delta_core.runtime.logs import debug_log
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import Path, Schema

if TYPE_CHECKING:
    from delta_core.engines.interface import CheckpointHandle
    from delta_core.expressions.plugin_functions import Function
    from delta_core.kernel.log.checksum import Checksum
    from delta_core.kernel.log.commits import Commit
    from delta_core.kernel.log.history import CommitHistory
    from delta_core.kernel.plugins.catalog import CommitSource
    from delta_core.kernel.plugins.committer import Committer
    from delta_core.kernel.write.plan import WritePlan
    from delta_core.kernels.row_set import RowSet, RowSets
    from delta_core.schema.types import TypeDef

__all__ = ["Snapshot", "TableContext", "open_context", "open_snapshot"]

T = TypeVar("T")
#: For so many seconds after a listing of a remote log a commit makes no further one.
_FRESH = 10.0
#: What building a version needs of a commit.
_TAIL = ActionQuery(BASE_COLUMNS, skip=frozenset({"commitInfo", "cdc"}))


def open_snapshot(
    uri: str | os.PathLike[str],
    version: int | None = None,
    timestamp: str | datetime | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    commits: CommitSource | None = None,
    plugins: PluginRegistry | None = None,
    timezone: str = "UTC",
    committer: Committer | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    pickle_secrets: bool = False,
) -> Snapshot:
    """Open one version of a table.

    Parameters
    ----------
    uri : str or path
        A local path or the URI of any file system that fsspec supports.
    version, timestamp : optional
        Which version, or the last one at a time (ISO 8601 text or datetime); the latest if neither is given.
    storage_options : Mapping, optional
        What the file system takes: credentials, endpoints.
    engine : str or Engine
        The name of an entry point of the group ``delta_core.engines``, or an engine.
    commits : CommitSource, optional
        The catalog of a catalog-managed table.
    plugins : PluginRegistry, optional
        Where features come from; what is installed unless given.
    timezone : str
        The zone of partition timestamps that name none.
    committer : Committer, optional
        What makes commits into versions, if neither a feature's nor the store's own way is requested.
    allow_external : sequence of str or False, optional
        Prefixes, such as ``s3://bucket/shared``, of places outside the table's root that its log may name. By default
        files on the table's own kind of store are read, and credentials go to its own host and bucket only; False reads
        nothing outside the root. See docs/stores.md.
    pickle_secrets : bool
        Whether a pickle of the table holds its storage options that are secrets, such as keys and passwords.

    Raises
    ------
    TableNotFoundError, VersionNotFoundError
        There is no table, or not this version of it.
    UnsupportedFeatureError, UnsupportedVersionError, CatalogRequiredError
        The table needs what is not here; the message states what to install or pass.
    LogError, CheckpointError
        The log is not whole.
    ExternalPathError
        A path of the log leads to a place that is not followed.
    InvalidArgumentError
        Both a version and a timestamp were given.

    Notes
    -----
    Reads the hint, a listing, the commits above the checkpoint, and of the checkpoint the footer and the row group
    of protocol and metadata. The cost does not grow with the number of files.
    """
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("Found both version and timestamp, expected one of the two.")
    number = None if version is None else delta_log.parse_version(version)
    context = open_context(
        path_text(uri), storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets
    )
    snapshot = context.read(number)
    if timestamp is None:
        return snapshot
    return snapshot.at(snapshot.version_at(delta_log.parse_ms(timestamp, timezone)))


def reopen_snapshot(pickled: Pickled) -> Snapshot:
    """Open the version that a pickle describes; reads what `open_snapshot` reads.

    Raises
    ------
    EngineError
        If the table can't be opened here; the message names the secrets that the pickle was made without.
    """
    try:
        return open_snapshot(version=pickled.version, **pickled.arguments)
    except EngineError as e:
        raise pickled.explained(e) from e


def open_context(
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    engine: str | Engine = "arrow",
    commits: CommitSource | None = None,
    plugins: PluginRegistry | None = None,
    timezone: str = "UTC",
    committer: Committer | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    pickle_secrets: bool = False,
) -> TableContext:
    """Return a table's context, whether there is a table or not; does no I/O. Arguments as of `open_snapshot`.

    Parameters
    ----------
    uri : str
        The place of the table.
    storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets : optional
        As for `open_snapshot`.

    Raises
    ------
    InvalidArgumentError
        Both an `Engine` and ``allow_external`` were given.
    """
    if timezone != "UTC":
        value_parts.time_zone(timezone)  # rejected here, not at the first column that needs it
    if isinstance(engine, Engine) and allow_external is not None:
        raise InvalidArgumentError(
            "Found both an Engine and allow_external; expected it to be given to what made the engine."
        )
    made = engine if isinstance(engine, Engine) else make_engine(engine, uri, storage_options, allow_external)
    configured = None if committer is not None else find_committer(made.storage, storage_options)
    recover = getattr(configured if committer is None else committer, "recover", None)
    log = TableLog(made, uri, commits, recover)
    opening = Opening(
        uri, storage_options, engine, commits, plugins, timezone, committer, allow_external, pickle_secrets
    )
    return TableContext(log, plugins or default_registry(), timezone, committer, configured, opening)


class TableContext(Struct, frozen=True):
    """What an opened table keeps over its versions.

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
    """

    log: TableLog
    registry: PluginRegistry
    timezone: str
    committer: Committer | None = None
    store_committer: Committer | None = None
    opening: Opening | None = None

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
        listing = _FileListing(self.log, state, plugins, _fields_of(plugins))
        return Snapshot(self, contents, state, plugins, files=listing.of(contents))

    def state(self, contents: LogContents) -> tuple[TableState, PluginSet]:
        """Build the state of what was read.

        Parameters
        ----------
        contents : LogContents
            The protocol and metadata, and where the other actions are.
        """
        version = contents.segment.version
        return self.define(contents.protocol, contents.metadata, version, lambda: _domains(contents))

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
        """Return the snapshot of a table whose first commit is at hand; lists nothing.

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


def _domains(contents: LogContents) -> dict[str, str]:
    """Return every domain's configuration, removed ones left out."""
    where = f"version {contents.segment.version}"
    found = [DomainMetadata.parse(v, where) for v in contents.newest("domainMetadata", "domain").values()]
    return {d.domain: d.configuration for d in found if not d.removed}


class _Later(Struct, frozen=True):
    """Commits on top of files that are loaded, oldest first; looked at when the files are requested."""

    files: FileSet
    actions: ParsedActions
    commits: tuple[LogFile, ...]

    def then(self, actions: ParsedActions, commits: tuple[LogFile, ...]) -> _Later:
        return _Later(self.files, concat_actions(self.actions, actions), (*self.commits, *commits))

    def files_after(self, engine: Engine, fields: tuple[ActionField, ...]) -> FileSet:
        found = reconcile(self.actions)
        chunk = CommitChunk(engine.logs, self.commits, self.actions.adds, fields)
        return self.files.refreshed([(chunk, found.adds)], found.keys)


def _read_of(log: TableLog, contents: LogContents, read: Callable[[LogContents], T]) -> tuple[T, LogContents]:
    """Run what reads the log's files; if it fails on a checkpoint, again on what replaces that."""
    for attempt in count(1):
        try:
            return read(contents), contents
        except CheckpointError as e:
            contents = log.instead_of(contents, e, attempt)
    raise AssertionError  # counting does not end


def _touched(contents: LogContents) -> pa.Table:
    return pa.concat_tables([t.select(["path", "dvId"]) for t in (contents.tail.adds, contents.tail.removes)])


def _fields_of(plugins: PluginSet) -> tuple[ActionField, ...]:
    return tuple(f for feature in plugins.features.values() for f in feature.fields)


class _FileListing(Struct, frozen=True):
    """Makes the live files of a version. They hold it, and so not the snapshot, which holds them."""

    log: TableLog
    state: TableState
    plugins: PluginSet
    fields: tuple[ActionField, ...]

    def of(self, contents: LogContents) -> FileSet:
        logs, found = self.log.engine.logs, contents.reconciled
        chunks: list[Any] = []
        if contents.tail.adds.num_rows:
            adds = CommitChunk(logs, contents.segment.deltas, contents.tail.adds, self.fields)
            chunks.append((adds, (), found.adds))
        if contents.checkpoint is not None:
            older = contents.checkpoint.chunks(self.fields, self.sidecars)
            chunks += [(c, (found.keys,), None) for c in older]
        files = FileSet.of_chunks(chunks, self.log.engine.map)
        return files.renewable(partial(self.renewed, contents), _touched(contents))

    def renewed(self, contents: LogContents) -> FileSet:
        """Return the same files from a fresh listing."""
        return _read_of(self.log, self.log.again(contents), self.of)[0]

    def sidecars(self, checkpoint: str, actions: pa.Table) -> Any:
        return self.plugins.single("checkpoint_sidecars", table=self.state, checkpoint=checkpoint, actions=actions)


class Snapshot:
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
    later : _Later, optional
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

    #: See `scan.rows.Scannable`.
    format_name = "delta"

    def __init__(
        self,
        context: TableContext,
        contents: LogContents,
        state: TableState,
        plugins: PluginSet,
        *,
        seen: tuple[LogMark | None, float] | None = None,
        later: _Later | None = None,
        files: FileSet | None = None,
        commit_timestamp_ms: int | None = None,
        checksum: Checksum | None = None,
        write_plan: WritePlan | None = None,
    ) -> None:
        self.context = context
        self._contents = contents
        self.state: TableState = state
        self.plugins: PluginSet = plugins
        #: The columns that features add to file actions.
        self.action_fields: tuple[ActionField, ...] = _fields_of(plugins)
        self.checksum: Checksum | None = checksum
        self.write_plan: WritePlan | None = write_plan
        self._mark, self._seen_at = seen or (contents.mark, time.monotonic())
        self._later = later
        self._files = files
        self._commit_timestamp_ms = commit_timestamp_ms

    def __repr__(self) -> str:
        return f"Snapshot({shown_uri(self.uri)!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return self.to_html("Snapshot")

    def to_html(self, title: str) -> str:
        """Return a description for notebooks, under a title; reads nothing.

        Parameters
        ----------
        title : str
            The title.

        Examples
        --------
        >>> "partitioned by" in by_city.snapshot().to_html("Cities")
        True
        """
        m, p, by = self.metadata, self.protocol, self.state.partition_columns
        described = {
            "location": shown_uri(self.uri),
            "version": self.version,
            "name": m.name,
            "description": m.description,
            "partitioned by": tuple(by),
            "protocol": f"reader {p.min_reader_version}, writer {p.min_writer_version}",
            "features": tuple(sorted(self.state.features)),
            "properties": tuple(f"{k} = {v}" for k, v in sorted(m.configuration.items())),
        }
        return handles.page(title, described, handles.schema_table(self.schema, by))

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
        return reopen_snapshot, (self.pickled(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    @property
    def uri(self) -> str:
        """The table's place, as it was given.

        Examples
        --------
        >>> table.snapshot().uri
        'table'
        """
        return self.context.log.uri

    @property
    def version(self) -> int:
        """The version.

        Examples
        --------
        >>> table.snapshot().version
        1
        """
        return self.state.version

    @property
    def segment(self) -> LogSegment:
        """The log files that the version is built from, and why these.

        Examples
        --------
        >>> [commit.version for commit in table.snapshot().segment.commits]
        [0, 1]
        """
        return self._contents.segment

    @property
    def engine(self) -> Engine:
        """The engine that reads for this table.

        Examples
        --------
        >>> names = table.snapshot().engine.storage.list_from("_delta_log").names
        >>> [name for name in names if name.endswith(".json")]
        ['00000000000000000000.json', '00000000000000000001.json']
        """
        return self.context.log.engine

    @property
    def registry(self) -> PluginRegistry:
        """Where features come from.

        Examples
        --------
        >>> "deletionVectors" in table.snapshot().registry.names()
        True
        """
        return self.context.registry

    @property
    def timezone(self) -> str:
        """The zone of partition timestamps that name none.

        Examples
        --------
        >>> table.snapshot().timezone
        'UTC'
        """
        return self.context.timezone

    @property
    def protocol(self) -> Protocol:
        """The protocol action in force.

        Examples
        --------
        >>> tracked.snapshot().protocol.reader_features
        ('deletionVectors',)
        """
        return self.state.protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata action in force.

        Examples
        --------
        >>> by_city.snapshot().metadata.partition_columns
        ('city',)
        """
        return self.state.metadata

    @property
    def schema(self) -> Schema:
        """The logical schema.

        Examples
        --------
        >>> table.snapshot().schema.names
        ['id', 'city', 'amount']
        """
        return self.state.schema

    @property
    def types(self) -> Mapping[str, TypeDef]:
        """The primitive types that the table may use, by name.

        Examples
        --------
        >>> table.snapshot().types["long"].arrow
        DataType(int64)
        """
        return self.state.types

    @property
    def functions(self) -> Mapping[str, Function]:
        """Functions of the plugins, which predicates may use, by lower-case name.

        Examples
        --------
        >>> sorted(table.snapshot().functions)
        []
        """
        return self.plugins.functions

    @property
    def nbytes(self) -> int:
        """The bytes of what it keeps of what was read of the log, about.

        Examples
        --------
        >>> table.snapshot().nbytes > 0
        True
        """
        tail = self._contents.tail
        return int(tail.adds.nbytes + tail.removes.nbytes) + (0 if self._files is None else self._files.nbytes)

    # --- files and other reconciled actions ---

    @property
    def files(self) -> FileSet:
        """The live files. Reads the footers of the checkpoint; columns only when they are requested.

        Examples
        --------
        >>> table.snapshot().files.count
        2
        """
        files = self._files
        if files is None:
            files = self._files = self._list_files()
        return files

    def _list_files(self) -> FileSet:
        listing = self._listing
        if self._later is not None:
            # what is kept of the earlier version may be on files that are replaced by now
            with suppress(LogChangedError):
                files = self._later.files_after(self.engine, self.action_fields)
                return files.renewable(partial(listing.renewed, self._contents), _touched(self._contents))
        return self._reading(listing.of)

    @property
    def _listing(self) -> _FileListing:
        return _FileListing(self.context.log, self.state, self.plugins, self.action_fields)

    def reload(self) -> None:
        """Read the version again from a fresh listing, for engines whose own readers found files of its log changed.

        Raises
        ------
        LogError
            If another table has been made at its place.
        VersionNotFoundError
            If the version is gone.
        """
        self._contents = self.context.log.again(self._contents)
        self._later = None
        self._files = None

    def _reading(self, read: Callable[[LogContents], T]) -> T:
        """Run what reads the log's files; if it fails on a checkpoint, again on what replaces that."""
        found, self._contents = _read_of(self.context.log, self._contents, read)
        return found

    def touched(self) -> pa.Table:
        """Return what the commits above the checkpoint touch: ``path`` and ``dvId``, as the log spells them.

        It hides the checkpoint's own rows.

        Examples
        --------
        >>> table.snapshot().touched().num_rows
        2
        """
        return self.files.touched

    def tombstones(self, columns: Sequence[str] = ("deletionTimestamp",)) -> pa.Table:
        """Return the removed files that readers of older versions may need: path, dvId and the requested columns.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove`` beside path and dvId.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> table.snapshot().tombstones().num_rows
        2
        """

        def read(contents: LogContents) -> pa.Table:
            return pa.concat_tables([table for _, table in self._tombstones_of(contents, columns)])

        return self._reading(read)

    def tombstone_tables(self, columns: Sequence[str]) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        """Yield the tombstones piece by piece, each with the checkpoint file that it is in: what bounds memory.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove`` beside path and dvId.

        Raises
        ------
        LogChangedError
            If files of the log are replaced meanwhile.
        """
        yield from self._tombstones_of(self._contents, columns)

    def _tombstones_of(
        self, contents: LogContents, columns: Sequence[str]
    ) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        found = contents.reconciled
        names = ["path", "dvId", *(c for c in columns if c not in ("path", "dvId"))]
        # commits without a tombstone are not parsed again
        deltas = contents.segment.deltas if found.removes.any() else ()
        newer = parts.read_removes(self.engine.logs, deltas, names, self.action_fields)
        if deltas:
            if not newer.column("path").equals(contents.tail.removes.column("path")):
                raise LogChangedError.of_replaced(self.uri)
            newer = pc.filter(newer, bool_array(found.removes))
        yield None, newer
        if contents.checkpoint is not None:
            for handle, table in contents.checkpoint.removes(names, self.action_fields, self._listing.sidecars):
                hidden = found.keys.contains(table.column("path"), table.column("dvId"))
                yield handle, pc.filter(table, bool_array(~hidden)).cast(newer.schema)

    def transactions(self) -> dict[str, SetTransaction]:
        """Return the last version that each application wrote, by application id.

        Examples
        --------
        >>> properties = CommitProperties(app_transactions=[AppTransaction("nightly", 7)])
        >>> write_deltalake(table, rows, mode="append", commit_properties=properties)
        >>> table.snapshot().transactions()["nightly"].version
        7
        """
        found = self._reading(lambda contents: contents.newest("txn", "appId"))
        return {a: SetTransaction.parse(v, f"version {self.version} of {self.uri}") for a, v in found.items()}

    def domains(self) -> dict[str, str]:
        """Return every domain's configuration, removed ones left out.

        Examples
        --------
        >>> tracked.snapshot().domains()
        {'delta.rowTracking': '{"rowIdHighWaterMark":2}'}
        """
        return self._reading(_domains)

    def custom_actions(self, kind: str) -> list[dict[str, Any]]:
        """Return the live actions of a kind that a plugin declares, reconciled by its key.

        Parameters
        ----------
        kind : str
            The kind of action.

        Raises
        ------
        InvalidArgumentError
            For a kind that no feature of the table declares.

        Examples
        --------
        >>> try:
        ...     table.snapshot().custom_actions("acme.origin")
        ... except ValueError as error:
        ...     print(error)
        No feature of the table declares the action 'acme.origin'; declared: [].
        """
        declared = {k.name: k for f in self.plugins.features.values() for k in f.actions}
        if kind not in declared:
            raise InvalidArgumentError(
                f"No feature of the table declares the action {kind!r}; declared: {sorted(declared)}."
            )
        return list(self._reading(lambda contents: contents.newest(kind, *declared[kind].key)).values())

    # --- commits and time ---

    def others(self, kind: str) -> list[dict[str, Any]]:
        """Return `custom_actions` of a kind; the earlier name of that method.

        Parameters
        ----------
        kind : str
            The kind of action.

        Examples
        --------
        >>> try:
        ...     table.snapshot().others("acme.origin")
        ... except ValueError as error:
        ...     print(error)
        No feature of the table declares the action 'acme.origin'; declared: [].
        """
        return self.custom_actions(kind)

    @cached_property
    def _history(self) -> CommitHistory:
        def rule() -> CommitTimestamp | None:
            found: CommitTimestamp | None = self.plugins.single("commit_timestamps", table=self.state)
            return found

        return delta_log.CommitHistory(self.context.log, self.segment, rule, self.action_fields)

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed, ms since the epoch.

        Examples
        --------
        >>> table.snapshot().timestamp_ms == table.history(1)[0]["timestamp"]
        True
        """
        return self._history.times.of([self.version])[self.version]

    @property
    def commit_timestamp_ms(self) -> int | None:
        """The version's own commit time, as `timestamp_ms` but read from its commit alone; None if that is gone.

        A file time is as the store has it, not made monotone.

        Examples
        --------
        >>> table.snapshot().commit_timestamp_ms >= table.snapshot(version=0).commit_timestamp_ms
        True
        """
        if self._commit_timestamp_ms is None:
            self._commit_timestamp_ms = self._history.own_time()
        return self._commit_timestamp_ms

    def version_at(self, timestamp_ms: int) -> int:
        """Return the last version, up to this one, that was committed at or before a time.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since the epoch, UTC.

        Examples
        --------
        >>> table.snapshot().version_at(table.snapshot().timestamp_ms)
        1
        """
        return self._history.times.version_at(timestamp_ms)

    def version_since(self, timestamp_ms: int) -> int:
        """Return the first version that was committed at or after a time; the one after this if none was.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since the epoch, UTC.

        Examples
        --------
        >>> table.snapshot().version_since(table.snapshot().timestamp_ms)
        1
        """
        try:
            before = self.version_at(timestamp_ms)
        except VersionNotFoundError:  # before the first commit that exists
            return int(self.history()[-1]["version"])
        (commit,) = self.commits(before, before)
        return before if commit.timestamp_ms == timestamp_ms else before + 1

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return ``commitInfo`` of the commits that exist, newest first, each with ``version`` and ``timestamp``.

        Parameters
        ----------
        limit : int, optional
            The most commits; all unless given.

        Examples
        --------
        >>> [commit["version"] for commit in table.snapshot().history()]
        [1, 0]
        """
        return self._history.infos(limit)

    def commits(self, start: int, end: int | None = None) -> Iterator[Commit]:
        """Yield the commits of versions ``start`` to ``end`` (this one unless given), oldest first.

        Parameters
        ----------
        start, end : int
            The first and the last version.

        Raises
        ------
        VersionNotFoundError
            If a commit of the range was cleaned up.

        Examples
        --------
        >>> [commit.version for commit in table.snapshot().commits(0)]
        [0, 1]
        """
        return self._history.read(start, self.version if end is None else end)

    def definition_changes(self, start: int) -> list[int]:
        """Return the versions, from ``start`` to this one, whose commits contain metadata.

        Parameters
        ----------
        start : int
            The first version.

        Raises
        ------
        VersionNotFoundError
            If a commit of the range was cleaned up.

        Examples
        --------
        >>> table.snapshot().definition_changes(0)
        [0]
        """
        return self._history.definition_changes(start)

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
        """Return the snapshot after the next commits; lists nothing, and reads nothing whose content is at hand.

        Parameters
        ----------
        newer : sequence of LogFile
            The commits, oldest first.
        timestamp_ms : int, optional
            The last one's commit time, if the caller has it.
        actions : ParsedActions, optional
            What the commits specify, if the caller has it; at least the columns that opening a table reads.
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
                advance(self.state, segment.version, declared_domains(self.plugins, lambda: _domains(contents))),
                self.plugins,
            )
        else:
            state, plugins = self.context.state(contents)
        later = None
        if _fields_of(plugins) == self.action_fields:
            if self._files is not None:
                later = _Later(self._files, fresh, commits)
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

        What was read of the commits below is let go, so that a table that stays open for many commits stays small.

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

    # --- reading rows ---

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
        same = _fields_of(plugins) == self.action_fields
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
            What it may miss of commits that land meanwhile; the table's property decides unless given.
        committer : Committer, optional
            What publishes the commit; the table's own unless given.

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
