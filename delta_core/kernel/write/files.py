"""Rows to files and to what the log specifies for them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.engine import Engine
from delta_core.engines.interface import FootersRead
from delta_core.engines.records import FileWrite, WrittenFile
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import ColumnNotFoundError, EngineError, InvalidArgumentError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.plugins.encodings import encoded_names
from delta_core.kernel.protocol.actions import ADDED_FILE, CHANGE_FILE
from delta_core.kernel.protocol.properties import read_property
from delta_core.kernel.write.apply import PrepareRows
from delta_core.kernel.write.encoded_bounds import bounded_types, with_encoded_bounds
from delta_core.kernel.write.layout import file_columns
from delta_core.kernel.write.names import CHANGE_DIRECTORY, encode_path, file_name, partition_directory, random_prefix
from delta_core.kernel.write.partition_text import format_partition_values
from delta_core.kernel.write.partitions import Key
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernel.write.properties import target_file_size, writer_properties
from delta_core.kernel.write.source import open_source
from delta_core.kernel.write.stats import statistics_json, statistics_texts
from delta_core.kernels.arrow_buffers import bool_array, empty_table, number_array, strings_of
from delta_core.schema.fields import Path, find

__all__ = [
    "FooterStatistics",
    "Written",
    "delete_written",
    "describe_files",
    "join_written",
    "write_change_files",
    "write_files",
]

_log = logging.getLogger(__name__)

#: Files that are described at once: an array of strings holds 2 GB.
_RUN = 4096


class Written(Struct, frozen=True):
    """Files that are whole on their store and not yet part of the table.

    Parameters
    ----------
    files : pyarrow.Table
        For the log: columns of `actions.ADDED_FILE` or `actions.CHANGE_FILE`.
    reported : Mapping of Path to (min, max)
        The bounds of values that ``report_bounds`` generated.
    paths : tuple of str
        As storage takes them.
    """

    engine: Engine
    files: pa.Table
    reported: Mapping[Path, tuple[Any, Any]]
    num_rows: int
    num_bytes: int
    paths: tuple[str, ...]

    @property
    def adds(self) -> pa.Table:
        """The files, as a transaction stages them."""
        return self.files

    def cleanup(self) -> None:
        """Delete the files: for a write that is not going to be committed. Logs it if the store fails."""
        delete_written(self.engine, self.paths)


def join_written(engine: Engine, parts: Sequence[Written]) -> Written:
    """Return the files of several writes as those of one.

    Parameters
    ----------
    engine : Engine
        The writer of the files.
    parts : sequence of Written
        In order.
    """
    reported: dict[Path, tuple[Any, Any]] = {}
    for part in parts:
        for path, (low, high) in part.reported.items():
            least, greatest = reported.get(path, (low, high))
            reported[path] = min(least, low), max(greatest, high)
    files = pa.concat_tables([p.files for p in parts]) if parts else empty_table(ADDED_FILE)
    paths = tuple(path for p in parts for path in p.paths)
    return Written(engine, files, reported, sum(p.num_rows for p in parts), sum(p.num_bytes for p in parts), paths)


def write_files(
    engine: Engine,
    plan: WritePlan,
    data: Any,
    *,
    properties: WriterProperties | None = None,
    target_size: int | None = None,
    data_change: bool = True,
    origin: Origin = "new",
    task_index: int = 0,
    num_tasks: int = 1,
    in_order: bool = False,
    beside_reads: bool = False,
    syncs: list[Callable[[], None]] | None = None,
) -> Written:
    """Write rows as data files of a table; no rows make no file.

    Parameters
    ----------
    engine : Engine
        The engine that writes the files.
    plan : WritePlan
        The plan of the table's writes.
    data : object
        The source, as `source.open_source` takes it.
    properties : WriterProperties, optional
        Goes before the table's properties.
    target_size : int, optional
        Bytes of a file; else ``delta.targetFileSize``.
    data_change : bool
        False for files that hold rows which the table has already.
    origin : str
        Where the rows come from. Files that change no data hold ``moved`` rows only.
    task_index, num_tasks : int
        Which of how many writes of one transaction this is, for expressions over `TaskIndex` and `TaskCount`.
    in_order : bool
        Whether files of a partition hold consecutive rows, each full before the next one begins: see `FileWrite`.
    beside_reads : bool
        Whether the source is itself read on threads; it is if rows of the table are written again.
    syncs : list of function(), optional
        Takes what waits until the files are synced, such as `Transaction.syncs`; they are when this returns unless
        given.

    Raises
    ------
    SchemaMismatchError, ConstraintViolationError, ExpressionError
        The rows don't fit the table. Every file that was begun is deleted.
    InvalidArgumentError
        For a ``task_index`` that is not below ``num_tasks``.
    """
    if not 0 <= task_index < num_tasks:
        raise InvalidArgumentError(
            f"Found task_index={task_index} of num_tasks={num_tasks}, expected 0 to {num_tasks - 1}."
        )
    source = open_source(data)
    own: Origin = origin if data_change else "moved"
    prepare = PrepareRows(plan, source.schema, engine.evaluator, origin=own, task=(task_index, num_tasks))
    chosen = _physical_properties(plan, writer_properties(plan.table, properties))
    size = target_file_size(plan.table, target_size)
    # rows of the table are read while they are written; compaction takes the threads, for files that are many and small
    beside_reads = beside_reads or (origin != "new" and data_change)
    prefix = chosen.statistics_truncate_length or read_property(
        plan.table.configuration, "delta.dataSkippingStringPrefixLength"
    )
    begun: list[str] = []
    try:
        found = _write(
            engine, plan, prepare, source, chosen, size, plan.statistics, "", begun, in_order, beside_reads, syncs
        )
        types = {**_leaf_types(prepare.schema, plan), **bounded_types(plan)}
        columns = with_encoded_bounds(engine, plan, found)
        stats = [statistics_json(f.num_rows, c, types, prefix) for f, c in zip(found, columns, strict=True)]
        keys = [prepare.partitions.keys[f.partition] for f in found]
        table = _added(found, [n for n, _ in prepare.partitions.columns], keys, stats, data_change)
        return _done(engine, table, prepare, found)
    except BaseException:
        delete_written(engine, begun)
        raise


def write_change_files(
    engine: Engine,
    plan: WritePlan,
    data: Any,
    *,
    properties: WriterProperties | None = None,
    target_size: int | None = None,
    syncs: list[Callable[[], None]] | None = None,
) -> Written:
    """Write change rows: whole rows of the table and the column of its `ChangeCapture`. Protocol: Add CDC File.

    Raises
    ------
    InvalidArgumentError
        If no active feature of the table keeps change files.
    """
    if plan.capture is None:
        raise InvalidArgumentError("The table has no feature active that keeps change files.")
    source = open_source(data)
    prepare = PrepareRows(plan, source.schema, engine.evaluator, origin="changes")
    chosen = _physical_properties(plan, writer_properties(plan.table, properties))
    size = target_file_size(plan.table, target_size)
    begun: list[str] = []
    try:
        found = _write(
            engine, plan, prepare, source, chosen, size, (), CHANGE_DIRECTORY, begun, beside_reads=True, syncs=syncs
        )
        keys = [prepare.partitions.keys[f.partition] for f in found]
        names = [n for n, _ in prepare.partitions.columns]
        table = _added(found, names, keys, [None] * len(found), False)
        return _done(engine, table.select(CHANGE_FILE.names), prepare, found)
    except BaseException:
        delete_written(engine, begun)
        raise


def describe_files(
    engine: Engine,
    plan: WritePlan,
    paths: Sequence[str],
    partitions: Sequence[Mapping[str, Any]] = (),
    data_change: bool = True,
) -> pa.Table:
    """Return what a transaction stages of files that were written elsewhere, with statistics from their footers.

    Parameters
    ----------
    engine : Engine
        The engine that reads the footers.
    plan : WritePlan
        The plan of the table's writes.
    paths : sequence of str
        Relative to the table's root, or absolute; not encoded.
    partitions : sequence of Mapping, optional
        Each file's partition values by logical name, typed; one a file if the table is partitioned.
    data_change : bool
        False for files that hold rows which the table has already.
    """
    schema = pa.schema([c.field for c in file_columns(plan)])
    found = engine.data.describe(paths, schema, plan.statistics)
    types, prefix = _leaf_types(schema, plan), _prefix_length(plan)
    stats = [statistics_json(f.num_rows, f.statistics, types, prefix) for f in found]
    names, keys = _given_partitions(plan, partitions, len(paths))
    return _added(found, names, keys, stats, data_change)


class FooterStatistics(Struct, frozen=True):
    """The statistics that a table's files are to have, which are read from footers; can be pickled.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the files.
    leaves : tuple of Path
        The columns that have bounds and numbers of nulls.
    types : Mapping
        Their types; null for one whose bounds are left out.
    prefix : int
        Characters of bounds of strings.
    """

    schema: pa.Schema
    leaves: tuple[Path, ...]
    types: dict[Path, pa.DataType]
    prefix: int

    @classmethod
    def of(cls, plan: WritePlan, *, statistics: bool) -> FooterStatistics:
        """Return what a plan of writes requires; without ``statistics`` the number of rows alone."""
        schema = pa.schema([c.field for c in file_columns(plan)])
        leaves = tuple(plan.statistics) if statistics else ()
        return cls(schema, leaves, _leaf_types(schema, plan) if leaves else {}, _prefix_length(plan))

    def texts(self, footers: FootersRead, report: Callable[[int], None] | None = None) -> pa.ChunkedArray:
        """Return the statistics of files, as the log has them, in their order; files may have further columns.

        Parameters
        ----------
        footers : FootersRead
            Of the files.
        report : function(int), optional
            Called with numbers of files whose footers were read.
        """
        texts, numbers = [], []
        for found in footers.statistics(self.schema, self.leaves):
            texts.append(statistics_texts(found, self.types, self.prefix, bool(self.leaves)))
            numbers.append(found.files)
            if report is not None:
                report(len(found.files))
        return pa.chunked_array(texts, pa.string()).take(number_array(np.argsort(np.concatenate(numbers))))


def _prefix_length(plan: WritePlan) -> int:
    length: int = read_property(plan.table.configuration, "delta.dataSkippingStringPrefixLength")
    return length


# --- writing -------------------------------------------------------------------------------


def _write(
    engine: Engine,
    plan: WritePlan,
    prepare: PrepareRows,
    source: pa.Table | pa.RecordBatchReader,
    properties: WriterProperties,
    target: int,
    statistics: tuple[Path, ...],
    directory: str,
    begun: list[str],
    in_order: bool = False,
    beside_reads: bool = False,
    syncs: list[Callable[[], None]] | None = None,
) -> list[WrittenFile]:
    numbers = itertools.count()
    names = [n for n, _ in prepare.partitions.columns]
    length = read_property(plan.table.configuration, "delta.randomPrefixLength")
    kind = "cdc" if directory else "part"
    top = "/".join(filter(None, (directory, plan.requirements.folder)))

    def name(partition: int) -> str:
        own = file_name(next(numbers), properties.compression or "", kind)
        if plan.requirements.random_prefix:
            place = random_prefix(length)
        else:
            place = partition_directory(names, prepare.partitions.keys[partition])
        path = "/".join(p for p in (top, place, own) if p)
        begun.append(path)
        return path

    write = FileWrite(prepare.schema, name, statistics, properties, target, bool(names), in_order, beside_reads, syncs)
    start = perf_counter()
    found = engine.data.write(write, source, prepare)
    if _log.isEnabledFor(logging.DEBUG):
        rows, size = sum(f.num_rows for f in found), sum(f.size for f in found)
        took = (perf_counter() - start) * 1000
        _log.debug(
            "Wrote %d files: %d rows, %d bytes, below %s (%.1f ms)", len(found), rows, size, _shown(engine), took
        )
    return found


def _shown(engine: Engine) -> str:
    return shown_uri(engine.storage.root)


def _physical_properties(plan: WritePlan, properties: WriterProperties) -> WriterProperties:
    """Return properties with columns under their physical names."""
    if not properties.column_properties:
        return properties
    table = plan.table
    columns = {}
    for name, given in properties.column_properties.items():
        whole = table.schema.get(name)
        try:
            path = (whole.name,) if whole is not None else find(table.schema, tuple(name.split(".")))[0]
            columns[".".join(table.column_map.physical_path(table.schema, path))] = given
        except ColumnNotFoundError:  # a path within a list or map, as Parquet spells it
            columns[name] = given
    return replace(properties, column_properties=columns)


def _leaf_types(schema: pa.Schema, plan: WritePlan) -> dict[Path, pa.DataType]:
    """Return the types of the columns that have statistics; null for encoded ones, whose files have other bounds."""
    types = dict(zip(schema.names, schema.types, strict=True))
    types |= dict.fromkeys(encoded_names(plan.table), pa.null())
    found = {}
    for path in plan.statistics:
        t = types.get(path[0], pa.null())
        for part in path[1:]:
            t = t.field(part).type
        found[path] = t
    return found


# --- what the log specifies ---------------------------------------------------------------------


def _added(
    files: Sequence[WrittenFile],
    names: Sequence[str],
    keys: Sequence[Key],
    stats: Sequence[str | None],
    data_change: bool,
) -> pa.Table:
    runs = [slice(start, start + _RUN) for start in range(0, len(files), _RUN)]
    return pa.Table.from_batches(
        [_added_run(files[run], names, keys[run], stats[run], data_change) for run in runs], ADDED_FILE
    )


def _added_run(
    files: Sequence[WrittenFile],
    names: Sequence[str],
    keys: Sequence[Key],
    stats: Sequence[str | None],
    data_change: bool,
) -> pa.RecordBatch:
    count = len(files)

    def numbers(values: Iterable[int]) -> pa.Array:
        return number_array(np.fromiter(values, np.int64, count))

    columns = {
        "path": strings_of([encode_path(f.path) for f in files]),
        "partitionValues": _partition_values(names, keys),
        "size": numbers(f.size for f in files),
        "modificationTime": numbers(f.modified_ms for f in files),
        "dataChange": bool_array(np.full(count, data_change)),
        "stats": strings_of(stats),
        "numRecords": numbers(f.num_rows for f in files),
        "fresh": bool_array(np.ones(count, np.bool_)),
    }
    absent = _null_columns(count)
    arrays = [columns[name] if name in columns else absent[name] for name in ADDED_FILE.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ADDED_FILE)


@lru_cache(maxsize=4)
def _null_columns(count: int) -> dict[str, pa.Array]:
    return {f.name: pa.nulls(count, f.type) for f in ADDED_FILE}


@lru_cache(maxsize=4)
def _no_partition_values(count: int) -> pa.Array:
    return _map_of((), [()] * count)


def _partition_values(names: Sequence[str], keys: Sequence[Key]) -> pa.Array:
    return _map_of(names, keys) if names else _no_partition_values(len(keys))


def _map_of(names: Sequence[str], keys: Sequence[Key]) -> pa.Array:
    ends = number_array(np.arange(len(keys) + 1, dtype=np.int32) * np.int32(len(names)))
    values = [value for key in keys for value in key]
    return pa.MapArray.from_arrays(ends, strings_of([*names] * len(keys)), strings_of(values))


def delete_written(engine: Engine, paths: Iterable[str]) -> None:
    """Delete files of a write that is not going to be committed. Logs it if the store fails."""
    try:
        engine.storage.delete(paths)
    except EngineError as e:
        # why the write failed matters more
        _log.warning("Files of a write that failed could not be deleted: %s", e)


def _done(engine: Engine, table: pa.Table, prepare: PrepareRows, found: Sequence[WrittenFile]) -> Written:
    rows, size = sum(f.num_rows for f in found), sum(f.size for f in found)
    return Written(engine, table, dict(prepare.reported), rows, size, tuple(f.path for f in found))


def _given_partitions(
    plan: WritePlan, partitions: Sequence[Mapping[str, Any]], count: int
) -> tuple[list[str], list[Key]]:
    table = plan.table
    columns = table.partition_columns
    if columns and len(partitions) != count:
        raise InvalidArgumentError(
            f"Found partition values of {len(partitions)} files, expected one mapping for each of {count}."
        )
    keys: list[list[str | None]] = [[] for _ in range(count)]
    names = []
    for column in columns:
        path, found = find(table.schema, (column,))
        names.append(table.column_map.physical_path(table.schema, path)[0])
        missing = next((p for p in partitions if column not in p), None)
        if missing is not None:
            raise InvalidArgumentError(
                f"A file has no value of the partition column {column!r}: found {dict(missing)}."
            )
        values = pa.array([p[column] for p in partitions], found.type.to_arrow(table.types))
        for key, text in zip(keys, format_partition_values(values, found.type, column), strict=True):
            key.append(text)
    return names, [tuple(k) for k in keys]
