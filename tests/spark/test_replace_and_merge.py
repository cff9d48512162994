"""Overwrites of a part that change the schema too: what stays and what changes is read as the table will be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake

pytestmark = pytest.mark.spark

OPTIONS: list[tuple[str, dict[str, str]]] = [
    ("auto", {}),
    ("plain", {"delta.columnMapping.mode": "name"}),
    ("auto", {"delta.enableRowTracking": "true"}),
    ("auto", {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}),
]
ON = {"delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true"}
OLD = """SELECT * FROM VALUES (1, 'a', named_struct('x', 1)), (2, 'b', NULL), (3, 'b', named_struct('x', 3))
         AS t(id, k, s)"""
NEW = """SELECT * FROM VALUES (1099511627776L, 'b', named_struct('x', 8L, 'y', 'in'), 'new'), (3L, 'c', NULL, NULL)
         AS t(id, k, s, more)"""
KEPT, INSERTED = (1, "a", {"x": 1, "y": None}, None), [(2**40, "b", {"x": 8, "y": "in"}, "new"), (3, "c", None, None)]
TWO, THREE = (2, "b", None, None), (3, "b", {"x": 3, "y": None}, None)


def content(path: Path) -> list[Any]:
    return [tuple(r[c] for c in ("id", "k", "s", "more")) for r in DeltaTable(path).to_pyarrow_table().to_pylist()]


def feed(path: Path) -> list[Any]:
    changes = DeltaTable(path).load_cdf(1).read_all().to_pylist()
    return [tuple(r[c] for c in ("_change_type", "id", "k", "s", "more")) for r in changes]


def same(found: list[Any], expected: list[Any]) -> bool:
    return sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(("route", "options"), OPTIONS, ids=str)
@pytest.mark.parametrize(
    ("how", "gone"),
    [
        ({"replace_where": "id > 1"}, [TWO, THREE]),
        ({"replace_using": "id"}, [THREE]),
        ({"replace_on": "t.k = s.k"}, [TWO, THREE]),
        ({"replace_on": "t.more <=> s.more AND t.id = s.id"}, [THREE]),
    ],
    ids=["where", "using", "on", "on-new-column"],
)
def test_rows_that_stay_and_change_have_the_new_columns_and_types(
    spark: Any, tmp_path: Path, route: Any, options: dict[str, str], how: dict[str, Any], gone: list[Any]
) -> None:
    ds.write(spark.sql(OLD).coalesce(1), tmp_path, properties={**ON, **options})
    ds.write(spark.sql(NEW).coalesce(1), tmp_path, "overwrite", schema_mode="merge", route=route, **how)
    assert same(content(tmp_path), [KEPT, *(r for r in (TWO, THREE) if r not in gone), *INSERTED])
    assert same(feed(tmp_path), [("delete", *r) for r in gone] + [("insert", *r) for r in INSERTED])
    assert same([tuple(r.asDict(True).values()) for r in ds.read(spark, tmp_path).collect()], content(tmp_path))


NULLS = """SELECT * FROM VALUES (1, 'a', 1.5D), (2, NULL, 2.5D), (NULL, 'b', NULL), (3, 'b', DOUBLE('NaN')),
           (4, 'c', -0.0D) AS t(id, k, x)"""
NEWER = """SELECT * FROM VALUES (1, 'z', DOUBLE('NaN')), (NULL, NULL, 0.0D), (3, 'c', NULL) AS t(id, k, x)"""


@pytest.mark.parametrize(
    "how",
    [
        {"replace_using": ["id"]}, {"replace_using": ["k"]}, {"replace_using": ["x"]}, {"replace_using": ["id", "k"]},
        {"replace_on": "t.k <=> s.k"}, {"replace_on": "t.x < s.x"}, {"replace_on": "t.id > 1 AND s.id IS NULL"},
        {"replace_on": "t.id + 1 = s.id OR t.k = s.k"},
    ],
    ids=str,
)  # fmt: skip
def test_arrow_engine_replaces_the_same_rows(spark: Any, tmp_path: Path, how: dict[str, Any]) -> None:
    ds.write(spark.sql(NULLS), tmp_path / "a")
    ds.write(spark.sql(NULLS), tmp_path / "b")
    ds.write(spark.sql(NEWER), tmp_path / "a", "overwrite", **how)
    write_deltalake(str(tmp_path / "b"), spark.sql(NEWER).toArrow(), mode="overwrite", **how)
    a, b = ([tuple(r.values()) for r in DeltaTable(tmp_path / n).to_pyarrow_table().to_pylist()] for n in "ab")
    assert sorted(map(repr, a)) == sorted(map(repr, b))  # by their texts, since NaN does not equal itself


def test_partitions_are_compared_as_the_type_that_the_overwrite_widens_them_to(spark: Any, tmp_path: Path) -> None:
    ds.write(spark.sql("SELECT 1 AS p, 'a' AS v UNION ALL SELECT 2, 'b'"), tmp_path, partition_by="p", properties=ON)
    new = spark.sql("SELECT 1099511627776L AS p, 'x' AS v UNION ALL SELECT 2L, 'y'")
    ds.write(new, tmp_path, "overwrite", schema_mode="merge", partition_overwrite_mode="dynamic")
    found = DeltaTable(tmp_path).to_pyarrow_table().select(["p", "v"]).to_pylist()
    assert same([tuple(r.values()) for r in found], [(1, "a"), (2, "y"), (2**40, "x")])
