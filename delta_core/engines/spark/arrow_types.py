"""Arrow's types as Spark's, for rows that reach Spark as Arrow batches: exactly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from delta_core.errors import DataFileError, UnsupportedFeatureError

__all__ = ["arrow_target", "converted_batch", "spark_field"]

_t = pa.types
#: Digits of decimals that Spark holds.
_MOST_DIGITS = 38
_PLAIN: dict[pa.DataType, T.DataType] = {
    pa.null(): T.NullType(),
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
    pa.uint64(): T.DecimalType(20, 0),
    pa.float16(): T.FloatType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.date32(): T.DateType(),
    pa.date64(): T.DateType(),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), T.StringType()),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), T.BinaryType()),
}
_LISTS: tuple[Callable[[Any], bool], ...] = (_t.is_list, _t.is_large_list, _t.is_fixed_size_list)


def spark_field(field: pa.Field) -> T.StructField:
    """Return a column of Spark that holds all values of an Arrow column.

    Unsigned integers become the next wider type, ``uint64`` DECIMAL(20, 0); dictionaries their values; lists of a fixed
    size lists; durations intervals; extension types their storage. Every column, field and element is nullable.

    Parameters
    ----------
    field : pyarrow.Field
        The column.

    Raises
    ------
    UnsupportedFeatureError
        Spark has no such type; the error names the column.
    """
    found = _spark_type(field.type)
    if found is None:
        raise UnsupportedFeatureError(
            f"Column {field.name!r} has type {field.type}, which Spark does not have. Read other columns "
            "(delta_core.spark.read(..., columns=[...])), or read the table with delta_core.open_table.",
            feature=str(field.type),
            column=field.name,
        )
    return T.StructField(field.name, found, True)


def _spark_type(t: Any) -> T.DataType | None:
    if isinstance(t, pa.BaseExtensionType):
        return _spark_type(t.storage_type)
    if t in _PLAIN:
        return _PLAIN[t]
    if _t.is_fixed_size_binary(t):
        return T.BinaryType()
    if _t.is_timestamp(t):
        return T.TimestampType() if t.tz else T.TimestampNTZType()
    if _t.is_duration(t):
        return T.DayTimeIntervalType()
    if _t.is_decimal(t):
        return T.DecimalType(t.precision, t.scale) if 0 <= t.scale <= t.precision <= _MOST_DIGITS else None
    return _nested_type(t)


def _nested_type(t: Any) -> T.DataType | None:
    if _t.is_dictionary(t):
        return _spark_type(t.value_type)
    if any(test(t) for test in _LISTS):
        element = _spark_type(t.value_type)
        return None if element is None else T.ArrayType(element, True)
    if _t.is_map(t):
        key, value = _spark_type(t.key_type), _spark_type(t.item_type)
        return None if key is None or value is None else T.MapType(key, value, True)
    if _t.is_struct(t):
        fields = [(f.name, _spark_type(f.type)) for f in t]
        is_known = all(found is not None for _, found in fields)
        return T.StructType([T.StructField(name, found, True) for name, found in fields]) if is_known else None
    return None


def arrow_target(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects of rows with its own schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    # from PySpark 4.2 on, the type of timestamps has to be given a zone
    zone = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    found: pa.Schema = to_arrow_schema(schema, **zone)
    return found


def converted_batch(batch: pa.RecordBatch, target: pa.Schema) -> pa.RecordBatch:
    """Return a batch in the types that Spark expects.

    Raises
    ------
    DataFileError
        A value that Spark can't hold, such as a time with nanoseconds; the error names the column.
    """
    found = zip(batch.schema.names, batch.columns, target, strict=True)
    return pa.RecordBatch.from_arrays([_converted(n, c, f.type) for n, c, f in found], schema=target)


def _converted(name: str, column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise DataFileError(
            f"Column {name!r} of type {column.type} has a value that Spark can't hold as {wanted}: {e}. Leave the "
            "column out, or read the table with delta_core.open_table.",
            column=name,
        ) from e
