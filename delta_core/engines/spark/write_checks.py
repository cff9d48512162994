"""What rows have to fulfil, as conditions that fail the job which writes them: no second pass, and no filter.

A filter could be pushed below what drops a row; so the conditions stand in the value of a column that is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from delta_core.engines.spark.write_values import BAD_VALUE
from delta_core.errors import ConstraintViolationError, DeltaError, EngineError, SchemaMismatchError
from delta_core.expressions.printing import quote_name
from delta_core.schema import format_path
from delta_core.types import ArrayType, DataType, MapType, PrimitiveType, StructType
from delta_core.write.schema_checks import SchemaCheck, schema_checks

__all__ = ["Condition", "enforced", "schema_conditions", "translated"]

_BROKEN = re.compile(r"delta_core check (\d+): (.*?) :end of row", re.DOTALL)
_VALUE = re.compile(re.escape(BAD_VALUE) + r"(Column .*? before writing\.)", re.DOTALL)
#: Columns that a message shows of a row, and the longest row that it shows.
_SHOWN, _SHOWN_CHARACTERS = 20, 2000


@dataclass(frozen=True)
class Condition:
    """A condition on rows; a row for which it is not true fails the write."""

    passes: Column
    name: str
    sql: str
    feature: str = ""
    column: str = ""


def enforced(value: Column, conditions: Sequence[Condition], row: Column) -> Column:
    """Return a value that can be had of rows only that fulfil every condition."""
    if not conditions:
        return value
    failed: Any = F
    for number, condition in enumerate(conditions):
        shown = F.substring(F.coalesce(row, F.lit("")), 1, _SHOWN_CHARACTERS)
        message = F.concat(F.lit(f"delta_core check {number}: "), shown, F.lit(" :end of row"))
        failed = failed.when(~F.coalesce(condition.passes, F.lit(False)), F.raise_error(message))
    return failed.otherwise(value)  # type: ignore[no-any-return]


def shown_row(schema: StructType) -> Column:
    """Return a row as text, for messages."""
    names = [f.name for f in schema.fields if f.type != PrimitiveType("void")][:_SHOWN]
    return F.to_json(F.struct(*[F.col(quote_name(n)) for n in names]))


def schema_conditions(schema: StructType) -> Iterator[Condition]:
    """Yield what the schema itself asks: no null where there may be none, no text that is longer than declared."""
    types = {f.name: f.type for f in schema.fields}
    for name, check in schema_checks(schema).items():
        yield from _conditions(check, types[name], F.col(quote_name(name)))


def _conditions(check: SchemaCheck, t: DataType, column: Column) -> Iterator[Condition]:
    path = format_path(check.path)
    for passes, name in _own(check, column):
        yield Condition(passes, name, name, column=path)
    for part, inner in check.parts:
        for found in _conditions(inner, *_part(t, part, column)):
            yield found
    return


def _own(check: SchemaCheck, column: Column) -> Iterator[tuple[Column, str]]:
    path = format_path(check.path)
    if check.required:
        yield column.isNotNull(), f"NOT NULL {path}"
    if check.longest is not None:
        text = f"{path} has at most {check.longest} characters"
        yield F.coalesce(F.char_length(column) <= check.longest, F.lit(True)), text


def _part(t: DataType, name: str, column: Column) -> tuple[DataType, Column]:
    raise NotImplementedError


def translated(error: BaseException, conditions: Sequence[Condition]) -> DeltaError | None:
    """Return what a failed job says of a row that broke a condition or did not fit; None for any other failure."""
    text = str(error)
    broken = _BROKEN.search(text)
    if broken is not None and int(broken[1]) < len(conditions):
        condition, row = conditions[int(broken[1])], _row(broken[2])
        return ConstraintViolationError(
            f"A row breaks the check {condition.name!r} ({condition.sql}): {row}. Correct the rows; nothing was written.",
            name=condition.name, expression=condition.sql, feature=condition.feature or None,
            column=condition.column or None, row=row,
        )  # fmt: skip
    value = _VALUE.search(text)
    return None if value is None else SchemaMismatchError(value[1])


def _row(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # it was cut
        return text
