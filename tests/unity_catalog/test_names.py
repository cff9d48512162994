"""Names: found, created, registered and dropped; and each way in which the server may fail."""

from __future__ import annotations

import itertools
import json
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.catalogs import NameCatalog, open_catalog
from delta_core.errors import (
    CatalogAuthenticationError,
    CatalogError,
    CatalogNameNotFoundError,
    CatalogPermissionError,
    CatalogResponseError,
    CatalogUnavailableError,
    InvalidArgumentError,
    InvalidPlaceError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_core.schema.fields import Schema
from delta_plugins.unity_catalog import rest
from delta_plugins.unity_catalog.catalog import UnityCatalog, open_unity
from delta_plugins.unity_catalog.columns import column_infos
from delta_plugins.unity_catalog.options import read_settings
from tests.unity_catalog.fake import TOKEN, FakeCatalog, Fault

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Oslo", "Rome", None]})


@pytest.fixture
def cities(fake: FakeCatalog, tmp_path: Path) -> str:
    place = tmp_path / "cities"
    write_deltalake(str(place), ROWS)
    fake.add("main.sales.cities", place.as_uri())
    return "uc://main.sales.cities"


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("unity_catalog_url", "unity_catalog_token"),
        ("unity_workspace_url", "unity_access_token"),
        ("databricks_host", "databricks_token"),
        ("DATABRICKS_WORKSPACE_URL", "DATABRICKS_ACCESS_TOKEN"),
        ("uri", "token"),
    ],
)
def test_options_under_the_names_of_other_clients_reach_the_server(
    fake: FakeCatalog, cities: str, url: str, token: str
) -> None:
    fake.token = TOKEN
    table = DeltaTable(cities, storage_options={url: fake.url, token: TOKEN})
    assert table.to_pyarrow_table().sort_by("id") == ROWS


@pytest.mark.parametrize(
    ("url", "token"), [("UNITY_CATALOG_URL", "UNITY_CATALOG_TOKEN"), ("DATABRICKS_HOST", "DATABRICKS_TOKEN")]
)
def test_environment_serves_where_options_do_not(
    fake: FakeCatalog, cities: str, monkeypatch: pytest.MonkeyPatch, url: str, token: str
) -> None:
    fake.token = TOKEN
    monkeypatch.setenv(url, fake.url)
    monkeypatch.setenv(token, TOKEN)
    assert DeltaTable(cities).count() == 3
    with pytest.raises(CatalogAuthenticationError):
        DeltaTable(cities, storage_options={"unity_catalog_token": "other"})


def test_table_is_written_by_its_name(cities: str, options: dict[str, str]) -> None:
    write_deltalake(cities, ROWS, mode="append", storage_options=options)
    table = DeltaTable(cities, storage_options=options)
    table.delete("id = 1")
    assert (table.version(), table.count()) == (2, 4)


