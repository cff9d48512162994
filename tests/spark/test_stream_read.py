"""Tables as sources of streaming queries: each row once, in steps, from whichever state a query is started again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError, RowsChangedError, StreamSchemaError

pytestmark = pytest.mark.spark


class Copy:
    """A query that copies the rows of one table into another."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.source = folder / "source"
        self.target = folder / "target"

    def append(self, *ids: int, **options: Any) -> None:
        write_deltalake(self.source, pa.table({"id": pa.array(ids, pa.int64())}), mode="append", **options)

    def run(self, **options: Any) -> Any:
        rows = ds.read_stream(self.spark, self.source, **options)
        query = ds.write_stream(
            rows, self.target, checkpoint=self.folder / "cp", trigger={"availableNow": True}, schema_mode="merge"
        )
        query.awaitTermination()
        return query

    def ids(self) -> list[int]:
        """Return the rows of the copy, in the order of the batches."""
        table = DeltaTable(self.target)
        seen: list[int] = []
        for version in range(table.version() + 1):
            rows = DeltaTable(self.target, version=version).to_pyarrow_table()["id"].to_pylist()
            seen += sorted(set(rows) - set(seen))
            assert len(rows) == len(set(rows))
        return seen

    def sizes(self) -> list[int]:
        """Return how many rows each commit of the copy has."""
        table = DeltaTable(self.target)
        rows = [len(DeltaTable(self.target, version=v).to_pyarrow_table()) for v in range(table.version() + 1)]
        return [n - before for before, n in zip([0, *rows], rows, strict=False)]

    def forget(self, batch: int) -> None:
        """Set the checkpoint to the state in which the batch was begun and not recorded."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "cp" / "commits" / name).unlink(missing_ok=True)

    def undo(self, version: int) -> None:
        """Set the copy to the state before a version."""
        for suffix in ("json", "crc"):
            (self.target / "_delta_log" / f"{version:020}.{suffix}").unlink(missing_ok=True)


@pytest.fixture
def copy(spark: Any, tmp_path: Path) -> Copy:
    return Copy(spark, tmp_path)


def test_rows_of_the_table_then_of_its_commits_arrive_once_in_limited_steps(copy: Copy) -> None:
    copy.append(1, 2)
    copy.append(3)
    copy.run(max_files=1)
    assert copy.ids() == [1, 2, 3]
    assert [n for n in copy.sizes() if n] == [2, 1]

    copy.append(4)
    copy.append(5)
    copy.run(max_files=1)
    assert copy.ids() == [1, 2, 3, 4, 5]
    assert [n for n in copy.sizes() if n] == [2, 1, 1, 1]


def test_batch_of_the_first_rows_has_the_same_rows_when_it_is_repeated(copy: Copy) -> None:
    copy.append(1, 2)
    copy.run()
    copy.append(3)
    copy.forget(0)  # begun, and not recorded: neither in the checkpoint nor in the table
    for version in range(DeltaTable(copy.target).version() + 1):
        copy.undo(version)
    copy.run()
    assert copy.ids() == [1, 2, 3]
    assert [n for n in copy.sizes() if n] == [2, 1]


def test_query_begins_where_its_first_run_began(copy: Copy) -> None:
    copy.append(1)
    copy.run(start="latest")  # nothing to read, so no batch is recorded
    copy.append(2)
    copy.run(start="latest")
    assert copy.ids() == [2]


def test_start_is_a_version(copy: Copy) -> None:
    for i in (1, 2, 3):
        copy.append(i)
    copy.run(start=1)
    assert copy.ids() == [2, 3]


@pytest.mark.parametrize(
    ("options", "ids"),
    [({}, None), ({"skip_change_commits": True}, [2, 3, 4]), ({"ignore_deletes": True}, [2, 3, 4])],
    ids=["default", "skip", "ignore"],
)
def test_commit_that_deletes_rows_ends_the_query_unless_it_is_ignored(
    copy: Copy, options: dict[str, bool], ids: Sequence[int] | None
) -> None:
    copy.append(1)
    copy.append(2)
    DeltaTable(copy.source).delete("id = 1")
    copy.append(3)
    copy.append(4)
    if ids is not None:
        copy.run(start=1, **options)
        assert copy.ids() == ids
        return
    with pytest.raises(RowsChangedError, match=re.escape("Version 2 of")):
        copy.run(start=1)
    assert copy.ids() == [2]


def test_deleted_rows_of_the_table_are_not_read(copy: Copy) -> None:
    copy.append(1, 2, 3, configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(copy.source).delete("id = 2")
    copy.run()
    assert copy.ids() == [1, 3]


def test_query_ends_before_another_schema_and_goes_on_with_it(copy: Copy) -> None:
    copy.append(1)
    copy.run()
    rows = ds.read_stream(copy.spark, copy.source)
    copy.append(2)
    wider = pa.table({"id": pa.array([3], pa.int64()), "name": ["c"]})
    write_deltalake(copy.source, wider, mode="append", schema_mode="merge")
    with pytest.raises(StreamSchemaError, match="schema changed after read_stream"):
        ds.write_stream(rows, copy.target, checkpoint=copy.folder / "cp").awaitTermination()
    copy.run()
    assert copy.ids() == [1, 2, 3]
    assert DeltaTable(copy.target).to_pyarrow_table().sort_by("id")["name"].to_pylist() == [None, None, "c"]


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_query_goes_on_behind_a_change_that_older_rows_do_not_fit(copy: Copy, change: str) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "x": pa.array([5], pa.int64())})
    write_deltalake(copy.source, rows, configuration={"delta.columnMapping.mode": "name"})
    copy.run(columns=["id"])
    alter = DeltaTable(copy.source).alter
    if change == "rename":
        alter.rename_column("x", "y")
    else:
        alter.drop_column("x")
    copy.append(2)
    copy.run(columns=["id"])
    assert copy.ids() == [1, 2]


def test_error_of_a_query_has_its_type_and_attributes(copy: Copy) -> None:
    copy.append(1)
    copy.append(2)
    DeltaTable(copy.source).delete("id = 1")
    rows = ds.read_stream(copy.spark, copy.source, start=1)
    query = ds.write_stream(rows, copy.target, checkpoint=copy.folder / "cp")
    with pytest.raises(RowsChangedError) as caught:
        query.awaitTermination()
    assert caught.value.version == 2
    found = query.exception()
    assert isinstance(found, StreamingQueryException)
    assert isinstance(found.__cause__, RowsChangedError)
    assert found.__cause__.version == 2


def test_plan_of_a_batch_contains_no_python(copy: Copy) -> None:
    copy.append(1)
    query = copy.run()
    plan = query._jsq.explainInternal(False)
    assert "Python" not in plan
    assert "FileScan parquet" in plan


def test_version_that_does_not_exist_is_rejected(copy: Copy) -> None:
    copy.append(1)
    with pytest.raises(InvalidArgumentError, match="to begin with version 5"):
        ds.read_stream(copy.spark, copy.source, start=5)
