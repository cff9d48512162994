"""Compaction: which fragments are joined, what rows keep, indices, memory, conflicts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.api import CommitProperties
from delta_core.errors import CommitConflictError, InvalidArgumentError, MetadataChangedError, UnsupportedOperationError
from delta_core.operations import OptimizeOptions, optimize_table
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.compacting import CompactOptions, choose_fragments
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.rewrites import BIN_FRAGMENTS, LanceRewrites
from tests.lance.changed_datasets import check_with_pylance, made, row_ids, rows

METADATA = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def peer(where: str) -> Any:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    return lance.dataset(where)


def sizes_of(dataset: LanceDataset) -> list[int]:
    found: list[int] = dataset.fragments().column("physical_rows").to_pylist()
    return found


def content(dataset: LanceDataset, *metadata: str) -> str:
    return repr(dataset.to_pyarrow_table(metadata=metadata).to_pylist())


# --- which fragments -----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_small_fragments_become_one_with_the_same_rows_in_their_order(
    tmp_path: Path, stable: bool, version: str
) -> None:
    where = str(tmp_path / "d")
    table = rows(0, 100).drop_columns(["point"]) if version == "2.0" else rows(0, 100)
    write_lance(where, table, stable_row_ids=stable, file_version=version, max_rows_per_file=30)
    dataset = open_dataset(where)
    dataset.delete("id in (3, 50, 99)")
    before = content(dataset, *(METADATA if stable else ()))
    done = dataset.compact()
    assert (done["version"], dataset.version) == (4, 4)
    assert [h["operation"] for h in dataset.history(2)] == ["rewrite", "reserve_fragments"]
    assert (done["num_removed_fragments"], done["num_added_fragments"], done["num_removed_deleted_rows"]) == (4, 1, 3)
    assert sizes_of(dataset) == [97]
    assert content(dataset, *(METADATA if stable else ())) == before
    check_with_pylance(where, every_version=True)


def test_second_run_commits_nothing(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.compact(target_rows=70)
    assert sizes_of(dataset) == [70, 30]
    again = dataset.compact(target_rows=70)
    assert (again["version"], again["num_removed_fragments"], dataset.version) == (3, 0, 3)


def test_many_fragments_are_written_in_several_parts(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, 1000), stable_row_ids=True, max_rows_per_file=7)
    dataset = open_dataset(where)
    before = content(dataset, *METADATA)
    dataset.compact(target_rows=20)
    sizes = sizes_of(dataset)
    assert sum(sizes) == 1000
    assert set(sizes[:-1]) <= {20, 21}
    assert content(dataset, *METADATA) == before
    assert dataset.compact(target_rows=20)["num_removed_fragments"] == 0
    check_with_pylance(where)


def test_fragment_at_its_target_is_not_touched(tmp_path: Path) -> None:
    where = made(tmp_path, count=60).uri
    write_lance(where, rows(60, 10), "append")
    write_lance(where, rows(70, 10), "append")
    dataset = open_dataset(where)
    before = dataset.fragments().column("files").to_pylist()
    dataset.compact(target_rows=30)
    assert dataset.fragments().column("files").to_pylist()[:2] == before[:2]
    assert sizes_of(dataset) == [30, 30, 20]


def test_fragment_at_its_target_in_bytes_is_not_touched(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    sizes = [f["size_bytes"] for files in dataset.fragments().column("files").to_pylist() for f in files]
    assert dataset.compact(max_bytes=min(sizes))["num_removed_fragments"] == 0
    dataset.compact(max_bytes=min(sizes) + 1)
    # the only one that is smaller has none to be joined with
    assert dataset.version == 1


def test_deleted_rows_are_left_out_of_a_fragment_with_many(tmp_path: Path) -> None:
    dataset = made(tmp_path, count=90)
    dataset.delete("id in (31, 32, 33)")
    assert dataset.compact(target_rows=30)["num_removed_fragments"] == 0  # a tenth is not more than a tenth
    assert dataset.compact(target_rows=30, materialize_deletions=None)["num_removed_fragments"] == 0
    done = dataset.compact(target_rows=30, materialize_deletions=0.05)
    assert (done["num_removed_fragments"], done["num_removed_deletion_files"], done["num_removed_deleted_rows"]) == (
        (1, 1, 3)
    )
    assert sizes_of(dataset) == [30, 30, 27]
    check_with_pylance(dataset.uri)


def test_fragment_without_a_row_left_goes(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.delete("id < 100")
    assert dataset.compact()["num_removed_fragments"] == 0
    write_lance(dataset.uri, rows(0, 3), "append")
    assert open_dataset(dataset.uri).compact()["num_removed_fragments"] == 0


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(1, 90), st.integers(0, 3)), max_size=30),
    st.integers(1, 60),
    st.integers(1, 5000),
    st.sampled_from([None, 0.0, 0.1, 0.5]),
    st.integers(0, 3),
)
def test_what_is_written_is_never_chosen_again(
    fragments: list[tuple[int, int, int, int]], target: int, max_bytes: int, share: float | None, lasting: int
) -> None:
    """A model of the writer: a fragment ends at its target in rows, or at the row that reaches its target in bytes."""
    options = CompactOptions(target, max_bytes, share, 1 << 20)
    listed = [(rows, max(rows - deleted, 0), size, bits) for rows, deleted, size, bits in fragments]
    chosen = choose_fragments(units(listed, lasting), options)
    numbers = [int(i) for one in chosen for i in one]
    assert len(set(numbers)) == len(numbers)
    dropped = int(np.bitwise_or.reduce(np.array([0, *(listed[i][3] for i in numbers)]))) & ~lasting
    for one in chosen:
        assert len({listed[i][3] & ~dropped for i in one}) == 1
    after = [f for i, f in enumerate(listed) if i not in numbers]
    after += [f for one in chosen for f in written([listed[i] for i in one], target, max_bytes)]
    after = [(rows, live, size, bits & ~dropped) for rows, live, size, bits in after]
    assert not choose_fragments(units(after, lasting), options)


def units(listed: list[tuple[int, int, int, int]], lasting: int) -> pa.Table:
    columns = list(zip(*listed, strict=True)) or [()] * 4
    names = ["rows", "live_rows", "size", "indices"]
    table = pa.table({n: pa.array(c, pa.int64()) for n, c in zip(names, columns, strict=True)})
    return table.append_column("lasting", pa.array([lasting] * len(listed), pa.int64()))


def written(old: list[tuple[int, int, int, int]], target: int, max_bytes: int) -> list[tuple[int, int, int, int]]:
    per_row = [size / rows for rows, live, size, _ in old for _ in range(live)]
    most = len(per_row) // target
    each, more = divmod(len(per_row), most) if most >= BIN_FRAGMENTS else (target, 0)
    found: list[tuple[int, int, int, int]] = []
    count, size = 0, 0.0
    for width in per_row:
        count, size = count + 1, size + width
        if count == each + (len(found) < more) or size >= max_bytes:
            found.append((count, count, max(int(size), 1), old[0][3]))
            count, size = 0, 0.0
    return found + ([(count, count, max(int(size), 1), old[0][3])] if count else [])


def test_columns_that_were_added_are_joined(tmp_path: Path) -> None:
    dataset = made(tmp_path, stable=True)
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["small"])
    write_lance(dataset.uri, rows(200, 5).drop_columns(["small"]), "append")
    dataset = open_dataset(dataset.uri)
    before = content(dataset, *METADATA)
    dataset.compact()
    assert content(dataset, *METADATA) == before
    [files] = dataset.fragments().column("files").to_pylist()
    assert len(files) == 1
    check_with_pylance(dataset.uri)


def test_sizes_that_are_none_are_rejected(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    for wrong in (
        {"target_rows": 0},
        {"target_rows": None},
        {"max_bytes": 0},
        {"max_memory": 1000},
        {"materialize_deletions": 1.5},
        {"materialize_deletions": "0.1"},
        {"target_rows": True},
    ):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            dataset.compact(**wrong)  # type: ignore[arg-type]
    assert dataset.version == 1


def test_predicates_and_orders_are_rejected(tmp_path: Path) -> None:
    dataset: Any = made(tmp_path)
    for options in (OptimizeOptions(predicate="id = 1"), OptimizeOptions(order="linear", order_by=["id"])):
        with pytest.raises(UnsupportedOperationError):
            optimize_table(dataset, options)


# --- rows ----------------------------------------------------------------------------------


def test_ids_and_versions_of_updated_rows_stay(tmp_path: Path) -> None:
    dataset = made(tmp_path, stable=True)
    dataset.update({"text": "'new'"}, predicate="id % 7 = 0")
    source = pa.concat_tables([rows(5, 3), rows(300, 4)])
    dataset.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    before, ids = content(dataset, *METADATA), row_ids(dataset)
    dataset.compact()
    assert content(dataset, *METADATA) == before
    assert dataset.take(list(ids.values()), ["id"], by="id").column("id").to_pylist() == list(ids)
    check_with_pylance(dataset.uri, every_version=True)


@pytest.mark.parametrize("step", [2, 3, 7, 40, 200])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_between_deleted_ones_are_read_alike_however_many_these_are(
    tmp_path: Path, step: int, version: str
) -> None:
    where = str(tmp_path / "d")
    table = rows(1, 1000).drop_columns(["point"]) if version == "2.0" else rows(1, 1000)
    write_lance(where, table, stable_row_ids=True, file_version=version, max_rows_per_file=600)
    dataset = open_dataset(where)
    dataset.delete(f"id % {step} = 0")
    left = [i for i in range(1000) if (i + 1) % step]
    found = dataset.scan(metadata=METADATA, batch_rows=100).to_table()
    assert repr(found.select(table.column_names).to_pylist()) == repr(table.take(left).to_pylist())
    assert found.column("_rowid").to_pylist() == left
    before = content(dataset, *METADATA)
    dataset.compact()
    assert content(dataset, *METADATA) == before


def test_numbers_in_hidden_columns_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the fast path reads of the manifest, columns have in datasets with spilled lineage."""
    dataset = made(tmp_path, stable=True)
    dataset.update({"text": "'new'"}, predicate="id < 50")
    before = content(dataset, *METADATA)
    monkeypatch.setattr("delta_plugins.lance.rewrites._numbers", lambda *_: None)
    dataset.compact()
    assert content(dataset, *METADATA) == before


