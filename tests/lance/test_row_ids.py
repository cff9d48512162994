"""Sequences of row ids and of versions: properties, examples of bytes, damaged ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_plugins.lance._metadata import Segments
from delta_plugins.lance.row_ids import RowNumbers, encode_ids
from delta_plugins.lance.wire import encode
from tests.example_counts import examples

TOP = (1 << 64) - 1


def segments(*sequences: bytes, versions: bool = False) -> Segments:
    sizes = np.array([len(s) for s in sequences], np.int64)
    return Segments(b"".join(sequences), np.cumsum(sizes) - sizes, sizes, versions)


def ids_of(data: bytes) -> list[int]:
    found = segments(data)
    return [int(i) for i in found.numbers(0, 0, int(found.counts[0]))]


def sequence(*parts: dict[str, Any]) -> bytes:
    return encode("RowIdSequence", {"segments": parts})


ids = st.one_of(
    st.integers(0, TOP - 10_000).flatmap(lambda a: st.lists(st.integers(a, a + 300), unique=True)),
    st.lists(st.integers(0, TOP), unique=True, max_size=50),
    st.tuples(st.integers(0, TOP - 10_000), st.integers(0, 5000)).map(lambda t: list(range(t[0], t[0] + t[1]))),
    st.tuples(st.integers(0, TOP - 10_000), st.sets(st.integers(1, 4000))).map(
        lambda t: [t[0] + i for i in range(5000) if i not in t[1]]
    ),
)


@settings(max_examples=examples(100), deadline=None)
@given(ids, st.booleans(), st.data())
def test_ids_are_as_they_were_encoded(values: list[int], sort: bool, data: st.DataObject) -> None:
    expected = sorted(values) if sort else values
    found = segments(b"\x0a\x04\x0a\x02\x10\x03", encode_ids(np.array(expected, np.uint64)))
    assert found.counts.tolist() == [3, len(expected)]
    start = data.draw(st.integers(0, len(expected)))
    stop = data.draw(st.integers(start, len(expected)))
    assert [int(i) for i in found.numbers(1, start, stop)] == expected[start:stop]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(ids, max_size=4), st.lists(st.integers(0, TOP), max_size=5))
def test_find_returns_every_place_of_each_id(sequences: list[list[int]], others: list[int]) -> None:
    found = segments(*(encode_ids(np.array(s, np.uint64)) for s in sequences))
    n = len(sequences)
    numbers = RowNumbers(found, np.arange(n, dtype=np.int64), np.arange(n, dtype=np.int64))
    asked = [*others, *(i for s in sequences for i in s[::7])]
    matches = numbers.find(np.array(asked, np.uint64))
    got = sorted(zip(matches.request.tolist(), matches.fragment.tolist(), matches.position.tolist(), strict=True))
    places = [{value: i for i, value in enumerate(s)} for s in sequences]
    assert got == sorted((r, f, p[v]) for r, v in enumerate(asked) for f, p in enumerate(places) if v in p)


def test_segments_of_every_kind_are_read() -> None:
    data = sequence(
        {"range": {"start": 0, "end": 3}},
        {"range_with_holes": {"start": 10, "end": 15, "holes": {"u16_array": {"base": 11, "offsets": b"\0\0\2\0"}}}},
        {"range_with_bitmap": {"start": 20, "end": 30, "bitmap": b"\x05\x02"}},
        {"sorted_array": {"u32_array": {"base": 40, "offsets": b"\0\0\0\0\x05\0\0\0"}}},
        {"array": {"u64_array": {"values": b"\xff" * 8 + b"\1" + bytes(7)}}},
        {"array": {"u16_array": {"base": 7}}},
    )
    assert ids_of(data) == [0, 1, 2, 10, 12, 14, 20, 22, 29, 40, 45, TOP, 1]


def test_range_without_start_begins_at_zero() -> None:
    assert ids_of(bytes.fromhex("0a040a021005")) == [0, 1, 2, 3, 4]


def test_bitmap_begins_with_the_lowest_bit() -> None:
    assert ids_of(sequence({"range_with_bitmap": {"start": 8, "end": 12, "bitmap": b"\x01"}})) == [8]


def test_versions_are_runs_of_rows() -> None:
    data = encode(
        "RowDatasetVersionSequence",
        {
            "runs": [
                {"span": {"range": {"end": 2}}, "version": 7},
                {"span": {"range": {"start": 2, "end": 3}}, "version": 9},
            ]
        },
    )
    found = segments(data, versions=True)
    assert found.counts.tolist() == [3]
    assert found.numbers(0, 0, 3).tolist() == [7, 7, 9]
    assert found.numbers(0, 1, 2).tolist() == [7]


def test_long_range_takes_no_memory() -> None:
    found = segments(sequence({"range": {"start": 5, "end": 5 + (1 << 62)}}))
    assert found.counts.tolist() == [1 << 62]
    assert found.numbers(0, (1 << 62) - 2, 1 << 62).tolist() == [(1 << 62) + 3, (1 << 62) + 4]


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        ({"range": {"start": 5, "end": 4}}, "ends before it starts"),
        ({"range": {"end": TOP}}, "too long"),
        ({"range_with_holes": {"end": 5, "holes": {"u16_array": {"base": 5, "offsets": b"\0\0"}}}}, "holes"),
        ({"range_with_holes": {"end": 5, "holes": {"u16_array": {"offsets": b"\2\0\1\0"}}}}, "holes"),
        ({"range_with_holes": {"end": 5, "holes": {"u16_array": {"offsets": b"\2\0\2\0"}}}}, "holes"),
        ({"range_with_bitmap": {"end": 9, "bitmap": b"\0"}}, "bitmap"),
        ({"sorted_array": {"u16_array": {"offsets": b"\2\0\1\0"}}}, "unsorted"),
        ({"array": {"u32_array": {"base": TOP, "offsets": b"\1\0\0\0"}}}, "too large"),
        ({"array": {"u64_array": {"values": b"123"}}}, "array of a segment can't be decoded"),
        ({}, "no kind"),
    ],
)
def test_damaged_segment_is_rejected(segment: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptTableError, match=message):
        segments(sequence(segment))


def test_two_ranges_that_are_too_long_together_are_rejected() -> None:
    long = {"range": {"end": (1 << 63) - 1}}
    with pytest.raises(CorruptTableError, match="too long"):
        segments(sequence(long, long))


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_read_or_rejected(data: bytes, versions: bool) -> None:
    try:
        found = segments(data, versions=versions)
    except CorruptTableError:
        return
    count = int(found.counts[0])
    assert len(found.numbers(0, 0, min(count, 1000))) == min(count, 1000)


def test_rows_outside_of_a_sequence_are_rejected() -> None:
    found = segments(sequence({"range": {"end": 3}}))
    for number, start, stop in ((0, 2, 4), (0, -1, 2), (0, 2, 1), (1, 0, 0), (-1, 0, 0)):
        with pytest.raises(InvalidArgumentError):
            found.numbers(number, start, stop)


@pytest.mark.parametrize("values", [[TOP], [TOP - 1, TOP], [0, TOP], [TOP, 0]])
def test_largest_id_is_encoded(values: list[int]) -> None:
    assert ids_of(encode_ids(np.array(values, np.uint64))) == values


def test_ids_that_occur_twice_are_not_encoded() -> None:
    with pytest.raises(InvalidArgumentError, match="twice"):
        encode_ids(np.array([1, 1], np.uint64))
