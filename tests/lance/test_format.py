"""Lance as a format of the core: `open_table`, the command line, SQL over both formats, views."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, QueryBuilder, convert_to_deltalake, open_table, write_deltalake
from delta_core.cli import main
from delta_core.errors import TableExistsError, TableNotFoundError, VersionNotFoundError
from delta_plugins.lance import write_lance
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import made

_ROWS = pa.table({"a": [1, 2, 3]})
FIXTURES = Path(__file__).parent / "fixtures"
STABLE = str(FIXTURES / "stable")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_open_table_returns_a_version_of_a_dataset() -> None:
    assert isinstance(open_table(STABLE), LanceDataset)
    assert open_table(Path(STABLE), version=4).version == 4
    assert open_table(STABLE, tag="deleted").version == 3
    assert open_table(STABLE, branch="dev/one").branch == "dev/one"
    assert open_table(STABLE, timestamp="2100-01-01").version == 11
    with pytest.raises(VersionNotFoundError):
        open_table(STABLE, version=99)


def test_open_table_reports_the_formats_that_were_tried(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="delta, lance"):
        open_table(tmp_path)


def test_schema_has_logical_types_and_those_of_arrow() -> None:
    schema = open_table(STABLE).schema
    assert schema.names == ["id", "text", "s", "u", "twice"]
    assert schema().field("u").type == pa.uint16()
    assert pa.schema(schema) == schema.to_arrow() == schema()
    assert str(schema.fields[3].type) == 'PrimitiveType("uint16")'


def test_commands_describe_a_dataset(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "info", STABLE)
    assert (found["Format"], found["Rows"], found["File version"]) == ("lance", 122, "2.2")
    assert found["Features"] == ["stable row ids", "a configuration"]
    assert [f["name"] for f in run(capsys, "schema", STABLE)["fields"]] == ["id", "text", "s", "u", "twice"]
    assert [h["operation"] for h in run(capsys, "history", STABLE, "-n", "2")] == ["restore", "rewrite"]
    assert [f["id"] for f in run(capsys, "files", STABLE)] == [6, 7]
    kinds = [f["kind"] for f in run(capsys, "log", STABLE, "--version", "4")]
    assert kinds == ["manifest", "transaction", *["deletions"] * (len(kinds) - 2)]
    assert all(f["size"] > 0 for f in run(capsys, "log", STABLE, "--version", "4"))


def test_commands_read_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(capsys, "head", STABLE, "-n", "2", "--columns", "id,s.x", "--metadata", "_rowid", "--where", "id > 9")
    assert rows == [{"id": 10, "s": {"x": 2.5}, "_rowid": 10}, {"id": 11, "s": {"x": 2.75}, "_rowid": 11}]
    assert main(["count", STABLE, "--where", "id > 9"]) == 0
    assert capsys.readouterr().out.strip() == "113"
    assert main(["cat", STABLE, "--columns", "id", "--limit", "3"]) == 0
    assert capsys.readouterr().out.split() == ['"id"', "0", "1", "2"]


def test_explain_shows_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "explain", STABLE, "--version", "3", "--where", "id > 9 and text is null", "--run")
    assert [p["sql"] for p in found["predicate"]] == ["id > 9L", "text IS NULL"]
    assert found["files"][0]["files"] == 4
    assert [e["feature"] for e in found["effects"]] == ["deletion files"]
    assert found["run"]["rows"] == open_table(STABLE, version=3).count("id > 9 and text is null")


@pytest.mark.parametrize("arguments", [["purge"], ["cleanup"], ["checkpoint"], ["features"], ["generate"]])
def test_commands_of_delta_alone_are_rejected_by_name(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main([arguments[0], STABLE, *arguments[1:]]) != 0
    shown = capsys.readouterr().err
    assert f"on which {arguments[0]} does not work" in shown
    assert "optimize" in shown


def test_commands_change_a_dataset(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where = made(tmp_path).uri
    assert run(capsys, "delete", where, "--where", "id < 10", "--dry-run") == {"version": 1, "rows": 10}
    done = run(capsys, "delete", where, "--where", "id < 10")
    assert (done["version"], done["operation"]) == (2, "DELETE")
    assert run(capsys, "delete", where, "--where", "id < 10")["operation"] is None
    assert run(capsys, "update", where, "--set", "text='new'", "--where", "id = 50")["version"] == 3
    assert open_table(where).count("text = 'new'") == 1
    done = run(capsys, "optimize", where, "--target-size", "10000000")
    assert (done["version"], done["metrics"]["num_added_fragments"]) == (5, 1)
    assert run(capsys, "optimize", where)["operation"] is None
    assert run(capsys, "restore", where, "--to-version", "1")["version"] == 6
    assert open_table(where).count() == 100


def test_vacuum_removes_versions_after_a_confirmation(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = made(tmp_path).uri
    open_table(where).update({"text": "'new'"})  # type: ignore[union-attr, call-arg]
    assert run(capsys, "vacuum", where)["num_files"] == 0  # all is young
    planned = run(capsys, "vacuum", where, "--retention-hours", "0", "--dry-run")
    assert planned["removed_versions"] == [1]
    assert open_table(where).versions() == [1, 2]  # type: ignore[union-attr]
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["vacuum", where, "--retention-hours", "0"]) != 0
    assert open_table(where).versions() == [1, 2]  # type: ignore[union-attr]
    done = run(capsys, "vacuum", where, "--retention-hours", "0", "--yes")
    assert done["num_files"] == planned["num_files"]
    assert open_table(where).versions() == [2]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "arguments",
    [
        ["optimize", "--z-order", "id"],
        ["optimize", "--where", "id = 1"],
        ["optimize", "--dry-run"],
        ["vacuum", "--lite"],
        ["vacuum", "--keep-version", "3"],
        ["vacuum", "--no-retention-check"],
        ["restore", "--to-version", "1", "--ignore-missing-files"],
        ["restore", "--to-version", "1", "--dry-run"],
    ],
)
def test_options_that_datasets_lack_are_rejected_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    where = made(tmp_path).uri
    assert main([arguments[0], where, *arguments[1:]]) != 0
    assert "has no option --" in capsys.readouterr().err
    assert open_table(where).version == 1  # type: ignore[union-attr]


def test_queries_join_both_formats(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "d", pa.table({"id": [5, 500], "name": ["five", "other"]}))
    query = QueryBuilder().register("d", DeltaTable(tmp_path / "d")).register("l", open_table(STABLE))
    found = query.execute("select name, u from d join l on d.id = l.id where l.u < 90").read_all()
    assert found.to_pylist() == [{"name": "five", "u": 5}]


def test_other_libraries_read_rows() -> None:
    duckdb = pytest.importorskip("duckdb")
    pl = pytest.importorskip("polars")
    dataset = open_table(STABLE)
    found = duckdb.sql("select count(*), sum(id), max(u) from dataset").fetchall()
    assert found == [(122, sum(dataset.to_pyarrow_table()["id"].to_pylist()), 134)]
    assert pl.DataFrame(dataset.scan(["id"], "id < 3"))["id"].to_list() == [0, 1, 2]
    assert dataset.scan(["id"], limit=1).first() == {"id": 0}


def _write(place: str) -> None:
    write_deltalake(place, _ROWS)


def _create(place: str) -> None:
    DeltaTable.create(place, _ROWS.schema)


def _convert(place: str) -> None:
    convert_to_deltalake(place)


def _clone(place: str) -> None:
    write_deltalake(f"{place}-source", _ROWS)
    DeltaTable(f"{place}-source").clone(place)


def _overwrite(place: str) -> None:
    write_deltalake(place, _ROWS, mode="overwrite", schema_mode="overwrite")


@pytest.mark.parametrize("make", [_write, _create, _convert, _clone, _overwrite], ids=lambda f: f.__name__)
def test_delta_table_is_not_made_in_the_folder_of_a_dataset(tmp_path: Path, make: Callable[[str], None]) -> None:
    place = str(tmp_path / "d.lance")
    write_lance(place, _ROWS)
    before = sorted(os.listdir(place))
    with pytest.raises(TableExistsError, match=r"a table of the format 'lance' at .* open_table") as caught:
        make(place)
    assert caught.value.format == "lance"
    assert sorted(os.listdir(place)) == before
    assert open_table(place).to_pyarrow_table().equals(_ROWS)


def test_commands_write_and_merge_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where, file = str(tmp_path / "d"), tmp_path / "r.csv"
    write_lance(where, pa.table({"id": pa.array([1, 2], pa.int32()), "t": ["a", "b"]}))
    file.write_text("id,t\n3,c\n2,x\n")
    assert run(capsys, "write", where, str(file))["version"] == 2
    assert open_table(where).to_pyarrow_table().to_pydict() == {"id": [1, 2, 3, 2], "t": ["a", "b", "c", "x"]}
    assert open_table(where).schema().field("id").type == pa.int32()
    assert run(capsys, "write", where, str(file), "--mode", "ignore")["version"] == 2
    run(capsys, "write", where, str(file), "--mode", "overwrite", "--replace-where", "id < 4")
    assert sorted(open_table(where).to_pyarrow_table()["t"].to_pylist()) == ["c", "x"]
    file.write_text("id,t\n3,y\n")
    run(capsys, "write", where, str(file), "--mode", "overwrite", "--replace-using", "id")
    assert sorted(open_table(where).to_pyarrow_table()["t"].to_pylist()) == ["x", "y"]
    run(capsys, "write", where, str(file), "--mode", "overwrite")
    assert open_table(where).to_pyarrow_table().to_pydict() == {"id": [3], "t": ["y"]}
    file.write_text("id,t\n3,new\n4,d\n")
    clauses = ["--on", "target.id = source.id", "--matched-update-all", "--not-matched-insert-all"]
    before = open_table(where).version
    dry = run(capsys, "merge", where, str(file), *clauses, "--dry-run")
    assert (dry["version"], dry["num_target_rows_updated"], dry["num_target_rows_inserted"]) == (before, 1, 1)
    done = run(capsys, "merge", where, str(file), *clauses)
    assert (done["operation"], done["metrics"]["num_target_rows_updated"]) == ("MERGE", 1)
    run(capsys, "merge", where, str(file), *clauses[:2], "--matched-delete", "source.id = 4")
    assert open_table(where).to_pyarrow_table().to_pydict() == {"id": [3], "t": ["new"]}
    assert main(["merge", where, str(file), *clauses, "--merge-schema"]) == 1
    assert "no option --merge-schema" in capsys.readouterr().err


def test_commands_alter_a_dataset(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    write_lance(where, pa.table({"id": pa.array([1, 2], pa.int32()), "t": ["a", "b"]}))
    for words in (
        ["add-column", "late", "array<string>", "--comment", "new"],
        ["rename-column", "t", "text"],
        ["widen-type", "id", "bigint"],
        ["drop-column", "late"],
        ["set-property", "owner=sales", "x=1"],
        ["unset-property", "x"],
    ):
        done = run(capsys, "alter", where, *words)
        assert done["operation"] == "ALTER", words
        if words[0] == "add-column":
            field = open_table(where).schema().field("late")
            assert (field.type, field.metadata[b"comment"]) == (pa.list_(pa.string()), b"new")
    dataset = open_table(where)
    assert dataset.schema().names == ["id", "text"]
    assert dataset.schema().field("id").type == pa.int64()
    assert dict(dataset.manifest.message["config"]) == {"owner": "sales"}
    assert dataset.version == 7
    for words, shown in (
        (["add-constraint", "c", "id > 0"], "alter has no add-constraint. There are add-column"),
        (["set-property", "a=b", "--allow-unknown"], "no option --allow-unknown"),
        (["add-column", "s.x", "int"], "field of a struct"),
    ):
        assert main(["alter", where, *words]) == 1
        assert shown in capsys.readouterr().err
    assert open_table(where).version == 7


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "PLACE"],
        ["create", "PLACE", "--schema", "ROWS"],
        ["write", "PLACE", "ROWS", "--mode", "error"],
        ["write", "PLACE", "ROWS", "--partition-by", "i"],
        ["clone", "TABLE", "PLACE", "--deep"],
        ["purge", "PLACE"],
    ],
    ids=lambda w: w[0],
)
def test_command_leaves_the_folder_of_a_dataset_as_it_is(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"PLACE": str(tmp_path / "d"), "ROWS": str(tmp_path / "r.parquet"), "TABLE": str(tmp_path / "t")}
    write_lance(places["PLACE"], _ROWS)
    pq.write_table(_ROWS, places["ROWS"])
    write_deltalake(places["TABLE"], _ROWS)
    before = sorted(os.listdir(places["PLACE"]))
    assert main([places.get(w, w) for w in words]) == 1
    assert "lance" in capsys.readouterr().err.lower()
    assert sorted(os.listdir(places["PLACE"])) == before
