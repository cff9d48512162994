"""Functions of `kernels.compute` are those of `pyarrow.compute`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

from delta_core.kernels import compute

NUMBERS = pa.array([3, None, 1, 2])
TEXTS = pa.array(["b", None, "abc", ""])


def test_every_function_that_pyarrow_defines_in_python_is_left_to_it() -> None:
    own = {"cast", "fill_null", "take"}
    wrapped = {n for n in dir(pa.compute) if hasattr(getattr(pa.compute, n), "__arrow_compute_function__")}
    functions = {n.replace("and_", "and") for n in pa.compute.list_functions()}
    by_hand = {n for n in functions & set(dir(pa.compute)) if n not in wrapped} | {"field", "scalar"}
    by_hand |= {"top_k_unstable", "bottom_k_unstable"}
    assert by_hand - own - {"and", "or"} <= compute.PYTHON_FUNCTIONS


@pytest.mark.parametrize(
    "call",
    [
        lambda pc: pc.add(NUMBERS, 1),
        lambda pc: pc.and_(pa.array([True, False]), pa.array([True, None])),
        lambda pc: pc.is_in(NUMBERS, value_set=pa.array([1, 2])),
        lambda pc: pc.is_in(NUMBERS, pa.array([1, None]), skip_nulls=True),
        lambda pc: pc.is_in(NUMBERS, options=pc.SetLookupOptions(pa.array([1]))),
        lambda pc: pc.match_substring(TEXTS, "b"),
        lambda pc: pc.min_max(NUMBERS),
        lambda pc: pc.sum(NUMBERS, min_count=9),
        lambda pc: pc.coalesce(NUMBERS, NUMBERS, pa.scalar(7)),
        lambda pc: pc.binary_join_element_wise(TEXTS, TEXTS, "-", null_handling="skip"),
        lambda pc: pc.cast(NUMBERS, pa.int8()),
        lambda pc: pc.cast(pa.array([300]), pa.int8(), safe=False),
        lambda pc: pc.take(TEXTS, pa.array([2, 0])),
        lambda pc: pc.fill_null(NUMBERS, 9),
        lambda pc: pc.fill_null(pa.chunked_array([NUMBERS]), pa.scalar(9, pa.int8())),
        lambda pc: pc.fill_null(TEXTS, "x"),
        lambda pc: pc.index(NUMBERS, 1),
        lambda pc: pc.rank(NUMBERS, tiebreaker="max"),
    ],
)
def test_results_equal_those_of_pyarrow(call: Callable[[Any], Any]) -> None:
    assert call(compute).equals(call(pa.compute))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda pc: pc.add(NUMBERS), TypeError),
        (lambda pc: pc.add_checked(NUMBERS, NUMBERS, 3), TypeError),
        (lambda pc: pc.invert(pa.array([True]), strange=1), TypeError),
        (lambda pc: pc.is_in(NUMBERS, pa.array([1]), options=pc.SetLookupOptions(pa.array([1]))), TypeError),
        (lambda pc: pc.cast(pa.array([300]), pa.int8()), pa.ArrowInvalid),
        (lambda pc: pc.take(NUMBERS, pa.array([9])), IndexError),
        (lambda pc: pc.no_such_function, AttributeError),
    ],
)
def test_what_pyarrow_rejects_is_rejected_alike(call: Callable[[Any], Any], error: type[Exception]) -> None:
    for module in (compute, pa.compute):
        with pytest.raises(error):
            call(module)
