"""Types of plugins on Spark: read, compared, updated and merged as values of the Delta type that stores them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from tests.hooks.external_plugins import table_of
from tests.hooks.test_custom_types import COLUMNS, PLUGINS, ROWS

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def rows_of(path: str, *columns: str) -> list[tuple[Any, ...]]:
    found = DeltaTable(path, plugins=PLUGINS).to_pyarrow_table(columns=["id", *columns]).to_pylist()
    return sorted(tuple(r.values()) for r in found)


def test_columns_of_such_types_are_read_changed_and_merged(spark: Any, tmp_path: Path) -> None:
    path = table_of(tmp_path / "t", COLUMNS).uri
    write_deltalake(DeltaTable(path, plugins=PLUGINS), ROWS, mode="append")
    frame = ds.read(spark, path, plugins=PLUGINS)
    assert [r.id for r in frame.where("v > 15 OR c = 'a' AND s.m = 1").orderBy("id").collect()] == [1, 2]
    table = ds.DeltaTable.forPath(spark, path, plugins=PLUGINS)
    table.update("v = 10", {"v": "v + id", "c": "'z'", "s.m": "v"})
    table.delete("v = 20")
    assert rows_of(path, "v", "c", "s") == [(1, 11, "z", {"m": 10}), (3, None, "c", {"m": 3})]
    source = spark.createDataFrame(ROWS.select(["id", "v", "c", "s", "a"]))
    merger = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate("t.v = 11", {"v": "t.v + s.v"})
    merger.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows_of(path, "v", "s", "a") == [(1, 21, {"m": 10}, [1, 2]), (2, 20, None, []), (3, None, {"m": 3}, None)]
    ds.write(source.where("v = 10"), path, "overwrite", replace_where="v < 21 OR v IS NULL OR v = 21", plugins=PLUGINS)
    assert rows_of(path, "v") == [(1, 10)]
