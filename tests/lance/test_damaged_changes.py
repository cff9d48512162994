"""Changes of datasets with a damaged file: they succeed, or they raise a typed error and change nothing."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import convert
from delta_core.errors import DeltaError
from delta_plugins.lance import open_dataset, write_lance
from tests.lance.changed_datasets import made

SEEDS = 500 if os.environ.get("DELTA_CORE_LONG") else 4
Run = Callable[[str], Any]
ROW = pa.table({"id": pa.array([900], pa.int64())})


def _merge(where: str) -> Any:
    source = open_dataset(where).to_pyarrow_table(predicate="id between 80 and 85")
    merge = open_dataset(where).merge(source, "target.id = source.id").when_matched_update({"text": "'m'"})
    return merge.when_not_matched_by_source_delete("target.id = 90").execute()


CHANGES: dict[str, Run] = {
    "append": lambda w: write_lance(w, ROW, "append"),
    "overwrite": lambda w: write_lance(w, ROW, "overwrite"),
    "replace": lambda w: open_dataset(w).overwrite(ROW, "id >= 50"),
    "delete": lambda w: open_dataset(w).delete("id in (40, 41, 70)"),
    "delete all": lambda w: open_dataset(w).delete(),
    "update": lambda w: open_dataset(w).update({"small": "small + 1"}, predicate="id < 50"),
    "merge": _merge,
    "add columns": lambda w: open_dataset(w).add_columns({"twice": "id * 2"}),
    "cast": lambda w: open_dataset(w).cast_column("small", pa.int32()),
    "drop": lambda w: open_dataset(w).drop_columns(["small"]),
    "rename": lambda w: open_dataset(w).rename_column("small", "little"),
    "config": lambda w: open_dataset(w).set_config({"a": "1"}),
    "restore": lambda w: open_dataset(w).restore(2),
    "compact": lambda w: open_dataset(w).compact(materialize_deletions=0.0),
    "cleanup": lambda w: open_dataset(w).cleanup(older_than=timedelta(0), unreferenced_older_than=timedelta(0)),
    "repair": lambda w: open_dataset(w).repair(deep=True),
    "tag": lambda w: open_dataset(w).tags.create("later"),
    "convert": lambda w: convert(w, f"{w}-delta", "delta", without="all"),
}
FOLDERS = ("_versions", "_transactions", "_deletions", "data", "_refs")


def _damage(path: Path, choice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    at = choice.randrange(len(data))
    kind = choice.choice(("bit", "bit", "bit", "byte", "cut", "empty", "zeros", "longer", "missing"))
    if kind == "missing":
        path.unlink()
        return
    if kind == "bit":
        data[at] ^= 1 << choice.randrange(8)
    elif kind == "byte":
        data[at] = choice.randrange(256)
    elif kind in ("cut", "empty"):
        del data[at if kind == "cut" else 0 :]
    elif kind == "zeros":
        data[at : at + 8] = bytes(len(data[at : at + 8]))
    else:
        data[at:at] = choice.randbytes(4)
    path.write_bytes(bytes(data))


def _changed(root: Path, seed: int) -> str:
    version = ("2.2", "2.1")[seed // 2 % 2]
    dataset: Any = made(root, stable=bool(seed % 2), version=version)
    dataset.delete("id in (3, 33, 66)")
    dataset.update({"text": "'new'"}, predicate="id in (5, 35)")
    dataset.tags.create("second", 2)
    return str(dataset.uri)


def _files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def _latest(where: str) -> str:
    """Return the latest version and its rows, or the error of reading them."""
    try:
        found = open_dataset(where)
        return f"{found.version} {found.to_pyarrow_table(metadata=['_rowid']).to_pylist()!r}"
    except DeltaError as e:
        return type(e).__name__


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_a_damaged_dataset_succeeds_or_changes_nothing(tmp_path: Path, change: str) -> None:
    whole = tmp_path / "whole"
    for seed in range(SEEDS):
        choice = random.Random(f"{change} {seed}")
        shutil.rmtree(whole, ignore_errors=True)
        where = _changed(whole, choice.randrange(4))
        folder = Path(where) / choice.choice(FOLDERS)
        _damage(choice.choice(sorted(p for p in folder.rglob("*") if p.is_file())), choice)
        before, latest = _files(whole), _latest(where)
        try:
            CHANGES[change](where)
        except DeltaError:
            after = _files(whole)
            reserved = {n for n in after.keys() - before.keys() if n.split("/")[1] in ("_versions", "_transactions")}
            assert before.keys() == after.keys() - (reserved if change == "compact" else set())
            assert change == "compact" or _latest(where) == latest
            continue
        after = _files(whole)
        if change != "cleanup":
            assert {n: after.get(n) for n in before} == before
        if latest[0].isdigit():
            assert _latest(where)[0].isdigit()
