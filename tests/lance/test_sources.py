"""Bytes of data files: which of them are read, and files that end early."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from delta_core.api import RangeRequest, Storage, make_engine
from delta_core.errors import DataFileError, DataFileNotFoundError
from delta_plugins.lance.sources import TAIL_BYTES, StoredFile


class Counted:
    """A storage that lists the ranges that are read."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.calls: list[list[tuple[int, int | None]]] = []

    def read(self, requests: Sequence[RangeRequest]) -> Any:
        self.calls.append([(r.offset, r.length) for r in requests])
        return self._storage.read(requests)

    def local_path(self, path: str) -> str | None:
        return self._storage.local_path(path)


def stored(folder: Path, size: int, listed: int | None = None) -> tuple[bytes, StoredFile, Counted]:
    data = bytes(i * 7 % 251 for i in range(size))
    (folder / "f").write_bytes(data)
    storage = Counted(make_engine("arrow", str(folder), None).storage)
    return data, StoredFile(storage, "f", size if listed is None else listed), storage  # type: ignore[arg-type]


def test_small_file_is_read_once(tmp_path: Path) -> None:
    data, file, storage = stored(tmp_path, 1000)
    assert bytes(file.read_at(992, 8)) == data[992:]
    assert [bytes(b) for b in file.read_ranges([(0, 10), (5, 0), (500, 500)])] == [data[:10], b"", data[500:]]
    assert storage.calls == [[(0, 1000)]]


def test_end_of_a_large_file_is_read_once_and_other_ranges_as_they_are(tmp_path: Path) -> None:
    size = 3 * TAIL_BYTES
    data, file, storage = stored(tmp_path, size)
    assert bytes(file.read_at(10, 20)) == data[10:30]
    assert bytes(file.read_at(size - 40, 40)) == data[-40:]
    assert bytes(file.read_at(size - TAIL_BYTES, 100)) == data[-TAIL_BYTES : 100 - TAIL_BYTES]
    assert [bytes(b) for b in file.read_ranges([(0, 5), (size - 5, 5)])] == [data[:5], data[-5:]]
    assert storage.calls == [[(10, 20)], [(size - TAIL_BYTES, TAIL_BYTES)], [(0, 5), (size - 5, 5)]]


@pytest.mark.parametrize("ranges", [[(990, 20)], [(0, 10), (999, 2)], [(5000, 1)]])
def test_range_beyond_the_end_is_rejected(tmp_path: Path, ranges: list[tuple[int, int]]) -> None:
    _, file, _ = stored(tmp_path, 1000)
    with pytest.raises(DataFileError, match="'f' is damaged: it ends at byte"):
        file.read_ranges(ranges)


@pytest.mark.parametrize("listed", [1001, 1 << 40])
def test_file_that_is_shorter_than_the_manifest_specifies_is_rejected(tmp_path: Path, listed: int) -> None:
    _, file, _ = stored(tmp_path, 1000, listed)
    with pytest.raises(DataFileError, match="'f' is damaged"):
        file.read_at(listed - 8, 8)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    _, file, _ = stored(tmp_path, 10)
    (tmp_path / "f").unlink()
    with pytest.raises(DataFileNotFoundError, match="'f'"):
        file.read_at(0, 1)
