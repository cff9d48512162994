"""The matrix: reads x shapes of tables, beside deltalake, Polars and DuckDB, all in turn in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.matrix_child import SIDES
from benchmarks.matrix_reads import QUERIES, READS
from benchmarks.matrix_tables import SHAPES
from benchmarks.run import ROOT, warm
from benchmarks.sizes import Sizes
from benchmarks.tables import table_path

__all__ = ["FIGURES", "Cell", "Figure", "format_cells", "format_slow", "format_summary", "run_matrix"]

PEERS = [s for s in SIDES if s != "ours"]


@dataclass(frozen=True)
class Figure:
    """What cells are compared by: ``key`` is the name in ``Cell``; shown in ``unit``s, so many to one of the key's."""

    key: str
    title: str
    best: str
    unit: str
    units: float
    #: Of the figure of the best peer that returns the right rows.
    at_most: float


FIGURES = {
    f.key: f
    for f in (
        Figure("seconds", "time", "fastest", "ms", 1_000, 1.1),
        Figure("cpu", "processor time", "fastest", "ms", 1_000, 1.1),
        Figure("peak_mb", "peak memory", "leanest", "MB", 1, 1.0),
    )
}


@dataclass(frozen=True)
class Cell:
    """One read of one shape: medians of each side.

    ``seconds`` are those of the clock, ``cpu`` those of the processor. ``peak_mb`` is the peak of a process's resident
    memory, imports and result included; ``opened_mb`` what of it was reached before the read.
    """

    shape: str
    read: str
    seconds: dict[str, float]
    cpu: dict[str, float]
    errors: dict[str, str] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    opened_mb: dict[str, float] = field(default_factory=dict)

    def figures(self, figure: Figure) -> dict[str, float]:
        """Return a figure of the sides that returned the right rows."""
        found: dict[str, float] = getattr(self, figure.key)
        return found

    def ratio(self, figure: Figure) -> float | None:
        """Return our figure over that of the best peer; None if there is none of either.

        The peer of a query that a library runs is the same library on its own files, if it returns the right rows.
        """
        figures = self.figures(figure)
        own = figures.get(QUERIES[self.read].through) if self.read in QUERIES else None
        best = own or min((t for side, t in figures.items() if side != "ours"), default=None)
        return figures["ours"] / best if best and "ours" in figures else None


def run_matrix(
    tables: Path,
    sizes: Sizes,
    shapes: Sequence[str],
    reads: Sequence[str],
    repeat: int,
    say: Callable[[str], None],
    fresh: bool = False,
) -> Iterator[Cell]:
    """Measure cells, ``repeat`` times each after a first run that does not count; sides take turns.

    ``fresh``: each run has a new process, and every run counts, for figures of a whole process.
    """
    skipped = 0 if fresh else 1
    generators = {f"matrix-{name}": shape.make for name, shape in SHAPES.items()}
    for shape in shapes:
        table = table_path(tables, f"matrix-{shape}", sizes, generators)
        warm(table)
        with ExitStack() as stack:
            sides = {name: partial(_once, name) if fresh else stack.enter_context(_started(name)) for name in SIDES}
            for read in reads:
                say(f"{shape}: {read}")
                cell = [str(table), shape, read]
                found: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
                for _ in range(skipped + repeat):
                    for name, run in sides.items():
                        if not found[name] or "error" not in found[name][-1]:
                            found[name].append(run(cell))
                yield _cell(shape, read, found, skipped)


def _cell(shape: str, read: str, found: dict[str, list[dict[str, Any]]], skipped: int) -> Cell:
    errors = {name: runs[-1]["error"] for name, runs in found.items() if "error" in runs[-1]}
    # deltalake reads every feature of these tables; if it does not, what most sides specify
    answers = {name: tuple(runs[-1]["answer"]) for name, runs in found.items() if name not in errors}
    votes = list(answers.values())
    right = answers.get("deltalake") or max(votes, key=votes.count, default=None)
    errors |= {name: f"answers {a}, expected {right}" for name, a in answers.items() if a != right}

    def medians(key: str) -> dict[str, float]:
        return {n: statistics.median(r[key] for r in runs[skipped:]) for n, runs in found.items() if n not in errors}

    seconds, cpu, peak, opened = map(medians, ("seconds", "cpu", "peak_mb", "opened_mb"))
    return Cell(shape, read, seconds, cpu, errors, peak, opened)


def _once(side: str, cell: list[str]) -> dict[str, Any]:
    with _started(side) as run:
        return run(cell)


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


def format_cells(cells: Iterable[Cell], figure: Figure) -> str:
    """Return a table of our figure over that of the best peer, a row a shape."""
    ratios = {(c.shape, c.read): c.ratio(figure) for c in cells}
    titles = {name: read.title for name, read in (READS | QUERIES).items() if any(name == r for _, r in ratios)}
    reads = list(titles)
    rows = [["shape", *titles.values()], ["---"] * (len(reads) + 1)]
    for shape in dict.fromkeys(shape for shape, _ in ratios):
        found = [ratios.get((shape, read)) for read in reads]
        rows.append([SHAPES[shape].title, *("" if r is None else f"{r:.2f}" for r in found)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def format_slow(cells: Iterable[Cell], figure: Figure) -> str:
    """Return the cells that miss what is requested, the worst first, and sides that failed or returned other rows."""
    cells = list(cells)
    lines = []
    for cell in sorted(cells, key=lambda c: -(c.ratio(figure) or 0)):
        if (ratio := cell.ratio(figure)) is not None and ratio > figure.at_most:
            sides = ", ".join(f"{side} {figure.units * t:.1f}" for side, t in cell.figures(figure).items())
            lines.append(f"{cell.shape} {cell.read}: {ratio:.2f} ({figure.unit}: {sides})")
    failed: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        for side, text in cell.errors.items():
            failed.setdefault((cell.shape, side, text), []).append(cell.read)
    lines += [f"{shape} {', '.join(reads)}: {side}: {text}" for (shape, side, text), reads in failed.items()]
    return "\n".join(lines)


def format_summary(cells: Sequence[Cell], figure: Figure) -> str:
    """Report how many cells reach what is requested, and the median of our figure over each peer's."""
    ratios = [r for c in cells if (r := c.ratio(figure)) is not None]
    peer = "same library" if all(c.read in QUERIES for c in cells) else f"{figure.best} peer"
    reached = sum(r <= figure.at_most for r in ratios)
    parts = [f"{reached} of {len(ratios)} cells at most {figure.at_most:g} times the {peer}'s {figure.title}"]
    for side in PEERS:
        both = [t["ours"] / t[side] for c in cells if {"ours", side} <= (t := c.figures(figure)).keys()]
        if both:
            parts.append(f"median {statistics.median(both):.2f} of {side}'s")
    return "; ".join(parts)
