"""Names of the columns that be between the files and the rows handed out; no table has such."""

from __future__ import annotations

__all__ = ["FILE", "ROW", "VECTOR", "SELECTED", "column_name", "constant_name"]

FILE = "__delta_file"
ROW = "__delta_row"
#: Rows that are dropped, and rows that alone are requested, of a file.
VECTOR, SELECTED = "__delta_vector", "__delta_selected"


def column_name(index: int) -> str:
    """Return the name of a physical column under its logical shape."""
    return f"__delta_column_{index}"


def constant_name(index: int) -> str:
    """Return the name of a value that is one per file."""
    return f"__delta_constant_{index}"
