"""Whether a checkpoint is there already: one that is sound is never replaced, because others may be reading it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.interface import CheckpointHandle
from delta_core.errors import CorruptTableError, LogChangedError
from delta_core.kernel.log.checkpoint import CheckpointReader
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.names import parse_name
from delta_core.kernel.plugins.plans import Checkpoint
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.state import TableState

__all__ = ["ExistingCheckpoint", "find_checkpoint"]


#: How often a checkpoint is looked at that others replace meanwhile.
_LOOKS = 3


class ExistingCheckpoint(Struct, frozen=True):
    """A checkpoint that is there.

    Parameters
    ----------
    is_sound : bool
        Whether all of it can be read, it is of this table, and it has as many files as the version. One that other
        processes keep replacing is left to them.
    size_bytes, num_actions : int
        Of the checkpoint and its sidecars, if it is sound and stayed the same; else 0.
    """

    is_sound: bool
    size_bytes: int = 0
    num_actions: int = 0


class _Source(Protocol):
    @property
    def engine(self) -> Engine: ...
    @property
    def files(self) -> FileSet: ...

    state: TableState
    plugins: PluginSet


def find_checkpoint(snapshot: _Source, path: str) -> ExistingCheckpoint | None:
    """Return what is there under a checkpoint's classic name, None for nothing. Reads all of it.

    Parameters
    ----------
    snapshot : _Source
        The version of the checkpoint.
    path : str
        The checkpoint's file.
    """
    storage = snapshot.engine.storage
    for _ in range(_LOOKS):
        try:
            ((size, _),) = storage.stat([path])
        except FileNotFoundError:
            return None
        file = parse_name(path.rpartition("/")[2], size)
        assert file is not None
        reader = CheckpointReader(snapshot.engine.logs, Checkpoint(file.version, "single", (file,)))
        try:
            return _examined(snapshot, reader, size)
        except LogChangedError:
            continue
        except CorruptTableError:
            return ExistingCheckpoint(False)
    return ExistingCheckpoint(True)


def _examined(snapshot: _Source, reader: CheckpointReader, size: int) -> ExistingCheckpoint:
    state = snapshot.state

    def sidecars(checkpoint: str, actions: pa.Table) -> Any:
        return snapshot.plugins.single("checkpoint_sidecars", table=state, checkpoint=checkpoint, actions=actions)

    own = reader.actions("protocol", "metaData")
    ids = [(m.get("id"), m.get("schemaString")) for m in own["metaData"]]
    if len(own["protocol"]) != 1 or ids != [(state.metadata.id, state.metadata.schema_string)]:
        return ExistingCheckpoint(False)
    named = reader.sidecars()
    handles = list(reader.file_handles(sidecars) or ())
    num_adds = _num_adds(handles, snapshot.engine.map)
    num_actions = sum(sum(h.group_rows) for h in handles)
    if named.num_rows:
        size += sum(s or 0 for s in named.column("sizeInBytes").to_pylist())
        num_actions += reader.num_own_rows
    return ExistingCheckpoint(num_adds == snapshot.files.count, size, num_actions)


def _num_adds(handles: list[CheckpointHandle], run: Callable[..., list[int]]) -> int:
    def count(place: tuple[CheckpointHandle, int]) -> int:
        handle, group = place
        path, *_ = handle.read(group, [("add", "path"), *((action,) for action in handle.fields)])
        return len(path) - int(path.null_count)

    return sum(run(count, [(h, g) for h in handles for g in range(len(h.group_rows))]))
