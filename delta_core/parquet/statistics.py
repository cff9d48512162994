"""Statistics of data files, from their footers, and from the rows where a footer has none.

Footers leave NaN out of bounds, drop bounds of more than 4 KB, and count nulls of a list's elements, not of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.records import ColumnStatistics
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import values_of
from delta_core.kernels.nested import reach
from delta_core.parquet.footer_check import shows_nan
from delta_core.schema.fields import Path

__all__ = ["Leaf", "Measured", "footer_statistics", "has_order", "leaves_of", "leaves_to_measure", "parquet_leaves"]

#: Parquet's writer keeps no bound that is longer.
FOOTER_BOUND_BYTES = 4096
#: NumPy looks at fewer rows in less time than PyArrow takes to call a function.
_FEW_ROWS = 1 << 14


class Leaf(Struct, frozen=True):
    """One leaf to measure.

    Parameters
    ----------
    places : tuple of int
        Child numbers from the schema down.
    column : int or None
        The Parquet column that holds it; None for a list, map or variant.
    has_order, is_floating, is_text, is_decimal : bool
        Of the type: they are needed for each column of many small files.
    """

    path: Path
    places: tuple[int, ...]
    type: pa.DataType
    column: int | None
    has_order: bool
    is_floating: bool
    is_text: bool
    is_decimal: bool

    @classmethod
    def of(cls, path: Path, places: tuple[int, ...], type: pa.DataType, column: int | None) -> Leaf:
        """Return a leaf of a type."""
        kinds = pa.types
        is_floating, is_text, is_decimal = kinds.is_floating(type), kinds.is_string(type), kinds.is_decimal(type)
        return cls(path, places, type, column, has_order(type), is_floating, is_text, is_decimal)

    def chunks(self, table: pa.Table) -> list[pa.Array]:
        """Return the leaf's values in a table."""
        chunks: list[pa.Array] = table.column(self.places[0]).chunks
        return chunks if len(self.places) == 1 else [reach(c, self.places[1:]) for c in chunks]


def parquet_leaves(schema: pa.Schema) -> Iterator[tuple[Path, pa.DataType, int]]:
    """Yield (path, type, column number) of every leaf column of a file; within lists and maps Parquet's names are used.

    Joined by dots, paths of different columns may be equal.
    """
    numbers = iter(range(1 << 31))

    def visit(t: pa.DataType, path: Path) -> Iterator[tuple[Path, pa.DataType, int]]:
        if isinstance(t, pa.BaseExtensionType):
            yield from visit(t.storage_type, path)
        elif pa.types.is_struct(t):
            for i in range(t.num_fields):
                yield from visit(t.field(i).type, (*path, t.field(i).name))
        elif pa.types.is_map(t):
            yield from visit(t.key_type, (*path, "key_value", "key"))
            yield from visit(t.item_type, (*path, "key_value", "value"))
        elif pa.types.is_nested(t):
            yield from visit(t.value_type, (*path, "list", "element"))
        else:
            yield path, t, next(numbers)

    for f in schema:
        yield from visit(f.type, (f.name,))


def leaves_of(schema: pa.Schema, paths: Sequence[Path]) -> tuple[Leaf, ...]:
    """Return how to measure the leaves of these paths; a path that the schema lacks is left out."""
    numbers = {path: number for path, _, number in parquet_leaves(schema)}
    found = []
    whole = pa.struct(list(schema))
    for path in paths:
        places, t = list[int](), whole
        for part in path:
            places.append(t.get_field_index(part) if pa.types.is_struct(t) else -1)
            if places[-1] < 0:
                break
            t = t.field(places[-1]).type
        if places[-1] < 0:
            continue
        found.append(Leaf.of(path, tuple(places), t, None if pa.types.is_nested(t) else numbers[path]))
    return tuple(found)


class Measured(Struct):
    """Statistics of the rows of one file that its footer does not contain."""

    leaves: tuple[Leaf, ...]
    null_counts: dict[Path, int] = {}
    with_nan: set[Path] = set()
    #: Bounds of row groups whose texts may be too long for a footer, by leaf and number of the group.
    texts: dict[tuple[Path, int], tuple[bytes, bytes]] = {}

    def add(self, group: int, table: pa.Table, values: Mapping[str, pa.ChunkedArray]) -> None:
        """Measure the rows of a row group; of some columns of strings the distinct values are known."""
        for leaf in self.leaves:
            if leaf.column is None:
                count = sum(c.null_count for c in leaf.chunks(table))
                self.null_counts[leaf.path] = self.null_counts.get(leaf.path, 0) + count
            elif leaf.is_floating:
                if leaf.path not in self.with_nan and any(_has_nan(c) for c in leaf.chunks(table)):
                    self.with_nan.add(leaf.path)
            elif leaf.is_text:
                known = values.get(leaf.path[0])
                chunks = leaf.chunks(table) if known is None else known.chunks
                if any(_is_long(c) for c in chunks):
                    self._keep_text(leaf, group, chunks)

    def _keep_text(self, leaf: Leaf, group: int, chunks: list[pa.Array]) -> None:
        found = pc.min_max(pa.chunked_array(chunks)).as_py()
        self.texts[leaf.path, group] = found["min"].encode(), found["max"].encode()


