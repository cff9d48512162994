"""What a table is: info, schema, history, files, features, log."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import pytest

from delta_core import DeltaTable, Field, PrimitiveType, Schema
from delta_core.testing.table_builder import TableBuilder
from tests.bundled import needs


def _moment(table: TableBuilder, version: int) -> str:
    return datetime.fromtimestamp(table.timestamp_ms(version) / 1000, UTC).isoformat(timespec="milliseconds")


def test_info_states_version_size_and_protocol(run: Any, table: TableBuilder) -> None:
    text = run("info", table.uri).out
    assert "Version         2 (2023-11-14T22:13:22.000Z)" in text
    assert "Files           2 (" in text
    assert "Rows            3 (and 1 deleted, still in the files)" in text
    assert "Protocol        reader 3, writer 7" in text
    assert "delta.enableChangeDataFeed = true" in text


def test_info_as_json_has_stable_keys(run: Any, table: TableBuilder) -> None:
    found = run("info", table.uri, "--json").json
    assert set(found) == {
        "uri",
        "version",
        "timestamp",
        "id",
        "name",
        "description",
        "createdTime",
        "numFiles",
        "sizeInBytes",
        "numRows",
        "numDeletedRows",
        "partitionColumns",
        "clusteringColumns",
        "protocol",
        "features",
        "properties",
        "refused",
    }
    assert (found["version"], found["numFiles"], found["numRows"], found["numDeletedRows"]) == (2, 2, 3, 1)
    assert found["features"] == ["changeDataFeed", "deletionVectors"]


@needs("clustering")
def test_info_names_the_clustering_columns(run: Any, tmp_path: Path) -> None:
    schema = Schema([Field("id", PrimitiveType("long")), Field("kind", PrimitiveType("string"))])
    DeltaTable.create(tmp_path / "t", schema, cluster_by=["kind", "id"])
    assert "Clustered by    kind, id" in run("info", str(tmp_path / "t")).out
    assert run("info", str(tmp_path / "t"), "--json").json["clusteringColumns"] == ["kind", "id"]


def test_info_states_where_statistics_leave_rows_unknown(run: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}], statistics=False)
    assert "unknown" in run("info", made.uri).out
    assert run("info", made.uri, "--json").json["numRows"] is None


def test_version_and_timestamp_choose_the_version(run: Any, table: TableBuilder) -> None:
    assert run("info", table.uri, "--version", 0, "--json").json["version"] == 0
    assert run("info", table.uri, "--timestamp", _moment(table, 1), "--json").json["version"] == 1


def test_timestamp_without_a_zone_takes_the_one_given(run: Any, table: TableBuilder) -> None:
    local = "2023-11-15 07:13:21"
    assert run("info", table.uri, "--timestamp", local, "--timezone", "Asia/Tokyo", "--json").json["version"] == 1


def test_schema_shows_types_of_nested_columns_and_partitions(run: Any, tmp_path: Path) -> None:
    fields = [
        {"name": "p", "type": "string", "nullable": False, "metadata": {}},
        {
            "name": "s",
            "nullable": True,
            "metadata": {"comment": "where"},
            "type": {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]},
        },
    ]
    schema = {"type": "struct", "fields": fields}
    made = TableBuilder(tmp_path / "t").create(schema, partition_by=["p"])
    lines = run("schema", made.uri).lines
    assert [line.split()[:3] for line in lines[2:]] == [
        ["p", "STRING", "no"],
        ["s", "STRUCT", "yes"],
        ["x", "INT", "yes"],
    ]
    assert lines[2].endswith("partition column")
    assert lines[3].endswith("comment = where")
    assert run("schema", made.uri, "--json").json == schema


def test_history_is_newest_first_and_limited(run: Any, table: TableBuilder) -> None:
    assert [h["version"] for h in run("history", table.uri, "--json").json] == [2, 1, 0]
    assert [line.split()[0] for line in run("history", table.uri, "-n", 2).lines[2:]] == ["2", "1"]
    assert len(run("history", table.uri, "-n", 1, "--all", "--json").json) == 3


def test_files_shows_size_rows_deleted_rows_and_partitions(run: Any, table: TableBuilder) -> None:
    result = run("files", table.uri)
    assert result.lines[0].split() == ["path", "size", "rows", "deleted", "kind"]
    assert sorted(line.split()[-3:] for line in result.lines[2:]) == [["2", "-", "b"], ["2", "1", "a"]]
    assert "2 of 2 files" in result.err


def test_files_as_json_holds_values(run: Any, table: TableBuilder) -> None:
    (record,) = run("files", table.uri, "--where", "kind = 'a'", "--json").json
    assert set(record) == {"path", "size", "modificationTime", "numRecords", "numDeleted", "partition"}
    assert (record["numRecords"], record["numDeleted"], record["partition"]) == (2, 1, {"kind": "a"})


def test_files_that_a_predicate_leaves_and_those_not_shown_are_counted(run: Any, table: TableBuilder) -> None:
    assert "1 of 2 files" in run("files", table.uri, "--where", "id = 3").err
    assert "2 of 2 files, 1 not shown" in run("files", table.uri, "-n", 1).err


def test_features_of_a_table_state_who_serves_them(run: Any, table: TableBuilder) -> None:
    found = run("features", table.uri, "--json").json
    assert found["refused"] is None
    by_name = {f["name"]: f for f in found["features"]}
    assert set(by_name) == {"changeDataFeed", "deletionVectors"}
    assert by_name["deletionVectors"]["reader"]
    assert not by_name["deletionVectors"]["active"], "supported, but not switched on by the table's properties"
    assert by_name["changeDataFeed"] == {
        "name": "changeDataFeed",
        "reader": False,
        "active": True,
        "operations": ["changes", "plan_changes"],
        "plugin": by_name["deletionVectors"]["plugin"],
        "summary": by_name["changeDataFeed"]["summary"],
    }
    assert by_name["changeDataFeed"]["plugin"].startswith("delta-core-lake ")
    assert "readers and writers" in run("features", table.uri).out


def test_writer_feature_that_nobody_provides_is_shown_as_such(run: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["strangers"])
    assert "none: reading ignores it" in run("features", made.uri).out


def test_features_of_a_table_that_nobody_can_read_are_shown_with_what_is_missing(run: Any, tmp_path: Path) -> None:
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["acme.magic", "variantType-preview"],
        "writerFeatures": ["acme.magic", "acme.seal", "variantType-preview"],
    }
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, protocol=protocol)
    result = run("features", made.uri)
    assert result.code == 0
    assert "reader feature acme.magic, which no installed plugin provides" in result.err
    rows = {line.split()[0]: line for line in result.lines[3:]}
    assert "none: reading needs it" in rows["acme.magic"]
    assert "none: reading ignores it" in rows["acme.seal"]
    found = run("features", made.uri, "--json").json
    assert "acme.magic" in found["refused"]
    by_name = {f["name"]: f for f in found["features"]}
    assert (by_name["acme.magic"]["plugin"], by_name["acme.magic"]["reader"], by_name["acme.magic"]["active"]) == (
        None,
        True,
        None,
    )
    assert by_name["variantType-preview"]["plugin"].startswith("delta-core-lake ")
    assert by_name["variantType-preview"]["summary"]


@pytest.fixture
def unreadable(tmp_path: Path) -> TableBuilder:
    """Return a table that needs a reader feature which nobody provides."""
    lists = {"readerFeatures": ["acme.magic"], "writerFeatures": ["acme.magic"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **lists}
    return TableBuilder(tmp_path / "t").create({"id": "long"}, protocol=protocol).append([{"id": 1}])


@pytest.mark.parametrize("command", ["info", "schema", "history", "features"])
def test_log_of_a_table_of_an_unknown_version_is_described(run: Any, tmp_path: Path, command: str) -> None:
    protocol = {"minReaderVersion": 9, "minWriterVersion": 11}
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, protocol=protocol).append([{"id": 1}])
    result = run(command, made.uri)
    assert result.code == 0
    assert "The table can't be read: The table needs reader version 9; this release reads 1 to 3" in result.err
    shown = {"info": "reader 9, writer 11", "schema": "BIGINT", "history": "CREATE TABLE"}
    assert shown.get(command, "Protocol: reader 9, writer 11") in result.out
    assert run("head", made.uri).code == 1


@pytest.mark.parametrize("command", ["info", "schema", "history"])
def test_log_of_a_table_that_nobody_can_read_is_described(run: Any, unreadable: TableBuilder, command: str) -> None:
    result = run(command, unreadable.uri)
    assert result.code == 0
    assert "The table can't be read: The table needs the reader feature acme.magic" in result.err
    assert {"info": "Features        acme.magic", "schema": "BIGINT", "history": "CREATE TABLE"}[command] in result.out
    assert run(command, unreadable.uri, "--version", 0).code == 0
    assert run(command, unreadable.uri, "--version", 9).code == 1


def test_files_of_a_table_that_nobody_can_read_are_not_counted(run: Any, unreadable: TableBuilder) -> None:
    found = run("info", unreadable.uri, "--json").json
    assert "acme.magic" in found["refused"]
    assert (found["numFiles"], found["sizeInBytes"], found["numRows"]) == (None, None, None)
    assert found["protocol"]["readerFeatures"] == ["acme.magic"]
    for command in ("files", "head", "cat", "count"):
        assert run(command, unreadable.uri).code == 1


def test_files_have_statistics_by_column(run: Any, table: TableBuilder) -> None:
    (record,) = run("files", table.uri, "--where", "kind = 'b'", "--stats", "--json").json
    assert record["statistics"]["id"] == {"min": 1, "max": 3, "nullCount": 0}
    assert record["statistics"]["price"] == {"min": "1.00", "max": "1.00", "nullCount": 1}
    text = run("files", table.uri, "--stats").out
    assert "id 1 to 3" in text
    assert "price 1.00 to 1.00, 1 null" in text


def test_damaged_commit_is_shown_among_the_files_of_the_log(run: Any, table: TableBuilder) -> None:
    name = f"{1:020}.json"
    made = (
        TableBuilder(Path(table.uri).parent / "damaged").create({"id": "long"}).append([{"id": 1}]).append([{"id": 2}])
    )
    (Path(made.uri) / "_delta_log" / name).write_text('{"add": {"path"', encoding="utf-8")
    result = run("log", made.uri)
    assert result.code == 0
    assert [line.split()[0] for line in result.lines[-3:]] == [f"{v:020}.json" for v in range(3)]
    assert f"{name}) is damaged" in result.err
    (problem,) = run("log", made.uri, "--json").json["problems"]
    assert problem["name"] == name
    assert run("log", made.uri, "--version", 0, "--json").json["problems"] == []
    assert run("info", made.uri).code == 1


def test_places_without_a_table_are_distinguished(run: Any, table: TableBuilder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.parquet").touch()
    (tmp_path / "file").touch()
    for name in ("data/p=1/a.parquet", "logged/_delta_log/other"):
        fsspec.filesystem("memory").pipe(f"/bucket/{name}", b"")
    for place, said in (
        (tmp_path / "salse", "There is no folder of this name. Did you mean 'sales'?"),
        (tmp_path / "x" / "y", f"There is no folder '{tmp_path / 'x'}'."),
        (tmp_path / "empty", "The folder is empty."),
        (tmp_path / "data", "The folder has no _delta_log; 1 Parquet file is in it."),
        (tmp_path / "file", "It is a file; expected the folder that contains _delta_log."),
        (tmp_path / "sales" / "_delta_log", f"It is a part of the table at '{tmp_path / 'sales'}': use that path."),
        ("memory://nothing/t", "The store has nothing at this place: check the path."),
        ("memory://bucket/data", "The place has no _delta_log; 1 Parquet file is below it."),
        ("memory://bucket/logged", "its _delta_log holds no commit"),
    ):
        result = run("info", place)
        assert result.code == 1
        assert said in result.err
        assert result.err.startswith(f"delta-core: No Delta table at {place}")


def test_features_without_a_table_lists_what_is_installed(run: Any) -> None:
    found = run("features", "--json").json
    assert {"columnMapping", "deletionVectors", "v2Checkpoint"} <= {f["name"] for f in found}
    assert all(f["summary"] and f["plugin"] for f in found)
    assert [f["name"] for f in found] == sorted(f["name"] for f in found)


def test_log_states_which_files_make_a_version_and_why(run: Any, table: TableBuilder) -> None:
    text = run("log", table.uri).out
    assert "version 1, single" in text
    assert "00000000000000000001.checkpoint.parquet" in text
    assert "00000000000000000002.json" in text
    found = run("log", table.uri, "--json").json
    assert set(found) == {"version", "checkpoint", "deltas", "checksum", "notes", "problems"}
    assert found["notes"]
    (delta,) = found["deltas"]
    assert set(delta) == {"name", "kind", "version", "endVersion", "size", "modified"}
    assert delta["size"] == len(table.bodies[2])


def test_log_of_an_older_version_needs_no_checkpoint(run: Any, table: TableBuilder) -> None:
    found = run("log", table.uri, "--version", 0, "--json").json
    assert found["checkpoint"] is None
    assert [d["name"] for d in found["deltas"]] == ["00000000000000000000.json"]


@pytest.mark.parametrize("command", ["info", "schema", "history", "files", "features", "log", "head", "changes"])
def test_text_that_is_piped_has_no_colours_and_no_trailing_blanks(run: Any, table: TableBuilder, command: str) -> None:
    result = run(command, table.uri)
    assert result.code == 0
    assert "\x1b" not in result.out
    assert all(line == line.rstrip() for line in result.lines)


@pytest.mark.parametrize("command", ["info", "schema", "history", "files", "features", "log", "head", "changes"])
def test_every_command_prints_one_json_document(run: Any, table: TableBuilder, command: str) -> None:
    result = run(command, table.uri, "--json")
    assert result.code == 0
    json.loads(result.out)
    assert not result.err


def test_control_characters_of_a_value_never_reach_the_terminal(run: Any, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"s": "string"}).append([{"s": "a\x1b[31mred\nnext\t[bold]"}])
    text = run("head", made.uri).out
    assert r"a\x1b[31mred\nnext\t[bold]" in text
