"""From the table property to the encoding of its columns, and to the check of their values."""

import pyarrow as pa

from delta_core.api import (
    Call,
    Column,
    ColumnEncoding,
    Function,
    InvalidArgumentError,
    Literal,
    Path,
    PrimitiveType,
    RowCheck,
    Schema,
    SchemaError,
    TableState,
    UnsupportedExpressionError,
    find,
)
from delta_packed_uuids.packing import pack, unpack

__all__ = ["COLUMNS", "FUNCTIONS", "check_kept", "checks", "encodings", "same_schema"]

NAME = "example.packedUuids"
COLUMNS = "example.packedUuids.columns"
_STRING, _BINARY, _INT = (PrimitiveType(t) for t in ("string", "binary", "integer"))
_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_LENGTH = 36


def _from_text(types: list[pa.DataType]) -> pa.DataType:
    if types != [pa.string()]:
        raise UnsupportedExpressionError(f"example_pack_uuid takes a string, found {types}.")
    return pa.binary()


def _from_bytes(types: list[pa.DataType]) -> pa.DataType:
    if types != [pa.binary()]:
        raise UnsupportedExpressionError(f"example_unpack_uuid takes a binary value, found {types}.")
    return pa.string()


# braces are doubled: templates are formatted
_IS_UUID = f"length({{0}}) = {_LENGTH} AND {{0}} RLIKE '{_PATTERN.replace('{', '{{').replace('}', '}}')}'"
_PACK = (
    f"CASE WHEN {_IS_UUID} THEN unhex(replace({{0}}, '-', '')) WHEN {{0}} IS NOT NULL "
    "THEN CAST(raise_error(concat('not a UUID in lower case: ', {0})) AS BINARY) END"
)
_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
_TEXT = ", '-', ".join(f"substr(hex({{0}}), {start}, {size})" for start, size in _PARTS)
_UNPACK = (
    f"CASE WHEN octet_length({{0}}) = 16 THEN lower(concat({_TEXT})) WHEN {{0}} IS NOT NULL "
    "THEN CAST(raise_error(concat('not the 16 bytes of a UUID: ', hex({0}))) AS STRING) END"
)
PACK = Function(NAME, "example_pack_uuid", _from_text, pack, spark=_PACK)
UNPACK = Function(NAME, "example_unpack_uuid", _from_bytes, unpack, spark=_UNPACK)
FUNCTIONS = (PACK, UNPACK)


def columns(table: TableState) -> list[str]:
    """Return the columns that the property names, as the schema spells them.

    Raises
    ------
    ColumnNotFoundError
        If the table lacks a column.
    SchemaError
        If a column is no string.
    InvalidArgumentError
        If a column is named twice.
    """
    found: list[str] = []
    for name in table.configuration.get(COLUMNS, "").split(","):
        if not name.strip():
            continue
        path, field = find(table.schema, (name.strip(),))
        if field.type != _STRING:
            raise SchemaError(
                f"Column {path[0]} of {COLUMNS} has type {field.type.type}, expected string.", column=path[0]
            )
        if path[0] in found:
            raise InvalidArgumentError(f"Table property {COLUMNS} names column {path[0]} twice.", column=path[0])
        found.append(path[0])
    return found


def encodings(table: TableState) -> list[ColumnEncoding]:
    """Return the encoding of each column."""
    return [
        ColumnEncoding(
            NAME, (name,), _BINARY, Call(PACK.name, (Column((name,)),)), Call(UNPACK.name, (Column((name,)),))
        )
        for name in columns(table)
    ]


def checks(table: TableState) -> list[RowCheck]:
    """Return the check of each column: another spelling of a UUID would be read in lower case."""
    found = []
    for name in columns(table):
        column = Column((name,))
        is_uuid = Call("rlike", (column, Literal(_PATTERN, _STRING)))
        # the end of a pattern is before a line break too
        length = Call("=", (Call("length", (column,)), Literal(_LENGTH, _INT)))
        check = Call("and", (length, is_uuid))
        found.append(
            RowCheck(NAME, f"{name} is a UUID", check, null_passes=True, sql=f"{name} is a UUID in lower case")
        )
    return found


def check_kept(table: TableState, paths: tuple[Path, ...]) -> None:
    """Reject to drop or rename a column that the property names.

    Raises
    ------
    SchemaError
        For such a column.
    """
    for path in paths:
        if path[0] in columns(table):
            raise SchemaError(
                f"Column {path[0]} is named by the table property {COLUMNS}, and its files store UUIDs as bytes. Drop "
                f"the feature {NAME} first.",
                column=path[0],
            )


def same_schema(schema: Schema) -> Schema:
    """Return the schema: the feature adds nothing to it."""
    return schema
