"""Cleanup: which versions and files go, what tags, branches and blobs keep, damage, interruptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CommitError, CorruptTableError, DeltaError, InvalidArgumentError, UnsupportedFeatureError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.cleaning import _Cleanup
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import check_with_pylance, made, rows

NOW = timedelta(0)
DAY = 24 * 3600


def peer(where: str) -> Any:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    return lance.dataset(where)


def changed(root: Path) -> str:
    """Return a dataset with versions 1 to 7, in which files of every kind are not needed any more."""
    dataset = made(root, stable=True)
    dataset.delete("id in (1, 40)")
    dataset.update({"text": "'new'"}, predicate="id < 5")
    dataset.delete("id in (2, 41)")
    write_lance(dataset.uri, rows(200, 5), "append")
    open_dataset(dataset.uri).compact()
    assert open_dataset(dataset.uri).version == 7
    return dataset.uri


def files_of(where: str) -> dict[str, bytes]:
    root = Path(where)
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def content(where: str, **version: Any) -> str:
    return repr(open_dataset(where, **version).to_pyarrow_table(metadata=["_rowid"]).to_pylist())


def make_old(where: str, days: int = 8) -> None:
    then = time.time() - days * DAY
    for path in Path(where).rglob("*"):
        os.utime(path, (then, then))


# --- versions ------------------------------------------------------------------------------


def test_only_the_latest_version_and_its_files_are_left(tmp_path: Path) -> None:
    where = changed(tmp_path)
    before = content(where)
    done = open_dataset(where).cleanup(older_than=NOW)
    assert done["removed_versions"] == [1, 2, 3, 4, 5, 6]
    assert content(where) == before
    dataset = open_dataset(where)
    assert dataset.versions() == [7]
    [files] = dataset.fragments().column("files").to_pylist()
    transaction = dataset.manifest.message["transaction_file"]
    expected = {f"data/{files[0]['path']}", dataset.manifest.path, f"_transactions/{transaction}"}
    assert set(files_of(where)) == expected
    check_with_pylance(where)


def test_dry_run_lists_what_is_deleted_and_deletes_nothing(tmp_path: Path) -> None:
    where = changed(tmp_path)
    before = files_of(where)
    found = open_dataset(where).cleanup(keep_versions=2, dry_run=True)
    assert files_of(where) == before
    done = open_dataset(where).cleanup(keep_versions=2)
    after = files_of(where)
    assert sorted(before.keys() - after.keys()) == found.pop("paths")
    assert done == found
    assert done["num_bytes"] == sum(len(before[p]) for p in before.keys() - after.keys())
    assert open_dataset(where).versions() == [6, 7]


def test_young_versions_stay_unless_a_number_or_an_age_is_passed(tmp_path: Path) -> None:
    where = changed(tmp_path)
    before = files_of(where)
    assert open_dataset(where).cleanup() == {"removed_versions": [], "num_files": 0, "num_bytes": 0}
    open_dataset(where).cleanup(older_than=timedelta(days=1), keep_versions=1)
    assert files_of(where) == before


def test_each_version_that_stays_is_read_as_before(tmp_path: Path) -> None:
    where = changed(tmp_path)
    before = {v: content(where, version=v) for v in range(4, 8)}
    open_dataset(where).cleanup(keep_versions=4)
    assert {v: content(where, version=v) for v in open_dataset(where).versions()} == before
    check_with_pylance(where, every_version=True)


def test_object_of_an_earlier_version_cleans_from_the_latest_one_on(tmp_path: Path) -> None:
    where = changed(tmp_path)
    open_dataset(where, version=2).cleanup(older_than=NOW)
    assert open_dataset(where).versions() == [7]


@pytest.mark.parametrize(
    "wrong",
    [{"keep_versions": 0}, {"keep_versions": True}, {"older_than": 5}, {"unreferenced_older_than": timedelta(-1)}],
)
def test_ages_and_numbers_that_are_none_are_rejected(tmp_path: Path, wrong: dict[str, Any]) -> None:
    dataset = made(tmp_path)
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        dataset.cleanup(**wrong)


# --- tags, branches, detached versions -------------------------------------------------------


def test_tagged_version_stays_and_data_of_later_removed_ones_goes(tmp_path: Path) -> None:
    where = changed(tmp_path)
    before = content(where, version=3)
    open_dataset(where).tags.create("kept", 3)
    done = open_dataset(where).cleanup(older_than=NOW)
    assert done["removed_versions"] == [1, 2, 4, 5, 6]
    assert open_dataset(where).versions() == [3, 7]
    assert content(where, tag="kept") == before
    # the rows that version 5 added are in no file of the versions that stay
    named = {
        f["path"]
        for v in (3, 7)
        for files in open_dataset(where, version=v).fragments().column("files").to_pylist()
        for f in files
    }
    assert {p.name for p in (Path(where) / "data").iterdir()} == named
    check_with_pylance(where, every_version=True)


def test_branches_keep_what_they_need_and_are_cleaned_by_themselves(tmp_path: Path) -> None:
    where = changed(tmp_path)
    theirs = peer(where)
    branch = theirs.create_branch("dev", ("main", 3))
    branch.insert(rows(900, 3))
    branch.delete("id = 900")
    branch.create_branch("deep/er", ("dev", 4)).insert(rows(950, 2))
    names = {"dev": open_dataset(where, branch="dev").versions(), "deep/er": [4, 5]}
    names["deep/er"] = open_dataset(where, branch="deep/er").versions()
    before = {(b, v): content(where, branch=b, version=v) for b, vs in names.items() for v in vs}
    open_dataset(where).cleanup(older_than=NOW)
    assert open_dataset(where).versions() == [3, 7]
    assert {k: content(where, branch=k[0], version=k[1]) for k in before} == before

    main = content(where)
    done = open_dataset(where, branch="dev").cleanup(older_than=NOW)
    assert done["removed_versions"]
    left = open_dataset(where, branch="dev").versions()
    for b, v in [("dev", left[-1]), *(("deep/er", v) for v in names["deep/er"])]:
        assert content(where, branch=b, version=v) == before[b, v]
    assert content(where) == main
    assert peer(where).checkout_version(("dev", None)).count_rows() == open_dataset(where, branch="dev").count()


def test_branch_without_its_reference_keeps_its_files(tmp_path: Path) -> None:
    where = changed(tmp_path)
    peer(where).create_branch("dev", ("main", 3)).insert(rows(900, 3))
    version = open_dataset(where, branch="dev").version
    before = content(where, branch="dev")
    (Path(where) / "_refs/branches/dev.json").unlink()
    make_old(where)
    open_dataset(where).cleanup(older_than=NOW)
    assert content(where, branch="dev", version=version) == before


@pytest.mark.parametrize("branch", ["dev", "deep/er"])
def test_branch_that_is_opened_by_its_folder_is_not_cleaned(tmp_path: Path, branch: str) -> None:
    """Tags and branches of it are in the dataset above."""
    where = changed(tmp_path / "tree")
    theirs = peer(where).create_branch("dev", ("main", 3))
    theirs.insert(rows(900, 3))
    theirs.create_branch("deep/er", ("dev", 4)).insert(rows(950, 2))
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    make_old(where)
    before = files_of(where)
    for place in (f"{where}/tree/{branch}", f"{tmp_path}/link/dataset/tree/{branch}"):
        dataset = open_dataset(place, allow_external=[str(tmp_path)])
        with pytest.raises(InvalidArgumentError, match=f"branch={branch!r}"):
            dataset.cleanup(older_than=NOW)
        with pytest.raises(InvalidArgumentError, match=f"branch={branch!r}"):
            dataset.tags.create("kept")
    assert files_of(where) == before


def test_clone_in_a_folder_of_the_name_of_branches_is_cleaned(tmp_path: Path) -> None:
    where = changed(tmp_path / "tree")
    clone = str(tmp_path / "tree/clone")
    peer(where).shallow_clone(clone, 3)
    open_dataset(clone, allow_external=[where]).cleanup(older_than=NOW)
    assert content(clone, allow_external=[where]) == content(where, version=3)


def test_detached_version_keeps_its_files(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = changed(tmp_path)
    theirs = lance.dataset(where, version=1)
    fragments = [f.metadata for f in theirs.get_fragments()]
    detached = lance.LanceDataset.commit(
        theirs, lance.LanceOperation.Overwrite(theirs.schema, fragments), read_version=1, detached=True
    )
    expected = detached.to_table().num_rows
    make_old(where)
    open_dataset(where).cleanup(older_than=NOW)
    assert open_dataset(where).versions() == [7]
    assert lance.dataset(where, version=detached.version).to_table().num_rows == expected


# --- files that no version has ---------------------------------------------------------------

#: Files that writers leave that were stopped, in several ways.
STAGED = (
    "data/abandoned.lance",
    "data/abandoned/00000000000000000000000000000001.blob",
    "data/.abandoned.lance.0123456789abcdef0123456789abcdef.tmp",
    "data/abandoned.lance#1",
    "_deletions/3-1-12345.arrow",
    "_deletions/3-1-12346.bin",
    "_transactions/1-6b1cf0c4-7c53-4d0e-8f6b-3f6f3f3f3f3f.txn",
    "_indices/6b1cf0c4-7c53-4d0e-8f6b-3f6f3f3f3f3f/page_data.lance",
    "_versions/.tmp_6b1cf0c4",
    "_versions/.8.manifest.0123456789abcdef0123456789abcdef.tmp",
)
#: Files that are not those of the format, or that it has beside versions.
OTHERS = (
    "data/notes.txt",
    "data/sub/notes.txt",
    "README.md",
    "other/abandoned.lance",
    "_versions/latest_version_hint.json",
    "_versions/18446744073709551600.manifest.bak",
    "_refs/readme.txt",
    "_deletions/readme",
    "_latest.manifest",
)


@pytest.mark.parametrize("branch", [None, "dev"])
def test_files_of_abandoned_writers_go_when_they_are_old(tmp_path: Path, branch: str | None) -> None:
    where = made(tmp_path).uri
    if branch is not None:
        peer(where).create_branch(branch, ("main", 1)).insert(rows(900, 3))
    place = Path(where) / (f"tree/{branch}" if branch else "")
    before = content(where, branch=branch)
    for name in (*STAGED, *OTHERS):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"{}")
    dataset = open_dataset(where, branch=branch)
    assert dataset.cleanup(older_than=NOW, keep_versions=9)["num_files"] == 0  # they are young
    make_old(where, 6)
    assert dataset.cleanup(keep_versions=9)["num_files"] == 0
    make_old(where, 8)
    done = dataset.cleanup(keep_versions=9, dry_run=True)
    prefix = f"tree/{branch}/" if branch else ""
    assert done["paths"] == sorted(f"{prefix}{n}" for n in STAGED)
    dataset.cleanup(keep_versions=9)
    assert not any((place / n).exists() for n in STAGED)
    assert all((place / n).exists() for n in OTHERS)
    assert not (place / "data/abandoned").exists()
    assert content(where, branch=branch) == before


def test_young_files_go_if_their_age_is_passed(tmp_path: Path) -> None:
    where = made(tmp_path).uri
    (Path(where) / "data/abandoned.lance").write_bytes(b"x")
    assert open_dataset(where).cleanup(unreferenced_older_than=NOW)["num_files"] == 1


def test_files_of_blobs_stay_and_go_with_their_versions(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where, outside = str(tmp_path / "d"), tmp_path / "d" / "data" / "outside.lance"
    large = [bytes([i]) * (5 << 20) for i in range(2)]
    small = [bytes([i]) * 100_000 for i in range(2)]
    for first in (large, small):
        table = pa.table({"photo": lance.blob_array(first)})
        lance.write_dataset(table, where, mode="append", data_storage_version="2.2", initial_bases=None)
    outside.write_bytes(b"external")
    uri = outside.as_uri()
    lance.write_dataset(
        pa.table({"photo": lance.blob_array([uri])}),
        where,
        mode="append",
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    dataset = open_dataset(where)
    make_old(where)
    expected = dataset.to_pyarrow_table(["photo"], blobs="bytes").to_pylist()
    dataset.cleanup(older_than=NOW)
    assert open_dataset(where).to_pyarrow_table(["photo"], blobs="bytes").to_pylist() == expected
    assert outside.exists()
    lance.write_dataset(pa.table({"photo": lance.blob_array([b"x"])}), where, mode="overwrite")
    open_dataset(where).cleanup(older_than=NOW)
    assert not list(Path(where).rglob("*.blob"))


# --- damage: it is not known what is needed --------------------------------------------------


def _manifest_of(where: str, version: int) -> Path:
    return Path(where) / open_dataset(where, version=version).manifest.path


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _tagged(where: str, text: str) -> None:
    open_dataset(where).tags.create("t", 3)
    (Path(where) / "_refs/tags/t.json").write_text(text)


def _branch(where: str, change: Callable[[Path], Any]) -> None:
    peer(where).create_branch("dev", ("main", 3)).insert(rows(900, 3))
    change(Path(where))


def _flagged(where: str) -> None:
    """Set a flag of writers that has no meaning in an older version."""
    from delta_plugins.lance.commit.draft import Draft

    older = open_dataset(where, version=3).manifest
    draft = Draft(open_dataset(where, version=2).manifest)
    flagged = older.message["writer_feature_flags"] | 1 << 40
    draft._flags = lambda _: (older.message["reader_feature_flags"], flagged)  # type: ignore[method-assign]
    (Path(where) / older.path).write_bytes(draft.encode(b"", ""))


DAMAGE: dict[str, Callable[[str], Any]] = {
    "manifest of an old version": lambda w: _cut(_manifest_of(w, 2)),
    "manifest of the latest version": lambda w: _cut(_manifest_of(w, 7)),
    "empty manifest": lambda w: _manifest_of(w, 4).write_bytes(b""),
    "manifest of another version": lambda w: _manifest_of(w, 4).write_bytes(_manifest_of(w, 5).read_bytes()),
    "manifests of both schemes": lambda w: (Path(w) / "_versions/9.manifest").write_bytes(b"x"),
    "unknown flag": _flagged,
    "tag that is no JSON": lambda w: _tagged(w, '{"version": 3'),
    "tag that is empty": lambda w: _tagged(w, ""),
    "tag that is a list": lambda w: _tagged(w, "[3]"),
    "tag without version": lambda w: _tagged(w, "{}"),
    "tag of another type": lambda w: _tagged(w, '{"version": "3"}'),
    "tag of a version that is not there": lambda w: _tagged(w, '{"version": 33}'),
    "tag of a branch that is not there": lambda w: _tagged(w, '{"version": 3, "branch": "gone"}'),
    "branch that is no JSON": lambda w: _branch(w, lambda r: (r / "_refs/branches/dev.json").write_text("{")),
    "branch without origin": lambda w: _branch(w, lambda r: (r / "_refs/branches/dev.json").write_text("{}")),
    "manifest of a branch": lambda w: _branch(w, lambda r: _cut(next((r / "tree/dev/_versions").glob("*.manifest")))),
    "branch without versions": lambda w: _branch(
        w, lambda r: [p.unlink() for p in (r / "tree/dev/_versions").glob("*.manifest")]
    ),
    "branch behind a link": lambda w: _branch(
        w, lambda r: ((r / "tree/dev").rename(r.parent / "dev"), (r / "tree/dev").symlink_to(r.parent / "dev"))
    ),
    "damaged detached version": lambda w: (Path(w) / "_versions/d9223372036854775809.manifest").write_bytes(b"x"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_nothing_is_deleted_if_it_is_not_known_what_is_needed(tmp_path: Path, damage: str) -> None:
    where = changed(tmp_path)
    dataset = open_dataset(where)
    DAMAGE[damage](where)
    make_old(where)
    before = files_of(where)
    with pytest.raises((CorruptTableError, UnsupportedFeatureError)):
        dataset.cleanup(older_than=NOW, unreferenced_older_than=NOW)
    assert files_of(where) == before


# --- interruptions and other writers ---------------------------------------------------------


class Stop(BaseException):
    """The end of a process that is killed."""


@pytest.mark.parametrize("error", [Stop, OSError])
def test_interrupted_cleanup_keeps_what_stays_and_another_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    whole = changed(tmp_path / "whole")
    open_dataset(whole).cleanup(keep_versions=2)
    expected = len(files_of(whole))
    for number in range(1, 50):
        where = changed(tmp_path / str(number))
        before = {v: content(where, version=v) for v in (6, 7)}
        with monkeypatch.context() as patch:
            count = _failing(patch, open_dataset(where), number, error)
            with suppress(Stop, OSError, DeltaError):
                open_dataset(where).cleanup(keep_versions=2)
        assert {v: content(where, version=v) for v in (6, 7)} == before
        open_dataset(where).cleanup(keep_versions=2)
        assert len(files_of(where)) == expected
        assert open_dataset(where).versions() == [6, 7]
        if count[0] < number:
            return
    pytest.fail("the cleanup deletes too often")


def _failing(patch: pytest.MonkeyPatch, dataset: LanceDataset, number: int, error: type[BaseException]) -> list[int]:
    """Let the deletion of one file fail: of each call the files are deleted one by one."""
    storage: Any = type(dataset.storage)
    real, count = storage.delete_files, [0]

    def delete(self: Any, paths: pa.Array) -> int:
        for i in range(len(paths)):
            count[0] += 1
            if count[0] == number:
                raise error("stopped")
            real(self, paths.slice(i, 1))
        return len(paths)

    patch.setattr(storage, "delete_files", delete)
    return count


RACES: dict[str, Callable[[str], Any]] = {
    "restore": lambda w: open_dataset(w).restore(3),
    "tag": lambda w: open_dataset(w).tags.create("late", 3),
    "branch": lambda w: peer(w).create_branch("late", ("main", 3)),
    "append": lambda w: write_lance(w, rows(700, 2), "append"),
}


@pytest.mark.parametrize("race", RACES)
def test_version_tag_or_branch_that_is_added_meanwhile_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, race: str
) -> None:
    where = changed(tmp_path)
    expected = content(where, version=3)
    planned, calls = _Cleanup._planned, []

    def racing(self: Any) -> Any:
        found = planned(self)
        calls.append(1)
        if len(calls) == 1:
            RACES[race](where)
        return found

    monkeypatch.setattr(_Cleanup, "_planned", racing)
    open_dataset(where).cleanup(older_than=NOW)
    assert len(calls) == 2
    if race == "append":
        assert open_dataset(where).versions() == [8]
    else:
        kept = {"restore": {}, "tag": {"tag": "late"}, "branch": {"branch": "late"}}[race]
        assert content(where, **kept) == expected


def test_versions_that_are_added_each_time_end_the_cleanup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = changed(tmp_path)
    planned = _Cleanup._planned

    def racing(self: Any) -> Any:
        found = planned(self)
        write_lance(where, rows(700, 1), "append")
        return found

    monkeypatch.setattr(_Cleanup, "_planned", racing)
    with pytest.raises(CommitError, match="Nothing was deleted"):
        open_dataset(where).cleanup(older_than=NOW)
    assert open_dataset(where).versions()[:7] == [1, 2, 3, 4, 5, 6, 7]
