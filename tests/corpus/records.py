"""Tables with recorded rows: the corpus of this project, and the larger one beside it if that is present.

`GOLDEN` has real tables of other projects, in the same form; a clone does without it.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

__all__ = ["GOLDEN", "OWN", "bitmaps", "named", "path_of", "present", "records", "recorded_path", "root_of"]

OWN = Path(__file__).parent
GOLDEN = (OWN.parents[2] / "shared" / "golden").resolve()  # deltalake returns paths without links

Record = dict[str, Any]


@cache
def _manifest(root: Path) -> dict[str, Any]:
    file = root / "manifest.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"tables": []}
    return found


def bitmaps() -> list[tuple[Path, Record]]:
    """Return the files and the records of all roaring bitmaps that are present."""
    found = [(root, record) for root in (OWN, GOLDEN) for record in _manifest(root).get("roaring", ())]
    return [(root / "roaring" / record["file"], record) for root, record in found]


def records() -> list[Record]:
    """Return the records of all tables that are present."""
    return [*_manifest(OWN)["tables"], *_manifest(GOLDEN)["tables"]]


@cache
def _by_name() -> dict[str, Record]:
    return {record["id"]: record for record in records()}


def named(name: str) -> Record:
    """Return the record of a table; skips the test in a source package, which has no tables."""
    if name not in _by_name() and not (OWN / "manifest.json").exists():
        pytest.skip(f"no table {name!r}: a source package comes without the tables of tests/corpus")
    return _by_name()[name]


def present(*names: str) -> list[str]:
    """Return those of the names whose tables are present; names of tables of this project must be."""
    return [name for name in names if name in _by_name() or _is_own(name)]


def _is_own(name: str) -> bool:
    return name.startswith(("spark/", "deltalake/"))


def root_of(record: Record) -> Path:
    """Return the folder that paths of a record begin at."""
    return OWN if _is_own(record["id"]) else GOLDEN


def path_of(record: Record | str) -> Path:
    """Return where a table lies; one that names files by absolute path is copied to where these names hold."""
    record = named(record) if isinstance(record, str) else record
    if "needs" in record:
        return _moved(record["id"])
    return root_of(record) / "tables" / record["id"]


def recorded_path(record: Record, path: str) -> str:
    """Return a file's path as it was when the table was recorded."""
    return path.replace(str(_scratch()), _manifest(OWN)["scratch"]) if "needs" in record else path


@cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="delta-corpus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _moved(name: str) -> Path:
    """Copy a table and those it needs, and let its log name files below the copy."""
    for each in (name, *named(name)["needs"]):
        shutil.copytree(OWN / "tables" / each, _scratch() / each, dirs_exist_ok=True)
    for commit in (_scratch() / name / "_delta_log").glob("*.json"):
        commit.write_text(commit.read_text().replace(_manifest(OWN)["scratch"], str(_scratch())))
    return _scratch() / name
