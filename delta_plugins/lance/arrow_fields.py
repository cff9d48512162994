"""Fields of a Lance schema from those of an Arrow schema (`schema.arrow_schema` goes the other way)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa

from delta_core.api import SchemaError
from delta_plugins.lance.schema import BLOB_V2, BLOB_VALUES, TOP, LanceField

__all__ = ["check_column_name", "lance_fields", "logical_type"]

_PLAIN: dict[pa.DataType, str] = {
    pa.null(): "null",
    pa.bool_(): "bool",
    **{getattr(pa, f"{s}int{b}")(): f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)},
    pa.float16(): "halffloat",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.large_string(): "large_string",
    pa.large_binary(): "large_binary",
    pa.date32(): "date32:day",
    pa.date64(): "date64:ms",
}

_TEXT_JSON = b"arrow.json"
#: The fields that structs of blobs may have.
_BLOBS = (list(BLOB_VALUES), list(BLOB_VALUES)[:2])


def lance_fields(schema: pa.Schema, first_id: int = 0) -> tuple[LanceField, ...]:
    """Return the top-level fields of an Arrow schema, numbered depth first.

    Parameters
    ----------
    schema : pyarrow.Schema
        Metadata of its fields are kept; extension types become metadata of their storage types.
    first_id : int
        The id of the first field.

    Raises
    ------
    SchemaError
        For a type that Lance has no counterpart of, two columns of one name, or one with a dot in its name.
    """
    for name in schema.names:
        check_column_name(name)
    twice = next((n for n in schema.names if schema.names.count(n) > 1), None)
    if twice is not None:
        raise SchemaError(f"The schema has two columns {twice!r}. Rename one of them.", name=twice)
    ids = count(first_id)
    return tuple(_field(f, TOP, ids) for f in schema)


def check_column_name(name: str) -> None:
    """Check that a column may have a name: other readers take a dot for that between a struct and its field.

    Raises
    ------
    SchemaError
        For a name with a dot.
    """
    if "." in name:
        raise SchemaError(f"Column {name!r} has a dot in its name, which Lance does not store. Rename it.", name=name)


def _field(field: pa.Field, parent: int, ids: Iterator[int]) -> LanceField:
    number = next(ids)
    of, metadata = field.type, {k.decode(): v for k, v in (field.metadata or {}).items()}
    if isinstance(of, pa.BaseExtensionType):
        metadata["ARROW:extension:name"] = of.extension_name.encode()
        serialized = of.__arrow_ext_serialize__() if isinstance(of, pa.ExtensionType) else b""
        if serialized:
            metadata["ARROW:extension:metadata"] = serialized
        of = of.storage_type
    if metadata.get("ARROW:extension:name") == _TEXT_JSON:
        raise SchemaError(
            f"Column {field.name!r} has the extension type 'arrow.json', which Lance stores in a binary form that is "
            "not written here. Pass the texts without the extension type.",
            name=field.name,
        )
    if metadata.get("ARROW:extension:name") == BLOB_V2.encode():
        of = _blob_storage(field.name, of)
    kind, below = _nested(of)
    if kind is None:
        try:
            kind = logical_type(of)
        except SchemaError as e:
            raise SchemaError(f"Column {field.name!r} can't be stored: {e}", name=field.name) from None
    children = tuple(_field(child, number, ids) for child in below)
    return LanceField(number, parent, field.name, kind, field.nullable, metadata, None, children)


def _blob_storage(name: str, of: pa.DataType) -> pa.DataType:
    """Return the type that a schema has for blobs that are passed as bytes, or as structs of the extension type."""
    if pa.types.is_binary(of) or pa.types.is_large_binary(of):
        return BLOB_VALUES
    if pa.types.is_struct(of) and [(f.name, f.type) for f in of] in ([(f.name, f.type) for f in p] for p in _BLOBS):
        return of
    shown = ", ".join(f"{f.name}: {f.type}" for f in BLOB_VALUES)
    raise SchemaError(
        f"Column {name!r} has the extension type {BLOB_V2!r} over {of}, expected binary values or a struct of {shown}. "
        "Pass the bytes of the blobs.",
        name=name,
    )


def _nested(of: pa.DataType) -> tuple[str | None, list[pa.Field]]:
    """Return the logical type of a type with children, and these."""
    if pa.types.is_struct(of):
        return "struct", list(of)
    if pa.types.is_map(of):
        entries = pa.struct([of.key_field.with_nullable(False), of.item_field])
        return "map", [pa.field("entries", entries, False)]
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        name = "large_list" if pa.types.is_large_list(of) else "list"
        return name + (".struct" if pa.types.is_struct(of.value_type) else ""), [of.value_field]
    if pa.types.is_fixed_size_list(of) and pa.types.is_struct(of.value_type):
        return f"fixed_size_list:struct:{of.list_size}", [of.value_field]
    return None, []


def logical_type(of: pa.DataType) -> str:
    """Return the logical type of an Arrow type without children.

    Raises
    ------
    SchemaError
        If there is none.
    """
    found = _PLAIN.get(of) or _parametric(of)
    if found is None:
        raise SchemaError(f"Lance has no type for {of}. Cast the column to another type.", type=str(of))
    return found


def _parametric(of: Any) -> str | None:
    types = pa.types
    if types.is_decimal128(of) or types.is_decimal256(of):
        return f"decimal:{of.bit_width}:{of.precision}:{of.scale}"
    if types.is_timestamp(of):
        return f"timestamp:{of.unit}:{of.tz or '-'}"
    if types.is_time32(of):
        return f"time32:{of.unit}"
    if types.is_time64(of):
        return f"time64:{of.unit}"
    if types.is_duration(of):
        return f"duration:{of.unit}"
    if types.is_fixed_size_binary(of):
        return f"fixed_size_binary:{of.byte_width}"
    if types.is_fixed_size_list(of):
        return f"fixed_size_list:{logical_type(of.value_type)}:{of.list_size}"
    if types.is_dictionary(of):
        return f"dict:{logical_type(of.value_type)}:{logical_type(of.index_type)}:{str(bool(of.ordered)).lower()}"
    return None
