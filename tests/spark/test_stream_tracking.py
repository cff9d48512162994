"""Streams that keep their schemas: every version is read with its own, from any state of the checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError, LogError, StreamRestartError, StreamSchemaError

pytestmark = pytest.mark.spark

PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableChangeDataFeed": "true",
    "delta.enableTypeWidening": "true",
}
ALWAYS = {"allow_source_column_drop": "always", "allow_source_column_rename": "always"}


class Tracked:
    """A query that keeps its schemas, and stores each batch in memory."""

    def __init__(self, spark: Any, folder: Path, kind: str) -> None:
        self.spark = spark
        self.folder = folder
        self.source = folder / "source"
        self.kind = kind
        self.log = folder / "cp" / "schemas"
        #: The rows that each batch has, by its number.
        self.batches: dict[int, list[dict[str, Any]]] = {}

    def append(self, **columns: int) -> None:
        rows = pa.table({n: pa.array([v], pa.int64() if n == "id" else pa.int32()) for n, v in columns.items()})
        write_deltalake(self.source, rows, mode="append", configuration=PROPERTIES, schema_mode="merge")

    @property
    def alter(self) -> Any:
        return DeltaTable(self.source).alter

    def run(self, location: Any = None, **options: Any) -> None:
        read = ds.read_stream if self.kind == "rows" else ds.read_changes_stream
        rows = read(self.spark, self.source, schema_tracking_location=location or self.log, **options)
        writer = rows.writeStream.foreachBatch(self._note).trigger(availableNow=True)
        writer.option("checkpointLocation", str(self.folder / "cp")).start().awaitTermination()

    def _note(self, rows: Any, number: int) -> None:
        found = [r.asDict() for r in rows.collect()]
        self.batches[number] = [
            {n: v for n, v in r.items() if n not in ("_commit_version", "_commit_timestamp", "_change_type")}
            for r in found
        ]

    def rows(self) -> list[dict[str, Any]]:
        return sorted((r for batch in self.batches.values() for r in batch), key=lambda r: r["id"])

    def entries(self) -> list[Path]:
        (folder,) = self.log.iterdir()
        return sorted((f for f in folder.iterdir() if f.name.isdigit()), key=lambda f: int(f.name))


@pytest.fixture(params=["rows", "changes"])
def tracked(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Tracked:
    return Tracked(spark, tmp_path, request.param)


def test_each_version_is_read_with_its_own_schema(tracked: Tracked) -> None:
    tracked.append(id=1, x=10)
    tracked.append(id=2, x=20, y=30)
    tracked.alter.rename_column("x", "z")
    tracked.alter.drop_column("y")  # of two changes without rows between them the last one is stored
    tracked.append(id=3, z=40)
    with pytest.raises(StreamRestartError, match=r"Version 1 of .* column y was added"):
        tracked.run(start=0)
    assert tracked.rows() == [{"id": 1, "x": 10}]
    with pytest.raises(StreamRestartError, match="Version 2 of ") as caught:
        tracked.run(start=0)
    assert caught.value.version == 3
    assert tracked.rows() == [{"id": 1, "x": 10}, {"id": 2, "x": 20, "y": 30}]

    for allowed in ({}, {"allow_source_column_drop": "always"}, {"allow_source_column_drop": 3}):
        with pytest.raises(StreamSchemaError, match="column x was renamed to z") as blocked:
            tracked.run(start=0, **allowed)
        assert not isinstance(blocked.value, StreamRestartError)
        assert blocked.value.facts["kinds"] == (("Rename",) if allowed else ("Drop", "Rename"))
    tracked.run(start=0, allow_source_column_drop=3, allow_source_column_rename="always")
    assert tracked.rows()[2:] == [{"id": 3, "z": 40}]
    assert len(tracked.entries()) == 3
    tracked.append(id=4, z=50)
    tracked.run(**ALWAYS)
    assert tracked.rows()[3:] == [{"id": 4, "z": 50}]


def test_change_of_a_type_is_allowed_by_the_session(tracked: Tracked) -> None:
    tracked.append(id=1, x=10)
    tracked.run()
    tracked.alter.widen_type("x", "long")
    tracked.append(id=2, x=11)
    with pytest.raises(StreamRestartError):
        tracked.run()
    with pytest.raises(StreamSchemaError, match="changed its type from integer to long") as caught:
        tracked.run()
    (setting,) = re.findall(r"spark\.\S+ckpt_\S+", str(caught.value))
    of_query, of_all = (setting, "1"), (setting.rpartition(".")[0], "always")
    key, value = of_query if tracked.kind == "rows" else of_all
    tracked.spark.conf.set(key, value)
    try:
        tracked.run()
    finally:
        tracked.spark.conf.unset(key)
    assert tracked.rows() == [{"id": 1, "x": 10}, {"id": 2, "x": 11}]


def test_query_goes_on_from_every_state_of_its_checkpoint(tracked: Tracked) -> None:
    def forget(batch: int) -> None:
        for name in (str(batch), f".{batch}.crc"):
            (tracked.folder / "cp" / "commits" / name).unlink(missing_ok=True)

    tracked.append(id=1, x=10)
    tracked.run()
    tracked.append(id=2, x=20)
    tracked.alter.drop_column("x")
    tracked.append(id=3)
    with pytest.raises(StreamRestartError):
        tracked.run()
    first = [{"id": 1, "x": 10}, {"id": 2, "x": 20}]
    assert tracked.rows() == first
    # the batch before the change was written and not recorded, and the new schema was not stored
    entry = tracked.entries()[-1]
    entry.unlink()
    (entry.parent / f".{entry.name}.crc").unlink()
    forget(1)
    tracked.batches.pop(1)
    with pytest.raises(StreamRestartError):
        tracked.run()
    assert tracked.rows() == first
    # the new schema was stored, and nothing was read with it; then a batch with it is not recorded
    tracked.run(**ALWAYS)
    expected = [*first, {"id": 3}]
    assert tracked.rows() == expected
    forget(2)
    tracked.batches.pop(2)
    tracked.append(id=4)
    tracked.run(**ALWAYS)
    assert tracked.rows() == [*expected, {"id": 4}]


def test_schemas_are_tracked_from_the_middle_of_a_stream(tracked: Tracked) -> None:
    tracked.append(id=1, x=10)
    read = ds.read_stream if tracked.kind == "rows" else ds.read_changes_stream
    rows = read(tracked.spark, tracked.source)
    writer = rows.writeStream.foreachBatch(tracked._note).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tracked.folder / "cp")).start().awaitTermination()
    tracked.append(id=2, x=20)
    tracked.alter.drop_column("x")
    tracked.append(id=3)
    # its schema so far is stored first; the DataFrame has a later one
    with pytest.raises(StreamRestartError, match="Call it again"):
        tracked.run()
    with pytest.raises(StreamRestartError, match="Version 2 of"):
        tracked.run()
    tracked.run(**ALWAYS)
    assert tracked.rows() == [{"id": 1, "x": 10}, {"id": 2, "x": 20}, {"id": 3}]


def test_place_of_schemas_that_does_not_fit_is_rejected(tracked: Tracked) -> None:
    tracked.append(id=1, x=10)
    with pytest.raises(InvalidArgumentError, match="expected a folder below the query's checkpoint"):
        tracked.run(tracked.folder / "elsewhere")
    with pytest.raises(InvalidArgumentError, match="without schema_tracking_location"):
        ds.read_stream(tracked.spark, tracked.source, allow_source_column_drop="always")
    with pytest.raises(InvalidArgumentError, match="Found allow_source_column_drop='sometimes'"):
        tracked.run(allow_source_column_drop="sometimes")
    with pytest.raises(InvalidArgumentError, match="fail_on_data_loss=False"):
        tracked.run(fail_on_data_loss=False)
    tracked.run()
    (entry,) = tracked.entries()
    text = entry.read_text()
    (entry.parent / f".{entry.name}.crc").unlink()
    entry.write_text(text.replace("sources/0", "sources/7"))
    with pytest.raises(InvalidArgumentError, match="belong to the source"):
        tracked.run()
    entry.write_text(text[:40])
    with pytest.raises(LogError, match="can't be read"):
        tracked.run()
