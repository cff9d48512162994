"""delta-spark's public behaviour, cell by cell: its recorded answers, compared with those of this library.

`statement_program.py` has the cells, and records delta-spark's answers with the argument ``peer``. A run of all tests
tries one of several cells; ``DELTA_CORE_LONG=1`` tries all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import pyspark

from tests.docs.blocks import ROOT
from tests.example_counts import IS_LONG
from tests.spark import parts
from tests.spark.parts import is_equal, lasting
from tests.spark.statement_program import cells

#: Functions are Spark's own, and some differ from version to version, or are off in one.
HAS_RECORDED_FUNCTIONS = pyspark.__version__.startswith("4.2.")
#: One of so many cells in a run of all tests.
EVERY = 1 if IS_LONG else 16
PAGE = (ROOT / "docs" / "spark-drop-in.md").read_text(encoding="utf-8")
RECORDED = parts.recorded("statement")
#: The cells that are listed, each with the answer of this library.
OWN = parts.differing("statement")


@pytest.fixture(scope="module")
def answers(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    del java
    return parts.run("statement", tmp_path_factory.mktemp("statements"), list(cells())[::EVERY])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", list(cells())[::EVERY])
def test_answer_is_that_of_delta_spark_or_listed(name: str, answers: dict[str, Any]) -> None:
    if name.startswith("function_") and not is_equal(RECORDED[name], answers[name]) and not HAS_RECORDED_FUNCTIONS:
        pytest.skip(f"recorded on Spark 4.2, whose function answers {RECORDED[name]}, and here {answers[name]}")
    if name not in OWN:
        assert is_equal(RECORDED[name], answers[name]), f"delta-spark: {RECORDED[name]}\nhere: {answers[name]}"
        return
    assert not is_equal(RECORDED[name], answers[name]), "the answer is delta-spark's; remove it from the list"
    assert lasting(answers[name]) == OWN[name]


def test_listed_differences_are_on_the_page_with_the_share() -> None:
    assert not set(OWN) - set(RECORDED)
    for name, each in parts.listed()["differences"].items():
        row = f"| {each['reason']} | {len(each['cells'])} |"
        assert row in PAGE, f"{name} is not on the page: {row}"
    for name, answer in OWN.items():
        assert not is_equal(RECORDED[name], answer), f"{name} has delta-spark's answer"


def test_the_page_has_the_share_of_each_part() -> None:
    counts = parts.count({program: list(parts.differing(program)) for program in parts.PROGRAMS})
    for row in parts.lines(counts):
        assert row in PAGE, f"not on the page: {row}"
    assert f"{counts['all'].share} of {counts['all'].answers:,}" in PAGE


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
