"""Data files of Lance, of versions 0.1, 2.0, 2.1 and 2.2."""

from __future__ import annotations

from delta_plugins.lance.files.container import ByteSource
from delta_plugins.lance.files.data_file import DataFile, column_map, open_data_file, open_described_file
from delta_plugins.lance.files.leaves import LeafTest, layout_to_test
from delta_plugins.lance.files.rows import Rows
from delta_plugins.lance.files.small_files import MOST_SMALL_BYTES, SmallFilesReader
from delta_plugins.lance.files.write_file import PAGE_BYTES, ByteSink, DataFileWriter, WrittenFile

__all__ = [
    "MOST_SMALL_BYTES",
    "PAGE_BYTES",
    "ByteSink",
    "ByteSource",
    "DataFile",
    "DataFileWriter",
    "LeafTest",
    "Rows",
    "SmallFilesReader",
    "WrittenFile",
    "column_map",
    "layout_to_test",
    "open_data_file",
    "open_described_file",
]
