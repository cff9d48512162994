"""Functions that plugins add to expressions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from msgspec import Struct

__all__ = ["Function"]


class Function(Struct, frozen=True):
    """A function for expressions.

    Parameters
    ----------
    feature : str
        The feature whose plugin returns it.
    name : str
        Lower-case, as it is called.
    result : function(list of pyarrow.DataType) -> pyarrow.DataType
        The result's type, or raises.
    arrays : function(*arrays: pyarrow.Array) -> pyarrow.Array
        All arguments are arrays of one length.
    spark : str
        The SQL template for Spark: ``"xxhash64({0}, {1})"``, with ``{arguments}`` for all of them, joined by commas;
        empty if Spark has it by its name.
    """

    feature: str
    name: str
    result: Callable[[list[pa.DataType]], pa.DataType]
    arrays: Callable[..., pa.Array]
    spark: str = ""
