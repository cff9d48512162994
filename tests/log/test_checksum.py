"""Version checksums as we write them: kept up commit by commit, equal to what the whole state returns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from delta_core.kernel.log.checksum import SIZE_BINS, CommitContent, write_checksum
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.kernels.json_actions import ActionParser
from delta_core.testing.table_builder import TableBuilder

FEATURES = ["deletionVectors", "domainMetadata"]


def crc_of(path: Path, version: int) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((path / "_delta_log" / f"{version:020d}.crc").read_text())
    return value


def write_all(path: Path) -> list[Any]:
    """Write the checksum of every version in turn, each from the one before; return what the calls returned."""
    out: list[Any] = []
    latest = open_snapshot(str(path)).version
    for version in range(latest + 1):
        out.append(write_checksum(open_snapshot(str(path), version), out[-1] if out else None))
    return out


def whole(path: Path, version: int) -> dict[str, Any]:
    file = path / "_delta_log" / f"{version:020d}.crc"
    kept = file.read_bytes()
    file.unlink()
    write_checksum(open_snapshot(str(path), version), full=True)
    value = crc_of(path, version)
    file.write_bytes(kept)
    return value


def life(path: Path, properties: dict[str, str] | None = None) -> TableBuilder:
    table = TableBuilder(path).create({"id": "long"}, features=FEATURES, properties=properties)
    table.append([{"id": i} for i in range(40)], files=4)
    table.remove(table.paths()[0], more=[{"txn": {"appId": "a", "version": 1, "lastUpdated": 5}}])
    table.delete_rows(lambda row: row["id"] % 3 == 0)
    table.commit(
        {"txn": {"appId": "a", "version": 2}},
        {"txn": {"appId": "b", "version": 1}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        {"domainMetadata": {"domain": "e", "configuration": "{}", "removed": False}},
    )
    table.commit({"domainMetadata": {"domain": "d", "configuration": "", "removed": True}})
    return table.alter(properties={"my.own": "x"}).delete_rows(lambda row: row["id"] == 10).append([{"id": 1}])


def test_bins_are_those_of_every_delta_writer() -> None:
    assert len(SIZE_BINS) == 95
    assert (SIZE_BINS[1], SIZE_BINS[-1]) == (8 << 10, 256 << 30)
    assert list(SIZE_BINS) == sorted(set(SIZE_BINS))


def test_checksum_kept_up_is_that_of_the_whole_state(tmp_path: Path) -> None:
    table = life(tmp_path)
    given_back = write_all(tmp_path)
    for version in range(table.version + 1):
        found = crc_of(tmp_path, version)
        assert found == given_back[version]
        expected = whole(tmp_path, version)
        for name in ("setTransactions", "domainMetadata"):
            key = "appId" if name == "setTransactions" else "domain"
            assert sorted(found.pop(name), key=lambda v: v[key]) == sorted(expected.pop(name), key=lambda v: v[key])
        assert found == expected


def test_checksum_states_what_the_log_adds_up_to(tmp_path: Path) -> None:
    table = life(tmp_path)
    write_all(tmp_path)
    state, found = table.state, crc_of(tmp_path, table.version)
    sizes = [a["size"] for a in state.files.values()]
    assert (found["numFiles"], found["tableSizeBytes"], found["numMetadata"], found["numProtocol"]) == (
        len(sizes),
        sum(sizes),
        1,
        1,
    )
    assert (found["metadata"], found["protocol"]) == (state.metadata, state.protocol)
    assert {t["appId"]: t["version"] for t in found["setTransactions"]} == {"a": 2, "b": 1}
    assert [d["domain"] for d in found["domainMetadata"]] == ["e"]
    histogram = found["fileSizeHistogram"]
    assert (sum(histogram["fileCounts"]), sum(histogram["totalBytes"])) == (len(sizes), sum(sizes))
    vectors = [a["deletionVector"]["cardinality"] for a in state.files.values() if "deletionVector" in a]
    assert (found["numDeletionVectorsOpt"], found["numDeletedRecordsOpt"]) == (len(vectors), sum(vectors))
    assert sum(found["deletedRecordCountsHistogramOpt"]["deletedRecordCounts"]) == len(sizes)
    assert not {"allFiles", "inCommitTimestampOpt"} & found.keys()


def test_checksum_serves_the_open_of_its_version(tmp_path: Path) -> None:
    table = life(tmp_path)
    table.checkpoint("v1", version=2)
    write_all(tmp_path)
    snapshot = open_snapshot(str(tmp_path))
    assert snapshot.segment.checksum is not None
    assert snapshot.metadata.configuration["my.own"] == "x"


def test_in_commit_timestamp_is_there_where_such_times_are_in_force(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create(
        {"id": "long"}, features=["inCommitTimestamp"], properties={"delta.enableInCommitTimestamps": "true"}
    )
    table.append([{"id": 1}], commit={"info": {"txnId": "t-1"}})
    write_all(tmp_path)
    assert crc_of(tmp_path, 1)["inCommitTimestampOpt"] == table.timestamp_ms(1)
    assert crc_of(tmp_path, 1)["txnId"] == "t-1"


def test_table_without_vectors_states_nothing_of_them(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    write_all(tmp_path)
    assert not {k for k in crc_of(tmp_path, 1) if "elet" in k}


def test_present_checksum_is_never_overwritten(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    table.write_log(f"{0:020d}.crc", "kept")
    assert write_checksum(open_snapshot(str(tmp_path))) is None
    assert write_checksum(open_snapshot(str(tmp_path)), full=True) is None
    assert (tmp_path / "_delta_log" / f"{0:020d}.crc").read_text() == "kept"


@pytest.mark.parametrize("before", [None, "", "{", "[]", '{"metadata":{},"protocol":{}}'])
def test_without_the_one_before_none_is_written(tmp_path: Path, before: str | None) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    if before is not None:
        table.write_log(f"{0:020d}.crc", before)
    assert write_checksum(open_snapshot(str(tmp_path))) is None
    assert not (tmp_path / "_delta_log" / f"{1:020d}.crc").exists()
    assert write_checksum(open_snapshot(str(tmp_path)), full=True) is not None
    assert crc_of(tmp_path, 1)["numFiles"] == 1


def test_remove_without_a_size_ends_the_chain(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    table.commit({"remove": {"path": table.paths()[0], "deletionTimestamp": 1, "dataChange": True}})
    assert [v is None for v in write_all(tmp_path)] == [False, False, True]


def test_files_added_again_end_the_chain(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    (add,) = table.state.files.values()
    table.commit({"add": {**add, "dataChange": False, "tags": {"k": "v"}}})
    assert [v is None for v in write_all(tmp_path)] == [False, False, True]
    assert write_checksum(open_snapshot(str(tmp_path)), full=True)["numFiles"] == 1  # type: ignore[index]


def test_transactions_that_may_expire_are_left_out(tmp_path: Path) -> None:
    life(tmp_path, {"delta.setTransactionRetentionDuration": "interval 1 day"})
    write_all(tmp_path)
    assert "setTransactions" not in crc_of(tmp_path, 4)


def test_long_lists_are_left_out(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    table.commit(*({"txn": {"appId": str(i), "version": i}} for i in range(101))).append([{"id": 1}])
    write_all(tmp_path)
    assert "setTransactions" not in crc_of(tmp_path, 1)
    assert "setTransactions" not in crc_of(tmp_path, 2)
    assert crc_of(tmp_path, 2)["numFiles"] == 1


def test_histogram_of_another_writer_keeps_its_bins(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"})
    bins = {"sortedBinBoundaries": [0, 10, 1 << 40], "fileCounts": [1, 0, 0], "totalBytes": [4, 0, 0]}
    table.checksum(0, numFiles=1, tableSizeBytes=4, histogramOpt=bins).append([{"id": 1}])
    found = write_checksum(open_snapshot(str(tmp_path)))
    assert found is not None
    assert found["fileSizeHistogram"]["sortedBinBoundaries"] == [0, 10, 1 << 40]
    assert found["fileSizeHistogram"]["fileCounts"] == [1, 1, 0]


def test_impossible_numbers_are_not_carried_on(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    table.checksum(1, numFiles=0).remove(*table.paths())
    assert write_checksum(open_snapshot(str(tmp_path))) is None


def test_failure_of_the_store_is_logged_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    TableBuilder(tmp_path).create({"id": "long"})
    snapshot = open_snapshot(str(tmp_path))

    def fail(path: str, data: bytes, **options: bool) -> str:
        raise OSError("no more disk")

    monkeypatch.setattr(snapshot.engine.storage, "put_if_absent", fail)
    assert write_checksum(snapshot) is None
    assert "no more disk" in caplog.text


def test_commit_at_hand_is_not_read(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}])
    first = write_checksum(open_snapshot(str(tmp_path), 0))
    snapshot: Snapshot = open_snapshot(str(tmp_path))
    parser = ActionParser(("size", "dataChange", "dvCardinality"))
    parser.feed(1, table.bodies[1])
    table.drop(f"_delta_log/{1:020d}.json")
    found = write_checksum(snapshot, first, commit=CommitContent(parser.finish(), {"txnId": "x"}))
    assert found is not None
    assert (found["numFiles"], found["txnId"]) == (1, "x")


@settings(max_examples=25)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 8191, 8192, 10_000, 4 << 20, 145 << 20, 300 << 30]), max_size=8),
    gone=st.integers(0, 8),
)
def test_histogram_counts_every_file(tmp_path_factory: Any, sizes: list[int], gone: int) -> None:
    path = tmp_path_factory.mktemp("t")
    table = TableBuilder(path).create({"id": "long"})
    adds = [
        {"add": {"path": str(i), "partitionValues": {}, "size": s, "modificationTime": 1, "dataChange": True}}
        for i, s in enumerate(sizes)
    ]
    table.commit(*adds)
    table.commit(
        *(
            {"remove": {"path": str(i), "size": s, "dataChange": True, "deletionTimestamp": 1}}
            for i, s in enumerate(sizes[:gone])
        )
    )
    write_all(path)
    left = sizes[gone:]
    found = crc_of(path, 2)["fileSizeHistogram"]
    starts = found["sortedBinBoundaries"]
    for low, high, count, total in zip(
        starts, [*starts[1:], 1 << 62], found["fileCounts"], found["totalBytes"], strict=True
    ):
        inside = [s for s in left if low <= s < high]
        assert (count, total) == (len(inside), sum(inside))
