"""Columns to JSON lines, held to the standard library's parser and to our own parser of commits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.protocol.actions import DELETION_VECTOR, FILE_COLUMNS
from delta_core.kernels import json_lines
from delta_core.kernels._json import Rows
from delta_core.kernels.json_actions import ActionParser
from delta_core.kernels.json_lines import format_actions, format_lines

MAP = pa.map_(pa.string(), pa.string())
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MAPS = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
INT64 = st.integers(-(2**63), 2**63 - 1)
VECTOR = st.fixed_dictionaries(
    {
        "storageType": st.sampled_from("uip"),
        "pathOrInlineDv": TEXT,
        "offset": st.none() | st.integers(0, 2**31 - 1),
        "sizeInBytes": st.none() | st.integers(0, 2**31 - 1),
        "cardinality": st.none() | INT64,
    }
)
ADD = st.fixed_dictionaries(
    {
        "path": TEXT,
        "partitionValues": MAPS,
        "size": INT64,
        "dataChange": st.none() | st.booleans(),
        "stats": st.none() | TEXT,
        "tags": st.none() | MAPS,
        "deletionVector": st.none() | VECTOR,
        "baseRowId": st.none() | INT64,
    }
)
ADD_SCHEMA = pa.schema(
    [
        (n, FILE_COLUMNS[n])
        for n in ("path", "partitionValues", "size", "dataChange", "stats", "tags", "deletionVector", "baseRowId")
    ]
)


def adds(rows: list[dict[str, Any]]) -> pa.Table:
    pairs = [
        {k: list(v.items()) if k in ("partitionValues", "tags") and v is not None else v for k, v in r.items()}
        for r in rows
    ]
    return pa.Table.from_pylist(pairs, ADD_SCHEMA)


def present(value: Any) -> Any:
    """Leave out the nulls of an action and of its structs, not those of its maps."""
    if not isinstance(value, dict):
        return value
    return {k: v if k in ("partitionValues", "tags") else present(v) for k, v in value.items() if v is not None}


def written(table: pa.Table, kind: str = "add") -> list[Any]:
    return [json.loads(line) for line in format_actions(kind, table).decode().splitlines()]


@given(st.lists(ADD, max_size=6), st.integers(0, 3))
def test_lines_decode_to_the_rows_without_their_nulls(rows: list[dict[str, Any]], start: int) -> None:
    text = format_actions("add", adds(rows).slice(start))
    # U+2028 and the like end no line here: a line ends in a newline alone
    lines = text.decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line) for line in lines] == [{"add": present(r)} for r in rows[start:]]


@given(st.lists(ADD, max_size=6, unique_by=lambda r: r["path"]))
def test_parser_of_commits_reads_the_lines_back(rows: list[dict[str, Any]]) -> None:
    table = adds(rows)
    parser = ActionParser(table.column_names)
    parser.feed(3, format_actions("add", table))
    found = parser.finish().adds.select(table.column_names)
    assert found.cast(table.schema).to_pylist() == table.to_pylist()


@given(st.lists(st.none() | TEXT, max_size=9), st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]))
def test_every_layout_of_strings_returns_the_same_lines(texts: list[str | None], layout: pa.DataType) -> None:
    plain = format_actions("add", pa.table({"path": pa.array(texts, pa.string())}))
    assert format_actions("add", pa.table({"path": pa.array(texts, layout)})) == plain
    assert format_actions("add", pa.table({"path": pa.array(texts, pa.string()).dictionary_encode()})) == plain


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_floats_survive_in_their_shortest_form(values: list[float]) -> None:
    assert [r["a"]["x"] for r in written(pa.table({"x": pa.array(values, pa.float64())}), "a")] == values
    narrow = np.array(values, np.float64).clip(-1e38, 1e38).astype(np.float32)
    found = [r["a"]["x"] for r in written(pa.table({"x": pa.array(narrow)}), "a")]
    assert np.array(found, np.float32).tolist() == narrow.tolist()


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_integers_of_every_width_reach_their_ends(kind: pa.DataType) -> None:
    bits = kind.bit_width
    ends = [-(2 ** (bits - 1)), 0, 2 ** (bits - 1) - 1] if pa.types.is_signed_integer(kind) else [0, 1, 2**bits - 1]
    assert [r["a"]["x"] for r in written(pa.table({"x": pa.array(ends, kind)}), "a")] == ends


def test_plugins_fields_of_nested_types_are_written() -> None:
    kind = pa.struct(
        [
            ("list", pa.list_(pa.int64())),
            ("inner", pa.struct([("flag", pa.bool_()), ("map", pa.map_(pa.string(), pa.int32()))])),
        ]
    )
    rows = [
        {"list": [1, None], "inner": {"flag": True, "map": [("a", None), ("b", 2)]}},
        None,
        {"list": [], "inner": None},
    ]
    table = pa.table({"path": ["p", "q", "r"], "own": pa.array(rows, kind)})
    assert written(table) == [
        {"add": {"path": "p", "own": {"list": [1, None], "inner": {"flag": True, "map": {"a": None, "b": 2}}}}},
        {"add": {"path": "q"}},
        {"add": {"path": "r", "own": {"list": []}}},
    ]
    assert written(table.slice(2)) == [{"add": {"path": "r", "own": {"list": []}}}]


def test_chunks_and_slices_of_structs_keep_their_rows() -> None:
    vectors = [
        {"storageType": "u", "pathOrInlineDv": "x" * i, "offset": i, "sizeInBytes": 1, "cardinality": 2}
        for i in range(5)
    ]
    column = pa.chunked_array(
        [pa.array([None, *vectors[:3]], DELETION_VECTOR).slice(1), pa.array(vectors[3:], DELETION_VECTOR)]
    )
    assert [r["add"]["deletionVector"] for r in written(pa.table({"deletionVector": column}))] == vectors


def test_no_rows_return_no_lines() -> None:
    assert format_actions("add", ADD_SCHEMA.empty_table()) == b""
    assert format_actions("add", pa.table({"path": pa.nulls(2)})) == b'{"add":{}}\n' * 2


def test_names_are_escaped() -> None:
    assert written(pa.table({'a"\\\n': ["x"]}), 'k"') == [{'k"': {'a"\\\n': "x"}}]


@pytest.mark.parametrize(
    "data", [b"\xff", b"ab\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe0\x80\x80", b"x" * 9 + b"\x80"]
)
def test_bytes_that_are_no_text_are_rejected_with_their_row(data: bytes) -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 2, 2 + len(data)], np.int32)), pa.py_buffer(b"ok" + data)]
    )
    table = pa.concat_tables([pa.table({"path": ["first"]}), pa.table({"path": broken})])
    with pytest.raises(
        InvalidArgumentError, match="Row 2 of add actions can't be written as JSON: path holds bytes"
    ) as found:
        format_actions("add", table)
    assert (found.value.row, found.value.column) == (2, "path")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_rejected(value: float) -> None:
    with pytest.raises(InvalidArgumentError, match="NaN or infinite"):
        format_actions("add", pa.table({"x": [value]}))


@pytest.mark.parametrize(
    "column", [pa.array([b"x"]), pa.array([1], pa.date32()), pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string()))]
)
def test_types_without_a_json_form_are_rejected_by_name(column: pa.Array) -> None:
    with pytest.raises(InvalidArgumentError, match="Column 'own' has type"):
        format_actions("add", pa.table({"own": column}))


def array_of(shape: str, width: int, length: int, offset: int, *buffers: bytes | None, children: Any = ()) -> Rows:
    column = (shape, width, b'"x":', length, offset, *buffers, list(children))
    return Rows(("struct", 0, b"", length, 0, None, None, None, [column]))


def ints(*values: int) -> bytes:
    return np.array(values, np.int32).tobytes()


KEYS = ("string", 4, b"", 1, 0, None, ints(0, 1), b"k", [])
NUMBER = ("int", 8, b"", 1, 0, None, b"\0" * 8, None, [])


@pytest.mark.parametrize("offsets", [(0, 9), (5, 2), (-1, 2), (0,), ()])
def test_offsets_outside_the_text_are_rejected(offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"offsets|needed"):
        array_of("string", 4, 1, 0, None, ints(*offsets), b"abcd")


@pytest.mark.parametrize(("shape", "width"), [("int", 8), ("uint", 2), ("float", 4), ("bool", 0), ("string", 8)])
def test_buffers_shorter_than_their_length_are_rejected(shape: str, width: int) -> None:
    with pytest.raises(ValueError, match="needed"):
        array_of(shape, width, 9, 4, None, b"\0", b"")
    with pytest.raises(ValueError, match="needed"):
        array_of(shape, width, 9, 0, b"\0", b"\0" * 80, b"")


@pytest.mark.parametrize(("length", "offset"), [(-1, 0), (1, -1), (2**62, 0), (1, 2**62)])
def test_impossible_lengths_are_rejected(length: int, offset: int) -> None:
    with pytest.raises(ValueError, match="values from"):
        array_of("int", 8, length, offset, None, b"\0" * 8, None)


def test_nested_arrays_that_reach_outside_their_children_are_rejected() -> None:
    with pytest.raises(ValueError, match="offsets"):
        array_of("list", 4, 1, 0, None, ints(0, 2), None, children=[NUMBER])
    with pytest.raises(ValueError, match="offsets"):
        array_of("map", 4, 1, 0, None, ints(0, 2), None, children=[KEYS, NUMBER])
    with pytest.raises(ValueError, match="children"):
        array_of("map", 4, 1, 0, None, ints(0, 1), None, children=[KEYS])
    with pytest.raises(ValueError, match="no strings"):
        array_of("map", 4, 1, 0, None, ints(0, 1), None, children=[NUMBER, NUMBER])
    with pytest.raises(ValueError, match="a field of 1 values"):
        array_of("struct", 0, 2, 0, None, None, None, children=[NUMBER])
    with pytest.raises(ValueError, match="values of 3 bytes"):
        array_of("int", 3, 1, 0, None, b"\0" * 8, None)


def test_long_tables_are_formatted_in_pieces_with_the_same_lines_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = pa.chunked_array([[f"f{i}" for i in range(7)], [None, "é"], []], pa.string())
    table = pa.table({"path": paths, "size": pa.array(range(9))})
    whole = format_actions("remove", table)
    monkeypatch.setattr(json_lines, "RUN_ROWS", 4)
    pieces = list(format_lines("remove", table))
    assert [p.count(b"\n") for p in pieces] == [4, 4, 1]
    assert b"".join(pieces) == whole
    with pytest.raises(InvalidArgumentError, match="Row 6 of add actions") as caught:
        list(format_lines("add", pa.table({"x": [0.5] * 6 + [float("nan")]})))
    assert caught.value.row == 6
