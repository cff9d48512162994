"""Steps that delta-spark's tables are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

DV = "delta.enableDeletionVectors=true"
CDF = "delta.enableChangeDataFeed=true"
NAME = "delta.columnMapping.mode=name"
ID = "delta.columnMapping.mode=id"
V2 = "delta.checkpointPolicy=v2"
ROW_TRACKING = "delta.enableRowTracking=true"
WIDENING = "delta.enableTypeWidening=true"
CRC = {"spark.databricks.delta.writeChecksumFile.enabled": "true"}
CONF = "spark.databricks.delta."


def create(columns: str, *properties: str, tail: str = "") -> str:
    """Return the statement that creates the table; properties as ``key=value``, or the name of a feature."""
    pairs = [p.split("=", 1) if "=" in p else [f"delta.feature.{p}", "supported"] for p in properties]
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in pairs)
    return f"CREATE TABLE {{t}} ({columns}) USING delta {tail}" + (f" TBLPROPERTIES ({listed})" if listed else "")


def insert(*rows: str) -> str:
    return f"INSERT INTO {{t}} VALUES {', '.join(rows)}"


def fill(query: str, start: int, end: int, files: int = 1) -> str:
    """Append a query over the ids of a range, in some files."""
    return f"INSERT INTO {{t}} SELECT {query} FROM range({start}, {end}, 1, {files})"


def merge(ids: str, *clauses: str) -> str:
    """Merge a query of ids, as ``s``, into the table, as ``t``."""
    return f"MERGE INTO {{t}} t USING ({ids}) s ON t.id = s.id " + " ".join(f"WHEN {clause}" for clause in clauses)


def set_properties(*properties: str) -> str:
    return (
        f"ALTER TABLE {{t}} SET TBLPROPERTIES ({', '.join('{!r} = {!r}'.format(*p.split('=', 1)) for p in properties)})"
    )


def checkpoint(spark: Any, path: Path) -> None:
    spark.checkpoint(path)


# --- changes of what lies on disk ----------------------------------------------------------


def log_file(path: Path, name: str) -> Path:
    return path / "_delta_log" / name


def commit_file(path: Path, version: int) -> Path:
    return log_file(path, f"{version:020}.json")


def without(*patterns: str) -> Callable[[Any, Path], None]:
    """Remove files, by patterns below the table."""

    def step(spark: Any, path: Path) -> None:
        for pattern in patterns:
            found = list(path.glob(pattern))
            assert found, pattern
            for file in found:
                file.unlink()

    return step


def replaced(name: str, pattern: str, text: str) -> Callable[[Any, Path], None]:
    """Replace what a regular expression finds in a file of the log."""

    def step(spark: Any, path: Path) -> None:
        file = log_file(path, name)
        before = file.read_text()
        after = re.sub(pattern, lambda _: text, before, flags=re.DOTALL)
        assert after != before
        file.write_text(after)

    return step


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commit_file(path, version).read_text().splitlines()]


def write_commit(path: Path, version: int, found: list[dict[str, Any]]) -> None:
    commit_file(path, version).write_text("".join(json.dumps(a, separators=(",", ":")) + "\n" for a in found))


def commit(version: int, change: Callable[[Path], list[dict[str, Any]]]) -> Callable[[Any, Path], None]:
    """Write a commit of actions that a function returns."""
    info = {"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE", "operationParameters": {}}}
    return lambda spark, path: write_commit(path, version, [info, *change(path)])


def inline_vector(path: Path) -> list[dict[str, Any]]:
    """Return a commit that returns the file of commit 1 a vector in the log itself: its rows 3, 4, 7, 11, 18 and 29."""
    [add] = [a["add"] for a in actions(path, 1) if "add" in a]
    vector = {"storageType": "i", "sizeInBytes": 44, "cardinality": 6}
    vector["pathOrInlineDv"] = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    removed = {"path": add["path"], "deletionTimestamp": add["modificationTime"], "dataChange": True}
    return [{"remove": removed}, {"add": {**add, "deletionVector": vector}}]


def classic_name(spark: Any, path: Path) -> None:
    """Return the only checkpoint of form V2 the name of a classic one."""
    [file] = log_file(path, "").glob("*.checkpoint.*.parquet")
    file.rename(file.with_name(file.name.split(".")[0] + ".checkpoint.parquet"))
    log_file(path, "_last_checkpoint").unlink()


def compacted(start: int, end: int) -> Callable[[Any, Path], None]:
    """Compact commits into one file, with Delta's own kernel."""

    def step(spark: Any, path: Path) -> None:
        hadoop = spark.session.sparkContext._jsc.hadoopConfiguration()
        engine = spark.jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(hadoop)
        to_path = spark.jvm.io.delta.kernel.internal.fs.Path
        root = f"file:{path}"
        hook = spark.jvm.io.delta.kernel.internal.hook.LogCompactionHook
        hook(to_path(root), to_path(f"{root}/_delta_log"), start, end, 0).threadSafeInvoke(engine)
        assert list(log_file(path, "").glob("*.compacted.json"))

    return step


