"""How Spark divides the files of a change of rows into tasks: evenly among its cores.

Spark fills tasks with up to 128 MB of files. Where there are few tasks, some cores then have twice the work of others,
and those wait: three tasks take two cores as long as four.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["split_bytes"]

#: Settings of Spark with which it divides files, and their defaults.
_SETTINGS = {
    "spark.sql.files.maxPartitionBytes": "134217728b",
    "spark.sql.files.openCostInBytes": "4194304b",
    "spark.sql.files.minPartitionNum": None,
    "spark.sql.files.maxPartitionNum": None,
}
_MOST_BYTES, _OPEN_BYTES = 128 << 20, 4 << 20
#: Files, and tasks for each core, above which the difference is small.
_MOST_FILES, _MANY_TASKS = 2_000, 4
#: By how much tasks may be larger than Spark's.
_MOST_GROWTH = 1.5


def split_bytes(spark: Any, sizes: NDArray[np.int64]) -> int | None:
    """Return the bytes up to which Spark had best fill tasks with files; None for Spark's own choice.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    sizes : int64[n_files]
        Bytes of the files.
    """
    cores = int(spark.sparkContext.defaultParallelism)
    total = int(sizes.sum()) + _OPEN_BYTES * len(sizes)
    is_small = len(sizes) <= _MOST_FILES and total <= _MOST_BYTES * _MANY_TASKS * cores
    # tasks of less than this take no time
    if not is_small or total <= _OPEN_BYTES * 2 * cores or any(spark.conf.get(k, v) != v for k, v in _SETTINGS.items()):
        return None
    ordered = np.sort(sizes)[::-1].tolist()
    own = min(_MOST_BYTES, max(_OPEN_BYTES, total // cores))
    largest = ordered[0] + _OPEN_BYTES
    best, least = None, _longest(ordered, own, cores)
    # a file is not divided further than by Spark: it may have one row group
    # the largest first: the fewest tasks, which write the fewest files
    for split in sorted(_candidates(ordered, total, cores), reverse=True):
        if not largest <= split <= own * _MOST_GROWTH:
            continue
        longest = _longest(ordered, split, cores)
        if longest < 0.95 * least:
            best, least = split, longest
    return best


def _candidates(sizes: list[int], total: int, cores: int) -> list[int]:
    """Return sizes of tasks with which each core has the same number of them, with as many files in each."""
    found = []
    for waves in range(1, _MANY_TASKS + 1):
        per_task = -(-len(sizes) // (waves * cores))
        found += [sum(sizes[:per_task]) + _OPEN_BYTES * per_task, -(-total // (waves * cores))]
    return found


def _longest(sizes: list[int], split: int, cores: int) -> int:
    """Return the bytes of the core with most of them, if tasks are filled in order and go to the first idle core."""
    tasks, current = list[int](), 0
    for size in sizes:
        for part in [split] * (size // split) + [size % split]:
            if current and current + part > split:
                tasks.append(current)
                current = 0
            current += part + _OPEN_BYTES
    tasks.append(current)
    loads = [0] * cores
    for task in tasks:
        heapq.heapreplace(loads, loads[0] + task)
    return max(loads)
