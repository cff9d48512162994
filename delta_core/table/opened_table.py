"""A table that is open: its version, its definition, and the operations of its features."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex

from msgspec import Struct

from delta_core import handles
from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedOperationError, did_you_mean
from delta_core.handles.opening import Pickled
from delta_core.handles.secrets import shown_uri
from delta_core.kernel import log as delta_log
from delta_core.kernel.plugins.features import TableFeature
from delta_core.kernel.plugins.registry import default_registry
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.runtime.arguments import check_kinds, check_number, path_text
from delta_core.runtime.lazy import load_object
from delta_core.schema.fields import Schema
from delta_core.table import interop, parts as table_parts

if TYPE_CHECKING:
    from delta_core.kernel.log.cache_folder import SnapshotCache

__all__ = ["Metadata", "OpenedTable", "TableMetadata"]

#: The arguments of `DeltaTableConfig` that a table has unless others are given.
_DEFAULTS = (False, None, False)


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


class OpenedTable:
    """One version of a table, which moves to others; the arguments are those of `DeltaTable`."""

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
        cache: str | os.PathLike[str] | SnapshotCache | Literal[False] | None = None,
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
            "cache": cache,
        }
        self._config = (without_files, log_buffer_size, skip_stats)
        self._committer = committer
        self._snapshot = open_snapshot(self._uri, version, **self._options)

    @property
    def _storage_options(self) -> dict[str, Any] | None:
        """The options of the file system, which libraries written for `deltalake` pass on."""
        options = self._options["storage_options"]
        return None if options is None else dict(options)

    @property
    def _table(self) -> table_parts.RawTable:
        """The methods of `deltalake`'s inner object that public libraries call."""
        return table_parts.RawTable(self)

    @classmethod
    def _of(cls, uri: str, options: Mapping[str, Any], snapshot: Snapshot) -> Self:
        """Return the table of a snapshot that is open."""
        table = cls.__new__(cls)
        table._uri, table._options, table._config = uri, dict(options), _DEFAULTS
        table._committer, table._snapshot = options["committer"], snapshot
        return table

    def __repr__(self) -> str:
        return f"DeltaTable({shown_uri(self.table_uri)!r}, version={self.version()})"

    def _repr_html_(self) -> str:
        snapshot = self._snapshot

        def size() -> dict[str, int | None]:
            found = interop.sizes(snapshot)
            return {"rows": found.rows, "files": found.files, "bytes": found.size_bytes}

        return handles.table_page(
            "DeltaTable",
            snapshot.facts(),
            snapshot.schema,
            snapshot.state.partition_columns,
            size,
            lambda rows: snapshot.scan(limit=rows).to_table(),
            self.history,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self._snapshot.pickled(), self._config)

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: Any) -> Self:
        """Return a table that moves to other versions by itself; it shares what was read."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    # --- which version ---

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
        """Move to a version of this table that is built already, as after a write of this table.

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
        [(1, 'WRITE'), (0, 'WRITE')]
        """
        check_number("limit", limit, 0)
        return self._snapshot.history(limit)

    # --- what the table is ---

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
    def table_config(self) -> table_parts.DeltaTableConfig:
        """The options for loading that the table was opened with.

        Examples
        --------
        >>> table.table_config
        DeltaTableConfig(without_files=False, log_buffer_size=None, skip_stats=False)
        """
        return table_parts.DeltaTableConfig(*self._config)

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

    def protocol(self) -> table_parts.ProtocolVersions:
        """Return the protocol's versions and features.

        Examples
        --------
        >>> table.protocol()
        ProtocolVersions(min_reader_version=1, min_writer_version=2, writer_features=None, reader_features=None)
        """
        p = self._snapshot.protocol
        writer, reader = (list(names) if names else None for names in (p.writer_features, p.reader_features))
        return table_parts.ProtocolVersions(p.min_reader_version, p.min_writer_version, writer, reader)

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
        check_kinds([("app_id", app_id)])
        found = self._snapshot.transactions().get(app_id)
        return None if found is None else found.version

    # --- operations of features ---

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


def _reopen(kind: type[OpenedTable], pickled: Pickled, config: tuple[bool, int | None, bool]) -> OpenedTable:
    """Open the table that a pickle describes, at its version."""
    arguments = dict(pickled.arguments)
    try:
        return kind(arguments.pop("uri"), pickled.version, arguments.pop("storage_options"), *config, **arguments)
    except EngineError as e:
        raise pickled.explained(e) from e


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
