"""A scan's plan as a DataFrame: raw rows, then logical shape, then checks, then filter, then what was requested."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.expressions import check_zone, to_column
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.files import PlannedFiles
from delta_core.engines.spark.plan.indexed_route import MOST_ROWS, IndexedRelation, read_indexed
from delta_core.engines.spark.plan.joined_route import never, read_joined
from delta_core.engines.spark.plan.listing import FileListing
from delta_core.engines.spark.plan.names import ROW, column_name, constant_name
from delta_core.engines.spark.plan.replay import plan_replay
from delta_core.engines.spark.store_credentials import check_credentials
from delta_core.engines.spark.types import narrowed, raw_schema, renamed, reshape, shown_schema, spark_type
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.expressions import ast
from delta_core.expressions.ast import Expression, Leaf
from delta_core.kernel.plugins.rules import ReadCheck
from delta_core.kernel.scan.plan import Output, ReadPlan
from delta_core.kernel.scan.scan import Scan
from delta_core.scan.sources import ConstantSource, PhysicalSource, PositionSource, Source
from delta_core.schema.types import Field, PrimitiveType, StructType, arrow_to_type

__all__ = ["Route", "frame", "is_indexed"]

#: ``index``: a file index in the driver; ``join``: plain DataFrames; ``auto``: the first if it is available.
Route = Literal["auto", "index", "join"]

#: Bytes of vectors that a client of Spark Connect decodes and sends.
_CONNECT_BYTES = 16 << 20


def frame(
    spark: Any,
    scan: Scan,
    route: Route = "auto",
    vector_bytes: int | None = None,
    parallel_from: int | None = None,
    identity: str = "",
    *,
    is_even: bool = False,
) -> DataFrame:
    """Return the rows of a scan.

    Parameters
    ----------
    spark : SparkSession
        The session that reads the files.
    scan : Scan
        The files and columns to read.
    route : "auto", "index" or "join"
        How constants and vectors reach the rows; see docs/spark.md.
    identity : str
        The same for scans of the same version with the same options but columns; empty: this scan equals no other.
    parallel_from : int, optional
        How many actions a checkpoint must hold for a job of Spark to replay the log; the session's number unless given.
    is_even : bool
        Whether files are divided evenly among the cores (`split_bytes`), for an operation that waits for all of them.
    vector_bytes : int, optional
        The most bytes of deletion vectors, as they lie on disk, that the driver may hold; a sixteenth of its memory
        unless given. With more of them, executors read and decode them, and they are joined.

    Raises
    ------
    InvalidArgumentError
        If the route is not one of these.
    UnsupportedOperationError
        If PySpark is too old, or this session can't take the route "index", or a column hides a row's position.
    """
    private.check_version()
    if route not in ("auto", "index", "join"):
        raise InvalidArgumentError(f"Found route {route!r}, expected auto, index or join.")
    check_credentials(spark, scan.source.engine.storage)
    plan = scan.plan
    raw = raw_schema(plan.columns, plan.match)
    pairs = zip(plan.columns.members, plan.logical, strict=True)
    logical = StructType(Field(a.name, renamed(f.type, a.type)) for f, a in pairs)
    private.check_loads(spark, logical)
    most = _vector_bytes(spark, vector_bytes)
    if is_indexed(spark, route):
        stages = _Stages(spark, scan, shown_schema(raw, logical), logical)
        replay = plan_replay(spark, scan, parallel_from)
        if replay is not None and (route == "index" or _fits(replay.facts.largest, replay.facts.stored, most)):
            row = _row_index(raw, _needs_row(plan) or bool(replay.facts.num_vectors))
            rows = replay.read(IndexedRelation(scan, raw, logical, row, identity))
            return private.with_names(stages.build(rows, row, True))
        listing = FileListing(scan) if FileListing.is_possible(scan) else None
        if listing is not None and (route == "index" or _holds(listing, most)):
            row = _row_index(raw, _needs_row(plan) or listing.has_vectors)
            rows = read_indexed(spark, IndexedRelation(scan, raw, logical, row, identity, is_even), listing)
            return private.with_names(stages.build(rows, row, True))
    if route == "index":
        raise UnsupportedOperationError(
            "This session's driver can't be reached from Python (Spark Connect), or its version is not known, or files "
            "have constants of nested types: route='index' is not available. Leave the route to delta_core."
        )
    files = PlannedFiles(scan)
    row = _row_index(raw, _needs_row(plan) or bool(files.with_vector.any()))
    rows, row = read_joined(spark, scan, files, raw, row, most)
    return _Stages(spark, scan, raw, logical).build(rows, row)


def is_indexed(spark: Any, route: str) -> bool:
    """Whether a table without too many vectors is read through a file index."""
    return route != "join" and private.is_available(spark)


def _vector_bytes(spark: Any, given: int | None) -> int:
    if given is not None:
        return given
    return private.heap_bytes(spark) // 16 if private.is_available(spark) else _CONNECT_BYTES


def _holds(listing: FileListing, most: int) -> bool:
    """Whether the driver may hold the vectors of all files."""
    files = listing.marked
    return not listing.has_vectors or _fits(files.largest_file() or 0, files.stored_bytes(), most)


def _fits(largest: int, stored: int, most: int) -> bool:
    return largest <= MOST_ROWS and stored <= most


def _row_index(raw: StructType, needed: bool) -> str:
    """Return the SQL name of a row's position; a column of the table may hide it, which is rejected if it matters."""
    taken = next((f.name for f in raw.members if f.name.lower() == "_metadata"), None)
    if taken is not None and needed:
        raise UnsupportedOperationError(
            f"The table's files have a column {taken!r}, under which Spark reports a row's position, which this read "
            "needs. Read the table with engine 'arrow', or without that column.",
            column=taken,
        )
    return "_metadata.row_index"


