"""From table properties to where commit times stand."""

from collections.abc import Mapping

from delta_core.api import CommitTimestamp, CorruptTableError

__all__ = ["ENABLEMENT_TIMESTAMP", "ENABLEMENT_VERSION", "FIELD", "commit_timestamps"]

FIELD = "inCommitTimestamp"
ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def commit_timestamps(configuration: Mapping[str, str]) -> CommitTimestamp:
    """Return the rule of a table whose in-commit timestamps are on.

    Without the enablement properties they are on since version 0. Raises CorruptTableError for one property
    without the other, or a value that is not a number.
    """
    version, timestamp_ms = (_number(configuration, name) for name in (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP))
    if (version is None) != (timestamp_ms is None):
        present, absent = (ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP)[:: 1 if timestamp_ms is None else -1]
        raise CorruptTableError(f"Table property {present} is set without {absent}, expected both or none.")
    return CommitTimestamp("inCommitTimestamp", FIELD, version or 0, timestamp_ms)


def _number(configuration: Mapping[str, str], name: str) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise CorruptTableError(f"Table property {name} is {text!r}, expected a number from 0.", property=name)
    return number
