"""Settings of a session, each family with a program that they could change: cells of `statement_program`.

``delta_spark_settings.tsv`` has delta-spark's settings and their defaults. Each is set to another value: those of
`PROGRAMS` and `CALLS` alone, with a program that shows them; the others in groups by the beginning of their names, with
`general`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException

DELTA = "spark.databricks.delta."
DEFAULTS: Mapping[str, str] = dict(
    line.split("\t")
    for line in Path(__file__).with_name("delta_spark_settings.tsv").read_text(encoding="utf-8").splitlines()
)
#: Values of settings that are neither flags nor numbers, by patterns of names.
OTHERS = {
    "checkConstraints.validation.enabled": "ASSERT",
    "generatedColumn.validateOnWrite.enabled": "ASSERT",
    "partitionColumnChangeCheck": "true",
    "commitValidation.consistentDataChange.mode": "fatal",
    "conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates": "off",
    "changeDataFeed.defaultSchemaModeForColumnMappingTable": "latest",
    "commitInfo.userMetadata": "note",
    "commitLock.enabled": "true",
    "autoCompact.enabled": "false",
    "optimizeWrite.enabled": "true",
    "vacuum.logging.enabled": "true",
    "checkpointV2.topLevelFileFormat": "json",
    "statsAsStructInCheckpoint.forcedDisabled": "true",
    "insertReplaceOnOrUsing.materializeSource": "all",
    "merge.materializeSource": "all",
    "merge.materializeSource.rddStorageLevel*": "MEMORY_ONLY",
    "snapshotCache.storageLevel": "MEMORY_ONLY",
    "skipping.partitionLikeDataSkipping.additionalSupportedExpressions": "x.Y",
    "table.parquetV2.timestampOutputType": "INT96",
    "typeWidening.allowAutomaticWidening": "NEVER",
    "v2.enableMode": "NONE",
    "write.txnAppId": "a",
    "write.txnVersion": "1",
    "optimize.maxDeletedRowsRatio": "0.5",
    "properties.defaults.minReaderVersion": "3",
    "properties.defaults.minWriterVersion": "7",
    "stalenessLimit": "1ms",
    "delta.log.cacheRetentionMinutes": "60000ms",
    "testOnly.*": "x-",
    "dummyFileManager.prefix": ".x-",
    "backfill.maxNumFilesFactor": "2.0",
    "backfill.maxNumFiles": "1000",
    "merge.preserveNullSourceStructs.updateStar": "false",
    "catalog.update.longFieldTruncationThreshold": "5000",
    "coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName": "x.Y",
    "alwaysCollectStats.enabled": "true",
    "amt.largeCommitActionsCountThresholdForInlineManifestCommit": "7",
    "spark.databricks.io.skipping.mdc.rangeId.max": "500",
    "spark.databricks.io.skipping.stringPrefixLength": "16",
    "clusteredTable.numClusteringColumnsLimit": "1",
    "maxCommitAttempts": "100",
    "optimize.maxThreads": "4",
    "deletionVectors.packing.targetSize": "1mb",
    "optimizeWrite.binSize": "64mb",
}
#: A setting that stays: delta-spark answers sooner with it.
FIXED = f"{DELTA}snapshotPartitions"
#: Settings of one more group: this library rejects them, and no short program shows what they do.
REJECTED = (
    "conflictChecker.enforceConcurrentFeatureEnablement.enabled",
    "conflictDetection.allowReplaceTableToRemoveNewDomainMetadata",
    "convert.useMetadataLog",
    "featureEnablement.conflictResolution.enabled",
    "merge.failIfSourceChanged",
    "merge.preserveNullSourceStructs.updateStar",
    "timeTravel.parsing.strict",
    "variant.disableVariantTableFeatureForSpark40",
    "variant.forceUsePreviewTableFeature",
    "variantShredding.forceUsePreviewTableFeature",
)
#: A setting with which delta-spark does not create tables at paths.
FAILING = f"{DELTA}hms.schema.forceAlterTableDataSchema"
#: Statements that show what one setting does; the answer is that of the last one, or columns of it after ``->``.
PROGRAMS = {
    name.strip(): lines
    for name, _, lines in (
        part.partition("\n")
        for part in re.split(
            r"^-- ", Path(__file__).with_name("statement_settings.sql").read_text(encoding="utf-8"), flags=re.MULTILINE
        )[1:]
    )
}
#: The same in Python, with the cell as argument.
CALLS: dict[str, Callable[[Any], Any]] = {}


def _call(*names: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def add(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CALLS.update(dict.fromkeys(names, call))
        return call

    return add


def _made(c: Any) -> Any:
    c.run("CREATE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT id, id % 2 AS p FROM range(4)")
    return c.spark.range(1).selectExpr("7L AS id", "0L AS p").write.format("delta").mode("overwrite")


@_call("replaceWhere.dataColumns.enabled", "replaceWhere.dataColumnsWithCDF.enabled")
def _(c: Any) -> Any:
    _made(c).option("replaceWhere", "id > 1").save(c.p)
    return c.load(c.p)


@_call("replaceWhere.constraintCheck.enabled")
def _(c: Any) -> Any:
    _made(c).option("replaceWhere", "p = 1").save(c.p)
    return c.load(c.p)


@_call("replaceOn.dataframe.writer.enabled")
def _(c: Any) -> Any:
    _made(c).option("replaceOn", "t.p = s.p").option("targetAlias", "t").save(c.p)
    return c.load(c.p)


@_call("replaceUsing.dataframe.writer.enabled")
def _(c: Any) -> Any:
    _made(c).option("replaceUsing", "p").save(c.p)
    return c.load(c.p)


@_call("dml.insert.dfByName.allowImplicitCasts")
def _(c: Any) -> Any:
    _made(c)
    c.spark.sql("SELECT '12' AS id, 0L AS p").write.format("delta").mode("append").save(c.p)
    return c.load(c.p)


@_call("schema.typeCheck.enabled")
def _(c: Any) -> Any:
    c.spark.sql("SELECT 1 AS id, INTERVAL 1 DAY AS i").write.format("delta").save(c.p)
    return c.load(c.p).count()


@_call("createDataFrame.dropNullColumns")
def _(c: Any) -> Any:
    c.spark.sql("SELECT 1 AS id, NULL AS v").write.format("delta").save(c.p)
    return c.load(c.p).columns


@_call("streaming.createDataFrame.dropNullColumns")
def _(c: Any) -> Any:
    c.spark.sql("SELECT 1 AS id, NULL AS v").write.format("delta").save(c.p)
    return c.spark.readStream.format("delta").load(c.p).columns


@_call("isDeltaTable.strictCheck", "isDeltaTable.throwOnError")
def _(c: Any) -> Any:
    _made(c)
    c.spark.range(1).write.parquet(c.q)
    return [c.table.isDeltaTable(c.spark, each) for each in (c.p, c.q, c.p + "/none")]


@_call("deltaTableBuilder.forceTablePropertyLowerCase.enabled")
def _(c: Any) -> Any:
    c.table.create(c.spark).location(c.p).addColumn("id", "INT").property("Own.Key", "x").execute()
    return c.sql("DESCRIBE DETAIL {t}").selectExpr("map_keys(properties)")


def _renamed(c: Any, how: str, **options: str) -> Any:
    """Read a stream, whose table changes between two of its runs."""
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true'"
    c.run(f"CREATE TABLE {{n}} USING delta TBLPROPERTIES ({properties}) AS SELECT 1 AS id, 2 AS b")
    for step in ("", how):
        if step:
            c.run(step)
        stream = c.spark.readStream.format("delta").options(**options).table(c.n)
        run = stream.writeStream.format("noop").option("checkpointLocation", c.q).trigger(availableNow=True)
        run.start().awaitTermination()
    return "read"


@_call(
    "streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled",
    "streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled",
)
def _(c: Any) -> Any:
    return _renamed(c, "ALTER TABLE {n} RENAME COLUMN b TO r; INSERT INTO {n} VALUES (3, 4)")


@_call(
    "typeWidening.bypassStreamingTypeChangeCheck",
    "typeWidening.allowTypeChangeStreamingDeltaSource",
    "typeWidening.enableStreamingSchemaTracking",
)
def _(c: Any) -> Any:
    return _renamed(c, "ALTER TABLE {n} ALTER COLUMN b TYPE BIGINT; INSERT INTO {n} VALUES (3, 4)")


@_call("streaming.unsafeReadOnNullabilityChange.enabled")
def _(c: Any) -> Any:
    return _renamed(c, "CREATE OR REPLACE TABLE {n} (id INT NOT NULL, b INT) USING delta")


@_call("streaming.unsafeReadOnPartitionColumnChanges.enabled")
def _(c: Any) -> Any:
    return _renamed(c, "CREATE OR REPLACE TABLE {n} (id INT, b INT) USING delta PARTITIONED BY (b)")


@_call(
    "streaming.schemaValidationOnRestart.enabled",
    "streaming.ignoreInternalMetadataForSchemaChange.enabled",
    "streaming.offsetValidation.enabled",
    "streaming.trailingCommitValidation.enabled",
)
def _(c: Any) -> Any:
    return _renamed(c, "INSERT INTO {n} VALUES (3, 4)")


@_call(
    "streaming.schemaTracking.enabled",
    "streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled",
    "streaming.schemaTracking.metadataPathCheck.enabled",
)
def _(c: Any) -> Any:
    return _renamed(c, "INSERT INTO {n} VALUES (3, 4)", schemaTrackingLocation=c.q + "/schemas")


@_call("streaming.allowSchemaLocationOutsideCheckpointLocation")
def _(c: Any) -> Any:
    return _renamed(c, "INSERT INTO {n} VALUES (3, 4)", schemaTrackingLocation=c.p)


@_call("streaming.sink.implicitCastEscapeColumnNames", "streaming.sink.implicitCastForTypeMismatchOnly")
def _(c: Any) -> Any:
    _made(c)
    c.run("CREATE TABLE {n} (id INT, p BIGINT) USING delta")
    rows = c.spark.readStream.format("delta").load(c.p)
    rows.writeStream.option("checkpointLocation", c.q).trigger(availableNow=True).toTable(c.n).awaitTermination()
    return c.spark.table(c.n)


@_call("write.txnAppId", "write.txnVersion")
def _(c: Any) -> Any:
    return _made(c).save(c.p)


@_call("write.txnVersion.autoReset.enabled")
def _(c: Any) -> Any:
    c.spark.conf.set(f"{DELTA}write.txnAppId", "a")
    c.run("CREATE TABLE {t} (id INT) USING delta")
    for _ in range(2):
        c.spark.conf.set(f"{DELTA}write.txnVersion", "1")
        c.spark.sql("SELECT 1 AS id").write.format("delta").mode("append").save(c.p)
    return [c.load(c.p).count(), c.spark.conf.get(f"{DELTA}write.txnVersion", None)]


@_call("checksum.mismatch.fatal")
def _(c: Any) -> Any:
    _made(c)
    for file in Path(c.p, "_delta_log").glob("0*.crc"):
        file.write_text(file.read_text().replace('"numFiles":', '"numFiles":7'))
    return c.load(c.p)


def general(c: Any) -> Any:
    """Create, change, evolve, maintain and read a table."""
    c.spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # VACUUM has so many tasks
    properties = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true')"
    c.run(f"CREATE TABLE {{t}} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p) {properties}")
    c.run("INSERT INTO {t} SELECT id, id % 2 FROM range(10)")
    c.run("UPDATE {t} SET id = 20 WHERE id = 3; DELETE FROM {t} WHERE id = 4")
    c.run(
        "MERGE INTO {t} t USING (SELECT id, id % 2 AS p FROM range(5, 12)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET id = t.id + 100 "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    rows = c.spark.sql("SELECT 50L AS id, 1L AS p, 'x' AS more").write.format("delta")
    rows.mode("append").option("mergeSchema", "true").save(c.p)
    c.run("OPTIMIZE {t}; VACUUM {t}")
    feed = c.load(c.p, readChangeFeed="true", startingVersion=2, endingVersion=4)
    feed = feed.select("id", "p", "_change_type", "_commit_version")
    operations = c.sql("DESCRIBE HISTORY {t}").where("operation NOT LIKE 'VACUUM%'").select("version", "operation")
    return [c.answer(each) for each in (c.load(c.p), c.load(c.p, versionAsOf=1), feed, operations)]


def other_value(name: str) -> str:
    """Return a value of a setting that is not its default."""
    short = name.removeprefix(DELTA)
    for pattern, value in OTHERS.items():
        if fnmatchcase(short, pattern):
            return value
    default = DEFAULTS[name]
    if default in ("true", "false"):
        return "false" if default == "true" else "true"
    if default == "<undefined>":
        return "7"
    number = re.fullmatch(r"(\d+)(b|ms)?", default)
    assert number is not None, f"{name} needs a value in OTHERS"
    return f"{int(number[1]) + 1}{number[2] or ''}"


def _set(name: str, run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(c: Any) -> Any:
        c.spark.conf.set(name, other_value(name))
        return run(c)

    return call


def _set_group(names: list[str]) -> Callable[[Any], Any]:
    def call(c: Any) -> Any:
        for name in names:
            with suppress(AnalysisException):  # of delta-spark for settings that have to be set before the session
                c.spark.conf.set(name, other_value(name))
        return general(c)

    return call


def groups() -> Iterator[tuple[str, list[str]]]:
    """Yield the settings without a program of their own, in the order of their names."""
    names = [n for n in DEFAULTS if not {n, n.removeprefix(DELTA)} & {*PROGRAMS, *CALLS, FIXED}]
    for start in range(0, len(names), 25):
        group = names[start : start + 25]
        first, last = (n.removeprefix(DELTA).split(".")[0] for n in (group[0], group[-1]))
        yield f"{first}_to_{last}", group


def _statements(c: Any, text: str) -> Any:
    text, _, columns = text.partition(" -> ")
    found = c.run(text)
    return found.selectExpr(*columns.strip().rstrip(";").split(", ")) if columns else found


def cells() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for short, text in PROGRAMS.items():
        yield f"setting_{short}", _set(f"{DELTA}{short}", lambda c, text=text: _statements(c, text))
    for short, call in CALLS.items():
        yield f"setting_{short}", _set(f"{DELTA}{short}", call)
    for name, names in groups():
        own = {FAILING, *(f"{DELTA}{short}" for short in REJECTED)}
        yield f"settings_{name}", _set_group([n for n in names if n not in own])
    yield "settings_rejected", _set_group([f"{DELTA}{short}" for short in REJECTED])
