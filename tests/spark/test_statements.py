"""delta-spark's public behaviour, cell by cell: its recorded answers, compared with those of this library.

`statement_program.py` has the cells, and records delta-spark's answers with the argument ``peer``. A run of all tests
tries one of several cells; ``DELTA_CORE_LONG=1`` tries all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from tests.docs.blocks import ROOT
from tests.example_counts import IS_LONG
from tests.spark.statement_program import cells

#: One of so many cells in a run of all tests.
EVERY = 1 if IS_LONG else 16
PAGE = (ROOT / "docs" / "spark-drop-in.md").read_text(encoding="utf-8")
RECORDED: Mapping[str, Any] = json.loads(Path(__file__).with_name("statement_recorded.json").read_text())
#: The share of equal answers, and the others: by reason, each with the answer of this library.
LISTED: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("statement_differences.toml").read_text())
#: Columns that differ from run to run.
VARYING = {"timestamp", "engineInfo", "operationMetrics", "isolationLevel"}


def differing() -> dict[str, Any]:
    """Return the cells that are listed, each with the answer of this library."""
    return {n: json.loads(a) for each in LISTED["differences"].values() for n, a in each["cells"].items()}


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
        return len(theirs) == len(ours) and all(map(is_equal, theirs, ours))
    if not (isinstance(theirs, dict) and "error" in theirs):
        return bool(lasting(theirs) == lasting(ours))
    if not (isinstance(ours, dict) and "error" in ours):
        return False
    (classes, condition), (own, found) = theirs["error"], ours["error"]
    return set(classes) <= set(own) and condition in (None, found)


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    folder = tmp_path_factory.mktemp("statements")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("statement_program.py")), str(folder), *list(cells())[::EVERY]],
        capture_output=True,
        text=True,
        timeout=7200,
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, (ROOT, os.environ.get("PYTHONPATH", ""))))),
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", list(cells())[::EVERY])
def test_answer_is_that_of_delta_spark_or_listed(name: str, answers: dict[str, Any]) -> None:
    own = differing()
    if name not in own:
        assert is_equal(RECORDED[name], answers[name]), f"delta-spark: {RECORDED[name]}\nhere: {answers[name]}"
        return
    assert not is_equal(RECORDED[name], answers[name]), "the answer is delta-spark's; remove it from the list"
    assert lasting(answers[name]) == own[name]


def test_listed_differences_are_on_the_page_with_the_share() -> None:
    own = differing()
    assert sum(len(each["cells"]) for each in LISTED["differences"].values()) == len(own)
    assert not set(own) - set(RECORDED)
    for name, each in LISTED["differences"].items():
        assert each["reason"] in PAGE, f"{name} is not on the page: {each['reason']}"
    for name, answer in own.items():
        assert not is_equal(RECORDED[name], answer), f"{name} has delta-spark's answer"
    share = f"{1 - len(own) / len(RECORDED):.1%}".replace("%", " %")
    assert f"{share} of {len(RECORDED):,}" in PAGE


def test_cells_are_those_that_were_recorded() -> None:
    """An older PySpark lacks some functions."""
    assert list(cells()) == [n for n in RECORDED if n in cells() or not n.startswith("function_")]


def test_an_error_equals_one_that_the_same_handlers_catch() -> None:
    def error(condition: str | None, *classes: str) -> Any:
        return {"error": [list(classes), condition]}

    assert is_equal(error("X", "AnalysisException"), error("X", "AnalysisException", "ValueError"))
    assert is_equal(error(None, "TypeError"), error("X", "TypeError"))
    assert not is_equal(error("X", "AnalysisException"), error(None, "AnalysisException"))
    assert not is_equal(error("X", "AnalysisException"), error("X", "ValueError"))
    assert not is_equal(error(None), [["id"], []])
    assert not is_equal([["id"], []], error(None))
    assert is_equal([["id", "timestamp"], [[1, "a"]]], [["id", "timestamp"], [[1, "b"]]])
    assert not is_equal([["id", "timestamp"], [[1, "a"]]], [["id", "timestamp"], [[2, "a"]]])
