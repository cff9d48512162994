"""Opening and planning take as many calls of Python functions for any number of fragments."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.files import DataFileWriter
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.names import deletion_name
from delta_plugins.lance.row_ids import encode_ids
from delta_plugins.lance.splits import plan_splits
from delta_plugins.lance.wire import encode
from tests.lance.manifests import container, fragment, manifest
from tests.lance.test_manifest import calls

FRAGMENT_ROWS = 10
INDEX = UUID(int=7)


def _write(path: Path, table: pa.Table, **metadata: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        writer = DataFileWriter(out, lance_fields(table.schema), metadata=metadata)
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()


def _write_index(folder: Path, rows: np.ndarray) -> None:
    """Write a B-tree of one page: the value of a row is its number, and ``rows`` are ids or addresses."""
    values = pa.array(np.arange(len(rows)))
    _write(folder / "page_data.lance", pa.table({"values": values, "ids": pa.array(rows, pa.uint64())}))
    bounds = {"min": values[:1], "max": values[-1:], "null_count": pa.array([0], pa.uint32())}
    _write(
        folder / "page_lookup.lance", pa.table({**bounds, "page_idx": pa.array([0], pa.uint32())}), batch_size=b"4096"
    )


def _dataset(folder: Path, n: int, is_stable: bool, with_index: bool, deleted: int) -> str:
    """Write a dataset of ``n`` fragments without data files; the first ``deleted`` ones have a deleted row.

    The index lists the rows of the last 10 fragments, with values from 0 on.
    """
    parts: list[dict[str, Any]] = []
    for i in range(n):
        more: dict[str, Any] = {}
        if is_stable:
            more["inline_row_ids"] = encode_ids(np.arange(FRAGMENT_ROWS, dtype=np.uint64) + i * FRAGMENT_ROWS)
        if i < deleted:
            more["deletion_file"] = {"file_type": 1, "read_version": 1, "id": 3, "num_deleted_rows": 1}
        parts.append(fragment(i, FRAGMENT_ROWS, **more))
    uuid = {"uuid": INDEX.bytes}
    listed = {
        "uuid": uuid,
        "fields": [0],
        "name": "a_idx",
        "index_details": {"type_url": "/lance.table.BTreeIndexDetails"},
    }
    section = encode(
        "IndexSection", {"indices": [listed | {"fragment_bitmap": RowSet.from_positions(np.arange(n)).to_roaring(32)}]}
    )
    flags = 1 * bool(deleted) | 2 * is_stable
    message = manifest(fragments=parts, max_fragment_id=n - 1, reader_feature_flags=flags, writer_feature_flags=flags)
    if with_index:
        ids = np.arange((n - 10) * FRAGMENT_ROWS, n * FRAGMENT_ROWS)
        addresses = (ids // FRAGMENT_ROWS << 32) + ids % FRAGMENT_ROWS
        _write_index(folder / "_indices" / str(INDEX), ids if is_stable else addresses)
        message["index_section"] = 0
    (folder / "_versions").mkdir(parents=True)
    (folder / "_versions" / "1.manifest").write_bytes(container(message, *([section] if with_index else [])))
    return str(folder)


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("with_index", [False, True], ids=["no index", "B-tree"])
@pytest.mark.parametrize("has_deletions", [False, True], ids=["no deletions", "deletions"])
def test_opening_and_planning_take_as_many_calls_for_any_number_of_fragments(
    tmp_path: Path, is_stable: bool, with_index: bool, has_deletions: bool
) -> None:
    def of(n: int) -> int:
        uri = _dataset(tmp_path / f"{n}", n, is_stable, with_index, n if has_deletions else 0)

        def act() -> None:
            dataset = open_dataset(uri)
            scan = dataset.scan(["a"], "a >= 95", metadata=["_rowid", "_rowaddr"])
            effects = dict(scan.explain().effects)
            found = f"used for {n} of {n} fragments: 5 rows" if with_index else None
            assert effects.get("index 'a_idx'") == found
            assert dataset.count() == FRAGMENT_ROWS * n - n * has_deletions
            dataset.stats()
            dataset.fragments()
            plan_splits(dataset.files, 1 << 20)

        return calls(act)

    of(11)
    assert of(10) == of(10_000)


@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_of_an_index_take_as_many_calls_for_any_number_of_fragments(tmp_path: Path, is_stable: bool) -> None:
    def of(n: int) -> int:
        uri = _dataset(tmp_path / f"{n}", n, is_stable, True, n)
        (tmp_path / f"{n}" / "_deletions").mkdir()
        name = deletion_name(n - 1, 1, 3, 1)
        (tmp_path / f"{n}" / name).write_bytes(RowSet.from_positions(np.array([5])).to_roaring(32))

        def act() -> None:
            # other fragments have neither deletion files nor data files
            assert open_dataset(uri).count("a >= 93") == 6

        return calls(act)

    of(11)
    assert of(10) == of(10_000)
