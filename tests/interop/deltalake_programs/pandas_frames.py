"""pandas: each back end of data types, and rows that are written from a frame."""

import sys

import pandas as pd
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

root = sys.argv[1] + "/t"
try:
    DeltaTable(root)
except TableNotFoundError as e:
    error = e
assert isinstance(error, DeltaError)
frame = pd.DataFrame({"id": [1, 2], "name": ["a", None]})
write_deltalake(root, frame, writer_properties=WriterProperties(compression="ZSTD"))
table = DeltaTable(root)
for mapper in (None, pd.ArrowDtype, {}):
    kwargs = {"types_mapper": mapper} if callable(mapper) else {}
    found = table.to_pandas(**kwargs)
    assert found["id"].tolist() == [1, 2]
assert str(table.to_pandas(types_mapper=pd.ArrowDtype)["id"].dtype) == "int64[pyarrow]"
assert table.to_pandas(partitions=None, columns=["name"]).columns.tolist() == ["name"]
table.update(updates={"name": "'z'"}, predicate="id = 2")
assert table.to_pandas().sort_values("id")["name"].tolist() == ["a", "z"]
assert next(h["operation"] for h in table.history()) == "UPDATE"
