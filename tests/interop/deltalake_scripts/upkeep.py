"""Compacts small files, orders them, deletes what is no longer needed, and writes a checkpoint."""

import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake

place = Path(sys.argv[1]) / "events"
for i in range(6):
    write_deltalake(place, pa.table({"id": [i, 100 - i], "kind": ["a", "b"]}), mode="append", partition_by="kind")
dt = DeltaTable(place)
assert len(dt.file_uris()) == 12
done = dt.optimize.compact(writer_properties=WriterProperties(compression="ZSTD"))
assert (done["numFilesAdded"], done["numFilesRemoved"]) == (2, 12)
assert dt.optimize.compact()["numFilesAdded"] == 0
done = dt.optimize.compact(partition_filters=[("kind", "=", "a")])
assert done["numFilesRemoved"] == 0
done = dt.optimize.z_order(["id"])
assert done["numFilesAdded"] == 2
assert dt.to_pyarrow_table().num_rows == 12
stale = dt.vacuum(retention_hours=0, enforce_retention_duration=False)
assert len(stale) == 14, stale
assert len(list(place.rglob("*.parquet"))) == 16
gone = dt.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
assert sorted(gone) == sorted(stale)
assert len(list(place.rglob("kind=*/*.parquet"))) == 2
dt.create_checkpoint()
assert (place / "_delta_log" / "_last_checkpoint").exists()
dt.cleanup_metadata()
assert DeltaTable(place).to_pyarrow_table().num_rows == 12
assert dt.history(1)[0]["operation"] in ("VACUUM END", "OPTIMIZE")
