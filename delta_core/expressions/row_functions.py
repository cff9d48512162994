"""Functions of users over the values of one row, which Numba compiles and expressions call by name."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import ExpressionError, InvalidArgumentError, MissingDependencyError
from delta_core.expressions.plugin_functions import Function
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, is_valid, mask_of, number_array, string_buffers
from delta_core.kernels.jit import as_numpy, load_numba, with_cache

__all__ = ["RowFunction", "row_function"]

#: Held while a function is compiled, one at a time as Numba does. A fork waits for it: the thread that compiles is not
#: in the child, which would wait for ever.
_COMPILING = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_COMPILING.acquire, after_in_parent=_COMPILING.release, after_in_child=_COMPILING.release
    )


def row_function(
    *arguments: pa.DataType, result: pa.DataType, check_bounds: bool = True
) -> Callable[[Callable[..., Any]], RowFunction]:
    """Make a function for expressions of a Python function of one row at module level, which Numba compiles.

    Parameters
    ----------
    arguments : pyarrow.DataType
        The types of the parameters: booleans, integers, floats, dates, times, strings or binary values. A string is
        passed as its UTF-8 bytes (``uint8[::1]``), a date or time as the integer that it is stored as.
    result : pyarrow.DataType
        The type of the result: a boolean, an integer, a float, a date or a time.
    check_bounds : bool
        As of `array_function`.

    Raises
    ------
    InvalidArgumentError
        A type is none of these, or the number of types is not that of the parameters.

    Notes
    -----
    - The result is null if an argument is null; the function is not called there.
    - Integers have the width of their type, and the result of an operation that of Numba: they wrap around in silence
      where they overflow. A division by zero and an index outside an array are errors.
    - Rows come in no order, and several threads call at once: a function can't keep anything between calls.
    - The compilation begins in the background as soon as an expression with the function is bound, and the first
      rows and forks wait for its end. The notes of `array_function` about the cache hold here, too; lambdas and
      functions inside of others are not cached.

    Examples
    --------
    >>> @row_function(pa.int64(), pa.int64(), result=pa.int64())
    ... def divisor(a, b):
    ...     while b:
    ...         a, b = b, a % b
    ...     return a
    >>> divisor.arrays(pa.array([12, 9, None]), pa.array([8, 6, 1]))
    <pyarrow.lib.Int64Array object at ...>
    [
      4,
      3,
      null
    ]
    """

    def decorate(function: Callable[..., Any]) -> RowFunction:
        return RowFunction(function, arguments, result, check_bounds)

    return decorate


class RowFunction:
    """A function of one row, compiled to a loop over arrays; made by `row_function`.

    ``__wrapped__`` is the Python function. Pickles contain the module and the name only.
    """

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[pa.DataType, ...], result: pa.DataType, check_bounds: bool
    ) -> None:
        update_wrapper(self, function)
        parameters = list(inspect.signature(function).parameters)
        if not arguments or len(arguments) != len(parameters):
            raise InvalidArgumentError(
                f"{self.__qualname__} has the parameters {parameters}, expected one or more, and a type for each; "
                f"found {len(arguments)} types."
            )
        for t in arguments:
            if not (_is_number(t) or _is_text(t)):
                raise InvalidArgumentError(
                    f"{self.__qualname__} has an argument of type {t}, expected a boolean, an integer, a float, a "
                    "date, a time, a string or a binary value."
                )
        if not _is_number(result):
            raise InvalidArgumentError(
                f"{self.__qualname__} has the result type {result}, expected a boolean, an integer, a float, a date or "
                "a time."
            )
        self._arguments = arguments
        self._result = result
        self._check_bounds = check_bounds
        self._loop: Any = None
        self._failure: InvalidArgumentError | MissingDependencyError | None = None

    def result(self, types: list[pa.DataType]) -> pa.DataType:
        """Return the type of the result, and begin to compile in the background; as `Function.result`.

        Parameters
        ----------
        types : list of pyarrow.DataType
            The types of the arguments: the declared ones, or narrower numbers. Strings may have any layout.

        Raises
        ------
        TypeError
            For other types.
        MissingDependencyError
            Numba is not installed.
        """
        fit = len(types) == len(self._arguments) and all(map(_fits, types, self._arguments))
        if not fit:
            raise TypeError(f"expected ({', '.join(map(str, self._arguments))})")
        load_numba(self)
        if self._loop is None and self._failure is None:
            threading.Thread(target=self._compile, name=f"compile {self.__qualname__}", daemon=True).start()
        return self._result

    def arrays(self, *arguments: pa.Array[Any]) -> pa.Array[Any]:
        """Return the results of rows; as `Function.arrays`.

        Parameters
        ----------
        arguments : pyarrow.Array, **shape (n,)** each
            Of types that `result` accepts.

        Returns
        -------
        pyarrow.Array, **shape (n,)**
            Null if an argument is null.

        Raises
        ------
        ExpressionError
            The function raised an error for a row, or an integer is not exact as the float that is declared.
        InvalidArgumentError
            Numba can't compile the function, or its result does not fit the declared type.
        MissingDependencyError
            Numba is not installed.
        """
        loop = self._loop or self._compile()
        if loop is None:
            failure: InvalidArgumentError | MissingDependencyError | None = self._failure
            assert failure is not None
            raise failure
        try:
            given = [a if a.type == t else pc.cast(a, t) for a, t in zip(arguments, self._arguments, strict=True)]
        except pa.ArrowInvalid as e:
            raise ExpressionError(
                f"An argument of {self.__qualname__} can't be converted to the declared type: {e}. Cast it in the "
                "expression, which rounds, or declare the type of the column."
            ) from e
        valid = np.ones(len(given[0]), np.bool_)
        for array in given:
            if array.null_count:
                valid &= is_valid(array)
        out = np.zeros(len(valid), self._stored)
        try:
            loop(valid, out, *[part for array in given for part in _parts(array)])
        except Exception as e:
            raise ExpressionError(
                f"The function {self.__qualname__} failed with {type(e).__name__}: {e}. Correct it, or select rows "
                "for which it does not fail with case."
            ) from e
        return bool_array(out, valid) if pa.types.is_boolean(self._result) else number_array(out, self._result, valid)

    def __call__(self, *arguments: Any) -> Any:
        """Return the result for one row, by the Python function, which is not compiled."""
        return self.__wrapped__(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__

    def as_function(self, name: str | None = None, *, feature: str = "", spark: str = "") -> Function:
        """Return the function under a name for expressions: for the hook ``functions``, or for `PluginRegistry`.

        Parameters
        ----------
        name : str, optional
            Lower-case; by default the name of the Python function.
        feature : str
            The feature whose hook returns it; empty for `PluginRegistry`.
        spark : str
            The SQL template for Spark, as of `Function`.
        """
        return Function(feature, name or self.__name__, self.result, self.arrays, spark)

    def __repr__(self) -> str:
        return f"<row function {self.__module__}.{self.__qualname__}>"

    @cached_property
    def _stored(self) -> Any:
        return _number_type(self._result)

    def _compile(self) -> Any:
        """Return the loop, compiled once; None if it can't be compiled: `_failure` has the reason."""
        with _COMPILING:
            if self._loop is None and self._failure is None:
                try:
                    self._loop = self._compiled()
                except Exception as e:  # noqa: BLE001 (raised by the call that needs the function)
                    self._failure = self._explained(e)
            return self._loop

    def _explained(self, e: Exception) -> InvalidArgumentError | MissingDependencyError:
        if isinstance(e, (InvalidArgumentError, MissingDependencyError)):
            return e
        reason = next((line for line in map(str.strip, str(e).splitlines()) if line), type(e).__name__)
        error = InvalidArgumentError(
            f"Numba can't compile {self.__module__}.{self.__qualname__}: {reason}. See the cause for the line."
        )
        error.__cause__ = e
        return error

    def _compiled(self) -> Any:
        numba = load_numba(self)
        from numba.core import types
        from numba.np.numpy_support import as_dtype, from_dtype

        def array(dtype: Any, readonly: bool = True) -> Any:
            return types.Array(from_dtype(np.dtype(dtype)), 1, "C", readonly=readonly)

        values, parts = [], []
        for t in self._arguments:
            if _is_text(t):
                values.append(array(np.uint8))
                parts += [array(np.int64 if _is_wide(t) else np.int32), array(np.uint8)]
            else:
                values.append(from_dtype(np.dtype(_number_type(t))))
                parts.append(array(_number_type(t)))

        def compiled(cache: bool) -> Any:
            options = {"cache": cache, "nogil": True, "boundscheck": self._check_bounds}
            row = numba.njit(tuple(values), **options)(self.__wrapped__)
            found = row.overloads[tuple(values)].signature.return_type
            if not isinstance(found, (types.Number, types.Boolean)) or not np.can_cast(as_dtype(found), self._stored):
                raise InvalidArgumentError(
                    f"{self.__module__}.{self.__qualname__} returns {found}, expected a value of {self._result}: "
                    f"convert it with np.{np.dtype(self._stored).name}(...), or declare another result."
                )
            return numba.njit((array(np.bool_), array(self._stored, readonly=False), *parts), **options)(
                self._loop_over(row)
            )

        # Numba's cache distinguishes functions by name and line only, not by the constants of a lambda
        return compiled(False) if "<" in self.__qualname__ else with_cache(self, compiled)

    def _loop_over(self, row: Any) -> Any:
        """Return the loop over rows as a function of the user's file, which is where Numba keeps its machine code."""
        names, calls = [], []
        for i, t in enumerate(self._arguments):
            if _is_text(t):
                names += [f"offsets{i}", f"bytes{i}"]
                calls.append(f"bytes{i}[offsets{i}[i]:offsets{i}[i + 1]]")
            else:
                names.append(f"values{i}")
                calls.append(f"values{i}[i]")
        text = (
            f"def loop(valid, out, {', '.join(names)}):\n"
            "    for i in range(len(out)):\n"
            "        if valid[i]:\n"
            f"            out[i] = row({', '.join(calls)})\n"
        )
        # the cache distinguishes functions of one name by their lines
        text = "\n" * (self.__wrapped__.__code__.co_firstlineno - 1) + text
        found: dict[str, Any] = {"row": row, "__name__": self.__module__}
        exec(compile(text, inspect.getfile(self.__wrapped__), "exec"), found)  # noqa: S102 (no text of others)
        found["loop"].__qualname__ = f"{self.__qualname__}.rows"
        return found["loop"]


