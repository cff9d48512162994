"""The kinds of tables that calls are tried on: written by `TableBuilder`, so that each package gets the same bytes."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.testing.table_builder import TableBuilder

__all__ = ["KINDS", "Kind", "build_all"]

#: The tables' commits are of 2023: some writers would delete those that checkpoints replace.
_KEPT_LOG = {"delta.logRetentionDuration": "interval 36500 days"}
_DAY = dt.datetime(2024, 3, 1, 12, 30, tzinfo=dt.UTC)
_PLAIN = {"id": "long", "city": "string", "amount": "double"}
_ROWS = [
    {"id": 1, "city": "Oslo", "amount": 10.0},
    {"id": 2, "city": "Rome", "amount": 20.0},
    {"id": 3, "city": "Oslo", "amount": 30.0},
]
_MORE = pa.table({"id": [3, 4], "city": ["Bergen", "Paris"], "amount": [35.0, 40.0]})


def _schema(*fields: tuple[str, Any] | tuple[str, Any, bool] | tuple[str, Any, bool, dict[str, Any]]) -> dict[str, Any]:
    """Return a table's schema in the protocol's JSON."""
    listed = []
    for name, data_type, *rest in fields:
        listed.append(
            {
                "name": name,
                "type": data_type,
                "nullable": rest[0] if rest else True,
                "metadata": rest[1] if len(rest) > 1 else {},
            }
        )
    return {"type": "struct", "fields": listed}


def _filled(builder: TableBuilder, rows: list[dict[str, Any]], schema: Any = None, **options: Any) -> TableBuilder:
    """Create a table whose last row comes with a second commit."""
    builder.create(_PLAIN if schema is None else schema, **options)
    return builder.append(rows[:-1]).append(rows[-1:])


@dataclass(frozen=True)
class Kind:
    """A kind of table, and the arguments that fit it."""

    build: Callable[[TableBuilder], Any]
    #: Rows of the same schema.
    more: pa.Table = field(default_factory=lambda: _MORE)
    #: A condition that some of its rows meet.
    where: str = "id = 1"
    #: A column and SQL for its new value.
    updates: tuple[str, str] = ("amount", "amount + 1")
    partition_by: tuple[str, ...] = ()


def _many_versions(builder: TableBuilder) -> None:
    builder.create(_PLAIN, properties=_KEPT_LOG)
    for at in range(12):
        builder.append([{"id": at, "city": "Oslo" if at % 2 else "Rome", "amount": float(at)}])
        if at == 9:
            builder.checkpoint("classic")


_NESTED = _schema(
    ("id", "long"),
    ("s", _schema(("a", "integer"), ("b", "string"))),
    ("l", {"type": "array", "elementType": "long", "containsNull": True}),
    ("m", {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}),
)
_NESTED_ROWS = [
    {"id": 1, "s": {"a": 1, "b": "x"}, "l": [1, 2], "m": {"k": 1}},
    {"id": 2, "s": {"a": None, "b": "y"}, "l": [], "m": {}},
    {"id": 3, "s": None, "l": None, "m": None},
]
_TIMES = _schema(("id", "long"), ("at", "timestamp"), ("local", "timestamp_ntz"), ("day", "date"))
_TIMES_ROWS = [{"id": n, "at": _DAY, "local": _DAY.replace(tzinfo=None), "day": _DAY.date()} for n in (1, 2, 3)]
_DECIMALS = _schema(("id", "long"), ("small", "decimal(9,2)"), ("large", "decimal(38,10)"))
_TYPES = _schema(
    ("id", "integer"),
    ("b", "byte"),
    ("s", "short"),
    ("f", "float"),
    ("t", "boolean"),
    ("x", "binary"),
    ("city", "string"),
)
_NULLS = [{"id": 1, "city": None, "amount": 1.0}, {"id": None, "city": "Oslo", "amount": None}, _ROWS[2]]

KINDS: dict[str, Kind] = {
    "plain": Kind(lambda b: _filled(b, _ROWS)),
    "partitioned": Kind(lambda b: _filled(b, _ROWS, partition_by=["city"]), partition_by=("city",)),
    "two_partitions": Kind(
        lambda b: _filled(
            b,
            [{"year": 2020 + i % 2, "city": c, "id": i} for i, c in enumerate(["Oslo", "Rome", "Rome", "Oslo"])],
            _schema(("year", "integer"), ("city", "string"), ("id", "long")),
            partition_by=["year", "city"],
        ),
        pa.table({"year": pa.array([2020, 2022], pa.int32()), "city": ["Oslo", "Paris"], "id": [7, 8]}),
        "year = 2020",
        ("id", "id + 1"),
        ("year", "city"),
    ),
    "null_partitions": Kind(lambda b: _filled(b, _NULLS, partition_by=["city"]), partition_by=("city",)),
    "nested": Kind(
        lambda b: _filled(b, _NESTED_ROWS, _NESTED),
        pa.table(
            {"id": [4], "s": [{"a": 4, "b": "z"}], "l": [[4]], "m": [[("q", 4)]]},
            schema=pa.schema(
                {
                    "id": pa.int64(),
                    "s": pa.struct({"a": pa.int32(), "b": pa.string()}),
                    "l": pa.list_(pa.int64()),
                    "m": pa.map_(pa.string(), pa.int32()),
                }
            ),
        ),
        updates=("id", "id + 1"),
    ),
    "empty": Kind(lambda b: b.create(_PLAIN)),
    "changes": Kind(lambda b: _filled(b, _ROWS, protocol=(1, 4), properties={"delta.enableChangeDataFeed": "true"})),
    "constrained": Kind(
        lambda b: _filled(b, _ROWS, protocol=(1, 3), properties={"delta.constraints.positive": "amount > 0"})
    ),
    "versions": Kind(_many_versions),
    "protocol_1": Kind(lambda b: _filled(b, _ROWS, protocol=(1, 1))),
    "features": Kind(lambda b: _filled(b, _ROWS, features=["appendOnly", "invariants"])),
    "append_only": Kind(lambda b: _filled(b, _ROWS, properties={"delta.appendOnly": "true"})),
    "vectors": Kind(
        lambda b: _filled(
            b, _ROWS, features=["deletionVectors"], properties={"delta.enableDeletionVectors": "true"}
        ).delete_rows(lambda row: row["id"] == 2)
    ),
    "mapped": Kind(lambda b: _filled(b, _ROWS, features=["columnMapping"], column_mapping="name")),
    "times": Kind(
        lambda b: _filled(b, _TIMES_ROWS, _TIMES, features=["timestampNtz"]),
        pa.table(
            {
                "id": [4],
                "at": pa.array([_DAY], pa.timestamp("us", "UTC")),
                "local": pa.array([_DAY.replace(tzinfo=None)], pa.timestamp("us")),
                "day": [_DAY.date()],
            }
        ),
        "at > '2020-01-01T00:00:00Z'",
        ("id", "id + 1"),
    ),
    "decimals": Kind(
        lambda b: _filled(
            b, [{"id": n, "small": Decimal("1.25") * n, "large": Decimal("7.5") * n} for n in (1, 2, 3)], _DECIMALS
        ),
        pa.table(
            {
                "id": [4],
                "small": pa.array([Decimal("9.99")], pa.decimal128(9, 2)),
                "large": pa.array([Decimal(1)], pa.decimal128(38, 10)),
            }
        ),
        "small > 2",
        ("small", "small + 1"),
    ),
    "types": Kind(
        lambda b: _filled(
            b,
            [{"id": n, "b": n, "s": n, "f": n / 2, "t": n == 1, "x": bytes([n]), "city": "Oslo"} for n in (1, 2, 3)],
            _TYPES,
        ),
        pa.table(
            {
                "id": pa.array([4], pa.int32()),
                "b": pa.array([4], pa.int8()),
                "s": pa.array([4], pa.int16()),
                "f": pa.array([4], pa.float32()),
                "t": [True],
                "x": [b"4"],
                "city": ["Rome"],
            }
        ),
        updates=("f", "f + 1"),
    ),
    "nulls": Kind(lambda b: _filled(b, _NULLS)),
    "not_null": Kind(
        lambda b: _filled(b, _ROWS, _schema(("id", "long", False), ("city", "string"), ("amount", "double")))
    ),
    "invariant": Kind(
        lambda b: _filled(
            b,
            _ROWS,
            _schema(
                ("id", "long"),
                ("city", "string"),
                (
                    "amount",
                    "double",
                    True,
                    {"delta.invariants": json.dumps({"expression": {"expression": "amount > 0"}})},
                ),
            ),
        )
    ),
    "blanks": Kind(
        lambda b: _filled(
            b, [{"id": n, "home town": "Oslo"} for n in (1, 2, 3)], {"id": "long", "home town": "string"}
        ),
        pa.table({"id": [4], "home town": ["Rome"]}),
        updates=("home town", "'Bergen'"),
    ),
    "capitals": Kind(
        lambda b: _filled(b, [{"Id": n, "homeTown": "Oslo"} for n in (1, 2, 3)], {"Id": "long", "homeTown": "string"}),
        pa.table({"Id": [4], "homeTown": ["Rome"]}),
        "Id = 1",
        ("homeTown", "'Bergen'"),
    ),
    "unusual_names": Kind(
        lambda b: _filled(
            b,
            [{"id": n, "größe-1": n, "a.b": "x"} for n in (1, 2, 3)],
            {"id": "long", "größe-1": "long", "a.b": "string"},
        ),
        pa.table({"id": [4], "größe-1": [4], "a.b": ["y"]}),
        updates=("id", "id + 1"),
    ),
    "no_statistics": Kind(lambda b: b.create(_PLAIN).append(_ROWS, statistics=False)),
    "properties": Kind(
        lambda b: _filled(
            b,
            _ROWS,
            properties={
                "delta.checkpointInterval": "2",
                "delta.deletedFileRetentionDuration": "interval 1 days",
                **_KEPT_LOG,
                "owner": "sales",
            },
        )
    ),
}


def _write_folders(root: Path) -> None:
    """Write what is no table yet: files, files by partition, a folder without files, and nothing at all."""
    rows = pa.Table.from_pylist(_ROWS)
    for name in ("files", "partitioned_files", "folder"):
        (root / name).mkdir()
    pq.write_table(rows, root / "files" / "part-00000.parquet")
    for city in ("Oslo", "Rome"):
        folder = root / "partitioned_files" / f"city={city}"
        folder.mkdir()
        part = rows.filter(pc.equal(rows["city"], city)).drop_columns("city")
        pq.write_table(part, folder / "part-00000.parquet")


def build_all(root: Path) -> None:
    """Write a table of each kind below a folder; files of the log get the times that their commits have."""
    for name, kind in KINDS.items():
        builder = TableBuilder(root / name)
        kind.build(builder)
        for path in sorted((root / name / "_delta_log").glob("*")):
            version = int(path.name.split(".")[0]) if path.name[0].isdigit() else 0
            os.utime(path, (builder.timestamp_ms(version) / 1000,) * 2)
        for path in (root / name).rglob("*.parquet"):
            if path.parent.name != "_delta_log":
                os.utime(path, (builder.timestamp_ms(0) / 1000,) * 2)
    _write_folders(root)
