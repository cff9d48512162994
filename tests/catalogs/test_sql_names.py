"""Names of a catalog in SQL, in the library and on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import QueryBuilder, write_deltalake
from delta_core.catalogs import NameCatalog, open_catalog
from delta_core.cli import main
from delta_core.errors import CatalogNameNotFoundError
from delta_core.table.names_in_sql import replace_names

ENGINES = ["datafusion", "duckdb"]


@pytest.fixture
def names(tmp_path: Path) -> NameCatalog:
    found = open_catalog(tmp_path / "names.db")
    for schema, values in (("sales", [1, 2]), ("archive", [2, 3])):
        place = str(tmp_path / schema)
        write_deltalake(place, pa.table({"id": pa.array(values, pa.int64()), "from": [schema] * 2}))
        found.register(f"{schema}.cities", place)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM sales.cities ORDER BY id", [1, 2]),
        ("SELECT cities.id FROM sales.cities ORDER BY cities.id", [1, 2]),
        ("SELECT sales.cities.id FROM sales.cities ORDER BY sales.cities.id", [1, 2]),
        ("SELECT c.id FROM sales.cities AS c WHERE c.id > 1", [2]),
        ("SELECT c.id FROM sales.cities c JOIN archive.cities d ON c.id = d.id", [2]),
        ("SELECT sales.cities.id FROM sales.cities JOIN archive.cities ON sales.cities.id = archive.cities.id", [2]),
        ("SELECT id FROM sales.cities WHERE id IN (SELECT id FROM archive.cities)", [2]),
        ("WITH cities AS (SELECT * FROM archive.cities) SELECT id FROM cities ORDER BY id", [2, 3]),
        ("SELECT count(*) AS id FROM sales.cities WHERE \"from\" = 'archive.cities'", [0]),
        ("SELECT id FROM sales.cities UNION SELECT id FROM \"archive\".\"cities\" ORDER BY id", [1, 2, 3]),
    ],
)  # fmt: skip
def test_query_reads_the_tables_of_names(names: NameCatalog, engine: str, sql: str, expected: list[int]) -> None:
    pytest.importorskip(engine)
    assert QueryBuilder(engine=engine, catalog=names).execute(sql).read_all()["id"].to_pylist() == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_each_execution_reads_the_latest_version(names: NameCatalog, tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    query = QueryBuilder(engine=engine, catalog=tmp_path / "names.db")
    text = "SELECT count(*) AS n FROM sales.cities"
    assert query.execute(text).read_all().to_pylist() == [{"n": 2}]
    write_deltalake(str(tmp_path / "sales"), pa.table({"id": pa.array([9], pa.int64()), "from": ["x"]}), mode="append")
    assert query.execute(text).read_all().to_pylist() == [{"n": 3}]
    names.rename("archive.cities", "archive.old")
    names.rename("sales.cities", "archive.cities")
    with pytest.raises(CatalogNameNotFoundError, match=r"sales\.cities"):
        query.execute(text)


def test_registered_tables_and_those_of_the_engine_stay(names: NameCatalog) -> None:
    pytest.importorskip("duckdb")
    query = QueryBuilder(engine="duckdb", catalog=names)
    assert query.execute("SELECT count(*) AS n FROM information_schema.tables").read_all().num_rows == 1
    assert query.execute("SELECT 1 AS one").read_all().to_pylist() == [{"one": 1}]


def test_text_that_is_no_query_is_left_as_it_is() -> None:
    assert replace_names("SELECT FROM WHERE (", "duckdb", 2) == ("SELECT FROM WHERE (", {})
    text = "SELECT 'sales.cities' FROM t -- sales.cities"
    assert replace_names(text, "datafusion", 2) == (text, {})


def test_names_of_three_parts_are_replaced() -> None:
    found = replace_names("SELECT m.s.t.id, u.x FROM m.s.t, m.s.u AS u", "duckdb", 3)
    assert found == ('SELECT "t".id, u.x FROM "m.s.t" AS "t", "m.s.u" AS u', {"m.s.t": "m.s.t", "m.s.u": "m.s.u"})


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*arguments: str, code: int = 0) -> str:
        found = main(list(arguments))
        printed = capsys.readouterr()
        assert found == code, printed.err
        return printed.out + printed.err

    return call


def test_command_line_takes_names(names: NameCatalog, tmp_path: Path, run: Callable[..., str]) -> None:
    place = str(tmp_path / "names.db")
    assert json.loads(run("count", "sales.cities", "--catalog", place, "--json"))
    assert '"id": 1' in run("head", "sales.cities", "--catalog", place, "--json")
    found = run("sql", "SELECT max(id) AS most FROM archive.cities", "--catalog", place, "--json")
    assert json.loads(found) == [{"most": 3}]
    run("delete", "sales.cities", "--where", "id = 1", "--catalog", place)
    assert names.schemas() == ["archive", "sales"]


def test_command_line_changes_names(names: NameCatalog, tmp_path: Path, run: Callable[..., str]) -> None:
    place = str(tmp_path / "names.db")
    assert run("catalog", "list", place).split() == ["archive", "sales"]
    assert json.loads(run("catalog", "list", place, "sales", "--json")) == ["sales.cities"]
    run("catalog", "rename", place, "sales.cities", "sales.towns")
    run("catalog", "drop", place, "archive.cities")
    shown = json.loads(run("catalog", "register", place, "archive.all", str(tmp_path / "archive"), "--json"))
    assert shown == json.loads(run("catalog", "show", place, "archive.all", "--json"))
    assert shown["location"] == str(tmp_path / "archive")
    (tmp_path / "schema.json").write_text(
        '{"type":"struct","fields":[{"name":"b","type":"long","nullable":true,"metadata":{}},{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
    )
    run("catalog", "create", place, "archive.new", "--schema", str(tmp_path / "schema.json"), "--partition-by", "a")
    assert names.tables("archive") == ["archive.all", "archive.new"]


def test_command_line_reports_a_name_that_is_missing(
    names: NameCatalog, tmp_path: Path, run: Callable[..., str]
) -> None:
    assert "has no table sales.none" in run("head", "sales.none", "--catalog", str(tmp_path / "names.db"), code=1)
    assert "--catalog" in run("sql", "SELECT 1", code=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_whose_parts_have_dots_or_quotes_are_distinct(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    names = open_catalog(tmp_path / "names.db")
    for number, name in enumerate(["`a.b`.c", "a.`b.c`", '"x`y".z']):
        write_deltalake(str(tmp_path / str(number)), pa.table({"id": [number]}))
        names.register(name, tmp_path / str(number))
    query = QueryBuilder(engine=engine, catalog=names)
    both = query.execute('SELECT "a.b".c.id AS first, a."b.c".id AS second FROM "a.b".c, a."b.c"').read_all()
    assert both.to_pylist() == [{"first": 0, "second": 1}]
    assert query.execute('SELECT id FROM "x`y".z').read_all()["id"].to_pylist() == [2]