def test_error_of_a_request_that_is_not_written_has_the_call_that_removes_it(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    requests = {"lance-encoding:structural-encoding": "fullzip", "lance-encoding:compression": "zstd"}
    table = pa.table({"g": range(1000)}, schema=pa.schema([pa.field("g", pa.int64(), metadata=requests)]))
    for mode in ("create", "append"):
        lance.write_dataset(table, str(tmp_path / "d"), mode=mode, data_storage_version="2.1")
    dataset = open_dataset(str(tmp_path / "d"))
    with pytest.raises(InvalidArgumentError) as caught:
        dataset.compact()
    call = caught.value.message.rpartition("remove it with ")[2].removesuffix(".")
    eval(f"dataset.{call}", {"dataset": dataset})
    assert dataset.compact()["num_removed_fragments"] == 2
    assert lance.dataset(dataset.uri).to_table().column("g").to_pylist() == 2 * list(range(1000))


def test_pylance_goes_on_after_our_compaction(tmp_path: Path) -> None:
    dataset = made(tmp_path, stable=True)
    dataset.delete("id % 3 = 0")
    dataset.compact(target_rows=20)
    theirs = peer(dataset.uri)
    assert theirs.to_table(filter="id = 50").column("text").to_pylist() == ["text 50"]
    assert theirs.take([0, 5]).num_rows == 2
    theirs.optimize.compact_files(target_rows_per_fragment=1000)
    theirs.delete("id = 50")
    theirs.insert(rows(500, 5))
    open_dataset(dataset.uri).compact()
    check_with_pylance(dataset.uri, every_version=True)


CHILD = """
import resource, sys, numpy as np, pyarrow as pa
from delta_plugins.lance import open_dataset
dataset = open_dataset(sys.argv[1])
dataset.compact(max_memory=32 << 20, target_rows=10)  # what is imported and cached, of few rows
dataset.restore(dataset.version)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
open_dataset(sys.argv[2]).compact(max_memory=32 << 20)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.parametrize("width", [4_000, 200_000])
def test_memory_is_bounded_whatever_the_width_of_rows(tmp_path: Path, width: int) -> None:
    total = 240 << 20

    def batches() -> Any:
        chance = np.random.default_rng(width)
        for start in range(0, total // width, 50):
            yield pa.record_batch({"id": np.arange(start, start + 50), "v": [chance.bytes(width) for _ in range(50)]})

    schema = pa.schema([("id", pa.int64()), ("v", pa.binary())])
    wide, small = str(tmp_path / "wide"), made(tmp_path).uri
    write_lance(wide, pa.RecordBatchReader.from_batches(schema, batches()), max_rows_per_file=total // width // 3)
    done = subprocess.run([sys.executable, "-c", CHILD, small, wide], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 100
    assert len(sizes_of(open_dataset(wide))) == 1


# --- indices -------------------------------------------------------------------------------


def _indexed(where: str, stable: bool) -> None:
    theirs = peer(where)
    for column, kind, name in (("id", "BTREE", "b"), ("text", "BITMAP", "m"), ("id", "ZONEMAP", "z")):
        theirs.create_scalar_index(column, kind, name=name)


def _names(where: str) -> list[str]:
    return sorted(i.name for i in peer(where).describe_indices())


def test_indices_of_addresses_are_dropped_and_named(tmp_path: Path) -> None:
    where = made(tmp_path).uri
    _indexed(where, False)
    dataset = open_dataset(where)
    assert sorted(dataset.compact()["dropped_indices"]) == ["b", "m", "z"]
    assert _names(where) == []
    assert dataset.count("id = 5") == 1


def test_index_of_stable_ids_stays_and_has_the_new_fragments(tmp_path: Path) -> None:
    where = made(tmp_path, stable=True).uri
    _indexed(where, True)
    dataset = open_dataset(where)
    assert sorted(dataset.compact()["dropped_indices"]) == ["b", "z"]
    assert _names(where) == ["m"]
    assert dataset.to_pyarrow_table(["id"], "text = 'text 5'").column("id").to_pylist() == [5]
    assert peer(where).to_table(columns=["id"], filter="text = 'text 5'").column("id").to_pylist() == [5]
    assert "index m" in str(dataset.scan(["id"], "text = 'text 5'").explain()).lower() or "m" in _names(where)
    check_with_pylance(where)


@pytest.mark.parametrize("stable", [False, True])
def test_fragments_that_an_index_lacks_are_not_joined_with_those_that_it_has(tmp_path: Path, stable: bool) -> None:
    where = made(tmp_path, stable=stable, count=60).uri
    _indexed(where, stable)
    for first in (60, 70, 80):
        write_lance(where, rows(first, 10), "append")
    dataset = open_dataset(where)
    done = dataset.compact(target_rows=30)
    assert (done["dropped_indices"], sizes_of(dataset)) == ([], [30, 30, 30])
    assert _names(where) == ["b", "m", "z"]
    for text in ("text 5", "text 75"):
        assert dataset.count(f"text = '{text}'") == peer(where).count_rows(f"text = '{text}'") == 1
    assert dataset.compact(target_rows=30)["num_removed_fragments"] == 0


# --- other writers -------------------------------------------------------------------------


def _meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]) -> None:
    """Let another writer commit after the fragments were written, once."""
    commit, calls = LanceRewrites.commit, []

    def racing(self: Any, *args: Any) -> int:
        calls.append(1)
        if len(calls) == 1:
            change()
        return commit(self, *args)

    monkeypatch.setattr(LanceRewrites, "commit", racing)


WINNERS: dict[str, Callable[[str], Any]] = {
    "delete": lambda w: open_dataset(w).delete("id in (3, 50)"),
    "update": lambda w: open_dataset(w).update({"text": "'new'"}, predicate="id in (3, 50)"),
    "append": lambda w: write_lance(w, rows(500, 3), "append"),
    "compact": lambda w: open_dataset(w).compact(target_rows=60),
    "config": lambda w: open_dataset(w).set_config({"a": "1"}),
    "add columns": lambda w: open_dataset(w).add_columns({"twice": "id * 2"}),
    "rename": lambda w: open_dataset(w).rename_column("small", "little"),
    "pylance deletes": lambda w: peer(w).delete("id in (3, 50)"),
    "pylance compacts": lambda w: peer(w).optimize.compact_files(target_rows_per_fragment=60),
    "index": lambda w: peer(w).create_scalar_index("id", "BTREE"),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("winner", WINNERS)
def test_compaction_runs_again_on_what_another_writer_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, winner: str, stable: bool
) -> None:
    where = made(tmp_path, stable=stable).uri
    states: list[str] = []

    def change() -> None:
        WINNERS[winner](where)
        states.append(_sorted(open_dataset(where)))

    _meanwhile(monkeypatch, change)
    open_dataset(where).compact()
    after = open_dataset(where)
    assert _sorted(after) == states[0]
    assert len(sizes_of(after)) <= 2
    check_with_pylance(where)
    _check_files(after)


def _sorted(dataset: LanceDataset) -> str:
    return repr(dataset.to_pyarrow_table().sort_by("id").to_pylist())


def _check_files(dataset: LanceDataset) -> None:
    """Check that no data file was left that no version names."""
    named = {
        f["path"]
        for v in dataset.versions()
        for files in dataset.checkout(v).fragments().column("files").to_pylist()
        for f in files
    }
    assert {p.name for p in (Path(dataset.uri) / "data").iterdir()} == named


@pytest.mark.parametrize("winner", ["overwrite", "restore"])
def test_replaced_dataset_is_a_conflict_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, winner: str
) -> None:
    where = made(tmp_path).uri
    open_dataset(where).delete("id = 1")
    change = {"overwrite": lambda: write_lance(where, rows(0, 9), "overwrite"), "restore": lambda: _restored(where)}
    _meanwhile(monkeypatch, change[winner])
    with pytest.raises(MetadataChangedError, match=winner):
        open_dataset(where).compact()
    assert open_dataset(where).version == 3
    _check_files(open_dataset(where))


def _restored(where: str) -> None:
    open_dataset(where).restore(1)


def test_conflict_that_returns_each_time_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = made(tmp_path).uri
    commit = LanceRewrites.commit

    def racing(self: Any, *args: Any) -> int:
        dataset = open_dataset(where)
        dataset.update({"text": "'again'"}, predicate=f"id = {dataset.version}")
        return commit(self, *args)

    monkeypatch.setattr(LanceRewrites, "commit", racing)
    with pytest.raises(CommitConflictError):
        open_dataset(where).compact(commit_properties=CommitProperties(max_commit_retries=1))
    assert open_dataset(where).count() == 100
    _check_files(open_dataset(where))
