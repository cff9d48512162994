"""The harness of Spark's cases: what it runs exists, what it reports is true."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import report, spark_work
from benchmarks.cases import CASES
from benchmarks.questions import PARTITION, ROWS_PER_FILE
from benchmarks.sizes import Sizes
from benchmarks.spark_cases import SPARK_CASES, SparkCase
from benchmarks.spark_run import SparkResult, SparkRun, SparkSide, format_spark_markdown, peer_missing
from benchmarks.spark_tables import SPARK_GENERATORS, spark_table
from benchmarks.tables import GENERATORS
from delta_core import DeltaTable

TINY = Sizes(0.001)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def test_every_case_names_a_table_and_a_work() -> None:
    assert len({c.key for c in SPARK_CASES}) == len(SPARK_CASES)
    for case in SPARK_CASES:
        assert case.table in GENERATORS | SPARK_GENERATORS
        assert callable(getattr(spark_work, case.name))


@pytest.mark.parametrize(("name", "share"), [("spark-rows", 0), ("spark-rows-1", 0.01), ("spark-rows-10", 0.1)])
def test_tables_hold_seven_columns_and_lose_their_share(root: Path, name: str, share: float) -> None:
    found = DeltaTable(str(spark_table(root, name, TINY))).snapshot().scan().to_table()
    assert (found.num_columns, found.num_rows) == (7, round(20_000 * (1 - share)))


def test_requested_partition_lies_there_and_the_others_do_not(root: Path) -> None:
    snapshot = DeltaTable(str(spark_table(root, "hundred-thousand", TINY))).snapshot()
    scan = snapshot.scan(["id"], predicate=PARTITION)
    assert snapshot.files.count == 20_000
    assert scan.to_table().num_rows == scan.files().num_rows * ROWS_PER_FILE == 20 * ROWS_PER_FILE


def test_interpreter_without_delta_spark_is_named(tmp_path: Path) -> None:
    absent = str(tmp_path / "python")
    assert absent in str(peer_missing(absent))
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    assert "--peer-python" in str(peer_missing(str(bare)))


def side(warm: float, cold: float, answer: str = "1") -> SparkSide:
    return SparkSide(cold, warm, answer, "x 1")


def test_row_reports_warm_and_cold_and_what_is_missed() -> None:
    case = SparkCase("k", "title", "thin", "spark-rows", warm=2, cold=10)
    fast = SparkResult(case, {"ours": side(1, 2), "peer": side(3, 30)})
    slow = SparkResult(case, {"ours": side(1, 2), "peer": side(3, 19)})
    assert (fast.met, slow.met, SparkResult(case, {"ours": side(1, 2)}).met) == (True, False, False)
    rows = format_spark_markdown([fast, slow]).splitlines()[2:]
    assert rows[0] == "| title |  | 3 s (30) | 1 s (2) | 3x (15x) | 2x, cold 10x | yes |"
    assert rows[1].endswith("| no |")


def test_readme_has_a_place_for_each_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "README.md"
    copy.write_text(report.README.read_text())
    monkeypatch.setattr(report, "README", copy)
    for place in ("results", "spark"):
        report.write_readme(f"table of {place}", "note", place)
    text = copy.read_text()
    assert text.index("table of results") < text.index("table of spark")
    assert "## On Spark" in text


def test_every_case_has_a_title_of_its_own() -> None:
    titles = [c.title for c in CASES]
    assert sorted(titles) == sorted(set(titles))


def test_rows_of_other_cases_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "README.md"
    copy.write_text("before\n<!-- results: begin -->\n<!-- results: end -->\nafter\n")
    monkeypatch.setattr(report, "README", copy)
    head = "| work | ours |\n| --- | --- |\n"
    report.write_readme(f"{head}| a | 1 |\n| b | 2 |", "first")
    report.write_readme(f"{head}| b | 3 |\n| c | 4 |", "second")
    rows = f"{head}| a | 1 |\n| b | 3 |\n| c | 4 |"
    assert copy.read_text() == f"before\n<!-- results: begin -->\nsecond\n\n{rows}\n<!-- results: end -->\nafter\n"
    report.write_readme("| other | columns |\n| --- | --- |\n| d | 5 |", "third")
    assert "| a |" not in copy.read_text()


@pytest.mark.spark
@pytest.mark.slow
def test_sides_of_a_case_return_one_answer(root: Path, java: Path) -> None:
    pytest.importorskip("pyspark")
    run = SparkRun(root, TINY, None, loops=1, memory="1g")
    result = run.case(next(c for c in SPARK_CASES if c.key == "thin"), lambda text: None)
    assert result.error is None
    assert set(result.sides) == {"ours", "plain"}
    assert result.sides["ours"].answer.startswith("(20000,")
    assert json.dumps(result.as_dict())
