"""Rows as text in one canonical form, and a digest of them that doesn't depend on their order.

A row is a JSON array of its columns in the order of the schema, in ASCII and without spaces::

    null, boolean               null, true, false
    byte, short, integer, long  a number
    float, double               the text of float.hex(); "nan", "inf", "-inf"
    decimal                     text with as many fractional digits as the type's scale
    string                      text
    binary                      lower-case hexadecimal text
    date                        days since 1970-01-01
    timestamp, timestamp_ntz    microseconds since 1970-01-01
    array                       an array
    map                         an array of [key, value], sorted by their JSON
    struct                      an array of its fields in order
    variant                     [hexadecimal metadata, hexadecimal value]

The digest is the SHA-256 of the sorted rows, joined by newlines.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["canonical_rows", "digest"]


def canonical_rows(table: pa.Table, schema: dict[str, Any]) -> list[str]:
    """Return the rows of a table as sorted JSON texts; columns are found by name, then by name in any case."""
    columns = [_values(_column(table, f["name"]), f["type"]) for f in schema["fields"]]
    rows = zip(*columns, strict=True) if columns else [()] * table.num_rows
    return sorted(json.dumps(row, separators=(",", ":")) for row in rows)


def digest(rows: list[str]) -> str:
    """Return the digest of rows that `canonical_rows` returned."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _column(table: pa.Table, name: str) -> pa.Array:
    exact = [i for i, n in enumerate(table.column_names) if n == name]
    found = exact or [i for i, n in enumerate(table.column_names) if n.lower() == name.lower()]
    if len(found) != 1:
        raise KeyError(f"{len(found)} columns {name!r} among {table.column_names}")
    return pa.concat_arrays(c) if (c := table.column(found[0]).chunks) else pa.array([], table.schema.types[found[0]])


def _values(array: pa.Array, kind: Any) -> list[Any]:
    """Return what represents each value of an array; `kind` is the type as a Delta schema has it."""
    if isinstance(array, pa.ExtensionArray):
        return _values(array.storage, kind)
    if pa.types.is_dictionary(array.type):
        return _values(array.dictionary_decode(), kind)
    if pa.types.is_null(array.type):
        return [None] * len(array)
    if isinstance(kind, dict):
        return {"array": _lists, "map": _maps, "struct": _structs}[kind["type"]](array, kind)
    if kind == "variant":
        return _variants(array)
    if kind == "date":
        array = array.cast(pa.date32()).cast(pa.int32())
    elif kind.startswith("timestamp"):
        array = array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64())
    elif kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2] or 0)
        return [None if v is None else f"{Decimal(v):.{scale}f}" for v in array.to_pylist()]
    if kind in ("float", "double"):
        return [None if v is None else float(v).hex() for v in array.to_pylist()]
    if kind == "binary":
        return [None if v is None else bytes(v).hex() for v in array.to_pylist()]
    values: list[Any] = array.to_pylist()
    return values


def _split(array: pa.Array, values: list[Any]) -> list[list[Any] | None]:
    """Return what represents each list of an array, from what represents all their elements."""
    ends = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [values[ends[i] : ends[i + 1]] if ok else None for i, ok in enumerate(valid)]


def _lists(array: pa.Array, kind: dict[str, Any]) -> list[Any]:
    return _split(array, _values(array.values, kind["elementType"]))


def _maps(array: pa.Array, kind: dict[str, Any]) -> list[Any]:
    pairs = zip(_values(array.keys, kind["keyType"]), _values(array.items, kind["valueType"]), strict=True)
    maps = _split(array, [list(pair) for pair in pairs])
    return [None if m is None else sorted(m, key=json.dumps) for m in maps]


def _structs(array: pa.Array, kind: dict[str, Any]) -> list[Any]:
    table = pa.Table.from_arrays([array.field(i) for i in range(array.type.num_fields)], [f.name for f in array.type])
    fields = [_values(_column(table, f["name"]), f["type"]) for f in kind["fields"]]
    valid = array.is_valid().to_pylist()
    return [[f[i] for f in fields] if ok else None for i, ok in enumerate(valid)]


def _variants(array: pa.Array) -> list[Any]:
    values = array.to_pylist()
    return [None if v is None else [bytes(v[k] or b"").hex() for k in ("metadata", "value")] for v in values]
