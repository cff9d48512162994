"""Reads the change data feed and applies it to a copy."""

import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

place, copy = f"{sys.argv[1]}/accounts", f"{sys.argv[1]}/copy"
first = pa.table({"id": [1, 2, 3], "balance": [10, 20, 30]})
write_deltalake(place, first, configuration={"delta.enableChangeDataFeed": "true"})
write_deltalake(copy, first)
dt = DeltaTable(place)
dt.update({"balance": "balance + 1"}, predicate="id = 2")
dt.delete("id = 1")
write_deltalake(dt, pa.table({"id": [4], "balance": [40]}), mode="append")

changes = pa.table(dt.load_cdf(starting_version=1, ending_version=3).read_all()).to_pylist()
kinds = sorted(c["_change_type"] for c in changes)
assert kinds == ["delete", "insert", "update_postimage", "update_preimage"], kinds
assert sorted({c["_commit_version"] for c in changes}) == [1, 2, 3]
gone = pa.table({"id": [c["id"] for c in changes if c["_change_type"] == "delete"]})
kept = [c for c in changes if c["_change_type"] in ("insert", "update_postimage")]
news = pa.table({name: [c[name] for c in kept] for name in ("id", "balance")})
DeltaTable(copy).merge(gone, "t.id = s.id", "s", "t").when_matched_delete().execute()
(
    DeltaTable(copy)
    .merge(news, "t.id = s.id", "s", "t")
    .when_matched_update_all()
    .when_not_matched_insert_all()
    .execute()
)
both = [DeltaTable(p).to_pyarrow_table().sort_by("id").to_pydict() for p in (place, copy)]
assert both[0] == both[1] == {"id": [2, 3, 4], "balance": [21, 30, 40]}
