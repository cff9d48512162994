"""Bounds of row groups as a predicate sees them."""

import datetime as dt
import struct
from contextlib import closing
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.expressions.ast import FileStatistic
from delta_core.parquet.opened_file import ArrowFooter, DataFile
from delta_core.parquet.row_groups import group_bounds, kept_groups
from delta_core.schema.types import PrimitiveType

#: More digits than Python's default context keeps.
WIDE = Decimal(-1234567890123456789012345678901234567)


class Recorder:
    """Represents a compiled predicate; remembers what it was queried with."""

    def __init__(self, *leaves, answer=(True,)):
        self.leaves, self.answer, self.type = leaves, answer, pa.bool_()

    def __call__(self, columns, num_rows):
        self.columns = columns
        return pa.array(self.answer * (num_rows // len(self.answer)), pa.bool_())


def bounds(tmp_path, array, wanted, **options):
    pq.write_table(pa.table({"x": array}), tmp_path / "f", **options)
    file = pq.ParquetFile(tmp_path / "f")
    leaves = [FileStatistic(kind, ("x",), PrimitiveType(wanted)) for kind in ("min", "max")]
    leaves.append(FileStatistic("nullCount", ("x",), PrimitiveType("long")))
    found = []
    with closing(DataFile(str(tmp_path / "f"))) as own:
        for footer in (ArrowFooter(file.metadata), own.footer):
            recorder = Recorder(*leaves)
            kept_groups(footer, {("x",): (0, file.schema_arrow.field(0).type)}, recorder)
            found.append([c[0].as_py() for c in recorder.columns])
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(
    ("values", "stored", "wanted", "low", "high"),
    [
        ([1, None, 3], pa.int16(), "long", 1, 3),
        ([1.5, float("nan"), 2.5], pa.float32(), "double", 1.5, 2.5),
        (["a", "b", None], pa.string(), "string", "a", "b"),
        ([True, False, None], pa.bool_(), "boolean", False, True),
        ([dt.date(1, 1, 1), None], pa.date32(), "date", dt.date(1, 1, 1), dt.date(1, 1, 1)),
        (
            [-1, 1, None],
            pa.timestamp("ms", "UTC"),
            "timestamp",
            dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1000, dt.UTC),
        ),
        (
            [-1, 1, None],
            pa.timestamp("ns", "UTC"),
            "timestamp",
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
        ),
        ([WIDE, Decimal(5), None], pa.decimal128(38, 0), "decimal(38,0)", WIDE, Decimal(5)),
        ([Decimal("-1.25"), Decimal("5.50")], pa.decimal128(5, 2), "decimal(5,2)", Decimal("-1.25"), Decimal("5.50")),
    ],
)
def test_bounds_read_as_the_requested_type(tmp_path, values, stored, wanted, low, high):
    array = pa.array(values, stored)
    assert bounds(tmp_path, array, wanted) == [low, high, array.null_count]


@pytest.mark.parametrize(
    ("values", "stored", "wanted"),
    [
        ([1, 2], pa.int32(), "double"),
        ([Decimal("1.2")], pa.decimal128(5, 1), "decimal(6,2)"),
        ([dt.date(2020, 1, 1)], pa.date32(), "timestamp_ntz"),
        ([b"a"], pa.binary(), "string"),
        ([2**64 - 1], pa.uint64(), "long"),
    ],
)
def test_bounds_of_converted_columns_are_unknown(tmp_path, values, stored, wanted):
    assert bounds(tmp_path, pa.array(values, stored), wanted)[:2] == [None, None]


def test_int96_has_no_bounds(tmp_path):
    array = pa.array([0], pa.timestamp("us", "UTC"))
    assert bounds(tmp_path, array, "timestamp", use_deprecated_int96_timestamps=True)[:2] == [None, None]


def test_only_false_drops_a_group(tmp_path):
    pq.write_table(pa.table({"x": range(3)}), tmp_path / "f", row_group_size=1)
    leaf = FileStatistic("numRecords", (), PrimitiveType("long"))
    prune = Recorder(leaf, answer=(True, None, False))
    assert kept_groups(ArrowFooter(pq.read_metadata(tmp_path / "f")), {}, prune) == [True, True, False]
    assert prune.columns[0].to_pylist() == [1, 1, 1]


NUMBERS = {
    "long": (pa.int64(), "long", [7, -(2**63), 2**63 - 1, None]),
    "small": (pa.int16(), "long", [7, -(2**15), 2**15 - 1, None]),
    "integer": (pa.int32(), "integer", [7, -(2**31), 2**31 - 1, None]),
    "too long": (pa.int64(), "integer", [7, 2**31, 3, None]),
    "double": (pa.float64(), "double", [0.5, float("inf"), -1e300, None]),
    "float": (pa.float32(), "double", [0.5, float("-inf"), 2.5, None]),
    "nan": (pa.float64(), "double", [float("nan"), 1.5, 2.5, None]),
    "day": (pa.date32(), "date", [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31), None]),
    "time": (pa.timestamp("us", "UTC"), "timestamp", [dt.datetime(1969, 1, 1, tzinfo=dt.UTC)] * 3 + [None]),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("statistics", [True, False])
def test_numbers_of_many_groups_are_read_as_those_of_each(tmp_path, name, statistics):
    stored, wanted, values = NUMBERS[name]
    values = pa.array(values * 5, stored)
    pq.write_table(pa.table({"x": values}), tmp_path / "f", row_group_size=1, write_statistics=statistics)
    leaves = [FileStatistic(kind, ("x",), PrimitiveType(wanted)) for kind in ("min", "max")]
    leaves += [FileStatistic(kind, ("x",), PrimitiveType("long")) for kind in ("nullCount", "numRecords")]
    places = {("x",): (0, stored)}
    with closing(DataFile(str(tmp_path / "f"))) as own:
        found = group_bounds(own.footer, places, leaves)
    assert found == group_bounds(ArrowFooter(pq.read_metadata(tmp_path / "f")), places, leaves)
    for column in found:
        column.validate(full=True)
    assert found[0].null_count == (20 if name == "too long" or not statistics else 10 if name == "nan" else 5)
    assert found[2].to_pylist() == ([0, 0, 0, 1] * 5 if statistics else [None] * 20)
    assert found[3].to_pylist() == [1] * 20


def test_bounds_of_another_physical_type_or_width_are_not_numbers(tmp_path):
    pq.write_table(pa.table({"x": [1, 2], "y": ["a", "bc"], "z": [1.5, 2.5]}), tmp_path / "f", row_group_size=1)
    with closing(DataFile(str(tmp_path / "f"))) as own:
        footer = own.footer
        assert [footer.number_bounds(i, True, False) is None for i in range(3)] == [False, True, True]
        assert [footer.number_bounds(i, True, True) is None for i in range(3)] == [True, True, False]
        with pytest.raises(IndexError):
            footer.number_bounds(3, True, False)
        with pytest.raises(IndexError):
            footer.null_counts(-1)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.float32(), "double"),
        (pa.float32(), "float"),
        (pa.int32(), "short"),
        (pa.date32(), "date"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.string(), "string"),
        (pa.decimal128(5, 2), "decimal(5,2)"),
    ],
)
@pytest.mark.parametrize("column", range(3), ids=["whole", "text", "float"])
def test_bounds_of_a_chunk_of_another_type_than_its_column_are_values_or_unknown(tmp_path, stored, wanted, column):
    # as a damaged footer has them: the schema is that of the files before, the chunk's type another one
    pq.write_table(pa.table({"x": [1], "y": ["ab"], "z": [2.5]}), tmp_path / "f")
    leaves = [FileStatistic(kind, ("x",), PrimitiveType(wanted)) for kind in ("min", "max")]
    with closing(DataFile(str(tmp_path / "f"))) as own:
        found = group_bounds(own.footer, {("x",): (column, stored)}, leaves)
    assert [c.type for c in found] == [leaf.type.to_arrow() for leaf in leaves]
    for bound in found:
        bound.validate(full=True)
        bound.to_pylist()


