"""Strings as the numbers of their distinct values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from delta_core.kernels._string_codes import string_codes
from delta_core.kernels.arrow_buffers import string_buffers
from delta_core.kernels.memory import allocate

__all__ = ["dictionary_of", "own_dictionaries"]

#: Rows that are encoded before the writer finds another dictionary.
_FIRST_ROWS = 1 << 10


def dictionary_of(texts: pa.ChunkedArray, most_bytes: int) -> pa.ChunkedArray | None:
    """Return texts dictionary-encoded, all chunks with one dictionary; None if that would save little.

    That is so if more than a quarter of the rows, and more than 16,384, begin a new value. It is found out early.

    Parameters
    ----------
    texts : string array, **shape (n,)**
        Stays as it is; the codes of null rows are null.
    most_bytes : int
        The most bytes of the distinct values, plus 4 for each; below 2^30.

    Returns
    -------
    pyarrow.ChunkedArray, **shape (n,)**, or None
        int32 codes, in the order of each value's first row. Every value of the dictionary is used, and none is null.
    """
    chunks = texts.chunks
    buffers = [allocate(4 * len(chunk)) for chunk in chunks]
    outs = [(buffer.address, buffer.size) for buffer in buffers]
    found = string_codes([(string_buffers(chunk), len(chunk)) for chunk in chunks], outs, most_bytes)
    if found is None:
        return None
    ends, data = (pa.py_buffer(part) for part in found)
    values = pa.Array.from_buffers(pa.string(), ends.size // 4 - 1, [None, ends, data])
    return _joined([_coded(chunk, buffer, values) for chunk, buffer in zip(chunks, buffers, strict=True)])


def own_dictionaries(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts dictionary-encoded without looking for distinct values, but among the first rows.

    PyArrow's Parquet writer stores texts as they are as soon as a column chunk has a second dictionary. With a single
    long one it would look at each of its values first.

    Parameters
    ----------
    texts : string array, **shape (n,)**
        Shares its memory with the dictionaries.

    Returns
    -------
    pyarrow.ChunkedArray, **shape (n,)**
        int32 codes, with a dictionary for each chunk.
    """
    parts = texts.slice(0, _FIRST_ROWS).dictionary_encode().chunks
    for chunk in texts.slice(_FIRST_ROWS).chunks:
        _, ends, data = chunk.buffers()
        values = pa.Array.from_buffers(pa.string(), len(chunk), [None, ends, data], offset=chunk.offset)
        parts.append(_coded(chunk, pa.py_buffer(np.arange(len(chunk), dtype=np.int32)), values))
    return _joined(parts)


def _coded(chunk: pa.Array, codes: pa.Buffer, values: pa.Array) -> pa.DictionaryArray:
    valid = chunk.is_valid().buffers()[1] if chunk.null_count else None
    indices = pa.Array.from_buffers(pa.int32(), len(chunk), [valid, codes])
    return pa.DictionaryArray.from_arrays(indices, values, safe=False)


def _joined(parts: list[pa.DictionaryArray]) -> pa.ChunkedArray:
    return pa.chunked_array(parts, pa.dictionary(pa.int32(), pa.string()))
