"""appendOnly: existing rows stay. Protocol: Append-only Tables."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING

from delta_core import api
from delta_core.api import AppendOnlyError, TableFeature, hookimpl

if TYPE_CHECKING:
    from delta_core.api import AttemptView, FeatureStep, Metadata

__all__ = ["FEATURE"]

PROPERTY = "delta.appendOnly"
FEATURE = TableFeature(
    "appendOnly",
    "writer",
    "Existing rows can be neither deleted nor changed.",
    properties={PROPERTY: "true forbids commits that remove rows"},
    flags=(PROPERTY,),
    active=methodcaller("flag", PROPERTY),
)


@hookimpl
def required_features(metadata: Metadata) -> Iterable[str]:
    return [FEATURE.name] if metadata.configuration.get(PROPERTY, "").strip().lower() == "true" else []


@hookimpl
def check_commit(attempt: AttemptView) -> None:
    """Reject removes that change data. The property before the commit counts: none lifts its own ban.

    Raises
    ------
    AppendOnlyError
        If the commit removes or changes rows.
    """
    if attempt.previous is None or not attempt.previous.is_active(FEATURE.name):
        return
    changing = attempt.removes.column("dataChange").fill_null(True)
    removed = attempt.removes.filter(changing)
    if removed.num_rows:
        raise AppendOnlyError(
            f"{attempt.operation} would remove or change rows of {removed.num_rows} file(s), such as "
            f"{removed.column('path')[0].as_py()}, but the table is append-only ({PROPERTY}=true). Set the property "
            "to false first, in a commit of its own.",
            property=PROPERTY,
        )


@hookimpl
def feature_steps(change: str) -> Iterable[FeatureStep]:
    # nearly every table has this feature, and its reads do not load steps
    return [api.RemoveProperties(FEATURE.name, (PROPERTY,))] if change == "drop" else []
