"""The view of a snapshot that writers of checkpoints and checksums have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from delta_core.engines.engine import Engine
    from delta_core.engines.interface import CheckpointHandle
    from delta_core.kernel.log.files import FileSet
    from delta_core.kernel.plugins.plans import LogSegment
    from delta_core.kernel.plugins.registry import PluginSet
    from delta_core.kernel.plugins.state import TableState
    from delta_core.kernel.protocol.actions import ActionField, SetTransaction

__all__ = ["CheckpointSource", "ChecksumSource"]


class ChecksumSource(Protocol):
    """The view of a snapshot that the writer of checksums has."""

    @property
    def version(self) -> int:
        """The version."""
        ...

    @property
    def segment(self) -> LogSegment:
        """The log files that the version is built from."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that reads for this table."""
        ...

    @property
    def files(self) -> FileSet:
        """The live files."""
        ...

    state: TableState
    plugins: PluginSet

    def transactions(self) -> dict[str, SetTransaction]:
        """Return the last version that each application wrote, by application id."""
        ...

    def domains(self) -> dict[str, str]:
        """Return the configuration of every domain that is not removed."""
        ...


class CheckpointSource(ChecksumSource, Protocol):
    """The view of a snapshot that the writer of checkpoints has."""

    @property
    def checksum(self) -> Mapping[str, Any] | None:
        """The version's checksum, if this process wrote it."""
        ...

    @property
    def uri(self) -> str:
        """The location of the table."""
        ...

    @property
    def timezone(self) -> str:
        """The zone of partition timestamps that name none."""
        ...

    @property
    def action_fields(self) -> tuple[ActionField, ...]:
        """The columns that features add to file actions."""
        ...

    def reload(self) -> None:
        """Read the version again from a fresh listing."""
        ...

    def tombstone_tables(self, columns: Sequence[str]) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        """Yield the tombstones in pieces, each with the checkpoint file that contains it.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove`` beside path and dvId.
        """
        ...

    def custom_actions(self, kind: str) -> list[dict[str, Any]]:
        """Return the live actions of a kind that a feature declares.

        Parameters
        ----------
        kind : str
            The kind of action.
        """
        ...
