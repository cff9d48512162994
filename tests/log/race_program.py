"""One participant in a race on one table: ``python -m tests.log.race_program ROLE URI NUMBER SECONDS``.

Writers append, checkpoints of the version are written again and again, and readers check what they find: each file has
the partition value that its path and its rows have, and each writer's appends are there without a gap.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.errors import DeltaError
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.table.writer import write_deltalake

__all__ = ["ROLES", "create", "run"]

ROWS = 3


def create(uri: str) -> None:
    """Make the table: a checkpoint each fourth version, written by whoever commits it."""
    write_deltalake(uri, rows(0, 0), partition_by=["p"], configuration={"delta.checkpointInterval": "4"})


def rows(writer: int, turn: int) -> pa.Table:
    return pa.table({"p": [f"{writer}-{turn}"] * ROWS, "writer": [writer] * ROWS, "turn": [turn] * ROWS})


def write(uri: str, number: int, is_over: Callable[[], bool]) -> None:
    for turn in itertools.count():
        write_deltalake(uri, rows(number, turn), mode="append")
        if is_over():
            return


def write_checkpoints(uri: str, number: int, is_over: Callable[[], bool]) -> None:
    while not is_over():
        write_checkpoint(open_snapshot(uri))


def replace_checkpoints(uri: str, number: int, is_over: Callable[[], bool]) -> None:
    """Replace the newest checkpoint, as other libraries do: its actions in another order."""
    fs, root = fsspec.core.url_to_fs(uri)
    for turn in itertools.count():
        found = sorted(fs.glob(f"{root}/_delta_log/*.checkpoint.parquet"))[-1:]
        for name in found:
            table = pq.read_table(pa.BufferReader(fs.cat_file(name)))
            table = table.take(pa.array(range(table.num_rows)[:: -1 if turn % 2 else 1], pa.int64()))
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, row_group_size=50 + turn % 7, use_dictionary=bool(turn % 3))
            fs.pipe_file(f"{root}/new-{number}", bytes(sink.getvalue()))
            fs.mv(f"{root}/new-{number}", name) if "file" in fs.protocol else fs.pipe_file(name, bytes(sink.getvalue()))
        # nobody can read ranges of what changes faster than it is read
        time.sleep(0.02 if "file" in fs.protocol else 0.2)
        if is_over():
            return


def let_peer_write_checkpoints(uri: str, number: int, is_over: Callable[[], bool]) -> None:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError as PeerError

    while not is_over():
        try:
            DeltaTable(uri).create_checkpoint()
        except (PeerError, OSError):  # it does not be the race
            time.sleep(0.01)


def read(uri: str, number: int, is_over: Callable[[], bool]) -> None:
    snapshot = open_snapshot(uri)
    while True:
        check(snapshot)
        if is_over():
            return
        held, snapshot = snapshot, snapshot.update() if number % 2 else open_snapshot(uri)
        check(held)


def check(snapshot: Snapshot) -> None:
    files = snapshot.files
    paths = files.columns(["path"]).column(0).to_pylist()
    values = files.columns(["partition:p"]).column(0).to_pylist()
    wrong = [(path, value) for path, value in zip(paths, values, strict=True) if not path.startswith(f"p={value}/")]
    assert not wrong, f"partition values of other files in version {snapshot.version}: {wrong[:3]}"
    turns: dict[int, list[int]] = defaultdict(list)
    for row in snapshot.scan().to_table().to_pylist():
        assert row["p"] == f"{row['writer']}-{row['turn']}", f"a wrong row in version {snapshot.version}: {row}"
        turns[row["writer"]].append(row["turn"])
    assert len(paths) == snapshot.version + 1
    for writer, found in turns.items():
        expected = sorted([*range(len(found) // ROWS)] * ROWS)
        # the table begins with a turn of writer 0, which that writer makes again
        assert sorted(found) == expected or writer == 0, (
            f"writer {writer} in version {snapshot.version}: {sorted(found)}"
        )
    few = snapshot.scan(predicate="turn = 1 and writer = 1").to_table()
    assert few.num_rows == turns[1].count(1)


ROLES: dict[str, Callable[[str, int, Callable[[], bool]], None]] = {
    "write": write,
    "checkpoint": write_checkpoints,
    "replace": replace_checkpoints,
    "peer": let_peer_write_checkpoints,
    "read": read,
}


def run(role: str, uri: str, number: int, seconds: float) -> None:
    """Take part for so long."""
    end = time.monotonic() + seconds
    ROLES[role](uri, number, lambda: time.monotonic() > end)


if __name__ == "__main__":
    arguments: Any = sys.argv[1:]
    try:
        run(arguments[0], arguments[1], int(arguments[2]), float(arguments[3]))
    except DeltaError as e:
        raise SystemExit(f"{type(e).__name__}: {e}") from e
