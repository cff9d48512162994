"""The matrix: reads x shapes of tables, beside deltalake, Polars and DuckDB, all in turn in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.matrix_child import SIDES
from benchmarks.matrix_reads import READS
from benchmarks.matrix_tables import SHAPES
from benchmarks.run import ROOT, warm
from benchmarks.tables import Sizes, table_path

__all__ = ["ASK", "Cell", "format_cells", "format_slow", "format_summary", "run_matrix"]

#: Every cell is to take at most so much of the time of the fastest peer that returns the right rows.
ASK = 1.1
PEERS = [s for s in SIDES if s != "ours"]


@dataclass(frozen=True)
class Cell:
    """One read of one shape: medians of each side, in seconds of the clock or of the processor."""

    shape: str
    read: str
    seconds: dict[str, float]
    cpu: dict[str, float]
    errors: dict[str, str] = field(default_factory=dict)

    def times(self, cpu: bool) -> dict[str, float]:
        """Return the times of the sides that returned the right rows."""
        return self.cpu if cpu else self.seconds

    def ratio(self, cpu: bool) -> float | None:
        """Return our time over that of the fastest peer; None if there is none of either."""
        times = self.times(cpu)
        best = min((t for side, t in times.items() if side != "ours"), default=None)
        return times["ours"] / best if best and "ours" in times else None


def run_matrix(
    tables: Path, sizes: Sizes, shapes: Sequence[str], reads: Sequence[str], repeat: int, say: Callable[[str], None]
) -> Iterator[Cell]:
    """Measure cells, ``repeat`` times each after a first run that does not count; sides take turns."""
    generators = {f"matrix-{name}": shape.make for name, shape in SHAPES.items()}
    for shape in shapes:
        table = table_path(tables, f"matrix-{shape}", sizes, generators)
        warm(table)
        with ExitStack() as stack:
            sides = {name: stack.enter_context(_started(name)) for name in SIDES}
            for read in reads:
                say(f"{shape}: {read}")
                cell = [str(table), shape, read]
                found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
                for _ in range(repeat + 1):
                    for name, run in sides.items():
                        if not found[name] or "error" not in found[name][-1]:
                            found[name].append(run(cell))
                yield _cell(shape, read, found)


def _cell(shape: str, read: str, found: dict[str, list[dict[str, Any]]]) -> Cell:
    errors = {name: runs[-1]["error"] for name, runs in found.items() if "error" in runs[-1]}
    # deltalake reads every feature of these tables; if it does not, what most sides specify
    answers = {name: tuple(runs[-1]["answer"]) for name, runs in found.items() if name not in errors}
    votes = list(answers.values())
    right = answers.get("deltalake") or max(votes, key=votes.count, default=None)
    errors |= {name: f"answers {a}, expected {right}" for name, a in answers.items() if a != right}

    def medians(key: str) -> dict[str, float]:
        return {n: statistics.median(r[key] for r in runs[1:]) for n, runs in found.items() if n not in errors}

    return Cell(shape, read, medians("seconds"), medians("cpu"), errors)


@contextmanager
def _started(side: str) -> Iterator[Callable[[list[str]], dict[str, Any]]]:
    """Start a side's process; yields what runs one cell in it."""
    command = [sys.executable, "-m", "benchmarks.matrix_child", side]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(cell: list[str]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(cell) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            return json.loads(line) if line else {"error": f"the process ended with {process.wait()}"}

        try:
            yield run
        finally:
            assert process.stdin is not None
            process.stdin.close()


def format_cells(cells: Iterable[Cell], cpu: bool) -> str:
    """Return a table of our time over that of the fastest peer, a row a shape."""
    ratios = {(c.shape, c.read): c.ratio(cpu) for c in cells}
    reads = [r for r in READS if any(read == r for _, read in ratios)]
    rows = [["shape", *(READS[r].title for r in reads)], ["---"] * (len(reads) + 1)]
    for shape in dict.fromkeys(shape for shape, _ in ratios):
        found = [ratios.get((shape, read)) for read in reads]
        rows.append([SHAPES[shape].title, *("" if r is None else f"{r:.2f}" for r in found)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def format_slow(cells: Iterable[Cell], cpu: bool) -> str:
    """Return the cells that miss what is requested, the worst first, and sides that failed or returned other rows."""
    cells = list(cells)
    lines = []
    for cell in sorted(cells, key=lambda c: -(c.ratio(cpu) or 0)):
        if (ratio := cell.ratio(cpu)) is not None and ratio > ASK:
            times = ", ".join(f"{side} {1_000 * t:.1f}" for side, t in cell.times(cpu).items())
            lines.append(f"{cell.shape} {cell.read}: {ratio:.2f} (ms: {times})")
    failed: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        for side, text in cell.errors.items():
            failed.setdefault((cell.shape, side, text), []).append(cell.read)
    lines += [f"{shape} {', '.join(reads)}: {side}: {text}" for (shape, side, text), reads in failed.items()]
    return "\n".join(lines)


def format_summary(cells: Sequence[Cell], cpu: bool) -> str:
    """Report how many cells reach what is requested, and our median time over each peer's."""
    ratios = [r for c in cells if (r := c.ratio(cpu)) is not None]
    parts = [f"{sum(r <= ASK for r in ratios)} of {len(ratios)} cells at most {ASK:g} times the fastest peer's time"]
    for peer in PEERS:
        both = [t["ours"] / t[peer] for c in cells if {"ours", peer} <= (t := c.times(cpu)).keys()]
        if both:
            parts.append(f"median {statistics.median(both):.2f} of {peer}'s")
    return "; ".join(parts)
