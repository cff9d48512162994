"""Scans in parts: each row in exactly one, whatever the sizes; any process reads a part by itself."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.distributed.reading import _divided, opened_table, plan_parts
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError

ROWS = 30_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Return a table with column mapping, partitions, and rows that vectors delete."""
    uri = str(tmp_path_factory.mktemp("reading") / "t")
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    for n in range(3):
        ids = np.arange(n * ROWS, (n + 1) * ROWS)
        rows = pa.table({"id": ids, "value": np.random.default_rng(n).random(ROWS), "p": ids % 2})
        write_deltalake(uri, rows, mode="append", partition_by=["p"], configuration=properties if n == 0 else None)
    opened = DeltaTable(uri)
    opened.delete("id % 10 = 3")
    return opened


@pytest.mark.parametrize("part_bytes", [60_000, 150_000, 1 << 30])
@pytest.mark.parametrize("predicate", [None, "id < 40000 AND id % 7 = 1", "p = 1", "id < 0"])
def test_parts_have_the_rows_of_the_scan(table: DeltaTable, part_bytes: int, predicate: str | None) -> None:
    expected = table.scan(["id", "value"], predicate, metadata=["_file_path"]).to_table()
    schema, parts = plan_parts(table.snapshot(), ["id", "value"], predicate, ["_file_path"], part_bytes)
    assert schema.equals(expected.schema)
    found = [pickle.loads(pickle.dumps(part)).to_table() for part in parts]
    joined = pa.concat_tables(found) if found else schema.empty_table()
    assert joined.equals(expected)


def test_small_parts_are_ranges_of_rows_and_large_ones_files(table: DeltaTable) -> None:
    _, many = plan_parts(table.snapshot(), part_bytes=20_000)
    assert len(many) > 12
    assert all(part.rows is not None and part.files.num_rows == 1 for part in many)
    _, (one,) = plan_parts(table.snapshot(), part_bytes=1 << 30)
    assert one.rows is None
    assert one.files.num_rows == len(table.file_uris())


def test_a_part_reads_fewer_columns_on_request(table: DeltaTable) -> None:
    _, parts = plan_parts(table.snapshot(), ["id", "value"], "value < 0.5")
    assert parts[0].to_table(["id"]).column_names == ["id"]


def test_a_part_stays_at_its_version(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}))
    _, parts = plan_parts(DeltaTable(tmp_path / "t").snapshot())
    write_deltalake(tmp_path / "t", pa.table({"id": [3]}), mode="overwrite")
    assert parts[0].to_table()["id"].to_pylist() == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)), max_size=30), st.integers(1, 400))
def test_every_row_of_every_file_is_in_one_part(files: list[tuple[int, int]], size: int) -> None:
    sizes = np.array([s for s, _ in files], np.int64)
    counts = np.array([n if s > 2 * size else 0 for s, n in files], np.int64)
    parts = list(_divided(sizes, counts, size))
    seen = {n: list[tuple[int, int] | None]() for n in range(len(files))}
    for begin, end, rows, _ in parts:
        assert begin < end
        assert rows is None or end == begin + 1
        for n in range(begin, end):
            seen[n].append(rows)
    for n, ranges in seen.items():
        if ranges == [None]:
            continue
        assert None not in ranges
        edges = [edge for bounds in ranges for edge in bounds or ()]
        assert edges[0] == 0
        assert edges[-1] == counts[n]
        assert edges[1:-1:2] == edges[2::2]
        assert all(low < high for low, high in zip(edges[::2], edges[1::2], strict=True))
    assert [begin for begin, *_ in parts] == sorted(begin for begin, *_ in parts)


@pytest.mark.parametrize("part_bytes", [0, -1, 1.5, "1 MB"])
def test_a_size_of_parts_that_is_none_is_rejected(table: DeltaTable, part_bytes: object) -> None:
    with pytest.raises(InvalidArgumentError, match="part_bytes"):
        plan_parts(table.snapshot(), part_bytes=part_bytes)  # type: ignore[arg-type]


def test_mistakes_are_found_before_a_worker_runs(table: DeltaTable) -> None:
    with pytest.raises(ColumnNotFoundError, match="nothing"):
        plan_parts(table.snapshot(), ["nothing"])
    with pytest.raises(InvalidArgumentError, match="those of the DeltaTable that was passed"):
        opened_table(table, 1, None, False)
