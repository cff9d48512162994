"""Commits of datasets: effects of operations, conflicts, races and unknown outcomes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs

from delta_core.errors import CommitConflictError, CommitStateUnknownError, EngineError, UnsupportedFeatureError
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.columns import dropped_columns
from delta_plugins.lance.commit import conflicts
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.conflicts import Winner, check, is_retryable
from delta_plugins.lance.commit.draft import NewFragment
from delta_plugins.lance.commit.operations import (
    Append,
    CreateIndex,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RowRemoval,
    Update,
    UpdateConfig,
)
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.history import read_transaction, transaction_operation
from delta_plugins.lance.wire import decode, encode
from delta_plugins.lance.write.write_lance import DatasetWrite
from tests.lance.test_dataset import FIXTURES, NAMES


@pytest.fixture(params=NAMES)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a dataset that pylance wrote, which may be changed."""
    return Path(shutil.copytree(FIXTURES / request.param, tmp_path / "dataset"))


def opened(root: Path) -> LanceDataset:
    return open_dataset(str(root))


def live_row(dataset: LanceDataset) -> tuple[int, int]:
    """Return the id of a fragment with more than two rows, and the position of a row that is not deleted."""
    addresses = dataset.scan([], metadata=["_rowaddr"]).to_table().column(0).to_numpy()
    fragments, counts = np.unique(addresses >> np.uint64(32), return_counts=True)
    fragment = int(fragments[counts.argmax()])
    return fragment, int(addresses[addresses >> np.uint64(32) == fragment][0] & np.uint64(0xFFFFFFFF))


def removal(dataset: LanceDataset, rows: Mapping[int, list[int]]) -> RowRemoval:
    indices = dataset.manifest.fragments.find(np.array(list(rows), np.int64)).tolist()
    before = dict(zip(rows, dataset.files.deleted_rows(indices), strict=True))
    return RowRemoval(
        dataset.manifest,
        {f: RowSet.from_positions(p) for f, p in rows.items()},
        {f: r for f, r in before.items() if r is not None},
    )


def commit(dataset: LanceDataset, operation: Operation, **arguments: Any) -> int:
    return commit_operation(dataset.storage, operation, dataset.manifest, **arguments).manifest.version


def test_deleted_rows_are_gone_and_earlier_versions_stay(root: Path) -> None:
    dataset = opened(root)
    count, (fragment, row) = dataset.count(), live_row(dataset)
    assert commit(dataset, Delete(removal(dataset, {fragment: [row]}), predicate="chosen")) == dataset.version + 1
    after = opened(root)
    assert (after.count(), opened(root).checkout(dataset.version).count()) == (count - 1, count)
    entry = after.history(1)[0]
    assert (entry["operation"], entry["operationParameters"]["predicate"]) == ("delete", "chosen")
    assert entry["readVersion"] == dataset.version
    assert not after.verify().findings


def test_fragment_without_rows_is_removed(root: Path) -> None:
    dataset = opened(root)
    fragment, _ = live_row(dataset)
    [index] = dataset.manifest.fragments.find(np.array([fragment], np.int64)).tolist()
    [before] = dataset.files.deleted_rows([index])
    rows = RowSet.from_range(0, dataset.files.physical_rows(index))
    rest = rows if before is None else rows - before
    commit(dataset, Delete(removal(dataset, {fragment: rest.positions().tolist()})))
    after = opened(root)
    assert after.count() == dataset.count() - rest.cardinality
    assert fragment not in after.manifest.fragments.id
    assert list(after.manifest.fragments.id) == [f for f in dataset.manifest.fragments.id if f != fragment]


def test_deletions_of_other_rows_are_united(root: Path) -> None:
    dataset = opened(root)
    fragment, row = live_row(dataset)
    commit(dataset, Delete(removal(dataset, {fragment: [row]})))
    [second] = [
        int(a & 0xFFFFFFFF)
        for a in opened(root).scan([], metadata=["_rowaddr"]).to_table().column(0).to_pylist()
        if a >> 32 == fragment
    ][:1]
    commit(dataset, Delete(removal(dataset, {fragment: [second]})))
    assert opened(root).count() == dataset.count() - 2
    with pytest.raises(CommitConflictError, match="deleted or updated") as caught:
        commit(dataset, Delete(removal(dataset, {fragment: [row]})))
    assert is_retryable(caught.value)
    assert opened(root).version == dataset.version + 2


