"""Makes tables of Parquet files that are there, and looks at what the log states of each file."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, convert_to_deltalake
from deltalake.transaction import AddAction, create_table_with_add_actions

folder = Path(sys.argv[1]) / "raw"
rows = pa.table({"year": [2024, 2024, 2025], "value": [1.0, None, 3.0]})
ds.write_dataset(
    rows, folder, format="parquet", partitioning=ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive")
)
convert_to_deltalake(
    folder, partition_by=Schema.from_arrow(pa.schema([("year", pa.int32())])), partition_strategy="hive", name="raw"
)
dt = DeltaTable(folder)
assert dt.version() == 0
assert dt.to_pyarrow_table().num_rows == 3
assert dt.metadata().partition_columns == ["year"]
actions = pa.table(dt.get_add_actions(flatten=True))
assert actions.num_rows == 2
assert {"path", "size_bytes", "modification_time", "partition.year"} <= set(actions.column_names)

other = Path(sys.argv[1]) / "written"
other.mkdir()
pq.write_table(pa.table({"value": [1.0, 2.0]}), other / "one.parquet")
size = os.path.getsize(other / "one.parquet")
stats = json.dumps(
    {"numRecords": 2, "minValues": {"value": 1.0}, "maxValues": {"value": 2.0}, "nullCount": {"value": 0}}
)
create_table_with_add_actions(
    str(other),
    Schema.from_arrow(pa.schema([("value", pa.float64())])),
    [AddAction("one.parquet", size, {}, 0, True, stats)],
)
dt = DeltaTable(other)
assert dt.to_pyarrow_table()["value"].to_pylist() == [1.0, 2.0]
pq.write_table(pa.table({"value": [3.0]}), other / "two.parquet")
action = AddAction("two.parquet", os.path.getsize(other / "two.parquet"), {}, 0, True, json.dumps({"numRecords": 1}))
dt.create_write_transaction([action], mode="append", schema=dt.schema(), partition_by=[])
assert sorted(DeltaTable(other).to_pyarrow_table()["value"].to_pylist()) == [1.0, 2.0, 3.0]
