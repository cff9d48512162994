"""JSON statistics to columns, against Python's own parsers and against hostile bytes."""

import json
import math
import struct
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.stats import StatField, parse_stats, unreadable_stats


def read(stats, *fields: tuple[tuple[str, ...], str], threads: int = 1) -> list:
    columns = parse_stats(stats, [StatField(path, kind) for path, kind in fields], threads)
    for column in columns:
        column.validate(full=True)
    return columns


def bound(json_text: str, kind: str):
    """Return what one minValues.a of that text is read as."""
    (column,) = read(pa.array(['{"minValues":{"a":' + json_text + "}}"]), (("minValues", "a"), kind))
    return column[0]


# --- one pass over all fields --------------------------------------------------------------


def test_fields_come_in_the_order_requested():
    stats = pa.array(['{"numRecords":3,"tightBounds":false,"minValues":{"s":{"k":"a"},"x":1},"nullCount":{"x":2}}'])
    columns = read(
        stats,
        (("nullCount", "x"), "long"),
        (("minValues", "s", "k"), "string"),
        (("tightBounds",), "boolean"),
        (("numRecords",), "long"),
        (("maxValues", "x"), "long"),
    )
    assert [c[0].as_py() for c in columns] == [2, "a", False, 3, None]


def test_rows_without_statistics_are_null():
    stats = pa.array([None, "", "{}", "null", '{"numRecords":null}', '{"numRecords":1}', "  "])
    assert read(stats, (("numRecords",), "long"))[0].to_pylist() == [None] * 5 + [1, None]


@pytest.mark.parametrize(
    "text",
    [
        '{"numRecords":1',
        '{"numRecords":1}}',
        '{"numRecords":1}x',
        "[1]",
        '{"numRecords":1,"minValues":{"a":1}',
        '{"numRecords":1,}',
        '{"numRecords":1 "a":2}',
        '{"numRecords":1,"x":"',
        '{"numRecords":1,"x":[{]',
        '{"numRecords":1,"x":"\n"}',
        '{"numRecords":1,"x":}',
    ],
)
def test_broken_statistics_are_null_for_that_file_alone(text):
    stats = pa.array(['{"numRecords":7}', text, '{"numRecords":8}'])
    assert read(stats, (("numRecords",), "long"))[0].to_pylist() == [7, None, 8]


def test_every_torn_row_is_null():
    text = '{"numRecords":1,"minValues":{"a":"x\\"{","z":{"b":[1,"]"]}},"maxValues":{"a":"y"},"nullCount":{"a":0}}'
    stats = pa.array([text[:n] for n in range(len(text) + 1)])
    for column in read(stats, (("numRecords",), "long"), (("maxValues", "a"), "string")):
        assert column.null_count == len(text)
        assert column.is_valid()[-1].as_py()


def test_key_order_may_change_from_row_to_row():
    stats = pa.array(['{"a":1,"b":2,"z":9}', '{"b":3,"a":4}', '{"y":0,"z":1,"b":5}', '{"a":6}', '{"b":7,"a":8}'])
    a, b = read(stats, (("a",), "long"), (("b",), "long"))
    assert (a.to_pylist(), b.to_pylist()) == ([1, 4, None, 6, 8], [2, 3, 5, None, 7])


def test_space_is_allowed_everywhere():
    stats = pa.array([' {\n "minValues" : { "a" : 1 , "b" :\t"x" } , "o" : [ 1 ] }\r\n'] * 3)
    a, b = read(stats, (("minValues", "a"), "long"), (("minValues", "b"), "string"))
    assert (a.to_pylist(), b.to_pylist()) == ([1] * 3, ["x"] * 3)


def test_last_of_equal_keys_counts():
    stats = pa.array(
        [
            '{"a":{"b":1},"a":{"c":2}}',
            '{"a":{"b":1,"b":null}}',
            '{"a":{"b":1},"a":null}',
            '{"a":{"b":1,"b":"7","c":"x","c":"y"}}',
        ]
    )
    b, c = read(stats, (("a", "b"), "long"), (("a", "c"), "string"))
    assert b.to_pylist() == [None, None, None, 7]
    assert c.to_pylist() == [None, None, None, "y"]


