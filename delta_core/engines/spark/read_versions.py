"""Versions at which DataFrames were read that no version was requested of: kept in their plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from delta_core.engines.spark.plan import private
from delta_core.errors import EngineError, MetadataChangedError
from delta_core.kernel.snapshot import Snapshot

__all__ = ["version_read", "with_version"]


#: The attribute of a plan of Spark Connect that has the mark; plans that are made of it refer to it.
_MARK = "_delta_core_read"
_CONNECT = "pyspark.sql.connect."


def with_version(rows: DataFrame, snapshot: Snapshot, *, may_lack_classes: bool = False) -> DataFrame:
    """Return rows whose plan contains the version at which they were read.

    With ``may_lack_classes`` a Spark that can't compile classes of this library is no error: the rows stay as they are.
    So do those of a classic session without private interfaces.
    """
    text = json.dumps([snapshot.engine.storage.uri(""), snapshot.metadata.id, snapshot.version])
    if not private.is_available(rows.sparkSession):
        plan = getattr(rows, "_plan", None)
        if plan is not None:
            setattr(plan, _MARK, text)
        return rows
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
    is_classic = private.is_available(rows.sparkSession)
    marks = private.read_marks(rows) if is_classic else _client_marks(getattr(rows, "_plan", None))
    found = [(of, version) for place, of, version in map(json.loads, marks) if place == root]
    if any(of != base.metadata.id for of, _ in found):
        raise MetadataChangedError(
            f"The rows to write were read at {root} before the table there was made again. Read them again.", path=root
        )
    return min((version for _, version in found), default=None)


def _client_marks(plan: Any) -> Iterator[str]:
    """Yield the marks in a plan that a client of Spark Connect has, and in the plans of its subqueries."""
    seen, left = set[int](), [plan]
    while left:
        part = left.pop()
        if isinstance(part, (list, tuple)):
            left += part
        elif isinstance(part, Mapping):
            left += part.values()
        elif type(part).__module__.startswith(_CONNECT) and id(part) not in seen:
            seen.add(id(part))
            # not by getattr: any name is one of a Column; a session refers to no plan
            held = vars(part) if isinstance(getattr(part, "__dict__", None), dict) else {}
            if _MARK in held:
                yield held[_MARK]
            left += [value for name, value in held.items() if not name.endswith("session")]
