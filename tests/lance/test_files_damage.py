"""Damaged data files: rows, or one typed error; never a crash, and memory within what the file can have."""

from __future__ import annotations

import os
import random
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import CorruptTableError
from delta_plugins.lance.files import open_data_file
from tests.fuzz.lance.reading import read_damaged
from tests.fuzz.lance.seeds import damaged, recorded_seeds
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
from tests.lance.recorded_files import datasets

#: Damaged copies of each file.
COPIES = 400 if os.environ.get("DELTA_CORE_LONG") else 3


@pytest.mark.golden
@pytest.mark.parametrize("name", datasets())
def test_damaged_copies_of_recorded_files_are_rejected_or_read(name: str) -> None:
    choose = random.Random(name)
    for data, fields, columns, version in recorded_seeds(name, 400_000):
        for _ in range(COPIES):
            read_damaged(damaged(data, choose), fields, columns, version)


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
    assert not read_damaged(data, fields, columns, (2, 2))
    for _ in range(100 * COPIES):
        read_damaged(damaged(data, choose), fields, columns, (2, 2))


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
