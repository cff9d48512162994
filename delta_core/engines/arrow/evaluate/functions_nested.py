"""Functions that reach into structs, arrays and maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import CallInfo, Kernel, Maker, on_arrays, plain, to_numpy
from delta_core.engines.arrow.evaluate.functions_compare import comparison
from delta_core.engines.arrow.evaluate.nested_order import spans
from delta_core.engines.arrow.evaluate.result_size import take
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_core.expressions.typing_rules import are_comparable
from delta_core.kernels.arrow_buffers import number_array
from delta_core.schema.types import ArrayType, MapType, spark_name

__all__ = ["MAKERS"]


def _get_field(call: CallInfo) -> Kernel:
    name = call.constant(1)

    def kernel(holder: Any, _: Any) -> Any:
        return pc.struct_field(holder, indices=[holder.type.get_field_index(name)])

    return kernel


def _named_struct(call: CallInfo) -> Kernel:
    names = [call.constant(i) for i in range(0, len(call.inputs), 2)]
    fields = [pa.field(n, pc.evaluated_type(t)) for n, t in zip(names, call.inputs[1::2], strict=True)]

    def kernel(*args: Any) -> Any:
        values = [v if v.type == f.type else v.cast(f.type) for v, f in zip(args[1::2], fields, strict=True)]
        return pa.StructArray.from_arrays(values, fields=fields)

    return on_arrays(kernel)


def _array(call: CallInfo) -> Kernel:
    result = pc.evaluated_type(call.result)
    if not call.inputs:
        return lambda: pa.scalar([], result)

    def kernel(*args: Any) -> pa.Array:
        count, num_rows = len(args), len(args[0])
        values = pa.concat_arrays([v if v.type == result.value_type else v.cast(result.value_type) for v in args])
        by_row = np.arange(count * num_rows).reshape(count, num_rows).T.ravel()
        ends = number_array(np.arange(num_rows + 1, dtype=np.int32) * count)
        return pa.ListArray.from_arrays(ends, take(values, number_array(by_row), "array"), type=result)

    return on_arrays(kernel)


def _item(call: CallInfo) -> Kernel:
    if isinstance(call.inputs[0], MapType):
        if not are_comparable(call.inputs[0].key_type, call.inputs[0].key_type):
            raise UnsupportedExpressionError(f"Keys of type {spark_name(call.inputs[0].key_type)} can't be looked up.")
        if call.is_constant(1):
            return lambda holder, key: pc.map_lookup(holder, query_key=key, occurrence="last")
        equal = comparison("=", call.inputs[0].key_type, call.inputs[0].key_type)
        return on_arrays(lambda holder, key: _find_in_map(holder, key, equal))
    from_one = call.name in ("element_at", "try_element_at")
    strict = call.name in ("[]", "element_at")
    return on_arrays(lambda holder, index: _find_in_array(holder, index, from_one, strict))


def _find_in_array(holder: pa.ListArray, index: pa.Array, from_one: bool, strict: bool) -> pa.Array:
    starts, lengths = spans(holder)
    positions, nulls = to_numpy(index)
    known = holder.is_valid().to_numpy(zero_copy_only=False)
    known = known if nulls is None else known & ~nulls
    if from_one:
        if strict and np.any((positions == 0) & known):
            raise ExpressionError(
                "element_at counts from 1, or from the end with -1; found 0.", condition="INVALID_INDEX_OF_ZERO"
            )
        place = np.where(positions > 0, positions - 1, np.where(positions < 0, lengths + positions, -1))
    else:
        place = positions
    inside = (place >= 0) & (place < lengths)
    if strict and np.any(known & ~inside):
        bad = int(np.flatnonzero(known & ~inside)[0])
        raise ExpressionError(
            f"Index {positions[bad]} is outside an array of {lengths[bad]} elements. Use get for null instead.",
            condition="INVALID_ARRAY_INDEX",
        )
    chosen = pa.array((starts + place).astype(np.int64), mask=~(inside & known))
    return holder.values.take(chosen)


def _find_in_map(holder: pa.MapArray, key: pa.Array, equal: Kernel) -> pa.Array:
    starts, lengths = spans(holder)
    rows = np.repeat(np.arange(len(holder)), lengths)
    ends = np.cumsum(lengths)
    entries = np.arange(len(rows)) - np.repeat(ends - lengths, lengths) + np.repeat(starts, lengths)
    same = pc.coalesce(equal(holder.keys.take(pa.array(entries)), key.take(pa.array(rows))), False)
    is_match = same.to_numpy(zero_copy_only=False)
    place = np.full(len(holder), -1, np.int64)
    place[rows[is_match]] = entries[is_match]
    return holder.items.take(pa.array(place, mask=place < 0))


def _size(holder: Any) -> pa.Array:
    _, lengths = spans(holder)
    nulls = holder.is_null().to_numpy(zero_copy_only=False) if holder.null_count else None
    return pa.array(lengths.astype(np.int32), mask=nulls)


def _array_contains(call: CallInfo) -> Kernel:
    assert isinstance(call.inputs[0], ArrayType)
    element = call.inputs[0].element_type
    if not are_comparable(element, element):
        raise UnsupportedExpressionError(f"array_contains can't compare {spark_name(element)}.", function=call.name)
    equal = comparison("=", element, element)

    def kernel(holder: pa.ListArray, value: pa.Array) -> pa.Array:
        starts, lengths = spans(holder)
        rows = np.repeat(np.arange(len(holder)), lengths)
        entries = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + np.repeat(starts, lengths)
        same = equal(holder.values.take(pa.array(entries)), value.take(pa.array(rows)))
        true = np.bincount(rows[pc.coalesce(same, False).to_numpy(zero_copy_only=False)], minlength=len(holder)) > 0
        unknown = np.bincount(rows[same.is_null().to_numpy(zero_copy_only=False)], minlength=len(holder)) > 0
        missing = pc.or_(holder.is_null(), value.is_null()).to_numpy(zero_copy_only=False)
        return pa.array(true, mask=missing | (unknown & ~true))

    return on_arrays(kernel)


def _map_part(call: CallInfo) -> Kernel:
    def kernel(holder: pa.MapArray) -> pa.Array:
        part = holder.keys if call.name == "map_keys" else holder.items
        offsets = holder.offsets
        nulls = holder.is_null() if holder.null_count else None
        return pa.ListArray.from_arrays(
            offsets if offsets.offset == 0 else pa.concat_arrays([offsets]), part, mask=nulls
        ).cast(pc.evaluated_type(call.result))

    return on_arrays(kernel)


MAKERS: Mapping[str, Maker] = {
    "array": _array,
    "get_field": _get_field,
    "named_struct": _named_struct,
    **dict.fromkeys(("[]", "element_at", "try_element_at", "get"), _item),
    "size": plain(on_arrays(_size)),
    "array_contains": _array_contains,
    **dict.fromkeys(("map_keys", "map_values"), _map_part),
}
