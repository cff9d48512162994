"""The matrix: every shape is a sound table, every read the same rows on all sides, and figures are compared rightly."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from benchmarks.matrix import FIGURES, Cell, format_cells, format_slow, format_summary, run_matrix
from benchmarks.matrix_reads import QUERIES, READS
from benchmarks.matrix_tables import COLUMNS, SHAPES
from benchmarks.sizes import Sizes
from delta_core import DeltaTable

TINY = Sizes(0.0005)
CLOCK, CPU, PEAK = (FIGURES[key] for key in ("seconds", "cpu", "peak_mb"))


@pytest.mark.parametrize("name", SHAPES)
def test_shape_holds_what_the_reads_look_for(name: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    (tmp_path / "_delta_log").mkdir()
    shape.make(tmp_path, TINY)
    rows = DeltaTable(tmp_path).scan(COLUMNS).to_table()
    kept = rows.num_rows / (20 * (shape.rows if shape.few_files else max(100, int(shape.rows * TINY.scale))))
    assert kept == pytest.approx(1 - shape.deleted, abs=0.01)
    assert pc.count_distinct(rows["id"]).as_py() == rows.num_rows
    filtered = {n: DeltaTable(tmp_path).scan(["id"], r.where).to_table().num_rows for n, r in READS.items() if r.where}
    assert 0.4 < filtered["50%"] / rows.num_rows < 0.6
    assert filtered["string"]
    assert filtered["in"]


@pytest.mark.peer
def test_all_sides_return_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    cells = list(run_matrix(tmp_path, TINY, ["mapped", "partitioned"], ["all", "count"], 1, lambda _: None))
    assert [c.errors for c in cells] == [{}] * 4
    assert all(set(c.seconds) == {"ours", "deltalake", "polars", "duckdb"} for c in cells)


@pytest.mark.peer
def test_all_sides_return_the_same_result_of_queries(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    cells = list(run_matrix(tmp_path, TINY, ["mapped", "partitioned"], list(QUERIES), 1, lambda _: None))
    assert [c.errors for c in cells] == [{}] * 2 * len(QUERIES)
    assert all(set(c.seconds) == {"ours", "deltalake", "polars", "duckdb"} for c in cells)


@pytest.mark.peer
def test_peak_memory_is_that_of_a_process_with_one_read(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    small, large = run_matrix(tmp_path, Sizes(0.02), ["long-text"], ["limit", "all"], 1, lambda _: None, fresh=True)
    assert [c.errors for c in (small, large)] == [{}] * 2
    for side, opened in large.opened_mb.items():
        # 40,000 rows of 200 bytes, read after the other cell in a process that never saw it
        assert opened == pytest.approx(small.opened_mb[side], rel=0.1)
        assert opened + 8 < large.peak_mb[side]


def test_cell_compares_with_the_fastest_side_that_is_right() -> None:
    right = Cell(
        "plain", "all", {"ours": 3.0, "polars": 2.0, "duckdb": 6.0}, {"ours": 1.0, "polars": 2.0, "duckdb": 6.0}
    )
    wrong = Cell("zstd", "all", {"ours": 3.0, "duckdb": 6.0}, {}, {"polars": "answers differ"})
    alone = Cell("wide", "all", {"ours": 3.0}, {}, {})
    assert [c.ratio(CLOCK) for c in (right, wrong, alone)] == [1.5, 0.5, None]
    assert right.ratio(CPU) == 0.5
    assert format_slow([right, wrong, alone], CLOCK).startswith("plain all: 1.50")
    assert "| 1.50 |" in format_cells([right, wrong], CLOCK)
    assert format_summary([right, wrong], CLOCK).startswith("1 of 2 cells")


def test_memory_may_not_exceed_that_of_the_leanest_peer() -> None:
    more = Cell("plain", "all", {}, {}, peak_mb={"ours": 210.0, "polars": 200.0, "duckdb": 300.0})
    less = Cell("wide", "all", {}, {}, peak_mb={"ours": 200.0, "polars": 400.0})
    assert [c.ratio(PEAK) for c in (more, less)] == [1.05, 0.5]
    assert format_slow([less, more], PEAK) == "plain all: 1.05 (MB: ours 210.0, polars 200.0, duckdb 300.0)"
    assert format_summary([less, more], PEAK).startswith("1 of 2 cells at most 1 times the leanest peer's peak memory")


def test_query_is_compared_with_the_library_that_runs_it() -> None:
    through = Cell("plain", "group polars", {"ours": 2.0, "polars": 4.0, "duckdb": 1.0}, {})
    unreadable = Cell("vectors-1", "group duckdb", {"ours": 2.0, "polars": 4.0, "deltalake": 1.0}, {})
    assert [c.ratio(CLOCK) for c in (through, unreadable)] == [0.5, 2.0]
    assert format_summary([through], CLOCK).startswith("1 of 1 cells at most 1.1 times the same library's time")
