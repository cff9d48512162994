"""Versions at which DataFrames were read that no version was requested of: kept in their plans."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame

from delta_core.engines.spark.plan import private
from delta_core.errors import MetadataChangedError
from delta_core.kernel.snapshot import Snapshot

__all__ = ["version_read", "with_version"]


def with_version(rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Return rows whose plan contains the version at which they were read; without private interfaces, the rows."""
    if private.is_available(rows.sparkSession):
        private.mark_read(rows, json.dumps([snapshot.engine.storage.uri(""), snapshot.metadata.id, snapshot.version]))
    return rows


def version_read(rows: DataFrame, base: Snapshot) -> int | None:
    """Return the earliest version at which rows of a table were read, None if they contain none of `with_version`.

    Raises
    ------
    MetadataChangedError
        If they are rows of another table, which was at the same place.
    """
    root = base.engine.storage.uri("")
    found = [(of, version) for place, of, version in map(json.loads, private.read_marks(rows)) if place == root]
    if any(of != base.metadata.id for of, _ in found):
        raise MetadataChangedError(
            f"The rows to write were read at {root} before the table there was made again. Read them again.", path=root
        )
    return min((version for _, version in found), default=None)
