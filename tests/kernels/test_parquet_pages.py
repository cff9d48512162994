"""Pages decoded here are those that PyArrow decodes; what is damaged is given back, never read beyond."""

from __future__ import annotations

import gzip
import io
import re
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from delta_core.engines.conditions import WILDCARD, NullTest, ValuePattern, ValueRange, ValueSet
from delta_core.errors import InvalidArgumentError
from delta_core.kernels.arrow_buffers import is_text
from delta_core.kernels.gather import SelectionVector
from delta_core.parquet import pages as parquet_pages
from delta_core.parquet._footer import Footer
from delta_core.parquet._pages import ValueTest, decompress_gzip, decompress_snappy, has_libdeflate
from delta_core.parquet.columns import find_chunk
from delta_core.parquet.opened_file import ArrowFooter
from delta_core.parquet.pages import (
    ColumnChunk,
    PageCounts,
    UnsupportedPagesError,
    WideBatch,
    read_chunk,
    read_joined,
    read_passing,
    text_pages,
)


def decimals(precision: int) -> st.SearchStrategy[Decimal]:
    """Return decimals with one digit behind the point: small ones, and any."""
    most = 10**precision - 1
    unscaled = st.one_of(st.integers(max(-most, -300), min(most, 300)), st.integers(-most, most))
    return unscaled.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -1)))


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "int64": (pa.int64(), st.one_of(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1))),
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(UTC))),
    "string": (pa.string(), st.one_of(st.sampled_from(["", "a", "bb"]), st.text(max_size=40))),
    "binary": (pa.binary(), st.binary(max_size=70)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "bool": (pa.bool_(), st.booleans()),
} | {f"decimal{p}": (pa.decimal128(p, 1), decimals(p)) for p in (1, 4, 9, 12, 18, 19, 27, 38)}
FORMS = st.fixed_dictionaries(
    {
        "store_decimal_as_integer": st.booleans(),
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "use_dictionary": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([16, 200, 1 << 20]),
        "write_batch_size": st.sampled_from([1, 7, 1024]),
        "dictionary_pagesize_limit": st.sampled_from([16, 1 << 20]),
    }
)


@st.composite
def columns(draw: st.DrawFn, names: tuple[str, ...] = tuple(TYPES)) -> pa.Array:
    t, values = TYPES[draw(st.sampled_from(names))]
    nulls = draw(st.sampled_from([values, st.none(), st.one_of(values, st.none())]))
    # runs make levels and codes of more than one kind
    runs = draw(st.lists(st.tuples(nulls, st.integers(1, 30)), min_size=1, max_size=25))
    return pa.array([v for v, n in runs for _ in range(n)], t)


def written(column: pa.Array, form: dict[str, Any], structs: int = 0) -> tuple[bytes, Any, ColumnChunk | None]:
    """Write a column inside so many structs; return the file, its footer, and the chunk."""
    for _ in range(structs):
        column = pa.StructArray.from_arrays([column], ["x"], mask=column.is_null())
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, **form)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    t = column.type
    while pa.types.is_struct(t):
        t = t.field(0).type
    return sink.getvalue(), metadata, find_chunk(ArrowFooter(metadata), 0, 0, t)


def indexed(file: bytes, chunk: ColumnChunk) -> ColumnChunk:
    """Return a chunk with its page index, if the file has one."""
    facts = Footer(file[-8 - int.from_bytes(file[-8:-4], "little") : -8]).chunk(0, 0)
    assert facts is not None
    return replace(chunk, page_index=facts[9:] if min(facts[9:]) >= 0 else None)


def flat(column: pa.Array) -> pa.Array:
    while pa.types.is_struct(column.type):
        column = column.flatten()[0]
    return column


@given(column=columns(), form=FORMS, structs=st.integers(0, 3))
def test_chunk_is_what_pyarrow_reads(column: pa.Array, form: dict[str, Any], structs: int) -> None:
    data, _, chunk = written(column, form, structs)
    assert chunk is not None
    found = read_chunk(data, chunk)
    found.validate(full=True)
    expected = pq.read_table(io.BytesIO(data)).column(0).combine_chunks()
    assert found.equals(flat(expected))
    assert found.null_count == column.null_count


@given(column=columns(("string", "binary")), form=FORMS)
def test_pages_of_strings_together_are_the_column(column: pa.Array, form: dict[str, Any]) -> None:
    data, _, chunk = written(column, form)
    assert chunk is not None
    pages = list(text_pages(data, chunk))
    for page in pages:
        page.validate(full=True)
    assert pa.concat_arrays(pages).equals(column)


@given(column=columns(("string",)), form=FORMS)
def test_coded_strings_are_the_column_or_given_back(column: pa.Array, form: dict[str, Any]) -> None:
    data, metadata, chunk = written(column, form)
    assert chunk is not None
    plain = not form["use_dictionary"] or "PLAIN" in pages_of(metadata)
    try:
        found = read_chunk(data, chunk, coded=True)
    except UnsupportedPagesError:
        assert plain
        return
    found.validate(full=True)
    assert found.type == pa.dictionary(pa.int32(), pa.string())
    assert found.dictionary_decode().equals(column)


@st.composite
def masks(draw: st.DrawFn, n: int) -> np.ndarray:
    """Flags of rows, in runs."""
    runs = draw(
        st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 3, 60, 64, 65, 200])), min_size=1, max_size=20)
    )
    flags = np.concatenate([np.full(length, kept) for kept, length in runs])
    return np.resize(flags, n)


def words_of(flags: np.ndarray, tail: bool) -> np.ndarray:
    """The mask of flags; its bits behind the last row are `tail`."""
    padded = np.full(-len(flags) % 64, tail)
    return np.packbits(np.concatenate([flags, padded]), bitorder="little").view(np.uint64)


@given(column=columns(), form=FORMS, structs=st.integers(0, 2), data=st.data())
def test_kept_rows_are_those_of_the_whole_chunk(
    column: pa.Array, form: dict[str, Any], structs: int, data: st.DataObject
) -> None:
    file, _, chunk = written(column, form, structs)
    assert chunk is not None
    flags = data.draw(masks(len(column)))
    keep = words_of(flags, data.draw(st.booleans()))
    found = read_chunk(file, chunk, keep=keep)
    found.validate(full=True)
    expected = flat(column).filter(pa.array(flags))
    assert found.equals(expected)
    assert found.null_count == expected.null_count


NUMBERS = {
    "int32": TYPES["int32"],
    "int64": TYPES["int64"],
    "float": (pa.float32(), st.one_of(st.sampled_from([0.0, -0.0, float("inf")]), st.floats(width=32))),
    "double": (pa.float64(), st.one_of(st.sampled_from([0.0, -0.0, float("-inf")]), st.floats())),
}


