"""Tables, snapshots and scans in other processes: what a pickle holds, and no secrets unless requested."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import EngineError, UnsupportedOperationError
from delta_core.handles.opening import Opening, Pickled
from delta_core.handles.secrets import secret_names, shown_uri, without_secrets
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.table_builder import TableBuilder

SECRETS = {
    "AWS_ACCESS_KEY_ID": "s3cr3t-id",
    "aws_secret_access_key": "s3cr3t-key",
    "AWS_SESSION_TOKEN": "s3cr3t-session",
    "key": "s3cr3t",
    "secret": "s3cr3t",
    "token": "s3cr3t",
    "azure_storage_account_key": "s3cr3t",
    "sas_token": "s3cr3t",
    "connectionString": "s3cr3t",
    "connection_string": "AccountKey=s3cr3t",
    "google_service_account_key": "s3cr3t",
    "client_secret": "s3cr3t",
    "password": "s3cr3t",
    "accountkey": "s3cr3t",
    "proxy": "http://me:s3cr3t@proxy:80",
}
PLAIN = {
    "region": "eu-north-1",
    "endpoint_url": "http://127.0.0.1:9000",
    "anon": True,
    "account_name": "shop",
    "tenant_id": "t",
    "requester_pays": False,
    "profile": "shop",
    "use_ssl": True,
}


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path / "t").create({"id": "long", "kind": "string"}, partition_by=["kind"])
    return builder.append([{"id": i, "kind": "ab"[i % 2]} for i in range(6)]).append([{"id": 6, "kind": "a"}])


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


# --- what comes back -----------------------------------------------------------------------


def test_table_comes_back_at_its_version_and_may_move_on(table: TableBuilder) -> None:
    found = again(DeltaTable(table.uri, version=1))
    assert (type(found), found.version(), found.schema()) == (DeltaTable, 1, table.schema)
    assert found.to_pyarrow_table().num_rows == 6
    found.update_incremental()
    assert found.version() == 2
    write_deltalake(found, pa.table({"id": [7], "kind": ["b"]}), mode="append")
    assert again(found).to_pyarrow_table().num_rows == 8


def test_snapshot_comes_back_with_its_time_zone(table: TableBuilder) -> None:
    found = again(open_snapshot(table.uri, version=1, timezone="Europe/Paris"))
    assert (found.version, found.timezone, found.files.count) == (1, "Europe/Paris", 2)


@pytest.mark.parametrize("predicate", [None, "id > 2 AND kind = 'a'", [("id", "in", [1, 4, 6])]])
def test_scan_comes_back_as_it_was_planned(table: TableBuilder, predicate: Any) -> None:
    scan = DeltaTable(table.uri).scan(["id"], predicate, metadata=["_file_row_index"], limit=4)
    assert again(scan).to_table().equals(scan.to_table())
    assert again(again(scan)).files().equals(scan.files())


def test_subclass_comes_back_as_itself(table: TableBuilder) -> None:
    assert type(again(Sales(table.uri))) is Sales


class Sales(DeltaTable):
    """A table of a user's own class."""


def test_relative_path_is_found_from_another_folder(
    table: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps(DeltaTable("t").scan(["id"]))
    code = "import pickle, sys\nprint(pickle.loads(sys.stdin.buffer.read()).to_table().num_rows)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=data, capture_output=True, cwd="/", timeout=60, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (b"7", b"")


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copy_moves_by_itself_and_keeps_its_options(table: TableBuilder, make: Callable[[Any], Any]) -> None:
    first = DeltaTable(table.uri, storage_options={"password": "s3cr3t"})
    second = make(first)
    second.load_as_version(1)
    assert (first.version(), second.version()) == (2, 1)
    assert second._options["storage_options"] == {"password": "s3cr3t"}
    assert make(first.snapshot()) is first.snapshot()


# --- secrets -------------------------------------------------------------------------------


def test_pickle_holds_no_secret_unless_requested() -> None:
    opening = Opening("s3://bucket/t", {**SECRETS, **PLAIN, "client_kwargs": {**SECRETS, **PLAIN}})
    pickled = opening.pickled(3)
    assert b"s3cr3t" not in pickle.dumps(pickled)
    assert pickled.arguments["storage_options"] == {**PLAIN, "client_kwargs": PLAIN}
    assert set(pickled.left_out) == {*SECRETS, *(f"client_kwargs.{name}" for name in SECRETS)}


def test_no_text_of_a_table_holds_a_secret(table: TableBuilder) -> None:
    found = DeltaTable(table.uri, storage_options={"password": "s3cr3t", "region": "north"})
    snapshot = found.snapshot()
    for value in (found, snapshot, snapshot.context, snapshot.scan(), snapshot.context.opening, snapshot.pickled()):
        assert "s3cr3t" not in repr(value) + str(value)


def test_pickle_of_a_table_holds_no_secret_unless_requested(table: TableBuilder) -> None:
    options = {"password": "s3cr3t", "region": "north"}
    for what in (DeltaTable, open_snapshot):
        bare, whole = (
            what(table.uri, storage_options=options),
            what(table.uri, storage_options=options, pickle_secrets=True),
        )
        assert b"s3cr3t" not in pickle.dumps(bare)
        assert b"s3cr3t" in pickle.dumps(whole)
        # what was requested once holds in each process that it is handed on to
        assert b"s3cr3t" in pickle.dumps(again(whole))
    assert again(DeltaTable(table.uri, storage_options=options))._options["storage_options"] == {"region": "north"}


@pytest.mark.parametrize("value", ["anon", "cloud", "google_default", True, None])
def test_way_of_finding_credentials_is_no_secret(value: Any) -> None:
    assert without_secrets({"token": value}) == {"token": value}
    assert secret_names({"token": value}) == []


def test_store_that_fails_without_secrets_states_which_were_left_out() -> None:
    refused = EngineError("Could not read 'x'.", path="x")
    found = Pickled({"uri": "s3://bucket/t"}, 1, ("secret", "client_kwargs.token")).explained(refused)
    assert "secret, client_kwargs.token were left out" in str(found)
    assert "pickle_secrets=True" in str(found)
    assert found.path == "x"
    assert Pickled({}, 1).explained(refused) is refused


@pytest.mark.parametrize(
    ("uri", "shown"),
    [("sftp://me:pw@host/t", "sftp://***@host/t"), ("s3://bucket/a@b:c", "s3://bucket/a@b:c"), ("/a:b@c", "/a:b@c")],
)
def test_password_of_a_uri_is_not_shown(uri: str, shown: str) -> None:
    assert shown_uri(uri) == shown


# --- what can't be pickled -----------------------------------------------------------------


def test_object_that_cannot_be_pickled_is_named(table: TableBuilder) -> None:
    class Local:
        """A committer that no other process can import."""

    with pytest.raises(UnsupportedOperationError, match=r"opened with committer=Local\(\)"):
        pickle.dumps(DeltaTable(table.uri, committer=Local()))


def test_scan_of_given_files_and_dataset_state_what_to_pickle_instead(table: TableBuilder) -> None:
    found = DeltaTable(table.uri)
    with pytest.raises(UnsupportedOperationError, match="pickle the table"):
        pickle.dumps(found.snapshot().scan(files=found.snapshot().files))
    with pytest.raises(UnsupportedOperationError, match="pickle the table"):
        pickle.dumps(found.dataset())


def test_table_that_is_gone_raises_when_it_is_loaded(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t").create({"id": "long"})
    data = pickle.dumps(DeltaTable(builder.uri))
    (tmp_path / "t").rename(tmp_path / "u")
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)
    assert json.dumps(str(tmp_path)).strip('"') in str(data)
