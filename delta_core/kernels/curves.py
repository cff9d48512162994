"""Positions of rows on a curve through several columns: range numbers of values, and the curve's order of the cells.

Values only decide where a row goes, so that rounded ones are enough: numbers are compared as doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MOST_COLUMNS",
    "Curve",
    "Ranges",
    "cell_ranks",
    "cells_of",
    "check_ordered",
    "curve_bits",
    "radix_order",
    "ranks_of",
]

Curve = Literal["zorder", "hilbert"]
#: PyArrow has it since version 26.
_search_sorted = getattr(pc, "search_sorted", None)

#: A cell has at least one bit of each column.
MOST_COLUMNS = 16
#: Bits of a cell for few files; sorting by them takes one pass.
FEW_BITS = 16
#: Bits of a cell at most: the order of the cells is a table of as many numbers.
MANY_BITS = 22
#: Cells that a file covers at least, if there are enough.
CELLS_OF_FILE = 64
#: Cells whose ranks are computed at once: what NumPy keeps between two steps stays in the processor's cache.
BLOCK = 1 << 15
#: Cells of the even grid that finds the ranges of numbers which are spread about evenly.
GRID = 1 << 16

_ONE = np.uint32(1)


def curve_bits(num_columns: int, num_files: int) -> int:
    """Return the bits that each column has in a cell.

    Parameters
    ----------
    num_columns : int
        From 1 to `MOST_COLUMNS`.
    num_files : int
        The files that the rows will be in.

    Raises
    ------
    InvalidArgumentError
        For too many columns.
    """
    if not 1 <= num_columns <= MOST_COLUMNS:
        raise InvalidArgumentError(f"Found {num_columns} columns of a curve, expected 1 to {MOST_COLUMNS}.")
    needed = (num_files * CELLS_OF_FILE - 1).bit_length()
    return max(1, min(max(needed, FEW_BITS), MANY_BITS) // num_columns)


def cell_ranks(curve: Curve, num_columns: int, bits: int) -> NDArray[np.uint32]:
    """Return the position on the curve of each cell.

    Parameters
    ----------
    curve : str
        ``zorder`` interleaves the bits of the range numbers, ``hilbert`` only steps to neighbours.
    num_columns, bits : int
        The columns, and the bits of each.

    Returns
    -------
    uint32, **shape (2 ** (num_columns * bits),)**
        By cell: the range numbers one after the other as bits, the first column's highest.
    """
    ranks = np.empty(1 << (num_columns * bits), np.uint32)
    for start in range(0, len(ranks), BLOCK):
        part = ranks[start : start + BLOCK]
        part[:] = ranks_of(curve, np.arange(start, start + len(part), dtype=np.uint32), num_columns, bits)
    return ranks


def ranks_of(curve: Curve, cells: NDArray[np.uint32], num_columns: int, bits: int) -> NDArray[np.uint32]:
    """Return the position on the curve of some cells, which takes less time than `cell_ranks` if they are few.

    Parameters
    ----------
    curve : str
        The curve, as for `cell_ranks`.
    cells : uint32, **shape (n,)**
        The coordinates of each cell, ``bits`` bits each, those of the first column highest.
    num_columns : int
        The dimensions of the curve.
    bits : int
        Bits of each coordinate; ``num_columns * bits`` is at most 32.

    Returns
    -------
    uint32, **shape (n,)**
        From 0 to ``2**(num_columns * bits) - 1``.
    """
    mask = np.uint32((1 << bits) - 1)
    axes = [(cells >> np.uint32(bits * (num_columns - 1 - i))) & mask for i in range(num_columns)]
    if curve == "hilbert":
        _transpose(axes, bits)
    ranks = np.zeros(len(cells), np.uint32)
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            ranks <<= _ONE
            ranks |= (axis >> np.uint32(bit)) & _ONE
    return ranks


def _transpose(axes: list[NDArray[np.uint32]], bits: int) -> None:
    """Change coordinates to the transposed Hilbert index, in place (Skilling: Programming the Hilbert curve, 2004)."""
    first, last = axes[0], axes[-1]
    for bit in range(bits - 1, 0, -1):
        low = np.uint32((1 << bit) - 1)
        for axis in axes:
            # the lower bits where this one is not set: there they are swapped with the first axis, elsewhere inverted
            is_unset = (((axis >> np.uint32(bit)) & _ONE) - _ONE) & low
            swapped = (first ^ axis) & is_unset
            np.bitwise_xor(axis, swapped, out=axis)
            first ^= swapped
            first ^= is_unset ^ low
    for i in range(1, len(axes)):
        axes[i] ^= axes[i - 1]
    turned = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        turned ^= ((last >> np.uint32(bit)) & _ONE) * np.uint32((1 << bit) - 1)
    for axis in axes:
        np.bitwise_xor(axis, turned, out=axis)


class Ranges:
    """Ranges of a column's values, each with about as many rows as any other.

    Parameters
    ----------
    sample : pyarrow.Array or pyarrow.ChunkedArray
        Some of the values.
    bits : int
        There are ``2 ** bits`` ranges.

    Raises
    ------
    InvalidArgumentError
        For a type without an order.
    """

    def __init__(self, sample: pa.Array | pa.ChunkedArray, bits: int) -> None:
        self._count = 1 << bits
        self._bounds: NDArray[np.float64] | pa.Array | None = None
        self._grid: NDArray[np.uint16] | None = None
        values = one_array(sample)
        check_ordered(values.type)
        values = values.drop_null()
        if not len(values):
            return
        places = np.arange(1, self._count) * len(values) // self._count
        if _is_text(values.type):
            order = pc.sort_indices(values)
            self._bounds = pc.take(pc.take(values, order), pa.array(places))
            return
        numbers = np.sort(_numbers(values))
        self._bounds = numbers[places]
        self._make_grid(numbers)

    def _make_grid(self, numbers: NDArray[np.float64]) -> None:
        """Make an even grid that finds ranges, unless a cell of it holds too many values for an exact range."""
        if len(numbers) < GRID:  # a search for each takes less time than the grid
            return
        self._low, high = numbers[0], numbers[-1]
        if not np.isfinite(self._low) or not np.isfinite(high - self._low) or high == self._low:
            return
        self._scale = GRID / (high - self._low)
        if not np.isfinite(self._scale):
            return
        counts = np.bincount(self._cells(numbers), minlength=GRID)
        if counts.max() * self._count > len(numbers):
            return
        below = np.cumsum(counts) - counts
        self._grid = (below * self._count // len(numbers)).astype(np.uint16)

    def _cells(self, numbers: NDArray[np.float64]) -> NDArray[np.int32]:
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = (numbers - self._low) * self._scale
            np.clip(scaled, 0, GRID - 1, out=scaled)
            return np.where(np.isnan(scaled), GRID - 1, scaled).astype(np.int32)

    def numbers(self, values: pa.Array | pa.ChunkedArray) -> NDArray[np.uint32]:
        """Return the number of the range that each value is in; nulls are in the first one.

        Parameters
        ----------
        values : pyarrow.Array or pyarrow.ChunkedArray, **shape (n,)**
            Of the sample's type.

        Returns
        -------
        uint32, **shape (n,)**
            Below ``2 ** bits``, and not falling as values rise.
        """
        array = one_array(values)
        if self._bounds is None:
            return np.zeros(len(array), np.uint32)
        if isinstance(self._bounds, pa.Array):
            return _num_bounds_up_to(self._bounds, array)
        numbers = _numbers(array)
        if self._grid is not None:
            found_numbers = self._grid[self._cells(numbers)].astype(np.uint32)
        else:
            found_numbers = np.searchsorted(self._bounds, numbers, side="right").astype(np.uint32)
        if array.null_count:
            found_numbers[np.asarray(array.is_null())] = 0
        return found_numbers


def check_ordered(type: pa.DataType) -> None:
    """Check that values of a type have an order.

    Parameters
    ----------
    type : pyarrow.DataType
        The type of a column.

    Raises
    ------
    InvalidArgumentError
        They have none.
    """
    if _is_text(type) or pa.types.is_decimal(type) or pa.types.is_boolean(type) or pa.types.is_null(type):
        return
    if pa.types.is_primitive(type):
        return
    raise InvalidArgumentError(f"Found a column of type {type} to order rows by, expected a type that has an order.")


def _is_text(type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(type) for is_kind in kinds)


def _numbers(values: pa.Array) -> NDArray[np.float64]:
    """Return values as doubles in the same order, nulls as NaN."""
    t = values.type
    if pa.types.is_temporal(t):
        values = values.view(pa.int32() if t.bit_width == 32 else pa.int64())
    elif pa.types.is_decimal(t):
        values = pc.cast(values, pa.float64())
    elif pa.types.is_boolean(t):
        values = pc.cast(values, pa.uint8())
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)


def radix_order(keys: NDArray[np.uint32], bits: int) -> NDArray[np.intp]:
    """Return the stable order of keys.

    Parameters
    ----------
    keys : uint32, **shape (n,)**
        Below ``2 ** bits``.
    bits : int
        At most 32; NumPy sorts 16 of them in one pass.

    Returns
    -------
    intp, **shape (n,)**
        The positions of the keys in ascending order.
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    if bits > FEW_BITS:
        high = (keys >> np.uint32(FEW_BITS)).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def cells_of(numbers: Sequence[NDArray[np.uint32]], bits: int) -> NDArray[np.uint32]:
    """Return the cell of each row from its range numbers, as `cell_ranks` counts cells.

    Parameters
    ----------
    numbers : sequence of uint32, **shape (n,)** each
        One for each column.
    bits : int
        The bits of each column.

    Returns
    -------
    uint32, **shape (n,)**
        The cell of each row.
    """
    cells = numbers[0]
    for more in numbers[1:]:
        cells = (cells << np.uint32(bits)) | more
    return cells


def _num_bounds_up_to(bounds: pa.Array, values: pa.Array) -> NDArray[np.uint32]:
    """Return how many of sorted bounds each value reaches, 0 for null."""
    if _search_sorted is not None:
        return np.asarray(pc.fill_null(_search_sorted(bounds, values, side="right"), 0)).astype(np.uint32)
    # a stable sort, which takes three times as long, puts a bound before the values that equal it
    order = np.asarray(pc.array_sort_indices(pa.concat_arrays([bounds, values])))
    is_value = order >= len(bounds)
    reached = np.cumsum(~is_value)
    out = np.empty(len(values), np.uint32)
    out[order[is_value] - len(bounds)] = reached[is_value]
    out[np.asarray(pc.is_null(values))] = 0
    return out
