"""Column chunks of Parquet files to Arrow arrays: numbers and strings that are not repeated, plain or by dictionary.

PyArrow's reader stays the complete one. This one decodes what nearly every file of a table holds, and its checkpoints
too, in half the time, which goes mostly into Snappy; and it decodes a column's strings page by page, while they are in a
core's cache. What it does not support, or finds damaged, it returns undone: `UnsupportedPagesError`.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from delta_core.kernels._parquet_pages import Column, UnsupportedPagesError, Workspace
from delta_core.kernels.memory import POOL_OF_BATCHES

__all__ = ["CODECS", "ColumnChunk", "UnsupportedPagesError", "is_text", "read_chunk", "text_pages"]


def _zstd(data: pa.Buffer, size: int) -> pa.Buffer:
    return pa.Codec("zstd").decompress(data, decompressed_size=size, asbytes=False, memory_pool=POOL_OF_BATCHES)


def _gzip(data: pa.Buffer, size: int) -> bytes:
    # the zlib of Python specifies where a page has fewer bytes, which PyArrow's codec does not
    return zlib.decompress(data, wbits=_GZIP_OR_ZLIB, bufsize=max(size, 1))


_GZIP_OR_ZLIB = 47
#: Codecs of pages: their numbers in the compiled module, and what decompresses those that it does not support itself.
CODECS: Mapping[str, tuple[int, Callable[[pa.Buffer, int], Any] | None]] = {
    "UNCOMPRESSED": (0, None),
    "SNAPPY": (1, None),
    "GZIP": (2, _gzip),
} | ({"ZSTD": (2, _zstd)} if pa.Codec.is_available("zstd") else {})
Source = int | bytes | memoryview
#: Each thread's own workspace: fresh memory takes longer than what is done in it.
_thread = threading.local()


class ColumnChunk(Struct, frozen=True):
    """Where a column chunk lies, and what it holds.

    Parameters
    ----------
    type : pyarrow.DataType
        ``string``, ``binary``, or numbers, dates and timestamps that are stored in as many bytes as Arrow's have.
    offset, num_bytes : int
        In the file, page headers included.
    codec : str
        One of `CODECS`.
    most_level : int
        The definition level of a value; 0: nothing is null.
    num_rows : int
    plain_bytes : int
        Of all pages when they are decompressed: how much room strings are given at first.
    """

    type: pa.DataType
    offset: int
    num_bytes: int
    codec: str
    most_level: int
    num_rows: int
    plain_bytes: int


def read_chunk(
    source: Source, chunk: ColumnChunk, coded: bool = False, keep: NDArray[np.uint64] | None = None
) -> pa.Array[Any]:
    """Decode a column chunk.

    Parameters
    ----------
    source : int or bytes-like
        A descriptor of the file, or its bytes.
    chunk : ColumnChunk
        Where the chunk lies, and its type.
    coded : bool
        Return strings as ``dictionary<int32, string>``.
    keep : uint64, **shape (n,)**, optional
        Bit ``i % 64``, least significant first, of word ``i // 64`` = row ``i`` is requested; the others are left out as the
        pages are decoded, which is cheaper than to drop them afterwards.

    Returns
    -------
    pyarrow.Array, **num_rows values**, or as many as are kept
        Null if the value, or a struct around it, is.

    Raises
    ------
    UnsupportedPagesError
        The chunk has pages of another encoding or codec, or is damaged, or ``coded`` and not all pages are coded.
    """
    space = getattr(_thread, "space", None) or Workspace()
    _thread.space = None  # whatever goes wrong, nobody else gets it
    array = _read(_open(source, chunk, space, keep), chunk, coded)
    _thread.space = space if space.is_small else None
    return array


def _read(column: Column, chunk: ColumnChunk, coded: bool) -> pa.Array[Any]:
    n = column.num_kept
    if not is_text(chunk.type):
        valid, nulls, data = column.values()
        return pa.Array.from_buffers(chunk.type, n, [valid, data], nulls)
    if not coded:
        valid, nulls, offsets, data = column.text(chunk.plain_bytes)
        return pa.Array.from_buffers(chunk.type, n, [valid, offsets, data], nulls)
    valid, nulls, codes, offsets, data, length = column.codes()
    dictionary = pa.Array.from_buffers(chunk.type, length, [None, offsets, data], 0)
    numbers = pa.Array.from_buffers(pa.int32(), n, [valid, codes], nulls)
    return pa.DictionaryArray.from_arrays(numbers, dictionary, safe=False)


def text_pages(source: Source, chunk: ColumnChunk) -> Iterator[pa.Array[Any]]:
    """Yield the strings of a column chunk, an array a page; raises as `read_chunk` does, maybe after some pages."""
    column = _open(source, chunk, Workspace())
    while (page := column.text_page()) is not None:
        rows, valid, nulls, offsets, data = page
        yield pa.Array.from_buffers(chunk.type, rows, [valid, offsets, data], nulls)


def _open(source: Source, chunk: ColumnChunk, space: Workspace, keep: NDArray[np.uint64] | None = None) -> Column:
    width = 0 if is_text(chunk.type) else chunk.type.bit_width // 8
    number, decompress = CODECS[chunk.codec]
    return Column(
        space, source, chunk.offset, chunk.num_bytes, number, width, chunk.most_level, chunk.num_rows, keep, decompress
    )


def is_text(t: pa.DataType) -> bool:
    """Whether values of a type are strings, which pages keep with their lengths."""
    return bool(pa.types.is_string(t) or pa.types.is_binary(t))
