"""Checkpoints as we write them: each returns the table that its commits returned."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.api import TableFeature
from delta_core.errors import (
    EngineError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.kernel.log import checkpoint_adds, checkpoint_writer
from delta_core.kernel.log.checkpoint_writer import CheckpointResult, write_checkpoint
from delta_core.kernel.log.hint import canonical_checksum
from delta_core.kernel.plugins.checkpoint_plan import CheckpointPlan
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.protocol.actions import ActionField, ActionKind
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder

DAY = 86_400_000
V2 = {"delta.checkpointPolicy": "v2"}
PLANS = {
    "v1": CheckpointPlan(),
    "v2-json-inline": CheckpointPlan("v2", "uuid", "json"),
    "v2-json-sidecars": CheckpointPlan("v2", "uuid", "json", 3),
    "v2-parquet-inline": CheckpointPlan("v2", "uuid", "parquet"),
    "v2-parquet-sidecars": CheckpointPlan("v2", "uuid", "parquet", 2),
    "v2-classic-inline": CheckpointPlan("v2", "classic", "parquet"),
    "v2-classic-sidecars": CheckpointPlan("v2", "classic", "parquet", 100),
}
FORMS = {
    "both": {},
    "json": {"delta.checkpoint.writeStatsAsStruct": "false"},
    "struct": {"delta.checkpoint.writeStatsAsJson": "false"},
}


def life(path: Path, properties: dict[str, str] | None = None) -> TableBuilder:
    """A table with partitions, tombstones, vectors, transactions and domains, removed ones too."""
    table = TableBuilder(path).create(
        {"id": "long", "kind": "string", "text": "string", "day": "date"},
        partition_by=["kind"],
        features=["deletionVectors", "v2Checkpoint", "domainMetadata"],
        properties={**V2, **(properties or {})},
    )
    table.append([{"id": i, "kind": "abc"[i % 3], "text": f"t{i}", "day": None} for i in range(30)])
    table.append([{"id": i, "kind": None if i % 2 else "e"} for i in range(30, 50)], tags={"k": "v"})
    table.remove(table.paths()[0], more=[{"txn": {"appId": "app", "version": 7, "lastUpdated": 1}}])
    table.commit(
        {"txn": {"appId": "other", "version": 2}},
        {"domainMetadata": {"domain": "kept", "configuration": "{}", "removed": False}},
        {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": False}},
    )
    table.commit({"domainMetadata": {"domain": "gone", "configuration": "", "removed": True}})
    return table.delete_rows(lambda row: row["id"] % 4 == 0)


def checkpoint_alone(path: Path, result: CheckpointResult) -> Snapshot:
    """Open the version of a checkpoint with every commit gone."""
    for file in (path / "_delta_log").glob("*.json"):
        if ".checkpoint." not in file.name:
            file.unlink()
    for file in (path / "_delta_log").glob("*.crc"):
        file.unlink()
    return open_snapshot(str(path), result.version)


FIELDS = (
    "path",
    "dvId",
    "partitionValues",
    "size",
    "modificationTime",
    "stats",
    "tags",
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
)


def files_of(snapshot: Snapshot, names: tuple[str, ...] = FIELDS) -> list[dict[str, Any]]:
    rows = snapshot.files.columns(list(names)).to_pylist()
    return sorted(
        ({**r, "stats": r.get("stats") and json.loads(r["stats"])} for r in rows),
        key=lambda r: (r["path"], r["dvId"] or ""),
    )


def state_of(snapshot: Snapshot) -> dict[str, Any]:
    tombstones = snapshot.tombstones(["deletionTimestamp", "size", "partitionValues"]).to_pylist()
    return {
        "protocol": snapshot.protocol,
        "metadata": snapshot.metadata,
        "files": files_of(snapshot),
        "tombstones": sorted(tombstones, key=lambda r: (r["path"], r["dvId"] or "")),
        "txns": snapshot.transactions(),
        "domains": snapshot.domains(),
    }


def log_names(path: Path, pattern: str) -> list[str]:
    return sorted(f.name for f in (path / "_delta_log").glob(pattern))


# --- every kind ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", PLANS)
def test_checkpoint_alone_returns_the_state_of_the_commits(tmp_path: Path, kind: str, form: str) -> None:
    table = life(tmp_path, FORMS[form])
    before = state_of(open_snapshot(str(tmp_path)))
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS[kind], now_ms=table.timestamp_ms(7))
    found = checkpoint_alone(tmp_path, result)
    assert found.segment.checkpoint is not None
    assert not found.segment.deltas
    assert state_of(found) == before
    assert_same_rows(found.scan().to_table(), table.expected())
    assert_same_rows(
        found.scan(predicate="id > 40").to_table(), open_snapshot(str(tmp_path)).scan(predicate="id > 40").to_table()
    )


@pytest.mark.parametrize("second", PLANS)
@pytest.mark.parametrize("first", PLANS)
def test_checkpoint_of_a_checkpoint_and_later_commits(tmp_path: Path, first: str, second: str) -> None:
    table = life(tmp_path)
    write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS[first], now_ms=table.timestamp_ms(7))
    table.append([{"id": 100, "kind": None}]).delete_rows(lambda row: row["id"] == 33).remove(table.paths()[1])
    before = state_of(open_snapshot(str(tmp_path)))
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS[second], now_ms=table.timestamp_ms(7))
    found = checkpoint_alone(tmp_path, result)
    assert state_of(found) == before
    assert_same_rows(found.scan().to_table(), table.expected())


@pytest.mark.parametrize("kind", ["v1", "v2-json-sidecars"])
@pytest.mark.parametrize("given", ["json", "struct", "both", "none"])
@pytest.mark.parametrize("form", FORMS)
def test_statistics_survive_every_change_of_their_form(tmp_path: Path, kind: str, given: Any, form: str) -> None:
    table = life(tmp_path, FORMS[form])
    before = files_of(open_snapshot(str(tmp_path)))
    table.checkpoint("v1", statistics=given).cleanup_before(6)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS[kind], now_ms=table.timestamp_ms(7))
    found = files_of(checkpoint_alone(tmp_path, result))
    if given == "none":
        assert all(f["stats"] is None for f in found)
        return
    for f, b in zip(found, before, strict=True):
        for name in ("numRecords", "minValues", "maxValues", "nullCount"):
            assert {k: v for k, v in b["stats"].items() if k == name and v} == {
                k: v for k, v in f["stats"].items() if k == name and v
            }


@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_columns_of_every_type_keep_their_bounds(tmp_path: Path, mapping: Any) -> None:
    fields = pa.schema(
        [
            ("part", pa.int32()),
            ("b", pa.int8()),
            ("l", pa.int64()),
            ("f", pa.float32()),
            ("d", pa.float64()),
            ("s", pa.string()),
            ("day", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")),
            ("ntz", pa.timestamp("us")),
            ("m", pa.decimal128(20, 3)),
            ("yes", pa.bool_()),
            ("raw", pa.binary()),
            ("list", pa.list_(pa.int32())),
            ("deep", pa.struct([("x", pa.int16()), ("y", pa.struct([("z", pa.string())]))])),
        ]
    )
    row = {
        "part": 7,
        "b": 1,
        "l": 2,
        "f": 0.5,
        "d": 0.25,
        "s": "text",
        "day": 3,
        "ts": -1,
        "ntz": 1_001,
        "m": 5,
        "yes": True,
        "raw": b"x",
        "list": [1],
        "deep": {"x": 4, "y": {"z": "end"}},
    }
    rows = pa.Table.from_pylist([row, {**row, "part": None, "deep": None}], fields)
    table = (
        TableBuilder(tmp_path)
        .create(fields, partition_by=["part"], column_mapping=mapping, features=["timestampNtz"])
        .append(rows)
    )
    before = files_of(open_snapshot(str(tmp_path)))
    result = write_checkpoint(open_snapshot(str(tmp_path)))
    parsed = pq.read_table(tmp_path / result.path, columns=["add"]).column("add").drop_null().to_pylist()
    assert sorted((next(iter(a["partitionValues_parsed"].values())) or 0) for a in parsed) == [0, 7]
    assert {len(a["stats_parsed"]["minValues"]) for a in parsed} == {10}
    assert {len(a["stats_parsed"]["nullCount"]) for a in parsed} == {13}
    found = checkpoint_alone(tmp_path, result)
    assert files_of(found) == before
    assert_same_rows(found.scan().to_table(), table.expected())


def test_table_without_files_has_a_checkpoint(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    for plan in PLANS.values():
        result = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
        assert (result.num_adds, result.written) == (0, ())
        assert open_snapshot(str(tmp_path)).files.count == 0


def test_schema_is_made_of_the_definitions_of_the_actions(tmp_path: Path) -> None:
    life(tmp_path)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v1"])
    schema = pq.read_schema(tmp_path / result.path)
    assert set(schema.names) == {"add", "remove", "protocol", "metaData", "txn", "domainMetadata"}
    assert {"deletionVector", "clusteringProvider", "stats_parsed", "partitionValues_parsed"} <= {
        f.name for f in schema.field("add").type
    }
    removes = {f.name for f in schema.field("remove").type}
    assert {"deletionVector", "size", "extendedFileMetadata"} <= removes
    assert not {"stats", "tags"} & removes
    adds = pq.read_table(tmp_path / result.path).column("add").drop_null().to_pylist()
    assert {a["dataChange"] for a in adds} == {False}


@pytest.mark.parametrize(("few", "num_groups"), [(0, 3), (1000, 1)])
def test_own_actions_are_in_the_first_row_group_and_few_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, num_groups: int
) -> None:
    monkeypatch.setattr(checkpoint_writer, "FEW", few)
    table = life(tmp_path)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v1"], now_ms=table.timestamp_ms(7))
    file = pq.ParquetFile(tmp_path / result.path)
    assert file.read_row_group(0, columns=["protocol"]).column("protocol").drop_null().num_chunks
    assert file.metadata.num_row_groups == num_groups


@pytest.mark.parametrize(
    ("codec", "found"), [(None, "SNAPPY"), ("snappy", "SNAPPY"), ("none", "UNCOMPRESSED"), ("lz4_raw", "LZ4")]
)
def test_codec_is_the_tables(tmp_path: Path, codec: str | None, found: str) -> None:
    TableBuilder(tmp_path).create(
        {"id": "long"}, properties={"delta.parquet.compression.codec": codec} if codec else {}
    ).append([{"id": 1}])
    result = write_checkpoint(open_snapshot(str(tmp_path)))
    assert pq.ParquetFile(tmp_path / result.path).metadata.row_group(0).column(0).compression == found


# --- what expires ----------------------------------------------------------------------------


def test_tombstones_are_kept_for_their_retention(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(
        {"id": "long"}, properties={"delta.deletedFileRetentionDuration": "interval 2 days"}
    )
    table.append([{"id": i} for i in range(4)], files=4)
    now = 1_700_000_000_000
    paths = table.paths()
    for path, age in zip(paths[:3], (DAY, 2 * DAY, None), strict=True):
        stamp = {} if age is None else {"deletionTimestamp": now - age}
        table.commit({"remove": {"path": path, "dataChange": True, **stamp}})
    result = write_checkpoint(open_snapshot(str(tmp_path)), now_ms=now)
    found = checkpoint_alone(tmp_path, result).tombstones()
    assert found.column("path").to_pylist() == paths[:1]


def test_transactions_expire_only_where_the_table_states(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    now = 1_700_000_000_000
    table.commit(
        {"txn": {"appId": "old", "version": 1, "lastUpdated": now - 3 * DAY}},
        {"txn": {"appId": "new", "version": 1, "lastUpdated": now - DAY}},
        {"txn": {"appId": "unknown", "version": 1}},
    )
    result = write_checkpoint(open_snapshot(str(tmp_path)), now_ms=now)
    assert set(open_snapshot(str(tmp_path), result.version).transactions()) == {"old", "new", "unknown"}
    table.alter(properties={"delta.setTransactionRetentionDuration": "interval 2 days"})
    result = write_checkpoint(open_snapshot(str(tmp_path)), now_ms=now)
    assert set(checkpoint_alone(tmp_path, result).transactions()) == {"new", "unknown"}


def test_removed_domains_are_dropped(tmp_path: Path) -> None:
    life(tmp_path)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v1"])
    rows = pq.read_table(tmp_path / result.path, columns=["domainMetadata"]).column(0).drop_null().to_pylist()
    assert rows == [{"domain": "kept", "configuration": "{}", "removed": False}]


# --- sidecars --------------------------------------------------------------------------------


def test_sidecars_that_did_not_change_are_named_again(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    table.append([{"id": i} for i in range(8)], files=8)
    plan = CheckpointPlan("v2", "uuid", "json", 2)
    first = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
    assert (len(first.written), first.reused) == (4, ())
    handle = {p.chunk.source.rpartition("/")[2].partition("#")[0]: p for p in open_snapshot(str(tmp_path)).files.parts}
    gone = min(handle)
    table.remove(handle[gone].load(["path"])[0][0].as_py()).append([{"id": 9}])
    second = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan, now_ms=table.timestamp_ms(3))
    assert set(second.reused) == set(first.written) - {gone}
    assert len(second.written) == 2, "the changed one with the new file, and the tombstone"
    assert second.num_adds == 8
    found = checkpoint_alone(tmp_path, second)
    assert_same_rows(found.scan().to_table(), table.expected())
    assert found.tombstones().num_rows == 1
    third = write_checkpoint(found, plan=plan, now_ms=table.timestamp_ms(3), checksum=False)
    assert set(third.reused) >= set(first.written) - {gone}
    assert third.num_adds == 8


def test_small_sidecars_are_merged_into_new_ones(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    plan = CheckpointPlan("v2", "uuid", "parquet", 10)
    for i in range(5):
        table.append([{"id": i}])
        result = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
        assert (len(result.written), result.reused, result.num_adds) == (1, (), i + 1)
    table.append([{"id": 5}])
    last = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
    assert (len(last.written), last.reused) == (1, result.written), "half full is full enough"


def test_sidecar_of_another_form_is_written_again(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2).append([{"id": 1}])
    plan = CheckpointPlan("v2", "uuid", "json", 1)
    write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
    table.alter(properties={"delta.checkpoint.writeStatsAsJson": "false"})
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan)
    assert not result.reused
    assert "stats" not in {
        f.name for f in pq.read_schema(tmp_path / "_delta_log/_sidecars" / result.written[0]).field("add").type
    }


def test_expired_tombstone_makes_its_sidecar_new(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    table.append([{"id": 1}, {"id": 2}], files=2).remove(table.paths()[0])
    plan = CheckpointPlan("v2", "uuid", "json", 1)
    first = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan, now_ms=table.timestamp_ms(3))
    again = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan, now_ms=table.timestamp_ms(3))
    assert set(again.reused) == set(first.written)
    later = write_checkpoint(open_snapshot(str(tmp_path)), plan=plan, now_ms=table.timestamp_ms(3) + 30 * DAY)
    assert (len(later.reused), later.written) == (1, ())
    assert open_snapshot(str(tmp_path), later.version).files.count == 1


# --- the hint --------------------------------------------------------------------------------


def hint_of(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((path / "_delta_log/_last_checkpoint").read_text())
    return value


def test_hint_names_the_checkpoint(tmp_path: Path) -> None:
    table = life(tmp_path)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v1"], now_ms=table.timestamp_ms(7))
    value = hint_of(tmp_path)
    assert list(value) == ["version", "size", "sizeInBytes", "numOfAddFiles", "checksum"]
    assert (value["version"], value["size"], value["numOfAddFiles"]) == (6, result.num_actions, result.num_adds)
    assert value["sizeInBytes"] == (tmp_path / result.path).stat().st_size
    assert value["checksum"] == canonical_checksum(value, sort_pairs=False)
    assert result.num_actions == pq.ParquetFile(tmp_path / result.path).metadata.num_rows


def test_hint_embeds_a_uuid_named_checkpoint(tmp_path: Path) -> None:
    life(tmp_path)
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v2-json-sidecars"])
    embedded = hint_of(tmp_path)["v2Checkpoint"]
    assert embedded["path"] == Path(result.path).name
    assert [s["path"] for s in embedded["sidecarFiles"]] == list(result.written)
    assert {k for a in embedded["nonFileActions"] for k in a} == {
        "checkpointMetadata",
        "protocol",
        "metaData",
        "txn",
        "domainMetadata",
    }
    (tmp_path / result.path).write_bytes(b"not needed")
    assert open_snapshot(str(tmp_path)).protocol.reader_features is not None


def test_classic_named_v2_checkpoint_is_not_embedded(tmp_path: Path) -> None:
    life(tmp_path)
    write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v2-classic-sidecars"])
    assert "v2Checkpoint" not in hint_of(tmp_path)


def test_long_lists_are_not_embedded(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    table.append([{"id": i} for i in range(31)], files=31)
    table.commit(*({"txn": {"appId": str(i), "version": i}} for i in range(31)))
    write_checkpoint(open_snapshot(str(tmp_path)), plan=CheckpointPlan("v2", "uuid", "json", 1))
    assert not {"sidecarFiles", "nonFileActions"} & set(hint_of(tmp_path)["v2Checkpoint"])
    assert open_snapshot(str(tmp_path)).files.count == 31


def test_hint_does_not_go_back(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}]).append([{"id": 2}])
    write_checkpoint(open_snapshot(str(tmp_path)))
    write_checkpoint(open_snapshot(str(tmp_path), 1))
    assert hint_of(tmp_path)["version"] == 2
    assert_same_rows(open_snapshot(str(tmp_path), 1).scan().to_table(), table.expected(1))


@pytest.mark.parametrize("torn", [b"", b"{", b'{"version":99,"checksum":"0"}'])
def test_broken_hint_is_replaced(tmp_path: Path, torn: bytes) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    (tmp_path / "_delta_log/_last_checkpoint").write_bytes(torn)
    write_checkpoint(open_snapshot(str(tmp_path)))
    assert hint_of(tmp_path)["version"] == 1


def test_checksum_of_the_hint_is_left_out_where_readers_disagree(tmp_path: Path) -> None:
    names = [f"feature{i}" for i in range(12)]
    table = TableBuilder(tmp_path).create(
        {"id": "long"},
        properties=V2,
        protocol={
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint", *names],
        },
    )
    plugins = PluginRegistry([external(n) for n in names])
    write_checkpoint(open_snapshot(str(tmp_path), plugins=plugins))
    assert "checksum" not in hint_of(tmp_path)
    assert table.version == open_snapshot(str(tmp_path), plugins=plugins).version


# --- whole or not at all ---------------------------------------------------------------------


def break_after(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, files: int, bytes_left: int) -> None:
    """Let the disk be full while a file is written, after so many whole ones."""
    storage = snapshot.engine.storage
    real = storage.put_stream
    count = [0]

    class Full:
        def __init__(self, file: IO[bytes]) -> None:
            self.file, self.left, self.closed = file, bytes_left, False

        def write(self, data: bytes) -> int:
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    @contextmanager
    def put_stream(path: str, **options: bool) -> Iterator[Any]:
        count[0] += 1
        with real(path, **options) as file:
            yield Full(file) if count[0] > files else file

    monkeypatch.setattr(storage, "put_stream", put_stream)


@pytest.mark.parametrize("bytes_left", [0, 3, 200])
@pytest.mark.parametrize(
    ("kind", "files"),
    [  # V1 is one file
        ("v1", 0),
        ("v2-json-sidecars", 0),
        ("v2-json-sidecars", 1),
        ("v2-parquet-sidecars", 0),
        ("v2-parquet-sidecars", 1),
    ],
)
def test_full_disk_leaves_the_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, files: int, bytes_left: int
) -> None:
    table = life(tmp_path)
    names = sorted(str(p) for p in tmp_path.rglob("*") if p.is_file())
    snapshot = open_snapshot(str(tmp_path))
    break_after(snapshot, monkeypatch, files, bytes_left)
    with pytest.raises(EngineError, match="No space left"):
        write_checkpoint(snapshot, plan=PLANS[kind])
    assert sorted(str(p) for p in tmp_path.rglob("*") if p.is_file()) == names
    assert_same_rows(open_snapshot(str(tmp_path)).scan().to_table(), table.expected())


def test_failure_while_reading_writes_nothing(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    snapshot = open_snapshot(str(tmp_path))
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="Version 1 of"):
        write_checkpoint(snapshot)
    assert not log_names(tmp_path, "*checkpoint*")
    assert not log_names(tmp_path, ".*")


def test_checkpoint_on_a_remote_store_is_read_back() -> None:
    table = TableBuilder("memory://checkpoint-writer").create({"id": "long"}, features=["v2Checkpoint"], properties=V2)
    table.append([{"id": i} for i in range(5)], files=5)
    for plan in PLANS.values():
        write_checkpoint(open_snapshot("memory://checkpoint-writer"), plan=plan)
        found = open_snapshot("memory://checkpoint-writer")
        assert found.segment.checkpoint is not None
        assert_same_rows(found.scan().to_table(), table.expected())


# --- external plugins -------------------------------------------------------------------------------

AUDIT = ActionKind(
    "audit",
    pa.struct([("who", pa.string()), ("notes", pa.map_(pa.string(), pa.string())), ("n", pa.list_(pa.int64()))]),
    key=("who",),
)
FIELD = ActionField("add", "score", pa.struct([("mean", pa.float64()), ("labels", pa.list_(pa.string()))]))
GONE = ActionField("remove", "why", pa.string())
PASSING = ActionKind("passing", pa.struct([("x", pa.int64())]), in_checkpoint=False)


def external(name: str, **more: Any) -> Any:
    class Plugin:
        FEATURE = TableFeature(name, "writer", **more)

    return Plugin()


@pytest.mark.parametrize("kind", PLANS)
def test_external_plugins_actions_and_fields_survive(tmp_path: Path, kind: str) -> None:
    plugins = PluginRegistry([external("auditing", actions=(AUDIT, PASSING), fields=(FIELD, GONE))])
    table = TableBuilder(tmp_path).create(
        {"id": "long"},
        properties=V2,
        protocol={
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint", "auditing"],
        },
    )
    score = {"mean": 0.5, "labels": ["a", None]}
    table.append([{"id": 1}], score=score)
    table.append([{"id": 2}])
    old = table.add_actions([{"id": 3}])
    table.commit(*old, {"audit": {"who": "me", "notes": {"k": "v"}, "n": [1]}}, {"passing": {"x": 1}})
    path = old[0]["add"]["path"]
    table.commit(
        {"remove": {"path": path, "deletionTimestamp": table.timestamp_ms(4), "dataChange": True, "why": "test"}},
        {"audit": {"who": "me", "notes": {"k": "w"}}},
    )

    def state(snapshot: Snapshot) -> Any:
        files = snapshot.files.columns(["path", "score"]).to_pylist()
        return (
            sorted(files, key=lambda r: r["path"]),
            snapshot.tombstones(["why"]).to_pylist(),
            [(a["who"], dict(a["notes"]), a.get("n")) for a in snapshot.custom_actions("audit")],
        )

    before = state(open_snapshot(str(tmp_path), plugins=plugins))
    assert {json.dumps(f["score"]) for f in before[0]} == {json.dumps(score), "null"}
    for _ in range(2):
        write_checkpoint(open_snapshot(str(tmp_path), plugins=plugins), plan=PLANS[kind], now_ms=table.timestamp_ms(5))
        for version in range(5):
            (tmp_path / "_delta_log" / f"{version:020d}.json").unlink(missing_ok=True)
        found = open_snapshot(str(tmp_path), 4, plugins=plugins)
        assert state(found) == before
        assert found.custom_actions("passing") == []


def test_table_with_an_unknown_writer_feature_gets_no_checkpoint(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create(
        {"id": "long"}, protocol={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["fromTheFuture"]}
    )
    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        write_checkpoint(open_snapshot(str(tmp_path)))


# --- plans -----------------------------------------------------------------------------------


def test_v2_needs_a_feature_that_plans_it(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, features=["v2Checkpoint"]).append([{"id": 1}])
    with pytest.raises(InvalidArgumentError, match="checkpointPolicy"):
        write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS["v2-json-inline"])
    assert write_checkpoint(open_snapshot(str(tmp_path))).path.endswith(f"{1:020d}.checkpoint.parquet")


@pytest.mark.parametrize(
    "arguments",
    [
        ("v1", "uuid"),
        ("v1", "classic", "json"),
        ("v1", "classic", "parquet", 5),
        ("v2", "classic", "json"),
        ("v2", "uuid", "json", -1),
        ("v3",),
    ],
)
def test_plans_that_the_protocol_forbids_are_rejected(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgumentError):
        CheckpointPlan(*arguments)


class Catalog:
    """A catalog that has ratified a version which is not published."""

    def __init__(self, version: int, content: bytes) -> None:
        self.version, self.content = version, content

    def latest(self, since: int | None = None) -> Any:
        from delta_core.kernel.plugins.catalog import StagedCommit

        return self.version, [StagedCommit(self.version, self.content)]

    def propose(self, version: int, commit: Any) -> Any:
        raise NotImplementedError

    def published(self, version: int) -> None:
        raise NotImplementedError


def test_version_that_is_not_published_is_rejected(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}, features=["catalogManaged"]).append([{"id": 1}])
    table.append([{"id": 2}], commit={"publish": "no"})
    catalog = Catalog(2, table.bodies[2])
    with pytest.raises(UnsupportedOperationError, match="not published"):
        write_checkpoint(open_snapshot(str(tmp_path), commits=catalog))
    table.write_log(f"{2:020d}.json", table.bodies[2])
    result = write_checkpoint(open_snapshot(str(tmp_path), commits=catalog))
    assert result.num_adds == 2


# --- order and skipping ----------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 5, 1 << 16, 1 << 20, 1 << 40])
@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_rows_are_ordered_by_keys_and_equal_ones_stay(most: int, num_keys: int) -> None:
    for count in (0, 1, 1000):
        dice = np.random.default_rng(count)
        keys = [dice.integers(0, most, count) for _ in range(num_keys)]
        assert checkpoint_adds._order_by(keys).tolist() == np.lexsort(keys[::-1]).tolist()


def test_no_more_is_loaded_than_fills_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    at_once: list[int] = []
    running: set[int] = set()

    def load(self: Any, part: Any) -> Any:
        running.add(part.number)
        begun.append(part.number)
        at_once.append(len(running))
        time.sleep(0.002)
        running.discard(part.number)
        return SimpleNamespace(rows=[0] * part.rows, nbytes=10, number=part.number)

    monkeypatch.setattr(checkpoint_adds.AddReader, "_load", load)
    chunk = SimpleNamespace(num_rows=1000)
    parts: Any = [SimpleNamespace(number=i, chunk=chunk, rows=i % 7) for i in range(40)]
    reader = checkpoint_adds.AddReader(None, "UTC", window_bytes=40)  # type: ignore[arg-type]
    found: list[list[int]] = []
    for window in reader._windows(parts):
        found.append([p.number for p in window])  # type: ignore[attr-defined]
        assert len(begun) <= 5 * len(found)
    assert [n for window in found for n in window] == [i for i in range(40) if i % 7]
    assert all(len(window) <= 5 for window in found)
    assert max(at_once) <= 2


def test_piece_that_can_not_be_loaded_is_an_error_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def load(self: Any, part: Any) -> Any:
        begun.append(part.number)
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(checkpoint_adds.AddReader, "_load", load)
    parts: Any = [SimpleNamespace(number=i, chunk=SimpleNamespace(num_rows=1000)) for i in range(40)]
    reader = checkpoint_adds.AddReader(None, "UTC")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="the disk is broken"):
        list(reader._windows(parts))
    assert len(begun) <= 3


def test_row_groups_hold_few_partitions_and_narrow_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.kernel.log.checkpoint_writer.ROW_GROUP", 4)
    table = TableBuilder(tmp_path).create({"id": "long", "part": "integer"}, partition_by=["part"])
    table.append([{"id": (i * 7) % 32, "part": p} for i, p in enumerate([10, 9, 2, None] * 8)])
    for i in range(15):
        table.append([{"id": 100 + (i * 7) % 15, "part": (5 * i) % 11}])
    result = write_checkpoint(open_snapshot(str(tmp_path)))
    file = pq.ParquetFile(tmp_path / result.path)
    groups = [
        file.read_row_group(g, columns=["add.partitionValues_parsed"]).column("add").to_pylist()
        for g in range(1, file.num_row_groups)
    ]

    def key(v: int | None) -> tuple[bool, int | None]:
        return v is None, v

    values = [sorted((a["partitionValues_parsed"]["part"] for a in group), key=key) for group in groups]
    assert sum(map(len, values)) == result.num_adds
    assert max(map(len, values)) == 4
    flat = [v for group in values for v in group]
    assert flat == sorted(flat, key=key)


def test_groups_that_the_footer_rules_out_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.kernel.log.checkpoint_writer.ROW_GROUP", 4)
    table = TableBuilder(tmp_path).create({"id": "long", "part": "integer"}, partition_by=["part"])
    for i in range(24):
        table.append([{"id": 10 * i, "part": i % 6}, {"id": 10 * i + 5, "part": i % 6}])
    write_checkpoint(open_snapshot(str(tmp_path)))
    for predicate, most in (("part = 3", 1), ("part in (0, 5)", 2), ("id < 15", 2), ("id > 232 and part = 5", 1)):
        snapshot = open_snapshot(str(tmp_path))
        assert len(snapshot.files.parts) == 6
        read: list[int] = []
        for part in snapshot.files.parts:
            monkeypatch.setattr(
                part.chunk,
                "load",
                lambda names, c=part.chunk, load=part.chunk.load, read=read: (read.append(c.place[1]), load(names))[1],
            )
        found = snapshot.scan(predicate=predicate).to_table()
        assert len(set(read)) <= most, predicate
        wanted = table.expected().to_pylist()
        kept = [
            r
            for r in wanted
            if {
                "part = 3": r["part"] == 3,
                "part in (0, 5)": r["part"] in (0, 5),
                "id < 15": r["id"] < 15,
                "id > 232 and part = 5": r["id"] > 232 and r["part"] == 5,
            }[predicate]
        ]
        assert sorted(found.to_pylist(), key=str) == sorted(kept, key=str)


def test_checkpoint_provides_the_checksum_that_its_version_lacks(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    write_checkpoint(open_snapshot(str(tmp_path)), checksum=False)
    assert log_names(tmp_path, "*.crc") == []
    write_checkpoint(open_snapshot(str(tmp_path)))
    assert log_names(tmp_path, "*.crc") == [f"{1:020d}.crc"]
    told = json.loads((tmp_path / "_delta_log" / f"{1:020d}.crc").read_text())
    assert told["numFiles"] == 1


# --- other readers ---------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind", ["v1", "v2-classic-inline", "v2-classic-sidecars", "v2-json-sidecars", "v2-parquet-sidecars"]
)
def test_deltalake_reads_the_checkpoint(tmp_path: Path, kind: str, form: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    features = ["v2Checkpoint"] if kind != "v1" else []
    table = TableBuilder(tmp_path).create(
        {"id": "long", "kind": "string"},
        partition_by=["kind"],
        features=features,
        properties={**(V2 if features else {}), **FORMS[form]},
    )
    table.append([{"id": i, "kind": "abc"[i % 3]} for i in range(9)]).append([{"id": 20, "kind": None}]).remove(
        table.paths()[0]
    )
    result = write_checkpoint(open_snapshot(str(tmp_path)), plan=PLANS[kind], now_ms=table.timestamp_ms(4))
    checkpoint_alone(tmp_path, result)
    found = deltalake.DeltaTable(str(tmp_path))
    assert found.version() == result.version
    rows = deltalake.QueryBuilder().register("t", found).execute("select id, kind from t").read_all()
    assert sorted(pa.table(rows).to_pylist(), key=lambda r: r["id"]) == sorted(
        table.expected().to_pylist(), key=lambda r: r["id"]
    )
