"""Texts of the declared type ``char(n)``: shorter ones are padded where they are read and compared, as by Spark.

Files hold them as they were written, so both forms of a value are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.plan import private
from delta_core.engines.spark.settings import SessionSettings
from delta_core.errors import ColumnNotFoundError
from delta_core.expressions import ast
from delta_core.expressions.ast import Call, Cast, EngineCall, Expression, Literal
from delta_core.expressions.printing import quote_name
from delta_core.kernel.write.schema_checks import CHAR_VARCHAR, CharLengths, char_lengths, declared
from delta_core.schema.fields import Path, find
from delta_core.schema.types import ArrayType, DataType, Field, MapType, PrimitiveType, StructType

__all__ = ["declared_field", "has_chars", "padded_expression", "with_declared_types"]

_COMPARISONS = frozenset(("=", "!=", "<=>", "<", "<=", ">", ">=", "in"))
_DECLARED = ("char(", "varchar(")


def has_chars(schema: StructType) -> bool:
    """Whether a column has texts of the type ``char(n)``."""
    return any(char_lengths(f) is not None for f in schema.members if f.metadata)


def declared_field(f: Field) -> Field:
    """Return a field as tables have it: texts of declared lengths are strings, and metadata has the declared type."""
    stored = _without_declared(f.type)
    if stored == f.type:
        return f
    return Field(f.name, stored, f.nullable, {**f.metadata, CHAR_VARCHAR: _text(f.type)})


def _without_declared(t: DataType) -> DataType:
    if isinstance(t, StructType):
        return StructType(Field(f.name, _without_declared(f.type), f.nullable, f.metadata) for f in t.members)
    if isinstance(t, ArrayType):
        return ArrayType(_without_declared(t.element_type), t.contains_null)
    if isinstance(t, MapType):
        return MapType(_without_declared(t.key_type), _without_declared(t.value_type), t.value_contains_null)
    return PrimitiveType("string") if t.type.startswith(_DECLARED) else t


def _text(t: DataType) -> str:
    """Return a type as Spark spells it within the metadata."""
    if isinstance(t, StructType):
        return f"struct<{','.join(f'{f.name}:{_text(f.type)}' for f in t.members)}>"
    if isinstance(t, ArrayType):
        return f"array<{_text(t.element_type)}>"
    if isinstance(t, MapType):
        return f"map<{_text(t.key_type)},{_text(t.value_type)}>"
    return {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(t.type, t.type)


# --- rows that are read ----------------------------------------------------------------------


def with_declared_types(rows: DataFrame, schema: StructType, settings: SessionSettings) -> DataFrame:
    """Return the rows of a table with the declared types of its columns, by which Spark compares them, and padded.

    Parameters
    ----------
    rows : DataFrame
        The rows as files hold them.
    schema : StructType
        The table's columns.
    settings : SessionSettings
        Whether texts are padded.
    """
    marked = {f.name: f for f in schema.members if declared(f)}
    if not marked or not marked.keys() & set(private.column_names(rows)):
        return rows
    shown = StructType.from_json(private.schema_json(rows))
    columns = []
    for f in shown.members:
        column, own = F.col(quote_name(f.name)), marked.get(f.name)
        if own is not None:
            lengths = char_lengths(own) if settings.pads_chars else None
            is_whole = _names(f.type) == _names(own.type)
            metadata = {CHAR_VARCHAR: declared(own)} if is_whole else {}
            column = _padded(column, f.type, lengths).alias(f.name, metadata=metadata)
        columns.append(column)
    found = rows.select(*columns)
    return private.with_names(found) if private.is_available(rows.sparkSession) else found


def _names(t: DataType) -> Any:
    if isinstance(t, StructType):
        return {f.name: _names(f.type) for f in t.members}
    if isinstance(t, ArrayType):
        return [_names(t.element_type)]
    return [_names(t.key_type), _names(t.value_type)] if isinstance(t, MapType) else None


def _padded(column: Column, t: DataType, lengths: CharLengths) -> Column:
    if lengths is None:
        return column
    if isinstance(lengths, int):
        return F.when(F.char_length(column) < lengths, F.rpad(column, lengths, " ")).otherwise(column)
    if isinstance(t, StructType):
        fields = [_padded(column.getField(f.name), f.type, lengths.get(f.name)).alias(f.name) for f in t.members]
        return F.when(column.isNotNull(), F.struct(*fields))
    if isinstance(t, ArrayType):
        return F.transform(column, _part(t.element_type, lengths["element"]))
    assert isinstance(t, MapType)
    key, value = lengths.get("key"), lengths.get("value")
    if value is not None:
        change = _part(t.value_type, value)
        column = F.transform_values(column, lambda _, v: change(v))
    if key is not None:
        other = _part(t.key_type, key)
        column = F.transform_keys(column, lambda k, _: other(k))
    return column


def _part(t: DataType, lengths: CharLengths) -> Callable[[Column], Column]:
    return lambda part: _padded(part, t, lengths)


# --- conditions and values of statements -----------------------------------------------------


def padded_expression(
    expression: Expression, schema: StructType, settings: SessionSettings, alias: str | None = None
) -> Expression:
    """Return an expression that compares and reads texts of the type ``char(n)`` as a query of Spark does.

    Parameters
    ----------
    expression : Expression
        Over the columns of the table, and of others; the same is returned if it reads no such text.
    schema : StructType
        The table's columns.
    settings : SessionSettings
        Whether texts are padded where they are read. They are in comparisons, unless all such types are plain strings.
    alias : str, optional
        The alias of the table in a merge.
    """
    trees = {f.name.lower(): lengths for f in schema.members if (lengths := char_lengths(f)) is not None}
    if not trees or settings.has_plain_chars:
        return expression

    def length(e: Expression) -> int | None:
        return _length(e, schema, trees, alias) if isinstance(e, ast.Column) else None

    def change(e: Expression) -> Expression:
        if isinstance(e, Cast):
            return replace(e, arg=change(e.arg), sql="")
        if isinstance(e, EngineCall):
            return replace(e, args=tuple(change(a) for a in e.args))
        if isinstance(e, Call):
            lengths = [n for a in e.args if (n := length(a)) is not None and e.function in _COMPARISONS]
            args = [_compared(a, length(a), max(lengths)) if lengths else None for a in e.args]
            return replace(e, args=tuple(found or change(a) for a, found in zip(e.args, args, strict=True)), sql="")
        found = length(e)
        return e if found is None or not settings.pads_chars else _rpad(e, found)

    return change(expression) if any(length(leaf) for leaf in ast.leaves(expression)) else expression


def _length(e: ast.Column, schema: StructType, trees: Mapping[str, CharLengths], alias: str | None) -> int | None:
    path: Path = e.path
    if alias is not None and len(path) > 1:
        if path[0].lower() != alias.lower():
            return None
        path = path[1:]
    try:
        found = find(schema, path)[0]
    except ColumnNotFoundError:
        return None
    lengths: CharLengths = trees.get(found[0].lower())
    for name in found[1:]:
        lengths = lengths.get(name) if isinstance(lengths, dict) else None
    return lengths if isinstance(lengths, int) else None


def _compared(e: Expression, length: int | None, longest: int) -> Expression | None:
    """Return a side of a comparison with texts of this length; None for what is compared as it is."""
    if length is not None:
        return _rpad(e, longest)
    if isinstance(e, Literal) and isinstance(e.value, str) and e.type == PrimitiveType("string"):
        return replace(e, value=e.value.ljust(longest))
    return None


def _rpad(e: Expression, length: int) -> Expression:
    """Return a text padded with spaces; one that is longer stays, as sessions without lengths write it."""
    is_short = Call("<", (Call("length", (e,)), Literal(length, PrimitiveType("integer"))))
    padded = Call("rpad", (e, Literal(length, PrimitiveType("integer")), Literal(" ", PrimitiveType("string"))))
    return Call("if", (is_short, padded, e))
