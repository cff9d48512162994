"""Changes that began with a version that is removed, with those after it, before they are committed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CommitConflictError, CommitError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit.commits import _Commit
from tests.lance.changed_datasets import check_with_pylance, ids_of, made, rows

Run = Callable[[str], Any]


def _overwrite(where: str) -> Any:
    return open_dataset(where).overwrite(rows(500, 2), "id < 10 or id >= 500")


def _merge(where: str) -> Any:
    merge = open_dataset(where).merge(rows(99, 4), "target.id = source.id")
    return merge.when_matched_update_all().when_not_matched_insert_all().execute()


CHANGES: dict[str, Run] = {
    "append": lambda w: write_lance(w, rows(200, 3), "append"),
    "delete": lambda w: open_dataset(w).delete("id = 5"),
    "update": lambda w: open_dataset(w).update({"text": "'ours'"}, predicate="id = 6"),
    "merge": _merge,
    "overwrite": _overwrite,
    "add columns": lambda w: open_dataset(w).add_columns({"ours": "id"}),
    "cast": lambda w: open_dataset(w).cast_column("small", pa.int64()),
    "rename": lambda w: open_dataset(w).rename_column("small", "ours_too"),
    "drop": lambda w: open_dataset(w).drop_columns(["small"]),
    "config": lambda w: open_dataset(w).set_config({"ours": "1"}),
    "compact": lambda w: open_dataset(w).compact(target_rows=60),
}


def _by_us(where: str) -> None:
    open_dataset(where).cleanup(keep_versions=1)


def _by_pylance(where: str) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    lance.dataset(where).cleanup_old_versions(older_than=timedelta(0))


def _meanwhile(patch: pytest.MonkeyPatch, run: Callable[[], Any]) -> None:
    """Let something run before the first version of another change is built."""
    build = _Commit.build
    calls: list[int] = []

    def racing(self: Any, base: Any, lost: int) -> Any:
        if not calls:
            calls.append(1)
            run()
        return build(self, base, lost)

    patch.setattr(_Commit, "build", racing)


@pytest.mark.parametrize("clean", [_by_us, _by_pylance])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_change_is_committed_after_the_latest_version_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, number: int, clean: Run
) -> None:
    """The versions that the change would have taken are there for a while, then removed."""
    where = made(tmp_path, stable=number == 2).uri

    def others() -> None:
        open_dataset(where).delete("id = 7")
        for step in range(number):
            write_lance(where, rows(300 + step, 1), "append")
        clean(where)

    expected = {*range(100), *range(300, 300 + number)} - {7}
    with monkeypatch.context() as patch:
        _meanwhile(patch, others)
        try:
            CHANGES[change](where)
        except CommitConflictError:
            assert set(ids_of(open_dataset(where))) == expected
            assert open_dataset(where).versions() == [2 + number]
            return
    added = {"append": {200, 201, 202}, "merge": {100, 101, 102}, "overwrite": {500, 501}}
    gone = {"delete": {5}, "overwrite": set(range(10))}
    after = open_dataset(where)
    assert sorted(ids_of(after)) == sorted((expected | added.get(change, set())) - gone.get(change, set()))
    assert after.versions() == list(range(2 + number, after.version + 1))
    assert after.version > 2 + number
    check_with_pylance(where, every_version=True)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_made_again", [False, True])
def test_change_of_a_dataset_that_was_removed_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, is_made_again: bool
) -> None:
    where = made(tmp_path).uri
    write_lance(where, rows(100, 1), "append")

    def remove() -> None:
        shutil.rmtree(where)
        if is_made_again:
            write_lance(where, rows(0, 1))

    _meanwhile(monkeypatch, remove)
    with pytest.raises((CommitError, CommitConflictError), match="othing was committed"):
        CHANGES[change](where)
    assert not list((Path(where) / "_versions").glob("*")) or open_dataset(where).versions() == [1]
