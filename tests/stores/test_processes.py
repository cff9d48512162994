"""Processes that a program starts once it has used tables, however they start, use tables as it does: none hangs."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from delta_core.engines.arrow import map_threads_wide
from delta_core.runtime.processes import PerProcess, cached_property, num_forks
from tests.example_counts import chosen
from tests.stores.conftest import place
from tests.stores.servers import SERVERS, Server

ROOT = Path(__file__).parents[2]
#: A hang, and not a slow machine: what is done takes a few seconds.
TIMEOUT_S = 120
METHODS = ("fork", "forkserver", "spawn")
STORES = ("local", "moto with DynamoDB", *SERVERS)
#: A process that is not forked has a memory of its own, without the tables of its parent. The short form tries one
#: store with each other method, which imports everything again.
CASES = chosen(
    [*product(METHODS, STORES), ("fork", "memory")],
    [*product(["fork"], [*STORES, "memory"]), ("forkserver", "versitygw"), ("spawn", "moto with DynamoDB")],
)


@pytest.mark.parametrize(("method", "store"), CASES)
def test_child_reads_writes_and_queries_tables_that_its_parent_used(
    method: str, store: str, tmp_path: Path, start_server: Callable[[str], Server]
) -> None:
    uri, options = _place(store, tmp_path, start_server)
    command = [sys.executable, "-W", "ignore", "-m", "tests.stores.process_program", method, uri, json.dumps(options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    came_along = ["unfinished read", "table", "sessions"] if method == "fork" else []
    assert done.stdout.splitlines() == [
        *came_along,
        "table of an argument",
        "new table",
        "new sessions",
        "parent again",
    ]


def _place(store: str, folder: Path, start_server: Callable[[str], Server]) -> tuple[str, Mapping[str, Any]]:
    if store == "local":
        return str(folder / "t"), {}
    if store == "memory":
        return f"memory://{uuid.uuid4().hex}/t", {}
    name, _, dynamo = store.partition(" with ")
    server = place(start_server(name))
    locking = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": f"log-{uuid.uuid4().hex}"}
    return server.bucket, {**server.options, **(locking if dynamo else {})}


def test_value_per_process_is_the_same_for_all_threads() -> None:
    made: list[object] = []

    def make() -> object:
        time.sleep(0.01)
        made.append(object())
        return made[-1]

    value = PerProcess(make)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(value.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(v) for v in found}) == 1
    assert num_forks() == 0


def test_cached_property_of_one_object_does_not_wait_for_another() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Lazy:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> object:
            if self.waits:
                entered.set()
                assert leave.wait(30)
            return object()

    slow, quick = Lazy(True), Lazy(False)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert entered.wait(30)
    assert quick.value is quick.value
    assert thread.is_alive()
    leave.set()
    thread.join()


def test_tasks_that_start_tasks_wait_for_no_thread() -> None:
    found: list[list[list[int]]] = []

    def outer(number: int) -> list[int]:
        # by now every thread of the pool is taken
        time.sleep(0.02)
        return map_threads_wide(lambda x: x * number, range(3))

    thread = threading.Thread(target=lambda: found.append(map_threads_wide(outer, range(100))), daemon=True)
    thread.start()
    thread.join(60)
    assert found == [[[0, n, 2 * n] for n in range(100)]]


def test_error_of_a_task_ends_those_that_wait() -> None:
    ran: list[int] = []

    def work(number: int) -> None:
        if number == 0:
            raise ValueError("first")
        time.sleep(0.01)
        ran.append(number)

    with pytest.raises(ValueError, match="first"):
        map_threads_wide(work, range(1000))
    assert len(ran) < 500
