"""Datasets that other writers recorded, and the data files of their versions."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_plugins.lance.files import DataFile, open_data_file
from delta_plugins.lance.schema import LanceField, field_tree
from delta_plugins.lance.wire import Message, decode

#: Beside the project, or beside the folder of its worktrees.
_FOUND = [p / "shared" / "golden" / "lance" for p in Path(__file__).resolve().parents]
FOLDER = next((p for p in _FOUND if p.is_dir()), None)


def datasets() -> list[Any]:
    """Return the names of the recorded datasets as parameters; one that is skipped if they are not there."""
    if FOLDER is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason="no recorded datasets in ../shared/golden/lance"))]
    return sorted(p.parent.name for p in FOLDER.glob("*/_versions"))


def records(name: str) -> dict[str, Any]:
    """Return what the manifest of the corpus records for each version of a dataset."""
    assert FOLDER is not None
    found = json.loads((FOLDER / "manifest.json").read_text())
    listed = found["datasets"] if isinstance(found, dict) and "datasets" in found else found
    record = listed[name] if isinstance(listed, dict) else next(r for r in listed if r.get("name") == name)
    versions: dict[str, Any] = record["versions"]
    return versions


def expected() -> Any:
    """Return the module of the corpus that makes digests."""
    assert FOLDER is not None
    spec = importlib.util.spec_from_file_location("lance_expect", FOLDER / "expect.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def manifests(name: str) -> Iterator[Message]:
    """Yield the manifests of a dataset's versions."""
    assert FOLDER is not None
    for path in sorted((FOLDER / name / "_versions").glob("*.manifest")):
        if not path.name.startswith("d"):
            yield _manifest(path)


def local_manifest(folder: Path) -> Message:
    """Return the manifest of a dataset that has one version."""
    [path] = (folder / "_versions").glob("*.manifest")
    return _manifest(path)


def _manifest(path: Path) -> Message:
    data = path.read_bytes()
    at = int.from_bytes(data[-16:-8], "little")
    size = int.from_bytes(data[at : at + 4], "little")
    return decode("Manifest", data[at + 4 : at + 4 + size], path.name)


def fields_of(messages: list[Message]) -> tuple[LanceField, ...]:
    """Return the tree of a schema's fields."""
    return field_tree(
        LanceField(
            id=m["id"],
            parent_id=m["parent_id"],
            name=m["name"],
            logical_type=m["logical_type"],
            nullable=m["nullable"],
            metadata=m["metadata"],
            dictionary=(m["dictionary"]["offset"], m["dictionary"]["length"]) if m["dictionary"] else None,
            encoding=m["encoding"],
        )
        for m in messages
    )


class LocalBytes:
    """The bytes of a local file, with the ranges that were read."""

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        self.size = os.path.getsize(path)
        self.ranges: list[tuple[int, int]] = []

    is_remote = False

    def read_ahead(self, ranges: Any) -> None:
        """Do nothing: the file is local."""

    def read_at(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        with open(self._path, "rb") as file:
            file.seek(offset)
            data = file.read(length)
        assert len(data) == length
        return data

    def read_ranges(self, ranges: Any) -> list[bytes]:
        return [self.read_at(*r) for r in ranges]


def opened(path: Path | str, major: int = 0, minor: int = 0) -> DataFile:
    """Open a local data file."""
    source = LocalBytes(path)
    return open_data_file(source, source.size, path=str(path), major=major, minor=minor)


def as_array(found: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return one array."""
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