def _is_text(t: pa.DataType) -> bool:
    return t in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _is_wide(t: pa.DataType) -> bool:
    return t in (pa.large_string(), pa.large_binary())


def _is_number(t: pa.DataType) -> bool:
    return bool(
        pa.types.is_boolean(t)
        or pa.types.is_integer(t)
        or t in (pa.float32(), pa.float64())
        or pa.types.is_date(t)
        or pa.types.is_timestamp(t)
    )


def _number_type(t: pa.DataType) -> Any:
    """Return the NumPy type of the numbers that a type stores."""
    if pa.types.is_boolean(t):
        return np.bool_
    kind = "u" if pa.types.is_unsigned_integer(t) else "f" if pa.types.is_floating(t) else "i"
    return np.dtype(f"{kind}{t.bit_width // 8}").type


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether each value of a type is a value of another."""
    if found == wanted or pa.types.is_null(found):
        return True
    if _is_text(wanted):
        value = found.value_type if pa.types.is_dictionary(found) else found
        texts = (pa.string(), pa.large_string(), pa.string_view())
        return value in (texts if wanted in texts else (pa.binary(), pa.large_binary(), pa.binary_view()))
    plain = all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in (found, wanted))
    return plain and bool(np.can_cast(found.to_pandas_dtype(), wanted.to_pandas_dtype()))


def _parts(array: pa.Array[Any]) -> list[Any]:
    """Return what a loop gets of an argument: its values, or the offsets and the bytes of strings."""
    if pa.types.is_boolean(array.type):
        return [mask_of(array)]
    if not _is_text(array.type):
        return [as_numpy(array)]
    buffers = string_buffers(array)
    assert buffers is not None  # the type is not null
    _, offsets, data, start, count, wide = buffers
    width = 8 if wide else 4
    if offsets is None or not offsets.size:
        return [np.zeros(count + 1, f"i{width}"), np.zeros(0, np.uint8)]
    return [np.frombuffer(offsets, f"i{width}", count + 1, start * width), as_numpy(data)]
