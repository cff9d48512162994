"""``python -m benchmarks``: make tables, run cases beside their peers, report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.cases import CASES, Case
from benchmarks.report import format_markdown, machine, write_readme
from benchmarks.run import prepare, run_case
from benchmarks.tables import GENERATORS, Sizes, table_path

TABLES = Path(__file__).resolve().parent.parent / ".benchmarks"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--tables", type=Path, default=TABLES, help="where tables are kept (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the tables; 1 is what is published")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="name the cases")
    generate = verbs.add_parser("generate", help="make the tables ahead of a run")
    generate.add_argument("table", nargs="*", choices=[*GENERATORS, []], help="which (default: all but ten-million)")
    run = verbs.add_parser("run", help="measure; Ctrl-C keeps nothing")
    run.add_argument("case", nargs="*", help="which cases (default: all but the big one)")
    run.add_argument("--big", action="store_true", help="the case of 10,000,000 files too: 4 GB of disk, minutes")
    run.add_argument("--repeat", type=int, default=5, help="fresh processes a side (default: %(default)s)")
    run.add_argument("--cores", type=int, default=2, help="cores to run on (default: %(default)s)")
    run.add_argument("--no-peer", action="store_true", help="measure our side alone")
    run.add_argument("--json", type=Path, help="write the figures to this file")
    run.add_argument("--write-readme", action="store_true", help="put the table into benchmarks/README.md")
    run.add_argument("--check", action="store_true", help="exit 1 where a case misses what it asks")
    return parser


def _chosen(names: list[str], big: bool) -> list[Case]:
    unknown = sorted(set(names) - {c.key for c in CASES})
    if unknown:
        sys.exit(f"no case {', '.join(unknown)}; python -m benchmarks list names them")
    return [c for c in CASES if (c.key in names if names else big or not c.big)]


def _run(options: argparse.Namespace) -> int:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    prepare()
    results = []
    for case in _chosen(options.case, options.big):
        measured = case if not options.no_peer else _alone(case)
        results.append(
            run_case(measured, options.tables, Sizes(options.scale), options.repeat, lambda t: print(t, file=sys.stderr))
        )
        print(format_markdown(results[-1:]).splitlines()[-1], flush=True)
    table, note = format_markdown(results), f"Scale {options.scale:g}, medians of {options.repeat}; {machine()}."
    print(f"\n{note}\n\n{table}")
    if options.json:
        figures = {"machine": machine(), "scale": options.scale, "cases": [r.as_dict() for r in results]}
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    if options.write_readme:
        write_readme(table, note)
    return int(options.check and not all(r.met for r in results))


def _alone(case: Case) -> Case:
    from dataclasses import replace

    from benchmarks.cases import Ask

    return replace(case, peer=None, ask=Ask(at_most=case.ask.at_most, at_least=case.ask.at_least))


def main() -> int:
    """Run the command line; return its exit code."""
    options = _parser().parse_args()
    options.tables.mkdir(parents=True, exist_ok=True)
    if options.verb == "run":
        return _run(options)
    if options.verb == "list":
        for case in CASES:
            print(f"{case.key:28} {case.title}")
        return 0
    for name in options.table or [n for n in GENERATORS if n != "ten-million"]:
        start = time.perf_counter()
        path = table_path(options.tables, name, Sizes(options.scale))
        print(f"{path} {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