def test_a_field_may_also_be_an_object():
    stats = pa.array(['{"n":{"a":3}}', '{"n":{"a":{"b":4}}}', '{"n":[1]}'])
    a, b = read(stats, (("n", "a"), "long"), (("n", "a", "b"), "long"))
    assert (a.to_pylist(), b.to_pylist()) == ([3, None, None], [None, 4, None])


def test_names_are_matched_unescaped_and_whole():
    stats = pa.array(
        [
            json.dumps({"minValues": {'q"\\': 1, "é": 2, "a.b": 3, "A": 4, "aa": 5, "": 6}}, ensure_ascii=e)
            for e in (True, False)
        ]
        * 2
    )
    for name, value in (('q"\\', 1), ("é", 2), ("a.b", 3), ("A", 4), ("a", None), ("", 6)):
        assert read(stats, (("minValues", name), "long"))[0].to_pylist() == [value] * 4


def test_name_with_quote_does_not_match_across_keys():
    stats = pa.array(['{"a\\":1,\\"b":5}', '{"a":1,"b":2}', '{"a":1,"b":2}'])
    assert read(stats, (('a":1,"b',), "long"))[0].to_pylist() == [5, None, None]


@pytest.mark.parametrize("count", [3, 40, 400])
def test_many_columns_of_long_names(count):
    names = [f"a_rather_long_column_name_of_thirty_two_and_more_{i}" if i % 2 else f"c{i}" for i in range(count)]
    stats = pa.array([json.dumps({"maxValues": {n: f"v{i}" for i, n in enumerate(names)}})] * 5)
    columns = read(stats, *((("maxValues", n), "string") for n in reversed(names)))
    assert [c.to_pylist() for c in reversed(columns)] == [[f"v{i}"] * 5 for i in range(count)]


# --- values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-0", 0), ("1.0", 1), ("1e2", 100), ('"12"', 12), ("9223372036854775807", 2**63 - 1),
     ("-9223372036854775808", -(2**63)), ("9223372036854775808", None), ("1.5", None), ("1e-1", None),
     ("true", None),
     ('"x"', None), ('""', None), ("-", None), ("[1]", None), ("1e400", None), ("1" * 50, None)],
)  # fmt: skip
def test_whole_numbers_are_exact_or_absent(text, value):
    found = bound(text, "long")
    assert (found.type, found.as_py()) == (pa.int64(), value)


@pytest.mark.parametrize(("kind", "bits"), [("byte", 8), ("short", 16), ("integer", 32), ("long", 64)])
def test_whole_numbers_beyond_their_type_are_absent(kind, bits):
    for edge in (2 ** (bits - 1) - 1, -(2 ** (bits - 1))):
        assert bound(str(edge), kind).as_py() == edge
        assert bound(str(edge + (1 if edge > 0 else -1)), kind).as_py() is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("-1.5e3", -1500.0),
        ('"Infinity"', math.inf),
        ('"-Infinity"', -math.inf),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("0.1", 0.1),
        ("1e400", None),
        ('"abc"', None),
        ('"inf"', None),
        ("null", None),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("-0.0", -0.0),
        ('"2.5"', 2.5),
    ],
)
def test_doubles(text, value):
    assert bound(text, "double").as_py() == value


@pytest.mark.parametrize("text", ["NaN", '"NaN"'])
def test_nan_is_read_quoted_or_plain(text):
    assert math.isnan(bound(text, "double").as_py())
    assert math.isnan(bound(text, "float").as_py())


def test_floats_are_rounded_once():
    found = bound("0.1", "float")
    assert found.type == pa.float32()
    assert found.as_py() == struct.unpack("f", struct.pack("f", 0.1))[0]


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ('"true"', None), ("1", None), ("tru", None)]
)
def test_booleans(text, value):
    assert bound(text, "boolean").as_py() is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"a\\n\\u00e9\\ud83d\\ude00\\""', 'a\né😀"'),
        ('""', ""),
        ("5", None),
        ('"\\ud83d"', None),
        ('"\\ude00x"', None),
        ('"é"', "é"),
    ],
)
def test_strings_are_whole_text_or_absent(text, value):
    assert bound(text, "string").as_py() == value


def test_strings_that_are_no_utf8_are_absent():
    stats = pa.array([b'{"a":"\xff"}', b'{"a":"x"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc3\xa9"}'], pa.binary())
    assert read(stats, (("a",), "string"))[0].to_pylist() == [None, "x", None, "é"]


