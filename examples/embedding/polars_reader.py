"""Polars as the reader of a Delta table's files; the kernel does the log, and all data passes as Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

if TYPE_CHECKING:
    from delta_core.api import ScanFiles, Snapshot

#: The steps that `read` does itself; a plan with another one is rejected.
STEPS = {"deleted_rows", "partition_values", "column_names", "filter"}
ROW = "__row"


def scan(plan: ScanFiles, where: pl.Expr | None = None) -> pl.LazyFrame:
    """Return the rows of a plan as a lazy frame; ``where`` is the predicate of the scan."""
    left = sorted(set(plan.steps) - STEPS)
    if left or plan.match == "id":
        raise NotImplementedError(
            f"Polars does not do {', '.join(left) or 'matching by field ids'}: use plan.to_logical"
        )
    if "filter" in plan.steps and where is None:
        raise ValueError("the plan leaves a filter: pass the predicate of the scan as where")
    target = pl.from_arrow(plan.schema.empty_table()).schema
    if "column_names" in plan.steps and any(t.is_nested() for t in target.values()):
        raise NotImplementedError("Polars does not rename fields of structs: use plan.to_logical")
    frames = [_file(file, where).select(target.names()).cast(dict(target)) for file in plan]
    return pl.concat(frames) if frames else pl.LazyFrame(schema=target)


def _file(file: ScanFiles, where: pl.Expr | None) -> pl.LazyFrame:
    (facts,) = file.files.to_pylist()
    frame = pl.scan_parquet(facts["local_path"], row_index_name=ROW, hive_partitioning=False)
    if "deleted_rows" in file.steps:
        deleted = pl.Series(file.deleted_rows()).explode()  # an Arrow array, taken over without a copy
        frame = frame.filter(~pl.col(ROW).cast(pl.Int64).is_in(deleted.implode()))
    stored = frame.collect_schema().names()
    pairs = zip(file.physical_schema, file.logical_schema.names, strict=True)
    columns = [
        pl.col(f.name).alias(logical) if f.name in stored else pl.lit(None).alias(logical) for f, logical in pairs
    ]
    values = facts.get("partition_values") or {}
    frame = frame.select(pl.col(ROW), *columns, *(pl.lit(value).alias(name) for name, value in values.items()))
    return frame if where is None else frame.filter(where)


def delete(snapshot: Snapshot, where: pl.Expr) -> int:
    """Delete the rows that a condition is true of, and return the new version."""
    plan = snapshot.scan().plan_files()
    transaction = snapshot.begin("DELETE", {"predicate": str(where)})
    transaction.read(None)  # rows that land meanwhile may match, too
    for file in plan:
        found = _file(file, where).select(pl.col(ROW).cast(pl.Int64)).collect()[ROW]
        if len(found):
            transaction.remove_rows(file.files["path"][0].as_py(), pa.array(found))
    return transaction.commit().version
