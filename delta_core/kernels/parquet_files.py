"""Many small Parquet files to Arrow arrays in one call: opened, read whole and decoded behind one another, without the GIL.

Flat columns of files that have the same schema, as `parquet_pages` decodes them. The call ends before the first file that is
different, damaged or not there: PyArrow reads that one or specifies what is wrong.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from delta_core.kernels._parquet_files import Run, footer_key
from delta_core.kernels.parquet_pages import is_text

__all__ = ["FileLayout", "FlatColumn", "footer_key", "read_files"]

_PHYSICAL_TYPES = {"INT32": 1, "INT64": 2, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6}


class FlatColumn(Struct, frozen=True):
    """A column to decode.

    Parameters
    ----------
    leaf : int
        The Parquet column's number.
    physical : str
        Its Parquet type: INT32, INT64, FLOAT, DOUBLE or BYTE_ARRAY.
    type : pyarrow.DataType
        The Arrow type, stored in as many bytes; ``string`` or ``binary`` for BYTE_ARRAY.
    most_level : int
        The definition level of a value; 0: nothing is null.
    """

    leaf: int
    physical: str
    type: pa.DataType
    most_level: int


class FileLayout(Struct, frozen=True):
    """What files have in common that are read together.

    Parameters
    ----------
    schema, metadata : bytes
        What `footer_key` returned for one of them: a file of another schema or key-value metadata ends a run.
    columns : tuple of FlatColumn
    """

    schema: bytes
    metadata: bytes
    columns: tuple[FlatColumn, ...]


def read_files(
    layout: FileLayout, paths: list[bytes], sizes: NDArray[np.int64], most_rows: int, most_bytes: int
) -> tuple[NDArray[np.int64], list[pa.Array]]:
    """Read files from the first one on.

    Parameters
    ----------
    layout : FileLayout
        The columns, and the footer that the files must have.
    paths : list of bytes
        On a local disk.
    sizes : int64, **shape (n_files,)**, bytes
        As the log specifies; a file of another size ends the run.
    most_rows, most_bytes : int
        The run ends with the file that reaches either.

    Returns
    -------
    rows : int64, **shape (n_read,)**
        Of each file that was read; none if the first one is to be read by PyArrow.
    columns : list of pyarrow.Array, **sum(rows) values each**
        Parallel to ``layout.columns``. They own their memory.
    """
    run = Run(layout.schema, layout.metadata, [_row(c) for c in layout.columns])
    rows = run.read(paths, sizes, most_rows, most_bytes)
    n = int(rows.sum())
    arrays = []
    for number, column in enumerate(layout.columns):
        valid, nulls, buffers = run.column(number)
        arrays.append(pa.Array.from_buffers(column.type, n, [valid, *buffers], nulls))
    return rows, arrays


def _row(column: FlatColumn) -> tuple[int, int, int, int]:
    width = 0 if is_text(column.type) else column.type.bit_width // 8
    return column.leaf, _PHYSICAL_TYPES[column.physical], width, column.most_level
