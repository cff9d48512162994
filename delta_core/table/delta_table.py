"""The public API: DeltaTable, with the names and call forms of `deltalake`, over Snapshot and Scan.

A table holds one snapshot and moves it; everything that is computed is computed below.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, SupportsIndex

import pyarrow as pa
from msgspec import Struct

from delta_core import expressions, formats, operations
from delta_core.errors import (
    ConcurrentAppendError,
    CorruptTableError,
    EngineError,
    InvalidArgumentError,
    ProtocolError,
    SchemaError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
    VersionNotFoundError,
    did_you_mean,
)
from delta_core.handles.opening import Pickled
from delta_core.handles.secrets import shown_uri
from delta_core.kernel import log as delta_log
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot
from delta_core.runtime.arguments import path_text
from delta_core.runtime.lazy import load_object
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table import interop, parts as table_parts

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from delta_core.engines.writer_properties import WriterProperties
    from delta_core.kernel.log.position import StreamPosition
    from delta_core.kernel.scan import Scan
    from delta_core.operations import OperationProgress, TableStream
    from delta_core.operations.changes import Changed
    from delta_core.operations.verify.operation import VerifyReport
    from delta_core.table.interop import ChangeFeed
    from delta_core.table.parts import (
        AddAction,
        CommitProperties,
        MergeClause,
        PostCommitHookProperties,
        RemoveAction,
        TableAlterer,
        TableMerger,
        TableOptimizer,
    )

__all__ = ["DeltaTable", "DeltaTableConfig", "Metadata", "ProtocolVersions", "TableMetadata", "open_table"]


class ProtocolVersions(NamedTuple):
    """The table's protocol; a list is None if no feature is listed.

    Parameters
    ----------
    min_reader_version, min_writer_version : int
        The protocol versions that readers and writers must support.
    writer_features, reader_features : list of str or None
        The table features that they must support.

    Examples
    --------
    >>> table.protocol().min_reader_version
    1
    """

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None


class DeltaTableConfig(NamedTuple):
    """How the table was opened; accepted for moved scripts and without effect, since files load on demand.

    Parameters
    ----------
    without_files, log_buffer_size, skip_stats : optional
        The arguments of `DeltaTable`.

    Examples
    --------
    >>> DeltaTable("table", without_files=True).table_config.without_files, table.table_config.without_files
    (True, False)
    """

    without_files: bool = False
    log_buffer_size: int | None = None
    skip_stats: bool = False


class TableMetadata(Struct, frozen=True):
    """The table's metadata; ``created_time`` in ms since the epoch.

    Parameters
    ----------
    id : str
        The table's id, which it keeps for its whole life.
    name, description : str or None
        Its texts.
    partition_columns : list of str
        The columns that partition it, in their order.
    created_time : int or None
        Milliseconds since the epoch.
    configuration : dict of str to str
        The table properties.

    Examples
    --------
    >>> table.alter.set_table_name("events")
    >>> table.metadata().name
    'events'
    """

    id: str
    name: str | None
    description: str | None
    partition_columns: list[str]
    created_time: int | None
    configuration: dict[str, str]

    def __str__(self) -> str:
        parts = ", ".join(f"{name}: {getattr(self, name)}" for name in self.__struct_fields__)
        return f"Metadata({parts})"


#: ``deltalake``'s name. The action of the log is another class, `delta_core.api.Metadata`.
Metadata = TableMetadata


class DeltaTable:
    """One version of a Delta table.

    Parameters
    ----------
    table_uri : str or path
        A local path or the URI of any file system that fsspec supports.
    version : int, optional
        The version to load; the latest if not given.
    storage_options : Mapping, optional
        What the file system takes: credentials, endpoints.
    without_files, log_buffer_size, skip_stats
        Accepted for scripts written for `deltalake`; without effect, since files and statistics load on demand.
    engine : str or Engine
        What does I/O and evaluates: the name of an entry point of ``delta_core.engines``, or an engine.
    commits : CommitSource, optional
        The catalog's view of the commits, which a catalog-managed table needs.
    committer : Committer, optional
        What commits; only writes use it.
    timezone : str
        The zone of partition timestamps, and of points in time, that name none.
    plugins : PluginRegistry, optional
        Which table features there are; by default those installed.
    allow_external : sequence of str or False, optional
        Prefixes of places outside the table's root that its log may name, beside those on its own kind of store, which
        are read by default; False reads nothing outside the root. See docs/stores.md.
    pickle_secrets : bool
        Whether a pickle of the table holds its storage options that are secrets, such as keys and passwords. Without
        them the process that loads it needs its own, as in its environment.

    Raises
    ------
    TableNotFoundError
        There is no Delta log.
    VersionNotFoundError
        The version does not exist, or can't be built any more.
    ProtocolError
        The table needs a protocol version or a feature that is not there.
    CorruptTableError
        What is on disk breaks the protocol.

    Examples
    --------
    >>> write_deltalake("events", rows)
    >>> events = DeltaTable("events")
    >>> events.version(), events.schema().names
    (0, ['id', 'city', 'amount'])
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        version: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        without_files: bool = False,
        log_buffer_size: int | None = None,
        skip_stats: bool = False,
        *,
        engine: Any = "arrow",
        commits: Any = None,
        committer: Any = None,
        timezone: str = "UTC",
        plugins: Any = None,
        allow_external: Sequence[str] | Literal[False] | None = None,
        pickle_secrets: bool = False,
    ) -> None:
        self._uri = path_text(table_uri)
        self._options = {
            "storage_options": storage_options,
            "engine": engine,
            "commits": commits,
            "timezone": timezone,
            "plugins": plugins,
            "committer": committer,
            "allow_external": allow_external,
            "pickle_secrets": pickle_secrets,
        }
        self._config = DeltaTableConfig(without_files, log_buffer_size, skip_stats)
        self._committer = committer
        self._snapshot = open_snapshot(self._uri, version, **self._options)

    @classmethod
    def _of(cls, uri: str, options: Mapping[str, Any], snapshot: Snapshot) -> DeltaTable:
        """Return the table of a snapshot that is open."""
        table = cls.__new__(cls)
        table._uri, table._options, table._config = uri, dict(options), DeltaTableConfig()
        table._committer, table._snapshot = options["committer"], snapshot
        return table

    def __repr__(self) -> str:
        return f"DeltaTable({shown_uri(self.table_uri)!r}, version={self.version()})"

    def _repr_html_(self) -> str:
        return self._snapshot.to_html("DeltaTable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self._snapshot.pickled(), self._config)

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Any) -> Self:
        """Return a table that moves to other versions by itself; it shares what was read."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    @classmethod
    def create(
        cls,
        table_uri: str | os.PathLike[str],
        schema: Any,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: list[str] | str | None = None,
        name: str | None = None,
        description: str | None = None,
        configuration: Mapping[str, str | None] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
        *,
        cluster_by: Sequence[str] = (),
        features: Sequence[str] = (),
        **options: Any,
    ) -> DeltaTable:
        """Create a table without rows.

        Parameters
        ----------
        table_uri : str or path
            A local path or the URI of any file system that fsspec supports.
        schema : Schema or anything with ``__arrow_c_schema__``
            The table's columns.
        mode : str
            Of a table that exists: ``error`` and ``append`` raise, ``ignore`` opens it, ``overwrite`` empties it and
            takes the new definition.
        partition_by : str or list of str, optional
            The columns that partition the table.
        name, description : str, optional
            Texts of the table's metadata.
        configuration : Mapping, optional
            Table properties; known ones are validated, those of your own kept.
        storage_options : Mapping, optional
            What the file system takes: credentials, endpoints.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        raise_if_key_not_exists : bool
            Whether a property whose name begins with ``delta.`` is rejected if neither the core nor a feature declares
            it.
        cluster_by, features : sequence of str
            Clustering columns; further table features.
        **options
            As of `DeltaTable`.

        Raises
        ------
        TableExistsError
            If there is a table already, unless ``mode`` allows it. Features raise further errors.
        InvalidArgumentError
            For a mode that is not known.

        Examples
        --------
        >>> schema = Schema([Field("id", "long", nullable=False), Field("city", "string")])
        >>> DeltaTable.create("events", schema, partition_by="city").metadata().partition_columns
        ['city']
        """
        if mode not in ("error", "append", "overwrite", "ignore"):
            raise InvalidArgumentError(f"Found mode {mode!r}, expected error, append, overwrite or ignore.")
        uri = path_text(table_uri)
        context = open_context(uri, storage_options, **options)
        base = context.read(None) if cls.is_deltatable(uri, storage_options) else None
        if base is not None and mode in ("error", "append"):
            raise TableExistsError(f"There is a table at {uri} already (version {base.version}).", path=uri)
        if base is None or mode == "overwrite":
            commit, post = (
                commit_properties or table_parts.CommitProperties(),
                post_commithook_properties or table_parts.PostCommitHookProperties(),
            )
            # another writer may be faster
            with contextlib.suppress(*([ConcurrentAppendError] if mode == "ignore" else [])):
                result = operations.create_table(
                    context,
                    schema if isinstance(schema, StructType) else Schema.from_arrow(schema),
                    partition_by=operations.column_names("partition_by", partition_by or ()),
                    cluster_by=operations.column_names("cluster_by", cluster_by),
                    name=name,
                    description=description,
                    properties=configuration,
                    features=operations.column_names("features", features),
                    base=base,
                    custom_metadata=commit.custom_metadata,
                    max_commit_retries=commit.retries,
                    transactions=commit.transactions,
                    post=post.post_commit,
                    allow_unknown=not raise_if_key_not_exists,
                )
                if cls.__init__ is DeltaTable.__init__:
                    given = {"storage_options": storage_options, **options}
                    return cls._of(uri, {**(DeltaTable.__init__.__kwdefaults__ or {}), **given}, result.snapshot)
        return cls(uri, storage_options=storage_options, **options)

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the version that is loaded.

        Examples
        --------
        >>> table.create_checkpoint()
        >>> DeltaTable("table").snapshot().segment.checkpoint.version
        1
        """
        operations.write_checkpoint(self._snapshot)

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        schema: Any,
        partition_by: list[str] | str | None = None,
        partition_filters: Any = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit files that were written elsewhere, and removals of files, at once.

        Parameters
        ----------
        actions : sequence of AddAction or RemoveAction
            Files that lie below the table's root; statistics that are missing are read from their footers.
        mode : str
            ``append``, or ``overwrite``: every file, or those of ``partition_filters``, is replaced.
        schema : Schema or anything with ``__arrow_c_schema__``
            Of the files; it must be the table's.
        partition_by : str or list of str, optional
            Accepted for scripts written for `deltalake`; without effect.
        partition_filters : filters, optional
            On partition columns, with ``overwrite``.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.

        Raises
        ------
        InvalidArgumentError
            For an action of another class.
        SchemaMismatchError
            If the files have a column that the table lacks.

        Examples
        --------
        >>> import pyarrow.parquet as pq
        >>> from pathlib import Path
        >>> from delta_core.table.transaction import AddAction
        >>> pq.write_table(rows, "table/new.parquet")
        >>> added = AddAction("new.parquet", size=Path("table/new.parquet").stat().st_size)
        >>> table.create_write_transaction([added], "append", rows.schema)
        >>> table.count()
        6
        """
        commit, post = (
            commit_properties or table_parts.CommitProperties(),
            post_commithook_properties or table_parts.PostCommitHookProperties(),
        )
        unsupported = next(
            (a for a in actions if not isinstance(a, (table_parts.AddAction, table_parts.RemoveAction))), None
        )
        if unsupported is not None:
            raise InvalidArgumentError(
                f"Found an action as {type(unsupported).__module__}.{type(unsupported).__name__}; expected AddAction "
                "or RemoveAction of delta_core.table.transaction."
            )
        given = schema if isinstance(schema, StructType) else Schema.from_arrow(schema)
        unknown = [n for n in given.names if self._snapshot.schema.get(n) is None]
        if unknown:
            raise SchemaMismatchError(
                f"The files have a column {unknown[0]!r}, which the table does not have.", column=unknown[0]
            )
        result = operations.register_files(
            self._snapshot.context,
            self._snapshot,
            [a for a in actions if isinstance(a, table_parts.AddAction)],
            [a for a in actions if isinstance(a, table_parts.RemoveAction)],
            mode=mode,
            replace_filters=partition_filters,
            custom_metadata=commit.custom_metadata,
            max_commit_retries=commit.retries,
            transactions=commit.transactions,
            post=post.post_commit,
        )
        self.adopt(result.snapshot)

    # --- which version ---------------------------------------------------------------------

    def version(self) -> int:
        """Return the version that is loaded.

        Examples
        --------
        >>> table.version()
        1
        """
        return self._snapshot.version

    def snapshot(self, version: int | None = None, timestamp: str | datetime | None = None) -> Snapshot:
        """Return the snapshot of a version or a point in time; the one that is loaded if neither is given.

        Parameters
        ----------
        version : int, optional
            A version.
        timestamp : str or datetime, optional
            A point in time, ISO 8601 text or a datetime: the last version committed at or before it.

        Raises
        ------
        InvalidArgumentError
            If both a version and a timestamp are given.

        Examples
        --------
        >>> table.snapshot(version=0).scan().count()
        2
        """
        if version is None and timestamp is None:
            return self._snapshot
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("Found both a version and a timestamp, expected one of the two.")
        if timestamp is not None:
            version = self._snapshot.update().version_at(delta_log.parse_ms(timestamp, self._snapshot.timezone))
        number = delta_log.parse_version(version)  # type: ignore[arg-type]  # one of both is given
        if number == self._snapshot.version:
            return self._snapshot
        return open_snapshot(self._uri, number, **self._options)

    def load_as_version(self, version: int | str | datetime) -> None:
        """Move to a version, or to the version of a point in time.

        Parameters
        ----------
        version : int, str or datetime
            A version; or ISO 8601 text or a datetime, in the table's ``timezone`` if they name no zone.

        Raises
        ------
        VersionNotFoundError
            If there is none.
        TypeError
            For a version of another type.

        Examples
        --------
        >>> table.load_as_version(0)
        >>> table.count()
        2
        """
        if isinstance(version, bool) or not isinstance(version, (SupportsIndex, str, datetime)):
            raise TypeError(f"Found a version of type {type(version).__name__}, expected int, str or datetime.")
        if isinstance(version, (str, datetime)):
            self._snapshot = self.snapshot(timestamp=version)
        else:
            self._snapshot = self.snapshot(delta_log.parse_version(version))

    def update_incremental(self) -> None:
        """Move to the latest version, reading only the commits that are new.

        Examples
        --------
        >>> write_deltalake("table", rows, mode="append")
        >>> table.update_incremental()
        >>> table.version()
        2
        """
        self._snapshot = self._snapshot.update()

    def adopt(self, snapshot: Snapshot) -> None:
        """Move to a version of this table that is at hand, as after a write of one's own.

        Parameters
        ----------
        snapshot : Snapshot
            The version.

        Examples
        --------
        >>> table.adopt(table.snapshot(version=0))
        >>> table.version()
        0
        """
        self._snapshot = snapshot

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the commits' ``commitInfo``, newest first, each with its ``version`` and ``timestamp`` (ms).

        The timestamp is the commit time by which versions are selected everywhere: the in-commit timestamp if the table
        has them, else the time of the commit's file, at least one ms after that of the commit before.

        Parameters
        ----------
        limit : int, optional
            The most commits; all unless given.

        Raises
        ------
        InvalidArgumentError
            For a negative limit.

        Examples
        --------
        >>> [(commit["version"], commit["operation"]) for commit in table.history()]
        [(1, 'WRITE'), (0, 'CREATE TABLE AS SELECT')]
        """
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"Found limit {limit}, expected a number from 0 on.")
        return self._snapshot.history(limit)

    @staticmethod
    def is_deltatable(table_uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> bool:
        """Whether there is a Delta log; a log that can't be read counts as one.

        Parameters
        ----------
        table_uri : str or path
            A local path or the URI of any file system that fsspec supports.
        storage_options : Mapping, optional
            Options of the file system: credentials, endpoints.

        Examples
        --------
        >>> DeltaTable.is_deltatable("no-such-table")
        False
        """
        try:
            open_snapshot(path_text(table_uri), storage_options=storage_options)
        except TableNotFoundError:
            return False
        except (CorruptTableError, ProtocolError, SchemaError, VersionNotFoundError):
            return True
        return True

    # --- what the table is -----------------------------------------------------------------

    @property
    def table_uri(self) -> str:
        """The table's root as a URI that ends in a slash.

        Examples
        --------
        >>> table.table_uri.startswith("file:///"), table.table_uri.endswith("/table/")
        (True, True)
        """
        return interop.root_uri(self._snapshot)

    @property
    def table_config(self) -> DeltaTableConfig:
        """The options for loading that the table was opened with.

        Examples
        --------
        >>> table.table_config
        DeltaTableConfig(without_files=False, log_buffer_size=None, skip_stats=False)
        """
        return self._config

    def schema(self) -> Schema:
        """Return the table's schema.

        Examples
        --------
        >>> table.schema().names
        ['id', 'city', 'amount']
        """
        return self._snapshot.schema

    def metadata(self) -> TableMetadata:
        """Return the table's metadata.

        Examples
        --------
        >>> by_city.metadata().partition_columns
        ['city']
        """
        m = self._snapshot.metadata
        return TableMetadata(
            m.id, m.name, m.description, list(m.partition_columns), m.created_time, dict(m.configuration)
        )

    def protocol(self) -> ProtocolVersions:
        """Return the protocol's versions and features.

        Examples
        --------
        >>> table.protocol()
        ProtocolVersions(min_reader_version=1, min_writer_version=2, writer_features=None, reader_features=None)
        """
        p = self._snapshot.protocol
        writer, reader = (list(names) if names else None for names in (p.writer_features, p.reader_features))
        return ProtocolVersions(p.min_reader_version, p.min_writer_version, writer, reader)

    def transaction_version(self, app_id: str) -> int | None:
        """Return the last version that an application wrote, None if it wrote none.

        Parameters
        ----------
        app_id : str
            The application.

        Examples
        --------
        >>> properties = CommitProperties(app_transactions=[AppTransaction("nightly", 7)])
        >>> write_deltalake(table, rows, mode="append", commit_properties=properties)
        >>> table.transaction_version("nightly")
        7
        """
        found = self._snapshot.transactions().get(app_id)
        return None if found is None else found.version

    # --- its files -------------------------------------------------------------------------

    def file_uris(self, partition_filters: Any = None, *, file_pruning_predicate: Any = None) -> list[str]:
        """Return the absolute URIs of the data files; local ones are plain paths.

        Parameters
        ----------
        file_pruning_predicate : str or filters
            SQL, or tuples such as ``[("year", "=", "2021")]`` (a list of lists is OR over AND). It chooses files by
            partition exactly and by statistics as far as they report: rows are not filtered. ``("year", "=", "")``
            matches null.
        partition_filters
            The older name of the same.

        Examples
        --------
        >>> len(by_city.file_uris([("city", "=", "Oslo")]))
        1
        """
        return interop.file_uris(self._snapshot, _one_of(partition_filters, file_pruning_predicate))

    def partitions(self, partition_filters: Any = None, *, file_pruning_predicate: Any = None) -> list[dict[str, Any]]:
        """Return the distinct partitions, each column's value as the text of the log, None for null.

        Parameters
        ----------
        partition_filters : filters, optional
            The older name of ``file_pruning_predicate``.
        file_pruning_predicate : str or filters, optional
            Only partitions with files for which this may be true, as for `file_uris`.

        Examples
        --------
        >>> by_city.partitions([("city", "=", "Oslo")])
        [{'city': 'Oslo'}]
        """
        return interop.partition_values(self._snapshot, _one_of(partition_filters, file_pruning_predicate))

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """Return a row for each data file: path, size, time, rows, statistics and partition values.

        Parameters
        ----------
        flatten : bool
            Columns ``null_count.a``, ``min.a``, ``max.a`` and ``partition.p`` instead of four structs.

        Examples
        --------
        >>> table.get_add_actions(flatten=True).column("max.id").to_pylist()
        [2, 3]
        """
        return interop.add_actions(self._snapshot, flatten)

    def count(self) -> int:
        """Return the rows as far as statistics report them; files without statistics and deleted rows are not seen.

        Examples
        --------
        >>> table.count()
        3
        """
        return interop.row_count(self._snapshot)

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Return ``filepath`` and ``selection_vector`` (true: the row is there) of each file with deleted rows.

        Examples
        --------
        >>> tracked.deletion_vectors().read_all().column("selection_vector").to_pylist()
        [[True, False, True]]
        """
        return interop.keep_masks(self._snapshot)

    # --- its rows --------------------------------------------------------------------------

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        *,
        metadata: Sequence[str] = (),
        limit: int | None = None,
    ) -> Scan:
        """Plan a read of rows, to be read many times: by ``to_table()``, ``to_reader()``, ``count()`` and so on.

        See `scan.scan.Scan` for the arguments, and for what it does. DuckDB, Polars, pandas and PyArrow take it as a
        stream.

        Parameters
        ----------
        columns : sequence of str, optional
            In this order, dotted for fields of structs; all unless given.
        predicate : str, filters or Expression, optional
            Only rows for which it is true are returned.
        metadata : sequence of str
            Further columns, such as ``_file_path`` and ``_file_row_index``.
        limit : int, optional
            The most rows.

        Examples
        --------
        >>> table.scan(columns=["id", "city"], predicate="amount > 15").to_table().to_pylist()
        [{'id': 2, 'city': 'Rome'}, {'id': 3, 'city': 'Oslo'}]
        """
        return self._snapshot.scan(columns, metadata, predicate, limit)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._snapshot.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._snapshot.scan().schema.__arrow_c_schema__()

    def to_pyarrow_table(
        self, partitions: Any = None, columns: Sequence[str] | None = None, filesystem: Any = None, filters: Any = None
    ) -> pa.Table:
        """Read rows into memory.

        Parameters
        ----------
        partitions : filters, optional
            Filters on partition columns; the same as putting them into ``filters``.
        columns : sequence of str, optional
            In this order; a name may be twice.
        filesystem : pyarrow.fs.FileSystem, optional
            Reads the data files instead of the table's own storage; its root is the table's. Only for tables that
            `to_pyarrow_dataset` serves.
        filters : filters, SQL text, or a pyarrow expression
            Rows for which it is true are returned. A pyarrow expression keeps pyarrow's semantics.

        Examples
        --------
        >>> table.to_pyarrow_table(columns=["id"], filters=[("city", "=", "Oslo")]).to_pydict()
        {'id': [1, 3]}
        """
        if filesystem is not None:
            return interop.read_table(self.to_pyarrow_dataset(partitions, filesystem), columns, filters)
        if expressions.is_pyarrow(filters):
            return interop.read_table(
                interop.scan_dataset(self._snapshot, interop.file_filter(self._snapshot, partitions)), columns, filters
            )
        return interop.read_rows(self._snapshot, partitions, columns, filters)

    def to_pyarrow_dataset(
        self,
        partitions: Any = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: Any = None,
    ) -> Any:
        """Return a pyarrow dataset of the data files, with each file's partition values and bounds as guarantees.

        Filters are pyarrow's own from then on: NaN is neither equal to, less nor greater than anything. Row groups are
        pruned by the bounds of their columns, but for floating-point columns of files whose bounds leave NaN out.

        Parameters
        ----------
        partitions : filters, optional
            The older name of ``file_pruning_predicate``.
        filesystem : pyarrow.fs.FileSystem, optional
            Reads the data files instead of the table's own storage; its root is the table's.
        parquet_read_options : pyarrow.dataset.ParquetReadOptions, optional
            How Parquet columns are read.
        schema : pyarrow.Schema, optional
            Of the dataset, instead of the table's.
        as_large_types : bool
            Whether strings, binary values and lists have 64-bit offsets.
        file_pruning_predicate : str or filters, optional
            Only files that may hold rows for which this is true, as for `file_uris`.

        Raises
        ------
        UnsupportedOperationError
            For a table whose files alone don't report its rows (deletion vectors, column mapping, hidden rows ...):
            `dataset` serves those.

        Examples
        --------
        >>> table.to_pyarrow_dataset().count_rows()
        3
        """
        return interop.parquet_dataset(
            self._snapshot,
            _one_of(partitions, file_pruning_predicate),
            filesystem,
            parquet_read_options,
            schema,
            as_large_types,
        )

    def dataset(self, *, encoded: bool = False) -> Any:
        """Return a ``pyarrow.dataset.Dataset`` that scans through this library, for any table.

        DuckDB and DataFusion push columns and filters into it.

        Parameters
        ----------
        encoded : bool
            Whether top-level strings are of the type ``dictionary<int32, string>``. DuckDB returns them as strings all
            the same, but takes half the time to group, count, compare or join repeated ones of files with many rows.

        Examples
        --------
        >>> import pyarrow.dataset as ds
        >>> table.dataset().to_table(columns=["id"], filter=ds.field("amount") > 15).to_pydict()
        {'id': [2, 3]}
        """
        return interop.scan_dataset(self._snapshot, encoded=encoded)

    def to_pandas(
        self,
        partitions: Any = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: Any = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """Read rows into a pandas data frame; the arguments are `to_pyarrow_table`'s.

        Parameters
        ----------
        partitions, columns, filesystem, filters : optional
            As for `to_pyarrow_table`.
        types_mapper : function(pyarrow.DataType), optional
            Returns the pandas type for an Arrow type, or None for the default one.

        Examples
        --------
        >>> table.to_pandas(columns=["amount"])["amount"].tolist()
        [10.0, 20.0, 30.0]
        """
        interop.require("pandas")
        table = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        return table.to_pandas(types_mapper=types_mapper)

    def to_polars(self) -> pl.LazyFrame:
        """Return a Polars lazy frame that pushes columns, predicate and limit into the scan.

        Examples
        --------
        >>> import polars as pl
        >>> table.to_polars().select(pl.col("amount").sum()).collect().item()
        60.0
        """
        interop.require("polars")
        return interop.scan_polars(self._snapshot)

    def delete(
        self,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Delete the rows for which a predicate is true, and commit; the object then has the new version.

        Rows are dropped by deletion vectors where the table has them enabled; else the files that contain such rows are
        rewritten without them. A predicate on partition columns alone reads and writes no data. If no row is selected,
        nothing is committed.

        Parameters
        ----------
        predicate : str, filters or Expression, optional
            Spark SQL, for example ``"amount < 10"``; None deletes all rows.
        writer_properties : WriterProperties, optional
            Of the Parquet files that are rewritten.
        *args
            None: it makes the arguments that follow be passed by name.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        dict
            ``num_added_files``, ``num_removed_files``, ``num_deleted_rows`` (missing if whole files without statistics
            were removed), ``num_copied_rows``, ``num_deletion_vectors_added``, ``_updated`` and ``_removed``,
            ``num_added_change_files``, ``execution_time_ms``, ``scan_time_ms`` and ``rewrite_time_ms``.

        Raises
        ------
        ExpressionError
            The predicate can't be parsed or evaluated.
        ColumnNotFoundError
            The predicate names a column that the table does not have.
        InvalidArgumentError
            An argument is of another class than expected, or a keyword argument is passed by position.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.

        Examples
        --------
        >>> table.delete("city = 'Oslo'")["num_deleted_rows"]
        2
        """
        if args:
            raise InvalidArgumentError("delete takes commit_properties and post_commithook_properties by name only.")
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)
        done = operations.delete_rows(
            self._snapshot, operations.ChangeOptions(predicate=predicate, progress=progress, **arguments)
        )
        self._take(done, post_commithook_properties)
        return {_in_snake_case(name): value for name, value in done.metrics.items()}

    def update(
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Assign new values to columns of the rows for which a predicate is true, and commit.

        The object then has the new version.

        The new values are computed from the row as it was. Generated columns that are not assigned are computed again,
        and all constraints are checked. If no row is selected, nothing is committed.

        Parameters
        ----------
        updates : Mapping of str to str or Expression
            Spark SQL by column, for example ``{"price": "price * 1.1"}``. A dotted name is a field of a struct:
            ``{"address.city": "upper(address.city)"}``.
        new_values : Mapping of str to object
            Python values by column, in place of ``updates``.
        predicate : str, filters or Expression, optional
            Which rows; None updates all.
        writer_properties : WriterProperties, optional
            Of the Parquet files that are written.
        error_on_type_mismatch : bool
            Whether a value that can't be cast to its column's type is an error; if not, it becomes null.
        *args
            None: it makes the arguments that follow be passed by name.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        dict
            ``num_added_files``, ``num_removed_files``, ``num_updated_rows``, ``num_copied_rows``,
            ``num_deletion_vectors_added``, ``_updated`` and ``_removed``, ``num_added_change_files``,
            ``execution_time_ms``, ``scan_time_ms`` and ``rewrite_time_ms``.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            The predicate or an assignment does not fit the table.
        InvalidArgumentError
            Both or none of ``updates`` and ``new_values`` are given, a column is assigned twice, or an argument is of
            another class than expected.
        SchemaMismatchError, ConstraintViolationError
            The new values don't fit the table; nothing was written.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.

        Examples
        --------
        >>> table.update({"amount": "amount * 2"}, predicate="id = 1")["num_updated_rows"]
        1
        """
        if args:
            raise InvalidArgumentError("update takes commit_properties and post_commithook_properties by name only.")
        if (updates is None) == (new_values is None):
            raise InvalidArgumentError("Pass either updates (SQL by column) or new_values (Python values by column).")
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)
        done = operations.update_rows(
            self._snapshot,
            operations.UpdateOptions(
                predicate=predicate,
                progress=progress,
                updates=updates or {},
                new_values=new_values or {},
                null_on_failed_cast=not error_on_type_mismatch,
                **arguments,
            ),
        )
        self._take(done, post_commithook_properties)
        return {_in_snake_case(name): value for name, value in done.metrics.items()}

    def _take(self, done: Changed, post: PostCommitHookProperties | None) -> None:
        """Move to the version that a change of rows committed."""
        self.adopt(operations.compact_after(done.snapshot, post) if done.is_committed else done.snapshot)

    @property
    def optimize(self) -> TableOptimizer:
        """Calls that write files again without changing rows, such as ``table.optimize.compact()``.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        """
        return table_parts.TableOptimizer(self)

    def merge(
        self,
        source: Any,
        predicate: Any,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        dry_run: bool = False,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> TableMerger:
        """Begin a merge: update, delete and insert rows by comparing the table with rows of a source.

        Parameters
        ----------
        source : anything with the Arrow PyCapsule interface, or a pandas data frame
            A stream is read once, by `TableMerger.execute`; a second call rejects it.
        predicate : str or Expression
            Which row of the source matches which row of the table, for example ``"target.id = source.id"``. Null equals
            nothing; use ``<=>`` for keys in which null equals null.
        source_alias, target_alias : str, optional
            What columns are qualified with; ``source`` and ``target`` unless given.
        merge_schema : bool
            Whether columns that only the source has are added to the table, types are widened if the table allows it,
            and structs may lack fields.
        error_on_type_mismatch : bool
            Whether a value that can't be cast to its column's type is an error; otherwise it becomes null.
        writer_properties : WriterProperties, optional
            Of the files that are written.
        streamed_exec : bool
            Without effect: a stream is always read once, and the table is pruned by the values of the source.
        max_spill_size : int, optional
            Bytes of the source that are held in memory, a quarter of the machine's memory unless given, and of the
            places of the table's rows that change, 256 MB unless given. Further rows are written to temporary files.
        max_temp_directory_size : int, optional
            Bytes that temporary files may take.
        *args
            Rejected: the arguments behind are passed by name.
        commit_properties : CommitProperties, optional
            Custom metadata, retries and application transactions of the commit.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        dry_run : bool
            Whether `TableMerger.execute` writes nothing and only returns what would change.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        TableMerger
            To which clauses are added; its `execute` runs the merge.

        Raises
        ------
        InvalidArgumentError
            An argument is of another class than expected, or a keyword argument is passed by position.

        Examples
        --------
        >>> source = pa.table({"id": [3, 4], "city": ["Bergen", "Paris"], "amount": [35.0, 40.0]})
        >>> merge = table.merge(source, "target.id = source.id")
        >>> metrics = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        >>> metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]
        (1, 1)
        """
        if args:
            raise InvalidArgumentError("merge takes commit_properties and post_commithook_properties by name only.")
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)

        def run(table: DeltaTable, clauses: tuple[MergeClause, ...]) -> dict[str, int]:
            options = operations.MergeOptions(
                predicate=predicate,
                progress=progress,
                clauses=clauses,
                source_alias=source_alias,
                target_alias=target_alias,
                merge_schema=merge_schema,
                null_on_failed_cast=not error_on_type_mismatch,
                is_dry=dry_run,
                max_memory_bytes=max_spill_size,
                max_temporary_bytes=max_temp_directory_size,
                **arguments,
            )
            done = operations.merge_rows(table.snapshot(), source, options)
            table._take(done, post_commithook_properties)
            return {_in_snake_case(name): value for name, value in done.metrics.items()}

        return table_parts.TableMerger(run, self)

    @property
    def alter(self) -> TableAlterer:
        """Changes of the table's definition: columns, constraints, properties, features.

        Examples
        --------
        >>> table.alter.add_column("country", "string")
        >>> table.schema().names
        ['id', 'city', 'amount', 'country']
        """
        return table_parts.TableAlterer(self)

    def diff(
        self,
        start_version: int,
        end_version: int | None = None,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
    ) -> Scan:
        """Return the rows in which two versions differ, by their row ids; needs row tracking, not the change feed.

        Parameters
        ----------
        start_version, end_version : int
            The two versions; the end is the version that is loaded unless it is given.
        columns, predicate : optional
            Of the rows, as for `scan`.

        Returns
        -------
        Scan
            The table's columns, ``_change_type`` (insert, delete, update_preimage, update_postimage), ``_row_id`` and
            ``_row_commit_version``.

        Raises
        ------
        UnsupportedOperationError
            If row tracking was not on at both versions.
        SchemaError
            If rows of the older version can't be read by the later one's schema.

        Examples
        --------
        >>> tracked.diff(0, 1, columns=["id"]).to_table().select(["id", "_change_type"]).to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        scan: Scan = self.operation("diff")(start_version, end_version, columns=columns, predicate=predicate)
        return scan

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        dry_run: bool = False,
        progress: Callable[[operations.OperationProgress], None] | None = None,
    ) -> dict[str, Any]:
        """Restore the table to an older version, in a new commit with the files and the definition of that version.

        Parameters
        ----------
        target : int, str or datetime
            A version; or the version of a point in time, ISO 8601 text or a datetime.
        ignore_missing_files : bool
            Whether files that are gone are left out, with their rows; otherwise they are an error.
        protocol_downgrade_allowed : bool
            Whether the table gets the protocol of that version too; otherwise it keeps its own.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        dry_run : bool
            Whether nothing is committed, and only the metrics are returned.
        progress : function(OperationProgress), optional
            Called while the files that come back are looked for.

        Returns
        -------
        dict
            ``numRemovedFile`` and ``numRestoredFile``.

        Raises
        ------
        VersionNotFoundError
            There is no such version, or it can't be built any more.
        DataFileNotFoundError
            Files of the version are gone; the message names the first ones.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer changed the table meanwhile; nothing was changed.

        Examples
        --------
        >>> table.restore(0)["numRemovedFile"]
        1
        >>> table.version()
        2
        """
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        parameters: dict[str, Any] = {}
        if isinstance(target, (str, datetime)):
            latest = self._snapshot.update()
            version = latest.version_at(delta_log.parse_ms(target, latest.timezone))
            parameters["timestamp"] = target if isinstance(target, str) else target.isoformat()
        else:
            version = delta_log.parse_version(target)
        options = operations.RestoreOptions(
            ignore_missing_files, protocol_downgrade_allowed, dry_run, parameters, commit, progress
        )
        done = operations.restore_table(self._snapshot, version, options)
        if not dry_run:
            self.adopt(done.snapshot)
        found = done.metrics
        return {"numRemovedFile": found["numRemovedFiles"], "numRestoredFile": found["numRestoredFiles"]}

    def clone(
        self,
        target: str | os.PathLike[str],
        *,
        deep: bool = False,
        version: int | None = None,
        timestamp: str | datetime | None = None,
        replace: bool = False,
        properties: Mapping[str, Any] | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[operations.OperationProgress], None] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> DeltaTable:
        """Make a table with the files of a version of this one, by reference (shallow) or as copies (deep).

        The clone has the schema, the properties, the features, the domains and the row ids of the version; its history
        and its id are its own. A shallow clone needs the files of this table: pass it to `vacuum` as ``keep_for``.

        Parameters
        ----------
        target : str or path
            Where the clone is to be.
        deep : bool
            Whether data files and deletion vectors are copied, several at a time.
        version, timestamp : optional
            The version to clone, or the last one at a time; the one that is loaded unless given.
        replace : bool
            Whether a table that is there gets another version. Of an earlier clone only what changed is copied, added
            and removed.
        properties : Mapping of str to str, optional
            Table properties that the clone has beside, or instead of, those of this table.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        progress : function(OperationProgress), optional
            Called while files are copied (step ``copy``).
        storage_options : Mapping, optional
            Of the target; those of this table unless given.
        **options
            As of `DeltaTable`, for the target: such as ``allow_external`` for a source on another kind of store.

        Returns
        -------
        DeltaTable
            The clone.

        Raises
        ------
        TableExistsError
            There is a table already, unless it is to be replaced.
        VersionNotFoundError
            There is no such version, or it can't be built any more.
        InvalidArgumentError
            One of the two is within the other, both a version and a timestamp were given, or properties would change
            how the files are read or which rows they may have.
        ExternalPathError
            The clone could not read the files of this table.

        Examples
        --------
        >>> table.clone("copy", deep=True).count()
        3
        """
        if version is not None and timestamp is not None:
            raise InvalidArgumentError("Found both version and timestamp, expected one of the two.")
        source = self._snapshot
        if timestamp is not None:
            version = source.latest().version_at(delta_log.parse_ms(timestamp, source.timezone))
        if version is not None:
            source = source.at(delta_log.parse_version(version))
        uri = path_text(target)
        if storage_options is None and source.context.opening is not None:
            storage_options = source.context.opening.storage_options
        cloning = operations.CloneOptions(
            deep=deep,
            replace=replace,
            properties=properties or {},
            commit=table_parts.commit_arguments(commit_properties, post_commithook_properties),
            progress=progress,
        )
        operations.clone_table(source, open_context(uri, storage_options, **options), cloning)
        return DeltaTable(uri, storage_options=storage_options, **options)

    def compute_statistics(
        self,
        predicate: Any = None,
        *,
        every: bool = False,
        dry_run: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[operations.OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Add statistics to files that lack them, from their footers; no rows are read or written.

        Parameters
        ----------
        predicate : str or Expression, optional
            On partition columns: other files are left alone.
        every : bool
            Whether files that have statistics get them again, such as after ``delta.dataSkippingStatsColumns`` changed.
        dry_run : bool
            Whether files are only counted.
        commit_properties : CommitProperties, optional
            Custom metadata of the commits, and how often each is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows each commit.
        progress : function(OperationProgress), optional
            Called while footers are read (step ``find``).

        Returns
        -------
        dict
            ``num_files``: files that got other statistics; with ``dry_run`` those that would be looked at.

        Raises
        ------
        InvalidArgumentError
            The predicate names other columns than those that partition the table.
        DataFileNotFoundError, DataFileError
            A file is gone, or is no Parquet file. Files of earlier commits have their statistics.
        CommitConflictError
            Other writers changed the same files again and again. Call it again: it goes on with what is left.

        Examples
        --------
        >>> table.compute_statistics(every=True, dry_run=True)
        {'num_files': 2}
        """
        options = operations.BackfillOptions(
            predicate,
            every,
            dry_run,
            table_parts.commit_arguments(commit_properties, post_commithook_properties),
            progress,
        )
        done = operations.backfill_statistics(self._snapshot, options)
        if not dry_run:
            self.adopt(done.snapshot)
        return {"num_files": done.num_files}

    def generate(self, mode: Literal["symlink_format_manifest"] = "symlink_format_manifest") -> list[str]:
        """Write symlink manifests: the files of the latest version by partition, for engines that can't read the log.

        Parameters
        ----------
        mode : str
            ``symlink_format_manifest``, the only one.

        Returns
        -------
        list of str
            The manifests, from the table's root.

        Raises
        ------
        InvalidArgumentError
            For another mode.
        UnsupportedOperationError
            Files have deleted rows, or columns under other names than the table: engines would read wrong rows.

        Notes
        -----
        With the table property ``delta.compatibility.symlinkFormatManifest.enabled``, each commit writes the manifests
        of the partitions that it touches.

        Examples
        --------
        >>> by_city.generate()
        ['_symlink_format_manifest/city=Oslo/manifest', '_symlink_format_manifest/city=Rome/manifest']
        """
        if mode != "symlink_format_manifest":
            raise InvalidArgumentError(f"Found mode {mode!r}, expected 'symlink_format_manifest'.")
        return operations.write_manifests(self._snapshot)

    def verify(
        self,
        *,
        deep: bool | Literal["rows"] = False,
        data: bool = True,
        versions: Sequence[int] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> VerifyReport:
        """Check the log, the definition and the files of the table against the rules of the protocol; changes nothing.

        Parameters
        ----------
        deep : bool or "rows"
            True compares the statistics with the footers of the data files, "rows" with their rows, which it reads all.
        data : bool
            Whether to look for the data files and read deletion vectors; False reads the log only.
        versions : sequence of int, optional
            The versions whose files are checked; the one that is loaded unless given.
        progress : function(str, int, int), optional
            Called with the name of a step, how much of it is done and how much there is; on any thread.

        Returns
        -------
        VerifyReport
            ``ok``, ``findings`` (an Arrow table), ``to_text()``, ``to_json()``.

        Raises
        ------
        InvalidArgumentError
            For another value of ``deep``, or deep without data.
        EngineError
            If the store fails.

        Examples
        --------
        >>> table.verify().ok
        True
        """
        options = operations.VerifyOptions(deep, data, versions, progress)
        return operations.verify_table(self._snapshot.context, self._snapshot, options)

    def cleanup_metadata(self) -> None:
        """Delete files of the log that are older than ``delta.logRetentionDuration`` and that no version since needs.

        Raises
        ------
        UnsupportedOperationError
            ``delta.enableExpiredLogCleanup`` is false, or a catalog does not allow it.
        EngineError
            Files can't be deleted; the table reads as before.

        Examples
        --------
        >>> table.cleanup_metadata()  # no file of the log is as old as delta.logRetentionDuration
        >>> table.history()[-1]["version"]
        0
        """
        operations.clean_log(self._snapshot)

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write the actions of a range of commits into one file of the log, which may be read instead of these.

        Parameters
        ----------
        starting_version, ending_version : int
            The first and the last version.

        Raises
        ------
        InvalidArgumentError
            The range has not at least two versions.
        VersionNotFoundError
            A commit of the range is not in the log.
        UnsupportedOperationError
            A catalog does not allow it.

        Examples
        --------
        >>> from pathlib import Path
        >>> table.compact_logs(0, 1)
        >>> [file.name for file in Path("table/_delta_log").glob("*.compacted.json")]
        ['00000000000000000000.00000000000000000001.compacted.json']
        """
        start, end = (
            delta_log.parse_version(starting_version, "starting_version"),
            delta_log.parse_version(ending_version, "ending_version"),
        )
        operations.compact_log(self._snapshot.update(), start, end)

    def plan_vacuum(
        self,
        retention_hours: float | None = None,
        enforce_retention_duration: bool = True,
        *,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        keep_for: Sequence[str | os.PathLike[str]] = (),
        inventory: Any = None,
    ) -> operations.VacuumPlan:
        """Find the files that a vacuum would delete, to look at them, save them or delete them later; changes nothing.

        Parameters as of `vacuum`, which runs the plan (``plan=``).

        Parameters
        ----------
        retention_hours, enforce_retention_duration, full, keep_versions, keep_for, inventory : optional
            As for `vacuum`.

        Raises
        ------
        InvalidArgumentError
            The retention is negative, or shorter than the table's and that is enforced; or the inventory lacks a
            column.
        UnsupportedOperationError
            A catalog does not allow it, or the log does not name all removed files, so that ``full=True`` is needed.
        VersionNotFoundError
            A version that is to be kept can't be built any more.

        Examples
        --------
        >>> table.delete()["num_deleted_rows"]
        3
        >>> table.plan_vacuum(retention_hours=0, enforce_retention_duration=False).num_files
        2
        """
        return operations.plan_vacuum(
            self._snapshot,
            operations.VacuumOptions(
                retention_hours,
                enforce_retention_duration,
                not full,
                tuple(delta_log.parse_version(v, "version in keep_versions") for v in keep_versions or ()),
                self._kept_for(keep_for),
                None if inventory is None else pa.table(inventory),
            ),
        )

    def _kept_for(self, uris: Sequence[str | os.PathLike[str]]) -> tuple[Snapshot, ...]:
        """Open other tables as this one was."""
        if isinstance(uris, (str, os.PathLike)):
            raise InvalidArgumentError(f"Found keep_for={uris!r}, expected a list of tables.")
        opening = self._snapshot.context.opening
        options = None if opening is None else opening.storage_options
        return tuple(
            open_snapshot(path_text(u), storage_options=options, plugins=self._snapshot.registry) for u in uris
        )

    def vacuum(
        self,
        retention_hours: float | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        full: bool = False,
        keep_versions: Sequence[int] | None = None,
        keep_for: Sequence[str | os.PathLike[str]] = (),
        inventory: Any = None,
        plan: operations.VacuumPlan | str | os.PathLike[str] | None = None,
        progress: Callable[[operations.VacuumProgress], None] | None = None,
    ) -> list[str]:
        """Delete files below the table's root that no version within the retention needs.

        Parameters
        ----------
        retention_hours : float, optional
            Files that were removed or written since stay; the table's ``delta.deletedFileRetentionDuration`` (a week by
            default) unless given. 0 is unsafe while others write: their files that no commit names yet are deleted too.
        dry_run : bool
            Whether the files are only listed.
        enforce_retention_duration : bool
            Whether a shorter retention than the table's is rejected.
        commit_properties : CommitProperties, optional
            Custom metadata of the two commits that record the vacuum, and how often they are tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows these commits.
        full : bool
            Whether all files below the root are looked at; otherwise those that the log names as removed since the last
            vacuum.
        keep_versions : sequence of int, optional
            Versions whose files stay, whatever their age.
        keep_for : sequence of str or path
            Other tables whose files stay, such as shallow clones: a table has no list of its clones.
        inventory : pyarrow.Table, optional
            The files of the root, instead of a listing: ``path``, ``size`` and ``modification_time``; any object with
            Arrow's stream interface.
        plan : VacuumPlan or path, optional
            What `plan_vacuum` returned, or the file that it was saved to: these files are deleted, but for those that
            have become reachable. No other argument may specify files then.
        progress : function(VacuumProgress), optional
            Called from time to time while files are deleted.

        Returns
        -------
        list of str
            The files, from the table's root; empty folders, which are deleted too, end with a slash.

        Raises
        ------
        InvalidArgumentError
            As `plan_vacuum`; or both a plan and what specifies files were given.
        UnsupportedOperationError
            As `plan_vacuum`.
        MetadataChangedError
            The plan is one of another table.
        EngineError
            Files can't be deleted, or the clock of this machine is ahead of the store's.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False))
        2
        """
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        if plan is None:
            plan = self.plan_vacuum(
                retention_hours,
                enforce_retention_duration,
                full=full,
                keep_versions=keep_versions,
                keep_for=keep_for,
                inventory=inventory,
            )
        elif retention_hours is not None or full or keep_versions or keep_for or inventory is not None:
            raise InvalidArgumentError(
                "Found a plan beside retention_hours, full, keep_versions, keep_for or inventory; a plan specifies its "
                "files itself."
            )
        else:
            plan = plan if isinstance(plan, operations.VacuumPlan) else operations.VacuumPlan.load(plan)
        if not dry_run:
            others = self._kept_for(plan.facts.keep_for)
            options = operations.VacuumOptions(keep_for=others, commit=commit, progress=progress)
            self.adopt(operations.run_vacuum(self._snapshot, plan, options).snapshot)
        return [*plan.to_table().column("path").to_pylist(), *(f"{folder}/" for folder in plan.empty_folders)]

    def repair(
        self,
        dry_run: bool = False,
        post_commithook_properties: PostCommitHookProperties | None = None,
        commit_properties: CommitProperties | None = None,
        *,
        deep: bool = False,
        confirm: Callable[[dict[str, Any]], bool] | None = None,
    ) -> dict[str, Any]:
        """Remove the entries of data files that are not there, and mend what of the log can be mended with certainty.

        Where files of the log differ, the commits are believed if nothing is wrong with them, another witness (a
        checkpoint, a checksum, a compacted file, the data files that exist) confirms them and none contradicts them.
        Otherwise nothing is changed, and a step ``none`` reports it. What is replaced or deleted stays in a folder
        below ``_delta_log/_replaced``, which the step names.

        Parameters
        ----------
        dry_run : bool
            Whether nothing is changed, and only the steps are returned.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows the commit.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        deep : bool
            Whether the footers of the data files are read, and statistics that contradict them are replaced.
        confirm : function(dict) -> bool, optional
            Called with each step that changes something, before it is done. One for which it returns False is left out.

        Returns
        -------
        dict
            ``dry_run``; ``files_removed``, the paths whose entries were removed; and ``steps``, each with ``step``,
            ``reason``, ``file`` and ``kept``, the folder with what was replaced. The step ``none`` names what can't be
            mended, or where it is not certain what is right.

        Raises
        ------
        UnsupportedOperationError
            The table is append-only and files are missing.
        CommitConflictError
            Another writer removed the same files meanwhile.
        EngineError
            If the store fails.

        Examples
        --------
        >>> table.repair(dry_run=True)
        {'dry_run': True, 'files_removed': [], 'steps': []}
        """
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        asked = None if confirm is None else lambda step: confirm(step.to_dict())
        done = operations.repair_table(self._snapshot, operations.RepairOptions(dry_run, deep, commit, asked))
        if not dry_run:
            self.adopt(done.snapshot)
        steps = [s.to_dict() for s in done.steps]
        return {"dry_run": dry_run, "files_removed": done.files_removed, "steps": steps}

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        allow_out_of_range: bool = False,
    ) -> pa.RecordBatchReader:
        """Stream the rows that changed, with ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

        Parameters
        ----------
        starting_version, ending_version : int
            Both inclusive; an end that is not given, or lies above the version that is loaded, means that version. A
            version goes before a timestamp.
        starting_timestamp, ending_timestamp : str or datetime
            The first commit at or after, and the last at or before.
        columns : sequence of str, optional
            Of the table and of the feed, in this order.
        predicate : str, filters or Expression
            Over the columns of the table and of the feed.
        allow_out_of_range : bool
            Return no rows for a range above the latest version instead of an error.

        Examples
        --------
        >>> tracked.load_cdf(starting_version=1, columns=["id", "_change_type"]).read_all().to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        by_time = starting_timestamp is not None and starting_version == 0
        if ending_version is not None:
            ending_version = min(delta_log.parse_version(ending_version, "ending_version"), self.version())
        feed = interop.ChangeFeed(
            self.operation("plan_changes"),
            self._snapshot,
            columns,
            predicate,
            start_version=None if by_time else starting_version,
            end_version=ending_version,
            start_timestamp=starting_timestamp if by_time else None,
            end_timestamp=ending_timestamp if ending_version is None else None,
            allow_out_of_range=allow_out_of_range,
        )
        return feed.to_reader()

    def changes(
        self,
        start_version: int | None = None,
        end_version: int | None = None,
        *,
        start_timestamp: str | datetime | None = None,
        end_timestamp: str | datetime | None = None,
        position: StreamPosition | str | bytes | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        max_files: int | None = None,
        max_bytes: int | None = None,
    ) -> ChangeFeed:
        """Plan a read of the rows that changed, with ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

        Parameters
        ----------
        start_version, end_version : int, optional
            Both are part of the range; 0 and the version that is loaded unless given.
        start_timestamp, end_timestamp : str or datetime, optional
            Instead of a version: the first version committed at or after, the last one at or before.
        position : StreamPosition, str, bytes or Mapping, optional
            Instead of a start: the ``position`` of an earlier feed, or its JSON. If no later version exists, the feed
            is empty.
        columns : sequence of str, optional
            Of the table and of the feed, in this order.
        predicate : str, filters or Expression, optional
            Over the columns of the table and of the feed.
        max_files, max_bytes : int, optional
            How much a step reads at most: files, and bytes of files. The changes of a version are never divided, and a
            step that has more to read includes one version with changes at least.

        Returns
        -------
        ChangeFeed
            To read by ``to_table()``, ``to_reader()``, or step by step by ``steps()``.

        Raises
        ------
        UnsupportedOperationError
            The change data feed was off at a version of the range.
        SchemaError
            The schema changed within the range so that older rows can't be read by the newer one.
        VersionNotFoundError
            A commit of the range was cleaned up, or does not exist yet.
        InvalidArgumentError
            For a range or limit that is none, or a position of another table.

        Examples
        --------
        >>> tracked.changes(1, columns=["id", "_change_type"]).to_table().to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        if position is not None and (start_version is not None or start_timestamp is not None):
            raise InvalidArgumentError("Found both a position and a start, expected one of the two.")
        return interop.ChangeFeed(
            self.operation("plan_changes"),
            self._snapshot,
            columns,
            predicate,
            position,
            start_version=start_version,
            end_version=end_version,
            start_timestamp=start_timestamp,
            end_timestamp=end_timestamp,
            max_files=max_files,
            max_bytes=max_bytes,
        )

    def follow(
        self,
        start: int | Literal["latest"] | None = None,
        *,
        start_timestamp: str | datetime | None = None,
        position: StreamPosition | str | bytes | Mapping[str, Any] | None = None,
        position_file: str | os.PathLike[str] | None = None,
        stop_at: int | None = None,
        available_now: bool = False,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        max_files: int | None = 1000,
        max_bytes: int | None = None,
        poll_interval: float = 1.0,
        timeout: float | None = None,
        skip_change_commits: bool = False,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        fail_on_data_loss: bool = True,
        exclude_regex: str | None = None,
    ) -> TableStream:
        """Stream the rows of the table, and those that commits append to it as they arrive, in steps.

        Commits that only write rows again, such as those of optimize, are passed over. See docs/changes.md.

        Parameters
        ----------
        start : int or "latest", optional
            The first version whose appended rows are read; ``latest``: the next one. Unless a start is given, all rows
            of the latest version come first.
        start_timestamp : str or datetime, optional
            Instead: begin with the first version committed at or after a time.
        position : StreamPosition, str, bytes or Mapping, optional
            Instead: the ``position`` of a batch of an earlier stream, or its JSON.
        position_file : str or path, optional
            A local file that keeps the position from one run to the next; once it exists, it goes before the other
            starts. A step after which the caller took no further one is returned again, with the same
            rows and the same number.
        stop_at : int, optional
            The last version that is read; the stream waits for it. Rows are read with the schema of this version if it
            exists already.
        available_now : bool
            Stop behind the version that is the latest now.
        columns, predicate : optional
            Of the rows, as for `scan`.
        max_files, max_bytes : int, optional
            How many files and bytes of files a step reads at most. A single file may have more bytes.
        poll_interval : float
            Seconds between two looks for new commits.
        timeout : float, optional
            End after so many seconds without new rows; 0 ends at the last commit that there is.
        skip_change_commits : bool
            Leave out commits that delete or change rows, with the rows that they append.
        ignore_deletes : bool
            Ignore commits that remove whole files and append nothing.
        ignore_changes : bool
            Read all rows of the files that any commit adds: rows that an update or merge copied come again.
        fail_on_data_loss : bool
            Whether commits that were cleaned up before they were read are an error; otherwise the stream goes on with
            the first commit that exists.
        exclude_regex : str, optional
            Leave out files whose path, as the log has it, contains a match of this regular expression (RE2's syntax).

        Returns
        -------
        TableStream
            Iterate over it: each `StreamBatch` has the rows of a step (``to_reader()``, ``to_table()``, Arrow's stream
            interface), its ``position`` and its ``number``. Its ``stop()`` ends the stream. The errors below, but for
            wrong arguments, may come with any step.

        Raises
        ------
        RowsChangedError
            A commit deletes or changes rows.
        StreamSchemaError
            A commit changes the schema; ``position`` is where to begin again.
        VersionNotFoundError
            A commit was cleaned up before it was read.
        StreamError
            The table was dropped and made again.
        InvalidArgumentError
            For arguments that exclude each other, and a position of another table.

        Examples
        --------
        >>> for batch in table.follow(available_now=True, max_files=1):
        ...     print(batch.number, batch.to_table().num_rows)
        0 2
        1 1
        """
        return operations.TableStream(
            self._snapshot,
            operations.FollowOptions(
                columns=columns,
                predicate=predicate,
                start=start,
                start_timestamp=start_timestamp,
                position=position,
                position_file=position_file,
                stop_at=stop_at,
                available_now=available_now,
                max_files=max_files,
                max_bytes=max_bytes,
                poll_interval=poll_interval,
                timeout=timeout,
                skip_change_commits=skip_change_commits,
                ignore_deletes=ignore_deletes,
                ignore_changes=ignore_changes,
                fail_on_data_loss=fail_on_data_loss,
                exclude_regex=exclude_regex,
            ),
        )

    def operation(self, name: str) -> Callable[..., Any]:
        """Return a feature's own operation, bound to the snapshot that is loaded.

        An operation that adds its feature to the table, such as ``add_constraint``, is there for every table.

        Parameters
        ----------
        name : str
            The operation.

        Raises
        ------
        UnsupportedOperationError
            If the table has no such operation; the message names the feature that would provide it.

        Examples
        --------
        >>> table.operation("add_constraint")({"positive": "amount > 0"})
        2
        >>> DeltaTable("table").metadata().configuration
        {'delta.constraints.positive': 'amount > 0'}
        """
        features = self._snapshot.plugins.features.values()
        served = {name: target for f in features for name, target in f.operations.items()}
        if name not in served:
            everything = (self._options["plugins"] or default_registry()).everything.features.values()
            enabling = {name: f.operations[name] for f in everything for name in f.enabling}
            if name not in enabling:
                raise _no_operation(name, {**served, **enabling}, everything)
            served = enabling
        function = load_object(served[name])
        return lambda *args, **kwargs: function(self._snapshot, *args, **kwargs)

    def verb(self, name: str) -> Callable[..., Any]:
        """Return `operation` of the same name; the earlier name of that method.

        Parameters
        ----------
        name : str
            The operation.

        Examples
        --------
        >>> table.verb("add_constraint")({"positive": "amount > 0"})
        2
        >>> DeltaTable("table").metadata().configuration
        {'delta.constraints.positive': 'amount > 0'}
        """
        return self.operation(name)


def _reopen(kind: type[DeltaTable], pickled: Pickled, config: DeltaTableConfig) -> DeltaTable:
    """Open the table that a pickle describes, at its version."""
    arguments = dict(pickled.arguments)
    try:
        return kind(arguments.pop("uri"), pickled.version, arguments.pop("storage_options"), *config, **arguments)
    except EngineError as e:
        raise pickled.explained(e) from e


def _one_of(older: Any, newer: Any) -> Any:
    if older is not None and newer is not None:
        raise InvalidArgumentError("Found two filters, expected one: pass file_pruning_predicate alone.")
    return newer if older is None else older


def _no_operation(
    name: str, served: Mapping[str, str], everything: Iterable[TableFeature]
) -> UnsupportedOperationError:
    feature = next((f for f in everything if name in f.operations), None)
    if feature is None:
        there = ", ".join(sorted(served)) or "none"
        hint = did_you_mean(name, [o for f in everything for o in f.operations])
        text = f"The table has no operation {name!r}: no plugin provides it. Operations that it has: {there}.{hint}"
    else:
        remedy = feature.remedies.get("operations")
        called = name.removeprefix("plan_")  # by this name users call it
        text = f"The operation {called!r} needs the table feature {feature.name}, which the table does not have"
        text += f": {remedy}." if remedy else "."
    return UnsupportedOperationError(text, operation=name, feature=None if feature is None else feature.name)


def open_table(table_uri: str | os.PathLike[str], **options: Any) -> Any:
    """Open whatever table lies at a place and return the class of its format.

    Parameters
    ----------
    table_uri : str or path
        The place.
    **options
        Those of `DeltaTable`, or of the other format: ``version``, ``timestamp``, ``storage_options``,
        ``allow_external`` have the same meaning in all.

    Returns
    -------
    DeltaTable or delta_core.api.FormatTable
        A Delta table, which is looked for first; else the table of an installed format (entry points of the group
        ``delta_core.formats``, see `delta_core.api.TableFormat`).

    Raises
    ------
    TableNotFoundError
        If no format has it; the message names the formats that were tried.

    Examples
    --------
    >>> open_table("table").version()
    1
    """
    storage_options, place = options.get("storage_options"), path_text(table_uri)
    if DeltaTable.is_deltatable(place, storage_options):
        return DeltaTable(table_uri, **options)
    found = formats.open_formatted(place, **options)
    if found is not None:
        return found
    tried = ", ".join(formats.format_names())
    raise TableNotFoundError(f"No table at {shown_uri(place)}; formats tried: {tried}.", path=place)


def _in_snake_case(name: str) -> str:
    """Return a metric's name of the log, such as numAddedFiles, as ``deltalake`` spells it."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
