"""From table properties to the conditions that rows have to fulfil."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from delta_core.api import (
    ColumnNotFoundError,
    ExpressionError,
    Path,
    PrimitiveType,
    RemainingFilesCheck,
    RowCheck,
    SchemaError,
    TableState,
    bind_typed,
    format_path,
    parse_sql,
    spark_name,
    uses,
)

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["PREFIX", "VALIDATED", "check_unused", "constraints", "row_check", "row_checks", "validation"]

NAME = "checkConstraints"
PREFIX = "delta.constraints."
#: The operation that looked at the rows that are there before it adds a condition.
VALIDATED = "ADD CONSTRAINT"
#: The other one provides rows and conditions of one older version.
_VALIDATED = (VALIDATED, "RESTORE")


def constraints(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions in Spark SQL by name; the case of the prefix does not count."""
    return {key[len(PREFIX) :]: text for key, text in configuration.items() if key.lower().startswith(PREFIX)}


def row_checks(table: TableState) -> list[RowCheck]:
    """Return a check for each constraint, which null breaks like false.

    Raises
    ------
    ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
        As `row_check`.
    """
    return [row_check(table, name, text) for name, text in constraints(table.configuration).items()]


def row_check(table: TableState, name: str, text: str) -> RowCheck:
    """Return the check of one constraint.

    Raises
    ------
    ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
        The condition does not fit the table; each names the constraint.
    """
    try:
        bound = bind_typed(parse_sql(text), table.schema, table.functions)
    except (ExpressionError, ColumnNotFoundError) as e:
        raise type(e)(f"CHECK constraint {name}: {e.message}", **{**e.facts, "name": name}) from e
    if bound.type != PrimitiveType("boolean"):
        raise ExpressionError(
            f"CHECK constraint {name}, {text!r}, is {spark_name(bound.type)}; expected a condition (BOOLEAN).",
            name=name,
            sql=text,
        )
    return RowCheck(NAME, name, bound.expression, sql=text)


def check_unused(table: TableState, paths: Iterable[Path], kind: type[SchemaError], change: str) -> None:
    """Reject a change of a column that a constraint uses: its rows were checked by the old name and type.

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
        The message names column and constraint.
    """
    for check in row_checks(table):
        for path in paths:
            if uses(check.expression, path):
                column = format_path(path)
                raise kind(
                    f"Column {column} can't {change}: the CHECK constraint {check.name} ({check.sql}) uses it. "
                    "Drop the constraint first.",
                    column=column,
                    name=check.name,
                    feature=NAME,
                )


def validation(attempt: AttemptView) -> list[RemainingFilesCheck]:
    """Return the rule that no row stays which new conditions were not held against, nothing if there is none."""
    if attempt.previous is None or not attempt.metadata_changed or attempt.operation in _VALIDATED:
        return []
    before = constraints(attempt.previous.configuration)
    new = [name for name, text in constraints(attempt.table.configuration).items() if before.get(name) != text]
    names = ", ".join(new)
    message = (
        f"would stay whose rows were not checked against the CHECK constraint {names}. Leave it out of the metadata, "
        "and add it with table.operation('add_constraint')({'name': 'condition'}), which checks them first."
    )
    return [RemainingFilesCheck(NAME, "", message)] if new else []
