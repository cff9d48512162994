"""A table's data files as a real pyarrow dataset, for tables whose files alone report the rows.

Each fragment carries its partition values, and its statistics as guarantees that pyarrow prunes by. Any method that a
plain Parquet reader would get wrong is rejected by name.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from delta_core.engines.interface import Storage
from delta_core.errors import ArgumentTypeError, ExternalPathError, UnsupportedDatasetError
from delta_core.expressions.ast import FileStatistic
from delta_core.expressions.coercion import canonical
from delta_core.kernel.log.decimal_bounds import widen_bounds
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import MetadataColumn, RowSelector
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array
from delta_core.schema.fields import walk
from delta_core.schema.types import BASE_TYPES, Field, PrimitiveType, StructType, UserDefinedType, parse_decimal
from delta_core.table.interop.dataset_storage import file_system
from delta_core.table.interop.file_tables import typed_partitions
from delta_core.table.interop.predicates import plan_files

__all__ = ["parquet_dataset"]

#: Before this every calendar question is open; from here on all calendars and zones agree.
_SAFE_YEAR = 1900
_MILLISECOND = dt.timedelta(milliseconds=1)


def parquet_dataset(
    snapshot: Snapshot, predicate: Any, filesystem: Any, read_options: Any, schema: Any, as_large_types: bool
) -> ds.FileSystemDataset:
    """Return the dataset; see `DeltaTable.to_pyarrow_dataset`.

    Raises
    ------
    ArgumentTypeError
        For reading options of another type.
    """
    _check_columns(snapshot)
    files = plan_files(snapshot, predicate)
    table = files.columns(["path", "size", "deletionVector"])
    _check_rules(snapshot, files)
    _check_calendar(snapshot, files, table)
    storage = snapshot.engine.storage
    own = filesystem is None
    if read_options is None:
        read_options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
    elif isinstance(read_options, dict):
        read_options = ds.ParquetReadOptions(**read_options)
    elif not isinstance(read_options, ds.ParquetReadOptions):
        raise ArgumentTypeError(
            f"Found parquet_read_options as {type(read_options).__name__}, expected pyarrow.dataset.ParquetReadOptions "
            "or a dict."
        )
    reading = ds.ParquetFileFormat(
        read_options=read_options, default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
    )
    schema = _arrow_schema(schema) or snapshot.schema.to_arrow(as_large_types=as_large_types)
    paths = decode_paths(table.column("path"))
    source = storage if own else pafs._ensure_filesystem(filesystem)
    if own:
        local = _local_paths(storage, paths)
        on_disk = None not in local
        source = pafs.LocalFileSystem() if on_disk else storage
        paths = [p for p in local if p is not None] if on_disk else paths
    filesystem = file_system(source, has_floats=_has_floats(snapshot))
    fragments = [
        reading.make_fragment(
            path, filesystem=filesystem, partition_expression=promise, file_size=size if own else None
        )
        for path, promise, size in zip(paths, _promises(snapshot, files), table.column("size").to_pylist(), strict=True)
    ]
    for i, f in enumerate(schema):
        if f.name in (read_options.dictionary_columns or ()):
            schema = schema.set(i, f.with_type(pa.dictionary(pa.int32(), f.type)))
    return ds.FileSystemDataset(fragments, schema, reading, filesystem)


def _arrow_schema(given: Any) -> pa.Schema | None:
    """Return the schema that a caller passed, if any; raises ArgumentTypeError for what is none."""
    if given is None or isinstance(given, pa.Schema):
        return given
    if isinstance(given, StructType) or not hasattr(given, "__arrow_c_schema__"):
        hint = " Pass its to_arrow()." if isinstance(given, StructType) else ""
        raise ArgumentTypeError(f"Found a schema as {type(given).__name__}, expected a pyarrow.Schema.{hint}")
    return pa.schema(given)


def _local_paths(storage: Storage, paths: list[str]) -> list[str | None]:
    """Return the files' paths on this machine, None for others; files are rejected when they are read."""
    try:
        return storage.local_paths(paths)
    except ExternalPathError:
        return [None]


def _has_floats(snapshot: Snapshot) -> bool:
    """Whether files have a column, or a part of one, whose bounds leave NaN out."""
    partitions = snapshot.state.partition_columns
    parts = walk(canonical(snapshot.schema))
    return any(f.type.type in ("float", "double") for path, f in parts if path[0] not in partitions)


# --- what a plain Parquet reader can't do ---------------------------------------------------


def _refusal(why: str, **facts: Any) -> UnsupportedDatasetError:
    return UnsupportedDatasetError(
        f"A pyarrow dataset would pass wrong rows for this table: {why}. Use to_pyarrow_table, scan, or dataset(), "
        "which DuckDB and DataFusion take in its place.",
        **facts,
    )


def _check_columns(snapshot: Snapshot) -> None:
    state = snapshot.state
    for name, rule in state.encodings.items():
        why = f"its files store column {name!r} in another form ({rule.feature})"
        raise _refusal(why, column=name, feature=rule.feature)
    logical, physical = walk(state.schema), walk(state.column_map.physical)
    for (path, f), (physical_path, _) in zip(logical, physical, strict=True):
        if path != physical_path or state.column_map.match != "name":
            raise _refusal(f"column {'.'.join(path)!r} has another name in its files (column mapping)", column=path)
        if isinstance(f.type, PrimitiveType) and _is_composed(f.type, state.types):
            raise _refusal(f"column {'.'.join(path)!r} of type {f.type.type!r} lies in several layouts", column=path)


