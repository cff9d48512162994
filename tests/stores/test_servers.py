"""Real servers: each keeps the contract of storages, and lists long logs from their end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from delta_core.engines.interface import Storage
from delta_core.kernel.log.names import commit_name
from delta_core.storage.stores import open_storage
from delta_core.testing.storage_contract import StorageContract
from tests.stores.conftest import place
from tests.stores.servers import Server


class TestServers(StorageContract):
    @pytest.fixture
    def storage(self, server_storage: Storage) -> Storage:
        return server_storage

    @pytest.fixture
    def failing_storage(self, server: Server) -> Storage:
        """Keys that the server does not support."""
        if not server.wrong_options:
            pytest.skip("this server takes any caller")
        return open_storage(server.bucket, server.wrong_options)


@pytest.mark.parametrize("name", ["versitygw", "moto"])
def test_listing_fetches_no_page_below_its_start(
    name: str, start_server: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 returns 1,000 names a page; the others' emulators return as many as there are."""
    server = place(start_server(name))
    storage = open_storage(server.bucket, server.options)
    filesystem = storage._fs  # type: ignore[union-attr]
    filesystem.pipe({f"{storage._key('_delta_log')}/{commit_name(v)}": b"1" for v in range(1_200)})  # type: ignore[union-attr]
    pages = []
    real = filesystem.call_s3

    def counted(*arguments: Any, **options: Any) -> Any:
        pages.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(filesystem, "call_s3", counted)
    found = storage.list_from("_delta_log", f"{1_150:020d}.")
    assert found.names == [commit_name(v) for v in range(1_150, 1_200)]
    assert found.sizes == [1] * 50
    assert len(pages) == 1
    pages.clear()
    assert len(storage.list_from("_delta_log").names) == 1_200
    assert len(pages) == 2
    pages.clear()
    found = storage.list_from("_delta_log", "0", 10)
    assert (found.names[:2], found.is_complete, len(pages)) == ([commit_name(0), commit_name(1)], False, 1)


def test_objects_lie_as_files_where_the_server_keeps_them(start_server: Callable[[str], Server]) -> None:
    server = place(start_server("versitygw"))
    assert server.folder is not None
    storage = open_storage(server.bucket, server.options)
    storage.put_if_absent("_delta_log/0.json", b"{}")
    file = server.folder / server.bucket.rpartition("/")[2] / "_delta_log" / "0.json"
    assert file.read_bytes() == b"{}"
