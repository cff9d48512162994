"""Column chunks of Parquet files to Arrow arrays: numbers, strings and bytes that are not inside of lists or structs.

This reader decodes the columns of nearly every data file and checkpoint in half of PyArrow's time, mainly
because PyArrow's Snappy is slower. It decodes strings page by page, while they are in a core's cache. Unsupported or
damaged chunks raise `UnsupportedPagesError`; PyArrow then reads them, or reports the error.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.conditions import (
    ColumnTest,
    JoinedTest,
    NullTest,
    TextBound,
    ValuePattern,
    ValueRange,
    ValueSet,
    passes_null,
)
from delta_core.errors import InvalidArgumentError
from delta_core.kernels.arrow_buffers import is_text
from delta_core.kernels.memory import POOL_OF_BATCHES, call_at_release
from delta_core.parquet._pages import (
    Column,
    ColumnBatch,
    ColumnStretches,
    UnsupportedPagesError,
    ValueTest,
    Workspace,
    page_values,
    read_columns,
    read_joined as read_joined_columns,
    read_passing as read_passing_rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.parquet._pages import Chunk

__all__ = [
    "CODECS",
    "ChunkStretches",
    "ColumnChunk",
    "PHYSICAL_TYPES",
    "PageCounts",
    "Source",
    "UnsupportedPagesError",
    "ValueTest",
    "WideBatch",
    "compiled_test",
    "lent_workspace",
    "page_values",
    "read_chunk",
    "read_chunks",
    "read_joined",
    "read_passing",
    "shared_bytes",
    "text_pages",
    "width_of",
]

Key = TypeVar("Key")
#: The most bytes of pages and dictionaries that all chunks keep between two stretches.
_KEPT_BYTES = 32 << 20
#: The bytes of the windows in which these chunks are read: of one, and of all together.
_WINDOW_BYTES, _WINDOWS_BYTES = 256 << 10, 16 << 20


def _zstd(data: pa.Buffer, size: int) -> pa.Buffer:
    return pa.Codec("zstd").decompress(data, decompressed_size=size, asbytes=False, memory_pool=POOL_OF_BATCHES)


def _gzip(data: pa.Buffer, size: int) -> bytes:
    # the zlib of Python reports a stream that ends too early, which PyArrow's codec does not
    import zlib

    rest: Any = data
    members: list[bytes] = []
    while rest:
        stream = zlib.decompressobj(_GZIP_OR_ZLIB)
        members.append(stream.decompress(rest, size + 1))
        size -= len(members[-1])
        if size < 0 or not stream.eof:
            raise zlib.error("the members of a gzip page end too early or have more bytes than its header specifies")
        rest = stream.unused_data
    return members[0] if len(members) == 1 else b"".join(members)


#: The types of Parquet, in the order of their numbers in parquet.thrift.
PHYSICAL_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_GZIP_OR_ZLIB = 47
#: Codecs of pages: their numbers in the compiled module, and what decompresses those that it does not support itself,
#: or not on a machine without the library.
CODECS: Mapping[str, tuple[int, Callable[[pa.Buffer, int], Any] | None]] = {
    "UNCOMPRESSED": (0, None),
    "SNAPPY": (1, None),
    "GZIP": (5, _gzip),
    "LZ4_RAW": (4, None),
} | ({"ZSTD": (3, _zstd)} if pa.Codec.is_available("zstd") else {})
#: The type of strings that are returned as codes.
_CODES = pa.dictionary(pa.int32(), pa.string())
#: The bytes of a value by the number of its type.
_WIDTHS = {
    pa.string().id: 0, pa.binary().id: 0, pa.int8().id: 1, pa.int16().id: 2, pa.int32().id: 4, pa.int64().id: 8,
    pa.float32().id: 4, pa.float64().id: 8, pa.bool_().id: 1, pa.date32().id: 4, pa.timestamp("us").id: 8,
}  # fmt: skip
#: A descriptor of a file, its bytes, or a function(offset, size) that returns bytes of it.
Source = int | bytes | memoryview | Callable[[int, int], Any]
#: Unused workspaces for the next reads: fresh memory takes longer than decoding into it.
_spaces: deque[Workspace] = deque(maxlen=os.cpu_count() or 1)
call_at_release(_spaces.clear)


class ColumnChunk(Struct, frozen=True, gc=False):
    """Where a column chunk lies, and what it holds.

    Parameters
    ----------
    type : pyarrow.DataType
        ``string``, ``binary``, a number, a decimal, a date, a timestamp or ``bool``.
    offset, num_bytes : int
        In the file, page headers included.
    codec : str
        One of `CODECS`.
    most_level : int
        The definition level of a value; 0: nothing is null.
    num_rows : int
    plain_bytes : int
        Of all pages when they are decompressed: how much room strings are given at first.
    bloom_filter : tuple of int, optional
        Where its Bloom filter begins, and how many bytes this has; -1: not known.
    page_index : tuple of int, optional
        Where its column index begins, how many bytes this has, and the same of its offset index.
    stored : int
        How values are stored: as they lie in memory (0; floats and bytes of fixed length 2), a bit each (1: booleans),
        whole numbers of 4 or 8 bytes (4, 8: decimals and small integers), INT96 (12), or numbers of 1 to 16 bytes, the
        highest one first (-1 to -16: decimals).
    """

    type: pa.DataType
    offset: int
    num_bytes: int
    codec: str
    most_level: int
    num_rows: int
    plain_bytes: int
    bloom_filter: tuple[int, int] | None = None
    page_index: tuple[int, int, int, int] | None = None
    stored: int = 0


class PageCounts(Struct):
    """Counts the data pages of column chunks that are read; not safe for several threads at once.

    Parameters
    ----------
    total : int
        All pages of these chunks. If nothing is read of a chunk, its pages are not known.
    decoded : int
        Pages whose values were decoded; the other ones have no requested row.
    """

    total: int = 0
    decoded: int = 0

    def add(self, other: PageCounts) -> None:
        """Add what another thread counted."""
        self.total += other.total
        self.decoded += other.decoded


def read_chunk(
    source: Source, chunk: ColumnChunk, coded: bool = False, keep: NDArray[np.uint64] | None = None
) -> pa.Array[Any]:
    """Decode a column chunk; see `read_chunks`.

    Raises
    ------
    UnsupportedPagesError
        The chunk has pages of another encoding or codec, or is damaged, or ``coded`` and not all pages are coded.
    """
    found = read_chunks(source, {0: chunk}, (0,) if coded else (), keep)
    if not found:
        raise UnsupportedPagesError("a page is encoded, or damaged, in a way that is left to a complete reader")
    return found[0]


def read_chunks(
    source: Source,
    chunks: Mapping[Key, ColumnChunk],
    coded: Collection[Key] = (),
    keep: NDArray[np.uint64] | None = None,
    pages: PageCounts | None = None,
) -> dict[Key, pa.Array[Any]]:
    """Decode column chunks of one row group, without the interpreter's lock.

    Parameters
    ----------
    source : int or bytes-like
        A descriptor of the file, or its bytes.
    chunks : Mapping
        Where each column chunk lies, and its type; all of the same number of rows.
    coded : collection
        The chunks whose strings are requested as ``dictionary<int32, string>``.
    keep : uint64, **shape (n,)**, optional
        Bit ``i % 64``, least significant first, of word ``i // 64`` = row ``i`` is requested; the others are left out
        as the pages are decoded, which is cheaper than to drop them afterwards.
    pages : PageCounts, optional
        Is counted up.

    Returns
    -------
    dict of pyarrow.Array, each of **num_rows values**, or of the kept ones
        Null if the value, or a struct around it, is. Left out is a chunk that has pages of another encoding or codec,
        or is damaged, or has pages that are not coded although codes are requested.
    """
    if not chunks:
        return {}
    strings = frozenset(coded)
    described = [_described(chunk, key in strings) for key, chunk in chunks.items()]
    num_rows = next(iter(chunks.values())).num_rows
    with lent_workspace(pages) as space:
        num_kept, parts = read_columns(space, source, described, num_rows, keep)
    found = zip(chunks.items(), parts, strict=True)
    return {key: _array(chunk.type, num_kept, *part) for (key, chunk), part in found if part is not None}


def read_joined(
    source: Source, columns: Mapping[Key, list[ColumnChunk]], group_rows: list[int], pages: PageCounts | None = None
) -> dict[Key, pa.Array[Any]]:
    """Decode columns of neighbouring row groups as one array each, all of their rows, without the interpreter's lock.

    Parameters
    ----------
    source, pages
        See `read_chunks`.
    columns : Mapping
        The chunks of each column, one of each row group, all of one type; strings are returned as such.
    group_rows : list of int
        The rows of each row group.

    Returns
    -------
    dict of pyarrow.Array
        As of `read_chunks`.
    """
    described = [[_described(chunk, False) for chunk in chunks] for chunks in columns.values()]
    with lent_workspace(pages) as space:
        parts = read_joined_columns(space, source, described, group_rows)
    num_rows = sum(group_rows)
    found = zip(columns.items(), parts, strict=True)
    return {key: _array(chunks[0].type, num_rows, *part) for (key, chunks), part in found if part is not None}


class WideBatch:
    """Many columns of neighbouring row groups, decoded by several threads and returned as one batch.

    An array object a column takes longer to make than a few thousand rows of it take to decode. The columns of a batch
    are in memory together: as long as one of them is used.

    Parameters
    ----------
    source : int or bytes-like
        A descriptor of the file, or its bytes.
    chunks : sequence of list of ColumnChunk
        Of each row group those of all columns, of the same types.
    group_rows : sequence of int
        The rows of each row group.
    schema : pyarrow.Schema
        A field for each column, of the type of its chunks; of a single row group ``dictionary<int32, string>`` too,
        for strings that are requested as codes.
    keep : uint64, **shape (n,)**, optional
        A mask of the rows of a single row group, see `read_chunks`.

    Raises
    ------
    InvalidArgumentError
        For fields that do not fit the columns.
    """

    def __init__(
        self,
        source: Source,
        chunks: Sequence[Sequence[ColumnChunk]],
        group_rows: Sequence[int],
        schema: pa.Schema,
        keep: NDArray[np.uint64] | None = None,
    ) -> None:
        types = schema.types
        coded = [len(group_rows) == 1 and t == _CODES for t in types]
        found = [pa.string() if is_coded else t for t, is_coded in zip(types, coded, strict=True)]
        if any([chunk.type for chunk in group] != found for group in chunks):
            raise InvalidArgumentError("columns are requested as other types than they have")
        described = [list(map(_described, group, coded)) for group in chunks]
        #: Of all pages when they are decompressed.
        self.plain_bytes: int = sum(chunk.plain_bytes for group in chunks for chunk in group)
        self._schema = schema
        self._batch = ColumnBatch(source, described, list(group_rows), keep)

    def decode(self) -> PageCounts:
        """Decode columns that no other thread has begun, until there are none, without the interpreter's lock."""
        pages = PageCounts()
        with lent_workspace(pages) as space:
            self._batch.decode(space)
        return pages

    def finish(self) -> pa.RecordBatch | None:
        """Return the columns, once; None if one of them is left to a complete reader, see `read_chunks`."""
        return self._batch.finish(self._schema)


