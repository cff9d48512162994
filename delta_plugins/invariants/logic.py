"""From the metadata of fields to the conditions that rows have to fulfil."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from delta_core import api
from delta_core.api import (
    ColumnNotFoundError,
    ExpressionError,
    RowCheck,
    SchemaError,
    StructType,
    UnsupportedOperationError,
    walk,
)

# every table without feature lists has this feature: what binds conditions is loaded where a column states one (`api.`)
if TYPE_CHECKING:
    from delta_core.api import Field, Path, TableState

__all__ = ["KEY", "check_unused", "conditions", "is_needed", "row_checks", "users"]

NAME = "invariants"
KEY = "delta.invariants"


def is_needed(schema: StructType) -> bool:
    """Whether a column is NOT NULL or states a condition: tables with feature lists must then list the feature."""
    return bool(users(schema))


def users(schema: StructType) -> list[Path]:
    """Return the columns that are NOT NULL or state a condition."""
    stated = [path for path, f in walk(schema) if KEY in f.metadata]
    return [*stated, *(path for path, f in _columns(schema) if not f.nullable and path not in stated)]


def _columns(struct: StructType, prefix: Path = ()) -> Iterator[tuple[Path, Field]]:
    """Yield columns and fields of structs; the parts of lists and maps have no value of their own in a row."""
    for f in struct.members:
        yield (*prefix, f.name), f
        if isinstance(f.type, StructType):
            yield from _columns(f.type, (*prefix, f.name))


def conditions(schema: StructType) -> dict[Path, str]:
    """Return the condition of each column that states one, in Spark SQL.

    Raises
    ------
    SchemaError
        For one that can't be read.
    UnsupportedOperationError
        For one within a list or map.
    """
    found = {path: _read(path, f.metadata[KEY]) for path, f in _columns(schema) if KEY in f.metadata}
    for path, f in walk(schema):
        if KEY in f.metadata and path not in found:
            raise UnsupportedOperationError(
                f"Column {api.format_path(path)} states an invariant within a list or map, which is not checked here. "
                "State it as a CHECK constraint on the whole column.",
                column=api.format_path(path),
            )
    return found


def _read(path: Path, value: Any) -> str:
    try:
        text = (api.decode_json(value) if isinstance(value, str) else value)["expression"]["expression"]
        if not isinstance(text, str):
            raise TypeError(text)
    except (ValueError, KeyError, TypeError) as e:
        raise SchemaError(
            f"Column {api.format_path(path)} has {KEY}={value!r}; expected JSON such as "
            '{"expression": {"expression": "x > 3"}}.',
            column=api.format_path(path),
        ) from e
    return text


def row_checks(table: TableState) -> list[RowCheck]:
    """Return a check for each condition; null violates it like false.

    Raises
    ------
    ExpressionError
        For a condition that does not fit the table; the message names the column.
    """
    return [_check(table, api.format_path(path), text) for path, text in conditions(table.schema).items()]


def check_unused(table: TableState, paths: Iterable[Path]) -> None:
    """Reject to drop or rename a column that a condition uses.

    Raises
    ------
    SchemaError
        The message names the column and the condition.
    """
    for check in row_checks(table):
        for path in paths:
            if api.uses(check.expression, path):
                column = api.format_path(path)
                raise SchemaError(
                    f"Column {column} can't be dropped or renamed: the {check.name} ({check.sql}) uses it. Remove "
                    f"{KEY} from the column's metadata first.",
                    column=column,
                    feature=NAME,
                )


def _check(table: TableState, column: str, text: str) -> RowCheck:
    try:
        bound = api.bind_typed(api.parse_sql(text), table.schema, table.functions)
    except (ExpressionError, ColumnNotFoundError) as e:
        raise type(e)(f"The invariant of column {column}: {e.message}", **{**e.facts, "column": column}) from e
    if bound.type != api.PrimitiveType("boolean"):
        raise ExpressionError(
            f"The invariant of column {column}, {text!r}, is {api.spark_name(bound.type)}; expected a condition "
            "(BOOLEAN).",
            column=column,
            sql=text,
        )
    return RowCheck(NAME, f"invariant of {column}", bound.expression, sql=text)
