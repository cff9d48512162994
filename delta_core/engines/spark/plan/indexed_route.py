"""The route of classic Spark: a file index in the driver, constants and vectors as hidden partition columns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F, types as T

from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.files import PlannedFiles, Rows
from delta_core.engines.spark.plan.handover import handed_file
from delta_core.engines.spark.plan.listing import FileListing
from delta_core.engines.spark.plan.names import SELECTED, VECTOR, constant_name
from delta_core.engines.spark.plan.pruning import FilterReader, SparkFilePruner
from delta_core.engines.spark.plan.splits import split_bytes
from delta_core.engines.spark.types import row_width, shown_schema, spark_schema, spark_type
from delta_core.errors import EngineError
from delta_core.kernel.scan.scan import Scan
from delta_core.kernels.arrow_buffers import int64_values
from delta_core.schema.types import StructType

__all__ = ["MOST_ROWS", "IndexedRelation", "VectorForm", "constant_schema", "internal_values", "read_indexed"]

#: A vector is one bit a row as long as that takes at most this many times the bytes of the log's own form.
_BITS_PER_STORED = 4
_SMALL = 64 << 20
#: Longer files than an int can count need the other route.
MOST_ROWS = 2**31 - 1


class IndexedRelation(NamedTuple):
    """The rows of a scan's files, as `relation` is to make them.

    Parameters
    ----------
    stored, logical : StructType
        The columns by the names that files have, and in parallel by those of the table.
    row : str
        The SQL name of a row's position.
    identity : str
        The same for every read of one version with the same options; empty if nothing reports.
    is_even : bool
        Whether Spark's tasks are made as `split_bytes` proposes.
    """

    scan: Scan
    stored: StructType
    logical: StructType
    row: str
    identity: str
    is_even: bool = False

    @property
    def shown(self) -> StructType:
        """The columns as plans name them: by the names of the files, the fields within them by those of the table."""
        return shown_schema(self.stored, self.logical)

    def make(
        self, spark: Any, vectors: VectorForm, kind: str, answer: Callable[[str], Any], split: int | None = None
    ) -> DataFrame:
        """Return the raw columns and constants of all rows that are not dropped.

        ``answer`` and ``split`` are the last arguments of `file_relation`.
        """
        scan, plan = self.scan, self.scan.plan
        state = scan.source.state
        by_id = plan.match == "id"
        if by_id:
            spark.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
        same = (self.identity, kind, vectors.columns, vectors.bits, plan.constants, plan.match, plan.pruning)
        out = private.file_relation(
            spark,
            scan.source.engine.storage.uri(""),
            spark_schema(self.shown, state.types),
            spark_schema(self.stored, state.types),
            constant_schema(scan, vectors),
            vector_columns=len(vectors.columns),
            by_field_id=by_id,
            table_width=row_width(state.schema),
            identity=sha256(repr(same).encode()).hexdigest() if self.identity else "",
            request=answer,
            split_bytes=split,
        )
        return vectors.apply(spark, out, self.row)


def read_indexed(spark: Any, relation: IndexedRelation, listing: FileListing) -> DataFrame:
    """Return the raw columns and constants of all rows that are not dropped."""
    scan = relation.scan
    vectors = _form(listing)
    pruner = SparkFilePruner(scan, listing.files, FilterReader(scan, relation.shown, relation.logical))

    def answer(request: str) -> str | None:
        action, _, rest = request.partition(" ")
        if action == "size":
            return str(listing.size())
        if action == "files":
            left = pruner(rest)
            return None if left is None else listing.write(left)
        return vectors.write(listing.rows([int(n) for n in rest.split()]), listing.path)

    split = None
    if relation.is_even:
        split = split_bytes(spark, int64_values(PlannedFiles(scan, listing.files).sizes()))
    return relation.make(spark, vectors, "listed", answer, split)


def constant_schema(scan: Scan, vectors: VectorForm) -> T.StructType:
    """Return the columns that are one value a file: those of the plan, and its vectors.

    A scan hands out all of them: a table that has none is read by the very plan that reads its plain files.
    """
    types = scan.source.state.types
    fields = [T.StructField(constant_name(i), spark_type(c.type, types)) for i, c in enumerate(scan.plan.constants)]
    return T.StructType(fields + [T.StructField(name, T.BinaryType()) for name in vectors.columns])


def internal_values(column: pa.Array) -> pa.Array:
    """Return values as Spark stores them inside a row: times as integers."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return pa.nulls(len(column), pa.int32()) if pa.types.is_null(column.type) else column


class VectorForm:
    """The form in which dropped and chosen rows reach Spark: loaded for the files of a query only.

    Parameters
    ----------
    columns : tuple of str
        The binary columns that hold them; none if no file has such rows.
    bits : int or None
        The bytes of the dropped rows at one bit a row, if known.
    stored : int
        Their bytes as the log has them.
    """

    def __init__(self, columns: tuple[str, ...], bits: int | None, stored: int) -> None:
        self.columns = columns
        self.bits: bool = bits is not None and bits <= max(_SMALL, _BITS_PER_STORED * stored)

    def apply(self, spark: Any, rows: DataFrame, row: str) -> DataFrame:
        """Return the rows that are left; ``row`` is the SQL name of a row's position."""
        if not self.columns:
            return rows
        position = F.expr(row)
        dropped = self._test(spark, F.col(VECTOR), position)
        out = rows.where(F.col(VECTOR).isNull() | ~dropped)
        if SELECTED in self.columns:
            is_selected = private.roaring_test(spark, F.col(SELECTED), position)
            out = out.where(F.col(SELECTED).isNull() | is_selected)
        return out

    def _test(self, spark: Any, vector: Column, row: Column) -> Column:
        return private.bit_test(spark, vector, row) if self.bits else private.roaring_test(spark, vector, row)

    def write(self, found: Iterable[Rows], path: Callable[[int], str]) -> str:
        """Write rows of files to a file for the driver, which deletes it, and return its name."""
        with handed_file("delta-vectors-") as out:
            for rows in found:
                data = self._encode(rows, path)
                out.write(struct.pack(">iii", rows.file, int(rows.keeps), len(data)))
                out.write(data)
            out.write(struct.pack(">i", -1))
        return out.name

    def _encode(self, rows: Rows, path: Callable[[int], str]) -> Any:
        last = rows.rows.max
        if last is not None and last >= MOST_ROWS:
            raise EngineError(
                f"Row {last} of file {path(rows.file)!r} is dropped: files that long are read with route='join' only.",
                path=path(rows.file),
            )
        if rows.keeps or not self.bits:
            return rows.rows.to_roaring(32)
        return rows.rows.bits(0 if last is None else last + 1).tobytes()


def _form(listing: FileListing) -> VectorForm:
    if not listing.has_vectors:
        return VectorForm((), None, 0)
    files = listing.marked
    return VectorForm((VECTOR, SELECTED) if files.keeps else (VECTOR,), files.bit_bytes(), files.stored_bytes())
