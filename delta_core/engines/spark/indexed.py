"""The route of classic Spark: a file index in the driver, constants and vectors as hidden partition columns."""

from __future__ import annotations

import os
import struct
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from delta_core.engines.spark import private
from delta_core.engines.spark.files import PlannedFiles, Rows
from delta_core.engines.spark.names import FILE, VECTOR, WANTED, constant_name
from delta_core.engines.spark.pruning import FilePruner
from delta_core.engines.spark.types import spark_schema, spark_type
from delta_core.errors import EngineError
from delta_core.scan.scan import Scan
from delta_core.types import DataType, StructType

__all__ = ["read_indexed"]

#: A vector is one bit a row as long as that takes no more than so many times what the log's own form takes.
_BITS_PER_STORED = 4
_SMALL = 64 << 20
#: Longer files than an int can count need the other route.
MOST_ROWS = 2**31 - 1


def read_indexed(spark: Any, scan: Scan, files: PlannedFiles, raw: StructType, logical: StructType, row: str) -> DataFrame:
    """Return the raw columns and constants of all rows that are not dropped.

    Parameters
    ----------
    row : str
        The SQL name of a row's position.
    """
    types, plan = scan.source.state.types, scan.plan
    vectors = _Vectors(files)
    fields = [T.StructField(constant_name(i), spark_type(leaf.type, types)) for i, leaf in enumerate(plan.constants)]
    fields.append(T.StructField(FILE, T.IntegerType(), False))
    fields += [T.StructField(name, T.BinaryType()) for name in vectors.columns]
    pruner = FilePruner(scan, files.files, raw, logical)

    def ask(request: str) -> Any:
        verb, _, rest = request.partition(" ")
        return pruner(rest) if verb == "prune" else vectors.write([int(n) for n in rest.split()])

    listed = spark.createDataFrame(_listing(scan, files))
    by_id = plan.match == "id"
    if by_id:
        spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    out = private.file_relation(
        spark, scan.source.engine.storage.uri(""), spark_schema(raw, types), T.StructType(fields), listed,
        vector_columns=len(vectors.columns), by_field_id=by_id, ask=ask,
    )  # fmt: skip
    return vectors.apply(spark, out, row)


def _listing(scan: Scan, files: PlannedFiles) -> pa.Table:
    count = len(files)
    columns: dict[str, pa.Array] = {
        "path": files.hadoop_paths(), "size": files.sizes(),
        "modified": pa.array(np.zeros(count, np.int64)), "vector": pa.array(files.with_vector),
    }
    for i, leaf in enumerate(scan.plan.constants):
        columns[constant_name(i)] = _held(files.constant(leaf), leaf.type)
    columns[FILE] = pa.array(np.arange(count, dtype=np.int32))
    return pa.table(columns)


def _held(column: pa.Array, t: DataType) -> pa.Array:
    """Return values as Spark holds them inside a row: times as integers."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return pa.nulls(len(column), pa.int32()) if pa.types.is_null(column.type) else column


class _Vectors:
    """The form in which dropped and chosen rows reach Spark: loaded for the files of a query only."""

    def __init__(self, files: PlannedFiles) -> None:
        self._files = files
        self.columns: tuple[str, ...] = ()
        self._bits = False
        if files.with_vector.any():
            self.columns = (VECTOR, WANTED) if files.keeps else (VECTOR,)
            size = files.bit_bytes()
            self._bits = size is not None and size <= max(_SMALL, _BITS_PER_STORED * files.stored_bytes())

    def apply(self, spark: Any, rows: DataFrame, row: str) -> DataFrame:
        """Return the rows that are left."""
        if not self.columns:
            return rows
        position = F.expr(row)
        dropped = self._test(spark, F.col(VECTOR), position)
        out = rows.where(F.col(VECTOR).isNull() | ~dropped)
        if WANTED in self.columns:
            wanted = private.roaring_test(spark, F.col(WANTED), position)
            out = out.where(F.col(WANTED).isNull() | wanted)
        return out

    def _test(self, spark: Any, vector: Column, row: Column) -> Column:
        return private.bit_test(spark, vector, row) if self._bits else private.roaring_test(spark, vector, row)

    def write(self, numbers: list[int]) -> str:
        """Write the vectors of some files to a file for the driver, which deletes it, and return its name."""
        handle, name = tempfile.mkstemp(prefix="delta-vectors-")
        with os.fdopen(handle, "wb") as out:
            for rows in self._files.rows(numbers):
                data = self._encode(rows)
                out.write(struct.pack(">iii", rows.file, int(rows.keeps), len(data)))
                out.write(data)
            out.write(struct.pack(">i", -1))
        return name

    def _encode(self, rows: Rows) -> Any:
        last = rows.rows.max
        if last is not None and last >= MOST_ROWS:
            raise EngineError(
                f"Row {last} of file {self._files.path(rows.file)!r} is dropped: files that long are read with "
                "route='join' only.", path=self._files.path(rows.file),
            )  # fmt: skip
        if rows.keeps or not self._bits:
            return rows.rows.to_roaring(32)
        return rows.rows.bits(0 if last is None else last + 1).tobytes()
