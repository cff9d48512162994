"""Structs and arrays in predicates and new values, and ``DEFAULT`` as a new value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.cli import main
from delta_core.errors import ColumnNotFoundError, ConstraintViolationError, InvalidArgumentError
from delta_core.schema.fields import Schema
from delta_core.schema.types import Field, PrimitiveType

STRUCT = pa.struct([("x", pa.int64()), ("y", pa.string())])
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "s": pa.array([{"x": 1, "y": "a"}, {"x": 2, "y": None}, {"x": None, "y": "c"}, None], STRUCT),
        "a": pa.array([[1, 2], [1], [], None], pa.list_(pa.int64())),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Return a table of two files, with statistics of the parts of structs."""
    for start in (0, 2):
        write_deltalake(str(tmp_path / "t"), ROWS.slice(start, 2), mode="append")
    return DeltaTable(str(tmp_path / "t"))


def _ids(table: DeltaTable) -> list[int]:
    return sorted(table.to_pyarrow_table().column("id").to_pylist())


@pytest.mark.parametrize(
    ("predicate", "ids"),
    [
        ("s = named_struct('x', 1, 'y', 'a')", [1]),
        ("s = struct(2L, cast(null as string))", [2]),
        ("s <=> null", [4]),
        ("NOT (s = struct(1L, 'a'))", [2, 3]),
        ("s < struct(2L, 'a')", [1, 2, 3]),
        ("s IN (named_struct('x', 1, 'y', 'a'), struct(2L, 'b'))", [1]),
        ("s = s", [1, 2, 3]),
        ("s['x'] = 1", [1]),
        ("s['X'] > 1 OR \"s\"['y'] = 'c'", [2, 3]),
        ("a = array(1, 2)", [1]),
        ("a < array(1, 2)", [2, 3]),
        ("a <=> array(1)", [2]),
        ("a <> array()", [1, 2]),
        ("a BETWEEN array(1) AND array(1, 5)", [1, 2]),
        ("coalesce(a, array(7)) = array(7)", [4]),
    ],
)
def test_structs_and_arrays_select_rows_in_scans_and_deletes(table: DeltaTable, predicate: str, ids: list[int]) -> None:
    found = table.scan(["id"], predicate=predicate).to_table().column("id").to_pylist()
    assert sorted(found) == ids
    table.delete(predicate)
    assert _ids(table) == [i for i in range(1, 5) if i not in ids]


def test_fields_in_brackets_prune_as_fields_behind_a_dot(table: DeltaTable) -> None:
    for predicate in ("s['x'] = 1", "s.x = 1"):
        assert table.scan(predicate=predicate).file_set.count == 1


def test_structs_and_arrays_are_keys_and_values_of_changes(table: DeltaTable) -> None:
    source = pa.table({"id": pa.array([9], pa.int64()), "s": pa.array([{"x": 1, "y": "a"}], STRUCT), "b": [[1, 2]]})
    for condition in ("t.s = q.s", "t.a <=> q.b", "q.s['x'] = t.s['x'] AND t.a = array(1, 2)"):
        merger = table.merge(source, condition, source_alias="q", target_alias="t")
        merger.when_matched_update({"id": "t.id + q.id"}).execute()
    assert _ids(table) == [2, 3, 4, 28]
    table.update({"a": "array(9, s['x'])", "s": "named_struct('x', 7, 'y', 'n')"}, predicate="a = array(1)")
    assert table.scan(predicate="id = 2").to_table().to_pylist() == [{"id": 2, "s": {"x": 7, "y": "n"}, "a": [9, 2]}]


def test_constraints_compare_structs_and_arrays(table: DeltaTable) -> None:
    table.alter.add_constraint({"c": "coalesce(s <> struct(0L, 'z'), true) AND coalesce(a < array(100), true)"})
    with pytest.raises(ConstraintViolationError):
        write_deltalake(table, pa.table({"id": [5], "s": pa.array([{"x": 0, "y": "z"}], STRUCT)}), mode="append")
    with pytest.raises(ConstraintViolationError):
        table.update({"a": "array(100)"}, predicate="id = 1")
    write_deltalake(table, pa.table({"id": [5], "s": pa.array([{"x": 0, "y": "y"}], STRUCT)}), mode="append")
    assert _ids(table) == [1, 2, 3, 4, 5]


