"""Row ids: consecutive, never overflowing unseen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.row_ids import assign_base_row_ids

LAST = 2**63 - 1


@given(st.lists(st.integers(0, 2**50), max_size=20), st.integers(-1, 2**60))
def test_ranges_follow_each_other_from_the_mark(counts: list[int], mark: int) -> None:
    base, new_mark = assign_base_row_ids(counts, mark)
    following = mark + 1
    for first, count in zip(base.tolist(), counts, strict=True):
        assert first == following
        following += count
    assert new_mark == following - 1


def test_first_file_of_a_table_starts_at_0() -> None:
    base, mark = assign_base_row_ids(np.array([3, 0, 2]), -1)
    assert (base.tolist(), mark) == ([0, 3, 3], 4)


def test_ids_may_be_used_up_but_not_passed() -> None:
    assert assign_base_row_ids([LAST], -1)[1] == LAST - 1
    assert assign_base_row_ids([LAST, 1], -1)[1] == LAST
    for counts, mark in (([LAST, 2], -1), ([LAST], 1), ([0], LAST), ([1, 1], LAST - 1)):
        with pytest.raises(InvalidArgumentError):
            assign_base_row_ids(counts, mark)


def test_file_without_a_row_count_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="missing") as caught:
        assign_base_row_ids([1, 0], 5, valid=np.array([True, False]))
    assert caught.value.row == 1
    with pytest.raises(InvalidArgumentError, match="-4"):
        assign_base_row_ids([-4], 5)
    for mark in (-2, 2**63):
        with pytest.raises(InvalidArgumentError):
            assign_base_row_ids([1], mark)
