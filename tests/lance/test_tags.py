"""Tags that are created, moved and deleted."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import (
    AccessDeniedError,
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    EngineError,
    InvalidArgumentError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_plugins.lance import open_dataset, tag_files, write_lance
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.tags import Tags


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
    assert dataset.checkout(2).tags.create("two").version == 2
    assert dataset.checkout(1).tags.update("two").version == 1
    assert dataset.checkout(1).tags.create("newest", branch="main").version == 3


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


@pytest.mark.parametrize(
    "name", ["", "a/b", "a b", "ü", ".x", "x.", "a..b", "x.lock", "..", "a%b", "../x", "a\n", "x" * 201, 1]
)
def test_name_that_not_every_reader_lists_is_rejected(tmp_path: Path, name: Any) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(InvalidArgumentError, match="Found the tag"):
        dataset.tags.create(name, 1)
    assert not dataset.tags


@pytest.mark.parametrize("version", ["1", 1.0, True, [1]])
def test_version_of_a_tag_is_a_whole_number(tmp_path: Path, version: Any) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(InvalidArgumentError, match="as the version of a tag"):
        dataset.tags.create("a", version)
    assert dataset.tags() == {}


@pytest.mark.parametrize("found", ["text", [("a", "b")], 5])
def test_metadata_are_texts_by_their_keys(tmp_path: Path, found: Any) -> None:
    dataset = of_three_versions(tmp_path)
    with pytest.raises(InvalidArgumentError, match="the metadata of a tag"):
        dataset.tags.create("a", metadata=found)
    with pytest.raises(InvalidArgumentError, match="as config"):
        write_lance(dataset.uri, pa.table({"id": [4]}), "overwrite", config=found)


@pytest.mark.parametrize("argument", ["config", "properties"])
def test_texts_are_checked_before_rows_are_written(tmp_path: Path, argument: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"'a' = 1 in {argument}"):
        write_lance(str(tmp_path / "d"), pa.table({"id": [4]}), **{argument: {"a": 1}})  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()


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


# --- several writers -----------------------------------------------------------------------


def files_of_tags(dataset: LanceDataset) -> list[str]:
    return sorted(p.name for p in (Path(dataset.uri) / "_refs" / "tags").iterdir())


def paused(monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]) -> None:
    """Run something once, between the read of a tag that is changed and its change."""
    claim, calls = tag_files._claim, []

    def claimed(*arguments: Any) -> Any:
        if not calls:
            calls.append(1)
            then()
        return claim(*arguments)

    monkeypatch.setattr(tag_files, "_claim", claimed)


def test_move_keeps_what_another_writer_changed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1, metadata={"by": "first"})
    paused(monkeypatch, lambda: dataset.tags.update("t", 2, metadata={"by": "second"}))
    moved = dataset.tags.update("t", 3)
    assert (moved.version, moved.metadata) == (3, {"by": "second"})
    assert dataset.tags["t"] == moved
    assert files_of_tags(dataset) == ["t.json"]


def test_move_does_not_bring_back_a_tag_that_was_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    paused(monkeypatch, lambda: dataset.tags.delete("t"))
    with pytest.raises(VersionNotFoundError, match="'t'"):
        dataset.tags.update("t", 3)
    assert files_of_tags(dataset) == []


@pytest.mark.parametrize("call", ["update", "delete"])
def test_tag_that_another_writer_moved_is_not_the_expected_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    paused(monkeypatch, lambda: dataset.tags.update("t", 2))
    with pytest.raises(CommitConflictError, match=r"of version 2, expected 1: another writer moved it"):
        getattr(dataset.tags, call)("t", *([3] if call == "update" else []), expected_version=1)
    assert dataset.tags["t"].version == 2
    getattr(dataset.tags, call)("t", *([3] if call == "update" else []), expected_version=2)
    assert {n: t.version for n, t in dataset.tags().items()} == ({"t": 3} if call == "update" else {})
    assert not [n for n in files_of_tags(dataset) if n != "t.json"]


def test_one_of_several_movers_gets_a_tag_from_each_version(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1, metadata={"count": "0"})

    def move(number: int) -> bool:
        try:
            dataset.tags.update("t", 2, expected_version=1, metadata={"writer": str(number)})
        except CommitConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [i for i, w in enumerate(pool.map(move, range(8))) if w]
    assert [str(w) for w in won] == [dataset.tags["t"].metadata["writer"]]
    assert files_of_tags(dataset) == ["t.json"]


def test_racing_movers_all_succeed_one_after_the_other(tmp_path: Path) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1, metadata={"kept": "yes"})
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda i: dataset.tags.update("t", 1 + i % 3), range(12))]
    last = dataset.tags["t"]
    assert last in found
    assert last.metadata == {"kept": "yes"}
    assert max(t.updated_at or "" for t in found) == last.updated_at


def test_claim_of_a_killed_writer_counts_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    content = (tmp_path / "dataset" / "_refs" / "tags" / "t.json").read_bytes()
    claim = tmp_path / "dataset" / tag_files._claim_path("t", content)
    claim.write_bytes(b"of a writer that was killed")
    monkeypatch.setattr(tag_files, "_PAUSE", 0)
    with pytest.raises(CommitConflictError, match=rf"{claim.name}.*counts for 10 minutes"):
        dataset.tags.update("t", 2)
    assert dataset.tags["t"].version == 1
    os.utime(claim, (0, 0))
    assert dataset.tags.update("t", 2).version == 2
    assert files_of_tags(dataset) == ["t.json"]


class Lost:
    """A storage whose next put of a tag raises an error, after the file was written or before."""

    def __init__(self, storage: Any, *, is_written: bool) -> None:
        self.storage, self.is_written = storage, is_written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def put(self, path: str, data: bytes) -> None:
        if self.is_written:
            self.storage.put(path, data)
        raise EngineError("the answer was lost")


@pytest.mark.parametrize("is_written", [True, False])
def test_unknown_outcome_of_a_move_is_looked_up(tmp_path: Path, is_written: bool) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    lossy = Tags(Lost(dataset.storage, is_written=is_written), lambda: (3, None))  # type: ignore[arg-type]
    if is_written:
        assert lossy.update("t", 2).version == 2
        assert files_of_tags(dataset) == ["t.json"]
        return
    with pytest.raises(CommitStateUnknownError, match="the answer was lost"):
        lossy.update("t", 2)
    assert dataset.tags["t"].version == 1
    # the put may land later: the claim stays
    assert len(files_of_tags(dataset)) == 2


def test_store_without_exclusive_files_moves_and_deletes_tags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)

    def no_claims(*_: Any, **__: Any) -> Any:
        raise CommitError("files are created twice")

    monkeypatch.setattr(tag_files, "publish_file", no_claims)
    assert dataset.tags.update("t", 2).version == 2
    dataset.tags.delete("t")
    assert files_of_tags(dataset) == []


@pytest.mark.parametrize("cause", [AccessDeniedError("not permitted"), EngineError("the store does not answer")])
def test_store_that_fails_changes_no_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: EngineError) -> None:
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)

    def failing(*_: Any, **__: Any) -> Any:
        raise CommitError("the store can't create a file only if there is none") from cause

    monkeypatch.setattr(tag_files, "publish_file", failing)
    with pytest.raises(CommitError, match="can't create a file"):
        dataset.tags.update("t", 2)
    with pytest.raises(CommitError, match="can't create a file"):
        dataset.tags.delete("t")
    assert dataset.tags["t"].version == 1


def test_pylance_lists_tags_beside_claims(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    dataset = of_three_versions(tmp_path)
    dataset.tags.create("t", 1)
    (tmp_path / "dataset" / tag_files._claim_path("t", b"")).write_bytes(b"x")
    assert [*lance.dataset(dataset.uri).tags.list()] == [*dataset.tags] == ["t"]
    dataset.cleanup(keep_versions=1)
    assert dataset.versions() == [1, 3]
