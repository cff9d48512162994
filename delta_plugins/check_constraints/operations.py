"""The operation ``add_constraint``: new conditions for a table, once every row that is there fulfils them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from delta_core.api import (
    Call,
    ConstraintViolationError,
    InvalidArgumentError,
    IsolationLevel,
    Literal,
    PrimitiveType,
    RowCheck,
    Snapshot,
    Transaction,
    negate,
    portable_sql,
)
from delta_plugins.check_constraints.logic import PREFIX, VALIDATED, constraints, row_check

__all__ = ["add_constraint", "drop_constraint", "validate_existing"]

_TRUE = Literal(True, PrimitiveType("boolean"))


def add_constraint(source: Any, conditions: Mapping[str, str], **commit: Any) -> int:
    """Add CHECK constraints to a table.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table's latest version.
    conditions : Mapping of str to str
        Spark SQL by name; double quotes enclose names of columns. Names of constraints are kept in lower case, under
        which Spark looks for them.
    **commit
        Arguments of `Transaction.commit`.

    Returns
    -------
    int
        The version that has them.

    Raises
    ------
    InvalidArgumentError
        A constraint of this name is there already.
    ConstraintViolationError
        A row breaks one of them; the table stays as it was.
    ConcurrentAppendError
        Rows were added meanwhile, which were not validated.

    Notes
    -----
    Reads every file that may hold a row which breaks a condition.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    constraints = {name.lower(): portable_sql(text, "name") for name, text in conditions.items()}
    _check_names(snapshot, conditions)
    parameters = {"name": ", ".join(constraints), "expr": ", ".join(constraints.values())}
    transaction = Transaction(snapshot.context, snapshot, VALIDATED, parameters, isolation=IsolationLevel.SERIALIZABLE)
    properties = {**snapshot.metadata.configuration, **{PREFIX + name: text for name, text in constraints.items()}}
    transaction.set_metadata(replace(snapshot.metadata, configuration=properties))
    validate_existing(snapshot, [row_check(transaction.table, name, text) for name, text in constraints.items()])
    transaction.read(None)
    return transaction.commit(**commit).version


def drop_constraint(source: Any, name: str, raise_if_not_exists: bool = True, **commit: Any) -> int:
    """Drop a CHECK constraint and return the version without it.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table.
    name : str
        Its name; case does not count.
    raise_if_not_exists : bool
        Whether a constraint that is not there is an error; if not, nothing is committed.
    **commit
        Arguments of `Transaction.commit`.

    Raises
    ------
    InvalidArgumentError
        The table has no constraint of this name.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    properties = snapshot.metadata.configuration
    there = constraints(properties)
    found = next((n for n in there if n.lower() == name.lower()), None)
    if found is None:
        if not raise_if_not_exists:
            return snapshot.version
        raise InvalidArgumentError(
            f"The table has no CHECK constraint {name!r}; it has: {', '.join(there) or 'none'}.", name=name
        )
    said = {"name": found, "expr": there[found], "existed": "true"}
    transaction = Transaction(snapshot.context, snapshot, "DROP CONSTRAINT", said)
    left = {k: v for k, v in properties.items() if k.lower() != f"{PREFIX}{found.lower()}"}
    transaction.set_metadata(replace(snapshot.metadata, configuration=left))
    return transaction.commit(**commit).version


def _check_names(snapshot: Snapshot, conditions: Mapping[str, str]) -> None:
    taken = {name.lower() for name in constraints(snapshot.metadata.configuration)}
    for name in conditions:
        if not name.strip() or name.lower() in taken:
            why = f"the table has a constraint {name!r} already" if name.strip() else "a constraint needs a name"
            raise InvalidArgumentError(
                f"CHECK constraint {name!r} can't be added: {why}. Choose another name.", name=name
            )
        taken.add(name.lower())


def validate_existing(snapshot: Snapshot, checks: Iterable[RowCheck]) -> None:
    """Check the rows that the table has.

    Raises
    ------
    ConstraintViolationError
        For the first check that a row breaks, with the number of such rows and one of them.
    """
    for check in checks:
        broken = negate(Call("<=>", (check.expression, _TRUE)))
        rows = snapshot.scan(predicate=broken)
        count = rows.count()
        if count:
            sample = rows.first()
            raise ConstraintViolationError(
                f"{count} row{'s' * (count > 1)} of the table break{'s' * (count == 1)} the CHECK constraint "
                f"{check.name!r} ({check.sql}); one is {sample}. Correct the rows first; the table stays as it was.",
                name=check.name,
                expression=check.sql,
                feature=check.feature,
                count=count,
                row=sample,
            )
