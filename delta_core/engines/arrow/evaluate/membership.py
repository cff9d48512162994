"""Tests against many constants: rows by hash, bounds of files by binary search. The hashes and bounds are made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import Kernel, typed
from delta_core.engines.arrow.evaluate.functions_hash import hash_values
from delta_core.kernels.arrow_buffers import bool_array, is_valid, mask_of, number_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["count_below", "member_test"]

#: Arrow hashes the candidates again for each batch, which is cheaper for fewer than these.
_FEW = 1_000


def member_test(members: pa.Array, exact: Kernel, has_null: bool) -> Kernel:
    """Return the kernel that reports whether a value is among constants, null if that is unknown.

    Parameters
    ----------
    members : pyarrow.Array
        Without nulls.
    exact : function
        Converts a value to their type.
    has_null : bool
        Whether a null is among them, so that what is not found is unknown.
    """
    if pa.types.is_floating(members.type):
        members = pc.add(members, typed(0, members.type))  # -0.0 is 0.0
    is_few = len(members) < _FEW or pa.types.is_decimal(members.type) or pa.types.is_boolean(members.type)
    contains = _few(members) if is_few else _Many(members)

    def kernel(x: Any, *_: Any) -> Any:
        value = exact(x)
        if pa.types.is_floating(value.type):
            value = pc.add(value, typed(0, value.type))
        if isinstance(value, pa.Scalar):
            value = pa.repeat(value, 1)
        found = contains(value)
        unknown = pc.or_(pc.is_null(value), pc.invert(found)) if has_null else pc.is_null(value)
        out = pc.if_else(unknown, typed(None, pa.bool_()), found)
        return out[0] if isinstance(x, pa.Scalar) else out

    return kernel


def _few(members: pa.Array) -> Kernel:
    return lambda x: pc.is_in(x, value_set=members)


class _Many:
    """A sorted table of hashes."""

    def __init__(self, members: pa.Array) -> None:
        hashes = hash_values(members)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        self._members = members

    def __call__(self, x: pa.Array) -> pa.Array:
        hashes = hash_values(x)
        places = np.searchsorted(self._hashes, hashes)
        places[places == len(self._hashes)] = 0
        candidates = np.flatnonzero((self._hashes[places] == hashes) & is_valid(x))
        found = np.zeros(len(x), np.bool_)
        if len(candidates):
            values = pc.array_take(x, number_array(candidates))
            same = mask_of(_equal(values, pc.array_take(self._members, number_array(self._order[places[candidates]]))))
            if not same.all():  # two values of one hash
                same |= mask_of(pc.is_in(values, value_set=self._members))
            found[candidates] = same
        return bool_array(found)


def _equal(a: pa.Array, b: pa.Array) -> pa.Array:
    equal = pc.equal(a, b)
    return pc.or_(equal, pc.and_(pc.is_nan(a), pc.is_nan(b))) if pa.types.is_floating(a.type) else equal


def count_below(members: pa.Array, bounds: pa.Array, comparison: str, *, unknown: int) -> NDArray[np.int64]:
    """Return how many of sorted members are below each bound, by a binary search of all bounds at once.

    Parameters
    ----------
    members : pyarrow.Array
        Sorted, without nulls.
    bounds : pyarrow.Array
        Of the members' type.
    comparison : "less" or "less_equal"
        Whether a member that equals the bound counts.
    unknown : int
        The answer for a null bound.
    """
    below = getattr(pc, comparison)
    low = np.zeros(len(bounds), np.int64)
    high = np.full(len(bounds), len(members), np.int64)
    last = len(members) - 1
    for _ in range(len(members).bit_length()):
        middle = (low + high) // 2
        open_ = low < high
        passed = mask_of(below(pc.array_take(members, number_array(np.minimum(middle, last))), bounds)) & open_
        low = np.where(passed, middle + 1, low)
        high = np.where(open_ & ~passed, middle, high)
    return np.where(is_valid(bounds), low, unknown)
