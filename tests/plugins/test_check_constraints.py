"""Feature checkConstraints: readers ignore it; a property switches it on, and writers check rows by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable, write_deltalake
from msgspec.structs import replace

from delta_core.errors import (
    ColumnNotFoundError,
    ConcurrentAppendError,
    ConstraintViolationError,
    ExpressionError,
    InvalidArgumentError,
    MetadataChangedError,
    TypeChangeError,
    UnsupportedExpressionError,
    UnsupportedOperationError,
)
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import Metadata
from delta_core.kernel.snapshot import Snapshot, open_snapshot
from delta_core.schema.types import ArrayType, Field, PrimitiveType, StructType, type_to_json
from delta_core.testing.feature_contract import ExampleTable, FeatureContract, table_state
from delta_plugins.check_constraints.operations import add_constraint
from tests.plugins.written import append, begin, create, files_of, overwrite, peer_rows, rows

NAME = "checkConstraints"
POSITIVE = {"delta.constraints.positive": "id > 0"}
FIELDS: list[dict[str, Any]] = [{"name": "id", "type": "long"}, {"name": "s", "type": "string"}]


class TestCheckConstraints(FeatureContract):
    name = NAME
    without_rules = "commit_rules is about conditions that a change of metadata adds"

    def tables(self) -> list[ExampleTable]:
        breaking = {"low": pa.table({"id": [0], "name": ["z"]})}
        return [ExampleTable(properties={"delta.constraints.low": "id > 0"}, breaking=breaking)]

    def states(self) -> list[TableState]:
        return [table_state([self.name]), table_state([self.name], properties=POSITIVE)]

    def test_property_switches_it_on(self) -> None:
        assert table_state([self.name], properties=POSITIVE).is_active(self.name)
        assert not table_state([self.name]).is_active(self.name)

    def test_property_requires_the_feature(self) -> None:
        for properties, wanted in ((POSITIVE, [NAME]), ({"Delta.Constraints.x": "true"}, [NAME]), ({"x": "1"}, [])):
            metadata = Metadata("a", "", configuration=properties)
            assert self.alone().collect("required_features", metadata=metadata) == wanted

    @pytest.mark.parametrize(
        ("condition", "error"),
        [
            ("id + 1", ExpressionError),
            ("gone > 3", ColumnNotFoundError),
            ("id >", ExpressionError),
            ("sum(id) > 3", UnsupportedExpressionError),
            ("uuid() = 'a'", UnsupportedExpressionError),
            ("id > (SELECT 1)", UnsupportedExpressionError),
            ("my_function(id)", UnsupportedExpressionError),
        ],
    )
    def test_condition_that_does_not_fit_is_rejected_by_name(self, condition: str, error: type[Exception]) -> None:
        state = table_state([NAME], properties={"delta.constraints.c1": condition})
        with pytest.raises(error, match="CHECK constraint c1"):
            self.check_metadata(state)
        with pytest.raises(error, match="CHECK constraint c1"):
            self.alone().collect("write_rules", table=state, operation="WRITE")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    properties = {**POSITIVE, "delta.constraints.short": "length(s) <= 3 OR s IS NULL"}
    return create(tmp_path / "t", FIELDS, properties=properties)


def test_rows_that_fulfil_every_condition_are_written_and_a_peer_reads_them(uri: str) -> None:
    append(uri, {"id": [1, 2], "s": ["abc", None]})
    assert rows(uri) == [(1, "abc"), (2, None)]
    assert peer_rows(uri, "id") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("ids", "texts", "name", "count"),
    [
        ([1, 0], ["a", "b"], "positive", 1),
        ([None, None], ["a", "b"], "positive", 2),
        ([1, 2], ["a", "four"], "short", 1),
    ],
)
def test_false_and_null_break_a_condition(uri: str, ids: list[Any], texts: list[str], name: str, count: int) -> None:
    with pytest.raises(ConstraintViolationError, match=name) as caught:
        append(uri, {"id": pa.array(ids, pa.int64()), "s": texts})
    assert (caught.value.name, caught.value.count) == (name, count)
    assert rows(uri) == []
    assert files_of(uri) == 0


def test_rows_that_stay_are_not_checked_again(uri: str) -> None:
    append(uri, {"id": [1, 2], "s": ["a", "b"]})
    overwrite(uri, {"id": [7], "s": ["c"]}, replace_where="id > 1 AND id < 100")
    assert sorted(rows(uri)) == [(1, "a"), (7, "c")]


def test_condition_that_a_peer_added_is_kept(tmp_path: Path) -> None:
    uri = str(tmp_path / "peer")
    write_deltalake(uri, pa.table({"id": [1, 2], "s": ["a", "b"]}))
    PeerTable(uri).alter.add_constraint({"Pos": "id > 0 AND s != 'x'"})
    append(uri, {"id": [3], "s": ["c"]})
    for columns in ({"id": [0], "s": ["c"]}, {"id": [4], "s": ["x"]}):
        with pytest.raises(ConstraintViolationError, match="Pos"):
            append(uri, columns)
    assert peer_rows(uri, "id") == [(1,), (2,), (3,)]


def test_condition_is_kept_by_a_peer_that_appends(uri: str) -> None:
    write_deltalake(uri, pa.table({"id": [1], "s": ["a"]}), mode="append")
    with pytest.raises(Exception, match="1 rows failed validation check"):
        write_deltalake(uri, pa.table({"id": [0], "s": ["a"]}), mode="append")
    append(uri, {"id": [2], "s": ["b"]})
    assert sorted(rows(uri)) == peer_rows(uri) == [(1, "a"), (2, "b")]


# --- adding one ---


@pytest.fixture
def plain(tmp_path: Path) -> str:
    uri = create(tmp_path / "plain", FIELDS)
    append(uri, {"id": [1, 2], "s": ["a", "b"]})
    append(uri, {"id": pa.array([5, None]), "s": ["c", "d"]})
    return uri


def test_condition_that_all_rows_fulfil_is_added_with_its_feature(plain: str) -> None:
    version = add_constraint(open_snapshot(plain), {"Known": "s <> ''", "small": "coalesce(id, 0) < 10"})
    snapshot = open_snapshot(plain)
    assert snapshot.version == version == 3
    assert snapshot.metadata.configuration["delta.constraints.known"] == "s <> ''"
    assert snapshot.state.is_active(NAME)
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 3)
    with pytest.raises(ConstraintViolationError, match="small"):
        append(plain, {"id": [10], "s": ["x"]})


@pytest.mark.parametrize(("condition", "count"), [("id > 0", 1), ("id < 2", 3), ("s = 'a'", 3)])
def test_condition_that_rows_break_is_rejected_with_their_number(plain: str, condition: str, count: int) -> None:
    with pytest.raises(ConstraintViolationError, match="of the table break") as caught:
        add_constraint(open_snapshot(plain), {"c": condition})
    assert caught.value.count == count
    assert caught.value.row is not None
    assert open_snapshot(plain).version == 2


@pytest.mark.parametrize("name", ["", " ", "POSITIVE"])
def test_name_that_is_taken_or_none_is_rejected(uri: str, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="can't be added"):
        add_constraint(open_snapshot(uri), {name: "true"})


def test_two_names_that_differ_in_case_are_rejected(plain: str) -> None:
    with pytest.raises(InvalidArgumentError, match="already"):
        add_constraint(open_snapshot(plain), {"a": "true", "A": "false"})


def test_rows_added_meanwhile_were_not_validated(plain: str) -> None:
    old = open_snapshot(plain)
    append(plain, {"id": [-1], "s": ["x"]})
    with pytest.raises(ConcurrentAppendError):
        add_constraint(old, {"c": "id > 0 OR id IS NULL"})


def test_rows_that_were_checked_by_older_conditions_are_not_added(uri: str) -> None:
    slow = begin(uri)
    add_constraint(open_snapshot(uri), {"c": "id > 0 OR id IS NULL"})
    slow.set_transaction("app", 1)
    with pytest.raises(MetadataChangedError):
        slow.commit()


@pytest.mark.parametrize("properties", [{"delta.constraints.new": "id < 9"}, {"delta.constraints.positive": "id > 1"}])
def test_condition_that_comes_as_a_property_is_rejected_while_there_are_rows(
    uri: str, properties: dict[str, str]
) -> None:
    def alter() -> int:
        transaction = begin(uri, "SET TBLPROPERTIES")
        metadata = transaction.table.metadata
        transaction.set_metadata(replace(metadata, configuration={**metadata.configuration, **properties}))
        return transaction.commit().version

    append(uri, {"id": [1], "s": ["a"]})
    with pytest.raises(UnsupportedOperationError, match="1 file would stay whose rows were not checked against"):
        alter()
    overwrite(uri, {"id": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    assert alter() == 3


def test_condition_goes_as_a_property_and_others_change_beside_it(uri: str) -> None:
    transaction = begin(uri, "SET TBLPROPERTIES")
    left = {k: v for k, v in transaction.table.configuration.items() if k != "delta.constraints.short"}
    transaction.set_metadata(replace(transaction.table.metadata, configuration={**left, "mine": "1"}))
    transaction.commit()
    append(uri, {"id": [1], "s": ["longer"]})
    with pytest.raises(ConstraintViolationError, match="positive"):
        append(uri, {"id": [0], "s": ["a"]})


def test_operation_is_found_by_name(uri: str) -> None:
    from delta_core import DeltaTable

    class Face:
        def snapshot(self) -> Snapshot:
            return open_snapshot(uri)

    table = DeltaTable(uri)
    assert table.operation("add_constraint")({"more": "id < 100"}) == 1
    assert add_constraint(Face(), {"most": "id < 1000"}) == 2


def test_operation_adds_its_feature_to_a_table_without_it(tmp_path: Path) -> None:
    from delta_core import DeltaTable

    plain = create(tmp_path / "plain", [{"name": "id", "type": "long"}])
    append(plain, {"id": [1]})
    table = DeltaTable(plain)
    transaction = table.snapshot().begin("SET TBLPROPERTIES")
    transaction.set_metadata(replace(transaction.table.metadata, configuration={"delta.constraints.low": "id > 0"}))
    with pytest.raises(UnsupportedOperationError, match=r"table\.operation\('add_constraint'\)"):
        transaction.commit()
    with pytest.raises(ConstraintViolationError, match="low"):
        table.operation("add_constraint")({"low": "id > 1"})
    assert table.operation("add_constraint")({"low": "id > 0"}) == 2
    with pytest.raises(ConstraintViolationError, match="low"):
        append(plain, {"id": [0]})


# --- types ---------------------------------------------------------------------------------

WIDE = {"delta.enableTypeWidening": "true"}
NUMBERS: list[dict[str, Any]] = [
    {"name": "n", "type": "integer"},
    {"name": "free", "type": "integer"},
    {"name": "v", "type": "void"},
    {"name": "s", "type": type_to_json(StructType([Field("x", "integer"), Field("y", "integer")]))},
    {"name": "l", "type": type_to_json(ArrayType("integer"))},
]


def retype(uri: str, **types: Any) -> None:
    transaction = begin(uri, "CHANGE COLUMN")
    fields = [Field(f.name, types.get(f.name, f.type), f.nullable, f.metadata) for f in transaction.table.schema]
    schema = StructType(fields).to_json()
    transaction.set_metadata(replace(transaction.table.metadata, schema_string=schema))
    transaction.commit()


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        ("N > 0", {"n": "long"}),
        ("s.x > 0", {"s": StructType([Field("x", "long"), Field("y", "integer")])}),
        ("s IS NOT NULL", {"s": StructType([Field("x", "long"), Field("y", "integer")])}),
        ("size(l) > 0", {"l": ArrayType("long")}),
        ("l[0] > 0", {"l": ArrayType("long")}),
        ("v IS NULL", {"v": "long"}),
    ],
)
def test_column_that_a_condition_uses_keeps_its_type(tmp_path: Path, condition: str, changed: dict[str, Any]) -> None:
    """delta-spark rejects it too (DELTA_CONSTRAINT_DATA_TYPE_MISMATCH), if rows stay."""
    uri = create(tmp_path / "t", NUMBERS, properties={**WIDE, "delta.constraints.c": condition})
    with pytest.raises(TypeChangeError, match="the CHECK constraint c") as caught:
        retype(uri, **changed)
    assert caught.value.name == "c"
    retype(uri, free="long")
    assert open_snapshot(uri).schema.get("free").type == PrimitiveType("long")


def test_other_fields_of_a_struct_that_a_condition_uses_may_change(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", NUMBERS, properties={**WIDE, "delta.constraints.c": "s.x > 0"})
    retype(uri, s=StructType([Field("x", "integer"), Field("y", "long"), Field("z", "long")]))


def test_merging_rows_does_not_widen_a_column_that_a_condition_uses(tmp_path: Path) -> None:
    uri = create(tmp_path / "t", NUMBERS[:2], properties={**WIDE, "delta.constraints.c": "n > 0"})
    with pytest.raises(TypeChangeError, match="the CHECK constraint c"):
        append(uri, {"n": [1 << 40]}, schema_mode="merge")
    append(uri, {"n": pa.array([1], pa.int32()), "free": [1 << 40]}, schema_mode="merge")
    assert rows(uri) == [(1, 1 << 40)]


def test_overwritten_schema_may_have_another_type_that_the_condition_fits(tmp_path: Path) -> None:
    """As delta-spark's overwriteSchema: no row stays, and the new ones are held against the condition."""
    uri = create(tmp_path / "t", NUMBERS[:1], properties={"delta.constraints.c": "n > 0"})
    append(uri, {"n": pa.array([1], pa.int32())})
    overwrite(uri, {"n": [2.5]}, schema_mode="overwrite")
    assert rows(uri) == [2.5]
    with pytest.raises(ConstraintViolationError):
        overwrite(uri, {"n": [-1]}, schema_mode="overwrite")
