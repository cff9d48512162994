"""Datasets with data files of different versions: changes and compaction write files of the dataset's version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import UnsupportedFeatureError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.draft import NewFragment, fragment_message
from delta_plugins.lance.commit.operations import Append
from delta_plugins.lance.dataset import LanceDataset

PAIRS = [("2.2", "2.1"), ("2.1", "2.2"), ("2.0", "2.2"), ("2.2", "2.0"), ("2.1", "2.0")]


def rows(first: int, n: int = 3) -> pa.Table:
    ids = [*range(first, first + n)]
    return pa.table(
        {"id": ids, "text": [None if i % 3 == 1 else f"t{i}" for i in ids], "list": [[i] * (i % 3) for i in ids]}
    )


def mixed(lance: Any, where: str, own: str, other: str, **options: Any) -> LanceDataset:
    """Return a dataset of one version with rows 3, 4, 5 in a file of another one."""
    lance.write_dataset(rows(0), where, data_storage_version=own, **options)
    lance.write_dataset(rows(3), where, mode="append", data_storage_version=other)
    return open_dataset(where)


def versions(dataset: LanceDataset) -> list[str]:
    return sorted({f"{x.major or 2}.{x.minor % 3}" for x in dataset.manifest.fragments.layouts})


def check(lance: Any, where: str, expected: list[int]) -> None:
    found = open_dataset(where)
    assert found.to_pyarrow_table(["id"]).column("id").to_pylist() == expected
    theirs = lance.dataset(where)
    theirs.validate()
    assert theirs.to_table().to_pylist() == found.to_pyarrow_table().to_pylist()
    assert not found.verify().findings
    assert found.manifest.message["reader_feature_flags"] & 256
    assert found.manifest.message["writer_feature_flags"] & 256


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_compaction_writes_the_version_of_the_dataset(tmp_path: Path, own: str, other: str, stable: bool) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    dataset = mixed(lance, where, own, other, enable_stable_row_ids=stable)
    before = dataset.to_pyarrow_table()
    ids = dataset.scan(["id"], metadata=["_rowid"]).to_table() if stable else None
    assert len(versions(dataset)) == 2
    done = dataset.compact()
    assert (done["num_removed_fragments"], done["num_added_fragments"]) == (2, 1)
    assert versions(dataset) == [own]
    assert dataset.to_pyarrow_table().equals(before)
    assert ids is None or dataset.scan(["id"], metadata=["_rowid"]).to_table().equals(ids)
    check(lance, where, [0, 1, 2, 3, 4, 5])
    assert dataset.compact()["num_removed_fragments"] == 0


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_every_change_writes_the_version_of_the_dataset(tmp_path: Path, own: str, other: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    dataset = mixed(lance, where, own, other)
    dataset.delete("id = 1")
    check(lance, where, [0, 2, 3, 4, 5])
    dataset.update({"text": "'changed'"}, predicate="id in (2, 3)")
    check(lance, where, [0, 4, 5, 2, 3])
    dataset.merge(rows(5, 2), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    check(lance, where, [0, 4, 2, 3, 5, 6])
    write_lance(where, rows(7, 1), "append")
    dataset = open_dataset(where)
    dataset.add_columns({"twice": "id * 2"})
    check(lance, where, [0, 4, 2, 3, 5, 6, 7])
    assert dataset.to_pyarrow_table(["twice"]).column("twice").to_pylist() == [0, 8, 4, 6, 10, 12, 14]
    lance.write_dataset(dataset.to_pyarrow_table().slice(0, 1), where, mode="append", data_storage_version=other)
    lance.dataset(where).optimize.compact_files()
    dataset = open_dataset(where)
    assert versions(dataset) == [own]
    dataset.cleanup(keep_versions=1)
    check(lance, where, [0, 4, 2, 3, 5, 6, 7, 0])


def test_files_of_the_first_version_are_compacted_with_others(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where, early = str(tmp_path / "d"), str(tmp_path / "early")
    dataset = mixed(lance, where, "2.2", "2.1")
    # pylance writes no such mix
    lance.write_dataset(rows(6), early, data_storage_version="legacy")
    [message] = fragment_message(open_dataset(early).manifest, 0)["files"]
    (tmp_path / "d" / "data" / message["path"]).write_bytes(
        (tmp_path / "early" / "data" / message["path"]).read_bytes()
    )
    commit_operation(dataset.storage, Append([NewFragment(3, [message])]), dataset.manifest)
    dataset = open_dataset(where)
    assert len({(x.major, x.minor) for x in dataset.manifest.fragments.layouts}) == 3
    before = dataset.to_pyarrow_table()
    assert before.column("id").to_pylist() == [*range(9)]
    assert dataset.compact()["num_removed_fragments"] == 3
    assert versions(dataset) == ["2.2"]
    assert dataset.to_pyarrow_table().equals(before)
    check(lance, where, [*range(9)])


def test_datasets_of_the_first_version_stay_rejected(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    lance.write_dataset(rows(0), where, data_storage_version="legacy")
    with pytest.raises(UnsupportedFeatureError, match=r"write_lance\(new, open_table\(old\)\)"):
        open_dataset(where).compact()


def test_restored_versions_keep_the_flag(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    dataset = mixed(lance, where, "2.2", "2.1")
    dataset.compact()
    dataset.restore(2)
    assert versions(dataset) == ["2.1", "2.2"]
    check(lance, where, [0, 1, 2, 3, 4, 5])
    dataset.restore(1)
    check(lance, where, [0, 1, 2])
