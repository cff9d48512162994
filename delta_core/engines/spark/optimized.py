"""The results of OPTIMIZE and REORG on Spark: the columns of delta-spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

__all__ = ["OPTIMIZED", "optimized_row"]


def _longs(names: str) -> list[T.StructField]:
    return [T.StructField(n, T.LongType()) for n in names.split()]


def _struct(name: str, *fields: T.StructField) -> T.StructField:
    return T.StructField(name, T.StructType(list(fields)))


_SIZES = (*_longs("min max"), T.StructField("avg", T.DoubleType()), *_longs("totalFiles totalSize"))
_PARALLELISM = (
    "maxClusterActiveParallelism minClusterActiveParallelism maxSessionActiveParallelism minSessionActiveParallelism"
)
#: The columns.
OPTIMIZED = T.StructType([
    T.StructField("path", T.StringType()),
    _struct(
        "metrics",
        *_longs("numFilesAdded numFilesRemoved"),
        _struct("filesAdded", *_SIZES),
        _struct("filesRemoved", *_SIZES),
        *_longs("partitionsOptimized"),
        _struct(
            "zOrderStats",
            T.StructField("strategyName", T.StringType()),
            *(_struct(n, *_longs("num size")) for n in ("inputCubeFiles", "inputOtherFiles")),
            *_longs("inputNumCubes"),
            _struct("mergedFiles", *_longs("num size")),
            *_longs("numOutputCubes mergedNumCubes"),
        ),
        _struct(
            "clusteringStats",
            *(_struct(n, *_longs("numFiles size")) for n in ("inputZCubeFiles", "inputOtherFiles")),
            *_longs("inputNumZCubes"),
            _struct("mergedFiles", *_longs("numFiles size")),
            *_longs("numOutputZCubes"),
        ),
        *_longs("numBins numBatches totalConsideredFiles totalFilesSkipped"),
        T.StructField("preserveInsertionOrder", T.BooleanType()),
        *_longs("numFilesSkippedToReduceWriteAmplification numBytesSkippedToReduceWriteAmplification"),
        *_longs("startTimeMs endTimeMs totalClusterParallelism totalScheduledTasks"),
        _struct("autoCompactParallelismStats", *_longs(_PARALLELISM)),
        _struct("deletionVectorStats", *_longs("numDeletionVectorsRemoved numDeletionVectorRowsRemoved")),
        *_longs("numTableColumns numTableColumnsWithStats"),
    ),
])  # fmt: skip


def optimized_row(
    done: Mapping[str, Any], times_ms: tuple[int, int], num_tasks: int, columns: tuple[int, int], *, is_z_order: bool
) -> dict[str, Any]:
    """Return the metrics of delta-spark for those of `delta_core.DeltaTable.optimize`.

    ``clusteringStats`` and ``autoCompactParallelismStats`` are null.

    Parameters
    ----------
    done : Mapping
        The metrics.
    times_ms : tuple of int
        When it began and when it ended, ms since the epoch.
    num_tasks : int
        How many tasks the cluster runs at a time.
    columns : tuple of int
        How many columns the table has, and how many of them have statistics.
    is_z_order : bool
        Whether rows were ordered along a Z-order curve.
    """
    added, removed = (_sizes(done[n]) for n in ("filesAdded", "filesRemoved"))
    merged = {"num": removed["totalFiles"], "size": removed["totalSize"]}
    vectors = {n: done[n] for n in ("numDeletionVectorsRemoved", "numDeletionVectorRowsRemoved")}
    ordered = {
        "strategyName": "all", "inputCubeFiles": {"num": 0, "size": 0}, "inputOtherFiles": merged, "inputNumCubes": 0,
        "mergedFiles": merged, "numOutputCubes": done["numBatches"],
    }  # fmt: skip
    same = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized", "totalConsideredFiles", "totalFilesSkipped")
    return {
        **{n: done[n] for n in same},
        "filesAdded": added,
        "filesRemoved": removed,
        "zOrderStats": ordered if is_z_order else None,
        "numBins": done["numBatches"],
        "numBatches": 1,
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": times_ms[0],
        "endTimeMs": times_ms[1],
        "totalClusterParallelism": num_tasks,
        "totalScheduledTasks": 0,
        "deletionVectorStats": vectors if vectors["numDeletionVectorsRemoved"] else None,
        "numTableColumns": columns[0],
        "numTableColumnsWithStats": columns[1],
    }


def _sizes(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(given) if isinstance(given, str) else dict(given)
    return found if found["totalFiles"] else {**found, "min": None, "max": None}
