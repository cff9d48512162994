"""Overwrites by a table that was loaded before other writers committed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitConflictError
from delta_core.exceptions import CommitFailedError


def rows(*ids: int, day: str = "a") -> pa.Table:
    return pa.table({"id": ids, "day": [day] * len(ids)})


def ids(place: Path) -> list[int]:
    return sorted(DeltaTable(place).to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "t", rows(1, 2))
    return tmp_path / "t"


def test_rows_that_were_appended_since_are_not_overwritten(place: Path) -> None:
    table = DeltaTable(place)
    found = table.to_pyarrow_table()
    write_deltalake(place, rows(3), mode="append")
    before = sorted(f.name for f in place.iterdir())
    with pytest.raises(
        CommitFailedError, match=r"Version 1 \(WRITE\), committed meanwhile, added rows.*read them again"
    ):
        write_deltalake(table, found.slice(0, 1), mode="overwrite")
    assert ids(place) == [1, 2, 3]
    assert sorted(f.name for f in place.iterdir()) == before
    table.update_incremental()
    write_deltalake(table, table.to_pyarrow_table().slice(0, 2), mode="overwrite")
    assert len(ids(place)) == 2


@pytest.mark.parametrize("change", ["delete", "update", "overwrite"])
def test_changes_since_are_not_overwritten(place: Path, change: str) -> None:
    table = DeltaTable(place)
    if change == "delete":
        DeltaTable(place).delete("id = 1")
    elif change == "update":
        DeltaTable(place).update({"day": "'b'"}, predicate="id = 1")
    else:
        write_deltalake(place, rows(9), mode="overwrite")
    kept = ids(place)
    with pytest.raises(CommitConflictError, match="Version 1"):
        write_deltalake(table, rows(7), mode="overwrite")
    assert ids(place) == kept


def test_rows_that_a_predicate_does_not_match_may_be_appended_since(place: Path) -> None:
    table = DeltaTable(place)
    write_deltalake(place, rows(3, day="b"), mode="append")
    write_deltalake(table, rows(4), mode="overwrite", predicate="day = 'a'")
    assert ids(place) == [3, 4]
    stale = DeltaTable(place, version=0)
    with pytest.raises(CommitConflictError):
        write_deltalake(stale, rows(5, day="b"), mode="overwrite", predicate="day = 'b'")
    assert ids(place) == [3, 4]


def test_files_that_were_only_arranged_anew_do_not_stop_an_overwrite(place: Path) -> None:
    write_deltalake(place, rows(3), mode="append")
    table = DeltaTable(place)
    DeltaTable(place).optimize.compact()
    write_deltalake(table, rows(8), mode="overwrite")
    assert ids(place) == [8]


def test_a_path_an_append_and_a_dynamic_overwrite_refer_to_the_latest_version(tmp_path: Path) -> None:
    place = tmp_path / "t"
    write_deltalake(place, rows(1, 2), partition_by="day")
    table, again = DeltaTable(place), DeltaTable(place)
    write_deltalake(place, rows(3, day="b"), mode="append")
    write_deltalake(table, rows(4), mode="append")
    assert ids(place) == [1, 2, 3, 4]
    write_deltalake(again, rows(5), mode="overwrite", partition_overwrite="dynamic")
    assert ids(place) == [3, 5]
    write_deltalake(place, rows(6), mode="overwrite")
    assert ids(place) == [6]