@pytest.mark.parametrize("name", NUMBERS)
@given(data=st.data(), form=FORMS, structs=st.integers(0, 2), with_nan=st.booleans(), has_values=st.booleans())
def test_rows_in_a_range_are_those_of_the_whole_chunk(
    name: str, data: st.DataObject, form: dict[str, Any], structs: int, with_nan: bool, has_values: bool
) -> None:
    t, values = NUMBERS[name]
    runs = data.draw(st.lists(st.tuples(st.one_of(values, st.none()), st.integers(1, 70)), min_size=1, max_size=20))
    stored = [v for v, n in runs for _ in range(n)]
    file, _, chunk = written(pa.array(stored, t), {**form, "write_page_index": True}, structs)
    assert chunk is not None
    chunk = indexed(file, chunk) if data.draw(st.booleans()) else chunk
    ordered = values.filter(lambda v: v == v)
    bounds = st.one_of(ordered, st.sampled_from([v for v in stored if v is not None and v == v] or [0]))
    least, most = data.draw(st.tuples(bounds, bounds).map(sorted))
    flags = data.draw(st.one_of(st.none(), masks(len(stored))))
    keep = None if flags is None else words_of(flags, True)
    found = read_passing(file, chunk, ValueRange(0, least, most, with_nan), has_values, keep)
    assert found is not None
    mask, count, array = found
    wanted = [
        i
        for i, v in enumerate(stored)
        if v is not None and (least <= v <= most or (with_nan and v != v)) and (flags is None or flags[i])
    ]
    assert np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist() == wanted
    assert count == len(wanted)
    if wanted:
        assert (array is None) == (not has_values)
    if array is not None:
        array.validate(full=True)
        assert array.null_count == 0
        expected = np.array([stored[i] for i in wanted], t.to_pandas_dtype())
        assert array.to_numpy().tobytes() == expected.tobytes()


def test_pages_of_a_dictionary_without_a_match_are_not_decoded() -> None:
    file, _, chunk = written(pa.array([1, 2, 3] * 1000), {"compression": "none"})
    assert chunk is not None
    damaged = bytearray(file)
    # the last run of codes claims to be longer than the page
    stop = chunk.offset + chunk.num_bytes
    damaged[stop - 60 : stop] = b"\xff" * 60
    assert read_passing(bytes(damaged), chunk, ValueRange(0, 2, 2), True) is None
    found = read_passing(bytes(damaged), chunk, ValueRange(0, 4, 9), True)
    assert found is not None
    assert found[1] == 0


TEXTS = st.one_of(
    st.sampled_from(["", "a", "ab", "é", "longer than eight bytes", "longer than eight"]), st.text(max_size=12)
)
TESTED = {**NUMBERS, "string": (pa.string(), TEXTS), "binary": (pa.binary(), st.binary(max_size=12))}


def as_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


@st.composite
def value_tests(draw: st.DrawFn, t: pa.DataType, stored: list[Any], values: st.SearchStrategy[Any]) -> tuple[Any, Any]:
    """Draw a test, and the same as a function of a value."""
    kind = draw(st.sampled_from(["set", "pattern", "null", "present"] if pa.types.is_string(t) or pa.types.is_binary(t)
                                else ["set", "null", "present"]))  # fmt: skip
    if kind in ("null", "present"):
        return NullTest(0, kind == "null"), lambda v: (v is None) == (kind == "null")
    present = [v for v in stored if v is not None and v == v]
    key = st.one_of(st.sampled_from(present), values) if present else values
    if kind == "pattern":
        text = as_bytes(draw(key))
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
        parts = [text[a:b] for a, b in pairwise([0, *cuts])][:: draw(st.sampled_from([1, 2]))]
        parts = [*parts, b""] if len(parts) == 1 else parts
        pattern = re.compile(rb".*".join(map(re.escape, parts)), re.DOTALL)
        return ValuePattern(0, tuple(parts)), lambda v: v is not None and pattern.fullmatch(as_bytes(v)) is not None
    keys = [k for k in draw(st.lists(key, max_size=6)) if k == k]
    if isinstance(stored[0] if stored[0] is not None else draw(values), (str, bytes)):
        return ValueSet(0, tuple(sorted({as_bytes(k) for k in keys}))), lambda v: v in keys
    numbers = np.unique(np.array(keys, np.float64 if pa.types.is_floating(t) else np.int64) + 0)
    return ValueSet(0, numbers), lambda v: v in numbers.tolist()


LETTERS = st.binary(max_size=70).map(lambda data: bytes(b"ab"[c & 1] for c in data))


@given(
    texts=st.lists(st.tuples(LETTERS, st.integers(1, 60)).map(lambda t: t[0] * t[1]), min_size=1, max_size=8),
    parts=st.lists(LETTERS, min_size=1, max_size=3),
    form=FORMS,
)
def test_parts_are_found_in_long_strings_wherever_they_are(
    texts: list[bytes], parts: list[bytes], form: dict[str, Any]
) -> None:
    # of two letters the first and the last byte of a part are everywhere; the parts of some texts lie at their end
    texts = [*texts, *(t + p for t in texts for p in parts), *(t[:-1] + p[:-1] for t in texts for p in parts)]
    file, _, chunk = written(pa.array(texts, pa.binary()), form, 0)
    assert chunk is not None
    pattern = re.compile(rb".*".join(map(re.escape, [b"", *parts, b""])), re.DOTALL)
    found = read_passing(file, chunk, ValuePattern(0, (b"", *parts, b"")), False)
    assert found is not None
    places = np.flatnonzero(np.unpackbits(found[0].view(np.uint8), bitorder="little")).tolist()
    assert places == [i for i, text in enumerate(texts) if pattern.fullmatch(text)]


@given(
    texts=st.lists(st.text("abé€😀\n", max_size=20), min_size=1, max_size=30),
    pattern=st.text("ab_%é€", min_size=1, max_size=8),
    coded=st.booleans(),
)
def test_wildcards_of_one_character_match_as_regular_expressions_do(
    texts: list[str], pattern: str, coded: bool
) -> None:
    parts = pattern.replace("_", "\uffff").split("%")
    keys = tuple(WILDCARD.join(text.encode() for text in part.split("\uffff")) for part in parts)
    if len(keys) == 1 and WILDCARD not in keys[0]:
        return  # is a key
    file, _, chunk = written(pa.array(texts), {"use_dictionary": coded})
    assert chunk is not None
    found = read_passing(file, chunk, ValuePattern(0, keys), True)
    assert found is not None
    regex = re.compile("".join({"_": ".", "%": ".*"}.get(c, c) for c in pattern), re.DOTALL)
    flags = [regex.fullmatch(text) is not None for text in texts]
    assert SelectionVector.of_mask(found[0], len(texts)).flags().tolist() == flags
    if found[2] is not None:
        assert found[2].to_pylist() == [text for text, passes in zip(texts, flags, strict=True) if passes]


