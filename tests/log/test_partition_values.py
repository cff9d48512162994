import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import LogError, SchemaError
from delta_core.kernel.log.file_columns import partition_text
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.schema.types import ArrayType, PrimitiveType

UTC = dt.UTC


def parse(values, type, zone="UTC"):
    return parse_partition_values(pa.array(values, pa.string()), PrimitiveType(type), zone, column="p").to_pylist()


PRIMITIVES = (
    "boolean",
    "byte",
    "short",
    "integer",
    "long",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(10,2)",
    "void",
)


@pytest.mark.parametrize("type", PRIMITIVES)
def test_empty_string_and_null_are_null_for_every_type(type):
    assert parse(["", None], type) == [None, None]


@pytest.mark.parametrize("type", PRIMITIVES)
def test_result_has_the_arrow_type_and_length(type):
    found = parse_partition_values(pa.array([""] * 3), PrimitiveType(type))
    assert found.type == PrimitiveType(type).to_arrow()
    assert len(found) == 3


def test_integers_of_every_width():
    assert parse(["-128", "127"], "byte") == [-128, 127]
    assert parse(["-9223372036854775808", "+7"], "long") == [-(2**63), 7]


def test_integer_out_of_range_names_column_and_value():
    with pytest.raises(LogError, match="128") as e:
        parse(["1", "128"], "byte")
    assert (e.value.column, e.value.value) == ("p", "128")


def test_floats_with_nan_and_infinities():
    nan, *rest = parse(["NaN", "Infinity", "-Infinity", "1.0E10", "-0.0"], "double")
    assert nan != nan
    assert rest == [float("inf"), float("-inf"), 1e10, -0.0]


def test_decimals_are_exact():
    assert parse(["12345678901234567890.12", "-0.01", "1E+3"], "decimal(38,2)") == [
        Decimal("12345678901234567890.12"),
        Decimal("-0.01"),
        Decimal("1000.00"),
    ]


def test_decimal_with_more_digits_than_its_scale_is_rejected():
    with pytest.raises(LogError, match=r"1\.234"):
        parse(["1.234"], "decimal(10,2)")


def test_decimal_that_does_not_fit_is_rejected_also_where_it_would_wrap_around():
    with pytest.raises(LogError, match="73757908648281148827151332672"):
        parse(["73757908648281148827151332672.2"], "decimal(38,24)")


def test_booleans():
    assert parse(["true", "false", "TRUE"], "boolean") == [True, False, True]


def test_binary_is_raw_utf8():
    assert parse(["\u0001é", "\\u0001"], "binary") == ["\u0001é".encode(), b"\\u0001"]


def test_dates_beyond_year_9999_and_before_year_1():
    days = parse_partition_values(pa.array(["10000-01-01", "-0001-12-31", "1970-1-2"]), PrimitiveType("date"))
    assert days.cast(pa.int32()).to_pylist() == [2932897, -719529, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-01-02T03:04:05Z", dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2020-01-02T03:04:05.123456Z", dt.datetime(2020, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2020-01-02T03:04:05.5+05:30", dt.datetime(2020, 1, 1, 21, 34, 5, 500000, tzinfo=UTC)),
        ("2020-01-02T03:04:05-08:00", dt.datetime(2020, 1, 2, 11, 4, 5, tzinfo=UTC)),
        ("2020-01-02 03:04:05", dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2020-01-02 03:04:05.0", dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2020-01-02", dt.datetime(2020, 1, 2, tzinfo=UTC)),
    ],
)
def test_timestamp_forms(text, expected):
    assert parse([text], "timestamp") == [expected]
    assert parse([text, "2020-01-02 3:04:05"], "timestamp") == [expected, dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)]


def test_zone_less_timestamp_is_read_in_the_given_zone_and_zoned_text_is_not():
    found = parse(["2020-07-01 00:00:00", "2020-07-01T00:00:00Z"], "timestamp", "America/Los_Angeles")
    assert found == [dt.datetime(2020, 7, 1, 7, tzinfo=UTC), dt.datetime(2020, 7, 1, tzinfo=UTC)]


