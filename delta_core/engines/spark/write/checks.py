"""The conditions of rows, as expressions that fail the job which writes them: no second pass, and no filter.

A filter could be pushed below what drops a row; so the conditions are in the value of a column that is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import Column, functions as F

from delta_core.engines.spark.write.values import BAD_VALUE
from delta_core.errors import ConstraintViolationError, DeltaError, SchemaMismatchError, shortened
from delta_core.expressions.printing import quote_name
from delta_core.kernel.write.schema_checks import SchemaCheck, schema_checks
from delta_core.schema.fields import format_path
from delta_core.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructType

__all__ = ["Condition", "enforced", "schema_conditions", "shown_row", "translated"]

#: A row is one line: JSON has no other line breaks than those it escapes.
_BROKEN = re.compile(r"delta_core check (\d+): (.*)")
_VALUE = re.compile(re.escape(BAD_VALUE) + r"(Column .*? before writing\.)", re.DOTALL)
#: Columns that a message shows of a row, and the longest row that it shows.
_SHOWN, _SHOWN_CHARACTERS = 20, 2000


class Condition(Struct, frozen=True):
    """A condition on rows; a row for which it is not true fails the write."""

    passes: Column
    name: str
    sql: str
    feature: str = ""
    column: str = ""


def enforced(value: Column, conditions: Sequence[Condition], row: Column) -> Column:
    """Return a value that only rows that fulfil every condition have."""
    if not conditions:
        return value
    failed: Any = F
    for number, condition in enumerate(conditions):
        shown = F.substring(F.coalesce(row, F.lit("")), 1, _SHOWN_CHARACTERS)
        message = F.concat(F.lit(f"delta_core check {number}: "), shown, F.lit("\n"))
        failed = failed.when(~F.coalesce(condition.passes, F.lit(False)), F.raise_error(message))
    return failed.otherwise(value)


def shown_row(schema: StructType) -> Column:
    """Return a row as text, for messages."""
    names = [f.name for f in schema.members if f.type != PrimitiveType("void")][:_SHOWN]
    return F.to_json(F.struct(*[F.col(quote_name(n)) for n in names]), {"ignoreNullFields": "false"})


def schema_conditions(schema: StructType, has_lengths: bool = True) -> Iterator[Condition]:
    """Yield what the schema itself requires: no null if there may be none, no text that is longer than declared.

    ``has_lengths``: whether the session regards the declared lengths of texts.
    """
    types = {f.name: f.type for f in schema.members}
    for name, check in schema_checks(schema).items():
        for test, text, path in _tests(check, types[name], has_lengths):
            yield Condition(test(F.col(quote_name(name))), text, text, column=path)


#: Whether a column passes; never null.
_Test = Callable[[Column], Column]


def _tests(check: SchemaCheck, t: DataType, has_lengths: bool) -> Iterator[tuple[_Test, str, str]]:
    path, longest = format_path(check.path), check.longest if has_lengths else None
    if check.required:
        yield F.isnotnull, f"NOT NULL {path}", path
    if longest is not None:
        text = f"{path} has at most {longest} characters"
        yield lambda x: F.coalesce(F.char_length(x) <= F.lit(longest), F.lit(True)), text, path
    for part, inner in check.parts:
        for test, text, place in _tests(inner, _part_type(t, part), has_lengths):
            yield _within(t, part, test), text, place


def _part_type(t: DataType, part: str) -> DataType:
    if isinstance(t, StructType):
        return next(f.type for f in t.members if f.name == part)
    if isinstance(t, ArrayType):
        return t.element_type
    assert isinstance(t, MapType)
    return t.key_type if part == "key" else t.value_type


def _within(t: DataType, part: str, test: _Test) -> _Test:
    """Return the test of what holds a part: true if it is null itself."""
    if isinstance(t, StructType):
        return lambda x: x.isNull() | test(x.getField(part))
    if isinstance(t, ArrayType):
        return lambda x: F.coalesce(F.forall(x, test), F.lit(True))
    parts = F.map_keys if part == "key" else F.map_values
    return lambda x: F.coalesce(F.forall(parts(x), test), F.lit(True))


def translated(error: BaseException, conditions: Sequence[Condition]) -> DeltaError | None:
    """Return what a failed job reports of a row that broke a condition or did not fit; None for other failures."""
    text = str(error)
    broken = _BROKEN.search(text)
    if broken is not None and int(broken[1]) < len(conditions):
        condition, row = conditions[int(broken[1])], _row(broken[2])
        text = f"{condition.name!r}" if condition.name == condition.sql else f"{condition.name!r} ({condition.sql})"
        return ConstraintViolationError(
            f"A row breaks the check {text}: {shortened(row)}. Correct the rows; nothing was written.",
            name=condition.name,
            expression=condition.sql,
            feature=condition.feature or None,
            column=condition.column or None,
            row=row,
        )
    value = _VALUE.search(text)
    return None if value is None else SchemaMismatchError(shortened(value[1], 600))


def _row(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # it was cut
        return text
