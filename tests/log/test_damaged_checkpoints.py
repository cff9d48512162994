"""Checkpoints that turn out unreadable, and commits that are gone, early or late."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import CheckpointError, LogError, VersionNotFoundError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

KINDS = ["v1", "v1-multipart", "v2-json", "v2-parquet", "v2-classic"]


def built(path: Path, kind: str, **options: int) -> TableBuilder:
    """Return a table of three commits under a checkpoint and one above it, with a checksum of the latest version."""
    table = TableBuilder(path).create({"id": "long"}, features=["v2Checkpoint"] if kind.startswith("v2") else [])
    for number in range(2):
        table.append([{"id": number}])
    return table.checkpoint(kind, **options).append([{"id": 2}]).checksum()  # type: ignore[arg-type]


def checkpoint_files(path: Path) -> list[Path]:
    return sorted((path / "_delta_log").glob("*.checkpoint*"))


def ids(path: Path, version: int | None = None) -> list[int]:
    return sorted(open_snapshot(path, version).scan().to_table().column("id").to_pylist())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", ["", "PAR1 torn", "{"])
def test_damaged_checkpoint_is_passed_over_where_its_commits_are_there(tmp_path: Path, kind: str, content: str) -> None:
    built(tmp_path, kind)
    checkpoint_files(tmp_path)[-1].write_text(content)
    assert ids(tmp_path) == [0, 1, 2]
    (tmp_path / "_delta_log" / f"{3:020d}.crc").unlink()
    assert ids(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("content", ["", "PAR1 torn"])
def test_segment_states_which_checkpoint_is_passed_over(tmp_path: Path, content: str) -> None:
    table = built(tmp_path, "v1")
    name = checkpoint_files(tmp_path)[-1].name
    checkpoint_files(tmp_path)[-1].write_text(content)
    (tmp_path / "_delta_log" / f"{3:020d}.crc").unlink()
    snapshot = open_snapshot(tmp_path)
    assert snapshot.files.count == 3
    assert f"{name} is passed over: it can't be read." in snapshot.segment.notes
    table.checkpoint("v1")
    assert len(open_snapshot(tmp_path).segment.notes) == 1


def test_segment_states_how_many_parts_of_a_checkpoint_are_there(tmp_path: Path) -> None:
    built(tmp_path, "v1-multipart")
    files = checkpoint_files(tmp_path)
    files[0].unlink()
    expected = f"The checkpoint of version 2 is passed over: {len(files) - 1} of its {len(files)} parts are there."
    assert expected in open_snapshot(tmp_path).segment.notes


@pytest.mark.parametrize("kind", KINDS[2:])
def test_checkpoint_without_one_of_its_sidecars_is_passed_over(tmp_path: Path, kind: str) -> None:
    built(tmp_path, kind, sidecars=2)
    next((tmp_path / "_delta_log/_sidecars").iterdir()).unlink()
    assert ids(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_checkpoint_is_named_where_nothing_replaces_it(tmp_path: Path, kind: str) -> None:
    built(tmp_path, kind)
    checkpoint_files(tmp_path)[-1].write_text("")
    for version in range(3):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises((CheckpointError, VersionNotFoundError, LogError)):
        ids(tmp_path)


def test_refresh_reads_again_where_its_own_commits_were_cleaned_up(tmp_path: Path) -> None:
    table = built(tmp_path, "v1")
    held = open_snapshot(tmp_path)
    assert held.files.count == 3
    table.append([{"id": 3}]).checkpoint("v1").append([{"id": 4}])
    for name in [*(tmp_path / "_delta_log").glob("*0[0-3].json"), checkpoint_files(tmp_path)[0]]:
        name.unlink()
    latest = held.update()
    assert latest.segment.checkpoint is not None
    assert latest.segment.checkpoint.version == 4
    assert sorted(latest.scan().to_table().column("id").to_pylist()) == [0, 1, 2, 3, 4]


def test_time_of_a_version_whose_commit_is_gone_is_not_known(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 0}]).checkpoint()
    for name in (tmp_path / "_delta_log").glob("*.json"):
        name.unlink()
    with pytest.raises(VersionNotFoundError, match="its time is not known"):
        _ = open_snapshot(tmp_path).timestamp_ms


def test_encoded_colon_in_a_path_ends_no_scheme(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    (action,) = table.add_actions([{"id": 7}], path="s3:x.parquet")
    action["add"]["path"] = "s3%3Ax.parquet"
    table.commit(action)
    assert ids(tmp_path) == [7]
