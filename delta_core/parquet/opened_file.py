"""Data files that are open: what their footers specify, without PyArrow if a file is plain or like one read before.

PyArrow takes most of the time of a short read to open a file: it parses all of the footer, and makes Arrow's schema of
it. Files of one table have the same schema, byte for byte, so that what was made of the first one serves for all.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.kernels.arrow_buffers import is_text
from delta_core.parquet import file_parts, page_parts
from delta_core.parquet._footer import Footer as ParsedFooter
from delta_core.parquet.footer import footer_bytes, parse_footer, read_footer
from delta_core.parquet.pages import CODECS, PHYSICAL_TYPES, ColumnChunk, Source
from delta_core.parquet.plain_schema import plain_schema
from delta_core.parquet.types import FilePlan, is_encoded_string, num_leaves
from delta_core.storage.open_files import open_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.records import FileRead
    from delta_core.parquet.legacy_calendar import Calendar
    from delta_core.parquet.nested_pages import NestedColumn
    from delta_core.parquet.reader import ParquetFile

__all__ = [
    "DECIMAL_BYTES",
    "ArrowFooter",
    "Bounds",
    "ChunkFacts",
    "DataFile",
    "FileFooter",
    "FlatForm",
    "Layout",
    "PLAIN_ENCODINGS",
    "ParquetLeaf",
    "chunk_of",
    "flat_chunk",
    "flat_form",
    "is_stored_as",
    "leaf_of",
    "stored_form",
]

_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
#: The same by their numbers, None for those that our own decoder does not support.
_SUPPORTED_CODECS = tuple(name if name in CODECS else None for name in _CODECS)
#: Encodings by their numbers in parquet.thrift: plain values, dictionary codes and levels, and further ones of values.
_ENCODINGS = {"PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "BIT_PACKED": 4, "RLE_DICTIONARY": 8}
_FURTHER = {"DELTA_BINARY_PACKED": 5, "DELTA_LENGTH_BYTE_ARRAY": 6, "DELTA_BYTE_ARRAY": 7, "BYTE_STREAM_SPLIT": 9}
PLAIN_ENCODINGS = frozenset(_ENCODINGS)
_KNOWN_ENCODINGS = PLAIN_ENCODINGS.union(_FURTHER)
#: The same as bits.
_PLAIN_BITS = sum(1 << number for number in _ENCODINGS.values())
_KNOWN_BITS = _PLAIN_BITS | sum(1 << number for number in _FURTHER.values())
#: How booleans and floats are stored.
_BITS, _FLOATS, _INSTANTS = 1, 2, 12
#: Bytes of fixed length that are copied like floats.
_COPIED_BYTES = frozenset({2, 4, 8, 16})
#: The most bytes of a decimal that Arrow keeps in 128 bits.
DECIMAL_BYTES = 16
_NUMBERS = {
    t: struct.Struct(f)
    for t, f in (("BOOLEAN", "<?"), ("INT32", "<i"), ("INT64", "<q"), ("FLOAT", "<f"), ("DOUBLE", "<d"))
}
_SPARK_VERSION = b"org.apache.spark.version"
#: Layouts of files that were read last, and the most bytes that one of them may have.
_MOST_LAYOUTS = 64
_MOST_KEY_BYTES = 1 << 20
#: Plans of a layout that are kept.
_MOST_PLANS = 4


class ChunkFacts(Struct, frozen=True):
    """The facts of a footer about one column chunk.

    Parameters
    ----------
    physical, codec : str
        By their names in parquet.thrift.
    is_plain : bool
        Whether no page has an encoding other than plain values and dictionaries.
    first : int
        Where its first page begins.
    bloom_filter : tuple of int, optional
        Where its Bloom filter begins, and how many bytes this has; -1: not known. PyArrow does not return it.
    page_index : tuple of int, optional
        Where its column index begins, how many bytes this has, and the same of its offset index; not of PyArrow either.
    is_known : bool
        Whether our own decoder reads flat columns in the encodings of all pages.
    """

    physical: str
    codec: str
    is_plain: bool
    num_values: int
    compressed: int
    uncompressed: int
    first: int
    bloom_filter: tuple[int, int] | None = None
    page_index: tuple[int, int, int, int] | None = None
    is_known: bool = True


class Bounds(Struct, frozen=True):
    """Statistics of a column chunk, values as Parquet stores them; None for what is not known."""

    null_count: int | None
    least: Any
    most: Any


class ParquetLeaf(Struct, frozen=True):
    """A Parquet column.

    Parameters
    ----------
    physical : str
    most_level : int
        The definition level of a value; 0: nothing is null.
    most_repetition : int
        In how many lists and maps it is.
    length : int
        The bytes of a value of FIXED_LEN_BYTE_ARRAY.
    """

    physical: str
    most_level: int
    most_repetition: int
    length: int = 0


class FlatForm(Struct, frozen=True):
    """A flat column that our own decoder reads, but for its chunks.

    Parameters
    ----------
    leaf : ParquetLeaf
    name : str
        The top-level column.
    type : pyarrow.DataType
        Which its values are decoded as; of dictionaries that of the strings.
    is_coded : bool
        Whether PyArrow reads it as a dictionary.
    stored : int
        See `ColumnChunk`.
    width : float or None
        The bytes of a value in memory; None if they differ from value to value.
    described : tuple
        Its number, and what the compiled parser of footers needs of it.
    """

    leaf: ParquetLeaf
    name: str
    type: pa.DataType
    is_coded: bool
    stored: int
    width: float | None
    described: tuple[int, int, pa.DataType, int, int]


class FileFooter(Protocol):
    """The facts of a footer that reading its file requires."""

    @property
    def group_rows(self) -> Sequence[int]:
        """The rows of each row group."""

    def chunk(self, group: int, leaf: int) -> ChunkFacts | None:
        """Return the facts of a column chunk; None if only a complete reader finds it."""

    def chunks(self, group: int, forms: Iterable[FlatForm]) -> list[ColumnChunk | None]:
        """Return where chunks of flat columns lie, None for those that PyArrow reads."""

    def plain_bytes(self, group: int, leaves: Iterable[int]) -> int:
        """Return the plain bytes of columns of a row group; those that only a complete reader finds count as 0."""

    def stored_bytes(self, group: int, leaves: Iterable[int]) -> int:
        """Return the compressed bytes of columns of a row group, as `plain_bytes`."""

    def null_leaves(self, group: int, leaves: Iterable[int]) -> list[int]:
        """Return the leaves with a chunk of nulls alone, by its null count and by how few bytes it takes."""

    def short_texts(self, leaves: Sequence[int], most_bytes: int) -> list[int]:
        """Return the leaves of strings, plain or coded, that take fewer stored bytes than this each."""

    def bounds(self, group: int, leaf: int) -> Bounds | None:
        """Return the statistics of a column chunk."""

    def null_counts(self, leaf: int) -> NDArray[np.int64] | None:
        """Return the null counts of a column's chunks, below zero if not known; None for all: see `bounds`."""

    def number_bounds(self, leaf: int, most: bool, is_float: bool) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """Return bounds of a column's chunks of numbers, float64 or int64, and which are known; None: see `bounds`."""