class ChunkStretches(Generic[Key]):
    """Column chunks of one row group that are decoded one stretch of rows after the other.

    Parameters
    ----------
    source, chunks, coded
        See `read_chunks`.
    among : int, optional
        How many chunks share the memory for what is kept between two stretches; these alone if not given.
    """

    def __init__(
        self, source: Source, chunks: Mapping[Key, ColumnChunk], coded: Collection[Key] = (), among: int | None = None
    ) -> None:
        described = [_described(chunk, key in coded) for key, chunk in chunks.items()]
        num_rows = next(iter(chunks.values())).num_rows
        sizes = shared_bytes(among or len(chunks))
        self._types = {key: chunk.type for key, chunk in chunks.items()}
        self._stretches = ColumnStretches(source, described, num_rows, *sizes)

    def read(
        self, first: int, stop: int, keep: NDArray[np.uint64] | None = None, pages: PageCounts | None = None
    ) -> dict[Key, pa.Array[Any]]:
        """Decode the rows of a stretch, without the interpreter's lock.

        Parameters
        ----------
        first, stop : int
            The first row, which is after those read before, and the row after the last.
        keep : uint64, **shape (n,)**, optional
            A mask of these rows, see `read_chunks`.
        pages : PageCounts, optional
            Is counted up; a page with rows of two stretches counts once.

        Returns
        -------
        dict of pyarrow.Array, as of `read_chunks`
            A chunk that is left out once, by pages that this reader does not support, is left out from there on.
        """
        with lent_workspace(pages) as space:
            num_kept, parts = self._stretches.read(space, first, stop, keep)
        found = zip(self._types.items(), parts, strict=True)
        return {key: _array(t, num_kept, *part) for (key, t), part in found if part is not None}


