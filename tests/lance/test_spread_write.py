"""Writes whose rows several processes write."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import open_table, write_deltalake
from delta_core.api import make_engine
from delta_core.errors import InvalidArgumentError, SchemaMismatchError, TableExistsError
from delta_plugins.lance import write_lance
from delta_plugins.lance.format import FORMAT

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", None]})


def begin(place: str, mode: str, schema: pa.Schema = ROWS.schema, **options: Any) -> Any:
    return FORMAT.begin_spread_write(make_engine("arrow", place, None, None), place, schema, mode, options)


def part(write: Any, place: str, rows: pa.Table) -> str:
    """Return what a task returns, as an executor runs it."""
    task = pickle.loads(pickle.dumps(write.part))
    found: str = task.write(make_engine("arrow", place, None, None), rows.schema, iter(rows.to_batches()))
    return found


def data_files(place: str) -> int:
    return len(list((Path(place) / "data").iterdir()))


def test_files_of_tasks_become_one_version(tmp_path: Path) -> None:
    place = str(tmp_path / "d")
    write = begin(place, "create", stable_row_ids=True)
    parts = [part(write, place, ROWS), part(write, place, ROWS.slice(0, 1)), part(write, place, ROWS.slice(0, 0))]
    assert write.commit(parts) == 1
    found = open_table(place)
    assert (found.count(), found.stats().num_fragments) == (4, 2)
    assert sorted(found.scan(metadata=["_rowid"]).to_table()["_rowid"].to_pylist()) == [0, 1, 2, 3]
    again = begin(place, "append", pa.schema([("id", pa.int32())]))
    assert again.commit([part(again, place, pa.table({"id": pa.array([9], pa.int32())}))]) == 2
    assert open_table(place).count("id = 9 and s is null") == 1
    over = begin(place, "overwrite", pa.schema([("x", pa.bool_())]))
    assert over.commit([part(over, place, pa.table({"x": [True]}))]) == 3
    assert open_table(place).to_pyarrow_table().to_pydict() == {"x": [True]}
    assert open_table(place, version=2).count() == 5


def test_files_of_tasks_that_do_not_count_are_not_rows(tmp_path: Path) -> None:
    place = str(tmp_path / "d")
    write_lance(place, ROWS)
    write = begin(place, "append")
    kept, twice = part(write, place, ROWS), part(write, place, ROWS)
    assert open_table(place).count() == 3
    write.commit([kept])
    assert open_table(place).count() == 6
    assert data_files(place) == 3
    write.abandon([twice])
    assert data_files(place) == 2


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_cleanup_finds_files_of_tasks_whose_write_did_not_end(tmp_path: Path, mode: str) -> None:
    place = str(tmp_path / "d")
    write_lance(place, ROWS)
    write = begin(place, mode, max_rows_per_file=2)
    part(write, place, ROWS)
    kept = data_files(place)
    assert kept == 3
    assert open_table(place).cleanup()["num_files"] == 0, "a writer that is not done may still commit them"
    found = open_table(place).cleanup(unreferenced_older_than=timedelta(0))
    assert (found["num_files"], data_files(place)) == (2, 1)
    assert open_table(place).to_pyarrow_table() == ROWS


def test_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    place = str(tmp_path / "d")
    write_lance(place, ROWS)
    write = begin(place, "append")

    def failing() -> Any:
        yield from ROWS.to_batches()
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write.part.write(make_engine("arrow", place, None, None), ROWS.schema, failing())
    assert data_files(place) == 1


def test_rows_and_modes_that_do_not_fit_are_rejected_before_a_task_begins(tmp_path: Path) -> None:
    place, delta = str(tmp_path / "d"), str(tmp_path / "t")
    write_lance(place, ROWS)
    write_deltalake(delta, ROWS)
    with pytest.raises(TableExistsError):
        begin(place, "create")
    for mode in ("create", "append", "overwrite"):
        with pytest.raises(TableExistsError, match="Delta table"):
            begin(delta, mode)
    for schema in (pa.schema([("id", pa.string())]), pa.schema([("other", pa.int64())])):
        with pytest.raises(SchemaMismatchError):
            begin(place, "append", schema)
    with pytest.raises(InvalidArgumentError, match="row ids"):
        begin(place, "append", stable_row_ids=True)
    with pytest.raises(InvalidArgumentError, match=r"2\.2"):
        begin(place, "append", file_version="2.0")
