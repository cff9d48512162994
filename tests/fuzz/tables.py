"""The sound tables that are damaged: small, and together of every kind of file that a table can have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.testing.table_builder import TableBuilder

__all__ = ["TABLES"]

_SCHEMA = {
    "id": "long",
    "x": "double",
    "amount": "decimal(20,4)",
    "day": "date",
    "at": "timestamp",
    "name": "string",
    "raw": "binary",
    "flag": "boolean",
    "kind": "string",
}


def _rows(start: int, count: int = 6) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "x": i / 3,
            "amount": Decimal(i) / 4,
            "day": dt.date(2024, 1, 1 + i % 28),
            "name": f"näme {i}" * (i % 3),
            "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i),
            "raw": bytes([i % 256]) * 4,
            "flag": None if i % 5 == 0 else i % 2 == 0,
            "kind": None if i % 7 == 0 else "ab"[i % 2],
        }
        for i in range(start, start + count)
    ]


def _plain(path: Path) -> None:
    table = TableBuilder(path).create(_SCHEMA, partition_by=["kind", "day"])
    table.append(_rows(0)).append(_rows(6)).checkpoint().append(_rows(12)).remove(table.paths()[0]).append(
        _rows(18)
    ).checksum()


def _vectors(path: Path) -> None:
    table = TableBuilder(path).create(_SCHEMA, partition_by=["kind"], features=["deletionVectors"])
    table.append(_rows(0, 30)).delete_rows(lambda row: row["id"] % 4 == 1, storage="i")
    table.append(_rows(30, 30)).checkpoint(statistics="struct").delete_rows(lambda row: row["id"] % 4 == 3, runs=True)
    table.append(_rows(60))


def _sidecars(kind: Any) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        table = TableBuilder(path).create(_SCHEMA, partition_by=["kind"], features=["v2Checkpoint", "deletionVectors"])
        table.append(_rows(0, 12)).append(_rows(12)).delete_rows(lambda row: row["id"] == 3).checkpoint(
            kind, sidecars=2
        )
        table.cleanup_before(3).append(_rows(20)).checksum()

    return make


def _parts(path: Path) -> None:
    table = TableBuilder(path).create(_SCHEMA, column_mapping="name", partition_by=["kind"])
    table.append(_rows(0)).append(_rows(6)).checkpoint("v1-multipart").cleanup_before(2)
    table.append(_rows(12)).append(_rows(18)).compact(3, 4)


def _nested(path: Path) -> None:
    schema = pa.schema(
        {
            "id": pa.int64(),
            "s": pa.struct({"a": pa.int32(), "b.c": pa.string()}),
            "l": pa.list_(pa.struct({"x": pa.float32()})),
            "m": pa.map_(pa.string(), pa.list_(pa.int16())),
        }
    )
    rows = [
        {
            "id": i,
            "s": {"a": i, "b.c": f"t{i}"} if i % 3 else None,
            "l": [{"x": i / 2}, None][: i % 3],
            "m": [("k", [i, None])],
        }
        for i in range(12)
    ]
    table = TableBuilder(path).create(schema, column_mapping="id")
    table.append(rows[:6]).checkpoint(statistics="struct").append(rows[6:])


def _ours(path: Path) -> None:
    data = pa.Table.from_pylist(_rows(0, 40))
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
        "delta.checkpointPolicy": "v2",
        "delta.enableInCommitTimestamps": "true",
    }
    write_deltalake(str(path), data, partition_by=["kind"], configuration=properties)
    write_deltalake(str(path), data, mode="append")
    DeltaTable(str(path)).create_checkpoint()
    write_deltalake(str(path), data.slice(0, 0), mode="overwrite", predicate="id % 4 = 1")
    write_deltalake(str(path), data, mode="append")


#: By name: what writes one into an empty folder.
TABLES: dict[str, Callable[[Path], None]] = {
    "plain": _plain,
    "vectors": _vectors,
    "v2-json": _sidecars("v2-json"),
    "v2-parquet": _sidecars("v2-parquet"),
    "parts": _parts,
    "nested": _nested,
    "ours": _ours,
}
