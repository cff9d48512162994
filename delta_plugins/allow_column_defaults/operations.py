"""The operations ``set_default`` and ``drop_default``: the value of a column for writes that leave it out."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from delta_core.api import ColumnNotFoundError, Field, Schema, Snapshot, Transaction, portable_sql
from delta_plugins.allow_column_defaults.logic import KEY

__all__ = ["drop_default", "set_default"]


def set_default(source: Any, column: str, expression: str, **commit: Any) -> int:
    """Set the default of a column for later writes, and return the version that has it; rows that are there stay.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table.
    column : str
        A column of the table; parts of columns can't have defaults.
    expression : str
        Spark SQL without columns, such as ``'new'`` (with its quotes) or ``current_timestamp()``.
    **commit
        Arguments of `Transaction.commit`.

    Raises
    ------
    ColumnNotFoundError
        The table has no such column.
    ExpressionError
        The expression can't be parsed, uses columns, or does not fit the column's type.
    SchemaError
        The column has values of another kind: it is generated or numbers rows.
    """
    return _changed(source, column, portable_sql(expression, "name"), commit)


def drop_default(source: Any, column: str, **commit: Any) -> int:
    """Drop the default of a column: writes that leave it out then write null. Returns the version without it.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table.
    column : str or sequence of str
        The column.
    **commit
        Arguments of `Transaction.commit`.

    Raises
    ------
    ColumnNotFoundError
        The table has no such column.
    """
    return _changed(source, column, None, commit)


def _changed(source: Any, column: str, expression: str | None, commit: dict[str, Any]) -> int:
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    index = snapshot.schema.index(column)
    if index is None:
        names = ", ".join(snapshot.schema.names[:20])
        raise ColumnNotFoundError(f"The table has no column {column!r}; its columns are: {names}.", column=column)
    fields = list(snapshot.schema.members)
    f = fields[index]
    if f.metadata.get(KEY) == expression:
        return snapshot.version
    kept = {k: v for k, v in f.metadata.items() if k != KEY}
    metadata = kept if expression is None else {**kept, KEY: expression}
    fields[index] = Field(f.name, f.type, f.nullable, metadata)
    shown = {"name": f.name, "type": f.type.type, "nullable": f.nullable, "metadata": metadata}
    said = {"column": json.dumps(shown, separators=(",", ":"))}
    transaction = Transaction(snapshot.context, snapshot, "CHANGE COLUMN", said)
    transaction.set_metadata(replace(snapshot.metadata, schema_string=Schema(fields).to_json()))
    return transaction.commit(**commit).version
