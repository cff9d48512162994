"""The cases of whole processes run, and answer with a share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.cold import head_over_import, read_over_import


@pytest.mark.parametrize("case", [read_over_import, head_over_import])
def test_first_read_takes_more_than_the_import_alone_and_less_than_three_times(case: Callable[[int], float]) -> None:
    # far from the target: other processes may run beside
    assert 1 < case(1) < 3
