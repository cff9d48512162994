"""appendOnly: existing rows stay. Protocol: Append-only Tables."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING

from delta_core.api import InvalidArgumentError, Metadata, TableFeature, TableState, UnsupportedOperationError, hookimpl

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["FEATURE"]

PROPERTY = "delta.appendOnly"
FEATURE = TableFeature(
    "appendOnly",
    "writer",
    "Existing rows can be neither deleted nor changed.",
    legacy_writer=2,
    properties={PROPERTY: "true forbids commits that remove rows"},
    active=methodcaller("flag", PROPERTY),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if metadata.configuration.get(PROPERTY, "").strip().lower() == "true" else []


@hookimpl
def check_metadata(table: TableState, previous: TableState | None) -> None:
    """Reject a value that is neither true nor false: it would protect nothing. One that is there already stays."""
    text = table.property(PROPERTY)
    known = None if previous is None else previous.property(PROPERTY)
    if text is not None and text != known and text.strip().lower() not in ("true", "false"):
        raise InvalidArgumentError(
            f"Table property {PROPERTY} is {text!r}; expected true or false.", property=PROPERTY, value=text
        )


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    """Reject removes that change data. What counts is the property before the commit: none lifts its own ban."""
    if attempt.previous is None or not attempt.previous.is_active(FEATURE.name):
        return
    changing = attempt.removes.column("dataChange").fill_null(True)
    removed = attempt.removes.filter(changing)
    if removed.num_rows:
        raise UnsupportedOperationError(
            f"{attempt.operation} would remove or change rows of {removed.num_rows} file(s), such as "
            f"{removed.column('path')[0].as_py()}, but the table is append-only ({PROPERTY}=true). Set the property "
            "to false first, in a commit of its own.",
            property=PROPERTY,
        )
