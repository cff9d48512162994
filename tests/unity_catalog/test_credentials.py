"""Credentials that the catalog issues: for each kind of store, to write or to read, and renewed."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    CatalogError,
    CatalogPermissionError,
    CatalogResponseError,
    EngineError,
    UnsupportedOperationError,
)
from delta_core.storage.stores import open_storage
from delta_plugins.unity_catalog.credentials import StoreCredentials, table_request
from delta_plugins.unity_catalog.options import read_settings
from tests.stores.servers import SERVERS, Server, ServerMissingError
from tests.unity_catalog.fake import TOKEN, FakeCatalog, Fault

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
SECRET = "secret-of-tester"
S3 = {"access_key_id": "tester", "secret_access_key": SECRET}


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        with SERVERS["versitygw"](tmp_path_factory.mktemp("versitygw")) as server:
            yield server
    except ServerMissingError as e:
        pytest.skip(str(e))


def _credentials(fake: FakeCatalog, scheme: str, clock: Any = time.time, **more: str) -> StoreCredentials:
    record = fake.add("main.sales.t", f"{scheme}://bucket/t")
    settings = read_settings({"unity_catalog_url": fake.url, **more})
    return StoreCredentials(settings, table_request(record["table_id"]), scheme, "table main.sales.t", clock)


@pytest.mark.parametrize(
    ("scheme", "answer", "expected"),
    [
        ("s3", {"aws_temp_credentials": S3}, {"aws_access_key_id": "tester", "aws_secret_access_key": SECRET}),
        (
            "s3a",
            {"aws_temp_credentials": {**S3, "session_token": "t"}},
            {"aws_access_key_id": "tester", "aws_secret_access_key": SECRET, "aws_session_token": "t"},
        ),
        ("abfss", {"azure_user_delegation_sas": {"sas_token": "?sig=x"}}, {"azure_storage_sas_token": "sig=x"}),
    ],
)
def test_credentials_become_options_of_the_store(
    fake: FakeCatalog, scheme: str, answer: dict[str, Any], expected: dict[str, str]
) -> None:
    fake.credentials = lambda operation: answer
    assert _credentials(fake, scheme, aws_region="eu-north-1")() == {"aws_region": "eu-north-1", **expected}


def test_token_of_google_is_no_name_of_a_file(fake: FakeCatalog) -> None:
    pytest.importorskip("gcsfs")
    fake.credentials = lambda operation: {"gcp_oauth_token": {"oauth_token": "ya29"}}
    options = _credentials(fake, "gs")()
    assert options["token"].token == "ya29"
    storage = open_storage("gs://bucket/t", options)
    assert storage._fs.credentials.credentials.token == "ya29"  # type: ignore[union-attr]


def test_account_and_signature_open_azure(fake: FakeCatalog) -> None:
    pytest.importorskip("adlfs")
    fake.credentials = lambda operation: {"azure_user_delegation_sas": {"sas_token": "sig=x"}}
    options = _credentials(fake, "abfss")()
    storage = open_storage("abfss://data@account.dfs.core.windows.net/t", options)
    fs = storage._fs  # type: ignore[union-attr]
    assert (fs.account_name, fs.sas_token.lstrip("?")) == ("account", "sig=x")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ({}, "no credentials"),
        ({"gcp_oauth_token": {"oauth_token": SECRET}}, "gcp_oauth_token for a store of the scheme s3"),
        ({"aws_temp_credentials": SECRET}, "no object"),
        ({"aws_temp_credentials": {**S3, "access_key_id": None}}, "access_key_id is no text"),
        ({"aws_temp_credentials": S3, "expiration_time": SECRET}, "expiration_time"),
    ],
)
def test_answer_that_is_malformed_is_rejected_without_its_secrets(
    fake: FakeCatalog, answer: dict[str, Any], found: str
) -> None:
    fake.credentials = lambda operation: answer
    with pytest.raises(CatalogResponseError, match=found) as e:
        _credentials(fake, "s3")()
    assert SECRET not in str(e.value)


def test_credentials_of_another_vendor_are_rejected(fake: FakeCatalog) -> None:
    fake.credentials = lambda operation: {"r2_temp_credentials": S3}
    with pytest.raises(UnsupportedOperationError, match="Cloudflare R2"):
        _credentials(fake, "s3")()


def test_reader_gets_credentials_to_read(fake: FakeCatalog) -> None:
    def issue(operation: str) -> dict[str, Any]:
        if operation != "READ":
            raise PermissionError
        return {"aws_temp_credentials": S3}

    fake.credentials = issue
    assert _credentials(fake, "s3")()["aws_access_key_id"] == "tester"


def test_token_that_gets_none_is_rejected(fake: FakeCatalog) -> None:
    def issue(operation: str) -> dict[str, Any]:
        raise PermissionError

    fake.credentials, fake.token = issue, TOKEN
    with pytest.raises(CatalogPermissionError, match="no READ for the token") as e:
        _credentials(fake, "s3", unity_catalog_token=TOKEN)()
    assert TOKEN not in str(e.value)


class _Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def _numbered(fake: FakeCatalog, clock: _Clock, life: float) -> None:
    """Issue the keys key0, key1 ... that expire after so many seconds."""
    keys = iter(range(100))
    fake.credentials = lambda operation: {
        "aws_temp_credentials": {**S3, "access_key_id": f"key{next(keys)}"},
        "expiration_time": int((clock.now + life) * 1000),
    }


@pytest.mark.parametrize(("life", "kept", "renewed"), [(3600.0, 3299.0, 3301.0), (60.0, 29.0, 31.0)])
def test_credentials_are_renewed_before_they_expire(
    fake: FakeCatalog, life: float, kept: float, renewed: float
) -> None:
    clock = _Clock()
    _numbered(fake, clock, life)
    credentials = _credentials(fake, "s3", clock)
    first = credentials()
    clock.now = 1_000.0 + kept
    assert credentials() is first
    clock.now = 1_000.0 + renewed
    assert credentials()["aws_access_key_id"] == "key1"


def test_credentials_serve_until_they_expire_if_the_server_is_down(fake: FakeCatalog) -> None:
    clock = _Clock()
    _numbered(fake, clock, 3600.0)
    credentials = _credentials(fake, "s3", clock)
    credentials()
    fault = Fault("POST /temporary", 503, times=1000)
    fake.faults.append(fault)
    clock.now += 3400.0
    assert credentials()["aws_access_key_id"] == "key0"
    clock.now += 300.0
    with pytest.raises(CatalogError, match="503"):
        credentials()
    fault.times = 0
    assert credentials()["aws_access_key_id"] == "key1"


def test_dropped_table_is_no_missing_file(fake: FakeCatalog) -> None:
    clock = _Clock()
    _numbered(fake, clock, 60.0)
    credentials = _credentials(fake, "s3", clock)
    credentials()
    fake.tables.clear()
    clock.now += 100.0
    with pytest.raises(CatalogError, match="can't be issued any more") as e:
        credentials()
    assert not isinstance(e.value, FileNotFoundError)


def test_pickled_credentials_are_issued_again(fake: FakeCatalog) -> None:
    fake.credentials = lambda operation: {"aws_temp_credentials": S3}
    credentials = _credentials(fake, "s3")
    credentials()
    data = pickle.dumps(credentials)
    assert SECRET.encode() not in data
    assert pickle.loads(data)() == credentials()
    assert SECRET not in repr(credentials)


def test_table_on_s3_is_written_and_read(fake: FakeCatalog, s3: Server, tmp_path: Path) -> None:
    fake.credentials = lambda operation: {"aws_temp_credentials": S3}
    place = f"{s3.bucket}/written"
    options = {"unity_catalog_url": fake.url, "aws_endpoint_url": s3.endpoint, "aws_region": "us-east-1"}
    write_deltalake(place, ROWS, storage_options=s3.options)
    fake.add("main.sales.s3", place)
    uri = "uc://main.sales.s3"
    write_deltalake(uri, ROWS, mode="append", storage_options=options)
    assert DeltaTable(uri, storage_options=options).count() == 6
    assert DeltaTable(place, storage_options=s3.options).version() == 1


def test_open_table_goes_on_with_renewed_credentials(fake: FakeCatalog, s3: Server) -> None:
    keys = [{**S3, "secret_access_key": "not-valid-any-more"}, S3]
    place = f"{s3.bucket}/renewed"
    write_deltalake(place, ROWS, storage_options=s3.options)
    fake.add("main.sales.renewed", place)
    fake.credentials = lambda operation: {
        "aws_temp_credentials": keys.pop(0), "expiration_time": int((time.time() + 4) * 1000)
    }  # fmt: skip
    options = {"unity_catalog_url": fake.url, "aws_endpoint_url": s3.endpoint, "aws_region": "us-east-1"}
    from delta_core.api import make_engine

    storage = make_engine("arrow", "uc://main.sales.renewed", options).storage
    with pytest.raises(EngineError, match="Could not list"):
        storage.list_from("_delta_log")
    time.sleep(2.1)
    assert "00000000000000000000.json" in storage.list_from("_delta_log").names
    assert not keys
