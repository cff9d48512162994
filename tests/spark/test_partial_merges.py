"""Merges on Spark whose source has other fields than the table: what they leave is what delta-spark leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import SchemaMismatchError
from delta_core.schema import PrimitiveType
from tests.example_counts import IS_LONG, chosen
from tests.operations.partial_merges import FAILED, REJECTED, UNRESOLVED, Case, generated, shown, statement
from tests.operations.test_partial_merges import ANSWERS, CASES, NAMED, expected

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

#: Each thing that may differ, with the clauses that it matters to.
SHORT = [
    ("lacks-all", True),
    ("lacks-all", False),
    ("both-all", True),
    ("other-types-all", False),
    ("deep-outer-full-all", True),
    ("array-insert", True),
    ("array-in-full-struct-all", True),
    ("extra-struct-all", False),
]
EVERY = [(name, is_evolving) for name in NAMED for is_evolving in (False, True)]


def merged(spark: Any, path: Path, case: Case, is_evolving: bool) -> Any:
    write_deltalake(str(path), case.table)
    spark.createDataFrame(case.source).createOrReplaceTempView("partial_rows")
    try:
        ds.sql(spark, statement(case, f"delta.`{path}`", "partial_rows", is_evolving))
    except SchemaMismatchError as e:
        assert DeltaTable(str(path)).version() == 0
        return UNRESOLVED if e.facts.get("condition") == UNRESOLVED else REJECTED
    found = DeltaTable(str(path)).to_pyarrow_table()
    return json.loads(json.dumps(shown(found.schema, found.to_pylist())))


@pytest.mark.parametrize(("name", "is_evolving"), chosen(EVERY, SHORT))
def test_merge_leaves_what_delta_spark_leaves(name: str, is_evolving: bool, spark: Any, tmp_path: Path) -> None:
    answer = ANSWERS[name][is_evolving]
    wanted = expected(NAMED[name], is_evolving) if answer in FAILED and answer != UNRESOLVED else answer
    assert merged(spark, tmp_path / "t", NAMED[name], is_evolving) == wanted


def test_generated_merges_leave_what_the_model_leaves(spark: Any, tmp_path: Path) -> None:
    differing = []
    for seed in range(CASES if IS_LONG else 1):
        case = generated(seed)
        found, wanted = merged(spark, tmp_path / str(seed), case, True), expected(case, True)
        if found != wanted:
            differing.append((seed, found, wanted))
    assert differing == []


def test_columns_that_the_table_lacks_are_ignored_and_may_be_read(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1, 2], "v": [10, 20]}))
    source = spark.sql("SELECT 1L AS key, 10L AS id, 5L AS v, 'u' AS op, INTERVAL 1 DAY AS took")
    merger = ds.DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.key")
    merger.whenMatchedUpdateAll("s.op = 'u'").execute()
    assert sorted(r["id"] for r in DeltaTable(path).to_pyarrow_table().to_pylist()) == [2, 10]
    merger = ds.DeltaTable.forPath(spark, path).merge(spark.sql("SELECT 1 AS key, 2 AS x"), "id = key")
    with pytest.raises(SchemaMismatchError, match="lacks the column id, which UPDATE SET"):
        merger.whenMatchedUpdateAll().execute()


def test_named_columns_are_widened_if_the_table_allows_it(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2], "v": pa.array([10, 20], pa.int32())})
    write_deltalake(path, rows, configuration={"delta.enableTypeWidening": "true"})
    source = spark.sql("SELECT 1L AS id, 1099511627776L AS v")
    merger = ds.DeltaTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merger.whenMatchedUpdate(set={"v": "s.v"}).withSchemaEvolution().execute()
    table = DeltaTable(path)
    assert table.schema().get("v").type == PrimitiveType("long")  # type: ignore[union-attr]
    assert sorted(r["v"] for r in table.to_pyarrow_table().to_pylist()) == [20, 1099511627776]
