"""RowSet against Python sets and NumPy."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

from delta_core.errors import CorruptTableError, InvalidArgumentError
from delta_core.kernels.roaring import DV_MAGIC, encode_dv_payload, format_dv_block
from delta_core.kernels.row_set import RowSet, RowSets

LAST = 2**63 - 1
STARTS = st.one_of(st.integers(0, 300_000), st.sampled_from([65_535, 65_536, 2**32 - 40, 2**40, LAST - 70_000]))


@st.composite
def position_arrays(draw: st.DrawFn) -> NDArray[np.int64]:
    """Positions in pieces that become arrays, bitmaps and runs."""
    pieces = [np.empty(0, np.int64)]
    for _ in range(draw(st.integers(0, 4))):
        start = draw(STARTS)
        offsets = np.arange(draw(st.integers(0, 70_000)), dtype=np.int64)
        keep = draw(st.sampled_from([1.0, 0.5, 0.1, 0.001]))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        pieces.append(start + offsets[rng.random(len(offsets)) < keep])
    return np.unique(np.concatenate(pieces))


def windows(positions: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Windows (start, number of rows) at, before and behind the positions, on and off word borders."""
    first = int(positions[0]) if len(positions) else 0
    last = int(positions[-1]) if len(positions) else 0
    near = [(first, 1), (max(first - 3, 0), 200), (first // 64 * 64, 131_072), (max(last - 100, 0), 101), (0, 70_001)]
    return [(start, min(n, LAST - start)) for start, n in near]


@settings(max_examples=60, deadline=None)
@given(position_arrays())
def test_positions_come_back_in_order(positions: NDArray[np.int64]) -> None:
    rows = RowSet.from_positions(positions)
    assert np.array_equal(rows.positions(), positions)
    assert len(rows) == rows.cardinality == len(positions)
    assert bool(rows) == bool(len(positions))
    assert (rows.min, rows.max) == ((positions[0], positions[-1]) if len(positions) else (None, None))
    shuffled = np.random.default_rng(1).permutation(np.concatenate([positions, positions[:5]]))
    assert RowSet.from_positions(shuffled) == rows


@settings(max_examples=60, deadline=None)
@given(position_arrays())
def test_every_window_equals_membership(positions: NDArray[np.int64]) -> None:
    rows = RowSet.from_positions(positions)
    for start, n in windows(positions):
        inside = positions[(positions >= start) & (positions - n < start)] - start
        expected = np.zeros(n, np.bool_)
        expected[inside] = True
        assert np.array_equal(rows.mask(n, start), expected)
        assert rows.num_between(start, start + n) == len(inside)
        for fill, bits in ((rows.fill_bits, expected), (rows.fill_keep_bits, ~expected)):
            out = np.full((n + 63) // 64 * 8 + 3, 0xA5, np.uint8)
            fill(out, n, start)
            assert np.array_equal(np.unpackbits(out[:-3], bitorder="little", count=n), bits)
            assert not np.unpackbits(out[:-3], bitorder="little")[n:].any()
            assert (out[-3:] == 0xA5).all()


@settings(max_examples=60, deadline=None)
@given(position_arrays(), position_arrays())
@example(np.arange(100_000), np.arange(100_000))
@example(np.arange(0, 100_000, 2), np.arange(1, 100_000, 2))
def test_set_algebra_equals_python_sets(left: NDArray[np.int64], right: NDArray[np.int64]) -> None:
    a, b = RowSet.from_positions(left), RowSet.from_positions(right)
    x, y = set(left.tolist()), set(right.tolist())
    for found, expected in ((a | b, x | y), (a & b, x & y), (a - b, x - y), (a ^ b, x ^ y)):
        assert found.positions().tolist() == sorted(expected)
        assert found == RowSet.from_positions(sorted(expected))
    assert a.isdisjoint(b) == x.isdisjoint(y)
    assert (a == b) == (x == y)
    assert hash(a | b) == hash(b | a)


#: How many values of one container: around the blocks of eight that are compared at once, and the limits of arrays.
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([63, 500, 2047, 2048, 2049, 4088, 4096, 4097, 9000, 65_536]))


@st.composite
def containers(draw: st.DrawFn) -> NDArray[np.int64]:
    """Values of one container: scattered, in a narrow range (so that many are in both sets), or in one run."""
    size, rng = draw(SIZES), np.random.default_rng(draw(st.integers(0, 9)))
    width = min(65_536, draw(st.sampled_from([size, size + 5, 3 * size + 20, 65_536])))
    first = draw(st.integers(0, 65_536 - width))
    return first + np.sort(rng.choice(width, min(size, width), replace=False)).astype(np.int64)


@settings(max_examples=300, deadline=None)
@given(containers(), containers(), st.booleans())
def test_algebra_of_each_kind_of_container_equals_numpy(
    left: NDArray[np.int64], right: NDArray[np.int64], alone: bool
) -> None:
    if not alone:  # with containers before and after it that one side has
        left, right = np.append(left + 65_536, 200_000), np.concatenate([[7], right + 65_536])
    a, b = RowSet.from_positions(left), RowSet.from_positions(right)
    expected = [
        (a | b, np.union1d(left, right)), (a & b, np.intersect1d(left, right)), (a ^ b, np.setxor1d(left, right)),
        (a - b, np.setdiff1d(left, right)), (b - a, np.setdiff1d(right, left)),
    ]  # fmt: skip
    for found, values in expected:
        assert np.array_equal(found.positions(), values)
        assert found.cardinality == len(values)
        made = RowSet.from_positions(values)
        assert (found == made, found.to_roaring()) == (True, made.to_roaring())
        # what was combined is combined again
        assert np.array_equal(((found | a) - b).positions(), np.setdiff1d(np.union1d(values, left), right))
    assert a.isdisjoint(b) == b.isdisjoint(a) == (not len(np.intersect1d(left, right)))


@settings(max_examples=40, deadline=None)
@given(position_arrays(), st.sampled_from([64, 4096, 65_536]))
def test_chunks_hold_the_positions_and_no_chunk_is_empty(positions: NDArray[np.int64], width: int) -> None:
    index, words = RowSet.from_positions(positions).chunks(width)
    assert index.dtype == np.int64
    assert words.shape == (len(index), width // 64)
    assert words.any(axis=1).all()
    bits = np.unpackbits(words.view(np.uint8).reshape(len(index), width // 8), axis=1, bitorder="little")
    chunk, row = np.nonzero(bits)
    assert np.array_equal(index[chunk] * width + row, positions)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), max_size=300), st.integers(0, 3))
def test_mask_and_its_set_are_the_same(bits: list[bool], thousands: int) -> None:
    mask = np.array(bits * (1 + 100 * thousands), np.bool_)
    rows = RowSet.from_mask(mask)
    assert np.array_equal(rows.positions(), np.flatnonzero(mask))
    assert np.array_equal(rows.mask(len(mask)), mask)
    assert RowSet.from_mask(mask.view(np.uint8) * 9) == rows


@settings(max_examples=40, deadline=None)
@given(STARTS, st.integers(0, 200_000))
def test_range_equals_its_positions(start: int, n: int) -> None:
    n = min(n, LAST - start)
    rows = RowSet.from_range(start, start + n)
    assert rows == RowSet.from_positions(np.arange(n) + start)
    assert rows == pickle.loads(pickle.dumps(rows))
    assert rows.to_roaring() == RowSet.from_positions(np.arange(n) + start).to_roaring()


@settings(max_examples=40, deadline=None)
@given(position_arrays())
def test_pickle_keeps_the_set(positions: NDArray[np.int64]) -> None:
    rows = RowSet.from_positions(positions)
    assert pickle.loads(pickle.dumps(rows)) == rows


def test_positions_of_2_to_the_40_take_a_few_bytes() -> None:
    rows = RowSet.from_positions([5, 2**40, 2**62]) | RowSet.from_range(2**41, 2**41 + 1_000_000)
    assert rows.nbytes < 2_000
    assert rows.mask(3, 2**40 - 1).tolist() == [False, True, False]


def test_membership_takes_any_object() -> None:
    rows = RowSet.from_positions([0, 70_000, LAST - 1])
    assert 0 in rows
    assert np.int64(70_000) in rows
    assert LAST - 1 in rows
    assert 1 not in rows
    assert -1 not in rows
    assert 2**64 not in rows
    assert "0" not in rows


def test_adjacent_foreign_runs_equal_one_run() -> None:
    # Cookie with one run container: key 0, cardinality 8 - 1, two runs 0..3 and 4..7.
    data = bytes.fromhex("3b300000 01 0000 0700 0200 0000 0300 0400 0300".replace(" ", ""))
    rows = RowSet.from_roaring(data, bits=32)
    assert rows == RowSet.from_range(0, 8)
    assert rows.to_roaring(32) == RowSet.from_range(0, 8).to_roaring(32) != data


def test_bits_of_a_whole_file_reject_rows_beyond_it() -> None:
    rows = RowSet.from_positions([3, 64])
    assert rows.bits(65).tolist() == [8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(CorruptTableError, match="row 64"):
        rows.bits(64)
    RowSet.empty().check_fits(0)


def test_32_bit_bytes_reject_higher_rows() -> None:
    rows = RowSet.from_positions([2**32 - 1])
    assert RowSet.from_roaring(rows.to_roaring(32), 32) == rows
    with pytest.raises(InvalidArgumentError, match="4294967296"):
        RowSet.from_positions([2**32]).to_roaring(32)


@pytest.mark.parametrize(
    "positions",
    [[-1], [1.5], [[1]], np.array([2**63], np.uint64), ["1"]],
    ids=["negative", "float", "2d", "2**63", "text"],
)
def test_other_positions_are_rejected(positions: object) -> None:
    with pytest.raises(InvalidArgumentError):
        RowSet.from_positions(positions)  # type: ignore[arg-type]


def test_windows_beyond_int64_and_small_buffers_are_rejected() -> None:
    rows = RowSet.from_range(0, 10)
    with pytest.raises(InvalidArgumentError):
        rows.mask(2, LAST)
    with pytest.raises(InvalidArgumentError):
        rows.mask(-1)
    with pytest.raises(InvalidArgumentError):
        rows.fill_bits(np.zeros(15, np.uint8), 65)
    with pytest.raises(InvalidArgumentError):
        rows.fill_mask(np.zeros(4, np.int64))
    with pytest.raises(InvalidArgumentError):
        rows.fill_mask(np.zeros(8, np.uint8)[::2])
    with pytest.raises(InvalidArgumentError):
        rows.chunks(100)


def test_threads_share_a_set() -> None:
    rows = RowSet.from_mask(np.random.default_rng(0).random(500_000) < 0.3)
    expected = rows.positions()
    wrong: list[int] = []

    def read() -> None:
        for _ in range(20):
            if not np.array_equal(np.flatnonzero(rows.mask(500_000)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.one_of(st.integers(0, 9), STARTS)), max_size=40)


def as_sets(pairs: list[tuple[int, int]]) -> list[set[int]]:
    return [{p for f, p in pairs if f == file} for file in range(5)]


def row_sets(pairs: list[tuple[int, int]]) -> RowSets:
    return RowSets.from_positions(5, np.array([f for f, _ in pairs], int), np.array([p for _, p in pairs], int))


@settings(max_examples=100, deadline=None)
@given(PAIRS, PAIRS, st.lists(st.integers(0, 4), max_size=6))
def test_sets_of_many_files_equal_those_of_python(
    first: list[tuple[int, int]], second: list[tuple[int, int]], chosen: list[int]
) -> None:
    mine, theirs, expected = row_sets(first), row_sets(second), as_sets(first)
    assert [set(s.positions().tolist()) for s in mine] == expected
    assert mine.cardinalities().tolist() == [len(s) for s in expected]
    assert mine.last().tolist() == [max(s, default=-1) for s in expected]
    united = [set(s.positions().tolist()) for s in mine | theirs]
    assert united == [a | b for a, b in zip(expected, as_sets(second), strict=True)]
    common = [set(s.positions().tolist()) for s in mine & theirs]
    assert common == [a & b for a, b in zip(expected, as_sets(second), strict=True)]
    rest = [set(s.positions().tolist()) for s in mine - theirs]
    assert rest == [a - b for a, b in zip(expected, as_sets(second), strict=True)]
    assert list(RowSets.joined([mine, RowSets(), theirs])) == [*mine, *theirs]
    assert list(mine.with_more(dict(enumerate(theirs)))) == list(mine | theirs)
    assert list(mine.take(chosen)) == [mine[i] for i in chosen]
    assert pickle.loads(pickle.dumps(mine)) == mine == RowSets(mine)
    assert dict(mine.by_number()) == dict(enumerate(mine))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(position_arrays(), st.integers(0, 80_000), st.integers(0, 3)), max_size=4))
def test_masks_of_many_files_are_those_of_each(parts: list[tuple[NDArray[np.int64], int, int]]) -> None:
    sets = [RowSet.from_positions(positions) for positions, _, _ in parts]
    sizes = np.array([size for _, size, _ in parts], np.int64)
    starts = np.cumsum([gap + size for _, size, gap in parts], dtype=np.int64) - sizes
    room = int(sizes.sum()) + 16
    out, expected = np.ones(room, np.bool_), np.ones(room, np.bool_)
    RowSets(sets).fill_masks(out, starts, sizes)
    for rows, start, size in zip(sets, starts.tolist(), sizes.tolist(), strict=True):
        expected[start : start + size] = rows.mask(size)
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("starts", "sizes"),
    [([0], [11]), ([11], [0]), ([-1], [1]), ([4], [7]), ([0], [-1]), ([1], [LAST]), ([], []), ([0, 1], [1, 1])],
)
def test_masks_that_do_not_lie_within_the_array_are_rejected(starts: list[int], sizes: list[int]) -> None:
    sets, out = RowSets([RowSet.from_positions([3])]), np.ones(10, np.bool_)
    with pytest.raises(InvalidArgumentError):
        sets.fill_masks(out, np.array(starts, np.int64), np.array(sizes, np.int64))
    assert out.all()


