"""Deletes and updates by mistake, looks at the history and restores the table."""

import sys
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

place = f"{sys.argv[1]}/stock"
write_deltalake(place, pa.table({"item": ["nut", "bolt", "gear"], "count": [10, 20, 30]}))
dt = DeltaTable(place)
before = datetime.now(UTC)
deleted = dt.delete("count >= 20")
assert deleted["num_deleted_rows"] == 2
updated = dt.update(updates={"count": "count * 2"}, predicate="item = 'nut'")
assert updated["num_updated_rows"] == 1
updated = dt.update(new_values={"item": "screw"})
assert dt.to_pyarrow_table().to_pylist() == [{"item": "screw", "count": 20}]
assert [h["operation"] for h in dt.history()] == ["UPDATE", "UPDATE", "DELETE", "WRITE"]
assert [h["version"] for h in dt.history(limit=2)] == [3, 2]
done = dt.restore(0)
assert done["numRestoredFile"] == 1
assert dt.version() == 4
assert dt.to_pyarrow_table().num_rows == 3
dt.load_as_version(before.isoformat())
assert dt.version() == 0
for call in (lambda: dt.load_as_version(99), lambda: DeltaTable(place, version=99)):
    try:
        call()
    except DeltaError:
        pass
    else:
        raise AssertionError("a version that is not there")
try:
    DeltaTable(f"{sys.argv[1]}/nothing")
except TableNotFoundError:
    pass
assert not DeltaTable.is_deltatable(f"{sys.argv[1]}/nothing")
