"""Statements that change rows: DELETE, UPDATE, MERGE and INSERT as calls of `SparkTable` and `write`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace
from pyspark.sql import DataFrame, functions as F

from delta_core.engines.spark.format_table import SparkFormatTable
from delta_core.engines.spark.plan.statements import Assignments, Delete, Insert, Merge, Statement, Update, run_query
from delta_core.engines.spark.save import write
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.table import SparkTable
from delta_core.engines.spark.types import spark_type
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, SchemaMismatchError, UnsupportedOperationError
from delta_core.expressions import ast
from delta_core.expressions.ast import Call, Cast, Expression, Literal
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.merge.builder import MergeClause
from delta_core.schema.fields import Path, format_path
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType

__all__ = ["run_statement"]

_STRING = PrimitiveType("string")


def run_statement(
    spark: Any,
    statement: Statement,
    table: SparkTable | SparkFormatTable,
    empty: Callable[[], DataFrame],
    options: Mapping[str, Any],
) -> DataFrame:
    """Run a statement, and return what delta-spark returns of it.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    statement : Statement
        The change.
    table : SparkTable or SparkFormatTable
        The table that it changes.
    empty : function() -> DataFrame
        Makes the result of an INSERT.
    options : Mapping
        As of `SparkTable`.

    Raises
    ------
    SchemaMismatchError
        The query of an INSERT does not have the columns of the table.
    DeltaError
        As of `SparkTable.delete`, `update` and `merge`, and of `write`.
    """
    if isinstance(statement, Insert):
        if isinstance(table, SparkTable):
            _insert(spark, statement, table, options)
        else:
            _insert_format(spark, statement, table)
        return empty()
    named = table.alias(statement.alias or statement.target[-1])
    schema = named.schema
    own = (statement.alias or statement.target[-1]).lower()

    def values(given: Assignments) -> dict[str, str]:
        names = [_name(schema, own, path) for path, _ in given]
        again = next((n for n in names if names.count(n) > 1), None)
        if again is not None:
            raise InvalidArgumentError(f"Column {again} is assigned twice.", column=again)
        return {name: value for name, (_, value) in zip(names, given, strict=True)}

    if isinstance(statement, Update):
        return named.update(statement.condition, values(statement.values))
    if isinstance(statement, Delete):
        return named.delete(statement.condition)
    return _merge(spark, statement, named, values)


def _name(schema: StructType, alias: str, path: Path) -> str:
    """Return a column's name, which may follow the table's."""
    is_qualified = len(path) > 1 and path[0].lower() == alias and schema.get(path[1]) is not None
    return format_path(path[1:] if is_qualified else path)


def _merge(
    spark: Any, statement: Merge, table: SparkTable | SparkFormatTable, values: Callable[[Assignments], dict[str, str]]
) -> DataFrame:
    merger = table.merge(run_query(spark, statement.source), statement.condition)
    clauses = [
        MergeClause(p.kind, p.action, p.condition, None if p.values is None else values(p.values))
        for p in statement.parts
    ]
    return replace(merger, clauses=tuple(clauses), is_evolving=statement.is_evolving).execute()


# --- INSERT --------------------------------------------------------------------------------


def _insert(spark: Any, statement: Insert, table: SparkTable, options: Mapping[str, Any]) -> None:
    snapshot = table.table.snapshot()
    schema, partitions = snapshot.schema, snapshot.state.partition_columns
    settings = session_settings(spark)
    settings.check_case(schema, [(name,) for name in (*statement.partition, *statement.columns)])
    is_evolving = statement.is_evolving or settings.merges_schema
    constants = {_field(schema, name).name: value for name, value in statement.partition.items() if value is not None}
    for name in statement.partition:
        if _field(schema, name).name not in partitions:
            raise ColumnNotFoundError(f"PARTITION names {name!r}; the table is partitioned by {', '.join(partitions)}.")
    rows = run_query(spark, statement.query)
    if not statement.is_by_name:
        named = [_field(schema, n).name for n in statement.columns] or [f.name for f in schema.members]
        rows = _by_place(rows, [n for n in named if n not in constants], schema, is_evolving)
    rows = _with_doubles(rows, schema)
    both = [n for n in rows.columns if n.lower() in {c.lower() for c in constants}]
    if both:
        raise SchemaMismatchError(
            f"PARTITION and the query both have {both[0]!r}. Leave it out of one.", column=both[0]
        )
    for name, text in constants.items():
        rows = rows.withColumn(name, _constant(text, spark_type(_field(schema, name).type, snapshot.state.types)))
    arguments = {
        "schema_mode": "merge" if statement.is_evolving else None,
        **_replacing(spark, statement, constants, snapshot),
        **statement.arguments,
    }
    write(rows, table.path, "overwrite" if statement.is_overwrite else "append", **arguments, **options)


def _insert_format(spark: Any, statement: Insert, table: SparkFormatTable) -> None:
    """Append the rows of an INSERT to a table of another format."""
    other = {
        "OVERWRITE": statement.is_overwrite or statement.replace_where is not None or statement.replace_using,
        "PARTITION": statement.partition,
        "WITH SCHEMA EVOLUTION": statement.is_evolving,
        "options": statement.arguments,
    }
    found = next((name for name, is_there in other.items() if is_there), None)
    if found is not None:
        raise UnsupportedOperationError(
            f"INSERT with {found} is not possible on {table.place!r}. Write the rows with df.write.format, or call the "
            "methods of delta_core.open_table(path)."
        )
    schema, rows = table.schema, run_query(spark, statement.query)
    if not statement.is_by_name:
        rows = _by_place(rows, list(statement.columns) or schema.names, schema, False)
    table.insert(_with_doubles(rows, schema))


def _field(schema: StructType, name: str) -> Field:
    found = schema.get(name)
    if found is None:
        names = ", ".join(f.name for f in schema.members)
        raise ColumnNotFoundError(f"The table has no column {name!r}; it has {names}.", column=name)
    return found


def _by_place(rows: DataFrame, names: Sequence[str], schema: StructType, is_evolving: bool) -> DataFrame:
    """Name the columns of a query by their places; more columns keep their names if the table takes them."""
    have = rows.columns
    if len(have) < len(names) or (len(have) > len(names) and not is_evolving):
        raise SchemaMismatchError(
            f"Found {len(have)} columns in the query, expected {len(names)}: {', '.join(names)}. Name the columns that "
            "the query has, as INSERT INTO t (a, b), or use BY NAME."
        )
    renamed = rows.toDF(*names, *have[len(names) :])
    for name, given in zip(names, given_schema(renamed).members, strict=False):
        if not _same_names(given.type, _field(schema, name).type):
            raise SchemaMismatchError(
                f"Column {name} of the query has other fields than the table, or in another order. Name them as the "
                "table does.",
                column=name,
            )
    return renamed


def _with_doubles(rows: DataFrame, schema: StructType) -> DataFrame:
    """Turn decimals into the floating-point numbers of the table: 1.5 in SQL is a decimal."""
    given = given_schema(rows)
    columns = []
    for name, found in zip(rows.columns, given.members, strict=True):
        wanted, column = schema.get(name), F.col(quote_name(name))
        is_float = wanted is not None and wanted.type.type in ("float", "double")
        decimal = is_float and isinstance(found.type, PrimitiveType) and found.type.type.startswith("decimal")
        columns.append(column.cast(wanted.type.type).alias(name) if wanted is not None and decimal else column)
    return rows.select(*columns)


def _same_names(have: DataType, want: DataType) -> bool:
    if isinstance(have, StructType) and isinstance(want, StructType):
        return [f.name.lower() for f in have.members] == [f.name.lower() for f in want.members] and all(
            _same_names(a.type, b.type) for a, b in zip(have.members, want.members, strict=True)
        )
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return _same_names(have.element_type, want.element_type)
    if isinstance(have, MapType) and isinstance(want, MapType):
        return _same_names(have.key_type, want.key_type) and _same_names(have.value_type, want.value_type)
    return True


def _constant(text: str, target: Any) -> Any:
    made = F.lit(text).try_cast(target)
    failed = F.raise_error(F.lit(f"delta_core: PARTITION has {text!r}, which is no {target.simpleString()}"))
    return F.coalesce(made, failed.cast(target))


def _replacing(spark: Any, statement: Insert, constants: Mapping[str, str], snapshot: Snapshot) -> dict[str, Any]:
    """Return which rows an overwrite replaces."""
    if not statement.is_overwrite:
        return {}
    schema, partitions, where = snapshot.schema, snapshot.state.partition_columns, statement.replace_where
    if where is not None:
        return {"replace_where": where}
    if statement.replace_using:
        return {"replace_using": list(statement.replace_using)}
    is_dynamic = session_settings(spark).is_dynamic if statement.is_dynamic is None else statement.is_dynamic
    if is_dynamic and partitions and len(constants) < len(partitions):
        return {"partition_overwrite_mode": "dynamic"}
    parts: list[Expression] = [
        Call("=", (ast.Column((name,)), Cast(Literal(text, _STRING), _field(schema, name).type)))
        for name, text in constants.items()
    ]
    if not parts:
        return {"partition_overwrite_mode": "static"}
    return {"replace_where": " AND ".join(format_sql(p) for p in parts)}
