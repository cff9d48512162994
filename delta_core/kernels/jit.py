"""Array functions that Numba compiles: for plugins whose authors have no compiler.

A function written with `array_function` is called like the compiled kernels of this package: NumPy arrays and Arrow
buffers in, arrays out, without the GIL. Numba is imported when the first of them is called, and machine code is kept on
disk. Functions of one row, which expressions call by name, are in `delta_core.expressions.row_functions`.
"""

from __future__ import annotations

import inspect
import logging
import pickle
from collections.abc import Callable, Iterable
from functools import update_wrapper
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.errors import InvalidArgumentError, MissingDependencyError
from delta_core.kernels.arrow_buffers import mask_of, values_of

__all__ = ["ArrayFunction", "array_function", "as_numpy", "load_numba", "with_cache"]

_LOG = logging.getLogger(__name__)
#: Exceptions of the cache: no folder can be written, the disk is full, a file in it is cut off.
_CACHE_ERRORS = (OSError, RuntimeError, EOFError, pickle.PickleError)


def array_function(
    *signatures: str, out: Iterable[str] = (), check_bounds: bool = True
) -> Callable[[Callable[..., Any]], ArrayFunction]:
    """Make an array function of a Python function at module level, which Numba compiles on its first call.

    Parameters
    ----------
    signatures : str
        Types of arguments and result in Numba's notation, such as ``"uint64[::1](int64[::1], boolean[::1])"``; the
        first one that fits the arguments is taken. ``[::1]`` is an array of one dimension without gaps.
    out : iterable of str
        The parameters that are arrays which the function fills. All other arrays are read-only: Numba rejects code that
        writes to them.
    check_bounds : bool
        Whether an index outside its array raises IndexError. False if the function is sure of its indices: there, such
        an index reads or damages foreign memory.

    Raises
    ------
    InvalidArgumentError
        No signature, or a name in ``out`` that is no parameter.

    Notes
    -----
    - A function may call array functions and use constants of its own module. Take neither from another one: the
      cache is renewed when the file that contains the function changes, and does not see changes elsewhere.
    - Machine code is stored in ``__pycache__`` beside the function's file; if that is read-only, in the user's cache
      folder or in ``NUMBA_CACHE_DIR``; if nothing can be written, each process compiles again.
    """

    def decorate(function: Callable[..., Any]) -> ArrayFunction:
        return ArrayFunction(function, signatures, tuple(out), check_bounds)

    return decorate


class ArrayFunction:
    """A function over arrays, compiled or loaded from the cache on its first call; made by `array_function`.

    ``__wrapped__`` is the Python function. Pickles contain the module and the name only.
    """

    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], signatures: tuple[str, ...], out: tuple[str, ...], check_bounds: bool
    ) -> None:
        update_wrapper(self, function)
        parameters = list(inspect.signature(function).parameters)
        if not signatures:
            raise InvalidArgumentError(
                f"{self.__qualname__} has no signature; pass at least one, such as array_function('void(int64[::1])')."
            )
        unknown = [name for name in out if name not in parameters]
        if unknown:
            raise InvalidArgumentError(
                f"out names {unknown}, but the parameters of {self.__qualname__} are {parameters}."
            )
        self._signatures = signatures
        self._out = frozenset(parameters.index(name) for name in out)
        self._check_bounds = check_bounds
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled function.

        Parameters
        ----------
        arguments
            NumPy arrays and numbers. A pyarrow.Buffer arrives as ``uint8[::1]`` (a mutable one can be filled), None in
            place of a buffer as one without elements. A pyarrow.Array of numbers, dates or times arrives as the numbers
            in its memory (undefined if it is null), a BooleanArray as ``boolean[::1]`` (false if it is null). For
            strings, pass the buffers that `delta_core.kernels.arrow_buffers.string_buffers` returns.

        Raises
        ------
        MissingDependencyError
            Numba is not installed.
        InvalidArgumentError
            Arguments that fit no signature.
        """
        dispatcher = self._dispatcher or self._load()
        try:
            return dispatcher(*[as_numpy(a) for a in arguments])
        except TypeError as e:
            if not str(e).startswith("No matching definition"):
                raise
            found = str(e).partition("type(s)")[2].strip()
            raise InvalidArgumentError(
                f"{self.__qualname__} was called with ({found}), expected one of: {'; '.join(self._signatures)}."
            ) from e

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<array function {self.__module__}.{self.__qualname__}>"

    @property
    def _numba_type_(self) -> Any:
        """The type of this object in code that Numba compiles: that of the compiled function."""
        return load_numba(self).types.Dispatcher(self._dispatcher or self._load())

    def _load(self) -> Any:
        """Return the compiled function. Threads that come at once do the same twice, which needs no lock."""
        numba = load_numba(self)
        signatures = [self._signature(text) for text in self._signatures]

        def compiled(cache: bool) -> Any:
            make = numba.njit(signatures, cache=cache, nogil=True, boundscheck=self._check_bounds)
            return make(self.__wrapped__)

        self._dispatcher = with_cache(self, compiled)
        return self._dispatcher

    def _signature(self, text: str) -> Any:
        """Return a signature whose arrays are read-only, except those that the function fills."""
        from numba.core import sigutils, types, typing

        arguments, result = sigutils.normalize_signature(text)
        kinds = [
            types.Array(t.dtype, t.ndim, t.layout, readonly=True)
            if isinstance(t, types.Array) and i not in self._out
            else t
            for i, t in enumerate(arguments)
        ]
        return tuple(kinds) if result is None else typing.signature(result, *kinds)


def as_numpy(argument: Any) -> Any:
    """Return an argument as compiled code takes it.

    Parameters
    ----------
    argument
        As `ArrayFunction` takes it.
    """
    if argument is None:
        return np.zeros(0, np.uint8)
    if isinstance(argument, pa.Buffer):
        return np.frombuffer(argument, np.uint8)
    if not isinstance(argument, pa.Array):
        return argument
    view = mask_of(argument) if pa.types.is_boolean(argument.type) else values_of(argument)
    view.flags.writeable = False  # arrays are immutable, even if their memory is not
    return view


def load_numba(function: Any) -> Any:
    """Return Numba, which compiles a function.

    Parameters
    ----------
    function : function
        The function, which the error names.

    Raises
    ------
    MissingDependencyError
        It is not installed, or can't be imported.
    """
    try:
        import numba
    except ImportError as e:
        missing = isinstance(e, ModuleNotFoundError) and e.name == "numba"
        found = "is not installed" if missing else f"can't be imported ({e})"
        raise MissingDependencyError(
            f"{function.__module__}.{function.__qualname__} is compiled by numba, which {found}. "
            "Run: pip install 'delta-core-lake[numba]'",
            package="numba",
        ) from e
    return numba


def with_cache(function: Any, compiled: Callable[[bool], Any]) -> Any:
    """Return a compiled function from the cache on disk, or compiled without it if that can't be used.

    Parameters
    ----------
    function : function
        The function, which the log names.
    compiled : function(bool) -> function
        Compiles it, with the cache or without.
    """
    try:
        return compiled(True)
    except _CACHE_ERRORS as e:
        _LOG.info("%r is compiled in this process alone, since its cache can't be used: %s", function, e)
        return compiled(False)
