"""Feature catalogManaged, written: commits that a catalog ratifies, one a version, published in order."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import (
    CatalogRequiredError,
    CommitStateUnknownError,
    ConcurrentAppendError,
    EngineError,
    FeatureRequirementError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.plugins.catalog import StagedCommit, allows
from delta_core.kernel.snapshot import Snapshot, TableContext, open_context, open_snapshot
from delta_core.kernel.write.files import write_files
from delta_core.operations.create import create_table
from delta_core.operations.feature.add import add_features
from delta_core.operations.feature.drop import DropFeatureOptions, drop_feature
from delta_core.operations.write import WriteOptions, write_table
from delta_core.schema.fields import Schema
from delta_core.testing.memory_catalog import MemoryCatalog
from tests.plugins.written import create

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64())]))
INLINE = 1_000_000


class Managed:
    """A table and its catalog."""

    def __init__(self, path: Path, catalog: MemoryCatalog) -> None:
        self.uri = str(path)
        self.log = path / "_delta_log"
        self.catalog = catalog
        create_table(self.context, SCHEMA, features=["catalogManaged"])

    @property
    def context(self) -> TableContext:
        return open_context(self.uri, commits=self.catalog)

    @property
    def snapshot(self) -> Snapshot:
        return open_snapshot(self.uri, commits=self.catalog)

    def append(self, *ids: int) -> CommitResult:
        done = write_table(self.context, pa.table({"id": list(ids)}), WriteOptions(mode="append"))
        assert done is not None
        return done

    def begin(self, *ids: int) -> Transaction:
        snapshot = self.snapshot
        transaction = Transaction(snapshot.context, snapshot, "WRITE")
        transaction.add_files(write_files(snapshot.engine, transaction.plan, pa.table({"id": list(ids)})).files)
        return transaction

    def ids(self) -> list[int]:
        return sorted(self.snapshot.scan().to_table().column("id").to_pylist())

    @property
    def published(self) -> list[int]:
        return sorted(int(p.stem) for p in self.log.glob("*.json"))

    @property
    def staged(self) -> list[int]:
        return sorted(int(p.name[:20]) for p in self.log.glob("_staged_commits/*.json"))


@pytest.fixture(params=[0, INLINE], ids=["staged", "inline"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Managed:
    return Managed(tmp_path / "t", MemoryCatalog(inline_below=request.param))


class Silent(MemoryCatalog):
    """A catalog whose answers get lost: after it ratified (``after``), or before."""

    def __init__(self, after: bool, **options: Any) -> None:
        super().__init__(**options)
        self.after = after
        self.lost = 0

    def propose(self, version: int, commit: StagedCommit) -> Any:
        if version == 0 or self.lost == 0:
            return super().propose(version, commit)
        self.lost -= 1
        if self.after:
            super().propose(version, commit)
        raise TimeoutError("no answer")


# --- tables --------------------------------------------------------------------------------


def test_new_table_has_what_the_feature_needs(table: Managed) -> None:
    snapshot = table.snapshot
    assert {"catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"} <= snapshot.state.features
    assert snapshot.metadata.configuration == {"delta.enableInCommitTimestamps": "true"}
    line = json.loads((table.log / f"{0:020d}.json").read_text().splitlines()[0])
    assert {"txnId", "inCommitTimestamp"} <= set(line["commitInfo"])


def test_commits_are_ratified_and_published_in_order(table: Managed) -> None:
    for i in range(12):
        result = table.append(i)
    assert table.ids() == list(range(12))
    assert table.published == table.catalog.published_versions == list(range(13))
    assert table.staged == ([] if table.catalog.inline_below else list(range(13)))
    assert table.catalog.ratified == {}
    assert sorted(result.snapshot.scan().to_table().column("id").to_pylist()) == table.ids()


def test_table_is_rejected_without_its_catalog(table: Managed) -> None:
    with pytest.raises(CatalogRequiredError):
        open_snapshot(table.uri)
    with pytest.raises(CatalogRequiredError):
        create(Path(table.uri).parent / "n", [{"name": "id", "type": "long"}], features=["catalogManaged"])


def test_in_commit_timestamps_stay_on(tmp_path: Path) -> None:
    off = {"delta.enableInCommitTimestamps": "false"}
    with pytest.raises(FeatureRequirementError, match="enableInCommitTimestamps=true"):
        create_table(
            open_context(str(tmp_path / "t"), commits=MemoryCatalog()),
            SCHEMA,
            features=["catalogManaged"],
            properties=off,
        )


def test_table_in_its_log_is_not_handed_over(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [{"name": "id", "type": "long"}])
    snapshot = open_snapshot(uri, commits=MemoryCatalog(version=0))
    transaction = Transaction(snapshot.context, snapshot, "ALTER TABLE")
    with pytest.raises(UnsupportedOperationError, match="handed over"):
        transaction.set_metadata(snapshot.metadata, features=["catalogManaged"])


def test_catalog_that_has_no_table_has_none(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="has no table"):
        open_snapshot(str(tmp_path / "t"), commits=MemoryCatalog())


# --- races and failures --------------------------------------------------------------------


def test_loser_rebases_and_leaves_no_staged_commit(table: Managed) -> None:
    slow = table.begin(1)
    table.append(2)
    result = slow.commit()
    assert (result.version, result.attempts, table.ids()) == (2, 2, [1, 2])
    assert table.staged == ([] if table.catalog.inline_below else [0, 1, 2])


def test_second_creation_is_rejected(table: Managed) -> None:
    with pytest.raises(ConcurrentAppendError):
        create_table(table.context, SCHEMA, features=["catalogManaged"])


def test_threads_land_every_append_once(table: Managed) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for i in range(3):
                table.begin(10 * number + i).commit(max_retries=100)
        except Exception as e:  # noqa: BLE001 (the test fails on each)
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert table.ids() == sorted(10 * n + i for n in range(4) for i in range(3))
    table.append(99)
    assert table.published == list(range(14))


@pytest.mark.parametrize("inline_below", [0, INLINE])
def test_answer_that_was_lost_is_found_out(tmp_path: Path, inline_below: int) -> None:
    catalog = Silent(after=True, inline_below=inline_below)
    table = Managed(tmp_path / "t", catalog)
    catalog.lost = 1
    assert table.append(1).attempts == 1
    assert table.ids() == [1]


def test_proposal_that_never_came_is_unknown_and_its_files_stay(tmp_path: Path) -> None:
    catalog = Silent(after=False)
    table = Managed(tmp_path / "t", catalog)
    catalog.lost = 1
    with pytest.raises(CommitStateUnknownError, match="txnId"):
        table.append(1)
    assert (table.staged, table.ids(), len(list(Path(table.uri).glob("*.parquet")))) == ([0, 1], [], 1)
    table.append(2)
    assert table.ids() == [2]


def test_client_that_requests_twice_is_not_reported_that_it_lost(tmp_path: Path) -> None:
    class Twice(MemoryCatalog):
        def propose(self, version: int, commit: StagedCommit) -> Any:
            super().propose(version, commit)
            return super().propose(version, commit)

    table = Managed(tmp_path / "t", Twice())
    assert table.append(1).attempts == 1
    assert table.ids() == [1]


def test_commit_that_was_published_by_another_meanwhile_is_known_again(tmp_path: Path) -> None:
    class Eager(MemoryCatalog):
        """Publishes by itself, forgets, and then specifies that the version is taken."""

        def propose(self, version: int, commit: StagedCommit) -> Any:
            outcome = super().propose(version, commit)
            if version == 0:
                return outcome
            data = (tmp_path / "t" / "_delta_log" / "_staged_commits" / str(commit.content)).read_bytes()
            (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").write_bytes(data)
            self.published(version)
            return super().propose(version, commit)

    table = Managed(tmp_path / "t", Eager())
    assert table.append(1).attempts == 1
    assert table.ids() == [1]


def test_commit_that_can_not_be_published_stays_a_commit_and_is_published_with_the_next(
    table: Managed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    transaction = table.begin(1)
    storage = transaction.context.log.engine.storage
    put = storage.put_if_absent

    def failing(path: str, data: bytes, **options: Any) -> Any:
        if path.endswith(f"_delta_log/{1:020d}.json"):
            raise EngineError("the store is away")
        return put(path, data, **options)

    monkeypatch.setattr(storage, "put_if_absent", failing)
    with caplog.at_level(logging.WARNING):
        result = transaction.commit()
    assert "the store is away" in caplog.text
    assert (table.published, table.ids()) == ([0], [1])
    assert result.snapshot.scan().to_table().column("id").to_pylist() == [1]
    assert list(table.catalog.ratified) == [1]
    table.append(2)
    assert (table.published, table.ids(), table.catalog.ratified) == ([0, 1, 2], [1, 2], {})


# --- maintenance ---------------------------------------------------------------------------


def checkpoints(table: Managed) -> list[str]:
    return sorted(p.name[:20] for p in table.log.glob("*.checkpoint*"))


def test_feature_is_dropped_if_the_catalog_allows_the_checkpoints_before(table: Managed) -> None:
    add_features(table.snapshot, ["deletionVectors"], {})
    table.append(1)
    dropped = drop_feature(table.snapshot, "deletionVectors", DropFeatureOptions()).snapshot
    assert "deletionVectors" not in dropped.state.features
    assert table.snapshot.scan().to_table().to_pydict() == {"id": [1]}
    assert len(list(table.log.glob("*.checkpoint.parquet"))) == 4


def test_feature_is_not_dropped_if_the_catalog_allows_no_checkpoints(tmp_path: Path) -> None:
    table = Managed(tmp_path / "t", MemoryCatalog(allowed=[]))
    version = add_features(table.snapshot, ["deletionVectors"], {}).version
    with pytest.raises(UnsupportedOperationError, match="does not allow checkpoints"):
        drop_feature(table.snapshot, "deletionVectors", DropFeatureOptions())
    assert table.snapshot.version == version


def test_checkpoints_follow_published_commits_where_the_catalog_allows_it(tmp_path: Path) -> None:
    for name, allowed, wanted in (("a", ("checkpoint",), [f"{10:020d}"]), ("b", (), [])):
        table = Managed(tmp_path / name, MemoryCatalog(allowed=allowed))
        for i in range(11):
            table.append(i)
        assert checkpoints(table) == wanted
        assert list(table.log.glob("*.crc")) == []
        assert table.ids() == list(range(11))


@pytest.mark.parametrize(("operation", "unasked"), [("checkpoint", True), ("vacuum", False), ("cleanup", False)])
def test_catalog_that_states_nothing_allows_no_cleaning(operation: str, unasked: bool) -> None:
    class Mute:
        pass

    assert allows(None, operation)
    assert allows(Mute(), operation) is unasked  # type: ignore[arg-type]
    assert allows(MemoryCatalog(allowed=[operation]), operation)
    assert not allows(MemoryCatalog(allowed=[]), operation)
