"""DuckDB, DataFusion, Polars and pandas take tables as Arrow streams and datasets, and push work into them."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from delta_core import DeltaTable, QueryBuilder, write_deltalake
from delta_core.errors import EngineError, MissingDependencyError, UnsupportedOperationError
from delta_core.testing.table_builder import TableBuilder


@pytest.fixture
def wide(tmp_path: Path) -> TableBuilder:
    """Return a table of one file for each value of ``day``, with vectors, NaN and nulls."""
    schema = {"id": "long", "price": "double", "name": "string", "day": "date"}
    made = TableBuilder(tmp_path / "wide").create(schema, features=["deletionVectors"], column_mapping="name")
    for day in range(1, 5):
        rows = [
            {"id": 10 * day + i, "price": (1.0, float("nan"), None)[i], "name": "xyz"[i], "day": dt.date(2024, 5, day)}
            for i in range(3)
        ]
        made.append(rows)
    return made.delete_rows(lambda row: row["id"] == 20)


def _without_file(builder: TableBuilder, number: int) -> DeltaTable:
    """Take a file away, so that only a read that prunes it succeeds."""
    table = DeltaTable(builder.uri)
    Path(builder.location(builder.paths()[number])).unlink()
    return table


IDS = [10, 11, 12, 21, 22, 30, 31, 32, 40, 41, 42]


def test_table_exports_its_schema_and_rows_as_capsules(wide: TableBuilder) -> None:
    table = DeltaTable(wide.uri)
    assert pa.schema(table).names == ["id", "price", "name", "day"]
    assert sorted(pa.table(table).column("id").to_pylist()) == IDS
    assert sorted(pa.RecordBatchReader.from_stream(table).read_all().column("id").to_pylist()) == IDS


# --- DuckDB --------------------------------------------------------------------------------


@pytest.fixture
def duck() -> Any:
    """Return a DuckDB connection."""
    connection = pytest.importorskip("duckdb").connect()
    yield connection
    connection.close()


def test_duckdb_queries_a_table_by_its_variables_name(wide: TableBuilder, duck: Any) -> None:
    sales = DeltaTable(wide.uri)
    assert sales.version() == 5
    assert duck.sql("SELECT count(*), min(id) FROM sales").fetchall() == [(11, 10)]


def test_duckdb_takes_a_stream(wide: TableBuilder, duck: Any) -> None:
    found = duck.from_arrow(DeltaTable(wide.uri).scan(["id"], "id > 30"))
    assert sorted(found.fetchall()) == [(31,), (32,), (40,), (41,), (42,)]


def test_duckdb_pushes_columns_and_filters_into_the_dataset(wide: TableBuilder, duck: Any) -> None:
    duck.register("sales", _without_file(wide, 0).dataset())
    assert duck.sql("SELECT sum(id) FROM sales WHERE id > 30 AND name <> 'z'").fetchall() == [(31 + 40 + 41,)]
    assert duck.sql("SELECT id FROM sales WHERE day = DATE '2024-05-04' ORDER BY id LIMIT 1").fetchall() == [(40,)]


def test_duckdb_keeps_its_own_meaning_of_nan(wide: TableBuilder, duck: Any) -> None:
    duck.register("sales", DeltaTable(wide.uri).dataset())
    rows = duck.sql("SELECT id, price FROM sales").to_arrow_table()
    duck.register("rows", rows)
    for test in ("price > 5", "price <> 1", "NOT price < 1", "price = 'nan'::DOUBLE", "price IS NULL"):
        query = "SELECT id FROM {} WHERE " + test + " ORDER BY id"
        assert duck.sql(query.format("sales")).fetchall() == duck.sql(query.format("rows")).fetchall(), test


_TEXTS = ("", "x", "ünï🎉", "a text of more than twelve bytes", None)


@pytest.fixture
def texts(tmp_path: Path) -> DeltaTable:
    """Return a table of strings that are stored as codes, plain, both ways, or not at all, in large and small files."""
    for number, rows in enumerate((70_000, 9_000, 50, 1)):
        index = np.arange(rows)
        columns = {
            "id": index + number * 100_000,
            "few": pa.array(_TEXTS).take(pa.array(index * 7 % len(_TEXTS))),
            "own": pa.array([None if i % 9 == 4 else f"key {i * 7919 % 1_000_003}" for i in range(rows)]),
            "mixed": pa.array([f"b{i % 11}" if i < rows // 2 else f"b{i}" for i in range(rows)]),
            "none": pa.nulls(rows, pa.string()),
            "part": pa.array([None if number == 1 else f"p{number}"] * rows, pa.string()),
            "nested": pa.StructArray.from_arrays([pa.array([f"i{i % 3}" for i in range(rows)])], ["text"]),
        }
        vectors = {"delta.enableDeletionVectors": "true"}
        write_deltalake(tmp_path / "texts", pa.table(columns), mode="append", partition_by=["part"],
                        configuration=None if number else vectors)  # fmt: skip
    table = DeltaTable(tmp_path / "texts")
    table.delete("id % 13 = 5")
    return table


def test_an_encoded_dataset_has_the_rows_of_the_plain_one(texts: DeltaTable) -> None:
    plain, encoded = texts.dataset(), texts.dataset(encoded=True)
    kinds = {f.name: f.type for f in encoded.schema}
    assert {n for n, t in kinds.items() if t == pa.dictionary(pa.int32(), pa.string())} == {
        "few", "own", "mixed", "none", "part",
    }  # fmt: skip
    found = encoded.to_table()
    found.validate(full=True)
    assert found.schema == encoded.schema
    assert found.cast(plain.schema).equals(plain.to_table())
    # pyarrow evaluates the second one
    for kept in (pc.field("few") == "x", (pc.field("id") + 1) * 2 > 90_000):
        found = encoded.to_table(filter=kept)
        assert found.num_rows
        assert found.cast(plain.schema).equals(plain.to_table(filter=kept))


def test_duckdb_reads_an_encoded_dataset_as_strings(texts: DeltaTable, duck: Any) -> None:
    duck.register("codes", texts.dataset(encoded=True))
    duck.register("plain", texts.to_pyarrow_table())
    for query in (
        "SELECT * FROM {} ORDER BY id",
        "SELECT few, count(*), min(own), max(mixed) FROM {} GROUP BY few ORDER BY few",
        "SELECT part, count(DISTINCT own), count(none) FROM {} GROUP BY part ORDER BY part",
        "SELECT id, few FROM {} WHERE few = 'x' OR few IN ('', 'ünï🎉') AND part = 'p0' ORDER BY id",
        "SELECT id FROM {} WHERE own LIKE 'key 1%' AND few IS NOT NULL ORDER BY id",
        "SELECT id, own FROM {} WHERE upper(mixed) = 'B7' OR none IS NOT NULL OR part IS NULL ORDER BY id",
        "SELECT few || mixed AS t, nested.text FROM {} WHERE nested.text = 'i1' ORDER BY id LIMIT 500",
        "SELECT a.id, b.id FROM {0} a JOIN {0} b ON a.mixed = b.mixed AND a.id < b.id WHERE a.id < 40 ORDER BY ALL",
    ):
        found, expected = (duck.sql(query.format(name)).to_arrow_table() for name in ("codes", "plain"))
        assert expected.num_rows, query
        assert found.equals(expected), query


# --- DataFusion ----------------------------------------------------------------------------


@pytest.fixture
def fusion() -> Any:
    """Return a DataFusion context."""
    return pytest.importorskip("datafusion").SessionContext()


def test_datafusion_takes_the_stream(wide: TableBuilder, fusion: Any) -> None:
    frame = fusion.from_arrow(DeltaTable(wide.uri), "sales")
    assert sorted(frame.to_arrow_table().column("id").to_pylist()) == IDS


def test_datafusion_pushes_columns_and_filters_into_the_dataset(wide: TableBuilder, fusion: Any) -> None:
    fusion.register_table("sales", _without_file(wide, 0).dataset())
    found = fusion.sql(
        "SELECT id FROM sales WHERE id >= 30 AND name IN ('x', 'y') ORDER BY id LIMIT 3"
    ).to_arrow_table()
    assert found.column("id").to_pylist() == [30, 31, 40]


def test_datafusion_counts_rows_without_columns(wide: TableBuilder, fusion: Any) -> None:
    fusion.register_table("sales", DeltaTable(wide.uri).dataset())
    assert fusion.sql("SELECT count(*) AS n FROM sales").to_arrow_table().to_pylist() == [{"n": 11}]


@pytest.mark.parametrize("test", [
    "price > 5", "price >= 1", "price <> 1", "NOT price < 1", "NOT (price <= 1)", "price = 1", "price < 5",
    "price IS NULL",
    "price IN (1.0, 2.0)", "price > 5 AND id > 30", "price > 5 OR id = 20", "price BETWEEN 0 AND 9", "id > 30",
])  # fmt: skip
def test_datafusion_keeps_its_own_meaning_of_nan(wide: TableBuilder, fusion: Any, test: str) -> None:
    table = DeltaTable(wide.uri)
    fusion.register_table("ours", table.dataset())
    fusion.from_arrow(table, "own")
    found, expected = (
        sorted(fusion.sql(f"SELECT id FROM {name} WHERE {test}").to_arrow_table().column("id").to_pylist())
        for name in ("ours", "own")
    )
    assert found == expected
    query = QueryBuilder(engine="datafusion").register("t", table).execute(f"SELECT id FROM t WHERE {test}")
    assert sorted(query.read_all().column("id").to_pylist()) == expected


# --- SQL over either -----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_query_builder_joins_registered_tables(wide: TableBuilder, builder: TableBuilder, engine: str) -> None:
    pytest.importorskip(engine)
    session = QueryBuilder(engine=engine).register("w", DeltaTable(wide.uri)).register("b", DeltaTable(builder.uri))
    reader = session.execute("SELECT b.kind, count(*) AS n FROM w JOIN b ON w.id = b.id * 10 GROUP BY b.kind")
    assert isinstance(reader, pa.RecordBatchReader)
    assert sorted(reader.read_all().to_pylist(), key=lambda r: str(r["kind"])) == [
        {"kind": None, "n": 1},
        {"kind": "a", "n": 2},
    ]


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_table_registered_again_replaces_the_older(builder: TableBuilder, engine: str) -> None:
    pytest.importorskip(engine)
    session = QueryBuilder(engine=engine)
    for version, count in ((1, 2), (2, 4)):
        session.register("t", DeltaTable(builder.uri, version))
        assert session.execute("SELECT count(*) AS n FROM t").read_all().to_pylist() == [{"n": count}]


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_names_in_upper_case_need_no_quotes(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    made = TableBuilder(tmp_path / "t").create({"ID": "long", "lower": "long"}).append([{"ID": 1, "lower": 2}])
    session = QueryBuilder(engine=engine).register("Sales", DeltaTable(made.uri))
    for sql in ("SELECT ID, lower FROM Sales WHERE ID = 1", 'SELECT "ID", lower FROM sales'):
        assert session.execute(sql).read_all().to_pylist() == [{"ID": 1, "lower": 2}]


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
@pytest.mark.parametrize("sql", ["selec 1", "SELECT * FROM nope"])
def test_query_that_fails_raises_the_engines_words(engine: str, sql: str) -> None:
    pytest.importorskip(engine)
    with pytest.raises(EngineError, match=r"(?i)selec|nope"):
        QueryBuilder(engine=engine).execute(sql)


def test_query_builder_without_an_engine_states_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.table.query.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"neither is installed\. Run: .*\[sql\]'$"):
        QueryBuilder()
    with pytest.raises(MissingDependencyError, match=r"SQL needs duckdb, which is not installed\. Run: .* duckdb$"):
        QueryBuilder(engine="duckdb")
    with pytest.raises(MissingDependencyError, match="Found the engine 'sqlite', expected datafusion or duckdb"):
        QueryBuilder(engine="sqlite")


def test_spark_without_pyspark_states_what_to_install() -> None:
    program = "import sys; sys.modules['pyspark'] = None; import delta_core.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: delta_core.spark needs PySpark, which is not installed" in done.stderr


@pytest.mark.parametrize(("package", "call"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_library_that_is_not_installed_is_named_with_its_extra(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch, package: str, call: str
) -> None:
    monkeypatch.setattr("delta_core.scan.interop.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'delta-core-lake\[{package}\]'"):
        getattr(DeltaTable(builder.uri), call)()


# --- Polars and pandas ---------------------------------------------------------------------


def test_polars_takes_the_stream(wide: TableBuilder) -> None:
    pl = pytest.importorskip("polars")
    assert sorted(pl.DataFrame(DeltaTable(wide.uri))["id"]) == IDS


def test_polars_lazily_pushes_columns_predicate_and_limit(wide: TableBuilder) -> None:
    pl = pytest.importorskip("polars")
    frame = _without_file(wide, 0).to_polars()
    found = frame.filter((pl.col("id") > 30) & pl.col("name").is_in(["x", "y"])).select("id").collect()
    assert sorted(found["id"]) == [31, 40, 41]
    assert frame.filter(pl.col("day") == pl.date(2024, 5, 4)).select(pl.len()).collect().item() == 3


def test_polars_limit_reads_no_further_file(wide: TableBuilder) -> None:
    pytest.importorskip("polars")
    assert _without_file(wide, 3).to_polars().head(2).collect().height == 2


@pytest.mark.parametrize("number", range(12))
def test_polars_predicate_keeps_the_rows_that_polars_keeps_itself(wide: TableBuilder, number: int) -> None:
    pl = pytest.importorskip("polars")
    c = pl.col
    predicate = [
        c("id") == 30,
        ~(c("id") > 30),
        c("price") > 5,
        c("price") != 1,
        ~(c("price") < 1),
        c("price").is_nan(),
        c("price").is_null() | (c("id") == 11),
        c("id").is_between(12, 31, closed="left"),
        c("id").is_in([11, 41, 99]),
        c("day").is_in([dt.date(2024, 5, 1)]),
        c("name").str.starts_with("y") & (c("id") < 30),
        c("name").eq_missing("x") & c("day").is_not_null(),
    ][number]
    table = DeltaTable(wide.uri)
    expected = pl.DataFrame(table).filter(predicate).sort("id")
    assert table.to_polars().filter(predicate).collect().sort("id").equals(expected)


def test_polars_schema_is_known_without_reading(wide: TableBuilder) -> None:
    pl = pytest.importorskip("polars")
    frame = _without_file(wide, 0).to_polars()
    assert dict(frame.collect_schema()) == {"id": pl.Int64, "price": pl.Float64, "name": pl.String, "day": pl.Date}


def test_pandas_gets_the_rows(wide: TableBuilder) -> None:
    pytest.importorskip("pandas")
    assert sorted(DeltaTable(wide.uri).to_pandas()["id"]) == IDS


@pytest.mark.parametrize(
    ("test", "expected"),
    [("price < 11", [0, 1, 10]), ("price < 11 and id < 10", [0, 1]), ("price >= 1 and price <= 10.5", [1, 10])],
)
def test_condition_on_doubles_skips_files(tmp_path: Path, test: str, expected: list[int]) -> None:
    pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    made = TableBuilder(tmp_path / "t").create({"id": "long", "price": "double"})
    for first in (0.5, 10.5, 20.5):
        made.append([{"id": int(first), "price": first}, {"id": int(first) + 1, "price": first + 1}])
    table = _without_file(made, 2)
    assert table.to_polars().sql(f"select id from self where {test} order by id").collect()["id"].to_list() == expected
    if "price < 11" in test:  # of doubles, DuckDB pushes down nothing else
        with duckdb.connect() as connection:
            connection.register("sales", table.dataset())
            found = connection.sql(f"select id from sales where {test} order by id").fetchall()
        assert found == [(i,) for i in expected]


# --- the dataset itself --------------------------------------------------------------------


def _text(table: pa.Table) -> str:
    return str(table.to_pylist())  # NaN equals itself as text


def test_scanned_dataset_answers_like_pyarrows_own(wide: TableBuilder) -> None:
    table = DeltaTable(wide.uri)
    rows, dataset = pa.table(table), table.dataset()
    plain = ds.dataset(rows)
    assert isinstance(dataset, ds.Dataset)
    for test in (
        None,
        pc.field("id") > 21,
        pc.field("price") != 1,
        pc.is_nan(pc.field("price")),
        ~(pc.field("price") > 5),
    ):
        assert _text(dataset.to_table(filter=test)) == _text(plain.to_table(filter=test))
        assert dataset.count_rows(filter=test) == plain.count_rows(filter=test)
        asked = {"twice": pc.field("id") * 2, "day": pc.field("day")}
        assert dataset.to_table(columns=asked, filter=test).equals(plain.to_table(columns=asked, filter=test))
    assert dataset.to_table(columns=["name", "id"]).column_names == ["name", "id"]
    assert dataset.head(2).num_rows == 2
    assert _text(dataset.take([0, 3])) == _text(rows.take([0, 3]))
    assert sum(b.num_rows for b in dataset.to_batches(filter=pc.field("id") > 21)) == 7
    assert dataset.sort_by([("id", "descending")]).to_table().column("id")[0].as_py() == 42


def test_scanned_dataset_joins_in_memory(wide: TableBuilder) -> None:
    other = ds.dataset(pa.table({"id": [10, 11], "extra": ["a", "b"]}))
    joined = DeltaTable(wide.uri).dataset().join(other, "id", join_type="inner").to_table()
    assert sorted(joined.column("extra").to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("method", ["filter", "replace_schema"])
def test_scanned_dataset_rejects_what_only_pyarrows_own_can(wide: TableBuilder, method: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=method):
        getattr(DeltaTable(wide.uri).dataset(), method)(None)