UNIX = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "days"),
    [("1970-01-01", 0), ("1969-12-31", -1), ("2000-02-29", 11016), ("1900-03-01", -25508),
     ("10000-01-01", 2932897),
     ("+10000-01-01", 2932897), ("0001-01-01", -719162), ("0000-12-31", -719163), ("-0001-12-31", -719529),
     ("1900-02-29", None), ("2001-02-29", None), ("2001-13-01", None), ("2001-00-01", None),
     ("2001-01-32", None), ("2001-04-31", None),
     ("2001-1-1", None), ("2001-01-01T00:00:00", None), ("201-01-01", None), ("1234567-01-01", None),
     ("", None), ("2001-01-0", None)],
)  # fmt: skip
def test_dates(text, days):
    found = bound(f'"{text}"', "date")
    assert found.value == days


@given(st.dates())
def test_dates_agree_with_python(value):
    assert bound(f'"{value.isoformat()}"', "date").as_py() == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-03-04T05:06:07.891Z", "2021-03-04T05:06:07.891000"),
        ("2021-03-04T05:06:07.891-08:00", "2021-03-04T13:06:07.891000"),
        ("2021-03-04T05:06:07+0530", "2021-03-03T23:36:07"),
        ("2021-03-04T05:06:07+05", "2021-03-04T00:06:07"),
        ("2021-03-04 05:06:07.123456789", "2021-03-04T05:06:07.123456"),
        ("2021-03-04 05:06", "2021-03-04T05:06:00"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999"),
        ("0001-01-01T00:00:00.000Z", "0001-01-01T00:00:00"),
        ("2021-03-04T05:06:07.Z", "2021-03-04T05:06:07"),
        ("2021-03-04", None),
        ("2021-03-04T24:00:00Z", None),
        ("2021-03-04T05:60:00Z", None),
        ("2021-03-04T05:06:60Z", None),
        ("2021-03-04T05:06:07ZZ", None),
        ("2021-03-04T05:06:07+19:00", None),
        ("2021-03-04T05:06:07+0:00", None),
        ("2021-03-04_05:06:07", None),
        ("2021-02-30T05:06:07Z", None),
        ("999999-01-01T00:00:00Z", None),
        ("", None),
        ("2021-03-04T05:06:07+05:", None),
        ("2021-03-04T05:06:07 Z", None),
    ],
)
def test_timestamps(text, expected):
    found = bound(f'"{text}"', "timestamp")
    assert found.type == pa.timestamp("us", "UTC")
    if expected is None:
        assert found.as_py() is None
    else:
        assert found.value == (datetime.fromisoformat(expected + "Z") - UNIX) // timedelta(microseconds=1)


@given(
    st.datetimes(timezones=st.builds(lambda m: timezone(timedelta(minutes=m)), st.integers(-18 * 60, 18 * 60))),
    st.sampled_from("T "),
)
def test_timestamps_agree_with_python(value, joint):
    micros = (value - UNIX) // timedelta(microseconds=1)
    assert bound(f'"{value.isoformat(joint)}"', "timestamp").value == micros


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-03-04T05:06:07.5", "2021-03-04 05:06:07.500000"),
        ("2021-03-04 05:06:07", "2021-03-04 05:06:07"),
        ("2021-03-04T05:06:07Z", "2021-03-04 05:06:07"),
        ("2021-03-04T05:06:07+01:00", None),
    ],
)
def test_timestamps_without_zone_take_no_offset(text, expected):
    found = bound(f'"{text}"', "timestamp_ntz")
    assert (found.type, None if expected is None else str(found.as_py())) == (pa.timestamp("us"), expected)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.10", "decimal(3,2)", "1.10"),
        ("1E+2", "decimal(5,0)", "100"),
        ('"-0.005"', "decimal(4,3)", "-0.005"),
        ("10", "decimal(2,1)", None),
        ("0.001", "decimal(4,2)", None),
        ("0.10000", "decimal(1,1)", "0.1"),
        ("0", "decimal(38,38)", "0"),
        ("-0", "decimal(1,0)", "0"),
        ("9" * 38, "decimal(38,0)", "9" * 38),
        ("1" + "0" * 38, "decimal(38,0)", None),
        ("0." + "9" * 38, "decimal(38,38)", "0." + "9" * 38),
        ("1e37", "decimal(38,0)", "1" + "0" * 37),
        ("1e38", "decimal(38,0)", None),
        ("1e-400", "decimal(38,38)", None),
        ("9007199254740993", "decimal(20,2)", "9007199254740993"),
        ('"x"', "decimal(5,2)", None),
        ('"1.2.3"', "decimal(5,2)", None),
        ("true", "decimal(5,2)", None),
        ('"1e"', "decimal(5,2)", None),
        ('"."', "decimal(5,2)", None),
        ("1" * 39, "decimal(38,0)", None),
        ("0" * 60 + "1", "decimal(1,0)", "1"),
        ("0e99999999999999999999", "decimal(1,0)", "0"),
        ("1e99999999999999999999", "decimal(9,0)", None),
    ],
)
def test_decimals_are_exact_or_absent(text, kind, value):
    found = bound(text, kind).as_py()
    assert found == (None if value is None else Decimal(value))


