"""Each feature alone and in pairs, with Delta's own Spark library: written here and there, and read by both.

They run if `test_spark_tables` does, and take ten minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from tests.interop.feature_matrix import PAIRS, REJECTED, Recipe, Row, append, make, model, recipe_of

pytestmark = [pytest.mark.spark, pytest.mark.peer, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

VARIANT = PrimitiveType("variant")
#: Ids that Spark inserts, and that are appended here behind them.
THEIRS, OURS = (20, 21), (30, 31)
ALLOWED = [pair for pair in PAIRS if frozenset(pair) not in REJECTED]


def sql_value(value: Any, type: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return "named_struct(" + ", ".join(f"'{k}', {sql_value(v, None)}" for k, v in value.items()) + ")"
    if isinstance(value, list):
        return "array(" + ", ".join(sql_value(v, None) for v in value) + ")"
    if type == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{value}'"
    return repr(value)


def insert(session: Any, name: str, recipe: Recipe, ids: tuple[int, ...]) -> None:
    types = {f[0]: f[1] for f in recipe.fields}
    rows: list[Row] = [{"id": i, **recipe.given(i)} for i in ids]
    columns = ", ".join(f"`{n}`" for n in rows[0])
    values = ", ".join("(" + ", ".join(sql_value(v, types.get(n)) for n, v in r.items()) + ")" for r in rows)
    session.sql(f"INSERT INTO {name} ({columns}) VALUES {values}")


def theirs(session: Any, name: str, uri: str) -> list[Row]:
    latest = open_snapshot(uri)
    # Spark can't return null variants to Arrow
    shown = [
        f"CAST({f.name} AS STRING) AS {f.name}" if f.type == VARIANT else f"`{f.name}`" for f in latest.schema.fields
    ]
    # of a version: Spark rejects some tables with vectors if the query names none
    found = session.sql(f"SELECT {', '.join(shown)} FROM {name} VERSION AS OF {latest.version}").toArrow()
    return sorted(found.to_pylist(), key=lambda r: r["id"])


def ours(uri: str) -> list[Row]:
    return sorted(open_snapshot(uri).scan().to_table().to_pylist(), key=lambda r: r["id"])


def without(rows: list[Row], names: set[str]) -> list[Row]:
    return [{k: v for k, v in r.items() if k not in names} for r in rows]


@pytest.mark.parametrize(("first", "second"), ALLOWED, ids=lambda name: name.replace(" ", "-"))
def test_spark_reads_and_changes_features_together(spark: Any, tmp_path: Path, first: str, second: str) -> None:
    recipe = recipe_of(first, second)
    uri = str(tmp_path / "t")
    make(uri, recipe)
    name = f"delta.`{uri}`"
    before = model(recipe, 3, recipe.drops)
    assert theirs(spark, name, uri) == before
    insert(spark, name, recipe, THEIRS)
    # Spark returns its own numbers of an identity column out of order
    numbered = {"k"} if "identityColumns" in (first, second) else set()
    more = [{"id": i, **(recipe.found or recipe.given)(i)} for i in THEIRS]
    assert without(ours(uri), numbered) == without([*before, *more], numbered)
    append(uri, recipe, OURS)
    more += [{"id": i, **(recipe.found or recipe.given)(i)} for i in OURS]
    found = theirs(spark, name, uri)
    assert without(found, numbered) == without([*before, *more], numbered)
    assert found == ours(uri)
    if numbered:
        assert len({r["k"] for r in found}) == len(found)


@pytest.mark.parametrize(("first", "second"), ALLOWED, ids=lambda name: name.replace(" ", "-"))
def test_tables_that_spark_makes_are_appended_to(spark: Any, tmp_path: Path, first: str, second: str) -> None:
    recipe = recipe_of(first, second)
    like, uri = str(tmp_path / "like"), str(tmp_path / "t")
    make(like, recipe)
    name = f"delta.`{uri}`"
    spark.sql(f"CREATE TABLE {name} LIKE delta.`{like}`")
    insert(spark, name, recipe, THEIRS)
    append(uri, recipe, OURS)
    found = theirs(spark, name, uri)
    assert found == ours(uri)
    assert [r["id"] for r in found] == [*THEIRS, *OURS]