LOWER = (int(WIDE) - 1).to_bytes(16, "big", signed=True)
DAMAGED = {
    "long": (pa.int64(), "long", [10, 20], (20).to_bytes(8, "little"), (5).to_bytes(8, "little")),
    "small": (pa.int16(), "short", [10, 2000], (2000).to_bytes(4, "little"), (5).to_bytes(4, "little")),
    "double": (pa.float64(), "double", [10.5, 20.5], struct.pack("<d", 20.5), struct.pack("<d", 5.5)),
    "string": (pa.string(), "string", ["bbb", "mmm"], b"mmm", b"aaa"),
    "decimal": (pa.decimal128(38, 0), "decimal(38,0)", [WIDE, Decimal(20)], (20).to_bytes(16, "big"), LOWER),
}


@pytest.mark.parametrize("groups", [1, 20])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_least_value_above_the_most_one_is_none(tmp_path, name, groups):
    stored, wanted, values, old, new = DAMAGED[name]
    table = pa.table({"x": pa.array(values * groups, stored)})
    pq.write_table(table, tmp_path / "f", row_group_size=2, use_dictionary=False, compression="none")
    leaves = [FileStatistic(kind, ("x",), PrimitiveType(wanted)) for kind in ("min", "max")]
    data = (tmp_path / "f").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for damaged in (data, data[:start] + data[start:].replace(old, new)):
        is_sound = damaged is data
        (tmp_path / "f").write_bytes(damaged)
        with closing(DataFile(str(tmp_path / "f"))) as own:
            found = group_bounds(own.footer, {("x",): (0, stored)}, leaves)
        assert [c.null_count for c in found] == ([0, 0] if is_sound else [groups, groups])