def test_files_of_an_operation_that_lost_are_deleted(root: Path) -> None:
    dataset = opened(root)
    fragment, row = live_row(dataset)
    commit(dataset, Delete(removal(dataset, {fragment: [row]})))
    before = files_of(root)
    written = root / "data" / "mine.lance"
    written.write_bytes(b"rows")
    with pytest.raises(CommitConflictError):
        commit(dataset, Delete(removal(dataset, {fragment: [row]})), written=["data/mine.lance"])
    assert files_of(root) == before


def files_of(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


def test_columns_are_dropped_and_renamed(root: Path) -> None:
    dataset = opened(root)
    first, *others = dataset.manifest.fields
    commit(dataset, Project((structs.replace(first, name="renamed"), *others[:1])))
    after = opened(root)
    assert after.schema().names == ["renamed", others[0].name]
    assert after.to_pyarrow_table().column("renamed").equals(dataset.to_pyarrow_table().column(first.name))


def test_configuration_and_metadata_are_changed_key_by_key(root: Path) -> None:
    dataset = opened(root)
    commit(
        dataset, UpdateConfig({"a": "1", "b": "2"}, {"t": "3"}, {"s": "4"}, {dataset.manifest.fields[0].id: {"f": "5"}})
    )
    commit(opened(root), UpdateConfig({"a": None}))
    after = opened(root)
    assert after.manifest.message["config"]["b"] == "2"
    assert "a" not in after.manifest.message["config"]
    assert after.manifest.message["table_metadata"]["t"] == "3"
    assert after.schema().metadata[b"s"] == b"4"
    assert after.schema().field(0).metadata[b"f"] == b"5"


def test_restored_version_has_its_rows_and_ids_go_on(root: Path) -> None:
    dataset = opened(root)
    earlier = dataset.checkout(dataset.versions()[0])
    commit(dataset, Restore(earlier.manifest))
    after = opened(root)
    assert after.to_pyarrow_table().equals(earlier.to_pyarrow_table())
    assert after.schema().equals(earlier.schema())
    for name in ("max_fragment_id", "next_row_id"):
        used = dataset.manifest.message[name]
        assert used is None or after.manifest.message[name] >= used
    assert after.version == dataset.version + 1


def test_reserved_ids_are_not_used_again(root: Path) -> None:
    dataset = opened(root)
    most = int(dataset.manifest.fragments.id.max())
    commit(dataset, ReserveFragments(5))
    assert opened(root).manifest.message["max_fragment_id"] >= most + 5


def test_writers_at_once_lose_nothing(root: Path) -> None:
    dataset = opened(root)

    def change(number: int) -> int:
        return commit(dataset, UpdateConfig({f"mine{number}": str(number)}))

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(change, range(24)))
    assert sorted(versions) == list(range(dataset.version + 1, dataset.version + 25))
    config = opened(root).manifest.message["config"]
    assert {k: v for k, v in config.items() if k.startswith("mine")} == {f"mine{n}": str(n) for n in range(24)}


# --- outcomes ------------------------------------------------------------------------------


def test_unknown_outcome_deletes_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(root)
    fragment, row = live_row(dataset)
    (root / "data" / "mine.lance").write_bytes(b"rows")

    def lost(*_: Any, **__: Any) -> str:
        raise EngineError("the connection was cut")

    monkeypatch.setattr(type(dataset.storage), "put_if_absent", lost)
    monkeypatch.setattr("delta_core.kernel.commit.publishing.PAUSE", 0)
    before = files_of(root)
    with pytest.raises(CommitStateUnknownError, match="nothing was deleted"):
        commit(dataset, Delete(removal(dataset, {fragment: [row]})), written=["data/mine.lance"])
    assert before < files_of(root)


