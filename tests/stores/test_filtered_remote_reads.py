"""A filtered read of a big remote file: footer, the columns of its conditions, then the other columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.latency import recorded, register
from delta_core import DeltaTable, write_deltalake

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
    return DeltaTable(f"latency://{folder}")


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
