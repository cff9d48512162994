"""Work on files by executors: they list folders, delete files and read footers; no rows go through their Python."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Spread
from delta_core.engines.spark.failures import WorkersLackPackageError, convert_failures, failing_as
from delta_core.engines.spark.plan import private

__all__ = ["SparkSpread", "spreading"]

_log = logging.getLogger(__name__)
_PATH = "path"
_TYPES = {pa.string(): "string", pa.int64(): "bigint"}
#: Tasks for each core, so that executors which are done early get more to do.
_TASKS = 4

Work = Callable[[pa.Array], Iterator[pa.RecordBatch]]


def spreading(spark: Any) -> Spread | None:
    """Return what runs work on executors; None if these are this machine, or of a session of Spark Connect."""
    if not private.is_available(spark) or private.is_local(spark):
        return None
    return SparkSpread(spark)


class SparkSpread(Struct, frozen=True):
    """Runs work as a Spark job.

    Parameters
    ----------
    spark : SparkSession
        The session.
    """

    spark: Any

    def __call__(self, work: Work, paths: pa.Array, schema: pa.Schema) -> pa.Table:
        """Run work for parts of paths on executors; here, if they lack this package.

        Raises
        ------
        EngineError
            If the job fails.
        """
        if not len(paths):
            return schema.empty_table()
        convert_failures()
        tasks = min(len(paths), _TASKS * int(self.spark.sparkContext.defaultParallelism))
        shape = ", ".join(f"{f.name} {_TYPES[f.type]}" for f in schema)
        try:
            with private.own_python(self.spark), failing_as("Spark's executors failed to work on files"):
                rows = self.spark.createDataFrame(pa.table({_PATH: paths})).repartition(tasks)
                return rows.mapInArrow(_Task(work), shape).toArrow().cast(schema)
        except WorkersLackPackageError as e:
            _log.warning("The driver does the work on %d paths itself: %s", len(paths), e)
            return pa.Table.from_batches(list(work(paths)), schema)


class _Task(Struct, frozen=True):
    """The function that an executor runs."""

    work: Work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self.work(batch.column(0).cast(pa.string()))
