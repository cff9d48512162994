"""What a transaction needs of the table and of the snapshot that it begins on; snapshots themselves begin transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar

import pyarrow as pa

from delta_core.kernels.json_actions import ParsedActions
from delta_core.kernels.row_set import RowSet
from delta_core.log.checkpoint_writer import CheckpointSource
from delta_core.log.checksum import Checksum
from delta_core.log.commits import Commit
from delta_core.log.source import TableLog
from delta_core.plugins.committer import Committer
from delta_core.plugins.plans import LogFile
from delta_core.plugins.registry import PluginRegistry, PluginSet
from delta_core.plugins.state import TableState
from delta_core.protocol import actions as log_actions
from delta_core.write.plan import WritePlan

__all__ = ["Base", "TableBase", "TableHandle"]

Base = TypeVar("Base", bound="TableBase")
Created_co = TypeVar("Created_co", bound="TableBase", covariant=True)


class TableBase(CheckpointSource, Protocol):
    """One version of a table, which a transaction reads and builds on: a `Snapshot`."""

    @property
    def protocol(self) -> log_actions.Protocol: ...
    @property
    def metadata(self) -> log_actions.Metadata: ...
    @property
    def commit_timestamp_ms(self) -> int | None: ...
    @property
    def checksum(self) -> Checksum | None: ...
    @property
    def write_plan(self) -> WritePlan | None: ...

    def row_sets(self, files: pa.Table) -> dict[int, RowSet]: ...
    def commits(self, start: int, end: int | None = None) -> Iterator[Commit]: ...
    def update(self) -> Self: ...
    def check_same_table(self) -> None: ...
    def check_id_of(self, latest: Self) -> None: ...
    def with_commits(
        self,
        newer: Sequence[LogFile],
        timestamp_ms: int | None = None,
        actions: ParsedActions | None = None,
        write_plan: WritePlan | None = None,
    ) -> Self: ...
    def with_checksum(self, checksum: Checksum | None) -> Self: ...
    def anchored(self, checkpoint: Sequence[LogFile]) -> Self: ...


class TableHandle(Protocol[Created_co]):
    """A table at its place, whatever its version: a `TableContext`."""

    @property
    def log(self) -> TableLog: ...
    @property
    def timezone(self) -> str: ...
    @property
    def registry(self) -> PluginRegistry: ...
    @property
    def committer(self) -> Committer | None: ...
    @property
    def store_committer(self) -> Committer | None: ...

    def define(
        self,
        protocol: log_actions.Protocol,
        metadata: log_actions.Metadata,
        version: int,
        domains: Callable[[], Mapping[str, str]],
        prepared: bool = True,
    ) -> tuple[TableState, PluginSet]: ...
    def created(self, file: LogFile, write_plan: WritePlan | None = None) -> Created_co: ...
