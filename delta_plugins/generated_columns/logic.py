"""From generation expressions to rules, and what may be in such an expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delta_core.api import (
    Call,
    Cast,
    Column,
    ColumnNotFoundError,
    DataType,
    Expression,
    ExpressionError,
    Field,
    FillColumn,
    Literal,
    MapType,
    Path,
    PrimitiveType,
    RowCheck,
    SchemaError,
    StructType,
    TableState,
    UnsupportedExpressionError,
    WriteRule,
    bind_typed,
    format_path,
    leaves,
    parse_sql,
    same_type,
    spark_name,
    uses,
    walk,
)

__all__ = ["KEY", "check", "check_unused", "is_needed", "rules"]

NAME = "generatedColumns"
KEY = "delta.generationExpression"
#: Other metadata that returns a column its values.
_OTHER_SOURCES = {"CURRENT_DEFAULT": "a default", "delta.identity.start": "identity values"}
#: The functions that Spark takes in generation expressions, of those that are known here, by their canonical names:
#: the same for the same row, whenever and wherever it is written.
_NAMES = """
and or not = != <=> < <= > >= + - * / % div pmod negative positive abs & | ^ ~ in like rlike isnull isnotnull isnan
case if coalesce greatest least [] element_at get_field size array_contains map_keys map_values hash xxhash64
upper lower trim_space initcap reverse trim ltrim rtrim length octet_length bit_length ascii chr substring right
replace translate lpad rpad repeat instr concat concat_ws regexp_replace regexp_extract hex unhex base64 md5 sha1
sha2 crc32 year quarter month day dayofweek dayofyear weekday weekofyear hour minute second date_add date_sub
add_months datediff last_day trunc date_trunc date_format to_date to_timestamp unix_timestamp make_date sqrt cbrt
exp ln log10 log2 log1p expm1 sin cos tan asin acos atan atan2 radians degrees sign pow round bround floor ceil
"""
_ALLOWED = frozenset(_NAMES.split())
_NOW = ("current_timestamp", "current_date", "localtimestamp", "now", "curdate")


def is_needed(schema: StructType) -> bool:
    """Whether a column is generated."""
    return any(KEY in f.metadata for _, f in walk(schema))


# --- rules ---------------------------------------------------------------------------------


def rules(table: TableState) -> list[WriteRule]:
    """Return for each generated column how it is filled, and that given values are equal to it, nulls too.

    Raises
    ------
    SchemaError, ExpressionError, UnsupportedExpressionError, ColumnNotFoundError
        The message names the column.
    """
    _check_whole(table)
    return [rule for f in table.schema if KEY in f.metadata for rule in _rules(table, f)]


def _rules(table: TableState, f: Field) -> Iterator[WriteRule]:
    expression = _parse(f)
    _type_of(table, f, expression)
    same = Call("<=>", (Column((f.name,)), expression))
    try:
        bound = bind_typed(same, table.schema, table.functions).expression
    except UnsupportedExpressionError:  # a type without an order: what is given can't be verified
        yield FillColumn(NAME, (f.name,), expression, exclusive=True)
        return
    yield FillColumn(NAME, (f.name,), expression)
    yield RowCheck(NAME, f"generated column {f.name}", bound, sql=f"{f.name} <=> ({f.metadata[KEY]})", given=(f.name,))


def _parse(f: Field) -> Expression:
    text = f.metadata[KEY]
    if not isinstance(text, str):
        raise SchemaError(f"Column {f.name} has {KEY}={text!r}; expected an expression's text.", column=f.name)
    try:
        return parse_sql(text)
    except ExpressionError as e:
        raise _named(f, e) from e


def _type_of(table: TableState, f: Field, expression: Expression) -> tuple[Expression, DataType]:
    try:
        return bind_typed(expression, table.schema, table.functions)
    except (ExpressionError, ColumnNotFoundError) as e:
        raise _named(f, e) from e


def _named(f: Field, e: ExpressionError | ColumnNotFoundError) -> ExpressionError | ColumnNotFoundError:
    return type(e)(f"The generation expression of column {f.name}: {e.message}", **{**e.facts, "column": f.name})


# --- what may be declared ------------------------------------------------------------------


def check(table: TableState) -> None:
    """Reject generation expressions that Spark would reject.

    Raises
    ------
    SchemaError
        A nested column is generated, one of a type that can't be compared, or one that has values from elsewhere too.
    ExpressionError
        An expression uses itself, another generated column, or returns another type than its column has.
    UnsupportedExpressionError
        It calls a function that is not allowed there; the message names it.
    """
    _check_whole(table)
    for f in table.schema:
        if KEY in f.metadata:
            _check_column(table, f)


def check_unused(table: TableState, paths: Iterable[Path], kind: type[SchemaError], change: str) -> None:
    """Reject a change of a column that a generated one is computed from: rows that stay hold what it returned.

    Parameters
    ----------
    table : TableState
        The table.
    paths : iterable of Path
        The columns, or parts of columns, that change.
    kind : type
        The class of the error.
    change : str
        The change of the column, for the message: ``change its type``.

    Raises
    ------
    SchemaError
        The message names both columns.
    """
    for f in table.schema:
        if KEY not in f.metadata:
            continue
        expression, _ = _type_of(table, f, _parse(f))
        for path in paths:
            if uses(expression, path):
                column = format_path(path)
                raise kind(
                    f"Column {column} can't {change}: the generated column {f.name} is computed from it "
                    f"({f.metadata[KEY]}).",
                    column=column,
                    generated=f.name,
                    feature=NAME,
                )


def _check_whole(table: TableState) -> None:
    for path, f in walk(table.schema):
        if KEY in f.metadata and len(path) > 1:
            column = format_path(path)
            raise SchemaError(
                f"Column {column} is generated; only whole columns can be, not parts of them.", column=column
            )


def _check_column(table: TableState, f: Field) -> None:
    other = next((what for key, what in _OTHER_SOURCES.items() if key in f.metadata), None)
    if other is not None:
        raise SchemaError(
            f"Column {f.name} is generated and has {other} too; only one can pass its values.", column=f.name
        )
    if f.type == PrimitiveType("variant"):
        raise SchemaError(
            f"Column {f.name} of type variant can't be generated: variants can't be compared.", column=f.name
        )
    expression = _parse(f)
    _check_timeless(table, f, expression)
    bound, found = _type_of(table, f, expression)
    for leaf in leaves(bound):
        used = table.schema.get(leaf.path[0]) if isinstance(leaf, Column) else None
        if used is not None and KEY in used.metadata:
            raise ExpressionError(
                f"The generation expression of column {f.name} uses {used.name}, which is generated itself; use the "
                "columns that it is computed from.",
                column=f.name,
            )
    for part in _calls(bound):
        _check_call(table, f, part)
    if not same_type(found, f.type):
        raise ExpressionError(
            f"The generation expression of column {f.name}, {f.metadata[KEY]!r}, is {spark_name(found)}, but the "
            f"column is {spark_name(f.type)}. Cast it: CAST({f.metadata[KEY]} AS {spark_name(f.type)}).",
            column=f.name,
        )


def _calls(e: Expression) -> Iterator[Call | Literal]:
    if isinstance(e, Call):
        yield e
        for arg in e.args:
            yield from _calls(arg)
    elif isinstance(e, Cast):
        yield from _calls(e.arg)
    elif isinstance(e, Literal):
        yield e


def _check_call(table: TableState, f: Field, part: Call | Literal) -> None:
    if isinstance(part, Literal):
        if isinstance(part.type, PrimitiveType) and part.type.type.startswith("interval"):
            raise _unsupported(f, "INTERVAL", "add days with date_add, or months with add_months")
    # a function of a plugin is one of a feature that the table's protocol lists: writers without it reject the table
    elif part.function not in _ALLOWED and part.function not in table.functions:
        raise _unsupported(f, part.function, "Spark takes only built-in functions that are the same at all times")
    elif part.function == "[]" and isinstance(bind_typed(part.args[0], table.schema, table.functions).type, MapType):
        raise _unsupported(f, "m[key]", "use element_at(m, key)")


def _check_timeless(table: TableState, f: Field, expression: Expression) -> None:
    """Reject what binding makes a constant: the time at which rows are written."""
    names = [c.function.lower() for c in _calls(expression) if isinstance(c, Call)]
    names += [
        leaf.path[0].lower()
        for leaf in leaves(expression)
        if isinstance(leaf, Column) and len(leaf.path) == 1 and table.schema.get(leaf.path[0]) is None
    ]
    found = next((n for n in names if n in _NOW), None)
    if found is not None:
        raise _unsupported(f, found, "it is not the same at all times; a default may use it")


def _unsupported(f: Field, function: str, why: str) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"The generation expression of column {f.name} holds {function}, which is not allowed there: {why}.",
        column=f.name,
        function=function,
    )
