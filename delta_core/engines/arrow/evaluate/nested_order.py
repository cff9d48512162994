"""The order of arrays and structs, as in Spark: element by element and field by field, null before any value.

Within them null equals null. An array that begins another one is less than it. Fields are compared by their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate.compute import Kernel
from delta_core.engines.arrow.evaluate.result_size import take
from delta_core.kernels.arrow_buffers import is_valid, mask_of, number_array
from delta_core.schema.types import ArrayType, DataType, PrimitiveType, StructType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Comparer", "nested_order", "spans"]

#: Returns the kernel of a comparison of values of two primitive types.
Comparer = Callable[[str, DataType, DataType], Kernel]
#: Returns -1, 0 or 1 for each row of two arrays of one length.
Order = Callable[[Any, Any], "NDArray[np.int8]"]


def nested_order(a: DataType, b: DataType, comparison: Comparer) -> Order:
    """Return the order of values of two types, nulls included.

    Parameters
    ----------
    a, b : DataType
        Types that `typing_rules.are_comparable` accepts.
    comparison : function(str, DataType, DataType) -> Kernel
        The comparisons of primitive types.
    """
    values: Order
    if isinstance(a, StructType) and isinstance(b, StructType):
        values = _struct_order([nested_order(x.type, y.type, comparison) for x, y in zip(a, b, strict=True)])
    elif isinstance(a, ArrayType) and isinstance(b, ArrayType):
        values = _array_order(nested_order(a.element_type, b.element_type, comparison))
    elif PrimitiveType("void") in (a, b):
        values = _no_order
    else:
        values = _primitive_order(comparison("=", a, b), comparison("<", a, b))

    def order(x: Any, y: Any) -> NDArray[np.int8]:
        left, right = is_valid(x), is_valid(y)
        if left.all() and right.all():
            return values(x, y)
        unknown = left.astype(np.int8) - right.astype(np.int8)
        return np.where(left & right, values(x, y), unknown)

    return order


def spans(holder: Any) -> tuple[Any, Any]:
    """Return each row's first element in the child array, and the row's length; null rows are empty."""
    offsets = holder.offsets.to_numpy()
    lengths = np.diff(offsets)
    if holder.null_count:
        lengths = np.where(holder.is_null().to_numpy(zero_copy_only=False), 0, lengths)
    return offsets[:-1], lengths


def _no_order(x: Any, _: Any) -> NDArray[np.int8]:
    return np.zeros(len(x), np.int8)


def _primitive_order(equal: Kernel, less: Kernel) -> Order:
    def order(x: Any, y: Any) -> NDArray[np.int8]:
        return np.where(mask_of(equal(x, y)), 0, np.where(mask_of(less(x, y)), -1, 1)).astype(np.int8)

    return order


def _struct_order(fields: list[Order]) -> Order:
    def order(x: pa.StructArray, y: pa.StructArray) -> NDArray[np.int8]:
        found = np.zeros(len(x), np.int8)
        for i in reversed(range(len(fields))):
            first = fields[i](x.field(i), y.field(i))
            found = np.where(first != 0, first, found)
        return found

    return order


def _array_order(element: Order) -> Order:
    def order(x: pa.ListArray, y: pa.ListArray) -> NDArray[np.int8]:
        (x_starts, x_lengths), (y_starts, y_lengths) = spans(x), spans(y)
        common = np.minimum(x_lengths, y_lengths)
        rows = np.repeat(np.arange(len(x)), common)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(common) - common, common)
        left = take(x.values, number_array(x_starts[rows] + place), "a comparison")
        right = take(y.values, number_array(y_starts[rows] + place), "a comparison")
        signs = element(left, right)
        found: NDArray[np.int8] = np.sign(x_lengths.astype(np.int64) - y_lengths).astype(np.int8)
        different = np.flatnonzero(signs)
        # of each row the first: rows ascend
        decided, first = np.unique(rows[different], return_index=True)
        found[decided] = signs[different[first]]
        return found

    return order
