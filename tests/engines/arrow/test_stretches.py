"""Stretches of a row group are the rows of a full read, wherever they begin and end, from a disk and from a store."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.engines.records import RangeRequest
from delta_core.kernels.gather import SelectionVector
from delta_core.parquet import columns as parquet_columns, pages as parquet_pages, stretches
from delta_core.parquet.columns import GroupReader
from delta_core.parquet.opened_file import DataFile
from delta_core.storage import prefetch
from delta_core.storage.prefetch import RangedSource
from tests.example_counts import examples
from tests.kernels.test_parquet_nested import FORMS, NESTED, value

ROWS = 200


class Files:
    """A store that has one file; it notes the bytes of each range that is read."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.read_bytes: list[int] = []

    def read(self, requests: Sequence[RangeRequest]) -> list[bytes]:
        found = [self.data[r.offset :][: r.length] for r in requests]
        self.read_bytes += map(len, found)
        return found

    def source(self) -> RangedSource:
        return RangedSource(self, "x", len(self.data))  # type: ignore[arg-type]  # all of a storage that it needs


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    nested, source = draw(NESTED), random.Random(draw(st.integers(0, 1 << 32)))
    nulls = draw(st.sampled_from([0.0, 0.1, 0.9]))

    def column(t: pa.DataType, null: bool) -> tuple[pa.Field, pa.Array]:
        return pa.field("x", t, null), pa.array([value(source, t, null, nulls) for _ in range(ROWS)], t)

    types = [nested, pa.int64(), pa.float64(), pa.string(), pa.string(), pa.bool_(), pa.int8(), pa.decimal128(12, 2)]
    columns = [column(t, draw(st.booleans())) for t in types]
    schema = pa.schema([f.with_name(f"c{i}") for i, (f, _) in enumerate(columns)])
    return pa.table([array for _, array in columns], schema=schema)


@pytest.mark.parametrize("local", [True, False])
@settings(max_examples=examples(12), deadline=None)
@given(
    table=tables(),
    form=FORMS,
    cuts=st.lists(st.integers(1, ROWS - 1), max_size=8, unique=True),
    shares=st.lists(st.sampled_from([0.0, 0.02, 0.5, 1.0, None]), min_size=9, max_size=9),
    kept=st.sampled_from([0, 2_000, 1 << 20]),
    window=st.sampled_from([1, 500, 1 << 20]),
    lanes=st.sampled_from([1, 3]),
    seed=st.integers(0, 1 << 32),
)
def test_stretches_are_parts_of_a_full_read(
    tmp_path_factory: pytest.TempPathFactory,
    local: bool,
    table: pa.Table,
    form: dict[str, Any],
    cuts: list[int],
    shares: list[float | None],
    kept: int,
    window: int,
    lanes: int,
    seed: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "stretches.parquet"
    pq.write_table(table, path, **form)
    numbers = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch, closing(DataFile(str(path) if local else Files(path).source())) as file:
        patch.setattr(parquet_pages, "_KEPT_BYTES", kept)
        patch.setattr(parquet_pages, "_WINDOW_BYTES", window)
        patch.setattr(stretches, "_LANE_NANOSECONDS", 0)
        patch.setattr(prefetch, "LEAST_PART_BYTES", 100)
        patch.setattr(parquet_columns, "FETCHED_BYTES", 0)
        patch.setattr(prefetch, "AHEAD_BYTES", 5_000)
        if numbers.random() < 0.5:
            file.encode(["c3", "c4"])
        reader = GroupReader(file, range(len(file.layout.leaves)), lanes=lanes)
        parts = reader.stretches(0, range(len(file.layout.leaves)))
        for (start, stop), share in zip(pairwise([0, *sorted(cuts), ROWS]), shares, strict=False):
            if share == 0.0:
                continue  # left out altogether
            flags = np.ones(stop - start, np.bool_) if share is None else numbers.random(stop - start) < share
            found = parts.read(start, stop, None if share is None else SelectionVector.of_flags(flags))
            expected = table.slice(start, stop - start).filter(pa.array(flags))
            assert sorted(found) == table.column_names
            for name, array in found.items():
                array.validate(full=True)
                plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
                assert plain.to_pylist() == expected[name].to_pylist()
                assert plain.null_count == expected[name].null_count


def test_big_row_groups_of_a_store_are_read_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 50_000
    numbers = np.random.default_rng(0).random(rows)
    table = pa.table({"id": np.arange(rows), "x": numbers, "l": [[i] for i in range(rows)]})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, use_dictionary=False, data_page_size=5_000)
    for name, size in (("FETCHED_BYTES", 100_000), ("GROUP_BYTES", 100_000), ("NESTED_STRETCH_BYTES", 50_000)):
        monkeypatch.setattr(parquet_columns, name, size)
    monkeypatch.setattr(prefetch, "AHEAD_BYTES", 120_000)
    monkeypatch.setattr(prefetch, "LEAST_PART_BYTES", 1_000)
    monkeypatch.setattr(parquet_pages, "_WINDOW_BYTES", 10_000)
    files = Files(path)
    with closing(DataFile(files.source())) as file:
        files.read_bytes.clear()
        batches = GroupReader(file, range(3)).batches([0], 0, 5_000)
        _, first = next(batches)
        assert sum(files.read_bytes) < len(files.data) / 2
        found = pa.Table.from_batches([first, *(batch for _, batch in batches)])
    assert found.equals(table)
    # each byte once
    assert len(files.data) * 0.9 < sum(files.read_bytes) <= len(files.data)
    assert max(files.read_bytes) <= 20_000
