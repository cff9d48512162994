"""JSON statistics of data files to typed Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import InvalidArgumentError
from delta_core.kernels import compute as pc
from delta_core.kernels._json import Fields
from delta_core.kernels.arrow_buffers import is_valid, number_array
from delta_core.schema.types import parse_decimal

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["StatField", "has_bounds", "parse_stats", "unreadable_stats"]

# Kind: the code of ext/log/json_stats.h, the bits of a whole number, and the column's type.
_KINDS: dict[str, tuple[str, int, pa.DataType]] = {
    "byte": ("l", 8, pa.int64()),
    "short": ("l", 16, pa.int64()),
    "integer": ("l", 32, pa.int64()),
    "long": ("l", 64, pa.int64()),
    "float": ("f", 0, pa.float32()),
    "double": ("d", 0, pa.float64()),
    "boolean": ("b", 0, pa.bool_()),
    "string": ("s", 0, pa.string()),
    "date": ("D", 0, pa.date32()),
    "timestamp": ("T", 0, pa.timestamp("us", "UTC")),
    "timestamp_ntz": ("N", 0, pa.timestamp("us")),
    "present": ("p", 0, pa.bool_()),
}

# The type that a column may have had when older files were written, where its bounds are other texts.
_WIDENED_FROM = {"timestamp_ntz": "date"}

# A chunk's strings end up in columns with 32-bit offsets.
_CHUNK_BYTES = 1 << 30


class StatField(Struct, frozen=True):
    """One value to read from each file's statistics.

    Parameters
    ----------
    path : tuple of str
        Its keys from the outermost in, physical names below the first: ``("numRecords",)``,
        ``("minValues", "a", "b")``.
    kind : str
        The Delta type to read it as: a primitive type's name, ``decimal(p,s)`` included; counts are ``long``. Or
        ``present``: true if there is a value of any type, null if not.
    """

    path: tuple[str, ...]
    kind: str


def parse_stats(stats: Any, fields: Sequence[StatField], threads: int = 1) -> list[Any]:
    """Read fields out of JSON statistics, in one pass over each row.

    Parameters
    ----------
    stats : pyarrow.Array or pyarrow.ChunkedArray
        string, large_string, string_view, binary, large_binary, or a dictionary of one; null if a file has none.
    fields : sequence of StatField
        The fields to read; no path twice.
    threads : int
        How many threads share the rows.

    Returns
    -------
    list of pyarrow.Array, or of pyarrow.ChunkedArray if that was given
        A column per field, in the order requested: int64 for whole numbers, float32, float64, bool, string, date32,
        timestamp[us, UTC], timestamp[us], decimal128(p, s). Null if the row is null, is not a whole JSON object,
        lacks the path, or has there what can't be read as the kind exactly (only floats round, timestamps are floored).

    Raises
    ------
    InvalidArgumentError
        A kind that has no statistics, a path requested twice, or an array that holds no strings. Statistics themselves
        never raise.

    Notes
    -----
    Of equal keys the last one counts. NaN and the infinities may be quoted or plain. A timestamp without a zone is
    UTC. Runs without the interpreter lock, does no I/O.
    """
    columns = [(field.path, *_code(field.kind)) for field in fields]
    if len({path for path, *_ in columns}) != len(columns):
        raise InvalidArgumentError(f"A path of statistics is requested twice: {[f.path for f in fields]}.")
    if not all(path for path, *_ in columns):
        raise InvalidArgumentError("A field of statistics needs a path, such as ('numRecords',).")
    schema = pa.schema([(".".join(path), of_type) for path, _, _, _, of_type in columns])
    compiled = Fields([(path, code, precision, scale) for path, code, precision, scale, _ in columns], schema)
    if isinstance(stats, pa.ChunkedArray):
        return [
            pa.chunked_array([piece[i] for piece in pieces], schema.field(i).type)
            for pieces in [[_read(compiled, part, threads) for chunk in stats.chunks for part in _split(chunk)]]
            for i in range(len(columns))
        ]
    return _read(compiled, stats, threads)


def unreadable_stats(stats: pa.Array, fields: Sequence[StatField]) -> list[NDArray[np.bool_]]:
    """Return which rows have a value that can't be read as the kind of its field.

    Parameters
    ----------
    stats : pyarrow.Array, **shape (n,)**
        As of `parse_stats`.
    fields : sequence of StatField
        The fields; no path twice.

    Returns
    -------
    list of bool[n]
        A mask per field. False for a row that has no value of the field, or that is not a whole JSON object, and for
        one of a type that the kind is widened from.

    Raises
    ------
    InvalidArgumentError
        As of `parse_stats`.
    """
    absent = [~is_valid(column) for column in parse_stats(stats, fields)]
    found = [np.zeros(len(stats), bool) for _ in fields]
    rows = np.flatnonzero(np.logical_or.reduce(absent, initial=False) & is_valid(stats))
    if rows.size:
        some = pc.take(stats, number_array(rows))
        present = parse_stats(some, [StatField(f.path, "present") for f in fields])
        for field, mask, missing, there in zip(fields, found, absent, present, strict=True):
            mask[rows] = missing[rows] & is_valid(there)
            if mask.any() and (older := _WIDENED_FROM.get(field.kind)):
                mask[rows] &= ~is_valid(parse_stats(some, [StatField(field.path, older)])[0])
    return found


def has_bounds(kind: str) -> bool:
    """Return whether `parse_stats` reads bounds of a type.

    Parameters
    ----------
    kind : str
        The protocol's name of a primitive type.
    """
    return kind != "present" and (kind in _KINDS or parse_decimal(kind) is not None)


def _code(kind: str) -> tuple[str, int, int, pa.DataType]:
    if found := _KINDS.get(kind):
        return found[0], found[1], 0, found[2]
    if parsed := parse_decimal(kind):
        return "m", *parsed, pa.decimal128(*parsed)
    raise InvalidArgumentError(
        f"Type {kind!r} has no statistics to read; expected decimal(p,s) or one of {sorted(_KINDS)}."
    )


def _split(chunk: pa.Array) -> Iterable[pa.Array]:
    """Cut a chunk until each piece's text is sure to fit."""
    if len(chunk) < 2 or chunk.nbytes <= _CHUNK_BYTES:
        return [chunk]
    half = len(chunk) // 2
    return [*_split(chunk.slice(0, half)), *_split(chunk.slice(half))]


def _read(compiled: Fields, stats: pa.Array, threads: int) -> list[pa.Array]:
    of_type = stats.type
    if pa.types.is_dictionary(of_type):
        return [pc.take(column, stats.indices) for column in _read(compiled, stats.dictionary, threads)]
    if pa.types.is_string_view(of_type):
        stats, of_type = pc.cast(stats, pa.large_string()), pa.large_string()
    large = pa.types.is_large_string(of_type) or pa.types.is_large_binary(of_type)
    if pa.types.is_null(of_type):
        stats = pa.nulls(len(stats), pa.string())
    elif not large and not pa.types.is_string(of_type) and not pa.types.is_binary(of_type):
        raise InvalidArgumentError(f"Statistics are strings, not {of_type}.")
    validity, offsets, text = stats.buffers()
    batch = pa.record_batch(compiled.read(len(stats), stats.offset, validity, offsets, text, large, threads))
    return [batch.column(i) for i in range(batch.num_columns)]
