"""Deletion files of both kinds, and damaged ones."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.api import open_context
from delta_core.errors import DataFileError, DataFileNotFoundError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.deletions import ARROW, BITMAP, parse_deletions, read_deletions
from tests.example_counts import examples

COLUMN = pa.field("row_id", pa.uint32(), False)


def arrow_file(*batches: list[int], column: pa.Field = COLUMN, codec: str | None = None) -> bytes:
    schema, out = pa.schema([column]), io.BytesIO()
    with pa.ipc.new_file(out, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        for rows in batches:
            writer.write_batch(pa.record_batch([pa.array(rows, column.type)], schema=schema))
    return out.getvalue()


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_arrow_file_lists_rows_in_any_order(codec: str | None) -> None:
    found = parse_deletions(arrow_file([7, 0, 3], codec=codec), ARROW, "f")
    assert found.positions().tolist() == [0, 3, 7]
    assert parse_deletions(arrow_file([], codec=codec), ARROW, "f").cardinality == 0


@settings(max_examples=examples(30), deadline=None)
@given(st.sets(st.integers(0, 200_000), max_size=300), st.integers(0, 190_000), st.integers(0, 9000))
def test_bitmap_lists_rows(rows: set[int], start: int, length: int) -> None:
    expected = sorted(rows | set(range(start, start + length)))
    data = RowSet.from_positions(np.array(expected, np.int64)).to_roaring(32)
    assert parse_deletions(data, BITMAP, "f").positions().tolist() == expected


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (arrow_file([1], column=pa.field("row_id", pa.uint32())), ARROW, "row_id: uint32"),
        (arrow_file([1], column=pa.field("row_id", pa.int32(), False)), ARROW, "row_id: int32 not null"),
        (arrow_file([1], column=pa.field("rows", pa.uint32(), False)), ARROW, "rows: uint32 not null"),
        (arrow_file([1], [2]), ARROW, "2 batches"),
        (arrow_file(), ARROW, "0 batches"),
        (arrow_file([1])[:-3], ARROW, "damaged"),
        (b"", ARROW, "damaged"),
        (RowSet.from_range(0, 9).to_roaring(32)[:-1], BITMAP, "roaring"),
        (RowSet.from_range(0, 9).to_roaring(32) + b"\0", BITMAP, "roaring"),
        (b"", BITMAP, "roaring"),
    ],
)
def test_damaged_file_is_rejected(data: bytes, kind: int, message: str) -> None:
    with pytest.raises(DataFileError, match=message) as e:
        parse_deletions(data, kind, "_deletions/0-1-2.arrow")
    assert e.value.path == "_deletions/0-1-2.arrow"


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_any_change_of_bytes_is_read_or_rejected(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([ARROW, BITMAP]))
    whole = arrow_file(list(range(0, 90, 3))) if kind == ARROW else RowSet.from_range(3, 5000).to_roaring(32)
    copy = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        copy[data.draw(st.integers(0, len(copy) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse_deletions(bytes(copy), kind, "f")
    except DataFileError:
        return
    assert found.cardinality <= 1 << 32


def test_files_are_compared_with_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(arrow_file([1, 5]))
    (tmp_path / "b").write_bytes(RowSet.from_range(0, 3).to_roaring(32))
    storage = open_context(str(tmp_path)).log.engine.storage

    def read(deleted: list[int], rows: list[int]) -> list[int]:
        return [r.cardinality for r in read_deletions(storage, ["a", "b"], [ARROW, BITMAP], deleted, rows)]

    assert read([2, 3], [6, 3]) == read([-1, -1], [6, 3]) == [2, 3]
    with pytest.raises(DataFileError, match="'b' is damaged: it lists 3 rows, but the manifest 4"):
        read([2, 4], [6, 9])
    with pytest.raises(DataFileError, match="'a' is damaged: it lists row 5, but the fragment has 5 rows"):
        read([2, 3], [5, 3])
    with pytest.raises(DataFileNotFoundError, match="'c'"):
        read_deletions(storage, ["c"], [BITMAP], [1], [1])
