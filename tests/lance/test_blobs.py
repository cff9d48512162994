"""Blobs: their bytes in scans and as files, for each place where a writer puts them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import (
    DataFileError,
    DataFileNotFoundError,
    ExternalPathError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from delta_plugins.lance import blobs as blobs_module
from delta_plugins.lance.blobs import BlobFile, check_readable_blobs, slices_by_size
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.schema import LanceField
from tests.lance.recorded_files import FOLDER, datasets

BLOB = {"lance-encoding:blob": "true"}


def bytes_of(dataset: LanceDataset, column: str = "b", rows: list[int] | None = None) -> list[bytes | None]:
    files = dataset.take_blobs(column, range(dataset.count()) if rows is None else rows)
    return [None if f is None else f.readall() for f in files]


# --- recorded by other writers -------------------------------------------------------------


@pytest.mark.golden
@pytest.mark.parametrize("name", [n for n in datasets() if not isinstance(n, str) or "--blob-" in n])
def test_recorded_blobs_have_the_bytes_of_their_descriptors(name: str) -> None:
    assert FOLDER is not None
    dataset = open_dataset(str(FOLDER / name))
    described, table = dataset.to_pyarrow_table(), dataset.to_pyarrow_table(blobs="bytes")
    assert table.schema.field("b").type == pa.large_binary()
    found = table["b"].to_pylist()
    assert bytes_of(dataset) == found
    for blob, descriptor in zip(found, described["b"].to_pylist(), strict=True):
        assert descriptor is None or (descriptor["size"] == len(blob or b""))
    assert any(found)


# --- written by pylance --------------------------------------------------------------------


def write_blobs(folder: Path, version: str, **options: Any) -> list[bytes | None]:
    """Write a dataset with blobs of each place that the version has, two fragments; return their bytes."""
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    values: list[bytes | None] = [b"abc", None, b"", b"x" * 70_000, None, bytes(range(256)) * 9000]
    if version == "2.2":
        from lance.blob import blob_array, blob_field

        column, field = blob_array(values), blob_field("b")
    else:
        column, field = pa.array(values, pa.large_binary()), pa.field("b", pa.large_binary(), metadata=BLOB)
    table = pa.table([pa.array(range(len(values))), column], schema=pa.schema([pa.field("id", pa.int64()), field]))
    lance.write_dataset(table, str(folder), data_storage_version=version, max_rows_per_file=4, **options)
    return values


VERSIONS = ("2.0", "2.1", "2.2")
peer = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def marked(function: Any) -> Any:
    for mark in peer:
        function = mark(function)
    return function


@marked
@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_equal_those_that_were_written(tmp_path: Path, version: str) -> None:
    values = write_blobs(tmp_path / "d", version)
    dataset = open_dataset(str(tmp_path / "d"))
    assert dataset.to_pyarrow_table(blobs="bytes").to_pydict() == {"id": list(range(len(values))), "b": values}
    some = dataset.scan(["b"], "id in (1, 3, 5)", blobs="bytes", metadata=["_rowaddr"]).to_table()
    assert some["b"].to_pylist() == [values[i] for i in (1, 3, 5)]
    assert dataset.take([5, 0, 5, 1], ["b"], blobs="bytes")["b"].to_pylist() == [values[i] for i in (5, 0, 5, 1)]
    assert bytes_of(dataset, rows=[5, 0, 5, 1]) == [values[i] for i in (5, 0, 5, 1)]
    assert dataset.scan(limit=2, blobs="bytes").to_table()["b"].to_pylist() == values[:2]
    assert [f and f.readall() for f in dataset.take_blobs("b", [1 << 32 | 1], by="address")] == [values[5]]


@marked
@marked
def test_large_blobs_in_files_of_their_own_are_read(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    from lance.blob import blob_array, blob_field

    values = [bytes(range(256)) * 24_576, None, b"small", bytes(5 << 20)]
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("b")])
    rows = pa.table({"id": range(4), "b": blob_array(values)}, schema=schema)
    lance.write_dataset(rows, str(tmp_path / "t"), data_storage_version="2.2")
    dataset = open_dataset(str(tmp_path / "t"))
    kinds = [None if d is None else d["kind"] for d in dataset.to_pyarrow_table()["b"].to_pylist()]
    assert kinds == [2, None, 0, 2]
    assert bytes_of(dataset) == values
    assert bytes_of(dataset, rows=[3, 0]) == [values[3], values[0]]
    assert dataset.to_pyarrow_table(blobs="bytes")["b"].to_pylist() == values


def test_blobs_below_structs_are_read_and_null_structs_have_none(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    from lance.blob import blob_array, blob_field

    values = [b"abc", None, b"y" * 70_000]
    column = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3]), blob_array(values)], fields=[pa.field("x", pa.int64()), blob_field("b")]
    )
    lance.write_dataset(pa.table({"s": column}), str(tmp_path / "d"), data_storage_version="2.2")
    dataset = open_dataset(str(tmp_path / "d"))
    expected = [{"x": i + 1, "b": v} for i, v in enumerate(values)]
    assert dataset.to_pyarrow_table(blobs="bytes")["s"].to_pylist() == expected
    assert bytes_of(dataset, "s.b") == values
    with pytest.raises(InvalidArgumentError, match=r"'s' is of type 'struct', expected a column of blobs"):
        dataset.take_blobs("s", [0])


def write_external(folder: Path, **options: Any) -> bytes:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    from lance.blob import Blob, blob_array, blob_field

    data = bytes(range(256))
    (folder / "outside").mkdir()
    (folder / "outside" / "file.bin").write_bytes(data)
    uri = f"file://{folder}/outside/file.bin"
    column = blob_array([Blob(uri=uri), Blob(uri=uri, position=10, size=5)])
    table = pa.table([column], schema=pa.schema([blob_field("b")]))
    lance.write_dataset(table, str(folder / "d"), data_storage_version="2.2", **options)
    return data


@marked
def test_external_blobs_are_whole_files_or_parts_of_them(tmp_path: Path) -> None:
    data = write_external(tmp_path, allow_external_blob_outside_bases=True)
    dataset = open_dataset(str(tmp_path / "d"))
    assert dataset.to_pyarrow_table(blobs="bytes")["b"].to_pylist() == [data, data[10:15]]
    assert bytes_of(dataset) == [data, data[10:15]]


@marked
def test_external_blobs_below_a_base_path_are_found_there(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    base = lance.DatasetBasePath(str(tmp_path / "outside"), name="x", is_dataset_root=False, id=3)
    data = write_external(tmp_path, initial_bases=[base])
    assert bytes_of(open_dataset(str(tmp_path / "d"))) == [data, data[10:15]]


@marked
def test_external_blobs_obey_allow_external(tmp_path: Path) -> None:
    write_external(tmp_path, allow_external_blob_outside_bases=True)
    dataset = open_dataset(str(tmp_path / "d"), allow_external=False)
    assert dataset.to_pyarrow_table().num_rows == 2
    for read in (lambda: dataset.take_blobs("b", [0]), lambda: dataset.to_pyarrow_table(blobs="bytes")):
        with pytest.raises(ExternalPathError, match=r"file\.bin"):
            read()


@marked
def test_external_file_that_was_cut_is_rejected(tmp_path: Path) -> None:
    write_external(tmp_path, allow_external_blob_outside_bases=True)
    (tmp_path / "outside" / "file.bin").write_bytes(b"short")
    with pytest.raises(DataFileError, match="it has 5 bytes from byte 10 on, but the file has 5 bytes"):
        bytes_of(open_dataset(str(tmp_path / "d")))


@marked
@pytest.mark.parametrize("is_cut", [True, False])
def test_packed_or_dedicated_file_that_was_cut_or_removed_is_rejected(tmp_path: Path, is_cut: bool) -> None:
    write_blobs(tmp_path / "d", "2.2")
    dataset = open_dataset(str(tmp_path / "d"))
    for path in (tmp_path / "d").rglob("*.blob"):
        if is_cut:
            path.write_bytes(path.read_bytes()[:-1])
        else:
            path.unlink()
    assert bytes_of(dataset, rows=[0, 1, 2]) == [b"abc", None, b""]
    for row in (3, 5):
        with pytest.raises(DataFileError if is_cut else DataFileNotFoundError, match=r"\.blob"):
            bytes_of(dataset, rows=[row])


@marked
def test_batches_with_large_blobs_have_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = write_blobs(tmp_path / "d", "2.1")
    monkeypatch.setattr(blobs_module, "_BATCH_BYTES", 50_000)
    batches = list(open_dataset(str(tmp_path / "d")).scan(["b"], blobs="bytes").batches())
    assert [b.num_rows for b in batches] == [3, 1, 1, 1]
    assert pa.Table.from_batches(batches)["b"].to_pylist() == values


@marked
def test_unknown_choice_of_blobs_is_rejected(tmp_path: Path) -> None:
    write_blobs(tmp_path / "d", "2.0")
    with pytest.raises(InvalidArgumentError, match="blobs is 'byte', expected 'descriptor' or 'bytes'"):
        open_dataset(str(tmp_path / "d")).scan(blobs="byte")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="'id' is of type 'int64', expected a column of blobs"):
        open_dataset(str(tmp_path / "d")).take_blobs("id", [0])


# --- parts ---------------------------------------------------------------------------------


def test_blobs_in_lists_are_rejected_by_name() -> None:
    blob = LanceField(2, 1, "item", "large_binary", metadata={"lance-encoding:blob": b"true"})
    fields = [LanceField(0, -1, "s", "struct", children=(LanceField(1, 0, "l", "list", children=(blob,)),))]
    with pytest.raises(UnsupportedFeatureError, match=r"Column 's\.l' of type 'list' has blobs"):
        check_readable_blobs(fields)


class Memory:
    """A storage with one file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []

    def read(self, requests: Any) -> list[bytes]:
        self.ranges += [(r.offset, r.length) for r in requests]
        return [self.data[r.offset : r.offset + r.length] for r in requests]


