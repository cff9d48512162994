"""Metadata cleanup: every version within the retention reads as before, and what only older ones need is gone."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, PostCommitHookProperties, write_deltalake
from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.commit import cleanup
from delta_core.operations import clean_log
from delta_core.testing.table_builder import TableBuilder

DAY = 86_400
NOW = int(time.time()) // DAY * DAY + 3600
KINDS = ("v1", "v1-multipart", "v2-parquet", "v2-json")


def names(root: Path) -> set[str]:
    log = root / "_delta_log"
    return {str(p.relative_to(log)) for p in log.rglob("*") if p.is_file()}


def age(root: Path, versions: int) -> None:
    """Let version v be committed as many days ago as there are versions above it, with all its files."""
    log = root / "_delta_log"
    for name in names(root):
        digits = name[:20]
        version = int(digits) if digits.isdecimal() else 0
        when = NOW - 7200 - (versions - 1 - version) * DAY
        os.utime(log / name, (when, when))


def clock() -> int:
    return NOW * 1000


def built(root: Path, count: int, checkpoints: dict[int, str], retention: int) -> TableBuilder:
    properties = {"delta.logRetentionDuration": f"interval {retention} days"}
    features = ["v2Checkpoint"] if any(k.startswith("v2") for k in checkpoints.values()) else []
    table = TableBuilder(root).create({"id": "long"}, properties=properties, features=features)
    for i in range(1, count):
        table.append([{"id": i}])
        if i in checkpoints:
            kind = checkpoints[i]
            table.checkpoint(
                kind, **({"sidecars": 2} if kind.startswith("v2") else {"parts": 2} if "multi" in kind else {})
            )
    age(root, count)
    return table


@pytest.mark.parametrize("kinds", [("v1",), ("v1-multipart", "v1"), ("v2-parquet", "v2-json")], ids=str)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_version_within_the_retention_reads_as_before(
    tmp_path_factory: pytest.TempPathFactory, kinds: tuple[str, ...], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("model")
    count = data.draw(st.integers(2, 8))
    at = data.draw(st.dictionaries(st.integers(1, count - 1), st.sampled_from(kinds), max_size=3))
    retention = data.draw(st.integers(0, count))
    table = built(root, count, at, retention)
    kept = range(max(count - 1 - retention, 0), count)
    before = names(root)
    snapshot = DeltaTable(root).snapshot()
    planned = clean_log(snapshot, dry_run=True, clock=clock)
    assert names(root) == before
    assert clean_log(snapshot, clock=clock) == planned
    assert names(root) == before - set(planned)
    for version in kept:
        assert DeltaTable(root, version=version).to_pyarrow_table().num_rows == table.expected(version).num_rows, (
            version
        )
    usable = [v for v in at if v <= kept[0]]
    if usable:
        left = {int(n[:20]) for n in names(root) if n[:20].isdecimal()}
        assert min(left) == max(usable)
        assert f"{max(usable):020d}.json" in names(root)
    else:
        assert planned == []
    assert clean_log(snapshot, clock=clock) == []


def test_files_of_all_kinds_below_the_checkpoint_go_commits_first(tmp_path: Path) -> None:
    table = built(tmp_path, 9, {2: "v1-multipart", 3: "v2-parquet", 4: "v2-json", 6: "v2-parquet"}, 1)
    table.compact(1, 3).compact(5, 6).compact(6, 7).compact(7, 8)
    (tmp_path / "_delta_log" / f"{2:020d}.crc").write_text("{}")
    age(tmp_path, 9)
    sidecars = {n for n in names(tmp_path) if n.startswith("_sidecars/")}
    gone = clean_log(DeltaTable(tmp_path).snapshot(), clock=clock)
    left = names(tmp_path)
    kinds = ["checkpoint" in n for n in gone if not n.startswith("_sidecars/")]
    assert kinds == sorted(kinds)
    assert {n[:20] for n in left if n[:20].isdecimal()} == {f"{v:020d}" for v in (6, 7, 8)}
    assert [n for n in sorted(left) if "compacted" in n] == [f"{7:020d}.{8:020d}.compacted.json"]
    assert len(sidecars & left) == 2
    assert DeltaTable(tmp_path).count() == 8


def test_young_sidecars_that_no_checkpoint_names_stay(tmp_path: Path) -> None:
    built(tmp_path, 6, {3: "v2-parquet"}, 1)
    old, young = (tmp_path / "_delta_log/_sidecars" / f"{n}.parquet" for n in ("old", "young"))
    for path, days in ((old, 9), (young, 1)):
        path.write_bytes(b"x")
        os.utime(path, (NOW - days * DAY, NOW - days * DAY))
    assert "_sidecars/old.parquet" in clean_log(DeltaTable(tmp_path).snapshot(), clock=clock)
    assert (old.exists(), young.exists()) == (False, True)


def test_checkpoint_that_can_not_be_read_is_no_place_to_stop(tmp_path: Path) -> None:
    built(tmp_path, 8, {2: "v1", 5: "v1"}, 1)
    (tmp_path / "_delta_log" / f"{5:020d}.checkpoint.parquet").write_bytes(b"damaged")
    age(tmp_path, 8)
    clean_log(DeltaTable(tmp_path).snapshot(), clock=clock)
    assert f"{2:020d}.json" in names(tmp_path)
    assert f"{1:020d}.json" not in names(tmp_path)
    assert DeltaTable(tmp_path).count() == 7


def test_protected_checkpoints_stay(tmp_path: Path) -> None:
    properties = {
        "delta.logRetentionDuration": "interval 1 days",
        "delta.requireCheckpointProtectionBeforeVersion": "6",
    }
    table = TableBuilder(tmp_path).create({"id": "long"}, properties=properties, features=["checkpointProtection"])
    for i in range(1, 9):
        table.append([{"id": i}])
        if i == 4:
            table.checkpoint("v1")
    age(tmp_path, 9)
    assert clean_log(DeltaTable(tmp_path).snapshot(), clock=clock) == []
    table.checkpoint("v1", version=6)
    age(tmp_path, 9)
    assert clean_log(DeltaTable(tmp_path).snapshot(), clock=clock)
    assert min(n[:20] for n in names(tmp_path) if n[:20].isdecimal()) == f"{6:020d}"


def test_table_that_wants_no_cleanup_is_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.enableExpiredLogCleanup": "false"})
    with pytest.raises(UnsupportedOperationError, match=r"delta\.enableExpiredLogCleanup"):
        DeltaTable(tmp_path).cleanup_metadata()


def test_young_log_stays_whole(tmp_path: Path) -> None:
    for _ in range(3):
        write_deltalake(tmp_path, pa.table({"id": [1]}), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    before = names(tmp_path)
    DeltaTable(tmp_path).cleanup_metadata()
    assert names(tmp_path) == before


def _append_with_checkpoint(root: Path, **arguments: object) -> None:
    """Append until a commit writes a checkpoint."""
    while True:
        write_deltalake(str(root), pa.table({"id": pa.array([0], pa.int64())}), mode="append", **arguments)
        version = DeltaTable(root).version()
        if (root / "_delta_log" / f"{version:020d}.checkpoint.parquet").exists():
            return


def _old(root: Path, **properties: str) -> Path:
    table = TableBuilder(root).create({"id": "long"}, properties={"delta.checkpointInterval": "5", **properties})
    for i in range(1, 5):
        table.append([{"id": i}])
        if i == 3:
            table.checkpoint("v1")
    log = root / "_delta_log"
    for i, file in enumerate(sorted(log.iterdir())):
        os.utime(file, (1_000_000_000 + i, 1_000_000_000 + i))
    return root


def test_commit_with_a_checkpoint_deletes_what_has_expired(tmp_path: Path) -> None:
    _append_with_checkpoint(_old(tmp_path))
    left = {n[:20] for n in names(tmp_path) if n[:20].isdecimal()}
    assert left == {f"{v:020d}" for v in (3, 4, 5)}
    assert DeltaTable(tmp_path).count() == 5


@pytest.mark.parametrize(
    ("property_value", "requested", "is_cleaned"),
    [("true", False, False), ("false", None, False), ("false", True, True), ("true", None, True)],
)
def test_argument_goes_before_the_property(
    tmp_path: Path, property_value: str, requested: bool | None, is_cleaned: bool
) -> None:
    root = _old(tmp_path, **{"delta.enableExpiredLogCleanup": property_value})
    _append_with_checkpoint(root, post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=requested))
    assert (f"{0:020d}.json" not in names(root)) is is_cleaned


def test_cleanup_that_fails_leaves_the_commit_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = _old(tmp_path)

    def fail(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(cleanup, "_delete", fail)
    _append_with_checkpoint(root)
    assert DeltaTable(root).version() == 5
    assert "could not be deleted: no" in caplog.text
    monkeypatch.undo()
    _append_with_checkpoint(root)
    assert f"{0:020d}.json" not in names(root)


def test_log_is_listed_once_a_day_for_an_old_table_and_never_for_a_young_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    monkeypatch.setattr(cleanup, "_clean", lambda snapshot, *_, **__: listed.append(snapshot.uri) or [])
    old, young = _old(tmp_path / "old"), str(tmp_path / "young")
    for _ in range(3):
        _append_with_checkpoint(old)
    write_deltalake(young, pa.table({"id": [1]}), configuration={"delta.checkpointInterval": "1"})
    for _ in range(3):
        write_deltalake(young, pa.table({"id": [1]}), mode="append")
    assert listed == [DeltaTable(old).snapshot().uri]
