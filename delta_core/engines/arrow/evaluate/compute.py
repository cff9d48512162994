"""The helpers of every family of functions: pyarrow.compute loaded late, calls described, scalars spread.

A *value* is a ``pyarrow.Array`` or a ``pyarrow.Scalar``; a *kernel* takes values and returns one. Kernels that
get only scalars may return a scalar. Attributes that are not defined here are pyarrow.compute's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.evaluate.result_size import limited, spread, take
from delta_core.errors import UnsupportedExpressionError
from delta_core.expressions.ast import Expression, Literal
from delta_core.expressions.literals import to_microseconds
from delta_core.kernels import compute

# pyarrow.compute has an is_valid of its own
from delta_core.kernels.arrow_buffers import array_of, is_valid as validity, scalar_of as typed, values_of
from delta_core.schema.logical import facts
from delta_core.schema.types import DataType, PrimitiveType

__all__ = [
    "CallInfo",
    "Kernel",
    "Maker",
    "evaluated_type",
    "by_value",
    "named",
    "on_arrays",
    "plain",
    "scalar_of",
    "to_numpy",
    "typed",
]

Kernel = Callable[..., Any]


def __getattr__(name: str) -> Any:
    # The import system queries every module for ``__path__``: that must not load what is loaded late.
    if name.startswith("__"):
        raise AttributeError(name)
    # Not kept in this module's namespace: ``all``, ``any`` and ``sum`` would hide Python's own.
    return getattr(compute, name)


def evaluated_type(t: DataType) -> pa.DataType:
    """Return how values of a type lie in memory; intervals are durations, or int32 months."""
    if not isinstance(t, PrimitiveType):
        return t.to_arrow()
    found = facts(t)
    return t.to_arrow() if found.family == "opaque" else found.arrow


def scalar_of(literal: Literal) -> pa.Scalar:
    """Return a typed constant as an Arrow scalar."""
    assert literal.type is not None
    value, target = literal.value, evaluated_type(literal.type)
    if value is not None and pa.types.is_timestamp(target):
        return typed(to_microseconds(value), target)
    return typed(value, target)


class CallInfo(Struct, frozen=True):
    """A call to be compiled: its name, bound arguments, their types and the result's."""

    name: str
    args: tuple[Expression, ...]
    inputs: tuple[DataType, ...]
    result: DataType

    def constant(self, index: int) -> Any:
        """Return the value of a constant argument.

        Raises
        ------
        UnsupportedExpressionError
            If the argument is not constant.
        """
        arg = self.args[index]
        if not isinstance(arg, Literal):
            raise UnsupportedExpressionError(
                f"Argument {index + 1} of {self.name!r} must be a constant here.", function=self.name
            )
        return arg.value

    def is_constant(self, *indexes: int) -> bool:
        """Return whether these arguments are constants that are not null."""
        return all(isinstance(a, Literal) and a.value is not None for a in (self.args[i] for i in indexes))


Maker = Callable[[CallInfo], Kernel]


def plain(kernel: Kernel) -> Maker:
    """Return the maker of a kernel that needs nothing of its call."""
    return lambda _: kernel


def named(name: str) -> Maker:
    """Return the maker of pyarrow.compute's function of this name, which is loaded when it is first compiled."""
    return lambda _: __getattr__(name)


def on_arrays(kernel: Kernel) -> Kernel:
    """Let a kernel over arrays of one length take scalars too."""

    def spread_all(*values: Any) -> Any:
        lengths = [len(v) for v in values if not isinstance(v, pa.Scalar)]
        length = lengths[0] if lengths else 1
        out = kernel(*(spread(v, length) if isinstance(v, pa.Scalar) else v for v in values))
        return out if lengths else out[0]

    return spread_all


def by_value(function: Callable[..., Any], result: pa.DataType, name: str = "a function") -> Kernel:
    """Make a kernel of a Python function: called once a distinct value, or once a row for two columns.

    For functions that are rare or that no vectorised kernel computes as Spark does. Null in, null out.
    ``name`` is what an error calls it whose texts grow too large.
    """
    is_text = result in (pa.string(), pa.binary())

    def collect(values: Iterable[Any]) -> pa.Array:
        return array_of(list(limited(values, name) if is_text else values), result)

    def apply(*values: Any) -> Any:
        return None if any(v is None for v in values) else function(*values)

    def kernel(*values: Any) -> Any:
        columns = [i for i, v in enumerate(values) if not isinstance(v, pa.Scalar)]
        if not columns:
            return typed(apply(*(v.as_py() for v in values)), result)
        if len(columns) > 1:
            rows = zip(*on_list(values), strict=True)
            return collect(apply(*row) for row in rows)
        coded = compute.dictionary_encode(values[columns[0]])
        constants = [v.as_py() if isinstance(v, pa.Scalar) else None for v in values]

        def each() -> Iterator[Any]:
            for item in coded.dictionary.to_pylist():
                constants[columns[0]] = item
                yield apply(*constants)

        return take(collect(each()), coded.indices, name)

    return kernel


def on_list(values: tuple[Any, ...]) -> list[list[Any]]:
    """Return values as lists of one length."""
    length = next(len(v) for v in values if not isinstance(v, pa.Scalar))
    return [[v.as_py()] * length if isinstance(v, pa.Scalar) else v.to_pylist() for v in values]


def to_numpy(array: pa.Array) -> tuple[Any, Any]:
    """Return an array's numbers (nulls as 0) and the mask of its nulls, None if there are none."""
    if pa.types.is_boolean(array.type):
        array = compute.cast(array, pa.int8())
    if array.null_count == 0:
        return values_of(array), None
    valid = validity(array)
    return np.where(valid, values_of(array), 0), ~valid
