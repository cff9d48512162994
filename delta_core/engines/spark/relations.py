"""Relations of the seam on Spark: DataFrames, whose rows never are in the driver's Python process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Literal, NoReturn

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.arrow import engine as arrow_engine
from delta_core.engines.engine import CommitDefaults, Engine
from delta_core.engines.interface import Relation
from delta_core.engines.spark.conditions import portable_definition
from delta_core.engines.spark.expressions import check_ansi, check_zone, to_column
from delta_core.engines.spark.failures import failing_as
from delta_core.engines.spark.order import ordered_rows
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.spread import spreading
from delta_core.engines.spark.store_credentials import check_credentials
from delta_core.engines.spark.write.files import FrameOptions, write_frame
from delta_core.engines.spark.write.rows import given_schema
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import InternalError, InvalidArgumentError, UnsupportedExpressionError, UnsupportedOperationError
from delta_core.expressions import ast
from delta_core.expressions.ast import Cast, Expression, Values, all_parts
from delta_core.expressions.plugin_functions import Function
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernels.row_set import RowSets
from delta_core.schema.fields import NOT_IN_NAMES, Path
from delta_core.schema.types import KNOWN_TYPES, PrimitiveType

__all__ = ["SparkRelation", "SparkRelations", "SparkRows", "bitmaps_of", "check_session", "row_sets", "spark_engine"]

#: Rows of a bitmap: what ``bitmap_construct_agg`` makes, a bit a row, least significant bit first.
_BITMAP_ROWS = 32_768
#: Files from which on more tasks than one read the rows that become one file.
_MANY_FILES = 64
#: Jobs that the driver runs at a time, a thread for each.
_MOST_JOBS = 64
_FILE, _PART, _BITS = "__delta_file", "__delta_part", "__delta_bits"
_TIMESTAMP = PrimitiveType("timestamp")
#: Functions of the time whose value is another one in another zone.
_OF_ZONE = ("current_date", "curdate", "localtimestamp")


def spark_engine(
    spark: Any,
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Any = None,
    files: FrameOptions | None = None,
) -> Engine:
    """Return an engine that reads and writes the log as the Arrow engine does, and rows with Spark alone.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    uri : str
        The table's root.
    storage_options : Mapping, optional
        For the log and the vectors; data files are read and written with what Hadoop is configured for.
    allow_external : sequence of str or False, optional
        As of `open_snapshot`.
    files : FrameOptions, optional
        How Spark writes files.
    """
    relations = SparkRelations(spark, files or FrameOptions())
    made = arrow_engine(uri, storage_options, allow_external)
    check_credentials(spark, made.storage)
    return replace(
        made,
        name="spark",
        relations=relations,
        spread=spreading(spark),
        remote_rows=SparkRows(spark),
        defaults=lambda: _commit_defaults(spark),
        committed=lambda: private.refresh_cached(spark, made.storage.uri("")),
        rejected_in_names=NOT_IN_NAMES,
    )


class SparkRelation(Struct, frozen=True):
    """Rows of a DataFrame.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    is_ordered : bool
        Whether they stay in their tasks when they are written.
    num_files : int
        How many files they are read of; 0 if that is not known.
    """

    frame: DataFrame
    is_ordered: bool = False
    num_files: int = 0

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows, every column nullable."""
        fields = given_schema(self.frame).members
        return pa.schema([pa.field(f.name, arrow_type(f.type, KNOWN_TYPES)) for f in fields])


