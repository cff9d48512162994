"""Managed tables: commits through the catalog, races, lost answers, and publishing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import url2pathname

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    CatalogNameNotFoundError,
    CatalogRequiredError,
    CatalogResponseError,
    CatalogUnavailableError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    LogChangedError,
    TableExistsError,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.catalog import StagedCommit
from delta_plugins.unity_catalog.catalog import UnityCatalog
from delta_plugins.unity_catalog.commits import UnityCommits
from tests.unity_catalog.fake import FakeCatalog, Fault

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
URI = "uc://main.sales.managed"


@pytest.fixture
def log(fake: FakeCatalog, unity: UnityCatalog) -> Path:
    """Return the log of a managed table without rows."""
    found = unity.create("main.sales.managed", ROWS.schema)
    return Path(url2pathname(found.location.removeprefix("file://"))) / "_delta_log"


def _append(options: dict[str, str], **more: Any) -> None:
    write_deltalake(URI, ROWS, mode="append", storage_options=options, **more)


def _staged(log: Path) -> list[str]:
    folder = log / "_staged_commits"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def _ids(options: dict[str, str]) -> list[int]:
    table = DeltaTable(URI, storage_options=options)
    return sorted(table.to_pyarrow_table()["id"].to_pylist())


def test_created_table_is_as_the_catalog_requires(
    fake: FakeCatalog, unity: UnityCatalog, log: Path, options: dict[str, str]
) -> None:
    record = fake.tables["main.sales.managed"]
    assert record["table_type"] == "MANAGED"
    properties = record["properties"]
    assert properties["io.unitycatalog.tableId"] == record["table_id"]
    for name in ("catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "inCommitTimestamp"):
        assert properties[f"delta.feature.{name}"] == "supported"
    assert (properties["delta.checkpointPolicy"], properties["delta.minReaderVersion"]) == ("v2", "3")
    assert DeltaTable(URI, storage_options=options).version() == 0
    assert [p.name for p in log.glob("*.json")] == ["00000000000000000000.json"]
    with pytest.raises(CatalogRequiredError):
        DeltaTable(str(log.parent))
    with pytest.raises(TableExistsError):
        unity.create("main.sales.managed", ROWS.schema)


def test_commits_are_ratified_then_published(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    _append(options)
    table = DeltaTable(URI, storage_options=options)
    table.delete("id = 2")
    assert (table.version(), _ids(options)) == (2, [1, 3])
    (latest,) = fake.latest.values()
    assert latest == 2
    assert list(fake.commits.values()) == [[]], "all are published"
    for name in _staged(log):
        published = log / f"{name.partition('.')[0]}.json"
        assert published.read_bytes() == (log / "_staged_commits" / name).read_bytes()


def test_commit_describes_its_file(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    fake.faults.append(Fault("POST /delta", 400, b'{"error_code": "INVALID_ARGUMENT", "message": "no"}'))
    with pytest.raises(CommitError, match=r"Version 1 of main\.sales\.managed was rejected.*Nothing was committed"):
        _append(options)
    assert _staged(log) == []
    fake.faults.clear()
    # the report that version 1 is published is lost, so that the catalog still has the commit
    original = fake._post_delta

    def without_reports(rest: str, query: Any, body: dict[str, Any]) -> tuple[int, Any]:
        return original(rest, query, body) if "commit_info" in body else (200, {})

    fake._post_delta = without_reports  # type: ignore[method-assign]
    _append(options)
    ((found,),) = fake.commits.values()
    (name,) = _staged(log)
    data = (log / "_staged_commits" / name).read_bytes()
    info = json.loads(data.splitlines()[0])["commitInfo"]
    assert (found["file_name"], found["file_size"], found["timestamp"]) == (name, len(data), info["inCommitTimestamp"])
    assert abs(found["file_modification_timestamp"] - found["timestamp"]) < 60_000
    assert _ids(options) == [1, 2, 3]


def test_unpublished_commits_are_read_from_the_catalog(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    for _ in range(4):
        _append(options)
    table_id = fake.tables["main.sales.managed"]["table_id"]
    for name in _staged(log):
        version = int(name.partition(".")[0])
        fake.commits[table_id].append({"version": version, "timestamp": 1, "file_name": name})
        (log / f"{version:020d}.json").unlink()
    # two a page, the newest first
    table = DeltaTable(URI, storage_options=options)
    assert (table.version(), table.count()) == (4, 12)
    _append(options)
    assert sorted(p.name for p in log.glob("*.json")) == [f"{v:020d}.json" for v in range(6)]
    assert fake.commits[table_id] == []


def _meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let another writer change the table just before the next commit is proposed."""
    propose = UnityCommits.propose
    waiting = [change]

    def late(self: UnityCommits, version: int, commit: StagedCommit) -> object:
        if waiting:
            waiting.pop()()
        return propose(self, version, commit)

    monkeypatch.setattr(UnityCommits, "propose", late)


