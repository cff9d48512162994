"""Each table of the corpus, checkpointed by us, stays the table that it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import DeltaError
from delta_core.log.checkpoint_writer import write_checkpoint
from delta_core.snapshot import Snapshot, open_snapshot
from tests.conftest import GOLDEN

pytestmark = pytest.mark.golden

TABLES = sorted({p.parent for p in GOLDEN.rglob("_delta_log") if p.is_dir()}) if GOLDEN.exists() else []


def state_of(snapshot: Snapshot) -> Any:
    names = ["path", "dvId", "partitionValues", "size", "modificationTime", "tags", "baseRowId"]
    tombstones = snapshot.tombstones(["size", "deletionTimestamp"])
    return (
        snapshot.protocol, snapshot.metadata, snapshot.transactions(), snapshot.domains(),
        sorted(map(str, snapshot.files.columns(names).to_pylist())),
        sorted(map(str, tombstones.filter(tombstones.column("deletionTimestamp").is_valid()).to_pylist())),
    )  # fmt: skip


def numbers(snapshot: Snapshot) -> Any:
    """How many rows each file says it has."""
    texts = snapshot.files.columns(["path", "stats"]).to_pylist()
    return sorted((r["path"], json.loads(r["stats"] or "{}").get("numRecords")) for r in texts)


@pytest.mark.parametrize("table", TABLES, ids=[str(t.relative_to(GOLDEN)) for t in TABLES])
def test_checkpoint_keeps_the_state(tmp_path: Path, table: Path) -> None:
    shutil.copytree(table / "_delta_log", tmp_path / "_delta_log")
    try:
        snapshot = open_snapshot(str(tmp_path))
        before, counts = state_of(snapshot), numbers(snapshot)
    except DeltaError as e:
        pytest.skip(f"refused: {e}")
    except ValueError as e:
        pytest.skip(f"statistics that are no JSON: {e}")
    if snapshot.plugins.unknown:
        pytest.skip(f"no plugin for {', '.join(snapshot.plugins.unknown)}")
    # the clock of the table, so that no tombstone has expired
    result = write_checkpoint(snapshot, now_ms=0)
    for file in (tmp_path / "_delta_log").iterdir():
        if file.is_file() and file.name not in (Path(result.path).name, "_last_checkpoint"):
            file.unlink()
    found = open_snapshot(str(tmp_path))
    assert not found.segment.deltas
    assert state_of(found) == before
    assert numbers(found) == counts
