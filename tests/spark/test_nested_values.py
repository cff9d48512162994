"""Structs and arrays in conditions, and ``DEFAULT`` as a new value, on Spark as on Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType

pytestmark = pytest.mark.spark
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.string())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a table with a struct, an array and a default."""
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": None}, None], STRUCT),
            "a": pa.array([[1, 2], [1], None], pa.list_(pa.int64())),
            "kind": ["k"] * 3,
        }
    )
    write_deltalake(str(tmp_path / "t"), rows)
    DeltaTable(str(tmp_path / "t")).operation("set_default")("kind", "'new'")
    return str(tmp_path / "t")


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("s = named_struct('x', 1, 'y', 'a')", [1]),
        ("s < struct(2L, 'a')", [1, 2]),
        ("s['y'] = 'a'", [1]),
        ("s <=> null", [3]),
        ("a = array(1, 2)", [1]),
        ("a < array(1, 2)", [2]),
        ("s IN (struct(2L, cast(null as string)))", [2]),
        ("s >= named_struct('x', 2, 'y', null)", [2]),
    ],
)
def test_structs_and_arrays_select_the_rows_of_arrow(spark: Any, path: str, condition: str, ids: list[int]) -> None:
    table = DeltaTable(path)
    assert sorted(table.scan(["id"], predicate=condition).to_table().column("id").to_pylist()) == ids
    assert sorted(r.id for r in ds.read(spark, path, predicate=condition).collect()) == ids
    ds.DeltaTable(spark, path).delete(condition)
    assert DeltaTable(path).to_pyarrow_table().column("id").to_pylist() == [i for i in (1, 2, 3) if i not in ids]


def test_default_is_a_new_value_of_updates_and_merges(spark: Any, path: str) -> None:
    ds.DeltaTable(spark, path).update("id = 1", {"kind": "DEFAULT"})
    ds.sql(spark, f"UPDATE delta_core.`{path}` SET kind = DEFAULT, a = DEFAULT WHERE id = 2")
    source = spark.createDataFrame([(3,), (4,)], "id long")
    merger = ds.DeltaTable(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merger = merger.whenMatchedUpdate(set={"kind": "default"})
    merger.whenNotMatchedInsert(values={"id": "s.id", "kind": "DEFAULT", "a": "array(s.id)"}).execute()
    rows = DeltaTable(path).to_pyarrow_table(columns=["id", "kind", "a"]).sort_by("id").to_pylist()
    assert [tuple(r.values()) for r in rows] == [
        (1, "new", [1, 2]),
        (2, "new", None),
        (3, "new", None),
        (4, "new", [4]),
    ]


def test_merges_match_by_structs_and_arrays(spark: Any, path: str) -> None:
    source = spark.sql("SELECT named_struct('x', 1L, 'y', 'a') AS s, array(1L) AS a")
    merger = ds.DeltaTable(spark, path).alias("t").merge(source.alias("q"), "t.s = q.s OR t.a <=> q.a")
    merger.whenMatchedDelete("t.s['x'] = 1").whenMatchedUpdate(set={"s": "named_struct('x', 9, 'y', 'z')"}).execute()
    rows = DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist()
    assert [(r["id"], r["s"]) for r in rows] == [(2, {"x": 9, "y": "z"}), (3, None)]


def test_constraints_and_defaults_of_new_tables_hold_on_spark(spark: Any, tmp_path: Path) -> None:
    fields = [Field("id", PrimitiveType("long"))]
    DeltaTable.create(
        str(tmp_path / "c"), Schema(fields), configuration={"delta.constraints.c": "struct(id) <> struct(0L)"}
    )
    ds.write(spark.createDataFrame([(1,)], "id long"), str(tmp_path / "c"), "append")
    with pytest.raises(Exception, match="c"):
        ds.write(spark.createDataFrame([(0,)], "id long"), str(tmp_path / "c"), "append")
    assert DeltaTable(str(tmp_path / "c")).to_pyarrow_table().num_rows == 1