def test_answer_that_was_lost_is_settled_by_the_transaction(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(root)
    put: Callable[..., str] = type(dataset.storage).put_if_absent
    calls = []

    def cut(*args: Any, **kwargs: Any) -> str:
        found = put(*args, **kwargs)
        calls.append(found)
        if len(calls) == 1:
            raise EngineError("the answer was lost")
        return found

    monkeypatch.setattr(type(dataset.storage), "put_if_absent", cut)
    monkeypatch.setattr("delta_core.kernel.commit.publishing.PAUSE", 0)
    assert commit(dataset, UpdateConfig({"a": "1"})) == dataset.version + 1
    assert calls == ["created", "exists"]
    assert opened(root).version == dataset.version + 1


def test_interrupt_after_the_manifest_keeps_its_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = opened(root)
    fragment, row = live_row(dataset)
    put: Callable[..., str] = type(dataset.storage).put_if_absent

    def interrupted(*args: Any, **kwargs: Any) -> str:
        put(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(dataset.storage), "put_if_absent", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commit(dataset, Delete(removal(dataset, {fragment: [row]})))
    after = opened(root)
    assert (after.version, after.count()) == (dataset.version + 1, dataset.count() - 1)
    assert not after.verify().findings


@pytest.mark.parametrize("flag", [16, 128, 1024, 16384, 131072, 1 << 20])
def test_dataset_that_can_not_be_written_is_rejected(root: Path, flag: int) -> None:
    dataset = opened(root)
    message = {**dataset.manifest.message, "writer_feature_flags": flag | 3, "reader_feature_flags": 3}
    if flag in (16, 1024, 16384):
        message["reader_feature_flags"] |= flag
    manifest = structs.replace(dataset.manifest, message=message)
    before = files_of(root)
    with pytest.raises(UnsupportedFeatureError, match=str(flag)):
        commit_operation(dataset.storage, UpdateConfig({"a": "1"}), manifest)
    assert files_of(root) == before


# --- schemas that change meanwhile ---------------------------------------------------------


def append(dataset: LanceDataset, rows: pa.Table) -> None:
    """Append rows that are written for a version, which may not be the latest one."""
    limits = {"max_rows": 100, "max_bytes": 1 << 20}
    DatasetWrite(dataset.engine, dataset, rows, None, (2, 2)).commit("append", limits, {}, {}, False)


@pytest.mark.parametrize("column", ["x", "point.y"])
def test_nulls_are_not_appended_to_a_column_that_was_made_required(tmp_path: Path, column: str) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    root = str(tmp_path / "d")
    before = write_lance(root, pa.table({"x": [1, 2], "point": [{"y": 1}, {"y": 2}]}))
    lance.dataset(root).alter_columns({"path": column, "nullable": False})
    files = files_of(tmp_path)
    with pytest.raises(CommitConflictError, match="it did project") as caught:
        append(before, pa.table({"x": [None], "point": [{"y": None}]}, before.schema()))
    assert is_retryable(caught.value)
    assert files_of(tmp_path) == files
    assert open_dataset(root).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("column", ["x", "point.y"])
def test_values_of_a_column_that_was_cast_are_not_appended(tmp_path: Path, column: str) -> None:
    root = str(tmp_path / "d")
    before = write_lance(root, pa.table({"x": [1, 2], "point": [{"y": 1}, {"y": 2}]}))
    open_dataset(root).cast_column(column, pa.int32())
    with pytest.raises(CommitConflictError, match="it did merge"):
        append(before, pa.table({"x": [3], "point": [{"y": 3}]}))
    append(open_dataset(root), pa.table({"x": [3], "point": [{"y": 3}]}))
    assert open_dataset(root).to_pyarrow_table().to_pylist()[-1] == {"x": 3, "point": {"y": 3}}


def test_rows_are_appended_after_a_column_was_added_renamed_or_dropped(tmp_path: Path) -> None:
    root = str(tmp_path / "d")
    before = write_lance(root, pa.table({"x": [1], "y": [1], "z": [1]}))
    later = open_dataset(root)
    later.add_columns({"w": "x + 1"})
    later.rename_column("x", "renamed")
    later.drop_columns(["z"])
    append(before, pa.table({"x": [2], "y": [2], "z": [2]}))
    assert open_dataset(root).to_pyarrow_table().to_pylist() == [
        {"renamed": 1, "y": 1, "w": 2}, {"renamed": 2, "y": 2, "w": None},
    ]  # fmt: skip


def committed_operation(dataset: LanceDataset) -> dict[str, Any]:
    data = memoryview((Path(dataset.files.uri) / dataset.manifest.path).read_bytes())
    found = read_transaction(dataset.storage, "", data, dataset.manifest)
    assert found is not None
    name = transaction_operation(found)
    assert name is not None
    body: dict[str, Any] = found[name]
    return body


def test_other_writers_are_warned_of_required_columns_alone(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.int64(), False), pa.field("y", pa.int64())])
    dataset = write_lance(str(tmp_path / "d"), pa.table({"x": [1], "y": [1]}, schema))
    changes: list[Callable[[], Any]] = [
        lambda: dataset.cast_column("y", pa.int32()),
        lambda: dataset.add_columns({"z": "x"}),
        lambda: dataset.rename_column("x", "w"),
        lambda: dataset.drop_columns(["z"]),
        lambda: dataset.cast_column("w", pa.int32()),
    ]
    found = []
    for change in changes:
        change()
        found.append(committed_operation(dataset)["preserves_nullability"])
    assert found == [True, True, True, True, False]


