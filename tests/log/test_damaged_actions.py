"""Actions, checkpoints and checksums with what the protocol does not allow: rejected by name, or passed over."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.errors import CheckpointError, DeltaError, LogChangedError, LogError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

DEEP = "[" * 5000 + "]" * 5000
DIGITS = "9" * 5000


def rows(path: Path) -> list[int]:
    return sorted(open_snapshot(path).scan().to_table()["id"].to_pylist())


def rows_of(table: TableBuilder) -> list[int]:
    return sorted(table.expected()["id"].to_pylist())


def commit_0(
    path: Path, change: Callable[[dict[str, Any]], None] | None = None, text: tuple[str, str] | None = None
) -> None:
    """Rewrite the first commit: its actions, or its text."""
    file = path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    if change is not None:
        for line in lines:
            change(line)
    written = "\n".join(map(json.dumps, lines))
    file.write_text(written if text is None else written.replace(*text))


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("metaData", "configuration", "abc"),
        ("metaData", "configuration", [1]),
        ("metaData", "configuration", 5),
        ("metaData", "partitionColumns", "id"),
        ("metaData", "partitionColumns", [1]),
        ("metaData", "name", ["x"]),
        ("metaData", "schemaString", {"type": "struct"}),
        ("metaData", "format", "parquet"),
        ("metaData", "createdTime", "soon"),
        ("metaData", "format", {"provider": 1}),
        ("protocol", "minReaderVersion", "1"),
        ("protocol", "writerFeatures", "x"),
        ("protocol", "minWriterVersion", None),
        ("metaData", None, []),
        ("protocol", None, "x"),
    ],
)
def test_action_with_a_field_of_another_type_is_rejected_by_name(
    tmp_path: Path, action: str, field: str | None, value: Any
) -> None:
    TableBuilder(tmp_path).create({"id": "long"})

    def change(line: dict[str, Any]) -> None:
        if action in line:
            line[action] = value if field is None else {**line[action], field: value}

    commit_0(tmp_path, change)
    with pytest.raises(
        LogError, match=action if field is None else "provider" if field == "format" and value != "parquet" else field
    ):
        DeltaTable(tmp_path)


@pytest.mark.parametrize("field", ["partitionColumns", "configuration"])
def test_metadata_that_lacks_what_rows_depend_on_is_rejected(tmp_path: Path, field: str) -> None:
    TableBuilder(tmp_path).create({"id": "long"})
    commit_0(tmp_path, lambda line: line.get("metaData", {}).pop(field, None))
    with pytest.raises(LogError, match=f"has no {field}"):
        DeltaTable(tmp_path)


@pytest.mark.parametrize("text", [DEEP, DIGITS])
@pytest.mark.parametrize("action", ["protocol", "txn", "commitInfo"])
def test_action_that_no_parser_takes_is_rejected(tmp_path: Path, action: str, text: str) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, actions=[{"txn": {"appId": "a", "version": 1}}])
    commit_0(tmp_path, text=(f'"{action}": {{', f'"{action}": {{"x": {text}, '))

    def read_all() -> None:
        table = DeltaTable(tmp_path)
        table.transaction_version("a")
        table.history()

    with pytest.raises(LogError):
        read_all()


@pytest.mark.parametrize("txn", [{"appId": "a"}, {"appId": "a", "version": "1"}, {"version": 1}, []])
def test_transaction_without_id_or_version_is_rejected(tmp_path: Path, txn: Any) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, actions=[{"txn": {"appId": "a", "version": 1}}])
    commit_0(tmp_path, lambda line: line.update(txn=txn) if "txn" in line else None)
    with pytest.raises(LogError, match="txn"):
        DeltaTable(tmp_path).transaction_version("a")


# --- what is never needed ------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        f'{{"version": {DIGITS}}}',
        '{"version": 1, "checksum": "x", "v2Checkpoint": {"path": "\\ud800"}}',
        "[]",
        '"',
    ],
)
def test_hint_that_cannot_be_read_is_passed_over(tmp_path: Path, text: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).checkpoint()
    table.last_checkpoint(text)
    assert rows(tmp_path) == rows_of(table)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metadata", {"schemaString": DEEP}),
        ("metadata", {"schemaString": "{"}),
        ("metadata", {"configuration": "x"}),
        ("metadata", {}),
        ("protocol", {"minReaderVersion": 99, "minWriterVersion": 99}),
        ("protocol", []),
    ],
)
def test_checksum_that_makes_no_table_is_passed_over(tmp_path: Path, name: str, value: Any) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).checkpoint().append([{"id": 2}])
    table.checksum(**{name: value})
    assert rows(tmp_path) == rows_of(table)


def test_damaged_checksum_takes_no_partition_values(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long", "kind": "string"}, partition_by=["kind"])
    table.append([{"id": 1, "kind": "a"}]).checkpoint().append([{"id": 2, "kind": "b"}]).checksum()
    file = tmp_path / "_delta_log" / f"{2:020d}.crc"
    file.write_text(file.read_text().replace("partitionColumns", "partitionCo1umns"))
    assert sorted(open_snapshot(tmp_path).scan().to_table()["kind"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("name", ["_last_checkpoint", f"{2:020d}.crc"])
def test_folder_in_place_of_a_file_that_is_not_needed_is_passed_over(tmp_path: Path, name: str) -> None:
    table = (
        TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).checkpoint().append([{"id": 2}]).checksum()
    )
    (tmp_path / "_delta_log" / name).unlink()
    (tmp_path / "_delta_log" / name).mkdir()
    assert rows(tmp_path) == rows_of(table)


def test_checksum_nested_too_deeply_is_passed_over(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).checkpoint().append([{"id": 2}])
    (tmp_path / "_delta_log" / f"{2:020d}.crc").write_text(f'{{"metadata": {DEEP}}}')
    assert rows(tmp_path) == rows_of(table)


# --- checkpoints ---------------------------------------------------------------------------


def with_checkpoint(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Make a table that its checkpoint alone reports, and change that checkpoint's rows."""
    table = TableBuilder(path).create(
        {"id": "long", "kind": "string"}, partition_by=["kind"], features=["deletionVectors"]
    )
    table.append([{"id": i, "kind": "a"} for i in range(4)]).delete_rows(lambda row: row["id"] == 1).checkpoint()
    file = path / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    out = io.BytesIO()
    pq.write_table(change(pq.read_table(file)), out)
    table.cleanup_before(2)
    (path / "_delta_log" / f"{2:020d}.json").unlink()
    file.write_bytes(out.getvalue())


