"""Footers of Parquet files: whether PyArrow can return the metadata of each column chunk.

PyArrow ends the process if a column chunk's metadata is damaged in some ways: its accessors let no exception through.
"""

from __future__ import annotations

import pyarrow as pa

from delta_core.kernels._footer_check import find_problem

__all__ = ["check_footer"]

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
