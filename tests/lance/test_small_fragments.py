"""Scans of datasets with many small fragments: their rows are joined to batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance.files.rows import page_rows
from delta_plugins.lance.format import open_dataset

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def write(folder: Path, version: str, **options: Any) -> tuple[str, pa.Table]:
    n = 300
    table = pa.table(
        {
            "i": range(n),
            "s": [None if i % 3 == 0 else f"text {i}" for i in range(n)],
            "l": [list(range(i % 4)) for i in range(n)],
            "d": pa.array([f"w{i // 10 % 3}" for i in range(n)]).dictionary_encode(),
        }
    )
    lance.write_dataset(table, str(folder), data_storage_version=version, max_rows_per_file=3, **options)
    return str(folder), table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_rows_of_small_fragments_are_joined_in_order(tmp_path: Path, version: str, stable: bool) -> None:
    uri, table = write(tmp_path / "d", version, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("i % 7 = 2 or i between 90 and 101")
    dataset = open_dataset(uri)
    expected = [i for i in range(300) if i % 7 != 2 and not 90 <= i <= 101]
    batches = list(dataset.scan(metadata=["_rowid", "_rowaddr"]).batches())
    assert len(batches) < len(dataset.fragments()) / 30
    found = pa.Table.from_batches(batches)
    assert found.select(table.column_names).to_pylist() == table.take(expected).to_pylist()
    by_pylance = lance.dataset(uri).to_table(with_row_id=True, with_row_address=True)
    for name in ("_rowid", "_rowaddr"):
        assert found[name].to_pylist() == by_pylance[name].to_pylist()
    assert sum(b.num_rows for b in dataset.scan([]).batches()) == len(expected)
    some = dataset.scan(["i"], "i > 100 and s is not null")
    assert some.to_table()["i"].to_pylist() == [i for i in expected if i > 100 and i % 3]
    assert some.count() == some.to_table().num_rows


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 100])
def test_joined_batches_have_at_most_the_requested_rows(tmp_path: Path, batch_rows: int) -> None:
    uri, table = write(tmp_path / "d", "2.2")
    batches = list(open_dataset(uri).scan(batch_rows=batch_rows).batches())
    assert max(b.num_rows for b in batches) <= batch_rows
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("ranges", [[[0, 5]], [[2, 3]], [[0, 0]], [[4, 5]]])
@pytest.mark.parametrize("starts", [[0, 5], [0, 9]])
def test_rows_of_one_page_are_those_that_it_has(ranges: list[list[int]], starts: list[int]) -> None:
    requested, one = np.array(ranges), np.array(starts)
    two = np.array([0, 0, starts[1]])  # an empty page before it
    expected = [p.ranges.tolist() for p in page_rows(requested, two)]
    assert [p.ranges.tolist() for p in page_rows(requested, one)] == expected
