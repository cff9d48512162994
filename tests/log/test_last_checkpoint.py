"""``_last_checkpoint`` is a hint: whatever it specifies, the table is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

HINTS = {
    "missing": None,
    "empty": "",
    "torn": '{"version":3,"si',
    "not an object": "[3]",
    "no version": '{"size":1}',
    "version as text": '{"version":"3","size":1}',
    "negative": '{"version":-1,"size":1}',
    "dangling": '{"version":2,"size":1}',
    "beyond the log": '{"version":900,"size":1}',
    "older than the newest": '{"version":1,"size":1}',
    "wrong parts": '{"version":3,"size":1,"parts":7}',
    "wrong checksum": '{"version":3,"size":1,"checksum":"00000000000000000000000000000000"}',
    "binary": "\x00\xff",
    "embedded for another file": json.dumps(
        {
            "version": 3,
            "size": 1,
            "v2Checkpoint": {"path": f"{3:020d}.checkpoint.nowhere.json", "nonFileActions": [], "sidecarFiles": []},
        }
    ),
    "embedded nonsense": '{"version":3,"size":1,"v2Checkpoint":{"path":7}}',
}


def history(path: Path) -> TableBuilder:
    table = TableBuilder(path).create({"id": "long"}, features=["v2Checkpoint"])
    for start in range(0, 50, 10):
        table.append({"id": range(start, start + 10)})
    return table.remove(table.paths()[0])


@pytest.mark.parametrize("hint", HINTS.values(), ids=HINTS.keys())
def test_load_does_not_depend_on_the_hint(tmp_path: Path, hint: str | None) -> None:
    table = history(tmp_path).checkpoint("v1", version=1, hint=False).checkpoint("v1", version=3, hint=False)
    if hint is not None:
        table.last_checkpoint(hint)
    snapshot = open_snapshot(tmp_path)
    assert snapshot.version == 6
    assert_same_rows(snapshot.scan().to_table(), table.expected())


@pytest.mark.parametrize("hint", HINTS.values(), ids=HINTS.keys())
def test_older_versions_load_past_the_hint(tmp_path: Path, hint: str | None) -> None:
    table = history(tmp_path).checkpoint("v1", version=3, hint=False)
    if hint is not None:
        table.last_checkpoint(hint)
    for version in (0, 2, 3, 4):
        assert_same_rows(open_snapshot(tmp_path, version).scan().to_table(), table.expected(version))


def test_checkpoint_newer_than_the_hint_is_used(tmp_path: Path) -> None:
    history(tmp_path).checkpoint("v1", version=2).checkpoint("v1", version=5, hint=False)
    assert open_snapshot(tmp_path).segment.checkpoint.version == 5


@pytest.mark.parametrize("checksum", [True, False])
def test_embedded_v2_checkpoint_returns_the_table(tmp_path: Path, checksum: bool) -> None:
    table = history(tmp_path).checkpoint("v2-parquet", sidecars=2, embed=True, checksum=checksum).cleanup_before(6)
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())


def test_stale_embedded_v2_checkpoint_yields_to_a_newer_one_of_its_version(tmp_path: Path) -> None:
    table = history(tmp_path).checkpoint("v2-json", sidecars=1, embed=True)
    table.checkpoint("v2-parquet", sidecars=2, hint=False).cleanup_before(6)
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())


def test_checksum_of_a_hint_with_long_arrays_is_sorted_either_way(tmp_path: Path) -> None:
    table = history(tmp_path).checkpoint("v1", hint={"tags": {f"t{i}": i for i in range(12)}, "more": list(range(12))})
    assert_same_rows(open_snapshot(tmp_path).scan().to_table(), table.expected())
