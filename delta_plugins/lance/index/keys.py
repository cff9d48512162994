"""The values that a column has to have in a row for which a condition is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core import api

if TYPE_CHECKING:
    from delta_core.api import ColumnTest, RowCondition
    from delta_plugins.lance.index.conditions import Condition

__all__ = ["RequiredValues", "required_values"]


class RequiredValues(Struct, frozen=True):
    """The values that a column may have in rows for which a condition is true.

    Parameters
    ----------
    keys : tuple of bytes
        Numbers as the column stores them, or the bytes of strings.
    with_null : bool
        Whether null is one of them.
    """

    keys: tuple[bytes, ...] = ()
    with_null: bool = False


def required_values(condition: Condition) -> RequiredValues | None:
    """Return the values that rows have for which a condition is true; None if they may have any value."""
    sources: dict[Any, Any] = {condition.column: api.PhysicalSource(0)}
    types: dict[Any, Any] = {condition.column: condition.type}
    parts = [api.part_test(part, sources, types) for part in api.conjuncts(condition.expression)]
    known = [test for part in parts if part is not None and (test := api.joined_test([part])) is not None]
    found = [values for test in known if (values := _of_test(test, condition.type)) is not None]
    return min(found, key=lambda values: len(values.keys), default=None)


def _of_test(test: ColumnTest | RowCondition, of: pa.DataType) -> RequiredValues | None:
    if isinstance(test, api.NullTest):
        return RequiredValues(with_null=True) if test.is_null else None
    if isinstance(test, api.ValueRange):
        is_one = not test.with_nan and test.least == test.most
        return RequiredValues(_numbers(np.array([test.least]), of)) if is_one else None
    if isinstance(test, api.ValueSet):
        return RequiredValues(test.keys if isinstance(test.keys, tuple) else _numbers(test.keys, of))
    return _of_joined(test, of) if isinstance(test, api.JoinedTest) and not test.is_negated else None


def _of_joined(test: api.JoinedTest, of: pa.DataType) -> RequiredValues | None:
    parts = [_of_test(part, of) for part in test.parts]
    known = [part for part in parts if part is not None]
    if not test.is_any and len(parts) > 1:
        known = known[:1]
    elif len(known) < len(parts):
        return None
    return RequiredValues(tuple(k for part in known for k in part.keys), test.with_null) if known else None


def _numbers(values: Any, of: pa.DataType) -> tuple[bytes, ...]:
    """Return the bytes of those numbers that a type has; zeros of both signs are one number."""
    kind = "f" if pa.types.is_floating(of) else "u" if pa.types.is_unsigned_integer(of) else "i"
    with np.errstate(all="ignore"):  # numpy warns of numbers that the type lacks
        numbers = values.astype(f"{kind}{of.bit_width // 8}")
    if kind != "f":
        numbers = numbers[numbers.astype(values.dtype) == values]
    elif (numbers == 0).any():
        numbers = np.append(numbers, np.array([0.0, -0.0], numbers.dtype))
    return tuple(n.tobytes() for n in numbers)
