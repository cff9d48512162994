"""Types as deep as Parquet files can be read, and deeper ones rejected by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CorruptTableError, SchemaError
from delta_core.kernel.snapshot import open_snapshot
from delta_core.schema.fields import Schema
from delta_core.schema.types import ArrayType, DataType, Field, PrimitiveType, StructType, check_nesting
from delta_core.table.delta_table import DeltaTable
from delta_core.table.writer import write_deltalake
from delta_core.testing.table_builder import TableBuilder

#: The most of each that are written, and read again.
MOST = {"struct": 62, "list": 46, "map": 31}


def nested(kind: str, levels: int) -> pa.Table:
    t: pa.DataType = pa.int64()
    value: Any = 1
    for _ in range(levels):
        if kind == "struct":
            t, value = pa.struct([("f", t)]), {"f": value}
        elif kind == "list":
            t, value = pa.list_(t), [value]
        else:
            t, value = pa.map_(pa.string(), t), [("k", value)]
    return pa.table({"a": pa.array([value], t)})


@pytest.mark.parametrize("kind", MOST)
def test_deepest_type_is_written_and_read_with_a_checkpoint(tmp_path: Path, kind: str) -> None:
    data = nested(kind, MOST[kind])
    write_deltalake(tmp_path, data)
    DeltaTable(tmp_path).create_checkpoint()
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    assert open_snapshot(tmp_path).scan().to_table().to_pylist() == data.to_pylist()


@pytest.mark.parametrize("levels", [1, 2_000])
@pytest.mark.parametrize("kind", MOST)
def test_deeper_type_is_not_written(tmp_path: Path, kind: str, levels: int) -> None:
    t: pa.DataType = pa.int64()
    for _ in range(MOST[kind] + levels):
        t = pa.struct([("f", t)]) if kind == "struct" else pa.list_(t) if kind == "list" else pa.map_(pa.string(), t)
    with pytest.raises(SchemaError, match="nested deeper than Arrow reads Parquet"):
        write_deltalake(tmp_path, pa.table({"a": pa.nulls(1, t)}))
    with pytest.raises(SchemaError, match="nested deeper"):
        Schema.from_arrow(pa.schema([("a", t)]))
    assert not (tmp_path / "_delta_log").exists()


def schema_string(levels: int) -> str:
    before, after = '{"type":"struct","fields":[{"name":"f","type":', ',"nullable":true,"metadata":{}}]}'
    return before * levels + '"long"' + after * levels


@pytest.mark.parametrize("levels", [150, 500, 2_000, 100_000])
def test_table_with_a_deeper_schema_is_rejected_when_it_is_opened(tmp_path: Path, levels: int) -> None:
    builder = TableBuilder(tmp_path).create({"a": "long"})
    metadata = {**builder.state.metadata, "schemaString": schema_string(levels)}
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"metaData": metadata}) + "\n")
    with pytest.raises((CorruptTableError, SchemaError), match="nested deeper than Arrow reads Parquet"):
        open_snapshot(tmp_path)


def test_types_made_in_python_are_counted_too() -> None:
    t: DataType = PrimitiveType("long")
    for _ in range(49):
        t = ArrayType(t)
    check_nesting(StructType([Field("a", t)]))
    with pytest.raises(SchemaError, match="nested deeper"):
        check_nesting(StructType([Field("a", ArrayType(t))]))
