"""From table properties to the conditions that rows have to fulfil."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_core.api import (
    ColumnNotFoundError,
    ExpressionError,
    PrimitiveType,
    RowCheck,
    TableState,
    UnsupportedOperationError,
    bind_typed,
    parse_sql,
    spark_name,
)

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["PREFIX", "VALIDATED", "check_validated", "constraints", "row_check", "row_checks"]

NAME = "checkConstraints"
PREFIX = "delta.constraints."
#: The operation that looked at the rows that are there before it adds a condition.
VALIDATED = "ADD CONSTRAINT"
#: Operations, by how they begin, that bring rows and conditions which belong together.
_WHOLE = (VALIDATED, "CREATE", "REPLACE", "CLONE", "RESTORE")


def constraints(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions in Spark SQL by name; the case of the prefix does not count."""
    return {key[len(PREFIX) :]: text for key, text in configuration.items() if key.lower().startswith(PREFIX)}


def row_checks(table: TableState) -> list[RowCheck]:
    """Return a check for each constraint, which null breaks like false.

    Raises what `row_check` raises.
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
            name=name, sql=text,
        )  # fmt: skip
    return RowCheck(NAME, name, bound.expression, sql=text)


def check_validated(attempt: AttemptView) -> None:
    """Refuse conditions that come to a table without a look at its rows, as a mere property.

    Raises UnsupportedOperationError naming the constraint.
    """
    if attempt.previous is None or not attempt.metadata_changed or attempt.operation.startswith(_WHOLE):
        return
    before = constraints(attempt.previous.configuration)
    new = [name for name, text in constraints(attempt.table.configuration).items() if before.get(name) != text]
    if new:
        raise UnsupportedOperationError(
            f"{attempt.operation} would add the CHECK constraint {new[0]} to rows that nobody validated. Use the verb "
            "add_constraint, which does.", name=new[0],
        )  # fmt: skip
