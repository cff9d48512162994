"""What the Lance cases read, most of it written by pylance; each is made once and kept in a folder outside git."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.sizes import Sizes

__all__ = ["LANCE_GENERATORS", "NUM_ROWS", "lance_path"]

NUM_ROWS = 20_000_000
_STEP = 1_000_000


def lance_path(root: Path, name: str, sizes: Sizes) -> Path:
    """Return the folder of a dataset, making it first if it is not there whole."""
    target = root / f"lance-{name}-{sizes.scale:g}"
    if not target.exists():
        building = root / f"{target.name}.building"
        shutil.rmtree(building, ignore_errors=True)
        LANCE_GENERATORS[name](building, sizes)
        building.rename(target)
    return target


def _texts(values: np.ndarray) -> pa.Array:
    """Return numbers below 10,000,000 as strings of 7 digits."""
    data = np.char.zfill(values.astype("U7"), 7).astype("S7").tobytes()
    ends = np.arange(len(values) + 1, dtype=np.int32) * 7
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def _batches(num_rows: int) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(1)
    for start in range(0, num_rows, _STEP):
        n = min(_STEP, num_rows - start)
        columns = [
            pa.array(np.arange(start, start + n)),
            pa.array(chance.random(n)),
            _texts(chance.integers(0, 10_000_000, n)),
        ]
        yield pa.record_batch(columns, names=["i", "d", "s"])


_SCHEMA = pa.schema([("i", pa.int64()), ("d", pa.float64()), ("s", pa.string())])


def _stream(place: Path, sizes: Sizes) -> None:
    place.mkdir(parents=True)
    with pa.ipc.new_stream(str(place / "rows.arrows"), _SCHEMA) as out:
        for batch in _batches(sizes.of(NUM_ROWS, 1000)):
            out.write_batch(batch)


def _delta(place: Path, sizes: Sizes) -> None:
    from delta_core import write_deltalake

    write_deltalake(place, pa.RecordBatchReader.from_batches(_SCHEMA, _batches(sizes.of(NUM_ROWS, 1000))))


def _few(place: Path, sizes: Sizes) -> None:
    import lance

    lance.write_dataset(pa.Table.from_batches(_batches(sizes.of(3, 3))), str(place))


def _rows(version: str, place: Path, sizes: Sizes) -> None:
    import lance

    num_rows = sizes.of(NUM_ROWS, 1000)
    reader = pa.RecordBatchReader.from_batches(_SCHEMA, _batches(num_rows))
    lance.write_dataset(reader, str(place), data_storage_version=version, max_rows_per_file=num_rows)


def _indexed(place: Path, sizes: Sizes) -> None:
    import lance

    _rows("2.2", place, sizes)
    lance.dataset(str(place)).create_scalar_index("i", "BTREE")


def _deleted(place: Path, sizes: Sizes) -> None:
    import lance

    num_rows = sizes.of(NUM_ROWS, 1000)
    reader = pa.RecordBatchReader.from_batches(_SCHEMA, _batches(num_rows))
    lance.write_dataset(reader, str(place)).delete("i % 5 = 0")


def _fragments(place: Path, sizes: Sizes) -> None:
    import lance

    n = 10 * sizes.of(10_000, 10)
    table = pa.table({"i": np.arange(n), "d": np.arange(n) / 2, "s": _texts(np.arange(n))})
    lance.write_dataset(table, str(place), max_rows_per_file=10, max_rows_per_group=10)


def _wide(place: Path, sizes: Sizes) -> None:
    import lance

    chance = np.random.default_rng(2)
    n = sizes.of(20_000, 100)
    columns = {f"c{i}": chance.integers(0, 1000, n) if i % 2 else chance.random(n) for i in range(1000)}
    lance.write_dataset(pa.table(columns), str(place))


def _nested(place: Path, sizes: Sizes) -> None:
    import lance

    chance = np.random.default_rng(3)
    n = sizes.of(1_000_000, 100)
    ends = pa.array(np.arange(0, 5 * n + 1, 5), pa.int32())
    numbers = pa.array(chance.integers(0, 1000, n))
    columns = {
        "i": np.arange(n),
        "l": pa.ListArray.from_arrays(ends, pa.array(chance.integers(0, 100, 5 * n))),
        "st": pa.StructArray.from_arrays([numbers, numbers.cast(pa.string())], ["a", "b"]),
    }
    lance.write_dataset(pa.table(columns), str(place))


def _vectors(place: Path, sizes: Sizes) -> None:
    import lance

    n = sizes.of(100_000, 1000)
    items = np.random.default_rng(4).random(n * 768, dtype=np.float32)
    columns = {"i": np.arange(n), "v": pa.FixedSizeListArray.from_arrays(pa.array(items), 768)}
    lance.write_dataset(pa.table(columns), str(place))


def _versions(place: Path, sizes: Sizes) -> None:
    import lance

    made = lance.write_dataset(pa.table({"i": [1, 2, 3]}), str(place))
    for k in range(1, sizes.of(50_000, 10)):
        made.update_config({"k": str(k)})


LANCE_GENERATORS: Mapping[str, Callable[[Path, Sizes], None]] = {
    **{f"rows-{version}": partial(_rows, version) for version in ("2.0", "2.1", "2.2")},
    "stream": _stream,
    "delta": _delta,
    "few": _few,
    "indexed": _indexed,
    "deleted": _deleted,
    "fragments": _fragments,
    "wide": _wide,
    "nested": _nested,
    "vectors": _vectors,
    "versions": _versions,
}
