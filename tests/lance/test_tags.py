"""Tags that are created, moved and deleted."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import InvalidArgumentError, TableNotFoundError, VersionNotFoundError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.dataset import LanceDataset


def of_three_versions(root: Path) -> LanceDataset:
    where = str(root / "dataset")
    write_lance(where, pa.table({"id": [1]}))
    for i in (2, 3):
        found = write_lance(where, pa.table({"id": [i]}), "append")
    return found


def test_tag_is_created_moved_and_deleted(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    made = dataset.tags.create("first", 1, metadata={"by": "me"})
    assert (made.version, made.branch, made.metadata) == (1, None, {"by": "me"})
    assert dataset.tags() == dataset.tags.list() == {"first": made}
    assert open_dataset(dataset.uri, tag="first").count() == 1
    moved = dataset.tags.update("first", 2)
    assert (moved.version, moved.metadata, moved.created_at) == (2, {"by": "me"}, made.created_at)
    assert dataset.tags["first"] == moved
    assert dataset.history()[1]["tags"] == ["first"]
    dataset.tags.delete("first")
    assert not dataset.tags
    assert dataset.versions() == [1, 2, 3]


def test_tag_is_of_opened_version_by_default(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    assert dataset.load_as_version(2).tags.create("two").version == 2
    assert dataset.load_as_version(1).tags.update("two").version == 1
    assert dataset.load_as_version(1).tags.create("newest", branch="main").version == 3


def test_tag_that_exists_is_not_replaced_by_create(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    with pytest.raises(InvalidArgumentError, match=r"a tag 't' already, of version 1\..*tags\.update"):
        dataset.tags.create("t", 2)
    assert dataset.tags["t"].version == 1


def test_one_of_several_writers_creates_a_tag(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)

    def attempt(number: int) -> bool:
        try:
            dataset.tags.create(f"t{number // 8}", 1 + number % 3, metadata={"writer": str(number)})
        except InvalidArgumentError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [i for i, w in enumerate(pool.map(attempt, range(40))) if w]
    assert Counter(i // 8 for i in won) == {n: 1 for n in range(5)}
    assert sorted(int(t.metadata["writer"]) for t in dataset.tags().values()) == won


@pytest.mark.parametrize("missing", ["update", "delete"])
def test_missing_tag_is_an_error(tmp_path: Path, missing: str) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(VersionNotFoundError, match="no tag 'gone'"):
        getattr(dataset.tags, missing)("gone")
    assert not dataset.tags


@pytest.mark.parametrize("call", ["create", "update"])
def test_version_or_branch_that_is_not_there_gets_no_tag(tmp_path: Path, call: str) -> None:
    dataset = of_three_versions(tmp_path)
    if call == "update":
        dataset.tags.create("t", 1)
    before = dataset.tags()
    with pytest.raises(VersionNotFoundError):
        getattr(dataset.tags, call)("t", 9)
    with pytest.raises(TableNotFoundError):
        getattr(dataset.tags, call)("t", 1, branch="dev")
    assert dataset.tags() == before


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü", ".x", "x.", "a..b", "x.lock", "..", "a%b", "../x", "a\n", 1])
def test_name_that_not_every_reader_lists_is_rejected(tmp_path: Path, name: Any) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(InvalidArgumentError, match="Found the tag"):
        dataset.tags.create(name, 1)
    assert not dataset.tags


def test_metadata_that_are_no_texts_are_rejected(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(InvalidArgumentError, match="'k' = 1"):
        dataset.tags.create("t", 1, metadata={"k": 1})  # type: ignore[dict-item]
    assert not dataset.tags


def test_file_of_a_tag_has_what_other_readers_expect(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("a.json", 1)
    content = json.loads((tmp_path / "dataset" / "_refs" / "tags" / "a.json.json").read_text())
    assert list(content) == ["branch", "version", "createdAt", "updatedAt", "manifestSize", "metadata"]
    [manifest] = (tmp_path / "dataset" / "_versions").glob("*614.manifest")
    assert content["manifestSize"] == manifest.stat().st_size


def test_pylance_reads_moves_and_deletes_tags(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("A_b-1.2", 1)
    other = lance.dataset(dataset.uri)
    assert other.tags.get_version("A_b-1.2") == 1
    assert lance.dataset(dataset.uri, version="A_b-1.2").count_rows() == 1
    other.tags.update("A_b-1.2", 3)
    assert dataset.tags["A_b-1.2"].version == 3
    dataset.tags.update("A_b-1.2", 2)
    assert {n: t["version"] for n, t in other.tags.list().items()} == {"A_b-1.2": 2}
    other.tags.delete("A_b-1.2")
    assert not dataset.tags


def test_tag_of_a_branch_of_pylance(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    dataset = of_three_versions(tmp_path)
    lance.dataset(dataset.uri).create_branch("dev", 2)
    branch = open_dataset(dataset.uri, branch="dev")
    made = branch.tags.create("d")
    assert (made.branch, made.version) == ("dev", branch.version)
    assert open_dataset(dataset.uri, tag="d").branch == "dev"
    assert lance.dataset(dataset.uri).tags.list()["d"]["branch"] == "dev"
    assert branch.tags.create("m", 1, branch="main").branch is None
