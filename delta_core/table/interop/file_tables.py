"""A snapshot's files as tables and lists for users: add actions, URIs, partitions, keep masks, sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Storage
from delta_core.errors import ExternalPathError
from delta_core.expressions.ast import FileStatistic
from delta_core.expressions.coercion import bounds_type
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.indexed_columns import statistics_leaves
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.log.paths import around_paths, decode_paths, uri_maker
from delta_core.kernel.plugins.encodings import encoded_names
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    array_of,
    bool_array,
    int64_values,
    is_valid,
    number_array,
    one_array,
    scalar_of,
    values_of,
)
from delta_core.kernels.path_texts import joined_lists
from delta_core.runtime.patterns import lazy_pattern
from delta_core.schema.fields import Path, format_path, leaf_fields
from delta_core.schema.types import Field, PrimitiveType
from delta_core.table.interop.predicates import plan_files

__all__ = [
    "Sizes",
    "add_actions",
    "file_table",
    "file_uris",
    "keep_masks",
    "partition_values",
    "root_uri",
    "sizes",
    "typed_partitions",
]

#: Combinations of codes of partition columns that are marked if they occur.
_MOST_COMBINATIONS = 1 << 20
#: A path from the root of a store, or a URI.
_ABSOLUTE = lazy_pattern(r"/|[A-Za-z][A-Za-z0-9+.-]+:")
_LONG = PrimitiveType("long")
NUM_RECORDS = FileStatistic("numRecords", (), _LONG)


class Sizes(NamedTuple):
    """The contents of a version; None for a number that is not known, such as rows if a file has no statistics."""

    files: int | None
    size_bytes: int | None
    rows: int | None
    deleted_rows: int | None


def root_uri(snapshot: Snapshot) -> str:
    """Return the table's root as a URI that ends in a slash; local paths become ``file://``."""
    root, rest = around_paths(snapshot.engine.storage.uri)
    return as_uri(root) + rest


def as_uri(place: str) -> str:
    """Return a local path as a ``file://`` URI, any URI as it is."""
    if "://" in place:
        return place
    return ("file:///" if place[1:2] == ":" else "file://") + quote(place, safe="/~!$&'()*+,;=:@")


def named_uri(storage: Storage, path: str) -> str:
    """Return the URI under which the log names a file, whether or not the table may read it."""
    try:
        return storage.uri(path)
    except ExternalPathError:
        return path if _ABSOLUTE.match(path) else f"{storage.uri('').rstrip('/')}/{path}"


def file_uris(snapshot: Snapshot, predicate: Any = None) -> list[str]:
    """Return where the data files are, of those that may hold rows for a predicate; nothing is read."""
    uris = uri_maker(partial(named_uri, snapshot.engine.storage))
    found = plan_files(snapshot, predicate).map_columns(lambda files: uris(files.column("path")), ["path"])
    return joined_lists(found)


def partition_values(snapshot: Snapshot, predicate: Any = None) -> list[dict[str, Any]]:
    """Return the distinct partitions as the log's text, None for null, by logical name."""
    names, files = _partition_names(snapshot), plan_files(snapshot, predicate)
    if not names:
        return []
    table = files.columns([f"partition:{physical}" for _, physical in names])
    logical = [name for name, _ in names]
    distinct = [_distinct_rows(batch) for batch in table.rename_columns(logical).to_batches()]
    texts = pa.concat_tables(distinct) if distinct else table.rename_columns(logical)
    plain = pa.table([_plain_text(c) for c in texts.columns], logical)
    found: list[dict[str, Any]] = plain.group_by(logical).aggregate([]).to_pylist()
    return found


