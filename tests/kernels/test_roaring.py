"""Roaring bytes: the format's own test data, pyroaring in both directions, hostile bytes."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyroaring
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels import roaring
from delta_core.kernels.row_set import RowSet
from tests.corpus.records import bitmaps


def scattered(n: int, num_rows: int, seed: int = 0) -> NDArray[np.int64]:
    return np.sort(np.random.default_rng(seed).choice(num_rows, n, replace=False)).astype(np.int64)


def samples() -> list[NDArray[np.int64]]:
    """Sets that take every kind of container, with and without the offset header, in several buckets."""
    return [
        np.empty(0, np.int64),
        np.array([0]),
        np.arange(5_000),
        scattered(3_000, 60_000),
        scattered(20_000, 60_000),
        np.concatenate([np.arange(70_000), scattered(9_000, 65_536) + 131_072, np.array([10**6, 10**6 + 2])]),
        np.arange(0, 400_000, 20),
        np.concatenate([scattered(50, 10**6), np.arange(100) + 2**32, scattered(5_000, 65_536) + 2**35, [2**62]]),
    ]


@pytest.mark.golden
@pytest.mark.parametrize(("file", "record"), bitmaps(), ids=lambda case: case.name if isinstance(case, Path) else "")
def test_recorded_bitmap_returns_recorded_values_or_is_rejected(file: Path, record: Any) -> None:
    data = file.read_bytes()
    if record["expect"] == "error":
        with pytest.raises(CorruptTableError):
            RowSet.from_roaring(data, record["bits"])
        return
    rows = RowSet.from_roaring(data, record["bits"])
    positions = roaring.decode_positions(data, record["bits"])
    assert (rows.cardinality, rows.min, rows.max) == (record["cardinality"], record["min"], record["max"])
    assert hashlib.sha256(positions.astype("<u8").tobytes()).hexdigest() == record["values_sha256_le64"]
    assert RowSet.from_roaring(rows.to_roaring(record["bits"]), record["bits"]) == rows
    assert np.array_equal(RowSet.from_positions(positions).positions(), positions)


@pytest.mark.parametrize("optimised", [False, True], ids=["plain", "runs"])
@pytest.mark.parametrize("positions", samples(), ids=range(len(samples())))
def test_pyroaring_bytes_are_read(positions: NDArray[np.int64], optimised: bool) -> None:
    peer = pyroaring.BitMap64(positions.tolist())
    if optimised:
        peer.run_optimize()
    data = peer.serialize()
    rows = RowSet.from_roaring(data)
    assert np.array_equal(rows.positions(), positions)
    assert np.array_equal(roaring.decode_positions(memoryview(b"x" + data)[1:]), positions)
    assert rows == RowSet.from_positions(positions)
    assert rows.to_roaring() == RowSet.from_positions(positions).to_roaring()


@pytest.mark.parametrize("positions", samples(), ids=range(len(samples())))
def test_pyroaring_reads_our_bytes(positions: NDArray[np.int64]) -> None:
    data = RowSet.from_positions(positions).to_roaring()
    assert list(pyroaring.BitMap64.deserialize(data)) == positions.tolist()
    low = positions[positions < 2**32]
    data32 = RowSet.from_positions(low).to_roaring(32)
    assert list(pyroaring.BitMap.deserialize(data32)) == low.tolist()
    optimised = pyroaring.BitMap(low.tolist())
    optimised.run_optimize()
    assert len(data32) <= len(optimised.serialize())


@settings(max_examples=50, deadline=None)
@given(
    st.sets(st.integers(0, 200_000), max_size=300),
    st.lists(st.tuples(st.integers(0, 250_000), st.integers(1, 9_000)), max_size=3),
)
def test_bytes_agree_with_pyroaring_both_ways(some: set[int], ranges: list[tuple[int, int]]) -> None:
    values = some.union(*(range(start, start + n) for start, n in ranges))
    peer = pyroaring.BitMap64(values)
    peer.run_optimize()
    assert RowSet.from_roaring(peer.serialize()).positions().tolist() == sorted(values)
    assert set(pyroaring.BitMap64.deserialize(RowSet.from_positions(sorted(values)).to_roaring())) == values


@pytest.mark.parametrize("positions", samples()[:7], ids=range(7))
@pytest.mark.parametrize("keep", [False, True], ids=["drop", "keep"])
def test_masks_are_decoded_without_a_set(positions: NDArray[np.int64], keep: bool) -> None:
    data = RowSet.from_positions(positions).to_roaring()
    num_rows = int(positions[-1]) + 1 if len(positions) else 0
    for n in (num_rows, num_rows + 1, num_rows + 70_000):
        expected = np.full(n, keep)
        expected[positions] = not keep
        assert np.array_equal(roaring.decode_mask(data, n, keep=keep), expected)
        bits = roaring.decode_bits(data, n, keep=keep)
        assert len(bits) % 8 == 0
        assert np.array_equal(np.unpackbits(bits, bitorder="little")[:n], expected)
        assert not np.unpackbits(bits, bitorder="little")[n:].any()
        out = np.full(len(bits) + 16, 0xFF, np.uint8)
        assert roaring.decode_bits(data, n, out, keep=keep).base is out
        assert np.array_equal(out[: len(bits)], bits)
        assert (out[len(bits) :] == 0xFF).all()


def test_rows_beyond_the_file_are_rejected() -> None:
    data = RowSet.from_positions([1, 99]).to_roaring()
    assert roaring.decode_mask(data, 100)[99] == 1
    for decode in (roaring.decode_mask, roaring.decode_bits):
        with pytest.raises(CorruptTableError, match="row 99"):
            decode(data, 99)
        with pytest.raises(InvalidArgumentError, match="room"):
            decode(data, 100, np.zeros(8, np.uint8))
        with pytest.raises(InvalidArgumentError):
            decode(data, -1)


# --- hostile bytes ----------------------------------------------------------------------------


@pytest.mark.parametrize("positions", samples(), ids=range(len(samples())))
def test_bytes_cut_anywhere_are_rejected(positions: NDArray[np.int64]) -> None:
    data = RowSet.from_positions(positions).to_roaring()
    cuts = range(len(data)) if len(data) < 3_000 else [*range(400), *range(400, len(data), 97), len(data) - 1]
    for cut in cuts:
        with pytest.raises(CorruptTableError):
            RowSet.from_roaring(data[:cut])


def test_bytes_behind_the_set_are_rejected_unless_allowed() -> None:
    data = RowSet.from_range(0, 9).to_roaring() + b"\0"
    with pytest.raises(CorruptTableError, match="follow"):
        RowSet.from_roaring(data)
    assert RowSet.from_roaring(data, trailing=True) == RowSet.from_range(0, 9)


@pytest.mark.parametrize("positions", samples()[1:], ids=range(1, len(samples())))
def test_flipped_bits_return_a_sound_set_or_a_typed_error(positions: NDArray[np.int64]) -> None:
    data = RowSet.from_positions(positions).to_roaring()
    rng = np.random.default_rng(3)
    at = np.concatenate([np.arange(min(len(data), 120)), rng.integers(0, len(data), 60)])
    for place in at:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        try:
            rows = RowSet.from_roaring(changed)
        except CorruptTableError:
            continue
        found = rows.positions()
        assert len(found) == rows.cardinality
        assert (np.diff(found) > 0).all()
        assert (rows.min, rows.max) == (found[0], found[-1])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=120), st.sampled_from(["3a300000", "3b300000", "3b300300", ""]), st.sampled_from([32, 64]))
def test_random_bytes_return_a_sound_set_or_a_typed_error(tail: bytes, cookie: str, bits: int) -> None:
    bucket = bytes.fromhex("0100000000000000 00000000") if bits == 64 else b""
    try:
        rows = RowSet.from_roaring(bucket + bytes.fromhex(cookie) + tail, bits, trailing=True)
    except CorruptTableError:
        return
    assert (np.diff(rows.positions()) > 0).all()


def portable(*containers: tuple[int, int, bytes], runs: bytes = b"") -> bytes:
    """A 32-bit bitmap of (key, cardinality, values) with an offset header if the format has one."""
    n = len(containers)
    head = (12347 | (n - 1) << 16).to_bytes(4, "little") + runs if runs else np.array([12346, n], "<u4").tobytes()
    keys = b"".join(key.to_bytes(2, "little") + (count - 1).to_bytes(2, "little") for key, count, _ in containers)
    offsets, at = b"", len(head) + len(keys) + 4 * n
    for _, _, values in containers:
        offsets += at.to_bytes(4, "little")
        at += len(values)
    return head + keys + (b"" if runs and n < 4 else offsets) + b"".join(values for _, _, values in containers)


def u16(*values: int) -> bytes:
    return np.array(values, "<u2").tobytes()


def test_hand_made_bytes_are_read() -> None:
    arrays = portable((0, 2, u16(1, 5)), (3, 1, u16(9)))
    assert RowSet.from_roaring(arrays, 32).positions().tolist() == [1, 5, 3 * 65536 + 9]
    runs = portable((0, 6, u16(2, 10, 3, 20, 1)), (1, 2, u16(1, 5)), runs=b"\1")
    assert RowSet.from_roaring(runs, 32).positions().tolist() == [10, 11, 12, 13, 20, 21, 65537, 65541]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (portable((1, 1, u16(1)), (1, 1, u16(2))), "keys don't ascend"),
        (portable((2, 1, u16(1)), (1, 1, u16(2))), "keys don't ascend"),
        (portable((0, 2, u16(5, 5))), "values don't ascend"),
        (portable((0, 2, u16(5, 4))), "values don't ascend"),
        (portable((0, 5_000, b"\xff" * 8192)), "bits don't add up"),
        (portable((0, 3, u16(1, 10, 3)), runs=b"\1"), "add up"),
        (portable((0, 4, u16(2, 10, 1, 11, 1)), runs=b"\1"), "overlap"),
        (portable((0, 12, u16(1, 65_530, 11)), runs=b"\1"), "65,535"),
        (portable((0, 1, u16(0)), runs=b"\1"), "add up"),
        (portable((0, 2, u16(1, 5))).replace(b"\x10\0\0\0", b"\x11\0\0\0"), "offset"),
        ((12346).to_bytes(4, "little") + (65_537).to_bytes(4, "little"), "65,536 containers"),
        (b"\0" * 8, "cookie"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_container_is_named(data: bytes, words: str) -> None:
    with pytest.raises(CorruptTableError, match=words) as caught:
        RowSet.from_roaring(data, 32)
    assert isinstance(caught.value.offset, int)


@pytest.mark.parametrize(
    ("keys", "words"), [([2**31], "top bit"), ([1, 1], "keys don't ascend"), ([2, 1], "keys don't ascend")]
)
def test_broken_bucket_is_named(keys: list[int], words: str) -> None:
    bitmap = portable((0, 1, u16(1)))
    data = len(keys).to_bytes(8, "little") + b"".join(key.to_bytes(4, "little") + bitmap for key in keys)
    with pytest.raises(CorruptTableError, match=words):
        RowSet.from_roaring(data)


def test_claimed_bucket_count_allocates_nothing() -> None:
    with pytest.raises(CorruptTableError, match="more buckets"):
        RowSet.from_roaring((2**64 - 1).to_bytes(8, "little") + b"\0" * 100)


# --- deletion vectors -------------------------------------------------------------------------


def test_payload_without_its_magic_number_is_rejected() -> None:
    for payload in (b"", b"\0\0\0", b"\0" * 12):
        with pytest.raises(CorruptTableError, match="magic number"):
            roaring.decode_dv_payload(payload)


def test_block_returns_its_payload() -> None:
    payload = roaring.encode_dv_payload(RowSet.from_positions([0, 9, 70_000]))
    block = roaring.format_dv_block(payload)
    assert block[:4] == len(payload).to_bytes(4, "big")
    assert block[-4:] == zlib.crc32(payload).to_bytes(4, "big")
    assert roaring.read_dv_block(block, len(payload)) == payload
    assert roaring.read_dv_block(np.frombuffer(block + b"next", np.uint8), len(payload)) == payload


def test_broken_block_is_rejected() -> None:
    payload = roaring.encode_dv_payload(RowSet.from_positions([0, 9, 70_000]))
    block = roaring.format_dv_block(payload)
    with pytest.raises(CorruptTableError, match="sizeInBytes 7"):
        roaring.read_dv_block(block, 7)
    for cut in range(len(block)):
        with pytest.raises(CorruptTableError):
            roaring.read_dv_block(block[:cut], len(payload))
    for place in range(len(block)):
        changed = bytearray(block)
        changed[place] ^= 4
        with pytest.raises(CorruptTableError):
            roaring.read_dv_block(changed, len(payload))
    with pytest.raises(CorruptTableError):
        roaring.read_dv_block(b"\xff\xff\xff\xff" + block, -1)