def test_a_bound_of_more_digits_than_its_type_is_none(tmp_path):
    stored, wanted, values, old, _ = DAMAGED["decimal"]
    pq.write_table(pa.table({"x": pa.array(values, stored)}), tmp_path / "f", use_dictionary=False)
    data = (tmp_path / "f").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    (tmp_path / "f").write_bytes(data[:start] + data[start:].replace(old, b"\x7f" * 16))
    leaves = [FileStatistic(kind, ("x",), PrimitiveType(wanted)) for kind in ("min", "max")]
    with closing(DataFile(str(tmp_path / "f"))) as own:
        found = group_bounds(own.footer, {("x",): (0, stored)}, leaves)
    assert [c.to_pylist() for c in found] == [[WIDE], [None]]


@pytest.mark.parametrize("name", ["long", "string"])
def test_null_counts_that_contradict_the_rest_of_the_footer_are_unknown(tmp_path, name):
    stored, _, values, _, _ = DAMAGED[name]
    leaf = FileStatistic("nullCount", ("x",), PrimitiveType("long"))
    pq.write_table(pa.table({"x": pa.array([None] * 1077 + values * 100, stored)}), tmp_path / "f")
    data = (tmp_path / "f").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert b"\xea\x10" in data[start:]  # 1077, as Thrift has it
    # 1277 are all of its rows, and some of these have a value
    for count, number in ((1077, b"\xea\x10"), (None, b"\xfa\x13"), (None, b"\xfe\x7f"), (None, b"\xff\x7f")):
        (tmp_path / "f").write_bytes(data[:start] + data[start:].replace(b"\xea\x10", number))
        with closing(DataFile(str(tmp_path / "f"))) as own:
            found = group_bounds(own.footer, {("x",): (0, stored)}, [leaf])[0]
            assert found.to_pylist() == [count]
            assert own.footer.bounds(0, 0).null_count == count
