"""Bytes of manifests, made field by field."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from delta_plugins.lance.wire import encode


def field(id: int, name: str, kind: str = "int64", parent: int = -1, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "parent_id": parent, "logical_type": kind, "nullable": True, **more}


def data_file(path: str, fields: Sequence[int], **more: Any) -> dict[str, Any]:
    start = {"path": path, "fields": fields, "column_indices": range(len(fields)), "file_major_version": 2}
    return {**start, "file_minor_version": 2, "file_size_bytes": 100, **more}


def fragment(id: int, rows: int = 10, **more: Any) -> dict[str, Any]:
    return {"id": id, "files": [data_file(f"{id}.lance", [0])], "physical_rows": rows, **more}


def manifest(version: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "fields": [field(0, "a")],
        "fragments": [fragment(0), fragment(1)],
        "version": version,
        "timestamp": {"seconds": 1_700_000_000, "nanos": 5000},
        "writer_version": {"library": "lance", "version": "14.0.2"},
        "data_format": {"file_format": "lance", "version": "2.2"},
        "max_fragment_id": 1,
        **more,
    }


def container(message: dict[str, Any] | bytes, *sections: bytes) -> bytes:
    """Return the file of a manifest, with sections before the message."""
    parts = [*sections, message if isinstance(message, bytes) else encode("Manifest", message)]
    framed = [len(p).to_bytes(4, "little") + p for p in parts]
    position = sum(map(len, framed[:-1]))
    return b"".join(framed) + struct.pack("<QHH4s", position, 0, 2, b"LANC")
