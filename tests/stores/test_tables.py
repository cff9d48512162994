"""Whole tables on every server: written, read back, by us and by deltalake, by many at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.errors import ConcurrentAppendError, TableNotFoundError
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.log.names import commit_name
from delta_core.kernel.plugins.committer import Committer
from delta_core.storage.stores import open_storage
from delta_core.testing.committer_contract import CommitterContract
from tests.stores.conftest import place
from tests.stores.servers import Server

#: aiohttp's advice to the libraries that talk to GCS and Azure.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")


def rows(first: int, count: int = 3) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "kind": [f"k{first % 3}"] * count})


def ids(table: DeltaTable) -> list[int]:
    found: list[int] = table.to_pyarrow_table()["id"].to_pylist()
    return sorted(found)


class TestCommits(CommitterContract):
    """Commits straight to each server."""

    @pytest.fixture
    def make_committer(self, server: Server) -> Callable[[], Committer]:
        return lambda: StoreCommitter(open_storage(server.bucket, server.options))

    @pytest.fixture
    def read_commit(self, server_storage: Storage) -> Callable[[int], bytes | None]:
        def read(version: int) -> bytes | None:
            try:
                return bytes(server_storage.read([RangeRequest(f"_delta_log/{commit_name(version)}")])[0])
            except FileNotFoundError:
                return None

        return read


def test_table_is_created_appended_to_overwritten_and_read_at_each_version(server: Server) -> None:
    options = dict(server.options)
    with pytest.raises(TableNotFoundError, match="No Delta table at") as caught:
        DeltaTable(server.bucket, storage_options=options)
    assert "The store has nothing at this place" in str(caught.value)
    write_deltalake(server.bucket, rows(0), partition_by=["kind"], storage_options=options)
    table = DeltaTable(server.bucket, storage_options=options)
    write_deltalake(table, rows(10), mode="append")
    write_deltalake(server.bucket, rows(20), mode="append", storage_options=options)
    with pytest.raises(ConcurrentAppendError, match="Version 2"):
        write_deltalake(table, rows(90), mode="overwrite")
    table.update_incremental()
    write_deltalake(table, rows(90), mode="overwrite")
    assert table.version() == 3
    wanted = {0: [0, 1, 2], 1: [0, 1, 2, 10, 11, 12], 2: [0, 1, 2, 10, 11, 12, 20, 21, 22], 3: [90, 91, 92]}
    for version, expected in wanted.items():
        assert ids(DeltaTable(server.bucket, version=version, storage_options=options)) == expected
    assert [h["version"] for h in table.history()] == [3, 2, 1, 0]
    stale = DeltaTable(server.bucket, version=1, storage_options=options)
    stale.update_incremental()
    assert stale.version() == 3


def test_place_with_data_but_no_log_is_named_as_such(server: Server) -> None:
    options = dict(server.options)
    storage = open_storage(server.bucket, server.options)
    storage.put("p=1/a.parquet", b"PAR1")
    with pytest.raises(TableNotFoundError, match="has no _delta_log; 1 Parquet file is below it"):
        DeltaTable(server.bucket, storage_options=options)


def test_checkpoints_on_a_server_are_read_back(server: Server) -> None:
    options = dict(server.options)
    write_deltalake(server.bucket, rows(0), configuration={"delta.checkpointInterval": "4"}, storage_options=options)
    table = DeltaTable(server.bucket, storage_options=options)
    for i in range(1, 10):
        write_deltalake(table, rows(10 * i), mode="append")
    opened = DeltaTable(server.bucket, storage_options=options)
    checkpoint = opened.snapshot().segment.checkpoint
    assert checkpoint is not None
    assert checkpoint.version == 8
    assert ids(opened) == sorted(10 * i + k for i in range(10) for k in range(3))


Job = tuple[int, Callable[..., Any], dict[str, Any]]


def _appended_at_once(bucket: str, jobs: Sequence[Job]) -> list[Exception]:
    """Append three times a thread: from which id on, by whom, with which options; return what failed."""
    failures: list[Exception] = []

    def work(first: int, write: Callable[..., Any], options: dict[str, Any]) -> None:
        try:
            for i in range(3):
                write(bucket, rows(first + 10 * i), mode="append", storage_options=options)
        except Exception as e:  # noqa: BLE001 (the test fails on each)
            failures.append(e)

    threads = [threading.Thread(target=work, args=job) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def test_eight_threads_append_at_once_and_every_row_is_there_once(server: Server) -> None:
    options = dict(server.options)
    write_deltalake(server.bucket, rows(0), storage_options=options)
    assert _appended_at_once(server.bucket, [(100 * n, write_deltalake, options) for n in range(1, 9)]) == []
    wanted = [0, 1, 2] + [100 * n + 10 * i + k for n in range(1, 9) for i in range(3) for k in range(3)]
    table = DeltaTable(server.bucket, storage_options=options)
    assert (table.version(), ids(table)) == (24, wanted)


WRITER = """
import json, sys
import pyarrow as pa
from delta_core import write_deltalake
uri, options, first = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
for i in range(3):
    ids = [first + 10 * i + k for k in range(3)]
    rows = pa.table({"id": pa.array(ids, pa.int64()), "kind": ["k"] * 3})
    write_deltalake(uri, rows, mode="append", storage_options=options)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["versitygw", "azurite"])
