"""Threads and pools: interrupts at any place, too few threads, dropped pools, the interpreter's exit."""

from __future__ import annotations

import _thread
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from delta_core.errors import EngineError
from delta_core.runtime.threads import Changes, Task, ThreadPool, first_done, running_threads
from tests.interrupts import interrupted, interrupted_everywhere

ROOT = Path(__file__).parents[2]
#: An exit that takes longer hangs.
TIMEOUT_S = 20


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", start)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def fail(error: BaseException) -> None:
    raise error


# --- pools ---


def test_results_are_in_order_and_errors_are_raised_as_they_are() -> None:
    error = ValueError("odd")
    with ThreadPool(3, "test") as pool:
        assert pool.map(pow, range(20), [2] * 20) == [n**2 for n in range(20)]
        task = pool.submit(fail, error)
        for _ in range(2):
            with pytest.raises(ValueError, match="odd") as caught:
                task.result()
            assert caught.value is error
        assert task.exception() is error


def test_threads_have_the_trace_and_profile_functions_of_new_threads() -> None:
    found: list[str] = []

    def trace(*_: Any) -> None:
        found.append("trace")

    def profile(*_: Any) -> None:
        found.append("profile")

    before = threading.gettrace(), threading.getprofile()
    threading.settrace(trace)
    threading.setprofile(profile)
    try:
        with ThreadPool(1, "traced") as pool:
            pool.submit(len, [1]).result()
    finally:
        threading.settrace(before[0])  # type: ignore[arg-type]
        threading.setprofile(before[1])
    assert {"trace", "profile"} <= set(found)


def test_threads_set_no_trace_function_where_new_threads_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def settrace(_: Any) -> None:
        raise RuntimeError("Cannot install a trace function while another trace function is being installed")

    monkeypatch.setattr(threading, "gettrace", lambda: None)
    monkeypatch.setattr(sys, "settrace", settrace)
    with ThreadPool(1, "untraced") as pool:
        assert pool.submit(len, [1, 2]).result() == 2


def test_pool_starts_no_thread_while_one_is_idle() -> None:
    with ThreadPool(8, "idle") as pool:
        for _ in range(5):
            assert pool.submit(int).result() == 0
            assert until(lambda: bool(pool._queue.idle))
        assert running_threads().count("idle") == 1


def test_pool_that_ends_waits_for_its_tasks_and_after_an_error_for_those_that_were_begun() -> None:
    ended: list[int] = []

    def work(number: int) -> None:
        begun.set()
        time.sleep(0.02)
        ended.append(number)

    begun = threading.Event()
    with ThreadPool(1, "test") as pool:
        for n in range(3):
            pool.submit(work, n)
    assert ended == [0, 1, 2]
    begun.clear()
    tasks: list[Task[None]] = []

    def interrupt() -> None:
        with ThreadPool(1, "test") as pool:
            tasks.extend(pool.submit(work, n) for n in (3, 4, 5))
            begun.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert ended == [0, 1, 2, 3]
    assert [task.is_cancelled for task in tasks] == [False, True, True]
    with pytest.raises(EngineError, match="cancelled"):
        tasks[1].result()


def test_dropped_pool_runs_its_tasks_and_ends_its_threads() -> None:
    pool = ThreadPool(2, "dropped")
    tasks = [pool.submit(time.sleep, 0.001) for _ in range(10)]
    del pool
    gc.collect()
    for task in tasks:
        task.result()
    assert until(lambda: "dropped" not in running_threads())


def test_first_task_that_ends_is_returned() -> None:
    slow = threading.Event()
    with ThreadPool(2, "test") as pool:
        tasks = {pool.submit(slow.wait), pool.submit(int)}
        (first,) = first_done(tasks)
        assert first.result() == 0
        slow.set()
        (second,) = first_done(tasks - {first})
        assert second.result() is True


def test_callback_is_called_once_whenever_it_is_added() -> None:
    found: list[Task[int]] = []
    with ThreadPool(1, "test") as pool:
        task = pool.submit(int)
        task.when_done(found.append)
        task.wait()
        task.when_done(found.append)
    assert until(lambda: len(found) == 2)


# --- interrupts ---


@pytest.mark.parametrize("threads", [1, 3])
def test_pool_takes_tasks_after_interrupts_wherever_they_came(threads: int) -> None:
    pool = ThreadPool(threads, "test")

    def work() -> None:
        tasks = [pool.submit(int) for _ in range(4)]
        first_done(tasks)
        assert [task.result() for task in tasks] == [0] * 4

    for place in interrupted_everywhere(("threads.py",), work):
        assert pool.submit(int).result() == 0, place
    assert running_threads().count("test") <= threads


def test_pool_ends_after_interrupts_wherever_they_came() -> None:
    def work() -> None:
        with ThreadPool(2, "ended") as pool:
            pool.map(int, range(4))

    assert list(interrupted_everywhere(("threads.py",), work))
    assert until(lambda: "ended" not in running_threads())