@pytest.mark.parametrize("name", TESTED)
@given(
    data=st.data(),
    form=FORMS,
    structs=st.integers(0, 2),
    has_values=st.booleans(),
    coded=st.booleans(),
    has_index=st.booleans(),
)
def test_rows_that_pass_are_those_of_the_whole_chunk(
    name: str, data: st.DataObject, form: dict[str, Any], structs: int, has_values: bool, coded: bool, has_index: bool
) -> None:
    t, values = TESTED[name]
    runs = data.draw(st.lists(st.tuples(st.one_of(values, st.none()), st.integers(1, 70)), min_size=1, max_size=20))
    stored = [v for v, n in runs for _ in range(n)]
    file, _, chunk = written(pa.array(stored, t), form, structs)
    assert chunk is not None
    if has_index:
        file, _, chunk = written(pa.array(stored, t), {**form, "write_page_index": True}, structs)
        assert chunk is not None
        chunk = indexed(file, chunk)
    test, passes = data.draw(value_tests(t, stored, values))
    flags = data.draw(st.one_of(st.none(), masks(len(stored))))
    keep = None if flags is None else words_of(flags, True)
    coded = coded and name == "string"
    found = read_passing(file, chunk, test, has_values, keep, coded)
    if found is None:
        assert has_values
        assert not coded
        assert name in ("string", "binary")
        assert test == NullTest(0, False)
        return
    mask, count, array = found
    wanted = [i for i, v in enumerate(stored) if passes(v) and (flags is None or flags[i])]
    assert np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist() == wanted
    assert count == len(wanted)
    if array is None:
        assert not has_values or name not in NUMBERS or not wanted
        return
    assert has_values
    array.validate(full=True)
    assert array.null_count == (count if test == NullTest(0, True) else 0)
    plain = array.dictionary_decode() if coded else array
    assert plain.equals(pa.array([stored[i] for i in wanted], t)) or pa.types.is_floating(t)
    if pa.types.is_floating(t) and not plain.null_count:
        assert plain.to_numpy().tobytes() == np.array([stored[i] for i in wanted], t.to_pandas_dtype()).tobytes()


MANY_KEYS = {
    "close": np.arange(-700, 700, 3),
    "scattered": np.arange(-500, 500) * 7_919_000_017,
    "at the ends": np.array([-(2**63), -(2**63) + 2, -1, 0, 5, 2**63 - 3, 2**63 - 1]),
    "floats": np.arange(-300, 900) / 8,
}


@pytest.mark.parametrize("is_narrow", [False, True], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("name", MANY_KEYS)
def test_values_among_many_keys_pass(name: str, is_narrow: bool) -> None:
    keys = MANY_KEYS[name]
    with np.errstate(over="ignore"):  # the neighbours of the greatest number are the least ones
        near = np.concatenate([keys, keys - 1, keys + 1, keys[:5] * 2])
    if name == "floats":
        near = np.append(near, [np.nan, -0.0])
    near = np.random.default_rng(0).permutation(near)
    stored = near.astype({"i": "i4", "f": "f4"}[near.dtype.kind]) if is_narrow else near
    file, _, chunk = written(pa.array(stored), {"data_page_size": 2_000, "write_page_index": True})
    assert chunk is not None
    expected = np.isin(stored, keys)
    for some in (chunk, indexed(file, chunk)):
        found = read_passing(file, some, ValueSet(0, keys), True)
        assert found is not None
        mask, count, array = found
        assert np.array_equal(np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(stored)], expected)
        assert count == expected.sum() > 0
        assert array is not None
        assert array.to_numpy().tobytes() == stored[expected].tobytes()


def test_strings_behind_a_dictionary_that_grew_too_big_are_tested_too() -> None:
    texts = [f"text {i % 3000}" for i in range(9_000)]
    file, metadata, chunk = written(pa.array(texts), {"dictionary_pagesize_limit": 2_000, "data_page_size": 2_000})
    assert {"RLE_DICTIONARY", "PLAIN"} <= set(metadata.row_group(0).column(0).encodings)
    assert chunk is not None
    for key in ("text 3", "text 2999"):
        found = read_passing(file, chunk, ValueSet(0, (key.encode(),)), True, None, True)
        assert found is not None
        assert found[1] == 3
        assert found[2] is None


def test_coded_strings_without_a_match_are_not_decoded() -> None:
    file, _, chunk = written(pa.array(["a", "b", "c"] * 1000), {"compression": "none"})
    assert chunk is not None
    damaged = bytearray(file)
    stop = chunk.offset + chunk.num_bytes
    damaged[stop - 60 : stop] = b"\xff" * 60
    assert read_passing(bytes(damaged), chunk, ValueSet(0, (b"b",)), False) is None
    for test in (ValueSet(0, (b"aa", b"d")), ValuePattern(0, (b"ab", b"")), ValueSet(0, ())):
        found = read_passing(bytes(damaged), chunk, test, False)
        assert found is not None
        assert found[1] == 0


@pytest.mark.parametrize(
    ("column", "test"),
    [
        (pa.array([1, 2]), ValueSet(0, (b"a",))),
        (pa.array([1, 2]), ValuePattern(0, (b"a", b""))),
        (pa.array([1, 2]), ValueSet(0, np.array([1.0]))),
        (pa.array([1.0, 2.0]), ValueSet(0, np.array([1]))),
        (pa.array(["a"]), ValueSet(0, np.array([1]))),
        (pa.array(["a"]), ValueRange(0, 1, 2)),
    ],
)
def test_keys_of_another_type_are_left_to_a_complete_reader(column: pa.Array, test: Any) -> None:
    file, _, chunk = written(column, {})
    assert chunk is not None
    assert read_passing(file, chunk, test, False) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": 9}, "kind"),
        ({"kind": 1, "keys": b"123"}, "8 bytes"),
        ({"kind": 2, "keys": b"12345678"}, "8 bytes"),
        ({"kind": 1, "keys": b"ab", "ends": np.array([0, 3], np.int32)}, "2 bytes"),
        ({"kind": 1, "keys": b"ab", "ends": np.array([0, 9, 2], np.int32)}, "ascend"),
        ({"kind": 1, "keys": b"", "ends": np.array([], np.int32)}, "0 bytes"),
        ({"kind": 2, "keys": b"", "ends": np.array([0], np.int32)}, "0 bytes"),
        ({"kind": 5, "keys": b"12345678"}, "8 bytes"),
        ({"kind": 5, "keys": b"", "ends": np.array([0], np.int32)}, "0 bytes"),
        ({"kind": 6, "parts": (ValueTest(3),)}, "null"),
        ({"kind": 6, "parts": (ValueTest(7, with_null=True),)}, "null"),
    ],
)
def test_keys_that_are_none_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ValueTest(**arguments)


def test_a_range_beyond_the_type_of_a_chunk_is_left_to_a_complete_reader() -> None:
    file, _, chunk = written(pa.array([1, 2, 3], pa.int32()), {})
    assert chunk is not None
    assert read_passing(file, chunk, ValueRange(0, 0, 1 << 31), True) is None


