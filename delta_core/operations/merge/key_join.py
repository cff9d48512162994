"""The join of a merge: source rows indexed by their keys, and the pairs that a batch of the target makes with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Compiled
from delta_core.errors import InternalError
from delta_core.expressions.ast import Column, Leaf
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    distinct_numbers,
    int64_values,
    is_valid,
    mask_of,
    number_array,
    one_array,
    scalar_of,
    values_of,
)
from delta_core.kernels.nested import reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["JoinedRows", "SourceIndex", "is_hashable"]

#: Pairs that are made and tested at a time.
_MOST_PAIRS = 1 << 20
#: Whole numbers are looked up in an array if their range is at most so long, or a multiple of their number.
_DENSE = 1 << 20
_DENSE_TIMES = 8


def is_hashable(t: pa.DataType) -> bool:
    """Return whether values of a type can be looked up as keys."""
    return not (pa.types.is_nested(t) or pa.types.is_null(t) or isinstance(t, pa.BaseExtensionType))


class JoinedRows:
    """Rows of both sides: row i of one beside row i of the other. Columns are gathered when they are first used.

    Parameters
    ----------
    sides : Mapping of str to (table or batch, row numbers or None)
        By the first part of a bound column's path; None: the rows as they are.
    """

    def __init__(
        self, sides: Mapping[str, tuple[pa.Table | pa.RecordBatch, NDArray[np.int64] | None]], num_rows: int
    ) -> None:
        self._sides = sides
        self._made: dict[tuple[str, ...], pa.Array] = {}
        self.num_rows = num_rows

    def column(self, path: Sequence[str]) -> pa.Array:
        """Return a column, or a field within one, as an array."""
        whole = self._made.get(tuple(path[:2]))
        if whole is None:
            data, rows = self._sides[path[0]]
            whole = data.column(path[1])
            if rows is not None:
                whole = pc.take(whole, number_array(rows))
            whole = self._made[tuple(path[:2])] = one_array(whole)
        numbers, t = [], whole.type
        for name in path[2:]:
            numbers.append(t.get_field_index(name))
            t = t.field(numbers[-1]).type
        return reach(whole, numbers)

    def take(self, rows: NDArray[np.int64]) -> JoinedRows:
        """Return some of the rows."""
        sides = {name: (data, rows if own is None else own[rows]) for name, (data, own) in self._sides.items()}
        return JoinedRows(sides, len(rows))

    def evaluate(self, compiled: Compiled) -> pa.Array:
        """Return the values of an expression for all rows."""
        return compiled([self.column(_path(leaf)) for leaf in compiled.leaves], self.num_rows)

    def where(self, compiled: Compiled) -> NDArray[np.bool_]:
        """Return for which rows a condition is true."""
        found = self.evaluate(compiled)
        if pa.types.is_null(found.type):
            return np.zeros(self.num_rows, np.bool_)
        return mask_of(one_array(found))


def _path(leaf: Leaf) -> tuple[str, ...]:
    if not isinstance(leaf, Column):
        raise InternalError(f"A merge reads columns only, found {leaf}.")
    return leaf.path


class SourceIndex:
    """The rows of the source by their keys.

    Parameters
    ----------
    keys : sequence of pyarrow.ChunkedArray
        One an equality, each of every row of the source.
    matches_null : sequence of bool
        Whether null is a key like others; else rows with a null match nothing.
    num_rows : int
        How many rows the source has.
    usable : bool[num_rows], optional
        Which rows can match at all.

    Notes
    -----
    Takes about 40 bytes a row and the distinct keys. Without equalities every row is a partner of every other.
    """

    def __init__(
        self,
        keys: Sequence[pa.ChunkedArray],
        matches_null: Sequence[bool],
        num_rows: int,
        usable: NDArray[np.bool_] | None = None,
    ) -> None:
        self._codes = [_Codes(k, m) for k, m in zip(keys, matches_null, strict=True)]
        self._steps: list[NDArray[np.int64]] = []
        ids = np.zeros(num_rows, np.int64)
        if keys:
            ids = self._codes[0].of(keys[0])
        for codes, key in zip(self._codes[1:], keys[1:], strict=True):
            ids = _combined(ids, codes.of(key), codes.size)
            step = np.unique(ids)
            self._steps.append(step[1:] if len(step) and step[0] < 0 else step)
            ids = _places(self._steps[-1], ids)
        if usable is not None:
            ids = np.where(usable, ids, -1)
        rows = np.flatnonzero(ids >= 0)
        counts = np.bincount(ids[rows]) if len(rows) else np.zeros(0, np.int64)
        self._order = rows[np.argsort(ids[rows], kind="stable")]
        self._counts = np.append(counts, 0)
        self._starts = np.append(np.cumsum(counts) - counts, 0)
        self.num_usable: int = len(rows)

    @property
    def members(self) -> list[pa.Array]:
        """The distinct values of each key, without null."""
        return [c.members for c in self._codes]

    def pairs(self, keys: Sequence[pa.Array], num_rows: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield pairs of rows with equal keys, as (rows of the target, rows of the source), ordered by the target's.

        Parameters
        ----------
        keys : sequence of pyarrow.Array
            Of rows of the target.
        num_rows : int
            How many rows these are.
        """
        ids = self._codes[0].of(keys[0]) if keys else np.zeros(num_rows, np.int64)
        for codes, key, step in zip(self._codes[1:], keys[1:], self._steps, strict=True):
            ids = _places(step, _combined(ids, codes.of(key), codes.size))
        # an id beyond the groups, of a row that can't match, takes the last group, which has no rows
        ids = np.where(ids < len(self._counts) - 1, ids, -1)
        counts = self._counts[ids]
        rows = np.flatnonzero(counts)
        if not len(rows):
            return
        counts, starts = counts[rows], self._starts[ids[rows]]
        ends = np.cumsum(counts)
        if ends[-1] == len(rows):
            yield rows, self._order[starts]
            return
        for first in range(0, int(ends[-1]), _MOST_PAIRS):
            flat = np.arange(first, min(int(ends[-1]), first + _MOST_PAIRS))
            owner = np.searchsorted(ends, flat, side="right")
            yield rows[owner], self._order[starts[owner] + flat - (ends[owner] - counts[owner])]


