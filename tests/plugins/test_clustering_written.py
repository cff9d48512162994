"""Feature clustering, written: the domain holds physical paths, and every file statistics of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core import DeltaTable
from delta_core.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    ConcurrentAppendError,
    CorruptTableError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.transaction import CommitResult
from delta_core.kernel.snapshot import open_context, open_snapshot
from delta_core.operations.create import create_table
from delta_core.operations.write import WriteOptions, write_table
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, StructType
from delta_core.testing.feature_contract import table_state
from delta_core.testing.table_builder import TableBuilder
from delta_plugins.clustering.logic import clustering_columns
from delta_plugins.clustering.operations import cluster_by
from tests.plugins.written import append, begin, create, peer_rows, rows

INNER = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}]}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "s", "type": INNER},
    {"name": "kind", "type": "string"},
    {"name": "flag", "type": "boolean"},
    {"name": "l", "type": {"type": "array", "elementType": "long", "containsNull": True}},
]
ROWS = {"id": [1], "s": [{"x": 5}], "kind": ["a"], "flag": [True], "l": [[1]]}
FEW = {"delta.dataSkippingNumIndexedCols": "1"}


def clustered(path: Path, *columns: str, **options: Any) -> str:
    filled = [{"nullable": True, "metadata": {}, **f} for f in FIELDS]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": filled}))
    create_table(open_context(str(path / "t")), schema, cluster_by=columns, **options)
    return str(path / "t")


def domain(uri: str) -> Any:
    return json.loads(open_snapshot(uri).domains()["delta.clustering"])["clusteringColumns"]


def test_new_table_has_its_columns_in_the_domain_and_not_in_its_properties(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind", "s.x")
    assert domain(uri) == [["kind"], ["s", "x"]]
    snapshot = open_snapshot(uri)
    assert snapshot.metadata.configuration == {}
    assert snapshot.protocol.writer_features == ("appendOnly", "clustering", "domainMetadata", "invariants")


def test_table_reports_its_clustering_columns_by_logical_names(tmp_path: Path) -> None:
    snapshot = open_snapshot(clustered(tmp_path, "kind", "s.x", properties={"delta.columnMapping.mode": "name"}))
    assert snapshot.plugins.request_values("cluster_by", snapshot.state) == ("kind", "s.x")
    assert snapshot.plugins.request_values("other", snapshot.state) == ()


def test_clustering_column_that_is_gone_is_not_reported_and_not_clustered_by(tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create({"id": "long"}, features=["clustering", "domainMetadata"])
    text = '{"clusteringColumns":[["id"],["gone"]],"domainName":"delta.clustering"}'
    made.commit({"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}})
    snapshot = open_snapshot(made.uri)
    assert snapshot.plugins.request_values("cluster_by", snapshot.state) == ("id",)
    with pytest.raises(SchemaError, match="Clustering column gone"):
        DeltaTable(made.uri).optimize.cluster()


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"clusteringColumns":5}', '{"clusteringColumns":"id"}', "[" * 99_999]
)
def test_damaged_domain_stops_writers_and_no_readers(tmp_path: Path, text: str) -> None:
    uri = clustered(tmp_path, "kind")
    append(uri, pa.table(ROWS))
    damaged = {"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": False}}
    (Path(uri) / "_delta_log" / f"{2:020}.json").write_text(json.dumps(damaged))
    table = DeltaTable(uri)
    assert table.to_pyarrow_table(filters=[("kind", "=", "a")]).num_rows == 1
    assert table.snapshot().plugins.request_values("cluster_by", table.snapshot().state) == ()
    assert "delta.clustering" in table.verify().findings.column("found")[0].as_py()
    for change in (lambda: append(uri, pa.table(ROWS)), lambda: DeltaTable(uri).optimize.cluster()):
        with pytest.raises(CorruptTableError, match=r"Domain delta\.clustering"):
            change()
    table.alter.cluster_by(["id"])  # repairs it
    append(uri, pa.table(ROWS))
    assert domain(uri) == [["id"]]
    assert DeltaTable(uri).to_pyarrow_table().num_rows == 2


def test_files_have_statistics_of_clustering_columns_however_few_are_requested(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind", "s.x", properties=FEW)
    append(uri, pa.table(ROWS))
    (text,) = open_snapshot(uri).files.columns(["stats"]).column("stats").to_pylist()
    assert json.loads(text)["minValues"] == {"id": 1, "kind": "a", "s": {"x": 5}}


def test_first_rows_written_with_the_table_have_them_too(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    options = WriteOptions(cluster_by=["kind"], properties={"delta.dataSkippingNumIndexedCols": "0"})
    write_table(open_context(uri), pa.table({"id": [1], "kind": ["a"]}), options)
    (text,) = open_snapshot(uri).files.columns(["stats"]).column("stats").to_pylist()
    assert json.loads(text)["minValues"] == {"kind": "a"}
    assert peer_rows(uri) == [(1, "a")]


def test_mapped_table_names_physical_columns_so_that_renames_change_nothing(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind", properties={"delta.columnMapping.mode": "name"})
    physical = {f.name: f.metadata["delta.columnMapping.physicalName"] for f in open_snapshot(uri).schema}
    assert domain(uri) == [[physical["kind"]]]
    transaction = begin(uri, "ALTER TABLE")
    names = {"kind": "sort"}
    fields = [Field(names.get(f.name, f.name), f.type, f.nullable, f.metadata) for f in transaction.table.schema]
    transaction.set_metadata(replace(transaction.table.metadata, schema_string=StructType(fields).to_json()))
    transaction.commit()
    append(uri, pa.table({**{k: v for k, v in ROWS.items() if k != "kind"}, "sort": ["a"]}))
    assert domain(uri) == [[physical["kind"]]]
    assert rows(uri, "sort") == ["a"]


def test_plain_names_are_read_too() -> None:
    text = '{"clusteringColumns":["id","kind"]}'
    assert clustering_columns(table_state(["clustering"], domains={"delta.clustering": text})) == (("id",), ("kind",))


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["gone"], ColumnNotFoundError, "gone"),
        (["flag"], SchemaError, "boolean"),
        (["l"], SchemaError, "a list or map"),
        (["s"], SchemaError, "has parts"),
        (["kind", "KIND"], InvalidArgumentError, "twice"),
    ],
)
def test_columns_that_can_not_cluster_are_rejected(
    tmp_path: Path, columns: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        clustered(tmp_path, *columns)
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_partitioned_table_is_not_clustered(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="one of the two"):
        clustered(tmp_path, "id", partition_by=["kind"])


def test_clustering_column_can_not_be_dropped(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind", properties={"delta.columnMapping.mode": "name"})
    transaction = begin(uri, "ALTER TABLE")
    left = StructType([f for f in transaction.table.schema if f.name != "kind"])
    with pytest.raises(SchemaError, match="kind clusters the table and can't be dropped"):
        transaction.set_metadata(replace(transaction.table.metadata, schema_string=left.to_json()))


# --- the operation ------------------------------------------------------------------------------


def test_operation_changes_the_columns_and_ends_clustering(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS)
    append(uri, pa.table(ROWS))
    assert cluster_by(open_snapshot(uri), ["id", "kind"]) == 2
    assert domain(uri) == [["id"], ["kind"]]
    cluster_by(open_snapshot(uri), [])
    assert domain(uri) == []
    assert "clustering" not in open_snapshot(uri).state.active
    append(uri, pa.table(ROWS))


def test_operation_rejects_columns_of_which_files_lack_statistics(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=FEW)
    append(uri, pa.table(ROWS))
    with pytest.raises(UnsupportedOperationError, match=r"1 file\(s\) have no statistics of column kind"):
        cluster_by(open_snapshot(uri), ["kind"])
    assert open_snapshot(uri).version == 1


def test_operation_does_not_miss_files_that_are_added_meanwhile(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS, properties=FEW)
    stale = open_snapshot(uri)
    append(uri, pa.table(ROWS))
    with pytest.raises(ConcurrentAppendError):
        cluster_by(stale, ["kind"])


def test_two_changes_of_the_columns_conflict(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind")
    stale = open_snapshot(uri)
    cluster_by(open_snapshot(uri), ["id"])
    with pytest.raises(CommitConflictError):
        cluster_by(stale, ["s.x"])


def test_appends_go_on_while_the_columns_change(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind")
    result: CommitResult = append(uri, pa.table(ROWS))
    assert result.snapshot.state.domains == open_snapshot(uri).state.domains


# --- replaced tables -----------------------------------------------------------------------


@pytest.mark.parametrize(("after", "expected"), [(["id"], [["id"]]), (["s.x", "id"], [["s", "x"], ["id"]]), ([], [])])
def test_replaced_table_has_its_new_columns_in_the_same_commit(tmp_path: Path, after: list[str], expected: Any) -> None:
    """delta-spark's CREATE OR REPLACE: the old clustering goes, whether the new table has one or none."""
    uri = clustered(tmp_path, "kind")
    append(uri, pa.table(ROWS))
    schema = open_snapshot(uri).schema
    DeltaTable.create(uri, schema, mode="overwrite", cluster_by=after)
    snapshot = open_snapshot(uri)
    assert snapshot.version == 2
    assert domain(uri) == expected
    assert snapshot.state.is_active("clustering") is bool(expected)
    append(uri, pa.table(ROWS))
    assert len(rows(uri)) == 1


