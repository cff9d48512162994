"""Counts that must hold whatever the machine: calls to a slow store, and calls of hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import ours
from benchmarks.cases import CASES, Case

GATES = [c for c in CASES if c.clock == "count" and c.unit == "calls"]


@pytest.mark.parametrize("case", GATES, ids=lambda c: c.key)
def test_count_stays_within_what_is_requested(made: Callable[[str], Path], case: Case) -> None:
    figure = getattr(ours, case.name)(made(case.table), Path())()
    assert (case.target.at_most, case.target.at_least) != (None, None)
    if case.target.at_most is not None:
        assert figure <= case.target.at_most
    if case.target.at_least is not None:
        assert figure >= case.target.at_least
