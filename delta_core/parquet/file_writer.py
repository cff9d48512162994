"""Row groups to data files: one file with its encoder, and the open files of a write."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.engines.records import FileWrite, WrittenFile
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import DeltaError, InternalError
from delta_core.kernels.memory import POOL_OF_BATCHES
from delta_core.kernels.string_codes import dictionary_of, own_dictionaries
from delta_core.parquet.added_statistics import ChunkStatistics, text_statistics, with_statistics
from delta_core.parquet.footer import footer_bytes, parse_footer
from delta_core.parquet.gathered_rows import Slot
from delta_core.parquet.options import columns_to_code, parquet_options, without_statistics
from delta_core.parquet.statistics import Leaf, Measured, footer_statistics, leaves_of
from delta_core.parquet.written_files import Failing, WrittenFiles
from delta_core.runtime.processes import cached_property
from delta_core.schema.fields import Path
from delta_core.storage.local_files import WriteBack

__all__ = ["FileOptions", "FileWriter", "OpenFiles", "codes_strings"]

#: Strings are encoded here in files whose first row group has this many rows: elsewhere the time does not matter.
CODED_ROWS = 1 << 14
#: The most bytes of distinct strings, plus 4 for each: PyArrow stops using a dictionary of a megabyte.
DICTIONARY_BYTES = (1 << 20) - 1
#: The most files of a write that are open; the one unused for the longest time is closed for another.
OPEN_FILES = 64


def codes_strings(num_rows: int) -> bool:
    """Whether strings of a file are encoded here if its first row group has this many rows."""
    return num_rows >= CODED_ROWS


class FileOptions:
    """PyArrow's options of the files of a write, the leaves to measure, and the columns to encode here."""

    def __init__(self, storage: Storage, write: FileWrite) -> None:
        self.options: dict[str, Any]
        self.leaves: tuple[Leaf, ...]
        self.options, self.leaves = _layout_of(write)
        self._is_local = storage.local_path("") is not None
        self._write = write

    @cached_property
    def to_code(self) -> dict[str, int]:
        """The columns whose strings may be encoded here, and their numbers; footers are changed on disks only."""
        return columns_to_code(self._write.schema, self._write.properties, self.options) if self._is_local else {}


class FileWriter:
    """A data file that is being written, one row group at a time.

    Parameters
    ----------
    storage, write, options, files
        See `OpenFiles`.
    partition : int
        The partition of its rows.
    worker : int
        The worker that begins it.
    """

    def __init__(
        self, storage: Storage, write: FileWrite, options: FileOptions, files: WrittenFiles, partition: int, worker: int
    ) -> None:
        self.partition = partition
        self.worker = worker
        self._options = options
        self._files = files
        self.path: str = write.name(partition)
        self._local = storage.local_path(self.path)
        self._measured = Measured(options.leaves)
        self._write_back = WriteBack()
        self._num_groups = self._num_rows = 0
        #: Columns that are passed to PyArrow as dictionaries, in each row group of the file.
        self._coded: tuple[str, ...] = ()
        self._statistics: dict[tuple[int, int], ChunkStatistics] = {}
        self._schema = write.schema
        self._writer: Any = None
        self.place: tuple[int, int] = files.begin(self, worker)
        with Failing(self.path):
            self._sink = storage.create(self.path)

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return int(self._sink.tell())

    def append(self, table: pa.Table) -> None:
        """Write a row group."""
        with Failing(self.path):
            coded = self._encode(table)
            self._measured.add(self._num_groups, table, {name: values for name, (_, values) in coded.items()})
            if self._writer is None:
                self._begin(tuple(coded))
            if coded:
                columns = [coded[n][0] if n in coded else table.column(n) for n in self._schema.names]
                table = pa.Table.from_arrays(columns, schema=self._schema)
            self._writer.write_table(table, row_group_size=table.num_rows)
            if self._local is not None:
                self._write_back.reached(self._sink.fileno(), self.size)
        self._num_groups += 1
        self._num_rows += table.num_rows

    def _begin(self, coded: tuple[str, ...]) -> None:
        # not `pyarrow.parquet`, which loads every file system that PyArrow has
        from pyarrow._parquet import ParquetWriter

        options = self._options.options
        if coded:
            fields = [f.with_type(pa.dictionary(pa.int32(), f.type)) if f.name in coded else f for f in self._schema]
            options = without_statistics(self._schema, coded, options)
            self._schema = pa.schema(fields)
        self._coded = coded
        self._writer = ParquetWriter(
            self._sink, self._schema, writer_engine_version="V2", memory_pool=POOL_OF_BATCHES, **options
        )

    def _encode(self, table: pa.Table) -> dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]]:
        """Return columns as dictionaries, each beside its values; the first row group decides which columns.

        PyArrow takes three times as long to find the distinct values, and as long again to find their bounds.
        """
        found = {}
        is_first = self._writer is None
        names = self._options.to_code if is_first and codes_strings(table.num_rows) else self._coded
        for name in names:
            column = table.column(name)
            codes = dictionary_of(column, DICTIONARY_BYTES)
            if codes is not None:
                values = pa.chunked_array([codes.chunk(0).dictionary])
            elif is_first:
                continue
            else:
                codes, values = own_dictionaries(column), column
            found[name] = codes, values
            number = self._options.to_code[name]
            self._statistics[self._num_groups, number] = text_statistics(column.null_count, values)
        return found

    def close(self) -> WrittenFile:
        """Write the footer; a large file on a disk is synced on another thread."""
        with Failing(self.path):
            self._writer.close()
            metadata = self._writer.metadata
            size = self.size
            self._sink.close()
            if self._statistics and self._local is not None:
                metadata, size = _add_statistics(self._local, self._statistics)
            modified_ms = time.time_ns() // 1_000_000
            if self._local is not None:
                modified_ms = os.stat(self._local).st_mtime_ns // 1_000_000
                self._files.begin_sync(self.path, size)
        found = footer_statistics(metadata, self._options.leaves, self._measured)
        return WrittenFile(self.path, self.partition, size, modified_ms, self._num_rows, found)

    def abandon(self) -> None:
        """Let go of the file; its end is not written."""
        with suppress(AttributeError, OSError, pa.ArrowException, DeltaError):
            self._sink.close()