def test_metadata_that_was_set_meanwhile_stays(tmp_path: Path) -> None:
    dataset = write_lance(str(tmp_path / "d"), pa.table({"x": [1], "y": [1]}))
    project = dropped_columns(dataset, ["y"])
    open_dataset(dataset.files.uri).set_config(field_metadata={"x": {"unit": "m"}})
    with pytest.raises(CommitConflictError, match="update_config") as caught:
        commit(dataset, project)
    assert is_retryable(caught.value)
    dataset.drop_columns(["y"])
    assert dataset.schema().field("x").metadata[b"unit"] == b"m"


# --- the matrix ----------------------------------------------------------------------------

GOES, AGAIN, FINAL = "goes", "again", "final"
FRAGMENT = {"id": 1}
OTHER = RowSet.from_positions([7]).to_roaring(32)
INDEX: dict[str, Any] = {"name": "i", "fields": [0], "fragment_bitmap": RowSet.from_positions([1]).to_roaring(32)}
#: An operation, touching fragment 1 and field 0, as a winner's message.
WINNERS: Mapping[str, dict[str, Any]] = {
    "append": {"fragments": [FRAGMENT]},
    "delete": {"updated_fragments": [FRAGMENT]},
    "overwrite": {"config_upsert_values": {"k": "v"}},
    "create_index": {"new_indices": [INDEX]},
    "rewrite": {"groups": [{"old_fragments": [FRAGMENT], "new_fragments": [{"id": 9}]}]},
    "merge": {"schema": [{"id": 0}], "preserves_nullability": True},
    "merge that replaces": {"schema": [{"id": 9}], "preserves_nullability": True},
    "merge that requires": {"schema": [{"id": 0}]},
    "restore": {"version": 1},
    "reserve_fragments": {"num_fragments": 1},
    "update": {"updated_fragments": [FRAGMENT], "new_fragments": [{"id": 9}]},
    "update of columns": {
        "updated_fragments": [FRAGMENT],
        "new_fragments": [{"id": 9}],
        "fields_modified": [0],
        "update_mode": 1,
    },
    "project": {"schema": [], "preserves_nullability": True},
    "project that keeps": {"schema": [{"id": 0}], "preserves_nullability": True},
    "project that requires": {"schema": [{"id": 0}]},
    "update_config": {"config_updates": {"update_entries": [{"key": "k", "value": "v"}]}},
    "update_config of fields": {"field_metadata_updates": {0: {"update_entries": [{"key": "unit", "value": "m"}]}}},
    "data_replacement": {"replacements": [{"fragment_id": 1, "new_file": {"fields": [0]}}]},
    "update_mem_wal_state": {},
    "update_bases": {},
}
#: For each of my operations, the winners that it does not go with.
MATRIX: Mapping[str, Mapping[str, str]] = {
    "append": {
        "project that requires": AGAIN, "merge that requires": AGAIN, "merge that replaces": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "delete rows": {
        "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "delete fragments": {
        "delete": AGAIN, "update": AGAIN, "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "update": {
        "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN, "project": AGAIN,
        "project that requires": AGAIN, "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "merge rows": {
        "append": AGAIN, "update": AGAIN, "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN, "project": AGAIN,
        "project that requires": AGAIN, "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "rewrite": {
        "delete": AGAIN, "update": AGAIN, "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN,
        "create_index": AGAIN, "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "project": {
        "merge": AGAIN, "project": AGAIN, "project that keeps": AGAIN, "project that requires": AGAIN,
        "update_config of fields": AGAIN, "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "merge": {
        "append": AGAIN, "delete": AGAIN, "update": AGAIN, "rewrite": AGAIN, "data_replacement": AGAIN, "merge": AGAIN,
        "project": FINAL, "project that keeps": FINAL, "project that requires": FINAL, "update_config of fields": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "overwrite": {"overwrite": AGAIN, "update_mem_wal_state": FINAL},
    "overwrite with config": {"overwrite": FINAL, "update_config": FINAL, "update_mem_wal_state": FINAL},
    "create_index": {
        "create_index": AGAIN, "rewrite": AGAIN, "data_replacement": AGAIN, "project": AGAIN,
        "merge that replaces": AGAIN, "update of columns": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "drop_index": {
        "create_index": AGAIN, "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "other index": {
        "data_replacement": AGAIN, "project": AGAIN, "merge that replaces": AGAIN,
        "overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL,
    },
    "restore": {"update_mem_wal_state": FINAL, "update_config of fields": FINAL},
    "reserve_fragments": {"overwrite": FINAL, "restore": FINAL, "update_mem_wal_state": FINAL},
    "update_config": {"update_config": FINAL, "overwrite": FINAL},
    "other config": {},
    "config of fields": {
        "update_config of fields": FINAL, "merge": AGAIN, "overwrite": FINAL, "restore": FINAL,
    },
}  # fmt: skip


def my_operations() -> Mapping[str, Operation]:
    base = opened(FIXTURES / "plain").manifest
    rows = RowRemoval(base, {1: RowSet.from_positions([0])}, {})
    none = RowRemoval(base, {}, {})
    return {
        "append": Append([NewFragment(1, [{"fields": [0]}])]),
        "delete rows": Delete(rows),
        "delete fragments": Delete(none, whole=[1]),
        "update": Update(rows, [], fields_modified=[0]),
        "merge rows": Update(rows, [], fields_modified=[0], reads_all=True),
        "rewrite": Rewrite(base, [RewriteGroup([1], [])]),
        "project": Project(base.fields),
        "overwrite": Overwrite([], base.fields),
        "overwrite with config": Overwrite([], base.fields, config={"k": "w"}),
        "restore": Restore(base),
        "reserve_fragments": ReserveFragments(1),
        "update_config": UpdateConfig({"k": "w"}),
        "other config": UpdateConfig({"other": "w"}),
        "config of fields": UpdateConfig(fields={0: {"unit": "km"}}),
        "merge": Merge(base, base.fields, {}),
        "create_index": CreateIndex([INDEX]),
        "drop_index": CreateIndex([], [INDEX]),
        "other index": CreateIndex([{**INDEX, "name": "j", "fragment_bitmap": OTHER}]),
    }


@pytest.mark.parametrize("mine", MATRIX)
@pytest.mark.parametrize("winner", WINNERS)
def test_operations_go_together_as_the_protocol_specifies(mine: str, winner: str) -> None:
    name = winner.partition(" ")[0]
    body = decode("Transaction", encode("Transaction", {name: WINNERS[winner]}), "a test")[name]
    row = MATRIX[mine]
    # what holds for each merge or update holds for those of some kind, too
    expected = row.get(winner, row.get(name, GOES) if name in ("merge", "update") else GOES)
    operation = my_operations()[mine]
    if expected == GOES:
        check(operation, Winner(7, name, body, "u"))
        return
    with pytest.raises(CommitConflictError, match=f"Version 7.*{name}") as caught:
        check(operation, Winner(7, name, body, "u"))
    assert (AGAIN if is_retryable(caught.value) else FINAL) == expected


@pytest.mark.parametrize("mine", MATRIX)
def test_unknown_operation_is_a_conflict(mine: str) -> None:
    with pytest.raises(CommitConflictError, match="not known") as caught:
        check(my_operations()[mine], Winner(7, None, {}, ""))
    assert not is_retryable(caught.value)


def test_every_operation_has_rules() -> None:
    assert {o.name for o in my_operations().values()} == {*conflicts.RULES}
