"""The Arrow engine's writer: several files at once, in bounded memory, and nothing left of a write that failed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from delta_core.engines.arrow import engine
from delta_core.engines.records import FileWrite, WrittenFile
from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import EngineError
from delta_core.kernels.string_codes import dictionary_of
from delta_core.parquet import data_writer, file_writer, gathered_rows, parts, small_files, written_files
from delta_core.parquet.data_writer import write_parquet_files
from delta_core.runtime.threads import running_threads
from delta_core.storage.stores import open_storage

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


def plain(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    return [(0, batch)]


def by_remainder(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    keys = batch.column("id").to_numpy() % 7
    return [(int(k), batch.filter(pa.array(keys == k))) for k in np.unique(keys)]


def write_options(target: int = 1 << 40, partitioned: bool = False, **options: Any) -> FileWrite:
    numbers = itertools.count()
    return FileWrite(
        SCHEMA,
        lambda p: f"p={p}/{next(numbers):03d}.parquet" if partitioned else f"{next(numbers):03d}.parquet",
        (("id",), ("s",)),
        WriterProperties(**options),
        target,
        partitioned,
    )


def table(rows: int, start: int = 0) -> pa.Table:
    ids = np.arange(start, start + rows)
    return pa.table({"id": ids, "s": np.char.add("s", (ids % 100).astype(str))}, schema=SCHEMA)


def stream(rows: int, each: int = 1000) -> pa.RecordBatchReader:
    batches = (table(min(each, rows - i), i).to_batches()[0] for i in range(0, rows, each))
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def read(root: Path, files: list[WrittenFile]) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(root / f.path).read() for f in files])


@pytest.fixture
def two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small writes go the way of big ones, on two threads whatever the machine has."""
    monkeypatch.setattr(data_writer, "num_cores", lambda: 2)
    monkeypatch.setattr(data_writer, "PARALLEL_BYTES", 1 << 12)
    monkeypatch.setattr(data_writer, "RUN_BYTES", 1 << 14)
    monkeypatch.setattr(gathered_rows, "STEP_ROWS", 500)


def test_small_write_is_one_file_in_order(tmp_path: Path) -> None:
    (found,) = write_parquet_files(open_storage(str(tmp_path)), write_options(), stream(5000), plain)
    assert (found.num_rows, found.size) == (5000, (tmp_path / found.path).stat().st_size)
    assert read(tmp_path, [found]).equals(table(5000))


@pytest.mark.usefixtures("two_workers")
def test_table_is_cut_into_consecutive_runs(tmp_path: Path) -> None:
    found = write_parquet_files(open_storage(str(tmp_path)), write_options(), table(5000), plain)
    assert len(found) == 2
    assert read(tmp_path, found).equals(table(5000))
    assert [(f.statistics[0].low, f.statistics[0].high) for f in found] == [(0, 2499), (2500, 4999)]


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("target", [1 << 40, 4_000])
def test_stream_is_written_whole_by_several_threads(tmp_path: Path, partitioned: bool, target: int) -> None:
    apply = by_remainder if partitioned else plain
    found = write_parquet_files(open_storage(str(tmp_path)), write_options(target, partitioned), stream(20_000), apply)
    assert read(tmp_path, found).sort_by("id").equals(table(20_000))
    assert sum(f.num_rows for f in found) == 20_000
    assert all(f.path.startswith(f"p={f.partition}/") for f in found if partitioned)
    for f in found:
        ids = pq.ParquetFile(tmp_path / f.path).read().column("id").to_numpy()
        assert (f.statistics[0].low, f.statistics[0].high) == (ids.min(), ids.max())


