"""Damages tables and uses them, in a process of its own: what hangs, crashes or takes too much ends it alone.

Run as ``python -m tests.fuzz.child <folder> <seed> <first case> <cases> [keep]``. The folder holds sound tables. Prints
a line of JSON as each step begins and as each case ends; the last step that began without an end is the one that
failed.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tests.fuzz.damage import do_damage
from tests.fuzz.use import Rows, use

TIMEOUT_S = 20
MEMORY_BYTES = 2 << 30
#: Address space; a large part of it is never used.
ADDRESS_BYTES = 16 << 30

#: If writes need not wait for a disk.
MEMORY_DISK = Path("/dev/shm")


def main(folder: Path, seed: str, first: int, count: int, keep: Path | None) -> None:
    """Run cases; each can be run again alone, by its seed and number, on the same tables."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    faulthandler.enable()
    tables = sorted(p for p in folder.iterdir() if p.is_dir())
    expected: dict[str, Rows] = {}
    with tempfile.TemporaryDirectory(
        prefix="delta-fuzz-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None
    ) as scratch:
        for number in range(first, first + count):
            rng = random.Random(f"{seed}:{number}")
            table = tables[rng.randrange(len(tables))]
            if table.name not in expected:
                expected[table.name] = use(str(_copy(table, Path(scratch))), lambda name: None, True)
            copy = _copy(table, Path(scratch))
            _run(number, table.name, rng, copy, expected[table.name], keep)


def _copy(table: Path, scratch: Path) -> Path:
    copy = scratch / "t"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy)
    return copy


def _run(number: int, table: str, rng: random.Random, copy: Path, expected: Rows, keep: Path | None) -> None:
    damage = do_damage(rng, copy)
    if keep is not None:
        kept = keep / str(number)
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(copy, kept, symlinks=True)
    _tell(case=number, table=table, damage=damage.text)
    _forget_peak()

    def step(name: str) -> None:
        faulthandler.cancel_dump_traceback_later()
        _tell(step=name)
        faulthandler.dump_traceback_later(TIMEOUT_S, exit=True)

    failure = None
    try:
        rows = use(str(copy), step, rng.random() < 0.3)
        if damage.is_visible and rows is not None and expected is not None and rows != expected:
            failure = f"wrong rows: {len(rows)} instead of {len(expected)}"
    except BaseException:  # noqa: BLE001  (all but a DeltaError is what is looked for)
        failure = traceback.format_exc()
    faulthandler.cancel_dump_traceback_later()
    if failure is None and (peak := _peak()) > MEMORY_BYTES:
        failure = f"took {peak >> 20} MB"
    if failure is None and keep is not None:
        shutil.rmtree(keep / str(number))
    _tell(end=number, failure=failure)


def _tell(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """Return the most memory that the process had since `_forget_peak`, in bytes."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) << 10


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        sys.argv[2],
        int(sys.argv[3]),
        int(sys.argv[4]),
        Path(sys.argv[5]) if len(sys.argv) > 5 else None,
    )