@given(column=columns(("string",)), form=FORMS, data=st.data())
def test_kept_codes_are_those_of_the_whole_chunk(column: pa.Array, form: dict[str, Any], data: st.DataObject) -> None:
    file, _, chunk = written(column, form)
    assert chunk is not None
    flags = data.draw(masks(len(column)))
    try:
        found = read_chunk(file, chunk, True, words_of(flags, False))
    except UnsupportedPagesError:
        # pages without a kept row are skipped: the whole chunk has at least as many that are not coded
        with pytest.raises(UnsupportedPagesError):
            read_chunk(file, chunk, coded=True)
        return
    found.validate(full=True)
    assert found.dictionary_decode().equals(column.filter(pa.array(flags)))


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("kind", ["int32", "int64", "coded", "plain"])
def test_kept_rows_of_many_pages(kind: str, nullable: bool) -> None:
    n = 100_003
    rng = np.random.default_rng(7)
    values = rng.integers(0, 50, n)
    numbers = {"int32": np.int32, "int64": np.int64}
    column = (
        pa.array(values.astype(numbers[kind])) if kind in numbers else pa.array([f"v{v}" * (v % 4) for v in values])
    )
    if nullable:
        column = pc.if_else(pa.array(rng.random(n) < 0.9), column, None)
    form = {"use_dictionary": kind in ("int32", "coded"), "data_page_size": 9_000, "write_batch_size": 977}
    file, _, chunk = written(column, form)
    assert chunk is not None
    for flags in (rng.random(n) < 0.9, rng.random(n) < 0.01, np.arange(n) // 10_000 % 2 == 0, np.zeros(n, bool)):
        found = read_chunk(file, chunk, keep=words_of(flags, True))
        found.validate(full=True)
        assert found.equals(column.filter(pa.array(flags)))


@given(column=columns(), form=FORMS, rows=st.integers(1, 70), structs=st.integers(0, 1))
def test_row_groups_together_are_the_column(column: pa.Array, form: dict[str, Any], rows: int, structs: int) -> None:
    for _ in range(structs):
        column = pa.StructArray.from_arrays([column], ["x"], mask=column.is_null())
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, **form, row_group_size=rows)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    footer = ArrowFooter(metadata)
    column = flat(column)
    chunks = [find_chunk(footer, group, 0, column.type) for group in range(metadata.num_row_groups)]
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    pages = PageCounts()
    found = read_joined(sink.getvalue(), {"x": chunks, "again": chunks}, counts, pages)  # type: ignore[dict-item]  # none is None
    assert found["x"].equals(column)
    assert found["again"].equals(column)
    found["x"].validate(full=True)
    assert found["x"].null_count == column.null_count
    assert pages.decoded == pages.total >= 2 * len(chunks)


@given(column=columns(), form=FORMS, structs=st.integers(0, 1), coded=st.booleans(), data=st.data())
def test_batch_of_many_columns_has_the_rows_of_each(
    column: pa.Array, form: dict[str, Any], structs: int, coded: bool, data: st.DataObject
) -> None:
    file, _, chunk = written(column, form, structs)
    assert chunk is not None
    column = flat(column)
    flags = data.draw(st.none() | masks(len(column)))
    types = [column.type] * 3
    if coded and column.type == pa.string():
        types[1] = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([(str(i), t) for i, t in enumerate(types)])
    mask = None if flags is None else words_of(flags, True)
    batch = WideBatch(file, [[chunk] * 3], [len(column)], schema, mask)
    pages = PageCounts()
    for _ in range(2):  # the second one finds none left
        pages.add(batch.decode())
    found = batch.finish()
    if found is None:  # not all pages are coded
        assert types[1] != column.type
        return
    del batch
    found.validate(full=True)
    expected = column if flags is None else column.filter(pa.array(flags))
    for i, t in enumerate(types):
        own = found.column(i)
        assert own.type == t
        assert own.null_count == expected.null_count
        assert (own if t == column.type else own.dictionary_decode()).equals(expected)
    assert pages.total > 0


@given(column=columns(), form=FORMS, rows=st.integers(1, 70))
def test_batch_of_row_groups_has_their_rows(column: pa.Array, form: dict[str, Any], rows: int) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, **form, row_group_size=rows)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    footer, groups = ArrowFooter(metadata), range(metadata.num_row_groups)
    chunks = [find_chunk(footer, group, 0, column.type) for group in groups]
    counts = [metadata.row_group(group).num_rows for group in groups]
    schema = pa.schema([("x", column.type), ("y", column.type)])
    batch = WideBatch(sink.getvalue(), [[chunk, chunk] for chunk in chunks], counts, schema)  # type: ignore[list-item]  # none is None
    batch.decode()
    found = batch.finish()
    assert found is not None
    found.validate(full=True)
    assert found.column(0).equals(column)
    assert found.column(1).equals(column)


def test_batch_that_can_not_be_made_is_rejected() -> None:
    file, _, chunk = written(pa.array([1, 2]), {})
    assert chunk is not None
    schema = pa.schema([("x", pa.int64())])
    with pytest.raises(InvalidArgumentError, match="other types"):
        WideBatch(file, [[chunk]], [2], pa.schema([("x", pa.int32())]))
    with pytest.raises(InvalidArgumentError, match="other types"):
        WideBatch(file, [[chunk]], [2], pa.schema([("x", pa.int64()), ("y", pa.int64())]))
    with pytest.raises(InvalidArgumentError, match="1 row groups with the rows of 2"):
        WideBatch(file, [[chunk]], [2, 2], schema)
    with pytest.raises(InvalidArgumentError, match="-2 rows"):
        WideBatch(file, [[chunk]], [-2], schema)
    with pytest.raises(InvalidArgumentError, match="single row group"):
        WideBatch(file, [[chunk], [chunk]], [2, 2], schema, np.zeros(1, np.uint64))
    batch = WideBatch(file, [[chunk]], [2], schema)
    assert batch.finish() is None  # nothing is decoded
    batch.decode()
    assert batch.finish() is not None
    with pytest.raises(InvalidArgumentError, match="before"):
        batch.finish()


def test_row_groups_that_store_values_differently_are_rejected() -> None:
    _, _, chunk = written(pa.array([1, 2]), {})
    _, _, other = written(pa.array([1, 2], pa.int32()), {})
    assert chunk is not None
    assert other is not None
    with pytest.raises(InvalidArgumentError, match="differently"):
        read_joined(b"", {0: [chunk, other]}, [2, 2])
    with pytest.raises(InvalidArgumentError, match="1 chunks of 2 row groups"):
        read_joined(b"", {0: [chunk]}, [2, 2])
    assert read_joined(b"", {0: [chunk, chunk]}, [2, 2]) == {}


def test_mask_that_is_too_short_is_rejected() -> None:
    file, _, chunk = written(pa.array(range(129)), {})
    assert chunk is not None
    with pytest.raises(InvalidArgumentError, match="129 rows is longer than 2 words"):
        read_chunk(file, chunk, keep=np.zeros(2, np.uint64))


def pages_of(metadata: Any) -> tuple[str, ...]:
    return tuple(metadata.row_group(0).column(0).encodings)


def test_long_strings_make_room() -> None:
    # a dictionary of one long string is small in the file, and its column is not
    column = pa.array(["x" * 1_000] * 5_000 + [None, "y"])
    data, _, chunk = written(column, {"compression": "snappy"})
    assert chunk is not None
    assert chunk.plain_bytes < 20_000
    assert read_chunk(data, chunk).equals(column)


