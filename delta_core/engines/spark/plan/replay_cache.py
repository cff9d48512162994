"""Checkpoints as persisted DataFrames: what was read of one serves every version built on it, in later reads too."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from pyspark.sql import DataFrame

from delta_core.engines.interface import CheckpointHandle
from delta_core.engines.records import FileIdentity
from delta_core.engines.spark.plan.checkpoint_frame import Shape, read_checkpoint

__all__ = ["MOST_CHECKPOINTS", "Facts", "CachedCheckpoint", "CheckpointKey", "forget", "cached_checkpoint"]

#: Checkpoints that are kept; the one that was requested the longest time ago goes first.
MOST_CHECKPOINTS = 4
#: Statistics of a checkpoint that are kept together.
_MOST_LEAVES = 32
#: Versions on one checkpoint whose sums are kept.
_MOST_VERSIONS = 64


class CheckpointKey(NamedTuple):
    """The checkpoint of a table: its files, each with its identity."""

    application: str
    uri: str
    metadata_id: str
    files: tuple[tuple[str, FileIdentity], ...]


class Facts(NamedTuple):
    """Sums over the live files of a version.

    Parameters
    ----------
    size : int
        Bytes of the files.
    num_vectors : int
        Files with a vector.
    stored : int
        Bytes of the vectors as the log has them.
    bits : int or None
        The same at a bit a row; None if statistics do not report.
    largest : int
        The most rows of a file with a vector, as far as known.
    """

    size: int
    num_vectors: int
    stored: int
    bits: int | None
    largest: int


class CachedCheckpoint(Struct):
    """A checkpoint's file actions, as far as they were requested."""

    session: Any
    frame: DataFrame
    shape: Shape
    facts: dict[int, Facts] = {}

    def remember(self, version: int, facts: Facts) -> None:
        """Keep the sums of a version."""
        self.facts[version] = facts
        while len(self.facts) > _MOST_VERSIONS:
            del self.facts[next(iter(self.facts))]


_cached: dict[CheckpointKey, CachedCheckpoint] = {}
_lock = threading.Lock()


def cached_checkpoint(
    spark: Any, key: CheckpointKey, files: Mapping[str, CheckpointHandle], shape: Shape
) -> CachedCheckpoint:
    """Return a checkpoint with at least the columns of a shape; it is read when a query first needs it.

    A shape that is larger than what is held takes its place, so that each checkpoint is kept once.
    """
    session = spark._jsparkSession
    with _lock:
        found = _cached.pop(key, None)
        if found is not None and not (found.session.equals(session) and found.shape.covers(shape)):
            if found.session.equals(session):
                shape = found.shape.joined(shape, _MOST_LEAVES)
            found.frame.unpersist()
            found = None
        if found is None:
            _drop_namesakes(key)
            found = CachedCheckpoint(session, read_checkpoint(spark, files, shape).persist(), shape)
        _cached[key] = found
        # what another application kept went with it
        for old in [k for k in _cached if k.application != key.application]:
            del _cached[old]
        while len(_cached) > MOST_CHECKPOINTS:
            _cached.pop(next(iter(_cached))).frame.unpersist()
        return found


def _drop_namesakes(key: CheckpointKey) -> None:
    """Drop other checkpoints in files of the same names: Spark takes files of one name for the same."""
    names = {name for name, *_ in key.files}
    outdated = [k for k in _cached if (k.application, k.uri) == (key.application, key.uri) and k != key]
    for old in outdated:
        if not names.isdisjoint(name for name, *_ in old.files):
            _cached.pop(old).frame.unpersist()


def forget(key: CheckpointKey) -> None:
    """Drop a checkpoint that turned out to be unreadable."""
    with _lock:
        found = _cached.pop(key, None)
    if found is not None:
        found.frame.unpersist()
