"""Protocols of the table and the snapshot that a transaction uses; snapshots themselves begin transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar

import pyarrow as pa

from delta_core.kernel.log.checkpoint_source import CheckpointSource
from delta_core.kernel.log.checksum import Checksum
from delta_core.kernel.log.commits import Commit
from delta_core.kernel.log.source import TableLog
from delta_core.kernel.plugins.committer import Committer
from delta_core.kernel.plugins.plans import LogFile, LogSegment
from delta_core.kernel.plugins.registry import PluginRegistry, PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol import actions as log_actions
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernels.json_actions import ParsedActions
from delta_core.kernels.row_set import RowSets

__all__ = ["Base", "TableBase", "TableHandle"]

Base = TypeVar("Base", bound="TableBase")
Created_co = TypeVar("Created_co", bound="TableBase", covariant=True)


class TableBase(CheckpointSource, Protocol):
    """One version of a table, which a transaction reads and builds on: a `Snapshot`."""

    @property
    def protocol(self) -> log_actions.Protocol:
        """The protocol action in force."""
        ...

    @property
    def metadata(self) -> log_actions.Metadata:
        """The metadata action in force."""
        ...

    @property
    def context(self) -> TableHandle[Self]:
        """The table at its place."""
        ...

    @property
    def commit_timestamp_ms(self) -> int | None:
        """The version's own commit time, ms since the epoch; None if it is not known."""
        ...

    @property
    def write_plan(self) -> WritePlan | None:
        """How this process wrote the version's files, if it did."""
        ...

    def dropped_rows(self, files: pa.Table) -> RowSets:
        """Return the rows that vectors drop of each file of a file table."""
        ...

    def commits(self, start: int, end: int | None = None) -> Iterator[Commit]:
        """Yield the commits of versions ``start`` to ``end``, oldest first; ``end`` is this version by default."""
        ...

    def version_at(self, timestamp_ms: int) -> int:
        """Return the last version, up to this one, that was committed at or before a time."""
        ...

    def update(self) -> Self:
        """Return the latest version."""
        ...

    def latest(self) -> Self:
        """Return the latest version of the same table; raise if the table was deleted or replaced."""
        ...

    def check_same_table(self) -> None:
        """Raise if the table was deleted or replaced since it was opened."""
        ...

    def check_id_of(self, latest: Self) -> None:
        """Raise MetadataChangedError if a later version belongs to another table."""
        ...

    def with_commits(
        self,
        newer: Sequence[LogFile],
        timestamp_ms: int | None = None,
        actions: ParsedActions | None = None,
        write_plan: WritePlan | None = None,
    ) -> Self:
        """Return the snapshot after the next commits; lists nothing."""
        ...

    def with_checksum(self, checksum: Checksum | None) -> Self:
        """Return this version with the checksum that this process wrote of it."""
        ...

    def with_checkpoint(self, checkpoint: Sequence[LogFile]) -> Self:
        """Return this version, built from a checkpoint of it that was just written."""
        ...


class TableHandle(Protocol[Created_co]):
    """A table at its place, whatever its version: a `TableContext`."""

    @property
    def log(self) -> TableLog:
        """The table's log."""
        ...

    @property
    def timezone(self) -> str:
        """The zone of partition timestamps that name none."""
        ...

    @property
    def registry(self) -> PluginRegistry:
        """The source of plugins."""
        ...

    @property
    def committer(self) -> Committer | None:
        """The committer that the table was opened with."""
        ...

    @property
    def store_committer(self) -> Committer | None:
        """The committer that is configured for the store."""
        ...

    def read_segment(self, segment: LogSegment) -> Created_co:
        """Open a version from these files of the log and no others."""
        ...

    def define(
        self,
        protocol: log_actions.Protocol,
        metadata: log_actions.Metadata,
        version: int,
        domains: Callable[[], Mapping[str, str]],
        prepared: bool = True,
    ) -> tuple[TableState, PluginSet]:
        """Build a state from protocol and metadata, and find the plugins that serve it."""
        ...

    def read(self, version: int | None = None) -> Created_co:
        """Open a version, None for the latest."""
        ...

    def created(
        self, file: LogFile, write_plan: WritePlan | None = None, known: log_actions.Metadata | None = None
    ) -> Created_co:
        """Return the snapshot of a table whose first commit was just written."""
        ...
