"""Functions of users as loops of Python."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ours import Work
from benchmarks.row_functions import by_python, pairs


def edit_distances(table: Path, small: Path) -> Work:
    """Add up edit distances by a loop of Python."""
    by_python(*pairs(small))
    found = pairs(table)
    return lambda: by_python(*found)
