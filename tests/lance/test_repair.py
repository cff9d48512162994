"""Repair: a version without the fragments that can't be read, each named with its rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_core.cli import main
from delta_core.errors import CorruptTableError, EngineError
from delta_plugins.lance import open_dataset, write_lance
from tests.lance.changed_datasets import check_with_pylance, ids_of, made, rows


def broken(root: Path) -> tuple[str, Path, Path]:
    """Return a dataset, the data file of its second fragment, and the deletion file of that."""
    dataset = made(root, stable=True)
    dataset.delete("id in (31, 32)")
    [deletions] = (Path(dataset.uri) / "_deletions").iterdir()
    return dataset.uri, Path(dataset.uri) / dataset.files.file_path(1, 0), deletions


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-4] + b"XXXX")


DAMAGE: dict[str, Callable[[Path, Path], Any]] = {
    "missing data file": lambda data, deletions: data.unlink(),
    "cut data file": lambda data, deletions: _cut(data),
    "empty data file": lambda data, deletions: data.write_bytes(b""),
    "footer": lambda data, deletions: _end(data),
    "another file": lambda data, deletions: data.write_bytes(b"x" * data.stat().st_size),
    "missing deletion file": lambda data, deletions: deletions.unlink(),
    "empty deletion file": lambda data, deletions: deletions.write_bytes(b""),
    "cut deletion file": lambda data, deletions: deletions.write_bytes(deletions.read_bytes()[:100]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_fragment_that_can_not_be_read_goes_and_is_named(tmp_path: Path, damage: str) -> None:
    where, data, deletions = broken(tmp_path)
    DAMAGE[damage](data, deletions)
    dataset = open_dataset(where)
    planned = dataset.repair(dry_run=True)
    assert dataset.version == planned["version"] == 2
    [lost] = planned["removed_fragments"]
    assert (lost["fragment"], lost["rows"]) == (1, 28)
    assert lost["file"].endswith(
        (data if "data file" in damage or damage in ("footer", "another file") else deletions).name
    )
    assert lost["reason"]
    done = dataset.repair()
    assert (done["version"], done["removed_fragments"]) == (3, planned["removed_fragments"])
    assert ids_of(open_dataset(where)) == [*range(30), *range(60, 100)]
    assert not dataset.verify().findings
    assert dataset.repair() == {"version": 3, "removed_fragments": []}
    check_with_pylance(where)
    write_lance(where, rows(500, 2), "append")
    assert open_dataset(where).count() == 72


def test_damaged_pages_are_found_by_reading_all_rows(tmp_path: Path) -> None:
    where, data, _ = broken(tmp_path)
    found = bytearray(data.read_bytes())
    found[: len(found) // 4] = b"\xff" * (len(found) // 4)
    data.write_bytes(found)
    dataset = open_dataset(where)
    assert dataset.repair(dry_run=True)["removed_fragments"] == []
    [lost] = dataset.repair(deep=True)["removed_fragments"]
    assert (lost["fragment"], lost["file"]) == (1, str(data.relative_to(where)))
    assert ids_of(open_dataset(where)) == [*range(30), *range(60, 100)]


def test_sound_dataset_gets_no_version(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    assert dataset.repair(deep=True) == {"version": 1, "removed_fragments": []}


def test_store_that_can_not_be_reached_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(tmp_path)

    def unreachable(*_: Any) -> Any:
        raise EngineError("no connection")

    monkeypatch.setattr(type(dataset.storage), "stat", unreachable)
    with pytest.raises(EngineError, match="no connection"):
        dataset.repair()
    assert open_dataset(dataset.uri).version == 1


def test_damaged_manifest_is_an_error(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    path = Path(dataset.uri) / dataset.manifest.path
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptTableError):
        dataset.repair()


def test_command_removes_after_a_confirmation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where, data, _ = broken(tmp_path)
    data.unlink()
    assert main(["repair", where, "--dry-run", "--json"]) == 0
    assert [f["rows"] for f in json.loads(capsys.readouterr().out)["removed_fragments"]] == [28]
    assert main(["repair", where, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["version"] == 3
    assert main(["verify", where]) == 0


@pytest.mark.parametrize("damage", [d for d in DAMAGE if d not in ("footer", "another file")])
def test_damaged_version_is_not_restored(tmp_path: Path, damage: str) -> None:
    where, data, deletions = broken(tmp_path)
    write_lance(where, rows(500, 5), "overwrite")
    DAMAGE[damage](data, deletions)
    with pytest.raises((CorruptTableError, EngineError)):
        open_dataset(where).restore(2)
    assert open_dataset(where).version == 3
    assert ids_of(open_dataset(where)) == [500, 501, 502, 503, 504]
