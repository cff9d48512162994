"""Datasets with blobs of the extension type: small limits of the kinds, and what two libraries read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_plugins.lance import open_dataset

__all__ = ["EXTENSION", "LIMITS", "check_blobs", "limited_field"]

EXTENSION = {"ARROW:extension:name": "lance.blob.v2"}
#: Limits of the kinds that are small enough for quick tests.
LIMITS = {
    "lance-encoding:blob-inline-size-threshold": "10",
    "lance-encoding:blob-dedicated-size-threshold": "100",
    "lance-encoding:blob-pack-file-size-threshold": "150",
}


def limited_field(name: str, of: Any, nullable: bool = True) -> pa.Field:
    """Return a column of blobs with these limits."""
    return pa.field(name, of, nullable, EXTENSION | LIMITS)


def check_blobs(where: str, expected: dict[int, bytes | None], column: str = "photo") -> None:
    """Compare the blobs of each id, as bytes and as files, and as pylance reads them."""
    dataset = open_dataset(where)
    table = dataset.to_pyarrow_table(["id", column], blobs="bytes")
    ids = table.column("id").to_pylist()
    found = table.column(column.partition(".")[0]).to_pylist()
    for name in column.split(".")[1:]:
        found = [None if v is None else v[name] for v in found]
    assert dict(zip(ids, found, strict=True)) == expected
    assert len(ids) == len(expected)
    few = [*range(min(len(ids), 50))]
    files = dataset.take_blobs(column, few)
    assert [None if f is None else f.readall() for f in files] == [expected[i] for i in ids[:50]]
    assert not dataset.verify().findings
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    theirs = lance.dataset(where)
    theirs.validate()
    assert theirs.to_table(columns=["id"]).column("id").to_pylist() == ids
    assert theirs.to_table().to_pylist() == dataset.to_pyarrow_table().to_pylist()
    found = theirs.take_blobs(column, indices=few)
    assert [None if f is None else f.readall() for f in found] == [expected[i] for i in ids[:50]]
