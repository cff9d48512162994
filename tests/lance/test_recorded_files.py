"""Data files of recorded datasets have the rows that their writers read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance.files import column_map
from delta_plugins.lance.wire import Message
from tests.lance.recorded_files import FOLDER, as_array, datasets, expected, fields_of, manifests, opened, records

#: Versions of files that are read here.
VERSIONS = {(0, 0), (0, 1), (0, 2), (0, 3), (2, 0), (2, 1), (2, 2)}


def _is_plain(fragment: Message) -> bool:
    """Whether the rows of a fragment are those of its files."""
    return fragment["deletion_file"] is None and all(
        f["base_id"] is None and (f["file_major_version"], f["file_minor_version"]) in VERSIONS
        for f in fragment["files"]
    )


def _rows_of(folder: Path, manifest: Message, fragment: Message) -> pa.Table:
    tree = fields_of(manifest["fields"])
    arrays: dict[str, pa.Array] = {}
    rows = fragment["physical_rows"]
    for file in fragment["files"]:
        column_of = column_map(file["fields"], file["column_indices"])
        data = opened(folder / "data" / file["path"], file["file_major_version"], file["file_minor_version"])
        mine = [t for t in tree if t.name not in arrays and _ids(t) & column_of.keys()]
        found = [as_array(a) for a in data.read(mine, column_of)]
        for field, array in zip(mine, found, strict=True):
            array.validate(full=True)
            arrays[field.name] = array
            _check_parts(data, field, column_of, array)
        rows = data.num_rows
    return pa.table({t.name: arrays[t.name] if t.name in arrays else pa.nulls(rows) for t in tree})


def _ids(field) -> set[int]:
    return {field.id} | {i for c in field.children for i in _ids(c)}


def _same(a: pa.Array, b: pa.Array) -> bool:
    """Whether arrays are equal, NaN equal to NaN."""
    return bool(a.equals(b)) or repr(a.to_pylist()) == repr(b.to_pylist())


def _check_parts(data, field, column_of, array: pa.Array) -> None:
    """Compare some positions, a range and batches with the same rows of the whole."""
    n = len(array)
    random = np.random.default_rng(n)
    positions = np.unique(random.integers(0, n, 10)) if n else np.empty(0, np.int64)
    [found] = data.read([field], column_of, positions)
    assert _same(as_array(found), pa.concat_arrays([array.slice(0, 0), *(array.slice(p, 1) for p in positions)]))
    first, last = sorted(random.integers(0, n + 1, 2).tolist())
    [found] = data.read([field], column_of, (first, last))
    assert _same(as_array(found), array.slice(first, last - first))
    parts = [as_array(a) for [a] in data.batches([field], column_of, batch_rows=max(n // 3, 1))]
    assert _same(pa.concat_arrays([array.slice(0, 0), *parts]), array)


@pytest.mark.golden
@pytest.mark.parametrize("name", datasets())
def test_rows_of_recorded_files_equal_their_digest(name: str) -> None:
    assert FOLDER is not None
    module = expected()
    recorded = records(name)
    compared = 0
    for manifest in manifests(name):
        record = recorded[str(manifest["version"])]
        if "digest" not in record or not all(map(_is_plain, manifest["fragments"])):
            continue
        tables = [_rows_of(FOLDER / name, manifest, f) for f in manifest["fragments"]]
        rows = [row for table in tables for row in module.rows(table)]
        assert module.sha(sorted(rows)) == record["digest"], manifest["version"]
        compared += 1
    if not compared:
        pytest.skip("no version without deletions and of a file version that is read")
