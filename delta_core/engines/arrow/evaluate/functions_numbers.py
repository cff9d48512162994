"""Arithmetic and mathematics with ANSI rules: overflow and division by zero raise, decimals keep Spark's scales."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
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
    to_numpy,
)
from delta_core.engines.arrow.evaluate.functions_times import shift_months
from delta_core.errors import ExpressionError
from delta_core.expressions.coercion import as_decimal, is_integral, is_interval
from delta_core.expressions.literals import parse_decimal_text
from delta_core.kernels.arrow_buffers import number_array
from delta_core.kernels.decimals import round_half_up
from delta_core.kernels.memory import fresh_array
from delta_core.schema.logical import facts

__all__ = ["MAKERS"]

_WIDE = decimal.Context(prec=320, rounding=decimal.ROUND_HALF_UP)
_CHECKED = {
    "+": "add_checked",
    "-": "subtract_checked",
    "*": "multiply_checked",
    "/": "divide_checked",
    "div": "divide_checked",
}


def _arithmetic(call: CallInfo) -> Kernel:
    if facts(call.inputs[0]).family == "decimal":
        return _decimal_arithmetic(call)
    if is_interval(call.inputs[1]) or facts(call.inputs[1]).family == "duration":
        return _shift_time(call)
    if call.name in ("%", "pmod"):
        kernel = on_arrays(_positive_remainder if call.name == "pmod" else _remainder)
        if is_integral(call.inputs[0]) and call.is_constant(1) and call.constant(1) > 0:
            return _remainder_by(call.constant(1), call.name == "pmod", kernel)
        return kernel
    checked: Kernel = getattr(pc, _CHECKED[call.name])
    return checked


def _shift_time(call: CallInfo) -> Kernel:
    sign = 1 if call.name == "+" else -1
    if pa.types.is_integer(facts(call.inputs[1]).arrow):  # months
        return on_arrays(lambda time, months: shift_months(time, months, sign))
    kernel: Kernel = pc.add_checked if sign > 0 else pc.subtract_checked
    return kernel


def _divide_by_zero() -> ExpressionError:
    return ExpressionError(
        "Division by zero. Guard it, e.g. with nullif(divisor, 0) to get null instead.", condition="DIVIDE_BY_ZERO"
    )


def _parts(a: pa.Array, b: pa.Array) -> tuple[Any, Any, Any]:
    """Return dividend, divisor and the mask of nulls; a zero divisor raises unless a null makes it moot."""
    (x, x_null), (y, y_null) = to_numpy(a), to_numpy(b)
    nulls = np.zeros(len(x), bool)
    for mask in (x_null, y_null):
        nulls = nulls if mask is None else nulls | mask
    if np.any((y == 0) & ~nulls):
        raise _divide_by_zero()
    return x, np.where(nulls, np.ones(1, y.dtype), y), nulls


def _remainder(a: pa.Array, b: pa.Array) -> pa.Array:
    x, y, nulls = _parts(a, b)
    with np.errstate(all="ignore"):
        return pa.array(np.fmod(x, y), a.type, mask=nulls)


def _remainder_by(divisor: int, is_positive: bool, other: Kernel) -> Kernel:
    """Return the remainder by a positive constant: floor division by one number is many times faster than `fmod`."""

    def kernel(a: Any, b: Any) -> Any:
        if isinstance(a, pa.Scalar):
            return other(a, b)
        x, nulls = to_numpy(a)
        by = x.dtype.type(divisor)
        # NumPy's own large arrays are returned to the system each time
        rest = np.floor_divide(x, by, out=fresh_array(len(x), x.dtype))
        # what wraps in the product wraps back in the difference
        np.multiply(rest, by, out=rest)
        np.subtract(x, rest, out=rest)
        if not is_positive and x.min(initial=0) < 0:
            # it has the sign of the dividend
            np.subtract(rest, by, out=rest, where=(x < 0) & (rest != 0))
        return number_array(rest, a.type, None if nulls is None else ~nulls)

    return kernel


def _positive_remainder(a: pa.Array, b: pa.Array) -> pa.Array:
    x, y, nulls = _parts(a, b)
    with np.errstate(all="ignore"):
        rest = np.fmod(x, y)
        # The sum may wrap, as Java's does.
        return pa.array(np.where(rest < 0, np.fmod(rest + y, y), rest), a.type, mask=nulls)


# --- decimals ------------------------------------------------------------------------------


def _decimal_arithmetic(call: CallInfo) -> Kernel:
    (p1, s1), (p2, s2) = (as_decimal(t) or (38, 0) for t in call.inputs)
    into = pc.evaluated_type(call.result)
    scale = max(s1, s2)
    needed = max(p1 - s1, p2 - s2) + scale + 1
    if call.name in ("+", "-") and needed <= 76:
        kernel: Kernel = pc.add if call.name == "+" else pc.subtract
        wide = pa.decimal256(needed - 1, scale)
        return lambda a, b: round_half_up(kernel(pc.cast(a, wide), pc.cast(b, wide)), into)
    if call.name == "*" and p1 + p2 + 1 <= 76:
        left, right = pa.decimal256(p1, s1), pa.decimal256(p2, s2)
        return lambda a, b: round_half_up(pc.multiply(pc.cast(a, left), pc.cast(b, right)), into)
    return by_value(lambda a, b: _decimal_value(call, a, b), into)


def _decimal_value(call: CallInfo, a: decimal.Decimal, b: decimal.Decimal) -> Any:
    operator = call.name
    if operator not in ("+", "-", "*") and not b:
        raise _divide_by_zero()
    if operator == "div":
        return int(_WIDE.divide_int(a, b))
    steps: dict[str, Callable[[Any, Any], decimal.Decimal]] = {
        "+": _WIDE.add,
        "-": _WIDE.subtract,
        "*": _WIDE.multiply,
        "/": _WIDE.divide,
        "%": _WIDE.remainder,
    }
    if operator == "pmod":
        rest = _WIDE.remainder(a, b)
        value = _WIDE.remainder(_WIDE.add(rest, b), b) if rest < 0 else rest
    else:
        value = steps[operator](a, b)
    return parse_decimal_text(str(value), call.result)


def _unary(exact: str, checked: str) -> Maker:
    def maker(call: CallInfo) -> Kernel:
        kernel: Kernel = getattr(pc, exact if facts(call.inputs[0]).family == "decimal" else checked)
        return kernel

    return maker


# --- rounding ------------------------------------------------------------------------------


def _round(call: CallInfo) -> Kernel:
    digits = call.constant(1)
    half_up = call.name == "round"
    mode = "half_towards_infinity" if half_up else "half_to_even"
    if digits is None:
        return lambda x, _: pc.if_else(pc.is_null(x), x, pa.scalar(None, x.type))
    if facts(call.result).family == "decimal":
        into = pc.evaluated_type(call.result)
        precision, scale = as_decimal(call.inputs[0]) or (38, 0)
        # to more places than a value's digits all are 0, and Arrow raises
        rounded = max(min(digits, scale), scale - precision - 1)
        return lambda x, _: pc.cast(
            pc.round(pc.cast(x, pa.decimal256(76, x.type.scale)), ndigits=rounded, round_mode=mode), into
        )
    if is_integral(call.result):
        if digits >= 0:
            return lambda x, _: x
        into = pc.evaluated_type(call.result)
        context = decimal.ROUND_HALF_UP if half_up else decimal.ROUND_HALF_EVEN
        return lambda x, _: by_value(lambda v: int(_to_digits(v, digits, context)), into)(x)
    return lambda x, _: _round_floats(x, digits, half_up)


def _to_digits(value: Any, digits: int, mode: str) -> decimal.Decimal:
    return decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-digits), mode, decimal.Context(prec=400))


#: Ties below these have as few digits as every float of this size prints as, if it is nearest to them.
_MOST_TIE = {4: 1e5, 8: 1e14}
#: By how much of itself a product of such a float may be off.
_EPSILON = {4: 2.0**-22, 8: 2.0**-50}


def _round_floats(x: Any, digits: int, half_up: bool) -> Any:
    return on_arrays(lambda a: _round_float_array(a, digits, half_up))(x)


def _round_float_array(x: pa.Array, digits: int, half_up: bool) -> pa.Array:
    """Round by the decimal digits that a float prints as: plain if no tie is near, exact if one is.

    A float that is nearest to a tie of few digits prints as this tie; others print as what is beside it.
    """
    values, nulls = to_numpy(x)
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.abs(wide)
        scaled = size * 10.0**digits
        floor = np.floor(scaled)
        rest = scaled - floor
        is_near = np.abs(rest - 0.5) <= 1e-4 + scaled * _EPSILON[values.dtype.itemsize]
        plainly = (scaled < 2.0**40) & (abs(digits) <= 22)
        if digits >= 0 and is_near.any():
            tie = ((floor + 0.5) / 10.0**digits).astype(values.dtype).astype(np.float64)
            up = size >= tie if half_up else (size > tie) | ((size == tie) & (floor % 2 == 1))
            plainly &= ~is_near | (scaled < _MOST_TIE[values.dtype.itemsize])
        else:
            up = rest > 0.5
            plainly &= ~is_near
        whole = floor + np.where(is_near, up, rest > 0.5)
        out = np.copysign(whole / 10.0**digits if digits >= 0 else whole * 10.0**-digits, wide)
    mode = decimal.ROUND_HALF_UP if half_up else decimal.ROUND_HALF_EVEN
    for i in np.flatnonzero(~plainly & np.isfinite(wide)):
        out[i] = float(_to_digits(values[i], digits, mode))
    # Adding 0 makes -0.0 plain 0.0, as decimals have no negative zero.
    out = np.where(np.isfinite(wide), out + 0.0, wide).astype(values.dtype)
    return pa.array(out, mask=nulls)


def _floor(call: CallInfo) -> Kernel:
    kernel: Kernel = pc.floor if call.name == "floor" else pc.ceil
    if facts(call.inputs[0]).family == "decimal":
        into = pc.evaluated_type(call.result)
        return lambda x: pc.cast(kernel(pc.cast(x, pa.decimal256(76, x.type.scale))), into)
    if is_integral(call.inputs[0]):
        return lambda x: pc.cast(x, pa.int64())
    return lambda x: on_arrays(_saturate)(kernel(x))


def _saturate(x: pa.Array) -> pa.Array:
    """Turn doubles into longs as Java does: NaN is 0, what is too large the largest."""
    values, nulls = to_numpy(x)
    with np.errstate(all="ignore"):
        whole = np.where(np.isnan(values), 0.0, values).astype(np.float64)
        inside = np.where(np.abs(whole) < 2.0**63, whole, 0.0).astype(np.int64)
    inside[whole >= 2.0**63] = np.iinfo(np.int64).max
    inside[whole <= -(2.0**63)] = np.iinfo(np.int64).min
    return pa.array(inside, mask=nulls)


# --- mathematics ---------------------------------------------------------------------------


def _above(limit: float, name: str) -> Maker:
    """Logarithms: null at and below the limit."""

    def kernel(x: Any) -> Any:
        inside = pc.or_(pc.greater(x, limit), pc.is_nan(x))
        return getattr(pc, name)(pc.if_else(inside, x, pa.scalar(None, pa.float64())))

    return plain(kernel)


def _numpy(function: Callable[..., Any]) -> Maker:
    def kernel(*arrays: pa.Array) -> pa.Array:
        pairs = [to_numpy(a) for a in arrays]
        nulls = None
        for _, mask in pairs:
            nulls = mask if nulls is None else nulls if mask is None else nulls | mask
        with np.errstate(all="ignore"):
            return pa.array(function(*(values for values, _ in pairs)), mask=nulls)

    return plain(on_arrays(kernel))


MAKERS: Mapping[str, Maker] = {
    **dict.fromkeys((*_CHECKED, "%", "pmod"), _arithmetic),
    "negative": _unary("negate", "negate_checked"), "abs": _unary("abs", "abs_checked"), "positive": plain(lambda x: x),
    "round": _round, "bround": _round, "floor": _floor, "ceil": _floor,
    "&": named("bit_wise_and"), "|": named("bit_wise_or"), "^": named("bit_wise_xor"), "~": named("bit_wise_not"),
    "sqrt": named("sqrt"), "exp": named("exp"), "sign": named("sign"), "pow": named("power"),
    "sin": named("sin"), "cos": named("cos"), "tan": named("tan"), "asin": named("asin"), "acos": named("acos"),
    "atan": named("atan"), "atan2": named("atan2"), "cbrt": _numpy(np.cbrt), "expm1": _numpy(np.expm1),
    "radians": _numpy(np.radians), "degrees": _numpy(np.degrees),
    "ln": _above(0.0, "ln"), "log10": _above(0.0, "log10"), "log2": _above(0.0, "log2"), "log1p": _above(-1.0, "log1p"),
}  # fmt: skip
