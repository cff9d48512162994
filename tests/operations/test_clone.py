"""Clone: a table of its own with the same rows, by reference or as copies, made again for what changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    CommitConflictError,
    DataFileNotFoundError,
    ExternalPathError,
    InvalidArgumentError,
    TableExistsError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.operations import clone as cloning
from delta_core.operations.vacuum.operation import VacuumOptions, plan_vacuum
from tests.example_counts import examples
from tests.operations.killing import KilledError, Killer, killing
from tests.operations.row_tables import ROW_IDS, TABLES, VECTORS, rows_of, table_of

ROWS = [(i, ["a", "b", "x y/%", None][i % 4], i / 2) for i in range(12)]
KINDS = pytest.mark.parametrize("deep", [False, True], ids=["shallow", "deep"])


def made(uri: Path, kind: str = "plain") -> DeltaTable:
    write_deltalake(uri, table_of(ROWS), configuration=TABLES[kind], partition_by=["p"])
    table = DeltaTable(uri)
    table.delete("id = 3")
    table.update({"x": "x + 100"}, predicate="id = 4")
    return table


def read(table: DeltaTable) -> list[Any]:
    return rows_of(DeltaTable(table.table_uri).to_pyarrow_table())


def infos(table: DeltaTable) -> dict[str, Any]:
    return table.history(1)[0]


@KINDS
@pytest.mark.parametrize("kind", TABLES)
def test_clone_and_source_go_their_own_ways(tmp_path: Path, kind: str, deep: bool) -> None:
    source = made(tmp_path / "a b#", kind)
    rows = read(source)
    clone = source.clone(tmp_path / "clone", deep=deep)
    assert (read(clone), clone.version()) == (rows, 0)
    assert clone.metadata().id != source.metadata().id
    assert clone.schema() == source.schema()
    info = infos(clone)
    assert info["operation"] == "CLONE"
    assert info["operationParameters"]["sourceVersion"] == str(source.version())
    assert int(info["operationMetrics"]["sourceNumOfFiles"]) == len(source.file_uris())

    clone.delete("id = 5")
    clone.update({"x": "0.0"}, predicate="id = 6")
    write_deltalake(clone, table_of([(70, "q", 1.0)]), mode="append")
    assert read(source) == rows
    assert read(clone) != rows
    source.delete("id = 7")
    write_deltalake(source, table_of([(80, "a", 1.0)]), mode="append")

    again = source.clone(tmp_path / "clone", deep=deep, replace=True)
    assert read(again) == read(source)
    assert (again.version(), again.metadata().id) == (clone.version() + 1, clone.metadata().id)
    for table in (source, again):
        report = DeltaTable(table.table_uri).verify(deep="rows")
        assert report.ok, report.to_text()


@pytest.mark.parametrize("kind", ["plain", "vectors", "vectors, feed, row ids"])
def test_second_deep_clone_copies_what_is_new(tmp_path: Path, kind: str) -> None:
    source = made(tmp_path / "t", kind)
    clone = source.clone(tmp_path / "c", deep=True)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "c").rglob("*.parquet")}
    write_deltalake(source, table_of([(50, "a", 1.0)]), mode="append")
    again = source.clone(tmp_path / "c", deep=True, replace=True)
    assert infos(again)["operationMetrics"]["numCopiedFiles"] == "1"
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert len(list((tmp_path / "c").rglob("*.parquet"))) == len(before) + 1
    same = again.clone(tmp_path / "d", deep=True).clone(tmp_path / "c2")
    assert read(same) == read(again) == read(source)
    assert read(clone) == read(source)


def test_clone_of_a_shallow_clone_names_the_files_of_the_first_table(tmp_path: Path) -> None:
    source = made(tmp_path / "first", "vectors")
    first = source.clone(tmp_path / "second")
    first.delete("id = 8")
    second, copied = first.clone(tmp_path / "third"), first.clone(tmp_path / "fourth", deep=True)
    assert all("/first/" in f for f in second.file_uris())
    assert read(second) == read(first)
    for gone in ("first", "second", "third"):
        shutil.rmtree(tmp_path / gone)
    expected = [r for r in ROWS if r[0] not in (3, 8)]
    assert [r[0] for r in read(copied)] == sorted((r[0] for r in expected), key=repr)


def test_row_ids_and_marks_come_along(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": range(5)}), configuration={**ROW_IDS, **VECTORS})
    source = DeltaTable(tmp_path / "t")
    source.update({"id": "id + 100"}, predicate="id = 2")
    source.delete("id = 4")

    def ids(table: DeltaTable) -> dict[int, int]:
        found = table.scan(columns=["id"], metadata=("_row_id",)).to_table()
        return dict(zip(found.column("id").to_pylist(), found.column("_row_id").to_pylist(), strict=True))

    clone = source.clone(tmp_path / "c")
    assert ids(clone) == ids(source)
    write_deltalake(clone, pa.table({"id": [7]}), mode="append")
    assert ids(clone)[7] > max(ids(source).values())
    source.delete("id = 0")
    again = source.clone(tmp_path / "c", replace=True)
    write_deltalake(again, pa.table({"id": [8]}), mode="append")
    assert ids(again)[8] > ids(clone)[7]


def test_what_belongs_to_the_log_of_the_source_does_not_come_along(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", table_of(ROWS), name="sales", description="all")
    source = DeltaTable(tmp_path / "t")
    source.alter.set_table_properties({"delta.enableInCommitTimestamps": "true"})
    with_app = CommitProperties(app_transactions=[deltalake.Transaction("app", 3)])
    write_deltalake(source, table_of(ROWS), mode="append", commit_properties=with_app)
    assert "delta.inCommitTimestampEnablementVersion" in source.metadata().configuration
    clone = source.clone(tmp_path / "c", properties={"custom.owner": "me", "delta.appendOnly": True})
    configuration = clone.metadata().configuration
    assert configuration["custom.owner"] == "me"
    assert configuration["delta.appendOnly"] == "true"
    assert not [k for k in configuration if "Enablement" in k]
    assert (clone.metadata().name, clone.metadata().description) == (None, None)
    assert clone.transaction_version("app") is None
    assert len(clone.history()) == 1
    with pytest.raises(UnsupportedOperationError, match="appendOnly"):
        DeltaTable(tmp_path / "t", version=0).clone(tmp_path / "c", replace=True)


def test_versions_and_times_choose_what_is_cloned(tmp_path: Path) -> None:
    source = made(tmp_path / "t")
    old = rows_of(DeltaTable(tmp_path / "t", version=0).to_pyarrow_table())
    assert read(source.clone(tmp_path / "a", version=0)) == old
    assert read(DeltaTable(tmp_path / "t", version=0).clone(tmp_path / "b", deep=True)) == old
    # the time of a version is that of its file, which may be some ms after the one that its commitInfo states
    at = (tmp_path / "t" / "_delta_log" / f"{0:020}.json").stat().st_mtime_ns // 1_000_000
    time = pa.scalar(at, pa.timestamp("ms", "UTC")).as_py().isoformat()
    assert read(source.clone(tmp_path / "c", timestamp=time)) == old
    with pytest.raises(VersionNotFoundError):
        source.clone(tmp_path / "d", version=9)
    with pytest.raises(InvalidArgumentError, match="both"):
        source.clone(tmp_path / "d", version=0, timestamp=time)
    assert not (tmp_path / "d").exists()


@KINDS
def test_hostile_places_are_rejected_and_nothing_changes(tmp_path: Path, deep: bool) -> None:
    source = made(tmp_path / "t")
    other = made(tmp_path / "other")
    with pytest.raises(TableExistsError, match="replace=True"):
        source.clone(tmp_path / "other", deep=deep)
    assert other.version() == DeltaTable(tmp_path / "other").version()
    for place in (tmp_path / "t", tmp_path / "t" / "within", tmp_path):
        with pytest.raises(InvalidArgumentError, match="within the table"):
            source.clone(place, deep=deep, replace=True)
    assert not (tmp_path / "t" / "within").exists()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.parquet").mkdir()
    (tmp_path / "folder" / "torn.parquet").write_bytes(b"PAR1")
    assert read(source.clone(tmp_path / "folder", deep=deep)) == read(source)


def test_other_kinds_of_store_are_read_only_if_they_are_permitted(tmp_path: Path) -> None:
    source = made(tmp_path / "t", "vectors")
    with pytest.raises(ExternalPathError, match="allow_external"):
        source.clone("memory://clone-of-local/t")
    assert not DeltaTable.is_deltatable("memory://clone-of-local/t")
    clone = source.clone("memory://clone-of-local/t", allow_external=[str(tmp_path)])
    assert rows_of(clone.to_pyarrow_table()) == read(source)
    deep = source.clone("memory://clone-of-local/deep", deep=True)
    assert rows_of(deep.to_pyarrow_table()) == read(source)
    within = deep.clone("memory://clone-of-local/deep2", deep=True)  # the store copies
    assert rows_of(within.to_pyarrow_table()) == read(source)
    back = within.clone(tmp_path / "back", deep=True)
    assert read(back) == read(source)


def test_properties_that_would_change_the_meaning_of_files_are_rejected(tmp_path: Path) -> None:
    source = made(tmp_path / "t")
    for properties, text in (
        ({"delta.columnMapping.mode": "name"}, "columns are found"),
        ({"delta.constraints.small": "id < 5"}, "may break"),
        ({"delta.appendOnly": "perhaps"}, "appendOnly"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            source.clone(tmp_path / "c", properties=properties)
    assert not DeltaTable.is_deltatable(tmp_path / "c")


def test_vacuum_spares_what_named_clones_need_and_touches_nothing_of_the_source(tmp_path: Path) -> None:
    source = made(tmp_path / "t", "vectors")
    clone = source.clone(tmp_path / "c")
    rows = read(clone)
    write_deltalake(source, table_of([(1, "a", 1.0)]), mode="overwrite")
    late = {"clock": lambda: 2**42, "retention_hours": 0.0, "enforce_retention": False}
    kept = plan_vacuum(source.snapshot(), VacuumOptions(**late, keep_for=(clone.snapshot(),)))
    lost = plan_vacuum(source.snapshot(), VacuumOptions(**late))
    named = {Path(p).name for p in clone.file_uris()}
    assert named & {Path(p).name for p in lost.to_table().column("path").to_pylist()} == named
    assert not named & {Path(p).name for p in kept.to_table().column("path").to_pylist()}
    clone.delete("id > 0")
    own = plan_vacuum(clone.snapshot(), VacuumOptions(**late)).to_table().column("path").to_pylist()
    assert {Path(p).suffix for p in own} <= {".bin"}
    assert [r for r in rows if r[0] == 0] == read(clone)


def test_deltalake_reads_deep_clones_and_shallow_ones_through_its_engine(tmp_path: Path) -> None:
    source = made(tmp_path / "t")
    source.clone(tmp_path / "deep", deep=True)
    assert rows_of(deltalake.DeltaTable(tmp_path / "deep").to_pyarrow_table()) == read(source)
    source.clone(tmp_path / "shallow")
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(tmp_path / "shallow"))
    assert rows_of(pa.table(builder.execute("SELECT id, p, x FROM t").read_all())) == read(source)


@KINDS
def test_killed_at_every_write_it_is_finished_by_a_rerun(tmp_path: Path, deep: bool) -> None:
    source = made(tmp_path / "t", "vectors")
    rows = read(source)
    at, is_whole = 0, False
    while not is_whole:
        for is_after in (False, True):
            target = tmp_path / f"{at}-{is_after}"
            killer = Killer(at, is_after)
            try:
                with killing(killer):
                    source.clone(target, deep=deep)
            except KilledError:
                pass
            is_whole = not killer.is_dead
            done = DeltaTable.is_deltatable(target)
            if done:
                assert read(DeltaTable(target)) == rows
            assert read(source.clone(target, deep=deep, replace=done)) == rows
            assert DeltaTable(target).verify(deep="rows").ok
        at += 1
    assert at > 1


def test_files_that_an_interrupted_run_copied_are_used(tmp_path: Path) -> None:
    source = made(tmp_path / "t")
    with pytest.raises(KilledError), killing(Killer(3, True)):
        source.clone(tmp_path / "c", deep=True)
    copied = {p: p.stat().st_mtime_ns for p in (tmp_path / "c").rglob("*.parquet")}
    assert copied
    source.clone(tmp_path / "c", deep=True)
    assert {p: p.stat().st_mtime_ns for p in copied} == copied


def test_missing_file_of_the_source_fails_the_clone_before_it_commits(tmp_path: Path) -> None:
    source = made(tmp_path / "t")
    Path(source.file_uris()[0]).unlink()
    with pytest.raises(FileNotFoundError):
        source.clone(tmp_path / "c", deep=True)
    assert not DeltaTable.is_deltatable(tmp_path / "c")


STEPS = st.lists(
    st.sampled_from(["append", "delete", "update", "compact", "overwrite", "rename", "clone", "touch the clone"]),
    min_size=2,
    max_size=7,
)


@given(steps=STEPS, kind=st.sampled_from([*TABLES]), deep=st.booleans())
@settings(max_examples=examples(12), deadline=None)
def test_random_histories(tmp_path_factory: pytest.TempPathFactory, steps: list[str], kind: str, deep: bool) -> None:
    folder = tmp_path_factory.mktemp("clone")
    source = made(folder / "t", kind)
    for number, step in enumerate([*steps, "clone"]):
        if step == "append":
            write_deltalake(source, table_of([(100 + number, "n", None)]), mode="append")
        elif step == "overwrite":
            write_deltalake(source, table_of([(200 + number, "n", None), (5, "a", 1.0)]), mode="overwrite")
        elif step == "delete":
            source.delete(f"id % 4 = {number % 4}")
        elif step == "update":
            source.update({"x": "x + 1"}, predicate=f"id % 3 = {number % 3}")
        elif step == "compact":
            source.optimize.compact()
        elif step == "rename":
            source.alter.set_table_properties({"custom.step": str(number)})
        elif step == "touch the clone" and DeltaTable.is_deltatable(folder / "c"):
            clone = DeltaTable(folder / "c")
            clone.delete(f"id % 5 = {number % 5}")
            write_deltalake(clone, table_of([(300 + number, "c", None)]), mode="append")
        elif step == "clone":
            clone = source.clone(folder / "c", deep=deep, replace=True)
            assert read(clone) == read(source)
            assert clone.metadata().configuration == source.metadata().configuration
            report = clone.verify(deep="rows")
            assert report.ok, report.to_text()


def test_concurrent_append_to_the_clone_conflicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = made(tmp_path / "t")
    source.clone(tmp_path / "c")
    real = cloning._staged

    def raced(*args: Any) -> Any:
        found = real(*args)
        write_deltalake(tmp_path / "c", table_of([(9, "z", 1.0)]), mode="append")
        return found

    monkeypatch.setattr(cloning, "_staged", raced)
    source.delete("id = 8")
    with pytest.raises(CommitConflictError):
        source.clone(tmp_path / "c", replace=True)
    assert 9 in [r[0] for r in read(DeltaTable(tmp_path / "c"))]


def test_log_of_a_shallow_clone_is_what_the_protocol_requires(tmp_path: Path) -> None:
    source = made(tmp_path / "a b", "vectors")
    source.clone(tmp_path / "c")
    lines = [json.loads(t) for t in (tmp_path / "c/_delta_log/00000000000000000000.json").read_text().splitlines()]
    adds = [a["add"] for a in lines if "add" in a]
    assert all(
        a["path"].startswith("file:/") and "//" not in a["path"] and "a%20b" in a["path"] and a["dataChange"]
        for a in adds
    )
    vectors = [a["deletionVector"] for a in adds if "deletionVector" in a]
    assert vectors
    assert all(
        v["storageType"] == "p" and v["pathOrInlineDv"].startswith("file:/") and "//" not in v["pathOrInlineDv"]
        for v in vectors
    )


@pytest.mark.parametrize(("deep", "pattern"), [(False, "*.parquet"), (True, "*.parquet"), (True, "*.bin")])
def test_version_whose_files_are_gone_is_rejected_by_name(tmp_path: Path, deep: bool, pattern: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"id": [1, 2]}), configuration=VECTORS)
    table = DeltaTable(tmp_path / "t")
    table.delete("id = 1")
    next((tmp_path / "t").glob(pattern)).unlink()
    with pytest.raises(DataFileNotFoundError, match=r"Version 1 of .* can't be cloned"):
        table.clone(tmp_path / "c", deep=deep)
    assert not (tmp_path / "c" / "_delta_log").exists()
