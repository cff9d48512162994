"""Generators of the tables that the cases read; each is made once and kept in a folder outside git."""

from __future__ import annotations

import json
import os
import shutil
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.change_tables import CHANGE_GENERATORS
from benchmarks.columns import SCHEMA_STRING, FileNumbers, add_columns, partition_values, paths, stats_json
from benchmarks.sizes import Sizes
from benchmarks.upkeep_tables import UPKEEP_GENERATORS
from delta_core.testing.vector_bytes import encode_vector_file, vector_path

__all__ = ["GENERATORS", "table_path"]

MILLIS = 1_700_000_000_000
CHECKPOINT_GROUP = 131_072
_MAP = pa.map_(pa.string(), pa.string())
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
VECTOR_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors"],
}


Generators = Mapping[str, Callable[[Path, Sizes], None]]


def table_path(root: Path, name: str, sizes: Sizes, generators: Generators | None = None) -> Path:
    """Return the folder of a table, making it first if it is not there whole."""
    target = root / f"{name}-{sizes.scale:g}"
    if not target.exists():
        building = root / f"{target.name}.building"
        shutil.rmtree(building, ignore_errors=True)
        (building / "_delta_log").mkdir(parents=True)
        (generators or GENERATORS)[name](building, sizes)
        building.rename(target)
    return target


def metadata(schema: str, partitions: Iterable[str] = (), **configuration: str) -> dict[str, Any]:
    """Return a ``metaData`` action's value."""
    return {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partitions),
        "configuration": configuration,
        "createdTime": MILLIS,
    }


def write_commit(table: Path, version: int, actions: Iterable[dict[str, Any]], lines: Iterable[str] = ()) -> None:
    """Write one commit: its commitInfo, then the actions, then lines that are JSON already."""
    info = {"commitInfo": {"timestamp": MILLIS + version, "operation": "WRITE", "operationParameters": {}}}
    text = [json.dumps(a, separators=(",", ":")) for a in (info, *actions)]
    body = "\n".join([*text, *lines]) + "\n"
    (table / "_delta_log" / f"{version:020}.json").write_text(body, encoding="utf-8")


def add_lines(files: FileNumbers) -> list[str]:
    """Return the JSON lines of ``add`` actions for made-up files."""
    stats = pc.replace_substring(stats_json(files), '"', '\\"')
    day = partition_values(files).items
    lines = pc.binary_join_element_wise(
        '{"add":{"path":"',
        paths(files),
        '","partitionValues":{"event_date":"',
        day,
        '"},"size":21000000,"modificationTime":1700000000000,"dataChange":true,"stats":"',
        stats,
        '"}}',
        "",
    )
    return lines.to_pylist()


# --- a million files in one checkpoint -------------------------------------------------------------------


def checkpoint_group(adds: pa.StructArray | None, actions: dict[str, Any], kinds: pa.Schema) -> pa.Table:
    """Return the rows of a checkpoint that hold ``adds``, or one row for each of ``actions``."""
    count = len(adds) if adds is not None else len(actions)
    columns = []
    for kind in kinds:
        if kind.name == "add" and adds is not None:
            columns.append(adds)
        elif kind.name in actions:
            place = list(actions).index(kind.name)
            columns.append(pa.array([actions[kind.name] if i == place else None for i in range(count)], kind.type))
        else:
            columns.append(pa.nulls(count, kind.type))
    return pa.Table.from_arrays(columns, schema=kinds)


def checkpoint_schema(add_type: pa.DataType) -> pa.Schema:
    """Return the columns of a checkpoint whose adds have a type."""
    texts = pa.list_(pa.string())
    return pa.schema([
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        ("add", add_type),
        ("remove", pa.struct([
            ("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_()),
            ("extendedFileMetadata", pa.bool_()), ("partitionValues", _MAP), ("size", pa.int64()),
        ])),
        ("metaData", pa.struct([
            ("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])), ("schemaString", pa.string()),
            ("partitionColumns", texts), ("configuration", _MAP), ("createdTime", pa.int64()),
        ])),
        ("protocol", pa.struct([
            ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
            ("readerFeatures", texts), ("writerFeatures", texts),
        ])),
        ("domainMetadata", pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed",
                                                                                                pa.bool_())])),
    ])  # fmt: skip


