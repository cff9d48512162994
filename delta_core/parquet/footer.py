"""Footers of single Parquet files, each checked before PyArrow parses it: some damage would end the process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.parquet import file_parts, page_parts
from delta_core.storage.open_files import open_regular, pread

if TYPE_CHECKING:
    from delta_core.parquet.reader import ParquetFile

__all__ = ["footer_bytes", "open_footer", "parse_footer", "read_footer"]

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
    tail = _read_tail(source)
    footer = _cut(tail)
    if footer is None:
        # torn or encrypted: PyArrow reports what it is
        return file_parts.ParquetFile(source if isinstance(source, str) else pa.BufferReader(tail)).metadata
    return parse_footer(footer)


def parse_footer(footer: bytes) -> Any:
    """Return the ``pyarrow.parquet.FileMetaData`` of a footer's bytes, which have neither its length nor the magic."""
    return open_footer(footer).metadata


def open_footer(footer: bytes) -> ParquetFile:
    """Return a file without row groups to read, of a footer's bytes as `parse_footer` takes them."""
    page_parts.check_footer(footer)
    tail = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    return file_parts.ParquetFile(pa.BufferReader(tail))


def footer_bytes(source: int | pa.NativeFile) -> bytes | None:
    """Return the bytes of a footer, without its length and the magic; None for a file that is torn or encrypted.

    Parameters
    ----------
    source : int or pyarrow.NativeFile
        The descriptor of a file on a local disk, or an open file.
    """
    return _cut(_read_tail(source))


def _cut(tail: bytes) -> bytes | None:
    size = int.from_bytes(tail[-_END:-4], "little")
    return None if len(tail) < size + _END or tail[-4:] != _MAGIC else tail[-size - _END : -_END]


def _read_tail(source: str | int | pa.NativeFile) -> bytes:
    """Return the last bytes of a file, the footer included; fewer if the file is shorter."""
    if isinstance(source, str):
        file = open_regular(source)
        try:
            return _read_tail(file)
        finally:
            os.close(file)
    if isinstance(source, int):
        return _tail(os.fstat(source).st_size, lambda size, at: pread(source, size, at))
    return _tail(source.size(), source.read_at)


def _tail(size: int, read: Any) -> bytes:
    first = min(size, _TAIL_BYTES)
    tail: bytes = read(first, size - first)
    wanted = int.from_bytes(tail[-_END:-4], "little") + _END
    if tail[-4:] == _MAGIC and first < wanted <= size:
        tail = read(wanted, size - wanted)
    return tail
