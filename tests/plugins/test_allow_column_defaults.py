"""Feature allowColumnDefaults: readers ignore it; writers fill columns that rows leave out."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from delta_core.errors import (
    ConstraintViolationError,
    DeltaError,
    ExpressionError,
    SchemaError,
    UnsupportedExpressionError,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import open_snapshot
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_core.testing.table_builder import TableBuilder
from tests.plugins.written import append, begin, create, peer_rows, rows

NAME = "allowColumnDefaults"
ID = {"name": "id", "type": "long"}


def defaulted(default: Any, kind: Any = "long", name: str = "a", **field: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "metadata": {"CURRENT_DEFAULT": default}, **field}


ANNOTATED = defaulted("1")
STRUCT = {"type": "struct", "fields": [ANNOTATED]}
NESTED = {"name": "s", "type": {"type": "array", "containsNull": True, "elementType": STRUCT}}


class TestAllowColumnDefaults(FeatureContract):
    name = NAME

    def tables(self) -> list[ExampleTable]:
        rows = pa.table({"id": [1, 2, 3]})
        schema = table_state(fields=[ID, ANNOTATED]).schema
        return [ExampleTable(rows, schema=schema, expected=rows.append_column("a", pa.array([1, 1, 1])))]

    def states(self) -> list[TableState]:
        return [table_state([self.name], fields=[f]) for f in (ANNOTATED, NESTED)]

    def writable(self) -> list[TableState]:
        return [table_state([self.name], fields=[ANNOTATED])]

    @pytest.mark.parametrize("field", [ANNOTATED, NESTED])
    def test_annotation_makes_it_active_and_requires_it(self, field: dict[str, Any]) -> None:
        state = table_state([self.name], fields=[field])
        assert state.is_active(self.name)
        assert self.alone().collect("required_features", metadata=state.metadata) == [NAME]

    def test_it_is_not_active_without_annotation(self) -> None:
        assert not table_state([self.name]).is_active(self.name)

    def check(self, *fields: dict[str, Any]) -> None:
        state = table_state([NAME, "variantType"], fields=[ID, *fields])
        self.check_metadata(state)

    @pytest.mark.parametrize(
        ("default", "kind", "error", "match"),
        [
            ("id", "long", ExpressionError, "uses the column id"),
            ("'1'", "long", ExpressionError, "is STRING"),
            ("300", "byte", ExpressionError, "does not fit TINYINT"),
            ("1.5", "long", ExpressionError, "does not fit BIGINT"),
            ("rand()", "double", UnsupportedExpressionError, "not deterministic"),
            ("(SELECT 1)", "long", UnsupportedExpressionError, "subquery"),
            ("1 +", "long", ExpressionError, "parsed"),
            ("", "long", ExpressionError, "empty"),
            (1, "long", SchemaError, "expected an expression's text"),
            ("1", "variant", ExpressionError, "does not fit"),
            ("true", "long", ExpressionError, "BOOLEAN"),
            ("DATE '2024-01-01'", "long", ExpressionError, "DATE"),
        ],
    )
    def test_default_that_does_not_fit_is_rejected_by_column(
        self, default: Any, kind: str, error: type[DeltaError], match: str
    ) -> None:
        with pytest.raises(error, match=match) as caught:
            self.check(defaulted(default, kind))
        assert "olumn a" in caught.value.message

    @pytest.mark.parametrize(
        ("default", "kind"),
        [
            ("NULL", "variant"),
            ("100", "byte"),
            ("1", "double"),
            ("1.5", "double"),
            ("1", "decimal(5,2)"),
            ("1", "string"),
            ("DATE '2024-01-01'", "timestamp"),
            ("NULL", "date"),
            ("current_timestamp()", "timestamp"),
        ],
    )
    def test_default_that_spark_assigns_is_taken(self, default: str, kind: str) -> None:
        self.check(defaulted(default, kind))

    def test_part_of_a_column_is_rejected(self) -> None:
        with pytest.raises(SchemaError, match=r"s\.element\.a"):
            self.check(NESTED)
        state = table_state([NAME], fields=[NESTED])
        with pytest.raises(SchemaError, match=r"s\.element\.a"):
            self.alone().collect("write_rules", table=state, operation="WRITE")


@pytest.mark.parametrize(
    ("default", "kind", "value"),
    [
        ("7", "long", 7),
        ("-7", "byte", -7),
        ("'it''s'", "string", "it's"),
        ("upper('a') || 'b'", "string", "Ab"),
        ("DATE '2024-02-29'", "date", date(2024, 2, 29)),
        ("1.50", "decimal(5,2)", Decimal("1.50")),
        ("1.5", "double", 1.5),
        ("NULL", "long", None),
        ("true", "boolean", True),
        ("CAST('9' AS INT)", "integer", 9),
        ("X'01FF'", "binary", b"\x01\xff"),
        ("TIMESTAMP '2024-01-01 00:00:00 UTC'", "timestamp", datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_column_left_out_gets_its_default(tmp_path: Path, default: str, kind: str, value: Any) -> None:
    uri = create(tmp_path / "t", [ID, defaulted(default, kind)])
    append(uri, {"id": [1, 2]})
    assert rows(uri) == [(1, value), (2, value)]
    assert peer_rows(uri) == [(1, value), (2, value)]


def test_null_that_is_provided_stays_null(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, ANNOTATED])
    append(uri, {"id": [1, 2], "A": pa.array([None, 5], pa.int64())})
    assert rows(uri) == [(1, None), (2, 5)]


def test_default_fills_a_column_that_is_not_nullable(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, defaulted("1", nullable=False)])
    append(uri, {"id": [1]})
    assert rows(uri) == [(1, 1)]
    with pytest.raises(ConstraintViolationError, match="NOT NULL a"):
        append(uri, {"id": [1], "a": pa.array([None], pa.int64())})


def test_partition_column_gets_its_default(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, defaulted("'x=y'", "string", "p")], partition_by=["p"])
    append(uri, {"id": [1]})
    assert rows(uri) == peer_rows(uri) == [(1, "x=y")]


def test_every_write_has_its_own_now(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", [ID, defaulted("current_timestamp()", "timestamp")])
    before = datetime.now(UTC)
    append(uri, {"id": [1, 2]})
    append(uri, {"id": [3]})
    first, second, third = (at for _, at in rows(uri))
    assert first == second < third
    assert timedelta(0) <= first - before < timedelta(minutes=1)


def test_default_never_applies_on_reading(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").create({"id": "long"}).append([{"id": 1}])
    fields = [{"nullable": True, "metadata": {}, **f} for f in (ID, ANNOTATED)]
    altered = begin(table.uri, "ALTER")
    schema = json.dumps({"type": "struct", "fields": fields})
    altered.set_metadata(replace(altered.table.metadata, schema_string=schema))
    altered.commit()
    append(table.uri, {"id": [2]})
    assert sorted(rows(table.uri)) == [(1, None), (2, 1)]
    assert open_snapshot(table.uri).state.is_active(NAME)
