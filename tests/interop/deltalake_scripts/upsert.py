"""Merges changed customers into a table: updates, inserts, and deletes those that the source no longer has."""

import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

place = f"{sys.argv[1]}/customers"
write_deltalake(place, pa.table({"id": [1, 2, 3, 4], "city": ["Oslo", "Rome", "Lima", "Bonn"], "visits": [1, 2, 3, 4]}))
news = pa.table({"id": [2, 3, 5], "city": ["Roma", None, "Kyiv"], "visits": [20, 30, 50]})

dt = DeltaTable(place)
metrics = (
    dt.merge(news, predicate="t.id = s.id", source_alias="s", target_alias="t")
    .when_matched_update(updates={"city": "s.city", "visits": "t.visits + s.visits"}, predicate="s.city is not null")
    .when_matched_delete(predicate="s.city is null")
    .when_not_matched_insert_all()
    .when_not_matched_by_source_delete(predicate="t.visits >= 4")
    .execute()
)
assert metrics["num_target_rows_updated"] == 1
assert metrics["num_target_rows_inserted"] == 1
assert metrics["num_target_rows_deleted"] == 2
rows = dt.to_pyarrow_table().sort_by("id").to_pydict()
assert rows == {"id": [1, 2, 5], "city": ["Oslo", "Roma", "Kyiv"], "visits": [1, 22, 50]}
assert dt.history(1)[0]["operation"] == "MERGE"

# the same source again changes the rows that match only
dt.merge(news.slice(0, 1), "t.id = s.id", "s", "t").when_matched_update_all().execute()
assert dt.to_pyarrow_table(filters=[("id", "=", 2)]).to_pydict()["visits"] == [20]
