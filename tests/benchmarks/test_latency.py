"""The slow store counts what it is queried, and reports calls that wait from calls that don't."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from benchmarks import latency

DELAY_MS = 5


@pytest.fixture
def store(tmp_path: Path) -> fsspec.AbstractFileSystem:
    latency.register()
    for i in range(40):
        (tmp_path / f"{i:02}.txt").write_bytes(b"0123456789")
    return fsspec.filesystem("latency", delay_ms=DELAY_MS)


def test_reads_at_once_make_a_chain_of_one(store: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    with latency.recorded() as calls:
        found = store.cat([f"{tmp_path}/{i:02}.txt" for i in range(40)])
    assert set(found.values()) == {b"0123456789"}
    assert (len(calls.calls), calls.in_flight, calls.chain) == (40, 40, 1)


def test_reads_one_after_the_other_make_a_chain_of_all(store: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    with latency.recorded() as calls:
        for i in range(3):
            store.cat_file(f"{tmp_path}/{i:02}.txt")
    assert (len(calls.calls), calls.in_flight, calls.chain) == (3, 1, 3)


def test_each_call_takes_its_delay(store: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    with latency.recorded() as calls:
        store.ls(str(tmp_path), detail=False)
        store.info(f"{tmp_path}/00.txt")
    assert [c.kind for c in calls.calls] == ["list", "info"]
    assert all(c.end - c.start >= DELAY_MS / 1_000 for c in calls.calls)


def test_ranges_and_open_files_return_the_bytes_of_the_local_file(
    store: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    path = f"latency://{tmp_path}/07.txt"
    assert store.cat_file(path, start=2, end=5) == b"234"
    assert store.cat_file(path, start=-3) == b"789"
    with store.open(path, "rb") as file:
        file.seek(4)
        assert file.read(2) == b"45"


def test_exclusive_creation_rejects_a_second_writer(store: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    store.pipe_file(f"{tmp_path}/new.txt", b"first", mode="create")
    with pytest.raises(FileExistsError):
        store.pipe_file(f"{tmp_path}/new.txt", b"second", mode="create")
    assert (tmp_path / "new.txt").read_bytes() == b"first"


def test_missing_file_is_not_found(store: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.cat_file(f"{tmp_path}/none.txt")
    assert not store.exists(f"{tmp_path}/none.txt")
