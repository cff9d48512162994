"""Reads the footers of Parquet files, those that PyArrow survives."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from delta_core.kernels.footer_check import check_footer

__all__ = ["read_footer"]

#: Nearly every footer fits into the first read.
_TAIL_BYTES = 64 << 10
_MAGIC = b"PAR1"
_END = 8


def read_footer(source: str | pa.NativeFile) -> Any:
    """Return a file's ``pyarrow.parquet.FileMetaData``; whatever it specifies may be requested.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the footer is damaged.
    """
    import pyarrow.parquet as pq

    tail = _read_tail(source)
    size = int.from_bytes(tail[-_END:-4], "little")
    if len(tail) < size + _END or tail[-4:] != _MAGIC:
        # torn or encrypted: PyArrow reports what it is
        return pq.read_metadata(source if isinstance(source, str) else pa.BufferReader(tail))
    check_footer(tail[-size - _END : -_END])
    return pq.read_metadata(pa.BufferReader(_MAGIC + tail[-size - _END :]))


def _read_tail(source: str | pa.NativeFile) -> bytes:
    """Return the last bytes of a file, the footer among them, as far as there are so many."""
    if isinstance(source, str):
        file = os.open(source, os.O_RDONLY)
        try:
            return _tail(os.fstat(file).st_size, lambda size, at: os.pread(file, size, at))
        finally:
            os.close(file)
    return _tail(source.size(), source.read_at)


def _tail(size: int, read: Any) -> bytes:
    first = min(size, _TAIL_BYTES)
    tail: bytes = read(first, size - first)
    wanted = int.from_bytes(tail[-_END:-4], "little") + _END
    if tail[-4:] == _MAGIC and first < wanted <= size:
        tail = read(wanted, size - wanted)
    return tail
