"""Many small local files of versions 2.1 and 2.2 at once: no Python object a file, a page or a column of a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import DataFileError
from delta_plugins.lance import _pages
from delta_plugins.lance.files.assembly import AssemblyError, assemble
from delta_plugins.lance.files.layouts import LayoutError
from delta_plugins.lance.files.leaves import Leaf, leaves_of, value_layout
from delta_plugins.lance.files.structural import LeafRows, check_texts, common_layout, page_of
from delta_plugins.lance.schema import LanceField

__all__ = ["MOST_SMALL_BYTES", "SmallFilesReader"]

#: A file of more bytes is not small.
MOST_SMALL_BYTES = 64 << 10
_VERSIONS = ((2, 1), (2, 2))


class SmallFilesReader:
    """Reads all rows of fields of small local files that have the same columns.

    Parameters
    ----------
    fields : sequence of LanceField
        Top-level fields.
    column_of : Mapping of int to int
        The column of each field, by the field's id; a field without one is null.
    version : tuple of int
        The major and minor version of the files.
    """

    def __init__(self, fields: Sequence[LanceField], column_of: Mapping[int, int], version: tuple[int, int]) -> None:
        self._fields = fields
        self._version = version
        self._leaves = [
            (leaf, column_of[leaf.field.id]) for f in fields for leaf in leaves_of(f) if leaf.field.id in column_of
        ]
        #: Whether files of this version, with these fields, can be read.
        self.is_usable = version in _VERSIONS and not any(value_layout(leaf.type).children for leaf, _ in self._leaves)

    def read(
        self, paths: Sequence[str], sizes: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> list[pa.Array[Any]] | None:
        """Return the rows of files, one after the other.

        Parameters
        ----------
        paths : sequence of str
            Absolute.
        sizes, rows : int64, **shape (n,)**
            The bytes and the rows of each file, as the manifest specifies.

        Returns
        -------
        list of pyarrow.Array, or None
            One for each field. None if a file is missing, damaged or unusual: read one by one, it is read or reported.
        """
        names = os.fsencode("".join(path + "\0" for path in paths))
        ends = np.flatnonzero(np.frombuffer(names, np.uint8) == 0) + 1
        if len(ends) != len(paths):
            return None
        columns = [_column(leaf) for leaf, _ in self._leaves]
        listed = [(c, i, leaf.multiple) for c, (leaf, i) in zip(columns, self._leaves, strict=True)]
        files = _pages.SmallFiles(*self._version, listed)
        if not files.read(names, ends.astype(np.int64), sizes, rows):
            return None
        try:
            for i, (number, data) in enumerate(files.layouts()):
                self._set_layout(files, i, data, self._leaves[number][0])
            files.append()
            leaves = [_leaf_rows(c, leaf) for c, (leaf, _) in zip(columns, self._leaves, strict=True)]
            by_id, total = {x.leaf.field.id: x for x in leaves}, int(rows.sum())
            return [assemble(f, by_id, total) for f in self._fields]
        except (_pages.DamagedPageError, _pages.TooLongError, LayoutError, AssemblyError, DataFileError):
            return None

    def _set_layout(self, files: _pages.SmallFiles, i: int, data: bytes, leaf: Leaf) -> None:
        layout = common_layout(data, "small files")
        message = layout.message
        if layout.fields or layout.packed_bits is not None:
            raise LayoutError("it is of a packed struct")
        numbers = [message.get(n) or 0 for n in ("repetition_index_depth", "num_rep_values", "num_def_values")]
        files.set_layout(i, page_of(layout, 0, 0), message.get("inline_value"), *numbers)


def _column(leaf: Leaf) -> _pages.Column:
    layout = value_layout(leaf.type)
    return _pages.Column(leaf.layers, layout.bits, layout.is_wide, layout.list_sizes, [])


def _leaf_rows(column: _pages.Column, leaf: Leaf) -> LeafRows:
    layers, values, children = column.finish()
    check_texts(leaf.type, values, children)
    return LeafRows(leaf, layers, values, children, value_layout(leaf.type))
