"""Commands that change a table: create, write, checkpoint."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, Field, Schema, write_deltalake

CSV = "id,day,x\n1,2024-01-01,1.5\n2,2024-01-02,\n"


def _source(tmp_path: Path, text: str = CSV, name: str = "rows.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def _rows(uri: Path) -> list[tuple[Any, ...]]:
    table = DeltaTable(uri).to_pyarrow_table()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=str)


def test_write_creates_a_partitioned_table_from_csv(run: Any, tmp_path: Path) -> None:
    found = run("write", tmp_path / "t", _source(tmp_path), "--partition-by", "day", "--json").json
    assert (found["version"], found["operation"]) == (0, "WRITE")
    assert [r[0] for r in _rows(tmp_path / "t")] == [1, 2]
    assert DeltaTable(tmp_path / "t").metadata().partition_columns == ["day"]


def test_write_appends_to_a_table_that_exists_and_reads_csv_as_its_types(run: Any, tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int32()), ("day", pa.string()), ("x", pa.decimal128(5, 2))])
    DeltaTable.create(tmp_path / "t", schema)
    run("write", tmp_path / "t", _source(tmp_path))
    assert [str(r) for r in _rows(tmp_path / "t")] == ["(1, '2024-01-01', Decimal('1.50'))", "(2, '2024-01-02', None)"]


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_text_with_more_digits_than_a_decimal_holds_is_rejected(run: Any, tmp_path: Path, ending: str) -> None:
    DeltaTable.create(tmp_path / "t", pa.schema([("x", pa.decimal128(38, 24))]))
    for number, fits in (("12345678901234.000000000000000000000001", True), ("73757908648281148827151332672.2", False)):
        source = tmp_path / f"rows.{ending}"
        source.write_text(f"x\n{number}\n" if ending == "csv" else f'{{"x": {number}}}\n')
        assert (run("write", tmp_path / "t", source).code == 0) is fits
    assert _rows(tmp_path / "t") == [(Decimal("12345678901234.000000000000000000000001"),)]


@pytest.mark.parametrize("ending", ["json", "csv", "parquet", "arrow"])
def test_rows_that_cat_wrote_are_written_again(run: Any, tmp_path: Path, ending: str) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "day": pa.array([dt.date(2024, 5, 1), None]),
            "raw": pa.array([b"\xff\x00", None]),
            "price": pa.array([Decimal("1.20"), None], pa.decimal128(10, 2)),
            "text": ["NA", "null"],
        }
    )
    if ending != "csv":
        rows = rows.append_column("s", pa.array([{"day": dt.date(1, 1, 1)}, None], pa.struct([("day", pa.date32())])))
    write_deltalake(tmp_path / "t", rows)
    run("cat", tmp_path / "t", "-o", tmp_path / f"rows.{ending}")
    DeltaTable.create(tmp_path / "u", rows.schema)
    assert run("write", tmp_path / "u", tmp_path / f"rows.{ending}").code == 0
    assert _rows(tmp_path / "u") == _rows(tmp_path / "t")


def test_only_the_empty_field_of_csv_is_null(run: Any, tmp_path: Path) -> None:
    run("write", tmp_path / "t", _source(tmp_path, 'id,country\n1,NA\n2,null\n3,\n4,""\n'))
    assert _rows(tmp_path / "t") == [(1, "NA"), (2, "null"), (3, None), (4, "")]


@pytest.mark.parametrize(
    ("metadata", "filled"),
    [
        ({"CURRENT_DEFAULT": "7"}, [7, 7]),
        ({"delta.generationExpression": "id * 2"}, [2, 4]),
        ({"delta.identity.start": 5, "delta.identity.step": 1}, [5, 6]),
    ],
    ids=["default", "generated", "identity"],
)
@pytest.mark.parametrize("ending", ["json", "csv"])
def test_column_that_the_table_fills_may_be_left_out(
    run: Any, tmp_path: Path, ending: str, metadata: dict[str, Any], filled: list[int]
) -> None:
    """Read by the table's schema, JSON has nulls for it."""
    fields = [Field("id", "long"), Field("x", "long", metadata=metadata), Field("s", "string")]  # type: ignore[arg-type]
    DeltaTable.create(tmp_path / "t", Schema(fields))
    text = {"json": '{"id": 1}\n{"id": 2}\n', "csv": "id\n1\n2\n"}[ending]
    assert run("write", tmp_path / "t", _source(tmp_path, text, f"rows.{ending}")).code == 0
    assert _rows(tmp_path / "t") == [(1, filled[0], None), (2, filled[1], None)]


