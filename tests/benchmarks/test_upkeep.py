"""Upkeep of tables: both sides leave the same files and entries, and the sums over them notice a difference."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import ours, upkeep
from benchmarks.cases import CASES, Case
from benchmarks.questions import SMALLEST
from benchmarks.sizes import Sizes
from benchmarks.tables import table_path

pytest.importorskip("deltalake", reason="the peer is not installed")
COMPARED = [c for c in CASES if c.peer and c.name in ("vacuum", "restore", "convert", "compact_log", "clean_log")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upkeep")


@pytest.mark.peer
@pytest.mark.parametrize("case", COMPARED, ids=lambda c: c.key)
def test_both_sides_leave_the_same(case: Case, root: Path) -> None:
    table = table_path(root, case.table, Sizes(SMALLEST))
    answers = [
        getattr(import_module(f"benchmarks.{module}"), case.name)(table, table)()()
        for module in ("ours", "peers_deltalake")
    ]
    assert answers[0] == answers[1]


@pytest.mark.peer
@pytest.mark.parametrize("name", ["half-garbage", "parquet-files", "old-commits"])
def test_sum_notices_one_missing_file(name: str, root: Path) -> None:
    table = table_path(root, name, Sizes(SMALLEST))
    answers: dict[str, Callable[[Path], float]] = {
        "half-garbage": upkeep._remaining,
        "parquet-files": lambda folder: upkeep._sum_of(f.name for f in folder.iterdir()),
        "old-commits": upkeep._log_files,
    }
    with upkeep.copied(table) as folder:
        before = answers[name](folder)
        next(f for p in ("*/*.parquet", "*.parquet", "*/*.json") for f in sorted(folder.glob(p))).unlink()
        assert answers[name](folder) != before


@pytest.mark.peer
@pytest.mark.parametrize(("name", "tenth"), [("half-garbage", "little-garbage"), ("million-live", "tenth-live")])
def test_vacuum_answers_with_what_it_adds_to_the_peak(root: Path, name: str, tenth: str) -> None:
    table = table_path(root, name, Sizes(SMALLEST))
    table_path(root, tenth, Sizes(SMALLEST))
    assert 0 <= ours.vacuum_peak(table, table)() < 100
