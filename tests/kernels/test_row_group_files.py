"""Files that are cut out of one file hold what a writer makes of each row group alone; damaged bytes are rejected."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.parquet.row_group_files import row_group_files

FORMS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["NONE", "SNAPPY", "ZSTD"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([None, 100]),
        "use_dictionary": st.booleans(),
        "write_statistics": st.booleans(),
        "write_page_checksum": st.booleans(),
        "store_schema": st.booleans(),
    }
)


def rows(count: int) -> pa.Table:
    numbers = np.arange(count)
    return pa.table(
        {
            "id": numbers,
            "d": np.sqrt(numbers),
            "s": [f"value {i % 7}" if i % 5 else None for i in range(count)],
            "l": [[str(i)] * (i % 3) if i % 4 else None for i in range(count)],
            "m": pa.array(
                [[("k", {"x": i})] for i in range(count)], pa.map_(pa.string(), pa.struct([("x", pa.int8())]))
            )
            if count < 128
            else pa.nulls(count, pa.map_(pa.string(), pa.struct([("x", pa.int8())]))),
            "b": numbers % 2 == 0,
            "n": pa.nulls(count, pa.decimal128(30, 2)),
        }
    )


def written(parts: list[pa.Table], **form: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, parts[0].schema, **form) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=part.num_rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def cut(file: bytes) -> list[bytes]:
    files, ends = row_group_files(file)
    return [bytes(files[start:end]) for start, end in zip([0, *ends.tolist()], ends.tolist(), strict=False)]


@settings(deadline=None, max_examples=60)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=20), form=FORMS)
def test_each_file_is_that_of_its_rows_alone(sizes: list[int], form: dict[str, Any]) -> None:
    table = rows(sum(sizes))
    parts = [table.slice(end - size, size) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]
    assert cut(written(parts, **form)) == [written([part], **form) for part in parts]


def test_file_without_row_groups_is_cut_into_none() -> None:
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, rows(1).schema).close()
    assert cut(sink.getvalue().to_pybytes()) == []


@pytest.mark.parametrize("form", [{"write_page_index": True}, {"bloom_filter_options": {"id": {"ndv": 10}}}])
def test_page_indexes_and_bloom_filters_are_not_moved(form: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="can't be moved"):
        row_group_files(written([rows(10)], **form))


@pytest.mark.parametrize("file", [b"", b"PAR1", b"PAR1" + b"\xff" * 8, b"PAR1\0\0\0\0PAR1", b"\0" * 40])
def test_bytes_that_are_no_file_are_rejected(file: bytes) -> None:
    with pytest.raises(ValueError, match=r"the f(ile|ooter) "):
        row_group_files(file)


def test_damaged_files_are_rejected_or_cut_at_the_same_places() -> None:
    dice = random.Random(5)
    file = written([rows(50), rows(3), rows(20)])
    footer = int.from_bytes(file[-8:-4], "little") + 8
    rejected = 0
    for _ in range(3000):
        damaged = bytearray(file)
        for _ in range(dice.choice([1, 1, 2, 8])):
            damaged[-dice.randint(5, footer)] = dice.randrange(256)
        if dice.random() < 0.2:
            del damaged[dice.randrange(len(damaged)) :]
        try:
            found = cut(bytes(damaged))
        except ValueError:
            rejected += 1
        else:
            assert sum(len(f) for f in found) < 2 * len(file) + len(found) * footer
    assert rejected > 500
