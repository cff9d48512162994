"""File statistics as writers compute them, as JSON and as the typed struct of checkpoints."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.kernels.arrow_buffers import one_array
from delta_core.schema.types import DataType, PrimitiveType, StructType, parse_decimal
from delta_core.testing.data_files import physical_name

__all__ = ["compute_statistics", "partition_struct", "statistics_json", "statistics_struct", "typed_statistics"]

_PREFIX = 32
_UNORDERED = ("boolean", "binary", "variant", "void")
_ZONED = "timestamp"


def compute_statistics(table: pa.Table) -> dict[str, Any]:
    """Return ``numRecords``, ``minValues``, ``maxValues`` and ``nullCount`` of a physical table.

    NaN is left out of float bounds, strings are cut at 32 characters, timestamps floored to milliseconds: what
    readers have to expect. Protocol: Per-file Statistics.
    """
    low, high, nulls = _bounds_of({name: one_array(table.column(name)) for name in table.column_names})
    return {"numRecords": table.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _bounds_of(columns: Mapping[str, pa.Array]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for name, column in columns.items():
        t = column.type
        if pa.types.is_struct(t):
            inner = {t.field(i).name: pc.struct_field(column, [i]) for i in range(t.num_fields)}
            low[name], high[name], nulls[name] = _bounds_of(inner)
        else:
            nulls[name] = column.null_count
            bounds = _bounds(column)
            if bounds is not None:
                low[name], high[name] = bounds
    return low, high, nulls


def _bounds(column: pa.Array) -> tuple[Any, Any] | None:
    t = column.type
    if pa.types.is_nested(t) or pa.types.is_boolean(t) or pa.types.is_binary(t) or pa.types.is_null(t):
        return None
    if pa.types.is_floating(t):
        column = column.filter(pc.invert(pc.is_nan(column)))
    if pa.types.is_timestamp(t):
        column, zone = column.cast(pa.timestamp("us", t.tz)).cast(pa.int64()), "Z" if t.tz else ""
    found = pc.min_max(column).as_py()
    if found["min"] is None:
        return None
    if pa.types.is_timestamp(t):
        return _millis(found["min"], zone), _millis(found["max"], zone)
    if pa.types.is_string(t):
        high = _cut_high(found["max"])
        return None if high is None else (found["min"][:_PREFIX], high)
    return _finite(found["min"]), _finite(found["max"])


def _finite(bound: Any) -> Any:
    """Return a bound that JSON can hold: infinities become text, as Spark writes them."""
    return bound if bound not in (math.inf, -math.inf) else "Infinity" if bound > 0 else "-Infinity"


def _millis(micros: int, zone: str) -> str:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=micros // 1000)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + zone


def _cut_high(text: str) -> str | None:
    """Return a text of at most 64 characters that is not below ``text``, None if there is none."""
    if len(text) <= _PREFIX:
        return text
    for end in range(_PREFIX, min(len(text), 64)):
        if text[end] != "\U0010ffff":
            return text[:end] + ("\x7f" if text[end] < "\x7f" else "\U0010ffff")
    return None


def statistics_json(value: Mapping[str, Any]) -> str:
    """Return the text of statistics; decimals are as plain numbers, dates as ISO text."""
    text = json.dumps(value, default=_plain, separators=(",", ":"))
    return re.sub(r'"\\u0000([^"]*)"', r"\1", text)


def _plain(value: Any) -> str:
    return "\0" + format(value, "f") if isinstance(value, Decimal) else value.isoformat()


# --- the struct form -----------------------------------------------------------------------


def statistics_struct(struct: StructType, partition: tuple[str, ...] = ()) -> pa.DataType:
    """Return the type of ``stats_parsed`` for a table's logical struct."""
    low = _leaf_struct(struct, partition, bounds=True)
    fields = [("numRecords", pa.int64()), ("tightBounds", pa.bool_())]
    if low is not None:
        fields += [("minValues", low), ("maxValues", low)]
    nulls = _leaf_struct(struct, partition, bounds=False)
    return pa.struct(fields + ([] if nulls is None else [("nullCount", nulls)]))


def _leaf_struct(struct: StructType, skip: tuple[str, ...], bounds: bool) -> pa.DataType | None:
    fields = []
    for f in struct.members:
        if f.name in skip:
            continue
        if isinstance(f.type, StructType):
            inner = _leaf_struct(f.type, (), bounds)
            if inner is not None:
                fields.append((physical_name(f), inner))
        elif not bounds:
            fields.append((physical_name(f), pa.int64()))
        elif isinstance(f.type, PrimitiveType) and f.type.type not in _UNORDERED:
            fields.append((physical_name(f), f.type.to_arrow()))
    return pa.struct(fields) if fields else None


def typed_statistics(text: str | None, struct: StructType) -> dict[str, Any] | None:
    """Return JSON statistics as Python values that fit `statistics_struct`."""
    if text is None:
        return None
    value: dict[str, Any] = json.loads(text, parse_float=Decimal)
    for side in ("minValues", "maxValues"):
        if side in value:
            value[side] = _typed_struct(value[side], struct)
    return value


def _typed_struct(value: Mapping[str, Any], struct: StructType) -> dict[str, Any]:
    fields = {physical_name(f): f.type for f in struct.members}
    return {name: _typed(v, fields[name]) for name, v in value.items() if name in fields}


def _typed(value: Any, t: DataType) -> Any:
    if value is None or not isinstance(t, (PrimitiveType, StructType)):
        return None
    if isinstance(t, StructType):
        return _typed_struct(value, t)
    if t.type == "date":
        return dt.date.fromisoformat(value[:10])
    if t.type.startswith("timestamp"):
        moment = dt.datetime.fromisoformat(value)
        return moment if t.type == _ZONED else moment.replace(tzinfo=None)
    if t.type in ("float", "double"):
        return float(value)
    decimal = parse_decimal(t.type)
    return Decimal(value).quantize(Decimal(1).scaleb(-decimal[1])) if decimal else value


def partition_struct(struct: StructType, partition: tuple[str, ...]) -> pa.DataType | None:
    """Return the type of ``partitionValues_parsed``, None for an unpartitioned table."""
    fields = [(physical_name(f), f.type.to_arrow()) for f in struct.members if f.name in partition]
    return pa.struct(fields) if fields else None
