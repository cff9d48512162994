"""DuckDB as the reader and writer of a Delta table's files; the kernel does the log, and all data passes as Arrow.

`read` returns the rows of a plan, `delete` deletes rows without rewriting files, `append` writes a file and commits it.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from delta_core.api import ScanFiles, Snapshot

#: The steps that `read` does itself; a plan with another one is rejected.
STEPS = {"deleted_rows", "partition_values", "column_names", "filter"}


def quoted(name: str) -> str:
    """Return a name as DuckDB quotes it."""
    return '"' + name.replace('"', '""') + '"'


def check(plan: ScanFiles, where: str | None) -> None:
    """Reject a plan that DuckDB would read wrongly."""
    left = sorted(set(plan.steps) - STEPS)
    if left or plan.match == "id":
        raise NotImplementedError(
            f"DuckDB does not do {', '.join(left) or 'matching by field ids'}: use plan.to_logical"
        )
    if "filter" in plan.steps and where is None:
        raise ValueError("the plan leaves a filter: pass the predicate of the scan as where, in DuckDB's SQL")
    if "column_names" in plan.steps and any(pa.types.is_nested(t) for t in plan.logical_schema.types):
        raise NotImplementedError("this reader does not rename fields of structs: use plan.to_logical")


def source(plan: ScanFiles, connection: duckdb.DuckDBPyConnection) -> str:
    """Return a query for the rows that are not deleted: columns under logical names, with ``path`` and ``position``."""
    files = pa.table(plan)
    deleted = plan.deleted_rows()
    parents = deleted.value_parent_indices()
    connection.register("files", files)
    connection.register(
        "deleted", pa.table({"place": files["local_path"].take(parents), "position": deleted.flatten()})
    )
    paths = "[" + ", ".join("'" + p.replace("'", "''") + "'" for p in files["local_path"].to_pylist()) + "]"
    scan = f"read_parquet({paths}, file_row_number=true, filename=true, union_by_name=true, hive_partitioning=false)"
    stored = set(connection.sql(f"SELECT * FROM {scan} LIMIT 0").columns)
    columns = [
        (f"d.{quoted(physical)}" if physical in stored else "NULL") + f" AS {quoted(logical)}"
        for physical, logical in zip(plan.physical_schema.names, plan.logical_schema.names, strict=True)
    ]
    if "partition_values" in files.column_names:
        names = [f.name for f in files.schema.field("partition_values").type]
        columns += [f"f.partition_values.{quoted(name)} AS {quoted(name)}" for name in names]
    return (
        f"SELECT {', '.join([*columns, 'f.path AS __path', 'd.file_row_number AS __position'])} FROM {scan} AS d "
        "JOIN files AS f ON f.local_path = d.filename "
        "ANTI JOIN deleted AS x ON x.place = d.filename AND x.position = d.file_row_number"
    )


def read(plan: ScanFiles, where: str | None = None) -> pa.Table:
    """Return the rows of a plan, in any order; ``where`` is the predicate of the scan in DuckDB's SQL."""
    check(plan, where)
    if not len(plan):
        return plan.schema.empty_table()
    names = ", ".join(quoted(name) for name in plan.schema.names)
    with duckdb.connect() as connection:
        query = f"SELECT {names} FROM ({source(plan, connection)}) WHERE {where or 'true'}"
        return pa.table(connection.sql(query)).cast(plan.schema)


def delete(snapshot: Snapshot, where: str) -> int:
    """Delete the rows that a condition is true of, and return the new version."""
    plan = snapshot.scan().plan_files()
    check(plan, where)
    transaction = snapshot.begin("DELETE", {"predicate": where})
    transaction.read(None)  # rows that land meanwhile may match, too
    with duckdb.connect() as connection:
        query = (
            f"SELECT __path AS path, list(__position) AS positions FROM ({source(plan, connection)}) WHERE {where} "
            "GROUP BY __path"
        )
        found = pa.table(connection.sql(query))
    if found.num_rows:
        transaction.remove_rows(found.select(["path"]), found["positions"].combine_chunks())
    return transaction.commit().version


def append(snapshot: Snapshot, rows: Any) -> int:
    """Write rows of a table without partitions to one file with DuckDB, commit it, and return the new version."""
    plan = snapshot.scan().plan_files()
    active = {name for name in snapshot.plugins.features if snapshot.state.is_active(name)}
    if snapshot.state.partition_columns or active - {"deletionVectors"}:
        raise NotImplementedError(f"this writer is for plain tables, not for {sorted(active)}: use write_deltalake")
    name = f"part-{uuid.uuid4()}.parquet"
    place = Path(snapshot.uri) / name
    with duckdb.connect() as connection:
        connection.register("given", rows)
        columns = ", ".join(quoted(c) for c in plan.schema.names)
        connection.execute(f"COPY (SELECT {columns} FROM given) TO '{place}' (FORMAT parquet)")
        calls = {"minValues": "min({})", "maxValues": "max({})", "nullCount": "count(*) - count({})"}
        parts = {
            kind: ", ".join(f"{quoted(c)} := {call.format(quoted(c))}" for c in plan.schema.names)
            for kind, call in calls.items()
        }
        packed = ", ".join(f"{kind} := struct_pack({values})" for kind, values in parts.items())
        stats = f"to_json(struct_pack(numRecords := count(*), {packed}))::VARCHAR"
        action = connection.sql(
            f"SELECT '{name}' AS path, map() AS \"partitionValues\", {place.stat().st_size} AS size, "
            f'{time.time_ns() // 1_000_000} AS "modificationTime", true AS "dataChange", {stats} AS stats FROM given'
        )
        transaction = snapshot.begin("WRITE", {"mode": "Append"})
        transaction.add_files(action)  # a relation is an Arrow stream
        return transaction.commit().version
