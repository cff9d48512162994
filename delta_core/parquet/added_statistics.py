"""Statistics of column chunks that are put into a footer which PyArrow wrote without them.

PyArrow's writer finds the bounds of dictionary-encoded strings by looking for the values that each page uses, which
takes longer than to encode them. Here the values are known: those of the dictionary. Protocol: Parquet's FileMetaData,
in Thrift's compact encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from delta_core.errors import InternalError
from delta_core.kernels import compute as pc
from delta_core.parquet.statistics import FOOTER_BOUND_BYTES

__all__ = ["ChunkStatistics", "text_statistics", "with_statistics"]

_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 11, 12
#: Fields: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data, ColumnMetaData.statistics.
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS = 4, 1, 3, 12


class ChunkStatistics(NamedTuple):
    """Statistics of a column chunk; ``low`` and ``high`` are None if there is no value, or a very long one."""

    null_count: int
    low: bytes | None
    high: bytes | None


def text_statistics(null_count: int, values: pa.ChunkedArray) -> ChunkStatistics:
    """Return the statistics of a column chunk from its values, which may hold each of them once."""
    # strings that are no UTF-8 can't be Python's
    chunks = [chunk.view(pa.binary()) for chunk in values.chunks]
    found = pc.min_max(pa.chunked_array(chunks, pa.binary())).as_py()
    low, high = found["min"], found["max"]
    if low is None or max(len(low), len(high)) > FOOTER_BOUND_BYTES:
        return ChunkStatistics(null_count, None, None)
    return ChunkStatistics(null_count, low, high)


def with_statistics(footer: bytes, added: Mapping[tuple[int, int], ChunkStatistics]) -> bytes:
    """Return a footer with the statistics of some column chunks.

    Parameters
    ----------
    footer : bytes
        FileMetaData, as PyArrow has just written it.
    added : Mapping of (row group, column) to ChunkStatistics
        Column chunks; statistics that one has in the footer are replaced.
    """
    return _Footer(footer, added).edited()


class _Footer:
    """A footer that is read once, front to back; what is copied to the result lies between two insertions."""

    def __init__(self, footer: bytes, added: Mapping[tuple[int, int], ChunkStatistics]) -> None:
        self._data = footer
        self._added = added
        self._at = 0
        self._copied = 0
        self._parts: list[bytes] = []
        self._num_added = 0

    def edited(self) -> bytes:
        self._fields({_ROW_GROUPS: lambda: self._structs(self._row_group)})
        self._parts.append(self._data[self._copied :])
        if self._num_added != len(self._added):
            raise InternalError(f"Found {self._num_added} of {len(self._added)} column chunks in a footer.")
        return b"".join(self._parts)

    def _row_group(self, group: int) -> None:
        self._fields({_COLUMNS: lambda: self._structs(lambda column: self._chunk(group, column))})

    def _chunk(self, group: int, column: int) -> None:
        found = self._added.get((group, column))
        self._fields({} if found is None else {_META_DATA: lambda: self._meta_data(found)})

    def _meta_data(self, found: ChunkStatistics) -> None:
        """Add a field between the last one below its number and the first one above it."""
        last = 0
        while True:
            before = self._at
            kind, number = self._header(last)
            if kind == 0 or number >= _STATISTICS:
                break
            self._skip(kind)
            last = number
        self._parts += [self._data[self._copied : before], _header(_STATISTICS, last, _STRUCT), _statistics(found)]
        self._num_added += 1
        if kind and number == _STATISTICS:
            # these have the same bounds, or none
            self._skip(kind)
            self._copied = self._at
            self._fields({}, number)
        elif kind:
            self._parts.append(_header(number, _STATISTICS, kind))
            self._copied = self._at
            self._skip(kind)
            self._fields({}, number)
        else:
            self._copied = before

    # --- Thrift's compact encoding ---

    def _fields(self, readers: Mapping[int, Callable[[], None]], last: int = 0) -> None:
        while True:
            kind, last = self._header(last)
            if kind == 0:
                return
            reader = readers.get(last)
            if reader is None:
                self._skip(kind)
            else:
                reader()

    def _header(self, last: int) -> tuple[int, int]:
        """Read a field's type and number; type 0 ends the struct."""
        byte = self._data[self._at]
        self._at += 1
        if byte == 0:
            return 0, last
        delta = byte >> 4
        if delta:
            return byte & 15, last + delta
        number = self._varint()
        return byte & 15, number >> 1 ^ -(number & 1)

    def _varint(self) -> int:
        data, at = self._data, self._at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                self._at = at
                return value
            shift += 7

    def _items(self) -> tuple[int, int]:
        byte = self._data[self._at]
        self._at += 1
        return byte & 15, byte >> 4 if byte >> 4 != 15 else self._varint()

    def _structs(self, read: Callable[[int], None]) -> None:
        _, count = self._items()
        for number in range(count):
            read(number)

    def _skip(self, kind: int) -> None:
        """Pass the value of a field."""
        if _BYTE < kind <= _I64:
            self._varint()
        elif kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            self._fields({})
        elif kind in (_LIST, _SET):
            item, count = self._items()
            for _ in range(count):
                self._skip_item(item)
        elif kind == _MAP:
            count = self._varint()
            if count:
                kinds = self._data[self._at]
                self._at += 1
                for _ in range(count):
                    self._skip_item(kinds >> 4)
                    self._skip_item(kinds & 15)
        else:
            self._at += {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}[kind]

    def _skip_item(self, kind: int) -> None:
        """Pass an item of a list, set or map: there truth values have a byte."""
        if kind in (_TRUE, _FALSE):
            self._at += 1
        else:
            self._skip(kind)


def _header(number: int, last: int, kind: int) -> bytes:
    delta = number - last
    return bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + _unsigned(2 * number)


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _statistics(found: ChunkStatistics) -> bytes:
    """Return null_count (3), max_value (5), min_value (6), and that both are exact (7, 8)."""
    out = _header(3, 0, _I64) + _unsigned(2 * found.null_count)
    if found.low is not None and found.high is not None:
        for number, value in ((5, found.high), (6, found.low)):
            out += _header(number, 3 if number == 5 else 5, _BINARY) + _unsigned(len(value)) + value
        out += _header(7, 6, _TRUE) + _header(8, 7, _TRUE)
    return out + b"\0"
