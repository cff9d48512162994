"""``python -m tests.spark.parts``: each recorded answer of delta-spark, compared with that of this library.

It prints how many answers are equal, by part and of all, and those that differ. Each program runs in a session of
Spark; all of them take about half an hour. Arguments are the programs to run, of `PROGRAMS`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

from tests.docs.blocks import ROOT
from tests.spark.history_program import comparable
from tests.spark.statement_program import TEXT, statements

HERE = Path(__file__).parent
#: The programs, each with the part that its answers are, unless it has several.
PROGRAMS = {
    "statement": "",
    "error": "error conditions",
    "forms": "names and paths of tables",
    "latest": "versions that queries read",
    "history": "operations and parameters in the history",
}
#: Columns that differ from run to run, and one that Spark decides, whose version 4.2 wrote the recorded files.
VARYING = {"timestamp", "engineInfo", "operationMetrics", "isolationLevel"}
VARYING |= set() if pyspark.__version__.startswith("4.2.") else {"source_table_size"}
#: The parts of the program ``statement``, by how the names of its cells begin.
BEGINNINGS = {
    "function_": "Column functions in changes",
    "setting": "settings of the session",
    "argument_": "arguments of builders",
}
STATEMENTS = frozenset(name for name, _ in statements(TEXT.read_text(encoding="utf-8")))


class Count(NamedTuple):
    """How many answers of a part there are, and which of them differ."""

    answers: int
    differing: tuple[str, ...]

    @property
    def share(self) -> str:
        return f"{1 - len(self.differing) / self.answers:.1%}".replace("%", " %")


def recorded(program: str) -> dict[str, Any]:
    """Return the answers of delta-spark to a program."""
    return answers_of(program, json.loads((HERE / f"{program}_recorded.json").read_text(encoding="utf-8")))


def answers_of(program: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return answers in the form that `is_equal` takes."""
    if program == "history":
        return {name: comparable(answer) for name, answer in found.items()}
    if program != "error":
        return dict(found)
    return {name: None if answer == "no error" else {"error": answer} for name, answer in found.items()}


def listed() -> Mapping[str, Any]:
    """Return the listed differences of the program ``statement``, by reason."""
    return tomllib.loads((HERE / "statement_differences.toml").read_text(encoding="utf-8"))


def differing(program: str) -> dict[str, Any]:
    """Return the answers of this library that differ, as they are listed."""
    if program == "statement":
        return {n: json.loads(a) for each in listed()["differences"].values() for n, a in each["cells"].items()}
    from tests.spark import test_error_classes, test_forms, test_history, test_latest_versions

    modules: Mapping[str, Any] = {
        "error": test_error_classes,
        "forms": test_forms,
        "latest": test_latest_versions,
        "history": test_history,
    }
    own, theirs = answers_of(program, modules[program].OWN), recorded(program)
    return {name: answer for name, answer in own.items() if not is_equal(theirs[name], answer)}


def lasting(answer: Any) -> Any:
    """Return an answer without the columns that differ from run to run."""
    if not (isinstance(answer, list) and len(answer) == 2 and isinstance(answer[0], list)):
        return answer
    kept = [n for n, name in enumerate(answer[0]) if not (isinstance(name, str) and name in VARYING)]
    if len(kept) == len(answer[0]):
        return answer
    return [[row[n] for n in kept] for row in (answer[0], *answer[1])]


def is_equal(theirs: Any, ours: Any) -> bool:
    """Return whether a program sees the same.

    That is the same value, or an error that the same handlers catch and that has the condition of delta-spark's, if
    that has one.
    """
    if isinstance(theirs, list) and any(isinstance(each, dict) and "error" in each for each in theirs):
        return isinstance(ours, list) and len(theirs) == len(ours) and all(map(is_equal, theirs, ours))
    if not (isinstance(theirs, dict) and "error" in theirs):
        return bool(lasting(theirs) == lasting(ours))
    if not (isinstance(ours, dict) and "error" in ours):
        return False
    (classes, condition), (own, found) = theirs["error"], ours["error"]
    return set(classes) <= set(own) and condition in (None, found)


def part_of(program: str, name: str) -> str:
    """Return the part that an answer belongs to."""
    if PROGRAMS[program]:
        return PROGRAMS[program]
    for beginning, part in BEGINNINGS.items():
        if name.startswith(beginning):
            return part
    return "statements and their clauses" if name in STATEMENTS else "options, streams and builders"


def count(different: Mapping[str, Sequence[str]]) -> dict[str, Count]:
    """Return the parts of programs, and ``all``, by the names of answers that differ in each program."""
    names = [(part_of(program, n), n, n in wrong) for program, wrong in different.items() for n in recorded(program)]
    parts = list(dict.fromkeys(part for part, _, _ in names))
    found = {p: [(name, is_wrong) for part, name, is_wrong in names if part == p] for p in parts}
    found["all"] = [(name, is_wrong) for _, name, is_wrong in names]
    return {p: Count(len(each), tuple(name for name, is_wrong in each if is_wrong)) for p, each in found.items()}


def run(program: str, folder: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """Run a program in a session of its own; return its answers."""
    printed, errors = folder / "answers.jsonl", folder / "errors.txt"
    with printed.open("w", encoding="utf-8") as out, errors.open("w", encoding="utf-8") as err:
        done = subprocess.run(
            [sys.executable, str(HERE / f"{program}_program.py"), str(folder), *names],
            stdout=out,
            stderr=err,
            timeout=10_800,
            cwd=folder,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
            check=False,
        )
    text = printed.read_text(encoding="utf-8")
    if done.returncode:
        raise RuntimeError(text[-2000:] + errors.read_text(encoding="utf-8")[-2000:])
    return answers_of(program, dict(json.loads(line) for line in text.splitlines() if line.startswith("[")))


def run_in_sessions(program: str, names: Sequence[str], sessions: int) -> dict[str, Any]:
    """Run a program in several sessions at once, each of which answers some of the names."""
    if sessions == 1:
        with tempfile.TemporaryDirectory() as folder:
            return run(program, Path(folder))
    with ExitStack() as stack, ThreadPoolExecutor(sessions) as pool:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(sessions)]
        parts = pool.map(run, [program] * sessions, folders, [names[n::sessions] for n in range(sessions)])
        return {name: answer for part in parts for name, answer in part.items()}


def lines(counts: Mapping[str, Count]) -> Iterator[str]:
    """Yield the rows of the table of parts."""
    yield "| part | answers | equal | share |"
    yield "|---|---|---|---|"
    for part, found in counts.items():
        yield f"| {part} | {found.answers:,} | {found.answers - len(found.differing):,} | {found.share} |"


def main() -> int:
    """Run the programs, and return 1 if an answer differs that is not listed, or is listed and does not differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.parts", description=__doc__)
    parser.add_argument("program", nargs="*", help=f"which (default: {' '.join(PROGRAMS)})")
    parser.add_argument("--sessions", type=int, default=1, help="how many sessions run at once (default: 1)")
    options = parser.parse_args()
    different = {}
    for program in options.program or PROGRAMS:
        theirs = recorded(program)
        found = run_in_sessions(program, list(theirs), options.sessions if program == "statement" else 1)
        different[program] = [n for n in theirs if n not in found or not is_equal(theirs[n], found[n])]
        for name in different[program]:
            print(f"{program} {name}: {json.dumps(found.get(name))}", flush=True)
    print(*lines(count(different)), sep="\n")
    wrong = [n for program, names in different.items() for n in set(names) ^ set(differing(program))]
    print(*(f"not as listed: {name}" for name in sorted(wrong)), sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
