"""Many small files of one write: encoded together in runs, and created whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileWrite, WrittenFile
from delta_core.parquet import parts
from delta_core.parquet.file_writer import FileOptions, OpenFiles, codes_strings
from delta_core.parquet.gathered_rows import GatheredRows, Slot
from delta_core.parquet.written_files import SYNCS, CreatedFile, Failing, WrittenFiles
from delta_core.runtime.threads import ThreadPool
from delta_core.storage.boundary import are_plain
from delta_core.storage.local_files import make_directory

if TYPE_CHECKING:
    from delta_core.parquet.file_runs import EncodedFiles

__all__ = ["SmallFiles"]

#: Partitions with fewer bytes, all of them in memory when the rows end, are encoded in runs of these bytes or files.
SMALL_BYTES = 1 << 20
RUN_OF_FILES_BYTES = 4 << 20
RUN_OF_FILES = 64
#: A run has fewer files of many columns, but an eighth of `RUN_OF_FILES`: each run has a writer.
RUN_OF_CHUNKS = 2048


class SmallFiles:
    """The small files of a partitioned write.

    Parameters
    ----------
    storage, write, options, files
        See `delta_core.parquet.file_writer.OpenFiles`.
    gathered : GatheredRows
        Contains their rows.
    open_files : OpenFiles
        Slots that have an open file there are not small.
    threads : function(int) -> ThreadPool
        Makes a pool of this many threads.
    """

    def __init__(
        self,
        storage: Storage,
        write: FileWrite,
        options: FileOptions,
        files: WrittenFiles,
        gathered: GatheredRows,
        open_files: OpenFiles,
        threads: Callable[[int], ThreadPool],
    ) -> None:
        self._storage = storage
        self._write = write
        self._options = options
        self._files = files
        self._gathered = gathered
        self._open_files = open_files
        self._threads = threads

    def split(self) -> tuple[list[list[Slot]], list[Slot]]:
        """Return runs of slots whose rows are a small file each, and the other slots."""
        slots = self._gathered.slots
        small = [slot for slot in slots if self._is_small(slot)] if self._write.partitioned else []
        if len(small) < 2 or not parts.can_be_cut(self._options.options):
            return [], slots
        most = max(RUN_OF_FILES // 8, min(RUN_OF_FILES, RUN_OF_CHUNKS // self._gathered.num_leaves))
        runs: list[list[Slot]] = []
        size = 0
        for slot in small:
            if not runs or len(runs[-1]) == most or size + slot.nbytes > RUN_OF_FILES_BYTES:
                runs.append([])
                size = 0
            runs[-1].append(slot)
            size += slot.nbytes
        chosen = set(small)
        return runs, [slot for slot in slots if slot not in chosen]

    def _is_small(self, slot: Slot) -> bool:
        if not slot.batches or self._open_files.has_any(slot):
            return False
        return slot.nbytes < min(SMALL_BYTES, self._write.target_file_size) and not codes_strings(slot.rows)

    def write(self, slots: list[Slot]) -> None:
        """Encode and create the files of a run."""
        self.create(*self.encode(slots))

    def encode(self, slots: list[Slot]) -> tuple[list[CreatedFile], int, EncodedFiles]:
        """Encode what slots hold, a file each; return the files, and the place of the first one among all."""
        run = parts.FileRun(self._write.schema, self._options.options, self._options.leaves)
        files = []
        plain_bytes = 0
        for slot in slots:
            group = slot.take()
            table = self._gathered.table_of(group)
            files.append(CreatedFile(self._write.name(slot.partition), slot.partition, table.num_rows))
            with Failing(files[-1].path):
                run.append(table)
            plain_bytes += group.nbytes
        with Failing(files[-1].path):
            encoded = run.close()
        self._gathered.count_encoded(plain_bytes, len(encoded.data))
        return files, self._files.begin_whole(files), encoded

    def create(self, files: list[CreatedFile], first: int, encoded: EncodedFiles) -> None:
        """Create the files that `encode` returned."""
        times = self._create(files, encoded)
        sizes = np.diff(encoded.ends, prepend=0)
        rows = zip(files, sizes.tolist(), times, encoded.statistics, strict=True)
        found = [WrittenFile(f.path, f.partition, size, ms, f.num_rows, s) for f, size, ms, s in rows]
        self._files.add_whole(first, found)

    def _create(self, files: Sequence[CreatedFile], encoded: EncodedFiles) -> list[int]:
        """Create files; return their modification times, ms since the epoch."""
        root = self._storage.local_path("")
        if root is not None and are_plain([file.path for file in files]):
            paths = [path for path in self._storage.local_paths([file.path for file in files]) if path is not None]
            try:
                make_directory(root.rstrip("/"))
                times: list[int] = parts.create_files(paths, encoded.data, encoded.ends).tolist()
                return times
            except OSError as e:
                failed = paths.index(e.filename) if e.filename in paths else 0
                with Failing(files[failed].path):
                    raise
        starts = [0, *encoded.ends.tolist()]
        wholes = [encoded.data[start:end] for start, end in pairwise(starts)]
        with self._threads(SYNCS) as pool:
            return pool.map(self._upload, files, wholes)

    def _upload(self, file: CreatedFile, data: memoryview) -> int:
        with Failing(file.path):
            sink = self._storage.create(file.path)
            sink.write(data)
            sink.close()
        return time.time_ns() // 1_000_000