def test_pickle_has_the_name_and_no_token(fake: FakeCatalog, cities: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.token = TOKEN
    table = DeltaTable(cities, storage_options={"unity_catalog_url": fake.url, "unity_catalog_token": TOKEN})
    data = pickle.dumps(table)
    assert TOKEN.encode() not in data
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", TOKEN)
    assert pickle.loads(data).count() == 3


def test_lists_go_on_over_pages(fake: FakeCatalog, unity: UnityCatalog) -> None:
    for name in ("e", "d", "c", "b", "a"):
        fake.add(f"main.sales.{name}", "file:///nowhere")
    assert isinstance(unity, NameCatalog)
    assert unity.catalogs() == ["main", "other"]
    assert unity.schemas() == ["main.default", "main.sales"]
    assert unity.tables("main.sales") == [f"main.sales.{n}" for n in "abcde"]
    assert fake.requests.count("GET /tables") == 3


def test_catalog_opens_by_its_address(fake: FakeCatalog, cities: str) -> None:
    found = open_catalog(f"unity+{fake.url}").table("main.sales.cities")
    assert found.uri == cities
    assert DeltaTable(found.uri, storage_options=found.storage_options).count() == 3


def test_registered_table_has_its_columns(fake: FakeCatalog, unity: UnityCatalog, tmp_path: Path) -> None:
    place = tmp_path / "events"
    rows = pa.table({"day": ["a"], "n": pa.array([1], pa.int32()), "price": pa.array([None], pa.decimal128(9, 2))})
    write_deltalake(str(place), rows, partition_by=["day"], configuration={"delta.appendOnly": "true"})
    found = unity.register("main.sales.events", place)
    assert found.location == place.as_uri()
    assert DeltaTable(found.uri, storage_options=found.storage_options).count() == 1
    record = fake.tables["main.sales.events"]
    assert record["properties"]["delta.appendOnly"] == "true"
    assert [(c["name"], c["type_name"], c["type_text"], c.get("partition_index")) for c in record["columns"]] == [
        ("day", "STRING", "string", 0),
        ("n", "INT", "int", None),
        ("price", "DECIMAL", "decimal(9,2)", None),
    ]


def test_created_table_is_empty_and_has_its_name(unity: UnityCatalog, tmp_path: Path) -> None:
    found = unity.create("main.sales.new", ROWS.schema, tmp_path / "new", properties={"delta.appendOnly": "true"})
    table = DeltaTable(found.uri, storage_options=found.storage_options)
    assert (table.count(), table.metadata().configuration["delta.appendOnly"]) == (0, "true")
    with pytest.raises(TableExistsError, match=r"main\.sales\.new"):
        unity.create("main.sales.new", ROWS.schema, tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(TableExistsError, match="register"):
        unity.create("main.sales.again", ROWS.schema, tmp_path / "new")
    with pytest.raises(TableExistsError, match="ALREADY_EXISTS"):
        unity.register("main.sales.new", tmp_path / "new")


def test_dropped_name_leaves_the_files(fake: FakeCatalog, unity: UnityCatalog, cities: str, tmp_path: Path) -> None:
    unity.drop("main.sales.cities")
    assert not fake.tables
    assert DeltaTable(str(tmp_path / "cities")).count() == 3
    with pytest.raises(CatalogNameNotFoundError):
        unity.drop("main.sales.cities")
    with pytest.raises(UnsupportedOperationError, match="register"):
        unity.rename("main.sales.cities", "main.sales.towns")


def test_each_type_has_its_name() -> None:
    arrow = pa.schema([
        ("a", pa.bool_()), ("b", pa.int8()), ("c", pa.int16()), ("d", pa.float32()), ("e", pa.float64()),
        ("f", pa.date32()), ("g", pa.timestamp("us", "UTC")), ("h", pa.timestamp("us")), ("i", pa.binary()),
        ("j", pa.list_(pa.int64())), ("k", pa.map_(pa.string(), pa.int64())), ("l", pa.struct([("x", pa.int64())])),
    ])  # fmt: skip
    found = column_infos(Schema.from_arrow(arrow), ())
    assert [c["type_name"] for c in found] == [
        "BOOLEAN", "BYTE", "SHORT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY", "ARRAY", "MAP",
        "STRUCT",
    ]  # fmt: skip
    assert [c["position"] for c in found] == list(range(12))


# --- failures ---


@pytest.mark.parametrize("uri", ["uc://main.sales", "uc://a.b.c.d", "uc://a..c", "uc://a.b.c/d", "uc://"])
def test_uri_needs_three_names(options: dict[str, str], uri: str) -> None:
    with pytest.raises(InvalidPlaceError, match=r"expected uc://catalog\.schema\.table"):
        DeltaTable(uri, storage_options=options)


def test_missing_table_is_not_found(fake: FakeCatalog, options: dict[str, str]) -> None:
    with pytest.raises(TableNotFoundError, match=r"main\.sales\.none.*Table not found") as e:
        DeltaTable("uc://main.sales.none", storage_options=options)
    assert isinstance(e.value, CatalogNameNotFoundError)
    assert (e.value.endpoint, e.value.status) == (f"{fake.url}/api/2.1/unity-catalog", 404)
    assert str(pickle.loads(pickle.dumps(e.value))) == str(e.value)
    # Dask's workers pickle the context too, and an error of urllib can't be pickled
    assert e.value.__context__ is None
    assert not DeltaTable.is_deltatable("uc://main.sales.none", options)
    with pytest.raises(CatalogNameNotFoundError):
        write_deltalake("uc://main.sales.none", ROWS, storage_options=options)


def test_unknown_address_names_the_options() -> None:
    with pytest.raises(InvalidArgumentError, match="UNITY_CATALOG_URL or DATABRICKS_HOST"):
        DeltaTable("uc://a.b.c")


@pytest.mark.parametrize(
    ("status", "kind", "remedy"),
    [
        (401, CatalogAuthenticationError, "UNITY_CATALOG_TOKEN"),
        (403, CatalogPermissionError, "USE SCHEMA"),
        (500, CatalogError, "status 500"),
        (503, CatalogUnavailableError, "Try again later"),
    ],
)
def test_status_has_an_error_of_its_own(
    fake: FakeCatalog, options: dict[str, str], status: int, kind: type[CatalogError], remedy: str
) -> None:
    body = b'{"error_code": "SOME", "message": "said with %s"}' % TOKEN.encode()
    fake.faults.append(Fault("GET /tables/", status, body, times=9))
    with pytest.raises(CatalogError, match=remedy) as e:
        DeltaTable("uc://main.sales.cities", storage_options={**options, "unity_catalog_token": TOKEN})
    assert type(e.value) is kind
    assert (e.value.name, e.value.endpoint.startswith(fake.url)) == ("table main.sales.cities", True)
    assert "SOME: said with ***." in str(e.value)
    assert TOKEN not in repr(e.value) + str(e.value.facts)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b"{", b"{}", b'{"table_id": 1}', b"\xff", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_malformed_answer_is_rejected(fake: FakeCatalog, options: dict[str, str], body: bytes) -> None:
    fake.faults.append(Fault("GET /tables/", 200, body))
    with pytest.raises(CatalogResponseError, match="can't be used"):
        DeltaTable("uc://main.sales.cities", storage_options=options)


def _pages(tokens: Iterator[str], listed: list[Any]) -> Callable[..., tuple[int, Any]]:
    return lambda *request: (200, {"catalogs": listed, "next_page_token": next(tokens)})


@pytest.mark.parametrize(
    ("tokens", "listed", "found"),
    [
        (lambda: itertools.repeat("a"), [{"name": "c"}], "names itself, or an earlier one"),
        (lambda: itertools.cycle("ab"), [{"name": "c"}], "names itself, or an earlier one"),
        (lambda: map(str, itertools.count()), [], "pages after each other are empty"),
    ],
)
def test_list_without_an_end_is_rejected(
    fake: FakeCatalog, unity: UnityCatalog, monkeypatch: pytest.MonkeyPatch, tokens: Any, listed: list[Any], found: str
) -> None:
    monkeypatch.setattr(rest, "_MOST_EMPTY", 5)
    monkeypatch.setattr(fake, "_get_catalogs", _pages(tokens(), listed))
    with pytest.raises(CatalogResponseError, match=found):
        unity.catalogs()


@pytest.mark.parametrize("status", [200, 400])
def test_answer_that_drips_is_given_up(
    fake: FakeCatalog, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(rest, "_TOTAL", 0.2)
    monkeypatch.setattr(rest, "TRIES", 1)
    fake.faults.append(Fault("GET /tables/", status, b'{"a": "%s"}' % (b"x" * 2000), pause=0.01))
    start = time.monotonic()
    with pytest.raises(CatalogError, match="not complete after 0.2 s" if status == 200 else "status 400"):
        DeltaTable("uc://main.sales.cities", storage_options=options)
    assert time.monotonic() - start < 10, "the whole answer takes 20 s"


@pytest.mark.parametrize("name", ["main.sales.\ud800", "ma\udfffin.sales.cities"])
def test_name_with_half_of_a_surrogate_pair_is_rejected(
    fake: FakeCatalog, unity: UnityCatalog, options: dict[str, str], name: str, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    for work in (
        lambda: DeltaTable(f"uc://{name}", storage_options=options),
        lambda: unity.table(name),
        lambda: unity.tables(name.rpartition(".")[0]) if name.endswith("s") else unity.drop(name),
        lambda: unity.register(name, str(tmp_path / "t")),
    ):
        with pytest.raises(InvalidArgumentError, match="half of a surrogate pair"):
            work()
    assert fake.tables == {}


def test_server_that_is_down_is_reported(fake: FakeCatalog, options: dict[str, str], unity: UnityCatalog) -> None:
    down = {"unity_catalog_url": "http://127.0.0.1:1", "unity_catalog_token": TOKEN}
    with pytest.raises(CatalogUnavailableError, match="the server runs") as e:
        DeltaTable("uc://main.sales.cities", storage_options=down)
    assert TOKEN not in str(e.value)
    assert isinstance(e.value, ConnectionError)


@pytest.mark.parametrize("fault", [Fault("GET /tables/", None, times=3), Fault("GET /tables/", 503, times=3)])
def test_reading_goes_on_once_the_server_answers(
    fake: FakeCatalog, options: dict[str, str], cities: str, fault: Fault
) -> None:
    fake.faults.append(fault)
    assert DeltaTable(cities, storage_options=options).count() == 3
    assert fault.times == 0


def test_redirect_is_not_followed(fake: FakeCatalog, options: dict[str, str]) -> None:
    fake.faults.append(Fault("GET /tables/", 302, headers={"Location": fake.url + "/elsewhere"}))
    with pytest.raises(CatalogResponseError, match="redirects"):
        DeltaTable("uc://main.sales.cities", storage_options={**options, "unity_catalog_token": TOKEN})
    assert not any("elsewhere" in r for r in fake.requests)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"data_source_format": "CSV"}, "format CSV, expected DELTA"),
        ({"table_type": "VIEW", "storage_location": None}, "type VIEW"),
        ({"table_type": "STREAMING_TABLE"}, "type STREAMING_TABLE"),
    ],
)
def test_entry_without_delta_files_is_rejected(
    fake: FakeCatalog, options: dict[str, str], more: dict[str, Any], found: str
) -> None:
    fake.add("main.sales.odd", "file:///nowhere", **more)
    with pytest.raises(UnsupportedOperationError, match=found):
        DeltaTable("uc://main.sales.odd", storage_options=options)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"host": "ftp://a"}, "expected a URL"),
        ({"host": "https://user:secret@a"}, "Found a user"),
        ({"host": "http://example.com", "token": TOKEN}, "without encryption"),
        ({"host": "https://a", "token": "a\nb"}, "characters that no token has"),
    ],
)
def test_settings_that_are_unsafe_are_rejected(given: dict[str, str], found: str) -> None:
    with pytest.raises(InvalidArgumentError, match=found) as e:
        read_settings(given)
    assert not any(secret in str(e.value) for secret in (TOKEN, "secret", "a\nb"))


