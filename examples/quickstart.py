"""Make a small Delta table by hand, then read it: ``python examples/quickstart.py [FOLDER]``.

Nothing but PyArrow and a local folder is needed. The table has a partition column, three commits, and a row
deleted by a deletion vector, which is a reader feature: it is served by a plugin, as every table feature is.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable
from delta_core.kernels.roaring import encode_dv_payload, format_dv_block
from delta_core.kernels.row_set import RowSet

SCHEMA = {"type": "struct", "fields": [
    {"name": "city", "type": "string", "nullable": True, "metadata": {}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
    {"name": "celsius", "type": "double", "nullable": True, "metadata": {}},
]}  # fmt: skip
NOON = 1_700_000_000_000


def write_commit(table: Path, version: int, operation: str, *actions: dict[str, Any]) -> None:
    """Write one commit of the log: a line of JSON for each action."""
    info = {"commitInfo": {"timestamp": NOON + version * 60_000, "operation": operation}}
    lines = [json.dumps(action) for action in (info, *actions)]
    commit = table / "_delta_log" / f"{version:020}.json"
    commit.write_text("\n".join(lines) + "\n", encoding="utf-8")
    when = (NOON + version * 60_000) / 1000
    os.utime(commit, (when, when))  # time travel goes by the files' times


def add_file(table: Path, name: str, day: str, cities: list[str], celsius: list[float]) -> dict[str, Any]:
    """Write a data file of one day and return its ``add`` action."""
    (table / name).parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"city": cities, "celsius": celsius}), table / name)
    stats = {
        "numRecords": len(cities), "nullCount": {"city": 0, "celsius": 0},
        "minValues": {"city": min(cities), "celsius": min(celsius)},
        "maxValues": {"city": max(cities), "celsius": max(celsius)},
    }  # fmt: skip
    return {
        "path": name, "partitionValues": {"day": day}, "size": (table / name).stat().st_size,
        "modificationTime": NOON, "dataChange": True, "stats": json.dumps(stats),
    }  # fmt: skip


def delete_rows(table: Path, add: dict[str, Any], *positions: int) -> list[dict[str, Any]]:
    """Write a deletion vector for a file; return the actions that put it in place."""
    payload = encode_dv_payload(RowSet.from_positions(positions))
    file = table / "deleted.bin"
    file.write_bytes(b"\x01" + format_dv_block(payload))
    vector = {
        "storageType": "p", "pathOrInlineDv": file.resolve().as_uri(), "offset": 1,
        "sizeInBytes": len(payload), "cardinality": len(positions),
    }  # fmt: skip
    removed = {"path": add["path"], "deletionTimestamp": NOON, "dataChange": True}
    return [{"remove": removed}, {"add": add | {"deletionVector": vector}}]


def make_table(table: Path) -> None:
    """Write three commits: create with one file, append another, delete one row of the first."""
    (table / "_delta_log").mkdir(parents=True)
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": "c3a1d2b4-0000-4000-8000-000000000001", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA), "partitionColumns": ["day"], "createdTime": NOON,
        "configuration": {"delta.enableDeletionVectors": "true"},
    }  # fmt: skip
    monday = add_file(table, "day=2024-05-06/a.parquet", "2024-05-06", ["Oslo", "Rome", "Lima"], [9.5, 21.0, 18.25])
    tuesday = add_file(table, "day=2024-05-07/b.parquet", "2024-05-07", ["Oslo", "Rome"], [11.0, 22.5])
    write_commit(table, 0, "CREATE TABLE", {"protocol": protocol}, {"metaData": metadata}, {"add": monday})
    write_commit(table, 1, "WRITE", {"add": tuesday})
    write_commit(table, 2, "DELETE", *delete_rows(table, monday, 1))


def read_table(uri: str) -> None:
    """Read the table in the ways that most programs need."""
    table = DeltaTable(uri)
    print(f"version {table.version()}, {len(table.file_uris())} files, columns {[f.name for f in table.schema().fields]}")
    print("\nall rows (Rome of Monday is deleted):")
    for row in table.to_pyarrow_table().to_pylist():
        print("  ", row)

    scan = table.snapshot().scan(columns=["city", "celsius"], predicate="celsius > 10 and day = DATE '2024-05-07'")
    print(f"\nwarm on Tuesday, from {scan.files().num_rows} of {len(table.file_uris())} files:")
    for batch in scan.to_reader():
        for row in batch.to_pylist():
            print("  ", row)

    print(f"\nversion 0 had {DeltaTable(uri, version=0).to_pyarrow_table().num_rows} rows")
    for commit in table.history():
        print(f"  version {commit['version']}: {commit['operation']}")


def main() -> None:
    """Make the table in the folder given, or in a temporary one, and read it."""
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(sys.argv[1] if len(sys.argv) > 1 else scratch) / "weather"
        make_table(table)
        read_table(str(table))
        if len(sys.argv) > 1:
            print(f"\nNow try: delta-core head {table}")


if __name__ == "__main__":
    main()
