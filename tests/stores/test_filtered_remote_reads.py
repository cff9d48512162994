"""A filtered read of a big remote file: footer, the columns of its conditions, then the other columns."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.latency import recorded, register
from delta_core import DeltaTable, WriterProperties, write_deltalake
from delta_core.engines.arrow.parquet import data_files

ROWS = 200_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Return a table of one file that is too large to be fetched whole."""
    register()
    folder = tmp_path_factory.mktemp("remote")
    random = np.random.default_rng(0)
    text = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(40), ROWS, [None, pa.py_buffer(random.integers(97, 123, ROWS * 40, np.uint8))]
    )
    rows = {"id": np.arange(ROWS), "value": random.random(ROWS), "text": text.cast(pa.binary()).cast(pa.string())}
    write_deltalake(folder, pa.table(rows))
    assert [f.stat().st_size > 4 << 20 for f in folder.glob("*.parquet")] == [True]
    return DeltaTable(f"latency://{folder}", storage_options={"delay_ms": "60"})


@pytest.mark.parametrize(
    ("where", "most_steps"), [("value < 0.0001", 4), ("value < 0.0001 and id < 100000", 4), (None, 2)]
)
def test_filtered_read_takes_few_dependent_calls(table: DeltaTable, where: str | None, most_steps: int) -> None:
    rows = table.scan().to_table()
    kept = np.ones(ROWS, bool) if where is None else rows["value"].to_numpy() < 0.0001
    if where is not None and "id" in where:
        kept &= rows["id"].to_numpy() < 100_000
    with recorded() as calls:
        found = table.scan(predicate=where).to_table()
    calls.calls = calls.of(log=False)
    assert 0 < calls.chain <= most_steps
    assert found.equals(rows.filter(pa.array(kept)))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> DeltaTable:
    """Return a table of three files that are too large to be fetched whole, of four row groups each."""
    register()
    folder = tmp_path_factory.mktemp("several")
    random = np.random.default_rng(1)
    for file in range(3):
        text = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(40), ROWS, [None, pa.py_buffer(random.integers(97, 123, ROWS * 40, np.uint8))]
        )
        ids = np.arange(file * ROWS, (file + 1) * ROWS)
        rows = {"id": ids, "value": random.random(ROWS), "text": text.cast(pa.binary()).cast(pa.string())}
        form = WriterProperties(max_row_group_size=ROWS // 4)
        write_deltalake(folder, pa.table(rows), mode="append", writer_properties=form)
    files = list(folder.glob("*.parquet"))
    assert [f.stat().st_size > 4 << 20 for f in files] == [True] * 3
    assert [pq.ParquetFile(f).num_row_groups for f in files] == [4] * 3
    return DeltaTable(f"latency://{folder}", storage_options={"delay_ms": "60"})


@pytest.mark.parametrize("where", ["value < 0.0001", "value < 0.0001 and id % 2 = 0", "id < 300000", None])
def test_row_groups_of_several_files_wait_for_the_store_together(several: DeltaTable, where: str | None) -> None:
    rows = DeltaTable(several.table_uri.removeprefix("latency://")).scan().to_table()
    kept = np.ones(3 * ROWS, bool)
    for part, flags in (
        ("value <", rows["value"].to_numpy() < 0.0001),
        ("% 2", rows["id"].to_numpy() % 2 == 0),
        ("300000", rows["id"].to_numpy() < 300_000),
    ):
        if where is not None and part in where:
            kept &= flags
    with recorded() as calls:
        found = several.scan(predicate=where).to_table()
    calls.calls = calls.of(log=False)
    assert 0 < calls.chain <= 4
    assert found.equals(rows.filter(pa.array(kept)))


def test_remote_row_groups_are_read_in_bounded_memory(several: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    held, most = [0], [0]
    take, give = data_files._Room.take, data_files._Room.give

    def counted_take(self: data_files._Room, size: int) -> None:
        take(self, size)
        held[0] += size
        most[0] = max(most[0], held[0])

    def counted_give(self: data_files._Room, size: int) -> None:
        held[0] -= size
        give(self, size)

    monkeypatch.setattr(data_files._Room, "take", counted_take)
    monkeypatch.setattr(data_files._Room, "give", counted_give)
    monkeypatch.setattr(data_files, "REMOTE_BYTES", 6 << 20)
    assert several.scan(predicate="value < 2").to_table().num_rows == 3 * ROWS
    assert held == [0]
    assert 3 << 20 < most[0] <= 6 << 20


def test_abandoned_remote_read_ends_its_threads(several: DeltaTable) -> None:
    before = set(threading.enumerate())
    batches = several.scan(predicate="value < 2").batches()
    assert next(batches).num_rows
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith(("delta-read", "delta-footers")):
            thread.join(5)
            assert not thread.is_alive()
