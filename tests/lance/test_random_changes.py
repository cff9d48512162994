"""Random sequences of changes, ours and pylance's in turn; writers that race; writers that are interrupted."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.api import CommitConflictError, DeltaError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.dataset import LanceDataset
from tests.lance.changed_datasets import check_with_pylance, ids_of, made, rows

pytestmark = pytest.mark.filterwarnings("ignore")

IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
SEEDS, STEPS = (500, 8) if IS_LONG else (4, 6)
Expected = dict[int, str | None]


class History:
    """A dataset that is changed at random, and the rows that it has to have."""

    def __init__(self, root: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.stable = bool(seed % 2)
        version = "2.1" if seed % 3 == 0 else "2.2"
        self.where = made(root, stable=self.stable, count=60, version=version).uri
        self.rows: Expected = dict(_texts(rows(0, 60)))
        self.next = 60
        self.kept: dict[int, Expected] = {1: dict(self.rows)}

    @property
    def peer(self) -> Any:
        lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
        return lance.dataset(self.where)

    def some(self) -> list[int]:
        live = sorted(self.rows) or [0]
        return self.random.sample(live, min(len(live), self.random.choice([1, 3, 20])))

    def fresh(self) -> pa.Table:
        count = self.random.choice([1, 4, 40])
        self.next += count
        return rows(self.next - count, count)

    def step(self, by_us: bool) -> str:
        name = self.random.choice(["append", "delete", "update", "merge", "restore", "compact", "cleanup"])
        before = open_dataset(self.where).version
        getattr(self, name)(by_us)
        after = open_dataset(self.where)
        assert after.version >= before
        self.kept[after.version] = dict(self.rows)
        found = dict(_texts(after.to_pyarrow_table(["id", "text"])))
        assert found == self.rows, (name, by_us)
        return name

    def append(self, by_us: bool) -> None:
        new = self.fresh()
        write_lance(self.where, new, "append") if by_us else self.peer.insert(new)
        self.rows |= dict(_texts(new))

    def delete(self, by_us: bool) -> None:
        chosen = self.some()
        condition = f"id in ({', '.join(map(str, chosen))})"
        open_dataset(self.where).delete(condition) if by_us else self.peer.delete(condition)
        self.rows = {i: t for i, t in self.rows.items() if i not in chosen}

    def update(self, by_us: bool) -> None:
        chosen = self.some()
        condition = f"id in ({', '.join(map(str, chosen))})"
        text = f"v{self.random.randrange(100)}"
        if by_us:
            open_dataset(self.where).update({"text": f"'{text}'"}, predicate=condition)
        else:
            self.peer.update({"text": f"'{text}'"}, where=condition)
        self.rows |= {i: text for i in chosen if i in self.rows}

    def merge(self, by_us: bool) -> None:
        source = pa.concat_tables([rows(i, 1) for i in sorted(self.some())] + [self.fresh()])
        if by_us:
            merge = open_dataset(self.where).merge(source, "target.id = source.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        else:
            self.peer.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
        self.rows |= dict(_texts(source))

    def restore(self, by_us: bool) -> None:
        version = self.random.choice(sorted(self.kept))
        if by_us:
            open_dataset(self.where).restore(version)
        else:
            older = self.peer.checkout_version(version)
            older.restore()
        self.rows = dict(self.kept[version])

    def cleanup(self, by_us: bool) -> None:
        count = self.random.choice([1, 2, 5])
        before = open_dataset(self.where).versions()
        if by_us:
            open_dataset(self.where).cleanup(keep_versions=count, unreferenced_older_than=timedelta(0))
        else:
            self.peer.cleanup_old_versions(retain_versions=count)
        left = open_dataset(self.where).versions()
        assert left[-count:] == before[-count:]
        self.kept = {v: rows for v, rows in self.kept.items() if v in left}

    def compact(self, by_us: bool) -> None:
        if by_us:
            dataset = open_dataset(self.where)
            dataset.compact(target_rows=self.random.choice([20, 50, 1000]))
            return
        self.peer.optimize.compact_files(target_rows_per_fragment=50)


def _texts(table: pa.Table) -> list[tuple[int, str | None]]:
    return list(zip(table.column("id").to_pylist(), table.column("text").to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_changes_of_both_in_turn_are_read_alike(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    assert history.peer.count_rows() == 60
    done = [history.step(by_us=bool(n % 2)) for n in range(STEPS)]
    assert len(done) == STEPS
    check_with_pylance(history.where, every_version=True)
    for version, expected in history.kept.items():
        assert dict(_texts(open_dataset(history.where, version=version).to_pyarrow_table(["id", "text"]))) == expected


# --- conflicts with pylance ----------------------------------------------------------------

Run = Callable[[str], Any]
OURS: dict[str, Run] = {
    "append": lambda w: write_lance(w, rows(200, 3), "append"),
    "delete": lambda w: open_dataset(w).delete("id = 5"),
    "update": lambda w: open_dataset(w).update({"text": "'ours'"}, predicate="id = 6"),
    "merge": lambda w: (
        open_dataset(w).merge(rows(300, 2), "target.id = source.id").when_not_matched_insert_all().execute()
    ),
    "add columns": lambda w: open_dataset(w).add_columns({"ours": "id"}),
    "rename": lambda w: open_dataset(w).rename_column("small", "ours_too"),
    "config": lambda w: open_dataset(w).set_config({"ours": "1"}),
    "compact": lambda w: open_dataset(w).compact(target_rows=60),
}


def _prepared(where: str) -> dict[str, Callable[[], Any]]:
    """Return changes by pylance that begin with the version that is there now."""
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")

    def held() -> Any:
        return lance.dataset(where)

    begun = {name: held() for name in ("append", "delete", "update", "columns", "config")}
    return {
        "append": lambda: begun["append"].insert(rows(400, 3)),
        "delete": lambda: begun["delete"].delete("id = 7"),
        "update": lambda: begun["update"].update({"text": "'theirs'"}, where="id = 8"),
        "columns": lambda: begun["columns"].add_columns({"theirs": "text"}),
        "config": lambda: begun["config"].update_config({"theirs": "1"}),
    }


@pytest.mark.parametrize("ours", OURS)
@pytest.mark.parametrize("theirs", ["append", "delete", "update", "columns", "config"])
def test_pylance_that_began_before_our_commit_agrees_or_fails(tmp_path: Path, ours: str, theirs: str) -> None:
    where = made(tmp_path, stable=True).uri
    late = _prepared(where)[theirs]
    OURS[ours](where)
    version = open_dataset(where).version
    try:
        late()
    except Exception:  # noqa: BLE001  # pylance has no class for its conflicts
        assert open_dataset(where).version == version
    check_both(where, ours)


def check_both(where: str, ours: str) -> None:
    """Check that our change is there, and nothing else was lost."""
    after = open_dataset(where)
    names = after.schema().names
    texts = dict(_texts(after.to_pyarrow_table(["id", "text"])))
    assert len(texts) == after.count()
    expected = {
        "append": lambda: {200, 201, 202} <= set(texts),
        "delete": lambda: 5 not in texts,
        "update": lambda: texts[6] == "ours",
        "merge": lambda: {300, 301} <= set(texts),
        "add columns": lambda: "ours" in names,
        "rename": lambda: "ours_too" in names,
        "config": lambda: after.manifest.message["config"]["ours"] == "1",
        "compact": lambda: len(after.manifest.fragments) < 4,
    }
    assert expected[ours]()
    assert set(range(100)) - {5, 7} <= set(texts)
    check_with_pylance(where, every_version=True)


@pytest.mark.parametrize("ours", OURS)
@pytest.mark.parametrize("theirs", ["append", "delete", "update", "columns", "config"])
def test_our_change_that_began_before_that_of_pylance_agrees_or_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: str, theirs: str
) -> None:
    where = made(tmp_path, stable=True).uri
    other = _prepared(where)[theirs]
    latest, calls = LanceDataset.latest, []

    def meanwhile(self: LanceDataset) -> Any:
        found = latest(self)
        calls.append(found.version)
        if len(calls) == 1:
            other()
        return found

    monkeypatch.setattr(LanceDataset, "latest", meanwhile)
    if ours == "append":
        other()
    try:
        OURS[ours](where)
    except CommitConflictError:
        assert open_dataset(where).version == 2
        return
    check_both(where, ours)


def test_writers_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    where = made(tmp_path, stable=True).uri
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")

    def write(number: int) -> list[int]:
        added = []
        for step in range(3):
            first = 1000 * (number + 1) + 10 * step
            if number % 4 == 3:
                lance.dataset(where).insert(rows(first, 5))
            elif step == 1:
                merge = open_dataset(where).merge(rows(first, 5), "target.id = source.id")
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            else:
                write_lance(where, rows(first, 5), "append")
            added += range(first, first + 5)
            open_dataset(where).delete(f"id = {number * 10 + step}")
        return added

    with ThreadPoolExecutor(8) as pool:
        added = [i for found in pool.map(write, range(8)) for i in found]
    gone = {n * 10 + s for n in range(8) for s in range(3)}
    assert sorted(ids_of(open_dataset(where))) == sorted({*range(100), *added} - gone)
    check_with_pylance(where)


# --- interrupted writers -------------------------------------------------------------------

#: Changes that write data files, deletion files, transactions and manifests.
KILLED: dict[str, Run] = {
    **OURS,
    "overwrite": lambda w: open_dataset(w).overwrite(rows(0, 3)),
    "replace everything": lambda w: write_lance(w, rows(0, 3), "overwrite"),
    "cast": lambda w: open_dataset(w).cast_column("small", pa.int64()),
    "restore": lambda w: open_dataset(w).restore(1),
    "compact": lambda w: open_dataset(w).compact(),
}


class Stop(BaseException):
    """The end of a process that is killed."""


@pytest.mark.parametrize("error", [Stop, OSError])
@pytest.mark.parametrize("change", KILLED)
def test_interrupted_change_leaves_the_dataset_as_before_or_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, error: type[BaseException]
) -> None:
    """Each write fails in turn, before it begins and after it is done."""
    for number in range(1, 100):
        where = str(made(tmp_path / str(number)).uri)
        storage = type(open_dataset(where).storage)
        before = _state(where)
        with monkeypatch.context() as patch:
            count = _failing(patch, storage, number, error)
            with suppress(Stop, OSError, DeltaError):
                KILLED[change](where)
            is_over = count[0] < number
        after = _state(where)
        if is_over:
            assert after != before
            return
        expected = made(tmp_path / f"{number} whole").uri
        KILLED[change](expected)
        reserved = (before[0] + 1, *before[1:]) if change == "compact" else before
        assert after in (before, reserved, _state(expected))
        assert not open_dataset(where).verify().findings
    pytest.fail("the change writes too many files")


def _state(where: str) -> tuple[Any, ...]:
    found = open_dataset(where)
    content = repr(found.to_pyarrow_table().sort_by("id").to_pylist())
    return found.version, content, found.schema(), dict(found.manifest.message["config"])


def _failing(patch: pytest.MonkeyPatch, storage: type, number: int, error: type[BaseException]) -> list[int]:
    """Let the write of a number fail: odd numbers before it, even ones after it."""
    count = [0]

    def wrap(name: str) -> None:
        real = getattr(storage, name)

        def write(self: Any, *args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] == number:
                raise error("stopped")
            count[0] += 1
            found = real(self, *args, **kwargs)
            if count[0] == number:
                raise error("stopped")
            return found

        patch.setattr(storage, name, write)

    for name in ("put", "put_if_absent", "put_stream"):
        wrap(name)
    return count
