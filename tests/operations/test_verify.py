"""Verify: nothing is found in sound tables, and each kind of damage is found under its rule."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidArgumentError
from delta_core.operations.verify import checksums as verify_checksums
from tests.operations.row_tables import TABLES, table_of

ROWS = [(i, "ab"[i % 2], i / 2) for i in range(10)]
VECTORS = {"delta.enableDeletionVectors": "true"}


def built(uri: Path, configuration: dict[str, str] | None = None) -> DeltaTable:
    """Return a table with a checkpoint, commits above it, and deleted rows."""
    write_deltalake(uri, table_of(ROWS), configuration=configuration or VECTORS, partition_by=["p"])
    table = DeltaTable(uri)
    table.delete("id = 3")
    table.create_checkpoint()
    write_deltalake(table, table_of([(50, "c", 1.0)]), mode="append")
    table.update({"x": "x + 1"}, predicate="id = 4")
    return table


def log(uri: Path, version: int, suffix: str = ".json") -> Path:
    return uri / "_delta_log" / f"{version:020}{suffix}"


def actions(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_actions(path: Path, changed: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(a) + "\n" for a in changed))


def change_add(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the first add of a commit."""
    found = actions(path)
    change(next(a["add"] for a in found if "add" in a))
    write_actions(path, found)


_STEPS = st.sampled_from(["append", "delete", "update", "merge", "compact", "checkpoint", "restore", "property"])


def run(table: DeltaTable, step: str, number: int) -> None:
    if step == "append":
        write_deltalake(table, table_of([(number, "c", None)]), mode="append")
    elif step == "delete":
        table.delete(f"id % 5 = {number % 5}")
    elif step == "update":
        table.update({"x": "x + 1"}, predicate=f"id % 3 = {number % 3}")
    elif step == "merge":
        source = table_of([(number, "a", 9.0)])
        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t").when_matched_update(
            {"x": "s.x"}
        ).when_not_matched_insert_all().execute()
    elif step == "compact":
        table.optimize.compact()
    elif step == "checkpoint":
        table.create_checkpoint()
    elif step == "restore":
        table.restore(number % (table.version() + 1))
    else:
        table.alter.set_table_properties({"custom.number": str(number)})


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=2, deadline=None)
@given(steps=st.lists(st.tuples(_STEPS, st.integers(0, 30)), min_size=3, max_size=8))
def test_nothing_is_found_after_any_operations(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int]]
) -> None:
    uri = tmp_path_factory.mktemp("model") / "t"
    write_deltalake(uri, table_of(ROWS), configuration=TABLES[kind], partition_by=["p"])
    table = DeltaTable(uri)
    for step, number in steps:
        run(table, step, number)
    report = DeltaTable(uri).verify(deep="rows", versions=[0, table.version()])
    assert report.findings.num_rows == 0, report.to_text()
    assert DeltaTable(uri).verify(deep=True).findings.num_rows == 0
    assert report.ok
    assert report.versions == tuple(dict.fromkeys([0, table.version()]))


def _torn(uri: Path) -> None:
    path = log(uri, 1)
    path.write_bytes(path.read_bytes()[:-30])


def _gap(uri: Path) -> None:
    log(uri, 1).unlink()


def _empty(uri: Path) -> None:
    log(uri, 0).write_bytes(b"")


def _twice(uri: Path) -> None:
    found = actions(log(uri, 3))
    write_actions(log(uri, 3), [*found, *(a for a in found if "add" in a)])


def _two_protocols(uri: Path) -> None:
    found = actions(log(uri, 0))
    write_actions(log(uri, 0), [*found, *(a for a in found if "protocol" in a)])


def _no_metadata(uri: Path) -> None:
    write_actions(log(uri, 0), [a for a in actions(log(uri, 0)) if "metaData" not in a])


def _checkpoint_cut(uri: Path) -> None:
    path = log(uri, 1, ".checkpoint.parquet")
    path.write_bytes(path.read_bytes()[:-100])


