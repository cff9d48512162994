"""Deletion of many files, here or on other machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.interface import Storage
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, number_array
from delta_core.operations.sweep.listing import WINDOW, check_witness
from delta_core.operations.sweep.paths import PathSet

__all__ = ["delete_swept"]

#: With fewer files, this machine deletes them itself.
_MANY = 10_000
#: The number of files that one job of other machines deletes.
_MOST_SPREAD = 262_144
_COUNT = pa.schema([("count", pa.int64())])


def delete_swept(
    engine: Engine,
    found: Iterable[pa.RecordBatch],
    witness: str | None,
    kept: PathSet | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Delete files, and return how many were there.

    Parameters
    ----------
    engine : Engine
        Of the table's place.
    found : iterable of RecordBatch
        Columns of `engines.records.WALKED_FILE`.
    witness : str, optional
        A file that each other machine must find before it deletes one.
    kept : PathSet, optional
        Files that stay nevertheless: they were referenced since the others were found.
    progress : function(int), optional
        Called with the number of files so far.
    """
    deleted = done = 0
    for paths in _windows(found, WINDOW if engine.spread is None else _MOST_SPREAD):
        done += len(paths)
        left = paths if kept is None else paths.filter(bool_array(~kept.contains(paths)))
        deleted += _deleted(engine, left, witness)
        if progress is not None:
            progress(done)
    return deleted


def _windows(found: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Array]:
    waiting: list[pa.Array] = []
    for batch in found:
        for start in range(0, batch.num_rows, size):
            waiting.append(batch.column("path").slice(start, size))
            if sum(map(len, waiting)) >= size:
                yield pa.concat_arrays(waiting)
                waiting = []
    if waiting:
        yield pa.concat_arrays(waiting)


def _deleted(engine: Engine, paths: pa.Array, witness: str | None) -> int:
    if engine.spread is not None and len(paths) >= _MANY:
        counts = engine.spread(_Deleting(engine.storage, witness), paths, _COUNT)
        return int(pc.sum(counts.column("count")).as_py() or 0)
    share = -(-len(paths) // (os.cpu_count() or 1)) or 1
    slices = [paths.slice(i, share) for i in range(0, len(paths), share)]
    return sum(engine.map(engine.storage.delete_files, slices))


class _Deleting(Struct, frozen=True):
    """Deletes files, on another machine."""

    storage: Storage
    witness: str | None

    def __call__(self, paths: pa.Array) -> Iterator[pa.RecordBatch]:
        check_witness(self.storage, self.witness)
        yield pa.RecordBatch.from_arrays([number_array(np.array([self.storage.delete_files(paths)]))], schema=_COUNT)
