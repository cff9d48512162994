"""Rows in another order: by way of temporary files it is the same as in memory; full disks."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import EngineError, SpillError, SpillLimitError
from delta_core.operations import row_order
from delta_core.operations.row_order import Order, OrderedRows, Spill
from tests.operations.row_tables import data_files

NUM_ROWS = 5_000
BATCH = 256
#: Bytes of rows that may be in memory: a tenth of them.
LITTLE = 30_000
COLUMNS = [(("x",), ("y",)), (("t",), ("s", "f")), (("f",),)]


def rows() -> pa.Table:
    """Return rows of many types, with many equal values, nulls and NaN."""
    random = np.random.default_rng(3)
    numbers = random.integers(-500, 500, NUM_ROWS)
    floats = np.where(numbers % 50 == 0, np.nan, numbers / 4)
    return pa.table(
        {
            "n": np.arange(NUM_ROWS),
            "x": pa.array(numbers, mask=numbers % 7 == 0),
            "y": random.random(NUM_ROWS),
            "f": pa.array(floats, mask=numbers % 11 == 0),
            "t": [f"common beginning {i % 100}" if i % 13 else None for i in range(NUM_ROWS)],
            "s": pa.StructArray.from_arrays([pa.array(numbers[::-1]), pa.array(floats)], ["i", "f"]),
        }
    )


def ordered(table: pa.Table, columns: Any, order: Order, memory: int) -> tuple[pa.Table, OrderedRows, int]:
    """Return rows in order, who ordered them, and in how many parts."""

    def keys() -> pa.RecordBatchReader:
        return table.select(list(dict.fromkeys(c[0] for c in columns))).to_reader(BATCH)

    found = OrderedRows(columns, order, 40, table.num_rows, Spill(memory), keys)
    parts = [part.take(numbers) for part, numbers in found.parts(table.to_reader(BATCH))]
    return pa.concat_tables(parts), found, len(parts)


def equal(a: pa.Table, b: pa.Table) -> bool:
    """Whether tables have the same rows in the same order; NaN is NaN."""
    return all(repr(x.to_pylist()) == repr(y.to_pylist()) for x, y in zip(a.columns, b.columns, strict=True))


@pytest.mark.parametrize("columns", COLUMNS, ids=["numbers", "text and field", "floats"])
@pytest.mark.parametrize("order", ["zorder", "hilbert", "linear"])
def test_rows_are_in_the_same_order_by_way_of_temporary_files(order: Order, columns: Any) -> None:
    table = rows()
    whole, _, one = ordered(table, columns, order, 1 << 30)
    parted, _, many = ordered(table, columns, order, LITTLE)
    assert (one, many > 20) == (1, True)
    assert equal(whole, parted)
    assert sorted(whole.column("n").to_pylist()) == list(range(NUM_ROWS))


def test_rows_ordered_by_a_sample_are_in_the_order_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_order, "SAMPLE_ROWS", 500)
    for memory in (1 << 30, LITTLE):
        found, by, _ = ordered(rows(), COLUMNS[0], "hilbert", memory)
        assert (np.diff(by._positions(found).astype(np.int64)) >= 0).all()
        assert sorted(found.column("n").to_pylist()) == list(range(NUM_ROWS))


# --- full disks ---


@contextmanager
def small_disk(most_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size: writes fail then, in compiled code too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def stream(table: pa.Table) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(BATCH))


def merged(table: DeltaTable, source: Any, **limits: Any) -> None:
    merge = table.merge(source, "target.n = source.n", **limits)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


SPILLING: dict[str, Callable[[DeltaTable], Any]] = {
    "a sort": lambda t: t.optimize.z_order(["x", "y"], max_spill_size=LITTLE),
    "the source of a merge": lambda t: merged(t, stream(rows()), max_spill_size=LITTLE),
    "the decisions of a merge": lambda t: merged(t, rows(), max_spill_size=LITTLE),
}


@pytest.mark.parametrize("name", SPILLING)
def test_full_disk_for_temporary_files_is_an_error_that_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")
    files = data_files(table)
    with small_disk(500), pytest.raises(SpillError, match="TMPDIR") as caught:
        SPILLING[name](table)
    assert not isinstance(caught.value, SpillLimitError)
    assert isinstance(caught.value, EngineError)
    assert isinstance(caught.value.__cause__, OSError)
    assert str(place) in str(caught.value)
    assert (table.version(), data_files(table), list(place.iterdir())) == (0, files, [])
    SPILLING[name](table)
    assert table.version() == 1
    assert equal(table.to_pyarrow_table().sort_by("n"), rows())
    assert list(place.iterdir()) == []


def test_missing_temporary_directory_is_an_error_that_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")
    files = data_files(table)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    for call in SPILLING.values():
        with pytest.raises(SpillError, match="missing"):
            call(table)
    assert (table.version(), data_files(table)) == (0, files)


def test_error_of_a_source_is_none_of_its_temporary_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    table = DeltaTable(tmp_path / "t")

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows().to_batches(BATCH)[:5]
        raise FileNotFoundError("the source is gone")

    source = pa.RecordBatchReader.from_batches(rows().schema, batches())
    with pytest.raises(OSError, match="the source is gone") as caught:
        merged(table, source, max_spill_size=0)
    assert not isinstance(caught.value, SpillError)
