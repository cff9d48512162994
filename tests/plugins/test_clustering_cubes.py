"""Feature clustering: which files are clustered again, in which order their rows are, and the tags of the files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import UnsupportedOperationError
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_plugins.clustering.cubes import choose_files

COLUMNS = ("x", "s.y")


def points(start: int, num_rows: int = 4000) -> pa.Table:
    random = np.random.default_rng(start)
    inner = pa.StructArray.from_arrays([pa.array(random.normal(size=num_rows))], ["y"])
    return pa.table({"n": np.arange(start, start + num_rows), "x": random.random(num_rows), "s": inner})


def clustered(tmp_path: Path, appends: int = 3, **options: Any) -> DeltaTable:
    for n in range(appends):
        write_deltalake(tmp_path / "t", points(n * 4000), mode="append", cluster_by=() if n else COLUMNS, **options)
    return DeltaTable(tmp_path / "t")


def adds(table: DeltaTable) -> list[dict[str, Any]]:
    names = ["path", "tags", "clusteringProvider", "size"]
    found: list[dict[str, Any]] = table.snapshot().files.columns(names).to_pylist()
    return [{**f, "tags": dict(f["tags"] or [])} for f in found]


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_files_of_one_run_are_a_cube_with_narrow_ranges(tmp_path: Path, properties: dict[str, str]) -> None:
    table = clustered(tmp_path, configuration=properties)
    before = table.to_pyarrow_table().sort_by("n")
    metrics = table.optimize.cluster(target_size=20_000)
    assert table.to_pyarrow_table().sort_by("n").equals(before)
    files = adds(table)
    assert len(files) == metrics["numFilesAdded"] > 8
    assert {f["clusteringProvider"] for f in files} == {"liquid"}
    assert len({f["tags"]["ZCUBE_ID"] for f in files}) == 1
    assert {f["tags"]["ZCUBE_ZORDER_BY"] for f in files} == {'["x","s.y"]'}
    assert table.scan(predicate="x between 0.5 and 0.51").file_set.count < len(files)
    assert table.scan(predicate="s.y between 0.5 and 0.51").file_set.count < len(files)
    [info] = table.history(1)
    assert json.loads(info["operationParameters"]["clusterBy"]) == ["x", "s.y"]


def test_second_run_finds_nothing_to_do_and_later_rows_join_the_cube(tmp_path: Path) -> None:
    table = clustered(tmp_path)
    table.optimize.cluster()
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    write_deltalake(table, points(50_000), mode="append")
    assert table.optimize.cluster()["numFilesRemoved"] == 2
    assert len({f["tags"]["ZCUBE_ID"] for f in adds(table)}) == 1


def test_full_cubes_stay_when_rows_are_added(tmp_path: Path) -> None:
    table = clustered(tmp_path)
    table.optimize.cluster()
    [old] = adds(table)
    write_deltalake(table, points(50_000), mode="append")
    table.adopt(table.operation("cluster")(full_cube_bytes=old["size"]).snapshot)
    assert old in adds(table)
    assert len({f["tags"]["ZCUBE_ID"] for f in adds(table)}) == 2


def test_files_clustered_by_other_columns_stay_unless_all_are_requested(tmp_path: Path) -> None:
    table = clustered(tmp_path)
    table.optimize.cluster()
    table.operation("cluster_by")(["n"])
    table.update_incremental()
    assert table.optimize.cluster()["numFilesRemoved"] == 0
    assert table.optimize.cluster(full=True)["numFilesRemoved"] == 1
    assert [f["tags"]["ZCUBE_ZORDER_BY"] for f in adds(table)] == ['["n"]']


def test_tables_that_are_not_clustered_are_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", points(0))
    with pytest.raises(UnsupportedOperationError, match="cluster"):
        DeltaTable(tmp_path / "t").optimize.cluster()
    table = clustered(tmp_path / "ended", 1)
    table.operation("cluster_by")([])
    table.update_incremental()
    with pytest.raises(UnsupportedOperationError, match="no clustering columns"):
        table.operation("cluster")()


LIQUID, OTHER = "liquid", "other"
Given = tuple[str | None, str | None, str | None, int]
#: Files (provider, cube, columns, size); those that are chosen; and with ``full``.
CASES: dict[str, tuple[list[Given], list[int], list[int]]] = {
    "no file": ([], [], []),
    "unclustered files": ([(None, None, None, 1), (None, None, None, 1)], [0, 1], [0, 1]),
    "one unclustered file": ([(None, None, None, 1)], [0], [0]),
    "a single cube": ([(LIQUID, "a", '["x"]', 1), (LIQUID, "a", '["x"]', 1)], [], []),
    "two cubes": ([(LIQUID, "b", '["x"]', 1), (LIQUID, "a", '["x"]', 1)], [0, 1], [0, 1]),
    "a full cube and a file": (
        [(LIQUID, "a", '["x"]', 60), (LIQUID, "a", '["x"]', 40), (None, None, None, 1)],
        [2],
        [2],
    ),
    "a full cube and a small one": ([(LIQUID, "a", '["x"]', 100), (LIQUID, "b", '["x"]', 1)], [], []),
    "another implementation": ([(OTHER, None, None, 1), (None, None, None, 1)], [1], [1, 0]),
    "other columns": ([(LIQUID, "a", '["y"]', 1), (None, None, None, 1)], [1], [1, 0]),
    "columns in backticks": ([(LIQUID, "a", '["`x`"]', 1), (None, None, None, 1)], [1, 0], [1, 0]),
    "no columns beside a cube": ([(LIQUID, "a", None, 1), (LIQUID, "b", '["x"]', 1)], [0, 1], [0, 1]),
    "columns that are no list": ([(LIQUID, "a", "x", 1), (None, None, None, 1)], [1], [1, 0]),
}


@pytest.mark.parametrize("case", CASES)
def test_files_that_are_chosen(case: str) -> None:
    given, some, every = CASES[case]
    tags = [
        [(k, v) for k, v in (("ZCUBE_ID", cube), ("ZCUBE_ZORDER_BY", columns)) if v is not None] or None
        for _, cube, columns, _ in given
    ]
    files = pa.table(
        {
            "clusteringProvider": pa.array([p for p, _, _, _ in given], pa.string()),
            "tags": pa.array(tags, FILE_COLUMNS["tags"]),
            "size": pa.array([s for _, _, _, s in given], pa.int64()),
        }
    )
    for full, expected in ((False, some), (True, every)):
        found = choose_files(files, ["x"], full, 100)
        assert sorted(i for part in found for i in part.tolist()) == sorted(expected)


def test_files_beyond_the_size_of_a_cube_become_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_plugins.clustering.cubes.CUBE_BYTES", 10)
    files = pa.table(
        {
            "clusteringProvider": pa.nulls(6, pa.string()),
            "tags": pa.nulls(6, FILE_COLUMNS["tags"]),
            "size": pa.array([4] * 6, pa.int64()),
        }
    )
    assert [len(part) for part in choose_files(files, ["x"])] == [2, 2, 2]


@pytest.mark.peer
def test_deltalake_reads_clustered_files(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = clustered(tmp_path)
    table.optimize.cluster(target_size=20_000)
    assert deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 12_000
    shutil.rmtree(tmp_path / "t")