def test_settings_pass_on_the_options_of_stores() -> None:
    found = read_settings({"host": "example.com", "token": TOKEN, "aws_region": "eu-north-1"})
    assert (found.url, dict(found.storage)) == (
        "https://example.com/api/2.1/unity-catalog",
        {"aws_region": "eu-north-1"},
    )
    assert TOKEN not in repr(found)
    trusted = read_settings({"host": "http://10.0.0.1", "token": TOKEN, "unity_allow_http_url": "true"})
    assert trusted.url.startswith("http://10.0.0.1/")
    with pytest.raises(UnsupportedOperationError, match="databricks_token"):
        read_settings({"host": "https://a", "databricks_client_secret": "x"})


def test_catalog_shows_no_token(fake: FakeCatalog) -> None:
    fake.add("main.sales.t", "file:///nowhere")
    catalog = open_unity("unity", {"unity_catalog_url": fake.url, "unity_catalog_token": TOKEN})
    assert TOKEN not in repr(catalog) + repr(catalog.api) + repr(catalog.table("main.sales.t"))


def test_token_that_a_server_repeats_is_hidden(fake: FakeCatalog) -> None:
    fake.token = TOKEN
    unity = open_unity("unity", {"unity_catalog_url": fake.url, "unity_catalog_token": TOKEN})
    answer = {"error_code": f"CODE_{TOKEN}", "message": f"no {TOKEN}"}
    fake.faults.append(Fault("GET /tables", 400, json.dumps(answer).encode()))
    with pytest.raises(CatalogError, match=r"CODE_\*\*\*: no \*\*\*") as e:
        unity.record("main.sales.t")
    assert TOKEN not in repr(e.value) + repr(e.value.facts)
