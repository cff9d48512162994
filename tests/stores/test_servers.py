"""Real servers: each keeps the contract of storages."""

from __future__ import annotations

import pytest

from delta_core.engine import Storage
from delta_core.engines.arrow.storage import open_storage
from delta_core.testing.storage_contract import StorageContract
from tests.stores.servers import Server


class TestServers(StorageContract):
    @pytest.fixture
    def storage(self, server_storage: Storage) -> Storage:
        return server_storage

    @pytest.fixture
    def failing_storage(self, server: Server) -> Storage:
        """Keys that the server does not know."""
        if server.folder is None:
            pytest.skip("this server takes any caller")
        return open_storage(server.bucket, {**server.options, "AWS_SECRET_ACCESS_KEY": "wrong"})
