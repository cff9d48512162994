"""Only regular files belong to a table: pipes and devices are rejected by name, and nothing waits for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CorruptTableError, IrregularFileError, VersionNotFoundError
from tests.operations.test_verify import log

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", ROWS, configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(tmp_path / "t").delete("id = 3")
    return tmp_path / "t"


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


PUT = pytest.mark.parametrize("put", [pipe, endless])


def ids(uri: Path, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(uri, version=version).to_pyarrow_table().column("id").to_pylist())


@PUT
def test_hint_is_passed_over_and_found(uri: Path, put: Callable[[Path], Any]) -> None:
    put(uri / "_delta_log" / "_last_checkpoint")
    assert ids(uri) == [1, 2]
    assert DeltaTable(uri).verify().rules() == {"hint-unreadable"}
    assert [s["step"] for s in DeltaTable(uri).repair()["steps"]] == ["delete-hint"]
    put(uri / "_delta_log" / "_last_checkpoint")
    DeltaTable(uri).create_checkpoint()
    assert DeltaTable(uri).verify().ok


@PUT
def test_commit_is_rejected_by_name(uri: Path, put: Callable[[Path], Any]) -> None:
    put(log(uri, 2))
    with pytest.raises(IrregularFileError, match=r"0002\.json is a pipe, a socket or a device"):
        ids(uri)
    with pytest.raises(IrregularFileError):
        write_deltalake(uri, ROWS, mode="append")
    assert ids(uri, 1) == [1, 2]
    assert "commit-unreadable" in DeltaTable(uri, version=1).verify().rules()
    assert [s["step"] for s in DeltaTable(uri, version=1).repair()["steps"]] == ["none"]


@PUT
@pytest.mark.parametrize("suffix", [".crc", ".checkpoint.parquet"])
def test_files_that_commits_replace_are_passed_over_and_found(
    uri: Path, put: Callable[[Path], Any], suffix: str
) -> None:
    DeltaTable(uri).create_checkpoint()
    put(log(uri, 1, suffix))
    assert ids(uri) == [1, 2]
    (rule,) = DeltaTable(uri).verify().rules()
    assert rule in ("checksum-unreadable", "checkpoint-unreadable")
    DeltaTable(uri).repair()
    assert DeltaTable(uri).verify().ok
    assert ids(uri) == [1, 2]


@PUT
@pytest.mark.parametrize("pattern", ["*.parquet", "*.bin"])
def test_data_file_and_vector_are_rejected_by_name(uri: Path, put: Callable[[Path], Any], pattern: str) -> None:
    put(next(uri.glob(pattern)))
    with pytest.raises(CorruptTableError, match="is a pipe, a socket or a device"):
        ids(uri)
    assert not DeltaTable(uri).verify(deep="rows").ok
    assert not DeltaTable(uri).verify(deep=True).ok


@pytest.mark.parametrize("rows", [slice(0, 0), slice(0, 1), slice(1, 2)])
@pytest.mark.parametrize("checksum", [True, False])
def test_checkpoint_without_protocol_or_metadata_is_passed_over(uri: Path, rows: slice, checksum: bool) -> None:
    DeltaTable(uri).create_checkpoint()
    path = log(uri, 1, ".checkpoint.parquet")
    pq.write_table(pq.read_table(path)[rows], path)
    if not checksum:
        log(uri, 1, ".crc").unlink()
    assert ids(uri) == [1, 2]
    write_deltalake(uri, ROWS, mode="append")
    assert ids(uri) == [1, 1, 2, 2, 3]
    assert DeltaTable(uri).verify().rules() == {"checkpoint-unreadable"}
    assert [s["step"] for s in DeltaTable(uri).repair()["steps"]] == ["write-checkpoint"]


@pytest.mark.parametrize("text", ['{"version":%d,"size":1}', '{"version":1,"size":1,"parts":%d}'])
@pytest.mark.parametrize("number", [10**30, 1 << 63])
def test_hint_with_a_number_above_64_bits_is_found(uri: Path, text: str, number: int) -> None:
    (uri / "_delta_log" / "_last_checkpoint").write_text(text % number)
    assert ids(uri) == [1, 2]
    assert not DeltaTable(uri).verify().ok
    assert DeltaTable(uri).repair()["steps"]
    assert DeltaTable(uri).verify().ok


@pytest.mark.parametrize("name", ["9" * 20 + ".json", "9" * 20 + ".crc", "9" * 20 + ".checkpoint.parquet"])
def test_name_of_a_version_above_64_bits_is_none_of_the_log(uri: Path, name: str) -> None:
    (uri / "_delta_log" / name).write_text("{}")
    assert DeltaTable(uri).version() == 1
    assert DeltaTable(uri).verify(versions=[1]).ok


def test_version_above_64_bits_does_not_exist(uri: Path) -> None:
    with pytest.raises(VersionNotFoundError):
        DeltaTable(uri, version=10**30)
    assert DeltaTable(uri).verify(versions=[10**30]).rules() == {"version-unreadable"}
