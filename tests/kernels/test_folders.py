"""Many files of a disk are created and synced by one call."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from delta_core.storage._folders import create
from delta_core.storage.folders import create_files, sync_files


def test_files_are_created_with_their_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "old").write_bytes(b"a longer content than the new one")
    names = ["top", "a/old", "a/é=1/x", "a/é=1/empty", "b/c/d/y"]
    contents = [b"1", b"new", b"\0\xff", b"", b"last"]
    paths = [str(tmp_path / name) for name in names]
    times = create_files(paths, b"".join(contents), np.cumsum([len(c) for c in contents]))
    assert [Path(path).read_bytes() for path in paths] == contents
    assert times.tolist() == [os.stat(path).st_mtime_ns // 1_000_000 for path in paths]
    sync_files([*paths, str(tmp_path), str(tmp_path / "b" / "c")])


def test_empty_files_alone_are_created(tmp_path: Path) -> None:
    paths = [str(tmp_path / "x" / name) for name in "ab"]
    create_files(paths, b"", np.zeros(2, np.int64))
    assert [Path(path).read_bytes() for path in paths] == [b"", b""]
    assert create_files([], b"", np.zeros(0, np.int64)).tolist() == []
    sync_files([])


def test_first_file_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    paths = [str(tmp_path / name) for name in ("one", "file/two", "three")]
    with pytest.raises(NotADirectoryError) as caught:
        create_files(paths, b"123", np.arange(1, 4))
    assert caught.value.filename == paths[1]
    assert not Path(paths[2]).exists()
    with pytest.raises(FileNotFoundError) as missing:
        sync_files([paths[0], paths[2]])
    assert missing.value.filename == paths[2]


@pytest.mark.parametrize(
    ("names", "name_ends", "ends"),
    [
        (b"a\0b\0", [2], [1, 2]),
        (b"a\0b\0", [2, 5], [1, 2]),
        (b"a\0bc", [2, 4], [1, 2]),
        (b"a\0b\0", [2, 4], [2, 1]),
        (b"a\0b\0", [2, 4], [1, 9]),
    ],
)
def test_places_that_are_not_those_of_the_bytes_are_rejected(
    names: bytes, name_ends: list[int], ends: list[int]
) -> None:
    data = np.frombuffer(b"12", np.uint8)
    with pytest.raises(ValueError, match=r"ends are not those|needs a path"):
        create(np.frombuffer(bytearray(names), np.uint8), np.array(name_ends), data, np.array(ends))
