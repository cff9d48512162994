"""Change data feeds as sources of streaming queries: each change once, from any state of the checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError, StreamSchemaError, UnsupportedOperationError, VersionNotFoundError

pytestmark = pytest.mark.spark

FEED = {"delta.enableChangeDataFeed": "true"}


class Feed:
    """A query that stores the changes of a table."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.source = folder / "source"
        self.target = folder / "target"

    def append(self, *ids: int, **configuration: str) -> None:
        rows = pa.table({"id": pa.array(ids, pa.int64()), "x": pa.array(ids, pa.int64())})
        write_deltalake(self.source, rows, mode="append", configuration={**FEED, **configuration})

    def run(self, **options: Any) -> Any:
        rows = ds.read_changes_stream(self.spark, self.source, **options)
        query = ds.write_stream(
            rows, self.target, checkpoint=self.folder / "cp", trigger={"availableNow": True}, schema_mode="merge"
        )
        query.awaitTermination()
        return query

    def stored(self) -> list[tuple[Any, ...]]:
        rows = DeltaTable(self.target).to_pyarrow_table().to_pylist()
        return sorted((r["_commit_version"], r["_change_type"], r["id"], r["x"]) for r in rows)

    def rewind(self, batch: int) -> None:
        """Set query and table to the state in which a batch was begun, and neither written nor recorded."""
        for kind in ("offsets", "commits"):
            for file in (self.folder / "cp" / kind).glob("*"):
                number = int(file.name.strip(".").removesuffix(".crc"))
                if number >= batch + (kind == "offsets"):
                    file.unlink()
        for version in range(batch, DeltaTable(self.target).version() + 1):
            for suffix in ("json", "crc"):
                (self.target / "_delta_log" / f"{version:020}.{suffix}").unlink(missing_ok=True)

    def forget(self, batch: int) -> None:
        """Set the checkpoint to the state in which the batch was begun and not recorded."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "cp" / "commits" / name).unlink(missing_ok=True)


@pytest.fixture
def feed(spark: Any, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


@pytest.mark.parametrize("configuration", [{}, {"delta.enableDeletionVectors": "true"}], ids=["copies", "vectors"])
def test_rows_of_the_table_then_changes_arrive_once(feed: Feed, configuration: dict[str, str]) -> None:
    feed.append(1, 2, **configuration)
    feed.append(3)
    feed.run(max_files=1)
    assert feed.stored() == [(1, "insert", n, n) for n in (1, 2, 3)]

    DeltaTable(feed.source).delete("id = 1")
    DeltaTable(feed.source).update({"x": "x + 10"}, predicate="id = 2")
    feed.append(4)
    feed.run(max_files=1)
    feed.run()  # nothing is new
    expected = ds.read_changes(feed.spark, feed.source, 2).toArrow().to_pylist()
    found = DeltaTable(feed.target).to_pyarrow_table().to_pylist()
    later = [r for r in found if r["_commit_version"] > 1]
    assert sorted(map(repr, later)) == sorted(map(repr, expected))
    assert [r[:3] for r in feed.stored() if r[0] > 1] == [
        (2, "delete", 1), (3, "update_postimage", 2), (3, "update_preimage", 2), (4, "insert", 4),
    ]  # fmt: skip


@pytest.mark.parametrize("limit", [{"max_files": 2}, {"max_bytes": 1}], ids=["files", "bytes"])
def test_rows_of_the_table_are_divided_and_each_arrives_once(feed: Feed, limit: dict[str, int]) -> None:
    for i in range(5):
        feed.append(i, **{"delta.enableDeletionVectors": "true"})
    DeltaTable(feed.source).delete("id = 3")  # the file of this row has a vector, or is gone
    feed.run(**limit)
    first = [(5, "insert", n, n) for n in (0, 1, 2, 4)]
    assert feed.stored() == first
    batches = [int(f.name) for f in (feed.folder / "cp" / "commits").glob("[0-9]*")]
    assert max(batches) == (1 if "max_files" in limit else 3)

    # a query that was interrupted within these rows repeats the batch, and goes on to the changes
    feed.append(5)
    for last in (0, 1):
        feed.rewind(last)
        feed.run(**limit)
        assert feed.stored() == [*first, (6, "insert", 5, 5)]


def test_rows_and_changes_of_excluded_files_do_not_arrive(feed: Feed) -> None:
    for day in ("a", "b"):
        rows = pa.table({"id": [1, 2], "day": [day, day]})
        write_deltalake(
            feed.source,
            rows,
            mode="append",
            partition_by=["day"],
            configuration={"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
        )
    rows = ds.read_changes_stream(feed.spark, feed.source, exclude_regex="day=a/")

    def run() -> None:
        trigger = {"availableNow": True}
        ds.write_stream(rows, feed.target, checkpoint=feed.folder / "cp", trigger=trigger).awaitTermination()

    run()
    DeltaTable(feed.source).delete("id = 1")  # by vectors of both files
    DeltaTable(feed.source).update({"id": "3"})  # with change files
    run()
    found = DeltaTable(feed.target).to_pyarrow_table().to_pylist()
    assert sorted((r["_commit_version"], r["_change_type"], r["id"], r["day"]) for r in found) == [
        (1, "insert", 1, "b"), (1, "insert", 2, "b"), (2, "delete", 1, "b"),
        (3, "update_postimage", 3, "b"), (3, "update_preimage", 2, "b"),
    ]  # fmt: skip


def test_interrupted_batches_are_repeated_with_the_same_rows(feed: Feed) -> None:
    feed.append(1)
    feed.run()
    DeltaTable(feed.source).delete("id = 1")
    feed.run()
    before = feed.stored()
    feed.forget(1)
    feed.append(2)
    feed.run()
    assert feed.stored() == [*before, (2, "insert", 2, 2)]


def test_starts(feed: Feed) -> None:
    feed.append(1)
    DeltaTable(feed.source).update({"x": "5"})
    feed.append(2)
    feed.run(start=1, columns=["id"])
    rows = DeltaTable(feed.target).to_pyarrow_table().to_pylist()
    assert sorted((r["_commit_version"], r["_change_type"], r["id"]) for r in rows) == [
        (1, "update_postimage", 1), (1, "update_preimage", 1), (2, "insert", 2),
    ]  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="to begin with version 9"):
        ds.read_changes_stream(feed.spark, feed.source, start=9)
    with pytest.raises(InvalidArgumentError, match="start and start_timestamp"):
        ds.read_changes_stream(feed.spark, feed.source, start=0, start_timestamp="2020-01-01")


def test_stream_goes_on_behind_lost_commits_if_that_is_allowed(feed: Feed) -> None:
    for i in range(5):
        feed.append(i)
        if i == 2:
            DeltaTable(feed.source).create_checkpoint()
    feed.run(start=0, max_files=1)
    for version in (0, 1):
        for suffix in ("json", "crc"):
            (feed.source / "_delta_log" / f"{version:020}.{suffix}").unlink()
    feed.append(5)
    feed.run(max_files=1)  # what is lost was read already
    assert [r[2] for r in feed.stored()] == [0, 1, 2, 3, 4, 5]

    for name in ("cp", "target"):
        shutil.rmtree(feed.folder / name)
    with pytest.raises(VersionNotFoundError):
        feed.run(start=0, max_files=1)
    feed.run(start=0, max_files=1, fail_on_data_loss=False)
    assert [r[2] for r in feed.stored()] == [2, 3, 4, 5]


def test_table_without_a_feed_is_rejected(feed: Feed) -> None:
    write_deltalake(feed.source, pa.table({"id": [1]}))
    with pytest.raises(UnsupportedOperationError, match=r"hange.*Feed"):
        ds.read_changes_stream(feed.spark, feed.source)


def test_query_ends_before_another_schema_and_goes_on_with_it(feed: Feed) -> None:
    feed.append(1)
    feed.run()
    rows = ds.read_changes_stream(feed.spark, feed.source)
    feed.append(2)
    DeltaTable(feed.source).alter.add_column("y", "long")
    query = ds.write_stream(rows, feed.target, checkpoint=feed.folder / "cp", trigger={"processingTime": "0 seconds"})
    with pytest.raises(StreamSchemaError, match="column y was added"):
        query.awaitTermination(60)
    assert feed.stored() == [(0, "insert", 1, 1), (1, "insert", 2, 2)]
    DeltaTable(feed.source).delete("id = 2")
    feed.run()
    assert feed.stored()[2:] == [(3, "delete", 2, 2)]


@pytest.mark.parametrize("change", ["add", "rename", "replace"])
def test_interrupted_batch_of_an_earlier_schema_is_rejected(feed: Feed, change: str) -> None:
    feed.append(1, **{"delta.columnMapping.mode": "name"})
    feed.append(2)
    feed.run(start=0)
    assert len(feed.stored()) == 2
    feed.forget(0)
    alter = DeltaTable(feed.source).alter
    if change == "rename":
        alter.rename_column("x", "y")
    if change == "replace":
        alter.drop_column("x")
    if change != "rename":
        DeltaTable(feed.source).alter.add_column("y", "long")
    shutil.rmtree(feed.target)  # so that the sink does not skip the batch
    with pytest.raises(StreamSchemaError, match="up to version 1 have another schema") as caught:
        feed.run()
    assert caught.value.version == 1
    assert not (feed.target / "_delta_log").exists()


def test_plan_of_a_batch_contains_no_python(feed: Feed) -> None:
    feed.append(1)
    DeltaTable(feed.source).update({"x": "5"})
    query = feed.run(start=0)
    plan = query._jsq.explainInternal(False)
    assert "Python" not in plan
    assert "FileScan parquet" in plan