class ArrowFooter:
    """A footer that PyArrow parsed.

    Parameters
    ----------
    metadata : pyarrow.parquet.FileMetaData
    """

    def __init__(self, metadata: Any) -> None:
        self.metadata = metadata
        self.group_rows: Sequence[int] = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]

    def chunk(self, group: int, leaf: int) -> ChunkFacts | None:
        """See `FileFooter.chunk`."""
        chunk = self.metadata.row_group(group).column(leaf)
        first, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
        return ChunkFacts(
            chunk.physical_type,
            chunk.compression,
            PLAIN_ENCODINGS.issuperset(chunk.encodings),
            chunk.num_values,
            chunk.total_compressed_size,
            chunk.total_uncompressed_size,
            dictionary if dictionary is not None and 0 < dictionary < first else first,
            is_known=_KNOWN_ENCODINGS.issuperset(chunk.encodings),
        )

    def chunks(self, group: int, forms: Iterable[FlatForm]) -> list[ColumnChunk | None]:
        """See `FileFooter.chunks`."""
        rows = self.group_rows[group]
        return [flat_chunk(self.chunk(group, f.described[0]), rows, f) for f in forms]

    def plain_bytes(self, group: int, leaves: Iterable[int]) -> int:
        """See `FileFooter.plain_bytes`."""
        chunks = (self.chunk(group, leaf) for leaf in leaves)
        return sum(chunk.uncompressed for chunk in chunks if chunk is not None)

    def stored_bytes(self, group: int, leaves: Iterable[int]) -> int:
        """See `FileFooter.stored_bytes`."""
        chunks = (self.chunk(group, leaf) for leaf in leaves)
        return sum(chunk.compressed for chunk in chunks if chunk is not None)

    def null_leaves(self, group: int, leaves: Iterable[int]) -> list[int]:
        """See `FileFooter.null_leaves`."""
        rows = self.group_rows[group]
        facts = {leaf: self.chunk(group, leaf) for leaf in leaves}
        # the bounds are not parsed for nothing
        few = [leaf for leaf, chunk in facts.items() if chunk is not None and chunk.uncompressed <= rows // 64]
        return [leaf for leaf in few if (b := self.bounds(group, leaf)) is not None and b.null_count == rows]

    def short_texts(self, leaves: Sequence[int], most_bytes: int) -> list[int]:
        """See `FileFooter.short_texts`."""
        found = []
        for leaf in leaves:
            facts = [self.chunk(group, leaf) for group in range(len(self.group_rows))]
            first = facts[0] if facts else None
            if first is None or first.physical != "BYTE_ARRAY" or first.uncompressed >= most_bytes * first.num_values:
                continue
            if all(f is not None and f.is_plain for f in facts):
                found.append(leaf)
        return found

    def null_counts(self, leaf: int) -> NDArray[np.int64] | None:
        """See `FileFooter.null_counts`."""
        return None

    def number_bounds(self, leaf: int, most: bool, is_float: bool) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        """See `FileFooter.number_bounds`."""
        return None

    def bounds(self, group: int, leaf: int) -> Bounds | None:
        """See `FileFooter.bounds`."""
        found = self.metadata.row_group(group).column(leaf).statistics
        if found is None:
            return None
        nulls = found.null_count if found.has_null_count else None
        return Bounds(nulls, found.min_raw, found.max_raw) if found.has_min_max else Bounds(nulls, None, None)


class _OwnFooter:
    """A footer that our own parser has."""

    def __init__(self, parsed: ParsedFooter) -> None:
        self.parsed = parsed
        self.group_rows: Sequence[int] = parsed.group_rows
        self._chunks: dict[tuple[int, int], ChunkFacts | None] = {}

    def chunk(self, group: int, leaf: int) -> ChunkFacts | None:
        place = group, leaf
        if place not in self._chunks:
            self._chunks[place] = self._facts(self.parsed.chunk(group, leaf))
        return self._chunks[place]

    def _facts(self, found: tuple[int, ...] | None) -> ChunkFacts | None:
        if found is None:
            return None
        physical, codec, encodings, values, compressed, uncompressed, first, at, size = found[:9]
        return ChunkFacts(
            _name(PHYSICAL_TYPES, physical),
            _name(_CODECS, codec),
            not encodings & ~_PLAIN_BITS,
            values,
            compressed,
            uncompressed,
            first,
            (at, size) if at >= 0 else None,
            (found[9], found[10], found[11], found[12]) if min(found[9:]) >= 0 else None,
            not encodings & ~_KNOWN_BITS,
        )

    def chunks(self, group: int, forms: Iterable[FlatForm]) -> list[ColumnChunk | None]:
        described = [f.described for f in forms]
        return self.parsed.column_chunks(group, described, _SUPPORTED_CODECS, _KNOWN_BITS, ColumnChunk)

    def plain_bytes(self, group: int, leaves: Iterable[int]) -> int:
        return self.parsed.plain_bytes(group, leaves)

    def stored_bytes(self, group: int, leaves: Iterable[int]) -> int:
        return self.parsed.stored_bytes(group, leaves)

    def null_leaves(self, group: int, leaves: Iterable[int]) -> list[int]:
        return self.parsed.null_leaves(group, leaves)

    def short_texts(self, leaves: Sequence[int], most_bytes: int) -> list[int]:
        return self.parsed.short_texts(leaves, _PLAIN_BITS, most_bytes)

    def null_counts(self, leaf: int) -> NDArray[np.int64] | None:
        return np.frombuffer(self.parsed.null_counts(leaf), np.int64)

    def number_bounds(self, leaf: int, most: bool, is_float: bool) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
        found = self.parsed.bounds(leaf, most, is_float)
        if found is None:
            return None
        return np.frombuffer(found[0], np.float64 if is_float else np.int64), np.frombuffer(found[1], np.bool_)

    def bounds(self, group: int, leaf: int) -> Bounds | None:
        physical, nulls, least, most = self.parsed.statistics(group, leaf)
        name = _name(PHYSICAL_TYPES, physical)
        if name == "INT96":  # has no order
            return Bounds(nulls, None, None)
        return Bounds(nulls, _value(name, least), _value(name, most))


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "UNKNOWN"


def _value(physical: str, data: bytes | None) -> Any:
    number = _NUMBERS.get(physical)
    if number is None or data is None:
        return data
    return number.unpack(data)[0] if len(data) == number.size else None


class Layout(Struct, frozen=True, eq=False):
    """The shared facts of files of the same schema and the same key-value metadata.

    Parameters
    ----------
    key : tuple of bytes or None
        These two, as they are in the footer; None if our own parser does not support the footer.
    schema : pyarrow.Schema
        As PyArrow reads it, without metadata.
    leaves : sequence of ParquetLeaf
    flat : Mapping of int to int
        The numbers of the top-level columns that are no nested ones, by leaf.
    forms : Mapping of int to FlatForm
        Those of them that our own decoder may read, by leaf.
    nested : Mapping of int to (str, NestedColumn)
        The nested top-level columns that our own decoder may read, with their names, by leaf.
    calendar : Calendar or None
    """

    key: tuple[bytes, bytes] | None
    schema: pa.Schema
    leaves: Sequence[ParquetLeaf]
    flat: Mapping[int, int]
    forms: Mapping[int, FlatForm]
    nested: Mapping[int, tuple[str, NestedColumn]]
    calendar: Calendar | None
    _encoded: dict[tuple[str, ...], pa.Schema] = {}
    _plans: list[tuple[tuple[Any, ...], FilePlan]] = []

    def planned(self, read: FileRead, make: Callable[[], FilePlan]) -> FilePlan:
        """Return the plan of a read that was made for the same objects before, or make it.

        A snapshot has the same schemas for each read of all its columns, and to plan many columns takes longer than to
        decode few rows of them.
        """
        wanted = read.schema, read.columns, read.match, read.encoded, read.types
        for objects, plan in list(self._plans):
            if all(a is b for a, b in zip(objects, wanted, strict=True)):
                return plan
        found = make()
        self._plans.append((wanted, found))
        del self._plans[:-_MOST_PLANS]
        return found

    def encoded(self, names: tuple[str, ...]) -> pa.Schema:
        """Return the schema with top-level columns of strings as dictionaries."""
        found = self._encoded.get(names)
        if found is None:
            coded = pa.dictionary(pa.int32(), pa.string())
            chosen = set(names)
            fields = [f.with_type(coded) if f.name in chosen and f.type == pa.string() else f for f in self.schema]
            found = self._encoded[names] = pa.schema(fields)
        return found


_layouts: dict[tuple[bytes, bytes], Layout] = {}
#: A file's schema, its columns, and its key-value metadata.
_Schema = tuple[pa.Schema, list[ParquetLeaf], Mapping[bytes, bytes] | None]


class DataFile:
    """A data file that is open.

    Parameters
    ----------
    source : str or pyarrow.NativeFile
        A path on a local disk, or an open file.
    footer : FileFooter, optional
        Of this file, if it is known.
    """

    def __init__(self, source: str | pa.NativeFile, footer: FileFooter | None = None) -> None:
        self._source = source
        self._arrow: ParquetFile | None = None
        self._metadata: Any = None
        self.encoded: tuple[str, ...] = ()
        #: Of the open file, if it lies on a local disk.
        self.descriptor = open_regular(source) if isinstance(source, str) else None
        try:
            self.footer: FileFooter = self._footer() if footer is None else footer
            self.layout: Layout = self._layout()
        except BaseException:
            self.close()
            raise
        #: The schema that PyArrow reads: `layout.schema`, with the columns that `encode` chose as dictionaries.
        self.schema: pa.Schema = self.layout.schema

    @property
    def num_rows(self) -> int:
        """Of all row groups."""
        return sum(self.footer.group_rows)

    def plain_bytes(self, leaves: Iterable[int]) -> int:
        """Return the plain bytes of columns of all row groups, see `FileFooter.plain_bytes`."""
        chosen = list(leaves)
        return sum(self.footer.plain_bytes(group, chosen) for group in range(len(self.footer.group_rows)))

    @property
    def arrow(self) -> ParquetFile:
        """PyArrow's reader of the file."""
        if self._arrow is None:
            self._arrow = file_parts.ParquetFile(
                self._source,
                self._arrow_metadata(),
                dictionary=self.encoded,
                pre_buffer=self.descriptor is None,
                pages=self._pages(),
            )
        return self._arrow

    def _pages(self) -> Source | None:
        """Return what the headers of pages are read from; None if each would be one more call to a store."""
        source = self._source
        if not isinstance(source, str) and isinstance(source, file_parts.RangedSource | pa.BufferReader):
            return lambda offset, size: source.read_at(size, offset)
        return self.descriptor

    def source_of(self, ranges: Sequence[tuple[int, int]]) -> Source | None:
        """Return what our own decoder reads ranges from, each by its first byte and its length; None if it can't."""
        if self.descriptor is None and isinstance(self._source, file_parts.RangedSource):
            return self._source.read_ahead(ranges)
        return self.descriptor

    def encode(self, names: Sequence[str]) -> None:
        """Read top-level columns of strings as dictionaries."""
        self.encoded = tuple(names)
        self._arrow = None
        self.schema = self.layout.encoded(self.encoded)

    def close(self) -> None:
        """Close what is open."""
        if self._arrow is not None:
            self._arrow.close()
        elif not isinstance(self._source, str):
            self._source.close()
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _footer(self) -> FileFooter:
        data = footer_bytes(self._source if self.descriptor is None else self.descriptor)
        if data is not None:
            parsed = ParsedFooter(data)
            if parsed.is_known:
                return _OwnFooter(parsed)
        # not from the file once more: on a remote store that is one more call to wait for
        self._metadata = read_footer(self._source) if data is None else parse_footer(data)
        return ArrowFooter(self._metadata)

    def _arrow_metadata(self) -> Any:
        if self._metadata is None:
            footer = self.footer
            self._metadata = parse_footer(footer.parsed.data) if isinstance(footer, _OwnFooter) else footer.metadata  # type: ignore[attr-defined]  # there are these two
        return self._metadata

    def _layout(self) -> Layout:
        key = self.footer.parsed.key if isinstance(self.footer, _OwnFooter) else None
        known = None if key is None else _layouts.get(key)
        if known is not None:
            return known
        schema, leaves, pairs = self._own_schema() or self._arrow_schema()
        nested = _nested_columns(schema, leaves)
        flat = _flat_columns(schema)
        fields = {leaf: schema.field(at) for leaf, at in flat.items()}
        made = {leaf: flat_form(leaf, leaves[leaf], f.name, f.type) for leaf, f in fields.items()}
        forms = {leaf: form for leaf, form in made.items() if form is not None}
        found = Layout(key, schema, leaves, flat, forms, nested, _calendar(pairs, leaves))
        if key is not None and sum(map(len, key)) <= _MOST_KEY_BYTES:
            while len(_layouts) >= _MOST_LAYOUTS:
                _layouts.pop(next(iter(_layouts)), None)
            _layouts[key] = found
        return found

    def _own_schema(self) -> _Schema | None:
        """Return the schema without PyArrow; None for what only PyArrow reads."""
        if not isinstance(self.footer, _OwnFooter):
            return None
        parsed = self.footer.parsed
        elements, pairs = parsed.schema(), parsed.metadata()
        if elements is None or pairs is None:
            return None
        found = plain_schema(elements, pairs)
        if found is None or not parsed.has_chunks(len(found[1])):
            return None
        schema, columns = found
        return schema, [ParquetLeaf(PHYSICAL_TYPES[physical], level, 0) for physical, level in columns], dict(pairs)

    def _arrow_schema(self) -> _Schema:
        metadata = self._arrow_metadata()
        leaves = [leaf_of(metadata.schema.column(i)) for i in range(metadata.num_columns)]
        return self.arrow.schema_arrow.remove_metadata(), leaves, metadata.metadata


def leaf_of(column: Any) -> ParquetLeaf:
    """Return a column of PyArrow's Parquet schema."""
    length = column.length if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else 0
    return ParquetLeaf(column.physical_type, column.max_definition_level, column.max_repetition_level, length)


def stored_form(leaf: ParquetLeaf, t: pa.DataType) -> int | None:
    """Return how values of a flat column are stored, see `ColumnChunk`; None if PyArrow reads them."""
    types = pa.types
    if is_stored_as(leaf.physical, t):
        return _FLOATS if types.is_floating(t) else 0
    if leaf.physical == "BOOLEAN":
        return _BITS if types.is_boolean(t) else None
    if leaf.physical == "INT96":
        return _INSTANTS if types.is_timestamp(t) and t.unit == "us" else None
    if types.is_decimal128(t) and leaf.physical == "FIXED_LEN_BYTE_ARRAY":
        return -leaf.length if 1 <= leaf.length <= DECIMAL_BYTES else None
    if types.is_fixed_size_binary(t):
        return _FLOATS if leaf.physical == "FIXED_LEN_BYTE_ARRAY" and t.byte_width in _COPIED_BYTES else None
    if leaf.physical == "INT32":
        return 4 if types.is_decimal128(t) or types.is_int8(t) or types.is_int16(t) else None
    return 8 if leaf.physical == "INT64" and types.is_decimal128(t) else None


def is_stored_as(physical: str, t: pa.DataType) -> bool:
    """Whether the bytes that Parquet stores are those of the Arrow type."""
    types = pa.types
    if physical == "INT32":
        return bool(types.is_int32(t) or types.is_date32(t))
    if physical == "INT64":
        return bool(types.is_int64(t) or types.is_timestamp(t))
    if physical == "BYTE_ARRAY":
        return bool(types.is_string(t) or types.is_binary(t))
    return physical == "DOUBLE" and bool(types.is_float64(t)) or physical == "FLOAT" and bool(types.is_float32(t))


def flat_form(number: int, leaf: ParquetLeaf, name: str, t: pa.DataType) -> FlatForm | None:
    """Return how our own decoder reads a Parquet column as a top-level column; None if PyArrow reads it."""
    is_coded = is_encoded_string(t)
    t = t.value_type if is_coded else t
    stored = stored_form(leaf, t)
    if stored is None or leaf.most_repetition:
        return None
    width = None if is_text(t) else t.bit_width / 8
    described = number, PHYSICAL_TYPES.index(leaf.physical), t, leaf.most_level, stored
    return FlatForm(leaf, name, t, is_coded, stored, width, described)


def flat_chunk(facts: ChunkFacts | None, rows: int, form: FlatForm) -> ColumnChunk | None:
    """Return where a chunk of a flat column lies; None if PyArrow reads it."""
    if facts is None or facts.num_values != rows:
        return None
    return chunk_of(facts, rows, form.leaf, form.type, facts.is_known, form.stored)


def chunk_of(
    facts: ChunkFacts, rows: int, leaf: ParquetLeaf, type: pa.DataType, is_known: bool, stored: int = 0
) -> ColumnChunk | None:
    """Return where a column chunk lies; None if our own decoder does not support its codec or encodings."""
    if (
        facts.physical != leaf.physical
        or facts.codec not in CODECS
        or not is_known
        or min(rows, facts.compressed, facts.uncompressed) <= 0
    ):
        return None
    return ColumnChunk(
        type,
        facts.first,
        facts.compressed,
        facts.codec,
        leaf.most_level,
        rows,
        facts.uncompressed,
        facts.bloom_filter,
        facts.page_index,
        stored,
    )


def _flat_columns(schema: pa.Schema) -> dict[int, int]:
    found = {}
    leaf = 0
    for place, field in enumerate(schema):
        if not pa.types.is_nested(field.type):
            found[leaf] = place
        leaf += num_leaves(field.type)
    # a name that occurs twice reports no column
    return found if len(set(schema.names)) == len(schema.names) else {}


def _nested_columns(schema: pa.Schema, leaves: Sequence[ParquetLeaf]) -> dict[int, tuple[str, NestedColumn]]:
    found: dict[int, tuple[str, NestedColumn]] = {}
    first = 0
    for field in schema:
        column = page_parts.nested_column(field, first) if pa.types.is_nested(field.type) else None
        # where levels are not those of Arrow's fields, PyArrow decodes the column
        if column is not None and all(
            (leaves[n].most_level, leaves[n].most_repetition) == (level, repetition)
            for n, (_, level, repetition) in column.leaves.items()
        ):
            found.update(dict.fromkeys(column.leaves, (field.name, column)))
        first += num_leaves(field.type)
    return found if len(set(schema.names)) == len(schema.names) else {}


def _calendar(metadata: Mapping[bytes, bytes] | None, leaves: Sequence[ParquetLeaf]) -> Calendar | None:
    # Spark's alone, and nearly all of them are of the calendar of today
    if not metadata or _SPARK_VERSION not in metadata:
        return None
    if file_parts.read_calendar(metadata, frozenset((-1,))) is None:
        return None
    return file_parts.read_calendar(metadata, frozenset(i for i, leaf in enumerate(leaves) if leaf.physical == "INT96"))
