"""The public API: DeltaTable, with the names and call forms of `deltalake`, over Snapshot and Scan.

A table holds one snapshot and moves it; everything that is computed is computed below. The methods are in the bases of
the class, by subject: `opened_table`, `reading`, `changing`, `upkeep`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from delta_core import operations
from delta_core.errors import (
    CatalogNameNotFoundError,
    ConcurrentAppendError,
    CorruptTableError,
    InvalidArgumentError,
    InvalidPlaceError,
    ProtocolError,
    SchemaError,
    TableExistsError,
    VersionNotFoundError,
)
from delta_core.kernel import log as delta_log
from delta_core.kernel.snapshot import open_context
from delta_core.runtime.arguments import mode_text, path_text, properties_by_position
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table import parts as table_parts
from delta_core.table.changing import ChangeMethods
from delta_core.table.opened_table import Metadata, TableMetadata
from delta_core.table.reading import ReadMethods
from delta_core.table.upkeep import UpkeepMethods

if TYPE_CHECKING:
    from delta_core.table.parts import CommitProperties, PostCommitHookProperties

__all__ = ["DeltaTable", "Metadata", "TableMetadata"]


class DeltaTable(ReadMethods, ChangeMethods, UpkeepMethods):
    """One version of a Delta table.

    Parameters
    ----------
    table_uri : str or path
        A local path or the URI of any file system that fsspec supports.
    version : int, optional
        The version to load; the latest if not given.
    storage_options : Mapping, optional
        Options of the file system: credentials, endpoints.
    without_files, log_buffer_size, skip_stats
        Accepted for scripts written for `deltalake`; without effect, since files and statistics load on demand.
    engine : str or Engine
        The engine for I/O and evaluation: the name of an entry point of ``delta_core.engines``, or an engine.
    commits : CommitSource, optional
        The catalog's view of the commits, which a catalog-managed table needs.
    committer : Committer, optional
        The committer; only writes use it.
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
    cache : str, path, SnapshotCache or False, optional
        A folder in which processes share the file tables of snapshots; by default that of the environment variable
        ``DELTA_CORE_CACHE``, if it is set. False: none. See docs/administration.md.

    Raises
    ------
    TableNotFoundError
        There is no Delta log.
    VersionNotFoundError
        The version does not exist, or can't be built any more.
    ProtocolError
        The table needs a protocol version or a feature that is not there.
    CorruptTableError
        The files on disk break the protocol.

    Examples
    --------
    >>> write_deltalake("events", rows)
    >>> events = DeltaTable("events")
    >>> events.version(), events.schema().names
    (0, ['id', 'city', 'amount'])
    """

    @classmethod
    @properties_by_position("commit_properties", "post_commithook_properties", "raise_if_key_not_exists")
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
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        raise_if_key_not_exists: bool = True,
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
            Options of the file system: credentials, endpoints.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
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
        arguments = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        mode = mode_text(mode)
        if mode not in ("error", "append", "overwrite", "ignore"):
            raise InvalidArgumentError(f"Found mode {mode!r}, expected error, append, overwrite or ignore.")
        uri = path_text(table_uri)
        context = open_context(uri, storage_options, **options)
        base = context.read(None) if cls.is_deltatable(uri, storage_options) else None
        if base is not None and mode in ("error", "append"):
            raise TableExistsError(f"There is a table at {uri} already (version {base.version}).", path=uri)
        if base is None or mode == "overwrite":
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
                    custom_metadata=arguments["custom_metadata"],
                    max_commit_retries=arguments["max_retries"],
                    transactions=arguments["transactions"],
                    post=arguments["post"],
                    allow_unknown=not raise_if_key_not_exists,
                )
                if cls.__init__ is DeltaTable.__init__:
                    given = {"storage_options": storage_options, **options}
                    return cls._of(uri, {**(DeltaTable.__init__.__kwdefaults__ or {}), **given}, result.snapshot)
        return cls(uri, storage_options=storage_options, **options)

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
            The upkeep that follows the commit.
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

    @staticmethod
    def is_deltatable(table_uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> bool:
        """Whether there is a Delta log; a log that can't be read counts as one, and what is no place has none.

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
        if not isinstance(table_uri, (str, os.PathLike)):
            return False
        try:
            return open_context(path_text(table_uri), storage_options).find() is not None
        except (InvalidPlaceError, CatalogNameNotFoundError):
            return False
        except (CorruptTableError, ProtocolError, SchemaError, VersionNotFoundError):
            return True
