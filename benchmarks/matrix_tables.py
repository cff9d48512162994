"""Shapes of tables that the matrix reads: the same four columns in each, in files that differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from benchmarks.sizes import Sizes
from benchmarks.tables import MILLIS, PROTOCOL, VECTOR_PROTOCOL, metadata, write_commit, write_vectors

__all__ = ["COLUMNS", "SHAPES", "Shape"]

#: Of every table.
COLUMNS = ("id", "value", "name", "opt")
NAMES = 500
#: One row in so many has no ``opt``.
NULLS = 1_000
_TYPES = {pa.int64(): "long", pa.int32(): "integer", pa.float64(): "double", pa.string(): "string"}
_MAPPING_PROTOCOL = VECTOR_PROTOCOL | {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}
Random = np.random.Generator


class Shape(Struct, frozen=True):
    """What a table of the matrix is like.

    Parameters
    ----------
    files, rows : int
        At scale 1; rows of each file.
    few_files : bool
        A smaller scale means fewer files, not fewer rows.
    columns : tuple of str or None
        What "all columns" reads; None: all of them.
    more : Callable, optional
        Makes further columns of so many rows.
    deleted : float
        Share of the rows that vectors delete.
    """

    title: str
    files: int = 20
    rows: int = 500_000
    few_files: bool = False
    columns: tuple[str, ...] | None = None
    more: Callable[[Random, int], dict[str, Any]] | None = None
    codec: str = "snappy"
    is_sorted: bool = False
    deleted: float = 0.0
    is_mapped: bool = False
    is_partitioned: bool = False

    def make(self, table: Path, sizes: Sizes) -> None:
        """Write the table."""
        files = sizes.of(self.files, 20) if self.few_files else self.files
        rows = self.rows if self.few_files else sizes.of(self.rows, 100)
        random = np.random.default_rng(1)
        dropped = [np.sort(random.choice(rows, max(1, int(rows * self.deleted)), replace=False)) for _ in range(files)]
        vectors = write_vectors(table, dropped, 20) if self.deleted else [None] * files
        adds = []
        data = pa.table({})
        for number in range(files):
            data = self._rows(number, rows, number / files, 1 / files)
            adds.append(
                {"add": self._add(table, number, data) | ({"deletionVector": v} if (v := vectors[number]) else {})}
            )
        protocol = VECTOR_PROTOCOL if self.deleted else _MAPPING_PROTOCOL if self.is_mapped else PROTOCOL
        configuration = {"delta.enableDeletionVectors": "true"} if self.deleted else {}
        if self.is_mapped:
            configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4"}
        fields = [self._field(i, f) for i, f in enumerate(data.schema)]
        if self.is_partitioned:
            fields.append({"name": "part", "type": "integer", "nullable": True, "metadata": {}})
        schema = json.dumps({"type": "struct", "fields": fields})
        partitions = ["part"] if self.is_partitioned else []
        write_commit(
            table, 0, [{"protocol": protocol}, {"metaData": metadata(schema, partitions, **configuration)}, *adds]
        )

    def physical(self, name: str) -> str:
        """Return a column's name in the files."""
        return f"col-{name}" if self.is_mapped else name

    def _rows(self, number: int, rows: int, first: float, width: float) -> pa.Table:
        random = np.random.default_rng(number)
        value = random.random(rows)
        if self.is_sorted:
            value = first + np.sort(value) * width
        names = pa.array([f"n{i}" for i in range(NAMES)])
        name = pa.DictionaryArray.from_arrays(pa.array(random.integers(0, NAMES, rows, np.int32)), names)
        columns = {
            "id": np.arange(number * rows, (number + 1) * rows),
            "value": value,
            "name": name.cast(pa.string()),
            "opt": pa.array(random.integers(0, 1 << 40, rows), mask=random.integers(0, NULLS, rows) == 0),
        }
        return pa.table(columns | (self.more(random, rows) if self.more else {}))

    def _add(self, table: Path, number: int, data: pa.Table) -> dict[str, Any]:
        name = f"part={number}/part-{number:05}.parquet" if self.is_partitioned else f"part-{number:05}.parquet"
        file = table / name
        file.parent.mkdir(exist_ok=True)
        stored = data.rename_columns([self.physical(n) for n in data.column_names])
        flat = [n for n, t in zip(data.column_names, data.schema.types, strict=True) if t == pa.string()]
        pq.write_table(
            stored,
            file,
            compression=self.codec,
            row_group_size=250_000,
            use_dictionary=[self.physical(n) for n in flat],
        )
        bounds = {n: pc.min_max(data[n]).as_py() for n in ("id", "value")}
        stats = {
            "numRecords": data.num_rows,
            "minValues": {self.physical(n): b["min"] for n, b in bounds.items()},
            "maxValues": {self.physical(n): b["max"] for n, b in bounds.items()},
            "nullCount": {self.physical(n): data[n].null_count for n in ("id", "value", "opt")},
            "tightBounds": not self.deleted,
        }
        return {
            "path": name,
            "partitionValues": {"part": str(number)} if self.is_partitioned else {},
            "size": file.stat().st_size,
            "modificationTime": MILLIS,
            "dataChange": True,
            "stats": json.dumps(stats),
        }

    def _field(self, number: int, f: pa.Field) -> dict[str, Any]:
        mapped = {"delta.columnMapping.id": number + 1, "delta.columnMapping.physicalName": self.physical(f.name)}
        return {"name": f.name, "type": _type(f.type), "nullable": True, "metadata": mapped if self.is_mapped else {}}


