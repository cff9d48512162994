"""Columns in the plain layouts in which expressions are evaluated: see `delta_core.schema.logical.plain_layout`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.kernels.arrow_buffers import number_array

__all__ = ["with_plain_layout"]


def with_plain_layout(column: Any, plain: pa.DataType) -> Any:
    """Convert an array or scalar to the layout of a type that holds its values.

    Parameters
    ----------
    column : pyarrow.Array or Scalar
        Of any type.
    plain : pyarrow.DataType
        ``plain_layout`` of the column's type.

    Raises
    ------
    pyarrow.ArrowInvalid
        A ``date64`` value is no whole number of days, or there is more text than offsets of 32 bits reach.
    """
    if isinstance(column, pa.Scalar):
        return _converted(pa.repeat(column, 1), plain)[0]
    return _converted(column, plain)


def _converted(column: Any, plain: Any) -> Any:
    t = column.type
    if t == plain:
        return column
    if not _has_parts_to_rebuild(t):
        return pc.cast(column, plain)
    if isinstance(t, pa.BaseExtensionType):
        return _converted(column.storage, plain)
    if pa.types.is_run_end_encoded(t):
        return _converted(pc.run_end_decode(column), plain)
    if pa.types.is_dictionary(t):
        return _converted(column.dictionary_decode(), plain)
    nulls = pc.is_null(column) if column.null_count else None
    if pa.types.is_struct(t):
        parts = [_converted(x, f.type) for x, f in zip(column.flatten(), plain, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(plain), mask=nulls)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    ends = number_array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    return pa.ListArray.from_arrays(ends, _converted(column.flatten(), plain.value_type), type=plain, mask=nulls)


@lru_cache(maxsize=512)
def _has_parts_to_rebuild(t: Any) -> bool:
    """Return whether Arrow has no cast of a type to its plain layout, or a wrong one, as of lists of views."""
    tests = (pa.types.is_list_view, pa.types.is_large_list_view, pa.types.is_run_end_encoded)
    if isinstance(t, pa.BaseExtensionType) or any(test(t) for test in tests):
        return True
    if pa.types.is_dictionary(t):
        return _has_parts_to_rebuild(t.value_type)
    if pa.types.is_map(t) or not pa.types.is_nested(t):
        return False
    return any(_has_parts_to_rebuild(t.field(i).type) for i in range(t.num_fields))