def replaced(table: pa.Table, field: str, make: Callable[[pa.Array], pa.Array | None]) -> pa.Table:
    """Replace a field of ``add`` by what a function makes of it; None: leave it out."""
    index = table.schema.get_field_index("add")
    add = table.column(index).combine_chunks()
    parts = {f.name: part for f, part in zip(add.type, add.flatten(), strict=True)}
    new = make(parts.pop(field))
    if new is not None:
        parts[field] = new
    return table.set_column(
        index, "add", pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=add.is_null())
    )


def test_sound_checkpoint_alone_reports_the_rows(tmp_path: Path) -> None:
    with_checkpoint(tmp_path, lambda table: table)
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [0, 2, 3]


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("deletionVector", lambda c: pa.array(["x"] * len(c))),
        ("deletionVector", lambda c: pa.StructArray.from_arrays([c.field("offset")], ["offset"], mask=c.is_null())),
        (
            "deletionVector",
            lambda c: pa.StructArray.from_arrays([c.field("storageType")], ["storageType"], mask=c.is_null()),
        ),
        ("path", lambda c: None),
        ("path", lambda c: pa.nulls(len(c), pa.list_(pa.int32()))),
        (
            "partitionValues",
            lambda c: pa.StructArray.from_arrays([pa.array(["a"] * len(c))], ["kind"], mask=c.is_null()),
        ),
        ("size", lambda c: pa.array(["many"] * len(c))),
    ],
)
def test_checkpoint_with_a_column_of_another_type_is_rejected(tmp_path: Path, field: str, make: Any) -> None:
    with_checkpoint(tmp_path, lambda table: replaced(table, field, make))
    if field == "path" and make(pa.array(["x"])) is not None:
        with pytest.raises(DeltaError):
            DeltaTable(tmp_path).to_pyarrow_table()
        return
    said = r"can't be read: .*(deletion vectors of type|has add of type|add\.(partitionValues|size))"
    with pytest.raises(CheckpointError, match=said):
        DeltaTable(tmp_path).to_pyarrow_table()


@pytest.mark.parametrize("field", ["path", "partitionValues"])
def test_checkpoint_with_a_text_that_is_no_utf8_is_rejected(tmp_path: Path, field: str) -> None:
    def broken(column: pa.Array) -> pa.Array:
        text = pa.array([None if not v.is_valid else b"\xff\xfe" for v in column], pa.binary()).view(pa.string())
        if field == "path":
            return text
        ends = pa.array([0, *range(1, len(column) + 1)], pa.int32())
        return pa.MapArray.from_arrays(ends, pa.array(["kind"] * len(column)), text)

    with_checkpoint(tmp_path, lambda table: replaced(table, field, broken))
    with pytest.raises(CheckpointError, match="no UTF-8"):
        DeltaTable(tmp_path).to_pyarrow_table()


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("work", ["to_pyarrow_table", "file_uris", "count"])
def test_path_that_decodes_to_no_utf8_is_rejected(tmp_path: Path, work: str) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    file = tmp_path / "_delta_log" / f"{1:020d}.json"
    file.write_text(file.read_text().replace(table.paths()[0], "a%bfb.parquet"))
    found = DeltaTable(tmp_path)
    with pytest.raises(LogError, match="no UTF-8"):
        getattr(found, work)()


def test_commit_that_vanished_with_its_time_states_so(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).checkpoint()
    snapshot = open_snapshot(table.uri)
    first = tmp_path / "_delta_log" / f"{0:020d}.json"
    first.unlink()
    first.symlink_to(tmp_path / "nowhere")
    with pytest.raises(LogChangedError, match="gone"):
        snapshot.version_at(0)
