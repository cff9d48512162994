"""Tables of Unity Catalog by name in Spark: read, written and changed by statements, also managed ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CatalogNameNotFoundError
from delta_plugins.unity_catalog.catalog import open_unity
from tests.unity_catalog.fake import FakeCatalog, running

pytestmark = pytest.mark.spark
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
