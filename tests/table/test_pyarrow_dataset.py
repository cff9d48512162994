"""to_pyarrow_dataset: right rows with pyarrow's own pruning, or a rejection that specifies why."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest
from hypothesis import example, given, strategies as st

from delta_core import DeltaTable, WriterProperties, write_deltalake
from delta_core.errors import UnsupportedOperationError
from delta_core.testing.table_builder import TableBuilder


def _ids(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def test_dataset_is_pyarrows_own_with_the_tables_rows(builder: TableBuilder) -> None:
    dataset = DeltaTable(builder.uri).to_pyarrow_dataset()
    assert type(dataset) is ds.FileSystemDataset
    assert dataset.to_table().sort_by("id").equals(builder.expected().sort_by("id"))


def test_fragments_promise_partition_values_and_bounds(builder: TableBuilder) -> None:
    promises = {str(f.partition_expression) for f in DeltaTable(builder.uri).to_pyarrow_dataset().get_fragments()}
    assert any("is_null(kind" in p for p in promises)
    assert any('kind == "a"' in p and "id >= 1" in p and "id <= 1" in p for p in promises)
    assert not any("amount" in p for p in promises), "bounds of floats leave NaN out"


def test_pyarrow_opens_only_files_that_may_match(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    Path(table.file_uris(file_pruning_predicate="id = 1")[0]).unlink()
    dataset = table.to_pyarrow_dataset()
    assert _ids(dataset.to_table(filter=(pc.field("id") > 2) & (pc.field("kind") == "a"))) == [4]
    assert _ids(dataset.to_table(filter=pc.field("kind") == "b")) == [2]


def test_predicate_and_partitions_choose_the_files(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    assert len(table.to_pyarrow_dataset(file_pruning_predicate="kind = 'a'").files) == 2
    assert len(table.to_pyarrow_dataset([("kind", "=", "")]).files) == 1


def test_file_system_of_the_caller_is_rooted_at_the_table(builder: TableBuilder) -> None:
    rooted = pafs.SubTreeFileSystem(builder.uri, pafs.LocalFileSystem())
    table = DeltaTable(builder.uri)
    assert _ids(table.to_pyarrow_dataset(filesystem=rooted).to_table()) == [1, 2, 3, 4]
    found = table.to_pyarrow_table(filesystem=rooted, columns=["id"], filters=[("id", ">", 2)])
    assert _ids(found) == [3, 4]


def test_table_on_another_store_is_read_through_its_storage() -> None:
    made = TableBuilder("memory://dataset/t").create({"id": "long", "p": "string"}, partition_by=["p"])
    made.append([{"id": 1, "p": "a b"}, {"id": 2, "p": "c%"}])
    assert _ids(DeltaTable(made.uri).to_pyarrow_dataset().to_table(filter=pc.field("p") == "c%")) == [2]


def test_schema_of_the_caller_and_large_types_are_used(builder: TableBuilder) -> None:
    table = DeltaTable(builder.uri)
    assert table.to_pyarrow_dataset(as_large_types=True).to_table().schema.field("kind").type == pa.large_string()
    own = pa.schema([("id", pa.int64()), ("kind", pa.large_string())])
    assert table.to_pyarrow_dataset(schema=own).to_table().schema == own


@pytest.mark.parametrize("kind", [ds.ParquetReadOptions, dict])
def test_dictionary_columns_of_the_read_options_stay_encoded(kind: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"name": "string"}).append([{"name": "a"}, {"name": "a"}])
    options = kind(dictionary_columns=["name"])
    found = DeltaTable(made.uri).to_pyarrow_dataset(parquet_read_options=options).to_table()
    assert pa.types.is_dictionary(found.schema.field("name").type)


def test_int96_beyond_nanoseconds_is_read_right(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"t": "timestamp"})
    far = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    made.append([{"t": far}], parquet={"use_deprecated_int96_timestamps": True})
    assert DeltaTable(made.uri).to_pyarrow_dataset().to_table().column("t").to_pylist() == [far]


def test_older_files_fill_new_columns_and_nested_fields_with_null(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create(pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))]))
    made.append([{"id": 1, "s": {"x": 1}}])
    grown = pa.struct([("x", pa.int32()), ("y", pa.string())])
    made.alter(pa.schema([("id", pa.int64()), ("s", grown), ("n", pa.string())]))
    made.append([{"id": 2, "s": {"x": 2, "y": "b"}, "n": "c"}])
    table = DeltaTable(made.uri)
    assert table.to_pyarrow_dataset().to_table().sort_by("id").equals(table.to_pyarrow_table().sort_by("id"))


# --- rejections ------------------------------------------------------------------------------


def _refused(table: DeltaTable, words: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=words) as caught:
        table.to_pyarrow_dataset()
    assert "to_pyarrow_table" in str(caught.value), "the message specifies what serves instead"


def test_files_with_deleted_rows_are_rejected(vectors: TableBuilder) -> None:
    _refused(DeltaTable(vectors.uri), "deletionVectors drops rows")


def test_table_that_could_have_vectors_but_has_none_is_served(vectors: TableBuilder) -> None:
    assert _ids(DeltaTable(vectors.uri, version=1).to_pyarrow_dataset().to_table()) == list(range(6))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_rejected(tmp_path: Path, mode: Any) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, column_mapping=mode).append([{"id": 1}])
    _refused(DeltaTable(made.uri), "another name")


def test_variants_are_rejected(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"v": "variant"}, features=["variantType"])
    _refused(DeltaTable(made.uri), "variant")


@pytest.mark.parametrize("statistics", [True, False])
def test_files_that_may_use_the_julian_calendar_are_rejected(tmp_path: Path, statistics: bool) -> None:
    legacy = {b"org.apache.spark.version": b"2.4.5"}
    table = pa.table({"d": pa.array([dt.date(1500, 1, 1)])}).replace_schema_metadata(legacy)
    made = (
        TableBuilder(tmp_path / "t").create({"d": "date"}).append([{"d": dt.date(1500, 1, 1)}], statistics=statistics)
    )
    import pyarrow.parquet as pq

    writer = pq.ParquetWriter(made.location(made.paths()[0]), table.schema, store_schema=False)
    writer.add_key_value_metadata({"org.apache.spark.version": "2.4.5"})
    writer.write_table(table)
    writer.close()
    _refused(DeltaTable(made.uri), "Julian")


# --- promises never lose a row -------------------------------------------------------------

TIMES = st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1))
VALUES = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-3, 3),
        "f": st.none() | st.sampled_from([-1.0, 0.0, 1.0, math.nan, math.inf]),
        "s": st.none() | st.text("ab\U0001f600", max_size=3),
        "b": st.none() | st.booleans(),
        "t": st.none() | TIMES,
        "p": st.none() | st.sampled_from(["x", "y"]),
    }
)
NOTHING: dict[str, Any] = dict.fromkeys("ifsbtp")
FILES = st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3)


def _tests() -> st.SearchStrategy[ds.Expression]:
    def compare(column: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[ds.Expression]:
        field = pc.field(column)
        makers = (field.__eq__, field.__ne__, field.__lt__, field.__le__, field.__gt__, field.__ge__)
        return st.builds(lambda make, value: make(value), st.sampled_from(makers), values)

    leaf = st.one_of(
        compare("i", st.integers(-3, 3)),
        compare("f", st.sampled_from([0.0, 1.0])),
        compare("s", st.text("ab", max_size=2)),
        compare("t", TIMES),
        compare("p", st.sampled_from("xy")),
        st.sampled_from([pc.field(c).is_null() for c in "ifsbtp"] + [pc.field("b"), pc.is_nan(pc.field("f"))]),
    )

    def joined(e: st.SearchStrategy[ds.Expression]) -> st.SearchStrategy[ds.Expression]:
        both = (st.builds(operator, e, e) for operator in (ds.Expression.__and__, ds.Expression.__or__))
        return st.one_of(e.map(ds.Expression.__invert__), *both)

    return st.recursive(leaf, joined)


@given(FILES, _tests())
@example(  # one partition's file holds 1.0 and NaN alone, though the append has a third number
    [[{**NOTHING, "f": -1.0}, {**NOTHING, "f": 1.0, "p": "y"}, {**NOTHING, "f": math.nan, "p": "y"}]],
    pc.field("f") != 1.0,
)
def test_dataset_and_scan_keep_the_rows_that_pyarrow_keeps_in_memory(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[dict[str, Any]]], test: ds.Expression
) -> None:
    schema = {"i": "integer", "f": "double", "s": "string", "b": "boolean", "t": "timestamp_ntz", "p": "string"}
    made = TableBuilder(tmp_path_factory.mktemp("t") / "t")
    made.create(schema, partition_by=["p"], features=["timestampNtz"])
    for rows in files:
        made.append(rows)
    table = DeltaTable(made.uri)
    expected = _rows(ds.dataset(pa.table(table)).to_table(filter=test))
    assert _rows(table.dataset().to_table(filter=test)) == expected
    dataset = table.to_pyarrow_dataset()
    assert _rows(dataset.to_table(filter=test)) == expected
    assert dataset.count_rows(filter=test) == len(expected)
    fragments = dataset.get_fragments(filter=test)
    assert sum(f.scanner(schema=dataset.schema, filter=test).count_rows() for f in fragments) == len(expected)


@pytest.fixture
def with_nan(tmp_path: Path) -> DeltaTable:
    """Return a table with NaN in columns of both sizes, in structs, lists and partitions, beside one other number."""
    values = [1.0, math.nan, 1.0, None]
    rows = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "f": values,
            "g": pa.array(values, pa.float32()),
            "s": pa.array([{"x": v, "y": {"z": v}} for v in values]),
            "l": [[v] for v in values],
            "p": [1.0, math.nan, math.nan, None],
        }
    )
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["p"])
    write_deltalake(str(tmp_path / "t"), rows, mode="append")
    return DeltaTable(str(tmp_path / "t"))


_FLOATS = [pc.field("f"), pc.field("g"), pc.field("s", "x"), pc.field("s", "y", "z"), pc.field("p")]
_TESTS = [
    test(field)
    for field in [*_FLOATS, pc.list_element(pc.field("l"), 0)]
    for test in (
        pc.is_nan,
        lambda f: f != 1.0,
        lambda f: ~(f > 0.0),
        lambda f: ~(f <= 1.0),
        lambda f: f < 100.0,
        lambda f: (f >= 1.0) | (pc.field("id") == 1),
        lambda f: f.isin([math.nan]),
        lambda f: f.is_null(),
        lambda f: pc.is_nan(f) & (pc.field("id") > 0),
    )
]


@pytest.mark.parametrize("test", _TESTS, ids=str)
def test_nan_stays_in_rows_counts_and_fragments(with_nan: DeltaTable, test: ds.Expression) -> None:
    expected = ds.dataset(pa.table(with_nan)).to_table(filter=test).num_rows
    other = pickle.loads(pickle.dumps(with_nan.to_pyarrow_dataset()))
    for dataset in (with_nan.to_pyarrow_dataset(), other):
        assert dataset.to_table(filter=test).num_rows == expected
        assert dataset.count_rows(filter=test) == expected
        assert dataset.filter(test).count_rows() == expected
        assert dataset.filter(test).sort_by("id").count_rows() == expected
        counts = [f.scanner(schema=dataset.schema, filter=test).count_rows() for f in dataset.get_fragments()]
        assert sum(counts) == expected


def test_nan_stays_with_a_file_system_of_the_caller_and_on_other_stores(with_nan: DeltaTable) -> None:
    folder = with_nan.table_uri.removeprefix("file://")
    rooted = pafs.SubTreeFileSystem(folder, pafs.LocalFileSystem())
    test = pc.field("f") != 1.0
    assert with_nan.to_pyarrow_dataset(filesystem=rooted).count_rows(filter=test) == 2
    uri = f"memory://{uuid.uuid4().hex}/t"
    write_deltalake(uri, pa.table({"f": [1.0, math.nan, 1.0]}))
    assert DeltaTable(uri).to_pyarrow_dataset().count_rows(filter=test) == 1


def test_polars_and_duckdb_find_nan_through_the_dataset(with_nan: DeltaTable) -> None:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    dataset = with_nan.to_pyarrow_dataset()
    for test in (pl.col("f").is_nan(), pl.col("f") != 1.0, pl.col("g") != 1.0):
        assert pl.scan_pyarrow_dataset(dataset).filter(test).collect().height == 2
    for test in ("isnan(f)", "f <> 1", "f > 5", "g = 'nan'", "s.x <> 1", "isnan(p) AND id = 1"):
        rows = duckdb.sql(f"SELECT count(*) FROM dataset WHERE {test}").fetchall()
        assert rows == [(2,)], test


def test_row_groups_are_still_pruned_by_other_columns_but_not_by_floats(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "f": [float(i) for i in range(100)]})
    write_deltalake(str(tmp_path / "t"), rows, writer_properties=WriterProperties(max_row_group_size=10))
    (fragment,) = DeltaTable(str(tmp_path / "t")).to_pyarrow_dataset().get_fragments()
    assert fragment.num_row_groups == 10
    assert len(fragment.subset(filter=pc.field("id") == 5).row_groups) == 1
    assert len(fragment.subset(filter=pc.field("f") == 5.0).row_groups) == 10


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))
