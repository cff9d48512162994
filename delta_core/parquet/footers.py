"""Footers of many files: those of a local disk by our own reader, a window of files in one call; others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.records import ColumnsStatistics, FilesStatistics, WrittenFile
from delta_core.kernels.arrow_buffers import bool_array, number_array
from delta_core.parquet.footer import open_footer
from delta_core.parquet.footer_check import shows_nan
from delta_core.parquet.local_footers import BOUND_KINDS, Footers, read_footers
from delta_core.parquet.pages import PHYSICAL_TYPES
from delta_core.parquet.statistics import Leaf, has_order, leaves_of
from delta_core.parquet.types import with_instants
from delta_core.runtime.threads import ThreadPool, num_cores
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import Storage

__all__ = ["ArrowFooters", "read_schema"]

#: Files whose footers are read in one call.
_WINDOW = 1024
#: Footers that are kept; those beyond are read again for their statistics.
_MOST_BYTES = 256 << 20
_KINDS = {"INT32": "int32", "INT64": "int64", "FLOAT": "float", "DOUBLE": "double"}
#: Bytes that hold every decimal.
_DECIMAL_BYTES = 17


class _Layout(Struct, frozen=True):
    """The shared facts of files of one schema, metadata and writer."""

    number: int
    first: int
    schema: pa.Schema
    physical: tuple[str, ...]
    shows_nan: bool

    @property
    def converted(self) -> pa.Schema:
        """The schema, INT96 as instants."""
        return _with_instants(self.schema, self.physical)


def read_schema(file: Any) -> pa.Schema:
    """Return the Arrow schema of an open Parquet file; INT96 counts as instants in UTC."""
    return _with_instants(file.schema_arrow, _physical_types(file))


def _physical_types(file: Any) -> tuple[str, ...]:
    stored = file.metadata.schema
    return tuple(stored.column(i).physical_type for i in range(len(stored)))


def _with_instants(schema: pa.Schema, physical: Sequence[str]) -> pa.Schema:
    return with_instants(schema, [p == "INT96" for p in physical]) if "INT96" in physical else schema


class ArrowFooters:
    """`FootersRead` of the seam.

    Parameters
    ----------
    storage : Storage
    paths : sequence of str
    schema_of : function(str) -> pyarrow.Schema
        Reads the schema of one file; raises an error that names it.
    describe : function(str, pyarrow.Schema, sequence of Path) -> WrittenFile
        Reads the statistics of one file.
    check : function(str, pyarrow.Schema, pyarrow.Schema)
        Raises if a file of the first schema can't be read in the second.
    """

    def __init__(
        self,
        storage: Storage,
        paths: Sequence[str],
        schema_of: Callable[[str], pa.Schema],
        describe: Callable[[str, pa.Schema, Sequence[Path]], WrittenFile],
        check: Callable[[str, pa.Schema, pa.Schema], None],
    ) -> None:
        self._storage, self._paths = storage, paths
        self._schema_of, self._describe, self._check = schema_of, describe, check
        self._kept: dict[int, Footers] = {}
        self._bytes = 0

    def schemas(self) -> list[tuple[pa.Schema, int]]:
        """See `FootersRead.schemas`."""
        found: dict[pa.Schema, int] = {}
        for schema, numbers in self.file_schemas():
            number = int(numbers[0])
            found[schema] = min(number, found.get(schema, number))
        return sorted(found.items(), key=lambda item: item[1])

    def file_schemas(self) -> Iterator[tuple[pa.Schema, NDArray[np.int64]]]:
        """See `FootersRead.file_schemas`."""
        for start, footers in self._windows():
            if footers is not None:
                layouts = footers.files()[0]
                for layout in self._layouts(footers, start):
                    yield layout.converted, np.flatnonzero(layouts == layout.number) + start
            rest = self._left(footers, start)
            for schema, number in zip(self._each(self._schema_of, rest), rest, strict=True):
                yield schema, np.array([number], np.int64)

    def statistics(self, schema: pa.Schema, columns: Sequence[Path]) -> Iterator[FilesStatistics]:
        """See `FootersRead.statistics`."""
        wanted = {leaf.path: leaf.type for leaf in leaves_of(schema, columns)}
        for start, footers in self._windows():
            if footers is not None:
                layouts, rows = footers.files()
                for layout in self._layouts(footers, start):
                    self._check(self._paths[start + layout.first], layout.schema, schema)
                    leaves = [f for f in leaves_of(layout.schema, columns) if f.type.equals(wanted.get(f.path))]
                    mine = np.flatnonzero(layouts == layout.number)
                    found = tuple(_column(footers, layout, f) for f in leaves if f.column is not None)
                    yield FilesStatistics(mine + start, rows[mine], found)
            rest = self._left(footers, start)
            for number, file in zip(rest, self._each(lambda p: self._describe(p, schema, columns), rest), strict=True):
                yield _of_one(number, file, wanted)

    def _windows(self) -> Iterator[tuple[int, Footers | None]]:
        """Yield windows of footers, each with the number of its first file; None if they are not on a local disk."""
        starts = range(0, len(self._paths), _WINDOW)
        cores = num_cores()
        if len(starts) <= 1:
            yield from ((start, self._window(start)) for start in starts)
            return
        with ThreadPool(cores, "delta-footers") as pool:
            for first in range(0, len(starts), cores):
                some = starts[first : first + cores]
                yield from zip(some, pool.map(self._window, some), strict=True)

    def _window(self, start: int) -> Footers | None:
        kept = self._kept.get(start)
        if kept is not None:
            return kept
        local = self._storage.local_paths(self._paths[start : start + _WINDOW])
        places = [path for path in local if path is not None]
        if len(places) < len(local):
            return None
        footers = read_footers(places)
        if self._bytes + footers.nbytes <= _MOST_BYTES:
            self._bytes += footers.nbytes
            self._kept[start] = footers
        return footers

    def _layouts(self, footers: Footers | None, start: int) -> Iterator[_Layout]:
        for number, first in enumerate([] if footers is None else footers.first.tolist()):
            assert footers is not None
            data, writer = footers.footer(first)
            try:
                file = open_footer(data)
                schema = file.schema_arrow
            except (pa.ArrowException, OSError, UnicodeDecodeError):
                # its own reader names the file, and what is wrong
                self._schema_of(self._paths[start + first])
                raise
            yield _Layout(number, first, schema, _physical_types(file), shows_nan(writer.decode(errors="replace")))

    def _left(self, footers: Footers | None, start: int) -> list[int]:
        """Return the numbers of the files that are left to a complete reader."""
        if footers is None:
            return list(range(start, min(start + _WINDOW, len(self._paths))))
        return (np.flatnonzero(footers.files()[0] < 0) + start).tolist()

    def _each(self, call: Callable[[str], Any], numbers: Sequence[int]) -> list[Any]:
        if not numbers:
            return []
        with ThreadPool(32, "delta-footers") as pool:
            return pool.map(call, [self._paths[i] for i in numbers])


def _column(footers: Footers, layout: _Layout, leaf: Leaf) -> ColumnsStatistics:
    assert leaf.column is not None
    physical = layout.physical[leaf.column]
    kind = _KINDS.get(physical, "signed bytes" if pa.types.is_decimal(leaf.type) else "bytes")
    is_known = has_order(leaf.type) and (layout.shows_nan or not pa.types.is_floating(leaf.type))
    number = PHYSICAL_TYPES.index(physical)
    nulls, known, low, high = footers.column(layout.number, leaf.column, number, BOUND_KINDS[kind], is_known)
    counts = number_array(nulls, valid=nulls >= 0)
    return ColumnsStatistics(leaf.path, counts, *(_bounds(values, known.astype(bool)) for values in (low, high)))


def _bounds(values: Any, known: NDArray[np.bool_]) -> pa.Array:
    if not isinstance(values, tuple):
        return (bool_array if values.dtype == np.bool_ else number_array)(values, valid=known)
    ends, data = values
    starts = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int64)
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends), [None, pa.py_buffer(starts), pa.py_buffer(data)]
    )
    return whole if known.all() else _masked(whole, known)


def _masked(values: pa.Array, known: NDArray[np.bool_]) -> pa.Array:
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(values.type, len(values), [bits, *values.buffers()[1:]])


def _of_one(number: int, file: WrittenFile, types: dict[Path, pa.DataType]) -> FilesStatistics:
    columns = []
    for found in file.statistics:
        bounds = [_stored(found.low, types[found.path]), _stored(found.high, types[found.path])]
        counts = pa.array([found.null_count], pa.int64())
        columns.append(ColumnsStatistics(found.path, counts, *(pa.array([b]) for b in bounds)))
    return FilesStatistics(np.array([number], np.int64), np.array([file.num_rows], np.int64), tuple(columns))


def _stored(value: Any, t: pa.DataType) -> Any:
    if value is not None and pa.types.is_decimal(t):
        return value.to_bytes(_DECIMAL_BYTES, "big", signed=True)
    return value
