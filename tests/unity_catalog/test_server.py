"""The client with the open-source server of Unity Catalog."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, Field, QueryBuilder, write_deltalake
from delta_core.errors import CatalogNameNotFoundError, TableExistsError
from delta_plugins.unity_catalog import commits
from delta_plugins.unity_catalog.catalog import UnityCatalog, open_unity
from delta_plugins.unity_catalog.rest import Api
from tests.stores.servers import ServerMissingError
from tests.unity_catalog.server import UnityServer, unity_server

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Oslo", "Rome", None]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    try:
        with unity_server(tmp_path_factory.mktemp("unity")) as found:
            yield found
    except ServerMissingError as e:
        pytest.skip(str(e))


@pytest.fixture
def options(server: UnityServer) -> dict[str, str]:
    return {"unity_catalog_url": server.url}


@pytest.fixture
def unity(options: dict[str, str]) -> UnityCatalog:
    return open_unity("unity", options)


@pytest.fixture
def managed(unity: UnityCatalog, request: pytest.FixtureRequest) -> str:
    """Return a managed table of the test's own, without rows."""
    name = "main.sales.t_" + str(abs(hash(request.node.name)) % 10**9)
    return unity.create(name, ROWS.schema).uri


def test_external_table_is_created_written_and_dropped(
    unity: UnityCatalog, options: dict[str, str], tmp_path: Path
) -> None:
    found = unity.create("main.sales.cities", ROWS.schema, tmp_path / "cities", properties={"delta.appendOnly": "true"})
    write_deltalake(found.uri, ROWS, mode="append", storage_options=options)
    assert DeltaTable(found.uri, storage_options=options).to_pyarrow_table().sort_by("id") == ROWS
    assert unity.schemas() == ["main.sales"]
    assert "main.sales.cities" in unity.tables("main.sales")
    assert unity.table("main.sales.cities").properties["delta.appendOnly"] == "true"
    with pytest.raises(TableExistsError):
        unity.create("main.sales.cities", ROWS.schema, tmp_path / "other")
    unity.drop("main.sales.cities")
    with pytest.raises(CatalogNameNotFoundError, match=r"main\.sales\.cities"):
        DeltaTable(found.uri, storage_options=options)
    assert DeltaTable(str(tmp_path / "cities")).count() == 3
    unity.register("main.sales.cities", tmp_path / "cities")
    query = QueryBuilder(engine="duckdb", catalog=unity)
    assert query.execute("SELECT count(*) AS n FROM main.sales.cities").read_all().to_pylist() == [{"n": 3}]


def test_lists_go_on_over_pages(unity: UnityCatalog, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "many"), ROWS)
    names = [f"main.sales.page{i:03d}" for i in range(55)]
    for name in names:
        unity.register(name, tmp_path / "many" if name == names[0] else _copy(tmp_path, name))
    assert [n for n in unity.tables("main.sales") if ".page" in n] == names
    for name in names:
        unity.drop(name)


def _copy(folder: Path, name: str) -> Path:
    place = folder / name
    DeltaTable(str(folder / "many")).clone(place)
    return place


def test_missing_names_are_reported(unity: UnityCatalog, options: dict[str, str]) -> None:
    for call in (
        lambda: unity.tables("main.none"),
        lambda: unity.tables("none.sales"),
        lambda: unity.drop("main.sales.none"),
    ):
        with pytest.raises(CatalogNameNotFoundError):
            call()


def test_managed_table_is_written_through_the_catalog(
    server: UnityServer, unity: UnityCatalog, options: dict[str, str], managed: str
) -> None:
    for _ in range(3):
        write_deltalake(managed, ROWS, mode="append", storage_options=options)
    table = DeltaTable(managed, storage_options=options)
    table.delete("id = 1")
    table.update({"city": "'Bern'"}, predicate="id = 2")
    assert (table.version(), table.count()) == (5, 6)
    again = DeltaTable(managed, storage_options=options)
    assert again.version() == 5
    assert sorted({r["city"] or "" for r in again.to_pyarrow_table().to_pylist()}) == ["", "Bern"]
    record = unity.record(managed.removeprefix("uc://"))
    assert (record.table_type, record.is_catalog_managed) == ("MANAGED", True)
    body = {"table_id": record.table_id, "table_uri": record.location, "start_version": 0}
    found = server.call("GET", "/delta/preview/commits", body)
    assert (found["latest_table_version"], found.get("commits") or []) == (5, [])


def test_definition_reaches_the_catalog(
    server: UnityServer, unity: UnityCatalog, options: dict[str, str], managed: str
) -> None:
    table = DeltaTable(managed, storage_options=options)
    table.alter.set_table_properties({"mine": "yes"})
    table.alter.add_columns([Field("n", "integer")])
    name = managed.removeprefix("uc://")
    record = unity.record(name)
    assert record.properties["mine"] == "yes"
    assert record.is_catalog_managed
    columns = server.call("GET", f"/tables/{name}")["columns"]
    assert [(c["name"], c["type_name"]) for c in columns] == [("id", "LONG"), ("city", "STRING"), ("n", "INT")]


def test_concurrent_writers_lose_no_rows(options: dict[str, str], managed: str) -> None:
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(3):
                write_deltalake(managed, ROWS, mode="append", storage_options=options)
        except BaseException as e:  # noqa: BLE001 (asserted below)
            errors.append(e)

    threads = [threading.Thread(target=write) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
    table = DeltaTable(managed, storage_options=options)
    assert (table.version(), table.count()) == (9, 27)


def test_request_that_is_repeated_commits_once(
    options: dict[str, str], managed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = Api.post

    def twice(self: Api, path: str, subject: str, body: Any, *, repeats: bool = False) -> dict[str, Any]:
        if "commit_info" in body:
            post(self, path, subject, body)
        return post(self, path, subject, body, repeats=repeats)

    monkeypatch.setattr(commits.Api, "post", twice)
    write_deltalake(managed, ROWS, mode="append", storage_options=options)
    table = DeltaTable(managed, storage_options=options)
    assert (table.version(), table.count()) == (1, 3)


def test_commits_that_nobody_published_are_read_and_published(
    options: dict[str, str], managed: str, unity: UnityCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        from delta_plugins.catalog_managed.committer import CatalogCommitter

        patch.setattr(CatalogCommitter, "publish", lambda self, version: None)
        for _ in range(10):
            write_deltalake(managed, ROWS, mode="append", storage_options=options)
        assert DeltaTable(managed, storage_options=options).count() == 30
        # the server tracks ten unpublished commits: the next one publishes those before it
        write_deltalake(managed, ROWS, mode="append", storage_options=options)
    table = DeltaTable(managed, storage_options=options)
    assert (table.version(), table.count()) == (11, 33)
    write_deltalake(managed, ROWS, mode="append", storage_options=options)
    location = unity.record(managed.removeprefix("uc://")).location
    log = Path(location.removeprefix("file://")) / "_delta_log"
    assert len(list(log.glob("0*.json"))) == 13


def test_dropped_managed_table_is_gone(unity: UnityCatalog, options: dict[str, str], managed: str) -> None:
    name = managed.removeprefix("uc://")
    unity.drop(name)
    with pytest.raises(CatalogNameNotFoundError):
        DeltaTable(managed, storage_options=options)
