"""VACUUM: what versions within the retention reach stays, all else goes; hostile places; plans; interruptions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.errors import (
    EngineError,
    InvalidArgumentError,
    MetadataChangedError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.operations import VacuumOptions, VacuumPlan, plan_vacuum, run_vacuum
from delta_core.operations.sweep.paths import PathSet
from delta_core.storage.local import LocalStorage
from delta_core.testing.table_builder import TableBuilder
from tests.operations.row_tables import FEED, MAPPED, TABLES, VECTORS, rows_of, table_of

ROWS = [(i, "ab"[i % 2], i / 2) for i in range(10)]
HOUR = 3_600_000
UNSAFE = {"retention_hours": 0, "enforce_retention_duration": False}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., DeltaTable]:
    def build(configuration: dict[str, str] | None = None, **options: Any) -> DeltaTable:
        uri = str(tmp_path / "t")
        write_deltalake(uri, table_of(ROWS), configuration=configuration, **options)
        return DeltaTable(uri)

    return build


def put(root: str | Path, name: str, age_hours: float = 24 * 365, text: str = "x") -> str:
    """Write a file that was modified some time ago."""
    path = Path(root) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    when = time.time() - age_hours * 3600
    os.utime(path, (when, when))
    return name


def grow_old(root: str | Path, hours: float = 24 * 365) -> None:
    """Let every data file look as if it were written some time ago."""
    for path in files(root):
        when = time.time() - hours * 3600
        os.utime(Path(root) / path, (when, when))


def files(root: str | Path) -> set[str]:
    """Return everything below a root but the log."""
    found = (p for p in Path(root).rglob("*") if p.is_file() or p.is_symlink())
    return {str(p.relative_to(root)) for p in found if p.relative_to(root).parts[0] != "_delta_log"}


def root_of(table: DeltaTable) -> str:
    return table.table_uri.removeprefix("file://").rstrip("/")


def rows(uri: str, version: int | None = None) -> list[Any]:
    return rows_of(DeltaTable(uri, version=version).to_pyarrow_table())


# --- what stays ----------------------------------------------------------------------------

_STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 30)),
    st.tuples(st.just("delete"), st.integers(2, 5)),
    st.tuples(st.just("update"), st.integers(2, 5)),
    st.tuples(st.just("restore"), st.integers(0, 9)),
    st.tuples(st.just("compact"), st.just(0)),
    st.tuples(st.just("checkpoint"), st.just(0)),
)


@pytest.mark.parametrize("kind", ["vectors", "vectors, feed, row ids", "feed, row ids, mapping"])
@settings(max_examples=5, deadline=None)
@given(steps=st.lists(_STEPS, min_size=2, max_size=7), when=st.integers(0, 7), full=st.booleans())
def test_every_version_within_the_retention_reads_as_before(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, int]], when: int, full: bool
) -> None:
    uri = str(tmp_path_factory.mktemp("model") / "t")
    properties = {**TABLES[kind], "delta.deletedFileRetentionDuration": "interval 1 hours"}
    write_deltalake(uri, table_of(ROWS), configuration=properties, partition_by=["p"])
    table = DeltaTable(uri)
    times, versions = [], [rows(uri)]
    for step, number in steps:
        time.sleep(0.002)
        times.append(time.time_ns() // 1_000_000)
        time.sleep(0.002)
        if step == "append":
            write_deltalake(table, table_of([(number, "c", None)]), mode="append")
        elif step == "delete":
            table.delete(f"id % {number} = 1")
        elif step == "update":
            table.update({"x": "x + 1"}, predicate=f"id % {number} = 0")
        elif step == "compact":
            table.optimize.compact()
        elif step == "checkpoint":
            table.create_checkpoint()
        else:
            table.restore(number % (table.version() + 1))
        if table.version() == len(versions):
            versions.append(rows(uri))
    cutoff = times[when % len(times)]
    first = table.snapshot().version_at(cutoff)
    feed = changes_of(uri, first + 1) if "feed" in kind else None
    options = VacuumOptions(lite=not full, clock=lambda: cutoff + HOUR)
    plan = plan_vacuum(table.snapshot(), options)
    before, listed = files(uri), plan.to_table().column("path").to_pylist()
    done = run_vacuum(table.snapshot(), plan, options)
    assert before - files(uri) == set(listed)
    assert done.num_files == len(listed) == len(set(listed))
    for version in range(first, len(versions)):
        assert rows(uri, version) == versions[version], version
    if feed is not None:
        assert changes_of(uri, first + 1)[: len(feed)] == feed
    assert plan_vacuum(DeltaTable(uri).snapshot(), options).num_files == 0


def changes_of(uri: str, start: int) -> list[str]:
    table = DeltaTable(uri)
    if start > table.version():
        return []
    found = pa.table(table.load_cdf(starting_version=start)).drop_columns(["_commit_timestamp"])
    return sorted(map(str, found.to_pylist()), key=lambda t: (t.split("_commit_version")[1], t))


def test_vectors_of_live_files_and_of_tombstones_stay_and_others_go(make: Callable[..., DeltaTable]) -> None:
    table = make({**VECTORS, "delta.deletedFileRetentionDuration": "interval 1 hours"})
    for i in range(3):
        table.delete(f"id = {i}")
    uri = root_of(table)
    grow_old(uri)
    vectors = {f for f in files(uri) if f.endswith(".bin")}
    assert len(vectors) == 3
    assert table.vacuum(full=True) == []  # the tombstones are young
    gone = table.vacuum(**UNSAFE, full=True, dry_run=False)
    assert len(gone) == 2
    assert set(gone) < vectors
    assert len(rows(uri)) == 7


def test_change_file_of_a_young_commit_stays_although_it_is_old(make: Callable[..., DeltaTable]) -> None:
    table = make(FEED)
    table.update({"x": "x + 1"}, predicate="id = 1")
    uri = root_of(table)
    grow_old(uri)
    old = put(uri, "_change_data/cdc-old.parquet")
    assert table.vacuum(full=True, dry_run=False) == [old]
    assert len(changes_of(uri, 1)) == 2


def test_tombstones_that_checkpoints_dropped_are_found_in_commits_for_a_longer_retention(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, table_of(ROWS), configuration={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    table = DeltaTable(uri)
    write_deltalake(table, table_of(ROWS[:3]), mode="overwrite")
    time.sleep(0.002)
    table.create_checkpoint()
    grow_old(uri)
    reopened = DeltaTable(uri)
    assert reopened.vacuum(1, full=True) == []
    assert len(reopened.vacuum(0, full=True)) == 1


@pytest.mark.parametrize("configuration", [{}, VECTORS, FEED, {"delta.checkpointPolicy": "v2"}])
@pytest.mark.parametrize("options", [{"full": True}, {}], ids=["full", "lite"])
@pytest.mark.parametrize("times", ["recorded", "none"])
def test_versions_within_a_retention_that_was_raised_read_as_before(
    make: Callable[..., DeltaTable], configuration: dict[str, str], options: dict[str, Any], times: str
) -> None:
    short = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    table = make({**configuration, **short})
    table.update({"x": "x + 1"}, predicate="id = 3")
    table.delete("id = 4")
    table.optimize.compact()
    time.sleep(0.002)
    table.create_checkpoint()  # drops every tombstone
    if times == "none":  # as writers that record no time of a removal
        for path in (Path(root_of(table)) / "_delta_log").glob("*.json"):
            found = [json.loads(line) for line in path.read_text().splitlines()]
            for action in found:
                action.get("remove", {}).pop("deletionTimestamp", None)
            path.write_text("".join(json.dumps(a) + "\n" for a in found))
    table = DeltaTable(table.table_uri)
    table.restore(1)
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 7 days"})
    DeltaTable(table.table_uri).create_checkpoint()
    grow_old(root_of(table))
    before = {v: rows(table.table_uri, v) for v in range(table.version() + 1)}
    table = DeltaTable(table.table_uri)
    table.vacuum(dry_run=False, **options)
    assert {v: rows(table.table_uri, v) for v in before} == before


def test_files_of_versions_that_only_a_compacted_file_represents_stay(make: Callable[..., DeltaTable]) -> None:
    table = make({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    table.update({"x": "x + 1"})
    table.update({"x": "x + 1"})
    table.create_checkpoint()
    table.compact_logs(1, 2)
    (Path(root_of(table)) / "_delta_log" / f"{1:020}.json").unlink()
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 7 days"})
    grow_old(root_of(table))
    before = rows(table.table_uri, 0)
    DeltaTable(table.table_uri).vacuum(dry_run=False, full=True)
    assert rows(table.table_uri, 0) == before


def test_removed_files_of_named_clones_stay_if_their_checkpoints_dropped_the_tombstones(
    make: Callable[..., DeltaTable], tmp_path: Path
) -> None:
    table = make()
    clone = table.clone(tmp_path / "clone")
    clone.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    clone.delete("id >= 0")
    clone.create_checkpoint()
    table.delete("id >= 0")
    grow_old(root_of(table))
    before = rows(clone.table_uri, 0)
    DeltaTable(table.table_uri).vacuum(dry_run=False, full=True, keep_for=[clone.table_uri], **UNSAFE)
    assert rows(clone.table_uri, 0) == before


def test_young_files_stay_whatever_they_are(make: Callable[..., DeltaTable]) -> None:
    uri = root_of(make())
    put(uri, "young.parquet", age_hours=24 * 6)
    old = put(uri, "old.parquet", age_hours=24 * 8)
    assert DeltaTable(uri).vacuum(full=True) == [old]


def test_hidden_places_stay_and_partition_folders_and_change_data_are_cleaned(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    data = pa.table({"_p": ["a"], ".q": ["b"], "id": [1]})
    write_deltalake(uri, data, partition_by=["_p", ".q"])
    hidden = [
        "_tmp/x.parquet",
        ".hidden/x",
        "_p=a/_tmp/x",
        "_SUCCESS",
        ".x.crc",
        "_p=a/_x",
        "_delta_log/old.parquet",
        "_pq=1/x",
    ]
    cleaned = ["x", "_p=a/x", "_p=a/.q=b/x", "_change_data/x", "_delta_index/x", "_p=a/_change_data/x", "sub/deep/x"]
    for name in hidden + cleaned:
        put(uri, name)
    assert sorted(DeltaTable(uri).vacuum(full=True, dry_run=False)) == sorted(cleaned)
    assert all((Path(uri) / name).exists() for name in hidden)


def test_folder_names_of_mapped_partition_columns_are_cleaned_too(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, pa.table({"_p": ["a"], "id": [1]}), partition_by=["_p"], configuration=MAPPED)
    live = files(uri)
    put(uri, "_p=a/x")
    assert DeltaTable(uri).vacuum(full=True, dry_run=False) == ["_p=a/x"]
    assert files(uri) == live


def test_empty_folders_are_deleted_and_listed_with_a_slash(make: Callable[..., DeltaTable]) -> None:
    uri = root_of(make())
    for name in ("a/b", "c", "_hidden/d"):
        (Path(uri) / name).mkdir(parents=True)
    assert sorted(DeltaTable(uri).vacuum(full=True)) == ["a/b/", "c/"]
    DeltaTable(uri).vacuum(full=True, dry_run=False)
    assert not (Path(uri) / "a/b").exists()
    assert not (Path(uri) / "c").exists()
    assert (Path(uri) / "_hidden/d").exists()


# --- names ---------------------------------------------------------------------------------

NAMES = [
    "a b",
    "a%20b",
    "ü",
    "100%",
    "a:b",
    "x#y?z",
    "q*[0]",
    "p=a%2Fb/f",
    "back\\slash",
    "line\nbreak",
    "x..y",
    "a..b/c",
    "'\"",
]


@pytest.mark.parametrize("name", NAMES)
def test_live_file_stays_whatever_its_name(tmp_path: Path, name: str) -> None:
    TableBuilder(tmp_path).create({"id": "long"}).append([{"id": 1}], path=f"d/{name}.parquet")
    grow_old(tmp_path)
    live = files(tmp_path)
    assert live == {f"d/{name}.parquet"}
    put(tmp_path, f"e/{name}.junk")
    opened = DeltaTable(str(tmp_path))
    assert opened.vacuum(**UNSAFE, full=True, dry_run=False) == [f"e/{name}.junk"]
    assert files(tmp_path) == live
    assert opened.count() == 1


@pytest.mark.parametrize(
    "form",
    [
        "{root}/f.parquet",
        "file://{root}/f.parquet",
        "file:{root}/f.parquet",
        "./f.parquet",
        "x/../f.parquet",
        ".//f.parquet",
    ],
)
def test_live_file_stays_in_whatever_form_the_log_names_it(tmp_path: Path, form: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    (name,) = files(tmp_path)
    os.rename(tmp_path / name, tmp_path / "f.parquet")
    log.write_text(log.read_text().replace(name, form.format(root=tmp_path)))
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    grow_old(tmp_path)
    put(tmp_path, "junk")
    assert DeltaTable(str(tmp_path)).vacuum(**UNSAFE, full=True, dry_run=False) == ["junk"]
    assert files(tmp_path) == {"f.parquet"}


def test_table_that_is_opened_through_a_link_keeps_files_that_its_log_names_by_the_real_path(tmp_path: Path) -> None:
    real = tmp_path / "real"
    write_deltalake(real, pa.table({"id": [1]}))
    (name,) = files(real)
    log = real / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace(name, f"file://{real}/{name}"))
    grow_old(real)
    (tmp_path / "link").symlink_to(real)
    assert DeltaTable(str(tmp_path / "link")).vacuum(**UNSAFE, full=True, dry_run=False) == []
    assert files(real) == {name}


def test_links_are_neither_followed_nor_deleted_and_what_they_lead_to_stays(
    make: Callable[..., DeltaTable], tmp_path: Path
) -> None:
    uri = root_of(make())
    outside = tmp_path / "outside"
    put(outside, "precious")
    put(uri, "inside/x")
    put(uri, "target")
    put(uri, "junk")
    (Path(uri) / "out").symlink_to(outside)
    (Path(uri) / "in").symlink_to(Path(uri) / "inside")
    (Path(uri) / "file").symlink_to(Path(uri) / "target")
    assert DeltaTable(uri).vacuum(full=True, dry_run=False) == ["junk"]
    assert files(outside) == {"precious"}
    assert {"inside/x", "target"} < files(uri)


def test_plan_whose_folder_became_a_link_deletes_nothing_outside(
    make: Callable[..., DeltaTable], tmp_path: Path
) -> None:
    uri = root_of(make())
    put(uri, "sub/x")
    outside = tmp_path / "outside"
    put(outside, "x")
    table = DeltaTable(uri)
    plan = table.plan_vacuum(full=True)
    os.rename(Path(uri) / "sub", tmp_path / "moved")
    (Path(uri) / "sub").symlink_to(outside)
    with pytest.raises(EngineError, match="symbolic link"):
        table.vacuum(plan=plan, dry_run=False)
    assert files(outside) == {"x"}
    assert DeltaTable(uri).history(1)[0]["operationParameters"] == {"status": "FAILED"}


def test_tables_below_the_root_stay(make: Callable[..., DeltaTable]) -> None:
    uri = root_of(make())
    inner = f"{uri}/clones/c"
    write_deltalake(inner, table_of(ROWS))
    grow_old(uri)
    put(uri, "clones/junk")
    assert DeltaTable(uri).vacuum(full=True, dry_run=False) == ["clones/junk"]
    assert len(rows(inner)) == len(ROWS)


def test_log_that_removes_its_own_files_loses_nothing(make: Callable[..., DeltaTable]) -> None:
    uri = root_of(make())
    first = Path(uri) / "_delta_log" / f"{0:020d}.json"
    targets = ["_delta_log/00000000000000000000.json", "../precious", f"{uri}/../precious", "a/../../precious", "_x/y"]
    put(Path(uri).parent, "precious")
    put(uri, "_x/y")
    removes = [{"remove": {"path": p, "deletionTimestamp": 1, "dataChange": True}} for p in targets]
    (first.parent / f"{1:020d}.json").write_text("\n".join(map(json.dumps, removes)))
    for full in (False, True):
        DeltaTable(uri).vacuum(**UNSAFE, full=full, dry_run=False)
    assert first.exists()
    assert (Path(uri).parent / "precious").exists()
    assert (Path(uri) / "_x/y").exists()


@given(
    st.lists(st.text("ab/%.: ü", min_size=1, max_size=8), max_size=20),
    st.lists(st.text("ab/%.: ü", max_size=8), max_size=20),
)
def test_set_of_paths_contains_all_that_were_added(added: list[str], others: list[str]) -> None:
    found = PathSet()
    found.add(pa.array(added, pa.string()))
    assert found.contains(pa.array(added, pa.string())).all()
    plain = [o for o in others if o not in added and not any(":" in a or "/" in a or "." in a for a in added)]
    assert not found.contains(pa.array(plain, pa.string())).any()


def test_paths_that_a_disk_takes_for_one_are_all_in_the_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.operations.sweep.paths._TAKES_NAMES_FOR_ONE", True)
    found = PathSet()
    found.add(pa.array(["p=A./x.parquet", "p=Ü /y"], pa.string()))
    twins = ["p=A./x.parquet", "p=a/x.parquet", "P=A/X.PARQUET", "p=ü/y", "p=Ü /y"]
    assert found.contains(pa.array(twins)).all()
    assert not found.contains(pa.array(["p=b/x.parquet", "p=A/y", "x.parquet"])).any()


# --- arguments -----------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [-1, True, "7", float("nan")])
def test_retention_that_is_no_number_from_0_on_is_rejected(make: Callable[..., DeltaTable], hours: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="retention_hours"):
        make().vacuum(hours, enforce_retention_duration=False)


def test_retention_below_that_of_the_table_has_to_be_requested(make: Callable[..., DeltaTable]) -> None:
    table = make({"delta.deletedFileRetentionDuration": "interval 90 minutes"})
    with pytest.raises(InvalidArgumentError, match=r"expected at least 2, .*enforce_retention_duration=False"):
        table.vacuum(1)
    assert table.vacuum(2) == table.vacuum(1, enforce_retention_duration=False) == []


def test_unknown_writer_feature_is_rejected_by_name(tmp_path: Path) -> None:
    TableBuilder(tmp_path).create({"id": "long"}, features=["madeUp"]).append([{"id": 1}])
    put(tmp_path, "junk")
    with pytest.raises(UnsupportedFeatureError, match="madeUp"):
        DeltaTable(str(tmp_path)).vacuum(full=True)


def test_kept_versions_read_as_before_with_vectors_and_changes(make: Callable[..., DeltaTable]) -> None:
    table = make({**VECTORS, **FEED}, partition_by=["p"])
    uri = root_of(table)
    states = [rows(uri)]
    for i in range(4):
        table.update({"x": "x + 1"}, predicate=f"id = {i}")
        table.delete(f"id = {i + 5}")
        states += [rows(uri, 2 * i + 1), rows(uri)]
    grow_old(uri)
    gone = table.vacuum(**UNSAFE, full=True, keep_versions=[1, 4], dry_run=False)
    assert gone
    for version in (1, 4, 8):
        assert rows(uri, version) == states[version]
    with pytest.raises(VersionNotFoundError):
        table.vacuum(full=True, keep_versions=[99])


def test_files_of_named_clones_stay(make: Callable[..., DeltaTable], tmp_path: Path) -> None:
    table = make(VECTORS)
    table.delete("id = 1")
    uri, clone = root_of(table), tmp_path / "clone"
    live = DeltaTable(uri).snapshot().files.columns(["path"]).column(0).to_pylist()
    log = (Path(uri) / "_delta_log" / f"{0:020d}.json").read_text()
    (clone / "_delta_log").mkdir(parents=True)
    (clone / "_delta_log" / f"{0:020d}.json").write_text(log.replace(live[0], f"file://{uri}/{live[0]}"))
    write_deltalake(table, table_of(ROWS[:1]), mode="overwrite")
    grow_old(uri)
    assert live[0] in table.vacuum(**UNSAFE, full=True)
    gone = table.vacuum(**UNSAFE, full=True, keep_for=[clone], dry_run=False)
    assert gone
    assert live[0] not in gone
    assert len(rows(str(clone))) == len(ROWS)


def test_inventory_replaces_the_listing(make: Callable[..., DeltaTable]) -> None:
    table = make()
    uri = root_of(table)
    names = [put(uri, n) for n in ("a", "b/c", "not in it")]
    live = next(iter(files(uri) - set(names)))
    paths = ["a", f"{uri}/b/c", f"file://{uri}/{live}", "/elsewhere/x", "../x", "_delta_log/x", None, "b"]
    old = pa.array([0] * len(paths), pa.timestamp("ms"))
    inventory = pa.table(
        {"path": paths, "size": [1] * len(paths), "modification_time": old, "isDir": [False] * 7 + [True]}
    )
    assert sorted(table.vacuum(full=True, inventory=inventory, dry_run=False)) == ["a", "b/c"]
    assert files(uri) == {live, "not in it"}
    with pytest.raises(InvalidArgumentError, match="path, size and modification_time"):
        table.vacuum(inventory=inventory.drop_columns(["size"]))


# --- from the log --------------------------------------------------------------------------


def test_lite_deletes_what_the_log_removed_and_looks_at_each_commit_once(make: Callable[..., DeltaTable]) -> None:
    table = make({**VECTORS, **FEED})
    uri = root_of(table)
    table.update({"x": "x + 1"})
    table.delete("id = 3")
    put(uri, "junk")
    time.sleep(0.01)
    listed = table.vacuum(**UNSAFE)
    assert sorted(table.vacuum(**UNSAFE, dry_run=False)) == sorted(listed)
    assert listed
    assert "junk" not in listed
    assert not files(uri) & set(listed)
    info = json.loads((Path(uri) / "_delta_log/_last_vacuum_info").read_text())
    assert info == {"latestCommitVersionOutsideOfRetentionWindow": 2}
    assert not [f for f in files(uri) if f.startswith("_change_data")]
    assert len(rows(uri)) == 9


def test_lite_needs_the_log_since_the_last_vacuum(make: Callable[..., DeltaTable]) -> None:
    table = make()
    uri = root_of(table)
    for _ in range(3):
        write_deltalake(table, table_of(ROWS), mode="overwrite")
    table.create_checkpoint()
    for version in range(2):
        (Path(uri) / "_delta_log" / f"{version:020d}.json").unlink()
    time.sleep(0.01)
    with pytest.raises(UnsupportedOperationError, match=r"begins at version 2, and no vacuum is on record.*full=True"):
        DeltaTable(uri).vacuum(**UNSAFE)
    DeltaTable(uri).vacuum(**UNSAFE, full=True, dry_run=False)
    assert DeltaTable(uri).vacuum(**UNSAFE) == []


# --- plans, commits and interruptions ------------------------------------------------------


def test_commits_record_the_vacuum_as_delta_spark_does(make: Callable[..., DeltaTable]) -> None:
    table = make()
    put(root_of(table), "junk", text="123")
    properties = CommitProperties(custom_metadata={"job": "7"})
    table.vacuum(200, full=True, dry_run=False, commit_properties=properties)
    end, start = table.history(2)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": "true",
        "defaultRetentionMillis": str(168 * HOUR),
        "specifiedRetentionMillis": str(200 * HOUR),
    }
    assert start["operationMetrics"] == {"numFilesToDelete": "1", "sizeOfDataToDelete": "3"}
    assert end["operationParameters"] == {"status": "COMPLETED"}
    assert end["operationMetrics"]["numDeletedFiles"] == "1"
    assert start["job"] == end["job"] == "7"


@pytest.mark.parametrize(("records", "is_junk", "commits"), [
    ("always", False, 2), ("never", True, 0), ("deletions", True, 2), ("deletions", False, 0),
])  # fmt: skip
def test_vacuum_is_recorded_as_chosen(
    records: Any, is_junk: bool, commits: int, make: Callable[..., DeltaTable]
) -> None:
    table = make()
    root = root_of(table)
    if is_junk:
        put(root, "junk")
    before = files(root)
    run_vacuum(table.snapshot(), table.plan_vacuum(full=True), VacuumOptions(records=records))
    assert DeltaTable(root).version() == commits
    assert before - files(root) == ({"junk"} if is_junk else set())
    assert not files(root) - before
    assert not [p for p in (Path(root) / "_delta_log").iterdir() if p.suffix == ".tmp"]


def test_clock_of_a_vacuum_without_commits_is_checked(
    make: Callable[..., DeltaTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    root = root_of(table)
    put(root, "junk")
    plan = table.plan_vacuum(full=True)
    ahead = time.time_ns() + 3_600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: ahead)
    with pytest.raises(EngineError, match=r"This machine's clock is 3\d* seconds ahead"):
        run_vacuum(table.snapshot(), plan, VacuumOptions(records="never"))
    assert "junk" in files(root)


def test_nothing_to_delete_commits_nothing(make: Callable[..., DeltaTable]) -> None:
    table = make()
    assert table.vacuum(full=True, dry_run=False) == []
    assert DeltaTable(root_of(table)).version() == 0


def test_saved_plan_is_looked_at_and_run_later_and_run_again(make: Callable[..., DeltaTable], tmp_path: Path) -> None:
    table = make()
    uri = root_of(table)
    put(uri, "a")
    put(uri, "b")
    (Path(uri) / "empty").mkdir()
    table.plan_vacuum(full=True).save(tmp_path / "plan")
    plan = VacuumPlan.load(tmp_path / "plan")
    assert plan.num_files == 2
    assert plan.num_bytes == 2
    assert sorted(plan.to_table().column("path").to_pylist()) == ["a", "b"]
    (Path(uri) / "a").unlink()
    assert sorted(table.vacuum(plan=tmp_path / "plan", dry_run=False)) == ["a", "b", "empty/"]
    table.vacuum(plan=tmp_path / "plan", dry_run=False)
    assert "b" not in files(uri)
    assert not (Path(uri) / "empty").exists()
    with pytest.raises(InvalidArgumentError, match="beside retention_hours"):
        table.vacuum(200, plan=plan)
    (tmp_path / "no plan").write_bytes(b"ARROW1 and more")
    with pytest.raises(InvalidArgumentError, match="no saved VacuumPlan"):
        table.vacuum(plan=tmp_path / "no plan")
    write_deltalake(tmp_path / "other", table_of(ROWS))
    with pytest.raises(MetadataChangedError):
        DeltaTable(str(tmp_path / "other")).vacuum(plan=plan, dry_run=False)


def test_files_that_a_restore_needs_again_stay_if_it_came_after_the_plan(make: Callable[..., DeltaTable]) -> None:
    table = make()
    uri = root_of(table)
    write_deltalake(table, table_of(ROWS[:2]), mode="overwrite")
    grow_old(uri)
    time.sleep(0.01)
    plan = table.plan_vacuum(0, False, full=True)
    assert plan.num_files == 1
    DeltaTable(uri).restore(0)
    table.vacuum(plan=plan, dry_run=False)
    assert rows(uri) == rows_of(table_of(ROWS))


def test_plan_of_many_files_is_kept_on_disk(monkeypatch: pytest.MonkeyPatch, make: Callable[..., DeltaTable]) -> None:
    monkeypatch.setattr("delta_core.operations.sweep.found_files._IN_MEMORY", 100)
    for module in ("sweep.deletion", "sweep.listing", "vacuum.operation"):
        monkeypatch.setattr(f"delta_core.operations.{module}.WINDOW", 10)
    table = make()
    names = {put(root_of(table), f"{i % 7}/{i}") for i in range(50)}
    assert set(table.vacuum(full=True, dry_run=False)) == names
    assert not names & files(root_of(table))


def test_clock_that_is_ahead_of_the_stores_deletes_nothing(
    monkeypatch: pytest.MonkeyPatch, make: Callable[..., DeltaTable]
) -> None:
    table = make()
    put(root_of(table), "junk", age_hours=24 * 6.5)
    now = time.time_ns
    monkeypatch.setattr("delta_core.operations.vacuum.operation.time.time_ns", lambda: now() + 24 * HOUR * 1_000_000)
    with pytest.raises(EngineError, match="clock"):
        table.vacuum(full=True, dry_run=False)
    assert "junk" in files(root_of(table))


class Killed(BaseException):
    """A process that dies: whatever it tries afterwards has no effect."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    left = [10**9]

    def counted(name: str) -> None:
        call = getattr(LocalStorage, name)

        def run(self: LocalStorage, *args: Any, **kwargs: Any) -> Any:
            if name == "delete_files":
                return sum(one(self, args[0].slice(i, 1)) for i in range(len(args[0])))
            return one(self, *args, **kwargs)

        def one(self: LocalStorage, *args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return call(self, *args, **kwargs)

        monkeypatch.setattr(LocalStorage, name, run)

    for name in ("put", "put_if_absent", "delete_files", "delete_folders", "walk", "read", "list_from", "stat", "find"):
        counted(name)

    def begin(step: int) -> None:
        left[0] = step

    yield begin
    left[0] = 10**9


@pytest.mark.parametrize("full", [True, False])
def test_vacuum_that_is_killed_at_any_step_is_finished_by_the_next(
    tmp_path: Path, full: bool, kill_at: Callable[[int], None]
) -> None:
    for step in range(100):
        uri = str(tmp_path / f"t{step}")
        write_deltalake(uri, table_of(ROWS), configuration=VECTORS)
        table = DeltaTable(uri)
        table.delete("id = 3")
        write_deltalake(table, table_of(ROWS[:4]), mode="overwrite")
        time.sleep(0.005)
        kill_at(step)
        try:
            DeltaTable(uri).vacuum(**UNSAFE, full=full, dry_run=False)
        except Killed:
            kill_at(10**9)
        else:
            kill_at(10**9)
            assert step > 10
            return
        assert rows(uri) == rows_of(table_of(ROWS[:4]))
        DeltaTable(uri).vacuum(**UNSAFE, full=full, dry_run=False)
        assert rows(uri) == rows_of(table_of(ROWS[:4]))
        assert len(files(uri)) == 1
    raise AssertionError("the vacuum did not end")


# --- deltalake -----------------------------------------------------------------------------


def test_deltalake_reads_and_vacuums_what_was_vacuumed_and_the_other_way_round(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_deltalake(uri, table_of(ROWS), partition_by=["p"])
    for i in range(3):
        write_deltalake(uri, table_of(ROWS[i:]), mode="overwrite")
    time.sleep(0.01)
    ours = DeltaTable(uri).vacuum(**UNSAFE, full=True)
    peers = deltalake.DeltaTable(uri)
    assert sorted(peers.vacuum(0, True, False, full=True)) == sorted(ours)
    assert sorted(peers.vacuum(0, True, False)) == sorted(DeltaTable(uri).vacuum(**UNSAFE))
    DeltaTable(uri).vacuum(**UNSAFE, full=True, dry_run=False)
    peers = deltalake.DeltaTable(uri)
    assert rows_of(peers.to_pyarrow_table()) == rows_of(table_of(ROWS[2:]))
    deltalake.write_deltalake(uri, table_of(ROWS), mode="overwrite")
    time.sleep(0.01)
    deltalake.DeltaTable(uri).vacuum(0, False, False)
    assert DeltaTable(uri).vacuum(**UNSAFE, full=True) == []
    assert rows(uri) == rows_of(table_of(ROWS))
