"""Arrow's schema of a Parquet file of flat columns of the common types, as PyArrow makes it, but without PyArrow.

To load PyArrow's Parquet reader and to open a file with it takes longer than all other work of a process's first read.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

__all__ = ["PLAIN_TYPES", "plain_schema"]

#: Types that a writer may have had, and those that are read in their place.
PLAIN_TYPES = {
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}

_REQUIRED, _OPTIONAL = 0, 1
_NONE = -1
_UTF8, _DATE, _TIMESTAMP_MICROS, _INT8, _INT16, _INT32, _INT64 = 0, 6, 10, 15, 16, 17, 18  # converted types
_STRING, _LOGICAL_DATE, _TIMESTAMP = 1, 6, 8  # members of the union LogicalType
_MICROS = 2  # member of the union TimeUnit
#: By physical type, converted type, logical type, unit, and whether it is adjusted to UTC.
_TYPES: Mapping[tuple[int, int, int, int, bool], pa.DataType] = {
    (0, _NONE, _NONE, _NONE, False): pa.bool_(),
    (1, _NONE, _NONE, _NONE, False): pa.int32(),
    (1, _INT8, _NONE, _NONE, False): pa.int8(),
    (1, _INT16, _NONE, _NONE, False): pa.int16(),
    (1, _INT32, _NONE, _NONE, False): pa.int32(),
    (1, _DATE, _NONE, _NONE, False): pa.date32(),
    (1, _DATE, _LOGICAL_DATE, _NONE, False): pa.date32(),
    (1, _NONE, _LOGICAL_DATE, _NONE, False): pa.date32(),
    (2, _NONE, _NONE, _NONE, False): pa.int64(),
    (2, _INT64, _NONE, _NONE, False): pa.int64(),
    (2, _TIMESTAMP_MICROS, _TIMESTAMP, _MICROS, True): pa.timestamp("us", "UTC"),
    (2, _NONE, _TIMESTAMP, _MICROS, True): pa.timestamp("us", "UTC"),
    (2, _TIMESTAMP_MICROS, _TIMESTAMP, _MICROS, False): pa.timestamp("us"),
    (2, _NONE, _TIMESTAMP, _MICROS, False): pa.timestamp("us"),
    (4, _NONE, _NONE, _NONE, False): pa.float32(),
    (5, _NONE, _NONE, _NONE, False): pa.float64(),
    (6, _UTF8, _NONE, _NONE, False): pa.string(),
    (6, _UTF8, _STRING, _NONE, False): pa.string(),
    (6, _NONE, _STRING, _NONE, False): pa.string(),
    (6, _NONE, _NONE, _NONE, False): pa.binary(),
}
_ARROW_SCHEMA = b"ARROW:schema"
_FIELD_ID = b"PARQUET:field_id"
_Element = tuple[bytes, int, int, int, int, int, int, int, int, bool]


def plain_schema(
    elements: list[_Element], pairs: list[tuple[bytes, bytes]]
) -> tuple[pa.Schema, list[tuple[int, int]]] | None:
    """Return the schema without metadata, and each column's physical type and greatest definition level.

    Parameters
    ----------
    elements : list of tuple
        See `Footer.schema` of the compiled parser.
    pairs : list of (bytes, bytes)
        The key-value metadata.

    Returns
    -------
    (Schema, list of (int, int)) or None
        None for all that is not certain to be the same as PyArrow's.
    """
    if not elements or len({key for key, _ in pairs}) != len(pairs):
        return None
    root, *columns = elements
    if not columns or root[4] != len(columns):
        return None
    fields, leaves = [], []
    for name, physical, _, repetition, children, converted, number, logical, unit, is_utc in columns:
        kind = _TYPES.get((physical, converted, logical, unit, is_utc))
        if kind is None or children != _NONE or repetition not in (_REQUIRED, _OPTIONAL) or number < _NONE:
            return None
        try:
            text = name.decode()
        except UnicodeDecodeError:
            return None
        metadata = None if number == _NONE else {_FIELD_ID: b"%d" % number}
        fields.append(pa.field(text, kind, repetition == _OPTIONAL, metadata))
        leaves.append((physical, repetition))
    schema = pa.schema(fields)
    written = dict(pairs).get(_ARROW_SCHEMA)
    return (schema, leaves) if written is None or _is_alike(written, schema) else None


def _is_alike(written: bytes, schema: pa.Schema) -> bool:
    """Whether the schema that a writer had changes nothing: PyArrow restores types and metadata from it."""
    try:
        found: Any = pa.ipc.read_schema(pa.py_buffer(binascii.a2b_base64(written)))
        names = found.names
    except (pa.ArrowException, ValueError, OSError):
        return False
    return names == schema.names and all(
        (PLAIN_TYPES.get(f.type, f.type) == own.type) and f.metadata in (None, own.metadata)
        for f, own in zip(found, schema, strict=True)
    )
