"""fsspec's filesystems of every kind: exclusive ones, those that rename, and those that are rejected."""

from __future__ import annotations

import pickle
import shutil
import uuid
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from benchmarks.latency import LatencyFileSystem, register as register_latency
from delta_core import DeltaTable, write_deltalake
from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import (
    CommitError,
    EngineError,
    ExternalPathError,
    InvalidArgumentError,
    UnsupportedOperationError,
)
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.publishing import prove_exclusive
from delta_core.kernel.plugins.committer import Committed, Conflict, Proposal
from delta_core.storage.stores import open_storage
from delta_core.testing.storage_contract import StorageContract
from delta_core.testing.table_builder import TableBuilder
from tests.stores.filesystems import register

register()
register_latency()


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return open_storage(f"memory://{uuid.uuid4().hex}/t")

    @pytest.fixture
    def failing_storage(self) -> None:
        pytest.skip("memory does not fail")


class TestAsynchronous(StorageContract):
    """A filesystem of asynchronous calls, each of which takes a while."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(f"latency://{tmp_path}/t", {"delay_ms": 1})

    @pytest.fixture
    def failing_storage(self, tmp_path: Path) -> Storage:
        fsspec.register_implementation("broken", Broken, clobber=True)
        (tmp_path / "_delta_log").mkdir()
        return open_storage(f"broken://{tmp_path}")


class Broken(LatencyFileSystem):
    """Every call fails."""

    protocol = "broken"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("broken://")

    async def _called(self, kind: str, path: str, times: int = 1) -> None:
        raise RuntimeError("the line is cut")


class TestRenaming(StorageContract):
    """A filesystem that renames without replacing, as HDFS does."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(f"renaming://{tmp_path}/t")

    @pytest.fixture
    def failing_storage(self, tmp_path: Path) -> Storage:
        (tmp_path / "loop").symlink_to("loop")
        return open_storage(f"renaming://{tmp_path}/loop")


