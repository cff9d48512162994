"""``python -m benchmarks``: make tables, run cases beside their peers, report."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, Case
from benchmarks.compare import built_commit, environment_of, format_comparison
from benchmarks.lance_cases import LANCE_CASES
from benchmarks.lance_run import format_lance_markdown, run_lance_case
from benchmarks.matrix import FIGURES, Cell, format_cells, format_slow, format_summary, run_matrix
from benchmarks.matrix_reads import QUERIES, READS
from benchmarks.matrix_tables import SHAPES
from benchmarks.plot import plot_history, plot_published
from benchmarks.profile import format_counters, profile_case
from benchmarks.report import format_markdown, machine, write_readme
from benchmarks.run import ROOT, Place, Side, prepare, run_both, run_case, tables_of
from benchmarks.saved import Figure, SavedRun, commit_of, find_run, find_runs, load, save
from benchmarks.sizes import Sizes
from benchmarks.spark_cases import SPARK_CASES
from benchmarks.tables import GENERATORS, table_path
from benchmarks.workloads import format_workload, load_workload, run_workload

TABLES = Path(__file__).resolve().parent.parent / ".benchmarks"
#: Where published figures are drawn.
DRAWN = Path(__file__).resolve().parent.parent / "docs" / "figures"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--tables", type=Path, default=TABLES, help="where tables are kept (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the tables; 1 is what is published")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the cases")
    generate = commands.add_parser("generate", help="make the tables ahead of a run")
    generate.add_argument("table", nargs="*", choices=[*GENERATORS, []], help="which (default: all but those of --big)")
    run = commands.add_parser("run", help="measure; Ctrl-C keeps nothing")
    run.add_argument(
        "case", nargs="*", help="which cases (default: all but those of --big), or one file of cases (.toml)"
    )
    run.add_argument(
        "--big",
        action="store_true",
        help="the cases of 10,000,000 files and of 100,000,000 rows too: 6 GB of disk, minutes",
    )
    run.add_argument("--repeat", type=int, default=5, help="fresh processes a side (default: %(default)s)")
    run.add_argument("--cores", type=int, default=2, help="cores to run on (default: %(default)s)")
    run.add_argument("--no-peer", action="store_true", help="measure our side alone")
    run.add_argument("--json", type=Path, help="write the figures to this file")
    run.add_argument("--write-readme", action="store_true", help="put the table into benchmarks/README.md")
    run.add_argument("--check", action="store_true", help="exit 1 if a case misses its target")
    _add_saved(commands)
    _add_spark(commands.add_parser("spark", help="measure on Spark, beside delta-spark"))
    _add_lance(commands.add_parser("lance", help="measure Lance datasets, beside pylance"))
    _add_matrix(commands.add_parser("matrix", help="measure reads x shapes of tables, beside three peers"))
    return parser


def _add_saved(commands: Any) -> None:
    """Add the commands on saved runs: each run of ``run`` and ``lance`` is saved with its commit."""
    compare = commands.add_parser("compare", help="compare two saved runs, or another commit with the files here")
    compare.add_argument("before", help="a saved run: its file, latest, previous, or the begin of its commit")
    compare.add_argument("after", nargs="?", help="another one (default: latest)")
    compare.add_argument("--measure", nargs="+", metavar="CASE", help="build the commit BEFORE, and measure these now")
    compare.add_argument("--repeat", type=int, default=5, help="of --measure: processes a side (default: %(default)s)")
    compare.add_argument("--cores", type=int, default=2, help="of --measure: cores to run on (default: %(default)s)")
    compare.add_argument("--wall", action="store_true", help="compare elapsed time, not processor time")
    compare.add_argument("--check", action="store_true", help="exit 1 if a case is slower")
    history = commands.add_parser("history", help="list the times of cases over saved runs")
    history.add_argument("case", nargs="*", help="which cases (default: all)")
    history.add_argument("--wall", action="store_true", help="elapsed time, not processor time")
    plot = commands.add_parser("plot", help="draw the published figures, or a case over saved runs, as SVG")
    plot.add_argument("case", nargs="*", help="cases to draw over saved runs (default: the published figures)")
    plot.add_argument("--output", type=Path, default=DRAWN, help="the folder (default: %(default)s)")
    profile = commands.add_parser("profile", help="draw a flame graph of one case, and print its counters")
    profile.add_argument("case", help="which case")
    profile.add_argument("-o", "--output", type=Path, help="the SVG file (default: CASE.svg)")
    profile.add_argument("--json", type=Path, help="write the counters to this file")


def _add_matrix(matrix: argparse.ArgumentParser) -> None:
    matrix.add_argument("--shape", action="append", choices=SHAPES, help="which tables (default: all)")
    reads = matrix.add_mutually_exclusive_group()
    reads.add_argument("--read", action="append", choices=[*READS, *QUERIES], help="which reads (default: all)")
    reads.add_argument(
        "--queries",
        action="store_const",
        const=list(QUERIES),
        dest="read",
        help="queries of whole tables through Polars and DuckDB, instead of reads",
    )
    matrix.add_argument("--repeat", type=int, default=5, help="runs a side and cell (default: %(default)s)")
    matrix.add_argument("--cores", type=int, default=2, help="cores to run on (default: %(default)s)")
    figure = matrix.add_mutually_exclusive_group()
    figure.add_argument(
        "--cpu",
        action="store_const",
        const="cpu",
        dest="figure",
        default="seconds",
        help="compare processor time, on a machine that does other work",
    )
    figure.add_argument(
        "--memory",
        action="store_const",
        const="peak_mb",
        dest="figure",
        help="compare the peak memory of new processes, one for each run of a cell",
    )
    matrix.add_argument("--json", type=Path, help="write the figures to this file")
    matrix.add_argument("--write-readme", action="store_true", help="put the table into benchmarks/README.md")
    matrix.add_argument("--check", action="store_true", help="exit 1 if a cell misses its target")


def _add_lance(lance: argparse.ArgumentParser) -> None:
    lance.add_argument("case", nargs="*", choices=[*(c.key for c in LANCE_CASES), []], help="which (default: all)")
    lance.add_argument("--repeat", type=int, default=5, help="fresh processes a side (default: %(default)s)")
    lance.add_argument("--cores", type=int, default=2, help="cores to run on (default: %(default)s)")
    lance.add_argument("--json", type=Path, help="write the figures to this file")
    lance.add_argument("--write-readme", action="store_true", help="put the table into benchmarks/README.md")
    lance.add_argument("--check", action="store_true", help="exit 1 if a case misses its target")


def _add_spark(spark: argparse.ArgumentParser) -> None:
    spark.add_argument("case", nargs="*", choices=[*(c.key for c in SPARK_CASES), []], help="which (default: all)")
    spark.add_argument(
        "--peer-python", help="interpreter that has delta-spark (default: DELTA_SPARK_PYTHON, then this one)"
    )
    spark.add_argument("--no-peer", action="store_true", help="measure without delta-spark")
    spark.add_argument("--repeat", type=int, default=1, help="JVMs a side (default: %(default)s)")
    spark.add_argument("--loops", type=int, default=5, help="warm runs in each JVM (default: %(default)s)")
    spark.add_argument("--cores", type=int, default=2, help="local[n] (default: %(default)s)")
    spark.add_argument("--memory", default="8g", help="of the driver (default: %(default)s)")
    spark.add_argument("--json", type=Path, help="write the figures to this file")
    spark.add_argument("--write-readme", action="store_true", help="put the table into benchmarks/README.md")
    spark.add_argument("--check", action="store_true", help="exit 1 if a case misses its target")


def _chosen(names: list[str], big: bool) -> list[Case]:
    unknown = sorted(set(names) - {c.key for c in CASES})
    if unknown:
        sys.exit(f"no case {', '.join(unknown)}; python -m benchmarks list names them")
    return [c for c in CASES if (c.key in names if names else big or not c.big)]


def _pin(cores: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def _run_matrix(options: argparse.Namespace) -> int:
    _pin(options.cores)
    prepare()
    shapes, reads, figure = options.shape or list(SHAPES), options.read or list(READS), FIGURES[options.figure]
    of_memory = figure.key == "peak_mb"
    cells: list[Cell] = []
    for cell in run_matrix(options.tables, Sizes(options.scale), shapes, reads, options.repeat, _say, fresh=of_memory):
        cells.append(cell)
        ratio = cell.ratio(figure)
        print(f"{cell.shape} {cell.read}: {'' if ratio is None else f'{ratio:.2f}'}", flush=True)
    peer = f"the {figure.best} peer with the right rows"
    if set(reads) <= set(QUERIES):
        peer = f"the same library on its own files, or of {peer} if it is not among these"
    note = (
        f"Our {figure.title} over that of {peer}. Scale {options.scale:g}, medians of {options.repeat}; "
        f"{format_summary(cells, figure)}; {machine()}."
    )
    table = format_cells(cells, figure)
    print(f"\n{note}\n\n{table}\n\n{format_slow(cells, figure)}")
    if options.json:
        figures = {"machine": machine(), "scale": options.scale, "cells": [asdict(c) for c in cells]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.write_readme:
        place = "matrix-queries" if set(reads) <= set(QUERIES) else "matrix"
        write_readme(table, note, "matrix-memory" if of_memory else place)
    missed = [c for c in cells if (c.ratio(figure) or 0) > figure.at_most or "ours" in c.errors]
    return int(options.check and bool(missed))


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _run_workload(options: argparse.Namespace) -> int:
    unused = [n for n in ("big", "json", "write_readme", "check") if getattr(options, n)]
    if unused:
        sys.exit(f"--{unused[0].replace('_', '-')} is for the cases of the project, not for a file of cases")
    workload = load_workload(Path(options.case[0]), options.tables, Sizes(options.scale), not options.no_peer)
    _pin(options.cores)
    prepare()
    figures, errors = run_workload(workload, options.repeat, not options.no_peer, _say)
    print(f"{workload.table}; medians of {options.repeat}; {machine()}.\n\n{format_workload(figures, errors)}")
    if figures:
        _say(f"saved as {save(options.tables, options.scale, figures)}")
    return int(bool(errors))


def _compare(options: argparse.Namespace) -> int:
    if options.measure and options.after is not None:
        sys.exit("--measure compares BEFORE with the files here: leave out AFTER")
    if options.measure:
        before, after = _measured(options)
    else:
        before, after = find_run(options.tables, options.before), find_run(options.tables, options.after or "latest")
    text, is_slower = format_comparison(before, after, options.wall)
    print(text)
    return int(options.check and is_slower)


def _measured(options: argparse.Namespace) -> tuple[SavedRun, SavedRun]:
    """Measure cases at another commit and here, in turn."""
    folder = built_commit(options.tables, options.before, _say)
    _pin(options.cores)
    prepare()
    places = [Place(*environment_of(folder)), Place(ROOT, dict(os.environ))]
    commits = (folder.name, commit_of())
    figures: tuple[list[Figure], list[Figure]] = ([], [])
    for case in _chosen(options.measure, big=True):
        try:
            sides = run_both(case, places, options.tables, Sizes(options.scale), options.repeat, _say)
        except subprocess.CalledProcessError as e:
            # what the case needs is newer than the commit, as a rule
            sys.exit(f"{case.key} can't be measured: {(e.stderr.strip().splitlines() or ['no message'])[-1]}")
        for found, side in zip(figures, sides, strict=True):
            found.append(_figure(case.key, "ours", side))
    runs = [load(save(options.tables, options.scale, f, c)) for c, f in zip(commits, figures, strict=True)]
    return runs[0], runs[1]


def _figure(case: str, name: str, side: Side) -> Figure:
    return Figure(case, name, [s for s, _ in side.runs], [c for _, c in side.runs], side.peak_mb)


def _history(options: argparse.Namespace) -> int:
    runs = find_runs(options.tables)
    if not runs:
        sys.exit(f"there is no saved run in {options.tables / 'results'}: python -m benchmarks run saves one")
    for case in options.case or dict.fromkeys(c for run in runs for c in run.cases):
        print(case)
        for run in runs:
            own = run.of(case)
            if own is None:
                continue
            peers = [f for f in run.figures if f.case == case and f.side != "ours"]
            beside = "".join(f"  {own.median(options.wall) / f.median(options.wall):.2f} of {f.side}" for f in peers)
            time = f"{own.median(options.wall) * 1_000:12,.4g} ms +- {own.noise(options.wall):.0%}"
            print(f"  {run.time}  {run.commit:12} scale {run.scale:g} {time}{beside}")
    return 0


def _plot(options: argparse.Namespace) -> int:
    if not options.case:
        made = plot_published(options.output)
    else:
        runs = [run for run in find_runs(options.tables) if set(options.case) & set(run.cases)]
        missing = sorted(set(options.case) - {c for run in runs for c in run.cases})
        if missing:
            sys.exit(f"no saved run has {', '.join(missing)}; python -m benchmarks history lists the cases")
        made = [plot_history(options.output, c, [run for run in runs if run.of(c)]) for c in options.case]
    print("\n".join(map(str, made)))
    return 0


def _profile(options: argparse.Namespace) -> int:
    (case,) = _chosen([options.case], big=True)
    prepare()
    output = options.output or Path(f"{case.key}.svg")
    table, small = tables_of(case, options.tables, Sizes(options.scale))
    found = profile_case(case.name, table, small, output.resolve(), _say)
    print(f"{format_counters(found)}\nflame graph: {output}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


def _run(options: argparse.Namespace) -> int:
    if len(options.case) == 1 and options.case[0].endswith(".toml"):
        return _run_workload(options)
    _pin(options.cores)
    prepare()
    results = []
    day = f"{datetime.now(tz=UTC):%Y-%m-%d}, {options.repeat} runs"
    for case in _chosen(options.case, options.big):
        measured = case if not options.no_peer else _alone(case)
        results.append(run_case(measured, options.tables, Sizes(options.scale), options.repeat, _say))
        print(format_markdown(results[-1:], day, options.scale).splitlines()[-1], flush=True)
    table, note = format_markdown(results, day, options.scale), f"Scale {options.scale:g}; {machine()}."
    print(f"\n{note}\n\n{table}")
    sides = [(r, name, side) for r in results for name, side in (("ours", r.ours), (r.case.peer or "", r.peer)) if side]
    _say(f"saved as {save(options.tables, options.scale, [_figure(r.case.key, n, s) for r, n, s in sides])}")
    if options.json:
        figures = {"machine": machine(), "scale": options.scale, "cases": [r.as_dict() for r in results]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.write_readme:
        write_readme(table, note)
    return int(options.check and not all(r.met for r in results))


def _run_spark(options: argparse.Namespace) -> int:
    from benchmarks.spark_run import PEER_PYTHON, SparkRun, format_spark_markdown, peer_missing

    peer = None if options.no_peer else options.peer_python or os.environ.get(PEER_PYTHON) or sys.executable
    missing = peer_missing(peer) if peer else None
    if missing and (options.peer_python or options.write_readme or options.check):
        sys.exit(missing)
    if missing:
        print(f"without the peer: {missing}", file=sys.stderr)
    prepare()
    run = SparkRun(
        options.tables,
        Sizes(options.scale),
        None if missing else peer,
        options.repeat,
        options.loops,
        options.cores,
        options.memory,
    )
    results = []
    for case in SPARK_CASES:
        if not options.case or case.key in options.case:
            results.append(run.case(case, _say))
            print(format_spark_markdown(results[-1:]).splitlines()[-1], flush=True)
    versions = sorted({s.version for r in results for s in r.sides.values()})
    note = (
        f"Scale {options.scale:g}, local[{options.cores}], driver {options.memory}; medians of "
        f"{options.repeat * options.loops} warm runs, in brackets the first run in a JVM; {machine()}, "
        f"{', '.join(versions)}."
    )
    table = format_spark_markdown(results)
    print(f"\n{note}\n\n{table}")
    if options.json:
        figures = {"machine": machine(), "scale": options.scale, "cases": [r.as_dict() for r in results]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.write_readme:
        write_readme(table, note, "spark")
    return int(options.check and not all(r.met for r in results))


def _run_lance(options: argparse.Namespace) -> int:
    _pin(options.cores)
    prepare()
    results = []
    for case in LANCE_CASES:
        if not options.case or case.key in options.case:
            sizes = Sizes(options.scale)
            results.append(run_lance_case(case, options.tables, sizes, options.repeat, _say))
            print(format_lance_markdown(results[-1:]).splitlines()[-1], flush=True)
    note = f"Processor time. Scale {options.scale:g}, medians of {options.repeat}; {machine()}."
    table = format_lance_markdown(results)
    print(f"\n{note}\n\n{table}")
    runs = [Figure(r.case.key, side, [], cpu, r.peak_mb[side]) for r in results for side, cpu in r.runs.items()]
    _say(f"saved as {save(options.tables, options.scale, runs)}")
    if options.json:
        figures = {"machine": machine(), "scale": options.scale, "cases": [r.as_dict() for r in results]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.write_readme:
        write_readme(table, note, "lance")
    return int(options.check and not all(r.met for r in results))


def _alone(case: Case) -> Case:
    from dataclasses import replace

    return replace(case, peer=None, target=replace(case.target, faster=None, memory=None))


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "run": _run,
    "compare": _compare,
    "history": _history,
    "plot": _plot,
    "profile": _profile,
    "matrix": _run_matrix,
    "spark": _run_spark,
    "lance": _run_lance,
}


def main() -> int:
    """Run the command line; return its exit code."""
    options = _parser().parse_args()
    options.tables.mkdir(parents=True, exist_ok=True)
    if options.command in COMMANDS:
        return COMMANDS[options.command](options)
    if options.command == "list":
        for case in CASES:
            print(f"{case.key:28} {case.title}")
        for on_spark in SPARK_CASES:
            print(f"spark {on_spark.key:22} {on_spark.title}")
        for of_lance in LANCE_CASES:
            print(f"lance {of_lance.key:22} {of_lance.title}")
        return 0
    big = {c.table for c in CASES if c.big}
    for name in options.table or [n for n in GENERATORS if n not in big]:
        start = time.perf_counter()
        path = table_path(options.tables, name, Sizes(options.scale))
        print(f"{path} {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
