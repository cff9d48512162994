"""Cases that change rows: both sides come to the same rows, and a sum over them notices a row that differs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import ours, row_changes
from benchmarks.cases import CASES, Case
from benchmarks.change_tables import CHANGE_GENERATORS
from benchmarks.questions import SMALLEST
from benchmarks.row_changes import Answer
from benchmarks.sizes import Sizes
from benchmarks.tables import table_path

deltalake = pytest.importorskip("deltalake", reason="the peer is not installed")
COMPARED = [c for c in CASES if c.table in (*CHANGE_GENERATORS, "tiny-files") and c.peer]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changes")


def _answer(work: Callable[[], Answer]) -> float:
    found = work()
    return found() if callable(found) else found


@pytest.mark.peer
@pytest.mark.parametrize("case", COMPARED, ids=lambda c: c.key)
def test_both_sides_come_to_the_same_rows(case: Case, root: Path) -> None:
    table = table_path(root, case.table, Sizes(SMALLEST))
    answers = [
        _answer(getattr(import_module(f"benchmarks.{module}"), case.name)(table, table))
        for module in ("ours", "peers_deltalake")
    ]
    assert answers[0] == answers[1]


@pytest.mark.peer
def test_sum_notices_one_row_with_another_value(root: Path) -> None:
    table = table_path(root, "narrow-rows", Sizes(SMALLEST))
    sums = []
    for amount in ("amount", "amount + 1"):
        work = row_changes.changing(
            "delta_core",
            lambda _, value=amount: lambda t: t.update({"amount": value}, predicate="id = 5"),
            table,
            table,
        )
        sums.append(_answer(work))
    assert sums[0] != sums[1]


@pytest.mark.peer
def test_large_merge_answers_with_its_memory(root: Path) -> None:
    table = table_path(root, "hundred-million", Sizes(SMALLEST / 10))
    assert 10 < _answer(ours.merge_peak(table, table)) < 2_000


@pytest.mark.peer
def test_clustering_answers_with_a_ratio_of_shares(root: Path) -> None:
    table = table_path(root, "narrow-rows", Sizes(SMALLEST))
    assert 0 < _answer(ours.files_after_hilbert(table, table)) < 10
