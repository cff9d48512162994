"""Streams into tables: every batch is committed once, from whichever state a query is started again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.engines.spark import stream_write
from delta_core.errors import ConstraintViolationError, InvalidArgumentError

pytestmark = pytest.mark.spark


class Stream:
    """Rows in JSON files that a query writes into a table."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.table = folder / "table"
        self._count = 0
        (folder / "in").mkdir()

    @property
    def rows(self) -> Any:
        return self.spark.readStream.schema("id long").json(str(self.folder / "in"))

    def add(self, *ids: int) -> None:
        lines = "".join(json.dumps({"id": i}) + "\n" for i in ids)
        self._count += 1
        (self.folder / "in" / f"{self._count}.json").write_text(lines)

    def run(self, rows: Any = None, **options: Any) -> str:
        """Write what there is, and return the query's id."""
        rows = self.rows if rows is None else rows
        query = ds.write_stream(
            rows, self.table, checkpoint=self.folder / "cp", trigger={"availableNow": True}, **options
        )
        query.awaitTermination()
        return str(query.id)

    def ids(self) -> list[int]:
        return sorted(DeltaTable(str(self.table)).to_pyarrow_table()["id"].to_pylist())

    def forget(self, batch: int) -> None:
        """Set the checkpoint to the state in which the batch was begun and not recorded."""
        for name in (str(batch), f".{batch}.crc"):
            (self.folder / "cp" / "commits" / name).unlink(missing_ok=True)

    def undo(self, version: int) -> None:
        """Set the table to the state in which the version's files are written and not committed."""
        for suffix in ("json", "crc"):
            (self.table / "_delta_log" / f"{version:020}.{suffix}").unlink(missing_ok=True)


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


def fails(before: bool) -> Callable[..., Any]:
    """Return a write that fails before or after its commit."""

    def write(*args: Any, **kwargs: Any) -> None:
        if not before:
            ds.write(*args, **kwargs)
        raise RuntimeError("the driver was lost")

    return write


def test_batches_are_commits_with_the_query_and_batch_as_transaction(stream: Stream) -> None:
    stream.add(1, 2)
    query = stream.run(properties={"delta.appendOnly": "true"})
    stream.add(3)
    assert stream.run() == query

    assert stream.ids() == [1, 2, 3]
    table = DeltaTable(str(stream.table))
    assert table.version() == 1
    assert table.transaction_version(query) == 1
    assert table.metadata().configuration["delta.appendOnly"] == "true"


def test_history_names_batches_as_delta_spark_does(stream: Stream) -> None:
    stream.add(1)
    query = stream.run()
    stream.add(2)
    stream.run()
    found = DeltaTable(str(stream.table)).history()
    assert [entry["operation"] for entry in found] == ["STREAMING UPDATE"] * 2
    assert [entry["operationParameters"] for entry in found] == [
        {"outputMode": "Append", "queryId": query, "epochId": str(number)} for number in (1, 0)
    ]
    assert found[0]["isBlindAppend"]


def test_batch_is_written_once_from_every_state_of_the_checkpoint(stream: Stream) -> None:
    stream.add(1)
    stream.run()
    stream.add(2)
    stream.run()

    stream.forget(1)  # the commit exists, and the checkpoint does not record it
    stream.run()
    assert stream.ids() == [1, 2]
    assert DeltaTable(str(stream.table)).version() == 1

    stream.forget(1)  # the files are written, and the commit does not exist
    stream.undo(1)
    assert stream.ids() == [1]
    stream.run()
    assert stream.ids() == [1, 2]
    assert DeltaTable(str(stream.table)).version() == 1


@pytest.mark.parametrize("before", [True, False], ids=["before the commit", "after the commit"])
def test_batch_that_fails_is_written_once_by_the_next_run(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    stream.add(1)
    with monkeypatch.context() as patched:
        patched.setattr(stream_write, "write", fails(before))
        with pytest.raises(Exception, match="the driver was lost"):
            stream.run()
    stream.add(2)
    stream.run()

    assert stream.ids() == [1, 2]
    assert DeltaTable(str(stream.table)).version() == 1


def test_error_in_a_function_of_foreach_batch_has_its_type(stream: Stream) -> None:
    stream.add(1)
    writer = stream.rows.writeStream.foreachBatch(lambda rows, _: ds.write(rows, stream.table, "nothing"))
    query = writer.option("checkpointLocation", str(stream.folder / "cp")).trigger(availableNow=True).start()
    with pytest.raises(InvalidArgumentError, match="nothing"):
        query.awaitTermination()
    assert isinstance(query.exception().__cause__, InvalidArgumentError)


def test_complete_replaces_the_rows_by_the_result(stream: Stream) -> None:
    def run() -> dict[int, int]:
        counts = stream.rows.selectExpr("id % 2 AS id").groupBy("id").count()
        stream.run(counts, mode="complete")
        rows = DeltaTable(str(stream.table)).to_pyarrow_table().to_pylist()
        return {r["id"]: r["count"] for r in rows}

    stream.add(1, 2, 3)
    assert run() == {0: 1, 1: 2}
    stream.add(4)
    assert run() == {0: 2, 1: 2}


def test_rejected_batch_leaves_the_table_as_it_was(stream: Stream) -> None:
    stream.add(1)
    stream.run()
    DeltaTable(str(stream.table)).alter.add_constraint({"small": "id < 10"})
    stream.add(2, 30)
    with pytest.raises(ConstraintViolationError, match="small") as caught:
        stream.run()
    assert caught.value.facts["name"] == "small"
    assert stream.ids() == [1]
    assert len([*stream.table.rglob("*.parquet")]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "update"}, "Found mode 'update', expected append or complete"),
        ({"txn": ("a", 1)}, "Found txn= for a stream, which is set for each batch"),
        ({"replace_where": "id = 1"}, "Found replace_where= for a stream"),
        ({"partitions": "id"}, "Found partitions= for a stream, which is no argument of write"),
    ],
)
def test_argument_that_does_not_fit_a_stream_is_rejected(stream: Stream, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        stream.run(**options)


def test_dataframe_without_a_stream_is_rejected(stream: Stream) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a streaming DataFrame"):
        stream.run(stream.spark.range(1))
