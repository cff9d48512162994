"""Delta's own Spark library and this one read the same tables as streams: the same rows, in the same batches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import StreamRestartError, StreamSchemaError

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

#: Our arguments, and the options of delta-spark.
NAMES = {
    "start": "startingVersion",
    "start_timestamp": "startingTimestamp",
    "max_files": "maxFilesPerTrigger",
    "max_bytes": "maxBytesPerTrigger",
    "ignore_deletes": "ignoreDeletes",
    "ignore_changes": "ignoreChanges",
    "skip_change_commits": "skipChangeCommits",
    "exclude_regex": "excludeRegex",
    "schema_tracking_location": "schemaTrackingLocation",
    "allow_source_column_drop": "allowSourceColumnDrop",
    "allow_source_column_rename": "allowSourceColumnRename",
}
Batches = list[list[str]]


class Both:
    """A table, and streams of it by both libraries."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.path = folder / "t"
        self.name = f"delta.`{self.path}`"

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("TABLE_", self.name))

    def insert(self, first: int, number: int = 4, files: int = 2, columns: str = "id, id % 3") -> None:
        self.sql(f"INSERT INTO TABLE_ SELECT {columns} FROM range({first}, {first + number}, 1, {files})")

    def frame(self, library: str, kind: str, options: dict[str, Any]) -> Any:
        if library == "ours":
            read = ds.read_stream if kind == "rows" else ds.read_changes_stream
            return read(self.spark, self.path, **options)
        reader = self.spark.readStream.format("delta").option("readChangeFeed", kind == "changes")
        for name, value in options.items():
            reader = reader.option(NAMES[name], str(value))
        return reader.load(str(self.path))

    def run(self, library: str, kind: str, checkpoint: str, **options: Any) -> Batches:
        """Return the rows of each batch that has rows."""
        found: Batches = []

        def note(rows: Any, number: int) -> None:
            del number
            found.append(sorted(str(r.asDict()) for r in rows.collect()))

        writer = self.frame(library, kind, options).writeStream.foreachBatch(note).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.folder / checkpoint)).start()
        try:
            query.awaitTermination(120)
        finally:
            self.last = [b for b in found if b]
        return self.last


@pytest.fixture
def both(spark: Any, tmp_path: Path) -> Both:
    return Both(spark, tmp_path)


def create(both: Both, *, vectors: bool = True, mapping: bool = False) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": str(vectors).lower()}
    if mapping:
        properties["delta.columnMapping.mode"] = "name"
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
    both.sql(f"CREATE TABLE TABLE_ (id BIGINT, x BIGINT) USING delta TBLPROPERTIES ({listed})")


def test_streams_of_rows_have_the_same_batches(both: Both) -> None:
    create(both)
    for first in (0, 10, 20):
        both.insert(first)
    both.sql("DELETE FROM TABLE_ WHERE id = 1")
    both.insert(30)
    both.sql("DELETE FROM TABLE_ WHERE id >= 20 AND id < 24")  # removes files
    time = DeltaTable(both.path).history()[2]["timestamp"]  # of version 4
    when = both.spark.sql(f"SELECT CAST(timestamp_millis({time}) AS STRING)").collect()[0][0]
    changed = {"skip_change_commits": True}
    cases: list[dict[str, Any]] = [
        {"max_files": 1},
        {"max_files": 3},
        {"start": 0, "max_files": 1, **changed},
        {"start": 2, "max_files": 3, "ignore_changes": True},
        {"start": 5, "max_files": 1, "ignore_deletes": True},
        {"start_timestamp": when, "max_files": 1, **changed},
        {"start": 0, "exclude_regex": "part-00000", "max_files": 2, **changed},
        {"start": "latest"},
    ]
    for number, options in enumerate(cases):
        expected = both.run("delta", "rows", f"d{number}", **options)
        assert both.run("ours", "rows", f"o{number}", **options) == expected, options
        assert len(expected) == {0: 6, 1: 2, 7: 0}.get(number, len(expected)), options


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "copies"])
def test_streams_of_changes_have_the_same_rows(both: Both, vectors: bool) -> None:
    create(both, vectors=vectors)
    for first in (0, 10, 20):
        both.insert(first, files=1)
    both.sql("DELETE FROM TABLE_ WHERE id = 1")
    both.sql("UPDATE TABLE_ SET x = x + 10 WHERE id IN (2, 12)")
    both.insert(30, files=1)
    both.sql("DELETE FROM TABLE_ WHERE id >= 20 AND id < 24")
    cases = [{"max_files": 1}, {"max_files": 2}, {"start": 1, "max_files": 1}, {"start": 4}, {"start": 0}]
    for number, options in enumerate(cases):
        expected = both.run("delta", "changes", f"d{number}", **options)
        # of a version whose changes are whole files, delta-spark divides the changes
        assert both.run("ours", "changes", f"o{number}", **options) == expected, options
        assert expected
    # what comes later
    both.insert(40, files=1)
    expected = both.run("delta", "changes", "d0", max_files=1)
    assert both.run("ours", "changes", "o0", max_files=1) == expected


