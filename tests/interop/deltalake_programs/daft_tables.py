"""Daft writes files itself, commits them, and reads by the actions of files."""

import sys

import daft
from deltalake import DeltaTable

root = sys.argv[1] + "/t"
rows = daft.from_pydict({"id": [1, 2, 3], "name": ["a", "b", None]})
rows.write_deltalake(root)
rows.write_deltalake(root, mode="append")
assert DeltaTable(root).version() == 1
assert sorted(daft.read_deltalake(root).where(daft.col("id") > 1).to_pydict()["id"]) == [2, 2, 3, 3]
rows.write_deltalake(root, mode="overwrite")
assert daft.read_deltalake(root).count_rows() == 3
assert daft.read_deltalake(root, version=1).count_rows() == 6
rows.write_deltalake(DeltaTable(root), mode="append")
assert daft.read_deltalake(root).count_rows() == 6
rows.write_deltalake(root + "-by-name", partition_cols=["name"])
assert daft.read_deltalake(root + "-by-name").where(daft.col("name") == "b").to_pydict()["id"] == [2]
