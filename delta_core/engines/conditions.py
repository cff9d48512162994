"""Conditions on values that an engine can test while it decodes files: records that the core makes of a predicate.

An engine tests those that it supports, and ignores the others: the core evaluates the whole predicate where one was
ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from delta_core.runtime.processes import cached_property
from delta_core.runtime.structs import PublicStruct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ColumnTest",
    "JoinedTest",
    "NullTest",
    "RowCondition",
    "TextBound",
    "ValueCondition",
    "ValuePattern",
    "ValueRange",
    "ValueSet",
    "WILDCARD",
    "passes_null",
]


class ValueRange(Struct, frozen=True):
    """A condition on numbers: that they are neither null nor outside of two bounds.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    least, most : int or float
        As Arrow stores them, both included; dates in days, timestamps in microseconds, decimals without their point.
    with_nan : bool
        Whether NaN passes.
    """

    column: int
    least: int | float
    most: int | float
    with_nan: bool = False


class ValueSet(PublicStruct, frozen=True, dict=True):
    """A condition on numbers or strings: that they are among some keys; null never is.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    keys : int64 or float64, **shape (n,)**, or tuple of bytes
        Ascending, each once. Numbers as Arrow stores them, without NaN; -0.0 is 0.0. Strings in UTF-8.
    """

    column: int
    keys: NDArray[np.int64] | NDArray[np.float64] | tuple[bytes, ...]

    @cached_property
    def made(self) -> dict[str, Any]:
        """The engine's own forms of the keys, by name: they may be many, and are tested in each file."""
        return {}


#: See `ValuePattern`.
WILDCARD = b"\xff"


class ValuePattern(Struct, frozen=True):
    """A condition on strings: that they consist of some parts in this order, with anything between them; null does not.

    In a part the byte `WILDCARD`, which UTF-8 does not have, matches any one character.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    parts : tuple of bytes, **at least two**, or one with a wildcard
        In UTF-8. The first one begins the string and the last one ends it; each may be empty.
    """

    column: int
    parts: tuple[bytes, ...]


class NullTest(Struct, frozen=True):
    """A condition on values of any type: that they are null, or that they are not.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    is_null : bool
        Whether null passes, and nothing else; else whatever is not null.
    """

    column: int
    is_null: bool


class TextBound(Struct, frozen=True):
    """A condition on strings: that their bytes are below those of a key; null is not.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    key : bytes
        In UTF-8.
    with_key : bool
        Whether the key passes too.
    """

    column: int
    key: bytes
    with_key: bool = False


class JoinedTest(Struct, frozen=True):
    """A condition on the values of a column, without null, that is made of others.

    Parameters
    ----------
    column : int
        The number of the physical column in the read.
    parts : tuple of ValueRange, ValueSet, ValuePattern, TextBound or JoinedTest
        Of the same column.
    is_any : bool
        Whether one of them is enough.
    is_negated : bool
        Whether the other values pass.
    with_null : bool
        Whether null passes beside values.
    """

    column: int
    parts: tuple[ValueCondition, ...]
    is_any: bool = False
    is_negated: bool = False
    with_null: bool = False


class RowCondition(Struct, frozen=True):
    """A condition on the values of several columns of a row.

    Parameters
    ----------
    parts : tuple of ColumnTest or RowCondition
    is_any : bool
        Whether a row passes that passes one of them; else it passes all.
    """

    parts: tuple[ColumnTest | RowCondition, ...]
    is_any: bool = False


#: A condition on values that are not null.
ValueCondition = ValueRange | ValueSet | ValuePattern | TextBound | JoinedTest
#: A condition on one column's values that is tested while they are decoded.
ColumnTest = ValueCondition | NullTest


def passes_null(values: ColumnTest) -> bool:
    """Return whether null passes a test.

    Parameters
    ----------
    values : ColumnTest
        The test of a column.
    """
    return values.is_null if isinstance(values, NullTest) else isinstance(values, JoinedTest) and values.with_null
