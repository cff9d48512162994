"""Where a file's vector lies, and its bytes to the rows that are deleted."""

from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import VECTOR_LOCATION, CorruptTableError, VectorBytes
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    bool_array,
    is_valid,
    mask_of,
    number_array,
    one_array,
    scalar_of,
    strings_of,
    values_of,
)
from delta_core.kernels.roaring import DV_FILE_VERSION, DV_MAGIC, decode_dv_payload, read_dv_block
from delta_core.kernels.row_set import RowSet, RowSets
from delta_plugins.deletion_vectors import z85

__all__ = ["DeletionVectorError", "decode", "decode_all", "is_absolute", "locate", "relocated", "vector_paths"]

#: Bytes around a payload in a vector file: its size before, its checksum after.
_FRAME = 8
_MAGIC = DV_MAGIC.to_bytes(4, "little")


class DeletionVectorError(CorruptTableError):
    """A deletion vector's descriptor or bytes break the protocol."""


def locate(files: pa.Table) -> pa.Table:
    """Return where each file's vector lies (`VECTOR_LOCATION`), from the column ``deletionVector``.

    Paths are percent-decoded: relative to the table's root for storage type ``u``, absolute for ``p``; an inline
    vector's bytes are in ``data``. A descriptor without an offset, or with 0, requires one byte more than it
    needs, since its vector may be at 0 or, after the file's version, at 1: `decode` finds out. Raises
    DeletionVectorError.
    Protocol: Deletion Vector Descriptor Schema.
    """
    vectors = one_array(files.column("deletionVector"))
    rows = np.flatnonzero(is_valid(vectors) & is_valid(vectors.field("storageType")))
    vectors = pc.take(vectors, number_array(rows))
    kind, text, size = (vectors.field(name) for name in ("storageType", "pathOrInlineDv", "sizeInBytes"))
    in_file, absolute, inline = (pc.equal(kind, scalar_of(code, pa.string())) for code in "upi")
    _check(pc.or_(pc.or_(in_file, absolute), inline), vectors, "its storage type is none of u, p and i")
    sized = is_valid(size) & (values_of(size) >= 0)
    _check(bool_array(is_valid(text) & sized), vectors, "it lacks its path or size")
    nothing = scalar_of(None, pa.string())
    relative = z85.vector_file_names(pc.if_else(in_file, text, nothing))
    offset = vectors.field("offset")
    given = np.where(is_valid(offset), values_of(offset), 0).astype(np.int64)
    _check(bool_array(given >= 0), vectors, "its offset is negative")
    needed = values_of(size) + np.where(given > 0, _FRAME, _FRAME + 1)
    in_other = ~mask_of(inline)
    return pa.Table.from_arrays(
        [
            number_array(rows.astype(np.int32)),
            pc.coalesce(relative, _unquoted(pc.if_else(absolute, text, nothing))),
            number_array(given, valid=in_other),
            number_array(needed.astype(np.int64), valid=in_other),
            _inline_bytes(vectors, ~in_other),
            vectors.field("cardinality"),
        ],
        schema=VECTOR_LOCATION,
    )


def vector_paths(vectors: pa.StructArray) -> pa.Array:
    """Return each vector's file as `locate` does, null for inline ones and for files without a vector."""
    kind, text, *_ = vectors.flatten()
    in_file, absolute = (pc.equal(kind, scalar_of(code, pa.string())) for code in "up")
    nothing = scalar_of(None, pa.string())
    relative = z85.vector_file_names(pc.if_else(in_file, text, nothing))
    return pc.coalesce(relative, _unquoted(pc.if_else(absolute, text, nothing)))


def is_absolute(vectors: pa.StructArray) -> pa.Array:
    """Return which of `vector_paths` do not begin at the table's root."""
    return pc.fill_null(pc.equal(vectors.flatten()[0], "p"), False)


def relocated(vectors: pa.StructArray, uris: pa.Array) -> pa.StructArray:
    """Return the descriptors with their files at absolute URIs; a null URI leaves a descriptor as it is."""
    names = [f.name for f in vectors.type]
    fields = dict(zip(names, vectors.flatten(), strict=True))
    fields["storageType"] = pc.if_else(pc.is_valid(uris), scalar_of("p", pa.string()), fields["storageType"])
    fields["pathOrInlineDv"] = pc.coalesce(uris, fields["pathOrInlineDv"])
    columns = [fields[name].cast(vectors.type.field(name).type) for name in names]
    return pa.StructArray.from_arrays(columns, fields=list(vectors.type), mask=pc.is_null(vectors))


def decode(data: Any, cardinality: int | None, where: str) -> RowSet:
    """Return the rows that a vector deletes, from what `locate` requested.

    Raises
    ------
    DeletionVectorError
        If size, magic number, CRC-32 or cardinality is wrong; the message names ``where``.

    Protocol
    --------
    Deletion Vector Format, Deletion Vector File Storage Format
    """
    view = memoryview(data).cast("B")
    try:
        rows = decode_dv_payload(view if view[:4] == _MAGIC else _payload(view))
    except CorruptTableError as e:
        raise DeletionVectorError(f"Deletion vector at {where} can't be read: {e}.", path=where) from e
    if cardinality is not None and len(rows) != cardinality:
        raise DeletionVectorError(
            f"Deletion vector at {where} deletes {len(rows)} rows, its descriptor specifies {cardinality}.", path=where
        )
    return rows


