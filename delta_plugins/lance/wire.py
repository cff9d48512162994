"""Protobuf messages as dictionaries: one decoder and one encoder for every message of `delta_plugins.lance.messages`.

A decoded message has every field of its table by name: a scalar that is absent is zero, false or empty (None if it is
optional), a repeated field a list, a map a dictionary, and a message that is absent None. Fields that the table does
not list are in ``UNKNOWN``, as (number, wire type, bytes) in their order; `encode` leaves them out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from delta_core.api import CorruptTableError, InvalidArgumentError
from delta_plugins.lance import messages

__all__ = ["UNKNOWN", "FieldTable", "Message", "chosen", "decode", "encode", "message_table"]

#: A decoded message.
Message = dict[str, Any]

#: The key of the fields of a message that its table does not list.
UNKNOWN = "?"
#: Messages within messages, at most: as many as protobuf's own libraries accept.
MOST_NESTED = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_NUMBER = (1 << 29) - 1


class _DamagedError(Exception):
    """Bytes that are no message; `decode` reports them with their place."""


class _Kind(NamedTuple):
    """A scalar: its wire type, and its value from and to the number or the bytes that are stored."""

    wire: int
    default: Any
    load: Callable[[Any], Any]
    dump: Callable[[Any], Any]


def _unsigned(bits: int) -> Callable[[int], int]:
    def load(value: int) -> int:
        if value >> bits:
            raise _DamagedError(f"the number {value} needs more than {bits} bits")
        return value

    return load


def _signed(bits: int) -> Callable[[int], int]:
    def load(value: int) -> int:
        found = value - (1 << 64) if value >> 63 else value
        if not -(1 << bits - 1) <= found < 1 << bits - 1:
            raise _DamagedError(f"the number {found} needs more than {bits} bits")
        return found

    return load


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as e:
        raise _DamagedError(f"a text is no UTF-8: {e.reason} at byte {e.start}") from None


def _dump_integer(bits: int, signed: bool) -> Callable[[int], int]:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)

    def dump(value: int) -> int:
        if not low <= value < high:
            raise InvalidArgumentError(f"expected a number from {low} to {high - 1}, found {value}")
        return int(value) & 0xFFFF_FFFF_FFFF_FFFF

    return dump


_KINDS = {
    "u32": _Kind(_VARINT, 0, _unsigned(32), _dump_integer(32, False)),
    "u64": _Kind(_VARINT, 0, _unsigned(64), _dump_integer(64, False)),
    "i32": _Kind(_VARINT, 0, _signed(32), _dump_integer(32, True)),
    "i64": _Kind(_VARINT, 0, _signed(64), _dump_integer(64, True)),
    "bool": _Kind(_VARINT, False, bool, int),
    "string": _Kind(_BYTES, "", _text, str.encode),
    "bytes": _Kind(_BYTES, b"", bytes, bytes),
    "double": _Kind(_FIXED64, 0.0, lambda b: struct.unpack("<d", b)[0], lambda v: struct.pack("<d", v)),
}


class FieldTable(NamedTuple):
    """A field of a message.

    Parameters
    ----------
    number : int
        Its number.
    name : str
        Its key in the dictionary.
    kind : str
        A scalar, or the name of a message; of a map, that of its values.
    form : str
        ``""``, ``"?"`` (optional), ``"*"`` (repeated) or ``"map"``.
    key : str
        Of a map, the kind of its keys.
    """

    number: int
    name: str
    kind: str
    form: str
    key: str = ""


def _parsed_field(text: str) -> FieldTable:
    number, name, kind = text.split()
    if kind.startswith("map<"):
        key, _, value = kind[4:-1].partition(",")
        return FieldTable(int(number), name, value, "map", key)
    form = kind[-1] if kind[-1] in "?*" else ""
    plain = kind.rstrip("?*")
    return FieldTable(int(number), name, plain, form or ("" if plain in _KINDS else "?"))


class _Table(NamedTuple):
    fields: dict[int, FieldTable]
    #: The values of a message without fields; lists and maps are made for each message.
    defaults: Message
    repeated: tuple[str, ...]
    maps: tuple[str, ...]


def _parsed_tables(*texts: str) -> dict[str, _Table]:
    found: dict[str, _Table] = {}
    for text in texts:
        for name, body in re.findall(r"^(\w+)\n((?: .*\n)*)", text, re.MULTILINE):
            parts = [p.strip() for p in re.split(r"[;\n]", body)]
            fields = [_parsed_field(p) for p in parts if p]
            single = {f.name: _KINDS[f.kind].default if f.form == "" else None for f in fields if f.form in ("", "?")}
            repeated = tuple(f.name for f in fields if f.form == "*")
            maps = tuple(f.name for f in fields if f.form == "map")
            found[name] = _Table({f.number: f for f in fields}, single, repeated, maps)
    return found


_TABLES = _parsed_tables(messages.FILES, messages.ENCODINGS, messages.TABLES, messages.ROW_IDS, messages.TRANSACTIONS)


def message_table(name: str) -> Mapping[int, FieldTable]:
    """Return the fields of a message by their numbers."""
    return _TABLES[name].fields


def decode(
    name: str, data: bytes | memoryview, where: str, error: type[CorruptTableError] = CorruptTableError
) -> Message:
    """Decode the bytes of a message.

    Parameters
    ----------
    name : str
        The message's name in `delta_plugins.lance.messages`.
    data : bytes-like
        Exactly the message.
    where : str
        What the bytes are, for an error: ``"manifest _versions/3.manifest"``.
    error : type, optional
        The class of the error.

    Raises
    ------
    CorruptTableError
        If the bytes are no such message: an end within a field, a wire type that the field does not have, a field
        number or a nesting beyond protobuf's limits, a number too large for its kind, a text that is no UTF-8.
    """
    try:
        return _message(name, bytes(data), 0)
    except _DamagedError as e:
        raise error(
            f"{where} is damaged: its {name} can't be decoded, {e}. Restore the file from a copy.", where=where
        ) from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    end = min(len(data), at + 10)
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return value, at
        shift += 7
    raise _DamagedError(f"no number of at most 64 bits ends before byte {at}")


def _read_value(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    """Return a value, a number or bytes, and where the next field begins."""
    if wire == _VARINT:
        return _varint(data, at)
    if wire == _BYTES:
        size, at = _varint(data, at)
    elif wire == _FIXED64:
        size = 8
    elif wire == _FIXED32:
        size = 4
    else:
        raise _DamagedError(f"wire type {wire} at byte {at} is not one of 0, 1, 2 and 5")
    if size > len(data) - at:
        raise _DamagedError(f"a field at byte {at} has {size} bytes, but only {len(data) - at} follow")
    return data[at : at + size], at + size


def _message(name: str, data: bytes, depth: int, found: Message | None = None) -> Message:
    if depth >= MOST_NESTED:
        raise _DamagedError(f"more than {MOST_NESTED} messages are nested")
    table = _TABLES[name]
    if found is None:
        found = dict(table.defaults)
        found |= {r: [] for r in table.repeated}
        found |= {m: {} for m in table.maps}
    at, size = 0, len(data)
    while at < size:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not 0 < number <= _MOST_NUMBER:
            raise _DamagedError(f"field number {number} before byte {at} is not one of 1 to {_MOST_NUMBER}")
        value, at = _read_value(data, at, wire)
        field = table.fields.get(number)
        if field is None:
            found.setdefault(UNKNOWN, []).append((number, wire, value))
        else:
            try:
                _put(found, field, wire, value, depth)
            except _DamagedError as e:
                raise _DamagedError(f"{field.name}: {e}") from None
    return found


def _put(found: Message, field: FieldTable, wire: int, value: Any, depth: int) -> None:
    """Add a value that was read to a message."""
    if field.form == "map":
        key, item = _entry(field, wire, value, depth)
        found[field.name][key] = item
    elif field.form == "*":
        found[field.name].extend(_items(field, wire, value, depth))
    elif field.kind in _KINDS:
        found[field.name] = _scalar(field.kind, wire, value)
    else:
        # a message whose field occurs twice is the union of both
        found[field.name] = _message(field.kind, _bytes_of(wire, value), depth + 1, found[field.name])


def _bytes_of(wire: int, value: Any) -> bytes:
    if wire != _BYTES:
        raise _DamagedError(f"expected wire type {_BYTES}, found {wire}")
    return bytes(value)


def _scalar(kind: str, wire: int, value: Any) -> Any:
    expected = _KINDS[kind]
    if wire != expected.wire:
        raise _DamagedError(f"expected wire type {expected.wire}, found {wire}")
    return expected.load(value)


def _items(field: FieldTable, wire: int, value: Any, depth: int) -> list[Any]:
    """Return the values of one occurrence of a repeated field: one, or those of a packed list."""
    kind = _KINDS.get(field.kind)
    if kind is None:
        return [_message(field.kind, _bytes_of(wire, value), depth + 1)]
    if wire == kind.wire or wire != _BYTES:
        return [_scalar(field.kind, wire, value)]
    if kind.wire == _FIXED64:
        if len(value) % 8:
            raise _DamagedError(f"{len(value)} bytes are no list of 8-byte numbers")
        return [kind.load(value[i : i + 8]) for i in range(0, len(value), 8)]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(kind.load(number))
    return found


def _entry(field: FieldTable, wire: int, value: Any, depth: int) -> tuple[Any, Any]:
    """Return the key and the value of a map's entry, which is a message of two fields."""
    data = _bytes_of(wire, value)
    key: Any = _KINDS[field.key].default
    item: Any = None
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        part, at = _read_value(data, at, tag & 7)
        if tag >> 3 == 1:
            key = _scalar(field.key, tag & 7, part)
        elif tag >> 3 == 2 and field.kind in _KINDS:
            item = _scalar(field.kind, tag & 7, part)
        elif tag >> 3 == 2:
            item = _message(field.kind, _bytes_of(tag & 7, part), depth + 1, item)
    if item is None:
        item = _KINDS[field.kind].default if field.kind in _KINDS else _message(field.kind, b"", depth + 1)
    return key, item


