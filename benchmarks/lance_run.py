"""Run Lance cases: fresh processes, our side and pylance in turn, medians of processor time."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lance_cases import LanceCase
from benchmarks.lance_tables import lance_path
from benchmarks.questions import SMALLEST
from benchmarks.run import ROOT, warm
from benchmarks.sizes import Sizes

__all__ = ["LanceResult", "format_lance_markdown", "run_lance_case"]

HEAD = ("work", "pylance", "delta_core", "ratio", "MB pylance / ours", "target", "reached")


@dataclass(frozen=True)
class LanceResult:
    """One case's figures: medians of processor time in seconds, of the peak in MB and of bytes of files, by side."""

    case: LanceCase
    cpu: dict[str, float]
    peak_mb: dict[str, float]
    num_bytes: dict[str, float]
    error: str | None = None
    runs: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Our processor time over that of pylance."""
        return self.cpu["ours"] / max(self.cpu["pylance"], 1e-9)

    @property
    def met(self) -> bool:
        """Whether the answers agree and the target is reached."""
        small = self.case.most_mb is None or self.peak_mb["ours"] <= self.case.most_mb
        most = None if self.case.most_bytes is None else self.case.most_bytes * self.num_bytes["pylance"]
        is_short = most is None or self.num_bytes["ours"] <= most
        return self.error is None and self.ratio <= self.case.at_most and small and is_short

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a JSON file."""
        figures = {"cpu": self.cpu, "peak_mb": self.peak_mb, "num_bytes": self.num_bytes, "ratio": self.ratio}
        return {"case": self.case.key, **figures, "met": self.met}


def run_lance_case(case: LanceCase, tables: Path, sizes: Sizes, repeat: int, say: Callable[[str], None]) -> LanceResult:
    """Measure a case ``repeat`` times a side, sides in turn, so that a slow minute hits both."""
    place = lance_path(tables, case.table, sizes)
    small = lance_path(tables, case.table, Sizes(SMALLEST))
    warm(place)
    # a thread that NumPy's OpenBLAS starts spins for tens of ms, in the shorter process while its work is measured
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "pylance": []}
    for i in range(repeat):
        for side, figures in found.items():
            say(f"{case.key}: {side} {i + 1}/{repeat}")
            command = [sys.executable, "-m", "benchmarks.lance_child", side, case.work, str(place), str(small)]
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                sys.exit(f"{case.key}: {side} failed: {last}")
            figures.append(json.loads(done.stdout.splitlines()[-1]))
    medians = [
        {side: statistics.median(f.get(figure, 0) for f in figures) for side, figures in found.items()}
        for figure in ("cpu", "peak_mb", "num_bytes")
    ]
    answers = {json.dumps(f["answer"]) for figures in found.values() for f in figures}
    runs = {side: [f["cpu"] for f in figures] for side, figures in found.items()}
    return LanceResult(case, *medians, None if len(answers) == 1 else f"answers differ: {sorted(answers)}", runs)


def format_lance_markdown(results: Sequence[LanceResult]) -> str:
    """Return the results as a Markdown table."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(r) for r in results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(result: LanceResult) -> Sequence[str]:
    case = result.case
    memory = "" if case.most_mb is None else f", {case.most_mb:g} MB"
    size = "" if case.most_bytes is None else f", {case.most_bytes:g} of its bytes"
    return (
        case.title,
        f"{result.cpu['pylance']:.3g} s",
        f"{result.cpu['ours']:.3g} s",
        f"{result.ratio:.2f}",
        f"{result.peak_mb['pylance']:.0f} / {result.peak_mb['ours']:.0f}",
        f"{case.at_most:g}{memory}{size}",
        result.error or ("yes" if result.met else "no"),
    )
