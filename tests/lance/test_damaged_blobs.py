"""Files of blobs that are missing or too short are found by `verify`, and their fragments named by `repair`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_plugins.lance import open_dataset, write_lance
from tests.lance.blob_datasets import limited_field
from tests.lance.manifests import container, field, fragment, manifest

BLOBS = [b"in", None, b"p" * 50, b"d" * 500]


def made(root: Path, *, in_struct: bool) -> str:
    """Return a dataset of two fragments, with blobs of each kind in both."""
    where = str(root / "d")
    blobs: Any = pa.array(BLOBS * 2, pa.large_binary())
    column = limited_field("photo", pa.large_binary())
    if in_struct:
        blobs = pa.StructArray.from_arrays([blobs], fields=[column])
        column = pa.field("s", blobs.type)
    schema = pa.schema([pa.field("id", pa.int64()), column])
    write_lance(where, pa.table([[*range(8)], blobs], schema=schema), max_rows_per_file=4)
    return where


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "missing": Path.unlink,
    "short": lambda p: p.write_bytes(p.read_bytes()[:-1]),
    "empty": lambda p: p.write_bytes(b""),
}


@pytest.mark.parametrize("size", [50, 500])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("in_struct", [False, True])
def test_file_of_blobs_is_reported_and_its_fragment_goes(
    tmp_path: Path, in_struct: bool, damage: str, size: int
) -> None:
    where = made(tmp_path, in_struct=in_struct)
    dataset = open_dataset(where)
    assert not dataset.verify().findings
    assert dataset.repair() == {"version": 1, "removed_fragments": []}
    stem = dataset.files.file_path(1, 0).removesuffix(".lance")
    [path] = [p for p in (Path(where) / stem).iterdir() if p.stat().st_size == size]
    DAMAGE[damage](path)
    assert dataset.verify().rules() == {"blobs-missing" if damage == "missing" else "blobs-damaged"}
    [lost] = dataset.repair()["removed_fragments"]
    assert (lost["fragment"], lost["rows"]) == (1, 4)
    assert lost["file"].endswith(path.name)
    found = open_dataset(where)
    assert found.to_pyarrow_table(["id"]).column("id").to_pylist() == [0, 1, 2, 3]
    assert not found.verify().findings


def test_blobs_of_deleted_rows_may_be_missing(tmp_path: Path) -> None:
    where = made(tmp_path, in_struct=False)
    dataset = open_dataset(where)
    dataset.delete("id in (6, 7)")
    for path in (Path(where) / dataset.files.file_path(1, 0).removesuffix(".lance")).iterdir():
        path.unlink()
    assert not dataset.verify().findings


def test_files_of_external_blobs_are_not_looked_at(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    of = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    blobs = pa.array([{"data": None, "uri": "file:///nowhere"}, {"data": b"x", "uri": None}], of)
    dataset = write_lance(where, pa.table([blobs], schema=pa.schema([limited_field("photo", of)])))
    assert not dataset.verify().findings
    assert dataset.repair()["removed_fragments"] == []


@pytest.mark.parametrize("numbers", [(0,), (0, 1)])
def test_fragment_without_files_has_no_blobs(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    blobs = field(0, "photo", "large_binary", metadata={"lance-encoding:blob": b"true"})
    made = manifest(fields=[blobs], fragments=[fragment(n, files=[]) for n in numbers])
    (tmp_path / "_versions").mkdir()
    (tmp_path / "_versions" / f"{2**64 - 2:020d}.manifest").write_bytes(container(made))
    dataset = open_dataset(str(tmp_path))
    assert dataset.to_pyarrow_table().num_rows == 10 * len(numbers)
    assert not dataset.verify().findings
