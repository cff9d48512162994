"""A server of Unity Catalog's API in this process: credentials for any store, and failures at chosen requests."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

__all__ = ["TOKEN", "FakeCatalog", "Fault", "running"]

TOKEN = "dapi-secret-of-tester"
_API = "/api/2.1/unity-catalog"


@dataclass
class Fault:
    """A failure of the requests whose method and path begin so, as often as ``times``.

    Parameters
    ----------
    status, body, headers
        The answer; the connection is closed without one if the status is None.
    acts : bool
        Whether the server has acted on the request before it fails.
    pause : float
        Seconds after each byte of the body.
    """

    request: str
    status: int | None
    body: bytes = b""
    acts: bool = False
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0


@dataclass
class FakeCatalog:
    """What the server has: tables by full name, commits by table id, and the requests that it received."""

    url: str = ""
    token: str | None = None
    page_length: int = 2
    most_commits: int = 10
    schemas: dict[str, list[str]] = field(default_factory=lambda: {"main": ["default", "sales"], "other": []})
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    staging: dict[str, dict[str, Any]] = field(default_factory=dict)
    staging_root: str = ""
    commits: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    definitions: list[dict[str, Any]] = field(default_factory=list)
    credentials: Callable[[str], dict[str, Any]] = lambda operation: {}
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, location: str, **more: Any) -> dict[str, Any]:
        """Record a table; an external one of Delta unless given."""
        catalog, schema, table = name.split(".")
        record = {
            "name": table, "catalog_name": catalog, "schema_name": schema, "table_type": "EXTERNAL",
            "data_source_format": "DELTA", "storage_location": location, "table_id": str(uuid.uuid4()), **more,
        }  # fmt: skip
        self.tables[name] = record
        return record

    def answer(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        """Return the status and the answer of a request."""
        head, _, rest = path.removeprefix(_API).lstrip("/").partition("/")
        action = getattr(self, f"_{method.lower()}_{head.replace('-', '_')}", None)
        return (404, _error("NOT_FOUND", path)) if action is None else action(unquote(rest), query, body)

    def _page(self, items: str, names: list[dict[str, Any]], query: dict[str, str]) -> tuple[int, Any]:
        start = int(query.get("page_token", 0))
        end = start + self.page_length
        more = {"next_page_token": str(end)} if end < len(names) else {}
        return 200, {items: names[start:end], **more}

    def _get_catalogs(self, rest: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        return self._page("catalogs", [{"name": n} for n in self.schemas], query)

    def _get_schemas(self, rest: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if query["catalog_name"] not in self.schemas:
            return 404, _error("CATALOG_NOT_FOUND", "Catalog not found: " + query["catalog_name"])
        return self._page("schemas", [{"name": n} for n in self.schemas[query["catalog_name"]]], query)

    def _get_tables(self, rest: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if rest:
            found = self.tables.get(rest)
            return (200, found) if found else (404, _error("TABLE_NOT_FOUND", f"Table not found: {rest}"))
        if query["schema_name"] not in self.schemas.get(query["catalog_name"], []):
            return 404, _error("SCHEMA_NOT_FOUND", "Schema not found")
        own = [t for t in self.tables.values() if t["schema_name"] == query["schema_name"]]
        return self._page("tables", own, query)

    def _post_tables(self, rest: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        name = f"{body['catalog_name']}.{body['schema_name']}.{body['name']}"
        if name in self.tables:
            return 400, _error("TABLE_ALREADY_EXISTS", f"Table already exists: {name}")
        staged = self.staging.pop(body["storage_location"], None)
        known = {k: v for k, v in body.items() if k not in ("name", "catalog_name", "schema_name", "storage_location")}
        table_id = staged["id"] if staged else str(uuid.uuid4())
        return 200, self.add(name, body["storage_location"], **{**known, "table_id": table_id})

    def _delete_tables(self, rest: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        return (200, {}) if self.tables.pop(rest, None) else (404, _error("TABLE_NOT_FOUND", rest))

    def _post_staging_tables(self, rest: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        made = {"id": str(uuid.uuid4()), **body}
        made["staging_location"] = f"{self.staging_root}/{made['id']}"
        self.staging[made["staging_location"]] = made
        return 200, made

    def _post_temporary_table_credentials(self, rest: str, query: Any, body: dict[str, Any]) -> tuple[int, Any]:
        known = [t["table_id"] for t in self.tables.values()] + [t["id"] for t in self.staging.values()]
        if body["table_id"] not in known:
            return 404, _error("TABLE_NOT_FOUND", "Table not found")
        return self._issue(body["operation"])

    def _post_temporary_path_credentials(self, rest: str, query: Any, body: dict[str, Any]) -> tuple[int, Any]:
        return self._issue(body["operation"])

    def _issue(self, operation: str) -> tuple[int, Any]:
        try:
            return 200, self.credentials(operation)
        except PermissionError:
            return 403, _error("PERMISSION_DENIED", f"no {operation} for the token {self.token}")

    def _has_no(self, table: str) -> bool:
        return table not in [t["table_id"] for t in self.tables.values()]

    def _get_delta(self, rest: str, query: Any, body: dict[str, Any]) -> tuple[int, Any]:
        table = body["table_id"]
        if self._has_no(table):
            return 404, _error("TABLE_NOT_FOUND", f"Table not found: {table}")
        known = sorted((c for c in self.commits.get(table, [])), key=lambda c: int(c["version"]))
        chosen = [c for c in known if c["version"] >= body["start_version"]][: self.page_length]
        return 200, {"commits": chosen[::-1], "latest_table_version": self.latest.get(table, -1)}

    def _post_delta(self, rest: str, query: Any, body: dict[str, Any]) -> tuple[int, Any]:
        table = body["table_id"]
        if self._has_no(table):
            return 404, _error("TABLE_NOT_FOUND", f"Table not found: {table}")
        known = self.commits.setdefault(table, [])
        latest = self.latest.get(table, 0)
        if (info := body.get("commit_info")) is not None:
            if info["version"] <= latest:
                return 409, _error("ALREADY_EXISTS", f"Commit version already accepted: {info['version']}")
            if info["version"] > latest + 1:
                return 400, _error("INVALID_ARGUMENT", "Commit version must be the next version")
            if len(known) >= self.most_commits:
                return 429, _error("RESOURCE_EXHAUSTED", "Max number of commits per table reached")
            known.append(info)
            self.latest[table] = info["version"]
            if "metadata" in body:
                self.definitions.append(body["metadata"])
        if (published := body.get("latest_backfilled_version")) is not None:
            self.commits[table] = [c for c in known if c["version"] > published]
        return 200, {}


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message, "details": []}


@contextmanager
def running(catalog: FakeCatalog) -> Iterator[FakeCatalog]:
    """Serve a catalog at a port of its own until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or "{}")
            with catalog.lock:
                name = f"{self.command} {parts.path.removeprefix(_API)}"
                catalog.requests.append(name)
                fault = next((f for f in catalog.faults if f.times and name.startswith(f.request)), None)
                if fault is not None:
                    fault.times -= 1
                status, found = 500, {}
                if fault is None or fault.acts:
                    if catalog.token is not None and self.headers.get("Authorization") != f"Bearer {catalog.token}":
                        status, found = 401, _error("UNAUTHENTICATED", "Invalid access token.")
                    else:
                        status, found = catalog.answer(self.command, parts.path, dict(parse_qsl(parts.query)), body)
            if fault is not None:
                self._send(fault.status, fault.body, fault.headers, fault.pause)
            else:
                # as the open-source server answers a request that returns nothing
                self._send(status, json.dumps(found).encode() if found else b"200 OK", {})

        def _send(self, status: int | None, body: bytes, headers: dict[str, str], pause: float = 0.0) -> None:
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if not pause:
                self.wfile.write(body)
            with suppress(OSError):  # the client may stop
                for i in range(len(body) if pause else 0):
                    self.wfile.write(body[i : i + 1])
                    time.sleep(pause)

        do_GET = do_POST = do_DELETE = _handle  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    catalog.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield catalog
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