def test_strings_that_would_fill_the_memory_are_given_back() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 300_000, pa.int32()), ["x" * 1_000_000])
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, store_schema=False)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    chunk = find_chunk(ArrowFooter(metadata), 0, 0, pa.string())
    assert chunk is not None
    with pytest.raises(UnsupportedPagesError):
        read_chunk(sink.getvalue(), chunk)


@pytest.mark.parametrize(
    ("column", "form"),
    [
        (pa.array([1, 2, 3]), {"compression": "brotli"}),
        (pa.array([1, 2], pa.uint16()), {}),
        (pa.array([1, 2], pa.decimal256(45, 2)), {}),
        (pa.array([b"abc"], pa.binary(3)), {}),
        (pa.array([0], pa.timestamp("ns")), {"use_deprecated_int96_timestamps": True}),
        (pa.array([[1], [2, 3]]), {}),
        (pa.array([], pa.int64()), {}),
    ],
)
def test_other_chunks_are_left_to_pyarrow(column: pa.Array, form: dict[str, Any]) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, **form)
    metadata = pq.read_metadata(io.BytesIO(sink.getvalue()))
    if metadata.num_row_groups:
        t = column.type.value_type if pa.types.is_list(column.type) else column.type
        assert find_chunk(ArrowFooter(metadata), 0, 0, t) is None


@given(column=columns(), form=FORMS, structs=st.integers(0, 1), data=st.data())
def test_damaged_chunk_is_given_back_or_sound(
    column: pa.Array, form: dict[str, Any], structs: int, data: st.DataObject
) -> None:
    file, _, chunk = written(column, form, structs)
    assert chunk is not None
    damaged = bytearray(file)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(chunk.offset, chunk.offset + chunk.num_bytes - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    # strings are bytes here: which bytes are text is for others to specify
    t = pa.binary() if pa.types.is_string(chunk.type) else chunk.type
    claimed = ColumnChunk(
        t, chunk.offset, chunk.num_bytes, chunk.codec, chunk.most_level, chunk.num_rows, chunk.plain_bytes
    )
    for coded in (False, True):
        try:
            found = read_chunk(bytes(damaged), claimed, coded=coded)
        except UnsupportedPagesError:
            continue
        assert len(found) == len(column)
        found.validate(full=True)


@given(column=columns(), form=FORMS, cut=st.integers(1, 40), where=st.sampled_from(["start", "end", "rows"]))
def test_chunk_that_is_cut_is_given_back(column: pa.Array, form: dict[str, Any], cut: int, where: str) -> None:
    file, _, chunk = written(column, form)
    assert chunk is not None
    offset, size, rows = chunk.offset, chunk.num_bytes, chunk.num_rows
    if where == "end":
        size = max(1, size - cut)
    elif where == "rows":
        rows += cut
    else:
        file = file[: offset + max(0, size - cut)]
    claimed = ColumnChunk(chunk.type, offset, size, chunk.codec, chunk.most_level, rows, chunk.plain_bytes)
    with pytest.raises(UnsupportedPagesError):
        read_chunk(file, claimed)


def unpacked(packed: bytes, size: int) -> bytes | None:
    """Decompress in both ways, which return the same."""
    numbers, texts = (decompress_snappy(packed, size, is_text) for is_text in (False, True))
    assert numbers == texts
    return texts


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 200)), max_size=30))
def test_snappy_returns_what_was_compressed(parts: list[tuple[bytes, int]]) -> None:
    plain = b"".join(p * n for p, n in parts)
    packed = pa.Codec("snappy").compress(plain, asbytes=True)
    assert unpacked(packed, len(plain)) == plain
    assert unpacked(packed, len(plain) + 1) is None
    assert unpacked(packed[:-1], len(plain)) is None or not plain


@given(seed=st.integers(0, 2**32), count=st.integers(0, 3000), kinds=st.sampled_from((2, 40, 1000)))
def test_snappy_returns_texts(seed: int, count: int, kinds: int) -> None:
    random = np.random.default_rng(seed)
    words = [random.bytes(int(size)).hex()[:-1] for size in random.integers(1, 40, kinds)]
    plain = "".join(words[i] for i in random.integers(0, kinds, count)).encode()
    packed = pa.Codec("snappy").compress(plain, asbytes=True)
    assert unpacked(packed, len(plain)) == plain
    for cut in range(1, min(80, len(packed))):
        assert unpacked(packed[:-cut], len(plain)) is None or not plain


@given(
    start=st.integers(-(2**40), 2**40),
    steps=st.lists(st.sampled_from((0, 1, 2, 255, 256, 2**20, 2**40, -1)), min_size=1, max_size=12),
    count=st.integers(0, 2000),
    width=st.sampled_from((4, 8, 16)),
    cut=st.integers(0, 40),
)
def test_snappy_returns_numbers_that_resemble_their_neighbours(
    start: int, steps: list[int], count: int, width: int, cut: int
) -> None:
    numbers = np.cumsum(np.resize(np.array([start, *steps], np.int64), count))
    plain = np.repeat(numbers, width // 8 or 1).astype(np.int32 if width == 4 else np.int64).tobytes()
    packed = pa.Codec("snappy").compress(plain, asbytes=True)
    assert unpacked(packed, len(plain)) == plain
    # an end in the middle of a run of numbers
    kept = max(0, len(packed) - cut)
    assert unpacked(packed[:kept], len(plain)) == (plain if cut == 0 else None) or not plain


def numbers_with_known_upper_bytes(seed: int, count: int, kinds: int, varied: int) -> bytes:
    """Return numbers whose lower bytes are random and whose upper ones are among a few: literals and copies in turn."""
    random = np.random.default_rng(seed)
    upper = random.integers(0, 256, (kinds, 8), np.uint8)[random.integers(0, kinds, count)]
    upper[:, :varied] = random.integers(0, 256, (count, varied), np.uint8)
    return upper.tobytes()


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 3000),
    kinds=st.sampled_from((1, 2, 3, 40, 300)),
    varied=st.integers(1, 5),
    lead=st.binary(max_size=9),
)
def test_snappy_returns_numbers_of_known_upper_bytes(
    seed: int, count: int, kinds: int, varied: int, lead: bytes
) -> None:
    plain = lead + numbers_with_known_upper_bytes(seed, count, kinds, varied)
    packed = pa.Codec("snappy").compress(plain, asbytes=True)
    assert unpacked(packed, len(plain)) == plain
    for cut in range(1, min(40, len(packed))):
        assert unpacked(packed[:-cut], len(plain)) is None or not plain


@given(data=st.data(), count=st.integers(20, 300), kinds=st.sampled_from((0, 1, 3, 40)), varied=st.integers(1, 4))
def test_damaged_snappy_of_numbers_is_rejected_or_read_as_pyarrow_does(
    data: st.DataObject, count: int, kinds: int, varied: int
) -> None:
    plain = numbers_with_known_upper_bytes(count, count, kinds, varied) if kinds else np.arange(count).tobytes()
    packed = bytearray(pa.Codec("snappy").compress(plain, asbytes=True))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(2, len(packed) - 1))] = data.draw(st.integers(0, 255))
    found = unpacked(bytes(packed), len(plain))
    try:
        expected = pa.Codec("snappy").decompress(bytes(packed), len(plain), asbytes=True)
    except OSError:
        expected = None
    assert found == expected