def _type(t: pa.DataType) -> Any:
    if pa.types.is_struct(t):
        return {
            "type": "struct",
            "fields": [{"name": f.name, "type": _type(f.type), "nullable": True, "metadata": {}} for f in t],
        }
    if pa.types.is_map(t):
        ends = {"keyType": _type(t.key_type), "valueType": _type(t.item_type)}
        return {"type": "map", **ends, "valueContainsNull": True}
    if pa.types.is_list(t):
        return {"type": "array", "elementType": _type(t.value_type), "containsNull": True}
    return _TYPES[t]


def _wide(random: Random, rows: int) -> dict[str, Any]:
    return {f"c{i}": random.integers(0, 100_000, rows, np.int32) for i in range(296)}


def _long_text(random: Random, rows: int) -> dict[str, Any]:
    digits = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(200), rows, [None, pa.py_buffer(random.integers(97, 123, rows * 200, np.uint8))]
    )
    return {"text": digits.cast(pa.binary()).cast(pa.string())}


def _nested(random: Random, rows: int) -> dict[str, Any]:
    ends = pa.array(np.arange(rows + 1) * 3, pa.int32())
    words = pa.array([f"word-{i}" for i in range(100)]).take(pa.array(random.integers(0, 100, rows * 3)))
    keys = pa.array(["x", "y", "z"] * rows)
    point = pa.StructArray.from_arrays([pa.array(random.random(rows)), pa.array(random.random(rows))], ["x", "y"])
    counts = pa.array(random.integers(0, 1_000, rows * 3))
    return {
        "tags": pa.ListArray.from_arrays(ends, words),
        "point": point,
        "counts": pa.MapArray.from_arrays(ends, keys, counts),
    }


SHAPES: Mapping[str, Shape] = {
    "plain": Shape("20 files, 10,000,000 rows"),
    "small-files": Shape("10,000 files of 200 rows", 10_000, 200, few_files=True),
    "wide": Shape("300 columns, 3 of them read", rows=20_000, columns=("id", "value", "name"), more=_wide),
    "long-text": Shape("strings of 200 bytes", rows=100_000, more=_long_text),
    "nested": Shape("a list, a struct and a map", rows=100_000, more=_nested),
    "zstd": Shape("compressed with zstd", codec="zstd"),
    "sorted": Shape("sorted by the filtered column", is_sorted=True),
    "vectors-1": Shape("1 % deleted by vectors", deleted=0.01),
    "vectors-10": Shape("10 % deleted by vectors", deleted=0.1),
    "mapped": Shape("column mapping", is_mapped=True),
    "partitioned": Shape("1,000 partitions", 1_000, 5_000, few_files=True, is_partitioned=True),
}
