"""The route of plain DataFrames: constants and vectors are joined to the rows. It serves Spark Connect.

Vectors come as bitmaps of 4096 rows each: what a join needs of them stays small, however large a file is.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F, types as T

from delta_core.engines.spark.failures import names_root
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.files import PlannedFiles, hadoop_path, root_of
from delta_core.engines.spark.plan.names import FILE, SELECTED, constant_name
from delta_core.engines.spark.plan.vectors import CHUNK, CHUNK_SCHEMA, WORDS, chunk_table, vector_decoders
from delta_core.engines.spark.types import spark_schema, spark_type
from delta_core.errors import EngineError
from delta_core.kernel.scan.scan import Scan
from delta_core.schema.types import StructType

__all__ = ["never", "read_joined"]

_KEY, _INDEX = "__delta_key", "__delta_index"
#: Vectors that one task decodes.
_TASK_VECTORS = 512


def never() -> Column:
    """Return false, in a form that keeps a condition at its place, which is evaluated for each row."""
    return F.spark_partition_id() < 0


def read_joined(
    spark: Any, scan: Scan, files: PlannedFiles, raw: StructType, row: str, most: int
) -> tuple[DataFrame, str]:
    """Return the raw columns and constants of all rows that are not dropped, and the name of a row's position now.

    Parameters
    ----------
    spark : SparkSession
        The session that reads the files.
    scan : Scan
        The files and columns to read.
    files : PlannedFiles
        The files of the scan, loaded.
    raw : StructType
        The columns as files hold them.
    row : str
        The SQL name of a row's position within its file.
    most : int
        Bytes of vectors that this process may decode; with more, executors do it.
    """
    types, plan = scan.source.state.types, scan.plan
    schema = spark_schema(raw, types)
    constants = [T.StructField(constant_name(i), spark_type(c.type, types)) for i, c in enumerate(plan.constants)]
    names_root(hadoop_path(root_of(scan.source.engine.storage.uri)))
    if plan.match == "id":
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    if not len(files):
        fields = [*schema.fields, *constants, T.StructField(_INDEX, T.LongType())]
        return spark.createDataFrame([], T.StructType(fields)), _INDEX
    files.check_stored()
    everything: list[str] = files.hadoop_paths().to_pylist()
    places = list(dict.fromkeys(everything))
    reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
    reader = reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
    rows = reader.parquet(*map(_escape, places))
    has_vectors = bool(files.with_vector.any())
    if not constants and not has_vectors:
        return rows, row
    table = _listing(scan, files, _keys(rows, places), everything)
    listing = spark.createDataFrame(table, _listing_schema(constants, files))
    joined = rows.withColumn(_KEY, F.col("_metadata.file_path")).withColumn(_INDEX, F.expr(row))
    joined = joined.join(F.broadcast(listing), _KEY, "left")
    lost = F.raise_error(F.concat(F.lit("delta_core: no file of the table is named "), F.col(_KEY)))
    joined = joined.where(F.when(F.col(FILE).isNull() & ~never(), lost).otherwise(F.lit(True)))
    if has_vectors:
        joined = _without_dropped(joined, _chunks(spark, scan, files, most), files.keeps)
    return joined, _INDEX


def _escape(place: str) -> str:
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", place)


def _keys(rows: DataFrame, places: list[str]) -> dict[str, str]:
    """Return how Spark spells each place in ``_metadata.file_path``, by place as we do."""
    found = {}
    for uri in rows.inputFiles():
        spelled = re.sub(r"^file:/+", "file:/", uri)
        found[unquote(spelled, errors="surrogateescape")] = spelled
    lost = [p for p in places if p not in found]
    if lost:
        raise EngineError(f"Spark names none of its {len(found)} files {lost[0]!r}, a file of the table.", path=lost[0])
    return found


def _listing_schema(constants: list[Any], files: PlannedFiles) -> T.StructType:
    flag = [T.StructField(SELECTED, T.BooleanType())] if files.keeps else []
    fixed = [T.StructField(_KEY, T.StringType()), T.StructField(FILE, T.IntegerType())]
    return T.StructType([*fixed, *constants, *flag])


def _listing(scan: Scan, files: PlannedFiles, keys: dict[str, str], places: list[str]) -> pa.Table:
    columns = {
        _KEY: pa.array([keys[p] for p in places], pa.string()),
        FILE: pa.array(np.arange(len(files), dtype=np.int32)),
    }
    for i, leaf in enumerate(scan.plan.constants):
        columns[constant_name(i)] = files.constant(leaf)
    if files.keeps:
        keep = files.files.keep or {}
        columns[SELECTED] = pa.array([i in keep for i in range(len(files))])
    return pa.table(columns)


def _without_dropped(rows: DataFrame, chunks: DataFrame, keeps: bool) -> DataFrame:
    position = F.col(_INDEX)
    key = F.shiftleft(F.col(FILE).cast("long"), 32) + F.shiftright(position, 12)
    joined = rows.withColumn(CHUNK, key).join(chunks, CHUNK, "left")
    word = F.get(F.col(WORDS), (F.shiftright(position, 6).bitwiseAND(63)).cast("int"))
    hit = F.col(WORDS).isNotNull() & (F.bit_get(word, position.bitwiseAND(63).cast("int")) == 1)
    return joined.where(F.when(F.col(SELECTED), hit).otherwise(~hit) if keeps else ~hit)


def _chunks(spark: Any, scan: Scan, files: PlannedFiles, most: int) -> DataFrame:
    """Return the vectors' chunks: decoded here and broadcast, or by executors and joined as Spark likes."""
    if files.stored_bytes() <= most:
        return F.broadcast(spark.createDataFrame(chunk_table(files.rows()), CHUNK_SCHEMA))
    # selectors that choose rows are loaded already; those that drop them is read if there is room
    chosen = sorted(files.files.keep or {})
    here = spark.createDataFrame(chunk_table(files.rows(chosen)), CHUNK_SCHEMA)
    parts = [here]
    for decoder, located in vector_decoders(scan, files, chosen):
        listed = spark.createDataFrame(located)
        tasks = located.num_rows // _TASK_VECTORS + 1
        with private.own_python(spark):
            parts.append(listed.repartition(tasks).mapInArrow(decoder, CHUNK_SCHEMA))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    # two vectors of one file may meet in a chunk; the checkpoint keeps Python out of the plan of rows
    return _merged(whole).localCheckpoint() if len(parts) > 2 else whole.localCheckpoint()


def _merged(chunks: DataFrame) -> DataFrame:
    united = "transform(sequence(0, 63), i -> aggregate(all, 0L, (a, w) -> a | w[i]))"
    return chunks.groupBy(CHUNK).agg(F.collect_list(WORDS).alias("all")).select(CHUNK, F.expr(united).alias(WORDS))
