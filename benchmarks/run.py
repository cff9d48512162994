"""Run cases: fresh processes, our side and the peer's in turn, medians."""

from __future__ import annotations

import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.appends import delete_kept_copies
from benchmarks.cases import Case
from benchmarks.questions import SMALLEST
from benchmarks.sizes import Sizes
from benchmarks.tables import table_path

__all__ = ["Place", "Result", "Side", "median", "prepare", "run_both", "run_case", "tables_of", "warm"]

ROOT = Path(__file__).resolve().parent.parent
#: Work that takes less than a millisecond is repeated inside its process.
LOOPS = {"vectors": 50}
START_UP = {
    "ours": "import delta_core, sys; delta_core.DeltaTable(sys.argv[1]).version()",
    "peers_deltalake": "import deltalake, sys; deltalake.DeltaTable(sys.argv[1]).version()",
}


@dataclass(frozen=True)
class Side:
    """Medians of one side: seconds, MB, and the answer that all sides must share; the times of each run."""

    seconds: float
    peak_mb: float
    answer: float
    cpu: float = 0.0
    runs: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Result:
    """One case's figures; ``error`` specifies why there are none."""

    case: Case
    ours: Side | None
    peer: Side | None
    error: str | None = None

    @property
    def faster(self) -> float | None:
        """How many times faster than the peer."""
        return self.peer.seconds / self.ours.seconds if self.ours and self.peer else None

    @property
    def memory(self) -> float | None:
        """Our share of the peer's peak memory."""
        return self.ours.peak_mb / self.peer.peak_mb if self.ours and self.peer and self.peer.peak_mb else None

    @property
    def met(self) -> bool:
        """Whether everything that the case requires is reached."""
        ask, own = self.case.target, self.ours
        if own is None or self.error:
            return False
        figure = own.answer if self.case.clock == "count" else own.seconds
        return all(
            (
                ask.faster is None or (self.faster or 0) >= ask.faster,
                ask.memory is None or (self.memory or 9) <= ask.memory,
                ask.most_mb is None or own.peak_mb <= ask.most_mb,
                ask.at_most is None or figure <= ask.at_most,
                ask.at_least is None or figure >= ask.at_least,
            )
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a JSON file."""
        sides = {name: asdict(side) if side else None for name, side in (("ours", self.ours), ("peer", self.peer))}
        return {
            "case": self.case.key,
            "title": self.case.title,
            "against": self.case.peer,
            **sides,
            "faster": self.faster,
            "memory": self.memory,
            "met": self.met,
            "error": self.error,
        }


def prepare() -> None:
    """Write the .pyc files of everything that is measured, which an editable install leaves out."""
    for package in ("delta_core", "delta_plugins", "benchmarks"):
        spec = find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            compileall.compile_dir(folder, quiet=2)


def warm(table: Path) -> None:
    """Load a table into the page cache."""
    for file in table.rglob("*"):
        if file.is_file():
            with file.open("rb") as f:
                while f.read(1 << 24):
                    pass


def run_case(case: Case, tables: Path, sizes: Sizes, repeat: int, say: Callable[[str], None]) -> Result:
    """Measure a case ``repeat`` times a side, sides in turn, so that a slow minute hits both."""
    try:
        return _run_case(case, tables, sizes, repeat, say)
    finally:
        delete_kept_copies(tables)


@dataclass(frozen=True)
class Place:
    """Where a process of another commit starts, and its environment."""

    folder: Path
    environment: dict[str, str]


def run_both(
    case: Case, places: Sequence[Place], tables: Path, sizes: Sizes, repeat: int, say: Callable[[str], None]
) -> list[Side]:
    """Measure our side of a case at several places, in turn."""
    table, small = tables_of(case, tables, sizes)
    found: list[list[Side]] = [[] for _ in places]
    try:
        for i in range(repeat):
            for sides, place in zip(found, places, strict=True):
                say(f"{case.key}: {place.folder} {i + 1}/{repeat}")
                sides.append(_once(case, "ours", table, small, place))
    finally:
        delete_kept_copies(tables)
    return [median(sides) for sides in found]


def tables_of(case: Case, tables: Path, sizes: Sizes) -> tuple[Path, Path]:
    """Make the table of a case and its small one, and load them into the page cache."""
    table = table_path(tables, case.table, Sizes(sizes.scale * case.shrink))
    small = table_path(tables, case.table, Sizes(SMALLEST))
    table_path(tables, "hooks-one", Sizes(SMALLEST))
    warm(table)
    if case.beside:
        warm(table_path(tables, case.beside, Sizes(sizes.scale * case.shrink)))
    return table, small


def _run_case(case: Case, tables: Path, sizes: Sizes, repeat: int, say: Callable[[str], None]) -> Result:
    table, small = tables_of(case, tables, sizes)
    modules = ["ours"] + ([f"peers_{case.peer}"] if case.peer else [])
    found: dict[str, list[Side]] = {m: [] for m in modules}
    for i in range(1 if case.clock == "count" else repeat):
        for module in modules:
            say(f"{case.key}: {module} {i + 1}/{repeat}")
            try:
                found[module].append(_once(case, module, table, small))
            except subprocess.CalledProcessError as e:
                last = (e.stderr.strip().splitlines() or ["no message"])[-1]
                return Result(case, None, None, f"{module}: {last}")
    medians = {m: median(sides) for m, sides in found.items()}
    ours, peer = medians["ours"], medians.get(f"peers_{case.peer}")
    differ = peer is not None and ours.answer != peer.answer
    return Result(case, ours, peer, f"answers differ: {ours.answer:g}, {peer.answer:g}" if differ and peer else None)


def median(sides: list[Side]) -> Side:
    """Return the medians of several runs, with the times of each."""
    return Side(
        statistics.median(s.seconds for s in sides),
        statistics.median(s.peak_mb for s in sides),
        sides[-1].answer,
        statistics.median(s.cpu for s in sides),
        tuple((s.seconds, s.cpu) for s in sides),
    )


def _once(case: Case, module: str, table: Path, small: Path, place: Place | None = None) -> Side:
    environment = dict(place.environment if place else os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = place.folder if place else ROOT
    if case.clock == "process":
        start, used = time.perf_counter(), _children_seconds()
        _child([sys.executable, "-c", START_UP[module], str(table)], environment, folder)
        return Side(time.perf_counter() - start, 0.0, 0.0, _children_seconds() - used)
    loops = str(LOOPS.get(case.name, 1))
    command = [sys.executable, "-m", "benchmarks.child", module, case.name, str(table), str(small), loops]
    out = json.loads(_child(command, environment, folder).splitlines()[-1])
    return Side(out["seconds"], out["peak_mb"], out["answer"], out["cpu"])


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _child(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout
