"""Values to Parquet's variant bytes in plain Python, sharing nothing with the compiled kernel."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa


def names_of(value: Any) -> set[str]:
    """Return the names of all fields of a value, at any depth."""
    if isinstance(value, dict):
        return set(value).union(*(names_of(v) for v in value.values()))
    return set().union(*(names_of(v) for v in value)) if isinstance(value, list) else set()


def encode_metadata(names: list[str], width: int = 1) -> bytes:
    """Return the dictionary of field names; ``width``: bytes of an offset. Protocol: Variant Data Type."""
    raw = [n.encode() for n in names]
    ends = [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    numbers = [len(raw), *ends]
    return bytes([1 | (width - 1) << 6]) + b"".join(n.to_bytes(width, "little") for n in numbers) + b"".join(raw)


def encode_value(value: Any, names: list[str], width: int = 2) -> bytes:
    """Encode None, bool, int, float, str, bytes, list or dict; ``width`` is that of offsets and field ids."""
    if value is None or isinstance(value, bool):
        return bytes([{None: 0, True: 1, False: 2}[value] << 2])
    if isinstance(value, int):
        for header, code in ((3, "<b"), (4, "<h"), (5, "<i"), (6, "<q")):
            if -(2 ** (8 * struct.calcsize(code) - 1)) <= value < 2 ** (8 * struct.calcsize(code) - 1):
                return bytes([header << 2]) + struct.pack(code, value)
    if isinstance(value, float):
        return bytes([7 << 2]) + struct.pack("<d", value)
    if isinstance(value, (str, bytes)):
        raw = value.encode() if isinstance(value, str) else value
        if isinstance(value, str) and len(raw) < 64:
            return bytes([len(raw) << 2 | 1]) + raw
        return bytes([(16 if isinstance(value, str) else 15) << 2]) + struct.pack("<I", len(raw)) + raw
    items = sorted(value.items(), key=lambda kv: kv[0].encode()) if isinstance(value, dict) else value
    parts = [encode_value(v[1] if isinstance(value, dict) else v, names, width) for v in items]
    large = len(parts) > 255
    ends = [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]
    tail = b"".join(e.to_bytes(width, "little") for e in ends) + b"".join(parts)
    count = len(parts).to_bytes(4 if large else 1, "little")
    if isinstance(value, dict):
        ids = b"".join(names.index(k).to_bytes(width, "little") for k, _ in items)
        return bytes([(width - 1 | width - 1 << 2 | large << 4) << 2 | 2]) + count + ids + tail
    return bytes([(width - 1 | large << 2) << 2 | 3]) + count + tail


def variants(values: list[Any], width: int = 2) -> pa.StructArray:
    """Return values as a variant array."""
    metadata, data = [], []
    for value in values:
        names = sorted(names_of(value))
        metadata.append(encode_metadata(names, width))
        data.append(encode_value(value, names, width))
    fields = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    return pa.StructArray.from_arrays([pa.array(metadata, pa.binary()), pa.array(data, pa.binary())], fields=fields)
