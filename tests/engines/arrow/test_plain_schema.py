"""Arrow's schemas of Parquet files that are made without PyArrow are those that PyArrow makes."""

from __future__ import annotations

import io
import random
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from delta_core.parquet._footer import Footer
from delta_core.parquet.opened_file import DataFile, Layout, leaf_of
from delta_core.parquet.plain_schema import plain_schema
from delta_core.parquet.reader import ParquetFile

PLAIN = [
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
]
OTHER = [
    pa.int8(),
    pa.uint32(),
    pa.uint64(),
    pa.float16(),
    pa.decimal128(9, 2),
    pa.decimal128(30, 2),
    pa.binary(4),
    pa.time64("us"),
    pa.timestamp("ms"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("us", "Europe/Rome"),
    pa.timestamp("us", "+00:00"),
    pa.duration("us"),
    pa.date64(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.list_(pa.int64()),
    pa.struct({"a": pa.int64()}),
    pa.map_(pa.string(), pa.int64()),
    pa.null(),
    pa.uuid(),
    pa.json_(),
]


def file_of(schema: pa.Schema, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(schema.empty_table(), out, **options)
    return out.getvalue()


def own_schema(data: bytes) -> Any:
    size = int.from_bytes(data[-8:-4], "little")
    footer = Footer(data[-8 - size : -8])
    assert footer.is_known
    elements, pairs = footer.schema(), footer.metadata()
    assert elements is not None
    assert pairs is not None
    return plain_schema(elements, pairs)


def assert_alike(found: Any, data: bytes) -> None:
    with closing(ParquetFile(pa.BufferReader(data))) as file:
        assert found[0].equals(file.schema_arrow.remove_metadata(), check_metadata=True)
        columns = [leaf_of(file.schema.column(i)) for i in range(len(file.metadata.schema))]
    assert [level for _, level in found[1]] == [leaf.most_level for leaf in columns]


@pytest.mark.parametrize("type", PLAIN, ids=str)
@pytest.mark.parametrize("is_stored", [True, False])
def test_common_types_need_no_arrow(type: pa.DataType, is_stored: bool) -> None:
    data = file_of(pa.schema([pa.field("a", type), pa.field("b", type, nullable=False)]), store_schema=is_stored)
    found = own_schema(data)
    assert found is not None
    assert found[0].types == [type, type]
    assert_alike(found, data)


@given(st.data())
def test_schema_is_that_of_pyarrow_or_left_to_it(data: st.DataObject) -> None:
    fields = data.draw(
        st.lists(
            st.builds(
                pa.field,
                st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
                st.sampled_from(PLAIN + OTHER),
                st.booleans(),
                st.sampled_from([None, {"PARQUET:field_id": "7"}, {"PARQUET:field_id": "-2"}, {"comment": "c"}]),
            ),
            min_size=1,
            max_size=4,
        )
    )
    schema = pa.schema(fields, data.draw(st.sampled_from([None, {"a": "b"}])))
    file = file_of(schema, store_schema=data.draw(st.booleans()))
    found = own_schema(file)
    if found is not None:
        assert_alike(found, file)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_schemas_are_left_to_pyarrow_or_read_alike(seed: int) -> None:
    schema = pa.schema([pa.field(f"c{i}", t, i % 2 == 0, {"PARQUET:field_id": str(i)}) for i, t in enumerate(PLAIN)])
    chance, whole, kinds = random.Random(seed), file_of(schema, store_schema=seed % 2 == 0), set[bool]()
    size = int.from_bytes(whole[-8:-4], "little")
    for _ in range(500):
        data = bytearray(whole)
        data[len(data) - 8 - chance.randrange(1, size)] = chance.randrange(256)
        footer = Footer(bytes(data[-8 - size : -8]))
        elements, pairs = footer.schema(), footer.metadata()
        found = None if elements is None or pairs is None else plain_schema(elements, pairs)
        kinds.add(found is None)
        if found is None:
            continue
        try:
            file = ParquetFile(pa.BufferReader(bytes(data)))
        except (pa.ArrowException, OSError):
            continue  # of another part of the footer
        with closing(file):
            assert found[0].equals(file.schema_arrow.remove_metadata(), check_metadata=True)
    assert kinds == {True, False}


def layout_of(data: bytes) -> Layout:
    with closing(DataFile(pa.BufferReader(data))) as file:
        return file.layout


def test_files_of_other_writers_need_no_arrow(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    query = (
        "select 1::bigint id, 'a' as name, 1.5::double x, date '2024-01-01' as day, true as flag, 1::tinyint as i8, "
        "1::smallint as i16, 1::int as i32, timestamp '2024-01-01' as t, timestamptz '2024-01-01 00:00:00+00' as u"
    )
    duckdb.sql(query).write_parquet(str(tmp_path / "duckdb.parquet"))
    polars.DataFrame({"id": [1], "name": ["a"], "x": [1.5]}).write_parquet(tmp_path / "polars.parquet")
    for name in ("duckdb", "polars"):
        data = (tmp_path / f"{name}.parquet").read_bytes()
        assert_alike(own_schema(data), data)
        monkeypatch.setattr(DataFile, "_arrow_schema", lambda _: pytest.fail("PyArrow opened the file"))
        assert layout_of(data).schema.names[:3] == ["id", "name", "x"]
        monkeypatch.undo()


def test_row_group_that_lacks_a_column_is_left_to_pyarrow() -> None:
    # a chunk of the last column alone is missing: its list of chunks has one less
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "x": [1.5, 2.5]}), out)
    data = out.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    footer = Footer(data[-8 - size : -8])
    assert footer.has_chunks(2)
    assert not footer.has_chunks(3)
