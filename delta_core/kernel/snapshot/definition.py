"""The definition of a version: protocol, metadata, schema and plugins, and the log files it is built from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_core import handles
from delta_core.engines.engine import Engine
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.source import LogContents, LogMark
from delta_core.kernel.plugins.plans import LogSegment
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ActionField, Metadata, Protocol
from delta_core.kernel.snapshot.live_files import LaterCommits, fields_of
from delta_core.schema.fields import Schema

if TYPE_CHECKING:
    from delta_core.expressions.plugin_functions import Function
    from delta_core.kernel.commit.base import TableHandle
    from delta_core.kernel.log.checksum import Checksum
    from delta_core.kernel.write.plan import WritePlan
    from delta_core.schema.types import TypeDef

__all__ = ["SnapshotDefinition"]


class SnapshotDefinition:
    """Protocol, metadata, schema and plugins of a version, and what was read of its log so far.

    Parameters are those of `Snapshot`.
    """

    context: TableHandle[Any]

    #: See `scan.rows.Scannable`.
    format_name = "delta"

    def __init__(
        self,
        context: TableHandle[Any],
        contents: LogContents,
        state: TableState,
        plugins: PluginSet,
        *,
        seen: tuple[LogMark | None, float] | None = None,
        later: LaterCommits | None = None,
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
        self.action_fields: tuple[ActionField, ...] = fields_of(plugins)
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
        by = self.state.partition_columns
        return handles.page(title, self.facts(), handles.schema_table(self.schema, by))

    def facts(self) -> dict[str, Any]:
        """Return what the version is, for people; reads nothing.

        Examples
        --------
        >>> by_city.snapshot().facts()["partitioned by"]
        ('city',)
        """
        m, p, by = self.metadata, self.protocol, self.state.partition_columns
        return {
            "location": shown_uri(self.uri),
            "version": self.version,
            "name": m.name,
            "description": m.description,
            "partitioned by": tuple(by),
            "protocol": f"reader {p.min_reader_version}, writer {p.min_writer_version}",
            "features": tuple(sorted(self.state.features)),
            "properties": tuple(f"{k} = {v}" for k, v in sorted(m.configuration.items())),
        }

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
