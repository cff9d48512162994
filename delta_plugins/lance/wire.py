"""Protobuf messages as dictionaries: one decoder and one encoder for every message of `delta_plugins.lance.messages`.

A decoded message has every field of its table by name: a scalar that is absent is zero, false or empty (None if it is
optional), a repeated field a list, a map a dictionary, and a message that is absent None. Fields that the table does
not list are in ``UNKNOWN``, as (number, wire type, bytes) in their order; `encode` leaves them out.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from delta_core.api import CorruptTableError, InvalidArgumentError
from delta_plugins.lance import _metadata, messages

__all__ = ["UNKNOWN", "FieldTable", "Message", "chosen", "decode", "encode", "message_table"]

#: A decoded message.
Message = dict[str, Any]

#: The key of the fields of a message that its table does not list.
UNKNOWN = _metadata.UNKNOWN
_NUMBER = itemgetter(0)
_VARINT, _FIXED64, _BYTES = 0, 1, 2


class _Kind(NamedTuple):
    """A scalar: its wire type, and its value to the number or the bytes that are stored."""

    wire: int
    default: Any
    dump: Callable[[Any], Any]


def _dump_integer(bits: int, signed: bool) -> Callable[[int], int]:
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)

    def dump(value: int) -> int:
        if not low <= value < high:
            raise InvalidArgumentError(f"expected a number from {low} to {high - 1}, found {value}")
        return int(value) & 0xFFFF_FFFF_FFFF_FFFF

    return dump


_KINDS = {
    "u32": _Kind(_VARINT, 0, _dump_integer(32, False)),
    "u64": _Kind(_VARINT, 0, _dump_integer(64, False)),
    "i32": _Kind(_VARINT, 0, _dump_integer(32, True)),
    "i64": _Kind(_VARINT, 0, _dump_integer(64, True)),
    "bool": _Kind(_VARINT, False, int),
    "string": _Kind(_BYTES, "", str.encode),
    "bytes": _Kind(_BYTES, b"", bytes),
    "double": _Kind(_FIXED64, 0.0, lambda v: struct.pack("<d", v)),
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
    by_name: dict[str, FieldTable]
    #: For the compiled decoder.
    compiled: _metadata.Table


def _parsed_tables(*texts: str) -> dict[str, _Table]:
    found: dict[str, _Table] = {}
    for text in texts:
        for name, body in re.findall(r"^(\w+)\n((?: .*\n)*)", text, re.MULTILINE):
            parts = [p.strip() for p in re.split(r"[;\n]", body)]
            fields = [_parsed_field(p) for p in parts if p]
            numbers, names = {f.number: f for f in fields}, {f.name: f for f in fields}
            found[name] = _Table(numbers, names, _metadata.Table(name))
    for table in found.values():
        for f in table.fields.values():
            inner = None if f.kind in _KINDS else found[f.kind].compiled
            table.compiled.add(f.number, f.name, f.kind, f.form, f.key, inner)
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
        The source of the bytes, for an error: ``"manifest _versions/3.manifest"``.
    error : type, optional
        The class of the error.

    Raises
    ------
    CorruptTableError
        If the bytes are no such message: an end within a field, a wire type that the field does not have, a field
        number or a nesting beyond protobuf's limits, a number too large for its kind, a text that is no UTF-8.
    """
    try:
        return _metadata.decode(_TABLES[name].compiled, data)
    except _metadata.DamagedError as e:
        raise error(
            f"{where} is damaged: its {name} can't be decoded, {e}. Restore the file from a copy.", where=where
        ) from None


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
        Values by the names of fields. Values that are absent, None or empty, and zeros that are not optional, are left
        out. A message may be bytes: it is encoded already.

    Raises
    ------
    InvalidArgumentError
        For a name that is no field of the message, or a number that its kind does not hold.
    """
    by_name = _TABLES[name].by_name
    present = []
    # only what is there: messages of alternatives have many fields
    for key, value in message.items():
        field = by_name.get(key)
        if field is None:
            if key != UNKNOWN:
                raise InvalidArgumentError(f"message {name} has no field {key!r}")
        elif value is not None:
            present.append((field.number, field, value))
    present.sort(key=_NUMBER)
    out = bytearray()
    for _, field, value in present:
        _write_field(out, field, value)
    return bytes(out)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, number: int, data: bytes | memoryview) -> None:
    _write_varint(out, number << 3 | _BYTES)
    _write_varint(out, len(data))
    out += data


def _write_value(out: bytearray, number: int, kind: str, value: Any) -> None:
    expected = _KINDS.get(kind)
    if expected is None:
        is_encoded = isinstance(value, (bytes, memoryview))
        _write_bytes(out, number, value if is_encoded else encode(kind, value))
        return
    stored = expected.dump(value)
    if expected.wire == _BYTES:
        _write_bytes(out, number, stored)
        return
    _write_varint(out, number << 3 | expected.wire)
    if expected.wire == _VARINT:
        _write_varint(out, stored)
    else:
        out += stored


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
