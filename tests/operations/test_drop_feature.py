"""ALTER TABLE DROP FEATURE: rows and protocol afterwards for every feature, rejections, history, lost races."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import Struct

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    CatalogRequiredError,
    CommitError,
    FeatureRequirementError,
    InvalidArgumentError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.operations.feature import drop as feature_drop, history as feature_history, steps as feature_steps
from delta_core.operations.table_rewrite import TableRewrite

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string())])
BY_NAME = {"delta.columnMapping.mode": "name"}
BY_ID = {"delta.columnMapping.mode": "id"}
ROW_IDS = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
WIDENING = {"delta.enableTypeWidening": "true"}
AT_ONCE = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}


class Drop(Struct, frozen=True):
    """A table from which a feature is dropped.

    Parameters
    ----------
    properties : Mapping
        With which it is created; the feature is added unless they switch it on.
    use : function(DeltaTable), optional
        What is done to the table before.
    leaves : tuple of str
        Features that stay in the table, which deltalake does not read.
    """

    properties: Mapping[str, str] = {}
    use: Callable[[DeltaTable], Any] | None = None
    leaves: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()


def rename(table: DeltaTable) -> None:
    """Rename a column to what another one is called in files."""
    table.alter.rename_column("b", "c")
    table.alter.add_column("b", "string")


def widen(table: DeltaTable) -> None:
    table.alter.widen_type("a", "long")
    write_deltalake(table, pa.table({"a": pa.array([2**40]), "b": ["z"]}), mode="append")


def drop_vectors(table: DeltaTable) -> None:
    table.delete("a = 1")
    table.alter.drop_feature("deletionVectors")


DROPS: dict[str, Drop] = {
    "allowColumnDefaults": Drop(),
    "appendOnly": Drop({"delta.appendOnly": "true"}),
    "changeDataFeed": Drop({"delta.enableChangeDataFeed": "true"}),
    "checkConstraints": Drop(
        use=lambda t: (t.alter.add_constraint({"small": "a < 99"}), t.alter.drop_constraint("small"))
    ),
    "checkpointProtection": Drop({**VECTORS, **AT_ONCE}, drop_vectors),
    "clustering": Drop(use=lambda t: t.alter.cluster_by(["a"])),
    "collations": Drop(),
    "columnMapping": Drop(BY_NAME, rename),
    "columnMappingUsageTracking": Drop(BY_NAME, leaves=("columnMapping",)),
    "deletionVectors": Drop(VECTORS, lambda t: t.delete("a = 1")),
    "domainMetadata": Drop({"delta.feature.domainMetadata": "supported"}),
    "generatedColumns": Drop(),
    "icebergCompatV1": Drop({"delta.enableIcebergCompatV1": "true", **BY_NAME}, leaves=("columnMapping",)),
    "icebergCompatV2": Drop({"delta.enableIcebergCompatV2": "true", **BY_NAME}, leaves=("columnMapping",)),
    "icebergCompatV3": Drop(
        {"delta.enableIcebergCompatV3": "true", **BY_NAME, **ROW_IDS}, leaves=("columnMapping", "rowTracking")
    ),
    "icebergWriterCompatV1": Drop(
        {"delta.enableIcebergWriterCompatV1": "true", "delta.enableIcebergCompatV2": "true", **BY_ID},
        leaves=("columnMapping", "icebergCompatV2"),
    ),
    "icebergWriterCompatV3": Drop(
        {"delta.enableIcebergCompatV3": "true", **BY_ID, **ROW_IDS}, leaves=("columnMapping", "icebergCompatV3")
    ),
    "identityColumns": Drop(),
    "inCommitTimestamp": Drop({"delta.enableInCommitTimestamps": "true"}),
    "invariants": Drop(),
    "materializePartitionColumns": Drop(partition_by=("b",)),
    "rowTracking": Drop(ROW_IDS, lambda t: t.delete("a = 1")),
    "timestampNtz": Drop(),
    "typeWidening": Drop(WIDENING, widen),
    "v2Checkpoint": Drop({"delta.checkpointPolicy": "v2"}, lambda t: t.create_checkpoint()),
    "vacuumProtocolCheck": Drop(),
    "variantType": Drop(),
}
#: Features that can't be dropped: documented as such in docs/administration.md.
REJECTED = {
    "catalogManaged": (CatalogRequiredError, "decided by a catalog"),
    "coordinatedCommits-preview": (UnsupportedOperationError, "does not provide the steps"),
    "example.rowChecksum": (UnsupportedOperationError, "does not provide the steps"),
    "rowIds": (UnsupportedOperationError, "does not provide the steps"),
    "variantShredding": (UnsupportedOperationError, "does not provide the steps"),
}
#: Features whose use rejects the drop, with what the message names.
USES: dict[str, tuple[Callable[[str], Any], str]] = {
    "allowColumnDefaults": (lambda uri: DeltaTable(uri).alter.set_default("b", "'x'"), "column b"),
    "checkConstraints": (lambda uri: DeltaTable(uri).alter.add_constraint({"small": "a < 99"}), "constraint small"),
    "invariants": (lambda uri: DeltaTable(uri).alter.set_column_not_null("a"), "column a"),
    "timestampNtz": (lambda uri: DeltaTable(uri).alter.add_column("t", "timestamp_ntz"), "column t"),
    "variantType": (lambda uri: DeltaTable(uri).alter.add_column("v.w", "variant"), "column v.w"),
}


def make(path: Path, properties: Mapping[str, str], partition_by: tuple[str, ...] = ()) -> DeltaTable:
    table = DeltaTable.create(
        str(path / "t"), SCHEMA, configuration=dict(properties), partition_by=list(partition_by) or None
    )
    for i in range(2):
        write_deltalake(table, pa.table({"a": [i, i + 10], "b": ["x", "y"]}, SCHEMA), mode="append")
    return DeltaTable(str(path / "t"))


def rows(table: Any) -> list[str]:
    return sorted(map(str, pa.table(table.to_pyarrow_table()).to_pylist()))


def versions_of(uri: str) -> dict[int, list[str]]:
    """Return the rows of every version that can be read."""
    first = min(int(p.name[:20]) for p in (Path(uri) / "_delta_log").glob("*.json") if p.name[:20].isdigit())
    return {v: rows(DeltaTable(uri, version=v)) for v in range(first, DeltaTable(uri).version() + 1)}


def test_every_installed_feature_is_dropped_by_a_test_or_rejected_by_one() -> None:
    registry = PluginRegistry()
    installed = {registry.load(name).FEATURE.name for name in registry.names()}
    # the example packages have tests of their own
    assert installed - {"acme.functions", "acme.origin"} == {*DROPS, *REJECTED, "example.packedUuids", "example.rowTtl"}
    assert not DROPS.keys() & REJECTED.keys()


@pytest.mark.parametrize("name", DROPS)
def test_dropped_feature_leaves_rows_and_is_gone(tmp_path: Path, name: str) -> None:
    drop = DROPS[name]
    truncate = name == "checkpointProtection"
    table = make(tmp_path, drop.properties, drop.partition_by)
    uri = str(tmp_path / "t")
    if drop.use is not None:
        drop.use(table)
    if name not in DeltaTable(uri).snapshot().state.features:
        DeltaTable(uri).alter.add_feature(name, allow_protocol_versions_increase=True)
    table = DeltaTable(uri)
    before, older = rows(table), versions_of(uri)
    steps = table.alter.drop_feature(name, truncate_history=truncate, dry_run=True)
    assert DeltaTable(uri).version() == table.version()
    assert table.alter.drop_feature(name, truncate_history=truncate) == steps
    left = DeltaTable(uri)
    assert name not in left.snapshot().state.features
    assert name not in str(left.protocol())
    assert set(drop.leaves) <= left.snapshot().state.features
    assert rows(left) == before
    if not drop.leaves:
        assert rows(deltalake.DeltaTable(uri)) == before
    if not truncate:
        now = versions_of(uri)
        assert {v: now[v] for v in older} == older
        assert all(content == before for v, content in now.items() if v >= max(older))
    switches = drop.properties.items() - {*BY_NAME.items(), *BY_ID.items(), *ROW_IDS.items(), *AT_ONCE.items()}
    assert drop.leaves or not switches & left.metadata().configuration.items()
    report = left.verify(deep=True)
    assert report.ok, report.to_text()
    with pytest.raises(InvalidArgumentError, match="does not support the feature"):
        left.alter.drop_feature(name)
    # it can be used again
    write_deltalake(left, pa.table({"a": [77], "b": ["w"]}), mode="append", schema_mode="merge")
    left.alter.add_feature(name, allow_protocol_versions_increase=True)
    assert len(rows(DeltaTable(uri))) == len(before) + 1


@pytest.mark.parametrize("name", [n for n in REJECTED if n != "rowIds"])
def test_feature_without_a_way_to_drop_it_is_rejected_by_name(tmp_path: Path, name: str) -> None:
    kind, message = REJECTED[name]
    table = make(tmp_path, {})
    if name == "catalogManaged":
        protocol = f"""{{"protocol":{{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["{name}"],
            "writerFeatures":["{name}"]}}}}"""
        (tmp_path / "t" / "_delta_log" / f"{3:020}.json").write_text(protocol.replace("\n", ""))
    else:
        table.alter.add_feature(name, allow_protocol_versions_increase=True)
    # a table that a catalog manages is not even opened without the catalog
    with pytest.raises(kind, match=message):
        DeltaTable(table.table_uri).alter.drop_feature(name)


def test_feature_of_a_draft_is_not_dropped(tmp_path: Path) -> None:
    kind, message = REJECTED["rowIds"]
    table = make(tmp_path, {"delta_core.writeDrafts": "true"})
    table.alter.add_feature("rowIds", allow_protocol_versions_increase=True)
    with pytest.raises(kind, match=message):
        DeltaTable(table.table_uri).alter.drop_feature("rowIds")


@pytest.mark.parametrize("name", USES)
def test_feature_that_a_part_of_the_definition_uses_is_not_dropped(tmp_path: Path, name: str) -> None:
    use, user = USES[name]
    make(tmp_path, {**BY_NAME, "delta.feature.allowColumnDefaults": "supported"})
    uri = str(tmp_path / "t")
    if name == "variantType":
        DeltaTable(uri).alter.add_column("v", "struct<x: int>")
    use(uri)
    table = DeltaTable(uri)
    for dry_run in (True, False):
        with pytest.raises(UnsupportedOperationError, match=rf"can't be dropped: the table uses it for {user}\."):
            table.alter.drop_feature(name, dry_run=dry_run)
    assert DeltaTable(uri).version() == table.version()


def test_feature_that_another_one_requires_is_not_dropped(tmp_path: Path) -> None:
    with pytest.raises(FeatureRequirementError, match="rowTracking"):
        make(tmp_path, ROW_IDS).alter.drop_feature("domainMetadata")


def test_row_tracking_of_a_table_with_rows_assigns_ids_to_every_file(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    table.alter.set_table_properties(ROW_IDS)
    ids = DeltaTable(table.table_uri).snapshot().scan(metadata=("_row_id",)).to_table().column("_row_id")
    assert sorted(ids.to_pylist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("dry_run", [True, False])
def test_mapping_of_a_column_whose_name_files_may_not_have_is_not_dropped(tmp_path: Path, dry_run: bool) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": [1, 2]}), configuration=BY_NAME)
    table = DeltaTable(str(tmp_path))
    table.alter.rename_column("a", "b c")
    before = sorted(p.name for p in tmp_path.glob("*.parquet"))
    with pytest.raises(UnsupportedOperationError, match=r"the table uses it for column b c\. Rename them"):
        table.alter.drop_feature("columnMapping", dry_run=dry_run)
    assert sorted(p.name for p in tmp_path.glob("*.parquet")) == before
    table.alter.rename_column("b c", "b")
    table.alter.drop_feature("columnMapping")
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().to_pydict() == {"b": [1, 2]}


# --- types that became wider ---------------------------------------------------------------

WIDER: dict[str, tuple[pa.DataType, Any, str]] = {
    "c": (pa.int8(), 1, "short"),
    "i": (pa.int32(), 2, "long"),
    "f": (pa.float32(), 0.5, "double"),
    "d": (pa.decimal128(5, 2), Decimal("1.50"), "decimal(12,4)"),
    "day": (pa.date32(), date(2020, 1, 2), "timestamp_ntz"),
    "s.x": (pa.int16(), 3, "int"),
    "l.element": (pa.int32(), 4, "long"),
    "m.value": (pa.int32(), 5, "double"),
    "n.element.y": (pa.int16(), 6, "long"),
}


def narrow_rows() -> pa.Table:
    kinds = {name: kind for name, (kind, _, _) in WIDER.items()}
    values = {name: value for name, (_, value, _) in WIDER.items()}
    return pa.table(
        {
            **{n: pa.array([values[n], None], kinds[n]) for n in ("c", "i", "f", "d", "day")},
            "s": pa.array([{"x": 3}, None], pa.struct([("x", kinds["s.x"])])),
            "l": pa.array([[4, None], []], pa.list_(kinds["l.element"])),
            "m": pa.array([[("k", 5)], None], pa.map_(pa.string(), kinds["m.value"])),
            "n": pa.array([[{"y": 6}], None], pa.list_(pa.struct([("y", kinds["n.element.y"])]))),
            "p": pa.array([7, 8], pa.int32()),
        }
    )


@pytest.mark.parametrize("properties", [{}, BY_NAME, BY_ID], ids=["names", "mapped by name", "mapped by id"])
def test_files_with_narrower_types_are_rewritten_and_no_others(tmp_path: Path, properties: dict[str, str]) -> None:
    uri = str(tmp_path)
    write_deltalake(uri, narrow_rows(), configuration={**properties, **WIDENING}, partition_by=["p"])
    table = DeltaTable(uri)
    narrow = set(table.file_uris())
    for name, (_, _, wider) in WIDER.items():
        table.alter.widen_type(name, wider)
    table.alter.widen_type("p", "long")
    write_deltalake(uri, table.to_pyarrow_table(), mode="append")
    table = DeltaTable(uri)
    wide = set(table.file_uris()) - narrow
    before, older = rows(table), versions_of(uri)
    table.alter.drop_feature("typeWidening")
    left = DeltaTable(uri)
    assert wide < set(left.file_uris())
    assert not narrow & set(left.file_uris())
    assert rows(left) == before
    if not properties:
        assert rows(deltalake.DeltaTable(uri)) == before
        types = {str(pq.read_schema(path).remove_metadata()) for path in left.file_uris()}
        assert len(types) == 1
    assert "typeChanges" not in left.snapshot().metadata.schema_string
    assert {v: content for v, content in versions_of(uri).items() if v in older} == older
    report = left.verify(deep=True)
    assert report.ok, report.to_text()


# --- history -------------------------------------------------------------------------------


def age(uri: str, hours: float) -> None:
    """Make all files of the log older."""
    for path in (Path(uri) / "_delta_log").iterdir():
        if path.is_file():
            moment = path.stat().st_mtime - hours * 3600
            os.utime(path, (moment, moment))


@pytest.mark.parametrize(
    "name", ["checkpointProtection", "columnMapping", "deletionVectors", "typeWidening", "v2Checkpoint"]
)
def test_versions_that_use_the_feature_leave_the_log_once_they_are_old_enough(tmp_path: Path, name: str) -> None:
    drop = DROPS[name]
    table = make(tmp_path, {k: v for k, v in drop.properties.items() if k not in AT_ONCE})
    uri = str(tmp_path / "t")
    assert drop.use is not None
    drop.use(table)
    before = rows(DeltaTable(uri))
    with pytest.raises(UnsupportedOperationError, match="can't be dropped yet") as first:
        DeltaTable(uri).alter.drop_feature(name, truncate_history=True)
    version = DeltaTable(uri).version()
    assert rows(DeltaTable(uri)) == before
    wait = first.value.retry_after - datetime.now(UTC)  # type: ignore[attr-defined]
    assert timedelta(hours=23.9) < wait < timedelta(hours=24.1)
    # nothing is committed while there is nothing but to wait
    with pytest.raises(UnsupportedOperationError) as again:
        DeltaTable(uri).alter.drop_feature(name, truncate_history=True)
    assert str(again.value) == str(first.value)
    assert DeltaTable(uri).version() == version
    age(uri, 25)
    write_deltalake(uri, pa.table({"a": pa.array([5], pa.int32())}), mode="append", schema_mode="merge")
    before = rows(DeltaTable(uri))
    DeltaTable(uri).alter.drop_feature(name, truncate_history=True)
    left = DeltaTable(uri)
    assert not {name, "checkpointProtection"} & left.snapshot().state.features
    assert rows(left) == before == rows(deltalake.DeltaTable(uri))
    assert min(versions_of(uri)) == version
    report = left.verify()
    assert report.ok, report.to_text()


def test_history_that_does_not_use_the_feature_stays(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    make(tmp_path, {}).alter.add_feature("deletionVectors", allow_protocol_versions_increase=True)
    DeltaTable(uri).alter.drop_feature("deletionVectors", truncate_history=True)
    assert DeltaTable(uri).version() == 4
    assert min(versions_of(uri)) == 0


def test_history_of_a_feature_that_leaves_none_is_not_truncated(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="Leave truncate_history out"):
        make(tmp_path, {"delta.appendOnly": "true"}).alter.drop_feature("appendOnly", truncate_history=True)


def test_checkpoint_whose_commit_is_gone_counts_as_history(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = make(tmp_path, VECTORS)
    table.delete("a = 1")
    table.create_checkpoint()
    log = tmp_path / "t" / "_delta_log"
    kept = (log / f"{3:020}.checkpoint.parquet").read_bytes()
    with pytest.raises(UnsupportedOperationError):
        table.alter.drop_feature("deletionVectors", truncate_history=True)
    age(uri, 25)
    DeltaTable(uri).alter.unset_table_properties(["delta.enableDeletionVectors"], raise_if_not_exists=False)
    real = feature_history.truncate_log

    def interrupted(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        (log / f"{3:020}.checkpoint.parquet").write_bytes(kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_history, "truncate_log", interrupted)
        with pytest.raises(UnsupportedOperationError, match="version 3 of the log does"):
            DeltaTable(uri).alter.drop_feature("deletionVectors", truncate_history=True)
    age(uri, 25)
    DeltaTable(uri).alter.drop_feature("deletionVectors", truncate_history=True)
    assert not (log / f"{3:020}.checkpoint.parquet").exists()


@pytest.mark.parametrize("properties", [{}, {"delta.randomizeFilePrefixes": "true"}], ids=["plain", "prefixes"])
def test_vectors_that_older_versions_need_have_tombstones(tmp_path: Path, properties: dict[str, str]) -> None:
    uri = str(tmp_path / "t")
    table = make(tmp_path, {**VECTORS, **properties})
    table.delete("a = 1")
    table.delete("a = 10")
    table.alter.drop_feature("deletionVectors")
    (commit,) = [h["version"] for h in table.history() if h["operation"] == "Deletion Vector Tombstones"]
    lines = (tmp_path / "t" / "_delta_log" / f"{commit:020}.json").read_text().splitlines()
    removes = [r for line in lines if (r := json.loads(line).get("remove"))]
    vectors = {str(p.relative_to(uri)) for p in Path(uri).rglob("*.bin")}
    assert len(vectors) == 2
    assert {unquote(r["path"]) for r in removes} == vectors
    assert not any(r["dataChange"] or "deletionVector" in r for r in removes)
    assert DeltaTable(uri).snapshot(commit).files.count == 2
    # the next drop adds none again
    table.alter.set_table_properties(VECTORS)
    table.alter.drop_feature("deletionVectors")
    assert [h["operation"] for h in table.history()].count("Deletion Vector Tombstones") == 1
    report = table.verify(deep=True)
    assert report.ok, report.to_text()


# --- other writers -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["columnMapping", "deletionVectors", "rowTracking", "typeWidening", "v2Checkpoint"])
def test_rows_that_others_append_between_steps_are_kept(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer commits before each commit of the drop, for the first eight of them."""
    drop = DROPS[name]
    table = make(tmp_path, drop.properties)
    uri = str(tmp_path / "t")
    assert drop.use is not None
    drop.use(table)
    before = DeltaTable(uri).to_pyarrow_table().num_rows
    appended = 0
    real = Transaction.commit

    def commit(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal appended
        if self.operation != "WRITE" and appended < 8:
            appended += 1
            row = pa.table({"a": pa.array([100 + appended], pa.int32())})
            write_deltalake(uri, row, mode="append", schema_mode="merge")
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", commit)
        DeltaTable(uri).alter.drop_feature(name)
    left = DeltaTable(uri)
    assert appended == 8
    assert name not in left.snapshot().state.features
    values = left.to_pyarrow_table().column("a").to_pylist()
    assert len(values) == before + 8
    assert {100 + i for i in range(1, 9)} <= set(values)
    assert rows(left) == rows(deltalake.DeltaTable(uri))
    operations = [h["operation"] for h in left.history()]
    assert operations.count("Empty Commit") == (0 if name == "rowTracking" else feature_drop.NUM_BARRIERS)
    assert operations.count("DROP FEATURE") == 1 + (name == "typeWidening")
    report = left.verify(deep=True)
    assert report.ok, report.to_text()


def test_only_files_that_others_changed_are_written_again_after_a_lost_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    make(tmp_path, BY_NAME).alter.set_table_properties({"delta.targetFileSize": "1"})
    written: list[int] = []
    real = TableRewrite._write

    def write(self: Any, latest: Any, plan: Any, files: pa.Table) -> None:
        written.append(files.num_rows)
        real(self, latest, plan, files)
        if len(written) == 1:
            DeltaTable(uri).delete("a = 1")  # rewrites the second file, whose other row is 11
        elif len(written) == 2:
            write_deltalake(uri, pa.table({"a": [7], "b": ["z"]}, SCHEMA), mode="append")

    with monkeypatch.context() as patch:
        patch.setattr(TableRewrite, "_write", write)
        DeltaTable(uri).alter.drop_feature("columnMapping")
    assert written == [2, 1, 1]
    left = DeltaTable(uri)
    assert sorted(left.to_pyarrow_table().column("a").to_pylist()) == [0, 7, 10, 11]
    # what was written for the attempt that lost is deleted
    mine = {Path(f).name for f in left.file_uris()}
    old = {Path(f).name for v in range(4) for f in DeltaTable(uri, version=v).file_uris()}
    assert {p.name for p in (tmp_path / "t").rglob("*.parquet") if "_delta_log" not in p.parts} - old - mine <= {
        Path(f).name for v in range(left.version()) for f in DeltaTable(uri, version=v).file_uris()
    }


def test_feature_that_another_writer_uses_again_is_cleaned_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    make(tmp_path, VECTORS).delete("a = 1")
    times = 0
    real = feature_drop._last_transaction

    def last(*args: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            table = DeltaTable(uri)
            table.alter.set_table_properties(VECTORS)
            table.delete("a = 10")
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(feature_drop, "_last_transaction", last)
        DeltaTable(uri).alter.drop_feature("deletionVectors")
    left = DeltaTable(uri)
    assert times == 2
    assert rows(left) == rows(deltalake.DeltaTable(uri)) == ["{'a': 0, 'b': 'x'}", "{'a': 11, 'b': 'y'}"]
    operations = [h["operation"] for h in reversed(left.history())]
    # readers without vectors start behind the last version that had one
    assert operations[-4:] == ["Empty Commit"] * 3 + ["DROP FEATURE"]


def test_writers_that_never_stop_end_the_drop_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    make(tmp_path, VECTORS).delete("a = 1")
    real = Transaction.commit

    def commit(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.operation == "DROP FEATURE":
            write_deltalake(uri, pa.table({"a": [7], "b": ["z"]}, SCHEMA), mode="append")
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", commit)
        with pytest.raises(CommitError):
            DeltaTable(uri).alter.drop_feature("deletionVectors")
    operations = [h["operation"] for h in DeltaTable(uri).history()]
    assert operations.count("Empty Commit") == feature_drop.NUM_BARRIERS
    assert operations.count("WRITE") == 2 + feature_steps.MOST_ATTEMPTS
    DeltaTable(uri).alter.drop_feature("deletionVectors")
    assert len(rows(DeltaTable(uri))) == 3 + feature_steps.MOST_ATTEMPTS
