"""Make a small Delta table and read it: ``python examples/quickstart.py [FOLDER]``.

Nothing but PyArrow and a local folder is needed. The table has a partition column, three commits, and a row that was
deleted.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import date
from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake

MONDAY, TUESDAY = date(2024, 5, 6), date(2024, 5, 7)


def measurements(day: date, celsius: dict[str, float]) -> pa.Table:
    """Return one day's rows."""
    return pa.table({"city": list(celsius), "day": [day] * len(celsius), "celsius": list(celsius.values())})


def make_table(uri: str) -> None:
    """Write three commits: one creates the table, one appends, one deletes a row."""
    write_deltalake(uri, measurements(MONDAY, {"Oslo": 9.5, "Rome": 21.0, "Lima": 18.25}), partition_by=["day"])
    write_deltalake(uri, measurements(TUESDAY, {"Oslo": 11.0, "Rome": 22.5}), mode="append")

    table = DeltaTable(uri)
    no_rows = table.schema().to_arrow().empty_table()
    write_deltalake(table, no_rows, mode="overwrite", predicate="city = 'Rome' and day = '2024-05-06'")


def read_table(uri: str) -> None:
    """Read the table in the ways that most programs need."""
    table = DeltaTable(uri)
    print(
        f"version {table.version()}, {len(table.file_uris())} files, columns {[f.name for f in table.schema().fields]}"
    )
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
    """Make the table in the folder that was given, or in a temporary one, and read it."""
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(sys.argv[1] if len(sys.argv) > 1 else scratch) / "weather"
        make_table(str(table))
        read_table(str(table))
        if len(sys.argv) > 1:
            print(f"\nNow try: delta-core head {table}")


if __name__ == "__main__":
    main()