def _is_composed(kind: PrimitiveType, types: Mapping[str, Any]) -> bool:
    is_plain = kind.type in BASE_TYPES or isinstance(kind, UserDefinedType)
    return not is_plain and pa.types.is_nested(kind.to_arrow(types))


def _check_rules(snapshot: Snapshot, files: FileSet) -> None:
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
    for rule in rules:
        if isinstance(rule, MetadataColumn):
            continue
        if not isinstance(rule, RowSelector):
            raise _refusal(f"feature {rule.feature} decides about its rows one by one", feature=rule.feature)
        if rule.locate(files.columns(["path", *rule.columns])).num_rows:
            raise _refusal(f"feature {rule.feature} drops rows of its files", feature=rule.feature)


def _check_calendar(snapshot: Snapshot, files: FileSet, table: pa.Table) -> None:
    """Reject files of old Spark with dates in the Julian calendar; footers are read only if bounds leave it open."""
    partitioned = snapshot.state.partition_columns
    timed = [(path, f) for path, f in walk(canonical(snapshot.schema)) if _is_time(f) and path[0] not in partitioned]
    if not timed:
        return
    if any(len(path) > 1 for path, _ in timed):
        suspects = np.arange(table.num_rows)
    else:
        found = files.statistics([FileStatistic("min", path, f.type) for path, f in timed])
        safe = [pc.fill_null(pc.greater_equal(pc.year(c), _SAFE_YEAR), False).to_numpy() for c in found.columns]
        suspects = np.flatnonzero(~np.logical_and.reduce(safe))
    storage = snapshot.engine.storage
    chosen = table.select(["path", "size"]).take(suspects)
    places = list(zip(decode_paths(chosen.column("path")), chosen.column("size").to_pylist(), strict=True))
    legacy = snapshot.engine.map(lambda place: _is_legacy(storage, *place), places)
    for (path, _), is_legacy in zip(places, legacy, strict=True):
        if is_legacy:
            raise _refusal(f"data file {path!r} may hold dates in the Julian calendar", path=path)


def _is_time(f: Field) -> bool:
    return isinstance(f.type, PrimitiveType) and f.type.type in ("date", "timestamp")


def _is_legacy(storage: Storage, path: str, size: int | None) -> bool:
    metadata = pq.read_metadata(storage.local_path(path) or storage.open(path, size))
    pairs = metadata.metadata or {}
    match = re.match(rb"(\d+)\.(\d+)", pairs.get(b"org.apache.spark.version", b""))
    if match is None:
        return False
    if (int(match[1]), int(match[2])) < (3, 1):
        return True
    return b"org.apache.spark.legacyDateTime" in pairs or b"org.apache.spark.legacyINT96" in pairs


# --- what each file promises ----------------------------------------------------------------


def _promises(snapshot: Snapshot, files: FileSet) -> Iterator[ds.Expression]:
    """Yield an expression per file that is true of all its rows."""
    parts: list[list[ds.Expression | None]] = [
        [_equals(name, value) for value in values] for name, values in typed_partitions(snapshot, files).items()
    ]
    bounded = [
        f for f in snapshot.schema.members if f.name not in snapshot.state.partition_columns and _has_sound_bounds(f)
    ]
    for f in bounded[:32]:
        found = files.statistics([FileStatistic(k, (f.name,), f.type) for k in ("min", "max", "nullCount")])
        low, high, nulls = map(one_array, found.columns)
        bounds = widen_bounds(low, False), widen_bounds(high, True), nulls
        parts.append([_between(f, *row) for row in zip(*bounds, strict=True)])
    for row in zip(*parts, strict=True) if parts else [()] * files.count:
        promise: ds.Expression | None = None
        for part in row:
            promise = part if promise is None else promise if part is None else promise & part
        yield ds.scalar(True) if promise is None else promise


def _equals(name: str, value: pa.Scalar) -> ds.Expression:
    return pc.field((name,)) == value if value.is_valid else pc.field((name,)).is_null()


def _has_sound_bounds(f: Field) -> bool:
    """Whether bounds bind every row: those of floats leave NaN out."""
    kind = f.type.type
    return (
        isinstance(f.type, PrimitiveType)
        and kind not in ("float", "double", "binary", "void")
        and (kind in BASE_TYPES or parse_decimal(kind) is not None or kind == "timestamp_ntz")
    )


def _between(f: Field, low: pa.Scalar, high: pa.Scalar, nulls: pa.Scalar) -> ds.Expression | None:
    if not (low.is_valid and high.is_valid):
        return None
    column = pc.field((f.name,))
    if pa.types.is_timestamp(high.type):
        try:
            # writers cut bounds to milliseconds, downwards
            high = pa.scalar(high.as_py() + _MILLISECOND, high.type)
        except (OverflowError, ValueError):
            return None
    promise = (column >= low) & (column <= high)
    if nulls.is_valid and nulls.as_py() == 0:
        return column.is_valid() & promise
    return promise | column.is_null()
