"""Dask writes files itself, commits them, and reads by the files' URIs."""

import sys
from pathlib import Path

import dask.dataframe as dd
import dask_deltatable as ddt
import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("x", pa.float64())])
root, by_city = sys.argv[1] + "/t", sys.argv[1] + "/by-city"
for folder in (root, by_city):
    Path(folder).mkdir()
rows = pd.DataFrame({"id": range(10), "city": ["Oslo", "Rome"] * 5, "x": [i / 4 for i in range(10)]})
parts = dd.from_pandas(rows, npartitions=2)
ddt.to_deltalake(root, parts, compute=True)
ddt.to_deltalake(root, parts, mode="append", compute=True)
assert DeltaTable(root).version() == 1
assert sorted(ddt.read_deltalake(root).compute()["id"]) == sorted([*range(10)] * 2)
assert len(ddt.read_deltalake(root, version=0).compute()) == 10

ddt.to_deltalake(by_city, parts, partition_by=["city"], schema=SCHEMA, compute=True)
assert DeltaTable(by_city).metadata().partition_columns == ["city"]
assert len(ddt.read_deltalake(by_city, filter=[("city", "=", "Oslo")]).compute()) == 5
