"""How a table's files are written: what the caller requires, else what the table's properties specify."""

from __future__ import annotations

from msgspec.structs import replace

from delta_core.engines.writer_properties import WriterProperties
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.properties import read_property

__all__ = ["TARGET_FILE_SIZE", "target_file_size", "writer_properties"]

#: The size of a file if neither the caller nor the table names one.
TARGET_FILE_SIZE = 128 << 20


def writer_properties(table: TableState, given: WriterProperties | None = None) -> WriterProperties:
    """Return the caller's properties, with codec and page version filled in from the table's."""
    found = given or WriterProperties()
    codec = found.compression or read_property(table.configuration, "delta.parquet.compression.codec")
    version = found.data_page_version
    if version is None:
        format_version = read_property(table.configuration, "delta.parquet.format.version")
        version = "2.0" if format_version.startswith("2") else "1.0"
    return replace(found, compression=codec.upper(), data_page_version=version)


def target_file_size(table: TableState, given: int | None = None) -> int:
    """Return the bytes that a file should have."""
    return given or read_property(table.configuration, "delta.targetFileSize") or TARGET_FILE_SIZE
