"""Each table of the corpus, checkpointed by us, stays the table that it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import UnsupportedFeatureError
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from tests.bundled import skip_without
from tests.golden.conftest import is_opened

pytestmark = pytest.mark.golden

#: A writer feature that no plugin here provides.
UNWRITABLE = {"delta-rs/table_with_liquid_clustering": "liquid"}


def opened(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(record,)] if is_opened(record) else []


def writable(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [] if record["id"] in UNWRITABLE else opened(record)


def unwritable(record: dict[str, Any]) -> list[tuple[Any, ...]]:
    return opened(record) if record["id"] in UNWRITABLE else []


def state_of(snapshot: Snapshot) -> Any:
    names = ["path", "dvId", "partitionValues", "size", "modificationTime", "tags", "baseRowId"]
    tombstones = snapshot.tombstones(["size", "deletionTimestamp"])
    return (
        snapshot.protocol,
        snapshot.metadata,
        snapshot.transactions(),
        snapshot.domains(),
        sorted(map(str, snapshot.files.columns(names).to_pylist())),
        sorted(map(str, tombstones.filter(tombstones.column("deletionTimestamp").is_valid()).to_pylist())),
    )


def numbers(snapshot: Snapshot) -> Any:
    """How many rows each file specifies it has."""
    texts = snapshot.files.columns(["path", "stats"]).to_pylist()
    return sorted((r["path"], json.loads(r["stats"] or "{}").get("numRecords")) for r in texts)


@pytest.fixture
def snapshot(case: tuple[dict[str, Any]], tmp_path: Path, corpus: Any) -> Snapshot:
    """The table with its log only."""
    shutil.copytree(Path(corpus.uri(case[0])) / "_delta_log", tmp_path / "_delta_log")
    return open_snapshot(str(tmp_path))


@pytest.mark.corpus.with_args(writable)
def test_checkpoint_keeps_the_state(case: tuple[dict[str, Any]], tmp_path: Path, snapshot: Snapshot) -> None:
    skip_without(*(snapshot.protocol.writer_features or ()))
    before, counts = state_of(snapshot), numbers(snapshot)
    # the clock of the table, so that no tombstone has expired
    result = write_checkpoint(snapshot, now_ms=0)
    for file in (tmp_path / "_delta_log").iterdir():
        if file.is_file() and file.name not in (Path(result.path).name, "_last_checkpoint"):
            file.unlink()
    found = open_snapshot(str(tmp_path))
    assert not found.segment.deltas
    assert state_of(found) == before
    assert numbers(found) == counts


@pytest.mark.corpus.with_args(unwritable)
def test_table_of_an_unknown_writer_feature_gets_no_checkpoint(
    case: tuple[dict[str, Any]], tmp_path: Path, snapshot: Snapshot
) -> None:
    names = sorted(tmp_path.rglob("*"))
    with pytest.raises(UnsupportedFeatureError) as caught:
        write_checkpoint(snapshot, now_ms=0)
    assert caught.value.feature == UNWRITABLE[case[0]["id"]]
    assert sorted(tmp_path.rglob("*")) == names
