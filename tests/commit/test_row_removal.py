"""Files that lose rows: the contents of their next add, and many of them at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.commit.row_removal import _loosened
from delta_core.kernels.row_set import RowSets


@pytest.mark.parametrize(
    "text",
    [
        '{"numRecords":1}',
        '{"numRecords":1,"minValues":{"a":1}}',
        '{"numRecords":1,"tightBounds":true}',
        '{"numRecords":1,"tightBounds":false}',
        '{"numRecords":1,"tightBounds":true,"nullCount":{}}',
        '{"tightBounds":true,"numRecords":1}',
        '{"numRecords":1,"nullCount":{"tightBounds":0}}',
        '{"numRecords":1,"minValues":{"a":"\\"tightBounds\\":true}"}}',
        '{"numRecords":1,"minValues":{"a":",\\"tightBounds\\":true}"}}',
        '{"numRecords":1,"minValues":{"tightBounds":true}}',
        '{"numRecords":1,"minValues":{"a":1,"tightBounds":true}}',
        '{"numRecords": 1 } ',
        " {}",
        "{}",
    ],
)
def test_statistics_of_a_file_with_dropped_rows_are_no_longer_tight(text: str) -> None:
    [found] = _loosened(pa.array([text])).to_pylist()
    assert json.loads(found) == {**json.loads(text), "tightBounds": False}


def test_rows_of_many_files_are_dropped_in_one_commit_and_again(tmp_path: Path) -> None:
    count = 300
    rows = pa.table({"p": np.arange(count * 4) // 4, "id": np.arange(count * 4)})
    write_deltalake(tmp_path, rows, partition_by=["p"], configuration={"delta.enableDeletionVectors": "true"})
    table = DeltaTable(tmp_path)
    for position in range(4):
        snapshot = table.snapshot().update()
        transaction = snapshot.begin("DELETE")
        files = snapshot.files.columns(["path"])
        every = np.arange(count)
        transaction.remove_rows(files, RowSets.from_positions(count, every, np.full(count, position)))
        left = transaction.commit().snapshot.scan().to_table().column("id").to_numpy()
        assert sorted(left) == [i for i in range(count * 4) if i % 4 > position]
