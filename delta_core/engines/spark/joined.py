"""The route of plain DataFrames: constants and vectors are joined to the rows. It serves Spark Connect.

Vectors come as bitmaps of 4096 rows each: what a join needs of them stays small, however large a file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from delta_core.engines.spark.files import PlannedFiles, Rows
from delta_core.engines.spark.names import FILE, WANTED, constant_name
from delta_core.engines.spark.types import spark_schema, spark_type
from delta_core.errors import EngineError
from delta_core.scan.scan import Scan
from delta_core.types import StructType

__all__ = ["chunk_table", "never", "read_joined"]

_KEY, _CHUNK, _WORDS, _INDEX = "__delta_key", "__delta_chunk", "__delta_words", "__delta_index"
_CHUNK_ROWS = 4096


def never() -> Column:
    """Return false, in a form that keeps a condition where it stands and is evaluated for each row."""
    return F.spark_partition_id() < 0


def read_joined(spark: Any, scan: Scan, files: PlannedFiles, raw: StructType, row: str) -> tuple[DataFrame, str]:
    """Return the raw columns and constants of all rows that are not dropped, and the name of a row's position now."""
    types, plan = scan.source.state.types, scan.plan
    schema = spark_schema(raw, types)
    constants = [T.StructField(constant_name(i), spark_type(c.type, types)) for i, c in enumerate(plan.constants)]
    if plan.match == "id":
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    if not len(files):
        fields = [*schema.fields, *constants, T.StructField(_INDEX, T.LongType())]
        return spark.createDataFrame([], T.StructType(fields)), _INDEX
    places = list(dict.fromkeys(files.places))
    reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
    reader = reader.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
    rows = reader.parquet(*map(_escape, places))
    has_vectors = bool(files.with_vector.any())
    if not constants and not has_vectors:
        return rows, row
    listing = spark.createDataFrame(_listing(scan, files, _keys(rows, places)), _listing_schema(constants, files))
    joined = rows.withColumn(_KEY, F.col("_metadata.file_path")).withColumn(_INDEX, F.expr(row))
    joined = joined.join(F.broadcast(listing), _KEY, "left")
    lost = F.raise_error(F.concat(F.lit("delta_core: no file of the table is named "), F.col(_KEY)))
    joined = joined.where(F.when(F.col(FILE).isNull() & ~never(), lost).otherwise(F.lit(True)))
    if has_vectors:
        joined = _without_dropped(spark, joined, files)
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
    flag = [T.StructField(WANTED, T.BooleanType())] if files.keeps else []
    fixed = [T.StructField(_KEY, T.StringType()), T.StructField(FILE, T.IntegerType())]
    return T.StructType([*fixed, *constants, *flag])


def _listing(scan: Scan, files: PlannedFiles, keys: dict[str, str]) -> pa.Table:
    columns = {
        _KEY: pa.array([keys[p] for p in files.places], pa.string()),
        FILE: pa.array(np.arange(len(files), dtype=np.int32)),
    }
    for i, leaf in enumerate(scan.plan.constants):
        columns[constant_name(i)] = files.constant(leaf)
    if files.keeps:
        keep = files.files.keep or {}
        columns[WANTED] = pa.array([i in keep for i in range(len(files))])
    return pa.table(columns)


def _without_dropped(spark: Any, rows: DataFrame, files: PlannedFiles) -> DataFrame:
    chunks = spark.createDataFrame(chunk_table(files.rows()), f"{_CHUNK} bigint, {_WORDS} array<bigint>")
    position = F.col(_INDEX)
    key = F.shiftleft(F.col(FILE).cast("long"), 32) + F.shiftright(position, 12)
    joined = rows.withColumn(_CHUNK, key).join(F.broadcast(chunks), _CHUNK, "left")
    word = F.get(F.col(_WORDS), (F.shiftright(position, 6).bitwiseAND(63)).cast("int"))
    hit = F.col(_WORDS).isNotNull() & (F.bit_get(word, position.bitwiseAND(63).cast("int")) == 1)
    return joined.where(F.when(F.col(WANTED), hit).otherwise(~hit) if files.keeps else ~hit)


def chunk_table(found: Iterable[Rows]) -> pa.Table:
    """Return rows as bitmaps: key = file << 32 | chunk, words = int64[64], least significant bit first."""
    keys, words = [np.empty(0, np.int64)], [np.empty((0, _CHUNK_ROWS // 64), np.uint64)]
    for rows in found:
        index, bits = rows.rows.chunks(_CHUNK_ROWS)
        keys.append((np.int64(rows.file) << 32) + index)
        words.append(bits)
    flat = np.concatenate(words)
    values = pa.array(flat.reshape(-1).view(np.int64))
    offsets = pa.array(np.arange(0, flat.size + 1, flat.shape[1], dtype=np.int32))
    return pa.table({_CHUNK: pa.array(np.concatenate(keys)), _WORDS: pa.ListArray.from_arrays(offsets, values)})