class OpenFiles:
    """The open files of a write, by slot. Its methods may be called by several threads, for a file by one at a time.

    Parameters
    ----------
    storage : Storage
        The table's storage.
    write : FileWrite
        The names and the target size of the files.
    options : FileOptions
        Options of each file.
    files : WrittenFiles
        Begun and closed files are added to it.
    """

    def __init__(self, storage: Storage, write: FileWrite, options: FileOptions, files: WrittenFiles) -> None:
        self._storage = storage
        self._write = write
        self._options = options
        self._files = files
        self._lock = threading.Lock()
        #: Files that no worker writes to, the one that was used longest ago first, and the same by slot.
        self._idle: OrderedDict[FileWriter, Slot] = OrderedDict()
        self._idle_of: dict[Slot, list[FileWriter]] = {}
        self._num_open = 0

    def has_any(self, slot: Slot) -> bool:
        """Whether a slot has an open file that no worker writes to."""
        return bool(self._idle_of.get(slot))

    def append(self, slot: Slot, worker: int, table: pa.Table) -> int:
        """Write a row group to a file of a slot, close the file if it is full, and return the bytes written."""
        file = self._open(slot, worker)
        before = file.size
        file.append(table)
        added = file.size - before
        if file.size + added / 2 >= self._write.target_file_size:
            self._close(file)
            return added
        with self._lock:
            self._idle_of.setdefault(slot, []).append(file)
            self._idle[file] = slot
        return added

    def close(self, slot: Slot) -> None:
        """Close the files of a slot."""
        with self._lock:
            files = self._idle_of.pop(slot, [])
            for file in files:
                del self._idle[file]
        for file in files:
            self._close(file)

    def _open(self, slot: Slot, worker: int) -> FileWriter:
        """Return an open file of the slot that no worker writes to, the worker's own if possible; else a new one."""
        with self._lock:
            idle = self._idle_of.get(slot, [])
            file = next((f for f in idle if f.worker == worker), idle[-1] if idle else None)
            oldest = None
            if file is not None:
                idle.remove(file)
                del self._idle[file]
                return file
            if self._num_open >= OPEN_FILES and self._idle:
                oldest, its_slot = self._idle.popitem(last=False)
                self._idle_of[its_slot].remove(oldest)
            self._num_open += 1
        if oldest is not None:
            self._close(oldest)
        return FileWriter(self._storage, self._write, self._options, self._files, slot.partition, worker)

    def _close(self, file: FileWriter) -> None:
        found = file.close()
        with self._lock:
            self._num_open -= 1
        self._files.add(file.place, found)


def _add_statistics(path: str, added: Mapping[tuple[int, int], ChunkStatistics]) -> tuple[Any, int]:
    """Replace the footer of a file by one with further statistics; return it, parsed, and the size of the file."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        old = footer_bytes(handle)
        if old is None:
            raise InternalError(f"{path} has no footer.")
        footer = with_statistics(old, added)
        end = footer + len(footer).to_bytes(4, "little") + b"PAR1"
        start = os.fstat(handle).st_size - len(old) - 8
        os.lseek(handle, start, os.SEEK_SET)
        written = 0
        while written < len(end):
            written += os.write(handle, end[written:])
        if len(footer) < len(old):  # PyArrow wrote statistics too, which were longer
            os.ftruncate(handle, start + len(end))
        return parse_footer(footer), start + len(end)
    finally:
        os.close(handle)


class _Layout(NamedTuple):
    """Schema and options that result from the columns, the properties and the statistics of a write."""

    schema: pa.Schema
    properties: WriterProperties
    statistics: tuple[Path, ...]
    options: dict[str, Any]
    leaves: tuple[Leaf, ...]


#: That of the last write: one small write often follows another.
_last_layout: _Layout | None = None


def _layout_of(write: FileWrite) -> tuple[dict[str, Any], tuple[Leaf, ...]]:
    """Return PyArrow's options and the leaves to measure."""
    global _last_layout
    schema, properties, statistics = write.schema, write.properties, write.statistics
    found = _last_layout
    # a schema is not compared: that would take as long
    if found is None or found.schema is not schema or (found.properties, found.statistics) != (properties, statistics):
        options, leaves = parquet_options(schema, properties, statistics), leaves_of(schema, statistics)
        _last_layout = found = _Layout(schema, properties, statistics, options, leaves)
    return found.options, found.leaves
