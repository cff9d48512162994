"""Rules of features, bundled and external, on Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable
from delta_core.engines.spark.expressions import check_zone, to_sql
from delta_core.errors import DataFileError, UnsupportedExpressionError, UnsupportedOperationError
from delta_core.expressions import bind
from delta_core.expressions.ast import Call, Cast, Column, Literal
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.types import PrimitiveType
from delta_core.spark import read, read_changes
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.corpus.records import named, path_of, present
from tests.spark.conftest import plain, skip_variants_that_this_spark_rejects

pytestmark = pytest.mark.spark

ROUTES = ("index", "join")
FEEDS = present(
    "spark/change_feed",
    "spark/change_feed_and_vectors",
    "spark/change_feed_partitioned",
    "spark/column_mapping_change_feed",
    "deltalake/change_feed",
    "kernel-rs/cdf-table-with-cdc-and-dvs",
    "kernel-rs/cdf-table-with-dv",
    "kernel-rs/cdf-column-mapping-name-mode",
    "kernel-rs/cdf-table-partitioned",
    "dat/cdf",
)


@pytest.mark.golden
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", FEEDS)
def test_change_feed_has_the_rows_of_the_arrow_engine(spark: Any, name: str, route: Any) -> None:
    uri, feed = str(path_of(name)), named(name)["cdf"]
    found = read_changes(spark, uri, feed["start"], feed["end"], route=route).toArrow()
    expected = DeltaTable(uri).operation("changes")(feed["start"], feed["end"]).to_table()
    assert expected.num_rows == feed["rows"]
    assert_same_rows(plain(found), plain(expected))


@pytest.mark.parametrize("route", ROUTES)
def test_rows_that_a_vector_newly_drops_are_reported_as_deleted(spark: Any, tmp_path: Path, route: Any) -> None:
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long"},
        features=["deletionVectors", "changeDataFeed"],
        properties={"delta.enableChangeDataFeed": "true"},
    )
    table.append([{"id": i} for i in range(9)])
    table.delete_rows(lambda r: r["id"] == 3).delete_rows(lambda r: r["id"] in (4, 8))
    found = read_changes(spark, table.uri, 2, route=route).select("id", "_change_type", "_commit_version").toArrow()
    told = {(r["id"], r["_change_type"], r["_commit_version"]) for r in found.to_pylist()}
    assert told == {(3, "delete", 2), (4, "delete", 3), (8, "delete", 3)}


def test_changes_of_a_table_that_keeps_none_are_rejected(spark: Any, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}, protocol=(1, 2))
    with pytest.raises(UnsupportedOperationError, match="changeDataFeed"):
        read_changes(spark, table.uri)


# --- plugins of external packages --------------------------------------------------------------------

CHECKSUM, TTL = "example.rowChecksum", "example.rowTtl"


def checked(path: Path, spoil: bool) -> TableBuilder:
    """A table whose rows carry checksums; of file 0, row 1 a wrong one if ``spoil``."""
    pytest.importorskip("delta_row_checksum")
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [CHECKSUM, "deletionVectors"],
        "writerFeatures": [CHECKSUM, "deletionVectors", "domainMetadata"],
    }
    text = json.dumps({"columns": [["id"], ["name"]], "hiddenColumn": "_sum"})
    domain = {"domain": CHECKSUM, "configuration": text, "removed": False}
    table = TableBuilder(path / "t").create(
        {"id": "long", "name": "string"}, protocol=protocol, actions=[{"domainMetadata": domain}]
    )
    snapshot = open_snapshot(table.uri)
    expression = bind(Call("xxhash64", (Column(("id",)), Column(("name",)))), snapshot.schema, {})
    columns = {("id",): pa.array([1, 2, 3]), ("name",): pa.array(["a", None, "c"])}
    compiled = snapshot.engine.evaluator.compile(expression, {Column(k): v.type for k, v in columns.items()})
    sums = compiled([columns[leaf.path] for leaf in compiled.leaves], 3).to_pylist()  # type: ignore[union-attr]
    if spoil:
        sums[1] += 1
    rows = pa.table({"id": columns["id",], "name": columns["name",], "_sum": pa.array(sums)})
    return table.append(rows, rowChecksumFunction="xxhash64").append([{"id": 9, "name": "unsummed"}])


@pytest.mark.parametrize("route", ROUTES)
def test_checks_of_a_plugin_pass_sound_rows(spark: Any, tmp_path: Path, route: Any) -> None:
    table = checked(tmp_path, spoil=False)
    assert_same_rows(plain(read(spark, table.uri, route=route).toArrow()), plain(table.expected()))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("options", [{}, {"columns": ["id"]}, {"predicate": "id = 3"}, {"columns": []}])
def test_checks_of_a_plugin_fail_on_a_row_that_no_one_requested(
    spark: Any, tmp_path: Path, options: dict[str, Any], route: Any
) -> None:
    frame = read(spark, checked(tmp_path, spoil=True).uri, route=route, **options)
    with pytest.raises(DataFileError, match="Row 1 of a data file fails the check 'row checksum'"):
        frame.collect()
    with pytest.raises(DataFileError, match="fails the check"):
        frame.where("false or rand() < 2").count()


@pytest.mark.parametrize("route", ROUTES)
def test_filters_of_a_plugin_hide_rows(spark: Any, tmp_path: Path, route: Any) -> None:
    pytest.importorskip("delta_row_ttl")
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [TTL], "writerFeatures": [TTL]}
    properties = {"example.ttl.column": "born", "example.ttl.interval": "30 days"}
    schema = {"id": "long", "born": "timestamp"}
    table = TableBuilder(tmp_path / "t").create(schema, protocol=protocol, properties=properties)
    now = datetime.now(UTC)
    born = [now, now - timedelta(days=40), None, now - timedelta(days=29)]
    table.append([{"id": i, "born": b} for i, b in enumerate(born)])
    assert {r["id"] for r in read(spark, table.uri, columns=["id"], route=route).toArrow().to_pylist()} == {0, 2, 3}


def test_functions_of_plugins_take_their_template(spark: Any) -> None:
    skip_variants_that_this_spark_rejects("spark/variants")
    uri = str(path_of("spark/variants"))
    name = next(f.name for f in open_snapshot(uri).schema if getattr(f.type, "type", "") == "variant")
    found = read(spark, uri, predicate=f"length(variant_json({name})) > 0").count()
    assert found == read(spark, uri).where(f"length(to_json({name})) > 0").count() > 0


def test_template_nests_and_quotes_names() -> None:
    from delta_core.expressions.plugin_functions import Function

    functions = {"twice": Function("f", "twice", lambda t: t[0], lambda a: a, spark="concat({0}, {0})")}
    inner = Call("twice", (Column(("a b",)),))
    text = to_sql(Call("twice", (inner,)), lambda leaf: leaf, functions)
    assert text == "concat(concat(`a b`, `a b`), concat(`a b`, `a b`))"


def test_rule_that_would_follow_the_sessions_zone_is_rejected_by_name() -> None:
    born = Column(("born",))
    check_zone(
        Call(">", (born, Literal(datetime(2024, 1, 1, tzinfo=UTC), PrimitiveType("timestamp")))), "Asia/Tokyo", "f"
    )
    day = Call("=", (Cast(born, PrimitiveType("date")), Literal(datetime(2024, 1, 1).date(), PrimitiveType("date"))))
    check_zone(day, "UTC", "f")
    with pytest.raises(UnsupportedExpressionError, match="myFeature"):
        check_zone(day, "Asia/Tokyo", "myFeature")