def uneven(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    """Split rows by 40 partitions, most of them into the last one."""
    keys = np.minimum(batch.column("id").to_numpy() % 100, 39)
    return [(int(k), batch.filter(pa.array(keys == k))) for k in np.unique(keys)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("given", [{}, {"compression": "ZSTD"}, {"max_row_group_size": 100}])
def test_small_files_that_one_writer_encodes_are_those_of_a_writer_each(
    workers: int, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_writer, "num_cores", lambda: workers)
    monkeypatch.setattr(data_writer, "PARALLEL_BYTES", 1 << 12)
    monkeypatch.setattr(small_files, "RUN_OF_FILES", 16)
    ones = []
    for name, most in (("alone", 0), ("together", 1 << 20)):
        monkeypatch.setattr(small_files, "SMALL_BYTES", most)
        root = tmp_path / name
        found = write_parquet_files(
            open_storage(str(root)), write_options(partitioned=True, **given), table(9000), uneven
        )
        assert all((root / f.path).stat().st_size == f.size for f in found)
        assert all((root / f.path).stat().st_mtime_ns // 1_000_000 == f.modified_ms for f in found)
        assert read(root, found).sort_by("id").equals(table(9000))
        # two threads add their rows in any order
        files = {
            f.partition: (f.num_rows, f.statistics, (root / f.path).read_bytes() if workers == 1 else b"")
            for f in found
        }
        assert len(files) == 40
        if workers == 1:
            assert [f.partition for f in found if f.partition < 39] == list(range(39))
        # two threads may have written to a partition that fills several row groups
        files.pop(39)
        ones.append(files)
    assert ones[0] == ones[1]


@pytest.mark.parametrize(("least", "names"), [(1, {"another"}), (3, {"the caller's"})])
def test_small_files_of_many_columns_are_encoded_by_several_threads(
    least: int, names: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_writer, "num_cores", lambda: 2)
    monkeypatch.setattr(data_writer, "SHARED_LEAVES", least)
    monkeypatch.setattr(small_files, "RUN_OF_FILES", 8)
    encoded: list[tuple[str, int]] = []
    encode = small_files.SmallFiles.encode

    def noted(job: Any, slots: list[Any]) -> Any:
        is_caller = threading.get_ident() == threading.main_thread().ident
        encoded.append(("the caller's" if is_caller else "another", len(slots)))
        return encode(job, slots)

    monkeypatch.setattr(small_files.SmallFiles, "encode", noted)
    found = write_parquet_files(open_storage(str(tmp_path)), write_options(partitioned=True), table(9000), uneven)
    assert read(tmp_path, found).sort_by("id").equals(table(9000))
    assert {name for name, _ in encoded} == names
    assert [count for _, count in encoded] == [8] * 5


def test_runs_of_many_columns_have_fewer_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "RUN_OF_CHUNKS", 20)
    runs: list[int] = []
    encode = small_files.SmallFiles.encode

    def noted(job: Any, slots: list[Any]) -> Any:
        runs.append(len(slots))
        return encode(job, slots)

    monkeypatch.setattr(small_files.SmallFiles, "encode", noted)
    write_parquet_files(open_storage(str(tmp_path)), write_options(partitioned=True), table(9000), uneven)
    assert runs == [10, 10, 10, 10]


def test_small_files_are_written_whole_to_other_stores() -> None:
    storage = open_storage("memory://small-files")
    found = write_parquet_files(storage, write_options(partitioned=True), table(9000), uneven)
    whole = pa.concat_tables([pq.ParquetFile(storage.open(f.path)).read() for f in found])
    assert whole.sort_by("id").equals(table(9000))
    assert {f.path: f.size for f in found} == {f.path: size for f in found for size, _ in storage.stat([f.path])}
    storage.delete([f.path for f in found])


def test_small_files_with_bloom_filters_have_a_writer_each(tmp_path: Path) -> None:
    filters = ColumnProperties(bloom_filter_properties=BloomFilterProperties(set_bloom_filter_enabled=True, ndv=100))
    write = write_options(partitioned=True, column_properties={"id": filters})
    found = write_parquet_files(open_storage(str(tmp_path)), write, table(900), by_remainder)
    assert read(tmp_path, found).sort_by("id").equals(table(900))


@pytest.mark.parametrize("workers", [1, 2])
def test_small_file_that_can_not_be_created_is_an_error_that_names_it(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_writer, "num_cores", lambda: workers)
    monkeypatch.setattr(data_writer, "PARALLEL_BYTES", 1 << 12)
    monkeypatch.setattr(small_files, "RUN_OF_FILES", 7)
    (tmp_path / "p=30").write_text("a file where the folder would be")
    with pytest.raises(EngineError, match=r"data file 'p=30/\d+.parquet': NotADirectoryError"):
        write_parquet_files(open_storage(str(tmp_path)), write_options(partitioned=True), table(9000), uneven)
    assert not list(tmp_path.rglob("*.parquet"))


def test_many_paths_that_can_not_be_synced_are_an_error_that_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = parts.sync_files

    def without_one(paths: list[str]) -> None:
        lost = next((p for p in paths if "/p=30/" in p), None)
        if lost is not None:
            os.unlink(lost)
        sync(paths)

    monkeypatch.setattr(parts, "sync_files", without_one)
    with pytest.raises(EngineError, match=r"data file 'p=30/\d+.parquet': FileNotFoundError"):
        write_parquet_files(open_storage(str(tmp_path)), write_options(partitioned=True), table(9000), uneven)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.usefixtures("two_workers")
def test_rows_are_numbered_as_they_come(tmp_path: Path) -> None:
    def numbered(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        assert batch.column("id").to_pylist() == list(range(first_row, first_row + batch.num_rows))
        return [(0, batch)]

    write_parquet_files(open_storage(str(tmp_path)), write_options(), table(5000), numbered)
    write_parquet_files(open_storage(str(tmp_path)), write_options(), stream(20_000, 333), numbered)


def test_file_is_closed_once_it_is_as_big_as_requested(tmp_path: Path) -> None:
    found = write_parquet_files(open_storage(str(tmp_path)), write_options(20_000), table(100_000), plain)
    assert len(found) > 5
    assert max(f.size for f in found) < 40_000
    assert read(tmp_path, found).equals(table(100_000))


def test_row_groups_are_as_long_as_requested(tmp_path: Path) -> None:
    (found,) = write_parquet_files(
        open_storage(str(tmp_path)), write_options(max_row_group_size=300), stream(1000, 7), plain
    )
    metadata = pq.ParquetFile(tmp_path / found.path).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [300, 300, 300, 100]


@pytest.mark.usefixtures("two_workers")
def test_rows_of_a_read_are_written_in_order_in_shorter_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_rows, "ROW_GROUP_ROWS_BESIDE_READS", 3_000)
    options = replace(write_options(), beside_reads=True)
    (found,) = write_parquet_files(open_storage(str(tmp_path)), options, stream(20_000), plain)
    assert read(tmp_path, [found]).equals(table(20_000))
    metadata = pq.read_metadata(tmp_path / found.path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [3_000] * 6 + [2_000]


def test_rows_of_a_written_row_group_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_rows, "STEP_ROWS", 500)
    made: list[weakref.ref[Any]] = []
    alive: list[list[int]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 6000, 1000):
            alive.append([i for i, ref in enumerate(made) if ref() is not None])
            ids = np.arange(start, start + 1000)
            made.append(weakref.ref(ids))
            texts = pa.nulls(1000, pa.string())
            yield pa.RecordBatch.from_arrays([pa.array(ids), texts], schema=SCHEMA)
            del ids

    source = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    options = replace(write_options(max_row_group_size=2000), in_order=True)
    write_parquet_files(open_storage(str(tmp_path)), options, source, plain)
    # of the row groups before, at most the batch that came last
    assert all(set(held) <= {number - 1, number - 2} for number, held in enumerate(alive))


def test_pyarrows_memory_is_released_beside_reads_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        released = 0

        def release_unused(self) -> None:
            Pool.released += 1

    monkeypatch.setattr(gathered_rows, "RELEASED_BYTES", 1)
    monkeypatch.setattr(pa, "default_memory_pool", Pool)
    for number, beside_reads in enumerate((False, True)):
        options = replace(write_options(max_row_group_size=1000), beside_reads=beside_reads)
        (tmp_path / str(number)).mkdir()
        write_parquet_files(open_storage(str(tmp_path / str(number))), options, stream(3000), plain)
        assert Pool.released == (3 if beside_reads else 0)


@pytest.mark.parametrize("start", [0, 3])
def test_bytes_of_slices_are_counted_as_those_of_each(start: int) -> None:
    rows = pa.record_batch(
        {
            "i": pa.array(range(20), pa.int32()),
            "flag": pa.array([i % 3 == 0 for i in range(20)]),
            "text": ["x" * (i * i) for i in range(20)],
            "bytes": [b"y" * i for i in range(20)],
            "day": pa.array(range(20), pa.date32()),
        }
    )
    ends = [start, 4, 4, 11, 20]
    slices = [rows.slice(a, b - a) for a, b in itertools.pairwise(ends)]
    # but for the bits of a byte that two slices share
    assert gathered_rows.bytes_of(slices) == pytest.approx([s.nbytes for s in slices], abs=1)
    nested = [pa.record_batch({"s": [{"a": "x" * i}] * 2}) for i in range(3)]
    assert gathered_rows.bytes_of(nested) == [s.nbytes for s in nested]
    assert gathered_rows.bytes_of([slices[3], slices[0]]) == [slices[3].nbytes, slices[0].nbytes]
    assert gathered_rows.bytes_of([]) == []


def test_statistics_of_small_files_leave_out_bounds_beside_nan_and_keep_long_ones(tmp_path: Path) -> None:
    rows = pa.table({"f": [1.0, float("nan"), 2.0, 3.0], "t": ["a", "b", "c" * 5000, "d"]})
    names = itertools.count()
    options = FileWrite(
        rows.schema, lambda p: f"p={p}/{next(names)}", (("f",), ("t",)), WriterProperties(), 1 << 40, True
    )

    def by_row(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        return [(first_row + i, batch.slice(i, 1)) for i in range(batch.num_rows)]

    found = write_parquet_files(open_storage(str(tmp_path)), options, rows, by_row)
    bounds = {f.partition: [(s.low, s.high) for s in f.statistics] for f in found}
    assert bounds == {
        0: [(1.0, 1.0), (b"a", b"a")],
        1: [(None, None), (b"b", b"b")],
        2: [(2.0, 2.0), (b"c" * 5000, b"c" * 5000)],
        3: [(3.0, 3.0), (b"d", b"d")],
    }


def test_wide_rows_make_short_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_rows, "ROW_GROUP_BYTES", 10_000)
    wide = pa.table({"id": range(20), "s": ["x" * 3000] * 20}, schema=SCHEMA)
    (found,) = write_parquet_files(open_storage(str(tmp_path)), write_options(), wide, plain)
    metadata = pq.ParquetFile(tmp_path / found.path).metadata
    assert max(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) <= 4


def test_many_columns_make_row_groups_whose_chunks_are_worth_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_rows, "CHUNK_BYTES", 4096)
    # numbers that no codec makes shorter: a fourth of the target would be 256 rows
    values = np.random.default_rng(1).random((64, 1000))
    wide = pa.table({f"c{i}": column for i, column in enumerate(values)})
    write = replace(write_options(1 << 19), schema=wide.schema, statistics=())
    (first, *_) = write_parquet_files(open_storage(str(tmp_path)), write, wide.to_reader(250), plain)
    assert pq.ParquetFile(tmp_path / first.path).metadata.row_group(0).num_rows == 512


def test_biggest_partition_is_written_when_memory_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_rows, "BUFFER_BYTES", 20_000)
    monkeypatch.setattr(gathered_rows, "STEP_ROWS", 100)
    found = write_parquet_files(
        open_storage(str(tmp_path)), write_options(partitioned=True), stream(10_000, 100), by_remainder
    )
    assert len(found) == 7
    assert read(tmp_path, found).sort_by("id").equals(table(10_000))