@given(
    st.decimals(allow_nan=False, allow_infinity=False),
    st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p))),
)
def test_decimals_agree_with_python(value, shape):
    precision, scale = shape
    _, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0")
    shift = exponent + scale
    fits = (
        whole == 0
        or (shift >= 0 and shift < 60 and whole * 10**shift < 10**precision)
        or (shift < 0 and -shift < 200 and whole % 10**-shift == 0 and whole // 10**-shift < 10**precision)
    )
    found = bound(f'"{value}"', f"decimal({precision},{scale})").as_py()
    assert found == (value if fits and len(str(whole).rstrip("0")) <= 38 else None)


# --- values of another type ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_unreadable"),
    [
        ('{"minValues":{"a":5}}', False),
        ('{"minValues":{"a":null}}', False),
        ('{"minValues":{}}', False),
        ('{"minValues":{"b":"x"}}', False),
        ("{", False),
        (None, False),
        ('{"minValues":{"a":"5"}}', False),
        ('{"minValues":{"a":"x"}}', True),
        ('{"minValues":{"a":1.5}}', True),
        ('{"minValues":{"a":true}}', True),
        ('{"minValues":{"a":{"b":1}}}', True),
        ('{"minValues":{"a":[1]}}', True),
        ('{"minValues":{"a":99999999999}}', True),
        ('{"minValues":{"a":"x","a":5}}', False),
    ],
)
def test_a_value_of_another_type_is_unreadable(text, is_unreadable):
    stats = pa.array(['{"minValues":{"a":1}}', text], pa.string())
    fields = [StatField(("minValues", "a"), "integer"), StatField(("nullCount", "a"), "long")]
    assert [mask.tolist() for mask in unreadable_stats(stats, fields)] == [[False, is_unreadable], [False, False]]


@pytest.mark.parametrize(("text", "is_unreadable"), [('"2024-05-01"', False), ('"May"', True), ("5", True)])
def test_a_date_is_no_other_type_for_a_column_of_times_that_had_dates(text, is_unreadable):
    stats = pa.array([f'{{"minValues":{{"a":{text}}}}}', '{"minValues":{"a":"2024-05-01T00:00:00"}}'])
    (mask,) = unreadable_stats(stats, [StatField(("minValues", "a"), "timestamp_ntz")])
    assert mask.tolist() == [is_unreadable, False]


# --- against Python's parser, and hostile bytes --------------------------------------------

names = st.sampled_from(["a", "b", "c", "é", 'q"', "minValues", "x" * 40])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(names, values, max_size=5)
paths = st.lists(st.lists(names, min_size=1, max_size=3).map(tuple), min_size=1, max_size=5, unique=True)


@given(
    st.lists(st.tuples(objects, st.booleans(), st.sampled_from([None, 0])), max_size=6),
    paths,
    st.sampled_from(["long", "string", "present"]),
)
def test_any_json_is_read_as_python_reads_it(rows, asked, kind):
    stats = pa.array([json.dumps(o, ensure_ascii=a, indent=i) for o, a, i in rows], pa.string())
    for path, column in zip(asked, read(stats, *((p, kind) for p in asked)), strict=True):
        for (value, _, _), found in zip(rows, column.to_pylist(), strict=True):
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if kind == "present":
                assert found == (None if value is None else True)
            elif kind == "string":
                assert found == (value if isinstance(value, str) else None)
            elif isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
                assert found == value
            elif not isinstance(value, str):
                assert found is None


