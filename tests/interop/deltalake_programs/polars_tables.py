"""Polars reads, writes and merges."""

import sys

import polars as pl
from deltalake import DeltaTable

root = sys.argv[1] + "/t"
rows = pl.DataFrame({"id": [1, 2, 3], "name": ["a", "b", None]})
rows.write_delta(root, delta_write_options={"configuration": {"delta.enableDeletionVectors": "true"}})
rows.write_delta(root, mode="append")
assert DeltaTable(root).version() == 1
assert pl.scan_delta(root).filter(pl.col("id") > 1).select("name").collect().height == 4
assert pl.read_delta(root, version=0).equals(rows)

changes = pl.DataFrame({"id": [3, 4], "name": ["c", "d"]})
merger = changes.write_delta(
    root, mode="merge", delta_merge_options={"predicate": "s.id = t.id", "source_alias": "s", "target_alias": "t"}
)
result = merger.when_matched_update_all().when_not_matched_insert_all().execute()
assert (result["num_target_rows_updated"], result["num_target_rows_inserted"]) == (2, 1)

table = DeltaTable(root)
table.delete("id = 1")
left = sorted(pl.read_delta(table).rows(), key=repr)
assert left == [(2, "b"), (2, "b"), (3, "c"), (3, "c"), (4, "d")], left
assert pl.scan_delta(table).select(pl.len()).collect().item() == 5

rows.lazy().with_columns(kind=pl.lit("x")).sink_delta(
    root, mode="overwrite", delta_write_options={"schema_mode": "overwrite"}
)
assert pl.read_delta(root).columns == ["id", "name", "kind"]
