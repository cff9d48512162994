"""Columns of user-defined types, exchanged with Delta's own Spark library in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

KINDS = ["vector", "matrix", "list", "text", "in a struct", "in an array", "in a map"]


def values(frame: Any) -> list[Any]:
    return [tuple(r) for r in frame.orderBy("id").collect()]


def schema_string(path: Path) -> str:
    commit = (path / "_delta_log" / f"{0:020}.json").read_text()
    return next(str(json.loads(line)["metaData"]["schemaString"]) for line in commit.splitlines() if "metaData" in line)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_exchanged(spark: Any, tmp_path: Path, kind: str) -> None:
    import delta

    import delta_core.spark as ds
    from tests.spark.points import frames

    given = frames(spark)[kind]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    given.write.format("delta").save(str(theirs))
    ds.write(given, str(ours))
    assert schema_string(ours) == schema_string(theirs)
    assert values(ds.read(spark, str(theirs))) == values(given)
    assert values(spark.read.format("delta").load(str(ours))) == values(given)
    arrow = DeltaTable(theirs).to_pyarrow_table().sort_by("id").to_pylist()
    assert DeltaTable(ours).to_pyarrow_table().sort_by("id").to_pylist() == arrow
    # each changes what the other wrote
    delta.DeltaTable.forPath(spark, str(ours)).update("id = 1", {"id": "id + 6"})
    ds.DeltaTable.forPath(spark, str(theirs)).update("id = 1", {"id": "id + 6"})
    given.write.format("delta").mode("append").save(str(ours))
    ds.write(given, str(theirs), "append")
    DeltaTable(theirs).delete("id = 2")
    DeltaTable(ours).delete("id = 2")
    expected = values(given.where("id <> 2").unionByName(given.where("id <> 2").replace(1, 7, "id")))
    for place in (ours, theirs):
        assert sorted(values(ds.read(spark, str(place))), key=str) == sorted(expected, key=str)
        assert sorted(values(spark.read.format("delta").load(str(place))), key=str) == sorted(expected, key=str)
