"""Administration beside deltalake: what one library does is read, written to and undone by the other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import delta_core

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

LIBRARIES: dict[str, Any] = {"ours": delta_core, "theirs": deltalake}
BOTH = pytest.mark.parametrize("first", LIBRARIES)
ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "b"] * 3, "x": pa.array(range(6), pa.int32())})


def other(name: str) -> Any:
    return LIBRARIES["theirs" if name == "ours" else "ours"]


def made(path: Path, library: Any, **options: Any) -> Any:
    library.write_deltalake(str(path), ROWS, partition_by=["p"], **options)
    library.write_deltalake(str(path), ROWS, mode="append")
    return library.DeltaTable(str(path))


def rows(path: Path, library: Any) -> list[dict[str, Any]]:
    table = library.DeltaTable(str(path))
    if library is deltalake:
        found = pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t"))
    else:
        found = table.to_pyarrow_table()
    return sorted(found.to_pylist(), key=str)


def agreed(path: Path) -> list[dict[str, Any]]:
    """Return the rows, which both libraries read equal."""
    ours, theirs = (rows(path, library) for library in LIBRARIES.values())
    names = delta_core.DeltaTable(path).to_pyarrow_table().column_names
    assert ours == sorted(({n: row[n] for n in names} for row in theirs), key=str)
    return ours


def committed(path: Path, version: int) -> list[tuple[str, Any]]:
    """Return the metadata and protocol that a commit sets, in this order."""
    commit = path / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines() if line]
    found = []
    for action in actions:
        ((kind, value),) = action.items()
        if kind == "metaData":
            found.append((kind, (json.loads(value["schemaString"]), value.get("configuration"), value.get("name"))))
        elif kind == "protocol":
            features = (set(value.get("readerFeatures") or ()), set(value.get("writerFeatures") or ()))
            found.append((kind, (value["minReaderVersion"], value["minWriterVersion"], *features)))
    return sorted(found, key=lambda f: f[0])


Alter = tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any] | None]
ALTERS: dict[str, Alter] = {
    "add a column": (lambda library, table: table.alter.add_columns(library.Field("y", "double")), None),
    "add a constraint": (
        lambda library, table: table.alter.add_constraint({"small": "id < 100"}),
        lambda library, table: table.alter.drop_constraint("small"),
    ),
    "set a property": (
        lambda library, table: table.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"}),
        lambda library, table: table.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"}),
    ),
    "name the table": (
        lambda library, table: table.alter.set_table_name("one"),
        lambda library, table: table.alter.set_table_name("two"),
    ),
    "describe the table": (
        lambda library, table: table.alter.set_table_description("one"),
        lambda library, table: table.alter.set_table_description("two"),
    ),
    "comment on a column": (
        lambda library, table: table.alter.set_column_metadata("x", {"comment": "one"}),
        lambda library, table: table.alter.set_column_metadata("x", {"comment": "two"}),
    ),
    "turn the change feed on": (
        lambda library, table: table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"}),
        lambda library, table: table.alter.set_table_properties({"delta.enableChangeDataFeed": "false"}),
    ),
    "allow vectors": (
        lambda library, table: table.alter.add_feature(
            library.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
        ),
        None,
    ),
}


@BOTH
@pytest.mark.parametrize("name", ALTERS)
def test_alters_are_read_written_to_and_undone_by_the_other(tmp_path: Path, name: str, first: str) -> None:
    change, undo = ALTERS[name]
    path = tmp_path / "t"
    before = agreed_after_making(path, first)
    change(LIBRARIES[first], LIBRARIES[first].DeltaTable(str(path)))
    assert [{n: r[n] for n in ("id", "p", "x")} for r in agreed(path)] == before
    other(first).write_deltalake(str(path), ROWS.slice(0, 1), mode="append", schema_mode="merge")
    assert len(agreed(path)) == len(before) + 1
    if undo is not None:
        undo(other(first), other(first).DeltaTable(str(path)))
    LIBRARIES[first].DeltaTable(str(path)).delete("id = 5")
    assert len(agreed(path)) == len(before) - 1
    assert delta_core.DeltaTable(path).verify(deep="rows").ok


def agreed_after_making(path: Path, first: str) -> list[dict[str, Any]]:
    made(path, LIBRARIES[first])
    return agreed(path)


@pytest.mark.parametrize("name", ALTERS)
def test_alters_commit_the_same_definition(tmp_path: Path, name: str) -> None:
    made(tmp_path / "theirs", deltalake)
    shutil.copytree(tmp_path / "theirs", tmp_path / "ours")
    for side, library in LIBRARIES.items():
        ALTERS[name][0](library, library.DeltaTable(str(tmp_path / side)))
    ours, theirs = (committed(tmp_path / side, 2) for side in LIBRARIES)
    if name == "allow vectors":
        # ours repeats the metadata, unchanged, and keeps the features that the old protocol versions imply
        assert ours.pop(0) == committed(tmp_path / "ours", 0)[0]
        ((_, (*versions, readers, writers)),) = theirs
        theirs = [("protocol", (*versions, readers, writers | {"appendOnly", "invariants"}))]
    assert ours == theirs


@BOTH
def test_restored_versions_are_read_written_to_and_restored_by_the_other(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t"
    library = LIBRARIES[first]
    before = agreed_after_making(path, first)
    library.DeltaTable(str(path)).delete("p = 'a'")
    after = agreed(path)
    other(first).DeltaTable(str(path)).restore(1)
    assert agreed(path) == before
    library.DeltaTable(str(path)).restore(2)
    assert agreed(path) == after
    other(first).write_deltalake(str(path), ROWS.slice(0, 2), mode="append")
    library.DeltaTable(str(path)).restore(3)
    assert agreed(path) == before
    assert delta_core.DeltaTable(path).verify(deep="rows").ok


@BOTH
def test_converted_folders_are_read_and_written_to_by_the_other(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t"
    for value in ("a", "b"):
        (path / f"p={value}").mkdir(parents=True)
        pq.write_table(ROWS.select(["id", "x"]), path / f"p={value}" / "part.parquet")
    columns = pa.schema([("p", pa.string())])
    columns = columns if first == "ours" else deltalake.Schema.from_arrow(columns)
    LIBRARIES[first].convert_to_deltalake(str(path), partition_by=columns, partition_strategy="hive")
    assert len(agreed(path)) == 12
    other(first).write_deltalake(str(path), ROWS.slice(0, 1), mode="append")
    other(first).DeltaTable(str(path)).delete("id = 5")
    assert len(agreed(path)) == 11
    assert delta_core.DeltaTable(path).verify(deep="rows").ok


@BOTH
def test_logs_that_one_compacts_checkpoints_and_cleans_are_read_by_the_other(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t"
    library = LIBRARIES[first]
    made(path, library, configuration={"delta.logRetentionDuration": "interval 0 days"})
    for i in range(4):
        other(first).DeltaTable(str(path)).delete(f"id = {i}")
    left = agreed(path)
    library.DeltaTable(str(path)).compact_logs(1, 4)
    assert agreed(path) == left
    library.DeltaTable(str(path)).create_checkpoint()
    library.DeltaTable(str(path)).cleanup_metadata()
    assert agreed(path) == left
    other(first).write_deltalake(str(path), ROWS, mode="append")
    assert len(agreed(path)) == len(left) + 6


@BOTH
def test_both_delete_the_same_files(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t"
    made(path, LIBRARIES[first])
    LIBRARIES[first].DeltaTable(str(path)).delete("id = 1")
    other(first).write_deltalake(str(path), ROWS, mode="append")
    other(first).DeltaTable(str(path)).delete("p = 'a'")
    (path / "p=a" / "orphan.parquet").write_bytes(b"")
    choices: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}
    for full in (False, True):
        ours, theirs = (
            {f.rpartition("/")[2] for f in library.DeltaTable(str(path)).vacuum(**choices, full=full) if f[-1] != "/"}
            for library in LIBRARIES.values()
        )
        assert ours == theirs
        assert ("orphan.parquet" in ours) == full
    left = agreed(path)
    LIBRARIES[first].DeltaTable(str(path)).vacuum(**choices, full=True, dry_run=False)
    assert agreed(path) == left
    # deltalake also lists tombstones whose files are gone
    garbage = other(first).DeltaTable(str(path)).vacuum(**choices, full=True)
    assert not [name for name in garbage if (path / name).is_file()]


@BOTH
def test_missing_files_that_one_removes_are_gone_for_the_other(tmp_path: Path, first: str) -> None:
    path = tmp_path / "t"
    table = made(path, LIBRARIES[first])
    next(iter(sorted((path / "p=a").iterdir()))).unlink()
    table.repair()
    assert len(agreed(path)) == 9
    other(first).write_deltalake(str(path), ROWS, mode="append")
    assert len(agreed(path)) == 15
