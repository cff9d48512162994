"""Queries of the format delta, in sessions of delta-spark and of this library by turns, on the same checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, library: str) -> None:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYSPARK_PYTHON": sys.executable}
    env.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-m", "tests.interop.stream_turns_program", str(folder), library]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]


def rows(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in DeltaTable(path).to_pyarrow_table().to_pylist())


@pytest.mark.parametrize("turns", [("peer", "ours", "peer"), ("ours", "peer", "ours")], ids=lambda turns: turns[0])
def test_each_library_continues_queries_of_the_other_from_their_checkpoints(
    java: Path, tmp_path: Path, turns: tuple[str, ...]
) -> None:
    pytest.importorskip("delta", reason="delta-spark is not installed: pip install delta-spark==4.4.0")
    del java
    source, batches = tmp_path / "source", []
    for turn, library in enumerate(turns):
        for first in (10 * turn, 10 * turn + 5):
            made = pa.table({"id": pa.array(range(first, first + 2)), "p": pa.array([first % 2] * 2)})
            properties = {"delta.enableChangeDataFeed": "true"}
            write_deltalake(source, made, mode="append", configuration=None if source.exists() else properties)
        run(tmp_path, library)
        written = [e["operationParameters"] for e in DeltaTable(tmp_path / "rows").history()]
        batches.append(len(written))
        assert len({entry["queryId"] for entry in written}) == 1
        assert [int(entry["epochId"]) for entry in written] == list(range(len(written)))[::-1]

    assert len(set(batches)) == len(turns)  # each turn has batches of its own
    ids = [10 * turn + more for turn in range(len(turns)) for more in (0, 1, 5, 6)]
    assert rows(tmp_path / "rows") == [(i, i // 5 % 2) for i in ids]
    assert rows(tmp_path / "changes") == [(i, "insert") for i in ids]
    assert rows(tmp_path / "counts") == [(0, 6), (1, 6)]