def _write_part(file: Path, ranks: np.ndarray, struct_stats: bool, seed: int, actions: dict[str, Any]) -> None:
    """Write a checkpoint file group by group, so that making ten million files stays small."""
    writer: pq.ParquetWriter | None = None
    for start in range(0, len(ranks), CHECKPOINT_GROUP):
        files = FileNumbers(ranks[start : start + CHECKPOINT_GROUP], seed + start)
        adds = add_columns(files, struct_stats)
        if writer is None:
            schema = checkpoint_schema(adds.type)
            writer = pq.ParquetWriter(file, schema, compression="snappy")
        writer.write_table(checkpoint_group(adds, {}, schema), row_group_size=CHECKPOINT_GROUP)
    assert writer is not None
    if actions:
        # Spark has these few rows wherever their hash falls; at the end is no favour to anyone
        writer.write_table(checkpoint_group(None, actions, schema))
    writer.close()


def make_many_files(table: Path, count: int, struct_stats: bool, tail: int, churn: int, parts: int = 1) -> None:
    """Write a checkpoint of made-up files, and ``tail`` commits behind it that replace ``churn`` files each."""
    ranks = np.random.default_rng(7).permutation(count).astype(np.int64)
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true"} if struct_stats else {}
    actions = {"metaData": metadata(SCHEMA_STRING, ["event_date"], **configuration), "protocol": PROTOCOL}
    # pa.array takes a map as a list of pairs
    actions["metaData"] |= {
        "configuration": list(configuration.items()),
        "format": {"provider": "parquet", "options": []},
    }
    log = table / "_delta_log"
    write_commit(
        table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(SCHEMA_STRING, ["event_date"], **configuration)}]
    )
    names = [f"{0:020}.checkpoint.parquet"]
    if parts > 1:
        names = [f"{0:020}.checkpoint.{i + 1:010}.{parts:010}.parquet" for i in range(parts)]
    for i, (name, share) in enumerate(zip(names, np.array_split(ranks, parts), strict=True)):
        _write_part(log / name, share, struct_stats, 1_000_000_000 * i, actions if i == parts - 1 else {})
    hint = {"version": 0, "size": count + 2} | ({"parts": parts} if parts > 1 else {})
    (log / "_last_checkpoint").write_text(json.dumps(hint), encoding="utf-8")
    _churn(table, ranks, tail, churn)


def _churn(table: Path, ranks: np.ndarray, tail: int, churn: int) -> None:
    """Write commits that each remove ``churn`` files of the checkpoint and add as many, of the same ids."""
    group = FileNumbers(ranks[:CHECKPOINT_GROUP], 0)
    old = paths(group).slice(0, tail * churn).to_pylist()
    for i in range(tail):
        places = slice(i * churn, (i + 1) * churn)
        removes = [
            {
                "remove": {
                    "path": p,
                    "deletionTimestamp": MILLIS + i,
                    "dataChange": True,
                    "extendedFileMetadata": True,
                    "partitionValues": {"event_date": p[11:21]},
                    "size": 21_000_000,
                }
            }
            for p in old[places]
        ]
        write_commit(table, i + 1, removes, add_lines(FileNumbers(group.ranks[places], 555_000_000 + i)))


def make_million_json(table: Path, sizes: Sizes) -> None:
    """1,000,000 files, statistics as JSON, 20 commits of 500 adds and 500 removes after the checkpoint."""
    make_many_files(table, sizes.of(1_000_000, 20_000), struct_stats=False, tail=20, churn=500)


