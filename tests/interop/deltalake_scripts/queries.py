"""SQL over tables, and the tables in other libraries."""

import sys

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

orders, customers = f"{sys.argv[1]}/orders", f"{sys.argv[1]}/customers"
write_deltalake(orders, pa.table({"customer": [1, 1, 2, 3], "amount": [5, 7, 11, 13]}))
write_deltalake(customers, pa.table({"id": [1, 2], "name": ["Ann", "Bo"]}))
query = QueryBuilder().register("orders", DeltaTable(orders)).register("customers", DeltaTable(customers))
text = """
    SELECT c.name, sum(o.amount) AS total FROM orders o JOIN customers c ON o.customer = c.id
    GROUP BY c.name ORDER BY c.name
"""
found = pa.table(query.execute(text).read_all())
assert found.to_pydict() == {"name": ["Ann", "Bo"], "total": [12, 11]}

frame = DeltaTable(orders).to_pandas(columns=["amount"], filters=[("customer", "in", [1, 3])])
assert sorted(frame["amount"]) == [5, 7, 13]
dataset = DeltaTable(orders).to_pyarrow_dataset()
assert dataset.count_rows() == 4
assert pa.table(DeltaTable(orders).to_pyarrow_table()).schema.names == ["customer", "amount"]
try:
    import duckdb
except ImportError:
    pass
else:
    assert duckdb.sql("SELECT max(amount) FROM dataset").fetchall() == [(13,)]
