"""Transactions: what is staged becomes a version, once, or a precise error."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.api import removed_files
from delta_core.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    DeltaError,
    InvalidArgumentError,
    MetadataChangedError,
    ProtocolChangedError,
    TooManyAttemptsError,
)
from delta_core.expressions import to_expression
from delta_core.kernel.commit.conflict import IsolationLevel
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.snapshot import open_snapshot
from tests.commit.conftest import added, live, paths

Begin = Callable[..., Transaction]


def lines(uri: str, version: int) -> list[dict[str, dict[str, object]]]:
    text = (Path(uri) / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def append(begin: Begin, path: str, **file: object) -> CommitResult:
    transaction = begin()
    transaction.add_files(added(path, **file))  # type: ignore[arg-type]
    return transaction.commit()


def test_append_becomes_the_next_version_and_its_snapshot_holds_the_file(begin: Begin, uri: str) -> None:
    result = append(begin, "new.parquet")
    assert result.version == 4
    assert "new.parquet" in paths(result.snapshot)
    assert paths(result.snapshot) == paths(open_snapshot(uri))


class Exported:
    """A table of another Arrow library: as a stream, or as one array."""

    def __init__(self, table: pa.Table, protocol: str) -> None:
        setattr(self, protocol, getattr(table.to_batches()[0] if protocol == "__arrow_c_array__" else table, protocol))


@pytest.mark.parametrize("protocol", ["__arrow_c_stream__", "__arrow_c_array__"])
def test_files_may_be_tables_of_other_arrow_libraries(begin: Begin, protocol: str) -> None:
    transaction = begin()
    assert transaction.base is not None
    transaction.remove_files(Exported(removed_files(live(transaction.base, "kind = 'b'")), protocol))
    transaction.add_files(Exported(added("new.parquet"), protocol))
    found = transaction.commit().snapshot.scan().files()
    assert sorted(p.partition("/")[0] for p in found["path"].to_pylist()) == ["kind=a", "kind=c", "new.parquet"]


def test_files_that_are_no_arrow_data_are_rejected(begin: Begin) -> None:
    with pytest.raises(InvalidArgumentError, match="Found the files to add as list, expected Arrow data"):
        begin().add_files([{"path": "x"}])
    with pytest.raises(InvalidArgumentError, match="which has no columns"):
        begin().add_files(pa.array([1]))


def test_snapshot_begins_transactions_on_its_own_version(uri: str) -> None:
    old = open_snapshot(uri, 1)
    transaction = old.begin("MY OPERATION", {"a": "b"}, isolation=IsolationLevel.SERIALIZABLE)
    assert (transaction.base, transaction.operation, transaction.isolation) == (
        old,
        "MY OPERATION",
        IsolationLevel.SERIALIZABLE,
    )
    assert transaction.parameters == {"a": "b"}


def test_commit_info_states_who_did_what(begin: Begin, uri: str) -> None:
    transaction = begin("WRITE", parameters={"mode": "Append", "partitionBy": ["kind"]})
    transaction.add_files(added("n.parquet"))
    transaction.metrics["numFiles"] = 1
    transaction.commit(user_metadata="by hand", custom_metadata={"job": "j1"})
    info = lines(uri, 4)[0]["commitInfo"]
    assert info["operationParameters"] == {"mode": "Append", "partitionBy": '["kind"]'}
    assert (info["isBlindAppend"], info["readVersion"], info["userMetadata"], info["job"]) == (True, 3, "by hand", "j1")
    assert str(info["engineInfo"]).startswith("delta_core/")
    assert info["txnId"] == transaction.txn_id


def test_lost_race_of_blind_appends_goes_on(begin: Begin, uri: str) -> None:
    slow = begin()
    slow.add_files(added("slow.parquet"))
    append(begin, "fast.parquet")
    result = slow.commit()
    assert (result.version, result.attempts) == (5, 2)
    assert {"slow.parquet", "fast.parquet"} <= paths(open_snapshot(uri))


def test_transaction_commits_once(begin: Begin) -> None:
    transaction = begin()
    transaction.add_files(added("n.parquet"))
    transaction.commit()
    with pytest.raises(InvalidArgumentError, match="committed already"):
        transaction.commit()


def test_every_race_lost_states_how_many(begin: Begin) -> None:
    transaction = begin()
    transaction.add_files(added("slow.parquet"))
    append(begin, "fast.parquet")
    with pytest.raises(TooManyAttemptsError) as caught:
        transaction.commit(max_retries=0)
    assert caught.value.attempts == 1


# --- conflicts -----------------------------------------------------------------------------


def reading(begin: Begin, predicate: str | None, **options: object) -> Transaction:
    """A transaction that read what a predicate selects and rewrites it."""
    transaction = begin("DELETE", **options)
    snapshot = transaction.base
    assert snapshot is not None
    files = live(snapshot, predicate)
    bound = None if predicate is None else to_expression(predicate, snapshot.schema)
    transaction.read(bound, files)
    transaction.remove_files(files)
    return transaction


def test_append_that_matches_what_was_read_conflicts_under_serializable(begin: Begin) -> None:
    transaction = reading(begin, "id < 5", isolation=IsolationLevel.SERIALIZABLE)
    append(begin, "match.parquet", low=1, high=3)
    with pytest.raises(ConcurrentAppendError, match=r"match\.parquet"):
        transaction.commit()


def test_append_outside_the_predicate_does_not_conflict(begin: Begin, uri: str) -> None:
    transaction = reading(begin, "id < 5", isolation=IsolationLevel.SERIALIZABLE)
    append(begin, "other.parquet", low=100, high=104)
    assert transaction.commit().version == 5


def test_append_to_another_partition_does_not_conflict(begin: Begin) -> None:
    transaction = reading(begin, "kind = 'a'", isolation=IsolationLevel.SERIALIZABLE)
    append(begin, "other.parquet", kind="b")
    assert transaction.commit().version == 5


def test_blind_append_may_be_missed_under_write_serializable(begin: Begin) -> None:
    transaction = reading(begin, "id < 5")
    append(begin, "match.parquet", low=1, high=3)
    assert transaction.commit().version == 5


def test_rewritten_rows_are_not_missed_under_write_serializable(begin: Begin) -> None:
    transaction = reading(begin, "id < 5")
    other = reading(begin, "id >= 20")
    other.add_files(added("moved.parquet", low=1, high=3))
    other.commit()
    with pytest.raises(ConcurrentAppendError):
        transaction.commit()


def test_removed_file_that_was_read_conflicts(begin: Begin) -> None:
    transaction = begin("WRITE")
    assert transaction.base is not None
    transaction.read(to_expression("id < 5", transaction.base.schema), live(transaction.base, "id < 5"))
    transaction.add_files(added("derived.parquet"))
    reading(begin, "id < 5").commit()
    with pytest.raises(ConcurrentDeleteReadError):
        transaction.commit()


def test_two_removes_of_one_file_conflict(begin: Begin) -> None:
    first, second = begin("DELETE"), begin("DELETE")
    for transaction in (first, second):
        assert transaction.base is not None
        transaction.remove_files(live(transaction.base, "kind = 'a'"))
    first.commit()
    with pytest.raises(ConcurrentDeleteDeleteError, match="Repeat the operation"):
        second.commit()


def test_removes_of_different_files_do_not_conflict(begin: Begin, uri: str) -> None:
    first, second = reading(begin, "kind = 'a'"), reading(begin, "kind = 'b'")
    first.commit()
    second.commit()
    assert open_snapshot(uri).files.count == 1


def test_same_application_id_conflicts(begin: Begin) -> None:
    first, second = begin(), begin()
    for transaction in (first, second):
        transaction.set_transaction("job", 7)
        transaction.add_files(added("f.parquet"))
    first.commit()
    with pytest.raises(ConcurrentTransactionError, match="job"):
        second.commit()


def test_transaction_version_is_read_back(begin: Begin, uri: str) -> None:
    transaction = begin()
    transaction.set_transaction("job", 7)
    result = transaction.commit()
    assert result.snapshot.transactions()["job"].version == 7
    assert open_snapshot(uri).transactions()["job"].version == 7


def test_metadata_change_conflicts_with_any_writer(begin: Begin) -> None:
    from msgspec.structs import replace

    slow, change = begin(), begin("SET TBLPROPERTIES")
    slow.add_files(added("f.parquet"))
    change.set_metadata(replace(change.table.metadata, configuration={"custom.key": "v"}))
    change.commit()
    with pytest.raises(MetadataChangedError):
        slow.commit()


def test_protocol_change_conflicts_with_any_writer(begin: Begin, uri: str) -> None:
    slow, change = begin(), begin("UPGRADE")
    slow.add_files(added("f.parquet"))
    change.set_metadata(change.table.metadata, features=["deletionVectors"])
    change.commit()
    protocol = open_snapshot(uri).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert set(protocol.writer_features or ()) == {"appendOnly", "deletionVectors", "invariants"}
    with pytest.raises(ProtocolChangedError):
        slow.commit()


def test_shared_domain_conflicts(begin: Begin) -> None:
    prepare = begin("UPGRADE")
    prepare.set_metadata(prepare.table.metadata, features=["domainMetadata"])
    prepare.commit()
    first, second = begin(), begin()
    first.set_domain("mine", "1")
    second.set_domain("mine", "2")
    result = first.commit()
    assert result.snapshot.domains() == {"mine": "1"}
    with pytest.raises(CommitConflictError, match="mine"):
        second.commit()


def test_sixteen_threads_land_every_append_once(begin: Begin, uri: str) -> None:
    failures: list[DeltaError] = []

    def work(number: int) -> None:
        for i in range(3):
            try:
                transaction = begin()
                transaction.add_files(added(f"t{number}-{i}.parquet"))
                transaction.commit(max_retries=200)
            except DeltaError as e:
                failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    snapshot = open_snapshot(uri)
    assert snapshot.version == 3 + 48
    assert {f"t{n}-{i}.parquet" for n in range(16) for i in range(3)} <= paths(snapshot)
