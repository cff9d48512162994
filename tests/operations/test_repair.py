"""Repair: what verify finds is mended where it is certain what is right, and nothing else is touched."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.operations import test_verify as damage
from tests.operations.row_tables import rows_of, table_of
from tests.operations.test_verify import ROWS, VECTORS, built, change_add, log

#: What is done to a table, and the steps that mend it; rows are those that remain readable.
MENDED: dict[str, list[str]] = {
    "checkpoint_cut": ["write-checkpoint"],
    "checkpoint_wrong": ["write-checkpoint"],
    "hint_gone_version": ["write-hint"],
    "hint_torn": ["write-hint"],
    "checksum": ["delete-checksum", "write-checksum"],
    "checksum_torn": ["delete-checksum"],
    "compacted": ["delete-compacted"],
    "file_gone": ["remove-files"],
}


def steps(result: dict[str, Any]) -> list[str]:
    return [s["step"] for s in result["steps"]]


@pytest.mark.parametrize("name", MENDED)
def test_damage_is_mended_and_nothing_is_found_afterwards(tmp_path: Path, name: str) -> None:
    uri = tmp_path / "t"
    before = rows_of(built(uri).to_pyarrow_table())
    damage.DAMAGE[name][0](uri)
    table = DeltaTable(uri)
    files = {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()}
    planned = table.repair(dry_run=True)
    assert {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()} == files
    done = table.repair()
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    assert planned["steps"] == done["steps"]
    assert steps(done) == MENDED[name]
    fresh = DeltaTable(uri)
    assert fresh.verify().findings.num_rows == 0, fresh.verify().to_text()
    expected = [r for r in before if name != "file_gone" or r[1] != "c"]
    assert rows_of(fresh.to_pyarrow_table()) == expected == rows_of(table.to_pyarrow_table())
    assert fresh.repair()["steps"] == []


def test_sound_table_is_not_changed(tmp_path: Path) -> None:
    table = built(tmp_path / "t")
    version = table.version()
    assert table.repair() == {"dry_run": False, "files_removed": [], "steps": []}
    assert (table.version(), DeltaTable(tmp_path / "t").version()) == (version, version)


def test_files_removed_are_named_as_the_peer_names_them(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of([(1, "a b", None), (2, "c", None)]), partition_by=["p"])
    gone = next((tmp_path / "t").glob("p=a*/*.parquet"))
    gone.unlink()
    table = DeltaTable(tmp_path / "t")
    result = table.repair()
    assert result["files_removed"] == [str(gone.relative_to(tmp_path / "t"))]
    assert table.version() == 1
    assert table.history(1)[0]["operation"] == "FSCK"
    assert rows_of(table.to_pyarrow_table()) == [(2, "c", None)]


def test_removal_can_be_undone(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    table = built(uri)
    before = rows_of(table.to_pyarrow_table())
    path = next(uri.glob("p=c/*.parquet"))
    data = path.read_bytes()
    path.unlink()
    table.repair()
    path.write_bytes(data)
    table.restore(3)
    assert rows_of(table.to_pyarrow_table()) == before


def test_missing_vector_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration=VECTORS)
    DeltaTable(uri).delete("id = 3")
    (vector,) = uri.glob("*.bin")
    data = vector.read_bytes()
    vector.unlink()
    table = DeltaTable(uri)
    assert steps(table.repair()) == ["none"]
    assert table.version() == 1
    vector.write_bytes(data)
    assert table.verify().ok


def test_checkpoint_whose_commits_are_gone_is_left_alone(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    log(uri, 0).unlink()
    path = log(uri, 1, ".checkpoint.parquet")
    data = path.read_bytes()
    table = DeltaTable(uri)
    path.write_bytes(data[:-100])
    assert steps(table.repair(dry_run=True)) == ["none"]
    assert path.read_bytes() == data[:-100]


@pytest.mark.parametrize("vectors", [False, True])
def test_wrong_statistics_are_replaced(tmp_path: Path, vectors: bool) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration=VECTORS if vectors else None)
    version = 0
    if vectors:
        DeltaTable(uri).delete("id = 3")
        version = 1
    change_add(log(uri, version), lambda add: add.update(stats=json.dumps({"numRecords": 7})))
    table = DeltaTable(uri)
    before = rows_of(table.to_pyarrow_table())
    assert steps(table.repair(deep=True)) == ["replace-statistics"]
    fresh = DeltaTable(uri)
    assert fresh.verify(deep="rows").findings.num_rows == 0
    assert rows_of(fresh.to_pyarrow_table()) == before
    assert fresh.snapshot().scan().count() == len(before)


def test_wrong_checkpoint_in_parts_is_replaced_by_one_file(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    table = DeltaTable(uri)
    table.create_checkpoint()
    before = rows_of(table.to_pyarrow_table())
    files = sorted((uri / "_delta_log").glob("*3.checkpoint*.parquet"))
    assert len(files) == 1
    data = pq.read_table(files[0])
    # a removed file comes back to life
    other = pq.read_table(next((uri / "_delta_log").glob("*1.checkpoint*.parquet")))
    target = uri / "_delta_log" / f"{3:020}.checkpoint.{1:010}.{2:010}.parquet"
    pq.write_table(data, target)
    pq.write_table(other, str(target).replace(f"{1:010}.{2:010}", f"{2:010}.{2:010}"))
    files[0].unlink()
    assert rows_of(DeltaTable(uri).to_pyarrow_table()) != before
    assert "write-checkpoint" in steps(DeltaTable(uri).repair())
    fresh = DeltaTable(uri)
    assert rows_of(fresh.to_pyarrow_table()) == before
    assert fresh.verify().findings.num_rows == 0, fresh.verify().to_text()


def test_repair_that_is_killed_leaves_a_readable_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = tmp_path / "t"
    before = rows_of(built(uri).to_pyarrow_table())
    for name in ("checkpoint_wrong", "hint_torn", "checksum_torn", "compacted"):
        damage.DAMAGE[name][0](uri)
    calls = ("put_if_absent", "put", "delete", "put_stream")
    for number in range(12):
        left = [number]

        def counted(call: Any, left: list[int] = left) -> Any:
            def run(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
                return call(*args, **kwargs)

            return run

        table = DeltaTable(uri)
        with monkeypatch.context() as patch:
            storage = table.snapshot().engine.storage
            for call in calls:
                patch.setattr(storage, call, counted(getattr(storage, call)))
            with contextlib.suppress(KeyboardInterrupt):
                table.repair()
        DeltaTable(uri).to_pyarrow_table()
        if left[0] >= 0:
            break
    assert left[0] >= 0
    assert rows_of(DeltaTable(uri).to_pyarrow_table()) == before
    assert DeltaTable(uri).verify().findings.num_rows == 0