def _needs_row(plan: ReadPlan) -> bool:
    used = [*plan.sources.values(), *(o.value for o in plan.outputs)]
    return bool(plan.checks) or any(isinstance(s, PositionSource) for s in used)


class _Stages:
    def __init__(self, spark: Any, scan: Scan, raw: StructType, logical: StructType) -> None:
        self._scan = scan
        self._plan: ReadPlan = scan.plan
        self._types = scan.source.state.types
        self._functions = scan.source.plugins.functions
        self._raw = raw
        self._logical = logical
        self._zone = str(spark.conf.get("spark.sql.session.timeZone"))

    def build(self, rows: DataFrame, row: str, in_driver: bool = False) -> DataFrame:
        """Return the rows as they were requested; ``in_driver``: its classes may help."""
        if not self._plan.checks and self._plan.filter is None:  # at once: each step takes Spark time to analyse
            below = [self._column_below(o) for o in self._plan.outputs]
            pairs = [(b, o.field.name) for b, o in zip(below, self._plan.outputs, strict=True) if b is not None]
            if in_driver and pairs and len(pairs) == len(below):
                return private.select(rows, pairs)
            direct = self._direct(row)
            if direct is not None:
                return rows.select(*direct)
        out = rows.select(*self._shaped(row))
        for check in self._plan.checks:
            out = out.where(self._check(check))
        if self._plan.filter is not None:
            out = out.where(self._expression(self._plan.filter, "a row filter"))
        return out.select(*[self._output(o) for o in self._plan.outputs])

    def _column_below(self, output: Output) -> str | None:
        """Return the name of the raw column or constant that an output is, None if it is more than that."""
        value = output.value
        if isinstance(value, ConstantSource):
            return None if value.index is None else constant_name(value.index)
        if not isinstance(value, PhysicalSource):
            return None
        raw, have = self._raw.members[value.index], self._logical.members[value.index].type
        return raw.name if raw.type == have == narrowed(have, output.field.type) else None

    def _direct(self, row: str) -> list[Column] | None:
        """Return the outputs over raw columns, None if there is more to do."""
        out = []
        for output in self._plan.outputs:
            name, value, below = output.field.name, output.value, self._column_below(output)
            if below is not None:
                out.append(_named(below) if below == name else _named(below).alias(name))
            elif isinstance(value, PhysicalSource):
                raw, have = self._raw.members[value.index], self._logical.members[value.index].type
                if narrowed(have, output.field.type) != have:
                    return None
                out.append(reshape(_named(raw.name), raw.type, have, self._types).alias(name))
            elif isinstance(value, (ConstantSource, PositionSource)):
                place = self._place_column(value, output.field.type)
                out.append((F.expr(row) if isinstance(value, PositionSource) else place).alias(name))
            else:
                return None
        return out

    def _shaped(self, row: str) -> list[Column]:
        pairs = enumerate(zip(self._raw.members, self._logical.members, strict=True))
        columns = [reshape(_named(a.name), a.type, b.type, self._types).alias(column_name(i)) for i, (a, b) in pairs]
        columns += [F.col(constant_name(i)) for i in range(len(self._plan.constants))]
        if _needs_row(self._plan):
            columns.append(F.expr(row).alias(ROW))
        return columns

    def _check(self, check: ReadCheck) -> Column:
        """Return a condition that fails on a bad row; it is not deterministic, so no filter runs before it."""
        passes = self._expression(check.expression, f"{check.feature} ({check.name})")
        text = F.concat(
            F.lit("delta_core: row "),
            F.col(ROW).cast("string"),
            F.lit(f" of a data file fails the check {check.name!r} of {check.feature}: {check.message}"),
        )
        return F.when(~passes & ~never(), F.raise_error(text)).otherwise(F.lit(True))

    def _output(self, output: Output) -> Column:
        name, value = output.field.name, output.value
        if isinstance(value, PhysicalSource):
            have = self._logical.members[value.index].type
            column = reshape(F.col(column_name(value.index)), have, narrowed(have, output.field.type), self._types)
        elif isinstance(value, (ConstantSource, PositionSource)):
            column = self._place_column(value, output.field.type)
        else:
            kind = spark_type(arrow_to_type(output.field.type), self._types)
            column = self._expression(value, f"column {name}").cast(kind)
        return column.alias(name)

    def _place_column(self, source: Source, kind: pa.DataType) -> Column:
        if isinstance(source, PositionSource):
            return F.col(ROW)
        assert isinstance(source, ConstantSource)
        if source.index is None:
            t = PrimitiveType("void") if pa.types.is_null(kind) else arrow_to_type(kind)
            return F.lit(None).cast(spark_type(t, self._types))
        return F.col(constant_name(source.index))

    # --- expressions -----------------------------------------------------------------------

    def _expression(self, expression: Expression, whose: str) -> Column:
        check_zone(expression, self._zone, whose)
        return to_column(expression, self._place, self._functions)

    def _place(self, leaf: Leaf) -> ast.Expression:
        source = self._plan.sources[leaf]
        if isinstance(source, PositionSource):
            return ast.Column((ROW,))
        if isinstance(source, ConstantSource):
            return ast.Literal(None) if source.index is None else ast.Column((constant_name(source.index),))
        names = [column_name(source.index)]
        current: Any = self._logical.members[source.index].type
        for number in source.path:
            names.append(current.members[number].name)
            current = current.members[number].type
        return ast.Column(tuple(names))


def _named(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