class TestRenamingInSilence(TestRenaming):
    """The same if a rename that failed raises nothing."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> Storage:
        return open_storage(f"silentrenaming://{tmp_path}/t")


@pytest.mark.parametrize("scheme", ["renaming", "silentrenaming", "latency"])
def test_filesystem_that_proves_itself_commits(scheme: str, tmp_path: Path) -> None:
    committer = StoreCommitter(open_storage(f"{scheme}://{tmp_path}/t"))
    assert isinstance(committer.commit(Proposal(0, b"one\n", "t1", 0)), Committed)
    assert committer.commit(Proposal(0, b"two\n", "t2", 0)) == Conflict(0)
    names = [p.name for p in (tmp_path / "t" / "_delta_log").iterdir()]
    assert names == [f"{0:020d}.json"], "neither probes nor temporary files stay"


@pytest.mark.parametrize(
    ("scheme", "what"),
    [
        ("lying", "puts at once succeed"),
        ("looking", "puts at once succeed"),
        ("replacing", "puts at once succeed"),
        ("copying", "neither creates files exclusively nor renames them"),
    ],
)
def test_filesystem_that_loses_commits_is_rejected(scheme: str, what: str, tmp_path: Path) -> None:
    storage = open_storage(f"{scheme}://{tmp_path}/t")
    for _ in range(2):  # a failed proof is not remembered as a success
        with pytest.raises(CommitError, match=what) as caught:
            StoreCommitter(storage).commit(Proposal(0, b"one\n", "t1", 0))
        assert "committer=" in str(caught.value)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_proof_holds_for_its_store_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_core.kernel.commit import publishing

    monkeypatch.setattr(publishing, "_proven", set())
    first, second = (open_storage(f"memory://{name}/t") for name in ("one", "two"))
    prove_exclusive(first, "_delta_log")
    prove_exclusive(open_storage("memory://one/other"), "_delta_log")
    assert publishing._proven == {"memory://one"}
    prove_exclusive(second, "_delta_log")
    assert publishing._proven == {"memory://one", "memory://two"}


def test_stores_behind_different_endpoints_are_different_stores() -> None:
    pytest.importorskip("s3fs")
    keys = {"key": "a", "secret": "b"}
    stores = {open_storage("s3://bucket/t", {**keys, "endpoint_url": f"http://h{i}"}).store for i in range(2)}
    stores.add(open_storage("s3://bucket/t", keys).store)
    assert len(stores) == 3


def test_proof_without_the_right_to_delete_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(f"renaming://{tmp_path}/t")

    def forbidden(paths: object) -> None:
        raise EngineError("not allowed")

    monkeypatch.setattr(storage, "delete", forbidden)
    prove_exclusive(storage, "_delta_log")


def test_storage_survives_pickling(tmp_path: Path) -> None:
    for uri in (str(tmp_path / "t"), f"renaming://{tmp_path}/t", "memory://x/t"):
        storage = open_storage(uri)
        storage.put("f", b"1")
        again: Storage = pickle.loads(pickle.dumps(storage))
        assert type(again) is type(storage)
        assert bytes(again.read([RangeRequest("f")])[0]) == b"1"


def test_files_of_other_stores_that_are_allowed_are_read_through_theirs(tmp_path: Path) -> None:
    local = open_storage(str(tmp_path / "t"), None, ["memory://"])
    memory = open_storage(f"memory://{uuid.uuid4().hex}/t", None, [str(tmp_path)])
    memory.put("there", b"in memory")
    local.put("here", b"on disk")
    calls: list[tuple[Storage, str, bytes]] = [
        (local, memory.uri("there"), b"in memory"),
        (memory, "file://" + local.uri("here"), b"on disk"),
    ]
    for storage, uri, data in calls:
        assert bytes(storage.read([RangeRequest(uri)])[0]) == data
        assert storage.stat([uri])[0][0] == len(data)
        with storage.open(uri) as file:
            assert file.read() == data
        with pytest.raises(ExternalPathError, match="nothing outside the table's root is written or deleted"):
            storage.put_if_absent(uri, b"again")
        with pytest.raises(ExternalPathError, match="written or deleted"):
            storage.delete([uri])
        assert bytes(storage.read([RangeRequest(uri)])[0]) == data


@pytest.mark.parametrize("chain", ["zip", "simplecache", "zip in a cache"])
def test_chains_of_filesystems_are_read_and_never_written(chain: str, tmp_path: Path) -> None:
    made = TableBuilder(tmp_path / "t").create(
        {"id": "long", "p": "string"}, partition_by=["p"], features=["deletionVectors"]
    )
    made.append([{"id": i, "p": "a b"} for i in range(3)]).checkpoint().delete_rows(lambda row: row["id"] == 1)
    archive = shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path, "t")
    uri = {
        "zip": f"zip://t::{archive}",
        "simplecache": f"simplecache::file://{tmp_path}/t",
        "zip in a cache": f"simplecache::zip://t::file://{archive}",
    }[chain]
    table = DeltaTable(uri, storage_options={"zip": {"mode": "r"}} if chain == "zip" else None)
    rows = table.snapshot().scan(metadata=["_file_path"]).to_table()
    assert sorted(rows.column("id").to_pylist()) == [0, 2]
    path = rows.column("_file_path")[0].as_py()
    assert path in table.file_uris()
    with fsspec.open(path) as file:
        assert file.read(4) == b"PAR1"
    again: Storage = pickle.loads(pickle.dumps(table.snapshot().engine.storage))
    assert again.list_from("_delta_log", f"{1:020d}").names
    with pytest.raises(UnsupportedOperationError, match="only read"):
        write_deltalake(table, pa.table({"id": [9], "p": ["c"]}), mode="append")
    with pytest.raises(UnsupportedOperationError, match="only read"):
        again.put_if_absent("x", b"")


def test_chain_that_leads_nowhere_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"nothing\.zip"):
        DeltaTable(f"zip://t::{tmp_path}/nothing.zip")
    with pytest.raises(InvalidArgumentError, match="nosuch"):
        DeltaTable(f"simplecache::nosuch://{tmp_path}")


def test_unknown_scheme_is_rejected_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="nosuch"):
        open_storage("nosuch://bucket/t")


def test_filesystem_made_by_arrow_goes_by_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HDFS comes through this wrapper; the local disk behind it renames over what is there, and so is rejected."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import LocalFileSystem

    class Wrapped(ArrowFSWrapper):  # type: ignore[misc]
        protocol = "arrowlocal"
        cachable = False

        def __init__(self, **options: object) -> None:
            super().__init__(LocalFileSystem())

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return path.removeprefix("arrowlocal://")

    fsspec.register_implementation("arrowlocal", Wrapped, clobber=True)
    storage = open_storage(f"arrowlocal://{tmp_path}/t")
    storage.put("a/b", b"1")
    storage.put("a/b", b"22")
    assert (bytes(storage.read([RangeRequest("a/b")])[0]), storage.list_from("a").names) == (b"22", ["b"])
    with pytest.raises(CommitError, match="puts at once succeed"):
        prove_exclusive(storage, "_delta_log")


def test_filesystem_that_can_not_be_opened_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """HDFS lists every place where it looked for Java."""

    def fail(scheme: str, **options: Any) -> None:
        raise OSError("Unable to load libjvm\ndlopen(/a) failed\ndlopen(/b) failed")

    monkeypatch.setattr(fsspec, "filesystem", fail)
    with pytest.raises(EngineError, match=r"of latency://t: OSError: Unable to load libjvm\.$"):
        open_storage("latency://t")
