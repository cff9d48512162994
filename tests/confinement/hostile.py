"""Tables whose logs lead out of them, and stores that count every call which reaches them."""

from __future__ import annotations

import base64
import http.server
import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.memory import MemoryFileSystem

from delta_core.testing.table_builder import TableBuilder

__all__ = [
    "IDS",
    "REFERENCES",
    "STOLEN",
    "Foreign",
    "Reference",
    "Spies",
    "files_below",
    "hostile",
    "parquet",
    "served",
    "watched",
]

#: What the table's own file holds, and the foreign one.
IDS, STOLEN = [1, 2, 3], [666]
Reference = Literal["commit", "checkpoint", "sidecar checkpoint", "vector", "change"]
REFERENCES: tuple[Reference, ...] = ("commit", "checkpoint", "sidecar checkpoint", "vector", "change")


class Foreign(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store that nobody but an attacker uses: each call, and each time it is opened, is counted."""

    protocol = "foreign"
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    calls: ClassVar[list[Any]] = []

    def __init__(self, **options: Any) -> None:
        self.calls.append(("open", options))
        super().__init__(**options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("foreign://").strip("/")

    def _open(self, path: str, *args: Any, **options: Any) -> Any:
        self.calls.append(path)
        return super()._open(path, *args, **options)

    def cat_file(self, path: str, *args: Any, **options: Any) -> Any:
        self.calls.append(path)
        return super().cat_file(path, *args, **options)

    def info(self, path: str, **options: Any) -> Any:
        self.calls.append(path)
        return super().info(path, **options)


def parquet(ids: list[int]) -> bytes:
    """Return a Parquet file with a column ``id``."""
    out = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), out)
    return out.getvalue()


class Spies:
    """What reached a store that the table is not on.

    Parameters
    ----------
    url : str
        Of a server on this machine that hands out one Parquet file, whatever it is requested.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[str] = []
        self.connections: list[Any] = []

    @property
    def seen(self) -> list[Any]:
        """Every request, connection and call."""
        return [*self.requests, *self.connections, *Foreign.calls]

    def paths(self) -> dict[str, str]:
        """Return paths to other kinds of store, by what they try; all but the last ones lead to a real file."""
        data = base64.b64encode(parquet(STOLEN)).decode()
        return {
            "http": f"{self.url}/f.parquet",
            "upper case": f"{self.url}/f.parquet".replace("http", "HTTP"),
            "other file system": "foreign://host/f.parquet",
            "memory": "memory://victim/f.parquet",
            "data": f"data:application/octet-stream;base64,{data}",
            "cache": f"simplecache::{self.url}/f.parquet",
            "archive": f"zip://f.parquet::{self.url}/f.zip",
            "chain on the own store": f"file://x::{self.url}/f",
            "without slashes": self.url.replace("http://", "http:"),
            "github": "github://org:repo@main/f.parquet",
            "ftp": "ftp://user:password@127.0.0.1/f.parquet",
            "s3": "s3://bucket/f.parquet",
            "other machine": "file://other-host/f.parquet",
            "line break": self.url.replace("http:", "http:\n") + "/f",
        }


@contextmanager
def served() -> Iterator[Spies]:
    """Start the server."""
    body = parquet(STOLEN)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            spies.requests.append(f"{self.command} {self.path}")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (the name that the server looks for)

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    spies = Spies(f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield spies
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def watched(monkeypatch: Any, spies: Spies) -> Iterator[Spies]:
    """Put files onto other stores, and count what reaches them."""
    fsspec.register_implementation("foreign", Foreign, clobber=True)
    body = parquet(STOLEN)
    spies.requests.clear()
    spies.connections.clear()
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> Any:
        spies.connections.append(address)
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    Foreign.calls.clear()
    Foreign.store.clear()
    fsspec.filesystem("foreign").pipe_file("/host/f.parquet", body)
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/victim/f.parquet", body)
    Foreign.calls.clear()
    for name in ("_open", "cat_file", "info"):
        _count(monkeypatch, MemoryFileSystem, name, lambda path: "victim" in path)
    try:
        yield spies
    finally:
        memory.rm("/victim", recursive=True)


def _count(monkeypatch: Any, kind: Any, name: str, counts: Callable[[str], bool]) -> None:
    real = getattr(kind, name)

    def call(self: Any, path: str, *args: Any, **options: Any) -> Any:
        if counts(path):
            Foreign.calls.append(path)
        return real(self, path, *args, **options)

    monkeypatch.setattr(kind, name, call)


def hostile(place: Any, path: str, reference: Reference = "commit", size: int | None = None) -> TableBuilder:
    """Build a table of three rows that refers to a file by any path.

    Parameters
    ----------
    reference : str
        What refers to it: an ``add`` of a commit or of a checkpoint, a deletion vector, or a change file.
    """
    features = {"vector": ["deletionVectors"], "change": ["changeDataFeed"], "sidecar checkpoint": ["v2Checkpoint"]}
    properties = {"delta.enableChangeDataFeed": "true"} if reference == "change" else {}
    table = TableBuilder(place).create({"id": "long"}, features=features.get(reference, []), properties=properties)
    table.append([{"id": i} for i in IDS])
    stolen = {
        "path": path,
        "partitionValues": {},
        "size": size or len(parquet(STOLEN)),
        "modificationTime": 0,
        "dataChange": True,
    }
    if reference == "change":
        change = {k: stolen[k] for k in ("path", "partitionValues", "size")}
        return table.commit({"cdc": {**change, "dataChange": False}})
    if reference == "vector":
        (own,) = table.state.files.values()
        vector = {"storageType": "p", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 36, "cardinality": 1}
        return table.commit(*table.remove_actions(), {"add": {**own, "deletionVector": vector}})
    table.commit({"add": stolen})
    if reference == "checkpoint":
        table.checkpoint()
    elif reference == "sidecar checkpoint":
        table.checkpoint(kind="v2-parquet", sidecars=1)
    return table


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file, to compare."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