def _checkpoint_wrong(uri: Path) -> None:
    path = log(uri, 1, ".checkpoint.parquet")
    table = pq.read_table(path)
    live = table.column("add").is_valid().to_pylist()
    pq.write_table(table.filter(pa.array([i != live.index(True) for i in range(len(live))])), path)


def _hint_gone_version(uri: Path) -> None:
    (uri / "_delta_log" / "_last_checkpoint").write_text('{"version":2,"size":3}')


def _hint_torn(uri: Path) -> None:
    (uri / "_delta_log" / "_last_checkpoint").write_text('{"version":')


def _checksum(uri: Path) -> None:
    path = log(uri, 3, ".crc")
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "numFiles": value["numFiles"] + 1}))


def _old_checksum(uri: Path) -> None:
    path = log(uri, 1, ".crc")
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "tableSizeBytes": value["tableSizeBytes"] - 1}))


def _checksum_torn(uri: Path) -> None:
    log(uri, 1, ".crc").write_text('{"numFiles":')


def _compacted(uri: Path) -> None:
    merged = [a for v in (1, 2) for a in actions(log(uri, v)) if "remove" not in a]
    write_actions(uri / "_delta_log" / f"{1:020}.{2:020}.compacted.json", merged)


def _file_gone(uri: Path) -> None:
    next(uri.glob("p=c/*.parquet")).unlink()


