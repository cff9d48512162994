"""Servers that speak the stores' protocols, started here if their programs are installed.

`.ci/servers` installs the programs into ``~/.cache/delta_core-servers``; ``DELTA_CORE_SERVERS`` names another folder.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["SERVERS", "Server", "ServerMissingError"]

HOME = Path(os.environ.get("DELTA_CORE_SERVERS") or Path.home() / ".cache" / "delta_core-servers")
#: Every Azure emulator has this account and key.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class ServerMissingError(Exception):
    """A server or what talks to it is not installed; the message names what to install."""


@dataclass(frozen=True)
class Server:
    """A store that runs.

    Parameters
    ----------
    bucket : str
        The URI of an empty bucket.
    options : Mapping
        What opens it here.
    peer_options : Mapping
        What opens it in ``deltalake``; empty if that can't talk to it.
    endpoint : str
    folder : Path or None
        Where its files lie on disk, if they do.
    wrong_options : Mapping
        What does not open it, for its keys are wrong; empty if it takes any caller.
    """

    bucket: str
    options: Mapping[str, Any]
    endpoint: str = ""
    peer_options: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    wrong_options: Mapping[str, Any] = field(default_factory=dict)


def _program(name: str, install: str) -> str:
    for found in (HOME / "bin" / name, HOME / "node_modules" / ".bin" / name):
        if found.exists():
            return str(found)
    if elsewhere := shutil.which(name):
        return elsewhere
    raise ServerMissingError(f"{name} is not installed: {install}, or bash .ci/servers")


def _need(module: str, extra: str) -> None:
    if find_spec(module) is None:
        raise ServerMissingError(f"{module} is not installed: pip install 'delta-core-lake[{extra}]'")


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@contextmanager
def _running(command: list[str], port: int, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a server until the block ends; it must listen within a while."""
    log = folder / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(env or {})}, cwd=folder)
        try:
            deadline = time.monotonic() + 60
            while not _listens(port):
                if server.poll() is not None or time.monotonic() > deadline:
                    raise ServerMissingError(f"{command[0]} does not start: {log.read_text(errors='replace')[-500:]}")
                time.sleep(0.05)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def _s3_server(endpoint: str, folder: Path | None = None) -> Server:
    keys = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret-of-tester", "AWS_REGION": "us-east-1"}
    options = {**keys, "AWS_ENDPOINT_URL": endpoint}
    return Server("s3://bucket", options, endpoint, {**options, "AWS_ALLOW_HTTP": "true"}, folder)


@contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    """S3, whose objects are files: a bucket is a folder."""
    _need("s3fs", "s3")
    program = _program("versitygw", "go install github.com/versity/versitygw/cmd/versitygw@latest")
    port = _free_port()
    (folder / "data" / "bucket").mkdir(parents=True)
    env = {"ROOT_ACCESS_KEY": "tester", "ROOT_SECRET_KEY": "secret-of-tester"}
    with _running([program, "--port", f"127.0.0.1:{port}", "posix", str(folder / "data")], port, folder, env):
        server = _s3_server(f"http://127.0.0.1:{port}", folder / "data" / "bucket")
        yield replace(server, wrong_options={**server.options, "AWS_SECRET_ACCESS_KEY": "wrong"})


@contextmanager
def moto(folder: Path) -> Iterator[Server]:
    """S3 and DynamoDB, in one server's memory."""
    _need("s3fs", "s3")
    _need("boto3", "s3")
    if find_spec("moto") is None or find_spec("flask") is None:
        raise ServerMissingError("moto's server is not installed: pip install 'moto[server]'")
    import boto3

    port = _free_port()
    # moto looks for credentials of its own accord
    env = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "secret-of-tester"}
    with _running([sys.executable, "-m", "moto.server", "-p", str(port)], port, folder, env):
        server = _s3_server(f"http://127.0.0.1:{port}")
        client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id="tester",
            aws_secret_access_key="secret-of-tester",
        )
        client.create_bucket(Bucket="bucket")
        client.close()
        yield server


@contextmanager
def fake_gcs(folder: Path) -> Iterator[Server]:
    """GCS."""
    _need("gcsfs", "gcs")
    program = _program("fake-gcs-server", "go install github.com/fsouza/fake-gcs-server@latest")
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with _running([*command, "-public-host", f"127.0.0.1:{port}", "-external-url", endpoint], port, folder):
        options = {"token": "anon", "endpoint_url": endpoint}
        _make_bucket("gs", "bucket", options)
        yield Server("gs://bucket", options, endpoint)


@contextmanager
def azurite(folder: Path) -> Iterator[Server]:
    """Azure's blobs."""
    _need("adlfs", "azure")
    program = _program("azurite-blob", "npm install azurite")
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}/devstoreaccount1"
    command = [program, "--silent", "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    with _running([*command, "--skipApiVersionCheck", "--disableTelemetry"], port, folder):
        account = f"AccountName=devstoreaccount1;AccountKey={AZURE_KEY}"
        text = f"DefaultEndpointsProtocol=http;{account};BlobEndpoint={endpoint};"
        options = {"connection_string": text}
        _make_bucket("az", "bucket", options)
        peer = {
            "azure_storage_account_name": "devstoreaccount1",
            "azure_storage_account_key": AZURE_KEY,
            "azure_endpoint": endpoint,
            "azure_allow_http": "true",
        }
        wrong = {"connection_string": text.replace(AZURE_KEY, "A" * 86 + "==")}
        yield Server("az://bucket", options, endpoint, peer, wrong_options=wrong)


def _make_bucket(scheme: str, name: str, options: Mapping[str, Any]) -> None:
    import fsspec

    fsspec.filesystem(scheme, use_listings_cache=False, **options).mkdir(name)


SERVERS = {"versitygw": versitygw, "moto": moto, "fake-gcs-server": fake_gcs, "azurite": azurite}
