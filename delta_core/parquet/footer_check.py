"""Footers of Parquet files, for PyArrow: whether it can return the metadata of each column chunk, and without bounds.

PyArrow ends the process if a column chunk's metadata is damaged in some ways: its accessors let no exception through.
It also takes the bounds of floating-point columns for those of all rows, although they leave NaN out.
"""

from __future__ import annotations

import pyarrow as pa

from delta_core.parquet._footer import find_problem, hide_float_bounds
from delta_core.runtime.patterns import lazy_pattern

__all__ = ["check_footer", "shows_nan", "without_float_bounds"]

#: Writers that order NaN above every number, so that one NaN is the column's maximum.
_SHOWS_NAN = lazy_pattern(r"parquet-mr version (1\.1[2-9]|1\.[2-9]\d|[2-9])\.")
#: By the number that the compiled reader returns.
_PROBLEMS = (
    "",
    "is torn",
    "has no metadata",
    "is one more or less than the schema has",
    "has another type than in the schema",
    "has an unknown codec",
    "has level histograms that do not fit the schema",
    "has a size of texts but no texts",
    "has a bound that is too short for its type",
    "is encrypted",
)


def check_footer(footer: bytes | memoryview) -> None:
    """Reject a footer whose column metadata can't be read.

    Parameters
    ----------
    footer : bytes
        The file's ``FileMetaData`` in Thrift's compact protocol, as it is stored.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a column chunk's metadata is damaged, as PyArrow raises for the damage that it sees.
    """
    problem, group, column = find_problem(footer)
    if problem:
        raise pa.ArrowInvalid(f"The footer is damaged: column {column} of row group {group} {_PROBLEMS[problem]}")


def without_float_bounds(footer: bytes | memoryview) -> bytes | None:
    """Return a footer of the same length with NaN for the bounds that may leave NaN out, which PyArrow ignores then.

    These are the bounds of floating-point columns, unless the program that wrote the file shows NaN in them.

    Parameters
    ----------
    footer : bytes
        The file's ``FileMetaData`` in Thrift's compact protocol, as it is stored.

    Returns
    -------
    bytes or None
        None if there is nothing to replace, or the footer is torn.
    """
    changed = bytearray(footer)
    replaced = hide_float_bounds(changed, lambda writer: shows_nan(writer.decode(errors="replace")))
    return bytes(changed) if replaced else None


def shows_nan(writer: str) -> bool:
    """Whether a program, as footers name it, puts NaN into the bounds of its columns."""
    return _SHOWS_NAN.match(writer) is not None
