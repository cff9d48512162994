"""pyarrow expressions, read through the Substrait message that pyarrow itself writes.

The message is decoded by hand: a dozen message kinds of one wire format. What pyarrow can't write or we don't
know is refused by name. The result has Spark's semantics, which differ from pyarrow's for NaN only: it equals
itself and is greater than any number.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from delta_core.errors import ColumnNotFoundError, ExpressionError, UnsupportedExpressionError
from delta_core.expressions.ast import Call, Column, Expression, Literal, Values
from delta_core.expressions.members import MANY, from_python
from delta_core.recursion import Steps, each, run
from delta_core.types import DataType, PrimitiveType, StructType

__all__ = ["from_pyarrow", "is_pyarrow"]

_ALTERNATIVES = "Use SQL text (\"x > 5 AND s = 'a'\") or filters ([('x', '>', 5)]) instead."
_FUNCTIONS = {
    "equal": "=", "not_equal": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or", "not": "not",
    "is_null": "isnull", "is_not_null": "isnotnull", "add": "+", "subtract": "-", "multiply": "*",
    "negate": "negative", "coalesce": "coalesce", "contains": "contains", "starts_with": "startswith",
    "ends_with": "endswith",
}  # fmt: skip


def is_pyarrow(value: Any) -> bool:
    """Tell whether a value is a pyarrow expression, without importing pyarrow.compute."""
    return type(value).__name__ == "Expression" and type(value).__module__.startswith("pyarrow")


def from_pyarrow(expression: Any, schema: StructType) -> Expression:
    """Translate a pyarrow expression over the schema's columns; the result is not bound yet.

    Raises
    ------
    ColumnNotFoundError
        It names a column that the schema lacks (pyarrow compares names exactly).
    UnsupportedExpressionError
        A part has no Substrait form or is not known here.
    """
    arrow = pa.schema([f.to_arrow() for f in schema.fields])
    try:
        message = bytes(expression.to_substrait(arrow))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as e:
        if "No match for FieldRef" in str(e):
            raise ColumnNotFoundError(f"{e}. The table's columns are: {', '.join(schema.names[:20])}.") from e
        raise UnsupportedExpressionError(
            f"The pyarrow expression {expression} has no Substrait form: {e}. {_ALTERNATIVES}"
        ) from e
    try:
        return _Reader(message, schema).read()
    except (IndexError, struct.error, UnicodeDecodeError) as e:
        raise ExpressionError(
            f"The Substrait message of {expression} is not as expected. {_ALTERNATIVES}"
        ) from e


# --- wire format ---------------------------------------------------------------------------


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (field number, value) of a protobuf message: numbers, or bytes for whatever has a length."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(message, at)
        elif kind in (1, 2, 5):
            size, at = _varint(message, at) if kind == 2 else (8 if kind == 1 else 4, at)
            if at + size > len(message):
                raise IndexError(at)
            value, at = message[at : at + size], at + size
        else:
            raise IndexError(kind)
        yield tag >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _first(message: bytes, number: int, default: Any = b"") -> Any:
    return next((value for field, value in _fields(message) if field == number), default)


def _all(message: bytes, number: int) -> list[Any]:
    return [value for field, value in _fields(message) if field == number]


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


# --- messages ------------------------------------------------------------------------------

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 (of timestamp_ntz)


def _micros(value: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=_signed(value))


def _decimal(message: bytes) -> decimal.Decimal:
    unscaled = int.from_bytes(_first(message, 1), "little", signed=True)
    return decimal.Decimal(unscaled).scaleb(-_first(message, 3, 0), decimal.Context(prec=60))


def _precise(message: bytes) -> dt.datetime:
    if _first(message, 1, 0) != 6:
        raise UnsupportedExpressionError(
            f"A timestamp that is not in microseconds is not supported. {_ALTERNATIVES}"
        )
    return _micros(_first(message, 2, 0))


_LITERALS: dict[int, tuple[str, Callable[[Any], Any]]] = {
    1: ("boolean", bool),
    2: ("byte", _signed),
    3: ("short", _signed),
    5: ("integer", _signed),
    7: ("long", _signed),
    10: ("float", lambda v: struct.unpack("<f", v)[0]),
    11: ("double", lambda v: struct.unpack("<d", v)[0]),
    12: ("string", bytes.decode),
    13: ("binary", bytes),
    14: ("timestamp_ntz", _micros),
    16: ("date", lambda v: dt.date(1970, 1, 1) + dt.timedelta(days=_signed(v))),
    21: ("string", bytes.decode),
    27: ("timestamp", lambda v: _micros(v).replace(tzinfo=dt.UTC)),
    34: ("timestamp_ntz", _precise),
    35: ("timestamp", lambda v: _precise(v).replace(tzinfo=dt.UTC)),
}


def _constants(options: Sequence[bytes]) -> Values | None:
    """Return many options as values where all are short whole numbers, or all short texts, of one type; else None."""
    number, text = options[0][2:3] in (b"\x28", b"\x38"), options[0][2:3] == b"\x62"  # fields 5 and 7, and 12
    start = options[0][:1] + options[0][2:3]
    if not (number or text) or any(o[:1] + o[2:3] != start or o[1] != len(o) - 2 for o in options):
        return None
    if number:
        return from_python([_signed(_varint(o, 3)[0]) for o in options])
    return from_python([o[4:].decode() for o in options]) if all(o[3] == len(o) - 4 for o in options) else None


class _Reader:
    """Reads an ExtendedExpression with one expression in it."""

    def __init__(self, message: bytes, schema: StructType) -> None:
        self._message, self._schema = message, schema
        self._names: dict[int, str] = {}
        for extension in _all(message, 2):
            function = _first(extension, 3)
            self._names[_first(function, 2, 0)] = _first(function, 3).decode()

    def read(self) -> Expression:
        return run(self._expression(_first(_first(self._message, 3), 1)))

    def _expression(self, message: bytes) -> Steps[Expression]:
        kind, body = next(_fields(message))
        readers: dict[int, Callable[[Any], Any]] = {
            1: self._literal,
            2: self._column,
            3: self._call,
            8: self._members,
        }
        if kind not in readers:
            name = {6: "if_else", 11: "a cast"}.get(kind, f"Substrait expression kind {kind}")
            raise UnsupportedExpressionError(
                f"The pyarrow expression holds {name}, which is not supported. {_ALTERNATIVES}"
            )
        found: Expression = yield readers[kind](body)
        return found

    def _literal(self, message: bytes) -> Literal:
        for kind, value in _fields(message):
            if kind in _LITERALS:
                name, read = _LITERALS[kind]
                return Literal(read(value), PrimitiveType(name))
            if kind == 24:
                return Literal(_decimal(value))
            if kind == 29:
                return Literal(None)
        raise UnsupportedExpressionError(
            f"The pyarrow expression holds a constant of a type not known. {_ALTERNATIVES}"
        )

    def _column(self, message: bytes) -> Column:
        segment, path = _first(_first(message, 1), 2, None), []
        current: DataType = self._schema
        while segment is not None:
            if not isinstance(current, StructType):
                raise UnsupportedExpressionError(
                    f"The pyarrow expression reaches into an array or map. {_ALTERNATIVES}"
                )
            found = current.fields[_first(segment, 1, 0)]
            path.append(found.name)
            current = found.type
            child = _first(segment, 2, None)
            segment = None if child is None else _first(child, 2, None)
        return Column(tuple(path))

    def _call(self, message: bytes) -> Steps[Expression]:
        name = self._names[_first(message, 1, 0)]
        if name not in (*_FUNCTIONS, "is_nan"):
            raise UnsupportedExpressionError(
                f"Function {name!r} of the pyarrow expression is not supported. {_ALTERNATIVES}"
            )
        for option in _all(message, 5):
            given = [p.decode() for p in _all(option, 2)]
            if given not in (["CASE_SENSITIVE"], ["ERROR"]):
                raise UnsupportedExpressionError(
                    f"{name} with {_first(option, 1).decode()}={given} is not supported. {_ALTERNATIVES}"
                )
        args = tuple((yield from each(self._expression(_first(argument, 3)) for argument in _all(message, 4))))
        if name == "is_nan":
            return Call("=", (args[0], Literal(math.nan)))  # null for null, where Spark's isnan is false
        return Call(_FUNCTIONS[name], args)

    def _members(self, message: bytes) -> Steps[Expression]:
        """Read ``isin``, which pyarrow never answers with null: a null is in the list only if the list holds one."""
        value = yield self._expression(_first(message, 1))
        bodies = _all(message, 2)
        many = _constants(bodies) if len(bodies) > MANY else None
        if many is not None:
            return Call("and", (Call("isnotnull", (value,)), Call("in", (value, many))))
        options = yield from each(map(self._expression, bodies))
        known = [o for o in options if not (isinstance(o, Literal) and o.value is None)]
        found: Expression = Call("in", (value, *known)) if known else Literal(False)
        if len(known) < len(options):
            return Call("or", (Call("isnull", (value,)), found))
        return Call("and", (Call("isnotnull", (value,)), found))
