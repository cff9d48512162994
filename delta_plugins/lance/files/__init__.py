"""Data files of Lance, of versions 0.1, 2.0, 2.1 and 2.2."""

from __future__ import annotations

from delta_core.api import lazy_imports
from delta_plugins.lance.files.container import ByteSource
from delta_plugins.lance.files.data_file import DataFile, column_map, open_data_file, open_described_file
from delta_plugins.lance.files.leaves import LeafTest, is_leaf, layout_to_test
from delta_plugins.lance.files.rows import Rows
from delta_plugins.lance.files.small_files import MOST_SMALL_BYTES, SmallFilesReader

__all__ = [
    "MOST_SMALL_BYTES",
    "ByteSource",
    "DataFile",
    "LeafTest",
    "Rows",
    "SmallFilesReader",
    "column_map",
    "is_leaf",
    "layout_to_test",
    "open_data_file",
    "open_described_file",
]

# loaded with the first file that is written
with lazy_imports(__name__):
    from delta_plugins.lance.files.write_file import (
        PAGE_BYTES as PAGE_BYTES,
        ByteSink as ByteSink,
        DataFileWriter as DataFileWriter,
        WrittenFile as WrittenFile,
    )