@given(st.binary(max_size=200), st.integers(0, 300))
def test_snappy_never_leads_outside(packed: bytes, size: int) -> None:
    found = unpacked(packed, size)
    if found is not None:
        assert pa.Codec("snappy").decompress(packed, size, asbytes=True) == found


def gzip_by_zlib(packed: bytes, size: int) -> bytes | None:
    _, decompress = parquet_pages.CODECS["GZIP"]
    assert decompress is not None
    try:
        found = decompress(pa.py_buffer(packed), size)
    except zlib.error:
        return None
    return found if len(found) == size else None


#: Each of them returns the plain bytes of gzip members, None if they are damaged or not as many.
GZIP = [
    pytest.param(
        decompress_gzip,
        id="libdeflate",
        marks=pytest.mark.skipif(not has_libdeflate(), reason="libdeflate is not installed"),
    ),
    pytest.param(gzip_by_zlib, id="zlib"),
]
Gunzip = Callable[[bytes, int], bytes | None]


def gzipped(plain: bytes, level: int, strategy: int, window: int, flushed: Sequence[int]) -> bytes:
    """Compress bytes, with an empty block at some places."""
    packer = zlib.compressobj(level, zlib.DEFLATED, 16 + window, strategy=strategy)
    packed = b""
    places = sorted({n % (len(plain) + 1) for n in flushed})
    for begin, end in pairwise([0, *places, len(plain)]):
        packed += packer.compress(plain[begin:end])
        packed += packer.flush(zlib.Z_FULL_FLUSH) if places else b""
    return packed + packer.flush()


@pytest.mark.parametrize("gunzip", GZIP)
@given(
    parts=st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 3000)), max_size=30),
    random=st.integers(0, 40_000),
    level=st.integers(0, 9),
    strategy=st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]),
    window=st.sampled_from([9, 12, 15]),
    flushed=st.lists(st.integers(0, 100_000), max_size=3),
    damage=st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=3),
)
def test_gzip_returns_what_was_compressed(
    gunzip: Gunzip,
    parts: list[tuple[bytes, int]],
    random: int,
    level: int,
    strategy: int,
    window: int,
    flushed: list[int],
    damage: list[tuple[int, int]],
) -> None:
    plain = b"".join(p * n for p, n in parts) + np.random.default_rng(random).bytes(random)
    packed = gzipped(plain, level, strategy, window, flushed)
    assert gunzip(packed, len(plain)) == plain
    assert gunzip(packed, len(plain) + 1) is None
    assert not plain or gunzip(packed, len(plain) - 1) is None
    assert gunzip(packed[:-1], len(plain)) is None
    assert gunzip(packed + b"x", len(plain)) is None
    bad = bytearray(packed)
    for at, mask in damage:
        bad[at % len(bad)] ^= mask
    found = gunzip(bytes(bad), len(plain))
    assert found in (None, plain)
    if found is not None:
        assert zlib.decompress(bytes(bad), 31) == plain


@pytest.mark.parametrize("gunzip", GZIP)
@given(
    parts=st.lists(st.binary(max_size=400), min_size=1, max_size=6), lost=st.integers(1, 60), damaged=st.integers(0, 5)
)
def test_gzip_returns_all_members(gunzip: Gunzip, parts: list[bytes], lost: int, damaged: int) -> None:
    members = [gzip.compress(part) for part in parts]
    plain, packed = b"".join(parts), b"".join(members)
    assert gunzip(packed, len(plain)) == plain
    assert gunzip(packed, len(plain) + 1) is None
    assert not plain or gunzip(packed, len(plain) - 1) is None
    assert gunzip(packed[: -min(lost, len(members[-1]) - 1)], len(plain)) is None
    # the checksum and the size of each member are compared
    for at in (-8, -4):
        member = bytearray(members[damaged % len(members)])
        member[at] ^= 1
        bad = [*members]
        bad[damaged % len(members)] = bytes(member)
        assert gunzip(b"".join(bad), len(plain)) is None


@pytest.mark.parametrize("gunzip", GZIP)
@given(st.binary(max_size=200), st.integers(0, 300))
def test_gzip_never_leads_outside(gunzip: Gunzip, packed: bytes, size: int) -> None:
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    assert gunzip(head + packed + struct.pack("<II", 0, size), size) is None or not size
    assert gunzip(packed, size) is None or not size


@pytest.mark.parametrize("gunzip", GZIP)
def test_gzip_with_a_name_and_a_comment_is_decompressed(gunzip: Gunzip) -> None:
    plain = b"text " * 99
    whole = gzip.compress(plain)
    assert gunzip(whole[:3] + b"\x18" + whole[4:10] + b"name\0comment\0" + whole[10:], len(plain)) == plain


def test_stream_without_gzip_header_is_left_to_zlib() -> None:
    plain = b"text " * 99
    assert decompress_gzip(zlib.compress(plain), len(plain)) is None
    assert gzip_by_zlib(zlib.compress(plain), len(plain)) == plain


def test_gzip_that_expands_beyond_the_size_is_not_decompressed_whole() -> None:
    packed = gzip.compress(bytes(64 << 20))
    tracemalloc.start()
    try:
        assert gzip_by_zlib(packed, 1000) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [parquet_pages.CODECS["GZIP"][0], 2], ids=["libdeflate", "zlib"])
def test_page_of_several_gzip_members_is_decoded(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def number(value: int) -> bytes:
        zigzag, out = value << 1, b""
        while zigzag > 127:
            out, zigzag = out + bytes([zigzag & 127 | 128]), zigzag >> 7
        return out + bytes([zigzag])

    column = pa.array(range(1000), pa.int64())
    plain = np.arange(1000, dtype="<i8").tobytes()
    body = b"".join(gzip.compress(plain[at : at + 3000]) for at in range(0, len(plain), 3000))
    # PageHeader of parquet.thrift: type, both sizes, and the DataPageHeader with values, PLAIN, and RLE twice
    sizes = b"".join(b"\x15" + number(n) for n in (0, len(plain), len(body)))
    page = sizes + b"\x2c" + b"".join(b"\x15" + number(n) for n in (1000, 0, 3, 3)) + b"\0\0" + body
    chunk = ColumnChunk(pa.int64(), 0, len(page), "GZIP", 0, 1000, len(plain))
    monkeypatch.setattr(parquet_pages, "CODECS", {"GZIP": (codec, parquet_pages.CODECS["GZIP"][1])})
    assert read_chunk(page, chunk).equals(column)


@pytest.mark.skipif(not has_libdeflate(), reason="libdeflate is not installed")
def test_gzip_pages_of_writers_need_no_other_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(data: pa.Buffer, size: int) -> bytes:
        raise AssertionError(size)

    monkeypatch.setattr(parquet_pages, "CODECS", {"GZIP": (parquet_pages.CODECS["GZIP"][0], fail)})
    for level in range(1, 10):
        for column in FILTERED.values():
            data, _, chunk = written(column, {"compression": "gzip", "compression_level": level})
            assert chunk is not None
            assert read_chunk(data, chunk).equals(column)


@pytest.mark.parametrize("codec", ["GZIP", "ZSTD"])
@given(column=columns(), form=FORMS)
def test_pages_are_the_same_without_the_library_of_the_system(
    codec: str, column: pa.Array, form: dict[str, Any]
) -> None:
    data, _, chunk = written(column, form | {"compression": codec.lower()})
    assert chunk is not None
    assert chunk.codec == codec
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_pages, "CODECS", {codec: (2, parquet_pages.CODECS[codec][1])})
        assert read_chunk(data, chunk).equals(column)
    assert read_chunk(data, chunk).equals(column)