def test_open_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "OPEN_FILES", 2)
    monkeypatch.setattr(gathered_rows, "BUFFER_BYTES", 0)
    monkeypatch.setattr(gathered_rows, "STEP_ROWS", 100)
    job_open: list[int] = []
    original = file_writer.OpenFiles._open

    def counted(self: Any, *args: Any) -> Any:
        file = original(self, *args)
        job_open.append(self._num_open)
        return file

    monkeypatch.setattr(file_writer.OpenFiles, "_open", counted)
    found = write_parquet_files(
        open_storage(str(tmp_path)), write_options(partitioned=True), stream(3000, 100), by_remainder
    )
    assert max(job_open) <= 2
    assert read(tmp_path, found).sort_by("id").equals(table(3000))


class BrokenError(Exception):
    """What a test raises."""


def failing_apply(first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
    if first_row + batch.num_rows > 3000:
        raise BrokenError
    return [(0, batch)]


def failing_source() -> Iterator[pa.RecordBatch]:
    yield from table(15_000).to_batches(max_chunksize=500)
    raise BrokenError


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("source", ["table", "stream"])
def test_failed_check_leaves_no_file_and_no_thread(tmp_path: Path, source: str) -> None:
    data = table(8000) if source == "table" else stream(30_000)
    with pytest.raises(BrokenError):
        write_parquet_files(open_storage(str(tmp_path)), write_options(1000), data, failing_apply)
    assert not list(tmp_path.rglob("*.parquet"))
    assert "delta-write" not in running_threads()


@pytest.mark.usefixtures("two_workers")
def test_failing_source_leaves_no_file(tmp_path: Path) -> None:
    source = pa.RecordBatchReader.from_batches(SCHEMA, failing_source())
    with pytest.raises(BrokenError):
        write_parquet_files(open_storage(str(tmp_path)), write_options(1000), source, plain)
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.usefixtures("two_workers")
def test_source_is_read_on_the_callers_thread(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for batch in table(20_000).to_batches(max_chunksize=500):
            assert threading.current_thread() is threading.main_thread()
            yield batch

    found = write_parquet_files(
        open_storage(str(tmp_path)), write_options(), pa.RecordBatchReader.from_batches(SCHEMA, batches()), plain
    )
    assert sum(f.num_rows for f in found) == 20_000


@pytest.mark.usefixtures("two_workers")
def test_store_that_rejects_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EngineError, match=r"data file '\d+\.parquet'.*No space left") as caught:
        write_parquet_files(open_storage(str(tmp_path)), write_options(), table(5000), plain)
    assert isinstance(caught.value.__cause__, OSError)
    assert not list(tmp_path.rglob("*.parquet"))


def test_files_and_their_directories_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[Path] = set()
    original = os.fsync

    def noted(handle: int) -> None:
        synced.add(Path(f"/proc/self/fd/{handle}").readlink())
        original(handle)

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not return what a handle is for")
    monkeypatch.setattr(os, "fsync", noted)
    found = write_parquet_files(open_storage(str(tmp_path)), write_options(partitioned=True), table(20), by_remainder)
    files = {tmp_path / f.path for f in found}
    assert synced == {*files, *(p.parent for p in files), tmp_path}


def test_files_are_synced_when_the_wait_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    original = written_files.sync_path

    def slow(path: str) -> None:
        time.sleep(0.05)
        original(path)
        synced.append(path)

    monkeypatch.setattr(written_files, "sync_path", slow)
    syncs: list[Any] = []
    write = replace(write_options(partitioned=True), syncs=syncs)
    found = write_parquet_files(open_storage(str(tmp_path)), write, table(20), by_remainder)
    assert len(synced) < len(found), "the write does not wait"
    for wait in syncs:
        wait()
    files = {str(tmp_path / f.path) for f in found}
    assert {os.path.normpath(p) for p in synced} == {*files, *(os.path.dirname(f) for f in files), str(tmp_path)}


def test_write_without_rows_has_nothing_to_sync(tmp_path: Path) -> None:
    syncs: list[Any] = []
    write = replace(write_options(), syncs=syncs)
    assert write_parquet_files(open_storage(str(tmp_path)), write, table(0), plain) == []
    for wait in syncs:
        wait()


def test_writes_of_other_properties_have_other_options(tmp_path: Path) -> None:
    codecs = []
    for codec in ("SNAPPY", "ZSTD", "SNAPPY"):
        (found,) = write_parquet_files(open_storage(str(tmp_path)), write_options(compression=codec), table(5), plain)
        codecs.append(pq.read_metadata(tmp_path / found.path).row_group(0).column(0).compression)
    assert codecs == ["SNAPPY", "ZSTD", "SNAPPY"]


@pytest.mark.parametrize(("codec", "level", "most"), [("GZIP", 6, 9), ("BROTLI", 1, 8), ("ZSTD", 1, 9)])
def test_default_levels_are_those_of_other_writers(codec: str, level: int, most: int, tmp_path: Path) -> None:
    values = [f"{i:05d} {i * i} some words of a text" for i in range(2000)]
    rows = pa.table({"id": range(2000), "s": values}, schema=SCHEMA)
    files = []
    for given in (None, level, most):
        write = write_options(compression=codec, compression_level=given)
        (found,) = write_parquet_files(open_storage(str(tmp_path / str(given))), write, rows, plain)
        files.append((tmp_path / str(given) / found.path).read_bytes())
    assert files[0] == files[1]
    assert len(files[2]) < len(files[0])


def test_remote_store_takes_files(two_workers: None) -> None:
    import fsspec

    uri = "memory://writer-test"
    storage = open_storage(uri)
    found = write_parquet_files(storage, write_options(partitioned=True), stream(20_000), by_remainder)
    parts = [pq.read_table(storage.open(f.path)) for f in found]
    assert pa.concat_tables(parts).sort_by("id").equals(table(20_000))
    assert [f.size for f in found] == [s for s, _ in storage.stat([f.path for f in found])]
    with pytest.raises(BrokenError):
        write_parquet_files(storage, write_options(1000), stream(30_000), failing_apply)
    memory = fsspec.filesystem("memory")
    assert len([p for p in memory.find("/writer-test") if p.endswith(".parquet")]) == len(found)
    memory.rm("/writer-test", recursive=True)


def test_engine_offers_it(tmp_path: Path) -> None:
    found = engine(str(tmp_path)).data.write(write_options(), table(3), plain)
    described = engine(str(tmp_path)).data.describe([found[0].path], SCHEMA, [("id",), ("s",)])
    assert described[0].statistics == found[0].statistics
    assert described[0].num_rows == 3


# --- strings that are encoded before PyArrow has them ---------------------------------------

TEXTS = pa.schema(
    [("id", pa.int64()), ("s", pa.string()), ("n", pa.struct([("s", pa.string())])), ("a.b", pa.string())]
)


def texts(groups: list[list[str | None]]) -> pa.Table:
    values = [v for group in groups for v in group]
    columns = [range(len(values)), values, [{"s": v} for v in values], ["same"] * len(values)]
    return pa.table([pa.array(c, t) for c, t in zip(columns, TEXTS.types, strict=True)], schema=TEXTS)


def write_texts(root: Path, rows: pa.Table, group_rows: int, **options: Any) -> WrittenFile:
    root.mkdir(exist_ok=True)
    properties = WriterProperties(max_row_group_size=group_rows, **options)
    leaves = (("id",), ("s",), ("n", "s"), ("a.b",))
    write = FileWrite(TEXTS, lambda p: "f.parquet", leaves, properties, 1 << 40)
    (found,) = write_parquet_files(open_storage(str(root)), write, rows, plain)
    assert found.size == (root / "f.parquet").stat().st_size
    return found


def described(root: Path) -> list[dict[str, Any]]:
    """What a reader finds in the footer; of encodings, that of the values alone."""
    columns = []
    for group in pq.ParquetFile(root / "f.parquet").metadata.to_dict()["row_groups"]:
        for c in group["columns"]:
            names = ("path_in_schema", "statistics", "num_values", "physical_type", "compression")
            columns.append({"coded": "RLE_DICTIONARY" in c["encodings"]} | {n: c[n] for n in names})
    return columns


GROUPS: dict[str, list[list[str | None]]] = {
    "few": [["b", "a", None, "c"] * 25, ["x"] * 100],
    "nulls": [["a"] * 100, [None] * 100],
    "null first": [[None] * 100, ["b", "a"] * 50],
    "empty": [["", ""] * 50],
    "long": [["a" * 5000, "b"] * 50, ["c" * 4096] * 100],
    "not ascii": [["é", "z", "\U0001f600"] * 33 + ["\uffff"]],
    "distinct": [[str(i) for i in range(100)]],
}


@pytest.mark.parametrize("name", GROUPS)
def test_encoded_strings_are_written_as_pyarrow_writes_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = texts(GROUPS[name])
    plainly = write_texts(tmp_path / "plain", rows, 100)
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    coded: list[pa.ChunkedArray] = []
    original = dictionary_of

    def noted(column: pa.ChunkedArray, most: int) -> pa.ChunkedArray | None:
        coded.append(column)
        return original(column, most)

    monkeypatch.setattr(file_writer, "dictionary_of", noted)
    found = write_texts(tmp_path / "coded", rows, 100)
    assert len(coded) == 2 * len(GROUPS[name]), "both columns of strings, in each row group"
    assert found.statistics == plainly.statistics
    assert described(tmp_path / "coded") == described(tmp_path / "plain")
    assert pq.ParquetFile(tmp_path / "coded/f.parquet").schema_arrow.equals(TEXTS)
    for read in (pq.ParquetFile(tmp_path / "coded/f.parquet").read(), pq.read_table(tmp_path / "coded/f.parquet")):
        assert read.equals(rows)


@pytest.mark.parametrize("name", GROUPS)
def test_encoded_strings_that_pyarrow_measures_too_are_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = texts(GROUPS[name])
    plainly = write_texts(tmp_path / "plain", rows, 100)
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    monkeypatch.setattr(file_writer, "without_statistics", lambda schema, columns, options: options)
    found = write_texts(tmp_path / "coded", rows, 100)
    assert found.statistics == plainly.statistics
    assert described(tmp_path / "coded") == described(tmp_path / "plain")
    assert pq.ParquetFile(tmp_path / "coded/f.parquet").read().equals(rows)


@pytest.mark.parametrize("batch", [1 << 20, 30])
def test_strings_that_become_distinct_go_on_without_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    monkeypatch.setattr(gathered_rows, "PIECE_ROWS", 0)
    monkeypatch.setattr(gathered_rows, "STEP_ROWS", batch)
    monkeypatch.setattr(file_writer, "DICTIONARY_BYTES", 100)
    rows = texts([["a", "b"] * 50, [str(i) for i in range(99)] + [None], ["c"] * 100])
    rows = pa.Table.from_batches(rows.to_batches(max_chunksize=batch))
    found = write_texts(tmp_path, rows, 100)
    assert pq.ParquetFile(tmp_path / "f.parquet").read().equals(rows.combine_chunks())
    assert (found.statistics[1].null_count, found.statistics[1].low, found.statistics[1].high) == (1, b"0", b"c")
    groups = [g["columns"][1]["statistics"] for g in pq.read_metadata(tmp_path / "f.parquet").to_dict()["row_groups"]]
    assert [(g["min"], g["max"], g["null_count"]) for g in groups] == [("a", "b", 0), ("0", "98", 1), ("c", "c", 0)]


def test_dictionary_that_becomes_too_big_for_pyarrow_is_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    rows = texts([["a", "b"] * 20_000, [f"{i:060}" for i in range(40_000)]])
    found = write_texts(tmp_path, rows, 40_000)
    assert pq.ParquetFile(tmp_path / "f.parquet").read().equals(rows)
    assert found.statistics[1].high == b"b"
    assert [c["coded"] for c in described(tmp_path) if c["path_in_schema"] == "s"] == [True, True]


@pytest.mark.parametrize(
    "options",
    [
        {"column_properties": {"s": ColumnProperties(dictionary_enabled=False)}},
        {"column_properties": {"s": ColumnProperties(encoding="DELTA_BYTE_ARRAY")}},
        {"column_properties": {"s": ColumnProperties(statistics_enabled="PAGE")}},
        {"column_properties": {"id": ColumnProperties(bloom_filter_properties=BloomFilterProperties(True))}},
        {"default_column_properties": ColumnProperties(dictionary_enabled=True)},
        {"dictionary_page_size_limit": 1000},
    ],
    ids=str,
)
def test_column_for_which_something_is_requested_is_left_to_pyarrow(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    seen: list[pa.ChunkedArray] = []
    monkeypatch.setattr(file_writer, "dictionary_of", lambda column, most: seen.append(column))
    rows = texts([["b", "a"] * 50])
    write_texts(tmp_path, rows, 100, **options)
    assert not any(c.equals(rows.column("s")) for c in seen)
    assert pq.ParquetFile(tmp_path / "f.parquet").read().equals(rows)


def test_bloom_filters_of_short_row_groups_take_little_memory(tmp_path: Path) -> None:
    code = """
import sys
import pyarrow as pa
from delta_core import BloomFilterProperties, ColumnProperties, WriterProperties, write_deltalake
chosen = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True))
for name, rows in (("short", 50), ("long", None)):
    properties = WriterProperties(max_row_group_size=rows, default_column_properties=chosen)
    write_deltalake(sys.argv[1] + name, pa.table({c: range(200) for c in "abcd"}), writer_properties=properties)
print(pa.default_memory_pool().max_memory())
"""
    found = subprocess.run([sys.executable, "-c", code, f"{tmp_path}/"], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 32 << 20
    for name, groups in (("short", 4), ("long", 1)):
        (file,) = (tmp_path / name).glob("*.parquet")
        metadata = pq.read_metadata(file)
        assert metadata.num_row_groups == groups
        assert 0 < metadata.row_group(0).column(0).bloom_filter_length < 1024


def test_columns_whose_paths_are_equal_are_left_to_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    schema = pa.schema([("a.b", pa.string()), ("a", pa.struct([("b", pa.string())])), ("s", pa.string())])
    rows = pa.table([["x"] * 9, [{"b": "y"}] * 9, ["z"] * 9], schema=schema)
    seen: list[pa.ChunkedArray] = []
    monkeypatch.setattr(file_writer, "dictionary_of", lambda column, most: seen.append(column))
    write = FileWrite(schema, lambda p: "f.parquet", (("a.b",), ("s",)), WriterProperties(), 1 << 40)
    write_parquet_files(open_storage(str(tmp_path)), write, rows, plain)
    assert [c.to_pylist() for c in seen] == [["z"] * 9]


def test_full_disk_at_the_last_bytes_of_a_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)

    original = os.write

    def full(handle: int, data: bytes) -> int:
        if data.endswith(b"PAR1"):
            raise OSError(28, "No space left on device")
        return original(handle, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(EngineError, match=r"data file 'f\.parquet'.*No space left"):
        write_texts(tmp_path, texts([["a"] * 100]), 100)
    assert not list(tmp_path.rglob("*.parquet"))


def test_footer_is_written_whole_if_the_disk_takes_it_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "CODED_ROWS", 1)
    original, parts = os.write, []

    def in_parts(handle: int, data: bytes) -> int:
        if not data.endswith(b"PAR1"):
            return original(handle, data)
        parts.append(data[:7])
        return original(handle, data[:7])

    monkeypatch.setattr(os, "write", in_parts)
    rows = texts([["a", "b"] * 50])
    write_texts(tmp_path, rows, 100)
    assert len(parts) > 3
    assert pq.ParquetFile(tmp_path / "f.parquet").read().equals(rows)
