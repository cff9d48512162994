"""Small files of a remote store: fetched whole, many at once, ahead of their decoding."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.records import FileRead
from delta_core.errors import DataFileError, DataFileNotFoundError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.parquet import data_files
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.runtime.threads import running_threads
from delta_core.schema.fields import arrow_schema
from delta_core.schema.types import BASE_TYPES, Field, StructType
from delta_core.storage import prefetch
from delta_core.testing.table_builder import TableBuilder

COLUMNS = StructType([Field("x", "long")])


class Store:
    """A store without local files, which remembers what it was queried."""

    root = "store://t"

    def __init__(self, files):
        self.files = files
        self.reads = []
        self.opened = []

    def local_path(self, path):
        return None

    def local_paths(self, paths):
        return [None for _ in paths]

    def read(self, requests):
        self.reads.append([r.path for r in requests])
        ends = [None if r.length is None else r.offset + r.length for r in requests]
        return [self._content(r.path)[r.offset : end] for r, end in zip(requests, ends, strict=True)]

    def open(self, path, size=None):
        self.opened.append(path)
        return pa.BufferReader(self._content(path))

    def _content(self, path):
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


def parquet(values):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": pa.array(values, pa.int64())}), sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def store():
    return Store({f"{i:03}": parquet([i]) for i in range(50)})


def read(store, names=None, sizes=None):
    names = sorted(store.files) if names is None else names
    sizes = [len(store.files.get(n, b"?")) for n in names] if sizes is None else sizes
    request = FileRead(names, sizes, COLUMNS, "name", arrow_schema(COLUMNS, BASE_TYPES))
    return ArrowDataFiles(store).read(request, lambda file, first, batch, *_: batch)


def values(batches):
    return [v for b in batches for v in b.column(0).to_pylist()]


def test_small_files_are_fetched_by_one_read_and_come_in_order(store):
    assert values(read(store)) == list(range(50))
    assert store.reads == [sorted(store.files)]
    assert store.opened == []


def test_windows_bound_what_is_fetched_ahead(store, monkeypatch):
    monkeypatch.setattr(prefetch, "WINDOW_FILES", 10)
    monkeypatch.setattr(data_files, "BUDGET_BYTES", 1)
    monkeypatch.setattr(data_files, "REMOTE_WORKERS", 2)
    stream = read(store)
    assert next(stream).column(0).to_pylist() == [0]
    assert len(store.reads) <= 2
    assert values(stream) == list(range(1, 50))
    assert sorted(len(r) for r in store.reads) == [10] * 5


def test_files_of_unknown_size_are_opened_and_large_ones_read_by_ranges(store, monkeypatch):
    monkeypatch.setattr(prefetch, "SMALL_BYTES", 10)
    names = sorted(store.files)
    sizes = [None if i % 2 else len(store.files[name]) for i, name in enumerate(names)]
    assert values(read(store, sizes=sizes)) == list(range(50))
    assert sorted(store.opened) == names[1::2]
    assert sorted({path for paths in store.reads for path in paths}) == names[::2]


def test_large_file_that_is_gone_is_named(store, monkeypatch):
    monkeypatch.setattr(prefetch, "SMALL_BYTES", 10)
    names = sorted(store.files)
    sizes = [len(store.files[name]) for name in names]
    del store.files["007"]
    stream = read(store, names, sizes)
    assert values(next(stream) for _ in range(7)) == list(range(7))
    with pytest.raises(DataFileNotFoundError, match="'007'"):
        next(stream)


def test_missing_file_is_the_one_that_is_named(store):
    del store.files["007"]
    names = [f"{i:03}" for i in range(50)]
    stream = read(store, names)
    assert values(next(stream) for _ in range(7)) == list(range(7))
    with pytest.raises(DataFileNotFoundError, match="'007'"):
        next(stream)


def test_torn_file_is_named(store):
    store.files["003"] = store.files["003"][:-20]
    with pytest.raises(DataFileError, match="'003'"):
        values(read(store))


def test_closing_ends_every_thread(store, monkeypatch):
    monkeypatch.setattr(prefetch, "WINDOW_FILES", 2)
    stream = read(store)
    next(stream)
    stream.close()
    deadline = time.monotonic() + 5
    while (left := {"delta-read", "delta-prefetch"} & set(running_threads())) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not left


def test_table_on_a_remote_store_reads_as_on_a_disk(tmp_path):
    table = TableBuilder("memory://prefetch")
    table.create({"id": "long", "p": "string"}, partition_by=["p"], features=["deletionVectors"])
    table.append([{"id": i, "p": "ab c%"[i % 5]} for i in range(50)]).delete_rows(lambda r: r["id"] % 7 == 0)
    scan = open_snapshot(table.uri).scan(metadata=["_file_path"])
    found = scan.to_table()
    assert found.select(["id", "p"]).to_pydict() == table.expected().to_pydict()
    assert all(p.startswith("memory://prefetch/p=") for p in found.column("_file_path").to_pylist())
    assert open_snapshot(table.uri).scan().count() == found.num_rows
