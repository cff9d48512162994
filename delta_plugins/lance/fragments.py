"""The fragments of a version as columns: no Python object a fragment or a file."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.api import CorruptTableError
from delta_core.kernels.arrow_buffers import distinct_numbers, number_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["AS_COLUMN", "EXTERNAL", "INLINE", "NOWHERE", "Fragments", "Layout", "Sequences", "fragments_of"]

#: Where a sequence of row ids, or of versions, is.
NOWHERE, INLINE, EXTERNAL, AS_COLUMN = range(4)
#: A row's address has 32 bits for its fragment and 32 bits for its position.
MOST_ROWS = 1 << 32
#: Files of major version 0 and a lower minor version are of version 0.1.
_LEAST_SIZED = 3


class Layout(NamedTuple):
    """The contents of a data file.

    Parameters
    ----------
    fields : tuple of int
        Field ids; negative ones are columns without a field (-2), or of row lineage (-3, -4, -5).
    columns : tuple of int
        The index of each field's column, -1 if it has none; empty for files of version 0.1.
    major, minor : int
        The version of the file, as the manifest spells it.
    """

    fields: tuple[int, ...]
    columns: tuple[int, ...]
    major: int
    minor: int


class Sequences(Struct, frozen=True):
    """Where the row ids of fragments are, or the versions of their rows.

    Parameters
    ----------
    place : uint8[n]
        `NOWHERE`, `INLINE`, `EXTERNAL` or `AS_COLUMN`.
    start, size : int64[n]
        The bytes of the manifest that are the sequence, or the path of its file.
    file_start, file_size : uint64[n]
        The bytes of the file.
    """

    place: NDArray[np.uint8]
    start: NDArray[np.int64]
    size: NDArray[np.int64]
    file_start: NDArray[np.uint64]
    file_size: NDArray[np.uint64]


class Fragments:
    """The fragments of one version, in the order of the manifest.

    Attributes
    ----------
    id : int64[n]
        Unique.
    physical_rows : int64[n]
        Rows in the files, deleted ones too; -1 = the manifest does not specify it.
    start, stop : int64[n]
        The bytes of the manifest's message that are the field of each fragment.
    first_file : int64[n + 1]
        The number of each fragment's first file; the last one is the number of files.
    shape : int32[n]
        An index of ``shapes``.
    deletion_kind : int32[n]
        -1 = no rows are deleted; 0 = an Arrow file specifies them, 1 = a bitmap.
    deletion_version, deletion_id : uint64[n]
        Parts of the name of the deletion file.
    num_deleted : int64[n]
        -1 = not known.
    deletion_base : int64[n]
        The base path of the deletion file, -1 = the dataset's own.
    row_ids, last_updated, created : Sequences
        Of the rows of each fragment.
    paths : pyarrow.StringArray
        The path of each file, relative to the folder ``data`` of its base path.
    layout : int32[n_files]
        An index of ``layouts``.
    file_size : int64[n_files]
        Bytes, 0 = not known. Sizes of files of version 0.1 do not count: some writers stored wrong ones.
    file_base : int64[n_files]
        The base path of each file, -1 = the dataset's own.
    layouts : list of Layout
        Distinct ones.
    shapes : list of tuple of int
        The layouts of the files of a fragment, in their order; distinct ones.
    """

    def __init__(self, columns: dict[str, Any], path: str) -> None:
        self.id: NDArray[np.int64] = _small(columns["id"], "id", MOST_ROWS - 1, path)
        rows = _small(columns["physical_rows"], "number of rows", MOST_ROWS, path)
        self.physical_rows: NDArray[np.int64] = np.where(rows == 0, -1, rows)
        self.start: NDArray[np.int64] = columns["start"]
        self.stop: NDArray[np.int64] = columns["stop"]
        self.first_file: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), columns["file_ends"]])
        self.shape: NDArray[np.int32] = columns["shape"]
        self.deletion_kind: NDArray[np.int32] = columns["deletion_kind"]
        self.deletion_version: NDArray[np.uint64] = columns["deletion_version"]
        self.deletion_id: NDArray[np.uint64] = columns["deletion_id"]
        deleted = _small(columns["num_deleted"], "number of deleted rows", MOST_ROWS, path)
        self.num_deleted: NDArray[np.int64] = np.where((self.deletion_kind >= 0) & (deleted == 0), -1, deleted)
        self.num_deleted[self.deletion_kind < 0] = 0
        self.deletion_base: NDArray[np.int64] = columns["deletion_base"]
        self.row_ids, self.last_updated, self.created = (
            _sequences(columns, name) for name in ("row_ids", "last_updated", "created")
        )
        self.paths = _paths(columns, path)
        self.layout: NDArray[np.int32] = columns["layout"]
        self.file_size: NDArray[np.int64] = _small(columns["file_size"], "size of a file", (1 << 63) - 1, path)
        self.file_base: NDArray[np.int64] = columns["file_base"]
        self.layouts = _layouts(columns)
        is_early = np.array([x.major == 0 and x.minor < _LEAST_SIZED for x in self.layouts], np.bool_)
        if is_early.any():
            self.file_size[is_early[self.layout]] = 0
        self.shapes = _lists(columns["shape_ends"], columns["shape_layouts"])
        self._check(columns, path)

    def _check(self, columns: dict[str, Any], path: str) -> None:
        if len(distinct_numbers(self.id)) != len(self.id):
            ordered = np.sort(self.id)
            twice = int(ordered[:-1][ordered[1:] == ordered[:-1]][0])
            raise _damaged(path, f"fragment {twice} is listed twice")
        too_many = (self.physical_rows >= 0) & (self.num_deleted > self.physical_rows)
        if too_many.any():
            i = int(np.flatnonzero(too_many)[0])
            raise _damaged(
                path,
                f"fragment {self.id[i]} has {self.num_deleted[i]} deleted rows of {self.physical_rows[i]} rows in all",
            )
        if columns["has_overlays"].any():
            i = int(np.flatnonzero(columns["has_overlays"])[0])
            raise _damaged(path, f"fragment {self.id[i]} has data overlay files, but feature flag 64 is not set")

    def __len__(self) -> int:
        return len(self.id)

    @property
    def num_files(self) -> int:
        """Number of data files."""
        return len(self.layout)

    def stored_bytes(self) -> NDArray[np.int64]:
        """Return the bytes of the files of each fragment, -1 if one is not known; int64[n]."""
        unknown = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.file_size <= 0)])
        until = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.file_size)])
        first, last = self.first_file[:-1], self.first_file[1:]
        return np.where(unknown[last] > unknown[first], -1, until[last] - until[first])

    @cached_property
    def index_of_id(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ids in ascending order, and the index of the fragment of each one."""
        order = np.argsort(self.id, kind="stable")
        return self.id[order], order

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the fragment of each id, -1 if there is none."""
        ordered, order = self.index_of_id
        if not len(ordered):
            return np.full(len(ids), -1, np.int64)
        at = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
        return np.where(ordered[at] == ids, order[at], -1)

    def table(self) -> pa.Table:
        """Return the fragments as a table, one row each: numbers are null if the manifest does not specify them."""
        lists = pa.ListArray.from_arrays(number_array(self.first_file.astype(np.int32)), self._files())
        columns = {
            "id": number_array(self.id),
            "physical_rows": number_array(self.physical_rows, valid=self.physical_rows >= 0),
            "num_deleted_rows": number_array(self.num_deleted, valid=self.num_deleted >= 0),
            "files": lists,
        }
        return pa.table(columns)

    def _files(self) -> pa.StructArray:
        layouts = self.layout
        major = np.array([x.major for x in self.layouts], np.int32)[layouts] if len(layouts) else np.zeros(0, np.int32)
        minor = np.array([x.minor for x in self.layouts], np.int32)[layouts] if len(layouts) else np.zeros(0, np.int32)
        columns = {
            "path": self.paths,
            "fields": pa.ListArray.from_arrays(*_taken([x.fields for x in self.layouts], layouts)),
            "column_indices": pa.ListArray.from_arrays(*_taken([x.columns for x in self.layouts], layouts)),
            "major_version": number_array(major),
            "minor_version": number_array(minor),
            "size_bytes": number_array(self.file_size, valid=self.file_size > 0),
            "base_id": number_array(self.file_base, valid=self.file_base >= 0),
        }
        return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _taken(lists: list[tuple[int, ...]], indices: NDArray[np.int32]) -> tuple[pa.Array, pa.Array]:
    """Return the offsets and the values of some of few lists."""
    sizes = np.array([len(x) for x in lists], np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    values = np.array([v for x in lists for v in x], np.int32)
    counts = sizes[indices] if len(indices) else np.zeros(0, np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    places = np.arange(ends[-1]) - np.repeat(ends[:-1], counts) + np.repeat(starts[:-1][indices], counts)
    return number_array(ends.astype(np.int32)), number_array(values[places] if len(places) else np.zeros(0, np.int32))


def _damaged(path: str, why: str) -> CorruptTableError:
    return CorruptTableError(f"Manifest {path} is damaged: {why}. Restore the file from a copy.", path=path)


def _small(values: NDArray[np.uint64], what: str, most: int, path: str) -> NDArray[np.int64]:
    if len(values) and int(values.max()) > most:
        raise _damaged(path, f"the {what} is {int(values.max())}, expected at most {most}")
    return values.astype(np.int64)


def _sequences(columns: dict[str, Any], name: str) -> Sequences:
    return Sequences(*(columns[f"{name}_{part}"] for part in Sequences.__struct_fields__))


def _paths(columns: dict[str, Any], path: str) -> pa.StringArray:
    ends = columns["path_ends"]
    if len(columns["paths"]) >= 1 << 31:
        raise _damaged(path, "the paths of its data files have more than 2 GB")
    offsets = np.concatenate([np.zeros(1, np.int32), ends.astype(np.int32)])
    found = pa.Array.from_buffers(
        pa.string(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(columns["paths"])], 0
    )
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise _damaged(path, "the path of a data file is no UTF-8") from None
    return found


def _lists(ends: NDArray[np.int64], values: NDArray[np.int32]) -> list[tuple[int, ...]]:
    numbers, bounds = values.tolist(), [0, *ends.tolist()]
    return [tuple(numbers[a:b]) for a, b in pairwise(bounds)]


def _layouts(columns: dict[str, Any]) -> list[Layout]:
    fields = _lists(columns["layout_field_ends"], columns["layout_fields"])
    indices = _lists(columns["layout_column_ends"], columns["layout_columns"])
    versions = zip(columns["layout_major"].tolist(), columns["layout_minor"].tolist(), strict=True)
    return [Layout(f, i, *v) for f, i, v in zip(fields, indices, versions, strict=True)]


def fragments_of(columns: dict[str, Any], path: str) -> Fragments:
    """Return the fragments that a manifest lists.

    Parameters
    ----------
    columns : dict
        As ``_metadata.split_manifest`` returns them.
    path : str
        The manifest, for errors.

    Raises
    ------
    CorruptTableError
        For an id that occurs twice or does not fit 32 bits, more deleted rows than rows, a path that is no UTF-8, or
        overlay files without their flag.
    """
    return Fragments(columns, path)
