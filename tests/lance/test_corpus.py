"""Each version of the recorded datasets has the rows, the row ids and the addresses that its record has."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import DeltaError
from delta_plugins.lance.format import open_dataset
from tests.example_counts import IS_LONG
from tests.lance.recorded_files import FOLDER, datasets, expected, records

#: pylance rejects the 16-bit chunk words of this one, which are readable.
READABLE = {("1.0.4--blob-2.2", "1")}


def chosen_versions(found: dict[str, Any]) -> list[str]:
    """Return the latest version, which has most of what a dataset has; in the long form all of them."""
    ordered = sorted(found, key=int)
    return ordered if IS_LONG else ordered[-1:]


def check_version(name: str, version: str, record: dict[str, Any], digests: Any) -> None:
    assert FOLDER is not None
    uri = str(FOLDER / name)
    if "error" in record and (name, version) not in READABLE:
        with pytest.raises(DeltaError):
            open_dataset(uri, version=int(version)).to_pyarrow_table()
        return
    dataset = open_dataset(uri, version=int(version))
    table = dataset.to_pyarrow_table()
    if "digest" not in record:
        return
    assert table.num_rows == record["rows"] == dataset.count()
    assert len(dataset.fragments()) == record["fragments"]
    assert digests.schema_text(table.schema) == record["schema"]
    assert digests.sha(sorted(digests.rows(table))) == record["digest"]
    scan = dataset.scan([], metadata=["_rowid", "_rowaddr"])
    if "rowid_error" in record:
        with pytest.raises(DeltaError):
            scan.to_table()
    else:
        assert _digest(scan.to_table(), digests) == record["rowid_rowaddr_digest"]


def _digest(table: pa.Table, digests: Any) -> str:
    pairs = zip(table["_rowid"].to_pylist(), table["_rowaddr"].to_pylist(), strict=True)
    found: str = digests.sha(sorted(json.dumps(p) for p in pairs))
    return found


@pytest.mark.golden
@pytest.mark.parametrize("name", datasets())
def test_versions_have_the_recorded_rows(name: str) -> None:
    found = records(name)
    for version in chosen_versions(found):
        check_version(name, version, found[version], expected())