def test_tasks_are_stopped_again_if_an_interrupt_prevented_it() -> None:
    more, calls = threading.Event(), count()

    def stop() -> None:
        if not next(calls):
            raise KeyboardInterrupt
        more.set()

    def work() -> None:
        with ThreadPool(1, "stopped", stop) as pool:
            pool.submit(more.wait)
            raise ValueError("odd")

    with pytest.raises(KeyboardInterrupt) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)
    assert "stopped" not in running_threads()


def test_interrupt_of_who_reports_a_change_loses_none_that_waits() -> None:
    found: list[bool] = []

    def work(changes: Changes) -> None:
        changes.notify()

    for number in count(1):
        changes = Changes()
        waiting = [changes.next() for _ in range(3)]
        if not interrupted(number, ("threads.py",), partial(work, changes)):
            break
        # each of them is woken, or still listed
        changes.notify()
        found += [lock.acquire(timeout=1) for lock in waiting]
    assert found
    assert all(found)


# --- too few threads ---


@pytest.mark.usefixtures("no_threads")
def test_tasks_run_on_the_callers_thread_if_there_is_no_other() -> None:
    with ThreadPool(4, "test") as pool:
        assert not pool.has_thread()
        assert pool.map(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3
        assert isinstance(pool.submit(fail, ValueError()).exception(), ValueError)
        with pytest.raises(KeyboardInterrupt):
            pool.submit(fail, KeyboardInterrupt())


def test_tasks_run_on_the_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    start, begun = _thread.start_new_thread, count()

    def start_one(*arguments: Any) -> int:
        if next(begun):
            raise RuntimeError("can't start new thread")
        return start(*arguments)

    monkeypatch.setattr(_thread, "start_new_thread", start_one)
    with ThreadPool(4, "test") as pool:
        assert len(set(pool.map(lambda _: threading.get_ident(), range(20)))) == 1


# --- the interpreter's exit ---

AT_EXIT = {
    "tasks under way": """
pool = ThreadPool(2, "test")
tasks = [pool.submit(time.sleep, 0.05) for _ in range(3)]
while len(running_threads()) < 2:
    pass
atexit.register(lambda: print(all(task.is_done for task in tasks), running_threads()))
atexit.unregister(threads._end_threads)
atexit.register(threads._end_threads)
""",
    "a read that nobody ended": """
def task():
    yield from [pa.record_batch({"x": [1]})] * 9
stream = run_ordered([task] * 9, 2, 1, 1)
next(stream)
atexit.register(lambda: print(True, running_threads()))
atexit.unregister(threads._end_threads)
atexit.register(threads._end_threads)
""",
    "tasks that wait for a caller who was interrupted at the end, too": """
class Pool(ThreadPool):
    def __exit__(self, *_):
        raise KeyboardInterrupt
begun, more = threading.Event(), threading.Event()
def work():
    begun.set()
    more.wait()
try:
    with Pool(1, "test", more.set) as pool:
        pool.submit(work)
        begun.wait()
except KeyboardInterrupt:
    pass
del pool
atexit.register(print, True, [])
""",
    "a pool that is used later": """
pool = ThreadPool(2, "test")
pool.map(int, range(3))
# registered before the threads end: called after
atexit.unregister(threads._end_threads)
atexit.register(lambda: print(pool.map(int, range(3)) == [0, 1, 2], running_threads()))
atexit.register(threads._end_threads)
""",
    "a pool that is made later": """
atexit.unregister(threads._end_threads)
def late():
    with ThreadPool(2, "test") as pool:
        print(pool.map(int, range(3)) == [0, 1, 2], running_threads())
atexit.register(late)
atexit.register(threads._end_threads)
""",
    "what was interrupted everywhere": """
from tests.interrupts import interrupted_everywhere
pools = []
def work():
    pools.append(ThreadPool(2, "test"))
    pools[-1].map(int, range(3))
    streams.append(run_ordered([lambda: iter([pa.record_batch({"x": [1]})] * 9)] * 9, 2, 1, 1))
    next(streams[-1])
streams = []
places = list(interrupted_everywhere(("threads.py", "ordered.py", "queue.py"), work))
atexit.register(lambda: print(len(places) > 50, running_threads()))
atexit.unregister(threads._end_threads)
atexit.register(threads._end_threads)
""",
    "a task that never ends": """
threads.EXIT_SECONDS = 0.1
pool = ThreadPool(1, "test")
pool.submit(threading.Event().wait)
atexit.register(print, True, [])
""",
}


@pytest.mark.parametrize("what", AT_EXIT)
def test_interpreter_exits_with(what: str) -> None:
    code = (
        "import atexit, threading, time\nimport pyarrow as pa\nfrom delta_core.runtime import threads\n"
        "from delta_core.runtime.threads import *\nfrom delta_core.runtime.ordered import run_ordered\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + AT_EXIT[what]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "True []"
