"""Stores to test: this machine's disk and memory, and every server that can be started here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from delta_core.engines.interface import Storage
from delta_core.kernel.commit.publishing import prove_exclusive
from delta_core.storage.stores import open_storage
from tests.stores.servers import SERVERS, Server, ServerMissingError


@pytest.fixture(scope="session")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """Start a server by its name, once a session; skip if it can't be had."""
    running: dict[str, Server | str] = {}
    with ExitStack() as stack:

        def start(name: str) -> Server:
            if name not in running:
                try:
                    server = stack.enter_context(SERVERS[name](tmp_path_factory.mktemp(name)))
                    prove_exclusive(open_storage(server.bucket + "/proof", server.options), "_delta_log")
                    running[name] = server
                except ServerMissingError as e:
                    running[name] = f"{name}: {e}"
            found = running[name]
            if isinstance(found, str):
                pytest.skip(found)
            return found

        yield start


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
