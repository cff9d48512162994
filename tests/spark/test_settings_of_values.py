"""Settings of a session that decide about nulls, casts, protocols and streams: each has the effect of delta-spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.errors import (
    CommitConflictError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    StreamSchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.snapshot import open_snapshot
from tests.spark.test_settings import DELTA, delta, rows, setting

pytestmark = pytest.mark.spark

_STRUCT = "named_struct('a', 1, 'b', 2)"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def _nested(spark: Any, uri: str) -> None:
    ds.write(spark.sql(f"SELECT 1 AS id, {_STRUCT} AS s"), uri)


def _found(spark: Any, uri: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in ds.read(spark, uri).selectExpr("id", "s IS NULL", "s.a", "s.b").orderBy("id").collect()]


# --- null structs ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["by_place", "by_name", "frame"])
@pytest.mark.parametrize("keeps", ["true", "false"])
def test_null_structs_of_other_types_are_inserted_as_the_session_specifies(
    spark: Any, uri: str, how: str, keeps: str
) -> None:
    _nested(spark, uri)
    query = "SELECT 2 AS id, CAST(NULL AS STRUCT<a: BIGINT, b: BIGINT>) AS s"
    with setting(spark, delta(insert__preserveNullSourceStructs=keeps)):
        if how == "frame":
            ds.write(spark.sql(query), uri, "append")
        else:
            ds.sql(spark, f"INSERT INTO delta.`{uri}` {'BY NAME ' if how == 'by_name' else ''}{query}")
        ds.sql(spark, f"INSERT INTO delta.`{uri}` SELECT 3, CAST(NULL AS STRUCT<a: INT, b: INT>)")
    assert _found(spark, uri) == [(1, False, 1, 2), (2, keeps == "true", None, None), (3, True, None, None)]


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_null_structs_are_assigned_as_the_session_specifies(spark: Any, uri: str, keeps: str) -> None:
    _nested(spark, uri)
    source = "SELECT id, CAST(NULL AS STRUCT<b: INT, a: INT>) AS s FROM VALUES (1), (2) AS v(id)"
    with setting(spark, delta(merge__preserveNullSourceStructs=keeps)):
        ds.sql(
            spark,
            f"MERGE INTO delta.`{uri}` t USING ({source}) u ON t.id = u.id "
            "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *",
        )
    assert _found(spark, uri) == [(n, keeps == "true", None, None) for n in (1, 2)]


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_null_structs_of_an_update_of_all_columns_are_as_the_session_specifies(
    spark: Any, uri: str, keeps: str
) -> None:
    _nested(spark, uri)
    values = delta(merge__preserveNullSourceStructs__updateStar=keeps, schema__autoMerge__enabled="true")
    with setting(spark, values):
        ds.sql(
            spark,
            f"MERGE INTO delta.`{uri}` t USING (SELECT 1 AS id, CAST(NULL AS STRUCT<a: INT, b: INT>) AS s, 3 AS more) "
            "u ON t.id = u.id WHEN MATCHED THEN UPDATE SET *",
        )
    assert _found(spark, uri) == [(1, keeps == "true", None, None)]


@pytest.mark.parametrize(("by_name", "expected"), [("true", (4, 3)), ("false", (3, 4))])
@pytest.mark.parametrize("how", ["merge", "update"])
def test_fields_of_structs_are_matched_as_the_session_specifies(
    spark: Any, uri: str, how: str, by_name: str, expected: tuple[int, int]
) -> None:
    _nested(spark, uri)
    value = "named_struct('b', 3, 'a', 4)"
    with setting(spark, delta(resolveMergeUpdateStructsByName__enabled=by_name)):
        if how == "update":
            ds.sql(spark, f"UPDATE delta.`{uri}` SET s = {value}")
        else:
            ds.sql(
                spark,
                f"MERGE INTO delta.`{uri}` t USING (SELECT 1 AS id, {value} AS s) u ON t.id = u.id "
                "WHEN MATCHED THEN UPDATE SET s = u.s",
            )
    assert _found(spark, uri) == [(1, False, *expected)]


def test_fields_by_place_need_as_many_fields(spark: Any, uri: str) -> None:
    _nested(spark, uri)
    with (
        setting(spark, delta(resolveMergeUpdateStructsByName__enabled="false")),
        pytest.raises(SchemaMismatchError, match="number of fields"),
    ):
        ds.sql(
            spark,
            f"MERGE INTO delta.`{uri}` t USING (SELECT 1 AS id, named_struct('b', 3) AS s) u ON t.id = u.id "
            "WHEN MATCHED THEN UPDATE SET s = u.s",
        )


# --- casts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["update", "merge", "star"])
def test_assigned_values_wrap_without_ansi_mode_if_the_session_requests_it(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.sql("SELECT 1 AS k, 1Y AS id"), uri)
    source = (
        f"MERGE INTO delta.`{uri}` t USING (SELECT 1 AS k, 1000 AS id) u ON t.k = u.k WHEN MATCHED THEN UPDATE SET "
    )
    text = {"update": f"UPDATE delta.`{uri}` SET id = 1000", "merge": f"{source}id = u.id", "star": f"{source}*"}[how]
    with setting(spark, {"spark.sql.ansi.enabled": "false"}):
        with pytest.raises(DeltaError):
            ds.sql(spark, text)
        with setting(spark, delta(updateAndMergeCastingFollowsAnsiEnabledFlag="true")):
            ds.sql(spark, text)
    assert rows(spark, uri) == [(1, -24)]
    with setting(spark, delta(updateAndMergeCastingFollowsAnsiEnabledFlag="true")), pytest.raises(DeltaError):
        ds.sql(spark, text)  # in ANSI mode


def test_columns_that_may_be_added_are_named_where_values_are_cast_without_ansi_mode(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1 AS k, 1Y AS id"), uri)
    values = delta(updateAndMergeCastingFollowsAnsiEnabledFlag="true") | {"spark.sql.ansi.enabled": "false"}
    with setting(spark, values), pytest.raises(UnsupportedOperationError, match="AnsiEnabledFlag"):
        ds.sql(
            spark,
            f"MERGE INTO delta.`{uri}` t USING (SELECT 1 AS k, 1000 AS id, 2 AS more) u ON t.k = u.k "
            "WHEN MATCHED THEN UPDATE SET *",
        )


# --- definitions -----------------------------------------------------------------------------


def test_a_replaced_table_has_the_protocol_of_a_new_one_if_the_session_permits_it(spark: Any, uri: str) -> None:
    def replace() -> tuple[int, int]:
        ds.DeltaTable.replace(spark).location(uri).addColumn("id", "bigint").execute()
        found = DeltaTable(uri).protocol()
        return found.min_reader_version, found.min_writer_version

    ds.write(spark.range(1), uri, properties={"delta.columnMapping.mode": "name"})
    assert replace() == (2, 7)
    with setting(spark, delta(replace__protocolDowngradeAllowed="true")):
        assert replace() == (1, 2)
    ds.write(spark.range(2), uri, "append")
    assert rows(spark, uri) == [(0,), (1,)]


def test_a_table_is_not_replaced_if_a_domain_of_it_was_changed_meanwhile(spark: Any, uri: str) -> None:
    """Of the table that is replaced, and without Spark."""
    ds.write(spark.range(1), uri, properties={"delta.feature.domainMetadata": "supported"})
    base = open_snapshot(uri)
    replacing = Transaction(base.context, base, "CREATE OR REPLACE TABLE", {})
    replacing.set_metadata(base.metadata, replaces=True, is_new=True)
    other = Transaction(base.context, base, "SET DOMAIN", {})
    other.set_domain("mine", "1")
    other.commit()
    with pytest.raises(CommitConflictError, match="'mine'"):
        replacing.commit()


@pytest.mark.parametrize(
    ("name", "value", "feature"),
    [
        (None, "", "variantType"),
        ("variant.forceUsePreviewTableFeature", "true", "variantType-preview"),
        (None, "", "variantShredding-preview"),
        ("variantShredding.forceUsePreviewTableFeature", "false", "variantShredding"),
    ],
)
def test_features_of_variants_have_the_names_that_the_session_specifies(
    spark: Any, uri: str, name: str | None, value: str, feature: str
) -> None:
    with setting(spark, {} if name is None else {f"{DELTA}{name}": value}):
        ds.DeltaTable.create(spark).location(uri).addColumn("v", "variant").property(
            "delta.enableVariantShredding", "true"
        ).execute()
    found = {n for n in DeltaTable(uri).protocol().writer_features if n.startswith(feature.partition("-")[0])}
    assert found == {feature}


# --- rows that are read ----------------------------------------------------------------------


def test_columns_of_type_void_are_left_out_of_rows_if_the_session_requests_it(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1 AS id, NULL AS v, named_struct('a', 1, 'b', NULL) AS s"), uri)
    whole = ds.read(spark, uri)
    with setting(spark, delta(createDataFrame__dropNullColumns="true")):
        table = ds.DeltaTable.forPath(spark, uri)
        table.update(set={"id": "id + 1"})
        for found in (ds.read(spark, uri), table.toDF(), ds.read(spark, uri, predicate="id > 0")):
            assert found.schema.simpleString() == "struct<id:int,s:struct<a:int>>"
            assert [tuple(r) for r in found.collect()] == [(2, (1,))]
    assert whole.columns == ["id", "v", "s"]
    assert ds.read(spark, uri).columns == ["id", "v", "s"]


def test_times_that_are_none_are_the_beginning_of_1970_if_the_session_permits_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(1), uri)
    table = ds.DeltaTable.forPath(spark, uri)
    with pytest.raises(InvalidArgumentError, match="no time"):
        table.restoreToTimestamp("no time")
    with setting(spark, delta(timeTravel__parsing__strict="false")), pytest.raises(VersionNotFoundError):
        table.restoreToTimestamp("no time")


# --- streams ---------------------------------------------------------------------------------


class _Stream:
    """A stream of a table that is read to its end each time."""

    def __init__(self, spark: Any, uri: str) -> None:
        self._spark, self._uri, self.ids = spark, uri, list[int]()

    def run(self, **options: Any) -> None:
        found = ds.read_stream(self._spark, self._uri, **options)

        def add(batch: Any, _: int) -> None:
            self.ids += [r.id for r in batch.collect()]

        run = found.writeStream.option("checkpointLocation", f"{self._uri}-checkpoint").foreachBatch(add)
        run.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize(
    "values",
    [
        delta(typeWidening__allowTypeChangeStreamingDeltaSource="false"),
        delta(typeWidening__enableStreamingSchemaTracking="true"),
    ],
    ids=["not_allowed", "tracked"],
)
def test_a_stream_stops_in_front_of_a_wider_type_if_the_session_requests_it(
    spark: Any, uri: str, values: dict[str, str]
) -> None:
    ds.write(spark.sql("SELECT 1 AS id"), uri, properties={"delta.enableTypeWidening": "true"})
    stream = _Stream(spark, uri)
    with setting(spark, values):
        stream.run()
        ds.sql(spark, f"ALTER TABLE delta.`{uri}` ALTER COLUMN id TYPE BIGINT")
        ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES (2)")
        with pytest.raises(StreamSchemaError, match="typeWidening") as found:
            stream.run()
    assert isinstance(found.value, StreamingQueryException)
    assert stream.ids == [1]
    stream.run()
    assert stream.ids == [1, 2]


def test_a_tracked_stream_stops_at_a_wider_type_if_the_session_rejects_these(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1 AS id"), uri, properties={"delta.enableTypeWidening": "true"})
    stream, tracked = _Stream(spark, uri), {"schema_tracking_location": f"{uri}-checkpoint/schemas"}
    stream.run(**tracked)
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(DeltaError):
        stream.run(**tracked)  # the schema changes
    options = {**tracked, "allow_source_column_type_change": "always"}
    with (
        setting(spark, delta(typeWidening__allowTypeChangeStreamingDeltaSource="false")),
        pytest.raises(StreamSchemaError, match="allowTypeChangeStreamingDeltaSource"),
    ):
        stream.run(**options)
    stream.run(**options)


def test_a_stream_with_columns_of_type_void_fails_if_the_session_has_its_rows_lack_them(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1 AS id, NULL AS v"), uri)
    stream = _Stream(spark, uri)
    with setting(spark, delta(streaming__createDataFrame__dropNullColumns="true")):
        assert ds.read_stream(spark, uri).columns == ["id", "v"]
        with pytest.raises(SchemaMismatchError, match="dropNullColumns") as found:
            stream.run()
    caught: Any = found.value
    assert isinstance(caught, StreamingQueryException)
    assert caught.getCondition() == "STREAM_FAILED"
    stream.run()
    assert stream.ids == [1]


# --- values that fail ------------------------------------------------------------------------


def test_a_value_that_fails_while_rows_are_written_has_the_condition_of_the_task(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri)
    with pytest.raises(EngineError, match="DIVIDE_BY_ZERO") as found:
        ds.sql(spark, f"UPDATE delta.`{uri}` SET id = 1 div (id - 1)")
    error: Any = found.value
    assert error.getCondition() == "TASK_WRITE_FAILED"
    assert error.__cause__.getCondition() == "DIVIDE_BY_ZERO"
    assert rows(spark, uri) == [(0,), (1,), (2,)]


# --- conversions -----------------------------------------------------------------------------


def test_files_that_no_batch_of_a_stream_wrote_are_converted_if_the_session_requests_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(2), f"{uri}-source")
    found = ds.read_stream(spark, f"{uri}-source")
    for folder in (uri, f"{uri}-all"):
        run = found.writeStream.format("parquet").option("checkpointLocation", f"{folder}-checkpoint")
        run.trigger(availableNow=True).start(folder).awaitTermination()
        spark.range(7, 8).coalesce(1).write.parquet(f"{folder}-more")
        more = next(Path(f"{folder}-more").glob("*.parquet"))
        more.rename(Path(folder, more.name))
    ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}`")
    assert rows(spark, uri) == [(0,), (1,)]
    with setting(spark, delta(convert__useMetadataLog="false")):
        ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}-all`")
    assert rows(spark, f"{uri}-all") == [(0,), (1,), (7,)]


def test_partition_values_of_another_type_are_null_if_the_session_requests_it(spark: Any, uri: str) -> None:
    spark.sql("SELECT id, p FROM VALUES (1, 'x'), (2, '3') AS v(id, p)").write.partitionBy("p").parquet(uri)
    with pytest.raises(InvalidArgumentError, match="'x'"):
        ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}`", "p INT")
    with setting(spark, delta(convert__partitionValues__ignoreCastFailure="true")):
        ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}`", "p INT")
    assert rows(spark, uri) == [(1, None), (2, 3)]


# --- changes ---------------------------------------------------------------------------------


def test_changes_across_renamed_and_dropped_columns_are_read_if_the_session_requests_it(spark: Any, uri: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    ds.write(spark.sql("SELECT 1 AS id, 2 AS b, 3 AS gone"), uri, properties=properties)
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` RENAME COLUMN b TO c")
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` DROP COLUMN gone")
    with pytest.raises(DeltaError, match="dropped or renamed"):
        ds.read_changes(spark, uri, 0)
    with setting(spark, delta(changeDataFeed__unsafeBatchReadOnIncompatibleSchemaChanges__enabled="true")):
        found = ds.read_changes(spark, uri, 0).drop("_commit_timestamp")
        assert found.columns == ["id", "c", "_change_type", "_commit_version"]
        assert [tuple(r) for r in found.collect()] == [(1, 2, "insert", 0)]


# --- requests --------------------------------------------------------------------------------


def test_clone_looks_for_a_table_at_its_place_once(spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ds.write(spark.range(3), f"{uri}-source")
    looked, is_table = list[str](), DeltaTable.is_deltatable

    def counted(path: Any, *args: Any) -> bool:
        looked.append(str(path))
        return bool(is_table(path, *args))

    monkeypatch.setattr(DeltaTable, "is_deltatable", staticmethod(counted))
    ds.sql(spark, f"CREATE TABLE delta.`{uri}` SHALLOW CLONE delta.`{uri}-source`")
    assert uri not in looked
    assert rows(spark, uri) == [(0,), (1,), (2,)]