class SparkRelations:
    """Relations of a Spark session.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    files : FrameOptions
        How Spark writes files.
    """

    def __init__(self, spark: Any, files: FrameOptions) -> None:
        self._spark, self._files = spark, files

    @property
    def num_tasks(self) -> int:
        """The cores of all executors: a job of one task writes some files."""
        is_known = private.is_available(self._spark)
        return min(int(self._spark.sparkContext.defaultParallelism), _MOST_JOBS) if is_known else 1

    def scan(self, scan: Scan) -> SparkRelation:
        """Return the rows of a planned scan."""
        return SparkRelation(frame(self._spark, scan, is_even=True), num_files=scan.file_set.count)

    def from_arrow(self, rows: pa.RecordBatchReader | pa.Table) -> NoReturn:
        """Reject rows that are in this process.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise _outside(f"rows of {type(rows).__name__} were to be written")

    def filter(
        self, relation: Relation, predicate: Expression, functions: Mapping[str, Function] | None = None
    ) -> SparkRelation:
        """Keep the rows for which a predicate is true."""
        kept = _frame(relation).where(self._column(predicate, functions))
        return SparkRelation(kept, num_files=_own(relation).num_files)

    def select(
        self,
        relation: Relation,
        columns: Sequence[tuple[str, Expression]],
        functions: Mapping[str, Function] | None = None,
    ) -> SparkRelation:
        """Compute columns, in order."""
        made = [self._column(e, functions).alias(name) for name, e in columns]
        return SparkRelation(_frame(relation).select(*made), num_files=_own(relation).num_files)

    def union(self, relations: Sequence[Relation]) -> SparkRelation:
        """Return the rows of all."""
        return SparkRelation(reduce(DataFrame.unionByName, map(_frame, relations)))

    def stream(self, relation: Relation) -> NoReturn:
        """Reject: rows would be in this process.

        Raises
        ------
        UnsupportedOperationError
            Always.
        """
        raise _outside(f"rows of {type(relation).__name__} were to be read in it")

    def order(
        self,
        relation: Relation,
        columns: Sequence[Path],
        order: Literal["zorder", "hilbert", "linear"],
        num_files: int,
        num_rows: int,
    ) -> SparkRelation:
        """Return rows in another order, a task for each file."""
        return SparkRelation(ordered_rows(_frame(relation), columns, order, num_files, num_rows), is_ordered=True)

    def positions(self, relation: Relation, num_files: int, found: Callable[[int], None]) -> RowSets:
        """Collect positions: executors make bitmaps of them."""
        rows = _frame(relation)
        with failing_as("The Spark job that looks for rows failed"):
            table = bitmaps_of(rows, *rows.columns).toArrow()
        sets = row_sets(table, num_files)
        found(int(sets.cardinalities().sum()))
        return sets

    def write(
        self,
        engine: Engine,
        plan: WritePlan,
        relation: Relation,
        *,
        origin: Origin,
        data_change: bool = True,
        properties: WriterProperties | None = None,
        task_index: int = 0,
        num_tasks: int = 1,
        in_order: bool = False,
        target_size: int | None = None,
        observe: Any = None,
        syncs: Any = None,
    ) -> Written:
        """Write rows in one Spark job; those in order become one file of each partition. ``observe`` sees none of them.

        Raises
        ------
        InvalidArgumentError
            For writer properties, or rows that are numbered across several writes.
        """
        del observe, target_size, syncs
        if properties is not None or (task_index, num_tasks) != (0, 1):
            raise InvalidArgumentError(
                "Spark's writer takes no writer properties, and writes rows of one transaction at once."
            )
        own, rows, options = _own(relation), _frame(relation), self._files
        if in_order or own.is_ordered:
            options = replace(options, optimize=False)
        if in_order and not own.is_ordered:
            # to open many small files takes longer than to shuffle their rows
            rows = rows.repartition(1) if own.num_files > _MANY_FILES else rows.coalesce(1)
        return write_frame(self._spark, engine, plan, rows, options, data_change=data_change, origin=origin)

    def _column(self, expression: Expression, functions: Mapping[str, Function] | None) -> Any:
        return to_column(expression, lambda leaf: leaf, functions or {}, strict_in=self._spark)


class SparkRows:
    """Facts about rows that executors find.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def count(self, scan: Scan) -> int:
        """Return the number of rows of a planned scan."""
        found = int(self._of(scan, F.count("*"))[0]) if scan.file_set.count else 0
        return found if scan.plan.limit is None else min(found, scan.plan.limit)

    def first(self, scan: Scan) -> dict[str, Any] | None:
        """Return one row of a planned scan, None if it has none."""
        rows = self._frame(scan).limit(1)
        with failing_as("The Spark job that looks for a row failed"):
            found: list[dict[str, Any]] = rows.toArrow().to_pylist()
        return found[0] if found else None

    def bounds(self, scan: Scan) -> tuple[Any, Any]:
        """Return the least and the greatest value of a planned scan of one column."""
        column = F.col(quote_name(scan.schema.names[0]))
        return tuple(self._of(scan, F.min(column), F.max(column)))

    def _of(self, scan: Scan, *aggregates: Column) -> Any:
        rows = self._frame(scan).agg(*aggregates)
        with failing_as("The Spark job that looks at rows failed"):
            return rows.collect()[0]

    def _frame(self, scan: Scan) -> DataFrame:
        if scan.predicate is not None:
            check_session(scan.predicate, self._spark)
        return frame(self._spark, scan, is_even=True)


