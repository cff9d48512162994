"""Feature invariants: readers ignore it; an annotation of a column makes it active, and writers check rows by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from delta_core.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    ExpressionError,
    SchemaError,
    UnsupportedExpressionError,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_plugins.invariants.logic import row_checks
from tests.plugins.written import append, create, files_of, peer_rows, rows


def annotated(condition: str, **field: Any) -> dict[str, Any]:
    text = json.dumps({"expression": {"expression": condition}})
    return {"name": "a", "type": "long", "metadata": {"delta.invariants": text}, **field}


ANNOTATED = annotated("a > 3")
STRUCT = {"type": "struct", "fields": [ANNOTATED]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}
IN_STRUCT = {"name": "s", "type": {"type": "struct", "fields": [annotated("s.a > 3", nullable=True)]}}


class TestInvariants(FeatureContract):
    name = "invariants"

    def tables(self) -> list[ExampleTable]:
        schema = table_state(fields=[ANNOTATED]).schema
        (check,) = row_checks(table_state([self.name], fields=[ANNOTATED]))
        breaking = {check.name: pa.table({"a": [3]})}
        return [ExampleTable(pa.table({"a": [4, 5, 6]}), "a > 5", schema=schema, breaking=breaking)]

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (ANNOTATED, NESTED, IN_STRUCT)]

    def writable(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (ANNOTATED, IN_STRUCT)]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED, IN_STRUCT])
    def test_annotation_makes_it_active(self, field: dict[str, Any]) -> None:
        assert table_state([self.name], fields=[field]).is_active(self.name)

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)

    @pytest.mark.parametrize(
        ("field", "needed"),
        [
            ({"name": "a", "type": "long", "nullable": False}, True),
            ({"name": "a", "type": "long"}, False),
            (
                {"name": "s", "type": {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": False}]}},
                True,
            ),
            (ANNOTATED, True),
            ({"name": "l", "type": {"type": "array", "containsNull": False, "elementType": "long"}}, False),
        ],
    )
    def test_not_null_and_conditions_require_it(self, field: dict[str, Any], needed: bool) -> None:
        state = table_state([self.name], fields=[field])
        wanted = [self.name] if needed else []
        assert state.is_active(self.name) is needed
        metadata = Metadata("a", state.schema.to_json())
        assert self.alone().collect("required_features", metadata=metadata) == wanted

    def test_condition_within_a_list_is_rejected_by_column(self) -> None:
        with pytest.raises(UnsupportedOperationError, match=r"s\.element\.a"):
            row_checks(table_state([self.name], fields=[NESTED]))

    @pytest.mark.parametrize("value", ["a > 3", "{}", '{"expression": {"expression": 3}}', '{"expression": "a"}', 3])
    def test_annotation_that_can_not_be_read_is_rejected(self, value: Any) -> None:
        broken = {"name": "a", "type": "long", "metadata": {"delta.invariants": value}}
        with pytest.raises(SchemaError, match=r"Column a has delta\.invariants"):
            row_checks(table_state([self.name], fields=[broken]))

    @pytest.mark.parametrize(
        ("condition", "error"),
        [
            ("a + 1", ExpressionError),
            ("b > 3", ColumnNotFoundError),
            ("a >", ExpressionError),
            ("rand() > 0", UnsupportedExpressionError),
        ],
    )
    def test_condition_that_does_not_fit_is_rejected_by_column(self, condition: str, error: type[Exception]) -> None:
        state = table_state([self.name], fields=[annotated(condition)])
        with pytest.raises(error, match="invariant of column a"):
            self.check_metadata(state)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return create(tmp_path / "t", [ANNOTATED, {"name": "b", "type": "string"}])


def test_rows_that_fulfil_it_are_written_and_a_peer_reads_them(uri: str) -> None:
    append(uri, {"a": [4, 5], "b": ["x", None]})
    assert rows(uri) == [(4, "x"), (5, None)]
    assert peer_rows(uri, "a") == [(4,), (5,)]


@pytest.mark.parametrize("values", [[4, 3], [4, None], [None, None]])
def test_false_and_null_break_it_and_no_file_stays(uri: str, values: list[int | None]) -> None:
    with pytest.raises(ConstraintViolationError, match="a > 3") as caught:
        append(uri, {"a": pa.array(values, pa.int64()), "b": ["x", "y"]})
    assert caught.value.count == sum(v is None or v <= 3 for v in values)
    assert rows(uri) == []
    assert files_of(uri) == 0


def test_column_left_out_is_null_and_breaks_it(uri: str) -> None:
    with pytest.raises(ConstraintViolationError, match="invariant of a"):
        append(uri, {"b": ["x"]})


def test_field_of_a_struct_is_checked(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [IN_STRUCT])
    append(uri, {"s": [{"a": 4}]})
    for value in ({"a": 3}, None):
        with pytest.raises(ConstraintViolationError, match=r"s\.a > 3"):
            append(uri, {"s": pa.array([value], pa.struct([("a", pa.int64())]))})
    assert rows(uri) == [{"a": 4}]


def test_condition_is_kept_by_a_peer_that_appends(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ANNOTATED])
    append(uri, {"a": [4]})
    write_deltalake(uri, pa.table({"a": [5]}), mode="append")
    with pytest.raises(Exception, match="1 rows failed validation check"):
        write_deltalake(uri, pa.table({"a": [3]}), mode="append")
    append(uri, {"a": [6]})
    assert sorted(rows(uri)) == [4, 5, 6]
