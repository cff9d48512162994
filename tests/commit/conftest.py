"""Tables and transactions for the tests of the commit path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.table_builder import TableBuilder


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of three files, partitioned by kind, with statistics."""
    table = TableBuilder(tmp_path / "t").create({"id": "long", "kind": "string"}, partition_by=["kind"])
    for start, kind in ((0, "a"), (10, "b"), (20, "c")):
        table.append([{"id": i, "kind": kind} for i in range(start, start + 5)])
    return str(tmp_path / "t")


@pytest.fixture
def begin(uri: str) -> Callable[..., Transaction]:
    """Begin a transaction on the table's latest version."""

    def make(operation: str = "WRITE", **options: Any) -> Transaction:
        transaction = open_snapshot(uri).begin(operation, **options)
        assert isinstance(transaction, Transaction)
        return transaction

    return make


def added(path: str, kind: str | None = "a", low: int = 100, high: int = 104, data_change: bool = True) -> pa.Table:
    """One file to add; it need not exist. Without a kind its table has no partition columns."""
    bounds = f'"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}}'
    stats = f'{{"numRecords":5,{bounds},"nullCount":{{"id":0}},"tightBounds":true}}'
    return pa.table(
        {
            "path": [path],
            "partitionValues": pa.array([[] if kind is None else [("kind", kind)]], pa.map_(pa.string(), pa.string())),
            "size": [10],
            "modificationTime": [1],
            "dataChange": [data_change],
            "stats": [stats],
            "numRecords": [5],
            "fresh": [True],
        }
    )


def live(snapshot: Snapshot, predicate: str | None = None) -> pa.Table:
    """The files that a predicate reads, as a transaction removes them."""
    return snapshot.scan(predicate=predicate).files()


def paths(snapshot: Snapshot) -> set[str]:
    return set(snapshot.files.columns(["path"]).column("path").to_pylist())
