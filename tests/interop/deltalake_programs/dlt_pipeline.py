"""dlt appends to, replaces and merges into tables of its filesystem destination."""

import os
import sys

import dlt

root = sys.argv[1]
os.environ["DESTINATION__FILESYSTEM__BUCKET_URL"] = f"{root}/lake"
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
pipeline = dlt.pipeline("people", destination="filesystem", dataset_name="data", pipelines_dir=f"{root}/work")


@dlt.resource(table_format="delta", write_disposition="append")
def people(count):
    yield [{"id": i, "name": f"n{i}"} for i in range(count)]


@dlt.resource(table_format="delta", write_disposition={"disposition": "merge", "strategy": "upsert"}, primary_key="id")
def staff(rows):
    yield rows


def rows_of(name):
    from dlt.common.libs.deltalake import get_delta_tables

    return get_delta_tables(pipeline)[name].to_pyarrow_table().to_pylist()


pipeline.run(people(3))
pipeline.run(people(2))
assert sorted(r["id"] for r in rows_of("people")) == [0, 0, 1, 1, 2]
pipeline.run(people(1), write_disposition="replace")
assert [r["id"] for r in rows_of("people")] == [0]

pipeline.run(staff([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]))
pipeline.run(staff([{"id": 2, "name": "c"}, {"id": 3, "name": "d", "age": 1}]))
assert sorted((r["id"], r["name"], r["age"]) for r in rows_of("staff")) == [(1, "a", None), (2, "c", None), (3, "d", 1)]
