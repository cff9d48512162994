"""Files that pylance writes are read as it reads them: types, nulls, numbers of rows and versions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance.files import column_map
from tests.lance.made_arrays import CASES, INT, MISSING, made_array
from tests.lance.recorded_files import as_array, fields_of, local_manifest, opened

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

IS_LONG = bool(os.environ.get("DELTA_CORE_LONG"))
COUNTS = (1, 7, 1024, 1025, 5000, 100_000) if IS_LONG else (1, 1025)
NULLS = ("none", "some", "all", "runs") if IS_LONG else ("none", "some", "all")


def _written(path: Path, array: pa.Array, version: str, metadata: dict[str, str] | None = None) -> Any:
    schema = pa.schema([pa.field("c", array.type, True, metadata)])
    try:
        # a failed write may panic, which is an exception of its own kind
        return lance.write_dataset(pa.table([array], schema=schema), str(path), data_storage_version=version)
    except BaseException as e:  # noqa: BLE001
        pytest.skip(f"pylance does not write it: {str(e)[:80]}")


def _check(path: Path, dataset: Any) -> None:
    """Compare all rows, positions, a range, and batches."""
    try:
        expected = as_array(dataset.to_table()["c"])
    except BaseException as e:  # noqa: BLE001
        pytest.skip(f"pylance does not read what it wrote: {str(e)[:80]}")
    if isinstance(expected, pa.ExtensionArray):
        expected = expected.storage
    manifest = local_manifest(path)
    [field] = fields_of(manifest["fields"])
    [fragment] = manifest["fragments"]
    [file] = fragment["files"]
    data = opened(path / "data" / file["path"], file["file_major_version"], file["file_minor_version"])
    columns = column_map(file["fields"], file["column_indices"])

    def same(found: Any, wanted: pa.Array) -> None:
        found = as_array(found)
        found.validate(full=True)
        if found.type != wanted.type:
            found = found.cast(wanted.type)
        assert found.equals(wanted) or repr(found.to_pylist()) == repr(wanted.to_pylist())

    n = len(expected)
    assert data.num_rows == n
    same(data.read([field], columns)[0], expected)
    random = np.random.default_rng(n)
    first, last = sorted(random.integers(0, n + 1, 2).tolist())
    same(data.read([field], columns, (first, last))[0], expected.slice(first, last - first))
    positions = np.unique(random.integers(0, n, 20))
    parts = [expected.slice(p, 1) for p in positions]
    same(data.read([field], columns, positions)[0], pa.concat_arrays(parts))
    at = 0
    for [part] in data.batches([field], columns, batch_rows=n // 3 + 1):
        same(part, expected.slice(at, len(part)))
        at += len(part)
    assert at == n


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0", "legacy"])
@pytest.mark.parametrize("case", CASES)
def test_rows_equal_pylance(tmp_path: Path, case: str, version: str) -> None:
    if case in MISSING[version]:
        pytest.skip("this version of files does not store it")
    for n in COUNTS:
        for nulls in NULLS:
            path = tmp_path / f"{n}-{nulls}"
            _check(path, _written(path, made_array(case, nulls, n), version))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
@pytest.mark.parametrize(
    ("case", "metadata"),
    [
        ("string", {"lance-encoding:compression": "zstd"}),
        ("string", {"lance-encoding:compression": "lz4"}),
        ("string", {"lance-encoding:compression": "fsst"}),
        ("long strings", {"lance-encoding:compression": "zstd"}),
        ("int64", {"lance-encoding:compression": "lz4"}),
        ("int64", {"lance-encoding:compression": "zstd"}),
        ("double", {"lance-encoding:bss": "on", "lance-encoding:compression": "zstd"}),
        ("runs", {"lance-encoding:rle-threshold": "0.9"}),
        ("string", {"lance-encoding:structural-encoding": "fullzip"}),
        ("int64", {"lance-encoding:structural-encoding": "fullzip"}),
        ("list", {"lance-encoding:structural-encoding": "fullzip"}),
        ("list of lists", {"lance-encoding:structural-encoding": "fullzip"}),
        ("fixed list", {"lance-encoding:structural-encoding": "fullzip"}),
    ],
)
def test_requested_encodings_equal_pylance(tmp_path: Path, case: str, metadata: dict[str, str], version: str) -> None:
    for n in (5, 6000):
        for nulls in ("none", "some"):
            path = tmp_path / f"{n}-{nulls}"
            _check(path, _written(path, made_array(case, nulls, n), version, metadata))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
@pytest.mark.parametrize("case", ["fixed", "any length"])
def test_packed_structs_equal_pylance(tmp_path: Path, case: str, version: str) -> None:
    fields = {"a": pa.int32(), "b": pa.float64(), "c": pa.list_(pa.float32(), 2)}
    if case == "any length":
        fields = {"a": pa.int32(), "s": pa.string(), "b": pa.binary()}
    rows = [
        {"a": i, "b": i / 3 if case == "fixed" else bytes([i % 251] * (i % 5)), "c": [i, -i], "s": "t" * (i % 40)}
        for i in range(3000)
    ]
    array = pa.array([{k: r[k] for k in fields} for r in rows], pa.struct(fields))
    path = tmp_path / "packed"
    _check(path, _written(path, array, version, {"packed": "true", "lance-encoding:packed": "true"}))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
def test_pages_of_siblings_that_are_cut_apart_equal_pylance(tmp_path: Path, version: str) -> None:
    """One child of a struct has one page, the other several."""
    n = 40_000
    texts = [None if i % 9 == 0 else f"{i}" * 120 for i in range(n)]
    rows = [{"a": i, "b": t} if i % 5 else None for i, t in enumerate(texts)]
    if version == "2.0":
        rows = [r or {"a": None, "b": None} for r in rows]
    path = tmp_path / "siblings"
    _check(path, _written(path, pa.array(rows, pa.struct({"a": INT, "b": pa.string()})), version))


@pytest.mark.parametrize("version", ["2.2", "2.1", "2.0"])
def test_lists_across_chunks_equal_pylance(tmp_path: Path, version: str) -> None:
    sizes = [0, 5000, 1, 1024, 0, 3, 20_000, 2]
    rows = [None if k == 4 else list(range(s)) for k, s in enumerate(sizes)] * 3
    path = tmp_path / "lists"
    _check(path, _written(path, pa.array(rows, pa.list_(INT)), version))
    path = tmp_path / "lists of structs"
    structs = [None if r is None else [{"x": i if i % 3 else None, "y": str(i)} for i in r] for r in rows]
    _check(path, _written(path, pa.array(structs, pa.list_(pa.struct({"x": INT, "y": pa.string()}))), version))
