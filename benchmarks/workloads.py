"""Workloads as data: cases in a TOML file, on a table of one's own, beside the peers that can do the same.

::

    table = "/data/events"              # a Delta table or a Lance dataset; a path is relative to the file
    # table = {generate = "rows"}       # or a table that `python -m benchmarks generate` makes

    [[case]]
    name = "one day"
    columns = ["id", "amount"]
    predicate = "day = '2026-05-01'"    # SQL that all sides take; limit = 10 is possible too
    peers = ["deltalake", "polars", "duckdb"]

    [[case]]
    name = "by shop"
    sql = "SELECT shop, sum(amount) AS amount FROM t GROUP BY shop"

Each case has one operation: a read (``columns``, ``predicate``, ``limit``), ``sql`` over the table ``t``, ``call``
(``open``, ``files`` or ``count``), or a change of a copy of the table: ``delete`` (a predicate), ``update`` (columns
and their SQL, with ``predicate``), ``append`` (a Parquet file), ``merge`` (a Parquet file, with ``on``, a condition of
``t`` and ``s``; rows that match are updated, others are inserted) or ``optimize`` (true).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.run import ROOT, Side, median
from benchmarks.saved import Figure
from benchmarks.sizes import Sizes
from benchmarks.tables import GENERATORS, table_path

__all__ = ["Workload", "format_workload", "load_workload", "run_workload"]

#: The operations, each with the keys that may be beside it.
OPERATIONS: Mapping[str, frozenset[str]] = {
    "sql": frozenset(),
    "call": frozenset(),
    "delete": frozenset(),
    "update": frozenset({"predicate"}),
    "append": frozenset(),
    "merge": frozenset({"on"}),
    "optimize": frozenset(),
}
READ = frozenset({"columns", "predicate", "limit"})
CALLS = ("open", "files", "count")
#: The module that each peer imports.
PEERS = {"deltalake": "deltalake", "polars": "polars", "duckdb": "duckdb", "pylance": "lance"}
#: The type of each value of a case, and its name in messages.
TYPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("sql", "call", "delete", "append", "merge", "on", "predicate"), (str, "a text")),
    **dict.fromkeys(("columns", "peers"), (list, "a list of names")),
    "limit": (int, "a whole number"),
    "update": (dict, "a table of columns and their SQL"),
}
HEAD = ("case", "side", "processor time", "elapsed", "MB", "delta_core / side", "answer")


@dataclass(frozen=True)
class Workload:
    """The cases of a file: each as the mapping that a child process gets."""

    table: str
    cases: Sequence[Mapping[str, Any]]


def load_workload(path: Path, tables: Path, sizes: Sizes, with_peers: bool = True) -> Workload:
    """Read and check a file of cases; exit with a message that names what is wrong.

    A table that is generated is made in ``tables``, if it is not there. Peers must be installed if ``with_peers``.
    """

    def reject(text: str) -> None:
        sys.exit(f"{path}: {text}")

    try:
        made = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        sys.exit(f"{path} is no TOML file of cases: {e}")
    unknown = sorted(set(made) - {"table", "case"})
    if unknown:
        reject(f"unknown key {', '.join(unknown)}; expected table and [[case]]")
    table = made.get("table")
    is_generated = isinstance(table, dict) and set(table) == {"generate"}
    if not (isinstance(table, str) or is_generated) or not made.get("case"):
        reject('expected table = "..." or {generate = "..."}, and at least one [[case]]')
    if is_generated and table["generate"] not in GENERATORS:
        reject(f"no table {table['generate']!r} is generated; expected one of {', '.join(sorted(GENERATORS))}")
    problem = _problem_of_cases(made["case"], path.parent, with_peers)
    if problem:
        reject(problem)
    if is_generated:
        place = str(table_path(tables, table["generate"], sizes).resolve())
    else:
        place = table if "://" in table else str((path.parent / table).resolve())
    if "://" not in place and not Path(place).is_dir():
        reject(f"there is no table {place}")
    return Workload(place, [_resolved(case, path.parent) for case in made["case"]])


def _problem_of_cases(cases: Any, folder: Path, with_peers: bool) -> str | None:
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        return "case is no list of tables; expected [[case]] above each case"
    for case in cases:
        problem = (
            _problem(case)
            or _wrong_value(case)
            or _missing_file(case, folder)
            or (_missing_peers(case) if with_peers else None)
        )
        if problem:
            return f"case {case.get('name')!r}: {problem}"
    names = {case["name"] for case in cases}
    return "two cases have the same name" if len(names) < len(cases) else None


def _problem(case: Mapping[str, Any]) -> str | None:
    if not isinstance(case.get("name"), str):
        return "expected a name"
    found = [key for key in OPERATIONS if key in case]
    if len(found) > 1:
        return f"has {' and '.join(found)}; expected one operation"
    if not found and not READ & set(case):
        return f"has no operation; expected a read (columns, predicate, limit) or one of {', '.join(OPERATIONS)}"
    beside = OPERATIONS[found[0]] if found else READ
    unknown = sorted(set(case) - {"name", "peers", *found} - beside)
    if unknown:
        return f"unknown key {', '.join(unknown)}"
    if "call" in found and case["call"] not in CALLS:
        return f"call is {case['call']!r}; expected one of {', '.join(CALLS)}"
    if "merge" in found and not isinstance(case.get("on"), str):
        return 'merge needs on = "t.id = s.id"'
    if "optimize" in found and case["optimize"] is not True:
        return f"optimize is {case['optimize']!r}; expected true"
    return None


def _missing_file(case: Mapping[str, Any], folder: Path) -> str | None:
    source = case.get("append") or case.get("merge")
    return f"there is no file {folder / source}" if source and not (folder / source).is_file() else None


def _wrong_value(case: Mapping[str, Any]) -> str | None:
    wrong = next(filter(None, (_wrong_type(key, value) for key, value in case.items())), None)
    if wrong:
        return wrong
    peers = sorted(set(case.get("peers", ())) - set(PEERS))
    if peers:
        return f"unknown peer {', '.join(peers)}; expected some of {', '.join(PEERS)}"
    return None


def _wrong_type(key: str, value: Any) -> str | None:
    kind, expected = TYPES.get(key, (object, ""))
    of_names = not isinstance(value, list) or all(isinstance(v, str) for v in value)
    if isinstance(value, kind) and of_names and not (kind is int and isinstance(value, bool)):
        return None
    return f"{key} is {value!r}; expected {expected}"


def _missing_peers(case: Mapping[str, Any]) -> str | None:
    missing = ", ".join(peer for peer in case.get("peers", ("deltalake",)) if find_spec(PEERS[peer]) is None)
    return f"{missing} is not installed; install it with pip, or run with --no-peer" if missing else None


def _resolved(case: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    files = {key: str((folder / case[key]).resolve()) for key in ("append", "merge") if key in case}
    return {"peers": ("deltalake",), **case, **files}


def run_workload(
    workload: Workload, repeat: int, with_peers: bool, say: Callable[[str], None]
) -> tuple[list[Figure], dict[str, str]]:
    """Measure all cases, sides in turn, and return their figures; and the failure of each side, by case and side."""
    figures, errors = [], {}
    for case in workload.cases:
        sides = ["ours", *(case["peers"] if with_peers else ())]
        found: dict[str, list[Side]] = {side: [] for side in sides}
        for i in range(repeat):
            for side in [s for s in sides if f"{case['name']}: {s}" not in errors]:
                say(f"{case['name']}: {'delta_core' if side == 'ours' else side} {i + 1}/{repeat}")
                command = [sys.executable, "-m", "benchmarks.workload_child", side, workload.table, json.dumps(case)]
                environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
                done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                    errors[f"{case['name']}: {side}"] = last
                    continue
                out = json.loads(done.stdout.splitlines()[-1])
                found[side].append(Side(out["seconds"], out["peak_mb"], out["answer"], out["cpu"]))
        for side, runs in found.items():
            if runs and f"{case['name']}: {side}" not in errors:
                figures.append(
                    Figure(
                        case["name"], side, [r.seconds for r in runs], [r.cpu for r in runs], median(runs).peak_mb,
                        runs[-1].answer,
                    )
                )  # fmt: skip
    return figures, errors


def format_workload(figures: Sequence[Figure], errors: Mapping[str, str]) -> str:
    """Return the figures as a Markdown table; a peer with another answer, or an error, is named."""
    rows: list[Sequence[str]] = [HEAD, ("---",) * len(HEAD)]
    own = {f.case: f for f in figures if f.side == "ours"}
    for f in figures:
        ours = own.get(f.case)
        ratio = "" if ours is None or f is ours else f"{ours.median() / max(f.median(), 1e-9):.2f}"
        differs = ours is not None and not _same(f.answer, ours.answer)
        answer = f"differs: {f.answer}, ours {ours.answer}" if differs and ours else "same"
        name = "delta_core" if f.side == "ours" else f.side
        times = (f"{f.median() * 1_000:.3g} ms", f"{f.median(wall=True) * 1_000:.3g} ms")
        rows.append((f.case, name, *times, f"{f.peak_mb:.0f}", ratio, answer))
    for key, text in errors.items():
        name, side = key.rsplit(": ", 1)
        rows.append((name, "delta_core" if side == "ours" else side, "", "", "", "", f"failed: {text}"))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
