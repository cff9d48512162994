"""Files handed to the driver's JVM: columns as they lie in memory, written to a file that Java reads in one loop.

A Spark job, or a DataFrame of the files, takes longer to be planned than this takes altogether.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import is_valid, mask_of, plain_strings, values_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HandedFiles", "handed_file", "is_flat", "write_handed_files"]

#: Files of one block: what Java holds beside the files that it makes of them.
_BLOCK = 1 << 16
_NULLS, _VALUES, _CODES = range(3)


def is_flat(kind: pa.DataType) -> bool:
    """Whether values of a type can be handed over."""
    return not (pa.types.is_nested(kind) or pa.types.is_dictionary(kind)) and (
        pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) or _is_text(kind)
    )


class HandedFiles(NamedTuple):
    """Some of the files that are handed over.

    Parameters
    ----------
    places : pyarrow.Array
        As Hadoop spells them: string[n_files].
    sizes : pyarrow.Array
        int64[n_files], bytes.
    marked : bool, shape (n_files,)
        Whether a file has a vector.
    constants : list of pyarrow.Array
        Of flat types, one value a file.
    numbers : int32, shape (n_files,)
        By which the file is known here.
    """

    places: pa.Array
    sizes: pa.Array
    marked: NDArray[np.bool_]
    constants: list[pa.Array]
    numbers: NDArray[np.int32]


@contextmanager
def handed_file(prefix: str) -> Iterator[BinaryIO]:
    """Yield a new temporary file that the driver deletes; it is deleted here if writing it fails."""
    handle, name = tempfile.mkstemp(prefix=prefix)
    try:
        os.close(handle)
        with open(name, "wb") as out:
            yield out
    except BaseException:
        # the driver, which deletes it, has no name of it
        os.unlink(name)
        raise


def write_handed_files(runs: Iterable[HandedFiles]) -> str:
    """Write files for the driver, which deletes what is written, and return its name; one run is held at a time."""
    files = blocks = 0
    with handed_file("delta-files-") as out:
        # how many files and blocks, once that is known
        out.write(struct.pack(">ii", 0, 0))
        for run in runs:
            files += len(run.places)
            for start in range(0, len(run.places), _BLOCK):
                _write_block(out, run, start)
                blocks += 1
        out.seek(0)
        out.write(struct.pack(">ii", files, blocks))
    return out.name


def _write_block(out: BinaryIO, run: HandedFiles, start: int) -> None:
    part = slice(start, min(start + _BLOCK, len(run.places)))
    columns = [c.slice(start, _BLOCK) for c in (run.places, run.sizes, *run.constants)]
    pieces = [struct.pack("<i", part.stop - start), *_strings(columns[0]), _numbers(columns[1])]
    pieces += [run.marked[part].tobytes(), run.numbers[part].tobytes()]
    for column in columns[2:]:
        pieces += _column(column)
    out.write(struct.pack(">i", sum(map(len, pieces))))
    out.writelines(pieces)


def _strings(column: pa.Array) -> list[bytes]:
    return [struct.pack("<b", _VALUES), *_values(column)]


def _column(column: pa.Array) -> Iterator[bytes]:
    if column.null_count == len(column):
        yield struct.pack("<b", _NULLS)
        return
    # Arrow takes floats for the same that are not: -0.0
    coded = None if pa.types.is_floating(column.type) else column.dictionary_encode()
    if coded is None or 2 * len(coded.dictionary) > len(column):
        yield struct.pack("<b", _VALUES)
        yield from _values(column)
        return
    yield struct.pack("<bi", _CODES, len(coded.dictionary))
    yield from _values(coded.dictionary)
    codes = values_of(coded)
    yield (np.where(is_valid(coded.indices), codes, -1) if coded.null_count else codes).astype("<i4").tobytes()


def _values(column: pa.Array) -> Iterator[bytes]:
    valid = is_valid(column)
    yield struct.pack("<b", int(column.null_count > 0))
    if column.null_count:
        yield valid.tobytes()
    kind = column.type
    if pa.types.is_boolean(kind):
        yield mask_of(column).tobytes()
    elif pa.types.is_decimal(kind) or _is_text(kind):
        yield from _texts(column.cast(pa.string()) if pa.types.is_decimal(kind) else plain_strings(column))
    else:
        yield _numbers(column)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _TEXTS)


_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


def _numbers(column: pa.Array) -> bytes:
    return values_of(column).tobytes()


def _texts(column: Any) -> Iterator[bytes]:
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    _, ends, data = column.buffers()
    width = 8 if wide else 4
    offsets = np.frombuffer(ends, f"<i{width}", len(column) + 1, column.offset * width)
    yield (offsets[1:] - offsets[0]).astype("<i4").tobytes()
    if data is not None:
        yield memoryview(data)[offsets[0] : offsets[-1]].tobytes()