def decode_all(vectors: VectorBytes) -> tuple[RowSets, NDArray[np.bool_]]:
    """Return the rows that vectors delete, and which vectors were read; `decode` reports what is wrong with others.

    Protocol: Deletion Vector Format, Deletion Vector File Storage Format.
    """
    rows, good = RowSets.from_blocks(
        vectors.num_files, vectors.files, vectors.data, vectors.starts, vectors.sizes, DV_MAGIC
    )
    fits = (vectors.cardinalities < 0) | (rows.cardinalities()[vectors.files] == vectors.cardinalities)
    return rows, good & fits


def _payload(view: memoryview) -> memoryview:
    size = len(view) - _FRAME
    if _size_at(view, 0) == size:
        return read_dv_block(view, size)
    # a descriptor without an offset: after the version byte, or at 0 with a byte of what follows
    if view[:1] == bytes([DV_FILE_VERSION]) and _size_at(view, 1) == size - 1:
        return read_dv_block(view[1:], size - 1)
    if _size_at(view, 0) == size - 1 and view[4:8] == _MAGIC:
        return read_dv_block(view, size - 1)
    return read_dv_block(view, size)


def _size_at(view: memoryview, start: int) -> int:
    return int.from_bytes(view[start : start + 4], "big", signed=True)


def _unquoted(paths: pa.Array) -> pa.Array:
    """Percent-decode paths; vectors share files, so that there are fewer paths than vectors."""
    if paths.null_count == len(paths):
        return paths
    found = pc.dictionary_encode(paths)
    return pc.take(strings_of([unquote(p) for p in found.dictionary.to_pylist()]), found.indices)


def _inline_bytes(vectors: pa.StructArray, inline: NDArray[np.bool_]) -> pa.Array:
    """Return the bytes of inline vectors, null for the others; all texts are decoded as one."""
    if not inline.any():
        return pa.nulls(len(vectors), pa.binary())
    chosen = pc.filter(vectors, bool_array(inline))
    texts, sizes = chosen.field("pathOrInlineDv"), values_of(chosen.field("sizeInBytes")).astype(np.int64)
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.diff(ends).astype(np.int64)
    capacity = letters // 5 * 4
    # the text is padded to whole groups of 4 bytes
    fits = (letters % 5 == 0) & (sizes <= capacity) & (capacity - sizes < 4)
    _check(bool_array(fits), chosen, "its text does not hold sizeInBytes bytes of Z85")
    # no text is null, and those of a filtered array are one after the other
    _, _, content = texts.buffers()
    text = _without_tails(bytes(content)[: letters.sum()], np.cumsum(letters)[letters > 0])
    try:
        whole = np.frombuffer(z85.decode(text), np.uint8)
    except CorruptTableError as e:
        raise DeletionVectorError(f"An inline deletion vector can't be read: {e}.") from e
    position = np.arange(len(whole)) - np.repeat(np.cumsum(capacity) - capacity, capacity)
    lengths = np.zeros(len(vectors), np.int64)
    lengths[inline] = sizes
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    buffers = [np.packbits(inline, bitorder="little"), offsets, whole[position < np.repeat(sizes, capacity)]]
    return pa.Array.from_buffers(pa.binary(), len(vectors), [pa.py_buffer(b) for b in buffers])


def _without_tails(text: bytes, ends: NDArray[np.int64]) -> bytes:
    """Replace short last groups by whole ones.

    Some writers do not pad: they end a text with ``#`` for each byte that is missing to a whole group, and with one
    letter more than the bytes that are there. No whole group starts so: its number would not fit 4 bytes.
    """
    tails = ends[np.frombuffer(text, np.uint8)[ends - 5] == ord("#")] if len(ends) else ends
    if not len(tails):
        return text
    out = bytearray(text)
    for end in tails.tolist():
        group = text[end - 5 : end]
        digits = group.lstrip(b"#")
        number = int.from_bytes(z85.decode(b"0" * (5 - len(digits)) + digits), "big")
        count = len(digits) - 1
        if count < 1 or number >> 8 * count:
            raise DeletionVectorError(f"An inline deletion vector ends in {group!r}, which is not Z85.")
        out[end - 5 : end] = z85.encode(number.to_bytes(count, "big"), pad=True).encode()
    return bytes(out)


def _check(good: pa.BooleanArray, vectors: pa.StructArray, what: str) -> None:
    bad = np.flatnonzero(~mask_of(good))
    if len(bad):
        raise DeletionVectorError(f"Deletion vector {vectors[int(bad[0])].as_py()} can't be found: {what}.")
