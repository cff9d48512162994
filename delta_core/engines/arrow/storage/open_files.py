"""What is read of files that are open, and what distinguishes them."""

from __future__ import annotations

import os
from typing import Any

from delta_core.engines.records import FileIdentity

__all__ = ["identity_of", "read_fully"]


def identity_of(found: os.stat_result) -> FileIdentity:
    """Return what distinguishes a file from any that takes its name, or its number once it is gone."""
    return FileIdentity(found.st_size, f"{found.st_dev}:{found.st_ino}:{found.st_mtime_ns}")


def read_fully(file: Any, length: int | None) -> bytes:
    """Read so many bytes of an unbuffered file, fewer only at its end."""
    if length is None:
        data: bytes = file.readall()
        return data
    parts = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts) if len(parts) != 1 else parts[0]
