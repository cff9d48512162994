"""Every kind of checkpoint returns the same table as its commits do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CheckpointError, DeltaError
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

KINDS: list[tuple[Any, dict[str, Any]]] = [
    ("v1", {}),
    ("v1-multipart", {"parts": 2}),
    ("v1-multipart", {"parts": 5}),
    ("v2-json", {}),
    ("v2-json", {"sidecars": 1}),
    ("v2-json", {"sidecars": 3, "embed": True}),
    ("v2-parquet", {}),
    ("v2-parquet", {"sidecars": 2}),
    ("v2-parquet", {"sidecars": 2, "embed": True}),
    ("v2-parquet", {"embed": True}),
    ("v2-classic", {}),
    ("v2-classic", {"sidecars": 2}),
]
IDS = ["-".join([kind, *(f"{k}{v}" for k, v in options.items())]) for kind, options in KINDS]


def life(path: Path) -> TableBuilder:
    """A table with partitions, tombstones, vectors, transactions and domains, removed ones too."""
    table = TableBuilder(path).create(
        {"id": "long", "kind": "string"},
        partition_by=["kind"],
        features=["deletionVectors", "v2Checkpoint", "domainMetadata"],
    )
    table.append([{"id": i, "kind": "abc"[i % 3]} for i in range(30)])
    table.append([{"id": i, "kind": "de"[i % 2]} for i in range(30, 50)])
    table.remove(table.paths()[0], more=[{"txn": {"appId": "app", "version": 7, "lastUpdated": 1}}])
    table.commit(
        {"domainMetadata": {"domain": "kept", "configuration": "{}", "removed": False}},
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": False}},
    )
    table.commit({"domainMetadata": {"domain": "gone", "configuration": "", "removed": True}})
    return table.delete_rows(lambda row: row["id"] % 4 == 0)


def assert_state(snapshot: Snapshot, table: TableBuilder, version: int | None = None) -> None:
    state = table.state_at(version)
    assert_same_rows(snapshot.scan().to_table(), table.expected(version))
    assert sorted(snapshot.files.columns(["path"]).column(0).to_pylist()) == sorted(path for path, _ in state.files)
    assert {a: t.version for a, t in snapshot.transactions().items()} == {
        a: t["version"] for a, t in state.txns.items()
    }
    assert snapshot.domains() == {d: v["configuration"] for d, v in state.domains.items() if not v["removed"]}
    assert list(snapshot.metadata.partition_columns) == state.metadata["partitionColumns"]


@pytest.mark.parametrize("statistics", ["json", "struct", "both", "none"])
@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_checkpoint_alone_returns_the_table(
    tmp_path: Path, kind: Any, options: dict[str, Any], statistics: Any
) -> None:
    table = life(tmp_path).checkpoint(kind, statistics=statistics, **options).cleanup_before(6)
    table.drop(f"_delta_log/{6:020d}.json")
    assert_state(open_snapshot(tmp_path), table)


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_commits_above_change_what_the_checkpoint_holds(tmp_path: Path, kind: Any, options: dict[str, Any]) -> None:
    table = life(tmp_path).checkpoint(kind, **options).cleanup_before(6)
    table.append([{"id": 100, "kind": None}]).delete_rows(lambda row: row["id"] == 33).remove(table.paths()[1])
    table.commit(
        {"txn": {"appId": "app", "version": 9}},
        {"domainMetadata": {"domain": "kept", "configuration": "x", "removed": True}},
    )
    assert_state(open_snapshot(tmp_path), table)
    assert_state(open_snapshot(tmp_path, 7), table, 7)


@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_tombstones_of_a_checkpoint_are_listed(tmp_path: Path, kind: Any, options: dict[str, Any]) -> None:
    table = life(tmp_path).checkpoint(kind, **options).cleanup_before(6)
    found = open_snapshot(tmp_path).tombstones(["path", "deletionTimestamp"])
    assert sorted(found.column("path").to_pylist()) == sorted(path for path, _ in table.state.tombstones)
    assert found.column("deletionTimestamp").null_count == 0


def test_newest_complete_checkpoint_is_chosen(tmp_path: Path) -> None:
    table = life(tmp_path).checkpoint("v1", version=2, hint=False).checkpoint("v1", version=5, hint=False)
    assert open_snapshot(tmp_path).segment.checkpoint.version == 5
    assert open_snapshot(tmp_path, 4).segment.checkpoint.version == 2
    assert_state(open_snapshot(tmp_path, 4), table, 4)
    assert open_snapshot(tmp_path, 1).segment.checkpoint is None


def test_incomplete_multipart_checkpoint_is_ignored(tmp_path: Path) -> None:
    table = life(tmp_path).checkpoint("v1-multipart", parts=3)
    table.drop(f"_delta_log/{6:020d}.checkpoint.{2:010d}.{3:010d}.parquet")
    snapshot = open_snapshot(tmp_path)
    assert snapshot.segment.checkpoint is None
    assert_state(snapshot, table)


def test_parts_of_two_multipart_checkpoints_are_not_mixed(tmp_path: Path) -> None:
    table = (
        life(tmp_path).checkpoint("v1-multipart", parts=2, hint=False).checkpoint("v1-multipart", parts=3, hint=False)
    )
    table.drop(f"_delta_log/{6:020d}.checkpoint.{1:010d}.{2:010d}.parquet")
    assert len(open_snapshot(tmp_path).segment.checkpoint.files) == 3
    table.drop(f"_delta_log/{6:020d}.checkpoint.{3:010d}.{3:010d}.parquet")
    assert_state(open_snapshot(tmp_path), table)


def test_empty_checkpoint_file_falls_back_to_commits(tmp_path: Path) -> None:
    table = life(tmp_path).write_log(f"{6:020d}.checkpoint.parquet", b"")
    assert_state(open_snapshot(tmp_path), table)


def test_torn_checkpoint_without_its_commits_is_rejected_by_name(tmp_path: Path) -> None:
    table = life(tmp_path).checkpoint("v1").cleanup_before(6)
    name = f"{6:020d}.checkpoint.parquet"
    data = (tmp_path / "_delta_log" / name).read_bytes()
    table.write_log(name, data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=name):
        open_snapshot(tmp_path).scan().to_table()


def test_missing_sidecar_is_rejected_by_name(tmp_path: Path) -> None:
    life(tmp_path).checkpoint("v2-parquet", sidecars=2).cleanup_before(6)
    (sidecar, _) = sorted((tmp_path / "_delta_log/_sidecars").iterdir())
    sidecar.unlink()
    with pytest.raises(DeltaError, match=sidecar.name):
        open_snapshot(tmp_path).scan().to_table()


def test_fields_that_nobody_has_are_passed_over_in_a_checkpoint(tmp_path: Path) -> None:
    table = life(tmp_path)
    strange = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
    table.checkpoint("v1", extra={"stranger": (strange, [{"a": 1, "b": ["x"]}])}).cleanup_before(6)
    assert_state(open_snapshot(tmp_path), table)


def test_checkpoint_split_into_many_row_groups_returns_the_table(tmp_path: Path) -> None:
    table = life(tmp_path).checkpoint("v1", row_group_size=2).cleanup_before(6)
    assert_state(open_snapshot(tmp_path), table)


def test_statistics_are_the_same_from_json_and_struct(tmp_path: Path) -> None:
    table = life(tmp_path / "t")
    found = []
    for form in ("json", "struct", "both"):
        table.checkpoint("v1", statistics=form)
        plan = open_snapshot(table.uri).scan(predicate="id > 40").files()
        found.append(sorted(plan.column("path").to_pylist()))
    assert found[0] == found[1] == found[2]
    assert 0 < len(found[0]) < len(table.paths())


def test_v2_checkpoint_with_commit_info_beside_is_read(tmp_path: Path) -> None:
    table = life(tmp_path).checkpoint("v2-json")
    (name,) = [p.name for p in (tmp_path / "_delta_log").iterdir() if "checkpoint." in p.name and p.suffix == ".json"]
    text = (tmp_path / "_delta_log" / name).read_text()
    table.write_log(name, text + json.dumps({"unknownAction": {"x": [1, {"y": None}]}}) + "\n").cleanup_before(6)
    assert_state(open_snapshot(tmp_path), table)
