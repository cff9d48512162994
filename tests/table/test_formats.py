"""Tables of other formats, by the example of one Arrow file: `open_table`, the command line, SQL, views."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, QueryBuilder, open_table, write_deltalake
from delta_core.api import Engine, Expression, PlannedRows, Schema
from delta_core.cli import main
from delta_core.errors import InvalidArgumentError, PluginError, TableNotFoundError, UnsupportedOperationError
from delta_core.expressions import to_expression
from delta_core.scan.interop.polars_source import scan_polars
from delta_core.testing.table_builder import TableBuilder


class ArrowRows(PlannedRows):
    """Rows of `ArrowFolder`; the predicate is evaluated for all of them."""

    def __init__(self, source: ArrowFolder, columns: Any, predicate: Any, limit: int | None) -> None:
        self._source, self._limit = source, limit
        names = source.rows.column_names
        self._names = names if columns is None else [c if isinstance(c, str) else c[0] for c in columns]
        self._predicate = to_expression(predicate, source.schema)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([self._source.rows.schema.field(n) for n in self._names])

    @property
    def predicate(self) -> Expression | None:
        return self._predicate

    @property
    def source(self) -> ArrowFolder:
        return self._source

    def explain(self, run: bool = False) -> Any:
        raise NotImplementedError

    def count(self) -> int:
        return self.to_table().num_rows

    def read_batches(self, texts: Any = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        rows = self._source.rows
        if self._predicate is not None:
            types = {leaf: rows.schema.field(leaf.path[0]).type for leaf in _leaves(self._predicate)}
            compiled = self._source.engine.evaluator.compile(self._predicate, types, {})
            columns = [rows.column(leaf.path[0]).combine_chunks() for leaf in compiled.leaves]
            rows = rows.filter(compiled(columns, rows.num_rows))
        yield from rows.select(self._names).slice(0, self._limit).to_batches()


def _leaves(expression: Expression) -> Any:
    from delta_core.api import leaves

    return leaves(expression)


class ArrowFolder:
    """A folder with one file of rows."""

    commands = frozenset({"info", "schema", "head", "cat", "count", "files", "history", "log", "sql"})
    changes = frozenset[str]()
    format_name = "arrowfolder"
    functions: Mapping[str, Any] = {}

    def __init__(self, engine: Engine, uri: str, version: int = 0) -> None:
        self.engine, self.uri, self.version = engine, uri, version
        with pa.ipc.open_file(engine.storage.open("rows.arrow")) as file:
            self.rows = file.read_all()
        self.schema = Schema.from_arrow(self.rows.schema)

    def scan(
        self, columns: Any = None, metadata: Sequence[str] = (), predicate: Any = None, limit: int | None = None
    ) -> ArrowRows:
        return ArrowRows(self, columns, predicate, limit)

    def describe(self) -> Mapping[str, Any]:
        return {"Rows": self.rows.num_rows}

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        return [{"version": 0, "timestamp": 0, "operation": "MAKE"}][:limit]

    def file_table(self, predicate: Any = None) -> pa.Table:
        return pa.table({"path": ["rows.arrow"], "rows": [self.rows.num_rows]})

    def version_files(self) -> pa.Table:
        return pa.table({"file": ["rows.arrow"], "kind": ["rows"], "size": [1]})


class ArrowFolderFormat:
    """The object of the entry point."""

    name = "arrowfolder"

    def recognise(self, engine: Engine) -> bool:
        return "rows.arrow" in engine.storage.list_from("").names

    def open(self, engine: Engine, uri: str, **options: Any) -> ArrowFolder:
        return ArrowFolder(engine, uri, **options)


class Point:
    """An entry point, as `runtime.entry_points` returns it."""

    name = "arrowfolder"
    value = "tests:format"

    def __init__(self, found: Any) -> None:
        self._found = found

    def load(self) -> Any:
        return self._found


def install(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    monkeypatch.setattr("delta_core.formats.entry_points", lambda group: (Point(found),))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    install(monkeypatch, ArrowFolderFormat())
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", None, "c"]})
    place = tmp_path / "rows"
    place.mkdir()
    with pa.ipc.new_file(place / "rows.arrow", rows.schema) as writer:
        writer.write_table(rows)
    return str(place)


def test_open_table_opens_delta_tables_by_timestamp(tmp_path: Path) -> None:
    for i in range(3):
        write_deltalake(tmp_path, pa.table({"id": [i]}), mode="append")
        log = tmp_path / "_delta_log" / f"{i:020}.json"
        os.utime(log, (1_700_000_000 + 1000 * i,) * 2)
    moment = datetime.fromtimestamp(1_700_001_500, UTC)
    found = [open_table(tmp_path, timestamp=t).version() for t in (moment, moment.isoformat(), None)]
    assert found == [1, 1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timestamp": "2030-01-01", "version": 0}, "Found version and timestamp"),
        ({"timestamp": 5}, "Found 5 as a timestamp"),
        ({"tag": "a"}, "Found tag for a Delta table"),
        ({"tag": "a", "branch": "b"}, "Found tag and branch for a Delta table"),
    ],
)
def test_open_table_rejects_options_that_delta_tables_lack(
    builder: TableBuilder, options: dict[str, Any], message: str
) -> None:
    builder.commit()
    with pytest.raises(InvalidArgumentError, match=message):
        open_table(builder.uri, **options)


def test_open_table_tries_installed_formats_after_delta(folder: str, builder: TableBuilder) -> None:
    found = open_table(folder)
    assert isinstance(found, ArrowFolder)
    assert found.scan(predicate="id > 1").to_table().to_pydict() == {"id": [2, 3], "name": [None, "c"]}
    assert isinstance(open_table(builder.uri), DeltaTable)


def test_options_reach_the_format(folder: str) -> None:
    assert open_table(folder, version=7).version == 7
    with pytest.raises(TypeError, match="branch"):
        open_table(folder, branch="x")


def test_place_that_no_format_recognises_names_those_that_were_tried(folder: str, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="delta, arrowfolder"):
        open_table(tmp_path / "nothing")


def test_object_without_the_members_of_a_format_is_rejected_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, object())
    with pytest.raises(PluginError, match=r"arrowfolder = tests:format .* has no name, recognise, open"):
        open_table(tmp_path)


def test_format_that_cannot_be_imported_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builder: TableBuilder
) -> None:
    def broken() -> Any:
        raise ImportError("no module named lost")

    point = Point(None)
    monkeypatch.setattr(point, "load", broken)
    monkeypatch.setattr("delta_core.formats.entry_points", lambda group: (point,))
    with (
        pytest.warns(RuntimeWarning, match="arrowfolder = tests:format can't be used: ImportError: no module"),
        pytest.raises(TableNotFoundError, match="formats tried"),
    ):
        open_table(tmp_path / "nothing")
    assert isinstance(open_table(builder.uri), DeltaTable)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["count"], "3"),
        (["count", "--where", "name is null"], "1"),
        (["info"], "arrowfolder"),
        (["schema"], "BIGINT"),
        (["history"], "MAKE"),
        (["files"], "rows.arrow"),
        (["log"], "rows.arrow"),
        (["head", "-n", "1"], "a"),
        (["cat", "--columns", "id", "--where", "id = 2"], "2"),
    ],
)
def test_command_works_on_a_table_of_another_format(
    folder: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([arguments[0], folder, *arguments[1:]]) == 0
    assert expected in capsys.readouterr().out


def test_command_that_the_table_does_not_list_is_rejected_by_name(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", folder]) == 1
    assert "on which explain does not work" in capsys.readouterr().err


def test_time_without_a_zone_is_of_the_requested_one(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(
        ArrowFolderFormat,
        "open",
        lambda self, engine, uri, **options: opened.append(options) or ArrowFolder(engine, uri),
    )
    at = ["--timestamp", "2024-05-01T12:00", "--timezone", "Asia/Tokyo"]
    assert main(["count", folder, *at]) == 0
    assert opened == [{"timestamp": datetime(2024, 5, 1, 3, tzinfo=UTC)}]


@pytest.mark.parametrize("command", ["count", "info", "vacuum", "log"])
def test_place_without_a_table_is_looked_at_once_by_a_format(
    folder: str, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Engine] = []
    monkeypatch.setattr(ArrowFolderFormat, "recognise", lambda self, engine: bool(looked.append(engine)))
    assert main([command, str(tmp_path / "nothing")]) == 1
    assert len(looked) == 1


def test_sql_joins_a_delta_table_with_one_of_another_format(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DeltaTable.create(tmp_path / "d", Schema.from_arrow(pa.schema({"id": pa.int64()})))
    query = "SELECT count(*) AS n FROM r LEFT JOIN d ON r.id = d.id"
    assert main(["sql", query, f"r={folder}", f"d={tmp_path / 'd'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 3}]


@pytest.mark.parametrize("verb", ["vacuum", "diff", "checkpoint", "changes"])
def test_command_of_delta_alone_is_rejected_by_name(folder: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, folder, *(["0"] if verb == "diff" else [])]) == 1
    found = capsys.readouterr().err
    assert f"is a table of the format arrowfolder, on which {verb} does not work" in found
    assert "cat, count, files, head" in found


def test_views_of_other_libraries_read_through_the_scan(folder: str) -> None:
    pl = pytest.importorskip("polars")
    table = open_table(folder)
    assert scan_polars(table).filter(pl.col("id") >= 2).select("id").collect().to_dict(as_series=False) == {
        "id": [2, 3]
    }
    found = QueryBuilder().register("t", table).execute("SELECT max(id) AS m FROM t").read_all()
    assert found.to_pydict() == {"m": [3]}


def test_scan_without_an_own_report_is_named(folder: str) -> None:
    with pytest.raises(NotImplementedError):
        open_table(folder).scan().explain()
    assert UnsupportedOperationError is not NotImplementedError
