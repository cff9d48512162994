"""Settings of a session: each one of delta-spark is followed, has no meaning here, or is rejected by its name."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import delta_core.spark as ds
from delta_core import DeltaTable
from delta_core.engines import spark as engine
from delta_core.engines.spark import settings
from delta_core.engines.spark.check_settings import noting_settings, set_check_settings
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.settings import session_settings
from delta_core.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    DeltaError,
    EngineError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedOperationError,
)

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
DELTA = "spark.databricks.delta."
#: Name and default of each entry of DeltaSQLConf in delta-spark 4.4.0, read by reflection.
RECORDED = dict(
    line.split("\t") for line in HERE.joinpath("delta_spark_settings.tsv").read_text(encoding="utf-8").splitlines()
)
KNOWN = json.loads(Path(engine.__file__).with_name("delta_settings.json").read_text(encoding="utf-8"))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@contextmanager
def setting(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in values}
    for name, text in values.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, text in before.items():
            spark.conf.unset(name) if text is None else spark.conf.set(name, text)


def delta(**values: str) -> dict[str, str]:
    return {f"{DELTA}{name.replace('__', '.')}": text for name, text in values.items()}


def rows(spark: Any, uri: str) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in ds.read(spark, uri).orderBy("id").collect()]


def commit(uri: str, version: int | None = None) -> dict[str, Any]:
    """Return the actions of a commit by their names; of several the last one."""
    log = sorted(Path(uri, "_delta_log").glob("*.json"))
    path = log[-1] if version is None else log[version]
    return {name: value for line in path.read_text().splitlines() for name, value in json.loads(line).items()}


# --- the list --------------------------------------------------------------------------------


def test_every_setting_of_delta_spark_has_a_status_and_its_default() -> None:
    assert KNOWN.keys() == RECORDED.keys()
    for name, entry in KNOWN.items():
        default = RECORDED[name]
        if default.startswith("<value of "):
            default = RECORDED[default[len("<value of ") : -1]]
        assert entry["default"] == (None if default == "<undefined>" else default), name
        assert entry["status"] in ("honoured", "none", "rejected"), name
        assert bool(entry.get("meaning")) == (entry["status"] != "rejected"), name


def test_documentation_names_every_setting_with_its_status() -> None:
    text = Path(__file__).parents[2].joinpath("docs", "spark-settings.md").read_text(encoding="utf-8")
    parts = dict(zip(("honoured", "rejected", "none"), text.split("\n## ")[1:4], strict=True))
    for name, entry in KNOWN.items():
        assert f"`{name.removeprefix(DELTA)}`" in parts[entry["status"]], name


def _other(name: str) -> str:
    """Return a value that is not the default of a setting."""
    default = KNOWN[name]["default"]
    if default is None:
        return "7"
    return {"true": "false", "false": "true"}.get(default, f"{default}7" if default.isdigit() else "other")


def _convert(spark: Any, uri: str) -> None:
    ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}-files`")


PATHS: dict[str, Callable[[Any, str], Any]] = {
    "read": lambda spark, uri: ds.read(spark, uri),
    "read_version": lambda spark, uri: ds.read(spark, uri, 0),
    "read_changes": lambda spark, uri: ds.read_changes(spark, uri, 0),
    "read_stream": lambda spark, uri: ds.read_stream(spark, uri),
    "read_changes_stream": lambda spark, uri: ds.read_changes_stream(spark, uri),
    "select": lambda spark, uri: ds.sql(spark, f"SELECT * FROM delta.`{uri}`"),
    "append": lambda spark, uri: ds.write(spark.range(1), uri, "append"),
    "create": lambda spark, uri: ds.write(spark.range(1), f"{uri}-new"),
    "write_stream": lambda spark, uri: ds.write_stream(
        spark.readStream.format("rate").load(), f"{uri}-new", checkpoint=f"{uri}-checkpoint"
    ),
    "insert": lambda spark, uri: ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES (1)"),
    "delete": lambda spark, uri: ds.sql(spark, f"DELETE FROM delta.`{uri}`"),
    "update": lambda spark, uri: ds.sql(spark, f"UPDATE delta.`{uri}` SET id = 1"),
    "merge": lambda spark, uri: ds.sql(
        spark, f"MERGE INTO delta.`{uri}` t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    ),
    "optimize": lambda spark, uri: ds.sql(spark, f"OPTIMIZE delta.`{uri}`"),
    "vacuum": lambda spark, uri: ds.sql(spark, f"VACUUM delta.`{uri}`"),
    "alter": lambda spark, uri: ds.sql(spark, f"ALTER TABLE delta.`{uri}` ADD COLUMNS (v INT)"),
    "restore": lambda spark, uri: ds.sql(spark, f"RESTORE delta.`{uri}` TO VERSION AS OF 0"),
    "history": lambda spark, uri: ds.sql(spark, f"DESCRIBE HISTORY delta.`{uri}`"),
    "clone": lambda spark, uri: ds.sql(spark, f"CREATE TABLE delta.`{uri}-new` SHALLOW CLONE delta.`{uri}`"),
    "builder": lambda spark, uri: (
        ds.DeltaTable.create(spark).location(f"{uri}-new").addColumn("id", "bigint").execute()
    ),
    "convert": _convert,
    "for_path": lambda spark, uri: ds.DeltaTable.forPath(spark, uri),
}


def _check_rejected(spark: Any, uri: str, name: str, value: str, how: str) -> None:
    with setting(spark, {name: value}), pytest.raises(UnsupportedOperationError) as found:
        PATHS[how](spark, uri)
    assert found.value.facts["setting"] == name
    assert name in str(found.value)


def test_each_rejected_setting_is_rejected_by_its_name_on_every_path(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri, properties={"delta.enableChangeDataFeed": "true"})
    spark.range(3).write.parquet(f"{uri}-files")
    rejected = [name for name, entry in KNOWN.items() if entry["status"] == "rejected" and "spark" not in entry]
    for how in PATHS:
        _check_rejected(spark, uri, f"{DELTA}rowTracking.backfill.enabled", "false", how)
    for number, name in enumerate(rejected):
        how = list(PATHS)[number % len(PATHS)]
        _check_rejected(spark, uri, name, _other(name), how)
    assert DeltaTable(uri).version() == 0
    assert not Path(f"{uri}-new").exists()
    # an object that was made before reads them again
    table = ds.DeltaTable.forPath(spark, uri)
    with setting(spark, delta(rowTracking__backfill__enabled="false")), pytest.raises(UnsupportedOperationError):
        table.delete()


def test_rejected_settings_at_their_defaults_and_those_without_meaning_change_nothing(spark: Any, uri: str) -> None:
    found = {n: e["default"] for n, e in KNOWN.items() if e["status"] == "rejected" and e["default"] is not None}
    found |= {n: _other(n) for n, e in KNOWN.items() if e["status"] == "none" and not n.endswith("v2.enableMode")}
    with setting(spark, found):
        ds.write(spark.range(3), uri)
        ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE id = 1")
        assert rows(spark, uri) == [(0,), (2,)]


@pytest.mark.parametrize(
    ("values", "run", "error"),
    [
        (
            delta(alterTable__dropColumn__enabled="false"),
            lambda spark, uri: ds.sql(spark, f"ALTER TABLE delta.`{uri}` DROP COLUMN p"),
            UnsupportedOperationError,
        ),
        (
            delta(replaceOn__dataframe__writer__enabled="false"),
            lambda spark, uri: ds.write(spark.range(1), uri, "overwrite", replace_on="t.id = s.id"),
            UnsupportedOperationError,
        ),
        (
            delta(replaceUsing__dataframe__writer__enabled="false"),
            lambda spark, uri: ds.write(spark.range(1), uri, "overwrite", replace_using="id"),
            UnsupportedOperationError,
        ),
        (
            delta(dynamicPartitionOverwrite__enabled="false"),
            lambda spark, uri: ds.write(spark.range(1), uri, "overwrite", partition_overwrite_mode="dynamic"),
            InvalidArgumentError,
        ),
        (
            {
                **delta(dynamicPartitionOverwrite__enabled="false"),
                "spark.sql.sources.partitionOverwriteMode": "dynamic",
            },
            lambda spark, uri: ds.sql(spark, f"INSERT OVERWRITE delta.`{uri}` VALUES (1, 1)"),
            InvalidArgumentError,
        ),
    ],
)
def test_calls_that_the_session_disables_are_rejected_by_the_setting(
    spark: Any, uri: str, values: dict[str, str], run: Callable[[Any, str], Any], error: type[DeltaError]
) -> None:
    made = spark.range(3).selectExpr("id", "id % 2 AS p")
    ds.write(made, uri, partition_by="p", properties={"delta.columnMapping.mode": "name"})
    with setting(spark, values), pytest.raises(error) as found:
        run(spark, uri)
    name = next(n for n in values if n.startswith(DELTA))
    assert found.value.facts["setting"] == name
    assert name in str(found.value)
    assert DeltaTable(uri).version() == 0
    with setting(spark, {name: "true"}):
        ds.write(made.where("id = 7"), uri, "append")


def test_settings_of_the_form_of_files_are_warned_of_once(
    spark: Any, uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings._warn.cache_clear()  # another test may have set it before
    with setting(spark, delta(write__dataFilesToSubdir="true", stats__collect="true")):
        for _ in range(2):
            ds.write(spark.range(1), uri, "append")
    found = [r.getMessage() for r in caplog.records if "has no effect here" in r.getMessage()]
    assert len(found) == 1
    assert f"{DELTA}write.dataFilesToSubdir = true" in found[0]


def test_missing_constraints_are_dropped_if_the_session_assumes_if_exists(spark: Any, uri: str) -> None:
    ds.write(spark.range(1), uri)
    text = f"ALTER TABLE delta.`{uri}` DROP CONSTRAINT c"
    with pytest.raises(UnsupportedOperationError):
        ds.sql(spark, text)
    with setting(spark, delta(constraints__assumesDropIfExists__enabled="true")):
        ds.sql(spark, text)
    assert DeltaTable(uri).version() == 0


def test_builder_lowers_the_names_of_properties_if_the_session_requests_it(spark: Any, uri: str) -> None:
    with setting(spark, delta(deltaTableBuilder__forceTablePropertyLowerCase__enabled="true")):
        builder = ds.DeltaTable.create(spark).location(uri).addColumn("id", "bigint")
        builder.property("Own.Key", "X").property("delta.appendOnly", "true").execute()
    assert DeltaTable(uri).metadata().configuration == {"own.key": "X", "delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{DELTA}schema.autoMerge.enable", "true"),  # misspelt
        (f"{DELTA}notKnown", "1"),
        ("spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore"),
        ("spark.sql.storeAssignmentPolicy", "LEGACY"),
        ("spark.sql.storeAssignmentPolicy", "STRICT"),
    ],
)
def test_unknown_settings_and_those_of_spark_that_change_values_are_rejected(
    spark: Any, uri: str, name: str, value: str
) -> None:
    with setting(spark, {name: value}), pytest.raises(UnsupportedOperationError, match=name):
        ds.write(spark.range(3), uri)


def test_settings_are_read_in_one_call_however_many_are_set(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    client = spark._sc._gateway._gateway_client
    send = client.send_command
    monkeypatch.setattr(client, "send_command", lambda c, *a, **k: (calls.append(c), send(c, *a, **k))[1])

    def count() -> int:
        calls.clear()
        session_settings(spark)
        return len([c for c in calls if not c.startswith("m\n")])  # without those that free an object

    session_settings(spark)
    few = count()
    with setting(spark, {f"{DELTA}skipping.{n}": "x" for n in ("partitionLikeFilters.enabled",)}):
        many = {n: _other(n) for n, e in KNOWN.items() if e["status"] == "none"}
        many.pop(f"{DELTA}v2.enableMode", None)
        with setting(spark, many):
            assert count() == few <= 2


def test_settings_are_found_without_classes_of_this_library(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(session: Any) -> Any:
        raise EngineError("this Spark can't compile it")

    odd = delta(commitInfo__userMetadata="a -> b & c = d\nä")
    with setting(spark, odd):
        with_class = private.settings(spark)
        monkeypatch.setattr(private, "_driver", fail)
        without = private.settings(spark)
    assert {n: t for n, t in without.items() if n in with_class} == with_class
    assert with_class[f"{DELTA}commitInfo.userMetadata"] == odd[f"{DELTA}commitInfo.userMetadata"]


def test_operations_read_the_settings_a_fixed_number_of_times(
    spark: Any, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    known = private.settings
    monkeypatch.setattr(private, "settings", lambda session: (calls.append(1), known(session))[1])
    ds.write(spark.range(3), uri)
    assert len(calls) <= 3
    calls.clear()
    ds.read(spark, uri)
    assert len(calls) == 1


# --- those that are followed -----------------------------------------------------------------


CHANGES = {
    "insert": "INSERT INTO delta.`{}` VALUES (7)",
    "delete": "DELETE FROM delta.`{}` WHERE id = 1",
    "update": "UPDATE delta.`{}` SET id = 9 WHERE id = 2",
    "merge": "MERGE INTO delta.`{}` t USING (SELECT 8L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_change_with_the_transaction_of_the_session_is_committed_once(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.range(3), uri)
    with setting(spark, delta(write__txnAppId="app", write__txnVersion="4")):
        ds.sql(spark, CHANGES[how].format(uri))
        before = rows(spark, uri)
        assert (commit(uri)["txn"]["appId"], commit(uri)["txn"]["version"]) == ("app", 4)
        for _ in range(2):
            assert ds.sql(spark, CHANGES[how].format(uri)).collect() == []
    assert DeltaTable(uri).version() == 1
    assert rows(spark, uri) == before


def test_writes_and_overwrites_with_the_transaction_of_the_session_are_committed_once(spark: Any, uri: str) -> None:
    with setting(spark, delta(write__txnAppId="app", write__txnVersion="1")):
        assert ds.write(spark.range(3), uri) == 0
        assert ds.write(spark.range(9), uri, "append") is None
        assert ds.write(spark.range(9), uri, "overwrite") is None
        assert ds.write(spark.range(3, 4), uri, "append", txn=("other", 1)) == 1  # an argument goes before
    assert len(rows(spark, uri)) == 4


def test_version_of_the_session_is_unset_after_a_write_if_that_is_requested(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri)
    wanted = delta(write__txnAppId="app", write__txnVersion="1", write__txnVersion__autoReset__enabled="true")
    for how in CHANGES.values():
        with setting(spark, wanted):
            ds.sql(spark, how.format(uri))
            assert spark.conf.get(f"{DELTA}write.txnVersion", None) is None


@pytest.mark.parametrize("values", [{"write__txnAppId": "a"}, {"write__txnVersion": "1"}, {
    "write__txnAppId": "a", "write__txnVersion": "x"}])  # fmt: skip
def test_half_a_transaction_is_rejected(spark: Any, uri: str, values: dict[str, str]) -> None:
    with setting(spark, delta(**values)), pytest.raises(InvalidArgumentError, match="txn"):
        ds.write(spark.range(3), uri)


def _made_by_convert(spark: Any, uri: str) -> None:
    spark.range(3).write.parquet(uri)
    ds.DeltaTable.convertToDelta(spark, f"parquet.`{uri}`")


def _made_by_replace(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri)
    ds.DeltaTable.replace(spark).location(uri).addColumn("id", "bigint").execute()


CREATING: dict[str, Callable[[Any, str], Any]] = {
    "write": lambda spark, uri: ds.write(spark.range(3), uri),
    "replace_definition": lambda spark, uri: (
        ds.write(spark.range(3), uri),
        ds.write(spark.range(3), uri, "overwrite", replace_definition=True),
    ),
    "builder": lambda spark, uri: ds.DeltaTable.create(spark).location(uri).addColumn("id", "bigint").execute(),
    "replace": _made_by_replace,
    "convert": _made_by_convert,
}


@pytest.mark.parametrize("how", CREATING)
def test_new_tables_have_the_properties_of_the_session(spark: Any, uri: str, how: str) -> None:
    wanted = delta(
        properties__defaults__logRetentionDuration="interval 3 days", properties__defaults__enableChangeDataFeed="true"
    )
    with setting(spark, wanted):
        CREATING[how](spark, uri)
    found = DeltaTable(uri).metadata().configuration
    assert found["delta.logRetentionDuration"] == "interval 3 days"
    assert found["delta.enableChangeDataFeed"] == "true"


def test_properties_of_a_call_go_before_those_of_the_session_and_tables_that_exist_keep_theirs(
    spark: Any, uri: str
) -> None:
    with setting(spark, delta(properties__defaults__logRetentionDuration="interval 3 days")):
        ds.write(spark.range(3), uri, properties={"delta.logretentionduration": "interval 9 days"})
        assert DeltaTable(uri).metadata().configuration == {"delta.logRetentionDuration": "interval 9 days"}
        ds.write(spark.range(3), f"{uri}2", properties={"a": "b"})
    with setting(spark, delta(properties__defaults__appendOnly="true")):
        ds.write(spark.range(3), uri, "append")
        ds.DeltaTable.forPath(spark, uri).clone(f"{uri}3", True)
    assert "delta.appendOnly" not in DeltaTable(uri).metadata().configuration
    assert "delta.appendOnly" not in DeltaTable(f"{uri}3").metadata().configuration


def test_protocol_versions_of_the_session_are_those_of_new_tables(spark: Any, uri: str) -> None:
    with setting(spark, delta(properties__defaults__minReaderVersion="2", properties__defaults__minWriterVersion="5")):
        ds.write(spark.range(3), uri)
    protocol = DeltaTable(uri).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (2, 5)


def test_a_property_that_can_not_have_the_value_of_the_session_is_rejected(spark: Any, uri: str) -> None:
    with (
        setting(spark, delta(properties__defaults__checkpointInterval="often")),
        pytest.raises(InvalidArgumentError, match=r"delta\.checkpointInterval"),
    ):
        ds.write(spark.range(3), uri)
    assert not DeltaTable.is_deltatable(uri)


EVOLVING: dict[str, Callable[[Any, str], Any]] = {
    "append": lambda spark, uri: ds.write(spark.range(7, 8).selectExpr("id", "5 AS x"), uri, "append"),
    "overwrite": lambda spark, uri: ds.write(spark.range(7, 8).selectExpr("id", "5 AS x"), uri, "overwrite"),
    "by_name": lambda spark, uri: ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT 5 AS x, 7L AS id"),
    "insert": lambda spark, uri: ds.sql(spark, f"INSERT INTO delta.`{uri}` SELECT 7L AS id, 5 AS x"),
    "merge": lambda spark, uri: ds.sql(
        spark,
        f"MERGE INTO delta.`{uri}` t USING (SELECT 7L AS id, 5 AS x) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ),
}


@pytest.mark.parametrize("how", EVOLVING)
def test_writes_add_columns_if_the_session_merges_schemas(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.range(2), uri)
    with setting(spark, delta(schema__autoMerge__enabled="true")):
        EVOLVING[how](spark, uri)
    assert rows(spark, uri)[-1] == (7, 5)


def test_fixed_schema_goes_before_the_setting(spark: Any, uri: str) -> None:
    ds.write(spark.range(2), uri)
    more = spark.range(2).selectExpr("id", "5 AS x")
    with setting(spark, delta(schema__autoMerge__enabled="true")):
        with pytest.raises(SchemaMismatchError):
            ds.write(more, uri, "append", schema_mode="fixed")
        ds.write(more, uri, "overwrite", schema_mode="overwrite")
    with pytest.raises(SchemaMismatchError), setting(spark, delta(schema__autoMerge__enabled="false")):
        ds.write(more.selectExpr("*", "1 AS y"), uri, "append")


def test_user_metadata_of_the_session_is_in_every_commit(spark: Any, uri: str) -> None:
    statements = (
        "INSERT INTO delta.`{}` VALUES (3), (4)", "DELETE FROM delta.`{}` WHERE id = 1", "OPTIMIZE delta.`{}`",
        "TRUNCATE TABLE delta.`{}`",
        "ALTER TABLE delta.`{}` SET TBLPROPERTIES ('a' = 'b')", "RESTORE delta.`{}` TO VERSION AS OF 0",
        "CREATE OR REPLACE TABLE delta.`{0}-clone` SHALLOW CLONE delta.`{0}`",
    )  # fmt: skip
    with setting(spark, delta(commitInfo__userMetadata="nightly")):
        ds.write(spark.range(3), uri)
        for statement in statements:
            ds.sql(spark, statement.format(uri))
        ds.write(spark.range(1), uri, "append", user_metadata="own")
    found = [commit(uri, v)["commitInfo"].get("userMetadata") for v in range(DeltaTable(uri).version() + 1)]
    assert found == ["nightly"] * (len(found) - 1) + ["own"]
    assert commit(f"{uri}-clone")["commitInfo"]["userMetadata"] == "nightly"


def _files(uri: str) -> list[Path]:
    return [Path(uri, p) for p in DeltaTable(uri).snapshot().files.columns(["path"]).column("path").to_pylist()]


def test_optimized_writes_of_the_session_go_before_the_property_of_the_table(spark: Any, uri: str) -> None:
    many = spark.range(1000).repartition(8)
    with setting(spark, delta(optimizeWrite__enabled="true")):
        ds.write(many, uri)
        assert len(_files(uri)) < 8
        ds.write(many, uri, "overwrite", optimize_write=False)
        assert len(_files(uri)) == 8
    DeltaTable(uri).alter.set_table_properties({"delta.autoOptimize.optimizeWrite": "true"})
    with setting(spark, delta(optimizeWrite__enabled="false")):
        ds.write(many, uri, "overwrite")
        assert len(_files(uri)) == 8


def test_small_files_are_joined_after_commits_if_the_session_requests_it(spark: Any, uri: str) -> None:
    with setting(spark, delta(autoCompact__enabled="true", autoCompact__minNumFiles="4")):
        ds.write(spark.range(300).repartition(3), uri)
        assert len(_files(uri)) == 3
        ds.write(spark.range(300, 400).repartition(1), uri, "append")
        assert len(_files(uri)) == 1
        ds.sql(spark, f"INSERT INTO delta.`{uri}` SELECT id FROM range(400, 800, 1, 4)")
        assert len(_files(uri)) == 1
    assert rows(spark, uri) == [(n,) for n in range(800)]
    with setting(
        spark, delta(autoCompact__enabled="true", autoCompact__minNumFiles="2", autoCompact__maxFileSize="1b")
    ):
        ds.write(spark.range(9).repartition(3), uri, "overwrite")
        assert len(_files(uri)) == 3


def test_optimize_writes_files_of_the_size_of_the_session(spark: Any, uri: str) -> None:
    ds.write(spark.range(100_000).selectExpr("id", "uuid() AS u").repartition(4), uri)
    size = _files(uri)[0].stat().st_size
    with setting(spark, delta(optimize__maxFileSize=f"{2 * size + size // 2}b")):
        ds.sql(spark, f"OPTIMIZE delta.`{uri}`")
    assert len(_files(uri)) == 2


def test_retention_check_of_the_session_decides_about_short_retentions(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri)
    ds.sql(spark, f"VACUUM delta.`{uri}` RETAIN 0 HOURS")  # nothing to delete: no retention is too short
    replaced = _files(uri)
    ds.write(spark.range(3), uri, mode="overwrite")
    with pytest.raises(InvalidArgumentError):
        ds.sql(spark, f"VACUUM delta.`{uri}` RETAIN 0 HOURS")
    assert all(f.exists() for f in replaced)
    with setting(spark, delta(retentionDurationCheck__enabled="false")):
        ds.sql(spark, f"VACUUM delta.`{uri}` RETAIN 0 HOURS")
    assert not any(f.exists() for f in replaced)


def test_changes_after_the_last_commit_are_none_if_the_session_allows_them(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri, properties={"delta.enableChangeDataFeed": "true"})
    late = {"start_timestamp": "2999-01-01 00:00:00"}
    with pytest.raises(DeltaError):
        ds.read_changes(spark, uri, **late)  # type: ignore[arg-type]
    with setting(spark, delta(changeDataFeed__timestampOutOfRange__enabled="true")):
        assert ds.read_changes(spark, uri, **late).count() == 0  # type: ignore[arg-type]


# --- settings of Spark -----------------------------------------------------------------------


def _codecs(uri: str) -> set[str]:
    return {pq.ParquetFile(f).metadata.row_group(0).column(0).compression for f in _files(uri)}


@pytest.mark.parametrize("route", ["auto", "plain"])
def test_codec_of_a_call_goes_before_that_of_the_table_and_of_the_session(
    spark: Any, tmp_path: Path, route: Any
) -> None:
    places = [str(tmp_path / n) for n in ("session", "table", "call", "none")]
    gzip = {"delta.parquet.compression.codec": "gzip"}
    with setting(spark, {"spark.sql.parquet.compression.codec": "zstd"}):
        ds.write(spark.range(3), places[0], route=route)
        ds.write(spark.range(3), places[1], properties=gzip, route=route)
        ds.write(spark.range(3), places[2], properties=gzip, parquet_options={"compression": "zstd"}, route=route)
    ds.write(spark.range(3), places[3], route=route)
    assert [_codecs(p) for p in places] == [{"ZSTD"}, {"GZIP"}, {"ZSTD"}, {"SNAPPY"}]


def test_files_end_with_the_rows_of_the_session(spark: Any, uri: str) -> None:
    with setting(spark, {"spark.sql.files.maxRecordsPerFile": "10"}):
        ds.write(spark.range(40).coalesce(1), uri)
    assert len(_files(uri)) == 4


def test_overwrites_replace_partitions_if_the_session_is_dynamic(spark: Any, uri: str) -> None:
    made = spark.range(6).selectExpr("id", "id % 2 AS p")
    ds.write(made, uri, partition_by="p")
    with setting(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        ds.write(made.where("id = 1"), uri, "overwrite")
        assert rows(spark, uri) == [(0, 0), (1, 1), (2, 0), (4, 0)]
        ds.sql(spark, f"INSERT OVERWRITE delta.`{uri}` VALUES (8, 0)")
        assert rows(spark, uri) == [(1, 1), (8, 0)]
        ds.write(made.where("id = 3"), uri, "overwrite", partition_overwrite_mode="static")
        assert rows(spark, uri) == [(3, 1)]
        ds.write(spark.range(2), f"{uri}2")
        ds.write(spark.range(1), f"{uri}2", "overwrite")  # without partitions: all rows
    assert rows(spark, f"{uri}2") == [(0,)]


OTHER_CASE = (
    "UPDATE delta.`{}` SET V = 9",
    "UPDATE delta.`{}` SET v = ID",
    "UPDATE delta.`{}` SET v = 9 WHERE ID = 1",
    "UPDATE delta.`{}` SET s.A = 9",
    "DELETE FROM delta.`{}` WHERE ID = 1",
    "DELETE FROM delta.`{}` WHERE s.A = 1",
    "MERGE INTO delta.`{}` t USING (SELECT 1L AS id) s ON t.ID = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO delta.`{}` t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET V = 1",
    "MERGE INTO delta.`{}` t USING (SELECT 1L id, 1L V, struct(1 a) s) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
    "MERGE INTO delta.`{}` t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED AND t.V = 1 THEN DELETE",
    "INSERT INTO delta.`{}` (ID, v) VALUES (1, 2)",
    "INSERT INTO delta.`{}` REPLACE WHERE ID = 1 SELECT 1L AS id, 2L AS v, named_struct('a', 1) AS s",
)


@pytest.mark.parametrize("statement", OTHER_CASE)
def test_names_in_another_case_are_not_found_if_the_session_distinguishes_them(
    spark: Any, uri: str, statement: str
) -> None:
    ds.write(spark.range(3).selectExpr("id", "id AS v", "named_struct('a', 1) AS s"), uri)
    before = rows(spark, uri)
    with setting(spark, {"spark.sql.caseSensitive": "true"}), pytest.raises(ColumnNotFoundError):
        ds.sql(spark, statement.format(uri))
    assert rows(spark, uri) == before
    if "named_struct" not in statement and "(ID" not in statement:
        ds.sql(spark, statement.format(uri))
        assert DeltaTable(uri).version() == 1


def test_names_in_their_own_case_are_found_in_a_session_that_distinguishes_cases(spark: Any, uri: str) -> None:
    ds.write(spark.range(3).selectExpr("id", "id AS Value"), uri)
    with setting(spark, {"spark.sql.caseSensitive": "true"}):
        ds.sql(spark, f"UPDATE delta.`{uri}` SET Value = Value + 1 WHERE id = 1")
        ds.sql(spark, f"DELETE FROM delta.`{uri}` WHERE Value = 0")
        ds.write(spark.range(5, 6).selectExpr("id AS ID", "id AS VALUE"), uri, "append")  # as delta-spark
        table = ds.DeltaTable.forPath(spark, uri)
        with pytest.raises(ColumnNotFoundError):
            table.update("ID = 1", {"Value": "1"})
    assert rows(spark, uri) == [(1, 2), (2, 2), (5, 5)]


# --- settings that disable or permit a call ----------------------------------------------------


def test_clone_in_place_of_a_table_can_be_disabled(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri)
    ds.write(spark.range(5), f"{uri}-source")
    statement = f"CREATE OR REPLACE TABLE delta.`{uri}` SHALLOW CLONE delta.`{uri}-source`"
    with setting(spark, delta(clone__replaceEnabled="false")), pytest.raises(InvalidArgumentError) as found:
        ds.sql(spark, statement)
    assert found.value.getCondition() == "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"  # type: ignore[attr-defined]
    assert found.value.facts["setting"] == f"{DELTA}clone.replaceEnabled"
    assert DeltaTable(uri).version() == 0
    ds.sql(spark, statement)
    assert DeltaTable(uri).scan().to_table().num_rows == 5


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE delta.`{0}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')",
        "ALTER TABLE delta.`{0}` UNSET TBLPROPERTIES ('delta.columnMapping.mode')",
        "ALTER TABLE delta.`{0}` DROP FEATURE columnMapping",
    ],
)
def test_the_end_of_column_mapping_can_be_disabled(spark: Any, uri: str, statement: str) -> None:
    ds.write(spark.range(3), uri, properties={"delta.columnMapping.mode": "name"})
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` RENAME COLUMN id TO n")
    files = sorted(Path(uri).rglob("*.parquet"))
    with setting(spark, delta(columnMapping__allowRemoval="false")), pytest.raises(DeltaError) as found:
        ds.sql(spark, statement.format(uri))
    assert found.value.getCondition() == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"  # type: ignore[attr-defined]
    assert found.value.facts["setting"] == f"{DELTA}columnMapping.allowRemoval"
    assert (DeltaTable(uri).version(), sorted(Path(uri).rglob("*.parquet"))) == (1, files)
    ds.sql(spark, statement.format(uri))
    table = DeltaTable(uri)
    assert table.metadata().configuration.get("delta.columnMapping.mode", "none") == "none"
    assert "physicalName" not in table.schema().to_json()
    assert ("columnMapping" in (table.protocol().writer_features or ())) == ("DROP" not in statement)
    live = ds.read(spark, uri).inputFiles()
    assert {tuple(pq.read_schema(each.removeprefix("file://")).names) for each in live} == {("n",)}
    assert sorted(table.scan().to_table().column("n").to_pylist()) == [0, 1, 2]


def test_a_replaced_table_needs_no_column_mapping(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri, properties={"delta.columnMapping.mode": "name"})
    with setting(spark, delta(columnMapping__allowRemoval="false")):
        ds.DeltaTable.createOrReplace(spark).location(uri).addColumn("n", "int").execute()
    ds.write(spark.sql("SELECT 7 AS n"), uri, "append")
    assert "delta.columnMapping.mode" not in DeltaTable(uri).metadata().configuration
    assert DeltaTable(uri).scan().to_table().to_pydict() == {"n": [7]}
    assert sorted(r.id for r in ds.read(spark, uri, 0).collect()) == [0, 1, 2]


def test_identity_columns_can_be_disabled(spark: Any, uri: str) -> None:
    def made(path: str) -> Any:
        builder = ds.DeltaTable.create(spark).location(path).addColumn("b", "int")
        return builder.addColumn("n", "bigint", generatedAlwaysAs=ds.IdentityGenerator()).execute()

    made(uri)
    statements = [
        f"INSERT INTO delta.`{uri}` (b) VALUES (1)",
        f"ALTER TABLE delta.`{uri}` ADD COLUMN c INT",
        f"CREATE TABLE delta.`{uri}-clone` SHALLOW CLONE delta.`{uri}`",
    ]
    with setting(spark, delta(identityColumn__enabled="false")):
        for call in (lambda: made(f"{uri}-new"), *(partial(ds.sql, spark, text) for text in statements)):
            with pytest.raises(UnsupportedOperationError) as found:
                call()
            assert found.value.getCondition() == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"  # type: ignore[attr-defined]
            assert found.value.facts["setting"] == f"{DELTA}identityColumn.enabled"
        ds.sql(spark, f"DELETE FROM delta.`{uri}`")  # numbers no row
        assert not DeltaTable.is_deltatable(f"{uri}-new")
    assert (DeltaTable(uri).version(), list(Path(uri).glob("*.parquet"))) == (0, [])
    ds.sql(spark, statements[0])
    assert ds.read(spark, uri).select("b", "n").first() == (1, 1)


def test_replace_where_on_other_columns_than_partitions_can_be_disabled(spark: Any, uri: str) -> None:
    ds.write(spark.range(4).selectExpr("id", "id % 2 AS p"), uri, partition_by="p")
    row = spark.sql("SELECT 7L AS id, 0L AS p")
    with setting(spark, delta(replaceWhere__dataColumns__enabled="false")):
        with pytest.raises(UnsupportedOperationError, match="replaceWhere") as found:
            ds.write(row, uri, "overwrite", replace_where="id > 2")
        assert found.value.getCondition() == "DELTA_NON_PARTITION_COLUMN_REFERENCE"  # type: ignore[attr-defined]
        ds.write(row, uri, "overwrite", replace_where="p = 0")
    assert rows(spark, uri) == [(1, 1), (3, 1), (7, 0)]


def test_rows_outside_of_replace_where_are_written_if_the_session_does_not_check_them(spark: Any, uri: str) -> None:
    ds.write(spark.range(4), uri)
    row = spark.range(9, 10)
    with pytest.raises(ConstraintViolationError):
        ds.write(row, uri, "overwrite", replace_where="id < 2")
    with setting(spark, delta(replaceWhere__constraintCheck__enabled="false")):
        ds.write(row, uri, "overwrite", replace_where="id < 2")
    assert rows(spark, uri) == [(2,), (3,), (9,)]


@pytest.mark.parametrize("how", ["delete", "update", "merge"])
def test_deletion_vectors_are_not_written_if_the_session_rejects_them(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.range(0, 1000, 1, 1), uri, properties={"delta.enableDeletionVectors": "true"})
    merge = "MERGE INTO delta.`{}` t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    text = {**CHANGES, "merge": merge}[how].format(uri)
    with setting(spark, {f"{DELTA}{how}.deletionVectors.persistent": "false"}):
        ds.sql(spark, text)
    assert DeltaTable(uri).deletion_vectors().read_all().num_rows == 0
    before = DeltaTable(uri).version()
    ds.sql(spark, text.replace("1L", "3L").replace("id = 1", "id = 3").replace("id = 2", "id = 4"))
    assert DeltaTable(uri).version() == before + 1
    assert DeltaTable(uri).deletion_vectors().read_all().num_rows == 1


@pytest.mark.parametrize("how", ["delete", "update", "merge"])
def test_changes_of_no_row_are_committed_if_the_session_requests_it(spark: Any, uri: str, how: str) -> None:
    ds.write(spark.range(3), uri)
    text = {
        "delete": "DELETE FROM delta.`{}` WHERE id = 70",
        "update": "UPDATE delta.`{}` SET id = 1 WHERE id = 70",
        "merge": "MERGE INTO delta.`{}` t USING (SELECT 70L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    }[how].format(uri)
    ds.sql(spark, text)
    assert DeltaTable(uri).version() == 0
    with setting(spark, delta(skipRecordingEmptyCommits="false")):
        ds.sql(spark, text)
    assert DeltaTable(uri).version() == 1
    assert rows(spark, uri) == [(0,), (1,), (2,)]


def test_optimize_commits_each_batch_of_the_session(spark: Any, uri: str) -> None:
    for _ in range(2):
        ds.write(spark.range(4).selectExpr("id", "id % 2 AS p"), uri, "append", partition_by="p")
    with setting(spark, delta(optimize__batchSize="1")):
        ds.sql(spark, f"OPTIMIZE delta.`{uri}`")
    assert [h["operation"] for h in DeltaTable(uri).history(2)] == ["OPTIMIZE", "OPTIMIZE"]
    assert DeltaTable(uri).version() == 3
    assert ds.read(spark, uri).count() == 8


@pytest.mark.parametrize(("value", "kept"), [("ALWAYS", []), ("SAME_FAMILY_TYPE", ["d"]), ("NEVER", ["i", "d"])])
def test_schema_evolution_widens_the_types_that_the_session_allows(
    spark: Any, uri: str, value: str, kept: list[str]
) -> None:
    first = spark.sql("SELECT 1 AS i, 1S AS d")
    ds.write(first, uri, properties={"delta.enableTypeWidening": "true"})
    with setting(spark, delta(typeWidening__allowAutomaticWidening=value)):
        ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT 2 AS i, 2S AS d")
        with setting(spark, delta(schema__autoMerge__enabled="true")):
            ds.sql(spark, f"INSERT INTO delta.`{uri}` SELECT 3L, 3.0D")
    types = {f.name: f.type.type for f in DeltaTable(uri).schema().members}
    assert [name for name in ("i", "d") if types[name] in ("integer", "short")] == kept
    assert ds.read(spark, uri).count() == 3


def test_a_value_that_does_not_fit_fails_where_types_are_not_widened(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1 AS id"), uri, properties={"delta.enableTypeWidening": "true"})
    values = delta(typeWidening__allowAutomaticWidening="NEVER", schema__autoMerge__enabled="true")
    with setting(spark, values), pytest.raises(DeltaError) as found:
        ds.sql(spark, f"INSERT INTO delta.`{uri}` SELECT 5000000000L")
    assert found.value.getCondition() == "CAST_OVERFLOW_IN_TABLE_INSERT"  # type: ignore[attr-defined]
    assert rows(spark, uri) == [(1,)]


def test_features_wait_for_the_history_if_the_session_does_not_protect_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(3), uri, properties={"delta.enableDeletionVectors": "true"})
    values = delta(tableFeatures__fastDropFeature__enabled="false")
    with setting(spark, values), pytest.raises(UnsupportedOperationError) as found:
        ds.sql(spark, f"ALTER TABLE delta.`{uri}` DROP FEATURE deletionVectors")
    condition = found.value.getCondition()  # type: ignore[attr-defined]
    assert condition == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    protocol = DeltaTable(uri).protocol()
    assert "deletionVectors" in protocol.writer_features
    assert "checkpointProtection" not in protocol.writer_features
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` DROP FEATURE deletionVectors")
    assert "deletionVectors" not in (DeltaTable(uri).protocol().writer_features or ())


def test_columns_of_other_types_and_missing_ones_are_rejected_if_the_session_requests_it(spark: Any, uri: str) -> None:
    builder = ds.DeltaTable.create(spark).location(uri).addColumn("a", "bigint").addColumn("b", "bigint")
    builder.addColumn("g", "bigint", generatedAlwaysAs="a + 1").execute()
    text, short = spark.sql("SELECT 1 AS a, 2L AS b"), spark.sql("SELECT 3L AS a")
    with setting(spark, delta(dml__insert__dfByName__allowImplicitCasts="false")):
        with pytest.raises(SchemaMismatchError, match="allowImplicitCasts") as found:
            ds.write(text, uri, "append")
        ds.write(short, uri, "append")
    assert found.value.getCondition() == "DELTA_FAILED_TO_MERGE_FIELDS"  # type: ignore[attr-defined]
    with setting(spark, delta(generatedColumn__allowNullableIngest__enabled="false")):
        with pytest.raises(SchemaMismatchError, match="lack the column b"):
            ds.write(short, uri, "append")
        ds.write(text, uri, "append")
    assert sorted(map(tuple, ds.read(spark, uri).collect())) == [(1, 2, 2), (3, None, 4)]


def test_nulls_and_statements_are_cast_where_columns_of_dataframes_are_not(spark: Any, uri: str) -> None:
    ds.write(spark.sql("SELECT 1L AS id, named_struct('a', 1, 'b', 2) AS s"), uri)
    with setting(spark, delta(dml__insert__dfByName__allowImplicitCasts="false")):
        for mode in ("append", "overwrite"):
            with pytest.raises(SchemaMismatchError, match="allowImplicitCasts"):
                ds.write(spark.sql("SELECT '3' AS id, NULL AS s"), uri, mode)  # type: ignore[arg-type]
        ds.write(spark.sql("SELECT 2L AS id, NULL AS s"), uri, "append")
        ds.sql(spark, f"INSERT INTO delta.`{uri}` VALUES ('3', NULL)")
        ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT named_struct('b', 2L, 'a', 1L) AS s, 4 AS id")
        assert rows(spark, uri) == [(1, (1, 2)), (2, None), (3, None), (4, (1, 2))]
        ds.write(spark.sql("SELECT '5' AS id"), uri, "overwrite", schema_mode="overwrite")
    assert rows(spark, uri) == [("5",)]


def test_rows_that_replace_the_columns_lack_none(spark: Any, uri: str) -> None:
    builder = ds.DeltaTable.create(spark).location(uri).addColumn("a", "int").addColumn("b", "int")
    builder.addColumn("g", "int", generatedAlwaysAs="a + 1").execute()
    with setting(spark, delta(generatedColumn__allowNullableIngest__enabled="false")):
        with pytest.raises(SchemaMismatchError, match="lack the column b"):
            ds.write(spark.sql("SELECT 3 AS a"), uri, "overwrite")
        ds.write(spark.sql("SELECT 3 AS a"), uri, "overwrite", schema_mode="overwrite")
    assert [tuple(r) for r in ds.read(spark, uri).collect()] == [(3,)]


def test_unknown_properties_are_stored_if_the_session_permits_them(spark: Any, uri: str) -> None:
    change = f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.mine' = '2')"
    with pytest.raises(InvalidArgumentError):
        ds.write(spark.range(1), uri, properties={"delta.own": "1"})
    with setting(spark, delta(allowArbitraryProperties__enabled="true")):
        ds.write(spark.range(1), uri, properties={"delta.own": "1"})
        ds.sql(spark, change)
    found = DeltaTable(uri).metadata().configuration
    assert (found["delta.own"], found["delta.mine"]) == ("1", "2")


def test_a_protocol_is_restored_if_the_session_permits_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(1), uri)
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    raised = DeltaTable(uri).protocol().min_writer_version
    ds.sql(spark, f"RESTORE delta.`{uri}` TO VERSION AS OF 0")
    assert DeltaTable(uri).protocol().min_writer_version == raised
    with setting(spark, delta(restore__protocolDowngradeAllowed="true")):
        ds.sql(spark, f"RESTORE delta.`{uri}` TO VERSION AS OF 0")
    assert DeltaTable(uri).protocol().min_writer_version < raised


def test_insert_by_name_rejects_columns_beside_casts_if_the_session_requests_it(spark: Any, uri: str) -> None:
    ds.write(spark.range(1), uri)
    values = delta(insert__byName__schemaEvolution__enabled="false", schema__autoMerge__enabled="true")
    with setting(spark, values):
        with pytest.raises(SchemaMismatchError, match="byName"):
            ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT '1' AS id, 2 AS b")
        ds.sql(spark, f"INSERT INTO delta.`{uri}` BY NAME SELECT 1L AS id, 2 AS b")
    assert rows(spark, uri) == [(0, None), (1, 2)]


def test_a_table_without_features_has_the_least_versions_where_lists_are_requested(spark: Any, uri: str) -> None:
    with setting(spark, delta(properties__defaults__minWriterVersion="7")):
        ds.write(spark.range(1), uri)
    found = DeltaTable(uri).protocol()
    assert (found.min_reader_version, found.min_writer_version) == (1, 1)


def test_errors_note_settings_that_end_checks(spark: Any, uri: str) -> None:
    name = f"{DELTA}typeWidening.bypassUnsupportedTypeChangeCheck"
    with setting(spark, {name: "true"}), pytest.raises(DeltaError) as found:
        ds.write(spark.range(1), uri, partition_by="id")
    assert any(f"{name} = true" in note for note in found.value.__notes__)
    with pytest.raises(DeltaError) as found:
        ds.write(spark.range(1), uri, partition_by="id")
    assert not getattr(found.value, "__notes__", [])


def test_errors_note_the_settings_of_their_own_session(spark: Any, uri: str) -> None:
    name, other = f"{DELTA}typeWidening.bypassUnsupportedTypeChangeCheck", spark.newSession()
    ds.write(spark.range(1), uri)
    table = ds.DeltaTable.forPath(other, uri)
    with setting(spark, {name: "true"}):
        ds.write(spark.range(1), uri, "append")
        with pytest.raises(DeltaError) as found:
            table.update()  # before it reads the settings of its own session
        assert not getattr(found.value, "__notes__", [])
        seen: list[BaseException] = []

        def fail() -> None:
            with pytest.raises(DeltaError) as raised:
                ds.write(other.range(1), f"{uri}-2", partition_by="id")
            seen.append(raised.value)

        thread = threading.Thread(target=fail)
        with noting_settings():  # a call of the other session meanwhile
            set_check_settings({name: "true"})
            thread.start()
            thread.join()
    assert [getattr(e, "__notes__", []) for e in seen] == [[]]


@pytest.mark.parametrize(
    ("mapping", "mode", "columns"),
    [
        ("none", None, ["id", "b"]),
        ("name", None, ["id"]),
        ("name", "endVersion", ["id"]),
        ("name", "latest", ["id", "b"]),
        ("name", "legacy", ["id", "b"]),
    ],
)
def test_changes_up_to_an_older_version_have_the_columns_that_delta_spark_has(
    spark: Any, uri: str, mapping: str, mode: str | None, columns: list[str]
) -> None:
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": mapping}
    ds.write(spark.range(2), uri, properties=properties)
    ds.sql(spark, f"ALTER TABLE delta.`{uri}` ADD COLUMNS (b INT)")
    values = {} if mode is None else delta(changeDataFeed__defaultSchemaModeForColumnMappingTable=mode)
    with setting(spark, values):
        found = ds.read_changes(spark, uri, 0, 0)
        assert found.columns[:-3] == columns
        assert found.count() == 2


def test_is_delta_table_looks_at_the_folders_above(spark: Any, uri: str) -> None:
    ds.write(spark.range(1), uri)
    assert ds.DeltaTable.isDeltaTable(spark, f"{uri}/a/b")
    assert not ds.DeltaTable.isDeltaTable(spark, f"{uri}/_delta_log")
    assert not ds.DeltaTable.isDeltaTable(spark, f"{uri}-other")