def leaves_to_measure(leaves: Sequence[Leaf], tables: Sequence[pa.Table]) -> tuple[Leaf, ...]:
    """Return the leaves that need `Measured` in any of many small files: footers report all of the others."""
    found = []
    for leaf in leaves:
        if leaf.column is None:
            found.append(leaf)
        elif leaf.is_floating or leaf.is_text:
            joined = pa.concat_arrays([chunk for table in tables for chunk in leaf.chunks(table)])
            if (_has_nan if leaf.is_floating else _is_long)(joined):
                found.append(leaf)
    return tuple(found)


def _has_nan(chunk: pa.Array) -> bool:
    if len(chunk) < _FEW_ROWS and not np.isnan(values_of(chunk)).any():
        return False
    # a sum is cheaper than querying each value; it is no number if one is none, or infinities cancel
    total = pc.sum(chunk).as_py()
    return total is not None and total != total and bool(pc.any(pc.is_nan(chunk)).as_py())


def _is_long(chunk: pa.Array) -> bool:
    """Whether a text is longer than a footer's bound may be."""
    offsets = chunk.buffers()[1]
    if offsets is None:
        return False
    ends = np.frombuffer(offsets, np.int32, len(chunk) + 1, 4 * chunk.offset)
    total = int(ends[-1]) - int(ends[0])
    return total > FOOTER_BOUND_BYTES and int(np.max(ends[1:] - ends[:-1])) > FOOTER_BOUND_BYTES


def footer_statistics(
    metadata: Any, leaves: Sequence[Leaf], measured: Measured | None, numbers: Sequence[int] | None = None
) -> tuple[ColumnStatistics, ...]:
    """Return the statistics of a file's leaves.

    Parameters
    ----------
    metadata : pyarrow.parquet.FileMetaData
        The file's footer.
    leaves : sequence of Leaf
        The columns, in the order of the result.
    measured : Measured or None
        None for a file whose rows were not seen: what a footer does not report is then unknown.
    numbers : sequence of int, optional
        The row groups that are the file, if the footer is that of several ones.
    """
    groups = [metadata.row_group(i) for i in (range(metadata.num_row_groups) if numbers is None else numbers)]
    has_nan = shows_nan(metadata.created_by or "")
    return tuple(_column(leaf, groups, measured, has_nan) for leaf in leaves)


def _column(leaf: Leaf, groups: Sequence[Any], measured: Measured | None, has_nan: bool) -> ColumnStatistics:
    if leaf.column is None:
        return ColumnStatistics(leaf.path, None if measured is None else measured.null_counts.get(leaf.path, 0))
    nulls: int | None = 0
    lows, highs, known = [], [], leaf.has_order
    if leaf.is_floating and known:
        known = has_nan if measured is None else leaf.path not in measured.with_nan
    for number, group in enumerate(groups):
        stored = group.column(leaf.column)
        found = stored.statistics
        if found is None or not found.has_null_count:
            nulls, known = None, False
            continue
        nulls = None if nulls is None else nulls + found.null_count
        if not known or found.null_count == stored.num_values:
            continue
        text = None if measured is None or not measured.texts else measured.texts.get((leaf.path, number))
        if text is not None:
            low, high = text
        elif found.has_min_max:
            low, high = found.min_raw, found.max_raw
        else:
            known = False
            continue
        lows.append(_ordered(low) if leaf.is_decimal else low)
        highs.append(_ordered(high) if leaf.is_decimal else high)
        known = known and highs[-1] == highs[-1]
    if not known or not lows:
        return ColumnStatistics(leaf.path, nulls)
    return ColumnStatistics(leaf.path, nulls, min(lows), max(highs))


def has_order(t: pa.DataType) -> bool:
    """Whether the table's log keeps bounds of the type, as Spark does: of Delta's types but booleans and bytes."""
    types = pa.types
    is_time = types.is_date32(t) or (types.is_timestamp(t) and t.unit == "us")
    is_number = types.is_signed_integer(t) or types.is_float32(t) or types.is_float64(t) or types.is_decimal128(t)
    return bool(is_number or is_time or types.is_string(t))


def _ordered(value: Any) -> Any:
    """Return a bound of a decimal as a number: big ones are stored as big-endian bytes."""
    return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value
