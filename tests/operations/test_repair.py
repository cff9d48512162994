"""Repair: what verify finds is mended where it is certain what is right, and nothing else is touched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.operations import test_verify as damage
from tests.operations.row_tables import rows_of, table_of
from tests.operations.test_verify import ROWS, VECTORS, actions, built, change_add, log, write_actions

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


WRONG_STATISTICS = {
    "count": '{"numRecords":7}',
    "cut": '{"numRecords":',
    "type": '{"numRecords":10,"minValues":{"id":"one"},"nullCount":{"id":0}}',
}


@pytest.mark.parametrize("wrong", WRONG_STATISTICS)
@pytest.mark.parametrize("vectors", [False, True])
def test_wrong_statistics_are_replaced(tmp_path: Path, vectors: bool, wrong: str) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration=VECTORS if vectors else None)
    version = 0
    if vectors:
        DeltaTable(uri).delete("id = 3")
        version = 1
    change_add(log(uri, version), lambda add: add.update(stats=WRONG_STATISTICS[wrong]))
    table = DeltaTable(uri)
    rule = "statistics-wrong" if wrong == "count" else "statistics-unreadable"
    assert rule in table.verify(deep=True).rules()
    assert rule in table.verify(deep="rows").rules()
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


def lost_line(kind: str, number: int = 0) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        found = actions(path)
        gone = [a for a in found if kind in a][number]
        write_actions(path, [a for a in found if a is not gone])

    return damage


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def flipped(text: bytes, offset: int) -> Callable[[Path], None]:
    """Return what flips a bit of the byte at an offset of a text."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[data.index(text) + offset] ^= 1
        path.write_bytes(data)

    return damage


#: Damages to the commit of a version below the checkpoint.
COMMITS: dict[str, tuple[int, Callable[[Path], None]]] = {
    "emptied": (0, emptied),
    "emptied, a delete": (1, emptied),
    "lost add": (0, lost_line("add")),
    "lost remove": (1, lost_line("remove")),
    "lost metadata": (0, lost_line("metaData")),
    "path": (0, flipped(b'"path":"', 25)),
    "size": (0, flipped(b'"size":', 7)),
    "size with another number of digits": (0, lambda p: p.write_text(p.read_text().replace('"size":', '"size":1'))),
    "name of an action": (0, flipped(b'{"add":', 3)),
    "schema": (0, flipped(b"double", 1)),
    "partition value": (0, flipped(b'"partitionValues":{"p":"', 24)),
}


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("case", COMMITS)
def test_damaged_commit_below_a_sound_checkpoint_changes_nothing(tmp_path: Path, case: str, checksums: bool) -> None:
    uri = tmp_path / "t"
    before = rows_of(built(uri).to_pyarrow_table())
    if not checksums:
        for path in (uri / "_delta_log").glob("*.crc"):
            path.unlink()
    version, damage = COMMITS[case]
    damage(log(uri, version))
    files = {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()}
    done = DeltaTable(uri).repair(deep=True)
    assert set(steps(done)) == {"none"}
    assert {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()} == files
    assert rows_of(DeltaTable(uri).to_pyarrow_table()) == before
    assert not DeltaTable(uri).verify(deep="rows").ok


@pytest.mark.parametrize("damage", [emptied, lost_line("add"), flipped(b'"path":"', 25)])
def test_compacted_file_with_what_a_commit_lost_stays(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    uri = tmp_path / "t"
    table = built(uri)
    table.compact_logs(2, 3)
    damage(log(uri, 2))
    files = {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()}
    assert set(steps(DeltaTable(uri).repair())) == {"none"}
    assert {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()} == files


@pytest.mark.parametrize("damage", [emptied, lost_line("add"), lost_line("remove")])
def test_checksum_that_proves_a_loss_stays(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    uri = tmp_path / "t"
    built(uri)
    damage(log(uri, 3))
    data = log(uri, 3, ".crc").read_bytes()
    assert not DeltaTable(uri).verify().ok
    assert set(steps(DeltaTable(uri).repair())) == {"none"}
    assert log(uri, 3, ".crc").read_bytes() == data


@pytest.mark.parametrize("damage", ["gone", "emptied", "cut"])
def test_checkpoint_with_a_damaged_sidecar_is_written_again(tmp_path: Path, damage: str) -> None:
    uri = tmp_path / "t"
    before = rows_of(built(uri, {"delta.checkpointPolicy": "v2"}).to_pyarrow_table())
    sidecar = min((uri / "_delta_log" / "_sidecars").glob("*.parquet"))
    data = sidecar.read_bytes()
    sidecar.unlink() if damage == "gone" else sidecar.write_bytes(b"" if damage == "emptied" else data[:-50])
    assert DeltaTable(uri).verify().rules() == {"checkpoint-unreadable"}
    done = DeltaTable(uri).repair()
    assert steps(done)[:1] == ["write-checkpoint"]
    kept = uri / done["steps"][0]["kept"]
    assert any(".checkpoint." in p.name for p in kept.iterdir())
    assert rows_of(DeltaTable(uri).to_pyarrow_table()) == before
    assert DeltaTable(uri).verify().findings.num_rows == 0


def test_definition_of_a_checksum_that_no_other_source_has_is_found(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    table = built(uri)
    write_deltalake(table, table_of([(60, "d", 1.0)]), mode="append")
    path = log(uri, 3, ".crc")
    text = path.read_text()
    path.write_text(text.replace("double", "float", 1))
    assert "checksum-differs" in DeltaTable(uri).verify().rules()
    assert steps(DeltaTable(uri).repair()) == ["delete-checksum"]
    assert DeltaTable(uri).verify().findings.num_rows == 0


def test_entry_of_a_missing_file_stays_if_its_path_may_be_damaged(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS))
    (path,) = uri.glob("*.parquet")
    path.rename(path.with_name("part-other.parquet"))
    assert steps(DeltaTable(uri).repair()) == ["none"]
    path.with_name("part-other.parquet").unlink()
    assert steps(DeltaTable(uri).repair()) == ["remove-files"]


def test_entry_stays_if_its_path_may_be_that_of_a_file_the_same_commit_removed(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration=VECTORS)
    DeltaTable(uri).delete("id = 3")
    # the file gets a vector: one commit removes it, and adds it again
    path = next(a["add"]["path"] for a in actions(log(uri, 1)) if "add" in a)
    change_add(log(uri, 1), lambda add: add.update(path=path.replace("part", "pbrt", 1)))
    assert set(steps(DeltaTable(uri).repair())) == {"none"}


def test_vector_of_a_checkpoint_that_commits_lack_is_found(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    change_add(log(uri, 1), lambda add: add["deletionVector"].update(cardinality=2))
    assert "checkpoint-differs" in DeltaTable(uri).verify().rules()


def test_what_a_run_writes_again_is_no_ground_for_a_removal(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    damage.DAMAGE["checkpoint_cut"][0](uri)
    gone = next(uri.glob("p=c/*.parquet"))
    gone.unlink()
    first = DeltaTable(uri).repair()
    assert first["files_removed"] == []
    assert "remove-files" not in steps(first)


def test_step_that_is_not_confirmed_is_left_out(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    for name in ("checkpoint_cut", "hint_torn"):
        damage.DAMAGE[name][0](uri)
    data = log(uri, 1, ".checkpoint.parquet").read_bytes()
    done = DeltaTable(uri).repair(confirm=lambda step: step["step"] != "write-checkpoint")
    assert steps(done) == ["write-hint"]
    assert not (uri / "_delta_log" / "_last_checkpoint").exists()
    assert log(uri, 1, ".checkpoint.parquet").read_bytes() == data