def _file_cut(uri: Path) -> None:
    path = next(uri.glob("p=c/*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])


def _vector_gone(uri: Path) -> None:
    next(uri.glob("*.bin")).unlink()


def _vector_cut(uri: Path) -> None:
    for path in uri.glob("*.bin"):
        path.write_bytes(path.read_bytes()[:-6])


def _vector_flipped(uri: Path) -> None:
    for path in uri.glob("*.bin"):
        data = bytearray(path.read_bytes())
        data[-5] ^= 1
        path.write_bytes(data)


def _add_again(uri: Path, **changes: Any) -> None:
    """Commit the first add of version 2 again as version 4, with changed fields."""
    add = next(a["add"] for a in actions(log(uri, 2)) if "add" in a)
    write_actions(log(uri, 4), [{"commitInfo": {"timestamp": 1}}, {"add": {**add, **changes}}])


def _other_spelling(uri: Path) -> None:
    add = next(a["add"] for a in actions(log(uri, 2)) if "add" in a)
    _add_again(uri, path=f"./{add['path']}")


def _no_partition_value(uri: Path) -> None:
    _add_again(uri, partitionValues={})


def _statistics_no_json(uri: Path) -> None:
    _add_again(uri, stats="{")


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    f.__name__.removeprefix("_"): (f, rule)
    for f, rule in [
        (_torn, "commit-unreadable"),
        (_gap, "commit-missing"),
        (_empty, "commit-empty"),
        (_twice, "action-repeated"),
        (_two_protocols, "action-repeated"),
        (_no_metadata, "definition-missing"),
        (_checkpoint_cut, "checkpoint-unreadable"),
        (_checkpoint_wrong, "checkpoint-differs"),
        (_hint_gone_version, "hint-wrong"),
        (_hint_torn, "hint-unreadable"),
        (_checksum, "checksum-differs"),
        (_old_checksum, "checksum-differs"),
        (_checksum_torn, "checksum-unreadable"),
        (_compacted, "compacted-differs"),
        (_file_gone, "data-file-missing"),
        (_file_cut, "data-file-size"),
        (_vector_gone, "vector-missing"),
        (_vector_cut, "vector-unreadable"),
        (_vector_flipped, "vector-unreadable"),
        (_other_spelling, "file-repeated"),
        (_no_partition_value, "partition-value-missing"),
        (_statistics_no_json, "statistics-unreadable"),
    ]
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_under_its_rule(tmp_path: Path, name: str) -> None:
    damage, rule = DAMAGE[name]
    uri = tmp_path / "t"
    built(uri)
    damage(uri)
    report = DeltaTable(uri).verify()
    assert rule in report.rules(), report.to_text()
    assert not report.ok
    finding = next(f for f in report.findings.to_pylist() if f["rule"] == rule)
    assert all(finding[n] for n in ("found", "expected", "advice"))
    assert rule in report.to_text()
    assert rule in {f["rule"] for f in json.loads(report.to_json())["findings"]}
    assert rule in report._repr_html_()


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
@settings(max_examples=12, deadline=None)
def test_flipped_bit_in_a_vector_is_found(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    uri = tmp_path_factory.mktemp("bits") / "t"
    write_deltalake(uri, table_of(ROWS), configuration=VECTORS)
    DeltaTable(uri).delete("id = 3")
    (path,) = uri.glob("*.bin")
    data = bytearray(path.read_bytes())
    # the first byte is the file's version, which no reader needs
    data[1 + place % (len(data) - 1)] ^= 1 << bit
    path.write_bytes(data)
    assert DeltaTable(uri).verify().rules() == {"vector-unreadable"}


def test_features_that_the_metadata_needs_must_be_listed(tmp_path: Path) -> None:
    built(tmp_path / "t")
    path = log(tmp_path / "t", 0)
    found = actions(path)
    metadata = next(a["metaData"] for a in found if "metaData" in a)
    metadata["configuration"]["delta.enableRowTracking"] = "true"
    write_actions(log(tmp_path / "t", 4), [{"metaData": metadata}])
    assert "feature-missing" in DeltaTable(tmp_path / "t").verify().rules()


def test_row_ids_that_overlap_or_exceed_the_mark_are_found(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration={"delta.enableRowTracking": "true"})
    write_deltalake(uri, table_of(ROWS), mode="append")
    assert DeltaTable(uri).verify().ok
    change_add(log(uri, 1), lambda add: add.update(baseRowId=5))
    assert "row-ids-overlap" in DeltaTable(uri).verify().rules()
    change_add(log(uri, 1), lambda add: add.update(baseRowId=50))
    assert "row-ids-above-mark" in DeltaTable(uri).verify().rules()
    change_add(log(uri, 1), lambda add: add.pop("baseRowId"))
    assert "row-ids-missing" in DeltaTable(uri).verify().rules()


def test_change_files_that_are_gone_are_named(tmp_path: Path) -> None:
    table = built(tmp_path)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    table.update({"x": "x + 1"}, predicate="id = 5")
    gone = next(tmp_path.glob("_change_data/**/*.parquet"))
    assert "change-file-missing" not in DeltaTable(tmp_path).verify().to_text()
    gone.unlink()
    report = DeltaTable(tmp_path).verify()
    (found,) = (f for f in report.findings.to_pylist() if f["rule"] == "change-file-missing")
    assert (found["version"], Path(found["file"]).name) == (table.version(), gone.name)
    assert report.ok  # the rows of every version can be read


def test_row_ids_that_two_rows_have_are_found(tmp_path: Path) -> None:
    tracked = {"delta.enableRowTracking": "true"}
    write_deltalake(tmp_path, pa.table({"a": [1, 2, 3]}), configuration=tracked)
    DeltaTable(tmp_path).update({"a": "a + 10"})
    assert DeltaTable(tmp_path).verify(deep="rows").ok
    column = DeltaTable(tmp_path).metadata().configuration["delta.rowTracking.materializedRowIdColumnName"]
    (path,) = (tmp_path / a["add"]["path"] for a in actions(log(tmp_path, 1)) if "add" in a)
    rows = pq.read_table(path)
    at = rows.column_names.index(column)
    pq.write_table(rows.set_column(at, rows.schema.field(at), pa.array([0, 2, 2], pa.int64())), path)
    change_add(log(tmp_path, 1), lambda add: add.update(size=path.stat().st_size))
    report = DeltaTable(tmp_path).verify(deep="rows")
    assert report.rules() == {"row-ids-repeated", "checksum-differs"}, report.to_text()
    assert "1 value of _row_id in several rows: 2" in report.to_text()


def test_old_checksums_are_compared_without_loading_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path)
    loaded: list[Any] = []
    whole = verify_checksums.whole_checksum
    monkeypatch.setattr(verify_checksums, "whole_checksum", lambda s: (loaded.append(s.version), whole(s))[1])
    assert DeltaTable(tmp_path).verify().ok
    assert loaded == [3]
    _old_checksum(tmp_path)
    DeltaTable(tmp_path).repair()
    assert not log(tmp_path, 1, ".crc").exists()
    assert DeltaTable(tmp_path).verify().ok


def test_commit_times_must_grow(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, table_of(ROWS), configuration={"delta.enableInCommitTimestamps": "true"})
    write_deltalake(uri, table_of(ROWS), mode="append")
    found = actions(log(uri, 1))
    found[0]["commitInfo"]["inCommitTimestamp"] = 5
    write_actions(log(uri, 1), found)
    assert "commit-time-wrong" in DeltaTable(uri).verify().rules()


@pytest.mark.parametrize(
    ("deep", "stats"),
    [
        (True, {"numRecords": 7}),
        ("rows", {"numRecords": 7}),
        (True, {"numRecords": 10, "minValues": {"id": 2}, "maxValues": {"id": 9}}),
        ("rows", {"numRecords": 10, "minValues": {"id": 2}, "maxValues": {"id": 9}}),
        ("rows", {"numRecords": 10, "minValues": {"id": 0}, "maxValues": {"id": 8}}),
        (True, {"numRecords": 10, "nullCount": {"id": 10}}),
        ("rows", {"numRecords": 10, "nullCount": {"id": 10}}),
    ],
)
def test_statistics_that_hide_rows_are_found(tmp_path: Path, deep: Any, stats: dict[str, Any]) -> None:
    write_deltalake(tmp_path / "t", table_of(ROWS))
    change_add(log(tmp_path / "t", 0), lambda add: add.update(stats=json.dumps(stats)))
    report = DeltaTable(tmp_path / "t").verify(deep=deep)
    assert report.rules() == {"statistics-wrong"}, report.to_text()


@pytest.mark.parametrize("deep", [True, "rows"])
@pytest.mark.parametrize(
    ("least", "most", "rules"),
    [
        ("12345678901234.5678", "22345678901234.5678", set()),
        ("12345678901234.568", "22345678901234.566", {"statistics-rounded"}),  # as deltalake records both
        ("12345678901234.568", "22345678901234.0", {"statistics-rounded", "statistics-wrong"}),
    ],
)
def test_bounds_of_decimals_that_their_writer_rounded_are_a_warning(
    tmp_path: Path, deep: Any, least: str, most: str, rules: set[str]
) -> None:
    values = [Decimal("12345678901234.5678"), Decimal("22345678901234.5678"), None]
    write_deltalake(tmp_path / "t", pa.table({"d": pa.array(values, pa.decimal128(18, 4))}))
    stats = f'{{"numRecords":3,"minValues":{{"d":{least}}},"maxValues":{{"d":{most}}},"nullCount":{{"d":1}}}}'
    change_add(log(tmp_path / "t", 0), lambda add: add.update(stats=stats))
    table = DeltaTable(tmp_path / "t")
    report = table.verify(deep=deep)
    assert report.rules() == rules, report.to_text()
    found = {(f["rule"], f["severity"]) for f in report.findings.to_pylist()}
    assert found == {(rule, "error" if rule == "statistics-wrong" else "warning") for rule in rules}
    if rules:
        table.repair(deep=True)
        assert not table.verify(deep=deep).rules()
    assert table.to_pyarrow_table().num_rows == 3


def test_wide_statistics_are_sound(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of(ROWS))
    wide = {"numRecords": 10, "minValues": {"id": -5, "p": "A"}, "maxValues": {"id": 99, "p": "z"}}
    change_add(log(tmp_path / "t", 0), lambda add: add.update(stats=json.dumps(wide)))
    for deep in (True, "rows"):
        assert DeltaTable(tmp_path / "t").verify(deep=deep).ok


def test_rows_that_break_a_constraint_are_found(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of(ROWS))
    DeltaTable(tmp_path / "t").alter.add_constraint({"low": "id < 100"})
    path = log(tmp_path / "t", 1)
    path.write_text(path.read_text().replace("id < 100", "id < 5"))
    assert "rows-break-condition" in DeltaTable(tmp_path / "t").verify(deep="rows").rules()


def test_deep_needs_data(tmp_path: Path) -> None:
    built(tmp_path / "t")
    with pytest.raises(InvalidArgumentError, match="deep"):
        DeltaTable(tmp_path / "t").verify(deep=True, data=False)


def test_log_only_looks_for_no_file(tmp_path: Path) -> None:
    built(tmp_path / "t")
    _file_gone(tmp_path / "t")
    assert DeltaTable(tmp_path / "t").verify(data=False).ok


def test_many_findings_of_a_file_rule_are_counted(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of([(i, str(i), None) for i in range(150)]), partition_by=["p"])
    for path in (tmp_path / "t").glob("p=*/*.parquet"):
        path.unlink()
    report = DeltaTable(tmp_path / "t").verify()
    assert report.findings.num_rows == 101
    assert "(50 further files)" in report.findings.column("found").to_pylist()[-1]


NESTED = pa.table({"id": [1, 2], "in": [{"a": 5, "deep": {"t": "x"}}, {"a": None, "deep": {"t": "y"}}]})


@pytest.mark.parametrize("deep", [True, "rows"])
@pytest.mark.parametrize("mode", ["none", "name"])
def test_wrong_statistics_of_nested_fields_are_found(tmp_path: Path, deep: Any, mode: str) -> None:
    uri = tmp_path / "t"
    write_deltalake(uri, NESTED, configuration={"delta.columnMapping.mode": mode})
    assert DeltaTable(uri).verify(deep=deep).findings.num_rows == 0

    def change(add: dict[str, Any]) -> None:
        stats = json.loads(add["stats"])
        inner = stats["maxValues"][next(k for k, v in stats["maxValues"].items() if isinstance(v, dict))]
        inner[next(k for k, v in inner.items() if v == 5)] = 4
        add["stats"] = json.dumps(stats)

    change_add(log(uri, 0), change)
    (found,) = DeltaTable(uri).verify(deep=deep).findings.to_pylist()
    assert (found["rule"], found["column"], found["found"]) == ("statistics-wrong", "in.a", "max is 4")


def test_footers_of_many_files_are_read_although_one_is_damaged(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    for i in range(5):
        write_deltalake(uri, table_of([(i, "a", 1.0)]), mode="append")
    bad, other = sorted(uri.glob("*.parquet"))[1:3]
    size = bad.stat().st_size
    bad.write_bytes(b"x" * size)
    pq.write_table(pa.table({"id": [[1]]}), other)
    report = DeltaTable(uri).verify(deep=True)
    assert {"data-file-unreadable", "data-file-columns", "data-file-size"} <= report.rules()


def test_commit_that_is_gone_above_the_latest_is_found_by_its_checksum(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    assert log(uri, 3, ".crc").exists()
    log(uri, 3).unlink()
    report = DeltaTable(uri).verify()
    assert "commit-missing" in report.rules()


def test_files_that_no_version_needs_are_counted(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    for name in ("a.parquet", "b.parquet"):
        (uri / name).write_text("x")
        os.utime(uri / name, (1_000_000_000, 1_000_000_000))
    report = DeltaTable(uri).verify()
    (found,) = report.findings.to_pylist()
    assert (found["rule"], found["severity"]) == ("files-unreferenced", "information")
    assert found["found"].startswith("2 files (2 bytes)")
    assert report.ok


def test_files_that_no_version_needs_are_counted_once_for_many_versions(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    built(uri)
    (uri / "a.parquet").write_text("x")
    os.utime(uri / "a.parquet", (1_000_000_000, 1_000_000_000))
    findings = DeltaTable(uri).verify(versions=[0, 1, 3]).findings
    assert findings.column("rule").to_pylist() == ["files-unreferenced"]


def test_bounds_from_before_a_column_was_widened_are_right() -> None:
    table = Path(__file__).parents[1] / "corpus" / "tables" / "spark" / "widened_date"
    assert DeltaTable(table).verify(deep=True).findings.num_rows == 0
