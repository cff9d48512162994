"""Types of plugins in expressions and row changes: values are those of the Delta type that stores their Arrow type."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError, ExpressionError
from delta_core.schema.types import CustomType, PrimitiveType, TypeDef
from tests.hooks.external_plugins import registry, table_of

MONEY = TypeDef("money", pa.int64(), "BIGINT", "integer")
CODE = TypeDef("code", pa.string(), "STRING", "string")
DAY = TypeDef("day", pa.date32(), "DATE", "date")
RANK = TypeDef("rank", pa.int64(), "BIGINT", "integer", ordered=False)
PLUGINS = registry(primitive_types=lambda features: [MONEY, CODE, DAY, RANK])
COLUMNS = {
    "id": "long",
    "v": "money",
    "c": "code",
    "d": "day",
    "s": {"type": "struct", "fields": [{"name": "m", "type": "money", "nullable": True, "metadata": {}}]},
    "a": {"type": "array", "elementType": "money", "containsNull": True},
}
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "v": [10, 20, None],
        "c": ["a", "b", "c"],
        "d": pa.array([0, 1, 2], pa.int32()).cast(pa.date32()),
        "s": [{"m": 1}, None, {"m": 3}],
        "a": [[1, 2], [], None],
    }
)


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    made = table_of(tmp_path / "t", COLUMNS)
    write_deltalake(DeltaTable(made.uri, plugins=PLUGINS), ROWS, mode="append")
    return DeltaTable(made.uri, plugins=PLUGINS)


def rows_of(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    found = table.to_pyarrow_table(columns=["id", *columns]).to_pylist()
    return sorted(tuple(r.values()) for r in found)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("v > 15", [2]),
        ("v = 10", [1]),
        ("v <=> null", [3]),
        ("v in (10, 20)", [1, 2]),
        ("v between id and 10", [1]),
        ("v + 1 = 21", [2]),
        ("coalesce(v, 0) = 0", [3]),
        ("cast(v as string) = '10'", [1]),
        ("c = 'a' or c > 'b'", [1, 3]),
        ("upper(c) in ('A', 'B')", [1, 2]),
        ("d = DATE'1970-01-02'", [2]),
        ("year(d) = 1970 and d < '1970-01-02'", [1]),
        ("s.m >= 1", [1, 3]),
        ("size(a) > 0 and get(a, 0) = 1", [1]),
        ("array_contains(a, 2)", [1]),
    ],
)
def test_columns_are_compared_and_cast(predicate: str, expected: list[int], table: DeltaTable) -> None:
    found = table.snapshot().scan(["id"], predicate=predicate).to_table()
    assert sorted(found.column("id").to_pylist()) == expected


def test_filters_of_other_libraries_take_them(table: DeltaTable) -> None:
    assert table.to_pyarrow_table(filters=[("v", ">", 15)]).num_rows == 1
    assert table.to_pyarrow_table(filters=pc.field("v") == 10).num_rows == 1


def test_update_assigns_values_of_the_stored_type(table: DeltaTable) -> None:
    table.update({"v": "v + id", "c": "concat(c, '!')", "s.m": "v"}, predicate="id < 3")
    table.update({"d": "'1970-02-01'"}, predicate="v is null")
    table.update(new_values={"v": 7}, predicate="id = 3")
    table.update({"c": "null"}, predicate="id = 1")
    found = rows_of(table, "v", "c", "s", "d")
    assert [r[:4] for r in found] == [(1, 11, None, {"m": 10}), (2, 22, "b!", {"m": 20}), (3, 7, "c", {"m": 3})]
    assert str(found[2][4]) == "1970-02-01"


def test_values_that_do_not_fit_are_rejected(table: DeltaTable) -> None:
    with pytest.raises(ExpressionError, match="ten"):
        table.update({"v": "'ten'"})
    with pytest.raises(ExpressionError):
        table.to_pyarrow_table(filters=[("a", "=", 1)])


def test_delete_and_replace_read_them(table: DeltaTable) -> None:
    table.delete("v = 10")
    new = ROWS.slice(1, 1).set_column(0, "id", pa.array([9]))
    write_deltalake(table, new, mode="overwrite", predicate="v = 20")
    assert rows_of(table, "v") == [(3, None), (9, 20)]
    write_deltalake(table, new.set_column(0, "id", pa.array([10])), mode="overwrite", replace_using=["v", "c"])
    assert rows_of(table, "v") == [(3, None), (10, 20)]


@pytest.mark.parametrize("merge_schema", [False, True])
def test_merge_matches_assigns_and_inserts_them(merge_schema: bool, table: DeltaTable) -> None:
    source = pa.table({"id": [2, 5], "v": [20, 50], "c": ["x", "y"], "s": [{"m": 7}, None], "a": [[5], [6]]})
    merger = table.merge(source, "target.v = source.v", merge_schema=merge_schema)
    merger.when_matched_update_all("source.c = 'x'").when_not_matched_insert_all().execute()
    expected = [
        (1, 10, "a", {"m": 1}, [1, 2]),
        (2, 20, "x", {"m": 7}, [5]),
        (3, None, "c", {"m": 3}, None),
        (5, 50, "y", None, [6]),
    ]
    assert rows_of(table, "v", "c", "s", "a") == expected
    merger = table.merge(source, "target.id = source.id", merge_schema=merge_schema)
    merger.when_matched_update({"v": "target.v + source.v", "s.m": "1"}).execute()
    assert rows_of(table, "v", "s")[1] == (2, 40, {"m": 1})
    assert table.schema().get("v").type == PrimitiveType("money")  # type: ignore[union-attr]


def test_merge_takes_rows_of_the_table_itself(table: DeltaTable) -> None:
    merger = table.merge(table.snapshot().scan(), "target.id = source.id")
    merger.when_matched_update_all().execute()
    assert rows_of(table, "v") == [(1, 10), (2, 20), (3, None)]


def test_partition_of_such_a_type_is_pruned_and_moved_to(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", {"id": "long", "v": "money"})
    metadata = {**made.state.metadata, "partitionColumns": ["v"]}
    made.commit({"metaData": metadata})
    table = DeltaTable(made.uri, plugins=PLUGINS)
    write_deltalake(table, ROWS.select(["id", "v"]), mode="append")
    assert table.snapshot().scan(predicate="v > 15").file_set.count == 1
    table.update({"v": "v * 2"}, predicate="v = 10")
    assert rows_of(table, "v") == [(1, 20), (2, 20), (3, None)]


def test_bounds_of_an_unordered_type_skip_no_file(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", {"id": "long", "v": "money", "r": "rank"})
    table = DeltaTable(made.uri, plugins=PLUGINS)
    for number in (1, 100):
        rows = pa.table({"id": [number], "v": [number], "r": [number]})
        write_deltalake(table, rows, mode="append")
    assert table.snapshot().scan(predicate="v > 50").file_set.count == 1
    assert table.snapshot().scan(predicate="r > 50").file_set.count == 2
    assert table.snapshot().scan(["id"], predicate="r > 50").to_table().num_rows == 1


def test_condition_sees_decoded_values_of_a_type_with_several_layouts(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", {"id": "long", "v": "money"})
    texts = TypeDef("money", pa.int64(), "BIGINT", decode=lambda x: pc.cast(pc.utf8_ltrim(x, "$"), pa.int64()))
    table = DeltaTable(made.uri, plugins=registry(primitive_types=lambda features: [texts]))
    write_deltalake(table, pa.table({"id": [1, 2], "v": [5, 40]}), mode="append")
    path = next(Path(made.uri).glob("*.parquet"))
    pq.write_table(pa.table({"id": [1, 2], "v": ["$5", "$40"]}), path)
    snapshot = DeltaTable(made.uri, plugins=registry(primitive_types=lambda features: [texts])).snapshot()
    for predicate, expected in (("v = 5", [1]), ("v > 9", [2]), ("v in (5, 40)", [1, 2])):
        assert snapshot.scan(["id"], predicate=predicate).to_table().column("id").to_pylist() == expected


def test_type_that_no_delta_type_stores_is_rejected_by_its_name(tmp_path: Path) -> None:
    made = table_of(tmp_path / "t", {"id": "long", "v": "span"})
    span = TypeDef("span", pa.duration("s"), "BIGINT")
    table = DeltaTable(made.uri, plugins=registry(primitive_types=lambda features: [span]))
    with pytest.raises(DeltaError, match="SPAN"):
        table.snapshot().scan(predicate="v > 1").to_table()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_type_equals_the_type_of_its_name(copied: Callable[[Any], Any]) -> None:
    t = CustomType("money", MONEY)
    assert copied(t) == t == PrimitiveType("money") == t
    assert hash(t) == hash(PrimitiveType("money"))
    assert t != PrimitiveType("code")
    assert t.to_json() == '"money"'
