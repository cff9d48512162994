"""Overwrites of a part that change the schema too: what stays and what changes is read as the table will be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake

FEED = {"delta.enableChangeDataFeed": "true"}
WIDER = {"delta.enableTypeWidening": "true"}
OPTIONS: list[dict[str, str]] = [
    {},
    {"delta.columnMapping.mode": "name"},
    {"delta.enableRowTracking": "true"},
    {"delta.enableDeletionVectors": "true"},
]
OLD = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "k": ["a", "b", "b"],
        "s": pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int32())])),
    }
)
NEW = pa.table(
    {
        "id": pa.array([2**40, 5], pa.int64()),
        "k": ["b", "b"],
        "more": ["new", None],
        "s": pa.array([{"x": 2**41, "y": "in"}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
    }
)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


def feed(uri: Path, version: int) -> list[tuple[Any, ...]]:
    changes = DeltaTable(uri).load_cdf(version).read_all()
    return sorted((tuple(r[c] for c in ("_change_type", "id", "k", "s", "more")) for r in changes.to_pylist()), key=str)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_change_feed_has_the_columns_and_types_that_the_overwrite_adds(tmp_path: Path, options: dict[str, str]) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, OLD, configuration={**FEED, **WIDER, **options})
    write_deltalake(uri, NEW, mode="overwrite", predicate="id > 1", schema_mode="merge")
    assert rows(DeltaTable(uri).to_pyarrow_table().select(["id", "k", "more", "s"])) == rows(
        pa.table(
            {
                "id": [1, 2**40, 5],
                "k": ["a", "b", "b"],
                "more": [None, "new", None],
                "s": pa.array([{"x": 1, "y": None}, {"x": 2**41, "y": "in"}, None], NEW.schema.field("s").type),
            }
        )
    )
    assert feed(uri, 1) == sorted(
        [
            ("delete", 2, "b", None, None),
            ("delete", 3, "b", {"x": 3, "y": None}, None),
            ("insert", 2**40, "b", {"x": 2**41, "y": "in"}, "new"),
            ("insert", 5, "b", None, None),
        ],
        key=str,
    )


@pytest.mark.parametrize(
    ("predicate", "left"),
    [
        ("id >= 3", [1, 2]),
        ("id = 1 or more = 'new'", [2, 3]),
        ("more is null and id <> 2", [2]),
        ("id > 3000000000", [1, 2, 3]),
    ],
)
def test_predicate_may_use_the_columns_and_types_that_the_overwrite_adds(
    tmp_path: Path, predicate: str, left: list[int]
) -> None:
    write_deltalake(tmp_path / "t", OLD, configuration={**FEED, **WIDER})
    new = NEW.filter(pa.array(["id" in predicate and predicate != "more is null and id <> 2", "null" in predicate]))
    write_deltalake(tmp_path / "t", new, mode="overwrite", predicate=predicate, schema_mode="merge")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table()
    assert sorted(found["id"].to_pylist()) == sorted(left + new["id"].to_pylist())


def test_partitions_are_compared_as_the_type_that_the_overwrite_widens_them_to(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", OLD, partition_by=["id"], configuration=WIDER)
    new = pa.table({"id": pa.array([2**40, 3], pa.int64()), "k": ["x", "y"]})
    write_deltalake(tmp_path / "t", new, mode="overwrite", partition_overwrite="dynamic", schema_mode="merge")
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().select(["id", "k"]).to_pylist()
    assert sorted((r["id"], r["k"]) for r in found) == [(1, "a"), (2, "b"), (3, "y"), (2**40, "x")]
