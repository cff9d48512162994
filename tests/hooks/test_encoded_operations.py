"""Encoded columns under every operation and reader: rows are those of a table without them, or it is rejected."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, QueryBuilder, convert, open_table, write_deltalake
from delta_core.api import WriteOptions, open_context, write_table
from delta_core.errors import (
    InvalidArgumentError,
    SchemaError,
    StreamSchemaError,
    UnsupportedDatasetError,
    UnsupportedOperationError,
)
from delta_core.kernel.log.cache_folder import SnapshotCache
from delta_core.operations.convert import ConvertOptions, convert_folder
from delta_core.table.interop.plain_files import plain_files
from delta_core.table.reading import ReadMethods
from tests.example_counts import examples
from tests.hooks.encoded_tables import COLUMNS, NAME, PLUGINS, append, encoded, opened

#: Stored, these are in the opposite order.
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "n": pa.array([10, None, 30, 40, 50, 60], pa.int64()),
        "text": ["az", "by", None, "cx", "dw", "ev"],
        "day": pa.array([1, 20, 300, None, 5000, 60000], pa.date32()),
    }
)
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
PROPERTIES: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": VECTORS,
    "feed": FEED,
    "mapped": {"delta.columnMapping.mode": "name", **VECTORS, **FEED},
    "row ids": {"delta.enableRowTracking": "true"},
}


def rows_of(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.select(sorted(table.column_names)).to_pylist())


def both(path: Path, properties: dict[str, str], rows: pa.Table = ROWS) -> tuple[DeltaTable, DeltaTable]:
    """Return a table whose columns are encoded, and the same one without the feature."""
    coded = encoded(path / "coded", rows, "n,text,day", properties)
    plain = encoded(path / "plain", rows, "", properties)
    return DeltaTable(coded, plugins=PLUGINS), DeltaTable(plain, plugins=PLUGINS)


def merged(table: DeltaTable, rows: pa.Table) -> None:
    merge = table.merge(rows, "source.n = target.n")
    merge.when_matched_update({"text": "upper(source.text)"}).when_not_matched_insert_all().execute()


def overwritten(table: DeltaTable, where: str | None, rows: pa.Table) -> None:
    options = WriteOptions(mode="overwrite", replace_where=where, checks_replaced=False)
    write_table(open_context(table.table_uri, plugins=PLUGINS), rows, options)
    table.update_incremental()


def appended(table: DeltaTable, rows: pa.Table) -> None:
    append(table.table_uri, rows)
    table.update_incremental()


def recoded(table: DeltaTable, columns: str) -> None:
    """Delete all rows, and encode other columns; a table without encodings gets another property."""
    table.delete()
    is_coded = NAME in table.snapshot().state.features
    table.alter.set_table_properties({COLUMNS if is_coded else "user.columns": columns})


Step = Callable[[DeltaTable], Any]
VALUES = st.builds(
    lambda rows: pa.table(
        {
            "id": pa.array([r[0] for r in rows], pa.int64()),
            "n": pa.array([r[1] for r in rows], pa.int64()),
            "text": pa.array([r[2] for r in rows], pa.string()),
            "day": pa.array([r[3] for r in rows], pa.date32()),
        }
    ),
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.one_of(st.none(), st.integers(-5, 70)),
            st.one_of(st.none(), st.text("abé\U0001f600", max_size=3)),
            st.one_of(st.none(), st.integers(-800, 80000)),
        ),
        max_size=6,
        unique_by=lambda r: r[1],
    ),
)
CONDITIONS = st.sampled_from(
    ["n > 20", "n < 15", "n is null", "text < 'b'", "text = 'cx'", "text like 'a%'", "day > '1970-06-01'", "n = 30",
     "n in (10, 60)", "id > 3 and n > 30", "text is not null", "n = 50 or text = 'az'"]
)  # fmt: skip
STEPS = st.one_of(
    st.builds(lambda rows: lambda t: appended(t, rows), VALUES),
    st.builds(lambda where: lambda t: t.delete(where), CONDITIONS),
    st.builds(
        lambda where: lambda t: t.update({"n": "n + 1", "text": "concat(text, 'x')"}, predicate=where), CONDITIONS
    ),
    st.builds(lambda rows: lambda t: merged(t, rows), VALUES),
    st.just(lambda t: t.optimize.compact()),
    st.just(lambda t: t.optimize.z_order(["n"])),
    st.just(lambda t: t.create_checkpoint()),
    st.just(lambda t: t.compact_logs(0, t.version())),
    st.just(lambda t: t.restore(1)),
    st.builds(lambda columns: lambda t: recoded(t, columns), st.sampled_from(["n", "text", "id,day", "day,text,n,id"])),
    st.builds(lambda where, rows: lambda t: overwritten(t, where, rows), CONDITIONS, VALUES),
)


@settings(max_examples=examples(25), deadline=None)
@given(st.sampled_from(sorted(PROPERTIES)), st.lists(STEPS, min_size=1, max_size=4), st.lists(CONDITIONS, max_size=3))
def test_rows_are_those_of_a_table_without_encodings(name: str, steps: list[Step], conditions: list[str]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        tables = both(folder, PROPERTIES[name])
        for step in steps:
            failed: list[type[Exception] | None] = []
            for table in tables:
                try:
                    step(table)
                except Exception as e:  # noqa: BLE001 (both must fail in the same way)
                    failed.append(type(e))
                else:
                    failed.append(None)
            assert failed[0] == failed[1]
        coded, plain = tables
        assert rows_of(coded.to_pyarrow_table()) == rows_of(plain.to_pyarrow_table())
        for condition in conditions:
            found, expected = (rows_of(t.scan(predicate=condition).to_table()) for t in tables)
            assert found == expected
        assert coded.verify(deep="rows").ok
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_files_hold_values_that_are_encoded_once_after_each_operation(tmp_path: Path, name: str) -> None:
    table, _ = both(tmp_path, PROPERTIES[name])
    steps: dict[str, Step] = {
        "append": lambda t: appended(t, ROWS),
        "update": lambda t: t.update({"id": "id + 10"}, predicate="n = 30"),
        "delete": lambda t: t.delete("n = 40"),
        "merge": lambda t: merged(t, ROWS.slice(0, 2)),
        "compact": lambda t: t.optimize.compact(),
        "z_order": lambda t: t.optimize.z_order(["n", "text"]),
        "purge": lambda t: t.optimize.purge(),
        "overwrite": lambda t: overwritten(t, "id > 2", ROWS.slice(2, 1)),
    }
    seen: set[str] = set()
    for step in steps.values():
        step(table)
        for path in (tmp_path / "coded").rglob("*.parquet"):
            if "_delta_log" in str(path) or str(path) in seen:
                continue
            seen.add(str(path))
            stored = pq.read_table(path, partitioning=None)
            physical = opened(table.table_uri).state.column_map.physical.names
            column = stored[physical[1]].to_pylist()
            assert all(v is None or v < 0 for v in column), path
    assert len(seen) > 4


# --- every reader ---


def by_reader(table: DeltaTable) -> pa.Table:
    return table.scan().to_table()


def by_plan(table: DeltaTable) -> pa.Table:
    plan = pickle.loads(pickle.dumps(table.scan().plan_files()))
    assert plan.steps == ("decoded_columns",)
    paths = plan.files["local_path"].to_pylist()
    parts = [plan.read_file(i, pq.ParquetFile(path).iter_batches()).read_all() for i, path in enumerate(paths)]
    return pa.concat_tables(parts)


def by_polars(table: DeltaTable) -> pa.Table:
    pl = pytest.importorskip("polars")
    frame = table.to_polars()
    assert frame.filter(pl.col("n") == 30).collect().height == 1
    return frame.collect().to_arrow().cast(ROWS.schema)


def by_duckdb(table: DeltaTable) -> pa.Table:
    pytest.importorskip("duckdb")
    relation = table.to_duckdb()
    assert len(relation.filter("n = 30").fetchall()) == 1
    found = relation.arrow()
    return (found if isinstance(found, pa.Table) else found.read_all()).cast(ROWS.schema)


def by_dataset(table: DeltaTable) -> pa.Table:
    import pyarrow.dataset as ds

    dataset = table.dataset()
    assert dataset.count_rows(filter=ds.field("n") == 30) == 1
    return dataset.to_table()


def by_query(table: DeltaTable) -> pa.Table:
    found = QueryBuilder().register("t", table).execute("select * from t where n is null or n > 0")
    return pa.table(found).cast(ROWS.schema)


def by_pandas(table: DeltaTable) -> pa.Table:
    return pa.Table.from_pandas(table.to_pandas(types_mapper=None), schema=ROWS.schema, preserve_index=False)


def by_feed(table: DeltaTable) -> pa.Table:
    return table.changes(0).to_table().select(ROWS.column_names)


def by_cdf(table: DeltaTable) -> pa.Table:
    return pa.table(table.load_cdf(0)).select(ROWS.column_names).cast(ROWS.schema)


def by_pyarrow(table: DeltaTable) -> pa.Table:
    assert table.to_pyarrow_table(filters=[("n", "=", 30)])["id"].to_pylist() == [3]
    return table.to_pyarrow_table()


def by_count(table: DeltaTable) -> pa.Table:
    assert table.count() == 6
    assert table.scan(predicate="n = 30 or text = 'az'").count() == 2
    assert table.scan(["n"]).bounds() == (10, 60)
    return table.to_pyarrow_table()


def by_diff(table: DeltaTable) -> pa.Table:
    return table.diff(0, 1).to_table().select(ROWS.column_names)


def by_follow(table: DeltaTable) -> pa.Table:
    return pa.concat_tables([b.to_table() for b in table.follow(available_now=True)]).select(ROWS.column_names)


def by_stream(table: DeltaTable) -> pa.Table:
    return pa.table(pa.RecordBatchReader.from_stream(table))


def by_shallow_clone(table: DeltaTable) -> pa.Table:
    clone = table.clone(table.table_uri.rstrip("/") + "-clone", plugins=PLUGINS)
    assert set(clone.snapshot().state.encodings) == {"n", "text", "day"}
    return clone.scan().to_table()


READERS: Sequence[Callable[[DeltaTable], pa.Table]] = [
    by_reader, by_plan, by_polars, by_duckdb, by_dataset, by_query, by_pandas, by_feed, by_follow, by_stream,
    by_shallow_clone, by_cdf, by_pyarrow, by_count, by_diff,
]  # fmt: skip


#: Each method that reads, with the tests that call it: these return values, or the test is that of a rejection.
METHODS: dict[str, Any] = {
    "scan": by_reader, "to_pyarrow_table": by_pyarrow, "to_pyarrow_dataset": "rejected", "dataset": by_dataset,
    "to_pandas": by_pandas, "to_polars": by_polars, "to_duckdb": by_duckdb, "changes": by_feed, "load_cdf": by_cdf,
    "follow": by_follow, "diff": by_diff, "count": by_count, "file_uris": "names of files",
    "get_add_actions": "no bounds", "partitions": "no encoded column", "deletion_vectors": "positions of rows",
}  # fmt: skip


def test_every_method_that_reads_is_tested() -> None:
    own = {n for n, value in vars(ReadMethods).items() if callable(value) and not n.startswith("_")}
    assert own == set(METHODS)
    assert {m for m in METHODS.values() if callable(m)} <= set(READERS)


@pytest.mark.parametrize("name", ["plain", "mapped"])
@pytest.mark.parametrize("predicate", ["text = 'az'", "n is null", "id > 1 and day < '2000-01-01'"])
def test_files_for_other_readers_are_marked_as_encoded(tmp_path: Path, name: str, predicate: str) -> None:
    coded, plain = both(tmp_path, PROPERTIES[name])
    for columns in (["id"], ["id", "text"], None):
        plans = [t.scan(columns, predicate=predicate).plan_files() for t in (coded, plain)]
        assert [s for s in plans[0].steps if s != "decoded_columns"] == list(plans[1].steps)
        assert "decoded_columns" in plans[0].steps
        assert plans[0].filter == plans[1].filter
        parts = []
        for i, path in enumerate(plans[0].files["local_path"].to_pylist()):
            batches = pq.ParquetFile(path).iter_batches()
            parts.append(plans[0].read_file(i, batches).read_all())
        assert rows_of(pa.concat_tables(parts)) == rows_of(plain.scan(columns, predicate=predicate).to_table())
    assert "decoded_columns" not in coded.scan(["id"], predicate="id > 1").plan_files().steps


@pytest.fixture
def large(tmp_path: Path) -> DeltaTable:
    """A table with a file that other libraries' own readers are used for, if they may be."""
    table, _ = both(tmp_path, {**FEED, **PROPERTIES["row ids"]})
    return table