@pytest.mark.parametrize("kind", ["rows", "changes"])
def test_either_library_goes_on_with_a_stream_of_the_other_over_changes_of_the_schema(both: Both, kind: str) -> None:
    create(both, mapping=True)
    both.insert(0)
    both.sql("ALTER TABLE TABLE_ ADD COLUMN (y BIGINT)")
    both.insert(10, columns="id, id, id")
    both.sql("ALTER TABLE TABLE_ RENAME COLUMN y TO z")
    both.insert(20, columns="id, id, id")
    both.sql("ALTER TABLE TABLE_ DROP COLUMN x")
    both.insert(30, columns="id, id")

    def rows(order: Callable[[], Any]) -> list[str]:
        """Return all rows of one query, whose runs are of these libraries."""
        checkpoint = "-".join(itertools.islice(order(), 2))
        options = {
            "start": 0,
            "schema_tracking_location": both.folder / checkpoint / "schemas",
            "allow_source_column_drop": "always",
            "allow_source_column_rename": "always",
        }
        found: list[str] = []
        for library in itertools.islice(order(), 20):
            failed: Exception | None = None
            try:
                both.run(library, kind, checkpoint, **options)
            except (StreamRestartError, StreamingQueryException) as e:
                failed = e
            found += [r for b in both.last for r in b]
            if failed is None:
                return found
            # every failure is for a change of the schema, and the next run goes on
            assert isinstance(failed, StreamRestartError) or "DELTA_STREAMING_METADATA_EVOLUTION" in str(failed)
        raise AssertionError("the stream does not end")

    expected = rows(lambda: itertools.repeat("delta"))
    assert len(expected) == 16
    assert rows(lambda: itertools.repeat("ours")) == expected
    assert rows(lambda: itertools.cycle(["delta", "ours"])) == expected
    assert rows(lambda: itertools.cycle(["ours", "delta"])) == expected


def test_change_that_delta_spark_blocks_is_blocked_until_the_same_setting(both: Both) -> None:
    create(both, mapping=True)
    both.insert(0)
    options = {"schema_tracking_location": both.folder / "cp" / "schemas"}
    both.run("delta", "rows", "cp", **options)
    both.sql("ALTER TABLE TABLE_ RENAME COLUMN x TO y")
    both.insert(10)
    with pytest.raises(StreamingQueryException, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        both.run("delta", "rows", "cp", **options)
    with pytest.raises(StreamingQueryException, match="CANNOT_CONTINUE_PROCESSING_POST_SCHEMA") as theirs:
        both.run("delta", "rows", "cp", **options)
    with pytest.raises(StreamSchemaError, match="column x was renamed to y") as ours:
        both.run("ours", "rows", "cp", **options)
    setting = re.compile(r"spark\.databricks\.delta\.streaming\.allowSourceColumnRename\.ckpt_-?\d+")
    (key,) = set(setting.findall(str(ours.value)))
    assert set(setting.findall(str(theirs.value))) == {key}
    both.spark.conf.set(key, str(ours.value.facts["version"]))
    try:
        assert len(both.run("ours", "rows", "cp", **options)) == 1
        both.insert(20)
        assert len(both.run("delta", "rows", "cp", **options)) == 1
    finally:
        both.spark.conf.unset(key)


@pytest.mark.parametrize("kind", ["rows", "changes"])
def test_interrupted_first_batch_of_delta_spark_is_repeated_with_the_same_rows(both: Both, kind: str) -> None:
    create(both)
    both.insert(0)
    both.insert(10)
    expected = both.run("delta", kind, "cp", max_files=1)
    both.insert(20)
    for folder, first in (("offsets", 1), ("commits", 0)):
        for file in (both.folder / "cp" / folder).glob("*"):
            if int(file.name.strip(".").removesuffix(".crc")) >= first:
                file.unlink()
    found = both.run("ours", kind, "cp", max_files=1)
    assert found[: len(expected)] == expected
    assert len(found) > len(expected)
