"""PyArrow's compute functions, without ``import pyarrow.compute``.

That import writes the documentation of 300 functions, which takes longer than a small read. Here a function is wrapped
when it is first used; it takes the arguments of ``pyarrow.compute``'s function of the same name. The names that
PyArrow itself defines in Python (``cast``, ``take`` and ``fill_null`` excepted) are those of ``pyarrow.compute``.

Methods of arrays (``cast``, ``take``, ``filter``, ``dictionary_encode`` ...) import ``pyarrow.compute``; code that runs
in a first read calls the functions of this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from delta_core.kernels.arrow_buffers import scalar_of

#: Functions that ``pyarrow.compute`` defines in Python, with arguments of their own.
PYTHON_FUNCTIONS = frozenset(("bottom_k_unstable", "field", "index", "random", "scalar", "top_k_unstable"))
_KEYWORDS = {"and_": "and", "or_": "or"}


def __getattr__(name: str) -> Any:
    # the import system looks for ``__path__`` in every module
    if name.startswith("__"):
        raise AttributeError(name)
    found = globals()[name] = _find(name)
    return found


def _find(name: str) -> Any:
    from pyarrow import _compute

    if name not in PYTHON_FUNCTIONS:
        option = getattr(_compute, name, None)
        if isinstance(option, type):
            return option
        try:
            return _wrap(_compute.get_function(_KEYWORDS.get(name, name)))
        except KeyError:
            pass
    import pyarrow.compute

    return getattr(pyarrow.compute, name)


def _wrap(function: Any) -> Callable[..., Any]:
    """Return a function of the registry as ``pyarrow.compute`` wraps it, without documentation."""
    from pyarrow import _compute

    name, arity = function.name, function.arity
    options_class: Any = getattr(_compute, function._doc.options_class or "", None)

    def call(*args: Any, options: Any = None, memory_pool: pa.MemoryPool | None = None, **more: Any) -> Any:
        inputs, rest = (args, ()) if arity is Ellipsis else (args[:arity], args[arity:])
        if arity is not Ellipsis and len(inputs) < arity or (rest or more) and (options_class is None or options):
            raise TypeError(f"Function {name!r} can't be called with these arguments.")
        if rest or more:
            options = options_class(*rest, **more)
        return function.call([_scalar(i) for i in inputs], options, memory_pool)

    return call


# PyArrow makes scalars of Python values itself, and imports pandas for it
_SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


def _scalar(value: Any) -> Any:
    kind = _SCALARS.get(type(value))
    return value if kind is None else scalar_of(value, kind)


def cast(values: Any, target: pa.DataType, safe: bool = True) -> Any:
    """Convert values to a type.

    Parameters
    ----------
    values : pyarrow.Array, pyarrow.ChunkedArray or scalar, **shape (n,)**
        Of any type; nulls stay.
    target : pyarrow.DataType
        The type of the result.
    safe : bool
        Whether a value that would change is an error.
    """
    from pyarrow import _compute

    options = _compute.CastOptions.safe(target) if safe else _compute.CastOptions.unsafe(target)
    return _compute.call_function("cast", [values], options)


def take(values: Any, indices: Any, *, boundscheck: bool = True) -> Any:
    """Return the rows at these positions.

    Parameters
    ----------
    values : pyarrow.Array, pyarrow.ChunkedArray or pyarrow.Table, **n rows**
        Of any type.
    indices : integer array, **shape (k,)**
        Positions from 0 to ``n - 1``, in any order; a null yields a null.
    boundscheck : bool
        Whether the positions are checked; without it, a wrong one reads foreign memory.
    """
    from pyarrow import _compute

    return _compute.call_function("take", [values, indices], _compute.TakeOptions(boundscheck=boundscheck))


def fill_null(values: Any, value: Any) -> Any:
    """Replace nulls by a value, which may be a Python object.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray, **shape (n,)**
        Of any type.
    value : object or pyarrow.Scalar
        The value in place of nulls; it must fit the type.
    """
    from pyarrow import _compute

    if not isinstance(value, (pa.Scalar, pa.Array, pa.ChunkedArray)):
        value = scalar_of(value, values.type)
    elif value.type != values.type:
        value = scalar_of(value.as_py(), values.type)

    return _compute.call_function("coalesce", [values, value])
