"""Memory of dropped buffers is used again, whoever drops them, and in bounded amounts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.kernels._kept_memory import kept_bytes, limit, used_bytes
from delta_core.kernels.memory import LEAST_KEPT, allocate, allocated_bytes, fresh_array, release_unused
from delta_core.parquet import pages as parquet_pages

MB = 1 << 20
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif("ARROW_DEFAULT_MEMORY_POOL" in os.environ, reason="all memory is the chosen pool's")


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    release_unused()


def test_dropped_memory_is_used_again() -> None:
    first = allocate(MB)
    address, held = first.address, used_bytes()
    assert first.size >= MB
    ctypes.memset(address, 7, MB)
    part = first.slice(10, 5)
    del first
    assert kept_bytes() == 0  # the slice holds it
    assert part.to_pybytes() == b"\x07" * 5
    del part
    assert kept_bytes() == MB
    assert used_bytes() == held - MB
    again = allocate(MB - 1000)
    assert again.address == address
    assert kept_bytes() == 0


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.float64, np.uint8])
def test_memory_of_a_dropped_array_is_used_again(kind: type) -> None:
    size = LEAST_KEPT // np.dtype(kind).itemsize + 1
    first = fresh_array(size, kind)
    assert first.dtype == kind
    assert first.shape == (size,)
    first[:] = 7
    address, held = first.ctypes.data, used_bytes()
    part = first[3:5]
    del first
    assert used_bytes() == held  # the slice holds it
    assert part.tolist() == [7, 7]
    del part
    assert kept_bytes() > 0
    assert fresh_array(size, kind).ctypes.data == address
    assert fresh_array(5, kind).shape == (5,)


def test_release_drops_what_the_decoder_keeps() -> None:
    space = parquet_pages.Workspace()
    parquet_pages._spaces.append(space)
    release_unused()
    assert space not in parquet_pages._spaces


def test_memory_is_not_kept_beyond_a_limit_or_for_much_less() -> None:
    # in a process of its own: what other tests hold counts for the limit
    code = f"from {__name__} import check_limits; check_limits()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def check_limits() -> None:
    most = limit()
    assert 64 * MB <= most <= 1024 * MB
    held = [allocate(MB) for _ in range(most // MB + 100)]
    assert allocated_bytes() >= most + 100 * MB
    assert most - 4 * MB <= used_bytes() <= most
    del held
    assert most - 4 * MB <= kept_bytes() <= most
    for size in (MB // 2, 5 * MB, 20 * MB):
        several = [allocate(size) for _ in range(10)]
        assert used_bytes() + kept_bytes() <= most
        del several
    release_unused()
    assert kept_bytes() == 0
    large = allocate(16 * MB)
    del large
    small = allocate(MB)
    assert small.size == MB
    assert kept_bytes() == 16 * MB
    huge = allocate(most + MB)
    assert huge.is_mutable
    del huge
    assert kept_bytes() == 16 * MB


def test_no_more_is_kept_than_was_in_use_at_once() -> None:
    # in a process of its own: what was in use before counts
    code = f"from {__name__} import check_most; check_most()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def check_most() -> None:
    release_unused()
    held = [allocate(MB) for _ in range(70)]
    most = used_bytes()
    assert most <= 71 * MB
    del held
    assert kept_bytes() == most
    for size in range(2, 40):
        buffer = allocate(size * MB)
        ctypes.memset(buffer.address, 3, size * MB)
        assert used_bytes() + kept_bytes() <= most
        del buffer
    release_unused()
    held = [allocate(MB) for _ in range(10)]
    del held
    for size in range(2, 60):
        several = allocate(size * MB)
        del several
        assert used_bytes() + kept_bytes() <= 64 * MB


def test_memory_that_the_system_may_take_back_is_used_again() -> None:
    held = [allocate(8 * MB) for _ in range(min(limit(), 512 * MB) // (8 * MB) - 1)]
    places = {buffer.address for buffer in held}
    del held
    again = [allocate(8 * MB) for _ in places]
    assert {buffer.address for buffer in again} == places
    for i, buffer in enumerate(again):
        ctypes.memset(buffer.address, i, 8 * MB)
    assert all(buffer.to_pybytes()[::4096] == bytes([i]) * 2048 for i, buffer in enumerate(again))


def test_small_buffers_and_those_without_memory_come_from_the_pool() -> None:
    before = used_bytes()
    small = allocate(LEAST_KEPT - 1)
    assert used_bytes() == before
    assert small.is_mutable
    with pytest.raises(MemoryError):
        allocate(1 << 60)


def test_any_thread_returns_memory() -> None:
    def work() -> None:
        for size in range(LEAST_KEPT, 3 * MB, 150_000):
            buffer = allocate(size)
            ctypes.memset(buffer.address, size % 251, size)
            assert buffer.to_pybytes()[-1:] == bytes([size % 251]) or buffer.size > size

    before = used_bytes()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used_bytes() == before
    assert 0 < kept_bytes() <= limit()


def test_rows_stay_as_they_are_while_others_are_read(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(300_000), "name": [f"row {i}" for i in range(300_000)]})
    write_deltalake(tmp_path, rows)
    table = DeltaTable(tmp_path)
    first = table.scan().to_table()
    for _ in range(5):
        table.scan(predicate="id % 3 = 0").to_table()
    assert first.equals(rows)
    assert allocated_bytes() >= first.nbytes


def test_second_read_takes_no_fresh_memory(tmp_path: Path) -> None:
    path = tmp_path / "t"
    write_deltalake(path, pa.table({c: np.random.default_rng(1).random(500_000) for c in "abcd"}))
    (file,) = path.glob("*.parquet")
    assert pq.read_metadata(file).num_rows == 500_000
    code = """
import resource, sys
from delta_core import DeltaTable
scan = DeltaTable(sys.argv[1]).scan()
faults = []
for _ in range(6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert scan.to_table().num_rows == 500_000
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(max(faults[3:]))
"""
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    pages = 4 * 500_000 * 8 // 4096
    assert int(found.stdout) < pages // 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_child_takes_and_returns_memory(tmp_path: Path) -> None:
    code = """
import os
from delta_core.kernels.memory import allocate
held = allocate(1 << 20)
del held
mine = allocate(1 << 20)
child = os.fork()
if not child:
    for _ in range(100):
        allocate(1 << 20)
    del mine
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "7\n"
