"""Commits through a manifest store: writers that die or fail at each step, races, readers, and damaged entries."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import open_table, write_deltalake
from delta_core.errors import (
    CommitError,
    CommitStateUnknownError,
    CorruptTableError,
    EngineError,
    InvalidArgumentError,
    PluginConflictError,
    TableExistsError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.kernel.commit import publishing
from delta_core.storage import stores
from delta_core.storage.stores import open_offered, open_storage
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.manifest_stores.dynamodb import open_dynamo_place
from delta_plugins.lance.names import manifest_names
from tests.lance.kept_manifests import STEPS, KeptManifests, KilledError, Point, Steps, offer

URI = "kept://data/people"
BASE = "data/people"
NEVER = timedelta(0)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(where: str = URI, **options: Any) -> list[int]:
    found: list[int] = open_table(where, **options).to_pyarrow_table().column("id").to_pylist()
    return found


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setattr(publishing, "PAUSE", 0.0)
    return Steps()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps) -> KeptManifests:
    return offer(monkeypatch, tmp_path, steps)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / BASE


def staged(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "_versions").iterdir() if not p.name.endswith(".manifest"))


def check_settled(kept: KeptManifests, folder: Path, versions: list[int]) -> None:
    """Check that each version has an entry with its own name, and that a reader without the store sees the same."""
    assert kept.versions(BASE) == versions
    for version in versions:
        assert kept.entries[BASE, version].path == f"{BASE}/_versions/{manifest_names(version)[0]}"
    assert open_dataset(URI).versions() == versions
    assert ids_of(str(folder)) == ids_of()


def half_done(kept: KeptManifests, steps: Steps, step: str = "claim", done: bool = True) -> None:
    """Write version 1, and a version 2 whose writer is killed."""
    write_lance(URI, rows(1))
    steps.kill(step, done)
    with pytest.raises(KilledError):
        write_lance(URI, rows(2), "append")
    steps.revive()


def test_commit_takes_the_four_steps_in_their_order(kept: KeptManifests, steps: Steps, folder: Path) -> None:
    write_lance(URI, rows(1))
    steps.seen.clear()
    write_lance(URI, rows(2), "append")
    assert [s for s in steps.seen if s in STEPS] == list(STEPS)
    check_settled(kept, folder, [1, 2])
    assert staged(folder) == []
    entry = kept.entries[BASE, 2]
    assert entry.size == (folder / "_versions" / manifest_names(2)[0]).stat().st_size


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_writer_killed_at_each_step_leaves_all_or_nothing(
    kept: KeptManifests, steps: Steps, folder: Path, step: str, done: bool
) -> None:
    half_done(kept, steps, step, done)
    is_claimed = step not in ("stage", "claim") or (step == "claim" and done)
    assert ids_of() == ([1, 2] if is_claimed else [1])
    check_settled(kept, folder, [1, 2] if is_claimed else [1])
    write_lance(URI, rows(3), "append")
    check_settled(kept, folder, [1, 2, 3] if is_claimed else [1, 2])
    open_dataset(URI).cleanup(unreferenced_older_than=NEVER)
    assert staged(folder) == []
    assert ids_of() == ([1, 2, 3] if is_claimed else [1, 3])
    assert not open_dataset(URI).verify().findings


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("step", [*STEPS, "latest"])
def test_failure_at_each_step_commits_once(
    kept: KeptManifests, steps: Steps, folder: Path, step: str, done: bool
) -> None:
    write_lance(URI, rows(1))
    dataset = open_dataset(URI)
    steps.fail(step, done)
    if step == "latest":
        with pytest.raises(EngineError, match="no answer"):
            dataset.delete("id = 1")
        assert ids_of() == [1]
        return
    dataset.delete("id = 1")
    assert dataset.version == 2
    assert ids_of() == []
    check_settled(kept, folder, [1, 2])


@pytest.mark.parametrize("step", ["copy", "settle", "drop"])
def test_commit_that_can_not_be_finished_is_committed(
    kept: KeptManifests, steps: Steps, folder: Path, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_lance(URI, rows(1))
    steps.fail(step, False, 100, PermissionError)
    assert write_lance(URI, rows(2), "append").version == 2
    if step != "drop":
        assert "is committed; its next reader copies the manifest" in caplog.text
        with pytest.raises(EngineError, match=f"no answer at {step}"):
            open_table(URI)
    steps.revive()
    assert ids_of() == [1, 2]
    check_settled(kept, folder, [1, 2])


def test_outcome_that_stays_unknown_deletes_nothing(kept: KeptManifests, steps: Steps, folder: Path) -> None:
    write_lance(URI, rows(1))
    before = {p for p in folder.rglob("*") if p.is_file()}
    steps.fail("claim", False, 100)
    with pytest.raises(CommitStateUnknownError):
        write_lance(URI, rows(2), "append")
    after = {p for p in folder.rglob("*") if p.is_file()}
    # a claim may be put late: the data file, the transaction and the staged manifests stay
    assert before < after
    names = [p for p in after - before if "_versions" in p.parts]
    assert len(names) == publishing.PUTS
    steps.revive()
    late = names[0]
    kept.entries[BASE, 2] = type(kept.entries[BASE, 1])(2, f"{BASE}/_versions/{late.name}", late.stat().st_size)
    assert ids_of() == [1, 2]


def test_rejected_claim_leaves_no_file(kept: KeptManifests, steps: Steps, folder: Path) -> None:
    write_lance(URI, rows(1))
    data = sorted((folder / "data").iterdir())
    steps.fail("claim", False, 1, PermissionError)
    with pytest.raises(CommitError, match="Nothing was committed"):
        write_lance(URI, rows(2), "append")
    assert sorted((folder / "data").iterdir()) == data
    check_settled(kept, folder, [1])


def test_racing_writers_commit_each_version_once(kept: KeptManifests, folder: Path) -> None:
    write_lance(URI, rows(0))
    barrier = threading.Barrier(8)
    failures: list[Exception] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            for step in range(3):
                write_lance(URI, rows(number * 10 + step + 1), "append")
        except Exception as e:  # noqa: BLE001
            failures.append(e)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(ids_of()) == sorted([0, *(n * 10 + s + 1 for n in range(8) for s in range(3))])
    check_settled(kept, folder, [*range(1, 26)])
    assert staged(folder) == []


def _create_again() -> None:
    with pytest.raises(TableExistsError):
        write_lance(URI, rows(3))


READERS: dict[str, Callable[[], Any]] = {
    "latest": ids_of,
    "version": lambda: ids_of(version=2),
    "timestamp": lambda: ids_of(timestamp="2100-01-01T00:00:00Z"),
    "listing": lambda: open_dataset(URI, version=1).versions(),
    "other version": lambda: open_dataset(URI, version=1).checkout(2),
    "history": lambda: open_dataset(URI, version=1).checkout().history(),
    "tag": lambda: open_dataset(URI, version=1).tags.create("new", 2),
    "create": _create_again,
    "cleanup": lambda: open_dataset(URI, version=1).cleanup(unreferenced_older_than=NEVER),
}


@pytest.mark.parametrize("reader", READERS)
def test_reader_completes_a_half_finished_commit(kept: KeptManifests, steps: Steps, folder: Path, reader: str) -> None:
    half_done(kept, steps)
    assert not (folder / "_versions" / manifest_names(2)[0]).exists()
    READERS[reader]()
    assert kept.entries[BASE, 2].path == f"{BASE}/_versions/{manifest_names(2)[0]}"
    assert staged(folder) == []
    check_settled(kept, folder, [1, 2])
    assert ids_of() == [1, 2]


def test_readers_at_once_complete_a_half_finished_commit(kept: KeptManifests, steps: Steps, folder: Path) -> None:
    half_done(kept, steps)
    found: list[Any] = []
    barrier = threading.Barrier(8)

    def run() -> None:
        barrier.wait()
        try:
            found.append(ids_of())
        except Exception as e:  # noqa: BLE001
            found.append(e)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1, 2]] * 8
    check_settled(kept, folder, [1, 2])


def test_change_that_began_before_a_half_finished_commit_follows_it(
    kept: KeptManifests, steps: Steps, folder: Path
) -> None:
    write_lance(URI, rows(1, 2))
    before = open_dataset(URI)
    steps.kill("claim", True)
    with pytest.raises(KilledError):
        write_lance(URI, rows(3), "append")
    steps.revive()
    before.delete("id = 1")
    assert before.version == 3
    assert ids_of() == [2, 3]
    check_settled(kept, folder, [1, 2, 3])


def test_branch_with_a_half_finished_first_version_keeps_its_files_in_a_cleanup(
    kept: KeptManifests, steps: Steps, folder: Path
) -> None:
    """The branch needs the data of a version of the main one that is removed."""
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    write_lance(URI, rows(1))
    lance.dataset(str(folder)).create_branch("dev")
    write_lance(URI, rows(2), "overwrite")
    [manifest] = (folder / "tree/dev/_versions").glob("*.manifest")
    waiting = manifest.rename(manifest.with_name(f"{manifest.name}-0a1b"))
    version = 1
    entry = type(kept.entries[BASE, 1])
    key = f"{BASE}/tree/dev"
    kept.entries[key, version] = entry(version, f"{key}/_versions/{waiting.name}", waiting.stat().st_size)
    open_dataset(URI).cleanup(keep_versions=1, unreferenced_older_than=NEVER)
    assert ids_of(branch="dev") == [1]
    assert ids_of() == [2]
    assert kept.entries[key, version].path == f"{key}/_versions/{manifest.name}"


def test_cleanup_without_the_store_keeps_a_version_that_is_claimed(
    kept: KeptManifests, steps: Steps, folder: Path
) -> None:
    half_done(kept, steps)
    [claimed] = staged(folder)
    (folder / "_versions" / f"{manifest_names(1)[0]}-0a1b").write_bytes(b"of a writer that lost")
    open_dataset(str(folder)).cleanup(unreferenced_older_than=NEVER)
    assert staged(folder) == [claimed]
    assert ids_of() == [1, 2]


DAMAGE: dict[str, Callable[[KeptManifests, Path], Any]] = {
    "path of another folder": lambda k, f: k.change(BASE, 2, path=k.entries[BASE, 2].path.replace("people", "other")),
    "path of the folder above": lambda k, f: k.change(BASE, 2, path=f"{BASE}/_versions/../../../secret.manifest-1"),
    "name of another version": lambda k, f: k.change(BASE, 2, path=f"{BASE}/_versions/{manifest_names(3)[0]}-1"),
    "id with a slash": lambda k, f: k.change(BASE, 2, path=f"{BASE}/_versions/{manifest_names(2)[0]}-a/b"),
    "empty path": lambda k, f: k.change(BASE, 2, path=""),
    "other size": lambda k, f: k.change(BASE, 2, size=1),
    "staged manifest lost": lambda k, f: next(iter((f / "_versions").glob("*.manifest-*"))).unlink(),
    "final manifest lost": lambda k, f: k.change(BASE, 2, path=f"{BASE}/_versions/{manifest_names(2)[0]}"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entry_is_rejected_by_name(kept: KeptManifests, steps: Steps, folder: Path, damage: str) -> None:
    half_done(kept, steps)
    DAMAGE[damage](kept, folder)
    files = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    entries = dict(kept.entries)
    for run in (lambda: open_table(URI), lambda: write_lance(URI, rows(3), "append")):
        with pytest.raises(CorruptTableError) as caught:
            run()
        assert BASE in str(caught.value)
        assert "2" in str(caught.value)
    assert kept.entries == entries
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == files
    assert open_dataset(URI, version=1).count() == 1


def test_entries_of_a_dataset_that_was_deleted_are_named(kept: KeptManifests, folder: Path, tmp_path: Path) -> None:
    write_lance(URI, rows(1))
    folder.rename(tmp_path / "elsewhere")
    for run in (lambda: open_table(URI), lambda: write_lance(URI, rows(2))):
        with pytest.raises(TableNotFoundError, match="has entries of one that was there, up to version 1"):
            run()
    kept.entries.clear()
    write_lance(URI, rows(2))
    assert ids_of() == [2]


def test_dataset_without_entries_is_read_and_goes_on_with_them(kept: KeptManifests, folder: Path) -> None:
    write_lance(str(folder), rows(1))
    write_lance(str(folder), rows(2), "append")
    assert ids_of() == [1, 2]
    write_lance(URI, rows(3), "append")
    assert kept.versions(BASE) == [3]
    assert ids_of() == ids_of(str(folder)) == [1, 2, 3]
    assert open_dataset(URI, version=1).count() == 1


def test_manifest_of_a_writer_without_the_store_is_not_overwritten(
    kept: KeptManifests, steps: Steps, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lance(URI, rows(1))
    claim = kept.claim

    def late(base: str, entry: Any) -> bool:
        monkeypatch.setattr(kept, "claim", claim)
        write_lance(str(folder), rows(5), "append")
        return claim(base, entry)

    monkeypatch.setattr(kept, "claim", late)
    assert write_lance(URI, rows(2), "append").version == 3
    assert ids_of() == [1, 5, 2]
    check_settled(kept, folder, [1, 2, 3])


def test_storage_that_overwrites_commits_through_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps, folder: Path
) -> None:
    kept = offer(monkeypatch, tmp_path, steps, exclusive=False)
    write_lance(URI, rows(1))
    write_lance(URI, rows(2), "append")
    check_settled(kept, folder, [1, 2])
    with pytest.raises(CommitError, match="the store overwrites"):
        open_dataset(URI).tags.create("new")


def test_versions_that_a_cleanup_removed_stay_removed(kept: KeptManifests, folder: Path) -> None:
    for i in range(4):
        write_lance(URI, rows(i), "append" if i else "create")
    open_dataset(URI).cleanup(keep_versions=1)
    assert open_dataset(URI).versions() == [4]
    with pytest.raises(VersionNotFoundError):
        open_dataset(URI, version=2)
    write_lance(URI, rows(9), "append")
    assert ids_of() == [0, 1, 2, 3, 9]
    assert kept.versions(BASE) == [1, 2, 3, 4, 5]


def test_every_change_is_committed_through_the_store(kept: KeptManifests, folder: Path) -> None:
    dataset = write_lance(URI, rows(1, 2, 3))
    dataset.update({"id": "id + 10"}, predicate="id = 3")
    dataset.add_columns({"twice": "id * 2"})
    dataset.merge(rows(2, 7), "target.id = source.id").when_not_matched_insert_all().execute()
    dataset.create_index("id", "btree")
    dataset.compact()
    dataset.restore(1)
    check_settled(kept, folder, [*range(1, dataset.version + 1)])
    assert sorted(ids_of()) == [1, 2, 3]


def test_delta_table_is_rejected_by_name(kept: KeptManifests, folder: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="commits versions of Lance datasets only"):
        write_deltalake(URI, rows(1))
    assert not (folder / "_delta_log").exists() or not list((folder / "_delta_log").iterdir())


@pytest.mark.parametrize(
    ("uri", "match"),
    [
        ("s3+ddb://bucket/path", "as its only parameter"),
        ("s3+ddb://bucket/path?ddbTableName=", "as its only parameter"),
        ("s3+ddb://bucket/path?table=t", "as its only parameter"),
        ("s3+ddb://bucket/path?ddbTableName=t&region=x", "as its only parameter"),
        ("s3+ddb://bucket/path?ddbTableName=t&ddbTableName=u", "as its only parameter"),
        ("s3+ddb://bucket/50%25?ddbTableName=t", "Found '%' in the URI"),
        ("s3+ddb://bucket/a~b?ddbTableName=t", "Found '~' in the URI"),
        ("s3+ddb://?ddbTableName=t", "expected a bucket"),
    ],
)
def test_uri_that_names_no_table_is_rejected(uri: str, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        open_dynamo_place(uri, {}, None)


def test_scheme_that_two_packages_offer_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    points = [Point("kept", lambda *_: "opened"), Point("KEPT", lambda *_: None)]
    twice = (points[0], points[0])
    monkeypatch.setattr(stores, "entry_points", lambda group: twice)
    opened: object = open_offered("kept://a/b")
    assert opened == "opened", "one package that is found twice"
    monkeypatch.setattr(stores, "entry_points", lambda group: tuple(points))
    with pytest.raises(PluginConflictError, match="both offer a storage for kept://"):
        open_offered("kept://a/b")
    assert type(open_offered(str(tmp_path))) is type(open_storage(str(tmp_path)))


def test_storage_is_opened_again_in_another_process_by_its_uri(kept: KeptManifests, steps: Steps) -> None:
    """The pickle has the URI, and no object of the storage."""
    import pickle

    write_lance(URI, rows(1))
    found = pickle.loads(pickle.dumps(open_dataset(URI)))
    write_lance(URI, rows(2), "append")
    assert found.checkout().to_pyarrow_table().num_rows == 2
