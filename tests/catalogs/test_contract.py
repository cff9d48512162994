"""The contract of catalogs of names, on each catalog that is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delta_core.catalogs import NameCatalog, open_catalog
from delta_core.testing.catalog_contract import CatalogContract
from tests.stores.servers import ServerMissingError
from tests.unity_catalog.fake import FakeCatalog, running
from tests.unity_catalog.server import UnityServer, unity_server

MakeCatalog = Callable[[], NameCatalog]


class TestSqliteCatalog(CatalogContract):
    @pytest.fixture
    def make_catalog(self, tmp_path: Path) -> MakeCatalog:
        return lambda: open_catalog(tmp_path / "names.db")

    @pytest.fixture
    def schema(self) -> str:
        return "sales"


class TestFakeOfUnityCatalog(CatalogContract):
    renames = False

    @pytest.fixture
    def make_catalog(self, tmp_path: Path) -> Iterator[MakeCatalog]:
        (tmp_path / "managed").mkdir()
        with running(FakeCatalog(staging_root=(tmp_path / "managed").as_uri())) as found:
            yield lambda: open_catalog(f"unity+{found.url}")

    @pytest.fixture
    def schema(self) -> str:
        return "main.sales"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    try:
        with unity_server(tmp_path_factory.mktemp("unity")) as found:
            yield found
    except ServerMissingError as e:
        pytest.skip(str(e))


class TestUnityCatalog(CatalogContract):
    renames = False

    def test_one_of_several_clients_gets_a_name(self) -> None:
        pytest.skip("the open-source server looks for a name and inserts it without a lock between")

    @pytest.fixture
    def make_catalog(self, server: UnityServer) -> MakeCatalog:
        return lambda: open_catalog(f"unity+{server.url}")

    @pytest.fixture
    def schema(self) -> str:
        return "main.sales"
