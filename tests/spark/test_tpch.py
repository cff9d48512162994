"""Queries like those of TPC-H: planned as on plain Parquet, with equal rows, on tables of no and of many features."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.sizes import Sizes
from benchmarks.tpch import SCALE, make_tpch, tpch_table
from benchmarks.tpch_queries import QUERIES, TABLES
from delta_core.spark import read
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import chosen
from tests.spark.test_plans import setting

pytestmark = pytest.mark.spark

SMALL = 0.004
#: No key of the tables.
_EXTRA = -1


@pytest.fixture(scope="module")
def tables(tmp_path_factory: Any) -> Path:
    """The tables as they are, and with mapped names and some rows more that vectors drop again."""
    root: Path = tmp_path_factory.mktemp("tpch")
    make_tpch(root / "without_nullability", Sizes(SMALL / SCALE))
    for name in TABLES:
        rows = tpch_table(SMALL, name)
        key = rows.column_names[0]
        extra = rows.slice(0, 3).set_column(0, key, pa.array([_EXTRA] * 3, rows.schema.field(0).type))
        made = TableBuilder(root / "mapped" / name).create(
            rows.schema, features=["deletionVectors"], column_mapping="name"
        )
        made.append(rows, files=2).append(pa.concat_tables([rows.slice(0, 0), extra]))
        last = made.paths()[-1]
        made.delete_rows({last: range(3)})
    return root


def registered(frames: Mapping[str, Any], spark: Any, query: str) -> Any:
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return spark.sql(QUERIES[query])


def shape(frame: Any) -> list[str]:
    """Return the operators of the plan before anything ran, by depth; vectors and names add filters and projections."""
    out = []

    def visit(plan: Any, depth: int) -> None:
        name = plan.getClass().getSimpleName()
        if name == "AdaptiveSparkPlanExec":
            visit(plan.inputPlan(), depth)
            return
        if name not in ("ProjectExec", "FilterExec"):
            out.append(" " * depth + name)
            depth += 1
        children = plan.children()
        for i in range(children.size()):
            visit(children.apply(i), depth)

    visit(frame._jdf.queryExecution().executedPlan(), 0)
    return out


def close(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, (float, Decimal)) and float(a) == pytest.approx(float(b)))


@pytest.mark.parametrize("query", chosen(sorted(QUERIES, key=lambda q: int(q[1:])), ["q1", "q4", "q8", "q18", "q22"]))
def test_query_is_planned_as_on_plain_parquet_and_finds_the_same_rows(spark: Any, tables: Path, query: str) -> None:
    sides = {
        "plain": {t: spark.read.parquet(str(tables / "without_nullability" / t)) for t in TABLES},
        "without_nullability": {t: read(spark, tables / "without_nullability" / t) for t in TABLES},
        "mapped": {t: read(spark, tables / "mapped" / t) for t in TABLES},
    }
    # as if the tables were large: some sides are broadcast, some are not
    limit = _bytes(tables / "without_nullability" / "orders") // 3
    with setting(spark, spark__sql__autoBroadcastJoinThreshold=limit):
        frames = {side: registered(found, spark, query) for side, found in sides.items()}
        shapes = {side: shape(frame) for side, frame in frames.items()}
        assert shapes["without_nullability"] == shapes["plain"]
        expected = [tuple(r) for r in frames["plain"].collect()]
        assert expected
        for side in ("without_nullability", "mapped"):
            found = [tuple(r) for r in frames[side].collect()]
            assert len(found) == len(expected)
            assert all(close(x, y) for a, b in zip(found, expected, strict=True) for x, y in zip(a, b, strict=True))


def _bytes(folder: Path) -> int:
    return sum(f.stat().st_size for f in folder.rglob("*.parquet"))