# --- DEFAULT -------------------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path) -> DeltaTable:
    """Return a table with a default, a generated column and one without either."""
    fields = [
        Field("id", PrimitiveType("long")),
        Field("kind", PrimitiveType("string"), metadata={"CURRENT_DEFAULT": "concat('n', 'ew')"}),
        Field("twice", PrimitiveType("long"), metadata={"delta.generationExpression": "id * 2"}),
        Field("v", PrimitiveType("long")),
    ]
    table = DeltaTable.create(str(tmp_path / "filled"), Schema(fields))
    write_deltalake(table, pa.table({"id": [1, 2], "kind": ["a", "b"], "v": [1, 2]}), mode="append")
    return table


def _rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(r.values()) for r in DeltaTable(table.table_uri).to_pyarrow_table().to_pylist())


def test_default_is_a_new_value_of_updates(filled: DeltaTable) -> None:
    filled.update({"kind": "DEFAULT", "v": " default "}, predicate="id = 1")
    assert _rows(filled) == [(1, "new", 2, None), (2, "b", 4, 2)]
    filled.update({"id": "id + 10", "twice": "DEFAULT"}, predicate="id = 2")
    assert _rows(filled) == [(1, "new", 2, None), (12, "b", 24, 2)]
    assert main(["update", filled.table_uri, "--set", "kind=default", "--all"]) == 0
    assert [r[1] for r in _rows(filled)] == ["new", "new"]


def test_default_is_a_new_value_of_each_clause_of_merges(filled: DeltaTable) -> None:
    merger = filled.merge(pa.table({"id": [2, 9]}), "t.id = s.id", source_alias="s", target_alias="t")
    merger = merger.when_matched_update({"t.kind": "DEFAULT"}).when_not_matched_by_source_update({"kind": "default"})
    merger.when_not_matched_insert({"id": "s.id", "kind": "DEFAULT", "twice": "DEFAULT", "v": "DEFAULT"}).execute()
    assert _rows(filled) == [(1, "new", 2, 1), (2, "new", 4, 2), (9, "new", 18, None)]


def test_default_within_expressions_and_of_parts_is_rejected(table: DeltaTable, filled: DeltaTable) -> None:
    for value in ("upper(DEFAULT)", "`DEFAULT`", '"DEFAULT"'):
        with pytest.raises(ColumnNotFoundError):
            filled.update({"kind": value})
    with pytest.raises(InvalidArgumentError, match="only whole columns"):
        table.update({"s.x": "DEFAULT"})


def test_default_is_rejected_if_a_column_has_its_name_or_numbers_rows(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "default": [5]}))
    table = DeltaTable(str(tmp_path / "t"))
    with pytest.raises(InvalidArgumentError, match="backticks"):
        table.update({"id": "DEFAULT"})
    table.update({"id": '"default" + `default`'})
    assert _ids(table) == [10]
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    fields = [Field("n", PrimitiveType("long"), metadata=identity), Field("v", PrimitiveType("long"))]
    numbered = DeltaTable.create(str(tmp_path / "n"), Schema(fields))
    write_deltalake(numbered, pa.table({"v": [1, 2]}), mode="append")
    with pytest.raises(InvalidArgumentError, match="new rows only"):
        numbered.update({"n": "DEFAULT"})
    merger = numbered.merge(pa.table({"v": [7]}), "t.v = s.v", source_alias="s", target_alias="t")
    merger.when_not_matched_insert({"n": "DEFAULT", "v": "s.v"}).execute()
    assert len(set(DeltaTable(numbered.table_uri).to_pyarrow_table().column("n").to_pylist())) == 3
