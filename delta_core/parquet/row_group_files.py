"""A Parquet file in memory cut into one file for each of its row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delta_core.parquet._footer import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["row_group_files"]


def row_group_files(file: bytes | pa.Buffer) -> tuple[memoryview, NDArray[np.int64]]:
    """Return the files that a writer would have made of each row group alone; releases the GIL.

    Pages do not contain where they are in the file, so that only footers are made.

    Parameters
    ----------
    file : bytes or pyarrow.Buffer
        A Parquet file as PyArrow has just written it.

    Returns
    -------
    files : memoryview
        The concatenated files.
    ends : int64[row groups]
        Where each one ends.

    Raises
    ------
    ValueError
        If the file has page indexes, Bloom filters or encrypted columns, or is damaged.
    """
    files = Files(np.frombuffer(file, np.uint8))
    return memoryview(files), files.ends()