def test_replaced_table_may_drop_its_clustering_columns_or_be_partitioned(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind")
    DeltaTable.create(uri, pa.schema({"id": pa.int64(), "p": pa.string()}), mode="overwrite", partition_by=["p"])
    assert domain(uri) == []
    append(uri, pa.table({"id": [1], "p": ["x"]}))
    assert rows(uri) == [(1, "x")]


def test_replaced_table_that_was_never_clustered_gets_no_domain(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", FIELDS[:1])
    DeltaTable.create(uri, pa.schema({"id": pa.int64()}), mode="overwrite")
    snapshot = open_snapshot(uri)
    assert snapshot.domains() == {}
    assert snapshot.protocol.writer_features is None
    assert snapshot.metadata.configuration == {}
    DeltaTable.create(uri, pa.schema({"id": pa.int64()}), mode="overwrite", cluster_by=["id"])
    assert domain(uri) == [["id"]]


def test_overwritten_schema_takes_new_clustering_columns_else_keeps_the_old(tmp_path: Path) -> None:
    uri = clustered(tmp_path, "kind")
    new = pa.table({"id": [1], "kind": ["a"], "n": [2]})
    write_table(open_context(uri), new, WriteOptions(mode="overwrite", schema_mode="overwrite"))
    assert domain(uri) == [["kind"]]
    write_table(open_context(uri), new, WriteOptions(mode="overwrite", schema_mode="overwrite", cluster_by=["n"]))
    assert domain(uri) == [["n"]]
    assert open_snapshot(uri).metadata.configuration == {}
    with pytest.raises(SchemaError, match="Column n clusters the table"):
        write_table(open_context(uri), pa.table({"id": [1]}), WriteOptions(mode="overwrite", schema_mode="overwrite"))
