"""Comparisons, ``in``, null tests, ``greatest`` and ``least``, with Spark's order.

NaN equals NaN and is greater than any number; -0.0 equals 0.0; text and bytes compare by unsigned bytes;
false is less than true; decimals compare exactly, whatever their scales.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import (
    CallInfo,
    Kernel,
    Maker,
    by_value,
    named,
    on_arrays,
    plain,
    scalar_of,
    typed,
)
from delta_core.engines.arrow.evaluate.membership import count_below, member_test
from delta_core.engines.arrow.evaluate.nested_order import nested_order
from delta_core.engines.arrow.evaluate.result_size import choose
from delta_core.errors import UnsupportedExpressionError
from delta_core.expressions.ast import Literal, Values
from delta_core.expressions.coercion import DOUBLE, as_decimal, describe
from delta_core.expressions.functions import SAME_NULLS
from delta_core.expressions.typing_rules import are_comparable
from delta_core.kernels.arrow_buffers import bool_array, is_valid, one_array, values_of
from delta_core.runtime.plugin_errors import contract_error
from delta_core.schema.logical import MOST_DIGITS, LogicalType, facts
from delta_core.schema.types import DataType, PrimitiveType, spark_name

__all__ = ["MAKERS", "comparison"]


def _is_ordinary(value: Any) -> bool:
    """Return whether a value is a scalar other than NaN, so that plain comparisons are right."""
    return isinstance(value, pa.Scalar) and not (value.is_valid and value.as_py() != value.as_py())


def _float_equal(a: Any, b: Any) -> Any:
    equal = pc.equal(a, b)
    if _is_ordinary(a) or _is_ordinary(b):
        return equal
    return pc.or_(equal, pc.and_(pc.is_nan(a), pc.is_nan(b)))


def _float_not_greater(a: Any, b: Any) -> Any:
    """Return ``a <= b``; a NaN in ``a`` makes it false unless ``b`` is NaN too."""
    if _is_ordinary(b):
        return pc.less_equal(a, b)
    return pc.or_(pc.less_equal(a, b), pc.is_nan(b))


def _float_less(a: Any, b: Any) -> Any:
    if _is_ordinary(b):
        return pc.less(a, b)
    return pc.invert(_float_not_greater(b, a))


_PLAIN: dict[str, str] = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
_FLOAT: dict[str, Kernel] = {
    "=": _float_equal,
    "!=": lambda a, b: pc.invert(_float_equal(a, b)),
    "<": _float_less,
    "<=": _float_not_greater,
    ">": lambda a, b: _float_less(b, a) if not _is_ordinary(b) else pc.invert(pc.less_equal(a, b)),
    ">=": lambda a, b: _float_not_greater(b, a) if not _is_ordinary(b) else pc.invert(pc.less(a, b)),
}


def comparison(operator: str, a: DataType, b: DataType) -> Kernel:
    """Return the kernel that compares values of two types: equal ones, decimals, or times of a kind."""
    if operator == "<=>":
        equal = comparison("=", a, b)
        return lambda x, y: pc.coalesce(equal(x, y), pc.and_(pc.is_null(x), pc.is_null(y)))
    if not isinstance(a, PrimitiveType):
        return _nested(operator, a, b)
    x, y = facts(a), facts(b)
    if x.family == "floating":
        return _FLOAT[operator]
    kernel: Kernel = getattr(pc, _PLAIN[operator])
    if x.family == "decimal" and a != b:
        return _of_decimals(operator, a, b)
    if x.per_day and x.arrow != y.arrow:
        return _of_units(operator, x, y)
    return kernel


def _of_decimals(operator: str, a: DataType, b: DataType) -> Kernel:
    exact, kernel = _exact_decimals((a, b)), getattr(pc, _PLAIN[operator])
    if exact is None:
        return by_value(_PYTHON[operator], pa.bool_())
    return lambda x, y: kernel(exact(x), exact(y))


def _of_units(operator: str, a: LogicalType, b: LogicalType) -> Kernel:
    """Return the kernel that compares times of two units, or with a zone and without, as whole numbers.

    A number of the finer unit is split into one of the coarser and a rest: neither is multiplied, so nothing overflows.
    """
    if a.per_day == b.per_day:
        kernel: Kernel = getattr(pc, _PLAIN[operator])
        return lambda x, y: kernel(_whole(x), _whole(y))
    factor, test = max(a.per_day, b.per_day) // min(a.per_day, b.per_day), _SIGNS[operator]
    is_finer = a.per_day > b.per_day

    def compare(x: pa.Array, y: pa.Array) -> pa.Array:
        fine, coarse = (x, y) if is_finer else (y, x)
        whole, rest = np.divmod(values_of(fine).astype(np.int64), factor)
        other = values_of(coarse)
        sign = np.where(whole == other, np.sign(rest), np.where(whole < other, -1, 1))
        return bool_array(test(sign if is_finer else -sign), valid=is_valid(x) & is_valid(y))

    return on_arrays(compare)


def _whole(x: Any) -> Any:
    return pc.cast(pc.cast(x, pa.int32()) if x.type.bit_width == 32 else x, pa.int64())


_SIGNS: dict[str, Callable[[Any], Any]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def _nested(operator: str, a: DataType, b: DataType) -> Kernel:
    """Return the kernel that compares arrays or structs; only a whole value that is null makes the result null."""
    order, test = nested_order(a, b, _of_parts), _SIGNS[operator]
    return on_arrays(lambda x, y: bool_array(test(order(x, y)), valid=is_valid(x) & is_valid(y)))


def _of_parts(operator: str, a: DataType, b: DataType) -> Kernel:
    """Return the kernel that compares parts of arrays or structs, whose numbers may be of different types."""
    if a == b:
        return comparison(operator, a, b)
    if as_decimal(a) is not None and as_decimal(b) is not None:
        return _of_decimals(operator, a, b)
    wide, compare = pa.float64(), comparison(operator, DOUBLE, DOUBLE)
    return lambda x, y: compare(pc.cast(x, wide), pc.cast(y, wide))


def _exact_decimals(types: tuple[DataType, ...]) -> Kernel | None:
    """Return the kernel that converts decimals of these types to one type that holds them all; None if none does."""
    sizes = [as_decimal(t) or (1, 0) for t in types]
    scale = max(s for _, s in sizes)
    precision = max(p - s for p, s in sizes) + scale
    if precision > MOST_DIGITS:
        return None
    target = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return lambda x: x if x.type == target else pc.cast(x, target)


def _compare(call: CallInfo) -> Kernel:
    return comparison(call.name, call.inputs[0], call.inputs[1])


def _within(call: CallInfo) -> Kernel:
    value, *candidates = call.inputs
    many = call.args[-1]
    exact = _converter(call.inputs)
    if isinstance(many, Values) and exact is not None:
        return member_test(exact(many.array), exact, many.has_null)
    if not candidates:
        return lambda x: pc.if_else(pc.is_null(x), typed(None, pa.bool_()), typed(False, pa.bool_()))
    if isinstance(many, Values):
        raise UnsupportedExpressionError(
            f"Values of {spark_name(value)} can't be looked up among those of {spark_name(many.type)}.", function="in"
        )
    literals = [c for c in call.args[1:] if isinstance(c, Literal)]
    if len(literals) < len(candidates) or not isinstance(value, PrimitiveType) or exact is None:
        pairs = [comparison("=", value, c) for c in candidates]
        return lambda x, *comparands: reduce(
            pc.or_kleene, (equal(x, o) for equal, o in zip(pairs, comparands, strict=True))
        )
    if facts(value).family == "floating":
        exact = _positive_zero
    found_in = [exact(scalar_of(c)) for c in literals if c.value is not None]
    members = (
        pa.concat_arrays([pa.repeat(m, 1) for m in found_in]) if found_in else pa.nulls(0, pc.evaluated_type(value))
    )
    has_null = len(found_in) < len(literals)

    def kernel(x: Any, *_: Any) -> Any:
        found = pc.is_in(exact(x), value_set=members)
        unknown = pc.or_(pc.is_null(x), pc.invert(found)) if has_null else pc.is_null(x)
        return pc.if_else(unknown, typed(None, pa.bool_()), found)

    return kernel


def _converter(types: tuple[DataType, ...]) -> Kernel | None:
    """Return the kernel that converts values to one type in which equal ones are the same; None if there is none."""
    kinds = [facts(t) for t in types]
    if kinds[0].family == "decimal":
        return _exact_decimals(types)
    is_mixed = kinds[0].per_day and any(k.arrow != kinds[0].arrow for k in kinds)
    return None if is_mixed else _same


def _same(x: Any) -> Any:
    return x


def _overlap(call: CallInfo) -> Kernel:
    """Return whether any of sorted values lies between two bounds; an unknown bound bounds nothing."""
    values = call.args[-1]
    assert isinstance(values, Values)
    exact = _exact_decimals(call.inputs) if facts(values.type).family == "decimal" else _same
    if exact is None:
        raise UnsupportedExpressionError(f"No type holds all of {describe(list(call.inputs))}.", function=call.name)
    members = exact(values.array)

    @on_arrays
    def kernel(low: Any, high: Any) -> Any:
        low, high = exact(low), exact(high)
        first = count_below(members, low, "less", unknown=0)
        last = count_below(members, high, "less_equal", unknown=len(members))
        known = pc.or_(pc.is_valid(low), pc.is_valid(high))
        return pc.if_else(known, bool_array(first < last), typed(None, pa.bool_()))

    return lambda low, high, _: kernel(low, high)


def _positive_zero(x: Any) -> Any:
    # The hash that is_in uses distinguishes -0.0 from 0.0; adding 0 makes them one.
    return pc.add(x, typed(0, x.type))


def _extreme(call: CallInfo) -> Kernel:
    """Return the greatest or least of the values that are not null."""
    better = comparison(">" if call.name == "greatest" else "<", call.inputs[0], call.inputs[0])

    def pick(a: Any, b: Any) -> Any:
        takes_b = pc.or_(pc.is_null(a), pc.coalesce(better(b, a), typed(False, pa.bool_())))
        return choose(takes_b, b, a, call.name)

    return lambda *values: reduce(pick, values)


def _same_nulls(call: CallInfo) -> Kernel:
    """Return decoded values if they are null in the rows that store null, and in no other row.

    Rows are written again with these values, so a value that is null here would be lost.
    """
    feature, column = call.constant(2), call.constant(3)

    def check(values: Any, stored: Any) -> Any:
        values = one_array(values) if isinstance(values, pa.ChunkedArray) else values
        nulls = values.null_count
        if nulls == stored.null_count and (not nulls or (is_valid(values) == is_valid(stored)).all()):
            return values
        found = "the same number of" if nulls == stored.null_count else stored.null_count
        what = (
            f"returned {nulls} nulls for {found} nulls in column {column!r}; expected null for null, and for nothing "
            "else"
        )
        raise contract_error(feature, "column_encodings", "ColumnEncoding.decode", what, column=column)

    on_both = on_arrays(check)
    return lambda values, stored, *_: on_both(values, stored)


def _checked(make: Maker) -> Maker:
    def maker(call: CallInfo) -> Kernel:
        for t in call.inputs:
            if not are_comparable(t, t):
                raise UnsupportedExpressionError(f"{call.name!r} can't compare {spark_name(t)}.", function=call.name)
        return make(call)

    return maker


MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys((*_PLAIN, "<=>"), _checked(_compare)),
    "in": _checked(_within),
    "between any": _checked(_overlap),
    SAME_NULLS: _same_nulls,
    **dict.fromkeys(("greatest", "least"), _checked(_extreme)),
    "isnull": named("is_null"),
    "isnotnull": named("is_valid"),
    "isnan": plain(lambda x: pc.coalesce(pc.is_nan(x), typed(False, pa.bool_()))),
    "not": named("invert"),
}
