"""Two or three operations at once, paused where they look at the log: the rows are those of some serial order.

Nothing but the log is shared, so an operation is paused before each look at it and around each attempt to commit. One
thread runs at a time, in the order of a schedule. An operation that loses has to raise a conflict and change nothing.
"""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitConflictError
from delta_core.kernel.commit import publishing as committers
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.feature import steps as feature_steps
from tests.operations import definition_operations as definitions, row_operations as steps
from tests.operations.row_tables import TABLES, Row, row_ids, rows_of, table_of

#: How many schedules run; thousands on request.
SCHEDULES = int(os.environ.get("DELTA_CORE_SCHEDULES", "40"))
#: Changes of rows twice as often as others.
MAKERS = (*steps.CHANGES, *steps.CHANGES, *steps.KEEPS)
FIRST: list[Row] = [(i, "ab"[i % 2] if i % 5 else None, i / 8 if i % 3 else None) for i in range(6)]
SECOND: list[Row] = [(i, "a", 0.75) for i in range(6, 12)]


class Turn:
    """An operation in a thread of its own, which goes on from one pause to the next when it gets its turn."""

    current = threading.local()

    def __init__(self, step: steps.Step, table: DeltaTable) -> None:
        self.step = step
        self.error: BaseException | None = None
        self.is_done = False
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(table,), daemon=True)
        self._thread.start()

    def _run(self, table: DeltaTable) -> None:
        Turn.current.turn = self
        self._go.acquire()
        try:
            self.step.run(table)
        except BaseException as e:  # noqa: BLE001 (looked at by the test)
            self.error = e
        self.is_done = True
        self._paused.release()

    def advance(self) -> None:
        """Let the operation run up to its next pause, or to its end."""
        self._go.release()
        assert self._paused.acquire(timeout=60), f"{self.step} hangs"

    def pause(self) -> None:
        self._paused.release()
        self._go.acquire()


def pausing(real: Callable[..., Any], is_after: bool = False) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        turn = getattr(Turn.current, "turn", None)
        if turn is not None:
            turn.pause()
        found = real(*args, **kwargs)
        if turn is not None and is_after:
            turn.pause()
        return found

    return call


@pytest.fixture(autouse=True)
def _paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committers, "PAUSE", 0.0)
    monkeypatch.setattr("delta_core.kernel.commit.loop.time.sleep", lambda _: None)
    monkeypatch.setattr(Snapshot, "update", pausing(Snapshot.update))
    monkeypatch.setattr(StoreCommitter, "commit", pausing(StoreCommitter.commit, is_after=True))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """Return tables by their features, each also partitioned."""
    found = {}
    for number, (kind, is_partitioned) in enumerate(itertools.product(TABLES, (False, True))):
        folder = tmp_path_factory.mktemp("originals") / str(number)
        columns = ["p"] if is_partitioned else None
        write_deltalake(str(folder), table_of(FIRST), configuration=TABLES[kind], partition_by=columns)
        write_deltalake(str(folder), table_of(SECOND), mode="append")
        found[kind, is_partitioned] = folder
    return found


def run(
    original: Path, folder: Path, random: Random, made: list[steps.Step] | None = None
) -> tuple[DeltaTable, list[Turn]]:
    """Run operations on a copy of a table, in a random order of their pieces."""
    shutil.copytree(original, folder)
    made = made or [random.choice(MAKERS)(random) for _ in range(random.choice((2, 2, 3)))]
    turns = [Turn(step, DeltaTable(str(folder))) for step in made]
    while left := [t for t in turns if not t.is_done]:
        # some run far before others begin, some alternate
        turn = random.choice(left)
        for _ in range(random.choice((1, 1, 2, 5))):
            if not turn.is_done:
                turn.advance()
    return DeltaTable(str(folder)), turns


