"""Arguments and methods that older versions of PyArrow lack."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import (
    BloomFilterProperties,
    ColumnProperties,
    DeltaTable,
    WriterProperties,
    open_table,
    write_deltalake,
)
from delta_core.errors import UnsupportedOperationError
from delta_core.kernels.arrow_buffers import joined_batches
from delta_core.parquet import options
from delta_core.storage import open_files

ROWS = pa.table({"id": [1, 2, 3]})
FILTER = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True))


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        (WriterProperties(data_page_row_count_limit=10), "data_page_row_count_limit needs pyarrow 23"),
        (WriterProperties(column_properties={"id": FILTER}), "bloom_filter_properties needs pyarrow 24"),
        (WriterProperties(default_column_properties=FILTER), "bloom_filter_properties needs pyarrow 24"),
    ],
    ids=["rows of a page", "filter of a column", "filter of all columns"],
)
def test_property_that_an_older_writer_lacks_is_rejected_by_name(
    properties: WriterProperties, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "ARROW_VERSION", 18)
    with pytest.raises(UnsupportedOperationError, match=named):
        write_deltalake(tmp_path / "t", ROWS, writer_properties=properties)
    assert not list(tmp_path.rglob("*.parquet"))
    write_deltalake(tmp_path / "t", ROWS)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 3


@pytest.mark.skipif(os.name == "nt", reason="no open file is replaced on Windows")
def test_descriptor_and_content_are_of_one_file_though_its_name_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"first")
    other.write_bytes(b"other")
    with open_files._FileWithDescriptor(str(path), "rb") as file:
        inode = path.stat().st_ino
        other.replace(path)
        assert os.fstat(file.fileno()).st_ino == inode
        assert (file.size(), file.read()) == (5, b"first")


@pytest.mark.skipif(os.name == "nt", reason="reads open descriptors of the system")
def test_descriptor_is_closed_with_its_file_or_when_it_is_dropped(tmp_path: Path) -> None:
    with open_files._FileWithDescriptor(str(tmp_path / "a"), "wb") as file:
        file.write(b"abc")
        descriptor = file.fileno()
    assert (tmp_path / "a").read_bytes() == b"abc"
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)
    descriptor = open_files._FileWithDescriptor(str(tmp_path / "a"), "rb").fileno()
    gc.collect()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def test_missing_file_is_reported_and_leaks_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_files._FileWithDescriptor(str(tmp_path / "none"), "rb")


COLUMNS = st.sampled_from(
    [
        pa.array([1, None, 3]),
        pa.array(["a", None, "c"]),
        pa.array([[1], None, []], pa.list_(pa.int32())),
        pa.array([{"x": None}, None, {"x": 2}], pa.struct([pa.field("x", pa.int64())])),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([None, True, False]),
    ]
)


@given(st.lists(COLUMNS, max_size=4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_joined_batches_have_the_rows_and_the_schema(columns: list[pa.Array], cuts: list[tuple[int, int]]) -> None:
    fields = [pa.field(str(i), c.type, metadata={"n": str(i)}) for i, c in enumerate(columns)]
    schema = pa.schema(fields, {"of": "all"})
    whole = pa.RecordBatch.from_arrays(columns, schema=schema)
    parts = [whole.slice(first, count) for first, count in cuts]
    joined = joined_batches(parts)
    joined.validate(full=True)
    assert joined.schema.equals(schema, check_metadata=True)
    assert joined.num_rows == sum(p.num_rows for p in parts)
    assert joined.to_pylist() == [row for p in parts for row in p.to_pylist()]


TEXTS = ["a", None, "a text of more than twelve bytes"] * 5_000


@pytest.mark.parametrize(
    ("found", "values"),
    [
        (pa.string_view(), TEXTS),
        (pa.binary_view(), [None if t is None else t.encode() for t in TEXTS]),
        (pa.list_(pa.string_view()), [None if t is None else [t, None] for t in TEXTS]),
        (pa.struct([("s", pa.string_view())]), [{"s": t} for t in TEXTS]),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", ["table", "reader"])
def test_views_are_written_though_no_bytes_of_them_are_counted(
    found: pa.DataType, values: list[object], source: str, tmp_path: Path
) -> None:
    rows = pa.table({"id": range(len(values)), "v": pa.array(values, found)})
    write_deltalake(tmp_path, rows if source == "table" else rows.to_reader(1_000), target_file_size=100_000)
    table = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert table.column("v").to_pylist() == values
    DeltaTable(tmp_path).optimize.compact()
    assert DeltaTable(tmp_path).to_pyarrow_table().sort_by("id").equals(table)


@pytest.mark.parametrize(
    "texts", [TEXTS, [f"text {i}, which is not repeated" for i in range(15_000)]], ids=["few", "many"]
)
def test_rows_are_read_as_views(texts: list[str | None], tmp_path: Path) -> None:
    for _ in range(3):
        write_deltalake(tmp_path, pa.table({"s": texts}), mode="append")
    batches = list(open_table(tmp_path).scan().view_batches())
    assert [t for b in batches for t in b.column("s").to_pylist()] == texts * 3
