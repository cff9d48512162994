"""Rows to files and back: through our reader and another one, and what the log specifies for them."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import (
    ConstraintViolationError,
    ExpressionError,
    HookContractError,
    InvalidArgumentError,
    PluginConflictError,
    SchemaMismatchError,
)
from delta_core.expressions.ast import (
    Call,
    Cast,
    Column,
    Literal,
    PhysicalColumn,
    TaskCount,
    TaskIndex,
    TaskRow,
    column,
)
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.rules import (
    ChangeCapture,
    FileRequirement,
    FillColumn,
    HiddenColumn,
    MetadataColumn,
    RowCheck,
)
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.kernel.write.files import Written, describe_files, write_change_files, write_files
from delta_core.kernel.write.plan import plan_write
from delta_core.kernels.arrow_buffers import ARROW_VERSION
from delta_core.schema.types import PrimitiveType
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.write.conftest import Make, append

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
NULLABLE = {"nullable": True, "metadata": {}}
INTEGERS = {"type": "array", "elementType": "integer", "containsNull": True}


def struct_of(**fields: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": n, "type": t, **NULLABLE} for n, t in fields.items()]}


def stats(written: Written, file: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written.files.column("stats")[file].as_py(), parse_float=Decimal)
    return found


def rows(snapshot: Snapshot, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = snapshot.scan(**options).to_table().to_pylist()
    return found


def parquet(snapshot: Snapshot, written: Written, file: int = 0) -> pq.ParquetFile:
    return pq.ParquetFile(Path(snapshot.uri) / written.paths[file])


def write(snapshot: Snapshot, data: Any, **options: Any) -> Written:
    return write_files(snapshot.engine, plan_write(snapshot.state, snapshot.plugins, "WRITE"), data, **options)


EVERY_TYPE: dict[str, Any] = {
    "boolean": [True, None, False],
    "byte": [-128, None, 127],
    "short": [1, None, -1],
    "integer": [2**31 - 1, None, 0],
    "long": [-(2**63), None, 1],
    "float": [0.5, None, -1.5],
    "double": [1e300, None, -0.0],
    "decimal(9,2)": [Decimal("1.50"), None, Decimal("-9999999.99")],
    "decimal(18,0)": [Decimal(10**17), None, Decimal(-1)],
    "decimal(38,10)": [Decimal("-12345678901234567890.0123456789"), None, Decimal(1)],
    "string": ["é", None, ""],
    "binary": [b"\xff", None, b""],
    "date": [dt.date(1582, 10, 4), None, dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(2024, 1, 1, 5, 6, 7, 891234, tzinfo=dt.UTC), None, dt.datetime(1, 1, 1, tzinfo=dt.UTC)],
    "timestamp_ntz": [dt.datetime(2024, 1, 1, 5, 6, 7, 891234), None, dt.datetime(1960, 1, 1)],
}


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("kind", EVERY_TYPE)
def test_each_type_reads_back_and_is_found_by_its_statistics(make: Make, kind: str, partitioned: bool) -> None:
    table = make({"id": "long", "v": kind}, features=["timestampNtz"], partition_by=["v"] if partitioned else [])
    expected = EVERY_TYPE[kind]
    if partitioned and kind == "binary":
        expected = ["ü \x01".encode(), None, b""]  # only text can be a partition's value
    values = pa.array(expected, PrimitiveType(kind).to_arrow())
    snapshot, _ = append(table, pa.table({"id": [0, 1, 2], "v": values}))
    if partitioned:
        expected = [None if v in ("", b"") else v for v in expected]
    found = snapshot.scan().to_table().sort_by("id")
    assert found.column("v").to_pylist() == expected
    assert open_snapshot(snapshot.uri).scan().to_table().sort_by("id").equals(found)
    for value in [v for v in expected if v is not None]:
        predicate = Call("=", (column("v"), Literal(value, PrimitiveType(kind))))
        assert value in [r["v"] for r in rows(snapshot, predicate=predicate)]


@pytest.mark.peer
def test_another_reader_finds_the_same_rows(make: Make) -> None:
    deltalake = pytest.importorskip("deltalake")
    names = [k for k in EVERY_TYPE if k != "timestamp_ntz"]
    table = make({f"c{i}": k for i, k in enumerate(names)} | {"p": "string"}, partition_by=["p"])
    columns = {f"c{i}": pa.array(EVERY_TYPE[k], PrimitiveType(k).to_arrow()) for i, k in enumerate(names)}
    snapshot, _ = append(table, pa.table({**columns, "p": ["a b/c%", None, "ü"]}))
    found = deltalake.DeltaTable(snapshot.uri).to_pyarrow_table()
    assert_same_rows(found, snapshot.scan().to_table())
    engine = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(snapshot.uri))
    found = pa.table(engine.execute("select c4 from t where c4 = 1 and p = 'ü'").read_all())
    assert found.column("c4").to_pylist() == [1]


NESTED = {
    "id": "long",
    "s": {
        "type": "struct",
        "fields": [
            {"name": "x", "type": "long", **NULLABLE},
            {
                "name": "l",
                "type": {
                    "type": "array",
                    "elementType": {"type": "struct", "fields": [{"name": "y", "type": "string", **NULLABLE}]},
                    "containsNull": True,
                },
                **NULLABLE,
            },
        ],
    },
    "m": {"type": "map", "keyType": "string", "valueType": INTEGERS, "valueContainsNull": True},
}
NESTED_ROWS: list[dict[str, Any]] = [
    {"id": 1, "s": {"x": 5, "l": [{"y": "a"}, None]}, "m": [("k", [1, None]), ("j", None)]},
    {"id": 2, "s": None, "m": None},
    {"id": 3, "s": {"x": None, "l": None}, "m": []},
]


@pytest.mark.parametrize("mapping", [None, "name", "id"])
def test_nested_columns_read_back_under_every_mapping(make: Make, mapping: str | None) -> None:
    table = make(NESTED, column_mapping=mapping)
    data = pa.Table.from_pylist(NESTED_ROWS, table.schema.to_arrow())
    snapshot, written = append(table, data)
    assert rows(snapshot) == NESTED_ROWS
    state = snapshot.state
    names = [f.name for f in state.column_map.physical]
    struct: Any = table.schema.fields[1].type
    file = parquet(snapshot, written)
    assert file.schema_arrow.names == names
    assert set(stats(written)["nullCount"]) == set(names)
    field = file.schema_arrow.field(1)
    assert ((field.metadata or {}).get(b"PARQUET:field_id") is None) == (mapping is None)
    if mapping is not None:
        inner = field.type.field(0)
        own = struct.fields[0].metadata["delta.columnMapping.id"]
        assert inner.metadata[b"PARQUET:field_id"] == str(own).encode()


def test_null_counts_of_lists_and_struct_fields_count_null_parents(make: Make) -> None:
    table = make(NESTED)
    _, written = append(table, pa.Table.from_pylist(NESTED_ROWS, table.schema.to_arrow()))
    assert stats(written)["nullCount"] == {"id": 0, "s": {"x": 2, "l": 2}, "m": 1}
    assert stats(written)["minValues"] == {"id": 1, "s": {"x": 5}}


def test_nested_ids_reach_the_parts_of_lists_and_maps(make: Make) -> None:
    ids = {"delta.columnMapping.nested.ids": {"m-phys.key": 101, "m-phys.value": 102, "m-phys.value.element": 103}}
    fields = [
        {
            "name": "m",
            "nullable": True,
            "type": NESTED["m"],
            "metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "m-phys", **ids},
        }
    ]
    table = make(
        {"type": "struct", "fields": fields},
        features=["columnMapping"],
        properties={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "103"},
    )
    values = pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int32())))
    snapshot, written = append(table, pa.table({"m": values}))
    text = str(parquet(snapshot, written).schema)
    assert all(f"field_id={n}" in text for n in (1, 101, 102, 103))
    assert rows(snapshot) == [{"m": [("k", [1])]}]


# --- matching columns ----------------------------------------------------------------------


def test_columns_are_matched_by_name_whatever_case_and_order(make: Make) -> None:
    snapshot, _ = append(make({"id": "long", "Name": "string"}), pa.table({"NAME": ["x"], "ID": [1]}))
    assert rows(snapshot) == [{"id": 1, "Name": "x"}]


def test_missing_column_is_null(make: Make) -> None:
    snapshot, _ = append(make({"id": "long", "name": "string"}), pa.table({"id": [1]}))
    assert rows(snapshot) == [{"id": 1, "name": None}]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pa.table({"id": [1], "extra": [1]}), "'extra', which the table does not have"),
        (pa.table({"id": [1], "ID": [1]}), "two columns 'id'"),
        (pa.table({"id": ["a"], "name": [1]}), "(?s)Column id comes as string.*Column name comes as int64"),
    ],
)
def test_rows_that_do_not_fit_are_rejected_before_a_file_is_begun(make: Make, data: pa.Table, words: str) -> None:
    table = make({"id": "long", "name": "string"})
    with pytest.raises(SchemaMismatchError, match=words):
        append(table, data)
    assert not list(Path(table.uri).glob("*.parquet"))


def test_no_rows_make_no_file(make: Make) -> None:
    table = make({"id": "long"})
    assert write(table, pa.table({"id": pa.array([], pa.int64())})).files.num_rows == 0
    stream = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), iter([]))
    assert write(table, stream).num_rows == 0


@pytest.mark.parametrize("error", [ValueError("no statistics"), KeyboardInterrupt()])
def test_files_that_can_not_be_described_are_deleted(
    make: Make, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    snapshot = make({"a": "long"})

    def fail(*_: Any) -> str:
        raise error

    monkeypatch.setattr("delta_core.kernel.write.files.statistics_json", fail)
    with pytest.raises(type(error)):
        append(snapshot, pa.table({"a": [1]}))
    assert not list(Path(snapshot.uri).rglob("*.parquet"))


@pytest.mark.parametrize(
    "form", ["table", "batch", "reader", "capsule", "pandas", "polars", "batches", "dataset", "scan"]
)
def test_rows_come_from_whatever_speaks_arrow(make: Make, tmp_path: Path, form: str) -> None:
    import polars as pl
    import pyarrow.dataset as ds

    data = pa.table({"id": [1, 2], "name": ["a", None]})

    class Capsule:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return data.__arrow_c_stream__(requested_schema)

    def scanned() -> Any:
        other = TableBuilder(tmp_path / "other").create({"id": "long", "name": "string"}).append(data)
        return open_snapshot(other.uri).scan()

    forms: dict[str, Any] = {
        "table": lambda: data,
        "batch": lambda: data.to_batches()[0],
        "reader": data.to_reader,
        "capsule": Capsule,
        "pandas": lambda: data.to_pandas().set_axis([7, 8]),
        "polars": lambda: pl.from_arrow(data),
        "batches": data.to_batches,
        "dataset": lambda: ds.dataset(data),
        "scan": scanned,
    }
    snapshot, _ = append(make({"id": "long", "name": "string"}), forms[form]())
    assert rows(snapshot) == data.to_pylist()


def test_rows_that_are_no_arrow_are_rejected(make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match="dict"):
        write(make({"id": "long"}), {"id": [1]})


# --- what the schema requires ------------------------------------------------------------------


def not_null(t: Any, **metadata: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": "v", "type": t, "nullable": False, "metadata": metadata}]}


def test_null_where_there_may_be_none_is_rejected_with_count_and_row(make: Make) -> None:
    table = make(
        {"type": "struct", "fields": [{"name": "id", "type": "long", **NULLABLE}, *not_null("long")["fields"]]}
    )
    with pytest.raises(ConstraintViolationError, match="2 values of column v") as caught:
        append(table, pa.table({"id": [1, 2, 3], "v": [1, None, None]}))
    assert (caught.value.count, caught.value.row) == (2, {"id": 2, "v": None})
    with pytest.raises(SchemaMismatchError, match="no column v"):
        append(table, pa.table({"id": [1]}))
    assert not list(Path(table.uri).glob("*.parquet"))


STRUCT = {"type": "struct", "fields": [{"name": "x", "type": "long", "nullable": False, "metadata": {}}]}
ARRAY = {"type": "array", "elementType": "long", "containsNull": False}
MAP = {"type": "map", "keyType": "string", "valueType": STRUCT, "valueContainsNull": True}


@pytest.mark.parametrize(
    ("t", "good", "bad"),
    [
        (STRUCT, [None, {"x": 1}], [{"x": None}]),
        (ARRAY, [None, [], [1]], [[1], [1, None]]),
        (MAP, [None, [("k", None)], [("k", {"x": 1})]], [[("k", {"x": None})]]),
    ],
    ids=["struct", "array", "map"],
)
def test_null_deep_within_is_found(make: Make, t: Any, good: list[Any], bad: list[Any]) -> None:
    table = make({"v": t})
    arrow = table.schema.to_arrow().field("v").type
    snapshot, _ = append(table, pa.table({"v": pa.array(good, arrow)}))
    assert [r["v"] for r in rows(snapshot)] == good
    with pytest.raises(ConstraintViolationError, match="NOT NULL v"):
        append(table, pa.table({"v": pa.array([*good, *bad], arrow)}).slice(1))


CHAR = "__CHAR_VARCHAR_TYPE_STRING"


@pytest.mark.parametrize(
    ("t", "declared", "good", "bad"),
    [
        ("string", "varchar(3)", ["éée", None, ""], "abcd"),
        ("string", "char(2)", ["ab"], "abc"),
        (
            {"type": "array", "elementType": "string", "containsNull": True},
            "array<varchar(2)>",
            [["ab"], None],
            ["abc"],
        ),
        (
            {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
            "map<string,varchar(2)>",
            [[("long key", "ab")]],
            [("k", "abc")],
        ),
        (struct_of(a="string", b="long"), "struct<a:varchar(2),b:bigint>", [{"a": "ab", "b": 1}], {"a": "abc", "b": 1}),
    ],
    ids=["varchar", "char", "array", "map", "struct"],
)
def test_text_longer_than_declared_is_rejected(make: Make, t: Any, declared: str, good: list[Any], bad: Any) -> None:
    fields = [{"name": "v", "type": t, "nullable": True, "metadata": {CHAR: declared}}]
    table = make({"type": "struct", "fields": fields})
    arrow = pa.schema([pa.field("v", table.schema.to_arrow().field("v").type)])
    snapshot, _ = append(table, pa.table({"v": pa.array(good, arrow.field(0).type)}))
    assert [r["v"] for r in rows(snapshot)] == good
    with pytest.raises(ConstraintViolationError, match="at most"):
        append(table, pa.table({"v": pa.array([*good, bad], arrow.field(0).type)}))


def test_void_columns_are_left_out_of_files(make: Make) -> None:
    table = make({"id": "long", "nothing": "void"})
    snapshot, written = append(table, pa.table({"id": [1], "nothing": pa.nulls(1)}))
    assert parquet(snapshot, written).schema_arrow.names == ["id"]
    assert rows(snapshot) == [{"id": 1, "nothing": None}]


# --- what features require ---------------------------------------------------------------------


def test_filled_columns_are_computed_in_order_and_checked(make: Make) -> None:
    table = make(
        {"id": "long", "twice": "long", "more": "long"},
        FillColumn("asking", ("more",), Call("+", (column("twice"), Literal(1, LONG)))),
        FillColumn("asking", ("twice",), Call("*", (column("id"), Literal(2, LONG)))),
        RowCheck("asking", "small", Call("<", (column("more"), Literal(10, LONG))), sql="more < 10"),
    )
    snapshot, _ = append(table, pa.table({"id": [1, 2]}))
    assert rows(snapshot) == [{"id": 1, "twice": 2, "more": 3}, {"id": 2, "twice": 4, "more": 5}]
    with pytest.raises(ConstraintViolationError) as caught:
        append(table, pa.table({"id": [1, 7, None, 8]}))
    assert (caught.value.name, caught.value.expression, caught.value.count) == ("small", "more < 10", 3)
    assert caught.value.row == {"id": 7, "twice": 14, "more": 15}


@pytest.mark.parametrize(("when", "expected"), [("absent", [9, None]), ("null", [9, 5]), ("always", [5, 5])])
def test_fill_leaves_what_was_given_as_it_states(make: Make, when: Any, expected: list[Any]) -> None:
    table = make({"v": "long", "id": "long"}, FillColumn("asking", ("v",), Literal(5, LONG), when))
    snapshot, _ = append(table, pa.table({"v": [9, None]}))
    assert [r["v"] for r in rows(snapshot)] == expected
    snapshot, _ = append(snapshot, pa.table({"id": [1]}))
    assert {"v": 5, "id": 1} in rows(snapshot)


def test_null_passes_a_check_only_where_it_may(make: Make) -> None:
    positive = Call(">", (column("v"), Literal(0, LONG)))
    table = make({"v": "long"}, RowCheck("asking", "positive", positive, null_passes=True))
    snapshot, _ = append(table, pa.table({"v": [1, None]}))
    assert len(rows(snapshot)) == 2


def test_rows_are_numbered_through_the_whole_write_and_bounds_reported(make: Make) -> None:
    number = Call("+", (Call("*", (TaskRow(), TaskCount())), TaskIndex()))
    table = make({"id": "long", "v": "string"}, FillColumn("asking", ("id",), number, "null", report_bounds=True))
    data = pa.RecordBatchReader.from_batches(
        pa.schema([("v", pa.string())]), (pa.record_batch({"v": ["x"] * 40_000}) for _ in range(10))
    )
    snapshot, written = append(table, data, task_index=3, num_tasks=5)
    assert written.reported == {("id",): (3, 1_999_998)}
    assert sorted(r["id"] for r in rows(snapshot)) == list(range(3, 2_000_000, 5))
    _, written = append(snapshot, pa.table({"id": [None, 7, None], "v": ["a"] * 3}))
    assert written.reported == {("id",): (0, 2)}


MARK = MetadataColumn("asking", "_mark", LONG, PhysicalColumn("_hidden-1", LONG))


def test_hidden_column_lies_in_files_that_hold_values_of_it_and_not_in_rows(make: Make) -> None:
    carried = HiddenColumn("asking", "_hidden-1", LONG, Literal(None, LONG), field_id=2147483000, carries="_mark")
    table = make({"id": "long"}, carried, MARK)
    snapshot, written = append(table, pa.table({"id": [1, 2], "_hidden-1": [10, None]}))
    file = parquet(snapshot, written)
    assert file.schema_arrow.field("_hidden-1").metadata == {b"PARQUET:field_id": b"2147483000"}
    assert file.read().column("_hidden-1").to_pylist() == [10, None]
    assert rows(snapshot) == [{"id": 1}, {"id": 2}]
    snapshot, written = append(table, pa.table({"id": [3]}))
    assert parquet(snapshot, written).schema_arrow.names == ["id"]


def test_moved_rows_without_what_is_carried_are_rejected(make: Make) -> None:
    carried = HiddenColumn("asking", "_hidden-1", LONG, Literal(None, LONG), carries="_mark")
    table = make({"id": "long"}, carried, MARK)
    snapshot, _ = append(table, pa.table({"id": [1], "_hidden-1": [10]}), origin="moved")
    with pytest.raises(InvalidArgumentError, match="without _mark"):
        append(snapshot, pa.table({"id": [1]}), origin="moved")


def test_updated_rows_carry_hidden_columns_unless_updates_clear_them(make: Make) -> None:
    kept = HiddenColumn("asking", "_hidden-1", LONG, Literal(None, LONG), carries="_mark")
    cleared = HiddenColumn("asking", "_hidden-2", LONG, Literal(None, LONG), carries="_since", on_update="clear")
    since = MetadataColumn("asking", "_since", LONG, PhysicalColumn("_hidden-2", LONG))
    table = make({"id": "long"}, kept, cleared, MARK, since)
    snapshot, written = append(table, pa.table({"id": [1], "_hidden-1": [10]}), origin="updated")
    assert parquet(snapshot, written).read().to_pydict() == {"id": [1], "_hidden-1": [10]}
    with pytest.raises(InvalidArgumentError, match="updated without _mark"):
        append(snapshot, pa.table({"id": [1]}), origin="updated")
    with pytest.raises(SchemaMismatchError, match="_hidden-2"):
        append(snapshot, pa.table({"id": [1], "_hidden-1": [10], "_hidden-2": [3]}), origin="updated")


def test_updated_rows_are_checked_and_their_computed_columns_computed_again(make: Make) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {}},
            {"name": "twice", "type": "long", **NULLABLE},
            {"name": "own", "type": "long", **NULLABLE},
        ],
    }
    twice = Call("*", (column("id"), Literal(2, LONG)))
    fills = (
        FillColumn("asking", ("twice",), twice),
        FillColumn("asking", ("own",), TaskRow(), exclusive=True, report_bounds=True),
    )
    positive = RowCheck("asking", "positive", Call(">", (column("id"), Literal(0, LONG))))
    same = RowCheck("asking", "same", Call("<=>", (column("twice"), twice)), given=("twice",))
    table = make(schema, *fills, positive, same)
    plan = plan_write(table.state, table.plugins, "UPDATE")
    assert plan.computed == ("twice",)
    with pytest.raises(SchemaMismatchError, match="own can't be assigned"):
        plan.check_assigned(["id", "own"])
    snapshot, written = append(table, pa.table({"id": [4], "own": [7]}), origin="updated")
    assert (rows(snapshot), written.reported) == ([{"id": 4, "twice": 8, "own": 7}], {})
    for wrong, name in (
        ({"id": [-1], "own": [7]}, "positive"),
        ({"id": [4], "twice": [9], "own": [7]}, "same"),
        ({"id": pa.array([None], pa.int64()), "own": [7]}, "NOT NULL id"),
    ):
        with pytest.raises(ConstraintViolationError, match=name):
            append(snapshot, pa.table(wrong), origin="updated")
    moved = pa.table({"id": [-1], "twice": [0], "own": [7]})
    assert append(snapshot, moved, origin="moved")[1].num_rows == 1


def test_hidden_column_is_recomputed_from_others(make: Make) -> None:
    hashed = HiddenColumn("asking", "_h", STRING, Cast(column("id"), STRING), "recompute")
    snapshot, written = append(make({"id": "long"}, hashed), pa.table({"id": [1, 2]}))
    assert parquet(snapshot, written).read().column("_h").to_pylist() == ["1", "2"]
    with pytest.raises(SchemaMismatchError, match="'_h'"):
        append(snapshot, pa.table({"id": [1], "_h": ["x"]}))


def test_expressions_see_hidden_columns_that_rows_provide(make: Make) -> None:
    kept = HiddenColumn("asking", "_k", LONG, Literal(None, LONG), carries="_mark")
    table = make({"id": "long", "v": "long"}, kept, MARK, FillColumn("asking", ("v",), PhysicalColumn("_k", LONG)))
    snapshot, _ = append(table, pa.table({"id": [1], "_k": [5]}))
    snapshot, _ = append(snapshot, pa.table({"id": [2]}))
    assert [r["v"] for r in rows(snapshot)] == [5, None]


def test_failing_expression_writes_nothing(make: Make) -> None:
    broken = FillColumn("asking", ("v",), Call("/", (Literal(1, LONG), column("id"))))
    table = make({"id": "long", "v": "double"}, broken)
    with pytest.raises(ExpressionError, match="DIVIDE_BY_ZERO"):
        append(table, pa.table({"id": [1, 0]}))
    assert not list(Path(table.uri).rglob("*.parquet"))


# --- partitions ----------------------------------------------------------------------------


def test_each_partition_gets_its_rows_in_order_and_one_file(make: Make) -> None:
    table = make({"id": "long", "a": "string", "b": "long"}, partition_by=["a", "b"])
    data = pa.table({"id": list(range(12)), "a": ["x", "y", None] * 4, "b": [1, 1, 2, 2] * 3})
    snapshot, written = append(table, data)
    assert written.files.num_rows == 6
    for i, values in enumerate(written.files.column("partitionValues").to_pylist()):
        key = dict(values)
        expected = [r for r in data.to_pylist() if r["a"] == key["a"] and str(r["b"]) == key["b"]]
        assert rows(snapshot, files=FileSet.of(written.files.slice(i, 1))) == expected
    assert "a=__HIVE_DEFAULT_PARTITION__/b=2/" in "".join(written.paths)
    assert "a" not in parquet(snapshot, written).schema_arrow.names
    assert set(stats(written)["nullCount"]) == {"id"}


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["", "a b", "ü/%", None]), st.sampled_from([None, 0, -1]))))
def test_split_keeps_every_row_once(tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[Any, Any]]) -> None:
    path = tmp_path_factory.mktemp("t")
    TableBuilder(path).create({"id": "long", "a": "string", "b": "integer"}, partition_by=["a", "b"])
    data = pa.table(
        {
            "id": list(range(len(keys))),
            "a": pa.array([k[0] for k in keys], pa.string()),
            "b": pa.array([k[1] for k in keys], pa.int32()),
        }
    )
    snapshot, written = append(open_snapshot(str(path)), data)
    found = snapshot.scan().to_table().sort_by("id").to_pylist()
    assert found == [{"id": i, "a": k[0] or None, "b": k[1]} for i, k in enumerate(keys)]
    assert written.files.num_rows == len({(a or None, b) for a, b in keys})


def test_materialised_partition_columns_are_behind_the_others(make: Make) -> None:
    asked = FileRequirement("asking", materialize_partition_columns=True)
    table = make({"p": "string", "id": "long"}, asked, partition_by=["p"])
    snapshot, written = append(table, pa.table({"p": ["a"], "id": [1]}))
    assert parquet(snapshot, written).schema_arrow.names == ["id", "p"]
    assert rows(snapshot) == [{"p": "a", "id": 1}]


def test_random_prefix_hides_the_partition(make: Make) -> None:
    table = make({"p": "string", "id": "long"}, FileRequirement("asking", random_prefix=True), partition_by=["p"])
    snapshot, written = append(table, pa.table({"p": ["secret"], "id": [1]}))
    assert len(written.paths[0].partition("/")[0]) == 2
    assert "secret" not in written.paths[0]
    assert rows(snapshot) == [{"p": "secret", "id": 1}]


@pytest.mark.parametrize("random_prefix", [False, True], ids=["plain", "prefixed"])
def test_new_files_are_in_the_folder_that_a_feature_names(make: Make, random_prefix: bool) -> None:
    asked = FileRequirement("asking", folder="bronze/2026", random_prefix=random_prefix)
    table = make({"p": "string", "id": "long"}, asked, partition_by=["p"])
    snapshot, written = append(table, pa.table({"p": ["a", "b"], "id": [1, 2]}))
    below = "[A-Za-z0-9]{2}" if random_prefix else "p=[ab]"
    assert all(re.fullmatch(f"bronze/2026/{below}/part-[^/]+", path) for path in written.paths)
    assert len(set(written.paths)) == 2
    assert rows(open_snapshot(snapshot.uri), predicate="p = 'b'") == [{"p": "b", "id": 2}]


def test_change_files_are_in_the_same_folder_below_theirs(make: Make) -> None:
    rules = ChangeCapture("asking", "_change_type"), FileRequirement("asking", folder="bronze")
    table = make({"id": "long"}, *rules)
    plan = plan_write(table.state, table.plugins, "UPDATE")
    written = write_change_files(table.engine, plan, pa.table({"id": [1], "_change_type": ["delete"]}))
    assert written.paths[0].startswith("_change_data/bronze/cdc-00000-")


@pytest.mark.parametrize(
    "folder",
    ["_delta_log", "a/_b", ".a", "a/.", "a/..", "..", "/a", "a/", "a//b", "s3://b", "C:", "a\\b", "a b", "a%20", "é",
     "a.", "a\n", "a" * 201],
)  # fmt: skip
def test_folder_that_is_hidden_or_no_plain_relative_path_is_rejected(make: Make, folder: str) -> None:
    table = make({"id": "long"}, FileRequirement("asking", folder=folder))
    with pytest.raises(HookContractError, match=r"FileRequirement\.folder of hook write_rules of plugin 'asking'"):
        write(table, pa.table({"id": [1]}))
    assert not list(Path(table.uri).rglob("*.parquet"))


def test_two_folders_of_one_table_conflict(make: Make) -> None:
    table = make({"id": "long"}, *[FileRequirement("asking", folder=f) for f in ("a", "b")])
    with pytest.raises(PluginConflictError, match="'a' and 'b'"):
        write(table, pa.table({"id": [1]}))


# --- statistics ----------------------------------------------------------------------------


def test_file_with_nan_has_no_bounds_of_the_column_alone(make: Make) -> None:
    table = make({"f": "float", "d": "double", "s": struct_of(x="double")})
    nan = float("nan")
    data = pa.table({"f": pa.array([1, nan], pa.float32()), "d": [1.0, 2.0], "s": [{"x": nan}, {"x": 1.0}]})
    _, written = append(table, data)
    assert stats(written)["minValues"] == {"d": 1}
    assert stats(written)["nullCount"] == {"f": 0, "d": 0, "s": {"x": 0}}


def test_infinities_that_cancel_are_no_nan(make: Make) -> None:
    _, written = append(make({"d": "double"}), pa.table({"d": [float("inf"), float("-inf"), 1.0]}))
    assert stats(written)["minValues"] == stats(written)["maxValues"] == {}
    _, written = append(make({"d": "double"}), pa.table({"d": [float("inf"), 1.0]}))
    assert stats(written)["minValues"] == {"d": 1}


def test_texts_too_long_for_footers_still_have_bounds(make: Make) -> None:
    data = pa.table({"s": ["b" * 9000, "c", "a" * 5000]})
    _, written = append(make({"s": "string"}), data, properties=WriterProperties(max_row_group_size=2))
    assert stats(written)["minValues"] == {"s": "a" * 32}
    assert stats(written)["maxValues"] == {"s": "c"}


def test_column_of_nulls_has_its_count_and_no_bounds(make: Make) -> None:
    _, written = append(make({"id": "long", "n": "long"}), pa.table({"id": [1, 2]}))
    assert stats(written) == {
        "numRecords": 2,
        "minValues": {"id": 1},
        "maxValues": {"id": 2},
        "nullCount": {"id": 0, "n": 2},
        "tightBounds": True,
    }


@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), st.text(max_size=70)), min_size=1, max_size=8))
def test_bounds_of_any_texts_contain_them(tmp_path_factory: pytest.TempPathFactory, texts: list[str | None]) -> None:
    path = tmp_path_factory.mktemp("t")
    TableBuilder(path).create({"s": "string"})
    written = write(open_snapshot(str(path)), pa.table({"s": pa.array(texts, pa.string())}))
    found = stats(written)
    for text in [t for t in texts if t is not None]:
        assert found["minValues"]["s"].encode() <= text.encode()
        assert "s" not in found["maxValues"] or text.encode() <= found["maxValues"]["s"].encode()


# --- how files are written -----------------------------------------------------------------


@pytest.mark.skipif(ARROW_VERSION < 24, reason="PyArrow writes Bloom filters from 24 on")
def test_properties_reach_the_file(make: Make) -> None:
    table = make({"id": "long", "s": "string", "b": "boolean"}, properties={"delta.parquet.compression.codec": "zstd"})
    chosen = WriterProperties(
        max_row_group_size=3,
        column_properties={
            "ID": ColumnProperties(None, None, BloomFilterProperties(True, 0.01, 10), "DELTA_BINARY_PACKED"),
            "s": ColumnProperties(dictionary_enabled=False, statistics_enabled="NONE"),
        },
    )
    snapshot, written = append(table, pa.table({"id": range(7), "s": ["a"] * 7, "b": [True] * 7}), properties=chosen)
    assert written.paths[0].endswith(".zstd.parquet")
    metadata = parquet(snapshot, written).metadata
    assert metadata.num_row_groups == 3
    first, second, _ = (metadata.row_group(0).column(i) for i in range(3))
    assert "DELTA_BINARY_PACKED" in first.encodings
    assert first.bloom_filter_offset is not None
    assert second.bloom_filter_offset is None
    assert first.compression == "ZSTD"
    assert not second.has_dictionary_page
    assert stats(written)["minValues"] == {"id": 0, "s": "a"}


def test_only_texts_have_dictionaries_by_default(make: Make) -> None:
    snapshot, written = append(make({"id": "long", "s": "string"}), pa.table({"id": [1], "s": ["a"]}))
    group = parquet(snapshot, written).metadata.row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(2)] == [False, True]


def test_unknown_column_in_properties_is_named(make: Make) -> None:
    chosen = WriterProperties(column_properties={"zz": ColumnProperties()})
    with pytest.raises(LookupError, match="zz"):
        append(make({"id": "long"}), pa.table({"id": [1]}), properties=chosen)


def test_facts_of_files_are_those_of_the_store(make: Make) -> None:
    snapshot, written = append(make({"id": "long"}), pa.table({"id": [1, 2]}), data_change=False)
    (found,) = written.files.to_pylist()
    place = Path(snapshot.uri) / written.paths[0]
    assert found["size"] == place.stat().st_size == written.num_bytes
    assert found["modificationTime"] == place.stat().st_mtime_ns // 1_000_000
    assert (found["numRecords"], found["fresh"], found["dataChange"]) == (2, True, False)


def test_cleanup_deletes_what_was_written(make: Make) -> None:
    table = make({"id": "long", "p": "string"}, partition_by=["p"])
    written = write(table, pa.table({"id": [1, 2], "p": ["a", "b"]}))
    assert len(list(Path(table.uri).rglob("*.parquet"))) == 2
    written.cleanup()
    written.cleanup()
    assert not list(Path(table.uri).rglob("*.parquet"))


# --- change files and files from elsewhere -------------------------------------------------


def test_change_rows_lie_in_their_directory_with_the_kind_of_change(make: Make) -> None:
    table = make(
        {"id": "long", "p": "string"},
        ChangeCapture("asking", "_change_type"),
        RowCheck("asking", "never", Literal(False, PrimitiveType("boolean"))),
        partition_by=["p"],
    )
    plan = plan_write(table.state, table.plugins, "UPDATE")
    data = pa.table({"id": [1, 2], "p": ["a", "a"], "_change_type": ["update_preimage", "update_postimage"]})
    written = write_change_files(table.engine, plan, data)
    assert written.paths[0].startswith("_change_data/p=a/cdc-00000-")
    assert written.files.column_names == ["path", "partitionValues", "size", "dataChange", "tags"]
    assert written.files.column("dataChange").to_pylist() == [False]
    assert parquet(table, written).schema_arrow.names == ["id", "_change_type"]


def test_change_rows_need_a_feature_that_keeps_them(make: Make) -> None:
    table = make({"id": "long"})
    with pytest.raises(InvalidArgumentError, match="change files"):
        write_change_files(table.engine, plan_write(table.state, table.plugins, "X"), pa.table({"id": [1]}))


def test_files_from_outside_the_table_are_described_by_their_footers(make: Make) -> None:
    table = make({"id": "long", "s": "string", "d": "double", "l": INTEGERS, "p": "date"}, partition_by=["p"])
    data = pa.table(
        {"id": [1, None], "s": ["a", "b"], "d": [1.0, 2.0], "l": pa.array([[1], None], pa.list_(pa.int32()))}
    )
    pq.write_table(data, Path(table.uri) / "foreign file.parquet")
    plan = plan_write(table.state, table.plugins, "REGISTER")
    found = describe_files(table.engine, plan, ["foreign file.parquet"], [{"p": dt.date(2024, 1, 1)}])
    (add,) = found.to_pylist()
    assert (add["path"], add["partitionValues"]) == ("foreign%20file.parquet", [("p", "2024-01-01")])
    assert json.loads(add["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 1, "s": "a"},
        "maxValues": {"id": 1, "s": "b"},
        "nullCount": {"id": 1, "s": 0, "d": 0},
        "tightBounds": True,
    }
    assert rows(table, files=FileSet.of(found))[0] == {"id": 1, "s": "a", "d": 1.0, "l": [1], "p": dt.date(2024, 1, 1)}


def test_file_from_outside_the_table_with_a_strange_column_is_rejected(make: Make) -> None:
    table = make({"id": "long"})
    pq.write_table(pa.table({"id": [1], "z": [1]}), Path(table.uri) / "f.parquet")
    with pytest.raises(SchemaMismatchError, match="'z'"):
        describe_files(table.engine, plan_write(table.state, table.plugins, "X"), ["f.parquet"])


def test_bounds_in_another_unit_are_not_taken(make: Make) -> None:
    table = make({"t": "timestamp"})
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    pq.write_table(pa.table({"t": pa.array([moment], pa.timestamp("ms", "UTC"))}), Path(table.uri) / "f.parquet")
    found = describe_files(table.engine, plan_write(table.state, table.plugins, "X"), ["f.parquet"])
    assert "minValues" not in json.loads(found.column("stats")[0].as_py()) or not stats_of(found)["minValues"]
    assert rows(table, files=FileSet.of(found)) == [{"t": moment}]


def stats_of(files: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files.column("stats")[0].as_py())
    return found


def test_checks_see_columns_by_path(make: Make) -> None:
    inner = Call(">", (Column(("s", "x")), Literal(0, LONG)))
    table = make({"s": struct_of(x="long")}, RowCheck("asking", "inner", inner))
    snapshot, _ = append(table, pa.table({"s": [{"X": 1}]}))
    assert rows(snapshot) == [{"s": {"x": 1}}]
    with pytest.raises(ConstraintViolationError, match="inner"):
        append(table, pa.table({"s": [{"x": 1}, None]}))
