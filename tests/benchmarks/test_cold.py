"""The cases of whole processes run, and answer with a share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.cold import head_over_import, read_over_import


@pytest.mark.parametrize("case", [read_over_import, head_over_import])
def test_first_read_is_a_share_of_the_import(case: Callable[[int], float]) -> None:
    # one round, beside other processes: a limit close to the target would fail by chance
    assert 0.5 < case(1) < 5