def chosen(message: Message, names: Mapping[str, Any] | tuple[str, ...] | None = None) -> str | None:
    """Return the name of the one alternative of a oneof that is there; None if none is, or more than one.

    Parameters
    ----------
    message : dict
        A decoded message.
    names : names of fields, optional
        The alternatives; by default all fields of the message.
    """
    found = [n for n in (message if names is None else names) if n != UNKNOWN and message[n] is not None]
    return found[0] if len(found) == 1 else None


# --- encoding ------------------------------------------------------------------------------


def encode(name: str, message: Mapping[str, Any]) -> bytes:
    """Encode a message, fields in the order of their numbers and maps in that of their keys.

    Parameters
    ----------
    name : str
        The message's name in `delta_plugins.lance.messages`.
    message : Mapping
        Values by the names of fields. What is absent, None or empty, or a zero that is not optional, is left out.

    Raises
    ------
    InvalidArgumentError
        For a name that is no field of the message, or a number that its kind does not hold.
    """
    table = _TABLES[name]
    known = {f.name for f in table.fields.values()} | {UNKNOWN}
    others = [k for k in message if k not in known]
    if others:
        raise InvalidArgumentError(f"message {name} has no field {others[0]!r}")
    out = bytearray()
    for number in sorted(table.fields):
        field = table.fields[number]
        value = message.get(field.name)
        if value is not None:
            _write_field(out, field, value)
    return bytes(out)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, number: int, data: bytes) -> None:
    _write_varint(out, number << 3 | _BYTES)
    _write_varint(out, len(data))
    out += data


