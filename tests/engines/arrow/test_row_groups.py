"""Bounds of row groups as a predicate sees them."""

import datetime as dt
from contextlib import closing
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.arrow.parquet.opened_file import ArrowFooter, DataFile
from delta_core.engines.arrow.parquet.row_groups import kept_groups
from delta_core.expressions.ast import FileStatistic
from delta_core.protocol.types import PrimitiveType

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