@settings(max_examples=60, deadline=None)
@given(st.lists(position_arrays(), max_size=4))
def test_blocks_of_many_files_are_those_of_each(parts: list[NDArray[np.int64]]) -> None:
    sets = [RowSet.from_positions(p) for p in parts]
    payloads = [encode_dv_payload(s) for s in sets]
    data, sizes = RowSets(sets).to_blocks(DV_MAGIC)
    assert data == b"".join(map(format_dv_block, payloads))
    assert sizes.tolist() == list(map(len, payloads))
    # and back, in any order, framed or alone
    files = np.arange(len(parts))[::-1]
    starts = np.cumsum(sizes + 8) - sizes - 8
    for first, length in ((starts, sizes + 8), (starts + 4, sizes)):
        found, good = RowSets.from_blocks(len(parts), files, data, first[::-1], length[::-1], DV_MAGIC)
        assert good.all()
        assert list(found) == sets


@settings(max_examples=200, deadline=None)
@given(position_arrays(), st.data())
def test_vectors_that_are_damaged_are_reported_and_not_read(positions: NDArray[np.int64], draw: st.DataObject) -> None:
    block, _ = RowSets([RowSet.from_positions(positions)]).to_blocks(DV_MAGIC)
    kind = draw.draw(st.sampled_from(["cut off", "a bit", "beyond", "before", "no such file"]))
    data, start, size, file = bytearray(block), 0, len(block), 0
    if kind == "cut off":
        size = draw.draw(st.integers(0, len(block) - 1))
    elif kind == "a bit":
        data[draw.draw(st.integers(0, len(block) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    elif kind == "beyond":
        start = draw.draw(st.sampled_from([1, len(block), len(block) + 1, 2**63 - 1]))
    elif kind == "before":
        start = -1
    else:
        file = draw.draw(st.sampled_from([-1, 1, 2**62]))
    found, good = RowSets.from_blocks(1, np.array([file]), bytes(data), np.array([start]), np.array([size]), DV_MAGIC)
    assert not good.any()
    assert found.cardinalities().tolist() == [0]


def test_second_vector_of_a_file_is_left_to_other_readers() -> None:
    data, sizes = RowSets([RowSet.from_positions([1]), RowSet.from_positions([2])]).to_blocks(DV_MAGIC)
    starts = np.array([0, sizes[0] + 8])
    found, good = RowSets.from_blocks(1, np.zeros(2, int), data, starts, sizes + 8, DV_MAGIC)
    assert good.tolist() == [True, False]
    assert found[0].positions().tolist() == [1]


@pytest.mark.parametrize(
    ("files", "positions"), [([5], [0]), ([-1], [0]), ([0], [-1]), ([1, 0], [3, -1]), ([0.5], [1]), ([[0]], [[1]])]
)
def test_numbers_that_are_no_files_or_positions_are_rejected(files: list[int], positions: list[int]) -> None:
    with pytest.raises(InvalidArgumentError):
        RowSets.from_positions(5, files, positions)


def test_sets_that_are_not_there_are_rejected() -> None:
    sets = row_sets([(0, 1)])
    for index in (5, -6):
        with pytest.raises(IndexError):
            sets[index]
    with pytest.raises(IndexError):
        sets.take([5])
    with pytest.raises(KeyError):
        sets.by_number()[5]
    assert np.int64(0) in sets.by_number()
    assert not {5, -1, "0"} & set(filter(sets.by_number().__contains__, (5, -1, "0")))
    with pytest.raises(InvalidArgumentError, match="can't be combined"):
        sets | RowSets()
