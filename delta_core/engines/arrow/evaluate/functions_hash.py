"""Spark's ``hash`` (Murmur3, 32 bits) and ``xxhash64`` over columns, seed 42, in NumPy.

A row's hash is carried from argument to argument as the seed of the next one; a null leaves it as it is.
Text goes word by word over all rows that still have one, so time grows with the longest text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.evaluate import compute as pc
from delta_core.engines.arrow.evaluate.compute import CallInfo, Kernel, Maker, on_arrays, to_numpy
from delta_core.errors import UnsupportedExpressionError
from delta_core.kernels.arrow_buffers import values_of
from delta_core.schema.types import arrow_to_type

__all__ = ["MAKERS", "hash_values"]

_U32, _U64 = np.uint32, np.uint64
_P1, _P2, _P3 = _U64(0x9E3779B185EBCA87), _U64(0xC2B2AE3D27D4EB4F), _U64(0x165667B19E3779F9)
_P4, _P5 = _U64(0x85EBCA77C2B2AE63), _U64(0x27D4EB2F165667C5)


def _rotate(x: Any, bits: int) -> Any:
    kind, width = x.dtype.type, x.dtype.itemsize * 8
    return (x << kind(bits)) | (x >> kind(width - bits))


class _Text(Struct, frozen=True):
    """The bytes of each row: where they start in one buffer, and how many there are."""

    data: Any
    starts: Any
    lengths: Any

    def words(self, kind: Any, at: Any, rows: Any) -> Any:
        """Read an unaligned little-endian number at a row's byte offset; the caller has checked the lengths."""
        size = np.dtype(kind).itemsize
        count = len(self.data) - size + 1
        view = np.ndarray((max(count, 0),), np.dtype(kind).newbyteorder("<"), self.data, strides=(1,))
        return view[self.starts[rows] + at[rows]].astype(kind)


class _Murmur3:
    """Spark's Murmur3_x86_32; the bytes that fill no word are mixed one by one, signed, as Spark does."""

    start = _U32(42)
    signed = np.int32

    @staticmethod
    def _mix(h: Any, k: Any) -> Any:
        h = h ^ (_rotate(k * _U32(0xCC9E2D51), 15) * _U32(0x1B873593))
        return _rotate(h, 13) * _U32(5) + _U32(0xE6546B64)

    @staticmethod
    def _finish(h: Any, length: Any) -> Any:
        h = h ^ length
        h = (h ^ (h >> _U32(16))) * _U32(0x85EBCA6B)
        h = (h ^ (h >> _U32(13))) * _U32(0xC2B2AE35)
        return h ^ (h >> _U32(16))

    def int32(self, values: Any, seed: Any) -> Any:
        return self._finish(self._mix(seed, values.view(_U32)), _U32(4))

    def int64(self, values: Any, seed: Any) -> Any:
        wide = values.view(_U64)
        low, high = wide.astype(_U32), (wide >> _U64(32)).astype(_U32)
        return self._finish(self._mix(self._mix(seed, low), high), _U32(8))

    def text(self, text: _Text, seed: Any) -> Any:
        h, at = seed.copy(), np.zeros(len(seed), np.int64)
        rows = np.flatnonzero(text.lengths >= 4)
        while len(rows):
            h[rows] = self._mix(h[rows], text.words(_U32, at, rows))
            at[rows] += 4
            rows = rows[text.lengths[rows] - at[rows] >= 4]
        rows = np.flatnonzero(text.lengths > at)
        while len(rows):
            h[rows] = self._mix(h[rows], text.words(np.int8, at, rows).astype(np.int32).view(_U32))
            at[rows] += 1
            rows = rows[text.lengths[rows] > at[rows]]
        return self._finish(h, text.lengths.astype(_U32))


