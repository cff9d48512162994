"""Pages of files of versions 2.1 and 2.2, byte by byte: compressions, levels, and what is damaged."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import DataFileError, UnsupportedFeatureError
from delta_plugins.lance import _pages
from tests.lance.made_files import (
    EMPTYABLE_LIST,
    FLAT16,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
    VALID_ITEM,
    VALID_LIST,
    MadePage,
    chunk,
    file_bytes,
    flat,
    leaf,
    list_of,
    mini_blocks,
    opened_bytes,
    read_page,
)

ORDER = (0, 4, 2, 6, 1, 5, 3, 7)


def _packed(values: list[int], bits: int, width: int) -> bytes:
    """Pack 1,024 values as FastLanes does, bit by bit."""
    lanes = 1024 // bits
    words = [0] * (width * lanes)
    for lane in range(lanes):
        for row in range(bits):
            value = values[ORDER[row // 8] * 16 + row % 8 * 128 + lane]
            for k in range(width):
                at = row * width + k
                words[at // bits * lanes + lane] |= (value >> k & 1) << at % bits
    return b"".join(w.to_bytes(bits // 8, "little") for w in words)


@pytest.mark.parametrize(("bits", "width"), [(8, 0), (8, 3), (16, 11), (32, 1), (32, 32), (64, 17), (64, 64), (8, 8)])
def test_inline_packed_values_are_unpacked(bits: int, width: int) -> None:
    random = np.random.default_rng(bits * 100 + width)
    values = [int(v) % (1 << width) for v in random.integers(0, 2**63, 1024)]
    data = width.to_bytes(bits // 8, "little") + _packed(values, bits, width)
    coding = {"inline_bitpacking": {"uncompressed_bits_per_value": bits}}
    page = mini_blocks(coding, [(1024, chunk([data])), (1000, chunk([data]))], 2024)
    field = leaf(f"uint{bits}")
    assert read_page(page, field) == values + values[:1000]
    assert read_page(page, field, (1000, 1030)) == values[1000:] + values[:6]
    assert read_page(page, field, np.array([0, 5, 1023, 1024, 2023])) == [values[i] for i in (0, 5, 1023, 0, 999)]


@pytest.mark.parametrize("n", [5, 1024, 1029, 2047])
@pytest.mark.parametrize("is_raw", [True, False])
def test_levels_packed_out_of_line_are_unpacked(n: int, is_raw: bool) -> None:
    """The last block is packed too, or its values are stored as they are."""
    levels = [int(i % 7 == 3) for i in range(n)]
    whole, rest = divmod(n, 1024)
    blocks = [_packed(levels[i * 1024 : i * 1024 + 1024], 16, 1) for i in range(whole)]
    tail = levels[whole * 1024 :]
    if rest and is_raw:
        blocks.append(np.array(tail, "<u2").tobytes())
    elif rest:
        blocks.append(_packed(tail + [0] * (1024 - rest), 16, 1))
    coding = {"out_of_line_bitpacking": {"uncompressed_bits_per_value": 16, "values": flat(1)}}
    packed = b"".join(blocks)
    head = struct.pack("<HHI", n, len(packed), 4 * n)
    pad = lambda b: b + b"\xfe" * (-len(b) % 8)  # noqa: E731
    data = pad(head) + pad(packed) + pad(np.arange(n, dtype="<i4").tobytes())
    page = mini_blocks(flat(32), [(n, data)], n, layers=[NULLABLE_ITEM], definition=coding)
    assert read_page(page, leaf("int32")) == [None if level else i for i, level in enumerate(levels)]


def _symbol_table(symbols: list[bytes]) -> bytes:
    head = (0x46535354 << 32 | 1 << 24 | len(symbols)).to_bytes(8, "little")
    return head + b"".join(s.ljust(8, b"\0") for s in symbols) + bytes(len(s) for s in symbols)


@given(
    st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=255),
    st.lists(st.lists(st.integers(0, 511), max_size=30), min_size=1, max_size=40),
    st.data(),
)
def test_texts_of_fsst_are_decoded(symbols: list[bytes], rows: list[list[int]], data: st.DataObject) -> None:
    codes, texts = [], []
    for row in rows:
        code, text = b"", b""
        for k in row:
            if k < 256:
                code += bytes([k % len(symbols)])
                text += symbols[k % len(symbols)]
            else:
                code += bytes([255, k - 256])
                text += bytes([k - 256])
        codes.append(code)
        texts.append(text)
    start = 4 * (len(rows) + 1)
    ends = start + np.cumsum([0, *map(len, codes)])
    stored = ends.astype("<u4").tobytes() + b"".join(codes)
    coding = {"fsst": {"symbol_table": _symbol_table(symbols), "values": {"variable": {"offsets": flat(32)}}}}
    page = mini_blocks(coding, [(len(rows), chunk([stored]))], len(rows))
    assert read_page(page, leaf("binary")) == texts
    first = data.draw(st.integers(0, len(rows)))
    last = data.draw(st.integers(first, len(rows)))
    assert read_page(page, leaf("binary"), (first, last)) == texts[first:last]
    assert read_page(page, leaf("large_binary")) == texts


@pytest.mark.parametrize("codes", [b"\x01\xff", b"\xff", b"\x07\x01", b"\x00" * 8 + b"\x07" + b"\x00" * 8])
def test_codes_of_fsst_that_are_no_symbols_are_rejected(codes: bytes) -> None:
    stored = struct.pack("<II", 8, 8 + len(codes)) + codes
    coding = {"fsst": {"symbol_table": _symbol_table([b"a", b"bc"]), "values": {"variable": {"offsets": flat(32)}}}}
    with pytest.raises(DataFileError, match="FSST"):
        read_page(mini_blocks(coding, [(1, chunk([stored]))], 1), leaf("binary"))


def test_an_escape_of_fsst_that_another_text_continues_is_rejected() -> None:
    stored = struct.pack("<III", 12, 13, 14) + b"\xffa"
    coding = {"fsst": {"symbol_table": _symbol_table([b"a"]), "values": {"variable": {"offsets": flat(32)}}}}
    with pytest.raises(DataFileError, match="ends after an escape"):
        read_page(mini_blocks(coding, [(2, chunk([stored]))], 2), leaf("binary"))


# --- levels --------------------------------------------------------------------------------


def _shredded(rows: list[Any], layers: list[int]) -> tuple[list[int], list[int], list[Any]]:
    """Return repetition and definition levels and values; ``layers`` from the inside, lists alternate with items."""
    numbers, used = [], 0
    for kind in layers:
        null = empty = 0
        if kind in (NULLABLE_ITEM, NULLABLE_LIST, NULL_AND_EMPTY_LIST):
            used += 1
            null = used
        if kind in (EMPTYABLE_LIST, NULL_AND_EMPTY_LIST):
            used += 1
            empty = used
        numbers.append((null, empty))
    depth = sum(kind not in (VALID_ITEM, NULLABLE_ITEM) for kind in layers)
    rep, definition, values = [], [], []

    def put(value: Any, layer: int, level: int) -> None:
        kind = layers[layer]
        null, empty = numbers[layer]
        if value is None:
            rep.append(level)
            definition.append(null)
            if kind in (VALID_ITEM, NULLABLE_ITEM):
                values.append(0)
        elif kind in (VALID_ITEM, NULLABLE_ITEM):
            rep.append(level)
            definition.append(0)
            values.append(value)
        elif not value:
            rep.append(level)
            definition.append(empty)
        else:
            inner = sum(k not in (VALID_ITEM, NULLABLE_ITEM) for k in layers[:layer])
            for i, item in enumerate(value):
                # the first item begins whatever its list begins; the others continue it
                put(item, layer - 1, level if i == 0 else inner)

    for row in rows:
        put(row, len(layers) - 1, depth)
    return rep, definition, values


def _rows(layers: list[int]) -> st.SearchStrategy[Any]:
    values: st.SearchStrategy[Any] = st.integers(1, 99)
    for kind in layers:
        if kind in (VALID_ITEM, NULLABLE_ITEM):
            values = values if kind == VALID_ITEM else st.none() | values
        else:
            least = 0 if kind in (EMPTYABLE_LIST, NULL_AND_EMPTY_LIST) else 1
            values = st.lists(values, min_size=least, max_size=3)
            values = values | st.none() if kind in (NULLABLE_LIST, NULL_AND_EMPTY_LIST) else values
    return st.lists(values, min_size=1, max_size=12)


ITEMS = (VALID_ITEM, NULLABLE_ITEM)
LISTS = (VALID_LIST, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST)


@given(st.data())
def test_levels_of_nested_lists_are_peeled(data: st.DataObject) -> None:
    """Rows of any nesting, in chunks that may end within a row, as a whole and in part."""
    depth = data.draw(st.integers(1, 3))
    layers = [data.draw(st.sampled_from(ITEMS)), *(data.draw(st.sampled_from(LISTS)) for _ in range(depth))]
    rows = data.draw(_rows(layers))
    rep, definition, values = _shredded(rows, layers)
    visible = [i for i, d in enumerate(definition) if d <= (layers[0] == NULLABLE_ITEM)]
    cuts = _cuts(data, visible, len(rep))
    chunks, index, at_value = [], [], 0
    for first, last in itertools.pairwise(cuts):
        n = sum(first <= v < last for v in visible)
        stored = np.array(values[at_value : at_value + n], "<i4").tobytes()
        at_value += n
        chunks.append((n, chunk([stored], rep[first:last], definition[first:last])))
        # rows that end within the chunk, and whether another one goes on after it
        ended = sum(rep[i] == depth for i in range(first + 1, last + 1) if i < len(rep)) + (last == len(rep))
        goes_on = last < len(rep) and rep[last] != depth
        index.append((ended, int(goes_on)))
    page = mini_blocks(flat(32), chunks, len(rows), layers=layers, rep=FLAT16, definition=FLAT16, index=index)
    field = leaf("int32")
    for i in range(depth):
        field = list_of(field, 10 + i)
    assert read_page(page, field) == rows
    first = data.draw(st.integers(0, len(rows)))
    last = data.draw(st.integers(first, len(rows)))
    assert read_page(page, field, (first, last)) == rows[first:last]
    positions = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    assert read_page(page, field, np.array(positions, np.int64)) == [rows[i] for i in positions]


def _cuts(data: st.DataObject, visible: list[int], n: int) -> list[int]:
    """Return where chunks begin: all but the last one have a power of two of values."""
    cuts, used = [0], 0
    while True:
        size = 1 << data.draw(st.integers(0, 3))
        if used + size >= len(visible):
            return [*cuts, n]
        used += size
        cuts.append(visible[used])


def test_the_example_of_a_list_page_is_read() -> None:
    """[[1, 2], null, [], [3]] as pylance stores it in version 2.2."""
    words = bytes.fromhex("70000000")
    blocks = bytes.fromhex(
        "05000a000a000c000000fefefefefefe"
        "01000000010001000100fefefefefefe"
        "00000000010002000000fefefefefefe"
        "010000000200000003000000fefefefe"
    )
    index = bytes.fromhex("04000000000000000000000000000000")
    layout = {
        "mini_block": {
            "rep_compression": FLAT16, "def_compression": FLAT16, "value_compression": flat(32), "layers": [1, 6],
            "num_buffers": 1, "repetition_index_depth": 1, "num_items": 3, "has_large_chunk": True,
        }
    }  # fmt: skip
    page = MadePage(layout, [words, blocks, index], 4)
    assert read_page(page, list_of(leaf("int32"))) == [[1, 2], None, [], [3]]


def test_chunk_words_of_16_bits_are_read_in_version_2_2() -> None:
    data = chunk([np.arange(8, dtype="<i8").tobytes()], is_large=False)
    page = mini_blocks(flat(64), [(8, data), (3, data[:8] + data[8:])], 11, is_large=False)
    assert read_page(page, leaf("int64")) == [*range(8), 0, 1, 2]


def test_lengths_of_runs_of_16_bits_are_read() -> None:
    coding = {"rle": {"values": flat(32), "run_lengths": flat(16)}}
    runs = [(7, 300), (9, 1), (-1, 700)]
    parts = [np.array([v for v, _ in runs], "<i4").tobytes(), np.array([n for _, n in runs], "<u2").tobytes()]
    page = mini_blocks(coding, [(1001, chunk(parts))], 1001, num_buffers=2)
    assert read_page(page, leaf("int32")) == [7] * 300 + [9] + [-1] * 700
    assert read_page(page, leaf("int32"), (299, 303)) == [7, 9, -1, -1]


def test_offsets_with_a_coding_of_their_own_are_read() -> None:
    coding = {
        "variable": {"offsets": {"out_of_line_bitpacking": {"uncompressed_bits_per_value": 32, "values": flat(8)}}}
    }
    offsets = [0, 2, 2, 5]
    page = mini_blocks(coding, [(3, chunk([np.array(offsets, "<u4").tobytes(), b"abcde"]))], 3, num_buffers=2)
    assert read_page(page, leaf("string")) == ["ab", "", "cde"]


def test_a_dictionary_of_numbers_is_read() -> None:
    page = mini_blocks(
        flat(8), [(4, chunk([bytes([2, 0, 1, 2])]))], 4, dictionary=(flat(64), 3, np.array([5, 6, 7], "<i8").tobytes())
    )
    assert read_page(page, leaf("int64")) == [7, 5, 6, 7]


# --- damage --------------------------------------------------------------------------------

VARIABLE = {"variable": {"offsets": flat(32)}}
INLINE = {"inline_bitpacking": {"uncompressed_bits_per_value": 64}}
RUNS = {"rle": {"values": flat(64), "run_lengths": flat(8)}}


def _compressed(scheme: int) -> MadePage:
    coding = {"general": {"compression": {"scheme": scheme}, "values": flat(64)}}
    return mini_blocks(coding, [(1, chunk([b"\xff" * 20]))], 1)


@pytest.mark.parametrize(
    "offsets", [[12, 20, 16], [12, 12, 1 << 31], [4, 12, 12], [12, 8, 14], [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF]]
)
def test_offsets_that_do_not_rise_within_their_bytes_are_rejected(offsets: list[int]) -> None:
    """Such offsets would return memory beside the buffer."""
    page = mini_blocks(VARIABLE, [(2, chunk([np.array(offsets, "<u4").tobytes() + b"abcd"]))], 2)
    with pytest.raises(DataFileError, match=r"column 0 \('c'\), page 0: .*(offsets|values begin)") as e:
        read_page(page, leaf("string"))
    assert e.value.column == "c"
    assert e.value.page == 0


@pytest.mark.parametrize(
    ("texts", "is_good"),
    [
        ([b"a", "é€😀".encode(), b""], True),
        ([b"\xc3", b"\xa9"], False),
        ([b"\xff"], False),
        ([b"\xed\xa0\x80"], False),
        ([b"\xc0\xaf"], False),
        ([b"\xf4\x90\x80\x80"], False),
        ([b"ab\xe2\x82"], False),
    ],
)
def test_strings_that_are_no_utf8_are_rejected_and_bytes_are_not(texts: list[bytes], is_good: bool) -> None:
    ends = 4 * (len(texts) + 1) + np.cumsum([0, *map(len, texts)])
    page = mini_blocks(VARIABLE, [(len(texts), chunk([ends.astype("<u4").tobytes() + b"".join(texts)]))], len(texts))
    assert read_page(page, leaf("binary")) == texts
    for kind in ("string", "large_string"):
        if is_good:
            assert read_page(page, leaf(kind)) == [t.decode() for t in texts]
        else:
            with pytest.raises(DataFileError, match="no UTF-8"):
                read_page(page, leaf(kind))


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=5))
def test_texts_are_utf8_as_python_decides(texts: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    try:
        [t.decode() for t in texts]
    except UnicodeDecodeError:
        with pytest.raises(_pages.DamagedPageError):
            _pages.check_texts(offsets, b"".join(texts), len(texts), False)
    else:
        _pages.check_texts(offsets, b"".join(texts), len(texts), False)


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (mini_blocks(flat(64), [(9, chunk([bytes(64)]))], 9), "ends before its values"),
        (mini_blocks(flat(32), [(2, chunk([bytes(8)]))], 2), "another width"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)]))], 3), "another number of rows"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)])[:8])], 2), "chunk ends before"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)]))], 2, num_buffers=2), "buffers|chunk ends"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)]))], 2, layers=[9]), "layer of a kind"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)]))], 2, layers=[1, 1]), "number of layers"),
        (mini_blocks(flat(64), [(2, chunk([bytes(16)]))], 2, layers=[2]), "repetition|nested"),
        (
            mini_blocks(flat(64), [(2, chunk([bytes(16)], None, [0, 9]))], 2, layers=[3], definition=FLAT16),
            "definition level is too high",
        ),
        (
            mini_blocks(flat(8), [(2, chunk([b"\0\3"]))], 2, dictionary=(flat(64), 3, bytes(24))),
            "code of its dictionary",
        ),
        (mini_blocks(INLINE, [(1, chunk([b"\x41" + bytes(7)]))], 1), "more bits|ends before"),
        (mini_blocks(RUNS, [(5, chunk([bytes(8), b"\4"]))], 5, num_buffers=2), "fewer values"),
        (_compressed(2), "zstd"),
        (_compressed(1), "lz4"),
    ],
)
def test_damaged_pages_are_rejected_with_column_and_page(page: MadePage, why: str) -> None:
    with pytest.raises(DataFileError, match=rf"made\.lance.*column 0 \('c'\), page 0: .*({why})"):
        read_page(page, leaf("int64"))


def test_siblings_with_different_nulls_are_rejected() -> None:
    columns = []
    for level in (0, 1):
        data = chunk([bytes(8)], None, [level])
        columns.append([mini_blocks(flat(64), [(1, data)], 1, layers=[VALID_ITEM, NULLABLE_ITEM], definition=FLAT16)])
    a, b = leaf("int64", 0, "a"), leaf("int64", 1, "b")
    struct_field = leaf("struct", 9, "s").__class__(
        id=9, parent_id=-1, name="s", logical_type="struct", children=(a, b)
    )
    with pytest.raises(DataFileError, match="different nulls or lists"):
        opened_bytes(file_bytes(columns, 1)).read([struct_field], {0: 0, 1: 1})


def test_a_file_of_another_version_is_rejected_by_name() -> None:
    page = mini_blocks(flat(64), [(1, chunk([bytes(8)]))], 1)
    with pytest.raises(UnsupportedFeatureError, match=r"version 2\.3"):
        read_page(page, leaf("int64"), version=(2, 3))


@pytest.mark.parametrize("cut", [1, 20, 41, 100])
def test_a_file_that_was_cut_is_rejected(cut: int) -> None:
    data = file_bytes([[mini_blocks(flat(64), [(1, chunk([bytes(8)]))], 1)]], 1)
    with pytest.raises(DataFileError, match="is damaged"):
        opened_bytes(data[:-cut]).read([leaf("int64")], {0: 0})


def test_a_constant_page_of_many_rows_takes_memory_for_the_requested_ones_only() -> None:
    page = MadePage({"constant": {"layers": [VALID_ITEM], "inline_value": struct.pack("<q", 5)}}, [], 1 << 40)
    before = pa.total_allocated_bytes()
    assert read_page(page, leaf("int64"), np.array([3, 1 << 39])) == [5, 5]
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_a_page_is_read_for_requested_rows_only() -> None:
    blocks = [(1024, chunk([np.arange(i * 1024, i * 1024 + 1024, dtype="<i8").tobytes()])) for i in range(64)]
    data = file_bytes([[mini_blocks(flat(64), blocks, 65536)]], 65536)
    file = opened_bytes(data)
    source: Any = file._container.source  # type: ignore[attr-defined]
    source.ranges.clear()
    [found] = file.read([leaf("int64")], {0: 0}, np.array([10, 20_000, 20_001]))
    assert found.to_pylist() == [10, 20_000, 20_001]
    assert sum(n for _, n in source.ranges) < 40_000


_COLUMNS = {
    "packed": ({"inline_bitpacking": {"uncompressed_bits_per_value": 64}}, "int64"),
    "flat": (flat(64), "int64"),
    "texts": ({"variable": {"offsets": flat(32)}}, "string"),
}


@given(
    st.sampled_from(sorted(_COLUMNS)),
    st.lists(st.integers(1, 1024), min_size=1, max_size=6),
    st.lists(st.sampled_from([0, 1, 5, 700, 10_000, 1 << 20, 1 << 62]), min_size=1, max_size=2),
    st.data(),
)
def test_rows_are_the_same_whatever_number_of_rows_was_expected(
    name: str, counts: list[int], expected: list[int], data: st.DataObject
) -> None:
    """Room for expected rows is taken at once; too small a number, or far too large a one, changes nothing."""
    coding, kind = _COLUMNS[name]
    counts[:-1] = [1 << (n.bit_length() - 1) for n in counts[:-1]]  # all chunks but the last one have a power of two
    total = sum(counts)
    ends = np.cumsum([0, *counts])
    values = [i * 37 % 65536 for i in range(total)]
    chunks = []
    for start, count in zip(ends, counts, strict=False):
        some = values[start : start + count]
        if name == "texts":
            offsets = np.arange(count + 1, dtype="<i4") * 5 + 4 * (count + 1)
            body = offsets.tobytes() + b"".join(b"%05d" % v for v in some)
        elif name == "flat":
            body = np.array(some, "<i8").tobytes()
        else:
            body = (16).to_bytes(8, "little") + _packed([*some, *[0] * (1024 - count)], 64, 16)
        chunks.append((count, chunk([body])))
    page = mini_blocks(coding, chunks, total)
    first = data.draw(st.integers(0, total - 1))
    last = data.draw(st.integers(first + 1, total))

    class Expecting(_pages.Column):
        def expect(self, page: Any, rows: int) -> None:
            for n in expected:
                super().expect(page, n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pages, "Column", Expecting)
        found = read_page(page, leaf(kind), (first, last))
    assert found == [f"{v:05}" if kind == "string" else v for v in values[first:last]]