def _write_scalar(out: bytearray, number: int, kind: str, value: Any) -> None:
    expected = _KINDS[kind]
    stored = expected.dump(value)
    if expected.wire == _BYTES:
        _write_bytes(out, number, stored)
        return
    _write_varint(out, number << 3 | expected.wire)
    if expected.wire == _VARINT:
        _write_varint(out, stored)
    else:
        out += stored


def _write_value(out: bytearray, number: int, kind: str, value: Any) -> None:
    if kind in _KINDS:
        _write_scalar(out, number, kind, value)
    else:
        _write_bytes(out, number, encode(kind, value))


def _write_field(out: bytearray, field: FieldTable, value: Any) -> None:
    if field.form == "map":
        for key in sorted(value):
            entry = bytearray()
            _write_value(entry, 1, field.key, key)
            _write_value(entry, 2, field.kind, value[key])
            _write_bytes(out, field.number, bytes(entry))
    elif field.form == "*":
        _write_repeated(out, field, value)
    elif field.form == "?" or value != _KINDS[field.kind].default:
        _write_value(out, field.number, field.kind, value)


def _write_repeated(out: bytearray, field: FieldTable, values: Any) -> None:
    kind = _KINDS.get(field.kind)
    if kind is None or kind.wire == _BYTES:
        for value in values:
            _write_value(out, field.number, field.kind, value)
        return
    packed = bytearray()
    for value in values:
        if kind.wire == _VARINT:
            _write_varint(packed, kind.dump(value))
        else:
            packed += kind.dump(value)
    if packed:
        _write_bytes(out, field.number, bytes(packed))
