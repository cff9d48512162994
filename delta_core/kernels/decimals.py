"""Casts and rounding of decimals in which every value that does not fit raises.

Arrow's own miss some: a decimal of 128 bits that is converted to a larger scale may wrap around, text that is read as a
decimal too, and what rounding makes too large becomes 0, unless it is the last value of its array.
"""

from __future__ import annotations

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import pyarrow as pa

from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of

__all__ = ["checked_cast", "read_decimals", "round_half_up"]

#: Digits that every number of 128 and of 256 bits has room for.
_DIGITS, _WIDE_DIGITS = 38, 76
_EXACT = Context(prec=_WIDE_DIGITS, traps=[Inexact, InvalidOperation])


def checked_cast(x: Any, target: pa.DataType) -> Any:
    """Cast an array or scalar as its own ``cast`` does, but so that no decimal wraps around.

    Parameters
    ----------
    x : pyarrow.Array, ChunkedArray or Scalar
        Of any type; integers become decimals of any precision that holds the values.
    target : pyarrow.DataType
        The type of the result.

    Raises
    ------
    pyarrow.ArrowInvalid
        A value does not fit.
    """
    if not pa.types.is_decimal(target):
        return pc.cast(x, target)
    if pa.types.is_integer(x.type):
        x = pc.cast(x, pa.decimal128(20, 0))
    elif not pa.types.is_decimal(x.type):
        return pc.cast(x, target)
    added = target.scale - x.type.scale
    if added > 0 and x.type.precision + added > _DIGITS:
        # a value of more digits fits no type of the requested scale
        x = pc.cast(x, pa.decimal256(max(_WIDE_DIGITS - added, x.type.scale, 1), x.type.scale))
    return pc.cast(x, target)


def round_half_up(x: Any, target: pa.DataType) -> Any:
    """Round decimals half away from zero to the scale of a decimal type; ArrowInvalid if the digits don't fit.

    Parameters
    ----------
    x : decimal array or chunked array, **shape (n,)**
        The values; nulls stay.
    target : pyarrow.DataType
        A decimal type with a smaller or equal scale.
    """
    if x.type.scale > target.scale:
        if x.type.precision < _WIDE_DIGITS:  # rounding may add a digit
            x = pc.cast(x, pa.decimal256(_WIDE_DIGITS, x.type.scale))
        x = pc.round(x, ndigits=target.scale, round_mode="half_towards_infinity")
    return checked_cast(x, target)


def read_decimals(text: pa.Array, target: pa.DataType) -> pa.Array:
    """Read an array of texts as a decimal type, exactly; ArrowInvalid for a text that is no such value.

    Parameters
    ----------
    text : string array, **shape (n,)**
        Numbers as text, with or without an exponent; nulls stay.
    target : pyarrow.DataType
        A decimal type.

    Returns
    -------
    decimal array, **shape (n,)**
        Of the type; null if the text is.
    """
    longest = pc.max(pc.binary_length(text)).as_py() or 0
    if longest <= _DIGITS and not pc.any(pc.match_substring(text, "e", ignore_case=True)).as_py():
        return pc.cast(pc.cast(text, pa.decimal256(_WIDE_DIGITS, target.scale)), target)
    return array_of([None if v is None else _decimal(v, target.scale) for v in text.to_pylist()], target)


def _decimal(text: str, scale: int) -> Decimal:
    """Parse one text at a scale; Arrow converts numbers with many more fractional digits to zero."""
    try:
        number = Decimal(text) if text.isascii() and "_" not in text else Decimal("NaN")
        number = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    except (InvalidOperation, Inexact):
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() >= _DIGITS:
        raise pa.ArrowInvalid(
            f"{text[:60]!r} is no decimal of at most {_DIGITS} digits, {scale} of them after the point"
        )
    return number
