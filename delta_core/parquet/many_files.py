"""Many Parquet files to Arrow arrays in one call: opened, read and decoded in turn, without the GIL.

The files have one of a few schemas. All of their rows are read or those that pass tests, and their columns are decoded
as `parquet_pages` and `parquet_nested` decode them. The call ends before the first file that is different, damaged or
not there: PyArrow reads that one, or specifies what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels.memory import kept_blocks
from delta_core.parquet._pages import Runs, footer_key
from delta_core.parquet.pages import CODECS, PHYSICAL_TYPES, ValueTest, lent_workspace, width_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.parquet.nested_pages import LeafForm

__all__ = [
    "FileLayout",
    "FileLeaf",
    "FileTest",
    "FileTests",
    "FilesRead",
    "FlatColumn",
    "NestedLeaf",
    "PickedRows",
    "footer_key",
    "read_files",
]

#: Codecs that the compiled module leaves to others, by their numbers in parquet.thrift.
_CODECS = {"GZIP": 2, "ZSTD": 6}
#: Functions that decompress pages that the compiled module does not.
_FOREIGN = {_CODECS[name]: found for name, (_, found) in CODECS.items() if found is not None}


class FileLeaf(Struct, frozen=True):
    """A Parquet column.

    Parameters
    ----------
    leaf : int
        Its number.
    physical : str
        Its Parquet type, one of `delta_core.parquet.pages.PHYSICAL_TYPES`.
    """

    leaf: int
    physical: str


class FlatColumn(FileLeaf, frozen=True):
    """A column to decode.

    Parameters
    ----------
    type : pyarrow.DataType
        The Arrow type; ``string`` or ``binary`` for BYTE_ARRAY.
    most_level, stored : int
        See `delta_core.parquet.pages.ColumnChunk`.
    """

    type: pa.DataType
    most_level: int
    stored: int = 0


class NestedLeaf(FileLeaf, frozen=True):
    """A part of a nested column to decode.

    Parameters
    ----------
    form : LeafForm
        See `parquet_nested.leaf_forms`.
    """

    form: LeafForm


class FileTests(Struct, frozen=True):
    """Several tests: rows pass any of them, or all; without a test all rows pass all, and none any.

    Parameters
    ----------
    parts : tuple of (FlatColumn, ValueTest), or of FileTests
    is_any : bool
    """

    parts: tuple[FileTest, ...]
    is_any: bool


#: The test of a column of a file, or several.
FileTest = tuple[FlatColumn, ValueTest] | FileTests


class FileLayout(Struct, frozen=True):
    """The shared facts of files that are read together.

    Parameters
    ----------
    schema, metadata : bytes
        The result of `footer_key` for one of them, by which others are recognised.
    columns : tuple of FlatColumn
    tests : tuple of (FlatColumn, ValueTest), or of FileTests
        Only rows that pass all of them are read, see `parquet_pages.compiled_test`.
    leaves : tuple of NestedLeaf
        Of nested columns.
    """

    schema: bytes
    metadata: bytes
    columns: tuple[FlatColumn, ...]
    tests: tuple[FileTest, ...] = ()
    leaves: tuple[NestedLeaf, ...] = ()


class PickedRows(Struct, frozen=True):
    """Some of the rows of files.

    Parameters
    ----------
    mask : uint64, **shape (n,)**
        A bit for each row of the first file, then for those of the next one, least significant bits first.
    file_rows : int64, **shape (n_files,)**
        The rows of each file. A file that has others ends the run.
    first : int
        The bit of the first file's first row.
    is_known : bool
        Whether ``file_rows`` is certain because the files were read before: those without a picked row are not opened
        again.
    """

    mask: NDArray[np.uint64]
    file_rows: NDArray[np.int64]
    first: int = 0
    is_known: bool = False


class FilesRead(Struct, frozen=True):
    """The columns that were read of files.

    Parameters
    ----------
    layouts : int64, **shape (n_read,)**
        The number of each file's layout; none if the first file is to be read by PyArrow.
    rows : int64, **shape (n_read,)**
        Of each file, those that are picked and pass.
    columns : list of list of pyarrow.Array
        By layout, parallel to its ``columns``: the concatenated rows of its files. They own their memory.
    leaves : list of list of tuple
        The same of its ``leaves``, for `parquet_nested.assemble_files`.
    """

    layouts: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: list[list[pa.Array]]
    leaves: list[list[Any]]


def read_files(
    layouts: Sequence[FileLayout],
    paths: list[bytes],
    sizes: NDArray[np.int64],
    most_rows: int,
    most_bytes: int,
    whole_bytes: int,
    picked: PickedRows | None = None,
) -> FilesRead:
    """Read files from the first one on.

    Parameters
    ----------
    layouts : sequence of FileLayout
        The columns, and the footers that files must have one of.
    paths : list of bytes
        On a local disk.
    sizes : int64, **shape (n_files,)**, bytes
        As the log specifies; a file of another size ends the run.
    most_rows, most_bytes : int
        The run ends with the file that reaches either.
    whole_bytes : int
        Files up to this size are read whole; of others the column chunks that are needed.
    picked : PickedRows, optional
        The rows to read; None: all.
    """
    described = [
        (
            own.schema,
            own.metadata,
            [_row(c) for c in own.columns],
            [_test(test) for test in own.tests],
            [_leaf(leaf) for leaf in own.leaves],
        )
        for own in layouts
    ]
    runs = Runs(described, _FOREIGN, whole_bytes, kept_blocks())
    with lent_workspace() as space:
        rows_to_read = () if picked is None else (picked.mask, picked.file_rows, picked.first, picked.is_known)
        chosen, rows = runs.read(space.address, paths, sizes, most_rows, most_bytes, *rows_to_read)
    columns = []
    for number, own in enumerate(layouts):
        n = int(rows[chosen == number].sum())
        parts = [(c.type, *runs.column(number, i)) for i, c in enumerate(own.columns)]
        columns.append([pa.Array.from_buffers(t, n, [valid, *buffers], nulls) for t, valid, nulls, buffers in parts])
    leaves = [[runs.leaf(number, i) for i in range(len(own.leaves))] for number, own in enumerate(layouts)]
    return FilesRead(chosen, rows, columns, leaves)


def _row(column: FlatColumn) -> tuple[int, int, int, int, int]:
    return column.leaf, PHYSICAL_TYPES.index(column.physical), width_of(column.type), column.stored, column.most_level


def _test(test: FileTest) -> tuple[Any, ...]:
    if isinstance(test, FileTests):
        return test.is_any, [_test(part) for part in test.parts]
    column, values = test
    return (*_row(column), values)


def _leaf(leaf: NestedLeaf) -> tuple[int, int, int, int, int, int, int, tuple[tuple[int, int, int], ...]]:
    form = leaf.form
    return leaf.leaf, PHYSICAL_TYPES.index(leaf.physical), form.width, form.decimal_bytes, *form.levels, form.shared
