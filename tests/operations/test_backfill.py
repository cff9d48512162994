"""Backfill of statistics: files get what their footers have, and nothing else about them changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import CommitConflictError, DataFileNotFoundError, InvalidArgumentError
from delta_core.operations import backfill
from delta_core.schema import Field
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import TABLES, rows_of, table_of

ROWS = [(i, ["a", "b", None][i % 3], i / 2 if i % 4 else None) for i in range(12)]


def without_statistics(uri: Path) -> int:
    """Take the statistics out of all commits, and return how many files had them."""
    count = 0
    for path in sorted((uri / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "add" in action and action["add"].pop("stats", None):
                count += 1
        path.write_text("".join(json.dumps(a) + "\n" for a in actions))
        path.with_suffix(".crc").unlink(missing_ok=True)
    return count


def made(uri: Path, kind: str = "plain") -> DeltaTable:
    write_deltalake(uri, table_of(ROWS), configuration=TABLES[kind], partition_by=["p"])
    DeltaTable(uri).delete("id = 4")
    without_statistics(uri)
    return DeltaTable(uri)


def adds(table: DeltaTable) -> dict[str, dict[str, Any]]:
    columns = ["path", "size", "modificationTime", "partitionValues", "tags", "baseRowId", "defaultRowCommitVersion"]
    found = table.snapshot().files.columns([*columns, "deletionVector"]).to_pylist()
    return {f.pop("path"): f for f in found}


def statistics(table: DeltaTable) -> dict[str, dict[str, Any]]:
    found = table.snapshot().files.columns(["path", "stats"]).to_pylist()
    return {f["path"]: json.loads(f["stats"]) if f["stats"] else {} for f in found}


@pytest.mark.parametrize("kind", [k for k in TABLES if "mapping" not in k])
def test_files_get_the_statistics_of_their_rows_and_keep_all_else(tmp_path: Path, kind: str) -> None:
    table = made(tmp_path, kind)
    before, rows = adds(table), rows_of(table.to_pyarrow_table())
    assert not any(statistics(table).values())
    assert table.compute_statistics(dry_run=True) == {"num_files": len(before)}
    assert table.compute_statistics() == {"num_files": len(before)}
    assert table.compute_statistics() == {"num_files": 0}
    assert adds(DeltaTable(tmp_path)) == before
    assert rows_of(DeltaTable(tmp_path).to_pyarrow_table()) == rows
    assert table.history(1)[0]["operation"] == "COMPUTE STATS"
    for path, found in statistics(table).items():
        wide = before[path]["deletionVector"] is not None
        assert found["tightBounds"] is not wide
        assert found["nullCount"].keys() == {"id", "x"}
    report = table.verify(deep="rows")
    assert report.ok, report.to_text()
    assert len(table.scan(predicate="id > 100").files()) == 0


def test_mapped_columns_are_named_as_in_files(tmp_path: Path) -> None:
    table = made(tmp_path, "vectors, mapping")
    table.compute_statistics()
    assert table.verify(deep="rows").ok
    assert all(k.startswith("col-") for f in statistics(table).values() for k in f["nullCount"])


def test_tables_that_find_columns_by_id_get_the_number_of_rows(tmp_path: Path) -> None:
    write_deltalake(tmp_path, table_of(ROWS), configuration={"delta.columnMapping.mode": "id"})
    without_statistics(tmp_path)
    table = DeltaTable(tmp_path)
    assert table.compute_statistics() == {"num_files": 1}
    assert [f["numRecords"] for f in statistics(table).values()] == [12]
    assert table.compute_statistics() == {"num_files": 0}  # once more, and nothing to change


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("case", ["id mode", "INT96", "no statistics"])
def test_statistics_that_a_footer_lacks_are_not_lost(tmp_path: Path, case: str, every: bool) -> None:
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    properties = {"delta.columnMapping.mode": "id"} if case == "id mode" else {}
    write_deltalake(tmp_path, pa.table({"id": [1, 2], "at": times}), configuration=properties)
    table = DeltaTable(tmp_path)
    path = table.file_uris()[0]
    foreign = {"INT96": {"use_deprecated_int96_timestamps": True}, "no statistics": {"write_statistics": False}}
    if case in foreign:
        pq.write_table(pq.read_table(path), path, **foreign[case])
    table.alter.add_columns([Field("new", "long")])
    before = statistics(table)
    assert table.compute_statistics(every=every) == {"num_files": 0}
    assert statistics(DeltaTable(tmp_path)) == before


def test_predicate_and_every_choose_the_files(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert table.compute_statistics("p = 'a'") == {"num_files": 1}
    assert sum(bool(s) for s in statistics(table).values()) == 1
    with pytest.raises(InvalidArgumentError, match="partition columns only"):
        table.compute_statistics("id = 3")
    table.compute_statistics()
    table.alter.set_table_properties({"delta.dataSkippingStatsColumns": "id"})
    assert table.compute_statistics() == {"num_files": 0}
    assert table.compute_statistics(every=True) == {"num_files": len(adds(table))}
    assert all(f["nullCount"].keys() == {"id"} for f in statistics(table).values())


def test_batches_are_committed_one_by_one_and_a_rerun_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH_FILES", 1)
    table = made(tmp_path)
    rows, at, is_whole = rows_of(table.to_pyarrow_table()), 0, False
    while not is_whole:
        killer = Killer(at, False)
        try:
            with killing(killer):
                DeltaTable(tmp_path).compute_statistics()
        except KilledError:
            pass
        is_whole = not killer.is_dead
        at += 1
        assert rows_of(DeltaTable(tmp_path).to_pyarrow_table()) == rows
    done = DeltaTable(tmp_path)
    assert all(statistics(done).values())
    assert done.verify(deep="rows").ok
    assert len([i for i in done.history() if i["operation"] == "COMPUTE STATS"]) == len(adds(done))


def test_files_that_other_writers_change_meanwhile_are_chosen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path, "vectors")
    real, raced = backfill._with_statistics, []

    def slow(latest: Any, files: Any) -> Any:
        found = real(latest, files)
        if not raced:
            raced.append(1)
            DeltaTable(tmp_path).delete("id = 6")
            write_deltalake(tmp_path, table_of([(90, "a", 1.0)]), mode="append")
        return found

    monkeypatch.setattr(backfill, "_with_statistics", slow)
    table.compute_statistics()
    ids = [r[0] for r in rows_of(DeltaTable(tmp_path).to_pyarrow_table())]
    assert 6 not in ids
    assert 90 in ids
    assert all(statistics(DeltaTable(tmp_path)).values())
    assert DeltaTable(tmp_path).verify(deep="rows").ok


def test_writers_that_always_win_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, "vectors")
    real = backfill._with_statistics
    numbers = iter([n for n in range(12) if n != 4] * 3)

    def slow(latest: Any, files: Any) -> Any:
        found = real(latest, files)
        DeltaTable(tmp_path).restore(0) if next(numbers) == 11 else DeltaTable(tmp_path).delete(f"id = {next(numbers)}")
        return found

    monkeypatch.setattr(backfill, "_with_statistics", slow)
    monkeypatch.setattr(backfill, "_MOST_ATTEMPTS", 2)
    with pytest.raises(CommitConflictError):
        table.compute_statistics()


def test_missing_file_is_named(tmp_path: Path) -> None:
    table = made(tmp_path)
    gone = Path(table.file_uris()[0])
    gone.unlink()
    with pytest.raises(DataFileNotFoundError, match=gone.name[:20]):
        table.compute_statistics()


def test_files_that_are_older_than_a_field_of_a_struct_get_the_statistics_of_the_others(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"s": [{"x": 1}, {"x": 3}]}))
    DeltaTable(tmp_path).alter.add_column("s.y", "string")
    without_statistics(tmp_path)
    table = DeltaTable(tmp_path)
    table.compute_statistics()
    (found,) = statistics(DeltaTable(tmp_path)).values()
    assert found["maxValues"] == {"s": {"x": 3}}
