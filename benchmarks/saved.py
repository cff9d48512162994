"""Saved results: the figures of each run of a case, with the commit, the machine and the scale.

They are JSON files in ``.benchmarks/results``, one for each run of a command, and are compared, listed and drawn by
other commands.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.report import machine

__all__ = ["Figure", "SavedRun", "commit_of", "find_run", "find_runs", "load", "save"]

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Figure:
    """What one side of a case took.

    Parameters
    ----------
    side : str
        ``ours``, or the name of the peer.
    seconds, cpu : sequence of float
        Elapsed time and processor time of each run, in seconds; ``cpu`` is empty where it is not measured.
    peak_mb : float
        The median of the peak memory.
    answer : object
        What the case returned, if it is saved: a number, or a list of numbers.
    """

    case: str
    side: str
    seconds: Sequence[float]
    cpu: Sequence[float] = ()
    peak_mb: float = 0.0
    answer: Any = None

    def times(self, wall: bool = False) -> Sequence[float]:
        """Return processor times, or elapsed times if requested or nothing else is there."""
        return self.seconds if (wall and self.seconds) or not self.cpu else self.cpu

    def median(self, wall: bool = False) -> float:
        """Return the median time in seconds."""
        return statistics.median(self.times(wall))

    def noise(self, wall: bool = False) -> float:
        """Return half the range of the runs over their median."""
        times = self.times(wall)
        return (max(times) - min(times)) / 2 / max(statistics.median(times), 1e-9)


@dataclass(frozen=True)
class SavedRun:
    """The figures that one command measured.

    Parameters
    ----------
    commit : str
        The commit, with ``+`` if files differ from it.
    time : str
        When the run was saved, in UTC, as ISO 8601.
    """

    commit: str
    time: str
    machine: str
    scale: float
    command: str
    figures: list[Figure] = field(default_factory=list)

    def of(self, case: str, side: str = "ours") -> Figure | None:
        """Return the figure of a side of a case."""
        return next((f for f in self.figures if (f.case, f.side) == (case, side)), None)

    @property
    def cases(self) -> list[str]:
        """The cases, in the order in which they were measured."""
        return list(dict.fromkeys(f.case for f in self.figures))

    @property
    def name(self) -> str:
        """What names the run on the command line: its time and commit, as the name of its file."""
        return f"{self.time.replace(':', '').replace('-', '')}-{self.commit.replace('+', '-changed')}"


def commit_of(folder: Path = ROOT) -> str:
    """Return the commit of a clone; ``unknown`` where git or the clone is missing."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def save(tables: Path, scale: float, figures: Iterable[Figure], commit: str | None = None) -> Path:
    """Write a run to the folder of results, and return its file."""
    now = f"{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    run = SavedRun(commit or commit_of(), now, machine(), scale, " ".join(sys.argv[1:]), list(figures))
    path = tables / "results" / f"{run.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(run), indent=1), encoding="utf-8")
    return path


def load(path: Path) -> SavedRun:
    """Read a file of `save`; exit with a message if it is none."""
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        return SavedRun(**{**made, "figures": [Figure(**f) for f in made["figures"]]})
    except (OSError, ValueError, TypeError, KeyError) as e:
        sys.exit(f"{path} is no file of saved results: {e}")


def find_runs(tables: Path) -> list[SavedRun]:
    """Return all saved runs, the earliest first."""
    return sorted((load(p) for p in (tables / "results").glob("*.json")), key=lambda run: run.time)


def find_run(tables: Path, name: str) -> SavedRun:
    """Return a saved run by a file, ``latest``, ``previous``, or the begin of its name or commit.

    Several runs of one commit, at one scale on one machine, are one run: of each case the latest figures.
    """
    if Path(name).is_file():
        return load(Path(name))
    runs = find_runs(tables)
    if name in ("latest", "previous"):
        place = {"latest": -1, "previous": -2}[name]
        if len(runs) < -place:
            sys.exit(f"there is no {name} run in {tables / 'results'}: python -m benchmarks run saves one")
        return runs[place]
    found = [run for run in runs if name in (run.name, run.commit)]
    found = found or [run for run in runs if run.name.startswith(name) or run.commit.startswith(name)]
    commits = sorted({run.commit for run in found})
    if len(commits) > 1:
        sys.exit(f"{name!r} begins several saved runs, of {', '.join(commits)}: write more of it")
    if not found:
        names = ", ".join(run.name for run in runs[-5:]) or "none"
        sys.exit(f"no saved run {name!r} in {tables / 'results'}; the latest are {names}")
    last = found[-1]
    alike = [run for run in found if (run.scale, run.machine) == (last.scale, last.machine)]
    figures = {(f.case, f.side): f for run in alike for f in run.figures}
    return SavedRun(last.commit, last.time, last.machine, last.scale, last.command, list(figures.values()))
