"""Merges whose source has other fields than the table, against a model in Python and what delta-spark leaves.

``DELTA_CORE_PARTIAL_MERGES=5000 pytest tests/operations/test_partial_merges.py`` tries more generated cases.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ColumnNotFoundError, ConstraintViolationError, ExpressionError, SchemaMismatchError
from delta_core.schema import PrimitiveType
from tests.operations.partial_merges import (
    FAILED,
    NUM_RECORDED,
    RECORDED,
    REJECTED,
    Case,
    RejectedError,
    generated,
    model,
    named_cases,
    shown,
)

#: Generated cases; more of them on request.
CASES = int(os.environ.get("DELTA_CORE_PARTIAL_MERGES", "80"))
NAMED = {case.name: case for case in named_cases()}
ANSWERS = json.loads(RECORDED.read_text())


def expected(case: Case, is_evolving: bool) -> list[Any] | str:
    """Return the columns and rows after a merge by the model, `REJECTED` if that rejects it."""
    try:
        schema, rows = model(case, is_evolving)
    except RejectedError:
        return REJECTED
    # as JSON has it
    return json.loads(json.dumps(shown(schema, rows)))  # type: ignore[no-any-return]


def merged(path: Path, case: Case, is_evolving: bool) -> list[Any] | str:
    """Return the columns and rows after a merge; `REJECTED` if it is rejected, and then nothing is committed."""
    write_deltalake(str(path), case.table)
    table = DeltaTable(str(path))
    merger = table.merge(case.source, "target.id = source.id", merge_schema=is_evolving)
    for clause in case.clauses:
        kind, updates = clause.kind, clause.updates
        if kind == "not_matched_by_source":
            merger.when_not_matched_by_source_update(dict(updates or {}))
        elif kind == "matched":
            merger.when_matched_update_all() if updates is None else merger.when_matched_update(dict(updates))
        else:
            merger.when_not_matched_insert_all() if updates is None else merger.when_not_matched_insert(dict(updates))
    try:
        merger.execute()
    except SchemaMismatchError:
        assert DeltaTable(str(path)).version() == 0
        return REJECTED
    found = table.to_pyarrow_table()
    return json.loads(json.dumps(shown(found.schema, found.to_pylist())))  # type: ignore[no-any-return]


def recorded() -> Sequence[Case]:
    return [*NAMED.values(), *map(generated, range(NUM_RECORDED))]


def test_model_leaves_what_delta_spark_leaves() -> None:
    differing = [
        (case.name, is_evolving)
        for case in recorded()
        for is_evolving in (False, True)
        if ANSWERS[case.name][is_evolving] not in (*FAILED, expected(case, is_evolving))
    ]
    assert differing == []


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("is_evolving", [False, True], ids=["strict", "evolving"])
def test_merge_leaves_what_delta_spark_leaves(name: str, is_evolving: bool, tmp_path: Path) -> None:
    answer = ANSWERS[name][is_evolving]
    wanted = expected(NAMED[name], is_evolving) if answer in FAILED else answer
    assert merged(tmp_path / "t", NAMED[name], is_evolving) == wanted


def test_generated_merges_leave_what_the_model_leaves(tmp_path: Path) -> None:
    differing = []
    for seed in range(CASES):
        case = generated(seed)
        for is_evolving in (False, True):
            found, wanted = merged(tmp_path / f"{seed}-{is_evolving}", case, is_evolving), expected(case, is_evolving)
            if found != wanted:
                differing.append((seed, is_evolving, found, wanted))
    assert differing == []


# --- columns that only the source has --------------------------------------------------------


def test_clause_may_read_a_column_that_only_the_source_has(tmp_path: Path) -> None:
    table = made(tmp_path)
    source = pa.table({"key": [1, 9], "id": [10, 90], "v": [5, 6], "op": ["u", "i"]})
    merger = table.merge(source, "target.id = source.key").when_matched_update_all("source.op = 'u'")
    merger.when_not_matched_insert_all("op = 'i'").execute()
    assert rows_of(table) == [(10, 5), (2, 20), (90, 6)]


def test_column_of_a_type_without_a_delta_type_is_ignored_unless_it_is_read(tmp_path: Path) -> None:
    table = made(tmp_path)
    source = pa.table({"id": [1], "v": [5], "took": pa.array([3], pa.duration("s"))})
    for rows in (source, source.to_reader()):
        table.merge(rows, "target.id = source.id").when_matched_update_all(except_cols=["took"]).execute()
        table.merge(source, "target.id = source.id").when_matched_update_all().execute()
    assert rows_of(table) == [(1, 5), (2, 20)]
    with pytest.raises(SchemaMismatchError, match=r"took.*duration"):
        table.merge(source, "target.id = source.id and source.took is null").when_matched_update_all().execute()


def test_clause_for_all_columns_without_a_common_one_is_rejected(tmp_path: Path) -> None:
    table = made(tmp_path)
    merger = table.merge(pa.table({"key": [1], "x": [5]}), "target.id = source.key")
    with pytest.raises(SchemaMismatchError, match="assigns nothing"):
        merger.when_matched_update_all().execute()


def test_unknown_column_to_leave_out_is_rejected(tmp_path: Path) -> None:
    table = made(tmp_path)
    merger = table.merge(pa.table({"id": [1], "v": [5]}), "target.id = source.id")
    with pytest.raises(ColumnNotFoundError, match="vv"):
        merger.when_matched_update_all(except_cols=["vv"]).execute()


def test_required_field_that_the_source_lacks_keeps_its_value_and_is_rejected_where_there_is_none(
    tmp_path: Path,
) -> None:
    kept = pa.field("b", pa.string(), nullable=False)
    rows = pa.table({"id": [1, 2], "s": pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), kept]))})
    write_deltalake(str(tmp_path / "t"), rows)
    table = DeltaTable(str(tmp_path / "t"))

    def update(key: int) -> None:
        source = pa.table({"id": [key], "s": [{"a": 5}]})
        merger = table.merge(source, "target.id = source.id", merge_schema=True)
        merger.when_matched_update_all().execute()

    update(1)
    with pytest.raises((ConstraintViolationError, SchemaMismatchError)):
        update(2)
    assert rows_of(table) == [(1, {"a": 5, "b": "x"}), (2, None)]


def test_fields_of_a_struct_are_cast_like_columns(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 2], "s": [{"a": 1, "n": {"b": "x"}}] * 2}))
    table = DeltaTable(str(tmp_path / "t"))
    source = pa.table({"id": [1, 2], "s": [{"n": {"b": 5}, "a": "7"}, None]})
    table.merge(source, "target.id = source.id").when_matched_update_all().execute()
    assert rows_of(table) == [(1, {"a": 7, "n": {"b": "5"}}), (2, None)]
    bad = pa.table({"id": [1], "s": [{"n": {"b": 5}, "a": "seven"}]})
    with pytest.raises(ExpressionError, match="seven"):
        table.merge(bad, "target.id = source.id").when_matched_update_all().execute()
    merger = table.merge(bad, "target.id = source.id", error_on_type_mismatch=False)
    merger.when_matched_update_all().execute()
    assert rows_of(table) == [(1, {"a": None, "n": {"b": "5"}}), (2, None)]


# --- types -----------------------------------------------------------------------------------

WIDENING = {"delta.enableTypeWidening": "true"}


@pytest.mark.parametrize("updates", [{"v": "source.v"}, {"v": "source.v + 0"}])
def test_named_columns_are_widened_if_the_table_allows_it(updates: dict[str, str], tmp_path: Path) -> None:
    table = made(tmp_path, WIDENING)
    source = pa.table({"id": [1, 9], "v": [1 << 40, 1 << 41]})
    merger = table.merge(source, "target.id = source.id", merge_schema=True)
    merger.when_matched_update(updates).when_not_matched_insert({"id": "source.id", **updates}).execute()
    assert rows_of(table) == [(1, 1 << 40), (2, 20), (9, 1 << 41)]
    assert table.schema().get("v").type == PrimitiveType("long")


def test_named_fields_of_structs_are_widened_too(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "s": pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int32())]))})
    write_deltalake(str(tmp_path / "t"), rows, configuration=WIDENING)
    table = DeltaTable(str(tmp_path / "t"))
    source = pa.table({"id": [1], "s": [{"a": 1 << 40, "b": 7}]})
    merger = table.merge(source, "target.id = source.id", merge_schema=True)
    merger.when_matched_update({"s.a": "source.s.a"}).execute()
    assert rows_of(table) == [(1, {"a": 1 << 40, "b": 2})]
    assert [f.type.type for f in table.schema().get("s").type.fields] == ["long", "integer"]  # type: ignore[union-attr]


@pytest.mark.parametrize("configuration", [{}, WIDENING], ids=["plain", "widening"])
def test_value_of_a_column_with_another_name_is_cast_and_widens_nothing(
    configuration: dict[str, str], tmp_path: Path
) -> None:
    table = made(tmp_path, configuration)
    source = pa.table({"id": [1], "w": [1 << 40]})
    merger = table.merge(source, "target.id = source.id", merge_schema=True)
    with pytest.raises(ExpressionError):
        merger.when_matched_update({"v": "source.w"}).execute()
    assert rows_of(table) == [(1, 10), (2, 20)]


UNSIGNED = {pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long", pa.uint64(): "decimal(20,0)"}


@pytest.mark.parametrize("t", UNSIGNED, ids=str)
def test_unsigned_values_are_kept_in_merges_writes_and_new_tables(t: pa.DataType, tmp_path: Path) -> None:
    most = (1 << t.bit_width) - 1
    rows = pa.table(
        {"id": [1, 2], "v": pa.array([most, 0], t), "s": pa.array([{"a": most}, None], pa.struct([("a", t)]))}
    )
    path = str(tmp_path / "t")
    write_deltalake(path, rows)
    write_deltalake(path, rows, mode="append")
    table = DeltaTable(path)
    assert table.schema().get("v").type == PrimitiveType(UNSIGNED[t])
    assert rows_of(table) == [(1, most, {"a": most})] * 2 + [(2, 0, None)] * 2
    write_deltalake(path, rows.rename_columns(["id", "w", "x"]), mode="append", schema_mode="merge")
    table = DeltaTable(path)
    assert rows_of(table)[0] == (1, most, {"a": most}, None, None)
    table.merge(rows.select(["id", "v"]).slice(0, 1), "target.v = source.v").when_matched_delete().execute()
    assert {r[1] for r in rows_of(table)} == {0, None}


@pytest.mark.parametrize("t", UNSIGNED, ids=str)
@pytest.mark.parametrize("merge_schema", [False, True])
def test_unsigned_values_fit_a_wider_column(t: pa.DataType, merge_schema: bool, tmp_path: Path) -> None:
    value = (1 << min(t.bit_width, 63)) - 1
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "v": [7]}))
    table = DeltaTable(str(tmp_path / "t"))
    source = pa.table({"id": [1, 2], "v": pa.array([value] * 2, t)})
    merger = table.merge(source, "target.id = source.id", merge_schema=merge_schema)
    merger.when_matched_update_all().when_not_matched_insert({"id": "source.id", "v": "source.v"}).execute()
    assert rows_of(table) == [(1, value), (2, value)]


def test_unsigned_column_widens_a_signed_one_of_its_width(tmp_path: Path) -> None:
    first = pa.table({"id": [1], "v": pa.array([1], pa.int8())})
    write_deltalake(str(tmp_path / "t"), first, configuration=WIDENING)
    more = pa.table({"id": [2], "v": pa.array([200], pa.uint8())})
    write_deltalake(str(tmp_path / "t"), more, mode="append", schema_mode="merge")
    assert rows_of(DeltaTable(str(tmp_path / "t"))) == [(1, 1), (2, 200)]


def made(tmp_path: Path, configuration: dict[str, str] | None = None) -> DeltaTable:
    rows = pa.table({"id": [1, 2], "v": pa.array([10, 20], pa.int32())})
    write_deltalake(str(tmp_path / "t"), rows, configuration=configuration)
    return DeltaTable(str(tmp_path / "t"))


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted((tuple(r.values()) for r in table.to_pyarrow_table().to_pylist()), key=repr)
