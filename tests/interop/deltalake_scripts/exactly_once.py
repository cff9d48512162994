"""A loader that may be started twice writes each batch once, and writers at the same time do not lose rows."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

place = f"{sys.argv[1]}/loads"
DeltaTable.create(place, schema=pa.schema([pa.field("batch", pa.int64())]), mode="ignore")
DeltaTable.create(place, schema=pa.schema([pa.field("batch", pa.int64())]), mode="ignore")


def load(batch: int) -> None:
    done = DeltaTable(place).transaction_version("loader")
    if done is not None and done >= batch:
        return
    properties = CommitProperties(app_transactions=[Transaction("loader", batch)])
    write_deltalake(place, pa.table({"batch": [batch]}), mode="append", commit_properties=properties)


for batch in (1, 2, 2, 1, 3):
    load(batch)
assert sorted(DeltaTable(place).to_pyarrow_table()["batch"].to_pylist()) == [1, 2, 3]
assert DeltaTable(place).transaction_version("loader") == 3
assert DeltaTable(place).transaction_version("other") is None


def append(i: int) -> None:
    write_deltalake(place, pa.table({"batch": [100 + i]}), mode="append")


with ThreadPoolExecutor(4) as pool:
    list(pool.map(append, range(8)))
dt = DeltaTable(place)
assert sorted(dt.to_pyarrow_table()["batch"].to_pylist()) == [1, 2, 3, *range(100, 108)]
assert issubclass(CommitFailedError, DeltaError)

stale = DeltaTable(place)
DeltaTable(place).delete("batch = 1")
try:
    stale.delete("batch = 1")
except CommitFailedError:
    pass
assert 1 not in DeltaTable(place).to_pyarrow_table()["batch"].to_pylist()