@pytest.mark.parametrize("read", READERS)
def test_reader_returns_values(large: DeltaTable, read: Callable[[DeltaTable], pa.Table]) -> None:
    assert rows_of(read(large)) == rows_of(ROWS)


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_files_of_any_size_are_not_handed_to_other_readers(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_core.table.interop.plain_files.LEAST_BYTES", 1)
    coded, plain = both(tmp_path, {})
    assert plain_files(plain.snapshot()) is not None
    assert plain_files(coded.snapshot()) is None
    read = by_polars if library == "polars" else by_duckdb
    assert rows_of(read(coded)) == rows_of(ROWS)


def test_workers_read_and_write_values(tmp_path: Path) -> None:
    pytest.importorskip("delta_packed_uuids")
    dask = pytest.importorskip("dask.dataframe")
    import delta_core.dask

    uri, rows = str(tmp_path / "t"), pa.table({"id": [str(uuid.UUID(int=n)) for n in range(9)], "n": list(range(9))})
    write_deltalake(uri, rows, configuration={"example.packedUuids.columns": "id"})
    frame = dask.from_pandas(rows.to_pandas(), npartitions=2)
    delta_core.dask.write(frame, uri, "append")
    found = delta_core.dask.read(uri, predicate=f"id = '{uuid.UUID(int=4)}'").compute()
    assert found["n"].tolist() == [4, 4]
    for path in Path(uri).glob("*.parquet"):
        assert pq.read_schema(path).field("id").type == pa.binary()


def test_table_is_converted_to_another_format_with_its_values(tmp_path: Path) -> None:
    pytest.importorskip("delta_packed_uuids")
    uri, rows = str(tmp_path / "t"), pa.table({"id": [str(uuid.UUID(int=n)) for n in range(9)], "n": list(range(9))})
    write_deltalake(uri, rows, configuration={"example.packedUuids.columns": "id"})
    convert(uri, tmp_path / "lance", "lance")
    assert open_table(str(tmp_path / "lance")).scan().to_table().sort_by("n").equals(rows)


def test_dataset_of_files_is_rejected(large: DeltaTable) -> None:
    with pytest.raises(UnsupportedDatasetError, match=rf"store column 'n' in another form \({NAME}\)"):
        large.to_pyarrow_dataset()


def test_manifests_are_rejected(large: DeltaTable) -> None:
    with pytest.raises(UnsupportedOperationError, match="store column 'n' in another form"):
        large.generate()
    with pytest.raises(InvalidArgumentError, match="store column 'n' in another form"):
        large.alter.set_table_properties({"delta.compatibility.symlinkFormatManifest.enabled": "true"})


def test_parquet_files_are_not_converted_to_an_encoded_table(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    context = open_context(str(tmp_path), plugins=PLUGINS)
    with pytest.raises(UnsupportedOperationError, match="files store column 'n' in another form"):
        convert_folder(context, None, ConvertOptions(properties={COLUMNS: "n"}))
    assert not list(tmp_path.rglob("*.json"))


def test_files_listed_for_other_programs_show_no_bounds(large: DeltaTable) -> None:
    names = pa.table(large.get_add_actions(flatten=True)).column_names
    assert "min.id" in names
    assert "null_count.n" in names
    assert not {f"{kind}.{column}" for kind in ("min", "max") for column in ("n", "text", "day")} & set(names)


def test_statistics_are_computed_again_without_bounds(large: DeltaTable) -> None:
    before = opened(large.table_uri).files.columns(["stats"]).column(0).to_pylist()
    large.compute_statistics(every=True)
    assert opened(large.table_uri).files.columns(["stats"]).column(0).to_pylist() == before


def test_versions_around_a_change_of_encoding_are_read_separately(tmp_path: Path) -> None:
    properties = {**FEED, **PROPERTIES["row ids"]}
    coded, _ = both(tmp_path, properties)
    uri, rows = coded.table_uri, ROWS
    options = WriteOptions(mode="overwrite", schema_mode="overwrite", properties={COLUMNS: "text", **properties})
    write_table(open_context(uri, plugins=PLUGINS), rows, options)
    table = DeltaTable(uri, plugins=PLUGINS)
    with pytest.raises(SchemaError, match=r"column \w+ is stored in another form"):
        table.changes(0).to_table()
    with pytest.raises(SchemaError, match=r"column \w+ is stored in another form"):
        table.diff(1, 2).to_table()
    with pytest.raises(StreamSchemaError, match=r"column \w+ is stored in another form"):
        list(table.follow(start=0, available_now=True))
    assert rows_of(DeltaTable(uri, version=1, plugins=PLUGINS).scan().to_table()) == rows_of(rows)
    table.restore(1)
    assert rows_of(opened(uri).scan().to_table()) == rows_of(rows)
    assert set(opened(uri).state.encodings) == {"n", "text", "day"}


# --- versions, logs and caches ---


def test_logs_that_are_compacted_and_shared_files_of_versions_have_values(tmp_path: Path) -> None:
    table, _ = both(tmp_path, VECTORS)
    for _ in range(3):
        appended(table, ROWS)
    table.delete("n = 30")
    expected = rows_of(pa.concat_tables([ROWS.filter(pc.not_equal(ROWS["id"], 3))] * 4))
    table.compact_logs(0, table.version())
    assert list((tmp_path / "coded" / "_delta_log").glob("*.compacted.json"))
    cache = SnapshotCache(tmp_path / "cache", least_files=0)
    for _ in range(2):
        again = DeltaTable(table.table_uri, plugins=PLUGINS, cache=cache)
        assert rows_of(again.scan().to_table()) == expected
        assert again.scan(predicate="n = 40 or text = 'az'").count() == 8
        again.create_checkpoint()
    assert cache.count()


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_rows_are_decoded_when_the_feature_is_dropped(tmp_path: Path, name: str) -> None:
    table, plain = both(tmp_path, PROPERTIES[name])
    for each in (table, plain):
        each.update({"text": "upper(text)"}, predicate="n > 40")
    before = table.version()
    table.alter.drop_feature(NAME)
    dropped = DeltaTable(table.table_uri)  # without the plugin
    assert NAME not in dropped.snapshot().state.features
    assert rows_of(dropped.scan().to_table()) == rows_of(plain.scan().to_table())
    physical = dropped.snapshot().state.column_map.physical.names[1]
    stored = [pq.read_table(path)[physical].to_pylist() for path in dropped.file_uris()]
    assert sorted(v for part in stored for v in part if v is not None) == [10, 30, 40, 50, 60]
    older = DeltaTable(table.table_uri, version=before, plugins=PLUGINS)
    assert rows_of(older.scan().to_table()) == rows_of(plain.scan().to_table())
    if "delta.enableChangeDataFeed" in PROPERTIES[name]:
        with pytest.raises(UnsupportedOperationError, match=f"needs the reader feature {NAME}"):
            DeltaTable(table.table_uri, plugins=PLUGINS).changes(0).to_table()


def test_program_that_imports_deltalake_reads_values(tmp_path: Path) -> None:
    pytest.importorskip("delta_packed_uuids")
    uri, rows = str(tmp_path / "t"), pa.table({"id": [str(uuid.UUID(int=n)) for n in range(4)], "n": list(range(4))})
    write_deltalake(uri, rows, configuration={"example.packedUuids.columns": "id"})
    program = tmp_path / "program.py"
    program.write_text(
        "import deltalake\n"
        f"table = deltalake.DeltaTable({uri!r})\n"
        f"found = table.to_pyarrow_table(filters=[('id', '=', {rows['id'][2].as_py()!r})])\n"
        "assert found['n'].to_pylist() == [2], found\n"
        "try:\n"
        "    table.to_pyarrow_dataset()\n"
        "except Exception as e:\n"
        "    assert \"store column 'id' in another form\" in str(e), e\n"
        "else:\n"
        "    raise AssertionError('a dataset of files has the stored form')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "delta_core.as_deltalake", str(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
