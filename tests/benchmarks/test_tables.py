"""The made-up tables are real ones: a peer reads them and finds what the cases request."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cases import CASES
from benchmarks.questions import FIRST_FILE, PARTITION, RANGE
from benchmarks.run import START_UP, Result, Side
from benchmarks.tables import GENERATORS

deltalake = pytest.importorskip("deltalake", reason="the peer is not installed")
Made = Callable[[str], Path]


@pytest.mark.peer
@pytest.mark.parametrize("name", ["million-json", "million-struct", "ten-million"])
def test_made_up_files_answer_the_questions(made: Made, name: str) -> None:
    table = deltalake.DeltaTable(made(name))
    uris = table.file_uris()
    assert len(uris) in (20_000, 100_000)
    assert len(set(uris)) == len(uris)
    assert len(table.file_uris(file_pruning_predicate=PARTITION)) == len(uris) // 1_000
    assert len(table.file_uris(file_pruning_predicate=RANGE)) == 10
    assert len(uris) > FIRST_FILE + 10


@pytest.mark.peer
def test_vectors_hide_a_tenth_of_the_rows(made: Made) -> None:
    query = deltalake.QueryBuilder()
    for name, alias in (("rows", "full"), ("rows-with-vectors", "less")):
        query.register(alias, deltalake.DeltaTable(made(name)))
    full, less = (query.execute(f"select count(id) from {t}").read_all().column(0)[0].as_py() for t in ("full", "less"))
    assert less == full * 9 // 10


def test_every_case_names_a_generator_and_its_sides() -> None:
    for case in CASES:
        assert case.table in GENERATORS
        for module in ["ours", *([f"peers_{case.peer}"] if case.peer else [])]:
            sides = START_UP if case.clock == "process" else vars(importlib.import_module(f"benchmarks.{module}"))
            assert (module if case.clock == "process" else case.name) in sides


def test_case_keys_are_unique() -> None:
    assert len({c.key for c in CASES}) == len(CASES)


def test_case_misses_when_memory_or_time_is_over_what_is_requested() -> None:
    case = next(c for c in CASES if c.key == "open-table")
    peer = Side(1.0, 500.0, 20)
    assert Result(case, Side(0.009, 90.0, 20), peer).met
    assert not Result(case, Side(0.011, 90.0, 20), peer).met
    assert not Result(case, Side(0.009, 110.0, 20), peer).met
    assert not Result(case, Side(0.009, 90.0, 20), peer, "answers differ").met
