"""Fields of Lance schemas: the tree, Arrow types, and what is rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CorruptTableError, SchemaError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.schema import (
    LanceField,
    arrow_field,
    arrow_schema,
    field_tree,
    fields_of_schema,
    leaf_type,
    registered,
)


def field(id: int, parent: int = -1, kind: str = "int32", name: str = "", **more: Any) -> LanceField:
    return LanceField(id, parent, name or f"f{id}", kind, **more)


LEAVES = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "double": pa.float64(),
    "large_string": pa.large_string(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:ms": pa.time32("ms"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "timestamp:us:-": pa.timestamp("us"),
    "timestamp:ns:+05:30": pa.timestamp("ns", "+05:30"),
    "decimal:128:10:-2": pa.decimal128(10, -2),
    "decimal:256:76:5": pa.decimal256(76, 5),
    "fixed_size_binary:3": pa.binary(3),
    "fixed_size_list:float:4": pa.list_(pa.float32(), 4),
    "fixed_size_list:fixed_size_list:timestamp:us:+05:30:2:3": pa.list_(pa.list_(pa.timestamp("us", "+05:30"), 2), 3),
    "dict:string:int8:false": pa.dictionary(pa.int8(), pa.string()),
    "dict:timestamp:s:-05:00:uint16:true": pa.dictionary(pa.uint16(), pa.timestamp("s", "-05:00"), ordered=True),
}


@pytest.mark.parametrize("text", LEAVES)
def test_logical_type_equals_arrow_type(text: str) -> None:
    assert leaf_type(text).equals(LEAVES[text])


@pytest.mark.parametrize(
    "text",
    [
        "", "int128", "Int32", "int32:", "time32:us", "time64:s", "timestamp:us", "timestamp:us:", "timestamp:m:-",
        "decimal:128:39:0", "decimal:128:0:0", "decimal:64:5:1", "decimal:128:5", "decimal:128:5:1:1",
        "fixed_size_binary:-1", "fixed_size_binary:x", "fixed_size_list:float:99999999999", "fixed_size_list:float",
        "fixed_size_list:struct:x", "dict:string:int8", "dict:string:float:false",
        "dict:dict:string:int8:false:int8:false",
        "fixed_size_list:" * 5000 + "int8" + ":1" * 5000,
    ],
)  # fmt: skip
def test_unknown_logical_type_is_rejected_by_name(text: str) -> None:
    with pytest.raises(SchemaError, match="the logical type"):
        leaf_type(text)


def test_children_form_nested_types() -> None:
    tree = field_tree(
        [
            field(0, kind="struct", name="s", nullable=False),
            field(1, 0, "list.struct", "l"),
            field(2, 1, "struct", "item"),
            field(3, 2, "string", "a", metadata={"k": b"v"}),
            field(4, kind="map", name="m"),
            field(5, 4, "struct", "entries"),
            field(6, 5, "string", "key"),
            field(7, 5, "int64", "value"),
            field(8, kind="fixed_size_list:struct:2", name="p"),
            field(9, 8, "struct", "item"),
            field(10, 9, "int8", "x"),
            field(11, kind="large_list", name="ll"),
            field(12, 11, "int8", "item"),
        ]
    )
    item = pa.field("item", pa.struct([pa.field("a", pa.string(), metadata={"k": "v"})]))
    expected = pa.schema(
        [
            pa.field("s", pa.struct([pa.field("l", pa.list_(item))]), False),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
            pa.field("p", pa.list_(pa.field("item", pa.struct([("x", pa.int8())])), 2)),
            pa.field("ll", pa.large_list(pa.field("item", pa.int8()))),
        ]
    )
    assert arrow_schema(tree).equals(expected, check_metadata=True)
    assert [f.id for f in fields_of_schema(tree)] == list(range(13))
    assert field_tree(fields_of_schema(tree)) == tree


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([field(-2)], "id -2"),
        ([field(1), field(1)], "belongs to two fields"),
        ([field(1, 5)], "has the parent 5"),
        ([field(1, 1, "struct")], "has the parent 1"),
        ([field(2, 1), field(1, kind="struct")], "has the parent 1"),
        ([field(0), field(1, 0)], "has 1 children, expected 0"),
        ([field(0, kind="list")], "has 0 children, expected 1"),
        ([field(0, kind="fixed_size_list:struct:2")], "has 0 children, expected 1"),
        ([field(0, kind="map"), field(1, 0, "int8")], "expected a struct of two"),
        ([field(0, name="a"), field(1, name="a")], "two fields 'a'"),
        ([field(0, kind="struct"), field(1, 0, name="a"), field(2, 0, name="a")], "two fields 'a'"),
    ],
)
def test_damaged_list_of_fields_is_rejected(fields: list[LanceField], message: str) -> None:
    with pytest.raises(CorruptTableError, match=message):
        field_tree(fields)


def test_schema_that_is_too_deep_is_rejected() -> None:
    with pytest.raises(SchemaError, match="deeper than 64 levels"):
        field_tree([field(i, i - 1, "struct") for i in range(100_000)])


def test_name_of_a_field_is_part_of_the_error() -> None:
    with pytest.raises(SchemaError, match=r"Field 'price' \(id 3\).*'money'"):
        arrow_field(field(3, kind="money", name="price"))


def test_blob_columns_are_descriptors_or_bytes() -> None:
    first = field(0, kind="large_binary", metadata={"lance-encoding:blob": b"true"})
    second = field(1, kind="struct", metadata={"ARROW:extension:name": b"lance.blob.v2"})
    assert arrow_field(first).type.names == ["position", "size"]
    assert arrow_field(second).type.names == ["kind", "position", "size", "blob_id", "blob_uri"]
    assert arrow_field(first, blobs="bytes").type == arrow_field(second, blobs="bytes").type == pa.large_binary()


def test_descriptors_of_blobs_are_no_extension_type() -> None:
    metadata = {"ARROW:extension:name": b"lance.blob.v2", "ARROW:extension:metadata": b"", "k": b"v"}
    found = field(1, kind="struct", metadata=metadata)
    assert arrow_field(found).metadata == {b"k": b"v", b"lance-encoding:blob": b"true"}
    assert arrow_field(found, blobs="bytes").metadata == {b"k": b"v"}


def test_extension_type_whose_metadata_is_damaged_is_rejected() -> None:
    metadata = {"ARROW:extension:name": b"arrow.fixed_shape_tensor", "ARROW:extension:metadata": b"{"}
    tree = field_tree([field(0, kind="fixed_size_list:float:4", name="t", metadata=metadata)])
    with pytest.raises(SchemaError, match="'t'"):
        registered(arrow_schema(tree))


def test_extension_types_are_resolved_at_any_depth() -> None:
    of_uuid = {"ARROW:extension:name": b"arrow.uuid", "ARROW:extension:metadata": b""}
    tree = field_tree(
        [
            field(0, kind="struct", name="s"),
            field(1, 0, "fixed_size_binary:16", "u", metadata=of_uuid),
            field(2, kind="fixed_size_binary:16", name="o", metadata={"ARROW:extension:name": b"unknown"}),
        ]
    )
    schema = arrow_schema(tree)
    found = registered(schema)
    assert found.field("s").type.field("u").type == pa.uuid()
    assert found.field("o").type == pa.binary(16)
    batch = pa.record_batch([pa.nulls(2, f.type) for f in schema], schema=schema)
    assert registered(batch).schema.equals(found, check_metadata=True)
    plain = pa.schema([("a", pa.int8())])
    assert registered(plain) is plain


@pytest.mark.parametrize("call", ["create", "append", "add", "rename"])
def test_names_with_dots_are_rejected(tmp_path: Path, call: str) -> None:
    """pylance can't read such columns; fields of structs may have dots."""
    where = str(tmp_path / "d")
    dotted = pa.table({"a.b": [1]})
    if call != "create":
        write_lance(where, pa.table({"a": [1], "s": pa.array([{"x.y": 1}])}))
    calls: dict[str, Callable[[], Any]] = {
        "create": lambda: write_lance(where, dotted),
        "append": lambda: write_lance(where, dotted, "append", merge_schema=True),
        "add": lambda: open_dataset(where).add_columns(dotted.schema),
        "rename": lambda: open_dataset(where).rename_column("a", "a.b"),
    }
    with pytest.raises(SchemaError, match=r"'a\.b' has a dot in its name"):
        calls[call]()
    assert not Path(where).exists() or open_dataset(where).version == 1


@pytest.mark.parametrize("nested", [False, True])
def test_json_texts_are_rejected(tmp_path: Path, nested: bool) -> None:
    """pylance can't read a column of such texts: it stores them in a form of its own."""
    array: pa.Array[Any] = pa.array(["{}", None], pa.json_())
    if nested:
        array = pa.StructArray.from_arrays([array], ["x"])
    with pytest.raises(SchemaError, match=r"arrow\.json"):
        write_lance(str(tmp_path / "d"), pa.table({"c": array}))
