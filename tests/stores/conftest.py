"""Stores to test: this machine's disk and memory, and every server that can be started here."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from delta_core.engines.interface import Storage
from delta_core.kernel.commit.publishing import prove_exclusive
from delta_core.storage.stores import open_storage
from tests.stores.servers import SERVERS, Server, ServerMissingError

#: What the first requests to a server may take.
_MOST_SECONDS = 60


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """Start a server by its name, once a session; skip if it can't be had."""
    running: dict[str, Server | str] = {}
    with ExitStack() as stack:

        def start(name: str) -> Server:
            if name not in running:
                try:
                    running[name] = stack.enter_context(_answering(name, tmp_path_factory))
                except ServerMissingError as e:
                    running[name] = f"{name}: {e}"
            found = running[name]
            if isinstance(found, str):
                pytest.skip(found)
            return found

        yield start


@contextmanager
def _answering(name: str, folders: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that answers; once in many runs one did not answer its first requests, and is started again."""
    with ExitStack() as stack:
        for _ in range(2):
            server = stack.enter_context(SERVERS[name](folders.mktemp(name)))
            proven = threading.Event()
            threading.Thread(target=_prove, args=(server, proven), daemon=True).start()
            if proven.wait(_MOST_SECONDS):
                break
        else:
            pytest.fail(f"{name} does not answer within {_MOST_SECONDS} s")
        yield server


def _prove(server: Server, proven: threading.Event) -> None:
    prove_exclusive(open_storage(server.bucket + "/proof", server.options), "_delta_log")
    proven.set()


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, start_server: Callable[[str], Server]) -> Server:
    """Every server that can be started, with a folder of its own in its bucket."""
    return place(start_server(request.param))


def place(server: Server) -> Server:
    """Return the server with an empty folder for a bucket."""
    return replace(server, bucket=f"{server.bucket}/{uuid.uuid4().hex}")


@pytest.fixture
def server_storage(server: Server) -> Storage:
    return open_storage(server.bucket, server.options)