# --- Bloom filters ---

FILTERED = {
    "int32": pa.array(range(0, 3000, 3), pa.int32()),
    "int64": pa.array(range(-(2**40), -(2**40) + 3000, 3)),
    "float": pa.array([n / 4 for n in range(1000)], pa.float32()),
    "double": pa.array([n / 3 for n in range(1000)]),
    "date": pa.array(range(0, 3000, 3), pa.int32()).cast(pa.date32()),
    "string": pa.array([f"{n}" + "é" * (n % 40) for n in range(1000)]),
    "binary": pa.array([b"x" * n for n in range(0, 3000, 3)]),
}


def filtered(column: pa.Array, writer: str = "pyarrow") -> tuple[bytes, ColumnChunk]:
    """Write a column with a Bloom filter; return the file and the chunk."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.parquet"
        if writer == "pyarrow":
            pq.write_table(pa.table({"x": column}), path, bloom_filter_options={"x": {"ndv": 1000, "fpp": 0.01}})
        else:
            duckdb = pytest.importorskip("duckdb")
            connection = duckdb.connect()
            connection.register("t", pa.table({"x": column}))
            connection.execute(f"copy t to '{path}' (format parquet, dictionary_size_limit 100000)")
        data = path.read_bytes()
    found = find_chunk(ArrowFooter(pq.read_metadata(io.BytesIO(data))), 0, 0, column.type)
    assert found is not None
    footer = Footer(data[-8 - int.from_bytes(data[-8:-4], "little") : -8]).chunk(0, 0)
    assert footer is not None
    assert footer[7] > 0
    return data, replace(found, bloom_filter=footer[7:9])


def key_test(array: pa.Array) -> ValueSet:
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return ValueSet(0, tuple(sorted(as_bytes(v) for v in array.to_pylist())))
    numbers = array.cast(pa.int32()) if pa.types.is_date(array.type) else array
    return ValueSet(0, np.unique(numbers.to_numpy().astype("f8" if pa.types.is_floating(array.type) else "i8")))


@pytest.mark.parametrize("writer", ["pyarrow", "duckdb"])
@pytest.mark.parametrize("name", FILTERED)
def test_bloom_filter_excludes_absent_keys_and_never_present_ones(name: str, writer: str) -> None:
    column = FILTERED[name]
    file, chunk = filtered(pa.concat_arrays([column, column]), writer)
    without = replace(chunk, bloom_filter=None)
    kinds = {"float": 0.1, "double": 0.1}
    absent = (
        pa.array([v + "?" for v in column.to_pylist()])
        if name == "string"
        else pa.array([v + b"?" for v in column.to_pylist()])
        if name == "binary"
        else pa.array(
            [v + kinds.get(name, 1) for v in (column.cast(pa.int32()) if name == "date" else column).to_pylist()]
        ).cast(pa.float32() if name == "float" else pa.float64() if name == "double" else pa.int64())
    )
    # pages that can't be decoded: whoever returns rows did not read them
    damaged = bytearray(file)
    damaged[chunk.offset : chunk.offset + chunk.num_bytes] = b"\xff" * chunk.num_bytes
    excluded = 0
    for i in range(0, 1000, 7):
        present = key_test(column.slice(i, 1))
        found = read_passing(file, chunk, present, False)
        assert found is not None
        assert found[1] == 2
        found = read_passing(bytes(damaged), chunk, key_test(absent.slice(i, 1)), False)
        excluded += found is not None
        assert found is None or found[1] == 0
    assert excluded > 100
    assert read_passing(bytes(damaged), chunk, key_test(column), False) is None
    assert read_passing(bytes(damaged), without, key_test(absent.slice(0, 1)), False) is None


def test_bloom_filter_is_requested_for_one_number_but_no_range() -> None:
    file, chunk = filtered(pa.array([1.0, -0.0, 7.0]))
    damaged = bytearray(file)
    damaged[chunk.offset : chunk.offset + chunk.num_bytes] = b"\xff" * chunk.num_bytes
    for test, is_excluded in [
        (ValueRange(0, 5.0, 5.0), True),
        (ValueRange(0, 5.0, 6.0), False),
        (ValueRange(0, 5.0, 5.0, True), False),
        (ValueRange(0, 0.0, 0.0), False),  # -0.0 equals it
        (ValueSet(0, np.array([0.0])), False),
        (ValueSet(0, np.array([5.0])), True),
        (NullTest(0, True), False),
    ]:
        assert (read_passing(bytes(damaged), chunk, test, False) is not None) == is_excluded


@given(data=st.data())
def test_damaged_header_of_a_bloom_filter_excludes_nothing(data: st.DataObject) -> None:
    file, chunk = BLOOM
    assert chunk.bloom_filter is not None
    at = chunk.bloom_filter[0]
    present = key_test(FILTERED["string"].slice(5, 1))
    damaged = bytearray(file)
    # behind the number of bytes, which would lead to other blocks, and before these
    place = data.draw(st.integers(4, 14))
    damaged[at + place] ^= 1 << data.draw(st.integers(0, 7))
    found = read_passing(bytes(damaged[: data.draw(st.sampled_from([len(file), at + 20, at]))]), chunk, present, False)
    assert found is not None
    assert found[1] == 1


BLOOM = filtered(FILTERED["string"])


# --- page index ---

INDEXED = {
    "int32": pa.array(range(3000), pa.int32()),
    "int64": pa.array(range(-1500, 1500)),
    "float": pa.array([n / 4 for n in range(3000)], pa.float32()),
    "double": pa.array([n / 4 for n in range(-1500, 1500)]),
    "string": pa.array([f"é {n:05d} " + "x" * 90 for n in range(3000)]),
}


@pytest.mark.parametrize("name", INDEXED)
def test_pages_that_the_index_excludes_are_not_decoded(name: str) -> None:
    column = INDEXED[name]
    form = {"use_dictionary": False, "compression": "zstd", "data_page_size": 256, "write_batch_size": 100}
    file, _, chunk = written(column, {**form, "write_page_index": True})
    assert chunk is not None
    chunk = indexed(file, chunk)
    assert chunk.page_index is not None
    decompressed: list[int] = []
    key = key_test(column.slice(1234, 1)).keys
    tests: list[Any] = [ValueSet(0, key), NullTest(0, True)]
    if isinstance(key, tuple):
        tests += [ValuePattern(0, (key[0][:8], b"")), ValuePattern(0, (key[0], b""))]
        tests.append(ValuePattern(0, (key[0][:8], key[0][9:], b"")))
    else:
        tests.append(ValueRange(0, key[0].item(), key[0].item()))
    packed, _, by_gzip = written(column, {**form, "compression": "gzip", "write_page_index": True})
    assert by_gzip is not None
    by_gzip = indexed(packed, by_gzip)
    _, decompress = parquet_pages.CODECS["GZIP"]
    assert decompress is not None

    def counting(data: pa.Buffer, size: int) -> Any:
        decompressed.append(size)
        return decompress(data, size)

    for test in tests:
        expected = 0 if isinstance(test, NullTest) else 1
        found = read_passing(file, chunk, test, True)
        assert found is not None
        assert found[1] == expected
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parquet_pages, "CODECS", {"GZIP": (2, counting)})
            found = read_passing(packed, by_gzip, test, False)
        assert found is not None
        assert found[1] == expected
        assert len(decompressed) == expected
        decompressed.clear()
    # a mask is kept too
    found = read_passing(file, chunk, ValueSet(0, key), False, words_of(np.arange(3000) != 1234, True))
    assert found is not None
    assert found[1] == 0


@pytest.mark.parametrize("name", ["int64", "string"])
def test_page_index_that_contradicts_itself_is_not_used(name: str) -> None:
    column = INDEXED[name]
    form = {"use_dictionary": False, "write_page_index": True, "max_rows_per_page": 100, "write_batch_size": 100}
    file, _, chunk = written(column, form)
    assert chunk is not None
    chunk = indexed(file, chunk)
    assert chunk.page_index is not None
    test = key_test(column.slice(1234, 1))
    at, size = chunk.page_index[:2]
    flags = file[at : at + size].index(b"\x02" * 30) + at  # of 30 pages none has nulls alone
    counts = file[at : at + size].rindex(b"\x00" * 30) + at
    for place, value in ((flags + 12, 1), (counts + 12, 1), (counts + 12, 210)):
        damaged = bytearray(file)
        damaged[place] = value
        found = read_passing(bytes(damaged), chunk, test, False)
        assert found is not None
        assert found[1] == 1
        assert found[0][1234 // 64] >> np.uint64(1234 % 64) & np.uint64(1)


@pytest.mark.parametrize("at", range(4))
def test_page_index_outside_of_the_file_or_of_another_chunk_is_not_used(at: int) -> None:
    file, _, chunk = written(
        INDEXED["int64"], {"write_page_index": True, "data_page_size": 256, "use_dictionary": False}
    )
    assert chunk is not None
    chunk = indexed(file, chunk)
    assert chunk.page_index is not None
    for value in (-1, 0, 5, len(file) - 1, 2**40):
        place = (*chunk.page_index[:at], value, *chunk.page_index[at + 1 :])
        found = read_passing(file, replace(chunk, page_index=place), ValueSet(0, np.array([7])), False)
        assert found is not None
        assert found[1] == 1
    with pytest.raises(InvalidArgumentError, match="words"):
        ValueTest(3).find_rows(file, chunk.page_index[:2], chunk.page_index[2:], 8, 3000, np.zeros(3, np.uint64))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("values", [0, 1, 70])
@pytest.mark.parametrize("coded", [True, False])
def test_values_behind_pages_of_nulls_alone(name: str, values: int, coded: bool) -> None:
    t, _ = TYPES[name]
    one = {"date": date(2024, 1, 1), "timestamp": datetime(2024, 1, 1, tzinfo=UTC), "string": "text", "binary": b"b"}
    some = [one.get(name, Decimal("0.1") if pa.types.is_decimal(t) else True if name == "bool" else 1)]
    column = pa.array([None] * 200 + some * values + [None] * 100, t)
    form = {"data_page_size": 16, "write_batch_size": 50, "use_dictionary": coded}
    file, _, chunk = written(column, form)
    assert chunk is not None
    flags = [i % 3 > 0 for i in range(len(column))]
    for keep in (None, flags):
        expected = column if keep is None else column.filter(pa.array(keep))
        found = read_chunk(file, chunk, coded and is_text(t), None if keep is None else words_of(keep, True))
        found.validate(full=True)
        assert found.to_pylist() == expected.to_pylist()
        assert found.null_count == expected.null_count


INTEGERS = ("int32", "int64", "date", "timestamp", "int8", "int16")
DECIMALS = tuple(name for name in TYPES if name.startswith("decimal"))
FURTHER = {
    "DELTA_BINARY_PACKED": INTEGERS,
    "DELTA_LENGTH_BYTE_ARRAY": ("string", "binary"),
    "DELTA_BYTE_ARRAY": ("string", "binary", *DECIMALS),
    "BYTE_STREAM_SPLIT": (*INTEGERS, "float", "double", *DECIMALS),
}


@pytest.mark.parametrize("encoding", FURTHER)
@given(data=st.data(), form=FORMS)
def test_chunk_of_another_encoding_is_what_pyarrow_reads(
    encoding: str, data: st.DataObject, form: dict[str, Any]
) -> None:
    name = data.draw(st.sampled_from(FURTHER[encoding]))
    column = data.draw(columns((name,)))
    if data.draw(st.booleans()):  # of more than a block of deltas
        column = pa.concat_arrays([column] * (2_000 // len(column)))
    form = form | {"use_dictionary": False, "column_encoding": encoding, "store_decimal_as_integer": False}
    file, _, chunk = written(column, form, data.draw(st.integers(0, 1)))
    assert chunk is not None
    found = read_chunk(file, chunk)
    found.validate(full=True)
    assert found.equals(column)
    flags = np.random.default_rng(data.draw(st.integers(0, 99))).random(len(column)) < data.draw(st.floats(0, 1))
    assert read_chunk(file, chunk, keep=words_of(flags.tolist(), True)).equals(column.filter(pa.array(flags)))
    damaged = bytearray(file)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(chunk.offset, chunk.offset + chunk.num_bytes - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    claimed = replace(chunk, type=pa.binary()) if pa.types.is_string(chunk.type) else chunk
    with suppress(UnsupportedPagesError):
        read_chunk(bytes(damaged), claimed).validate(full=not pa.types.is_decimal(chunk.type))


def test_deltas_of_more_bits_than_their_numbers(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    numbers = np.random.default_rng(1).integers(-(2**31), 2**31, 5_000, np.int32)
    column = pa.array(numbers, mask=numbers % 5 == 0)
    path = tmp_path / "x.parquet"
    with duckdb.connect() as session:
        session.register("t", pa.table({"x": column}))
        session.execute(f"copy t to '{path}' (format parquet, parquet_version v2)")
    chunk = find_chunk(ArrowFooter(pq.read_metadata(path)), 0, 0, pa.int32())
    assert chunk is not None
    assert read_chunk(path.read_bytes(), chunk).equals(column)