WHOLE = (
    '{"numRecords":12,"minValues":{"a":-5,"d":"2020-02-29","t":"2020-02-29T12:34:56.123-08:00","n":1.5e3,"s":"x\\"\\u00e9"},'
    '"maxValues":{"a":7,"b":{"c":[1,{"q":"]}"}]},"s":"é"},"nullCount":{"a":1}}'
).encode()


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(WHOLE)))
def test_hostile_bytes_never_raise(flips, cut):
    flipped = bytearray(WHOLE)
    for at, byte in flips:
        flipped[at] = byte
    stats = pa.array([WHOLE, bytes(flipped), bytes(flipped[:cut]), WHOLE], pa.binary())
    columns = read(
        stats,
        (("numRecords",), "long"),
        (("minValues", "a"), "long"),
        (("minValues", "d"), "date"),
        (("minValues", "t"), "timestamp"),
        (("minValues", "n"), "decimal(9,2)"),
        (("minValues", "s"), "string"),
        (("maxValues", "s"), "string"),
        (("maxValues", "a"), "double"),
        (("nullCount", "a"), "long"),
    )
    for column in columns:
        assert column[0].as_py() == column[3].as_py() is not None


# --- forms of the array --------------------------------------------------------------------

TEXTS = ['{"n":1,"s":"a"}', None, '{"n":3,"s":"ccc"}', "torn", '{"n":5,"s":""}', "{}", '{"n":7,"s":"é"}'] * 5
FIELDS = ((("n",), "long"), (("s",), "string"))
EXPECTED = [[1, None, 3, None, 5, None, 7] * 5, ["a", None, "ccc", None, "", None, "é"] * 5]
KINDS = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("first", "last"), [(0, 35), (3, 30), (8, 9), (35, 35)])
def test_every_string_array_is_read_from_its_offset(kind, first, last):
    plain = pa.array(TEXTS, kind.value_type if isinstance(kind, pa.DictionaryType) else kind)
    stats = plain.dictionary_encode() if isinstance(kind, pa.DictionaryType) else plain
    columns = read(stats.slice(first, last - first), *FIELDS)
    assert [c.to_pylist() for c in columns] == [e[first:last] for e in EXPECTED]


def test_chunks_stay_chunks():
    whole = pa.array(TEXTS)
    stats = pa.chunked_array([whole.slice(0, 10), whole.slice(10, 0), whole.slice(10)])
    columns = read(stats, *FIELDS)
    assert all(isinstance(c, pa.ChunkedArray) for c in columns)
    assert [c.to_pylist() for c in columns] == EXPECTED
    assert read(pa.chunked_array([], pa.string()), *FIELDS)[1].type == pa.string()


def test_an_array_without_any_value_is_read():
    assert [c.to_pylist() for c in read(pa.nulls(3), *FIELDS)] == [[None] * 3] * 2
    assert [c.to_pylist() for c in read(pa.array([], pa.string()), *FIELDS)] == [[]] * 2


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_return_the_same_rows(threads):
    stats = pa.array([json.dumps({"n": i, "s": "x" * (i % 5), "b": True if i % 3 else None}) for i in range(70_001)])
    fields = (*FIELDS, (("b",), "boolean"))
    for one, many in zip(read(stats, *fields), read(stats, *fields, threads=threads), strict=True):
        assert one.equals(many)


@pytest.mark.parametrize("places", [[0, 100, 5, 7], [0, 5, 3, 7], [0, -5, 5, 7]])
def test_offsets_outside_the_text_are_rejected(places):
    text = pa.py_buffer(b'{"n":1}')
    broken = pa.Array.from_buffers(pa.string(), 3, [None, pa.array(places, pa.int32()).buffers()[1], text])
    with pytest.raises(ValueError, match="outside"):
        parse_stats(broken, [StatField(("n",), "long")])


@pytest.mark.parametrize(
    ("stats", "fields", "what"),
    [
        (pa.array([""]), [StatField(("a",), "array")], "array"),
        (pa.array([1]), [StatField(("a",), "long")], "int64"),
        (pa.array([""]), [StatField(("a",), "long"), StatField(("a",), "date")], "twice"),
        (pa.array([""]), [StatField((), "long")], "path"),
    ],
)
def test_what_cannot_be_requested_is_rejected(stats, fields, what):
    with pytest.raises(InvalidArgumentError, match=what):
        parse_stats(stats, fields)
