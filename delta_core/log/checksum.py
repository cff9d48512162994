"""Version checksum files, ``<version>.crc``: the cheapest source of protocol and metadata, never a needed one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta_core.engine import RangeRequest, Storage
from delta_core.log.names import LOG_DIRECTORY
from delta_core.plans import LogFile

__all__ = ["read_checksum"]


def read_checksum(storage: Storage, file: LogFile) -> Mapping[str, Any] | None:
    """Return the checksum's object, None where the file is gone, torn or lacks what every checksum has."""
    try:
        (data,) = storage.read([RangeRequest(f"{LOG_DIRECTORY}/{file.name}")])
        value = json.loads(bytes(data))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    whole = isinstance(value.get("protocol"), dict) and isinstance(value.get("metadata"), dict)
    return value if whole else None
