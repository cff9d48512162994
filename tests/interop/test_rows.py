"""Small batches reach other libraries together, in their order."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ColumnNotFoundError
from delta_core.scan.interop.predicates import prunable
from delta_core.scan.interop.rows import gathered, shared_out
from delta_core.schema.types import PrimitiveType
from delta_core.testing.table_builder import TableBuilder


@given(sizes=st.lists(st.sampled_from([0, 1, 5_000, 8_191, 8_192, 40_000]), max_size=20))
def test_gathered_rows_are_the_same_in_fewer_batches(sizes: list[int]) -> None:
    table = pa.table({"x": pa.array(range(sum(sizes)), pa.int64())})
    batches = []
    for size in sizes:
        start = sum(b.num_rows for b in batches)
        batches.append(pa.RecordBatch.from_arrays([table["x"].slice(start, size).combine_chunks()], ["x"]))
    found = list(gathered(iter(batches)))
    assert pa.Table.from_batches(found, table.schema).equals(table)
    small = [b.num_rows < 8_192 for b in found]
    # no two of them are next to one another, unless the first one had enough
    assert not any(a and b for a, b in itertools.pairwise(small))


def test_gathered_strings_never_outgrow_an_array() -> None:
    batch = pa.record_batch({"x": ["x" * 1_000_000]})
    found = [b.num_rows for b in gathered([batch] * 30)]
    assert sum(found) == 30
    assert max(found) <= 9


def test_small_batches_of_other_types_are_not_joined() -> None:
    plain = pa.record_batch({"s": ["a", None]})
    views = pa.record_batch({"s": pa.array(["b"], pa.string_view())})
    found = list(gathered([plain, plain, views, views, plain]))
    assert [b.num_rows for b in found] == [4, 2, 2]
    assert [s for b in found for s in b["s"].to_pylist()] == ["a", None, "a", None, "b", "b", "a", None]


@given(sizes=st.lists(st.sampled_from([0, 1, 16_384, 16_385, 100_000, 300_000]), max_size=5))
def test_first_rows_are_shared_out_in_several_batches(sizes: list[int]) -> None:
    table = pa.table({"x": pa.array(range(sum(sizes)), pa.int64())})
    ends = list(itertools.accumulate(sizes, initial=0))
    batches = [table.slice(a, b - a).combine_chunks().to_batches()[:1] for a, b in itertools.pairwise(ends)]
    given_batches = [b for some in batches for b in some]
    found = list(shared_out(iter(given_batches)))
    assert pa.Table.from_batches(found, table.schema).equals(table)
    assert len(found) <= len(given_batches) + 8
    if sizes and sizes[0] == 100_000:
        assert [b.num_rows for b in found[:6]] == [16_384] * 6


def test_repeated_strings_reach_polars_as_views(tmp_path: Path) -> None:
    texts = pa.array(["", "n7", "a text of more than twelve bytes", None])
    codes = pa.array(np.arange(40_000) % 4)
    rows = pa.table({"id": np.arange(40_000), "s": texts.take(codes), "own": [f"{i:>20}" for i in range(40_000)]})
    write_deltalake(tmp_path, rows)
    write_deltalake(tmp_path, rows.slice(0, 30), mode="append")
    scan = DeltaTable(tmp_path).scan()
    kinds = {str(b.schema.field("s").type) for b in scan.view_batches()}
    assert kinds == {"string_view", "string"}
    expected = scan.to_table()
    assert pl.DataFrame(expected).equals(DeltaTable(tmp_path).to_polars().collect())
    wanted = (pl.col("s") == "n7") | pl.col("s").is_null()
    found = DeltaTable(tmp_path).to_polars().filter(wanted).select("s", "own").collect()
    assert found.equals(pl.DataFrame(expected).filter(wanted).select("s", "own"))
    assert found.height == 20_015


def test_encoded_batches_have_the_rows(tmp_path: Path) -> None:
    names = pa.array(["x", None, "y"] * 20_000)
    write_deltalake(tmp_path, pa.table({"id": range(60_000), "s": names, "part": ["a", "b", "b"] * 20_000}))
    for predicate in (None, "id % 7 < 3", "s = 'x'", "id < 100"):
        scan = DeltaTable(tmp_path).scan(["s", "id"], predicate=predicate)
        batches = list(scan.encoded_batches())
        assert any(pa.types.is_dictionary(b.schema.field("s").type) for b in batches)
        decoded = [b.set_column(0, "s", b["s"].cast(pa.string())) for b in batches]
        assert pa.Table.from_batches(decoded).equals(scan.to_table())


def test_small_batches_with_and_without_codes_are_joined_if_a_field_is_not_nullable(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])
    for start, count in ((0, 10), (1_000, 300_000), (0, 20)):
        ids = range(start, start + count)
        write_deltalake(tmp_path, pa.table({"id": ids, "s": [f"v{i % 3}" for i in ids]}, schema=schema), mode="append")
    dataset = DeltaTable(tmp_path).dataset(encoded=True)
    found = dataset.to_table(filter=pc.field("id") < 1_005)
    assert found.schema == dataset.schema
    assert not found.schema.field("id").nullable
    assert sorted(found["id"].to_pylist()) == sorted([*range(10), *range(1_000, 1_005), *range(20)])


def test_encoded_datasets_are_sorted_and_joined_and_have_columns_of_other_codes(tmp_path: Path) -> None:
    for count in (20_000, 20):
        rows = {"id": range(count), "s": [f"v{i * count % 7}" for i in range(count)], "t": ["x"] * count}
        write_deltalake(tmp_path, pa.table(rows), mode="append")
    plain, encoded = DeltaTable(tmp_path).dataset(), DeltaTable(tmp_path).dataset(encoded=True)
    order = [("s", "ascending"), ("id", "ascending")]
    assert encoded.sort_by(order).to_table().equals(plain.sort_by(order).to_table())
    keys = pa.table({"s": ["v1", "v3"], "n": [1, 3]})
    joined = encoded.join(keys, "s", join_type="inner").to_table()
    assert joined.num_rows > 5_000
    assert joined.sort_by(order).equals(plain.join(keys, "s", join_type="inner").to_table().sort_by(order))
    both = plain.join(encoded, "id", right_suffix="_r").to_table()
    assert both.num_rows == 20_060
    chosen = {"k": pc.field("s").cast(pa.dictionary(pa.int8(), pa.string()))}
    for kept in (None, pc.field("id") * 2 < 30):
        found = encoded.to_table(columns=chosen, filter=kept)
        found.validate(full=True)
        assert found["k"].to_pylist() == plain.to_table(columns=chosen, filter=kept)["k"].to_pylist()


def test_dictionaries_of_encoded_datasets_have_no_nulls(tmp_path: Path) -> None:
    for start in (0, 30_000):
        texts = [None if i % 3 else f"own {i}" for i in range(start, start + 30_000)]
        write_deltalake(tmp_path, pa.table({"s": texts, "none": pa.nulls(30_000, pa.string())}), mode="append")
    plain, encoded = DeltaTable(tmp_path).dataset(), DeltaTable(tmp_path).dataset(encoded=True)
    found = encoded.to_table()
    assert not any(chunk.dictionary.null_count for column in found.columns for chunk in column.chunks)
    found.validate(full=True)
    numbers = [0, 1, 3, 59_999, 33_000]
    assert encoded.take(numbers).cast(plain.schema).equals(plain.take(numbers))
    assert found.cast(plain.schema).equals(plain.to_table())


def test_filter_is_left_to_pyarrow_only_where_it_means_something_else(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"i": [1, 2], "f": [1.0, 2.0], "s": ["a", "b"]}))
    snapshot = DeltaTable(tmp_path).snapshot()
    i, f, s = pc.field("i"), pc.field("f"), pc.field("s")
    listed = pc.if_else(i.is_valid(), i.isin([1, 2]), pa.scalar(None, pa.bool_()))  # as DuckDB writes ``in``
    texts = (pc.starts_with(s, "a"), pc.ends_with(s, "a"), ~pc.match_substring(s, "a"))
    for whole in (listed, ~listed, listed | (s == "a"), *texts):
        assert prunable(snapshot, whole).is_all, str(whole)
    for whole in (i > 1, (f < 1.5) & (s == "a"), f == 1, f != 1, i.isin([1, 2]) | s.is_null(), ~(i > 1), f.is_valid()):
        assert prunable(snapshot, whole).is_all, str(whole)
    plain_and = ~pc.and_(i > 1, s == "a")  # null if one of its parts is
    for part in (plain_and, f > 1.5, f.isin([1.0]), ~(f < 1.5), (i > 1) & (i + 1 > 2), pc.scalar(1.5) < f):
        assert not prunable(snapshot, part).is_all, str(part)


def test_filters_on_parts_of_a_variant_are_left_to_the_library(tmp_path: Path) -> None:
    schema = {"id": PrimitiveType("long"), "v": PrimitiveType("variant")}
    table = TableBuilder(tmp_path).create(schema, features=["variantType"])
    parts = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    rows = [{"metadata": b"\x01\x00\x00", "value": bytes([12, i])} for i in range(3)]
    table.append(pa.table({"id": [0, 1, 2], "v": pa.array([*rows[:2], None], parts)}))
    handle = DeltaTable(tmp_path)
    part = pl.col("v").struct.field("value")
    frame = handle.to_polars()
    assert frame.filter(part == b"\x0c\x01").collect()["id"].to_list() == [1]
    assert frame.filter(part.is_null() & (pl.col("id") > 0)).collect()["id"].to_list() == [2]
    dataset = handle.dataset()
    value = pc.field("v", "value")
    assert dataset.to_table(filter=value == b"\x0c\x01")["id"].to_pylist() == [1]
    assert dataset.to_table(columns=["id"], filter=value.is_null() & (pc.field("id") > 0))["id"].to_pylist() == [2]
    with pytest.raises(ColumnNotFoundError):
        dataset.to_table(filter=pc.field("nothing") > 1)


def test_filter_on_many_files_hands_over_one_batch(tmp_path: Path) -> None:
    for start in range(0, 40, 10):
        write_deltalake(tmp_path, pa.table({"id": list(range(start, start + 10))}), mode="append")
    table = DeltaTable(tmp_path)
    wanted = (pc.field("id") >= 5) & (pc.field("id") < 35)
    batches = list(table.dataset().to_batches(columns=["id"], filter=wanted))
    assert [len(b) for b in batches] == [30]
    frame = table.to_polars().filter(pl.col("id").is_between(5, 34)).sort("id").collect()
    assert frame["id"].to_list() == list(range(5, 35))
    assert table.to_polars().head(3).collect().height == 3
