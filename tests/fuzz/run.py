"""Runs cases in child processes until a time is over, and collects what failed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Failure", "run"]

ROOT = Path(__file__).parents[2]
#: Cases of one child; a fresh one has forgotten what the last one grew to.
BATCH = 200


class Failure(NamedTuple):
    """A case that ended in no typed error and not in the right rows."""

    case: int
    table: str
    damage: str
    step: str
    what: str

    def __str__(self) -> str:
        return f"case {self.case} ({self.table}; {self.damage}), step {self.step!r}:\n{self.what}"


def run(
    folder: Path, seed: str, seconds: float, first: int = 0, keep: Path | None = None, least: int = 0
) -> Iterator[Failure | int]:
    """Yield what fails, and the number of cases that are done after each child; ``least`` of them take their time."""
    until = time.monotonic() + seconds
    done = 0
    while time.monotonic() < until or done < least:
        for failure in _child(folder, seed, first + done, until, first + least, keep):
            if isinstance(failure, int):
                done = failure - first + 1
            else:
                yield failure
        yield done


def _child(folder: Path, seed: str, first: int, until: float, least: int, keep: Path | None) -> Iterator[Failure | int]:
    command = [
        sys.executable,
        "-m",
        "tests.fuzz.child",
        str(folder),
        seed,
        str(first),
        str(BATCH),
        *([str(keep)] if keep else []),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        case: dict[str, str] = {}
        last = first - 1
        for line in child.stdout:
            told = json.loads(line)
            if "case" in told:
                case, last = told, told["case"]
            case |= told
            if "end" in told:
                if told["failure"]:
                    yield Failure(last, case["table"], case["damage"], case["step"], told["failure"])
                yield last
                case = {}
                if time.monotonic() > until and last + 1 >= least:
                    child.terminate()
                    child.communicate()
                    return
        error = child.stderr.read()
    if child.returncode:
        if not case:
            raise RuntimeError(f"The child failed outside a case:\n{error}")
        yield Failure(
            last, case["table"], case["damage"], case.get("step", ""), f"exit code {child.returncode}\n{error[-6000:]}"
        )
        yield last
