"""Tables after deletes and updates made here: Delta's own Spark library reads their rows, row ids and change feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

FEED = {"delta.enableChangeDataFeed": "true"}
TABLES = {
    "plain": FEED,
    "vectors": {**FEED, "delta.enableDeletionVectors": "true"},
    "vectors, row ids": {**FEED, "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"},
    "row ids, mapping": {**FEED, "delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
}


def changed(uri: str, properties: dict[str, str]) -> DeltaTable:
    rows = pa.table({"id": list(range(12)), "p": ["a", "b"] * 6, "x": [i / 2 for i in range(12)]})
    write_deltalake(uri, rows, partition_by=["p"], configuration=properties)
    table = DeltaTable(uri)
    table.delete("id in (2, 3)")
    table.update({"x": "x + 100"}, predicate="id % 4 = 0")
    table.update({"p": "'c'", "id": "id + 50"}, predicate="x > 4.5 and x < 100")
    table.delete("p = 'b' and id < 6")
    return table


def found(rows: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in rows.select(*names).collect()), key=repr)


def here(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table.column(n).to_pylist() for n in names), strict=True), key=repr)


@pytest.mark.parametrize("kind", TABLES)
def test_spark_reads_rows_row_ids_and_changes_of_every_version(spark: Any, tmp_path: Path, kind: str) -> None:
    table = changed(str(tmp_path / "t"), TABLES[kind])
    assert table.version() == 4
    for version in range(5):
        theirs = spark.read.format("delta").option("versionAsOf", version).load(str(tmp_path / "t"))
        ours = DeltaTable(tmp_path / "t", version=version)
        assert found(theirs, "id", "p", "x") == here(ours.to_pyarrow_table(), "id", "p", "x")
        if "row ids" in kind:
            metadata = ("_row_id", "_row_commit_version")
            rows = ours.snapshot().scan(metadata=metadata).to_table()
            expected = here(rows, "id", *metadata)
            assert found(theirs, "id", "_metadata.row_id", "_metadata.row_commit_version") == expected
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0)
    names = ("id", "p", "x", "_change_type", "_commit_version")
    assert found(feed.load(str(tmp_path / "t")), *names) == here(table.load_cdf(0, 4).read_all(), *names)
