"""Columns come and change: schema evolution, constraints, properties, comments."""

import sys

import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

place = f"{sys.argv[1]}/people"
write_deltalake(place, pa.table({"id": [1, 2], "name": ["Ann", "Bo"]}))
wider = pa.table({"id": [3], "name": ["Cy"], "age": [30]})
try:
    write_deltalake(place, wider, mode="append")
except Exception as e:
    assert "age" in str(e) or "schema" in str(e).lower(), e
else:
    raise AssertionError("a column that the table does not have")
write_deltalake(place, wider, mode="append", schema_mode="merge")
dt = DeltaTable(place)
assert [f.name for f in dt.schema().fields] == ["id", "name", "age"]
dt.alter.add_columns([Field("city", PrimitiveType("string"), metadata={"comment": "where they live"})])
dt.alter.add_constraint({"grown": "age is null or age >= 18"})
dt.alter.set_table_properties({"delta.logRetentionDuration": "interval 10 days"})
dt.alter.set_table_name("people")
dt.alter.set_table_description("who works here")
try:
    write_deltalake(dt, pa.table({"id": [4], "name": ["Di"], "age": [7], "city": ["Oslo"]}), mode="append")
except DeltaError:
    pass
else:
    raise AssertionError("a row that breaks the constraint")
dt = DeltaTable(place)
assert dt.to_pyarrow_table().num_rows == 3
assert dt.metadata().name == "people"
assert dt.metadata().description == "who works here"
assert dt.metadata().configuration["delta.constraints.grown"].lower() == "age is null or age >= 18"
assert pa.schema(dt.schema().to_arrow()).names == ["id", "name", "age", "city"]
dt.alter.drop_constraint("grown")
write_deltalake(dt, pa.table({"id": [4], "name": ["Di"], "age": [7], "city": ["Oslo"]}), mode="append")
write_deltalake(place, pa.table({"other": ["x"]}), mode="overwrite", schema_mode="overwrite")
assert DeltaTable(place).to_pyarrow_table().to_pydict() == {"other": ["x"]}
