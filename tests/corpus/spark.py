"""delta-spark as a writer of tables, and as the reader that returns the rows its own tables must have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.corpus.rows import canonical_rows
from tests.corpus.tables import Step

__all__ = ["Spark"]

SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    # many small queries: what makes long ones fast makes these slow
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    # of Spark alone: the protocol has CHAR(n) as a string, and Delta's files hold it as it was written
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.warehouse.dir": "/tmp/delta-corpus-warehouse",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # most tables have no checksum files: they are larger than the rest of the log
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
}


class Spark:
    """A session of delta-spark."""

    name = "spark"

    def __init__(self) -> None:
        import delta
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]")
        for key, value in SETTINGS.items():
            builder = builder.config(key, value)
        self.session = delta.configure_spark_with_delta_pip(builder).getOrCreate()
        self.jvm: Any = self.session._jvm

    @contextmanager
    def configured(self, conf: Mapping[str, str]) -> Iterator[None]:
        """Set options of the session; those of Hadoop begin with ``hadoop:``."""
        hadoop = self.session.sparkContext._jsc.hadoopConfiguration()
        before = {}
        for key, value in conf.items():
            if key.startswith("hadoop:"):
                hadoop.set(key[7:], value)
            else:
                before[key] = self.session.conf.get(key, None)
                self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key in conf:
                if key.startswith("hadoop:"):
                    hadoop.unset(key[7:])
                elif before[key] is None:
                    self.session.conf.unset(key)
                else:
                    self.session.conf.set(key, before[key])

    def run(self, steps: Sequence[Step], path: Path) -> None:
        for step in steps:
            if isinstance(step, str):
                self.session.sql(step.replace("{t}", f"delta.`{path}`"))
            else:
                step(self, path)
                for file in path.glob("_delta_log/.*.crc"):  # Hadoop's own, of what the step may have changed
                    file.unlink()
        self.forget()

    def forget(self) -> None:
        """Drop what the session remembers of logs."""
        self.jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def log(self, path: Path) -> Any:
        return self.jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.session._jsparkSession, str(path))

    def checkpoint(self, path: Path) -> None:
        self.log(path).checkpoint()

    # --- what a reader must find ---

    def state(self, path: Path) -> dict[str, Any]:
        """Return the latest snapshot as a record of the manifest has it."""
        from pyspark.sql import DataFrame

        self.forget()
        snapshot = self.log(path).unsafeVolatileSnapshot()
        metadata = snapshot.metadata()
        files = DataFrame(snapshot.allFiles().toDF(), self.session).select("path", "deletionVector", "stats").collect()
        return {
            "latest_version": snapshot.version(),
            "protocol": json.loads(snapshot.protocol().json())["protocol"],
            "partition_columns": [
                metadata.partitionColumns().apply(i) for i in range(metadata.partitionColumns().size())
            ],
            "column_mapping": _get(metadata.configuration(), "delta.columnMapping.mode") or "none",
            "schema": json.loads(metadata.schemaString()),
            "files": [(f.path, _vector_id(f.deletionVector), f.stats) for f in files],
            "txns": {t.appId(): t.version() for t in _items(snapshot.setTransactions())},
            "domain_metadata": {d.domain(): d.configuration() for d in _items(snapshot.domainMetadata())},
        }

    def rows(self, path: Path, version: int) -> list[str]:
        """Return the rows of a version in canonical form."""
        frame = self.session.read.format("delta").option("versionAsOf", version).load(str(path))
        log = self.log(path)
        defaults = [getattr(log, f"getSnapshotAt$default${n}")() for n in (2, 3, 4)]
        schema = json.loads(log.getSnapshotAt(version, *defaults).metadata().schemaString())
        return _canonical(frame, schema)

    def variants(self, path: Path, version: int) -> list[dict[str, Any]]:
        """Return the rows of a version, each variant that is not null as ``{"variant": what it holds}``."""
        from pyspark.sql import functions as F

        frame = self.session.read.format("delta").option("versionAsOf", version).load(str(path))
        names = {f.name for f in frame.schema.fields if f.dataType.typeName() == "variant"}
        texts = [F.when(F.col(n).isNotNull(), F.to_json(n)).alias(n) if n in names else F.col(n) for n in frame.columns]
        rows = frame.select(texts).toArrow().to_pylist()
        return [
            {n: {"variant": json.loads(v)} if n in names and v is not None else v for n, v in row.items()}
            for row in rows
        ]

    def changes(self, path: Path, start: int, end: int, schema: dict[str, Any]) -> list[str]:
        options = {"readChangeFeed": "true", "startingVersion": start, "endingVersion": end}
        frame = self.session.read.format("delta").options(**options).load(str(path))
        return _canonical(frame.drop("_commit_timestamp"), schema)


def _canonical(frame: Any, schema: dict[str, Any]) -> list[str]:
    if '"variant"' not in json.dumps(schema):
        return canonical_rows(frame.toArrow(), schema)
    # Arrow takes no null variant from Spark
    rows = [[_plain(v, f["type"]) for v, f in zip(row, schema["fields"], strict=True)] for row in frame.collect()]
    return sorted(json.dumps(row, separators=(",", ":")) for row in rows)


def _plain(value: Any, kind: Any) -> Any:
    """Return what represents a value beside variants: numbers, texts, and what holds them."""
    if value is None or isinstance(value, (int, str)):
        return value
    if kind == "variant":
        return [value.metadata.hex(), value.value.hex()]
    if kind["type"] == "array":
        return [_plain(v, kind["elementType"]) for v in value]
    if kind["type"] == "map":
        pairs = [[_plain(k, kind["keyType"]), _plain(v, kind["valueType"])] for k, v in value.items()]
        return sorted(pairs, key=json.dumps)
    return [_plain(v, f["type"]) for v, f in zip(value, kind["fields"], strict=True)]


def _vector_id(vector: Any) -> str:
    if vector is None:
        return ""
    offset = "" if vector.offset is None else f"@{vector.offset}"
    return f"{vector.storageType}{vector.pathOrInlineDv}{offset}"


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _get(options: Any, key: str) -> str | None:
    found = options.get(key)
    return found.get() if found.isDefined() else None
