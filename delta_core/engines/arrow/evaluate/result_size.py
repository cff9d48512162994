"""How large the text that an expression makes may grow: a few bytes of SQL can request gigabytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError
from delta_core.kernels import compute as pc

__all__ = ["LARGEST_RESULT", "check_size", "choose", "limited", "spread", "take", "text_bytes", "too_large"]

#: Bytes of text that one function may return for one batch of rows, and that one constant may be repeated to.
LARGEST_RESULT = 512 << 20


def too_large(what: str) -> ExpressionError:
    """Return the error for a result above the limit; ``what`` names the function."""
    return ExpressionError(
        f"The result of {what} takes more than {LARGEST_RESULT >> 20} MiB for one batch of rows, which is the limit. "
        "Make its texts shorter.",
        condition="COLLECTION_SIZE_LIMIT_EXCEEDED",
        limit=LARGEST_RESULT,
    )


def check_size(num_bytes: int, what: str) -> None:
    """Reject a result that is too large.

    Raises
    ------
    ExpressionError
        If the bytes exceed `LARGEST_RESULT`.
    """
    if num_bytes > LARGEST_RESULT:
        raise too_large(what)


def limited(values: Iterable[Any], what: str) -> Iterator[Any]:
    """Pass texts on until together they are too large; the count is of characters, each with a byte or more.

    Raises
    ------
    ExpressionError
        If the texts together exceed `LARGEST_RESULT`.
    """
    room = LARGEST_RESULT
    for value in values:
        if value is not None:
            room -= len(value)
            if room < 0:
                raise too_large(what)
        yield value


def _is_text(t: pa.DataType) -> bool:
    return bool(pa.types.is_string(t) or pa.types.is_binary(t))


def text_bytes(value: Any, rows: int) -> int:
    """Return how many bytes of text a value takes: an array as it is, a scalar once a row; 0 for other types."""
    if not _is_text(value.type):
        return 0
    if isinstance(value, pa.Scalar):
        return rows * len(value.as_buffer()) if value.is_valid else 0
    return pc.sum(pc.binary_length(value)).as_py() or 0


def spread(value: pa.Scalar, rows: int, what: str = "a constant") -> pa.Array:
    """Return a scalar as an array of equal values."""
    check_size(text_bytes(value, rows), what)
    # Arrow can't repeat nested values no times
    return pa.repeat(value, rows) if rows else pa.nulls(0, value.type)


def take(values: pa.Array, codes: Any, what: str) -> pa.Array:
    """Return the values that codes represent."""
    if _is_text(values.type) and len(values):
        lengths = pc.binary_length(values)
        longest = pc.max(lengths).as_py() or 0
        if longest * len(codes) > LARGEST_RESULT:
            check_size(pc.sum(pc.take(lengths, codes)).as_py() or 0, what)
    return pc.take(values, codes)


def choose(mask: Any, a: Any, b: Any, what: str) -> Any:
    """Return ``a`` if the mask is true, else ``b``; a scalar becomes an array if the mask is one."""
    if isinstance(mask, pa.BooleanArray) and _is_text(a.type):
        chosen = mask.true_count
        sizes = ((v, n) for v, n in ((a, chosen), (b, len(mask) - chosen)) if isinstance(v, pa.Scalar))
        check_size(sum(text_bytes(v, n) for v, n in sizes), what)
    return pc.if_else(mask, a, b)
