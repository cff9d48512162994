"""Versions that are removed, with their files, while somebody opens or reads them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import open_table
from delta_core.errors import DataFileNotFoundError, TableNotFoundError, VersionNotFoundError
from delta_plugins.lance import open_dataset, version_manifests, write_lance
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import ids_of, made, rows

REMEDY = "cleaned up since it was opened, open its latest version; otherwise restore the file"


def remove_version(where: str) -> None:
    """Rewrite all rows, and remove the versions before."""
    open_dataset(where).update({"small": "small + 1"})
    open_dataset(where).cleanup(keep_versions=1)


def by_pylance(where: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    lance.dataset(where).update({"small": "small + 1"})
    lance.dataset(where).cleanup_old_versions(older_than=timedelta(0))


# --- while it is opened --------------------------------------------------------------------


def after_listing(patch: pytest.MonkeyPatch, name: str, run: Callable[[], Any], times: int = 1) -> None:
    """Let something run each time after versions were listed, the first times."""
    listing, left = getattr(version_manifests, name), [None] * times

    def racing(*arguments: Any) -> Any:
        found = listing(*arguments)
        if left:
            left.pop()
            run()
        return found

    patch.setattr(version_manifests, name, racing)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("remove", [remove_version, by_pylance])
def test_latest_version_is_the_one_after_that_which_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remove: Callable[[str], None], times: int
) -> None:
    where = made(tmp_path).uri
    after_listing(monkeypatch, "list_latest", lambda: remove(where), times)
    found = open_dataset(where).checkout()
    assert found.version == 1 + times
    assert sorted(ids_of(found)) == list(range(100))


def test_latest_version_that_is_always_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(tmp_path)
    monkeypatch.setattr(version_manifests, "_read_named", version_manifests._read_named)

    def remove() -> None:
        for path in Path(dataset.uri).glob("_versions/*.manifest"):
            path.rename(path.with_name(f"{int(path.stem) - 1:020d}.manifest"))

    after_listing(monkeypatch, "list_latest", remove, 99)
    with pytest.raises(VersionNotFoundError, match=r"removed while it was opened: .*Open another version"):
        dataset.checkout()


def test_dataset_that_is_removed_while_it_is_opened_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(tmp_path)

    def remove() -> None:
        for path in Path(dataset.uri).glob("_versions/*"):
            path.unlink()

    after_listing(monkeypatch, "list_latest", remove)
    with pytest.raises(TableNotFoundError, match="no manifest"):
        dataset.checkout()


READS_OF_VERSIONS: dict[str, Callable[[LanceDataset], Any]] = {
    "a timestamp": lambda d: d.checkout("2100-01-01"),
    "history": lambda d: d.history(),
}


@pytest.mark.parametrize("read", READS_OF_VERSIONS)
def test_versions_that_are_removed_while_they_are_read_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    from delta_plugins.lance import dataset as reading

    dataset = made(tmp_path)
    write_lance(dataset.uri, rows(100, 1), "append")
    listing = reading.list_versions

    def racing(*arguments: Any) -> Any:
        found = listing(*arguments)
        open_dataset(dataset.uri).cleanup(keep_versions=1)
        return found

    opened = open_dataset(dataset.uri)
    with monkeypatch.context() as patch:
        patch.setattr(reading, "list_versions", racing)
        with pytest.raises(VersionNotFoundError, match=r"from 2 to 1 was removed while it was read: .*Try again"):
            READS_OF_VERSIONS[read](opened)
    assert READS_OF_VERSIONS[read](opened)


def test_number_of_a_version_that_was_removed_is_an_error_that_lists_the_others(tmp_path: Path) -> None:
    where = made(tmp_path).uri
    remove_version(where)
    with pytest.raises(VersionNotFoundError, match=r"Version 1 is not there; there are 2\. It was removed"):
        open_table(where, version=1)


# --- while it is read ----------------------------------------------------------------------

READS: dict[str, Callable[[LanceDataset], Any]] = {
    "table": lambda d: d.to_pyarrow_table(),
    "a condition": lambda d: d.to_pyarrow_table(["id"], "small < 50"),
    "a condition that is evaluated": lambda d: d.count("small % 7 = 3"),
    "head": lambda d: d.head(99),
    "take": lambda d: d.take([1, 95]),
    "sample": lambda d: d.sample(99, 1),
    "split": lambda d: [d.scan_split(s).to_table() for s in d.plan_splits(1 << 20).to_pylist()],
    "stats of files": lambda d: d.check_files(),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("read", READS)
def test_version_that_was_removed_after_it_was_opened_is_an_error(tmp_path: Path, read: str, version: str) -> None:
    # null structs are not written in version 2.0
    whole = rows(0, 100).drop_columns(["point"])
    dataset = write_lance(str(tmp_path / "t"), whole, file_version=version, max_rows_per_file=30)
    remove_version(dataset.uri)
    with pytest.raises(DataFileNotFoundError, match=r"\.lance'") as e:
        READS[read](dataset)
    assert e.value.path.endswith(".lance")
    assert ("choose another version" if read == "stats of files" else REMEDY) in str(e.value)
    READS[read](open_dataset(dataset.uri))


def test_error_of_a_stream_has_the_text_of_the_readers_error(tmp_path: Path) -> None:
    """Arrow's C stream passes texts of errors, without their types."""
    dataset = made(tmp_path)
    stream = pa.RecordBatchReader.from_stream(dataset)
    remove_version(dataset.uri)
    with pytest.raises(OSError, match=REMEDY):
        stream.read_all()


