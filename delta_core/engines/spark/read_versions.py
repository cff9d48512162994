"""Versions at which DataFrames were read that no version was requested of: kept in their plans."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame

from delta_core.engines.spark.plan import private
from delta_core.errors import EngineError, MetadataChangedError
from delta_core.kernel.snapshot import Snapshot

__all__ = ["version_read", "with_version"]


def with_version(rows: DataFrame, snapshot: Snapshot, *, may_lack_classes: bool = False) -> DataFrame:
    """Return rows whose plan contains the version at which they were read; without private interfaces, the rows.

    With ``may_lack_classes`` a Spark that can't compile classes of this library is no error: the rows stay as they are.
    """
    if not private.is_available(rows.sparkSession):
        return rows
    text = json.dumps([snapshot.engine.storage.uri(""), snapshot.metadata.id, snapshot.version])
    try:
        private.mark_read(rows, text)
    except EngineError:
        if not may_lack_classes:
            raise
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
