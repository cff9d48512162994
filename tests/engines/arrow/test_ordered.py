"""Interrupts while threads hand over batches: nobody waits forever."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from delta_core.engines.arrow.ordered import run_ordered
from delta_core.engines.arrow.parquet.data_writer import _Runs
from delta_core.runtime.threads import thread_pool

BATCH = pa.record_batch({"x": pa.array(range(100))})
#: After so many seconds a test takes a thread to hang.
PATIENCE = 20


def task() -> Iterator[pa.RecordBatch]:
    yield from [BATCH] * 3


def is_of_event(frame: Any) -> bool:
    """Whether a step is one of an event, by which Python waits for a started thread: an interrupt leaks that thread."""
    while frame is not None and frame.f_code.co_filename == threading.__file__:
        if frame.f_code.co_qualname.startswith("Event."):
            return True
        frame = frame.f_back
    return False


def is_of_condition(frame: Any) -> bool:
    return frame.f_code.co_filename == threading.__file__ and "Condition" in frame.f_code.co_qualname


def interrupted_at(
    event: int,
    work: Callable[[], Any],
    is_step: Callable[[Any], bool] = is_of_condition,
    passed_over: tuple[type[BaseException], ...] = (KeyboardInterrupt, RuntimeError),
) -> bool:
    """Run something on a thread of its own with an interrupt at the n-th step of a kind; whether there was one."""
    left, seen = event, False

    def trace(frame: Any, kind: str, _: Any) -> Any:
        nonlocal left, seen
        if not is_step(frame) or is_of_event(frame):
            return trace
        left -= kind in ("call", "return")
        if not left and not seen:
            seen = True
            raise KeyboardInterrupt
        return trace

    def run() -> None:
        sys.settrace(trace)
        try:
            work()
        except passed_over:
            pass
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"an interrupt at step {event} leaves threads that wait for each other"
    return seen


def test_interrupted_consumer_waits_for_no_thread_that_waits_for_it() -> None:
    for event in count(1):
        batches = run_ordered([task] * 6, 2, 10, ahead=4)
        if not interrupted_at(event, lambda batches=batches: list(batches)):  # type: ignore[misc]
            break


def test_interrupted_writer_leaves_nobody_waiting() -> None:
    def write() -> None:
        runs = _Runs()
        worker = threading.Thread(target=lambda: list(runs), daemon=True)
        worker.start()
        try:
            for _ in range(4):
                runs.put([(0, BATCH)])
        finally:
            runs.close(discard=True)
            worker.join()

    for event in count(1):
        if not interrupted_at(event, write):
            break


def test_fewer_threads_than_requested_do_all_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun = threading.Thread.start, count()

    def start_one(thread: threading.Thread) -> None:
        if next(begun):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    assert len(list(run_ordered([task] * 4, 3, 1 << 20, 1))) == 12


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), KeyboardInterrupt()])
def test_error_of_the_first_thread_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(thread: threading.Thread) -> None:
        raise error

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(type(error)) as caught:
        list(run_ordered([task] * 4, 3, 1 << 20, 1))
    assert caught.value is error


def test_interrupt_while_a_thread_begins_is_raised_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = threading.Event.wait

    def interrupted(event: threading.Event, timeout: float | None = None) -> bool:
        monkeypatch.setattr(threading.Event, "wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Event, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(run_ordered([task] * 4, 3, 1 << 20, 1))


def test_pool_takes_tasks_after_interrupts_wherever_they_came() -> None:
    pool = thread_pool(2, "test")
    own = (threading.__file__, "thread.py", "threads.py")

    def is_step(frame: Any) -> bool:
        # to wait for a started thread, and for a result, is the standard library's
        return frame.f_code.co_filename.endswith(own) and "Event" not in frame.f_code.co_qualname

    def interrupted(event: int) -> bool:
        return interrupted_at(event, lambda: pool.submit(int), is_step, (KeyboardInterrupt,))

    assert all(interrupted(event) for event in range(1, 5))
    for event in count(5):
        if not interrupted(event):
            break
    assert pool.submit(int).result(PATIENCE) == 0
