"""Paths and renames of Windows, on every system; what calls these functions is run on Windows only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from delta_core.kernel.write.names import local_uri
from delta_core.storage.local_files import claim
from delta_core.storage.windows_paths import host_of, is_odd, windows_path


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("C:\\lake\\t", "C:/lake/t"),
        ("c:/lake//t/", "C:/lake/t"),
        ("/C:/lake/t", "C:/lake/t"),
        ("/d:", "D:/"),
        ("D:\\", "D:/"),
        ("C:/lake/../../t", "C:/t"),
        ("\\\\server\\share\\t", "//server/share/t"),
        ("//server/share/a/../t", "//server/share/t"),
    ],
)
def test_absolute_paths_have_slashes_and_no_dots(path: str, found: str) -> None:
    assert windows_path(path) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/part-0.parquet", "C:/lake/t/a/part-0.parquet"),
        ("a\\part-0.parquet", "C:/lake/t/a/part-0.parquet"),
        ("..\\..\\..\\secrets", "C:/secrets"),
        ("a/..\\../other", "C:/lake/other"),
        ("/lake/other", "C:/lake/other"),
        ("D:/other", "D:/other"),
        ("\\\\server\\share\\f", "//server/share/f"),
    ],
)
def test_paths_of_a_log_lead_where_windows_leads(path: str, found: str) -> None:
    assert windows_path(path, "C:/lake/t") == found


def test_a_path_without_a_drive_stays_on_the_share_of_the_table() -> None:
    assert windows_path("/other/t", "//server/share/t") == "//server/share/other/t"
    assert windows_path("f", "//server/share/t") == "//server/share/t/f"


def test_shares_and_devices_are_those_of_another_machine() -> None:
    assert host_of("//Server/share/t") == "server"
    assert host_of("//?/C:/t") == "?"
    assert host_of("//./pipe/x") == "."
    assert host_of("C:/lake/t") == ""
    assert host_of("/lake/t") == ""


@pytest.mark.parametrize(
    "path", ["C:/t/f:stream", "C:f", "C:/t/a./f", "C:/t/a /f", "C:/t/f.", "C:/t/.. /f", "C:/t/.../f"]
)
def test_names_that_windows_reads_as_others_are_odd(path: str) -> None:
    assert is_odd(path)


@pytest.mark.parametrize(
    "path", ["C:/t/a=1/part-0.c000.parquet", "//server/share/.hidden", "C:/", "C:/a b/c.d/_delta_log"]
)
def test_plain_names_are_not_odd(path: str) -> None:
    assert not is_odd(path)


def test_uris_of_drives_have_a_slash_before_them() -> None:
    assert local_uri("C:/lake/t") == "file:/C:/lake/t"
    assert local_uri("/lake/t") == "file:/lake/t"
    assert local_uri("s3://lake/t") == "s3://lake/t"


def test_name_that_an_open_file_has_is_not_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_: str) -> None:
        raise PermissionError(13, "Access is denied")

    (tmp_path / "taken").write_bytes(b"1")
    monkeypatch.setattr(os, "rename", deny)
    monkeypatch.setattr(sys, "platform", "win32")
    taken = claim(str(tmp_path / "new"), str(tmp_path / "taken"))
    with pytest.raises(PermissionError):
        claim(str(tmp_path / "new"), str(tmp_path / "free"))
    assert taken is False
