"""Appends a day's orders to a partitioned table, and reports what the table holds."""

import sys
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

table = Path(sys.argv[1]) / "orders"
first = date(2026, 3, 1)
for i in range(4):
    day = first + timedelta(days=i)
    orders = pa.table({"order": [10 * i, 10 * i + 1], "day": [day, day], "amount": [5.0 + i, None]})
    write_deltalake(
        table,
        orders,
        mode="append",
        partition_by=["day"],
        name="orders",
        description="one row an order",
        commit_properties=CommitProperties(custom_metadata={"job": f"load {day}"}),
    )

# a day is loaded again
again = pa.table({"order": [20, 21, 22], "day": [first + timedelta(days=2)] * 3, "amount": [1.0, 2.0, 3.0]})
write_deltalake(table, again, mode="overwrite", predicate="day = '2026-03-03'")

dt = DeltaTable(table)
assert dt.version() == 4
assert dt.metadata().name == "orders"
assert dt.metadata().partition_columns == ["day"]
assert len(dt.file_uris()) == 4
assert len(dt.file_uris(partition_filters=[("day", ">=", "2026-03-03")])) == 2
assert sorted(p["day"] for p in dt.partitions()) == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
assert [h["operation"] for h in dt.history()] == ["WRITE"] * 5
assert [h["job"] for h in dt.history() if "job" in h] == [f"load 2026-03-0{i}" for i in (4, 3, 2, 1)]
frame = dt.to_pandas(partitions=[("day", "=", "2026-03-03")], columns=["order", "amount"])
assert frame.sort_values("order")["amount"].tolist() == [1.0, 2.0, 3.0]
assert dt.to_pyarrow_table(filters=[("amount", ">", 5.5)]).num_rows == 2
