"""Statements that change rows: DELETE, UPDATE, MERGE and INSERT as calls of `SparkTable` and `write`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, functions as F

from delta_core.engines.spark.format_table import SparkFormatTable
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.statements import Assignments, Delete, Insert, Merge, Statement, Update, run_query
from delta_core.engines.spark.save import casting_columns, write
from delta_core.engines.spark.settings import KEEPS_NULL_STRUCTS, session_settings
from delta_core.engines.spark.table import SparkTable
from delta_core.engines.spark.types import reshape, spark_type
from delta_core.engines.spark.write.rows import given_schema
from delta_core.engines.spark.write.values import as_nullable, with_null_fields, without_nullability
from delta_core.errors import ColumnNotFoundError, InvalidArgumentError, SchemaMismatchError, UnsupportedOperationError
from delta_core.expressions import ast
from delta_core.expressions.ast import Call, Cast, Expression, Literal
from delta_core.expressions.printing import format_sql, quote_name
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.plan import plan_write
from delta_core.operations.merge.builder import MergeClause
from delta_core.schema.fields import Path, format_path, walk
from delta_core.schema.types import (
    KNOWN_TYPES,
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeDef,
    UserDefinedType,
    spark_name,
)

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
    by_place = False
    is_merging = statement.is_by_name and statement.arguments.get("schema_mode") == "merge"
    is_evolving = statement.is_evolving or settings.merges_schema or is_merging
    constants = {_field(schema, name).name: value for name, value in statement.partition.items() if value is not None}
    for name in statement.partition:
        if _field(schema, name).name not in partitions:
            raise ColumnNotFoundError(f"PARTITION names {name!r}; the table is partitioned by {', '.join(partitions)}.")
    if statement.is_by_name:
        rows = run_query(spark, statement.query)
        if is_evolving and not settings.permits("insert.byName.schemaEvolution.enabled"):
            _check_by_name(rows, schema)
    else:
        all_named = [_field(schema, n).name for n in statement.columns] or [f.name for f in schema.members]
        named = [n for n in all_named if n not in constants]
        query = _with_defaults(spark, statement.query, named, snapshot)
        found = _run_with_defaults(spark, query)
        rows = _by_place(found, named, schema, is_evolving)
        if not is_evolving:
            matched = _matched_by_name(rows, found.columns, statement.columns, schema, snapshot.state.types)
            rows, by_place = (rows, True) if matched is None else (matched, False)

    def widens(old: DataType, new: DataType) -> bool:
        fits = snapshot.plugins.single("accept_type_change", False, table=snapshot.state, path=(), old=old, new=new)
        return is_evolving and bool(fits) and settings.may_widen(str(old.type), str(new.type))

    casts = not statement.is_frame or settings.permits("dml.insert.dfByName.allowImplicitCasts")
    if casts:
        keeps = settings.permits(KEEPS_NULL_STRUCTS)
        types = snapshot.state.types
        rows = _stored(rows, schema, types, by_place=by_place, widens=widens, keeps_null_structs=keeps)
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
    with casting_columns() if casts else nullcontext():
        write(rows, table.path, "overwrite" if statement.is_overwrite else "append", **arguments, **options)


def _check_by_name(rows: DataFrame, schema: StructType) -> None:
    """Reject columns that the table lacks if others have to be cast, where delta-spark does not evolve the schema."""
    found = [(f, schema.get(f.name)) for f in given_schema(rows).members]
    is_cast = any(own is not None and _is_cast(f.type, own.type, False) for f, own in found)
    more = [f.name for f, own in found if own is None]
    if more and is_cast:
        raise SchemaMismatchError(
            f"Found the column {more[0]}, which the table lacks: the setting "
            "spark.databricks.delta.insert.byName.schemaEvolution.enabled is false.",
            column=more[0],
            condition="INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        )


def _with_defaults(spark: Any, query: Any, names: Sequence[str], snapshot: Snapshot) -> Any:
    """Return a query with the defaults of the columns that it is for in place of the word DEFAULT."""
    places = [i for i in private.default_places(spark, query) if i < len(names)]
    if not places:
        return query
    plan, texts = plan_write(snapshot.state, snapshot.plugins, "WRITE"), {}
    for i in places:
        default = plan.default_of((names[i],), updates=False)
        if default is None:
            raise InvalidArgumentError(
                f"Found DEFAULT for {names[i]}, whose values the table makes. Leave it out of the list of columns.",
                column=names[i],
            )
        texts[i] = format_sql(default)
    return private.with_defaults(spark, query, texts)


def _run_with_defaults(spark: Any, query: Any) -> DataFrame:
    """Run a query in which the defaults of columns are in place of the word DEFAULT."""
    try:
        return run_query(spark, query)
    except AnalysisException as e:
        is_unresolved = str(e.getCondition()).startswith("UNRESOLVED_COLUMN.")
        if is_unresolved and dict(e.getMessageParameters() or {}).get("objectName", "").upper() == "`DEFAULT`":
            raise InvalidArgumentError(
                "Found DEFAULT within an expression. Use it as a whole value, and calculate with the default itself."
            ) from e
        raise


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
    table.insert(_stored(rows, schema, KNOWN_TYPES, by_place=not statement.is_by_name))


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
            "the query has, as INSERT INTO t (a, b), or use BY NAME.",
            condition=None if len(have) < len(names) else "DELTA_METADATA_MISMATCH",
        )
    return rows.toDF(*names, *have[len(names) :])


def _matched_by_name(
    rows: DataFrame, names: Sequence[str], listed: Sequence[str], schema: StructType, types: Mapping[str, TypeDef]
) -> DataFrame | None:
    """Return rows whose structs match the table's fields by name, as delta-spark does where nothing has to be cast.

    Parameters
    ----------
    rows : DataFrame
        The rows, with columns of the table's names.
    names : sequence of str
        The names that the query has.
    listed : sequence of str
        The columns that the statement lists; a struct of one of these has its fields by their places, and structs in
        its arrays and maps by name.
    schema : StructType
        The columns of the table.
    types : Mapping of str to TypeDef
        Custom types of the table.

    Returns
    -------
    DataFrame or None
        None: all fields are matched by their places.
    """
    wanted = [_field(schema, name) for name in rows.columns]
    if not listed and list(names) != [f.name for f in wanted]:
        return None
    columns = []
    for found, field in zip(given_schema(rows).members, wanted, strict=True):
        have, column = found.type, F.col(quote_name(field.name))
        if listed and isinstance(have, StructType) and isinstance(field.type, StructType):
            _check_fields(have, field.type, field.name)
            named = _renamed(have, field.type)
            have, column = named, reshape(column, have, named, types).alias(field.name)
        if not _has_fields(have, field.type):
            return None
        columns.append(column)
    return rows.select(*columns) if listed else rows


def _renamed(have: StructType, want: StructType) -> StructType:
    """Return a struct with the names of the fields of another one, in their order; structs in it too."""
    return StructType(
        Field(
            w.name,
            _renamed(h.type, w.type) if isinstance(h.type, StructType) and isinstance(w.type, StructType) else h.type,
            h.nullable,
            h.metadata,
        )
        for h, w in zip(have.members, want.members, strict=True)
    )


def _has_fields(have: DataType, want: DataType) -> bool:
    """Whether two types are equal but for the order of fields."""
    if isinstance(have, StructType) and isinstance(want, StructType):
        own = {f.name: f.type for f in want.members}
        found = {f.name: f.type for f in have.members}
        return found.keys() == own.keys() and all(_has_fields(t, own[name]) for name, t in found.items())
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return _has_fields(have.element_type, want.element_type)
    if isinstance(have, MapType) and isinstance(want, MapType):
        return _has_fields(have.key_type, want.key_type) and _has_fields(have.value_type, want.value_type)
    return without_nullability(have) == without_nullability(want)


def _stored(
    rows: DataFrame,
    schema: StructType,
    types: Mapping[str, TypeDef],
    *,
    by_place: bool = False,
    widens: Callable[[DataType, DataType], bool] = lambda old, new: False,
    keeps_null_structs: bool = True,
) -> DataFrame:
    """Cast columns to the types of the table, as Spark does for INSERT: a value that does not fit fails.

    Parameters
    ----------
    rows : DataFrame
        The rows, with columns of the table's names.
    schema : StructType
        The columns of the table.
    types : Mapping of str to TypeDef
        Custom types of the table.
    by_place : bool
        Whether fields of structs are matched by their places. If not, only structs are cast that have the table's
        fields in its order; others are left to the write.
    widens : function(DataType, DataType) -> bool
        Whether a column of the table, or a part of one, may get the other type, that of the rows, which then stay as
        they are.
    keeps_null_structs : bool
        Whether a null struct of another type than that of its column stays null, or becomes a struct of nulls.

    Raises
    ------
    SchemaMismatchError
        A struct has another number of fields than that of the table, or is matched with what is none.
    """
    columns = []
    for name, found in zip(rows.columns, given_schema(rows).members, strict=True):
        field, column = schema.get(name), F.col(quote_name(name))
        if field is not None and by_place:
            _check_fields(found.type, field.type, name)
        target = None if field is None else _cast_type(found.type, field.type, by_place, widens)
        if target is not None:
            if not keeps_null_structs:
                column = with_null_fields(column, found.type, target)
            cast = column.cast(spark_type(as_nullable(target), types))
            column = private.with_strict_casts(rows.sparkSession, cast, stored_in=name).alias(name)
        columns.append(column)
    return rows.select(*columns)


def _cast_type(
    have: DataType, want: DataType, by_place: bool, widens: Callable[[DataType, DataType], bool]
) -> DataType | None:
    """Return the type that a column is cast to, None if it stays as it is: parts that the table may widen stay."""
    if not _is_cast(have, want, by_place):
        return None
    plain = without_nullability(have)
    target = _widened(plain, without_nullability(want), widens)
    return None if target == plain else target


def _widened(have: DataType, want: DataType, widens: Callable[[DataType, DataType], bool]) -> DataType:
    """Return the type of the table, with the types of the rows where it may get these."""
    if isinstance(have, StructType) and isinstance(want, StructType):
        return StructType(
            Field(w.name, _widened(h.type, w.type, widens), w.nullable, w.metadata)
            for h, w in zip(have.members, want.members, strict=True)
        )
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return ArrayType(_widened(have.element_type, want.element_type, widens), want.contains_null)
    if isinstance(have, MapType) and isinstance(want, MapType):
        return MapType(
            _widened(have.key_type, want.key_type, widens),
            _widened(have.value_type, want.value_type, widens),
            want.value_contains_null,
        )
    is_wider = isinstance(have, PrimitiveType) and isinstance(want, PrimitiveType) and widens(want, have)
    return have if is_wider else want


def _is_cast(have: DataType, want: DataType, by_place: bool) -> bool:
    have, want = without_nullability(have), without_nullability(want)
    if have == want or "void" in (have.type, want.type):
        return False
    parts = [f.type for _, f in walk(StructType([Field("have", have), Field("want", want)]))]
    return not any(isinstance(t, (CustomType, UserDefinedType)) for t in parts) and _is_parallel(have, want, by_place)


def _check_fields(have: DataType, want: DataType, column: str) -> None:
    if isinstance(have, StructType) and isinstance(want, StructType):
        if len(have.members) != len(want.members):
            raise SchemaMismatchError(
                f"Column {column} of the query has {len(have.members)} fields, expected {len(want.members)}: "
                f"{', '.join(f.name for f in want.members)}.",
                column=column,
            )
        for a, b in zip(have.members, want.members, strict=True):
            name = f"{column}.{b.name}"
            is_other = isinstance(a.type, StructType) != isinstance(b.type, StructType)
            if is_other and "void" not in (a.type.type, b.type.type):
                raise SchemaMismatchError(
                    f"Found {spark_name(a.type)} for {name}, expected {spark_name(b.type)}. Fields of structs are "
                    "matched by their places: write them in the order of the table.",
                    column=column,
                    condition="DELTA_COLUMN_STRUCT_TYPE_MISMATCH",
                )
            _check_fields(a.type, b.type, name)
    elif isinstance(have, ArrayType) and isinstance(want, ArrayType):
        _check_fields(have.element_type, want.element_type, f"{column}.element")
    elif isinstance(have, MapType) and isinstance(want, MapType):
        _check_fields(have.key_type, want.key_type, f"{column}.key")
        _check_fields(have.value_type, want.value_type, f"{column}.value")


def _is_parallel(have: DataType, want: DataType, by_place: bool) -> bool:
    """Whether a type can be cast to another one part by part."""
    if isinstance(have, StructType) and isinstance(want, StructType):
        same = by_place or [f.name.lower() for f in have.members] == [f.name.lower() for f in want.members]
        return (
            same
            and len(have.members) == len(want.members)
            and all(_is_parallel(a.type, b.type, by_place) for a, b in zip(have.members, want.members, strict=True))
        )
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return _is_parallel(have.element_type, want.element_type, by_place)
    if isinstance(have, MapType) and isinstance(want, MapType):
        return _is_parallel(have.key_type, want.key_type, by_place) and _is_parallel(
            have.value_type, want.value_type, by_place
        )
    return isinstance(have, PrimitiveType) and isinstance(want, PrimitiveType)


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