def test_timestamp_in_the_gap_of_a_zone_moves_forward_and_in_an_overlap_is_the_earlier():
    found = parse(["2020-03-08 02:30:00", "2020-11-01 01:30:00"], "timestamp", "America/Los_Angeles")
    assert found == [dt.datetime(2020, 3, 8, 10, 30, tzinfo=UTC), dt.datetime(2020, 11, 1, 8, 30, tzinfo=UTC)]


def test_timestamps_beyond_year_9999():
    array = parse_partition_values(pa.array(["+10000-01-01T00:00:00Z"]), PrimitiveType("timestamp"))
    assert array.cast(pa.int64()).to_pylist() == [253402300800000000]
    local = parse_partition_values(pa.array(["+10000-01-01 00:00:00"]), PrimitiveType("timestamp"), "Asia/Tokyo")
    assert local.cast(pa.int64()).to_pylist() == [253402300800000000 - 9 * 3600 * 10**6]


def test_timestamp_ntz_keeps_the_wall_clock():
    assert parse(["2021-11-18 02:30:00.123456", "2021-11-18"], "timestamp_ntz") == [
        dt.datetime.fromisoformat("2021-11-18T02:30:00.123456"),
        dt.datetime.fromisoformat("2021-11-18"),
    ]


@pytest.mark.parametrize(
    ("type", "bad"), [("date", "x"), ("timestamp", "2020-13-01 00:00:00"), ("boolean", "maybe"), ("double", "1,5")]
)
def test_text_that_is_no_value_is_rejected(type, bad):
    with pytest.raises(LogError, match=f"the value {bad!r}, which is not a value of its type"):
        parse([bad], type)


def test_nested_type_cannot_partition():
    with pytest.raises(SchemaError, match="partition"):
        parse_partition_values(pa.array(["1"]), ArrayType("long"), column="p")


def test_dictionary_encoded_and_chunked_text_return_the_same():
    text = pa.chunked_array(
        [pa.array(["1", "", "1"]).dictionary_encode(), pa.array(["2", None, "1"]).dictionary_encode()]
    )
    assert parse_partition_values(text, PrimitiveType("integer")).to_pylist() == [1, None, 1, 2, None, 1]


@given(st.lists(st.one_of(st.none(), st.datetimes()), max_size=20))
def test_any_timestamp_survives_both_text_forms(values):
    utc = [None if v is None else v.replace(tzinfo=UTC) for v in values]
    iso = [None if v is None else v.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0") for v in values]
    plain = [None if v is None else v.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0") for v in values]
    assert parse(iso, "timestamp") == utc
    assert parse(plain, "timestamp") == utc
    assert parse(plain, "timestamp_ntz") == values


@given(st.lists(st.one_of(st.none(), st.dates()), max_size=20))
def test_any_date_survives(values):
    assert parse([None if v is None else v.isoformat() for v in values], "date") == values


def test_texts_of_another_column_in_a_shared_dictionary_are_not_looked_at():
    shared = pa.DictionaryArray.from_arrays(pa.array([1, None, 1], pa.int32()), pa.array(["x", "7"]))
    assert parse_partition_values(shared, PrimitiveType("integer")).to_pylist() == [7, None, 7]


MAPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "", None])), max_size=3)
SAME_KEYS = st.permutations("abc").flatmap(
    lambda keys: st.lists(st.tuples(*(st.tuples(st.just(k), st.sampled_from(["1", "2", "", None])) for k in keys)))
)


@given(st.one_of(st.lists(st.none() | MAPS), SAME_KEYS), st.booleans(), st.integers(0, 2), st.sampled_from("abcd"))
def test_text_of_a_key_is_that_of_each_map(rows, is_coded, first, key):
    column = pa.array(rows, pa.map_(pa.string(), pa.string()))
    if is_coded:
        parts = [child.dictionary_encode() for child in (column.keys, column.items)]
        column = pa.MapArray.from_arrays(column.offsets, *parts)
    expected = [dict(row or []).get(key) for row in rows]
    found = partition_text(column.slice(first), key)
    assert found.to_pylist() == expected[first:]
    assert found.type == pa.dictionary(pa.int32(), pa.string())
