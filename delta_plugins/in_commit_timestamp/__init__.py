"""inCommitTimestamp: commits carry their own time. Protocol: In-Commit Timestamps."""

from operator import methodcaller

from delta_core.api import CommitTimestamp, TableFeature, TableState, hookimpl
from delta_plugins.in_commit_timestamp import logic

__all__ = ["FEATURE"]

FEATURE = TableFeature(
    "inCommitTimestamp",
    "writer",
    "Commits carry their own time, so that copying files does not change history.",
    aliases=("inCommitTimestamp-preview",),
    properties={
        "delta.enableInCommitTimestamps": "true switches it on",
        logic.ENABLEMENT_VERSION: "the first version with such a time, if not the table's first",
        logic.ENABLEMENT_TIMESTAMP: "that version's time, ms since the epoch",
    },
    active=methodcaller("flag", "delta.enableInCommitTimestamps"),
)


@hookimpl
def commit_timestamps(table: TableState) -> CommitTimestamp | None:
    return logic.commit_timestamps(table.configuration) if table.is_active(FEATURE.name) else None
