"""Threads that hand over batches: nobody waits forever after an interrupt, and fewer threads do all the work."""

from __future__ import annotations

import _thread
import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import EngineError
from delta_core.parquet.data_files import _Room
from delta_core.parquet.data_writer import _Runs
from delta_core.runtime.ordered import run_ordered
from delta_core.runtime.threads import ThreadPool, running_threads
from tests.interrupts import interrupted_everywhere

BATCH = pa.record_batch({"x": pa.array(range(100))})


def task() -> Iterator[pa.RecordBatch]:
    yield from [BATCH] * 3


def test_interrupted_consumer_ends_its_threads_wherever_it_is_interrupted() -> None:
    files = ("ordered.py", "threads.py")
    assert list(interrupted_everywhere(files, lambda: list(run_ordered([task] * 6, 2, 10, ahead=4))))
    # an interrupt of the end itself leaves them to the interpreter's exit
    assert running_threads().count("delta-read") <= 4


def test_interrupted_writer_leaves_nobody_waiting() -> None:
    def write() -> None:
        runs = _Runs()
        with ThreadPool(1, "test") as pool:
            worker = pool.submit(lambda: list(runs))
            try:
                for _ in range(4):
                    runs.put([(0, BATCH)])
                runs.close()
            except BaseException:
                runs.close(discard=True)
                raise
            worker.wait()

    assert list(interrupted_everywhere(("data_writer.py",), write))


def test_room_is_given_to_others_after_an_interrupt_of_one_that_waits() -> None:
    def take() -> None:
        room = _Room(10)
        with ThreadPool(1, "test") as pool:
            room.take(6)
            given = pool.submit(room.give, 6)
            room.take(6)
            given.result()

    assert list(interrupted_everywhere(("data_files.py",), take))


@pytest.mark.parametrize("there_are", [0, 1])
def test_fewer_threads_than_requested_do_all_the_work(monkeypatch: pytest.MonkeyPatch, there_are: int) -> None:
    start, begun = _thread.start_new_thread, count()

    def start_some(*arguments: Any) -> int:
        if next(begun) >= there_are:
            raise RuntimeError("can't start new thread")
        return start(*arguments)

    monkeypatch.setattr(_thread, "start_new_thread", start_some)
    assert len(list(run_ordered([task] * 4, 3, 1 << 20, 1))) == 12


def test_error_without_any_thread_is_that_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def start_none(*_: Any) -> int:
        raise RuntimeError("can't start new thread")

    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise EngineError("broken")

    monkeypatch.setattr(_thread, "start_new_thread", start_none)
    found = run_ordered([failing], 3, 1 << 20, 1)
    assert next(found) is BATCH
    with pytest.raises(EngineError, match="broken"):
        next(found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_read_of_the_parent_is_rejected_in_a_forked_child() -> None:
    found = run_ordered([task] * 4, 2, 10, 1)
    next(found)
    child = os.fork()
    if not child:
        code = 1
        try:
            next(found)
        except EngineError as e:
            code = 0 if "forked" in str(e) else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(found)) == 11
