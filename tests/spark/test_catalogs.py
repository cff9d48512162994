"""Tables of Unity Catalog by name in Spark: read, written and changed by statements, also managed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark.store_credentials import check_credentials
from delta_core.errors import CatalogNameNotFoundError, UnsupportedOperationError
from delta_plugins.unity_catalog.catalog import open_table_storage, open_unity
from tests.unity_catalog.fake import TOKEN, FakeCatalog, running

pytestmark = pytest.mark.spark
SECRET = "secret-of-tester"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCatalog]:
    folder = tmp_path_factory.mktemp("managed")
    with running(FakeCatalog(staging_root=folder.as_uri())) as catalog:
        yield catalog


@pytest.fixture(params=["external", "managed"])
def uri(request: pytest.FixtureRequest, fake: FakeCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("UNITY_CATALOG_URL", fake.url)
    name = f"main.sales.{request.param}_{tmp_path.name.replace('-', '_')}"
    unity = open_unity("unity", {})
    found = unity.create(name, ROWS.schema, tmp_path / "t" if request.param == "external" else None)
    write_deltalake(found.uri, ROWS, mode="append")
    return found.uri


def _ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def test_table_is_read_and_written(spark: Any, uri: str) -> None:
    assert _ids(ds.read(spark, uri)) == [1, 2, 3]
    ds.write(spark.range(4, 6), uri, "append")
    assert _ids(ds.read(spark, uri)) == [1, 2, 3, 4, 5]
    table = DeltaTable(uri)
    assert (table.version(), table.count()) == (2, 5)
    assert _ids(ds.read(spark, uri, version=1)) == [1, 2, 3]


def test_statements_change_the_table(spark: Any, uri: str) -> None:
    ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE id = 2").collect()
    ds.sql(spark, f"UPDATE delta.`{uri}` SET id = 7 WHERE id = 3").collect()
    assert _ids(ds.sql(spark, f"SELECT id FROM delta.`{uri}`")) == [1, 7]
    assert sorted(DeltaTable(uri).to_pyarrow_table()["id"].to_pylist()) == [1, 7]


def test_missing_name_is_reported(spark: Any, uri: str) -> None:
    with pytest.raises(CatalogNameNotFoundError, match=r"main\.sales\.none"):
        ds.read(spark, "uc://main.sales.none")


@pytest.fixture
def remote(fake: FakeCatalog, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the options of tables on stores for which the catalog issues credentials; nothing answers there."""
    keys = {"access_key_id": "a", "secret_access_key": SECRET}
    monkeypatch.setattr(fake, "credentials", lambda operation: {"aws_temp_credentials": keys})
    monkeypatch.setattr(fake, "tables", dict(fake.tables))
    fake.add("main.sales.remote", "s3://lake.of-tests/t")
    return {"unity_catalog_url": fake.url, "aws_endpoint_url": "http://127.0.0.1:1", "aws_region": "x"}


def _calls(spark: Any, options: dict[str, str]) -> dict[str, Callable[[], Any]]:
    uri = "uc://main.sales.remote"
    return {
        "read": lambda: ds.read(spark, uri, storage_options=options),
        "write": lambda: ds.write(spark.range(1), uri, "append", storage_options=options),
        "sql": lambda: ds.sql(spark, f"DELETE FROM delta.`{uri}`", storage_options=options),
        "table": lambda: ds.DeltaTable.forPath(spark, uri, storage_options=options).delete(),
    }


@pytest.mark.parametrize("call", ["read", "write", "sql", "table"])
def test_store_whose_credentials_spark_lacks_is_rejected(spark: Any, remote: dict[str, str], call: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=r"issues credentials.*fs\.s3a\.access\.key") as e:
        _calls(spark, remote)[call]()
    assert SECRET not in str(e.value)


@pytest.mark.parametrize(
    ("name", "serves"),
    [
        ("fs.s3a.access.key", True),
        ("fs.s3a.bucket.lake.of-tests.aws.credentials.provider", True),
        ("fs.s3a.bucket.another.access.key", False),
        ("fs.azure.account.key", False),
    ],
)
def test_credentials_of_the_session_serve(spark: Any, remote: dict[str, str], name: str, serves: bool) -> None:
    unity = open_unity("unity", remote)
    storage = open_table_storage(unity, unity.record("main.sales.remote"))
    spark.conf.set(name, "found")
    try:
        with nullcontext() if serves else pytest.raises(UnsupportedOperationError, match="issues credentials"):
            check_credentials(spark, storage)
    finally:
        spark.conf.unset(name)


def test_token_is_in_no_plan(spark: Any, fake: FakeCatalog, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "token", TOKEN)
    options = {"unity_catalog_url": fake.url, "unity_catalog_token": TOKEN}
    frame = ds.read(spark, uri, storage_options=options)
    query = frame._jdf.queryExecution()
    texts = (query.toString(), query.analyzed().toJSON(), query.executedPlan().toJSON())
    assert _ids(frame) == [1, 2, 3]
    assert not any(TOKEN in text for text in texts)
