"""Log compaction files serve only if they return what their commits return."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import DeltaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder


def history(path: Path) -> TableBuilder:
    table = TableBuilder(path).create({"id": "long"}, features=["deletionVectors", "domainMetadata"])
    for start in range(0, 60, 10):
        table.append({"id": range(start, start + 10)})
    table.remove(table.paths()[0]).delete_rows(lambda row: row["id"] % 3 == 0)
    return table.commit({"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}})


def assert_every_version(table: TableBuilder) -> None:
    for version in table.commits:
        snapshot = open_snapshot(table.uri, version)
        assert_same_rows(snapshot.scan().to_table(), table.expected(version))


@pytest.mark.parametrize(
    "spans",
    [[(0, 3)], [(0, 9)], [(2, 5)], [(0, 3), (4, 9)], [(0, 5), (3, 8)], [(1, 2), (1, 8)], [(5, 7), (2, 9)]],
    ids=str,
)
def test_every_version_is_the_same_with_compacted_files(tmp_path: Path, spans: list[tuple[int, int]]) -> None:
    table = history(tmp_path)
    for start, end in spans:
        table.compact(start, end)
    assert_every_version(table)


def test_compacted_files_below_beside_and_across_a_checkpoint(tmp_path: Path) -> None:
    table = history(tmp_path).checkpoint("v1", version=4)
    for start, end in [(1, 3), (3, 6), (5, 9), (4, 8)]:
        table.compact(start, end)
    assert_every_version(table)


def test_compacted_file_replaces_commits_that_are_gone(tmp_path: Path) -> None:
    table = history(tmp_path).compact(0, 5)
    for version in range(5):
        table.drop(f"_delta_log/{version:020d}.json")
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())
    assert_same_rows(open_snapshot(tmp_path, 5).scan().to_table(), table.expected(5))
    with pytest.raises(DeltaError):
        open_snapshot(tmp_path, 3)


def test_tombstone_of_a_compacted_file_hides_the_add_below_it(tmp_path: Path) -> None:
    table = history(tmp_path).checkpoint("v1", version=2).compact(3, 9).cleanup_before(2)
    for version in range(3, 9):
        table.drop(f"_delta_log/{version:020d}.json")
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())
    assert open_snapshot(tmp_path).domains() == {"d": "1"}


def test_compacted_file_that_lost_its_tombstones_provides_no_row_back(tmp_path: Path) -> None:
    """As some writers leave them: expired removes dropped. The commits are there, and they win."""
    table = history(tmp_path).checkpoint("v1", version=2).compact(3, 9)
    name = f"{3:020d}.{9:020d}.compacted.json"
    kept = [line for line in (tmp_path / "_delta_log" / name).read_text().splitlines() if '"remove":' not in line]
    table.write_log(name, "\n".join(kept))
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())


def test_compacted_file_beyond_the_target_is_left_alone(tmp_path: Path) -> None:
    table = history(tmp_path).compact(0, 9)
    assert all(f.end_version <= 4 for f in open_snapshot(tmp_path, 4).segment.deltas)
    assert_same_rows(open_snapshot(tmp_path, 4).scan().to_table(), table.expected(4))