def test_processes_append_at_once_and_every_row_is_there_once(name: str, start_server: Callable[[str], Server]) -> None:
    server = place(start_server(name))
    options = dict(server.options)
    write_deltalake(server.bucket, rows(0), storage_options=options)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, server.bucket, json.dumps(options), str(100 * n)])
        for n in range(1, 5)
    ]
    assert [w.wait(120) for w in writers] == [0] * 4
    wanted = [0, 1, 2] + [100 * n + 10 * i + k for n in range(1, 5) for i in range(3) for k in range(3)]
    assert ids(DeltaTable(server.bucket, storage_options=options)) == wanted


# --- beside deltalake ----------------------------------------------------------------------


@pytest.fixture
def peer(server: Server) -> Any:
    if not server.peer_options:
        pytest.skip("deltalake is not tried on this server")
    return pytest.importorskip("deltalake")


@pytest.mark.peer
def test_deltalake_reads_and_appends_what_we_write_and_the_other_way_round(server: Server, peer: Any) -> None:
    theirs = dict(server.peer_options)
    write_deltalake(server.bucket, rows(0), partition_by=["kind"], storage_options=dict(server.options))
    found = peer.DeltaTable(server.bucket, storage_options=theirs)
    assert sorted(found.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    peer.write_deltalake(found, rows(10), mode="append")
    table = DeltaTable(server.bucket, storage_options=dict(server.options))
    assert ids(table) == [0, 1, 2, 10, 11, 12]
    write_deltalake(table, rows(20), mode="append")
    again = peer.DeltaTable(server.bucket, storage_options=theirs)
    assert sorted(again.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


@pytest.mark.peer
def test_options_in_deltalakes_names_open_a_table_here(server: Server, peer: Any) -> None:
    del peer
    if server.bucket.startswith("az"):
        pytest.skip("adlfs reaches an emulator by its connection string alone")
    write_deltalake(server.bucket, rows(0), storage_options=dict(server.peer_options))
    assert ids(DeltaTable(server.bucket, storage_options=dict(server.peer_options))) == [0, 1, 2]


@pytest.mark.peer
def test_deltalake_and_we_append_at_once_and_nothing_is_lost(server: Server, peer: Any) -> None:
    if server.bucket.startswith("az"):
        pytest.skip("deltalake does not survive races on this emulator, not even against itself")
    ours, theirs = dict(server.options), dict(server.peer_options)
    write_deltalake(server.bucket, rows(0), storage_options=ours)
    jobs = [(100, write_deltalake, ours), (200, peer.write_deltalake, theirs), (300, write_deltalake, ours)]
    assert _appended_at_once(server.bucket, jobs) == []
    wanted = [0, 1, 2] + [100 * n + 10 * i + k for n in range(1, 4) for i in range(3) for k in range(3)]
    assert ids(DeltaTable(server.bucket, storage_options=ours)) == wanted
