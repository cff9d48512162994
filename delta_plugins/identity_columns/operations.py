"""The operation ``sync_identity``: the mark of an identity column moves over values that rows contain."""

from __future__ import annotations

from typing import Any

from delta_core.api import InvalidArgumentError, IsolationLevel, Snapshot, Transaction
from delta_plugins.identity_columns.logic import Identity, identities, with_marks

__all__ = ["sync_identity"]


def sync_identity(source: Any, column: str) -> int | None:
    """Move the mark of an identity column over all its values, so that the next ones are new.

    Parameters
    ----------
    source : Snapshot, or anything with ``snapshot()``
        The table's latest version.
    column : str
        The identity column's name, in any case.

    Returns
    -------
    int or None
        The mark; None if the column has no value at or after its start.

    Raises
    ------
    InvalidArgumentError
        The table has no identity column of this name.
    CommitConflictError
        Rows were added or the table changed meanwhile.

    Notes
    -----
    Reads the whole column. The mark never moves back, and nothing is committed if it is right already.
    """
    snapshot: Snapshot = source.snapshot() if callable(getattr(source, "snapshot", None)) else source
    identity = next((i for i in identities(snapshot.schema) if i.column.lower() == column.lower()), None)
    if identity is None:
        raise InvalidArgumentError(f"The table has no identity column {column!r}.", column=column)
    last = _last_value(snapshot, identity)
    reached = None if last is None else identity.rounded(last)
    mark = identity.further(identity.mark, reached)
    if mark is None or mark == identity.mark:
        return identity.mark
    if not -(2**63) <= mark < 2**63:
        raise InvalidArgumentError(
            f"Column {identity.column} holds {last}, after which no value of start {identity.start} and step "
            f"{identity.step} is left in 64 bits.",
            column=identity.column,
        )
    transaction = Transaction(
        snapshot.context, snapshot, "SYNC IDENTITY", {"column": identity.column}, isolation=IsolationLevel.SERIALIZABLE
    )
    transaction.read(None)
    transaction.set_metadata(with_marks(snapshot.metadata, {identity.column: (mark, mark)}))
    transaction.commit()
    return mark


def _last_value(snapshot: Snapshot, identity: Identity) -> int | None:
    return identity.further(*snapshot.scan([identity.column]).bounds())