def test_blob_file_reads_ranges_of_its_blob_only() -> None:
    storage = Memory(bytes(range(100)))
    file = BlobFile(storage, "f", 10, 20)  # type: ignore[arg-type]
    assert file.size == 20
    assert file.readable()
    assert file.seekable()
    assert not file.writable()
    assert file.seek(-4, io.SEEK_END) == 16
    assert file.read(100) == bytes(range(26, 30))
    assert file.read(1) == file.readall() == b""
    file.seek(3)
    assert file.read(2) == bytes([13, 14])
    assert file.tell() == 5
    assert file.seek(50) == 50
    assert file.read() == b""
    assert storage.ranges == [(26, 4), (13, 2)]
    assert io.BufferedReader(file.again()).read() == bytes(range(10, 30))
    with pytest.raises(ValueError, match="Found byte -1"):
        file.seek(-1)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(1)


def test_blob_whose_file_became_shorter_is_rejected() -> None:
    file = BlobFile(Memory(b"abc"), "f", 1, 5)  # type: ignore[arg-type]
    with pytest.raises(DataFileError, match="ends at byte 3, but 5 bytes from byte 1 on were expected"):
        file.read()


def test_rows_without_blobs_are_one_slice() -> None:
    assert list(slices_by_size([[None] * 5, [None] * 5], 5)) == [slice(0, 5)]
    assert list(slices_by_size([], 0)) == []
