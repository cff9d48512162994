"""Processes of ours and of pylance change one dataset and are killed: no change is lost, doubled or half done.

The long form is ``DELTA_CORE_RACE_SECONDS=120 pytest tests/lance/test_killed_writers.py``.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_plugins.lance import open_dataset, write_lance

SECONDS = float(os.environ.get("DELTA_CORE_RACE_SECONDS", "3"))
HAS_PYLANCE = importlib.util.find_spec("lance") is not None
WRITERS = (["ours"] * 5 + ["pylance"] * 3 if HAS_PYLANCE else ["ours"] * 8) if SECONDS > 5 else ["ours"] * 3
if HAS_PYLANCE and SECONDS <= 5:
    WRITERS = [*WRITERS, "pylance"]


class Race:
    """The processes; each has rows and a log of its own."""

    def __init__(self, root: Path, uri: str, choice: random.Random) -> None:
        self.root, self.uri, self.choice = root, uri, choice
        self.logs: list[Path] = []
        self.running = [self.start(by) for by in WRITERS]
        for process in self.running:
            assert process.stdout is not None
            process.stdout.readline()

    def start(self, by: str) -> subprocess.Popen[bytes]:
        number = len(self.logs) + 1
        self.logs.append(self.root / f"{number}.log")
        arguments = [by, self.uri, str(self.logs[-1]), str(number), str(self.choice.randrange(1 << 30))]
        command = [sys.executable, "-m", "tests.lance.racing_writer", *arguments]
        place = Path(__file__).parents[2]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place)

    def kill(self, number: int) -> None:
        process = self.running[number]
        assert process.poll() is None, "a writer ended by itself"
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _check_log(path: Path, now: dict[int, int]) -> None:
    """Check that each change that is done is there, none that failed, and the last one whole or not at all."""
    possible: dict[int, set[int | None]] = {}
    begun: list[tuple[int, int | None]] = []
    state = "done"
    for line in path.read_text().splitlines() if path.exists() else []:
        state, effect = json.loads(line)
        if state == "begun":
            begun = effect
        for row, value in effect:
            if state == "done":
                possible[row] = {value}
            elif state == "unknown":
                possible.setdefault(row, {None}).add(value)
            elif state == "failed":
                possible.setdefault(row, {None})
    if state == "begun":
        assert len({now.get(row) == value for row, value in begun}) <= 1, "half of a change"
        for row, value in begun:
            possible.setdefault(row, {None}).add(value)
    wrong = {row: (now.get(row), values) for row, values in possible.items() if now.get(row) not in values}
    assert not wrong


@pytest.mark.parametrize("stable", [False, True])
def test_writers_that_are_killed_lose_double_and_halve_nothing(tmp_path: Path, stable: bool) -> None:
    choice = random.Random(f"{stable} {time.time() if SECONDS > 5 else 0}")
    first = pa.table({"id": pa.array([-1], pa.int64()), "v": pa.array([0], pa.int64())})
    uri = write_lance(str(tmp_path / "dataset"), first, stable_row_ids=stable).uri
    race = Race(tmp_path, uri, choice)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        time.sleep(choice.uniform(0.1, 0.8))
        number = choice.randrange(len(WRITERS))
        race.kill(number)
        race.running[number] = race.start(WRITERS[number])
        read = open_dataset(uri)
        ids = read.to_pyarrow_table(["id"]).column("id").to_pylist()
        assert len(ids) == len({*ids}) == read.count()
    for number in range(len(WRITERS)):
        race.kill(number)
    after = open_dataset(uri)
    table = after.to_pyarrow_table(metadata=["_rowid"])
    now = dict(zip(table.column("id").to_pylist(), table.column("v").to_pylist(), strict=True))
    assert len(now) == table.num_rows == len({*table.column("_rowid").to_pylist()})
    assert after.version > 1
    for log in race.logs:
        _check_log(log, now)
    assert not after.verify().findings
