"""Rows as users pass them to physical rows: `write.apply` as Spark's expressions, all in the job that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.engine import Engine
from delta_core.engines.spark.expressions import check_zone, to_column
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.joined_route import never
from delta_core.engines.spark.settings import PLAIN_CHARS
from delta_core.engines.spark.types import reshape, spark_type
from delta_core.engines.spark.write.checks import Condition, enforced, schema_conditions, shown_row
from delta_core.engines.spark.write.values import as_nullable, check_kinds, converted, without_nullability
from delta_core.errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)
from delta_core.expressions import ast
from delta_core.expressions.ast import (
    Expression,
    Leaf,
    PhysicalColumn,
    TaskCount,
    TaskIndex,
    TaskRow,
    is_portable,
    leaves,
)
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.kernel.plugins.rules import ColumnEncoding, FillColumn
from delta_core.kernel.write.apply import PrepareRows
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.names import HIVE_NULL
from delta_core.kernel.write.partition_text import empty_is_null
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernel.write.schema_checks import CHAR_VARCHAR
from delta_core.schema.fields import FIELD_ID, NESTED_IDS, Schema, format_path, walk, without_void
from delta_core.schema.types import KNOWN_TYPES, ArrayType, DataType, Field, MapType, PrimitiveType, StructType

__all__ = ["PhysicalRows", "given_schema", "physical_rows"]

_VOID = PrimitiveType("void")
_TASK_ROW, _TASK_INDEX, _NUM_TASKS, _NEVER = (f"__delta_{n}" for n in ("task_row", "task_index", "num_tasks", "never"))
#: A task numbers its rows below this, as in Spark's monotonically_increasing_id.
_TASK_ROWS = 2**33
#: Field metadata that a table's own columns need; other such keys describe the query that a column came from.
_SPARK_METADATA = (CHAR_VARCHAR, "__COLLATIONS")
#: Field metadata of a table that was read, which are not those of the one that is written.
_DEFAULTS = ("CURRENT_DEFAULT", "EXISTS_DEFAULT")


class PhysicalRows(Struct, frozen=True):
    """Rows ready to be written.

    Parameters
    ----------
    frame : DataFrame
        Physical columns, then the columns that name directories.
    directories : tuple of str
        Those columns, in the order of the table's partition columns.
    is_scattered : bool
        Whether rows were shuffled into more tasks than they had, for their numbers' sake.
    """

    frame: DataFrame
    directories: tuple[str, ...]
    fills: tuple[FillColumn, ...]
    conditions: tuple[Condition, ...]
    is_scattered: bool = False


def given_schema(rows: DataFrame) -> Schema:
    """Return the schema of a DataFrame as a table's.

    Every part is nullable: what Spark has of a query's nulls is no promise for rows to come.
    """
    found = StructType.from_json(private.schema_json(rows))
    return Schema(_given_field(f) for f in found.members)


def _given_field(f: Field) -> Field:
    metadata = {
        k: v
        for k, v in f.metadata.items()
        if (not k.startswith("__") or k in _SPARK_METADATA) and k not in (FIELD_ID, NESTED_IDS, *_DEFAULTS)
    }
    return Field(f.name, _given_type(f.type), True, metadata)


def _given_type(t: DataType) -> DataType:
    if isinstance(t, StructType):
        return StructType(_given_field(f) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(_given_type(t.element_type))
    return MapType(_given_type(t.key_type), _given_type(t.value_type)) if isinstance(t, MapType) else t


def physical_rows(
    engine: Engine, plan: WritePlan, rows: DataFrame, zone: str, *, origin: Origin = "new", plain: bool = False
) -> PhysicalRows:
    """Return rows as a table's files hold them.

    Parameters
    ----------
    engine : Engine
        The schema that types the expressions of the plan.
    plan : WritePlan
        The plan of the table's writes.
    rows : DataFrame
        The rows; columns are matched by name, ignoring case.
    zone : str
        The session's time zone.
    origin : str
        As of `write.apply.PrepareRows`.
    plain : bool
        Whether to go without Spark's private interfaces.

    Raises
    ------
    SchemaMismatchError
        Columns that don't fit.
    UnsupportedExpressionError
        A hidden column would depend on the session's zone, which is not UTC.
    """
    return _Preparation(engine, plan, rows, zone, origin, plain).build()


class _Preparation:
    def __init__(
        self, engine: Engine, plan: WritePlan, rows: DataFrame, zone: str, origin: Origin, plain: bool
    ) -> None:
        table = plan.table
        self._is_plain = plain or not private.is_available(rows.sparkSession)
        self._is_scattered = False
        changes = origin == "changes"
        self._plan, self._rows, self._zone, self._changes = plan, rows, zone, changes
        self._types = table.types
        self._old = origin in ("moved", "changes")
        self._fields = {f.name: f for f in table.schema.members}
        self._empty_is_null = frozenset(empty_is_null(table))
        self._extra = {r.name: r.type for r in plan.carried(origin)}
        if changes and plan.capture is not None:
            self._extra[plan.capture.change_column] = PrimitiveType("string")
        found = given_schema(rows)
        # the same rows are taken and rejected as by the Arrow engine
        checks = tuple(c for c in plan.checks if is_portable(c.expression))
        known = replace(plan, checks=checks)
        self._prepared = PrepareRows(known, self._arrow_schema(found), engine.evaluator, origin=origin)
        lower = {n.lower(): n for n in (*self._fields, *self._extra)}
        self._given = {lower[f.name.lower()]: f for f in found.members}
        for name in self._fields.keys() & self._given.keys():
            check_kinds(self._given[name].type, self._fields[name].type, (name,))

    def _arrow_schema(self, found: StructType) -> pa.Schema:
        for path, f in walk(found):
            if isinstance(f.type, PrimitiveType) and f.type.type.startswith(("interval", "time(")):
                raise SchemaMismatchError(
                    f"Column {format_path(path)} has type {f.type.type}, which no table can hold."
                )
        utc = self._zone.upper() in ("UTC", "ETC/UTC", "Z", "GMT")
        out = []
        for f in found.members:
            t = arrow_type(f.type, {**KNOWN_TYPES, **self._types})
            if pa.types.is_timestamp(t) and t.tz is not None and not utc:
                t = pa.timestamp("us", self._zone)
            out.append(pa.field(f.name, t))
        return pa.schema(out)

    # --- stages ----------------------------------------------------------------------------

    def build(self) -> PhysicalRows:
        fills = (
            [] if self._old else [r for r in self._plan.fills if r.when != "absent" or r.column[0] not in self._given]
        )
        numbers = self._numbers(fills)
        rows = self._rows.select(*self._logical(), *numbers, never().alias(_NEVER))
        for fill in fills:
            rows = self._filled(rows, fill)
        conditions = () if self._old else tuple(self._conditions())
        row = F.lit("") if self._old else shown_row(self._plan.table.schema)
        columns = self._physical()
        if not columns:
            raise UnsupportedOperationError("The table's files would have no column; Spark writes no such file.")
        conditions = (*conditions, *self._partition_conditions())
        name, first, metadata = columns[0]
        # what is evaluated here may fail: no rule may move it below a limit, to rows that are not written
        columns[0] = name, F.when(~F.col(_NEVER), enforced(first, conditions, row)), metadata
        directories = self._directories()
        frame = rows.select(
            *[self._named(n, c, m) for n, c, m in columns], *[c.alias(n) for n, c in directories.items()]
        )
        return PhysicalRows(frame, tuple(directories), tuple(fills), conditions, self._is_scattered)

    def _logical(self) -> list[Column]:
        """Return every column of the table by its name, and carried ones, null if the rows lack them."""
        out = []
        types = {n: f.type for n, f in self._fields.items() if f.type != _VOID} | self._extra
        for name, t in types.items():
            given = self._given.get(name)
            if given is not None:
                column = converted(F.col(quote_name(given.name)), given.type, t, self._types, (name,))
                column = self._without_empty(name, column)
            else:
                column = F.lit(None).cast(spark_type(as_nullable(t), self._types))
            out.append(column.alias(name))
        return out

    def _numbers(self, fills: Sequence[FillColumn]) -> list[Column]:
        used = {type(leaf) for r in fills for leaf in leaves(r.expression)}
        used |= {type(leaf) for r in self._plan.hidden for leaf in leaves(r.expression)}
        if not used & {TaskCount, TaskIndex, TaskRow}:
            return []
        # a retried task numbers the same: the partition is the upper part of Spark's id, the row the lower
        number = F.monotonically_increasing_id()
        index, tasks = F.shiftright(number, 33), self._num_tasks().cast("bigint")
        # two rows would have one number
        beyond = F.raise_error(F.lit("delta_core: a task of the write is beyond their number")).cast("bigint")
        return [
            index.alias(_TASK_INDEX),
            F.when(index < tasks, tasks).otherwise(beyond).alias(_NUM_TASKS),
            number.bitwiseAND(F.lit(_TASK_ROWS - 1).cast("bigint")).alias(_TASK_ROW),
        ]

    def _num_tasks(self) -> Column:
        """Return how many tasks number the rows; if Spark does not report, rows are shuffled into a known number."""
        spark = self._rows.sparkSession
        if not self._is_plain:
            # Spark evaluates over rows of VALUES while it plans, in no task: then they are numbered as in a single one
            return F.coalesce(private.num_tasks(spark), F.lit(1))
        count = int(spark.conf.get("spark.sql.shuffle.partitions"))
        self._rows, self._is_scattered = self._rows.repartition(count), True
        return F.lit(count)

    def _filled(self, rows: DataFrame, rule: FillColumn) -> DataFrame:
        name = rule.column[0]
        target = spark_type(as_nullable(self._fields[name].type), self._types)
        made = self._expression(rule.expression).cast(target)
        if rule.when == "null" and name in self._given:
            made = F.coalesce(F.col(quote_name(name)), made)
        return rows.withColumn(name, self._without_empty(name, made))

    def _without_empty(self, name: str, column: Column) -> Column:
        return F.when(F.octet_length(column) > 0, column) if name in self._empty_is_null else column

    def _conditions(self) -> list[Condition]:
        is_plain = str(self._rows.sparkSession.conf.get(PLAIN_CHARS, "false")).lower() == "true"
        found = list(schema_conditions(self._plan.table.schema, not is_plain))
        for check in self._plan.checks:
            if check.given is not None and check.given[0] not in self._given:
                continue
            passes = self._expression(check.expression)
            if check.null_passes:
                passes = F.coalesce(passes, F.lit(True))
            found.append(Condition(passes, check.name, check.sql or format_sql(check.expression), check.feature))
        return found

    # --- partitions ------------------------------------------------------------------------

    def _partition_conditions(self) -> list[Condition]:
        """Return what the names of directories can't distinguish."""
        found = []
        for name in self._plan.table.partition_columns:
            t, column = self._fields[name].type, F.col(quote_name(name))
            if t.type == "binary":
                text = F.coalesce(F.expr(f"is_valid_utf8(CAST({quote_name(name)} AS STRING))"), F.lit(True))
                found.append(Condition(text, f"{name} is UTF-8", "the log keeps partition values as text", column=name))
            if t.type in ("string", "binary"):
                other = F.coalesce(column.cast("string") != HIVE_NULL, F.lit(True))
                found.append(Condition(other, f"{name} is not {HIVE_NULL}", "directories call null so", column=name))
        return found

    def _directories(self) -> dict[str, Column]:
        physical = {f.name: p.name for f, p in self._pairs()}
        both = self._plan.requirements.materialize_partition_columns
        return {
            f"by_{physical[n]}" if both else physical[n]: F.col(quote_name(n))
            for n in self._plan.table.partition_columns
        }

    # --- physical columns ------------------------------------------------------------------

    def _pairs(self) -> list[tuple[Field, Field]]:
        table = self._plan.table
        return list(zip(table.schema.members, table.column_map.physical.members, strict=True))

    def _physical(self) -> list[tuple[str, Column, dict[str, Any]]]:
        """Return name, value and metadata of each column of the files, in the order of `write.layout`."""
        partitions = {n.lower() for n in self._plan.table.partition_columns}
        data: list[tuple[str, Column, dict[str, Any]]] = []
        partition: list[tuple[str, Column, dict[str, Any]]] = []
        for logical, physical in self._pairs():
            if logical.type != _VOID:
                (partition if logical.name.lower() in partitions else data).append(self._column(logical, physical))
        if self._plan.requirements.materialize_partition_columns:
            data += partition
        if self._changes:
            assert self._plan.capture is not None
            name = self._plan.capture.change_column
            return [*data, (name, F.col(quote_name(name)), {})]
        for rule in self._plan.hidden:
            if rule.name in self._given:
                column = F.col(quote_name(rule.name))
            else:
                check_zone(rule.expression, self._zone, f"hidden column {rule.name}")
                column = self._expression(rule.expression)
            column = column.cast(spark_type(as_nullable(rule.type), self._types))
            data.append((rule.name, column, {} if rule.field_id is None else {FIELD_ID: rule.field_id}))
        return data

    def _column(self, logical: Field, physical: Field) -> tuple[str, Column, dict[str, Any]]:
        _check_ids(physical)
        number = physical.metadata.get(FIELD_ID)
        metadata = {} if number is None else {FIELD_ID: int(number)}
        encoding = self._plan.table.encodings.get(logical.name)
        if encoding is not None:
            return physical.name, self._encoded(logical.name, encoding), metadata
        whole, slim = as_nullable(logical.type), without_void(as_nullable(logical.type))
        stored = without_void(as_nullable(physical.type))
        assert slim is not None
        assert stored is not None
        column = F.col(quote_name(logical.name))
        if without_nullability(whole) != without_nullability(slim):
            column = reshape(column, whole, slim, self._types)
        if not isinstance(stored, PrimitiveType):
            # by place: names and ids of what lies below are those of the files
            column = column.cast(spark_type(stored, self._types))
        return physical.name, column, metadata

    def _encoded(self, name: str, rule: ColumnEncoding) -> Column:
        """Return the stored form of a column; it is null for the same rows."""
        check_zone(rule.encode, self._zone, f"encoding of column {name}")
        stored = spark_type(rule.stored, self._types)
        text = f"delta_core: {rule.feature} encodes a value of column {name!r} as null; expected null for null only"
        failed = F.raise_error(F.lit(text)).cast(stored)
        made = F.coalesce(self._expression(rule.encode).cast(stored), failed)
        return F.when(F.col(quote_name(name)).isNotNull(), made)

    def _named(self, name: str, column: Column, metadata: dict[str, Any]) -> Column:
        return column.alias(name, metadata=metadata) if metadata else column.alias(name)

    # --- expressions -----------------------------------------------------------------------

    def _expression(self, expression: Expression) -> Column:
        return to_column(expression, self._place, self._plan.functions)

    def _place(self, leaf: Leaf) -> Any:
        if isinstance(leaf, TaskIndex):
            return ast.Column((_TASK_INDEX,))
        if isinstance(leaf, TaskRow):
            return ast.Column((_TASK_ROW,))
        if isinstance(leaf, TaskCount):
            return ast.Column((_NUM_TASKS,))
        if isinstance(leaf, PhysicalColumn):
            known = leaf.name in self._extra or leaf.name in self._fields
            return ast.Column((leaf.name,)) if known else ast.Cast(ast.Literal(None), leaf.type)
        if isinstance(leaf, ast.Column):
            return leaf
        raise InvalidArgumentError(f"A write can't evaluate {leaf}: it represents what is read.")


def _check_ids(physical: Field) -> None:
    """Reject ids of the parts of lists and maps, which Spark's own writer has no place for."""
    for path, f in [((physical.name,), physical), *walk(physical.type, (physical.name,))]:
        if f.metadata.get(NESTED_IDS):
            raise UnsupportedFeatureError(
                f"Column {format_path(path)} has ids for the parts of its lists or maps, which Spark's own writer "
                "can't write. Write this table with delta_core.write_deltalake.",
                column=format_path(path),
            )
