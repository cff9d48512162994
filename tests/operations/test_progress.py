"""Progress of operations: what is reported, in which order, and that it changes no result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.operations import OperationProgress, progress
from tests.operations.row_tables import FEED, VECTORS, made, rows_of, table_of

CALLS = {
    "delete": lambda t, call: t.delete("id % 2 = 0", progress=call),
    "update": lambda t, call: t.update({"x": "x + 1"}, predicate="id % 2 = 0", progress=call),
    "merge": lambda t, call: (
        t.merge(table_of([(2, "b", 9.0), (40, "b", 9.0)]), "target.id = source.id", progress=call)
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    ),
}


def table(folder: Path, properties: dict[str, str]) -> DeltaTable:
    folder.mkdir()
    found = made(folder, properties)
    for i in (2, 12, 14):
        write_deltalake(found, table_of([(i, "c", 0.5)]), mode="append")
    return found


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_steps_are_reported_up_to_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, properties: dict[str, str]
) -> None:
    monkeypatch.setattr(progress, "_PART_BYTES", 1)
    seen: list[OperationProgress] = []
    quiet, shown = table(tmp_path / "quiet", properties), table(tmp_path / "shown", properties)
    CALLS[name](quiet, None)
    CALLS[name](shown, seen.append)
    assert rows_of(shown.to_pyarrow_table()) == rows_of(quiet.to_pyarrow_table())
    assert len(shown.file_uris()) == len(quiet.file_uris())
    find = [p for p in seen if p.step == "find"]
    # a merge looks at the files alone that its keys can be in
    num_files = 2 if name == "merge" else 4
    assert (find[-1].files, find[-1].total_files) == (num_files, num_files)
    assert find[-1].bytes == find[-1].total_bytes > 0
    assert len({p.files for p in find}) > num_files - 1
    assert [p.step for p in seen] == sorted(p.step for p in seen)
    write = [p for p in seen if p.step == "write"]
    assert all(p.rows <= 12 for p in write)
    if name != "delete" or properties is not VECTORS:
        assert max(p.rows for p in write) > 0


def test_write_reports_rows_and_the_bytes_of_a_table(tmp_path: Path) -> None:
    seen: list[OperationProgress] = []
    rows = pa.table({"id": range(200_000)})
    write_deltalake(str(tmp_path / "t"), rows, progress=seen.append)
    assert len(seen) > 2
    assert seen[-1] == OperationProgress(0, 0, 200_000, rows.nbytes, rows.nbytes)
    write_deltalake(str(tmp_path / "t"), rows.to_reader(), mode="append", progress=seen.append)
    assert (seen[-1].rows, seen[-1].total_bytes) == (200_000, 0)


def test_error_of_the_function_stops_the_operation_and_leaves_nothing(tmp_path: Path) -> None:
    found = made(tmp_path)
    before = set(tmp_path.rglob("*.parquet"))

    def stop(now: Any) -> None:
        if now.step == "write":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.update({"x": "1.0"}, predicate="id < 3", progress=stop)
    assert set(tmp_path.rglob("*.parquet")) == before
    assert DeltaTable(found.table_uri).version() == 0
