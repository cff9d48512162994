"""Feature generatedColumns: readers ignore it; writers compute columns, and verify values that rows contain."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from delta_core.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    SchemaError,
    SchemaMismatchError,
    TypeChangeError,
    UnsupportedExpressionError,
)
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from tests.plugins.written import append, create, overwrite, peer_rows, rows

NAME = "generatedColumns"
ID = {"name": "id", "type": "long"}


def generated(expression: str, kind: Any = "long", name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {"delta.generationExpression": expression, **more}}


ANNOTATED = generated("id + 1L")
STRUCT = {"type": "struct", "fields": [ANNOTATED]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}


class TestGeneratedColumns(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        rows = pa.table({"id": [1, 2, 3]})
        made = rows.append_column("a", pa.array([2, 3, 4]))
        breaking = {check.name: pa.table({"id": [1], "a": [7]}) for check in self._checks()}
        return [ExampleTable(rows, schema=table_state(fields=[ID, ANNOTATED]).schema, expected=made, breaking=breaking)]

    def _checks(self) -> list[RowCheck]:
        state = table_state([self.name], fields=[ID, ANNOTATED])
        rules = self.alone().collect("write_rules", table=state, operation="WRITE")
        return [r for r in rules if isinstance(r, RowCheck)]

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[ID, f]) for f in (ANNOTATED, NESTED)]

    def writable(self) -> list[TableState]:
        return [table_state([self.name], fields=[ID, ANNOTATED])]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED])
    def test_annotation_makes_it_active_and_requires_it(self, field: dict[str, Any]) -> None:
        state = table_state([self.name], fields=[field])
        assert state.is_active(self.name)
        assert self.alone().collect("required_features", metadata=state.metadata) == [NAME]

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)

    def reject(self, error: type[DeltaError], match: str, *fields: dict[str, Any]) -> None:
        state = table_state([NAME], fields=[ID, *fields])
        with pytest.raises(error, match=match):
            self.check_metadata(state)

    def test_part_of_a_column_is_rejected(self) -> None:
        self.reject(SchemaError, r"s\.element\.a", NESTED)

    def test_expression_of_another_type_is_rejected_with_the_cast(self) -> None:
        cast = r"is BIGINT, but the column is INT. Cast it: CAST\(id AS INT\)"
        self.reject(ExpressionError, cast, generated("id", "integer"))

    def test_column_that_is_generated_itself_is_rejected(self) -> None:
        self.reject(ExpressionError, "uses a, which is generated", ANNOTATED, generated("A * 2L", name="b"))
        self.reject(ExpressionError, "uses a, which is generated", generated("a"))

    def test_column_that_is_not_there_is_rejected(self) -> None:
        self.reject(ColumnNotFoundError, "expression of column a: Column gone", generated("gone"))

    @pytest.mark.parametrize(
        "expression",
        [
            "rand()",
            "uuid()",
            "max(id)",
            "current_timestamp()",
            "current_date",
            "now()",
            "row_number() OVER (ORDER BY id)",
            "contains(s, 'x')",
            "split_part(s, ',', 1)",
            "t + INTERVAL 1 DAY",
            "m['k']",
            "s ILIKE 'x'",
            "unix_millis(t)",
        ],
    )
    def test_function_that_spark_rejects_is_rejected_by_name(self, expression: str) -> None:
        a_map = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
        others = [{"name": "s", "type": "string"}, {"name": "t", "type": "timestamp"}, {"name": "m", "type": a_map}]
        self.reject(UnsupportedExpressionError, "column a", *others, generated(expression))

    @pytest.mark.parametrize("other", [{"CURRENT_DEFAULT": "1"}, {"delta.identity.start": 1}])
    def test_second_source_of_values_is_rejected(self, other: dict[str, Any]) -> None:
        self.reject(SchemaError, "only one can pass its values", generated("id", **other))

    def test_existing_table_is_rejected_for_writing_by_what_is_not_known(self) -> None:
        state = table_state([NAME], fields=[ID, generated("soundex(id)", "string")])
        with pytest.raises(UnsupportedExpressionError, match="'soundex' is not known"):
            self.alone().collect("write_rules", table=state, operation="WRITE")

    def test_metadata_is_left_as_it_is(self) -> None:
        state = table_state([NAME], fields=[ID, ANNOTATED])
        assert self.prepare_metadata(state) == state.metadata


FIELDS = [
    {"name": "t", "type": "timestamp"},
    {"name": "s", "type": "string"},
    generated("CAST(t AS DATE)", "date", "day"),
    generated("upper(substring(s, 1, 2))", "string", "head"),
]
TIMES = [datetime(2024, 2, 29, 23, 59, tzinfo=UTC), None]


@pytest.fixture(params=[(), ("day",)], ids=["plain", "partitioned"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return create(tmp_path / "t", FIELDS, partition_by=request.param)


def times(*values: Any) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_columns_left_out_are_computed_nulls_too(uri: str) -> None:
    append(uri, {"s": ["abc", None], "t": times(*TIMES)})
    assert sorted(rows(uri, "s", "day", "head"), key=repr) == [("abc", date(2024, 2, 29), "AB"), (None, None, None)]
    assert peer_rows(uri, "s", "head") == [("abc", "AB"), (None, None)]


def test_values_that_are_provided_and_equal_are_taken(uri: str) -> None:
    append(
        uri, {"s": ["abc", None], "t": times(*TIMES), "HEAD": ["AB", None], "day": pa.array([date(2024, 2, 29), None])}
    )
    assert sorted(rows(uri, "head"), key=str) == ["AB", None]


@pytest.mark.parametrize("head", [["ab", None], [None, None], ["AB", ""]])
def test_value_that_is_provided_and_differs_is_rejected(uri: str, head: list[Any]) -> None:
    with pytest.raises(ConstraintViolationError, match="generated column head") as caught:
        append(uri, {"s": ["abc", None], "t": times(*TIMES), "head": pa.array(head, pa.string())})
    assert caught.value.count == 1
    assert rows(uri) == []


def test_rows_that_stay_are_not_computed_again(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, ANNOTATED])
    append(uri, {"id": [1, 2, 3]})
    overwrite(uri, {"id": [2]}, replace_where="id = 2")
    assert sorted(rows(uri)) == [(1, 2), (2, 3), (3, 4)]


def test_columns_are_computed_from_defaults_and_identity_values(tmp_path: Path) -> None:
    fields = [
        generated("concat(kind, '-', CAST(n AS STRING))", "string", "key"),
        {"name": "kind", "type": "string", "metadata": {"CURRENT_DEFAULT": "'x'"}},
        {"name": "n", "type": "long", "metadata": {"delta.identity.start": 5, "delta.identity.step": 5}},
        ID,
    ]
    uri = create(tmp_path / "t", fields)
    append(uri, {"id": [1, 2]})
    assert rows(uri, "key", "id") == [("x-5", 1), ("x-10", 2)]


def test_value_that_overflows_is_rejected_by_column(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, ANNOTATED])
    with pytest.raises(ExpressionError, match="Column a can't be filled") as caught:
        append(uri, {"id": [2**63 - 1]})
    assert caught.value.condition == "ARITHMETIC_OVERFLOW"


def test_values_that_can_not_be_compared_are_not_taken(tmp_path: Path) -> None:
    pairs = {"type": "map", "valueContainsNull": True, "keyType": "string", "valueType": "long"}
    uri = create(tmp_path / "t", [{"name": "m", "type": pairs}, generated("m", pairs)])
    made = pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))
    append(uri, {"m": made})
    assert rows(uri) == [([("k", 1)], [("k", 1)]), (None, None)]
    with pytest.raises(SchemaMismatchError, match="from the table alone"):
        append(uri, {"m": made, "a": made})


def test_arrays_that_are_passed_are_compared_with_generated_ones(tmp_path: Path) -> None:
    pair = {"type": "array", "containsNull": True, "elementType": "long"}
    uri = create(tmp_path / "t", [{"name": "l", "type": pair}, generated("l", pair)])
    append(uri, {"l": [[1, 2], None]})
    append(uri, {"l": [[3], None], "a": [[3], None]})
    assert rows(uri) == [([1, 2], [1, 2]), (None, None), ([3], [3]), (None, None)]
    with pytest.raises(ConstraintViolationError):
        append(uri, {"l": [[1]], "a": [[2]]})


def test_protocol_is_the_weakest_that_has_it(tmp_path: Path) -> None:
    found = open_snapshot(create(tmp_path / "t", [ID, ANNOTATED])).protocol
    assert (found.min_reader_version, found.min_writer_version) == (1, 4)
    assert not found.writer_features


def test_peer_computes_what_rows_leave_out_and_here_it_is_read(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, generated("id * 2L")])
    append(uri, {"id": [1]})
    write_deltalake(uri, pa.table({"id": [2], "a": [4]}), mode="append")
    append(uri, {"id": [3]})
    assert sorted(rows(uri)) == [(1, 2), (2, 4), (3, 6)]


@pytest.mark.parametrize("wide", ["n", "s"])
def test_column_that_another_is_computed_from_keeps_its_type(tmp_path: Path, wide: str) -> None:
    """delta-spark rejects it too (DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH), if rows stay."""
    struct = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
    fields = [
        {"name": "n", "type": "integer"},
        {"name": "free", "type": "integer"},
        {"name": "s", "type": struct},
        generated("N > 0", "boolean", "a"),
        generated("s.x > 0", "boolean", "b"),
    ]
    uri = create(tmp_path / "t", fields, properties={"delta.enableTypeWidening": "true"})
    with pytest.raises(
        TypeChangeError, match=f"the generated column {'a' if wide == 'n' else 'b'} is computed from it"
    ):
        append(uri, {wide: [{"x": 1 << 40}] if wide == "s" else [1 << 40]}, schema_mode="merge")
    append(uri, {"free": [1 << 40], "n": pa.array([1], pa.int32())}, schema_mode="merge")
    assert rows(uri, "n", "free", "a") == [(1, 1 << 40, True)]