def test_append_that_lost_a_race_is_tried_again(
    fake: FakeCatalog, log: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _append(options)
    _meanwhile(monkeypatch, lambda: DeltaTable(URI, storage_options=options).delete("id = 1"))
    _append(options)
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (3, [1, 2, 2, 3, 3])
    assert len(_staged(log)) == 3, "the commit that lost is deleted"


def test_change_of_rows_that_others_deleted_is_rejected(
    fake: FakeCatalog, log: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _append(options)
    _meanwhile(monkeypatch, lambda: DeltaTable(URI, storage_options=options).delete("id = 1"))
    with pytest.raises(CommitConflictError):
        DeltaTable(URI, storage_options=options).update({"id": "7"}, predicate="id = 1")
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (2, [2, 3])


def test_concurrent_writers_lose_no_rows(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(3):
                _append(options)
        except BaseException as e:  # noqa: BLE001 (asserted below)
            errors.append(e)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    table = DeltaTable(URI, storage_options=options)
    assert (table.version(), table.count()) == (12, 36)


@pytest.mark.parametrize("acts", [True, False])
@pytest.mark.parametrize("status", [None, 503, 500])
def test_lost_answer_commits_once(
    fake: FakeCatalog, log: Path, options: dict[str, str], acts: bool, status: int | None
) -> None:
    fault = Fault("POST /delta", status, acts=acts, times=2)
    fake.faults.append(fault)
    _append(options)
    assert fault.times == 0
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (1, [1, 2, 3])
    assert len(_staged(log)) == 1


def test_commit_waits_for_another_one_that_is_under_way(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    body = b'{"error_code": "UPDATE_REQUIREMENT_CONFLICT", "message": "Concurrent commit in progress; retry"}'
    fake.faults.append(Fault("POST /delta", 409, body, times=2))
    _append(options)
    assert _ids(options) == [1, 2, 3]


def test_page_of_a_proxy_is_no_ratification(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    fake.faults.append(Fault("POST /delta", 200, b"<html>Sign in</html>", times=9))
    with pytest.raises(CommitStateUnknownError, match="can't be used"):
        _append(options)
    fake.faults.clear()
    assert len(_staged(log)) == 1, "the server may have ratified it"
    assert DeltaTable(URI, storage_options=options).version() == 0


def test_commit_is_found_after_all_answers_were_lost(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    fake.faults.append(Fault("POST /delta", None, acts=True, times=4))
    _append(options)
    assert _ids(options) == [1, 2, 3]


def test_commit_of_unknown_fate_is_reported_and_kept(
    fake: FakeCatalog, log: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.faults.append(Fault("POST /delta", None, acts=True, times=99))
    _meanwhile(monkeypatch, lambda: fake.faults.append(Fault("GET /delta", 200, b'{"commits": 1}', times=99)))
    with pytest.raises(CommitStateUnknownError, match="txnId"):
        _append(options)
    fake.faults.clear()
    assert len(_staged(log)) == 1
    assert _ids(options) == [1, 2, 3], "the catalog had ratified it"


def test_catalog_that_is_full_takes_a_commit_once_others_are_published(
    fake: FakeCatalog, log: Path, options: dict[str, str]
) -> None:
    _append(options)
    _append(options)
    table_id = fake.tables["main.sales.managed"]["table_id"]
    for name in _staged(log):
        version = int(name.partition(".")[0])
        fake.commits[table_id].append({"version": version, "timestamp": 1, "file_name": name})
        (log / f"{version:020d}.json").unlink()
    fake.most_commits = 2
    _append(options)
    assert DeltaTable(URI, storage_options=options).count() == 9
    assert (log / f"{1:020d}.json").exists()


def test_definition_reaches_the_catalog(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    table = DeltaTable(URI, storage_options=options)
    table.alter.set_table_properties({"delta.appendOnly": "false", "mine": "yes"})
    (found,) = fake.definitions
    assert found["properties"]["properties"]["mine"] == "yes"
    assert found["properties"]["properties"]["delta.feature.catalogManaged"] == "supported"
    assert [c["name"] for c in found["schema"]["columns"]] == ["id"]


def test_file_outside_of_the_staged_ones_is_rejected(fake: FakeCatalog, log: Path, options: dict[str, str]) -> None:
    table_id = fake.tables["main.sales.managed"]["table_id"]
    fake.latest[table_id] = 1
    fake.commits[table_id] = [{"version": 1, "timestamp": 1, "file_name": "../../other/_delta_log/1.json"}]
    with pytest.raises(CatalogResponseError, match="no name of a file"):
        DeltaTable(URI, storage_options=options)


def _hidden(monkeypatch: pytest.MonkeyPatch, latest: Callable[..., Any]) -> None:
    """Let the catalog list its commits so, from the answer to the next proposal on."""
    propose = UnityCommits.propose

    def then_hidden(self: UnityCommits, version: int, commit: StagedCommit) -> object:
        found = propose(self, version, commit)
        monkeypatch.setattr(UnityCommits, "latest", latest)
        return found

    monkeypatch.setattr(UnityCommits, "propose", then_hidden)


def _unavailable(self: UnityCommits, since: int | None = None) -> Any:
    raise CatalogUnavailableError("The server is down.")


@pytest.mark.parametrize("latest", [_unavailable, lambda self, since=None: (0, [])], ids=["down", "stale"])
def test_commit_whose_conflict_may_be_its_own_is_kept(
    fake: FakeCatalog, log: Path, options: dict[str, str], latest: Callable[..., Any]
) -> None:
    # the answer is lost, and the second request conflicts with the first one
    fake.faults.append(Fault("POST /delta", None, acts=True))
    with pytest.MonkeyPatch.context() as patch:
        _hidden(patch, latest)
        with pytest.raises(CommitStateUnknownError, match="version 1"):
            _append(options)
    assert len(_staged(log)) == 1
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (1, [1, 2, 3])


def _unpublished(fake: FakeCatalog, log: Path) -> None:
    """Let the last commit be ratified and not published, as after its writer was killed."""
    name = _staged(log)[-1]
    version = int(name.partition(".")[0])
    table_id = fake.tables["main.sales.managed"]["table_id"]
    fake.commits[table_id].append({"version": version, "timestamp": 1, "file_name": name})
    (log / f"{version:020d}.json").unlink()


def test_other_commit_in_the_log_does_not_replace_a_ratified_one(
    fake: FakeCatalog, log: Path, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    _append(options)
    (log / f"{2:020d}.json").write_text('{"commitInfo":{"operation":"of another history"}}\n')
    _append(options)
    assert "not the commit that the catalog ratified as version 2" in caplog.text
    ((kept,),) = fake.commits.values()
    assert kept["version"] == 2
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (2, [1, 1, 2, 2, 3, 3])
    (log / f"{2:020d}.json").unlink()
    _append(options)
    assert list(fake.commits.values()) == [[]]
    assert DeltaTable(URI, storage_options=options).count() == 9


def test_full_catalog_rejects_a_commit_while_the_log_has_another_one(
    fake: FakeCatalog, log: Path, options: dict[str, str]
) -> None:
    _append(options)
    _unpublished(fake, log)
    (log / f"{1:020d}.json").write_text('{"commitInfo":{"operation":"of another history"}}\n')
    fake.most_commits = 1
    with pytest.raises(CommitError, match="no room for more commits"):
        _append(options)
    assert (DeltaTable(URI, storage_options=options).version(), _ids(options)) == (1, [1, 2, 3])


def test_ratified_commit_whose_file_is_lost_names_the_remedy(
    fake: FakeCatalog, log: Path, options: dict[str, str]
) -> None:
    _append(options)
    _unpublished(fake, log)
    (staged,) = (log / "_staged_commits").glob("*.json")
    kept = staged.read_bytes()
    staged.unlink()
    with pytest.raises(LogChangedError, match=rf"{staged.name} was listed but is gone.*otherwise restore the file"):
        DeltaTable(URI, storage_options=options).count()
    staged.write_bytes(kept)
    assert _ids(options) == [1, 2, 3]


MAINTENANCE: dict[str, Callable[[DeltaTable], Any]] = {
    "vacuum": lambda t: t.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True),
    "compact": lambda t: t.optimize.compact(),
    "z_order": lambda t: t.optimize.z_order(["id"]),
    "purge": lambda t: t.optimize.purge(),
    "cleanup": lambda t: t.cleanup_metadata(),
    "compact_logs": lambda t: t.compact_logs(0, 1),
}


@pytest.mark.parametrize("operation", MAINTENANCE)
def test_maintenance_by_writers_is_rejected(
    fake: FakeCatalog, log: Path, options: dict[str, str], operation: str
) -> None:
    _append(options)
    _append(options)
    _unpublished(fake, log)
    before = sorted(str(p) for p in log.parent.rglob("*"))
    with pytest.raises(UnsupportedOperationError, match="does not allow"):
        MAINTENANCE[operation](DeltaTable(URI, storage_options=options))
    assert sorted(str(p) for p in log.parent.rglob("*")) == before
    assert _ids(options) == [1, 1, 2, 2, 3, 3]


def test_commit_on_a_table_that_was_dropped_is_rejected(
    fake: FakeCatalog, unity: UnityCatalog, log: Path, options: dict[str, str]
) -> None:
    _append(options)
    table = DeltaTable(URI, storage_options=options)
    unity.drop("main.sales.managed")
    with pytest.raises(CatalogNameNotFoundError):
        table.delete("id = 1")
    # a table of the same name is another one
    unity.create("main.sales.managed", ROWS.schema)
    with pytest.raises(CatalogNameNotFoundError):
        table.delete("id = 1")
    assert DeltaTable(URI, storage_options=options).version() == 0
