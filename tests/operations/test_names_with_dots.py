"""Names that spell another column's path: each column has its own statistics, in every place that keeps them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import ColumnProperties, DeltaTable, WriterProperties, write_deltalake

LONG, TEXT = pa.int64(), pa.string()
#: Columns; some spell the Parquet path of another's leaf.
FAMILIES = (
    [("a", pa.struct([("b", LONG), ("c", LONG)])), ("a.b", LONG), ("a.c", TEXT)],
    [("z", pa.list_(LONG)), ("z.list.element", LONG)],
    [("m", pa.map_(TEXT, LONG)), ("m.key_value.key", TEXT), ("m.key_value.value", LONG)],
    [
        ("s", pa.struct([("t.u", LONG), ("t", pa.struct([("u", LONG)]))])),
        ("s.t.u", LONG),
        ("s.t", pa.struct([("u", LONG)])),
    ],
    [("l", pa.list_(pa.struct([("x", LONG)]))), ("l.list.element.x", LONG), ("l.list", pa.struct([("element", LONG)]))],
    [("`q`", pa.struct([("r", LONG)])), ("`q`.r", LONG), ("q", LONG)],
)


@st.composite
def schemas(draw: Any) -> pa.Schema:
    fields = [
        pa.field(*f)
        for family in draw(st.sets(st.integers(0, len(FAMILIES) - 1), min_size=1))
        for f in FAMILIES[family]
    ]
    return pa.schema(draw(st.permutations(fields)))


def value(t: pa.DataType, number: int) -> Any:
    """Return a value whose every leaf shows the number."""
    if pa.types.is_struct(t):
        return {f.name: value(f.type, number + i) for i, f in enumerate(t)}
    if pa.types.is_map(t):
        return [(value(t.key_type, number), value(t.item_type, number))]
    if pa.types.is_list(t):
        return [value(t.value_type, number), None]
    return number if pa.types.is_integer(t) else f"{number:06}"


def rows(schema: pa.Schema, first: int) -> pa.Table:
    """Return three rows; each leaf's values are its own, and one row of each column is null."""
    columns = []
    for place, f in enumerate(schema):
        numbers = [first + 1000 * place, None, first + 1000 * place + 7]
        columns.append(pa.array([None if n is None else value(f.type, n) for n in numbers], f.type))
    return pa.table(columns, schema=schema)


def leaves(schema: pa.Schema) -> list[tuple[tuple[str, ...], pa.DataType]]:
    def visit(f: pa.Field, path: tuple[str, ...]) -> list[Any]:
        if not pa.types.is_struct(f.type):
            return [] if pa.types.is_nested(f.type) else [((*path, f.name), f.type)]
        return [leaf for child in f.type for leaf in visit(child, (*path, f.name))]

    return [leaf for f in schema for leaf in visit(f, ())]


def reached(found: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        found = found[name]
    return found


def check(uri: Path, tables: list[pa.Table]) -> None:
    """Look for one row of each file by each of its columns."""
    for table in tables:
        row = table.to_pylist()[0]
        for path, t in leaves(table.schema):
            wanted = reached(row, path)
            literal = wanted if pa.types.is_integer(t) else f"'{wanted}'"
            found = DeltaTable(uri).snapshot().scan(predicate=f"{quoted(path)} = {literal}").to_table()
            assert [reached(r, path) for r in found.to_pylist()] == [wanted], path


def quoted(path: tuple[str, ...]) -> str:
    return ".".join("`" + p.replace("`", "``") + "`" for p in path)


@settings(max_examples=8, deadline=None)
@given(schemas(), st.sampled_from(["none", "name"]), st.booleans())
def test_each_column_has_its_own_bounds(schema: pa.Schema, mapping: str, as_struct: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        uri = Path(place) / "t"
        configuration = {
            "delta.checkpoint.writeStatsAsStruct": str(as_struct).lower(),
            "delta.columnMapping.mode": mapping,
            "delta.checkpoint.writeStatsAsJson": str(not as_struct).lower(),
        }
        # the first file lacks columns whose paths those of others spell
        tables = [rows(pa.schema(list(schema)[: len(schema) // 2]), 0), rows(schema, 100_000)]
        write_deltalake(uri, tables[0], configuration=configuration)
        write_deltalake(uri, tables[1], mode="append", schema_mode="merge")
        state = DeltaTable(uri).snapshot().state
        for number, t in enumerate(tables):
            commit = (uri / f"_delta_log/{number:020}.json").read_text().splitlines()
            stats = json.loads(next(a["add"]["stats"] for a in map(json.loads, commit) if "add" in a))
            for path, _ in leaves(t.schema):
                stored = state.column_map.physical_path(state.schema, path)
                seen = [reached(r, path) for r in t.to_pylist() if r[path[0]] is not None]
                bounds = [reached(stats[kind], stored) for kind in ("minValues", "maxValues", "nullCount")]
                assert bounds == [min(seen), max(seen), 1], path
        check(uri, tables)
        DeltaTable(uri).create_checkpoint()
        check(uri, tables)


def test_other_writers_files_are_described_by_column_too(tmp_path: Path) -> None:
    table = rows(pa.schema([pa.field(*f) for f in FAMILIES[0]]), 0)
    deltalake.write_deltalake(tmp_path / "t", table)
    check(tmp_path / "t", [table])


@pytest.mark.parametrize("name", ["a.b", "a"])
def test_properties_of_a_path_that_columns_share_are_taken_for_each(tmp_path: Path, name: str) -> None:
    table = rows(pa.schema([("a", pa.struct([("b", LONG)])), ("a.b", LONG)]), 0)
    columns = {name: ColumnProperties(dictionary_enabled=True)}
    write_deltalake(tmp_path / "t", table, writer_properties=WriterProperties(column_properties=columns))
    file = pq.ParquetFile(next((tmp_path / "t").glob("*.parquet"))).metadata
    assert [file.row_group(0).column(i).has_dictionary_page for i in range(2)] == [True, True]
    check(tmp_path / "t", [table])