def make_million_struct(table: Path, sizes: Sizes) -> None:
    """The same with ``stats_parsed`` and ``partitionValues_parsed`` and no JSON statistics."""
    make_many_files(table, sizes.of(1_000_000, 20_000), struct_stats=True, tail=20, churn=500)


def make_ten_million(table: Path, sizes: Sizes) -> None:
    """10,000,000 files in a checkpoint of ten parts."""
    make_many_files(table, sizes.of(10_000_000, 20_000), struct_stats=False, tail=2, churn=500, parts=10)


def make_commits(table: Path, sizes: Sizes) -> None:
    """10,000 JSON commits of 20 adds each and no checkpoint."""
    write_commit(table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(SCHEMA_STRING, ["event_date"])}])
    count, adds = sizes.of(10_000, 20), 20
    lines = add_lines(FileNumbers(np.arange(count * adds, dtype=np.int64), 11))
    for i in range(count - 1):
        write_commit(table, i + 1, [], lines[i * adds : (i + 1) * adds])


# --- tables with data ---------------------------------------------------------------------------------------

DATA_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": n, "type": t, "nullable": True, "metadata": {}}
            for n, t in (("id", "long"), ("amount", "double"), ("quantity", "integer"), ("category", "string"))
        ],
    }
)


def _write_data(file: Path, first_id: int, rows: int) -> None:
    random = np.random.default_rng(first_id)
    category = pa.DictionaryArray.from_arrays(
        pa.array(random.integers(0, 500, rows, np.int32)), pa.array([f"category-{i:04}" for i in range(500)])
    )
    data = pa.table(
        {
            "id": np.arange(first_id, first_id + rows),
            "amount": random.random(rows).round(4),
            "quantity": random.integers(0, 1_000, rows, np.int32),
            "category": category.cast(pa.string()),
        }
    )
    pq.write_table(data, file, compression="snappy", row_group_size=max(rows // 4, 1_000))


def data_add(file: Path, first_id: int, rows: int, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the ``add`` action of a data file that lies in the table's root."""
    stats = {
        "numRecords": rows,
        "minValues": {"id": first_id},
        "maxValues": {"id": first_id + rows - 1},
        "nullCount": {"id": 0},
        "tightBounds": vector is None,
    }
    add = {
        "path": file.name,
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": MILLIS,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    return {"add": add | ({"deletionVector": vector} if vector else {})}


def portable_vector(positions: np.ndarray) -> bytes:
    """Return a deletion vector's magic and bitmap, by a roaring library that is not ours."""
    from pyroaring import BitMap

    return struct.pack("<iQI", 1681511377, 1, 0) + BitMap(positions.astype(np.uint32)).serialize()


def write_vectors(table: Path, vectors: list[np.ndarray], per_file: int) -> list[dict[str, Any]]:
    """Write deletion vectors, ``per_file`` to a file, and return the descriptor of each."""
    descriptors = []
    for start in range(0, len(vectors), per_file):
        group = vectors[start : start + per_file]
        text, path = vector_path(uuid.UUID(int=0x5F00_0000_0000_4000_8000_0000_0000_0000 + start))
        payloads = [portable_vector(positions) for positions in group]
        body, offsets = encode_vector_file(payloads)
        (table / path).write_bytes(body)
        descriptors += [
            {
                "storageType": "u",
                "pathOrInlineDv": text,
                "offset": offset,
                "sizeInBytes": len(payload),
                "cardinality": len(rows),
            }
            for offset, payload, rows in zip(offsets, payloads, group, strict=True)
        ]
    return descriptors


def _data_table(table: Path, files: int, rows: int, share: float, per_vector_file: int) -> None:
    names = [table / f"part-{i:05}-{uuid.UUID(int=i)}.c000.snappy.parquet" for i in range(files)]
    random = np.random.default_rng(3)
    for i, name in enumerate(names):
        _write_data(name, i * rows, rows)
    vectors: Iterable[dict[str, Any] | None] = [None] * files
    if share:
        dropped = [np.sort(random.choice(rows, int(rows * share), replace=False)) for _ in names]
        vectors = write_vectors(table, dropped, per_vector_file)
    adds = [data_add(f, i * rows, rows, v) for i, (f, v) in enumerate(zip(names, vectors, strict=True))]
    configuration = {"delta.enableDeletionVectors": "true"} if share else {}
    start = [{"protocol": VECTOR_PROTOCOL if share else PROTOCOL}, {"metaData": metadata(DATA_SCHEMA, **configuration)}]
    write_commit(table, 0, [*start, *adds])


def make_rows_with_vectors(table: Path, sizes: Sizes) -> None:
    """20 files of 1,000,000 rows, a scattered tenth of each deleted by a vector."""
    _data_table(table, 20, sizes.of(1_000_000, 1_000), 0.1, per_vector_file=20)


def make_rows(table: Path, sizes: Sizes) -> None:
    """The same data without vectors."""
    _data_table(table, 20, sizes.of(1_000_000, 1_000), 0, per_vector_file=20)


def make_small_files(table: Path, sizes: Sizes) -> None:
    """200 files of 1,000 rows, each with a vector, in files of ten vectors."""
    _data_table(table, sizes.of(200, 20), 1_000, 0.1, per_vector_file=10)


def make_tiny_files(table: Path, sizes: Sizes) -> None:
    """10,000 files of 200 rows."""
    _data_table(table, sizes.of(10_000, 20), 200, 0, per_vector_file=20)


APPENDED_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": n, "type": t, "nullable": True, "metadata": {}}
            for n, t in (("id", "long"), ("v", "double"), ("s", "string"))
        ],
    }
)


def make_three_commits(table: Path, sizes: Sizes) -> None:
    """Three commits, three files, one partition column."""
    del sizes
    files = FileNumbers(np.arange(3, dtype=np.int64), 5)
    lines = add_lines(files)
    write_commit(table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(SCHEMA_STRING, ["event_date"])}], lines[:1])
    for version in (1, 2):
        write_commit(table, version, [], lines[version : version + 1])


