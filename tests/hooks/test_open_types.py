"""Types of plugins whose Arrow types Delta lacks: rows are compared, updated, merged, deleted; no file is skipped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError, ExpressionError
from delta_core.schema.types import TypeDef
from tests.hooks.external_plugins import registry, table_of


class Case(NamedTuple):
    """An Arrow type, two values of it, and SQL that is equal to the first one."""

    arrow: pa.DataType
    values: tuple[Any, Any]
    sql: str
    decode: Callable[[pa.Array], pa.Array] | None = None


DAY = datetime(2020, 1, 1)
CASES = {
    "span": Case(
        pa.duration("s"),
        (timedelta(seconds=5), timedelta(days=-1)),
        "INTERVAL 5 SECOND",
        lambda x: x.view(pa.duration("s")),
    ),
    "clock": Case(pa.time64("us"), (time(1), time(23, 59)), "'01:00:00'"),
    "count": Case(pa.uint64(), (5, 2**64 - 1), "5"),
    "flags": Case(pa.uint8(), (5, 255), "5"),
    "nanos": Case(pa.timestamp("ns"), (DAY, datetime(1960, 1, 1)), "'2020-01-01 00:00:00'"),
    "instant": Case(
        pa.timestamp("ns", "UTC"), (DAY.replace(tzinfo=UTC), DAY.replace(1960, tzinfo=UTC)), "DATE'2020-01-01'"
    ),
    "millis": Case(pa.timestamp("ms"), (DAY, datetime(1960, 1, 1)), "'2020-01-01 00:00:00'"),
    "half": Case(pa.float16(), (5.0, 1.5), "5"),
    "code": Case(pa.binary(2), (b"ab", b"zz"), "X'6162'"),
    "wide": Case(pa.decimal256(50, 2), (Decimal(5), Decimal(10**45)), "5"),
    "text": Case(pa.large_string(), ("5", "x"), "'5'", lambda x: pc.cast(x, pa.large_string())),
    "day": Case(pa.date64(), (date(2020, 1, 1), date(1960, 1, 1)), "'2020-01-01'", lambda x: pc.cast(x, pa.date64())),
}


def made(path: Path, name: str) -> DeltaTable:
    """Return a table with a row for each value and one that is null."""
    case = CASES[name]
    types = [TypeDef(name, case.arrow, name.upper(), decode=case.decode)]
    plugins = registry(primitive_types=lambda features: types)
    builder = table_of(path / "t", {"id": "long", "v": name})
    rows = pa.table({"id": [1, 2, 3], "v": pa.array([*case.values, None], case.arrow)})
    write_deltalake(DeltaTable(builder.uri, plugins=plugins), rows, mode="append")
    return DeltaTable(builder.uri, plugins=plugins)


def values_by_id(table: DeltaTable) -> dict[int, Any]:
    return {row["id"]: row["v"] for row in table.to_pyarrow_table().to_pylist()}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_selected_by_value(name: str, tmp_path: Path) -> None:
    table, sql = made(tmp_path, name), CASES[name].sql
    for predicate, expected in (
        (f"v = {sql}", [1]),
        (f"v != {sql}", [2]),
        (f"v in ({sql}, null)", [1]),
        (f"v >= {sql} or v < {sql}", [1, 2]),
        (f"v <=> {sql}", [1]),
        ("v is null", [3]),
        ("v = v", [1, 2]),
        (f"coalesce(v, {sql}) = {sql}", [1, 3]),
    ):
        found = table.snapshot().scan(["id"], predicate=predicate).to_table()
        assert sorted(found["id"].to_pylist()) == expected, predicate


@pytest.mark.parametrize("name", CASES)
def test_rows_are_updated_and_deleted(name: str, tmp_path: Path) -> None:
    table, (first, second) = made(tmp_path, name), CASES[name].values
    table.update({"v": CASES[name].sql}, predicate="id = 3")
    table.update({"v": "null"}, predicate=f"v = {CASES[name].sql} and id = 1")
    assert values_by_id(table) == {1: None, 2: second, 3: first}
    table.delete(f"v = {CASES[name].sql}")
    assert values_by_id(table) == {1: None, 2: second}


@pytest.mark.parametrize("name", CASES)
def test_rows_are_merged_by_value(name: str, tmp_path: Path) -> None:
    table, case = made(tmp_path, name), CASES[name]
    first, second = case.values
    source = pa.table({"id": [3, 4], "v": pa.array(case.values, case.arrow)})
    merger = table.merge(source, "target.id = source.id")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()
    assert values_by_id(table) == {1: first, 2: second, 3: first, 4: second}
    source = pa.table({"id": [20], "v": pa.array([second], case.arrow)})
    merger = table.merge(source, "target.v = source.v and target.id < 3")
    merger.when_matched_update({"id": "source.id"}).when_not_matched_insert_all().execute()
    assert values_by_id(table) == {1: first, 20: second, 3: first, 4: second}


def test_nanoseconds_are_compared_and_merged_exactly(tmp_path: Path) -> None:
    table = made(tmp_path, "nanos")
    stored = pa.array([1, 2]).view(pa.timestamp("ns"))
    merger = table.merge(pa.table({"id": [7, 8], "v": stored}), "target.id = source.id")
    merger.when_not_matched_insert_all().execute()
    for predicate, expected in (
        ("v = '1970-01-01 00:00:00.000000001'", [7]),
        ("v > '1970-01-01 00:00:00.000000001' and v < '1970-01-02'", [8]),
    ):
        assert table.snapshot().scan(["id"], predicate=predicate).to_table()["id"].to_pylist() == expected


def test_files_hold_no_bounds_of_types_that_delta_lacks(tmp_path: Path) -> None:
    for name in CASES:
        table = made(tmp_path / name, name)
        shown = pa.table(table.get_add_actions(flatten=True))
        assert shown["null_count.v"].to_pylist() == [1]
        assert not {"min.v", "max.v"} & set(shown.column_names)
        text = next(Path(tmp_path / name).rglob("*1.json")).read_text()
        assert '\\"v\\":1' in text
        assert '\\"minValues\\":{\\"id\\":1}' in text
        table.create_checkpoint()
        assert not table.verify().findings


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("span", "v + 1"),
        ("span", "v = 'x'"),
        ("clock", "v = 5"),
        ("clock", "year(v) = 1"),
        ("clock", "cast(v as int) = 1"),
    ],
)
def test_operation_without_meaning_is_rejected_with_the_name_of_the_type(
    name: str, expression: str, tmp_path: Path
) -> None:
    with pytest.raises(ExpressionError, match=f"(?i){name}"):
        made(tmp_path, name).snapshot().scan(predicate=expression)


def test_column_that_the_table_lacks_is_not_added_with_such_a_type(tmp_path: Path) -> None:
    table = made(tmp_path, "clock")
    source = pa.table({"id": [9], "v": pa.array([time(1)]), "w": pa.array([timedelta(1)])})
    with pytest.raises(DeltaError, match="duration"):
        table.merge(source, "target.id = source.id", merge_schema=True).when_not_matched_insert_all().execute()
