"""Files divided evenly among Spark's cores, for operations that wait for all tasks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.engines.spark.plan import splits
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.plan.splits import split_bytes
from tests.operations.row_tables import table_of

MB = 1 << 20


def session(cores: int, **settings: str) -> Any:
    known = {f"spark.sql.files.{name}": value for name, value in settings.items()}
    return SimpleNamespace(
        sparkContext=SimpleNamespace(defaultParallelism=cores),
        conf=SimpleNamespace(get=lambda k, v=None: known.get(k, v)),
    )


def tasks(sizes: list[int], split: int) -> list[int]:
    """Return how many files each task gets of Spark, which fills tasks with the largest files first."""
    found, used = [0], 0
    for size in sorted(sizes, reverse=True):
        if used and used + size > split:
            found, used = [*found, 0], 0
        found[-1] += 1
        used += size + 4 * MB
    return found


@pytest.mark.parametrize(
    ("sizes", "cores", "expected"),
    [
        ([10 * MB] * 20, 2, [10, 10]),  # 9, 9, 2
        ([16 * MB] * 21, 2, [5, 5, 5, 5, 1]),  # 6, 6, 6, 3
        ([10 * MB] * 100, 8, [13] * 7 + [9]),
    ],
)  # fmt: skip
def test_cores_get_the_same_number_of_tasks(sizes: list[int], cores: int, expected: list[int]) -> None:
    found = split_bytes(session(cores), np.array(sizes))
    own = min(128 * MB, sum(s + 4 * MB for s in sizes) // cores)
    assert tasks(sizes, own if found is None else found) == expected


@pytest.mark.parametrize(
    ("sizes", "cores"),
    [([200 * MB] * 3, 2), ([1000] * 50, 2), ([100 * MB], 4), ([], 2), ([120 * MB] * 100, 2), ([10] * 5000, 2)],
    ids=["large", "tiny", "one", "none", "many", "many small"],
)
def test_spark_divides_files_itself_where_there_is_nothing_to_gain(sizes: list[int], cores: int) -> None:
    assert split_bytes(session(cores), np.array(sizes, np.int64)) is None


@pytest.mark.parametrize("name", ["maxPartitionBytes", "minPartitionNum"])
def test_settings_of_the_session_are_followed(name: str) -> None:
    assert split_bytes(session(2, **{name: "3"}), np.array([10 * MB] * 20)) is None


@pytest.mark.spark
def test_scan_of_a_change_has_the_tasks_that_are_proposed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(6):
        write_deltalake(str(tmp_path), table_of([(i, "a", 0.5)]), mode="append")
    scan = DeltaTable(str(tmp_path)).snapshot().scan()
    monkeypatch.setattr("delta_core.engines.spark.plan.indexed_route.split_bytes", lambda *_: 2 * splits._OPEN_BYTES)
    counts = [frame(spark, scan, is_even=even).rdd.getNumPartitions() for even in (True, False)]
    assert counts == [3, 2]
    assert spark.conf.get("spark.sql.files.maxPartitionBytes") == "134217728b"
