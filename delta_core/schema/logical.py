"""The facts about a type that expressions need: its family, range, unit. Every Arrow type has an entry.

Delta's types are entries under their names. The types of formats (`open_type`, `schema_of_arrow`) and of plugins
(`CustomType`) contain the entry of their Arrow type, so that the set is open and no other table has them: a Delta
schema that contains ``uint32`` has an unknown type.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct, field

from delta_core.errors import SchemaError
from delta_core.schema.fields import Schema
from delta_core.schema.types import (
    BASE_TYPES,
    TIMESTAMP_NTZ,
    ArrayType,
    CustomType,
    DataType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TypeDef,
    check_arrow_nesting,
    is_plain_extension,
    parse_decimal,
)

__all__ = [
    "ArrowType",
    "Family",
    "LogicalType",
    "facts",
    "held_type",
    "logical_type",
    "open_type",
    "plain_layout",
    "schema_of_arrow",
]

#: The operations that values support. Those of one family have a common type, ``encoded`` ones are those of another
#: type in another layout (`held_type`), and ``opaque`` ones are only tested for null.
Family = Literal[
    "void", "boolean", "integer", "floating", "decimal", "text", "binary", "date", "timestamp", "time", "duration",
    "interval", "nested", "encoded", "opaque",
]  # fmt: skip
_DAY_S = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
#: Digits of decimals that Arrow computes with.
MOST_DIGITS = 76


class LogicalType(Struct, frozen=True):
    """The facts about a type that binding, coercion and evaluation need.

    Parameters
    ----------
    family : str
        See `Family`.
    arrow : pyarrow.DataType
        How values lie in memory while an expression is evaluated.
    bits : int
        Of an integer or a floating-point number.
    is_signed : bool
        Of an integer.
    precision, scale : int
        Of the decimal type that holds every value of an integer or a decimal; 0 for other families.
    per_day : int
        Units in a day, of dates, times, timestamps and durations; 0 for other families.
    is_zoned : bool
        Whether a timestamp is an instant, stored in UTC.
    """

    family: Family
    arrow: pa.DataType
    bits: int = 0
    is_signed: bool = True
    precision: int = 0
    scale: int = 0
    per_day: int = 0
    is_zoned: bool = False

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.is_signed else (0, (1 << self.bits) - 1)


class ArrowType(CustomType, frozen=True):
    """A type of a format that Delta has no type for, under the name that Arrow or the format has for it.

    Parameters
    ----------
    type : str
        The name, such as ``uint32`` or ``timestamp[ns]``; types of one name are equal.
    definition : TypeDef
        The Arrow type of a column.
    logical : LogicalType
        The operations of expressions on values.
    """

    logical: LogicalType


class _ArrowField(Field, frozen=True):
    """A field that converts to the Arrow field that it was made of."""

    arrow: Any = field(default=None)

    def to_arrow(self, types: Any = None) -> pa.Field:
        return self.arrow


class _ArrowList(ArrayType, frozen=True):
    """A list that converts to the Arrow type that it was made of."""

    arrow: Any = field(default=None)

    def to_arrow(self, types: Any = None) -> pa.DataType:
        return self.arrow


class _ArrowMap(MapType, frozen=True):
    """A map that converts to the Arrow type that it was made of."""

    arrow: Any = field(default=None)

    def to_arrow(self, types: Any = None) -> pa.DataType:
        return self.arrow


class _ArrowSchema(Schema):
    """A schema that converts to the Arrow schema that it was made of, metadata included."""

    __slots__ = ("named", "source")

    def __init__(self, fields: Any, source: pa.Schema, named: Any) -> None:
        super().__init__(fields)
        self.source, self.named = source, named

    def __reduce__(self) -> tuple[Any, ...]:
        # PyArrow's own pickles lose the names of fields in lists of fixed size
        return _read_schema, (self.source.serialize().to_pybytes(), self.named)

    def to_arrow(self, as_large_types: bool = False, **kwargs: Any) -> pa.Schema:  # type: ignore[override]  # as `Schema`
        return super().to_arrow(as_large_types) if as_large_types else self.source


# --- layouts -------------------------------------------------------------------------------


_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _held_decimal(t: Any) -> pa.DataType:
    precision, scale = (t.precision - t.scale, 0) if t.scale < 0 else (max(t.precision, t.scale), t.scale)
    if precision > MOST_DIGITS:
        return t
    return (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)


def _held_storage(t: Any) -> pa.DataType:
    with suppress(SchemaError):  # of what stores it
        return _held(t.storage_type) if is_plain_extension(t) else t
    return t


#: How values that lie in memory in several ways are held while an expression is evaluated; all values fit.
_HELD: tuple[tuple[Callable[[Any], bool], Callable[[Any], pa.DataType]], ...] = (
    (lambda t: isinstance(t, pa.BaseExtensionType), _held_storage),
    (lambda t: pa.types.is_dictionary(t) or pa.types.is_run_end_encoded(t), lambda t: _held(t.value_type)),
    (lambda t: pa.types.is_large_string(t) or pa.types.is_string_view(t), lambda _: pa.string()),
    (lambda t: pa.types.is_large_binary(t) or pa.types.is_binary_view(t), lambda _: pa.binary()),
    (pa.types.is_fixed_size_binary, lambda _: pa.binary()),
    (pa.types.is_float16, lambda _: pa.float32()),
    (pa.types.is_date64, lambda _: pa.date32()),
    (pa.types.is_decimal, _held_decimal),
    (pa.types.is_timestamp, lambda t: pa.timestamp(t.unit, "UTC") if t.tz else t),
    (pa.types.is_struct, lambda t: pa.struct([_held_part(t.field(i)) for i in range(t.num_fields)])),
    (pa.types.is_map, lambda t: pa.map_(_held_part(t.key_field), _held_part(t.item_field), t.keys_sorted)),
    (lambda t: any(test(t) for test in _LISTS), lambda t: pa.list_(_held_part(t.value_field))),
)


def _held_part(f: pa.Field) -> pa.Field:
    return f.with_type(_held(f.type))


def _held(t: Any) -> pa.DataType:
    return next((held(t) for test, held in _HELD if test(t)), t)


@lru_cache(maxsize=512)
def plain_layout(t: pa.DataType) -> pa.DataType:
    """Return the Arrow type in which values of an Arrow type are held while an expression is evaluated.

    Dictionaries, runs and the layouts of text, bytes and lists are replaced by the plain ones, ``halffloat`` by
    ``float``, ``date64`` by ``date32``, zones by UTC, and decimals whose scale is negative or exceeds their precision
    by wider ones. A type that is held as it is comes back unchanged.
    """
    return _held(t)


# --- entries -------------------------------------------------------------------------------

_Entry = Callable[[Any], LogicalType]
#: Of integers by their bits: long has 20, as in Spark, though 19 would do.
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def _plain(family: Family) -> _Entry:
    return lambda t: LogicalType(family, t)


def _integer(t: pa.DataType) -> LogicalType:
    return LogicalType("integer", t, t.bit_width, pa.types.is_signed_integer(t), precision=_INTEGER_DIGITS[t.bit_width])


def _decimal(t: Any) -> LogicalType:
    if not 0 <= t.scale <= t.precision:
        return LogicalType("opaque", t)  # no other type holds its values
    return LogicalType("decimal", t, precision=t.precision, scale=t.scale)


def _time(family: Family) -> _Entry:
    def entry(t: Any) -> LogicalType:
        return LogicalType(family, t, per_day=_DAY_S * _PER_SECOND[t.unit])

    return entry


def _timestamp(t: Any) -> LogicalType:
    return LogicalType("timestamp", t, per_day=_DAY_S * _PER_SECOND[t.unit], is_zoned=bool(t.tz))


#: The entry of an Arrow type: that of the first test which is true.
_ENTRIES: tuple[tuple[Callable[[Any], bool], _Entry], ...] = (
    (pa.types.is_boolean, _plain("boolean")),
    (pa.types.is_integer, _integer),
    (pa.types.is_float32, lambda t: LogicalType("floating", t, 32)),
    (pa.types.is_float64, lambda t: LogicalType("floating", t, 64)),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, _plain("text")),
    (pa.types.is_binary, _plain("binary")),
    (pa.types.is_date32, lambda t: LogicalType("date", t, per_day=1)),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, _time("time")),
    (pa.types.is_duration, _time("duration")),
    (pa.types.is_null, _plain("void")),
)


@lru_cache(maxsize=512)
def _entry(t: pa.DataType) -> LogicalType:
    if plain_layout(t) != t:
        return LogicalType("encoded", t)
    return next((entry(t) for test, entry in _ENTRIES if test(t)), LogicalType("opaque", t))


_NESTED = LogicalType("nested", pa.null())
_NAMED = {name: _entry(t.arrow) for name, t in BASE_TYPES.items()}
_NAMED |= dict.fromkeys((TIMESTAMP_NTZ.name, *TIMESTAMP_NTZ.aliases), _entry(TIMESTAMP_NTZ.arrow))
_NAMED |= dict.fromkeys(("interval day", "interval day to second"), LogicalType("interval", pa.duration("us")))
_NAMED["interval year to month"] = LogicalType("interval", pa.int32())


@lru_cache(maxsize=512)
def _named(name: str) -> LogicalType:
    found = _NAMED.get(name)
    digits = parse_decimal(name) if found is None else None
    if digits is not None and 0 <= digits[1] <= digits[0] <= 38 and digits[0]:
        return _decimal(pa.decimal128(*digits))
    return found or LogicalType("opaque", pa.null())


def facts(t: DataType) -> LogicalType:
    """Return the entry of a type; ``opaque`` for a name that is not known, ``nested`` for arrays, maps and structs."""
    if type(t) is PrimitiveType:
        return _named(t.type)
    if isinstance(t, ArrowType):
        return t.logical
    return _entry(plain_layout(t.definition.arrow)) if isinstance(t, CustomType) else _NESTED


# --- from Arrow ----------------------------------------------------------------------------

_DELTA: dict[pa.DataType, PrimitiveType] = {t.arrow: PrimitiveType(t.name) for t in BASE_TYPES.values()}
_DELTA[TIMESTAMP_NTZ.arrow] = PrimitiveType(TIMESTAMP_NTZ.name)


def logical_type(name: str, arrow: pa.DataType, family: Family | None = None) -> ArrowType:
    """Return a type of a format under the format's own name.

    Parameters
    ----------
    name : str
        For messages; types of one name are equal.
    arrow : pyarrow.DataType
        The type of its columns.
    family : Family, optional
        ``opaque`` for values that only null tests have a meaning for, such as bytes that encode something else; by
        default that of the Arrow type.
    """
    found = LogicalType(family, arrow) if family is not None else _entry(arrow)
    return ArrowType(name, TypeDef(name, arrow, name, ordered=False), found)


@lru_cache(maxsize=512)
def _flat_type(t: Any) -> PrimitiveType:
    known = _DELTA.get(t)
    if known is None and pa.types.is_decimal128(t) and 0 <= t.scale <= t.precision:
        return PrimitiveType(f"decimal({t.precision},{t.scale})")
    return logical_type(str(t), t) if known is None else known


#: Returns the type of a field that a format names itself, None for any other field.
NamedType = Callable[[pa.Field], PrimitiveType | None]


def _not_named(_: pa.Field) -> PrimitiveType | None:
    return None


def open_type(t: pa.DataType) -> DataType:
    """Return the type of any Arrow type: Delta's if its values lie in memory so, else one of the open set.

    Lists, maps and structs have parts, whatever their layout. The result converts to the same Arrow type.

    Parameters
    ----------
    t : pyarrow.DataType
        Any Arrow type.

    Raises
    ------
    SchemaError
        For a type that is nested too deep.
    """
    if t.num_fields:
        check_arrow_nesting(t)
    return _open_type(t, _not_named)


def _open_type(t: Any, named: NamedType) -> DataType:
    if isinstance(t, pa.BaseExtensionType) or not pa.types.is_nested(t):
        return _flat_type(t)
    if pa.types.is_struct(t):
        return StructType([_open_field(t.field(i), named) for i in range(t.num_fields)])
    if pa.types.is_map(t):
        key, item = (_part_type(f, named) for f in (t.key_field, t.item_field))
        return _ArrowMap(key, item, t.item_field.nullable, t)
    if any(test(t) for test in _LISTS):
        return _ArrowList(_part_type(t.value_field, named), t.value_field.nullable, t)
    return _flat_type(t)


def _part_type(f: pa.Field, named: NamedType) -> DataType:
    return named(f) or _open_type(f.type, named)


def _open_field(f: pa.Field, named: NamedType) -> Field:
    metadata = {k.decode(errors="replace"): v.decode(errors="replace") for k, v in (f.metadata or {}).items()}
    return _ArrowField(f.name, _part_type(f, named), f.nullable, metadata, f)


def schema_of_arrow(schema: Any, named: NamedType = _not_named) -> Schema:
    """Return the schema of any Arrow schema, which converts back to it without loss.

    Expressions bind to it. It is no schema of a Delta table, which has other types (`Schema.from_arrow`).

    Parameters
    ----------
    schema : pyarrow.Schema
        Or another object with ``__arrow_c_schema__``.
    named : function(pyarrow.Field) -> PrimitiveType or None
        The types that a format names itself, with `logical_type`, at any depth; None for all other fields.

    Raises
    ------
    SchemaError
        For an object that is no schema, or types that are nested too deep.
    """
    try:
        found = schema if isinstance(schema, pa.Schema) else pa.schema(schema)
    except (TypeError, ValueError) as e:
        raise SchemaError(f"Found a schema as {type(schema).__name__}; expected an Arrow schema ({e}).") from e
    for f in found:
        check_arrow_nesting(f.type)
    return _ArrowSchema([_open_field(f, named) for f in found], found, named)


def _read_schema(message: bytes, named: NamedType) -> Schema:
    return schema_of_arrow(pa.ipc.read_schema(pa.py_buffer(message)), named)


def held_type(t: ArrowType) -> DataType:
    """Return the type that values of a format's type have in expressions: that of their plain layout."""
    return _open_type(plain_layout(t.definition.arrow), _not_named) if t.logical.family == "encoded" else t
