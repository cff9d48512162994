"""The footers of many Parquet files of a local disk in one call, without the GIL, and their statistics as columns."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from delta_core.errors import InvalidArgumentError
from delta_core.parquet._footer import Footers

__all__ = ["BOUND_KINDS", "Footers", "read_footers"]

#: How bounds are stored and compared; signed bytes are numbers in two's complement, the most significant byte first.
BOUND_KINDS = {"int32": 0, "int64": 1, "float": 2, "double": 3, "bytes": 4, "signed bytes": 5}


def read_footers(paths: Sequence[str]) -> Footers:
    """Read the footers of files; one that can't be read, or is not supported, has the layout -1.

    Raises
    ------
    InvalidArgumentError
        For a path that contains a zero byte.
    """
    names = os.fsencode("".join(path + "\0" for path in paths))
    ends = np.flatnonzero(np.frombuffer(names, np.uint8) == 0) + 1
    if len(ends) != len(paths):
        raise InvalidArgumentError("A path contains a zero byte, which no file of a disk has in its name.")
    return Footers(ends.astype(np.int64), names)