def serial(rows: list[Row], landed: list[steps.Step]) -> list[list[Row]]:
    """Return the rows after each serial order of some operations."""
    found = []
    for order in itertools.permutations(landed):
        made = rows
        for step in order:
            made = step.apply(made)
        found.append(sorted(made, key=repr))
    return found


def check_feed(table: DeltaTable, rows: list[Row]) -> None:
    """Check that the feed of each version, applied to the rows before, makes the rows after it."""
    left = list(rows)
    for version in range(2, table.version() + 1):
        changes = table.changes(version, version).to_table()
        kinds = changes.column("_change_type").to_pylist()
        found = zip(kinds, *(changes.column(n).to_pylist() for n in ("id", "p", "x")), strict=True)
        every = [(kind, row) for kind, *row in found]
        for row in [tuple(r) for kind, r in every if kind in ("delete", "update_preimage")]:
            left.remove(row)  # type: ignore[arg-type]
        left += [tuple(r) for kind, r in every if kind in ("insert", "update_postimage")]  # type: ignore[misc]
        if not any(f.name.startswith("c") for f in table.schema().fields):
            assert sorted(left, key=repr) == rows_of(table.snapshot(version).scan().to_table())
    assert sorted(left, key=repr) == rows_of(table.to_pyarrow_table())


def test_operations_at_once_leave_the_rows_of_a_serial_order(
    originals: dict[tuple[str, bool], Path], tmp_path: Path
) -> None:
    conflicts = landed_together = 0
    for seed in range(SCHEDULES):
        random = Random(seed)
        kind, is_partitioned = random.choice(list(originals))
        folder = tmp_path / str(seed)
        table, turns = run(originals[kind, is_partitioned], folder, random)
        where = f"schedule {seed}: {kind}, partitioned={is_partitioned}, {[t.step for t in turns]}"
        failed = [t for t in turns if t.error is not None]
        wrong = [t.error for t in failed if not isinstance(t.error, CommitConflictError)]
        assert not wrong, where
        landed = [t.step for t in turns if t.error is None]
        conflicts += len(failed)
        landed_together += len(landed) > 1
        assert rows_of(table.to_pyarrow_table()) in serial([*FIRST, *SECOND], landed), where
        assert all(Path(uri).exists() for uri in table.file_uris()), where
        if "row ids" in kind:
            assert len(row_ids(table)) == len(rows_of(table.to_pyarrow_table())), where
        if "feed" in kind:
            check_feed(table, [*FIRST, *SECOND])
        shutil.rmtree(folder)
    assert conflicts > SCHEDULES // 10
    assert landed_together > SCHEDULES // 4


def test_features_that_are_dropped_or_enabled_at_once_with_changes_keep_their_rows(
    originals: dict[tuple[str, bool], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature_steps, "BATCH_FILES", 1)
    dropped = 0
    kinds = [key for key in originals if key[0] not in ("plain", "feed")]
    for seed in range(SCHEDULES // 2):
        random = Random(f"features {seed}")
        kind, is_partitioned = random.choice(kinds)
        made = [random.choice((definitions.drop, definitions.drop, definitions.enable))(random)]
        made += [random.choice((*steps.CHANGES, steps.compact, steps.purge))(random) for _ in range(2)]
        folder = tmp_path / str(seed)
        table, turns = run(originals[kind, is_partitioned], folder, random, made)
        where = f"schedule {seed}: {kind}, partitioned={is_partitioned}, {made}"
        wrong = [t.error for t in turns if not isinstance(t.error, (CommitConflictError, type(None)))]
        assert not wrong, where
        landed = [t.step for t in turns if t.error is None]
        assert rows_of(table.to_pyarrow_table()) in serial([*FIRST, *SECOND], landed), where
        report = table.verify(deep=True)
        assert report.ok, (where, report.to_text())
        dropped += any(h["operation"] == "DROP FEATURE" for h in table.history())
        shutil.rmtree(folder)
    assert dropped > SCHEDULES // 16
