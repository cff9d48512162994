"""Every Python block of the pages about Spark runs as it is, but for the paths, which are the test's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from delta_core import DeltaTable
from delta_core.testing.table_builder import TableBuilder
from tests.docs.blocks import ROOT, blocks, run_python

pytestmark = pytest.mark.spark

DAY = dt.date(2024, 5, 1)
ADDRESS = {"type": "struct", "fields": [{"name": "city", "type": "string", "nullable": True, "metadata": {}}]}


def _run(page: str, folder: str, names: dict[str, Any]) -> dict[str, Any]:
    found = [b for b in blocks(ROOT / page) if b.language == "python" and not b.not_run]
    assert found
    for block in found:
        code = block.code.replace("/data/", f"{folder}/").replace("s3a://lake/", f"{folder}/")
        run_python(block._replace(code=code), names)
    return names


def test_blocks_about_reading_run_in_order(spark: Any, tmp_path: Path) -> None:
    # the page reads as of 2024-05-01, versions up to 7, and the changes of a table with a change feed
    schema = {"id": "long", "customer": "string", "day": "date", "amount": "double", "address": ADDRESS}
    for name in ("orders", "customers"):
        table = TableBuilder(tmp_path / name, start_ms=1_700_000_000_000).create(
            schema, partition_by=["day"], features=["changeDataFeed"], properties={"delta.enableChangeDataFeed": "true"}
        )
        for i in range(8):
            table.append([{"id": i, "customer": "a", "day": DAY, "amount": 100.0 + i, "address": {"city": "Oslo"}}])
    try:
        names = _run("docs/spark.md", str(tmp_path), {"spark": spark})
    finally:  # what the page sets is not for other tests
        spark.conf.unset("spark.delta_core.parallelPlanning.minActions")
        spark.conf.unset("spark.delta_core.heldSnapshots.maxBytes")
    assert names["frame"].where("amount > 100").count() == 7
    assert spark.table("orders").count() == 8


def test_blocks_about_writing_run_in_order(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 1L AS id, 1L AS version, DATE'2024-05-01' AS day")
    uri = str(tmp_path / "orders")
    _run("docs/spark-write.md", str(tmp_path), {"spark": spark, "df": frame, "uri": uri, "batch": 7})
    table = DeltaTable(uri)
    assert table.version() == 4
    assert table.transaction_version("orders") == 7


@pytest.mark.parametrize(("page", "amounts"), [("spark-row-changes", [12.5]), ("spark-sql", [70.0])])
def test_blocks_about_changing_rows_run(spark: Any, tmp_path: Path, page: str, amounts: list[float]) -> None:
    table = TableBuilder(tmp_path / "orders").create(
        {"id": "long", "day": "date", "amount": "double", "address": ADDRESS}
    )
    table.append([{"id": i, "day": DAY, "amount": 5.0 * i, "address": {"city": "Oslo"}} for i in range(9)])
    _run(f"docs/{page}.md", str(tmp_path), {"spark": spark})
    rows = DeltaTable(tmp_path / "orders").to_pyarrow_table().to_pylist()
    assert [(r["amount"], r["address"]["city"]) for r in rows if r["id"] == 7] == [(a, "Bonn") for a in amounts]


def test_block_about_settings_runs(spark: Any, tmp_path: Path) -> None:
    try:
        _run("docs/spark-settings.md", str(tmp_path), {})
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.enableDeletionVectors")
    table = DeltaTable(tmp_path / "with-settings")
    assert table.metadata().configuration == {"delta.enableDeletionVectors": "true"}
    assert table.to_pyarrow_table().num_rows == 10


def test_block_about_lance_runs(spark: Any, tmp_path: Path) -> None:
    orders = TableBuilder(tmp_path / "orders").create({"person": "long"})
    orders.append([{"person": 18}])
    _run("docs/spark-lance.md", str(tmp_path), {"spark": spark})


def test_blocks_about_streams_run_in_order(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "1.json").write_text('{"id": 1, "day": "2024-05-01"}')
    _run("docs/spark-streams.md", str(tmp_path), {"spark": spark})
    for name in ("orders", "copy"):
        assert DeltaTable(tmp_path / name).to_pyarrow_table().to_pylist() == [{"id": 1, "day": DAY}]
    (logged,) = DeltaTable(tmp_path / "log").to_pyarrow_table().to_pylist()
    assert (logged["id"], logged["_change_type"], logged["_commit_version"]) == (1, "insert", 1)
