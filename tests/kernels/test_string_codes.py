"""Codes of strings against PyArrow's dictionary encoding."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels._string_codes import string_codes
from delta_core.kernels.arrow_buffers import string_buffers
from delta_core.kernels.string_codes import dictionary_of, own_dictionaries

MANY = 1 << 20
TEXTS = st.one_of(
    st.sampled_from(["", "a", "name 17", "8 bytes.", "9 bytes..", "é" * 8]), st.text("ab\0é", max_size=40)
)
CHUNKS = st.lists(st.lists(st.none() | TEXTS, max_size=30), max_size=4)


def check(texts: pa.ChunkedArray) -> None:
    """Compare with PyArrow: the same rows, and values in the order of their first rows."""
    found = dictionary_of(texts, MANY)
    assert found is not None
    found.validate(full=True)
    assert found.cast(pa.string()).equals(texts)
    expected = list(dict.fromkeys(t for t in texts.to_pylist() if t is not None))
    for chunk in found.chunks:
        assert chunk.dictionary.to_pylist() == expected


@settings(max_examples=200, deadline=None)
@given(CHUNKS, st.integers(0, 5))
def test_codes_are_those_of_the_texts(chunks: list[list[str | None]], start: int) -> None:
    check(pa.chunked_array([pa.array(c, pa.string()).slice(start) for c in chunks], pa.string()))


@pytest.mark.parametrize("size", range(40))
def test_texts_that_differ_in_one_byte_are_different(size: int) -> None:
    word = "x" * size
    texts = [word, *(word[:i] + "y" + word[i + 1 :] for i in range(size))] * 2
    check(pa.chunked_array([pa.array(texts)]))


@pytest.mark.parametrize("distinct", [1, 1000, 9000, 40_000])
def test_many_values(distinct: int) -> None:
    numbers = np.sort(np.random.default_rng(1).integers(0, distinct, 200_000))
    values = pa.array([f"value {i}" for i in range(distinct)])
    check(pa.chunked_array([values.take(pa.array(numbers[:150_000])), values.take(pa.array(numbers[150_000:]))]))


def test_all_null() -> None:
    found = dictionary_of(pa.chunked_array([pa.nulls(9, pa.string())]), MANY)
    assert found is not None
    assert found.null_count == 9
    assert len(found.chunk(0).dictionary) == 0


def test_values_that_take_too_many_bytes_have_no_codes() -> None:
    texts = pa.chunked_array([pa.array(["abc", "de", "abc"])])
    assert dictionary_of(texts, 4 + 3 + 4 + 2) is not None
    assert dictionary_of(texts, 4 + 3 + 4 + 1) is None


def test_mostly_distinct_texts_have_no_codes() -> None:
    assert dictionary_of(pa.chunked_array([pa.array([str(i) for i in range(30_000)])]), MANY) is None
    assert dictionary_of(pa.chunked_array([pa.array([str(i) for i in range(16_384)])]), MANY) is not None


def test_texts_whose_hashes_are_equal_are_given_up() -> None:
    """The kernel's own hash, so that every text begins at the same slot: a comparison with each would take hours."""
    mask, factor = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def step(known: int, word: int) -> int:
        return ((known << 29 | known >> 35) & mask ^ word) * factor & mask

    dice = random.Random(1)
    texts = []
    for _ in range(12_000):
        first, last = dice.getrandbits(64), dice.getrandbits(64)
        before = step(step(24, first), last)
        # as many bytes as hash to the same value whatever the other two words are
        once = (before << 29 | before >> 35) & mask
        inner = once ^ 12345
        # the words behind the eighth byte: the middle one alone, since the last one begins at the sixteenth
        texts.append(first.to_bytes(8, "little") + inner.to_bytes(8, "little") + last.to_bytes(8, "little"))
    chunk = pa.array(texts, pa.binary()).view(pa.string())
    assert dictionary_of(pa.chunked_array([chunk]), MANY) is None


def test_short_output_is_rejected() -> None:
    chunk = pa.array(["a", "b"])
    buffer = pa.allocate_buffer(8)
    parts = [(string_buffers(chunk), 2)]
    with pytest.raises(InvalidArgumentError, match="too short"):
        string_codes(parts, [(buffer.address, 7)], 100)
    with pytest.raises(InvalidArgumentError, match="another part"):
        string_codes(parts, [], 100)
    with pytest.raises(InvalidArgumentError, match="too many bytes"):
        string_codes(parts, [(buffer.address, 8)], 1 << 30)


def test_offsets_beyond_the_data_are_rejected() -> None:
    ends = pa.py_buffer(np.array([0, 100, 2, 3], np.int32))
    damaged = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"abc")])
    with pytest.raises(InvalidArgumentError, match="offsets"):
        dictionary_of(pa.chunked_array([damaged]), MANY)


@pytest.mark.parametrize("rows", [0, 1, 1024, 1025, 3000])
def test_own_dictionaries_hold_the_texts(rows: int) -> None:
    texts = [None if i % 7 == 3 else f"t{i % 900}" for i in range(rows)]
    chunks = [pa.array(texts[:700], pa.string()), pa.array(["x", *texts[700:]], pa.string()).slice(1)]
    column = pa.chunked_array(chunks, pa.string())
    found = own_dictionaries(column)
    found.validate(full=True)
    assert found.cast(pa.string()).to_pylist() == texts
