"""Damaged data files: rows, or one typed error; never a crash, and memory within what the file can have."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.engines.conditions import NullTest, TextBound, ValueRange
from delta_core.errors import CorruptTableError, SchemaError, UnsupportedFeatureError
from delta_core.kernels.arrow_buffers import is_text
from delta_core.parquet.pages import compiled_test
from delta_plugins.lance.files import DataFile, LeafTest, column_map, layout_to_test, open_data_file
from delta_plugins.lance.schema import arrow_field
from tests.lance.made_files import (
    FLAT16,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    MemoryBytes,
    chunk,
    file_bytes,
    flat,
    leaf,
    list_of,
    mini_blocks,
)
from tests.lance.recorded_files import FOLDER, as_array, datasets, fields_of, manifests

#: Damaged copies of each file.
COPIES = 400 if os.environ.get("DELTA_CORE_LONG") else 3


def _damaged(data: bytes, choose: random.Random) -> bytes:
    """Change a few places, most of them near the end, where the metadata are."""
    out = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 5))):
        low = max(len(out) - 3000, 0) if choose.random() < 0.5 else 0
        at = choose.randrange(low, len(out))
        kind = choose.randrange(5)
        if kind == 0:
            out[at] ^= 1 << choose.randrange(8)
        elif kind == 1:
            width = choose.choice((1, 2, 4, 8))
            value = choose.choice((0, 1, (1 << 8 * width) - 1, 1 << 8 * width - 1))
            out[at : at + width] = value.to_bytes(width, "little")
        elif kind == 2:
            del out[at : at + choose.randrange(1, 40)]
        elif kind == 3:
            start = choose.randrange(len(out))
            out[at : at + 8] = out[start : start + choose.randrange(1, 24)]
        else:
            out[at] = choose.randrange(256)
    return bytes(out)


def _read(data: bytes, fields: Any, columns: dict[int, int], version: tuple[int, int]) -> None:
    source = MemoryBytes(data)
    try:
        file = open_data_file(source, source.size, path="damaged.lance", major=version[0], minor=version[1])
        rows = None if file.num_rows < 100_000 else (0, 1000)
        arrays = [as_array(a) for a in file.read(fields, columns, rows)]
        if file.num_rows > 2:
            file.read(fields, columns, np.array([0, file.num_rows - 1]))
        _test(file, fields, columns, rows)
    except (CorruptTableError, UnsupportedFeatureError, SchemaError):
        return
    for array in arrays:
        why = _invalid(array)
        # any number may be stored
        assert not why or "whole number of days" in why or "precision" in why


def _test(file: DataFile, fields: Any, columns: dict[int, int], rows: tuple[int, int] | None) -> None:
    """Test the values of each column that can be tested before it is decoded."""
    for field in fields:
        of, layout = arrow_field(field).type, layout_to_test(field)
        if layout is None:
            continue
        number = 0.0 if pa.types.is_floating(of) else 0
        likely = TextBound(0, b"m") if is_text(of) else ValueRange(0, number, number)
        for condition in (NullTest(0, True), likely):
            test = compiled_test(condition, of)
            width = 1 if layout.bits == 1 else layout.bits // 8
            if test is not None and test.fits_form(width, layout.bits == 1):
                found = file.passing(LeafTest(field, layout.bits, layout.is_wide, test, False), columns, rows)
                assert found is None or (np.diff(found) > 0).all()


def _invalid(array: pa.Array) -> str:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as e:
        return str(e)
    return ""


def _files(name: str) -> Iterator[tuple[bytes, Any, dict[int, int], tuple[int, int]]]:
    assert FOLDER is not None
    manifest = list(manifests(name))[-1]
    fields = fields_of(manifest["fields"])
    for fragment in manifest["fragments"][:1]:
        for file in fragment["files"]:
            path = FOLDER / name / "data" / file["path"]
            if path.exists() and path.stat().st_size < 400_000:
                columns = column_map(file["fields"], file["column_indices"])
                yield path.read_bytes(), fields, columns, (file["file_major_version"], file["file_minor_version"])


@pytest.mark.golden
@pytest.mark.parametrize("name", datasets())
def test_damaged_copies_of_recorded_files_are_rejected_or_read(name: str) -> None:
    choose = random.Random(name)
    for data, fields, columns, version in _files(name):
        for _ in range(COPIES):
            _read(_damaged(data, choose), fields, columns, version)


def test_damaged_copies_of_made_files_are_rejected_or_read() -> None:
    choose = random.Random(5)
    texts = np.array([12, 14, 19], "<u4").tobytes() + b"abcdefg"
    pages = [
        mini_blocks(flat(64), [(2, chunk([bytes(16)], None, [0, 1]))], 2, layers=[NULLABLE_ITEM], definition=FLAT16),
        mini_blocks({"variable": {"offsets": flat(32)}}, [(2, chunk([texts]))], 2),
        mini_blocks(
            flat(32),
            [(2, chunk([bytes(8)], [1, 0, 1], [0, 0, 1]))],
            2,
            layers=[1, NULL_AND_EMPTY_LIST],
            rep=FLAT16,
            definition=FLAT16,
            index=[(2, 0)],
        ),
    ]
    data = file_bytes([[p] for p in pages], 2)
    fields = [leaf("int64", 0, "a"), leaf("string", 1, "b"), list_of(leaf("int32", 2, "item"))]
    columns = {0: 0, 1: 1, 2: 2}
    _read(data, fields, columns, (2, 2))
    for _ in range(100 * COPIES):
        _read(_damaged(data, choose), fields, columns, (2, 2))


@pytest.mark.parametrize("size", [1 << 40, (1 << 64) - 1])
def test_a_length_that_the_file_does_not_have_takes_no_memory(size: int) -> None:
    coding = {"general": {"compression": {"scheme": 2}, "values": flat(64)}}
    stored = size.to_bytes(8, "little") + b"\x28\xb5\x2f\xfd" + bytes(20)
    page = mini_blocks(coding, [(1, chunk([stored]))], 1)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.raises(CorruptTableError, match="zstd"):
            open_data_file_of(file_bytes([[page]], 1)).read([leaf("int64")], {0: 0})
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 8 << 20


def open_data_file_of(data: bytes) -> Any:
    source = MemoryBytes(data)
    return open_data_file(source, source.size, path="made.lance", major=2, minor=2)