def clone_of(source: str) -> Callable[[Any, Path], None]:
    """Clone another table without its data, and leave no checkpoint: paths in the log can then be changed as text."""

    def step(spark: Any, path: Path) -> None:
        spark.session.sql(f"CREATE TABLE delta.`{path}` SHALLOW CLONE delta.`{path.parent / source}`")
        without("_delta_log/*.checkpoint.parquet", "_delta_log/_last_checkpoint")(spark, path)

    return step


# --- streaming, tables made with Python ----------------------------------------------------


def transaction(app: str, number: int, query: str) -> Callable[[Any, Path], None]:
    def step(spark: Any, path: Path) -> None:
        options = {"txnAppId": app, "txnVersion": number}
        spark.session.sql(query).write.format("delta").mode("append").options(**options).save(str(path))

    return step


def written(
    query: str, mode: str = "append", partition_by: tuple[str, ...] = (), **options: str
) -> Callable[[Any, Path], None]:
    def step(spark: Any, path: Path) -> None:
        writer = spark.session.sql(query).write.format("delta").mode(mode).options(**options)
        (writer.partitionBy(*partition_by) if partition_by else writer).save(str(path))

    return step


def built(**columns: Any) -> Callable[[Any, Path], None]:
    """Create a table with columns ``name=(type, options)``; `identity` represents a generator (start, step, always)."""

    def step(spark: Any, path: Path) -> None:
        from delta.tables import DeltaTable, IdentityGenerator

        builder = DeltaTable.create(spark.session).location(str(path))
        for name, (kind, options) in columns.items():
            if "identity" in options:
                start, step, always = options["identity"]
                key = "generatedAlwaysAs" if always else "generatedByDefaultAs"
                builder = builder.addColumn(name, kind, **{key: IdentityGenerator(start=start, step=step)})
            else:
                builder = builder.addColumn(name, kind, **{k: v for k, v in options.items() if k != "partition"})
        partitions = [n for n, (_, options) in columns.items() if options.get("partition")]
        (builder.partitionedBy(*partitions) if partitions else builder).execute()

    return step


def with_invariant(spark: Any, path: Path) -> None:
    """Append rows of a column with an invariant in its metadata, as writers of protocol version 2 have them."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    condition = {"delta.invariants": json.dumps({"expression": {"expression": "low < 99"}})}
    schema = StructType([StructField("id", IntegerType(), False), StructField("low", IntegerType(), True, condition)])
    spark.session.createDataFrame([(1, 2), (2, 5)], schema).write.format("delta").save(str(path))


# --- what several tables have ---------------------------------------------------------------

FILL = "CAST(id AS INT) AS id, CONCAT('v', id) AS v"
BASE = [create("id INT, v STRING"), fill(FILL, 0, 3)]
BOTH_STATS = ("delta.checkpoint.writeStatsAsJson=true", "delta.checkpoint.writeStatsAsStruct=true")
