"""The seam holds: a scan through an engine that shares nothing with Arrow's data files and evaluator."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import DataFileNotFoundError, UnsupportedExpressionError
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.testing.table_builder import TableBuilder
from tests.engines import duckdb_engine

ROWS = [{"id": i, "kind": "abc"[i % 3], "x": None if i % 5 == 0 else i / 2} for i in range(40)]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    table = TableBuilder(tmp_path / "t").create(
        {"id": "long", "kind": "string", "x": "double"},
        partition_by=["kind"],
        features=["deletionVectors"],
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.append(ROWS[:20]).append(ROWS[20:]).delete_rows(lambda row: row["id"] % 7 == 0)
    return str(tmp_path / "t")


def by_duckdb(uri: str) -> Snapshot:
    return open_snapshot(uri, engine=duckdb_engine.engine(uri))


def rows(snapshot: Snapshot, **request: object) -> list[dict[str, object]]:
    found = snapshot.scan(**request).to_table().to_pylist()  # type: ignore[arg-type]
    return sorted(found, key=lambda r: str(sorted(r.items(), key=str)))


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"columns": ["x", "id"]},
        {"predicate": "id > 10 AND x IS NOT NULL"},
        {"predicate": "kind IN ('a', 'c') AND id < 30", "columns": ["id"]},
        {"metadata": ["_file_row_index"], "predicate": "x = 4.5 OR id = 1"},
    ],
)
def test_scan_returns_the_rows_that_the_arrow_engine_returns(uri: str, request_: dict[str, object]) -> None:
    expected = rows(open_snapshot(uri), **request_)
    assert expected
    assert rows(by_duckdb(uri), **request_) == expected


def test_deleted_rows_stay_deleted(uri: str) -> None:
    assert sorted(r["id"] for r in rows(by_duckdb(uri))) == [i for i in range(40) if i % 7]


def test_expression_that_the_engine_lacks_is_rejected_by_name(uri: str) -> None:
    scan = by_duckdb(uri).scan(predicate="substring(kind, 1, 1) = 'a'")
    with pytest.raises(UnsupportedExpressionError, match="substring"):
        scan.to_table()


def test_missing_file_is_named(uri: str) -> None:
    snapshot = by_duckdb(uri)
    path = snapshot.files.columns(["path"]).column("path")[0].as_py()
    (Path(uri) / path).unlink()
    with pytest.raises(DataFileNotFoundError, match="is not there"):
        snapshot.scan().to_table()
