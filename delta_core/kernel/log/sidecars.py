"""Sidecars of the last checkpoint that the next one can refer to again. Protocol: Sidecar File Information."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.interface import CheckpointHandle
from delta_core.kernel.log.checkpoint_schema import CheckpointColumns
from delta_core.kernel.log.file_columns import statistic_path
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.names import SIDECAR_DIRECTORY
from delta_core.kernel.log.tombstones import retained

__all__ = ["Sidecar", "reusable_sidecars"]


class Sidecar(Struct, frozen=True):
    """A sidecar file.

    Parameters
    ----------
    name : str
        Under ``_delta_log/_sidecars``.
    reused : bool
        Whether an earlier checkpoint wrote it; the numbers of its actions are known then.
    """

    name: str
    size: int
    modified_ms: int
    reused: bool = False
    num_adds: int = 0
    num_removes: int = 0

    @property
    def path(self) -> str:
        """Its path from the table's root."""
        return f"{SIDECAR_DIRECTORY}/{self.name}"

    def to_json(self) -> dict[str, Any]:
        """Return the ``sidecar`` action's value."""
        return {"path": quote(self.name), "sizeInBytes": self.size, "modificationTime": self.modified_ms}


class _Source(Protocol):
    @property
    def engine(self) -> Engine: ...
    @property
    def files(self) -> FileSet: ...
    def tombstone_tables(self, columns: Sequence[str]) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]: ...


def reusable_sidecars(snapshot: _Source, columns: CheckpointColumns, oldest_ms: int, least: int) -> list[Sidecar]:
    """Return the sidecars whose actions are all still valid.

    Parameters
    ----------
    snapshot : Snapshot
        The version, with the sidecars of the checkpoint that it was built from.
    columns : CheckpointColumns
        The form that a sidecar written now would have: one of another form is written again.
    oldest_ms : int
        Tombstones up to this time have expired.
    least : int
        Smaller sidecars are written again, together with what is new: else every checkpoint would leave a small one.
    """
    checkpointed = [(p, p.chunk.place[0]) for p in snapshot.files.parts if p.chunk.place is not None]
    sidecars = {h.path: h for _, h in checkpointed if _is_sidecar(h)}
    if not sidecars:
        return []
    adds, removes = Counter[str](), Counter[str]()
    live = snapshot.engine.map(lambda pair: int(pair[0].mask().sum()), checkpointed)
    for (_, handle), count in zip(checkpointed, live, strict=True):
        adds[handle.path] += count
    for source, table in snapshot.tombstone_tables(["deletionTimestamp"]):
        if source is not None and _is_sidecar(source):
            sidecars[source.path] = source
            removes[source.path] += retained(table, oldest_ms).num_rows
    chosen = [
        path
        for path, h in sidecars.items()
        if adds[path] + removes[path] == sum(h.group_rows) >= max(least, 1) and _has_form(h, columns)
    ]
    stats = snapshot.engine.storage.stat(chosen) if chosen else []
    return [
        Sidecar(path.removeprefix(f"{SIDECAR_DIRECTORY}/"), size, modified, True, adds[path], removes[path])
        for path, (size, modified) in zip(chosen, stats, strict=True)
    ]


def _is_sidecar(handle: CheckpointHandle) -> bool:
    return handle.path.startswith(f"{SIDECAR_DIRECTORY}/")


def _has_form(handle: CheckpointHandle, columns: CheckpointColumns) -> bool:
    """Whether a sidecar keeps statistics and plugins' fields as the table requires today."""
    have = set(handle.fields.get("add", ()))
    required = {
        "stats": columns.json,
        "stats_parsed": bool(columns.leaves),
        "partitionValues_parsed": bool(columns.partitions),
    }
    if any((name in have) != is_required for name, is_required in required.items()):
        return False
    if any(f.name not in handle.fields.get(f.action, ()) for f in columns.fields if f.action in ("add", "remove")):
        return False
    types = {("add", "stats_parsed", *statistic_path(leaf)): leaf.type.to_arrow() for leaf in columns.leaves}
    types |= {("add", "partitionValues_parsed", f.name): f.type.to_arrow() for f in columns.partitions}
    # a leaf that it lacks is unknown for its files; one of another type would not be read together with the new ones
    return all(handle.arrow_type(path) in (None, kind) for path, kind in types.items())