def test_pickled_scan_of_a_version_that_was_removed_is_an_error(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    pickled = pickle.dumps(dataset.scan())
    remove_version(dataset.uri)
    with pytest.raises(VersionNotFoundError, match="Version 1 is not there"):
        pickle.loads(pickled)


@pytest.mark.parametrize("remove", [remove_version, by_pylance])
@pytest.mark.parametrize("predicate", [None, "id >= 0", "id % 2 < 2"])
def test_version_that_is_removed_between_two_batches_is_an_error(
    tmp_path: Path, remove: Callable[[str], None], predicate: str | None
) -> None:
    """Rows up to there were those of the version; no row of another one follows."""
    where = str(tmp_path / "dataset")
    write_lance(where, rows(0, 20_000), max_rows_per_file=10_000)
    batches = iter(open_dataset(where).scan(["id", "text"], predicate, batch_rows=1000, limit=1 << 40).batches())
    before = [next(batches).column("id").to_pylist() for _ in range(3)]
    remove(where)
    assert sum(before, []) == list(range(3000))  # noqa: RUF017
    left: list[int] = []
    with pytest.raises(DataFileNotFoundError, match=REMEDY):
        left.extend(i for batch in batches for i in batch.column("id").to_pylist())
    assert left == list(range(3000, 3000 + len(left)))
    assert len(left) < 17_000


def test_small_file_that_was_removed_is_named(tmp_path: Path) -> None:
    """Small files are read together; the error names the one that is missing."""
    where = str(tmp_path / "dataset")
    dataset = write_lance(where, rows(0, 100), max_rows_per_file=5)
    [_, gone, *_] = sorted(Path(where).glob("data/*.lance"))
    gone.unlink()
    with pytest.raises(DataFileNotFoundError, match=f"{gone.name}.*{REMEDY}"):
        dataset.to_pyarrow_table()


def test_deletion_file_that_was_removed_is_named(tmp_path: Path) -> None:
    where = made(tmp_path).uri
    open_dataset(where).delete("id in (3, 55)")
    dataset = open_dataset(where)
    gone = min(Path(where).glob("_deletions/*"))
    gone.unlink()
    with pytest.raises(DataFileNotFoundError, match=f"{gone.name}.*{REMEDY}"):
        dataset.to_pyarrow_table()