def _distinct_rows(batch: pa.RecordBatch) -> pa.Table:
    """Return the distinct rows of texts, by their codes, or more rows if there are too many combinations of codes."""
    columns = [c if pa.types.is_dictionary(c.type) else pc.dictionary_encode(c) for c in batch.columns]
    sizes = [len(c.dictionary) + 1 for c in columns]
    if math.prod(sizes) > _MOST_COMBINATIONS:
        return pa.table([pc.cast(c, pa.string()) for c in columns], batch.schema.names)
    keys = np.zeros(batch.num_rows, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        keys *= size
        keys += np.where(is_valid(column.indices), values_of(column), size - 1)
    is_there = np.zeros(math.prod(sizes), bool)
    is_there[keys] = True
    codes = np.unravel_index(np.flatnonzero(is_there), sizes)
    texts = [
        pc.take(c.dictionary, number_array(code.astype(np.int32), valid=code < size - 1))
        for c, code, size in zip(columns, codes, sizes, strict=True)
    ]
    return pa.table(texts, batch.schema.names)


def _plain_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.cast(column, pa.string())
    return pc.if_else(pc.equal(text, scalar_of("", pa.string())), scalar_of(None, pa.string()), text)


def _partition_names(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return (logical, physical) names of the partition columns."""
    state = snapshot.state
    return [(name, state.column_map.physical_path(state.schema, (name,))[0]) for name in state.partition_columns]


def typed_partitions(snapshot: Snapshot, files: FileSet) -> dict[str, pa.Array]:
    """Return the files' partition values, typed, by logical name."""
    found = {}
    for logical, physical in _partition_names(snapshot):
        text = files.columns([f"partition:{physical}"]).column(0)
        kind = snapshot.schema.get(logical)
        assert kind is not None
        found[logical] = parse_partition_values(
            text, kind.type, snapshot.timezone, column=logical, types=snapshot.state.types
        )
    return found


def sizes(snapshot: Snapshot) -> Sizes:
    """Return how much a version holds."""
    files = snapshot.files
    table = files.columns(["size", "deletionVector"])
    records = files.statistics([NUM_RECORDS]).column(0)
    deleted = _total(_deleted(table))
    rows = None if records.null_count else _total(records) - deleted
    return Sizes(table.num_rows, _total(table.column("size")), rows, deleted)


def _total(column: pa.ChunkedArray) -> int:
    return int(int64_values(column)[is_valid(column)].sum())


def _deleted(table: pa.Table) -> pa.ChunkedArray:
    vectors = table.column("deletionVector")
    if vectors.null_count == len(vectors):
        return pa.chunked_array([pa.nulls(len(vectors), pa.int64())])
    return pc.struct_field(vectors, "cardinality")


def file_table(snapshot: Snapshot, predicate: Any = None, statistics: bool = False) -> pa.Table:
    """Return path, size, modificationTime (ms), numRecords, numDeleted and partition of each file.

    ``statistics`` adds columns such as ``min.s.x``, ``max.s.x`` and ``null_count.s.x``, by logical name.
    """
    files = plan_files(snapshot, predicate)
    table = files.columns(["path", "size", "modificationTime", "deletionVector"])
    partition = _struct(typed_partitions(snapshot, files), table.num_rows)
    columns = [
        table.column("path"),
        table.column("size"),
        table.column("modificationTime"),
        files.statistics([NUM_RECORDS]).column(0),
        _deleted(table),
        partition,
    ]
    table = pa.table(columns, ["path", "size", "modificationTime", "numRecords", "numDeleted", "partition"])
    leaves = _statistics(snapshot) if statistics else []
    found = files.statistics([leaf for _, _, leaf in leaves])
    for i, (name, path, _) in enumerate(leaves):
        table = table.append_column(f"{name}.{format_path(path)}", found.column(i))
    return table


def add_actions(snapshot: Snapshot, flatten: bool = False) -> pa.Table:
    """Return a row per file, in the shape of `deltalake`'s ``get_add_actions``.

    Statistics are under logical names, for the columns that the table's properties specify have them.
    """
    files = snapshot.files
    # paths are decoded first, since which files are live depends on them
    base = files.columns(["path", "size", "modificationTime"])
    base = base.rename_columns(["path", "size_bytes", "modification_time"])
    # one pass over the commits for all other columns; their chunk keeps the partition columns for later
    partitioned = [f"partition:{physical}" for _, physical in _partition_names(snapshot)]
    leaves = _statistics(snapshot)
    found = files.statistics([NUM_RECORDS, *(leaf for _, _, leaf in leaves)], beside=partitioned)
    files.columns(partitioned)
    table = _not_null(base.append_column("num_records", found.column(0)), base.column_names)
    for name in ("null_count", "min", "max"):
        columns = {path: found.column(i) for i, (kind, path, _) in enumerate(leaves, 1) if kind == name}
        table = _append(table, name, columns, flatten)
    partition: dict[Path, Any] = {(name,): values for name, values in typed_partitions(snapshot, files).items()}
    return _append(table, "partition", partition, flatten)


def _not_null(table: pa.Table, names: Sequence[str]) -> pa.Table:
    fields = [pa.field(f.name, f.type, f.name not in names) for f in table.schema]
    return pa.table(table.columns, schema=pa.schema(fields))


def _statistics(snapshot: Snapshot) -> list[tuple[str, Path, FileStatistic]]:
    """Return (name, logical path, statistic) of every statistic that add actions show."""
    state = snapshot.state
    found = []
    encoded = encoded_names(state, with_bounds=False)
    for name, kind in (("null_count", "nullCount"), ("min", "min"), ("max", "max")):
        for path, f in _statistics_columns(snapshot):
            t = _LONG if kind == "nullCount" else bounds_type(f.type)
            if t is not None and t.type not in ("binary", "variant"):
                place = state.column_map.physical_path(state.schema, path)
                if kind != "nullCount" and place[0] in encoded:
                    continue
                found.append((name, path, FileStatistic(kind, place, t)))
    return found


def _statistics_columns(snapshot: Snapshot) -> list[tuple[Path, Field]]:
    """Return the columns, by logical path, that have statistics by the table's properties."""
    state = snapshot.state
    stored = {place for place, _ in statistics_leaves(state)}
    both = zip(leaf_fields(state.schema), leaf_fields(state.column_map.physical), strict=True)
    return [column for column, (place, _) in both if place in stored]


def _append(table: pa.Table, name: str, columns: dict[Path, pa.Array], flatten: bool) -> pa.Table:
    if not columns:
        return table
    if flatten:
        for path, values in columns.items():
            table = table.append_column(".".join((name, *path)), values)
        return table
    nested = _nest(columns, table.num_rows)
    if name != "partition":  # a file that does not specify them has none, and no struct of nulls
        known = np.logical_or.reduce([is_valid(c) for c in columns.values()])
        nested = pa.StructArray.from_arrays(nested.flatten(), fields=list(nested.type), mask=bool_array(~known))
    return table.append_column(name, nested)


def _nest(columns: dict[Path, pa.Array], count: int) -> pa.Array:
    """Build structs of columns by path."""
    heads: dict[str, dict[Path, pa.Array]] = {}
    for path, values in columns.items():
        heads.setdefault(path[0], {})[path[1:]] = values
    parts = {head: below[()] if () in below else _nest(below, count) for head, below in heads.items()}
    return _struct(parts, count)


def _struct(parts: dict[str, pa.Array], count: int) -> pa.Array:
    if not parts:
        return pa.Array.from_buffers(pa.struct([]), count, [None])
    arrays = [one_array(p) for p in parts.values()]
    return pa.StructArray.from_arrays(arrays, fields=[pa.field(n, a.type) for n, a in zip(parts, arrays, strict=True)])


KEEP_MASKS = pa.schema(
    [
        pa.field("filepath", pa.large_string(), False),
        pa.field("selection_vector", pa.list_(pa.field("item", pa.bool_(), False)), False),
    ]
)


def keep_masks(snapshot: Snapshot) -> pa.RecordBatchReader:
    """Return a row per file that has dropped rows: its URI and, row by row, whether the row is there."""
    files = snapshot.files.columns(["path", "size", "deletionVector"])
    records = snapshot.files.statistics([NUM_RECORDS]).column(0)
    dropped = snapshot.row_sets(files)
    return pa.RecordBatchReader.from_batches(KEEP_MASKS, _masks(snapshot, files, records, dropped))


def _masks(snapshot: Snapshot, files: pa.Table, records: pa.ChunkedArray, dropped: Any) -> Iterable[pa.RecordBatch]:
    storage = snapshot.engine.storage
    for row, rows in dropped.items():
        path = decode_paths(files.column("path").slice(row, 1))[0]
        count = records[row].as_py()
        if count is None:
            count = snapshot.engine.data.row_counts([path], [files.column("size")[row].as_py()])[0]
        keep = bool_array(np.logical_not(rows.mask(count)))
        lists = pa.ListArray.from_arrays(array_of([0, count], pa.int32()), keep, type=KEEP_MASKS.field(1).type)
        yield pa.record_batch(
            [array_of([as_uri(named_uri(storage, path))], pa.large_string()), lists], schema=KEEP_MASKS
        )
