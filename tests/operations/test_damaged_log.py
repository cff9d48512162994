"""Operations that copy or delete by what a log contains: of a damaged log they keep the only good copy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import LogError
from tests.operations.row_tables import table_of
from tests.operations.test_repair import emptied, lost_line
from tests.operations.test_verify import actions, built, log, write_actions


def contents(uri: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in uri.rglob("*") if p.is_file()}


def size_changed(path: Path) -> None:
    found = actions(path)
    next(a["add"] for a in found if "add" in a)["size"] += 1
    write_actions(path, found)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "emptied": emptied,
    "lost add": lost_line("add"),
    "lost remove": lost_line("remove"),
    "size": size_changed,
}
#: What is called of a table whose latest version is damaged.
CALLS: dict[str, Callable[[DeltaTable, Path], Any]] = {
    "checkpoint": lambda t, other: t.create_checkpoint(),
    "vacuum": lambda t, other: t.vacuum(full=True, dry_run=False),
    "vacuum lite": lambda t, other: t.vacuum(dry_run=False),
    "clone": lambda t, other: t.clone(other),
    "restore": lambda t, other: t.restore(3),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("damage", DAMAGE)
def test_version_that_its_checksum_contradicts_is_neither_copied_nor_cleaned(
    tmp_path: Path, damage: str, call: str
) -> None:
    uri = tmp_path / "t"
    built(uri)
    DAMAGE[damage](log(uri, 3))
    if call == "restore":
        # a version above the damage, without a checksum
        DeltaTable(uri).alter.set_table_properties({"custom.a": "1"})
        log(uri, 4, ".crc").unlink(missing_ok=True)
    before = contents(uri)
    with pytest.raises(LogError, match="one of the two is damaged"):
        CALLS[call](DeltaTable(uri), tmp_path / "other")
    assert contents(uri) == before
    assert not (tmp_path / "other" / "_delta_log").exists()


@pytest.mark.parametrize("damage", ["emptied", "lost add"])
@pytest.mark.parametrize("checksums", [True, False])
def test_log_stays_below_a_checkpoint_that_lacks_what_commits_added(
    tmp_path: Path, damage: str, checksums: bool, caplog: pytest.LogCaptureFixture
) -> None:
    uri = tmp_path / "t"
    table = built(uri)
    write_deltalake(table, table_of([(60, "d", 1.0)]), mode="append")
    # a checkpoint that was written while a commit was damaged
    data, checksum = log(uri, 2).read_bytes(), log(uri, 4, ".crc").read_bytes()
    for path in (uri / "_delta_log").glob("*.crc"):
        path.unlink()
    DAMAGE[damage](log(uri, 2))
    DeltaTable(uri).create_checkpoint()
    log(uri, 2).write_bytes(data)
    log(uri, 4, ".crc").unlink(missing_ok=True)
    if checksums:
        log(uri, 4, ".crc").write_bytes(checksum)
    table = DeltaTable(uri)
    for path in (uri / "_delta_log").iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    before = contents(uri)
    table.cleanup_metadata()
    # the sound checkpoint of version 1 stays, with all above it
    assert before.keys() - contents(uri).keys() == {log(uri, 0)}
    assert "verify()" in caplog.text


def test_compacted_file_that_has_what_a_commit_lost_is_not_replaced(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    table = built(uri)
    table.compact_logs(1, 3)
    (path,) = (uri / "_delta_log").glob("*.compacted.json")
    data = path.read_bytes()
    table.compact_logs(1, 3)
    assert path.read_bytes() == data
    lost_line("add")(log(uri, 2))
    with pytest.raises(LogError, match="other actions than its commits"):
        DeltaTable(uri).compact_logs(1, 3)
    emptied(log(uri, 2))
    with pytest.raises(LogError, match="no action"):
        DeltaTable(uri).compact_logs(1, 3)
    assert path.read_bytes() == data


def test_checksum_that_contradicts_itself_rejects_nothing(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    path = log(uri, 3, ".crc")
    path.write_text(json.dumps({**json.loads(path.read_text()), "numFiles": 77}))
    DeltaTable(uri).create_checkpoint()
    assert log(uri, 3, ".checkpoint.parquet").exists()
