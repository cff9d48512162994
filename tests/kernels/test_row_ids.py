"""Row ids: consecutive, never overflowing unseen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels.row_ids import assign_base_row_ids, materialise_row_ids

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


def test_stored_ids_win_over_positions() -> None:
    stored = pa.array([9, None, 7, None, 0, None], pa.int64())[1:]
    assert materialise_row_ids(100, 20, 5, stored).to_pylist() == [120, 7, 122, 0, 124]
    assert materialise_row_ids(100, 20, 3).to_pylist() == [120, 121, 122]
    assert materialise_row_ids(0, 0, 0).to_pylist() == []


def test_file_without_a_base_has_only_stored_ids() -> None:
    assert materialise_row_ids(None, 0, 2).to_pylist() == [None, None]
    assert materialise_row_ids(None, 0, 2, pa.array([None, 4], pa.int64())).to_pylist() == [None, 4]


def test_ids_beyond_int64_are_refused() -> None:
    assert materialise_row_ids(LAST, 0, 1).to_pylist() == [LAST]
    for base, first, n in ((LAST, 0, 2), (LAST, 1, 1), (-1, 0, 1)):
        with pytest.raises(CorruptTableError):
            materialise_row_ids(base, first, n)


def test_stored_ids_of_another_shape_are_refused() -> None:
    for stored in (pa.array([1], pa.int64()), pa.array([1, 2], pa.int32())):
        with pytest.raises(InvalidArgumentError):
            materialise_row_ids(0, 0, 2, stored)
