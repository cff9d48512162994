"""Vectors as bitmaps of 4096 rows each, decoded here or by executors: Python that sees vectors, never rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.engines.spark.plan.files import PlannedFiles, Rows
from delta_core.kernel.scan.scan import Scan
from delta_core.kernels.row_set import RowSet

__all__ = ["CHUNK", "CHUNK_SCHEMA", "WORDS", "chunk_table", "vector_decoders"]

#: A chunk's key is its file's number << 32 | the chunk's number; its words hold a bit a row, least significant first.
CHUNK, WORDS = "__delta_chunk", "__delta_words"
CHUNK_SCHEMA = f"{CHUNK} bigint, {WORDS} array<bigint>"
_CHUNK_ROWS = 4096
#: Vectors whose chunks make a batch.
_BATCH = 256


def chunk_table(found: Iterable[Rows]) -> pa.Table:
    """Return rows as chunks: int64 keys, and words of int64[64] each."""
    keys, words = [np.empty(0, np.int64)], [np.empty((0, _CHUNK_ROWS // 64), np.uint64)]
    for rows in found:
        index, bits = rows.rows.chunks(_CHUNK_ROWS)
        keys.append((np.int64(rows.file) << 32) + index)
        words.append(bits)
    flat = np.concatenate(words)
    values = pa.array(flat.reshape(-1).view(np.int64))
    offsets = pa.array(np.arange(0, flat.size + 1, flat.shape[1], dtype=np.int32))
    return pa.table({CHUNK: pa.array(np.concatenate(keys)), WORDS: pa.ListArray.from_arrays(offsets, values)})


class _Decoder(Struct, frozen=True):
    """Runs on executors: from where vectors lie to their chunks."""

    storage: Storage
    decode: Callable[[Any, int | None, str], RowSet]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH):
                yield from chunk_table(self._rows(batch.slice(start, _BATCH).to_pylist())).to_batches()

    def _rows(self, located: list[dict[str, Any]]) -> Iterator[Rows]:
        stored = [v for v in located if v["data"] is None]
        ranges = iter(self.storage.read([RangeRequest(v["path"], v["offset"] or 0, v["length"]) for v in stored]))
        for v in located:
            where = f"{v['path']!r}, byte {v['offset']}" if v["data"] is None else "its descriptor"
            data = next(ranges) if v["data"] is None else v["data"]
            yield Rows(v["file"], self.decode(data, v["cardinality"], where), False)


def vector_decoders(scan: Scan, files: PlannedFiles, without: Sequence[int]) -> Iterator[tuple[_Decoder, pa.Table]]:
    """Yield, for each selector, what decodes its vectors and where these lie; some files are left out."""
    storage = scan.source.engine.storage
    for selector, located in files.located:
        keep = ~np.isin(located.column("file").to_numpy(), np.asarray(without, np.int64))
        yield _Decoder(storage, selector.decode), located.filter(pa.array(keep))
