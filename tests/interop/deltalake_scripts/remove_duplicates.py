"""Keeps the newest row of each key, and proves it by reading old versions."""

import sys

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

place = f"{sys.argv[1]}/readings"
write_deltalake(
    place, pa.table({"sensor": ["a", "b", "a", "c", "b"], "at": [1, 2, 3, 4, 5], "value": [1.5, 2.5, 3.5, 4.5, 5.5]})
)
dt = DeltaTable(place)
table = dt.to_pyarrow_table()
latest = table.group_by("sensor").aggregate([("at", "max")])
newest = {(r["sensor"], r["at_max"]) for r in latest.to_pylist()}
kept = table.filter(pa.array([(r["sensor"], r["at"]) in newest for r in table.to_pylist()]))
write_deltalake(place, kept, mode="overwrite")
dt.update_incremental()
assert dt.version() == 1
assert sorted(dt.to_pyarrow_table()["value"].to_pylist()) == [3.5, 4.5, 5.5]
dt.load_as_version(0)
assert pc.sum(dt.to_pyarrow_table()["at"]).as_py() == 15
assert DeltaTable(place, version=0).to_pyarrow_table().num_rows == 5
batches = list(dt.to_pyarrow_dataset().to_batches(columns=["at"], filter=pc.field("sensor") == "a"))
assert sum(b.num_rows for b in batches) == 2
