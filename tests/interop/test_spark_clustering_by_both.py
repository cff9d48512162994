"""Delta's own Spark library and this one cluster the same tables, and read them as streams, in one session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CUBE_BYTES = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"


class Clustered:
    """A table clustered by both libraries."""

    def __init__(self, spark: Any, path: Path) -> None:
        self.spark = spark
        self.path = path
        self.rows = 0
        spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, x DOUBLE, s STRING) USING delta CLUSTER BY (id, x)")

    def insert(self) -> None:
        rows = f"id, id * 7 % 13, cast(id AS STRING) FROM range({self.rows}, {self.rows + 100}, 1, 2)"
        self.spark.sql(f"INSERT INTO delta.`{self.path}` SELECT {rows}")
        self.rows += 100

    def by_spark(self) -> tuple[int, int]:
        """Return the files added and removed."""
        metrics = self.spark.sql(f"OPTIMIZE delta.`{self.path}`").collect()[0]["metrics"]
        return metrics["numFilesAdded"], metrics["numFilesRemoved"]

    def by_us(self, **options: Any) -> tuple[int, int]:
        metrics = DeltaTable(str(self.path)).optimize.cluster(**options)
        return metrics["numFilesAdded"], metrics["numFilesRemoved"]

    def files(self) -> dict[str, dict[str, Any]]:
        """Return the add action of each live file by its name."""
        found: dict[str, dict[str, Any]] = {}
        for commit in sorted((self.path / "_delta_log").glob("*.json")):
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                if "remove" in action:
                    found.pop(action["remove"]["path"], None)
                if "add" in action:
                    found[action["add"]["path"]] = action["add"]
        return found

    def cubes(self) -> set[str]:
        return {add["tags"]["ZCUBE_ID"] for add in self.files().values()}

    def check_rows(self) -> None:
        for table in (
            DeltaTable(str(self.path)).to_pyarrow_table(),
            self.spark.sql(f"FROM delta.`{self.path}`").toArrow(),
        ):
            assert sorted(table.column("id").to_pylist()) == list(range(self.rows))


def test_each_library_finds_the_cubes_of_the_other(spark: Any, tmp_path: Path) -> None:
    table = Clustered(spark, tmp_path / "t")
    table.insert()
    added, removed = table.by_spark()
    assert (added, removed) == (1, 2)
    (of_spark,) = table.files().values()
    assert table.by_us() == (0, 0), "a cube of delta-spark stays"
    table.insert()
    added, removed = table.by_us(target_size=1_000)
    assert added > 1
    assert removed == 3
    assert len(table.cubes()) == 1
    for add in table.files().values():
        assert add["clusteringProvider"] == of_spark["clusteringProvider"]
        assert add["tags"] == {**of_spark["tags"], "ZCUBE_ID": add["tags"]["ZCUBE_ID"]}
    assert table.by_spark() == (0, 0), "a cube of ours stays"
    table.insert()
    assert table.by_spark() == (1, added + 2), "a small cube of ours is clustered with new files"
    table.check_rows()


def test_large_cubes_of_ours_stay_when_spark_clusters_new_files(spark: Any, tmp_path: Path) -> None:
    table = Clustered(spark, tmp_path / "t")
    table.insert()
    table.by_us()
    kept = set(table.files())
    table.insert()
    spark.conf.set(CUBE_BYTES, "1")
    try:
        assert table.by_spark() == (1, 2)
    finally:
        spark.conf.unset(CUBE_BYTES)
    assert kept < set(table.files())
    assert len(table.cubes()) == 2
    table.check_rows()


@pytest.mark.parametrize("limit", [{}, {"max_files": 1}, {"max_files": 3}, {"max_bytes": 2_000}], ids=str)
@pytest.mark.parametrize("start", [None, 0, 2])
def test_follow_returns_the_batches_of_a_stream_of_spark(
    spark: Any, tmp_path: Path, limit: dict[str, int], start: int | None
) -> None:
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    for first in (0, 10, 20):
        spark.sql(f"INSERT INTO {name} SELECT id, substr('abc', 1 + id % 3, 1) FROM range({first}, {first + 10}, 1, 1)")
    expected: list[list[int]] = []

    def note(batch: Any, number: int) -> None:
        del number
        expected.append(sorted(r.id for r in batch.collect()))

    options = {"max_files": "maxFilesPerTrigger", "max_bytes": "maxBytesPerTrigger"}
    reader = spark.readStream.format("delta")
    for key, value in limit.items():
        reader = reader.option(options[key], value)
    if start is not None:
        reader = reader.option("startingVersion", start)
    writer = reader.load(str(path)).writeStream.foreachBatch(note).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination(120)
    followed = list(DeltaTable(str(path)).follow(*(() if start is None else (start,)), timeout=0, **limit))
    if "max_files" in limit:
        assert [sorted(b.to_table().column("id").to_pylist()) for b in followed] == expected
    # without a limit Spark takes 1,000 files at a time, and follow a commit; Spark exceeds a limit of bytes by a file
    found = [i for b in followed for i in b.to_table().column("id").to_pylist()]
    assert sorted(found) == sorted(i for ids in expected for i in ids)
    # the position after the last batch is where Spark's query would go on
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda f: int(f.name))
    offset = json.loads(offsets[-1].read_text().splitlines()[-1])
    own = json.loads(followed[-1].position.to_json())
    assert {k: own[k] for k in offset if k != "sourceVersion"} == {k: offset[k] for k in offset if k != "sourceVersion"}
