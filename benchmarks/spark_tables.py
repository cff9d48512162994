"""Generators of the tables that the cases of Spark read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.columns import ROWS_PER_FILE, SCHEMA_STRING, FileNumbers, add_columns
from benchmarks.spark_cases import DAY
from benchmarks.tables import (
    CHECKPOINT_GROUP,
    GENERATORS,
    PROTOCOL,
    VECTOR_PROTOCOL,
    Sizes,
    checkpoint_group,
    checkpoint_schema,
    data_add,
    make_many_files,
    metadata,
    table_path,
    write_commit,
    write_vectors,
)
from benchmarks.tpch import make_tpch

__all__ = ["SPARK_GENERATORS", "spark_table"]

FILES = 20
SEVEN = (
    ("id", "long"),
    ("amount", "double"),
    ("quantity", "integer"),
    ("category", "string"),
    ("name", "string"),
    ("day", "date"),
    ("moment", "timestamp"),
)


def spark_table(root: Path, name: str, sizes: Sizes) -> Path:
    """Return the folder of a table, making it first if it is not there whole."""
    return table_path(root, name, sizes, {**GENERATORS, **SPARK_GENERATORS})


def _schema_string(fields: tuple[tuple[str, str], ...]) -> str:
    listed = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]
    return json.dumps({"type": "struct", "fields": listed})


def _seven_columns(first_id: int, rows: int) -> pa.Table:
    random = np.random.default_rng(first_id)
    ids = np.arange(first_id, first_id + rows)
    category = pa.DictionaryArray.from_arrays(
        pa.array(random.integers(0, 500, rows, np.int32)), pa.array([f"category-{i:04}" for i in range(500)])
    )
    return pa.table(
        {
            "id": ids,
            "amount": random.random(rows).round(4),
            "quantity": random.integers(0, 1_000, rows, np.int32),
            "category": category.cast(pa.string()),
            "name": pc.binary_join_element_wise(
                "user-", pc.cast(pa.array(random.integers(0, rows, rows)), pa.string()), ""
            ),
            "day": pa.array(19_000 + random.integers(0, 1_000, rows, np.int32), pa.date32()),
            "moment": pa.array(1_700_000_000_000_000 + ids * 1_000, pa.timestamp("us", "UTC")),
        }
    )


def make_rows(table: Path, sizes: Sizes) -> None:
    """10,000,000 rows of seven columns in 20 files."""
    rows = sizes.of(10_000_000, 20_000) // FILES
    adds = []
    for i in range(FILES):
        file = table / f"part-{i:05}.snappy.parquet"
        pq.write_table(_seven_columns(i * rows, rows), file, compression="snappy")
        adds.append(data_add(file, i * rows, rows))
    write_commit(table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(_schema_string(SEVEN))}, *adds])


def _marked(share: float) -> Callable[[Path, Sizes], None]:
    def make(table: Path, sizes: Sizes) -> None:
        source = spark_table(table.parent, "spark-rows", sizes)
        rows = sizes.of(10_000_000, 20_000) // FILES
        random = np.random.default_rng(5)
        dropped = [np.sort(random.choice(rows, int(rows * share), replace=False)) for _ in range(FILES)]
        adds = []
        for i, vector in enumerate(write_vectors(table, dropped, FILES)):
            file = table / f"part-{i:05}.snappy.parquet"
            os.link(source / file.name, file)
            adds.append(data_add(file, i * rows, rows, vector))
        configuration = {"delta.enableDeletionVectors": "true"}
        start = [{"protocol": VECTOR_PROTOCOL}, {"metaData": metadata(_schema_string(SEVEN), **configuration)}]
        write_commit(table, 0, [*start, *adds])

    make.__doc__ = f"The same files, {share:.0%} of the rows of each deleted by a vector."
    return make


def make_with_vectors(table: Path, sizes: Sizes) -> None:
    """The same files in a table with deletion vectors enabled, none of whose rows are deleted."""
    source = spark_table(table.parent, "spark-rows", sizes)
    rows = sizes.of(10_000_000, 20_000) // FILES
    adds = []
    for i in range(FILES):
        file = table / f"part-{i:05}.snappy.parquet"
        os.link(source / file.name, file)
        adds.append(data_add(file, i * rows, rows))
    configuration = {"delta.enableDeletionVectors": "true"}
    start = [{"protocol": VECTOR_PROTOCOL}, {"metaData": metadata(_schema_string(SEVEN), **configuration)}]
    write_commit(table, 0, [*start, *adds])


def make_lance(table: Path, sizes: Sizes) -> None:
    """The same rows as one Lance dataset, and as plain Parquet files; written by pylance and PyArrow."""
    import lance

    rows = sizes.of(10_000_000, 20_000) // FILES
    (table / "parquet").mkdir(parents=True)
    for i in range(FILES):
        part = _seven_columns(i * rows, rows)
        pq.write_table(part, table / "parquet" / f"part-{i:05}.snappy.parquet", compression="snappy")
        lance.write_dataset(part, str(table / "lance"), mode="append" if i else "create")


def make_small_files(table: Path, sizes: Sizes) -> None:
    """10,000 files of 10 rows, ids ascending."""
    adds = []
    for i in range(sizes.of(10_000, 200)):
        file = table / f"part-{i:05}.snappy.parquet"
        pq.write_table(_seven_columns(i * 10, 10), file, compression="snappy")
        adds.append(data_add(file, i * 10, 10))
    write_commit(table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(_schema_string(SEVEN))}, *adds])


def make_commits(table: Path, sizes: Sizes) -> None:
    """1,000 commits, each of which appends a file of 10 rows."""
    start = [{"protocol": PROTOCOL}, {"metaData": metadata(_schema_string(SEVEN))}]
    for i in range(sizes.of(1_000, 20)):
        file = table / f"part-{i:05}.snappy.parquet"
        pq.write_table(_seven_columns(i * 10, 10), file, compression="snappy")
        write_commit(table, i, [*(start if i == 0 else []), data_add(file, i * 10, 10)])


def make_hundred_thousand(table: Path, sizes: Sizes) -> None:
    """100,000 files in a checkpoint, 1,000 partitions; the files of one exist."""
    count = sizes.of(100_000, 20_000)
    first = table / "one.parquet"
    rows = pa.table(
        {
            "id": np.arange(ROWS_PER_FILE),
            "ts": pa.nulls(ROWS_PER_FILE, pa.timestamp("us", "UTC")),
            "amount": np.zeros(ROWS_PER_FILE),
            "name": pa.nulls(ROWS_PER_FILE, pa.string()),
        }
    )
    pq.write_table(rows, first)
    info = {"metaData": metadata(SCHEMA_STRING, ["event_date"]), "protocol": PROTOCOL}
    write_commit(table, 0, [{k: v} for k, v in info.items()])
    info["metaData"] |= {"configuration": [], "format": {"provider": "parquet", "options": []}}
    ranks = np.random.default_rng(7).permutation(count).astype(np.int64)
    writer: pq.ParquetWriter | None = None
    for start in range(0, count, CHECKPOINT_GROUP):
        adds = _with_true_sizes(add_columns(FileNumbers(ranks[start : start + CHECKPOINT_GROUP], start), False), first)
        schema = checkpoint_schema(adds.type)
        if writer is None:
            writer = pq.ParquetWriter(
                table / "_delta_log" / f"{0:020}.checkpoint.parquet", schema, compression="snappy"
            )
        writer.write_table(checkpoint_group(adds, {}, schema), row_group_size=CHECKPOINT_GROUP)
    assert writer is not None
    writer.write_table(checkpoint_group(None, info, schema))
    writer.close()
    (table / "_delta_log" / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": count + 2}))


def _with_true_sizes(adds: pa.StructArray, first: Path) -> pa.StructArray:
    """Lay one file at each path of the requested partition, and specify its size."""
    places = pc.starts_with(adds.field("path"), f"event_date={DAY}/")
    for path in adds.field("path").filter(places).to_pylist():
        target = first.parent / path
        target.parent.mkdir(exist_ok=True)
        os.link(first, target)
    sizes = pc.if_else(places, first.stat().st_size, adds.field("size"))
    columns = [sizes if f.name == "size" else adds.field(f.name) for f in adds.type]
    return pa.StructArray.from_arrays(columns, fields=list(adds.type))


def make_four_million(table: Path, sizes: Sizes) -> None:
    """4,000,000 files in a checkpoint of four parts, 20 commits of 500 adds and 500 removes after it."""
    make_many_files(table, sizes.of(4_000_000, 40_000), struct_stats=False, tail=20, churn=500, parts=4)


SPARK_GENERATORS: dict[str, Callable[[Path, Sizes], None]] = {
    "spark-rows": make_rows,
    "spark-rows-vectors": make_with_vectors,
    "spark-rows-1": _marked(0.01),
    "spark-rows-10": _marked(0.1),
    "spark-lance": make_lance,
    "spark-small-files": make_small_files,
    "spark-commits": make_commits,
    "hundred-thousand": make_hundred_thousand,
    "four-million": make_four_million,
    "tpch": make_tpch,
}
