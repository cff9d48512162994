"""From the metadata of fields to the values of columns that a write leaves out."""

from __future__ import annotations

from delta_core.api import (
    Cast,
    ColumnNotFoundError,
    DataType,
    Expression,
    ExpressionError,
    Field,
    FillColumn,
    Literal,
    PrimitiveType,
    SchemaError,
    StructType,
    TableState,
    bind,
    bind_typed,
    common_type,
    format_path,
    parse_sql,
    same_type,
    spark_name,
    walk,
)

__all__ = ["KEY", "check", "fills", "is_needed"]

NAME = "allowColumnDefaults"
KEY = "CURRENT_DEFAULT"
_NO_COLUMNS = StructType(())
_STRING, _VOID = PrimitiveType("string"), PrimitiveType("void")
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


def is_needed(schema: StructType) -> bool:
    """Whether a column has a default."""
    return any(KEY in f.metadata for _, f in walk(schema))


def fills(table: TableState) -> list[FillColumn]:
    """Return how each column with a default is filled if a write leaves it out.

    Raises
    ------
    SchemaError, ExpressionError, UnsupportedExpressionError
        The message names the column.
    """
    _check_whole(table)
    return [FillColumn(NAME, (f.name,), _bound(table, f)[0]) for f in table.schema if KEY in f.metadata]


def check(table: TableState) -> None:
    """Reject defaults that a write could not use.

    Raises
    ------
    SchemaError
        A nested column has one.
    ExpressionError
        It uses columns, or its type does not fit the column's.
    """
    _check_whole(table)
    for f in table.schema:
        if KEY not in f.metadata:
            continue
        bound, found = _bound(table, f)
        if not _fits(bound, found, f.type, table):
            raise ExpressionError(
                f"The default of column {f.name}, {f.metadata[KEY]!r}, is {spark_name(found)}, which does not fit "
                f"{spark_name(f.type)} without loss. Cast it.",
                column=f.name,
                sql=f.metadata[KEY],
            )


def _check_whole(table: TableState) -> None:
    for path, f in walk(table.schema):
        if KEY in f.metadata and len(path) > 1:
            column = format_path(path)
            raise SchemaError(
                f"Column {column} has a default; only whole columns can have one, not parts.", column=column
            )


def _bound(table: TableState, f: Field) -> tuple[Expression, DataType]:
    text = f.metadata[KEY]
    if not isinstance(text, str):
        raise SchemaError(f"Column {f.name} has {KEY}={text!r}; expected an expression's text.", column=f.name)
    try:
        return bind_typed(parse_sql(text), _NO_COLUMNS, table.functions)
    except ColumnNotFoundError as e:
        raise ExpressionError(
            f"The default of column {f.name}, {text!r}, uses the column {e.column}; a default can't use columns. "
            "Generate the column instead.",
            column=f.name,
            sql=text,
        ) from e
    except ExpressionError as e:
        raise type(e)(f"The default of column {f.name}: {e.message}", **{**e.facts, "column": f.name}) from e


def _fits(bound: Expression, found: DataType, target: DataType, table: TableState) -> bool:
    """Whether Spark assigns a value of a type to a column of another: it widens, and narrows equal constants."""
    if found == _VOID or same_type(found, target):
        return True
    if not isinstance(found, PrimitiveType) or not isinstance(target, PrimitiveType):
        return common_type(found, target) == target
    if target == _STRING or found == _STRING or "variant" in (found.type, target.type):
        return target == _STRING and found.type != "variant"
    if common_type(found, target) == target:
        return True
    if not (found.type.startswith(_NUMBERS) and target.type.startswith(_NUMBERS)):
        return False
    try:
        made = bind(Cast(bound, target), _NO_COLUMNS, table.functions)
    except ExpressionError:  # the constant overflows
        return False
    return isinstance(made, Literal) and isinstance(bound, Literal) and bool(made.value == bound.value)
