"""Writes that meet another writer, an interrupt or a request that would lose rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentAppendError,
    InvalidArgumentError,
    SchemaError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit import transaction as transactions
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.plugins.committer import Outcome, Proposal
from delta_core.kernel.snapshot import Snapshot, open_context, open_snapshot
from delta_core.kernel.write.source import open_source
from delta_core.operations.create import create_table
from delta_core.operations.write import TableWrite, WriteOptions, run_write
from delta_core.schema.fields import Schema
from delta_core.table.transaction import AddAction


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(uri: str) -> list[str]:
    return sorted(map(repr, open_snapshot(uri).scan().to_table().to_pylist()))


def write_while(uri: str, data: pa.Table, options: WriteOptions, meanwhile: Callable[[], None]) -> None:
    """Write, and let another writer commit between the files and the commit."""

    class Slow(TableWrite):
        def _measure(self) -> None:
            super()._measure()
            meanwhile()

    context, source = open_context(uri), open_source(data)

    def begin(base: Snapshot | None) -> TableWrite:
        return Slow(context, base, source, options)

    run_write(context, options, begin)


@pytest.mark.parametrize("data", [{"a": ["x"], "b": [1]}, {"a": [5], "b": [7]}], ids=["type", "partitions"])
def test_overwritten_schema_conflicts_with_blind_append_under_the_old_one(uri: str, data: dict[str, Any]) -> None:
    write_deltalake(uri, pa.table({"a": [1], "b": [1]}))
    before = {p.name for p in Path(uri).rglob("*.parquet")}
    options = WriteOptions(mode="overwrite", schema_mode="overwrite", partition_by=["b"])
    with pytest.raises(ConcurrentAppendError):
        write_while(
            uri, pa.table(data), options, lambda: write_deltalake(uri, pa.table({"a": [3], "b": [3]}), mode="append")
        )
    assert rows(uri) == ["{'a': 1, 'b': 1}", "{'a': 3, 'b': 3}"]
    assert len({p.name for p in Path(uri).rglob("*.parquet")} - before) == 1


def test_replaced_table_conflicts_with_blind_append(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": [1]}))
    base = open_snapshot(uri)
    write_deltalake(uri, pa.table({"a": [2]}), mode="append")
    with pytest.raises(ConcurrentAppendError):
        create_table(base.context, Schema.from_arrow(pa.schema({"z": pa.string()})), base=base)


def test_overwrite_with_the_schema_goes_before_a_blind_append(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": [1]}))
    write_while(
        uri,
        pa.table({"a": [9]}),
        WriteOptions(mode="overwrite"),
        lambda: write_deltalake(uri, pa.table({"a": [3]}), mode="append"),
    )
    assert rows(uri) == ["{'a': 3}", "{'a': 9}"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupt_after_the_commit_deletes_nothing(uri: str, monkeypatch: pytest.MonkeyPatch, error: type) -> None:
    def interrupted(*args: Any) -> None:
        raise error

    write_deltalake(uri, pa.table({"a": [1]}))
    monkeypatch.setattr(transactions, "run_post_commit", interrupted)
    with pytest.raises(error):
        write_deltalake(uri, pa.table({"a": [2]}), mode="append")
    assert rows(uri) == ["{'a': 1}", "{'a': 2}"]


def test_interrupt_while_the_commit_is_put_deletes_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = StoreCommitter.commit

    def interrupted(self: StoreCommitter, proposal: Proposal) -> Outcome:
        commit(self, proposal)
        raise KeyboardInterrupt

    write_deltalake(uri, pa.table({"a": [1]}))
    monkeypatch.setattr(StoreCommitter, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_deltalake(uri, pa.table({"a": [2]}), mode="append")
    assert rows(uri) == ["{'a': 1}", "{'a': 2}"]


def test_dynamic_overwrite_reports_partitions_apart_whatever_their_texts_hold(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": ["a\x1fvb", "a"], "b": ["c", "b\x1fvc"], "x": [1, 2]}), partition_by=["a", "b"])
    new = pa.table({"a": ["a\x1fvb"], "b": ["c"], "x": [9]})
    write_deltalake(uri, new, mode="overwrite", partition_overwrite="dynamic")
    assert sorted(open_snapshot(uri).scan(["x"]).to_table()["x"].to_pylist()) == [2, 9]


@pytest.mark.parametrize("part", [{"predicate": "a = 1"}, {"partition_overwrite": "dynamic"}])
def test_schema_is_not_overwritten_with_part_of_the_rows(uri: str, part: dict[str, Any]) -> None:
    write_deltalake(uri, pa.table({"a": [1, 2], "c": [1, 2]}), partition_by="a")
    with pytest.raises(InvalidArgumentError, match="every row"):
        write_deltalake(uri, pa.table({"c": [1]}), mode="overwrite", schema_mode="overwrite", **part)


def test_registered_files_never_replace_part_of_a_file(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": [1, 2, 3], "p": [1, 1, 2]}))
    pq.write_table(pa.table({"a": [9], "p": [9]}), uri + "/new.parquet")
    table = DeltaTable(uri)
    add = AddAction("new.parquet", Path(uri, "new.parquet").stat().st_size, {}, 0, True, "")
    with pytest.raises(InvalidArgumentError, match="no partition column"):
        table.create_write_transaction([add], "overwrite", table.schema(), partition_filters=[("a", "=", 1)])
    assert len(rows(uri)) == 3


def test_values_of_a_void_column_are_rejected_not_dropped(uri: str) -> None:
    write_deltalake(uri, pa.table({"a": [1], "v": pa.nulls(1)}))
    write_deltalake(uri, pa.table({"a": [2], "v": pa.array([None], pa.string())}), mode="append")
    with pytest.raises(SchemaMismatchError, match="not null"):
        write_deltalake(uri, pa.table({"a": [3], "v": ["s"]}), mode="append")
    write_deltalake(uri, pa.table({"a": [3], "v": ["s"]}), mode="append", schema_mode="merge")
    assert rows(uri)[-1] == "{'a': 3, 'v': 's'}"


VOIDS = {
    "all": {"a": pa.null(), "b": pa.null()},
    "all but partitions": {"p": pa.int64(), "v": pa.null()},
    "struct": {"a": pa.int64(), "s": pa.struct({"x": pa.null()})},
    "list": {"a": pa.int64(), "l": pa.list_(pa.null())},
    "map": {"a": pa.int64(), "m": pa.map_(pa.string(), pa.null())},
    "struct in a list": {"a": pa.int64(), "l": pa.list_(pa.struct({"x": pa.null(), "y": pa.int64()}))},
}


@pytest.mark.parametrize("columns", VOIDS.values(), ids=VOIDS)
def test_rows_of_a_table_whose_files_can_not_hold_them_are_rejected(uri: str, columns: dict[str, pa.DataType]) -> None:
    """Protocol, Void Type: such tables are created, read and altered, and take no rows until another type is there."""
    schema = pa.schema(columns)
    partitions = ["p"] if "p" in columns else None
    with pytest.raises(UnsupportedOperationError, match="void"):
        write_deltalake(uri, pa.Table.from_pylist([{}], schema), partition_by=partitions)
    assert not Path(uri).exists()
    DeltaTable.create(uri, schema, partition_by=partitions)
    with pytest.raises(UnsupportedOperationError, match="void"):
        write_deltalake(uri, pa.Table.from_pylist([{}], schema), mode="append")
    assert DeltaTable(uri).version() == 0
    assert not list(Path(uri).rglob("*.parquet"))
    assert DeltaTable(uri).to_pyarrow_table().schema.names == schema.names


def test_table_of_voids_takes_rows_once_a_column_has_a_type(uri: str) -> None:
    DeltaTable.create(uri, pa.schema({"a": pa.null(), "b": pa.null()}))
    write_deltalake(uri, pa.table({"b": [1]}), mode="append", schema_mode="merge")
    assert rows(uri) == ["{'a': None, 'b': 1}"]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct({"x": pa.int64()}), pa.null()], ids=str)
def test_partition_column_without_a_text_form_is_rejected(uri: str, kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="no text form"):
        DeltaTable.create(uri, pa.schema({"a": pa.int64(), "p": kind}), partition_by="p")
    assert not Path(uri).exists()


def test_partition_column_named_twice_is_rejected(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="twice"):
        DeltaTable.create(uri, pa.schema({"a": pa.int64(), "p": pa.int64(), "q": pa.int64()}), partition_by=["p", "P"])


@pytest.mark.parametrize("name", ["delta.enableDeletionVectors", "delta.isolationLevel", "DELTA.checkpointinterval"])
def test_known_property_with_an_impossible_value_is_rejected(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected"):
        DeltaTable.create(uri, pa.schema({"a": pa.int64()}), configuration={name: "maybe"})
    assert not Path(uri).exists()


def test_property_is_kept_as_the_protocol_spells_it_and_custom_ones_as_they_are(uri: str) -> None:
    DeltaTable.create(uri, pa.schema({"a": pa.int64()}), configuration={"Delta.CheckpointInterval": "7", "My.Own": "X"})
    assert open_snapshot(uri).metadata.configuration == {"delta.checkpointInterval": "7", "My.Own": "X"}


def test_policy_v2_provides_its_feature_and_its_checkpoints(uri: str) -> None:
    DeltaTable.create(uri, pa.schema({"a": pa.int64()}), configuration={"delta.checkpointPolicy": "v2"})
    write_deltalake(uri, pa.table({"a": [1]}), mode="append")
    assert "v2Checkpoint" in (open_snapshot(uri).protocol.reader_features or ())
    DeltaTable(uri).create_checkpoint()
    assert list(Path(uri, "_delta_log", "_sidecars").iterdir())


def test_commit_to_a_table_that_was_deleted_begins_no_log(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"id": [1]}))
    transaction = open_snapshot(uri).begin("MANUAL")
    transaction.set_transaction("app", 1)
    shutil.rmtree(uri)
    with pytest.raises(TableNotFoundError, match="version 1 would follow nothing"):
        transaction.commit()
    assert not (tmp_path / "t" / "_delta_log").exists()
