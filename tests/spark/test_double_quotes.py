"""What double quotes enclose on Spark: what the session's ``spark.sql.ansi.doubleQuotedIdentifiers`` specifies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable, write_deltalake

pytestmark = pytest.mark.spark
SETTING = "spark.sql.ansi.doubleQuotedIdentifiers"


@pytest.fixture(params=["false", "true"])
def names(request: pytest.FixtureRequest, spark: Any) -> Iterator[bool]:
    """Whether double quotes enclose names in the session."""
    spark.conf.set(SETTING, request.param)
    yield request.param == "true"
    spark.conf.unset(SETTING)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a table with a column whose name is a value of another one."""
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2, 3], "kind": ["a", "a", "c"], "a": ["a", "x", "c"]}))
    return str(tmp_path / "t")


def _merge(spark: Any, path: str) -> None:
    table, source = ds.DeltaTable(spark, path), spark.createDataFrame([(1,), (2,), (3,)], "id long")
    table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete('t.kind = "a"').execute()


def _merge_value(spark: Any, path: str) -> None:
    table, source = ds.DeltaTable(spark, path), spark.createDataFrame([(1,), (2,), (3,)], "id long")
    merger = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merger.whenMatchedUpdate(set={"kind": 'CASE WHEN kind = "a" THEN NULL ELSE kind END'}).execute()
    table.delete("kind IS NULL")


def _overwrite(spark: Any, path: str) -> None:
    rows = spark.createDataFrame([], "id long, kind string, a string")
    ds.write(rows, path, "overwrite", replace_where='kind = "a"')


def _update(spark: Any, path: str) -> None:
    table = ds.DeltaTable(spark, path)
    table.update('kind = "a"', {"id": "-1"})
    table.delete("id = -1")


def _update_value(spark: Any, path: str) -> None:
    table = ds.DeltaTable(spark, path)
    table.update(set={"kind": 'nullif(kind, "a")'})
    table.delete("kind IS NULL")


CHANGES: dict[str, Callable[[Any, str], None]] = {
    "delete": lambda spark, path: ds.DeltaTable(spark, path).delete('kind = "a"'),
    "delete with an alias": lambda spark, path: ds.DeltaTable(spark, path).alias("t").delete('t.kind = "a"'),
    "update": _update,
    "update value": _update_value,
    "merge": _merge,
    "merge value": _merge_value,
    "replace_where": _overwrite,
    "SQL": lambda spark, path: ds.sql(spark, f'DELETE FROM delta_core.`{path}` WHERE kind = "a"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_conditions_and_values_are_read_as_the_session_reads_them(
    spark: Any, path: str, names: bool, change: str
) -> None:
    CHANGES[change](spark, path)
    left = DeltaTable(path).to_pyarrow_table().sort_by("id").column("id").to_pylist()
    assert left == ([2] if names else [3])


def test_reads_choose_files_and_rows_as_the_session_does(spark: Any, path: str, names: bool) -> None:
    for route in ("auto", "join"):
        rows = ds.read(spark, path, predicate='kind = "a"', route=route).collect()
        assert sorted(r.id for r in rows) == ([1, 3] if names else [1, 2])


def test_new_expressions_are_stored_as_the_session_reads_them(spark: Any, tmp_path: Path, names: bool) -> None:
    path = str(tmp_path / "new")
    (
        ds.DeltaTable.create(spark)
        .location(path)
        .addColumn("kind", "string")
        .addColumn("a", "string")
        .addColumn("g", "string", generatedAlwaysAs='concat(kind, "a")')
        .property("delta.constraints.c", 'kind <> "a"')
        .execute()
    )
    ds.sql(spark, f'ALTER TABLE delta_core.`{path}` ADD CONSTRAINT d CHECK (kind <> "a")')
    ds.sql(spark, f"ALTER TABLE delta_core.`{path}` SET TBLPROPERTIES ('my.note' = '\"')")
    table = DeltaTable(path)
    inner = "`a`" if names else "'a'"
    assert table.metadata().configuration["delta.constraints.c"] == f"kind <> {inner}"
    assert table.metadata().configuration["delta.constraints.d"] == f"kind <> {inner}"
    assert table.metadata().configuration["my.note"] == '"'
    assert table.schema().fields[2].metadata["delta.generationExpression"] == f"concat(kind, {inner})"
    write_deltalake(table, pa.table({"kind": ["k"], "a": ["x"]}), mode="append")
    assert table.to_pyarrow_table().column("g").to_pylist() == ["kx" if names else "ka"]
