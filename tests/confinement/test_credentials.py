"""Credentials go to the table's own host and bucket, and to places that the caller names."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from delta_core.engines.records import RangeRequest
from delta_core.errors import EngineError, ExternalPathError
from delta_core.storage.credentials import without_credentials
from delta_core.storage.stores import open_storage

KEYS = {
    "AWS_ACCESS_KEY_ID": "key-id",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "session",
    "AWS_REGION": "us-east-1",
}


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """An S3 endpoint that has every object but those named ``private``; returns its URL and its requests."""
    seen: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            secrets = [v for k, v in self.headers.items() if k.lower() in ("authorization", "x-amz-security-token")]
            seen.append((self.path.partition("?")[0], " ".join(secrets)))
            self.send_response(403 if "private" in self.path else 200)
            self.send_header("Content-Length", "4" if "private" not in self.path else "0")
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            self.send_header("ETag", '"1"')
            self.end_headers()
            if self.command == "GET" and "private" not in self.path:
                self.wfile.write(b"data")

        do_HEAD = do_GET  # noqa: N815  (the name that the server looks for)

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{found.server_port}", seen
    finally:
        found.shutdown()
        found.server_close()


@pytest.mark.parametrize("environment", [False, True], ids=["options", "environment"])
def test_another_bucket_is_read_without_credentials(
    server: tuple[str, list[tuple[str, str]]], monkeypatch: pytest.MonkeyPatch, environment: bool
) -> None:
    pytest.importorskip("s3fs")
    url, seen = server
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value) if environment else monkeypatch.delenv(name, raising=False)
    options = {"AWS_ENDPOINT_URL": url, **({} if environment else KEYS)}
    storage = open_storage("s3://own/t", options)
    for path in ("s3://own/clone/f", "s3a://own/clone/f", "/clone/f", "../clone/f"):
        assert bytes(storage.read([RangeRequest(path)])[0]) == b"data"
        place, secrets = seen.pop()
        assert place == "/own/clone/f"
        assert "key-id" in secrets
        assert "session" in secrets
    seen.clear()
    for path in ("s3://other/clone/f", "s3a://other/t/../clone/f"):
        assert bytes(storage.read([RangeRequest(path)])[0]) == b"data"
        assert storage.stat([path])[0][0] == 4
        assert {s for p, s in seen if p == "/other/clone/f"} == {""}
        assert not [p for p, s in seen if s]
        seen.clear()
    allowed = open_storage("s3://own/t", options, ["s3://other/clone"])
    assert bytes(allowed.read([RangeRequest("s3://other/clone/f")])[0]) == b"data"
    assert "key-id" in seen.pop()[1]
    assert bytes(allowed.read([RangeRequest("s3://other/f")])[0]) == b"data"
    assert seen.pop() == ("/other/f", "")


def test_other_bucket_that_wants_credentials_is_reported_with_the_option(
    server: tuple[str, list[tuple[str, str]]],
) -> None:
    pytest.importorskip("s3fs")
    storage = open_storage("s3://own/t", {**KEYS, "AWS_ENDPOINT_URL": server[0]})
    with pytest.raises(
        EngineError, match="read without credentials since it is not the table's own; name it in allow_external"
    ):
        storage.read([RangeRequest("s3://other/private")])


@pytest.mark.parametrize("path", ["az://own/f", "abfss://own@mine.dfs.core.windows.net/f"])
def test_azure_container_is_the_tables_own_however_it_is_spelled(path: str) -> None:
    pytest.importorskip("adlfs")
    for root in ("az://own/t", "abfss://own@mine.dfs.core.windows.net/t"):
        storage = open_storage(root, {"AZURE_STORAGE_ACCOUNT_NAME": "mine", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"})
        assert storage.uri_for_engine(path) == path


@pytest.mark.parametrize(
    "path",
    ["az://other/f", "abfss://own@theirs.dfs.core.windows.net/f", "abfss://own@theirs.example.com/f", "s3://own/f"],
)
def test_other_azure_accounts_and_containers_are_rejected(path: str) -> None:
    pytest.importorskip("adlfs")
    options = {"AZURE_STORAGE_ACCOUNT_NAME": "mine", "AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}
    storage = open_storage("az://own/t", options)
    with pytest.raises(ExternalPathError):
        storage.open(path)
    allowed = open_storage("az://own/t", options, ["az://other", "abfss://own@theirs.dfs.core.windows.net"])
    if path in ("az://other/f", "abfss://own@theirs.dfs.core.windows.net/f"):
        assert allowed.uri_for_engine(path) == path
    else:
        with pytest.raises(ExternalPathError):
            allowed.uri_for_engine(path)


@pytest.mark.parametrize(
    ("kind", "given", "left"),
    [
        (
            "s3", {"key": "k", "secret": "s", "token": "t", "endpoint_url": "http://h", "profile": "p",
                   "use_ssl": False,
                   "client_kwargs": {"region_name": "r", "aws_secret_access_key": "s"},
                   "config_kwargs": {"s3": {"addressing_style": "path"}, "proxies": {"http": "user:password@h"}}},
            {"endpoint_url": "http://h", "use_ssl": False, "anon": True, "client_kwargs": {"region_name": "r"},
             "config_kwargs": {"s3": {"addressing_style": "path"}}},
        ),
        ("gs", {"GOOGLE_SERVICE_ACCOUNT": "key.json", "endpoint_url": "http://h"}, {"token": "anon", "endpoint_url": "http://h"}),
        ("memory", {"anything": 1}, {}),
    ],
)  # fmt: skip
def test_options_that_open_a_store_without_credentials(kind: str, given: dict[str, Any], left: dict[str, Any]) -> None:
    assert without_credentials(kind, given) == left
