"""Many files of a disk are found, created, synced and deleted by one call: a compiled one, or Python's on Windows."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.storage import folders, scanned_folders
from delta_core.storage.folders import create_files, delete_files, find_files, list_folder, sync_files

if sys.platform == "win32":
    IMPLEMENTATIONS: list[Any] = [scanned_folders]
else:
    from delta_core.storage import _folders

    IMPLEMENTATIONS = [_folders, scanned_folders]
CALLS = ("create", "entries", "first_files", "sync", "visit")
ODD_PATHS = ["", "/", "/a", "a/", "..", "../a", "a/..", "a/../x", "./a", "a/.", "a\0b"]


@pytest.fixture(params=IMPLEMENTATIONS, ids=lambda module: module.__name__.rpartition(".")[2], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in CALLS:
        monkeypatch.setattr(folders, name, getattr(request.param, name))
    return request.param


def can_link(folder: Path) -> bool:
    try:
        (folder / "probe").symlink_to(folder)
    except OSError:
        return False
    (folder / "probe").unlink()
    return True


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
    implementation: Any, names: bytes, name_ends: list[int], ends: list[int]
) -> None:
    data = np.frombuffer(b"12", np.uint8)
    with pytest.raises(ValueError, match=r"ends are not those|needs a path"):
        implementation.create(np.frombuffer(bytearray(names), np.uint8), np.array(name_ends), data, np.array(ends))


def test_folder_is_listed_with_what_its_entries_are(tmp_path: Path) -> None:
    (tmp_path / "é").write_bytes(b"123")
    (tmp_path / ".hidden").write_bytes(b"")
    (tmp_path / "inner").mkdir()
    links = can_link(tmp_path)
    if links:
        (tmp_path / "link").symlink_to(tmp_path / "inner")
    found = list_folder(str(tmp_path), "p/")
    sizes = dict(zip(found.paths.to_pylist(), found.sizes.tolist(), strict=True))
    times = dict(zip(found.paths.to_pylist(), found.modified_ms.tolist(), strict=True))
    assert sizes == {"p/é": 3, "p/.hidden": 0}
    assert times["p/é"] == os.stat(tmp_path / "é").st_mtime_ns // 1_000_000
    assert (found.folders, found.links) == (["p/inner"], ["p/link"] if links else [])
    assert found.num_entries == 3 + links
    (tmp_path / "inner" / "x").mkdir()
    assert list_folder(str(tmp_path / "inner" / "x")).num_entries == 0
    with pytest.raises(FileNotFoundError):
        list_folder(str(tmp_path / "missing"))
    if links:
        with pytest.raises(OSError, match=r"ymbolic|irectory") as caught:
            list_folder(str(tmp_path / "link"))
        assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)


@pytest.mark.parametrize("limit", [0, 1, 2, 5, -1])
def test_first_names_are_those_in_order(tmp_path: Path, implementation: Any, limit: int) -> None:
    for name in ("b", "d", "a", "é", "c"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "bb").mkdir()
    expected = [os.fsencode(name) for name in ("b", "c", "d", "é")]
    found = implementation.first_files(os.fsencode(tmp_path), b"b", limit)
    assert found == (expected if limit < 0 else expected[:limit], 4)


def test_files_below_a_root_are_found_and_deleted(tmp_path: Path) -> None:
    root = tmp_path / "t"
    (root / "a" / "b").mkdir(parents=True)
    (root / "top").write_bytes(b"1")
    (root / "a" / "b" / "x").write_bytes(b"22")
    paths = pa.array(["top", "a/b/x", "a/b", "a/missing", "no/folder/x", "top/x", None, *ODD_PATHS])
    sizes, times = find_files(str(root), paths)
    assert sizes.tolist() == [1, 2, *[-1] * (len(paths) - 2)]
    assert times[0] == os.stat(root / "top").st_mtime_ns // 1_000_000
    errors = delete_files(str(root), paths.take(pa.array([0, 1, 3, 5])))
    assert errors[:3].tolist() == [0, 0, errno.ENOENT]
    assert errors[3] in (errno.ENOENT, errno.ENOTDIR)
    assert not (root / "top").exists()
    assert not (root / "a" / "b" / "x").exists()
    with pytest.raises(FileNotFoundError):
        find_files(str(tmp_path / "missing"), paths)


def test_nothing_outside_of_a_root_is_deleted(tmp_path: Path) -> None:
    root = tmp_path / "t"
    (root / "a").mkdir(parents=True)
    (tmp_path / "a").write_bytes(b"precious")
    (root / "x").write_bytes(b"precious")
    errors = delete_files(str(root), pa.array(ODD_PATHS))
    assert set(errors.tolist()) == {errno.EXDEV}
    if can_link(tmp_path):
        (root / "link").symlink_to(tmp_path)
        (error,) = delete_files(str(root), pa.array(["link/a"])).tolist()
        assert error in (errno.ELOOP, errno.ENOTDIR)
        assert find_files(str(root), pa.array(["link/a", "link"]))[0].tolist() == [-1, -1]
        assert delete_files(str(root), pa.array(["link"])).tolist() == [0]
    assert (tmp_path / "a").exists()
    assert (root / "x").exists()
