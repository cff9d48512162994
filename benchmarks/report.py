"""The table of results, on a terminal and in README.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.cases import Target
from benchmarks.run import Result, Side

__all__ = ["format_markdown", "machine", "write_readme"]

README = Path(__file__).parent / "README.md"
MARKS = "<!-- {0}: begin -->", "<!-- {0}: end -->"
HEAD = ("work", "peer", "delta_core", "ratio", "CPU peer / ours", "MB peer / ours", "target", "reached", "measured")


def machine() -> str:
    """Report what the figures were measured on."""
    packages = []
    for name in ("delta-core-lake", "deltalake", "pylance", "polars", "duckdb", "pyroaring", "pyarrow", "numpy"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}, {cores} cores, Python {platform.python_version()}, {', '.join(packages)}"


def format_markdown(results: Iterable[Result], measured: str, scale: float = 1) -> str:
    """Return the results as a Markdown table.

    Titles state the sizes of scale 1, and another scale. ``measured`` is the last column: the day and the number of
    runs.
    """
    at = "" if scale == 1 else f"at scale {scale:g}: "
    rows = [HEAD, ("---",) * len(HEAD), *((*_row(r, at), measured) for r in results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(result: Result, at: str) -> Sequence[str]:
    case = result.case
    if result.error and result.ours is None:
        return (f"{at}{case.title}", "", "", "", "", "", _target(case.target, case.unit), f"failed: {result.error}")
    return (
        f"{at}{case.title}",
        _figure(result.peer, result),
        _figure(result.ours, result),
        f"{result.faster:.3g}x" if result.faster else "",
        _processor(result),
        _memory(result),
        _target(case.target, case.unit),
        result.error or ("yes" if result.met else "no"),
    )


def _figure(side: Side | None, result: Result) -> str:
    if side is None:
        return ""
    if result.case.clock == "count":
        return f"{side.answer:,.4g} {result.case.unit}"
    if side.seconds < 0.01:
        return f"{side.seconds * 1_000:.3g} ms"
    return f"{side.seconds:.3g} s"


def _processor(result: Result) -> str:
    if result.case.clock == "count" or result.ours is None:
        return ""
    own = f"{result.ours.cpu:.3g}"
    return f"{result.peer.cpu:.3g} / {own} s" if result.peer else f"{own} s"


def _memory(result: Result) -> str:
    if result.case.clock != "work" or result.ours is None:
        return ""
    own = f"{result.ours.peak_mb:.0f}"
    return f"{result.peer.peak_mb:.0f} / {own}" if result.peer else own


def _target(target: Target, unit: str) -> str:
    parts = []
    if target.faster:
        parts.append("no slower" if target.faster == 1 else f"{target.faster:g}x")
    if target.memory:
        parts.append(f"{target.memory:g} of the memory")
    if target.most_mb:
        parts.append(f"at most {target.most_mb:,g} MB")
    if target.at_most is not None:
        parts.append(f"at most {target.at_most:,g} {unit}")
    if target.at_least is not None:
        parts.append(f"at least {target.at_least:,g} {unit}")
    return ", ".join(parts)


def write_readme(table: str, note: str, place: str = "results") -> None:
    """Put results between the marks of a place in benchmarks/README.md.

    The rows of cases that ``table`` does not have stay.
    """
    begin, end = (mark.format(place) for mark in MARKS)
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    old, _, after = rest.partition(end)
    table = _merged(old, table)
    README.write_text(f"{before}{begin}\n{note}\n\n{table}\n{end}{after}", encoding="utf-8")


def _merged(old: str, table: str) -> str:
    new = table.splitlines()
    rows = [line for line in old.splitlines() if line.startswith("|")]
    if not rows or _cells(rows[0])[0] != _cells(new[0])[0]:
        return table
    # a column that the old table lacks is empty in its rows
    names, columns = _cells(rows[0]), _cells(new[0])
    moved = [dict(zip(names, _cells(line), strict=True)) for line in rows[2:]]
    kept = [f"| {' | '.join(row.get(column, '') for column in columns)} |" for row in moved]
    by_work = {_work(line): line for line in [*new[:2], *kept]}
    by_work.update({_work(line): line for line in new})
    return "\n".join(by_work.values())


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def _work(line: str) -> str:
    return _cells(line)[0]