def bitmaps_of(rows: DataFrame, file: str, row: str, *by: str) -> DataFrame:
    """Return the positions of rows as bitmaps: number of a file, of a part of it, bitmap, count of rows, ``by``.

    Parameters
    ----------
    rows : DataFrame
        The rows.
    file, row : str
        The columns, not null, of a file's number and a row's position.
    *by : str
        Columns whose values have bitmaps of their own.
    """
    place = F.col(quote_name(row))
    marked = rows.select(
        F.col(quote_name(file)).alias(_FILE),
        F.shiftright(place, _BITMAP_ROWS.bit_length() - 1).alias(_PART),
        place.bitwiseAND(F.lit(_BITMAP_ROWS - 1).cast("bigint")).alias(_BITS),
        *by,
    )
    made = marked.groupBy(_FILE, _PART, *by).agg(
        F.bitmap_construct_agg(_BITS).alias(_BITS), F.count("*").alias("count")
    )
    return made.select(_FILE, _PART, _BITS, "count", *by)


def row_sets(bitmaps: pa.Table, num_files: int) -> RowSets:
    """Return the rows of bitmaps.

    Parameters
    ----------
    bitmaps : pyarrow.Table
        First the number of a file, the number of a part of it, and the bitmap of the part's rows; as `bitmaps_of` makes
        them.
    num_files : int
        How many files there are.
    """
    sets = RowSets.from_positions(num_files, np.empty(0, np.int64), np.empty(0, np.int64))
    for batch in bitmaps.to_batches(max_chunksize=1024):
        files, parts, bits = batch.columns[:3]
        words = np.frombuffer(b"".join(bits.to_pylist()), np.uint8).reshape(batch.num_rows, -1)
        bitmap, position = np.nonzero(np.unpackbits(words, axis=1, bitorder="little"))
        numbers, starts = files.to_numpy(), parts.to_numpy() * _BITMAP_ROWS
        sets |= RowSets.from_positions(num_files, numbers[bitmap], starts[bitmap] + position)
    return sets


def check_session(expression: Expression, spark: Any, *given: Expression) -> None:
    """Reject a bound expression whose meaning would depend on the session's time zone, or on its lack of ANSI mode.

    Times in texts are in UTC for the library and in the session's zone for Spark; so are the current date and wall
    clock, which are constants of a bound expression and only seen in those that were given.

    Raises
    ------
    UnsupportedExpressionError
        For such an expression, unless the zone is UTC and the mode is on.
    """
    check_ansi(expression, str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true")
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    check_zone(expression, zone, "this operation")
    if zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT"):
        return
    now = [p for e in (expression, *given) for p in all_parts(e) if _name_of(p) in _OF_ZONE]
    if now or any(isinstance(p, (ast.Literal, Values, Cast)) and p.type == _TIMESTAMP for p in all_parts(expression)):
        raise UnsupportedExpressionError(
            f"The expression {format_sql(expression)} has a time, which means UTC here and {zone} in this session. "
            "Set spark.sql.session.timeZone to UTC.",
            feature="",
        )


def _name_of(part: Expression) -> str:
    """Return the name of a function without arguments, which SQL also writes as the name of a column."""
    if isinstance(part, ast.Column) and len(part.path) == 1:
        return part.path[0].lower()
    return part.function if isinstance(part, ast.Call) and not part.args else ""


def _commit_defaults(spark: Any) -> CommitDefaults:
    found = session_settings(spark).commit_defaults
    return replace(found, properties=portable_definition(spark, found.properties)[0]) if found.properties else found


def _own(relation: Relation) -> SparkRelation:
    if not isinstance(relation, SparkRelation):
        raise InternalError(f"Found a relation of another engine ({type(relation).__name__}).")
    return relation


def _frame(relation: Relation) -> DataFrame:
    return _own(relation).frame


def _outside(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"On Spark, rows of a table are never in the driver's Python process, but {what}. Run this operation with "
        "delta_core.DeltaTable."
    )
