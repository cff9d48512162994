"""ibis writes and reads by its Polars backend."""

import sys

import ibis
from deltalake import DeltaTable

root = sys.argv[1] + "/t"
connection = ibis.polars.connect()
rows = connection.create_table("rows", ibis.memtable({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
connection.to_delta(rows, root)
connection.to_delta(rows, root, mode="append")
assert DeltaTable(root).version() == 1
table = connection.read_delta(root, table_name="t")
assert connection.execute(table.filter(table.id > 1).count()) == 4
