"""Run the cases of Spark: every side in a JVM of its own, in turn; the table of results."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.run import ROOT, warm
from benchmarks.sizes import Sizes
from benchmarks.spark_cases import SparkCase
from benchmarks.spark_tables import spark_table

__all__ = ["PEER_PYTHON", "SparkResult", "SparkRun", "format_spark_markdown", "peer_missing"]

#: Names the interpreter that has delta-spark, if ``--peer-python`` does not.
PEER_PYTHON = "DELTA_SPARK_PYTHON"
HEAD = ("work", "plain Parquet", "delta-spark", "delta_core", "ratio", "target", "reached")


@dataclass(frozen=True)
class SparkSide:
    """Medians of one side: seconds of the first run in a JVM and of the later ones, and the answer."""

    cold: float
    warm: float
    answer: str
    version: str


@dataclass(frozen=True)
class SparkResult:
    """One case's figures by side; ``error`` specifies why there are none, or which answers differ."""

    case: SparkCase
    sides: dict[str, SparkSide] = field(default_factory=dict)
    error: str | None = None

    def faster(self, kind: str) -> float | None:
        """How many times faster than the peer, warm or cold."""
        ours, peer = self.sides.get("ours"), self.sides.get("peer")
        return getattr(peer, kind) / getattr(ours, kind) if ours and peer else None

    @property
    def met(self) -> bool:
        """Whether everything that the case requires is reached."""
        asks = (("warm", self.case.warm), ("cold", self.case.cold))
        reached = all((self.faster(k) or 0) >= a for k, a in asks if a is not None)
        most = self.case.plain_most
        return self.error is None and reached and (most is None or (self.of_plain or most + 1) <= most)

    @property
    def of_plain(self) -> float | None:
        """How many times as long as plain Parquet, warm."""
        ours, plain = self.sides.get("ours"), self.sides.get("plain")
        return ours.warm / plain.warm if ours and plain else None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a JSON file."""
        sides = {name: asdict(side) for name, side in self.sides.items()}
        ratios = {kind: self.faster(kind) for kind in ("warm", "cold")}
        return {
            "case": self.case.key,
            "title": self.case.title,
            **sides,
            "faster": ratios,
            "of_plain": self.of_plain,
            "met": self.met,
            "error": self.error,
        }


def peer_missing(python: str) -> str | None:
    """Return why an interpreter can't run delta-spark; None if it can."""
    if shutil.which(python) is None:
        return f"there is no interpreter {python}"
    done = subprocess.run([python, "-c", "import delta, pyspark"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"{python} has no delta-spark: name one that has it by --peer-python or {PEER_PYTHON}"


@dataclass(frozen=True)
class SparkRun:
    """How cases are run.

    Parameters
    ----------
    peer_python : str or None
        The interpreter of delta-spark; None measures our side and plain Parquet alone.
    repeat : int
        JVMs a side; ``loops`` warm runs in each.
    memory : str
        Of the driver, as Spark takes it.
    """

    tables: Path
    sizes: Sizes
    peer_python: str | None
    repeat: int = 1
    loops: int = 5
    cores: int = 2
    memory: str = "8g"

    def case(self, case: SparkCase, say: Callable[[str], None]) -> SparkResult:
        """Measure a case; sides take turns, so that a slow minute hits all."""
        table = spark_table(self.tables, case.table, self.sizes)
        warm(table)
        sides = ["ours", *(["peer"] if self.peer_python and case.peer else []), *(["plain"] if case.plain else [])]
        found: dict[str, list[dict[str, Any]]] = {s: [] for s in sides}
        for i in range(self.repeat):
            for side in sides:
                say(f"{case.key}: {side} {i + 1}/{self.repeat}")
                try:
                    found[side].append(self._once(case, side, table))
                except subprocess.CalledProcessError as e:
                    last = [line for line in e.stderr.strip().splitlines() if "Error" in line or "Exception" in line]
                    return SparkResult(case, error=f"{side}: {(last or ['no message'])[-1][:200]}")
        measured = {s: _median(runs) for s, runs in found.items()}
        answers = {m.answer for m in measured.values()}
        told = ", ".join(f"{s} {m.answer}" for s, m in measured.items())
        return SparkResult(case, measured, f"answers differ: {told}" if len(answers) > 1 else None)

    def _once(self, case: SparkCase, side: str, table: Path) -> dict[str, Any]:
        python = self.peer_python if side == "peer" and self.peer_python else sys.executable
        # each interpreter finds the Spark that is installed with it
        hidden = ("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_PYTHON", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        command = [
            python,
            "-m",
            "benchmarks.spark_child",
            side,
            case.name,
            str(table),
            str(self.loops),
            str(self.cores),
            self.memory,
        ]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        out: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return out


def _median(runs: list[dict[str, Any]]) -> SparkSide:
    later = [s for run in runs for s in run["warm"]]
    return SparkSide(
        statistics.median(run["cold"] for run in runs),
        statistics.median(later),
        runs[-1]["answer"],
        runs[-1]["version"],
    )


# --- the report ----------------------------------------------------------------------------


def format_spark_markdown(results: Iterable[SparkResult]) -> str:
    """Return the results as a Markdown table: warm medians, in brackets the first run in a JVM."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(r) for r in results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(result: SparkResult) -> Sequence[str]:
    figures = [_figure(result.sides.get(side)) for side in ("plain", "peer", "ours")]
    asked = "plain" if result.case.plain_most is not None else "peer"
    reached = result.error or ("" if asked not in result.sides else "yes" if result.met else "no")
    return (result.case.title, *figures, _ratio(result), _target(result.case), reached)


def _figure(side: SparkSide | None) -> str:
    return f"{side.warm:.3g} s ({side.cold:.3g})" if side else ""


def _ratio(result: SparkResult) -> str:
    warm_ratio, cold_ratio = result.faster("warm"), result.faster("cold")
    return f"{warm_ratio:.3g}x ({cold_ratio:.3g}x)" if warm_ratio and cold_ratio else ""


def _target(case: SparkCase) -> str:
    parts = []
    if case.warm is not None:
        parts.append("no slower, the same files" if case.warm == 1 else f"{case.warm:g}x")
    if case.cold is not None:
        parts.append(f"cold {case.cold:g}x")
    if case.plain_most is not None:
        parts.append(f"at most {case.plain_most:g}x of plain Parquet")
    return ", ".join(parts)