def make_hooks_one(table: Path, sizes: Sizes) -> None:
    """One file with a vector."""
    del sizes
    _data_table(table, 1, 10, 0.1, per_vector_file=10)


def make_hooks_thousand(table: Path, sizes: Sizes) -> None:
    """1,000 files with a vector each; one data file and one vector, hard-linked."""
    del sizes
    first = table / "part-0.parquet"
    _write_data(first, 0, 10)
    [vector] = write_vectors(table, [np.array([3])], 10)
    adds = []
    for i in range(1_000):
        file = table / f"part-{i}.parquet"
        if i:
            os.link(first, file)
        adds.append(data_add(file, 0, 10, vector))
    start = [{"protocol": VECTOR_PROTOCOL}, {"metaData": metadata(DATA_SCHEMA)}]
    write_commit(table, 0, [*start, *adds])


def make_empty(table: Path, sizes: Sizes) -> None:
    """No file yet, three columns; a checkpoint every 100 commits, whoever writes."""
    del sizes
    configuration = {"delta.checkpointInterval": "100"}
    write_commit(table, 0, [{"protocol": PROTOCOL}, {"metaData": metadata(APPENDED_SCHEMA, **configuration)}])


GENERATORS: Generators = {
    "million-json": make_million_json,
    "million-struct": make_million_struct,
    "ten-million": make_ten_million,
    "commits": make_commits,
    "rows-with-vectors": make_rows_with_vectors,
    "rows": make_rows,
    "empty": make_empty,
    "small-files": make_small_files,
    "three-commits": make_three_commits,
    "hooks-one": make_hooks_one,
    "hooks-thousand": make_hooks_thousand,
    "tiny-files": make_tiny_files,
    **CHANGE_GENERATORS,
    **UPKEEP_GENERATORS,
}