def test_source_that_breaks_late_is_named_and_nothing_is_left(run: Any, tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    before = sorted((tmp_path / "t").rglob("*"))
    result = run("write", tmp_path / "t", _source(tmp_path, "id\n" + "1\n" * 1_000_000 + "x\n"))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "rows.csv' can't be read as csv" in result.err
    assert sorted((tmp_path / "t").rglob("*")) == before


def test_write_reads_arrow_from_standard_input(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    command = [str(Path(sys.executable).with_name("delta-core")), "write", str(tmp_path / "t"), "-", "--json"]
    done = subprocess.run(command, input=sink.getvalue().to_pybytes(), capture_output=True, check=True)
    assert json.loads(done.stdout)["metrics"]["numOutputRows"] == "3"
    assert _rows(tmp_path / "t") == [(1,), (2,), (3,)]


def test_write_joins_several_files(run: Any, tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(pa.table({"id": [i]}), tmp_path / f"{i}.parquet")
    run("write", tmp_path / "t", *(tmp_path / f"{i}.parquet" for i in range(3)))
    assert _rows(tmp_path / "t") == [(0,), (1,), (2,)]


def test_replace_where_keeps_other_rows(run: Any, tmp_path: Path) -> None:
    run("write", tmp_path / "t", _source(tmp_path))
    new = _source(tmp_path, "id,day,x\n1,2025-01-01,9\n", "new.csv")
    run("write", tmp_path / "t", new, "--mode", "overwrite", "--replace-where", "id = 1")
    assert [(r[0], str(r[1])) for r in _rows(tmp_path / "t")] == [(1, "2025-01-01"), (2, "2024-01-02")]


def test_mode_error_on_a_table_that_exists_fails_without_a_traceback(run: Any, tmp_path: Path) -> None:
    run("write", tmp_path / "t", _source(tmp_path))
    failed = run("write", tmp_path / "t", _source(tmp_path), "--mode", "error")
    assert failed.code == 1
    assert "already" in failed.err
    assert "Traceback" not in failed.err


def test_missing_source_is_a_usage_error(run: Any, tmp_path: Path) -> None:
    failed = run("write", tmp_path / "t", tmp_path / "no.csv")
    assert failed.code == 2
    assert "no.csv" in failed.err
    assert not (tmp_path / "t").exists()


def test_create_takes_a_delta_schema_and_properties(run: Any, tmp_path: Path) -> None:
    text = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":false,"metadata":{}}]}'
    schema = _source(tmp_path, text, "schema.json")
    run("create", tmp_path / "t", "--schema", schema, "--property", "delta.appendOnly=true", "--name", "mine")
    table = DeltaTable(tmp_path / "t")
    assert table.schema().to_json() == text
    assert (table.metadata().name, table.metadata().configuration) == ("mine", {"delta.appendOnly": "true"})


def test_checkpoint_serves_the_version_alone(run: Any, tmp_path: Path) -> None:
    run("write", tmp_path / "t", _source(tmp_path))
    run("write", tmp_path / "t", _source(tmp_path))
    assert run("checkpoint", tmp_path / "t", "--json").json["num_adds"] == 2
    for commit in (tmp_path / "t" / "_delta_log").glob("*.json"):
        commit.unlink()
    assert len(_rows(tmp_path / "t")) == 4


def test_errors_name_the_options_that_help(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "new": [2]}), tmp_path / "more.parquet")
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    result = run("write", tmp_path / "t", tmp_path / "more.parquet")
    assert "Leave it out, or add it to the table with --schema-mode merge." in result.err
    assert run("write", tmp_path / "t", tmp_path / "more.parquet", "--schema-mode", "merge").code == 0


def test_rows_are_deleted_after_a_look_at_how_many(run: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": list(range(10))}))
    assert run("delete", uri, "--where", "id > 6", "--dry-run", "--json").json == {"version": 0, "files": 1, "rows": 3}
    done = run("delete", uri, "--where", "id > 6", "--json").json
    assert (done["version"], done["operation"], done["metrics"]["numDeletedRows"]) == (1, "DELETE", "3")
    none = run("delete", uri, "--where", "id > 6")
    assert (none.code, none.err.strip()) == (0, "No row matches.")
    assert run("delete", uri, "--all").code == 0
    assert run("count", uri).out.strip() == "0"


def test_dry_run_counts_the_files_that_have_matching_rows(run: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    for ids in ([0, 10], [1, 11], [5, 6]):
        write_deltalake(uri, pa.table({"id": ids, "p": ["a", "b"]}), mode="append", partition_by=["p"])
    for condition, files, rows in (
        ("id % 5 = 1", 3, 3),
        ("p = 'a'", 3, 3),
        ("p = 'a' and id > 0", 2, 2),
        ("id < 0", 0, 0),
    ):
        dry = run("delete", uri, "--where", condition, "--dry-run", "--json").json
        assert (dry["files"], dry["rows"]) == (files, rows), condition
    assert run("delete", uri, "--all", "--dry-run", "--json").json == {"version": 2, "files": 6, "rows": 6}


def test_rows_are_updated_after_a_look_at_how_many(run: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": list(range(10)), "s": [{"a": 1}] * 10}))
    sets = ("--set", "id = id + 1", "--set", "s.a=id")
    dry = run("update", uri, *sets, "--where", "id > 6", "--dry-run", "--json").json
    assert dry == {"version": 0, "files": 1, "rows": 3}
    done = run("update", uri, *sets, "--where", "id > 6", "--json").json
    assert (done["version"], done["operation"], done["metrics"]["numUpdatedRows"]) == (1, "UPDATE", "3")
    assert run("count", uri, "--where", "s.a = id - 1 and id > 7").out.strip() == "3"
    assert run("update", uri, *sets, "--where", "id > 60").err.strip() == "No row matches."
    assert run("update", uri, "--set", "id=0", "--all").code == 0
    assert run("update", uri, "--where", "id = 1").code == 2


@pytest.mark.parametrize("arguments", [(), ("--all", "--where", "id = 1")])
def test_delete_needs_either_a_predicate_or_all(run: Any, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": [1]}))
    result = run("delete", uri, *arguments)
    assert (result.code, "either --where with a predicate, or --all" in result.err) == (2, True)
    assert run("count", uri).out.strip() == "1"


def test_files_are_merged_after_a_look_at_what_changes(run: Any, tmp_path: Path) -> None:
    uri, new = str(tmp_path / "t"), tmp_path / "new.csv"
    write_deltalake(uri, pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]}))
    new.write_text("id,v\n2,B\n4,D\n")
    arguments = (
        "merge",
        uri,
        new,
        "--on",
        "target.id = source.id",
        "--matched-update-all",
        "--not-matched-insert-all",
        "--json",
    )
    dry = run(*arguments, "--dry-run").json
    assert (dry["version"], dry["target_rows_updated"], dry["target_rows_inserted"]) == (0, 1, 1)
    done = run(*arguments, "--not-matched-by-source-delete", "target.id = 1").json
    assert (done["version"], done["operation"], done["metrics"]["numTargetRowsDeleted"]) == (1, "MERGE", "1")
    assert sorted(DeltaTable(uri).to_pyarrow_table().to_pydict()["v"]) == ["B", "D", "c"]
    gone = ("merge", uri, new, "--on", "target.id = source.id", "--matched-delete", "target.v = 'none'")
    assert (run(*gone).code, DeltaTable(uri).version()) == (0, 1)


def test_merge_without_a_clause_names_the_options(run: Any, tmp_path: Path) -> None:
    uri, new = str(tmp_path / "t"), tmp_path / "new.csv"
    write_deltalake(uri, pa.table({"id": [1]}))
    new.write_text("id\n1\n")
    found = run("merge", uri, new, "--on", "target.id = source.id")
    assert (found.code, DeltaTable(uri).version()) == (2, 0)
    assert "--matched-update-all" in found.err


def test_merge_takes_single_columns_or_all(run: Any, tmp_path: Path) -> None:
    uri, new = str(tmp_path / "t"), tmp_path / "new.csv"
    write_deltalake(uri, pa.table({"id": [1]}))
    new.write_text("id\n1\n")
    both = (
        "merge",
        uri,
        new,
        "--on",
        "target.id = source.id",
        "--matched-update-all",
        "--matched-update",
        "id=source.id",
    )
    result = run(*both)
    assert (result.code, "either single columns, or all" in result.err) == (2, True)