def _combined(ids: NDArray[np.int64], codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.where((ids >= 0) & (codes >= 0), ids * size + codes, -1)


def _places(known: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each id among known ones, which ascend; -1 if it is none of them."""
    if not len(known):
        return np.full(len(ids), -1, np.int64)
    places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[places] == ids, places, -1)


class _Codes:
    """The distinct values of one key, numbered."""

    def __init__(self, values: pa.ChunkedArray, matches_null: bool) -> None:
        distinct = _distinct(values)
        self._null = -1
        self.members: pa.Array = pc.drop_null(distinct) if distinct.null_count else distinct
        if matches_null:
            self._null = len(self.members)
        self.size = len(self.members) + 1
        self._low, self._table = 0, np.zeros(0, np.int32)
        if len(self.members) and (pa.types.is_integer(self.members.type) or pa.types.is_date32(self.members.type)):
            numbers = values_of(self.members)
            low, high = int(numbers.min()), int(numbers.max())
            if high - low < max(_DENSE, _DENSE_TIMES * len(numbers)) and high < 1 << 63:
                self._low = low
                self._table = np.full(high - low + 1, -1, np.int32)
                self._table[numbers.astype(np.int64) - low] = np.arange(len(numbers))

    def of(self, values: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """Return the number of each value, -1 for one that is not there."""
        if len(self._table):
            whole = one_array(values)
            numbers = values_of(whole).astype(np.int64, copy=False)
            places = numbers - self._low
            is_inside = (numbers >= self._low) & (numbers < self._low + len(self._table))
            codes = np.where(is_inside, self._table[np.where(is_inside, places, 0)], -1).astype(np.int64)
            return np.where(is_valid(whole), codes, self._null) if whole.null_count else codes
        found = one_array(pc.index_in(_comparable(values), value_set=self.members))
        codes = np.array(int64_values(pc.fill_null(found, -1)))
        if self._null >= 0 and values.null_count:
            codes[~is_valid(one_array(values))] = self._null
        return np.asarray(codes)


def _distinct(values: pa.ChunkedArray) -> pa.Array:
    """Return the distinct values, null among them."""
    if pa.types.is_integer(values.type) and not values.null_count:
        # sorted, which takes a third of the memory of a table of hashes
        return number_array(distinct_numbers(values_of(one_array(values))), values.type)
    return one_array(pc.unique(_comparable(values)))


def _comparable(values: Any) -> Any:
    """Return values among which equal ones have equal bytes: -0.0 is 0.0."""
    return pc.add(values, scalar_of(0, values.type)) if pa.types.is_floating(values.type) else values