class _XxHash64:
    """XXH64 with the row's hash so far as its seed."""

    start = _U64(42)
    signed = np.int64

    @staticmethod
    def _finish(h: Any) -> Any:
        h = (h ^ (h >> _U64(33))) * _P2
        h = (h ^ (h >> _U64(29))) * _P3
        return h ^ (h >> _U64(32))

    @staticmethod
    def _word(h: Any, k: Any) -> Any:
        return _rotate(h ^ (_rotate(k * _P2, 31) * _P1), 27) * _P1 + _P4

    @staticmethod
    def _half(h: Any, k: Any) -> Any:
        return _rotate(h ^ (k.astype(_U64) * _P1), 23) * _P2 + _P3

    def int32(self, values: Any, seed: Any) -> Any:
        return self._finish(self._half(seed + _P5 + _U64(4), values.view(_U32)))

    def int64(self, values: Any, seed: Any) -> Any:
        return self._finish(self._word(seed + _P5 + _U64(8), values.view(_U64)))

    def text(self, text: _Text, seed: Any) -> Any:
        h, at = seed + _P5, np.zeros(len(seed), np.int64)
        long = np.flatnonzero(text.lengths >= 32)
        if len(long):
            h[long] = self._stripes(text, seed, at, long)
        h = h + text.lengths.astype(_U64)
        for size, kind, step in ((8, _U64, self._word), (4, _U32, self._half), (1, np.uint8, self._byte)):
            rows = np.flatnonzero(text.lengths - at >= size)
            while len(rows):
                h[rows] = step(h[rows], text.words(kind, at, rows))
                at[rows] += size
                rows = rows[text.lengths[rows] - at[rows] >= size]
        return self._finish(h)

    @staticmethod
    def _byte(h: Any, k: Any) -> Any:
        return _rotate(h ^ (k.astype(_U64) * _P5), 11) * _P1

    @staticmethod
    def _stripes(text: _Text, seed: Any, at: Any, long: Any) -> Any:
        s = seed[long]
        lanes = np.stack([s + _P1 + _P2, s + _P2, s, s - _P1])
        active = np.arange(len(long))
        while len(active):
            rows = long[active]
            for lane in range(4):
                word = text.words(_U64, at, rows)
                lanes[lane, active] = _rotate(lanes[lane, active] + word * _P2, 31) * _P1
                at[rows] += 8
            active = active[text.lengths[long[active]] - at[long[active]] >= 32]
        h = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
        for lane in lanes:
            h = (h ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
        return h


def _bytes_of(array: pa.Array) -> _Text:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
    return _Text(data, offsets[:-1], np.diff(offsets))


def _float_bits(values: Any, kind: Any) -> Any:
    """Return a float's bits with one zero and one NaN."""
    return np.where(np.isnan(values), values.dtype.type(np.nan), values + values.dtype.type(0)).view(kind)


def _carry(algorithm: Any, array: pa.Array, seed: Any) -> Any:
    """Return the hashes after one more column."""
    t = array.type
    if pa.types.is_struct(t):
        for i in range(t.num_fields):
            seed = _carry(algorithm, pc.struct_field(array, indices=[i]), seed)
        return seed
    if pa.types.is_list(t):
        return _carry_list(algorithm, array, seed)
    if pa.types.is_null(t):
        return seed
    hashed = _hash_column(algorithm, array, seed)
    if array.null_count == 0:
        return hashed
    return np.where(array.is_null().to_numpy(zero_copy_only=False), seed, hashed)


def _carry_list(algorithm: Any, array: pa.Array, seed: Any) -> Any:
    lengths = pc.coalesce(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = array.offsets.to_numpy()[:-1]
    for i in range(int(lengths.max(initial=0))):
        element = array.values.take(pa.array(offsets.astype(np.int64) + i, mask=lengths <= i))
        seed = _carry(algorithm, element, seed)
    return seed


def _hash_column(algorithm: Any, array: pa.Array, seed: Any) -> Any:
    t = array.type
    if pa.types.is_string(t) or pa.types.is_binary(t):
        return algorithm.text(_bytes_of(array), seed)
    if pa.types.is_decimal128(t):
        if t.precision <= 18:
            unscaled = np.frombuffer(array.buffers()[1], np.int64)[
                array.offset * 2 : (array.offset + len(array)) * 2 : 2
            ]
            return algorithm.int64(np.ascontiguousarray(unscaled), seed)
        return algorithm.text(_bytes_of(pa.array([_java_bytes(v) for v in array.to_pylist()], pa.binary())), seed)
    values, _ = to_numpy(array)
    if pa.types.is_floating(t):
        bits = _float_bits(values, np.int32 if t.bit_width == 32 else np.int64)
        return algorithm.int32(bits, seed) if t.bit_width == 32 else algorithm.int64(bits, seed)
    if pa.types.is_int64(t) or pa.types.is_timestamp(t):
        return algorithm.int64(np.ascontiguousarray(values, np.int64), seed)
    return algorithm.int32(np.ascontiguousarray(values.astype(np.int32)), seed)


def _java_bytes(value: Any) -> bytes | None:
    """Return a decimal's unscaled number as Java's BigInteger.toByteArray does."""
    if value is None:
        return None
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return number.to_bytes((number if number >= 0 else -number - 1).bit_length() // 8 + 1, "big", signed=True)


def hash_values(array: pa.Array) -> Any:
    """Return a number for each value, equal for equal ones: a hash of text, else the value's bits; any for null."""
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        with np.errstate(over="ignore"):
            return _XxHash64().text(_bytes_of(array), np.full(len(array), _XxHash64.start))
    values = values_of(array)
    if pa.types.is_floating(array.type):
        return _float_bits(values, np.int32 if array.type.bit_width == 32 else np.int64)
    return values


def _hash(algorithm: Any) -> Maker:
    def maker(call: CallInfo) -> Kernel:
        for t in call.inputs:
            _check(pc.evaluated_type(t), call.name)

        def kernel(*arrays: pa.Array) -> pa.Array:
            seed = np.full(len(arrays[0]), algorithm.start)
            with np.errstate(over="ignore"):
                for array in arrays:
                    seed = _carry(algorithm, array, seed)
            return pa.array(seed.view(algorithm.signed))

        return on_arrays(kernel)

    return maker


def _check(t: pa.DataType, name: str) -> None:
    if pa.types.is_map(t):
        raise UnsupportedExpressionError(
            f"{name} of {arrow_to_type(t)} is not supported: maps have no hash.", function=name
        )
    for i in range(t.num_fields):
        _check(t.field(i).type, name)


MAKERS: Mapping[str, Maker] = {"hash": _hash(_Murmur3()), "xxhash64": _hash(_XxHash64())}
