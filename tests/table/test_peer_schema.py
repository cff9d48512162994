"""Schemas and fields return the JSON, the Arrow types and the text that deltalake's return."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import delta_core
from delta_core.schema import ArrayType, Field, MapType, PrimitiveType, Schema, StructType, VariantType

peer = pytest.importorskip("deltalake.schema")

pytestmark = pytest.mark.peer

PRIMITIVES = (
    "string",
    "long",
    "integer",
    "short",
    "byte",
    "float",
    "double",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(10,2)",
)


def _both(build):  # type: ignore[no-untyped-def]
    return build(delta_core.schema.fields), build(peer)


@pytest.mark.parametrize("name", ["Schema", "StructType", "ArrayType", "MapType", "PrimitiveType", "Field"])
def test_text_that_is_no_json_is_rejected_as_the_peer_rejects_it(name: str) -> None:
    for kind in (getattr(delta_core.schema.fields, name), getattr(peer, name)):
        with pytest.raises(ValueError):  # noqa: PT011 (the peer raises no other)
            kind.from_json('{"type":')
    with pytest.raises(delta_core.exceptions.DeltaError, match="expected a type's JSON"):
        getattr(delta_core.schema.fields, name).from_json('{"type":')


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_has_the_peers_json_arrow_type_and_text(name: str) -> None:
    ours, theirs = _both(lambda m: m.PrimitiveType(name))
    assert ours.to_json() == theirs.to_json()
    assert pa.field(pa.field("x", ours.to_arrow())).type == pa.field(theirs.to_arrow()).type
    assert str(ours) == str(theirs)


NESTED = {
    "array": lambda m: m.ArrayType(m.PrimitiveType("long"), contains_null=False),
    "map": lambda m: m.MapType("string", m.ArrayType("date"), value_contains_null=False),
    "struct": lambda m: m.StructType([m.Field("a", "integer"), m.Field("b", m.MapType("string", "double"))]),
}


@pytest.mark.parametrize("build", NESTED.values(), ids=NESTED)
def test_nested_type_has_the_peers_json_and_text(build) -> None:  # type: ignore[no-untyped-def]
    ours, theirs = _both(build)
    assert ours.to_json() == theirs.to_json()
    assert repr(ours) == repr(theirs)
    assert type(ours).from_json(theirs.to_json()) == ours


@pytest.mark.parametrize("build", NESTED.values(), ids=NESTED)
def test_nested_type_has_the_peers_arrow_type(build) -> None:  # type: ignore[no-untyped-def]
    ours, theirs = _both(lambda m: m.Schema([m.Field("x", build(m))]))
    assert pa.schema(ours.to_arrow()) == pa.schema(theirs.to_arrow())


def test_field_has_the_peers_json_text_and_parts() -> None:
    ours, theirs = _both(lambda m: m.Field("größe", "integer", nullable=False, metadata={"comment": "in mm"}))
    assert ours.to_json() == theirs.to_json()
    assert repr(ours) == repr(theirs)
    assert (ours.name, ours.nullable, ours.metadata) == (theirs.name, theirs.nullable, theirs.metadata)
    assert Field.from_json(theirs.to_json()) == ours


def test_schema_is_taken_by_pyarrow_and_by_the_peer_without_a_copy() -> None:
    inner = StructType([Field("c", "string")])
    schema = Schema([Field("a", "integer"), Field("b", inner), Field("d", ArrayType("binary"))])
    assert pa.schema(schema) == schema.to_arrow()
    assert pa.field(schema.fields[0]) == pa.field("a", pa.int32())
    assert json.loads(peer.Schema.from_arrow(schema).to_json()) == schema.json()


def test_schema_as_large_types_equals_the_peers() -> None:
    ours, theirs = _both(lambda m: m.Schema([m.Field("x", m.MapType("string", m.ArrayType("binary")))]))
    assert ours.to_arrow(as_large_types=True) == pa.schema(theirs.to_arrow(as_large_types=True))


@pytest.mark.parametrize(
    "arrow",
    [
        pa.date64(),
        pa.large_list(pa.int8()),
        pa.list_(pa.int8(), 3),
        pa.dictionary(pa.int8(), pa.string()),
        pa.string_view(),
        pa.binary(4),
        pa.struct([("a", pa.int8())]),
        pa.null(),
        pa.list_view(pa.int8()),
    ],
    ids=str,
)
def test_arrow_type_becomes_the_type_that_the_peer_makes_of_it(arrow: pa.DataType) -> None:
    assert Field.from_arrow(pa.field("x", arrow)).to_json() == peer.Field.from_arrow(pa.field("x", arrow)).to_json()


@pytest.mark.parametrize(
    ("arrow", "expected"),
    [(pa.uint8(), "short"), (pa.uint16(), "integer"), (pa.uint32(), "long"), (pa.uint64(), "decimal(20,0)")],
    ids=str,
)
def test_unsigned_type_becomes_one_that_holds_all_of_its_values(arrow: pa.DataType, expected: str) -> None:
    # the peer takes the signed type of the same width, and fails for the upper half of the values
    for t in (arrow, pa.dictionary(pa.int8(), arrow)):
        assert Field.from_arrow(pa.field("x", t)).type == PrimitiveType(expected)
    assert Field.from_arrow(pa.field("x", pa.list_(arrow))).type == ArrayType(expected)


def test_variant_type_goes_by_the_peers_name() -> None:
    assert VariantType() == PrimitiveType("variant")
    assert isinstance(Field("v", VariantType()).type, VariantType)
    assert not isinstance(MapType("string", "long"), VariantType)
    assert VariantType().to_json() == peer.VariantType().to_json()
    assert pa.field(pa.field("v", VariantType().to_arrow())).type == pa.field(peer.VariantType().to_arrow()).type
