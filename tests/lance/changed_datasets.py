"""Datasets that tests write and change, and the comparison with pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.dataset import LanceDataset

POINT = pa.struct([("x", pa.float64()), ("name", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        pa.field("text", pa.string()),
        pa.field("point", POINT),
        pa.field("parts", pa.list_(pa.int32())),
        pa.field("vector", pa.list_(pa.float32(), 2)),
        pa.field("small", pa.uint16()),
    ]
)


def rows(first: int, count: int) -> pa.Table:
    """Return rows with ids that follow one another; some values are null."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [None if i % 7 == 0 else f"text {i}" for i in ids],
            # PyArrow 18 casts no struct to one with its fields in another order
            "point": pa.array([None if i % 5 == 0 else {"x": float(i), "name": f"n{i}"} for i in ids], POINT),
            "parts": [None if i % 6 == 0 else [i] * (i % 3) for i in ids],
            "vector": pa.array([[float(i), -1.0] for i in ids], pa.list_(pa.float32(), 2)),
            "small": pa.array([i % 1000 for i in ids], pa.uint16()),
        }
    ).cast(SCHEMA)


def made(root: Path, *, stable: bool = False, count: int = 100, version: str = "2.2") -> LanceDataset:
    """Return a dataset of fragments of 30 rows."""
    where = str(root / "dataset")
    return write_lance(where, rows(0, count), stable_row_ids=stable, file_version=version, max_rows_per_file=30)


def ids_of(dataset: LanceDataset) -> list[int]:
    found: list[int] = dataset.to_pyarrow_table(["id"]).column("id").to_pylist()
    return found


def row_ids(dataset: LanceDataset) -> dict[int, int]:
    """Return the row id of each ``id``."""
    table = dataset.to_pyarrow_table(["id"], metadata=["_rowid"])
    return dict(zip(table.column("id").to_pylist(), table.column("_rowid").to_pylist(), strict=True))


def check_with_pylance(where: str, *, every_version: bool = False) -> None:
    """Compare rows, row ids and addresses of a dataset with what pylance reads, and let it validate the dataset."""
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    latest = open_dataset(where)
    for version in latest.versions() if every_version else [latest.version]:
        ours, theirs = latest.checkout(version), lance.dataset(where, version=version)
        theirs.validate()
        names = ["_rowid", "_rowaddr"]
        mine = ours.to_pyarrow_table(metadata=names)
        found = theirs.to_table(with_row_id=True, with_row_address=True)
        assert mine.num_rows == theirs.count_rows()
        order = np.argsort(found.column("_rowaddr").to_numpy(), kind="stable")
        assert_same(mine, found.select(mine.column_names).take(order), np.argsort(mine.column("_rowaddr").to_numpy()))
    assert not latest.verify().findings


def assert_same(mine: pa.Table, found: pa.Table, order: Any) -> None:
    assert repr(mine.take(order).to_pylist()) == repr(found.to_pylist())
    assert mine.schema.names == found.schema.names
