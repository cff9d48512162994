"""Passwords in URIs are in no message, log line, representation or pickle, whatever the store and the call."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.cli.app import main
from delta_core.errors import EngineError, InvalidArgumentError, without_passwords
from delta_core.handles.secrets import without_secrets

SECRET = "hunter2/se+cret"
ROWS = pa.table({"id": [1]})
OBJECT_STORES = ["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "https"]
CALLS: list[Callable[[str], Any]] = [
    lambda uri: DeltaTable(uri),
    lambda uri: DeltaTable(uri, version=3, storage_options={"anon": "true"}),
    lambda uri: write_deltalake(uri, ROWS),
    lambda uri: DeltaTable.create(uri, ROWS.schema),
    lambda uri: DeltaTable.is_deltatable(uri),
    lambda uri: convert_to_deltalake(uri),
]


@pytest.mark.parametrize("call", range(len(CALLS)))
@pytest.mark.parametrize("scheme", OBJECT_STORES)
def test_store_that_takes_no_password_in_its_uri_rejects_it_without_repeating_it(
    scheme: str, call: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InvalidArgumentError, match="takes none there") as caught:
        CALLS[call](f"{scheme}://user:{SECRET}@bucket/x")
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.facts)
    assert "hunter2" not in shown + caplog.text
    assert b"hunter2" not in pickle.dumps(caught.value)


@pytest.mark.parametrize(
    "uri", [f"filecache::s3://user:{SECRET}@bucket/x", f"zip://t::https://user:{SECRET}@host/a.zip"]
)
def test_link_of_a_chain_with_a_password_is_rejected(uri: str) -> None:
    with pytest.raises(InvalidArgumentError, match="takes none there") as caught:
        DeltaTable(uri)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("uri", ["abfss://container@account.dfs.core.windows.net/t", "s3://bucket/a:b@c"])
def test_uri_without_a_password_is_no_error(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from delta_core.storage import stores

    monkeypatch.setattr(stores.storage, "open_remote", lambda root, *more: root)
    assert stores.open_storage(uri) == uri  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("arguments", [["info"], ["head"], ["write", "--mode", "append"], ["vacuum", "--dry-run"]])
def test_command_line_does_not_repeat_a_password(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([arguments[0], f"s3://user:{SECRET}@bucket/x", *arguments[1:]])
    found = capsys.readouterr()
    assert "hunter2" not in found.out + found.err


def test_errors_hide_passwords_in_messages_and_facts() -> None:
    uri = f"ftp://me:{SECRET}@host/t"
    error = EngineError(f"Could not read {uri!r}: [Errno 5] {uri}.", path=uri, version=3)
    assert (str(error), error.path, error.version) == (
        "Could not read 'ftp://***@host/t': [Errno 5] ftp://***@host/t.", "ftp://***@host/t", 3,
    )  # fmt: skip
    assert b"hunter2" not in pickle.dumps(error)
    assert without_secrets({"proxy": f"http://me:{SECRET}@proxy:8080"}) == {}


def _text(without: str, least: int) -> st.SearchStrategy[str]:
    characters = st.characters(exclude_characters=without, exclude_categories=["C", "Z"])
    return st.text(characters, min_size=least, max_size=12)


@pytest.mark.parametrize("call", range(len(CALLS)))
@pytest.mark.parametrize("scheme", ["s3", "gs", "abfss", "https", "hdfs"])
def test_uri_with_one_slash_is_rejected_without_its_password(scheme: str, call: int) -> None:
    with pytest.raises(InvalidArgumentError, match="after its scheme") as caught:
        CALLS[call](f"{scheme}:/user:{SECRET}@bucket/x")
    assert "hunter2" not in str(caught.value) + repr(caught.value) + repr(caught.value.facts)
    assert b"hunter2" not in pickle.dumps(caught.value)


@pytest.mark.parametrize(
    "name", ["sig", "Signature", "X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature", "x-amz-signature"]
)
def test_signature_of_a_uri_is_in_no_error(name: str) -> None:
    uri = f"https://host/t?se=2030&{name}=hunter2%2Fx&sp=r"
    error = EngineError(f"Could not read {uri!r}: no answer.", path=uri)
    assert str(error) == f"Could not read 'https://host/t?se=2030&{name}=***&sp=r': no answer."
    assert b"hunter2" not in pickle.dumps(error)
    assert without_secrets({"proxy": uri}) == {}


@given(_text("/@:'\"", 0), _text("'\"", 1))
def test_no_password_is_shown_whatever_its_characters(user: str, password: str) -> None:
    shown = without_passwords(f"Found s3://{user}:x{password}@bucket/t, expected a table.")
    assert shown == "Found s3://***@bucket/t, expected a table."


@pytest.mark.parametrize(
    "text",
    [
        "hdfs://name:9000/user@x/t", "hdfs://me@name:9000/t", "s3://bucket/a@b:c", "https://host:8080/t@v1", "/a:b@c",
        "two URIs: s3://a/b and abfss://c@d/e", "file:/a:b@c", "C:/a:b@c", "https://host/t?signal=1&design=2",
    ],
)  # fmt: skip
def test_text_without_a_password_stays(text: str) -> None:
    assert without_passwords(text) == text
