"""Footers without bounds of floating-point columns, for PyArrow, which takes them for bounds of NaN too."""

from __future__ import annotations

import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from delta_core.parquet.footer_check import without_float_bounds

MR = b"parquet-mr version 1.13.1".ljust(32)


def _written(rows: pa.Table, **options: object) -> tuple[bytes, bytes]:
    """Return a file before its footer, and the footer."""
    out = io.BytesIO()
    pq.write_table(rows, out, **options)
    data = out.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:start], data[start:-8]


def _read(before: bytes, footer: bytes) -> pq.FileMetaData:
    end = len(footer).to_bytes(4, "little") + b"PAR1"
    return pq.read_metadata(io.BytesIO(before + footer + end))


ROWS = pa.table(
    {
        "i": pa.array([1, 2, 3, 4], pa.int64()),
        "f": [1.0, math.nan, 1.0, None],
        "g": pa.array([1.0, 2.0, 3.0, None], pa.float32()),
        "s": pa.array([{"x": float(v), "t": "a" * v} for v in range(4)]),
        "l": [[1.0], [2.0], [], None],
    }
)


def test_bounds_of_floats_become_nan_and_others_stay() -> None:
    before, footer = _written(ROWS, row_group_size=2)
    changed = without_float_bounds(footer)
    assert changed is not None
    assert len(changed) == len(footer)
    old, new = _read(before, footer), _read(before, changed)
    for group in range(old.num_row_groups):
        for column in range(old.num_columns):
            a, b = old.row_group(group).column(column), new.row_group(group).column(column)
            if b.physical_type in ("FLOAT", "DOUBLE"):
                assert not b.statistics.has_min_max or math.isnan(b.statistics.min) and math.isnan(b.statistics.max)
            else:
                assert a.statistics == b.statistics
            assert a.statistics.null_count == b.statistics.null_count
            assert (a.data_page_offset, a.total_compressed_size) == (b.data_page_offset, b.total_compressed_size)


def test_writer_that_shows_nan_keeps_bounds_that_are_numbers() -> None:
    before, footer = _written(pa.table({"f": [1.0, 7.0], "g": [2.0, 7.5]}))
    assert b"parquet-cpp-arrow version" in footer
    at = footer.index(b"parquet-cpp-arrow version")
    size = footer[at - 1]
    shown = footer[:at] + MR[:size].ljust(size) + footer[at + size :]
    assert without_float_bounds(shown) is None
    # its order puts NaN above every number, so it is the greatest value of a column that has one
    with_nan = shown.replace(bytes(pa.array([7.5]).buffers()[1])[:8], bytes(pa.array([math.nan]).buffers()[1])[:8])
    changed = without_float_bounds(with_nan)
    assert changed is not None
    found = [_read(before, changed).row_group(0).column(i).statistics for i in range(2)]
    assert (found[0].min, found[0].max) == (1.0, 7.0)
    assert math.isnan(found[1].min)
    assert math.isnan(found[1].max)


def test_footer_without_floats_is_left_alone() -> None:
    assert without_float_bounds(_written(ROWS.select(["i"]))[1]) is None
    assert without_float_bounds(b"") is None


@given(st.data())
def test_damaged_footers_keep_their_length_or_are_left_alone(data: st.DataObject) -> None:
    footer = bytearray(_written(ROWS)[1])
    if data.draw(st.booleans()):
        del footer[data.draw(st.integers(0, len(footer) - 1)) :]
    for _ in range(data.draw(st.integers(0, 4))):
        if footer:
            footer[data.draw(st.integers(0, len(footer) - 1))] = data.draw(st.integers(0, 255))
    changed = without_float_bounds(bytes(footer))
    assert changed is None or len(changed) == len(footer)


@pytest.mark.parametrize("cut", range(1, 40))
def test_torn_footer_is_left_alone(cut: int) -> None:
    footer = _written(ROWS)[1]
    assert without_float_bounds(footer[:-cut]) is None
