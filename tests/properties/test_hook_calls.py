"""Hooks are called once per snapshot and scan, never per file, batch or row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.testing.table_builder import TableBuilder

FEATURES = [
    "changeDataFeed",
    "deletionVectors",
    "domainMetadata",
    "inCommitTimestamp",
    "rowTracking",
    "typeWidening",
    "v2Checkpoint",
]
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_v",
}


def build(path: Path, files: int) -> TableBuilder:
    table = TableBuilder(path).create(
        {"id": "long", "p": "integer"},
        partition_by=["p"],
        features=FEATURES,
        properties=PROPERTIES,
        column_mapping="name",
    )
    table.append([{"id": i, "p": i % files} for i in range(2 * files)])
    table.delete_rows({path: [0] for path in table.paths()})
    return table.checkpoint("v2-parquet", sidecars=2)


def calls(table: TableBuilder, work: Callable[[DeltaTable], Any]) -> Counter[str]:
    """Count the hooks of opening and working; the registry is warm, so that its own are not among them."""
    registry = PluginRegistry()
    plugins = DeltaTable(table.uri, plugins=registry).snapshot().plugins
    counted: Counter[str] = Counter()
    stop = plugins.monitor(lambda name: counted.update([name]))
    work(DeltaTable(table.uri, plugins=registry))
    stop()
    return counted


WORK: dict[str, Callable[[DeltaTable], Any]] = {
    "open": lambda t: t.version(),
    "files": lambda t: t.snapshot().files.columns(["path", "size", "stats"]),
    "rows": lambda t: t.snapshot().scan().to_table(),
    "rows and metadata": lambda t: t.snapshot().scan(metadata=("_row_id", "_file_path", "_file_row_index")).to_table(),
    "predicate": lambda t: t.snapshot().scan(["id"], predicate="p >= 0 and id > 1").to_table(),
    "count": lambda t: t.snapshot().scan().count(),
    "changes": lambda t: pa.table(t.load_cdf()),
    "history": lambda t: t.history(),
    "tombstones": lambda t: t.snapshot().tombstones(),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableBuilder, TableBuilder]:
    root = tmp_path_factory.mktemp("hooks")
    return build(root / "one", 1), build(root / "many", 1000)


@pytest.mark.parametrize("work", WORK.values(), ids=WORK.keys())
def test_one_file_and_a_thousand_call_the_same_hooks(tables: tuple[TableBuilder, TableBuilder], work: Any) -> None:
    one, many = (calls(table, work) for table in tables)
    assert one == many
    assert sum(one.values()) > 0