def shared_bytes(num_chunks: int) -> tuple[int, int]:
    """Return the window in which each of some chunks is read in stretches, and what it keeps in between, in bytes."""
    return min(_WINDOW_BYTES, max(_WINDOWS_BYTES // num_chunks, 16 << 10)), _KEPT_BYTES // num_chunks


class lent_workspace:  # noqa: N801  # used like a function
    """Lend a workspace, and add up the pages that are read in it; after an exception it is not reused."""

    __slots__ = ("_pages", "_space")

    def __init__(self, pages: PageCounts | None = None) -> None:
        self._pages = pages

    def __enter__(self) -> Workspace:
        try:
            self._space = _spaces.pop()
        except IndexError:
            self._space = Workspace()
        return self._space

    def __exit__(self, kind: object, *_: object) -> None:
        total, decoded = self._space.take_page_counts()
        if self._pages is not None:
            self._pages.total += total
            self._pages.decoded += decoded
        if kind is None and self._space.is_small:
            _spaces.append(self._space)


_IN_RANGE, _IN_SET, _LIKE_PATTERN, _IS_NULL, _HAS_VALUE, _IS_BELOW, _ANY_OF, _ALL_OF = range(8)


def read_passing(
    source: Source,
    chunk: ColumnChunk,
    values: ColumnTest,
    has_values: bool,
    keep: NDArray[np.uint64] | None = None,
    coded: bool = False,
    pages: PageCounts | None = None,
) -> tuple[NDArray[np.uint64], int, pa.Array[Any] | None] | None:
    """Test the values of a chunk page by page, and decode those that pass.

    Parameters
    ----------
    source : int or bytes-like
        A descriptor of the file, or its bytes.
    chunk : ColumnChunk
        Of numbers or strings.
    values : ColumnTest
        Which of them pass; its bounds or keys are of the chunk's type.
    has_values : bool
        Whether the values are requested too. They are returned if there are any, and if that takes no second look at
        the pages: not if null passes beside values, nor as codes if not all pages are coded.
    keep : uint64, **shape (n,)**, optional
        A mask of the rows that may pass, see `read_chunks`.
    coded : bool
        Whether strings are requested as ``dictionary<int32, string>``.
    pages : PageCounts, optional
        Is counted up.

    Returns
    -------
    A mask of the rows that pass, uint64, **shape (n,)**, how many do, and their values or None; None for a chunk that
    is left to a complete reader. A page whose dictionary has no value that passes is not decompressed, and of a chunk
    whose Bloom filter has none of the keys no page is read. A page without a value that passes, by the page index, is
    not decompressed either.
    """
    test = compiled_test(values, chunk.type)
    if test is None:
        return None
    is_excluded = chunk.bloom_filter is not None and test.is_excluded(
        source, *chunk.bloom_filter, width_of(chunk.type), chunk.stored
    )
    keep = keep if is_excluded else _kept_pages(source, chunk, test, keep)
    if is_excluded or (keep is not None and not keep.any()):
        return np.zeros((chunk.num_rows + 63) // 64, np.uint64), 0, None
    may_return = has_values and not passes_null(values)
    for returns in (True, False) if may_return else (False,):
        passed = np.zeros((chunk.num_rows + 63) // 64, np.uint64)
        with lent_workspace(pages) as space:
            described = _described(chunk, coded)
            found = read_passing_rows(space, source, described, chunk.num_rows, test, returns, passed, keep)
        if found is not None:
            count, buffers = found
            if has_values and values == NullTest(values.column, True):
                return passed, count, pa.nulls(count, pa.dictionary(pa.int32(), chunk.type) if coded else chunk.type)
            return passed, count, None if buffers is None else _array(chunk.type, count, None, 0, *buffers)
        if not is_text(chunk.type):
            break  # with its values or without them
    return None


def _kept_pages(
    source: Source, chunk: ColumnChunk, test: ValueTest, keep: NDArray[np.uint64] | None
) -> NDArray[np.uint64] | None:
    """Return the rows of a mask, or of all, whose pages may have a value that passes, by the chunk's page index."""
    if chunk.page_index is None:
        return keep
    rows = np.zeros((chunk.num_rows + 63) // 64, np.uint64)
    columns, offsets = chunk.page_index[:2], chunk.page_index[2:]
    if not test.find_rows(source, columns, offsets, width_of(chunk.type), chunk.num_rows, rows, chunk.stored):
        return keep
    return rows if keep is None else rows & keep[: len(rows)]


def compiled_test(values: ColumnTest, t: pa.DataType) -> ValueTest | None:
    """Return the test of a chunk's values; None if its bounds or keys are of another type.

    Parameters
    ----------
    values : ColumnTest
        The condition.
    t : pyarrow.DataType
        Of the values.
    """
    is_float = bool(pa.types.is_floating(t))
    if isinstance(values, NullTest):
        return ValueTest(_IS_NULL if values.is_null else _HAS_VALUE)
    if isinstance(values, JoinedTest):
        parts = tuple(test for part in values.parts if (test := compiled_test(part, t)) is not None)
        if len(parts) < len(values.parts):
            return None
        kind = _ANY_OF if values.is_any else _ALL_OF
        return ValueTest(kind, parts=parts, is_negated=values.is_negated, with_null=values.with_null)
    if isinstance(values, TextBound):
        return _test_of(_IS_BELOW, (values.key,), values.with_key) if is_text(t) else None
    if isinstance(values, ValueRange):
        is_wide = bool(pa.types.is_decimal128(t))
        bounds = values.least, values.most, values.with_nan
        return None if is_text(t) else ValueTest(_IN_RANGE, is_float, *bounds, is_wide=is_wide)
    if isinstance(values, ValuePattern):
        return _test_of(_LIKE_PATTERN, values.parts) if is_text(t) else None
    if isinstance(values.keys, tuple) or is_text(t):
        return _set_test(values) if isinstance(values.keys, tuple) and is_text(t) else None
    return _set_test(values) if is_float == (values.keys.dtype == np.float64) else None


def _test_of(kind: int, keys: NDArray[Any] | tuple[bytes, ...], with_key: bool = False) -> ValueTest:
    if not isinstance(keys, tuple):
        return ValueTest(kind, keys.dtype == np.float64, keys=keys.view(np.uint8))
    ends = np.zeros(len(keys) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, keys), np.int32, len(keys)), out=ends[1:])
    return ValueTest(kind, keys=b"".join(keys), ends=ends, with_key=with_key)


def _set_test(values: ValueSet) -> ValueTest:
    test: ValueTest | None = values.made.get("parquet")
    if test is None:
        test = values.made["parquet"] = _test_of(_IN_SET, values.keys)
    return test


def _described(chunk: ColumnChunk, coded: bool) -> Chunk:
    codec, decompress = CODECS[chunk.codec]
    width = width_of(chunk.type)
    form = codec, width, chunk.stored, chunk.most_level, coded
    return chunk.offset, chunk.num_bytes, *form, chunk.plain_bytes, decompress


def _array(t: pa.DataType, n: int, valid: pa.Buffer | None, nulls: int, *data: Any) -> pa.Array[Any]:
    if len(data) < 4:  # not codes
        return pa.Array.from_buffers(t, n, [valid, *data], nulls)
    codes, offsets, text, length = data
    dictionary = pa.Array.from_buffers(t, length, [None, pa.py_buffer(offsets), text], 0)
    numbers = pa.Array.from_buffers(pa.int32(), n, [valid, codes], nulls)
    return pa.DictionaryArray.from_arrays(numbers, dictionary, safe=False)


def text_pages(source: Source, chunk: ColumnChunk) -> Iterator[pa.Array[Any]]:
    """Yield the strings of a column chunk, an array a page; raises as `read_chunk` does, maybe after some pages."""
    codec, decompress = CODECS[chunk.codec]
    column = Column(
        Workspace(), source, chunk.offset, chunk.num_bytes, codec, chunk.most_level, chunk.num_rows, decompress
    )
    while (page := column.text_page()) is not None:
        rows, valid, nulls, offsets, data = page
        yield pa.Array.from_buffers(chunk.type, rows, [valid, offsets, data], nulls)


def width_of(t: pa.DataType) -> int:
    """Return the bytes of a value, 0 for strings, 1 for booleans."""
    # by number: these are called for each column chunk
    width = _WIDTHS.get(t.id)
    return max(t.bit_width // 8, 1) if width is None else width
