"""OPTIMIZE: rows, row ids and the change feed stay as they are; which files are rewritten; other writers; failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import CommitProperties, DeltaTable, write_deltalake
from delta_core.engines.arrow import relations
from delta_core.errors import (
    ColumnNotFoundError,
    CommitStateUnknownError,
    ConcurrentDeleteDeleteError,
    EngineError,
    InvalidArgumentError,
    MetadataChangedError,
)
from delta_core.kernel.commit import transaction as transactions
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.options import AppTransaction
from delta_core.kernel.plugins.committer import Outcome, Proposal
from delta_core.kernels.row_set import RowSet
from delta_core.operations import file_rewrites, optimize
from delta_core.operations.bins import pack_bins
from delta_core.operations.optimize import OptimizeOptions, plan_optimize
from delta_core.operations.progress import OperationProgress
from tests.operations.row_tables import FEED, ROW_IDS, ROWS, TABLES, VECTORS, Row, data_files, rows_of, table_of

HIDDEN = ("_row_id", "_row_commit_version")


def made(tmp_path: Path, properties: dict[str, str] = {}, partitions: list[str] = [], files: int = 6) -> DeltaTable:  # noqa: B006
    """Return a table of 5 rows in each of some commits."""
    uri = str(tmp_path / "t")
    for n in range(files):
        rows: list[Row] = [(5 * n + i, "ab"[i % 2], i / 10) for i in range(5)]
        write_deltalake(uri, table_of(rows), mode="append", partition_by=partitions, configuration=properties)
    return DeltaTable(uri)


def everything(table: DeltaTable, hidden: bool) -> list[dict[str, Any]]:
    """Return the rows with what readers see of them."""
    found = table.snapshot().scan(metadata=HIDDEN if hidden else ()).to_table()
    return sorted(found.to_pylist(), key=repr)


def sizes(table: DeltaTable) -> list[int]:
    found: list[int] = table.get_add_actions().column("size_bytes").to_pylist()
    return found


CALLS: dict[str, Callable[[DeltaTable], Any]] = {
    "compact": lambda t: t.optimize.compact(),
    "compact in small bins": lambda t: t.optimize.compact(target_size=3000),
    "a commit for each group": lambda t: t.optimize.compact(min_commit_interval=0, max_concurrent_tasks=1),
    "one partition": lambda t: t.optimize.compact("p = 'a'" if t.metadata().partition_columns else None),
    "purge": lambda t: t.optimize.purge(),
    "z-order": lambda t: t.optimize.z_order(["id", "x"]),
    "hilbert by temporary files": lambda t: t.optimize.hilbert(["x", "id"], target_size=400, max_spill_size=16),
    "sort": lambda t: t.optimize.sort(["x"], target_size=500),
}
STEPS = st.lists(
    st.one_of(ROWS, st.sampled_from(["id % 3 = 0", "x is null", "p = 'a' and id > 3"]), st.sampled_from(list(CALLS))),
    min_size=2,
    max_size=8,
)


@pytest.mark.parametrize("partitions", [[], ["p"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=6, deadline=None)
@given(first=ROWS, steps=STEPS)
def test_rows_and_feed_are_the_same_before_and_after(
    tmp_path_factory: pytest.TempPathFactory, kind: str, partitions: list[str], first: list[Row], steps: list[Any]
) -> None:
    uri = str(tmp_path_factory.mktemp("t"))
    write_deltalake(uri, table_of(first), partition_by=partitions, configuration=TABLES[kind])
    table = DeltaTable(uri)
    hidden = "row ids" in kind
    expected = {0: everything(table, hidden)}
    moved = set[int]()
    for step in [*steps, "compact"]:
        before = table.version()
        if isinstance(step, list):
            write_deltalake(table, table_of(step), mode="append")
        elif step in CALLS:
            CALLS[step](table)
            moved |= set(range(before + 1, table.version() + 1))
            assert everything(table, hidden) == expected[before]
        else:
            table.delete(step)
        for version in range(before + 1, table.version() + 1):
            expected[version] = everything(table, hidden)
    for version, rows in expected.items():
        assert everything(DeltaTable(uri, version=version), hidden) == rows
    if "feed" in kind:
        changed = table.load_cdf(0).read_all().column("_commit_version").to_pylist()
        assert not set(changed) & moved
    CALLS["purge"](table)
    assert table.snapshot().files.columns(["deletionVector"]).column(0).null_count == len(table.file_uris())


def test_small_files_of_each_partition_become_one(tmp_path: Path) -> None:
    table = made(tmp_path, {}, ["p"])
    metrics = table.optimize.compact()
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["partitionsOptimized"]) == (2, 12, 2)
    assert json.loads(metrics["filesAdded"])["totalSize"] == sum(sizes(table))
    assert (len(table.file_uris()), table.to_pyarrow_table().num_rows) == (2, 30)


def test_second_compaction_finds_nothing_to_do(tmp_path: Path) -> None:
    table = made(tmp_path, {}, ["p"])
    table.optimize.compact()
    version = table.version()
    assert table.optimize.compact()["numFilesRemoved"] == 0
    assert table.version() == version


def test_rows_keep_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.optimize.compact()
    assert table.to_pyarrow_table().column("id").to_pylist() == list(range(30))


def test_files_of_the_target_size_stay(tmp_path: Path) -> None:
    table = made(tmp_path)
    before = set(table.file_uris())
    assert table.optimize.compact(target_size=min(sizes(table)))["numFilesRemoved"] == 0
    assert set(table.file_uris()) == before


def test_file_with_many_deleted_rows_is_written_again_whatever_its_size(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS, files=1)
    table.delete("id = 1")
    table.optimize.compact(target_size=1)
    assert not table.deletion_vectors().read_all().num_rows
    assert table.history(1)[0]["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_file_without_a_row_left_is_removed(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS, files=1)
    table.delete("id < 4")
    stale = table.snapshot()
    table.delete("id >= 4")
    assert plan_optimize(stale, OptimizeOptions(purge=True)).groups[0].files.num_rows == 1
    assert table.optimize.purge()["numFilesAdded"] == 0
    assert table.file_uris() == []


def test_purge_leaves_files_without_vectors_alone(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    table.delete("id = 7")
    metrics = table.optimize.purge()
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["totalFilesSkipped"]) == (1, 1, 5)


def test_commit_states_what_was_done_and_changes_no_data(tmp_path: Path) -> None:
    table = made(tmp_path, {}, ["p"])
    table.optimize.compact([("p", "=", "a")], commit_properties=CommitProperties(custom_metadata={"why": "test"}))
    [info] = table.history(1)
    assert (info["operation"], info["why"], info["isolationLevel"]) == ("OPTIMIZE", "test", "SnapshotIsolation")
    assert json.loads(info["operationParameters"]["predicate"]) == ["p = 'a'"]
    assert info["operationMetrics"]["numRemovedFiles"] == "6"
    log = (tmp_path / "t" / "_delta_log" / f"{table.version():020d}.json").read_text().splitlines()
    changes = [a[k]["dataChange"] for a in map(json.loads, log) for k in ("add", "remove") if k in a]
    assert changes == [False] * 7


def test_append_only_tables_are_compacted(tmp_path: Path) -> None:
    table = made(tmp_path, {"delta.appendOnly": "true"})
    assert table.optimize.compact()["numFilesRemoved"] == 6


def test_progress_reaches_the_planned_totals(tmp_path: Path) -> None:
    seen: list[OperationProgress] = []
    table = made(tmp_path, {}, ["p"])
    planned = sum(sizes(table))
    table.optimize.compact(progress=seen.append)
    assert seen[-1] == OperationProgress(12, 12, 30, planned, planned)


def test_application_version_that_the_table_has_compacts_nothing(tmp_path: Path) -> None:
    table = made(tmp_path)
    once = CommitProperties(app_transactions=[AppTransaction("app", 1)])
    assert table.optimize.compact(commit_properties=once)["numFilesRemoved"] == 6
    write_deltalake(table, table_of([(1, None, None)]), mode="append")
    assert table.optimize.compact(commit_properties=once)["numFilesRemoved"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"target_size": 0},
        {"target_size": "1mb"},
        {"max_concurrent_tasks": 0},
        {"min_commit_interval": timedelta(seconds=-1)},
        {"min_commit_interval": True},
        {"writer_properties": {"compression": "ZSTD"}},
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_rejected(tmp_path: Path, arguments: dict[str, Any]) -> None:
    table = made(tmp_path, {}, ["p"], files=2)
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        table.optimize.compact(**arguments)
    assert table.version() == 1


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=30), st.integers(1, 100))
def test_bins_hold_each_file_once_within_one_partition_and_the_target(
    files: list[tuple[int, int]], target: int
) -> None:
    partitions = np.array([p for p, _ in files], np.int64)
    own = np.array([s for _, s in files], np.int64)
    order = np.argsort(partitions, kind="stable")
    bins = list(pack_bins(order, partitions, own, target))
    assert [i for b in bins for i in b.tolist()] == order.tolist()
    for one in bins:
        assert len(set(partitions[one].tolist())) == 1
        assert own[one].sum() <= target or len(one) == 1
    for one, after in pairwise(bins):
        assert partitions[one[0]] != partitions[after[0]] or own[one].sum() + own[after[0]] > target


# --- rows in order -------------------------------------------------------------------------


def points(tmp_path: Path, num_rows: int = 20_000) -> DeltaTable:
    """Return a table of points spread at random over files."""
    random = np.random.default_rng(1)
    rows = pa.table({"x": random.random(num_rows), "y": random.normal(size=num_rows), "n": np.arange(num_rows)})
    for part in range(4):
        own = rows.slice(part * num_rows // 4, num_rows // 4)
        write_deltalake(tmp_path / "t", own, mode="append")
    return DeltaTable(tmp_path / "t")


def planned_files(table: DeltaTable) -> int:
    """Return how many files are planned for 1 % ranges of x and y, added up."""
    rows = table.to_pyarrow_table()
    found = 0
    for name in ("x", "y"):
        values = np.sort(rows.column(name).to_numpy())
        step = len(values) // 100
        for start in range(0, len(values) - step, 7 * step):
            low, high = values[start], values[start + step]
            found += table.scan(
                predicate=f"{name} between {low!r} and {high!r}".replace("np.float64", "")
            ).file_set.count
    return found


SMALL = {"target_size": 8_000}


@pytest.mark.parametrize("spill", [{}, {"max_spill_size": 100_000}], ids=["in memory", "by temporary files"])
def test_hilbert_plans_fewer_files_than_z_order_and_both_fewer_than_a_sort(
    tmp_path: Path, spill: dict[str, int]
) -> None:
    table = points(tmp_path)
    rows = table.to_pyarrow_table().sort_by("n")
    found = []
    for call in (table.optimize.sort, table.optimize.z_order, table.optimize.hilbert):
        call(["x", "y"], **SMALL, **spill)
        assert table.to_pyarrow_table().sort_by("n").equals(rows)
        assert len(table.file_uris()) > 30
        found.append(planned_files(table) / len(table.file_uris()))
    assert found[2] < found[1] < found[0]


@pytest.mark.parametrize("spill", [{}, {"max_spill_size": 100_000}], ids=["in memory", "by temporary files"])
def test_sorted_files_have_ranges_that_do_not_overlap(tmp_path: Path, spill: dict[str, int]) -> None:
    table = points(tmp_path)
    table.optimize.sort(["y"], **SMALL, **spill)
    bounds = table.get_add_actions(flatten=True)
    ranges = sorted(zip(bounds.column("min.y").to_pylist(), bounds.column("max.y").to_pylist(), strict=True))
    assert len(ranges) > 30
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))


@pytest.mark.peer
def test_fewer_files_are_planned_than_after_z_order_by_deltalake(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    ours, theirs = points(tmp_path / "ours"), points(tmp_path / "theirs")
    ours.optimize.z_order(["x", "y"], **SMALL)
    size = sum(sizes(theirs)) // len(ours.file_uris())
    deltalake.DeltaTable(tmp_path / "theirs" / "t").optimize.z_order(["x", "y"], target_size=size)
    theirs.update_incremental()
    assert planned_files(ours) / len(ours.file_uris()) < planned_files(theirs) / len(theirs.file_uris())


@pytest.mark.parametrize("order", ["z_order", "hilbert", "sort"])
def test_partitions_are_ordered_by_themselves(tmp_path: Path, order: str) -> None:
    table = made(tmp_path, VECTORS, ["p"])
    table.delete("id = 3")
    metrics = getattr(table.optimize, order)(["x", "id"], [("p", "=", "a")], min_commit_interval=0)
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"], metrics["preserveInsertionOrder"]) == (1, 6, False)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [i for i in range(30) if i != 3]
    assert len(table.file_uris()) == 7


@pytest.mark.parametrize("interval", [0, 0.0, timedelta(0)])
@pytest.mark.parametrize("tasks", [1, 4])
@pytest.mark.parametrize("call", ["compact", "z_order", "hilbert", "sort", "purge"])
def test_interval_of_0_commits_each_partition_by_itself(tmp_path: Path, call: str, tasks: int, interval: Any) -> None:
    table = made(tmp_path, VECTORS, ["p"])
    table.delete("id % 3 = 1")
    partitions = len({row["p"] for row in table.to_pyarrow_table(columns=["p"]).to_pylist()})
    before, expected = table.version(), rows_of(table.to_pyarrow_table())
    seen: list[Any] = []
    arguments = [] if call in ("compact", "purge") else [["x", "id"]]
    getattr(table.optimize, call)(
        *arguments, min_commit_interval=interval, max_concurrent_tasks=tasks, progress=seen.append
    )
    assert (table.version() - before, len(seen)) == (partitions, partitions)
    assert [p.files for p in seen] == sorted({p.files for p in seen})
    assert (seen[-1].files, seen[-1].bytes) == (seen[-1].total_files, seen[-1].total_bytes)
    history = table.history(partitions)
    assert len({row["operationMetrics"]["numAddedFiles"] for row in history}) == 1
    assert rows_of(table.to_pyarrow_table()) == expected
    assert not table.verify(deep="rows").findings


@pytest.mark.parametrize("spill", [{}, {"max_spill_size": 12_000}], ids=["together", "one by one"])
@pytest.mark.parametrize("order", ["z_order", "hilbert", "sort"])
def test_small_partitions_are_ordered_by_themselves_in_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, spill: dict[str, int]
) -> None:
    rng = np.random.default_rng(3)
    # the ranges of the partitions do not overlap
    part = np.arange(400) % 4
    rows = pa.table({"p": [f"p{p}" for p in part], "x": part * 1000 + rng.permutation(400), "n": np.arange(400)})
    for i in range(4):
        write_deltalake(tmp_path / "t", rows.slice(100 * i, 100), mode="append", partition_by=["p"])
    table = DeltaTable(tmp_path / "t")
    table.delete("n = 17")
    calls = []
    write = file_rewrites.write_files
    monkeypatch.setattr(file_rewrites, "write_files", lambda *a, **o: calls.append(1) or write(*a, **o))
    metrics = getattr(table.optimize, order)(["x"], **spill)
    assert (metrics["numFilesAdded"], metrics["partitionsOptimized"], metrics["numBatches"]) == (4, 4, 4)
    assert len(calls) == 1 or spill
    found = table.to_pyarrow_table()
    assert found.sort_by("n").select(rows.column_names).equals(rows.filter(pc.field("n") != 17))
    for p in range(4):
        # a curve through one column has as many cells as there are rows
        own = table.to_pyarrow_table(filters=[("p", "=", f"p{p}")]).column("x").to_pylist()
        assert own == sorted(own)


def test_rows_are_ordered_by_fields_of_structs_and_nulls_come_first(tmp_path: Path) -> None:
    values = [{"a": 3}, None, {"a": None}, {"a": 1}]
    write_deltalake(tmp_path / "t", pa.table({"s": pa.array(values, pa.struct([("a", pa.int32())]))}))
    table = DeltaTable(tmp_path / "t")
    table.optimize.sort(["s.a"])
    assert table.to_pyarrow_table().column("s").to_pylist() == [None, {"a": None}, {"a": 1}, {"a": 3}]
    table.optimize.z_order(["s.a"])
    assert table.to_pyarrow_table().num_rows == 4


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ([], InvalidArgumentError),
        ("id", InvalidArgumentError),
        (["p"], InvalidArgumentError),
        (["id", "id"], InvalidArgumentError),
        (["l"], InvalidArgumentError),
        (["nothing"], ColumnNotFoundError),
    ],
)
def test_columns_that_rows_can_not_be_ordered_by_are_rejected(
    tmp_path: Path, columns: Any, error: type[Exception]
) -> None:
    rows = pa.table({"id": [1], "p": ["a"], "l": [[1]]})
    write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    table = DeltaTable(tmp_path / "t")
    for call in (table.optimize.z_order, table.optimize.hilbert, table.optimize.sort):
        with pytest.raises(error):
            call(columns)
    assert table.version() == 0


def test_too_little_space_for_temporary_files_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    table = points(tmp_path)
    before = data_files(table)
    with pytest.raises(EngineError, match="max_temp_directory_size=1000 bytes"):
        table.optimize.z_order(["x", "y"], max_spill_size=1000, max_temp_directory_size=1000)
    assert (table.version(), data_files(table)) == (3, before)


def test_order_that_is_none_is_rejected(tmp_path: Path) -> None:
    snapshot = made(tmp_path, files=1).snapshot()
    with pytest.raises(InvalidArgumentError, match="zorder, hilbert or linear"):
        plan_optimize(snapshot, OptimizeOptions(order="random", order_by=("id",)))  # type: ignore[arg-type]


# --- other writers -------------------------------------------------------------------------


def compact_while(
    monkeypatch: pytest.MonkeyPatch, table: DeltaTable, meanwhile: Callable[[], object], **options: Any
) -> dict[str, Any]:
    """Compact, and let another writer commit between the files and the first commit."""
    commit = optimize._Optimize._commit
    once = [meanwhile]

    def slow(self: Any) -> Any:
        while once:
            once.pop()()
        return commit(self)

    monkeypatch.setattr(optimize._Optimize, "_commit", slow)
    return table.optimize.compact(**options)


@pytest.mark.parametrize("properties", [{}, {**VECTORS, **FEED, **ROW_IDS}], ids=["plain", "features"])
def test_append_meanwhile_is_kept_and_does_not_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str]
) -> None:
    table = made(tmp_path, properties)
    new = table_of([(100, "a", None)])
    metrics = compact_while(monkeypatch, table, lambda: write_deltalake(table.table_uri, new, mode="append"))
    assert (metrics["numFilesRemoved"], len(table.file_uris())) == (6, 2)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [*range(30), 100]


@pytest.mark.parametrize("properties", [{}, VECTORS, {**VECTORS, **FEED, **ROW_IDS}], ids=["plain", "vectors", "all"])
@pytest.mark.parametrize("options", [{}, {"min_commit_interval": 0}], ids=["one commit", "steps"])
def test_rows_that_are_deleted_meanwhile_stay_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], options: dict[str, Any]
) -> None:
    table = made(tmp_path, properties, ["p"])
    other = DeltaTable(table.table_uri)
    metrics = compact_while(monkeypatch, table, lambda: other.delete("id = 7 or id between 10 and 14"), **options)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == [
        i for i in range(30) if i != 7 and not 10 <= i <= 14
    ]
    assert metrics["numFilesAdded"] == 2
    assert len(table.file_uris()) <= 3
    versions = [DeltaTable(table.table_uri, version=v) for v in range(table.version() + 1)]
    named = {Path(u).relative_to(tmp_path / "t").as_posix() for v in versions for u in v.file_uris()}
    assert {f for f in data_files(table) if f.endswith(".parquet") and not f.startswith("_change_data")} == named
    if "delta.enableRowTracking" in properties:
        assert everything(table, True) == everything(other, True)


def test_second_compaction_meanwhile_leaves_the_rows_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)
    other = DeltaTable(table.table_uri)
    compact_while(monkeypatch, table, lambda: optimize.optimize_table(other.snapshot(), OptimizeOptions()))
    assert rows_of(table.to_pyarrow_table()) == rows_of(other.to_pyarrow_table())
    assert table.count() == 30


def test_delete_that_meets_a_compaction_conflicts(tmp_path: Path) -> None:
    table = made(tmp_path, VECTORS)
    stale = table.snapshot()
    deleting = stale.begin("DELETE")
    files = stale.files.columns(["path", "dvId"])
    table.optimize.compact()
    deleting.remove_rows(files.column("path")[0].as_py(), RowSet.from_positions([1]))
    with pytest.raises(ConcurrentDeleteDeleteError):
        deleting.commit()
    assert DeltaTable(table.table_uri).count() == 30


def test_changed_definition_meanwhile_conflicts_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    before = data_files(table)

    def evolve() -> None:
        rows = pa.table({"id": [1], "new": [1]}).slice(0, 0)
        write_deltalake(table.table_uri, rows, mode="append", schema_mode="merge")

    with pytest.raises(MetadataChangedError):
        compact_while(monkeypatch, table, evolve)
    assert data_files(table) == before


# --- failures ------------------------------------------------------------------------------


@pytest.mark.parametrize("fails_at", range(4))
def test_failed_write_leaves_committed_groups_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    table = made(tmp_path, {}, ["p"])
    expected = rows_of(table.to_pyarrow_table())
    write, calls = relations.write_files, [0]

    def failing(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == fails_at + 1:
            raise OSError("disk full")
        return write(*args, **options)

    monkeypatch.setattr(relations, "write_files", failing)
    monkeypatch.setattr("delta_core.operations.bins.GROUP_BYTES", 1)
    before, old = data_files(table), table.version()
    options: dict[str, Any] = {"min_commit_interval": 0, "max_concurrent_tasks": 1}
    if fails_at < 2:
        with pytest.raises(OSError, match="disk full"):
            table.optimize.compact(**options)
    else:
        table.optimize.compact(**options)
    now = DeltaTable(table.table_uri)
    assert now.version() == old + min(fails_at, 2)
    assert rows_of(now.to_pyarrow_table()) == expected
    live = {Path(u).relative_to(tmp_path / "t").as_posix() for u in now.file_uris()}
    assert data_files(now) == before | live


def test_files_of_a_commit_of_unknown_fate_are_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path)

    class Unsure(StoreCommitter):
        def commit(self, proposal: Proposal) -> Outcome:
            super().commit(proposal)
            raise CommitStateUnknownError("no answer", version=proposal.version)

    monkeypatch.setattr(transactions, "StoreCommitter", Unsure)
    with pytest.raises(CommitStateUnknownError):
        table.optimize.compact()
    now = DeltaTable(table.table_uri)
    assert (len(now.file_uris()), now.to_pyarrow_table().num_rows) == (1, 30)


# --- other readers -------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["plain", "vectors", "vectors, mapping", "feed"])
def test_deltalake_reads_what_was_compacted(tmp_path: Path, kind: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    table = made(tmp_path, TABLES[kind], ["p"])
    table.delete("id % 3 = 0")
    table.optimize.compact()
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table.table_uri)).execute("select id from t")
    assert sorted(pa.table(found).column("id").to_pylist()) == [i for i in range(30) if i % 3]
