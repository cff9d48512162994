"""Data files that another library's own Parquet reader reads with the same rows and types as this library.

The log and the schema choose them: on a local disk, without deleted rows, in the types of the table, under its names or
other names of whole columns (column mapping). Footers decide: a file of another layout, whose columns are stored in
another way than the table's types request, is not one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.expressions.ast import Call, Expression, FileConstant, FileStatistic, Values
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import MetadataColumn, RowSelector
from delta_core.kernel.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import array_of, int64_values, is_valid, one_array
from delta_core.parquet.footer import open_footer
from delta_core.parquet.legacy_calendar import read_calendar
from delta_core.parquet.local_footers import Footers, read_footers
from delta_core.schema.fields import Path, Schema, arrow_schema, walk
from delta_core.schema.types import PrimitiveType
from delta_core.storage.boundary import are_plain

__all__ = ["LEAST_BYTES", "PlainFiles", "SomeFiles", "first_of_layouts", "plain_files", "renamed", "stored_names"]

#: Smaller files are read by this library, which reads many of them at a time.
LEAST_BYTES = 1 << 20
#: Logs of more actions are not looked through before rows are requested.
_MOST_ACTIONS = 100_000
#: The most files whose statistics are compared.
_MOST_COMPARED = 1_000
#: The most layouts of files that are looked at.
_MOST_LAYOUTS = 64
#: Footers that are in memory together.
_WINDOW = 1_024
#: Characters that make a path a pattern.
_PATTERN = re.compile(r"[*?\[\]{}\\\n\r]")
_PATH = FileConstant("path", PrimitiveType("string"))
_LONG = PrimitiveType("long")
_CODECS = frozenset(("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI"))
_ENCODINGS = frozenset(
    ("PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED",
     "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
)  # fmt: skip
#: By Arrow type: the physical and the logical types under which Parquet stores it as such.
_STORED: Mapping[pa.DataType, tuple[str, tuple[str, ...]]] = {
    pa.bool_(): ("BOOLEAN", ("NONE",)),
    pa.int8(): ("INT32", ("INT",)),
    pa.int16(): ("INT32", ("INT",)),
    pa.int32(): ("INT32", ("NONE", "INT")),
    pa.int64(): ("INT64", ("NONE", "INT")),
    pa.float32(): ("FLOAT", ("NONE",)),
    pa.float64(): ("DOUBLE", ("NONE",)),
    pa.string(): ("BYTE_ARRAY", ("STRING",)),
    pa.binary(): ("BYTE_ARRAY", ("NONE",)),
    pa.date32(): ("INT32", ("DATE",)),
    pa.timestamp("us"): ("INT64", ("TIMESTAMP",)),
    pa.timestamp("us", "UTC"): ("INT64", ("TIMESTAMP",)),
}
_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


class SomeFiles:
    """Some files of a version, as a source that can be scanned.

    Parameters
    ----------
    snapshot : Snapshot
        The version.
    files : FileSet
        The files.
    """

    def __init__(self, snapshot: Snapshot, files: FileSet) -> None:
        self._snapshot = snapshot
        self._files = files
        self.format_name: str = snapshot.format_name
        self.uri: str = snapshot.uri
        self.version: int = snapshot.version
        self.schema: Schema = snapshot.schema
        self.functions: Mapping[str, Function] = snapshot.functions

    def __reduce__(self) -> tuple[Any, ...]:
        # a checkpoint's files hold a reader of it, which can't be pickled
        return _files_again, (self._snapshot, one_array(self._files.columns(["path"]).column(0)))

    def scan(
        self,
        columns: Sequence[str | Path] | None = None,
        *,
        metadata: Sequence[str] = (),
        predicate: Any = None,
        limit: int | None = None,
    ) -> Scan:
        """See `Scannable.scan`."""
        return Scan(self._snapshot, columns, metadata, predicate, limit, files=self._files)


def _files_again(snapshot: Snapshot, named: pa.Array) -> SomeFiles:
    return SomeFiles(snapshot, PlainFiles.chosen(snapshot, snapshot.files, named))


class PlainFiles(Struct, frozen=True):
    """Files that seem plain by the log.

    Parameters
    ----------
    named : pyarrow.Array
        The paths as the log has them.
    paths : list of str
        The absolute paths, in the same order.
    has_others : bool
        Whether the version has other files too.
    """

    named: pa.Array
    paths: list[str]
    has_others: bool

    @staticmethod
    def chosen(snapshot: Snapshot, files: FileSet, chosen: pa.Array, *, are_in: bool = True) -> FileSet:
        """Return the files of a set whose paths are in an array, or those whose paths are not."""
        test: Expression = Call("in", (_PATH, Values(chosen.sort(), _PATH.type, is_sorted=True)))
        if not are_in:
            test = Call("not", (test,))
        return files.where(test, snapshot.engine.evaluator, snapshot.timezone, exact=True)

    def numbers(self, files: FileSet) -> list[int]:
        """Return the numbers of those that are in a set."""
        is_there = pc.is_in(self.named, value_set=one_array(files.columns(["path"]).column(0)))
        return np.flatnonzero(is_there).tolist()


_found: WeakKeyDictionary[Snapshot, PlainFiles | None] = WeakKeyDictionary()


def plain_files(snapshot: Snapshot) -> PlainFiles | None:
    """Return the files of a version that seem plain by the log, None if there are none; no data file is opened."""
    if snapshot not in _found:
        _found[snapshot] = _seem_plain(snapshot)
    return _found[snapshot]


def _seem_plain(snapshot: Snapshot) -> PlainFiles | None:
    selectors = _selectors(snapshot)
    if selectors is None or not _has_plain_columns(snapshot):
        return None
    files = snapshot.files
    if sum(part.chunk.num_rows for part in files.parts) > _MOST_ACTIONS:
        return None
    names = list(dict.fromkeys(["path", "size", *(c for s in selectors for c in s.columns)]))
    table = files.columns(names)
    sizes = table.column("size")
    is_plain = is_valid(sizes) & (int64_values(sizes) >= LEAST_BYTES)
    for selector in selectors:
        is_plain[int64_values(selector.locate(table).column("file"))] = False
    if not is_plain.any():
        return None
    is_plain = _without_missing_columns(snapshot, is_plain)
    paths = decode_paths(table.column("path"))
    local = _local_paths(snapshot, paths)
    if local is None or len(set(paths)) < len(paths):
        return None
    if _PATTERN.search("".join(local)):
        is_plain &= np.fromiter((_PATTERN.search(path) is None for path in local), bool, len(local))
    chosen = np.flatnonzero(is_plain).tolist()
    if not chosen:
        return None
    named = table.column("path").take(array_of(chosen, pa.int64())).combine_chunks()
    return PlainFiles(named, [local[i] for i in chosen], len(chosen) < len(paths))


def _selectors(snapshot: Snapshot) -> list[RowSelector] | None:
    """Return what drops rows of single files; None if rows depend on more than that."""
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
    rules = [r for r in rules if not isinstance(r, MetadataColumn)]
    found = [r for r in rules if isinstance(r, RowSelector)]
    return found if len(found) == len(rules) and snapshot.engine.remote_rows is None else None


def _has_plain_columns(snapshot: Snapshot) -> bool:
    """Whether files store columns in types that mean the same to every reader, and fields under their own names."""
    state = snapshot.state
    if state.encodings or state.partition_columns or state.column_map.match != "name" or not state.schema.members:
        return False
    pairs = zip(walk(state.schema), walk(state.column_map.physical), strict=True)
    if any(logical[1:] != physical[1:] for (logical, _), (physical, _) in pairs):
        return False
    return all(stored is not None for _, stored in _leaves(_stored_schema(snapshot), "element"))


def _stored_schema(snapshot: Snapshot) -> pa.Schema:
    return renamed(arrow_schema(snapshot.state.schema, snapshot.state.types), stored_names(snapshot).values())


def renamed(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """Return a schema whose columns have other names."""
    return pa.schema([f.with_name(name) for f, name in zip(schema, names, strict=True)])


def stored_names(snapshot: Snapshot) -> dict[str, str]:
    """Return the columns in their order, each with its name in files."""
    state = snapshot.state
    stored = (f.name for f in state.column_map.physical.members)
    return dict(zip(state.schema.names, stored, strict=True))


def _leaves(fields: Any, element: str, path: str = "") -> Iterator[tuple[str, tuple[tuple[str, ...], Any] | None]]:
    """Yield the path of each column of Parquet, and how it has to be stored; None for types that are not plain."""
    for f in fields:
        place = f"{path}{f.name}"
        if pa.types.is_struct(f.type) and f.type.num_fields:
            yield from _leaves(f.type, element, f"{place}.")
        elif pa.types.is_list(f.type):
            yield from _leaves([f.type.value_field.with_name(element)], element, f"{place}.list.")
        elif pa.types.is_map(f.type):
            ends = [f.type.key_field.with_name("key"), f.type.item_field.with_name("value")]
            yield from _leaves(ends, element, f"{place}.key_value.")
        elif pa.types.is_decimal(f.type):
            yield place, (_DECIMALS, ("DECIMAL",))
        else:
            stored = _STORED.get(f.type)
            yield place, None if stored is None else ((stored[0],), stored[1])


def _without_missing_columns(snapshot: Snapshot, is_plain: np.ndarray) -> np.ndarray:
    """Leave out files whose statistics lack a column that other files' have: the column is probably newer than they."""
    schema = snapshot.state.schema
    stored = stored_names(snapshot)
    names = [stored[f.name] for f in schema.members if isinstance(f.type, PrimitiveType) and f.type.type != "void"]
    if len(is_plain) > _MOST_COMPARED or not names:
        return is_plain
    counts = snapshot.files.statistics([FileStatistic("nullCount", (name,), _LONG) for name in names])
    known = np.stack([is_valid(column) for column in counts.columns])
    return is_plain & (known | ~known.any(axis=1, keepdims=True)).all(axis=0)


def _local_paths(snapshot: Snapshot, paths: Sequence[str]) -> list[str] | None:
    """Return the places of files of this machine below the table's root; None if there are others."""
    if not are_plain(paths):
        return None
    found = [path for path in snapshot.engine.storage.local_paths(paths) if path is not None]
    return found if len(found) == len(paths) else None


# --- what footers have to show ---------------------------------------------------------------


def first_of_layouts(snapshot: Snapshot, paths: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return which files' footers show that they are plain, and a file of each layout of those.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    paths : sequence of str
        Of `PlainFiles`.
    """
    schema = _stored_schema(snapshot)
    spellings = [dict(_leaves(schema, element)) for element in ("element", "item")]
    is_plain, firsts = np.zeros(len(paths), bool), []
    for start in range(0, len(paths), _WINDOW):
        footers = read_footers(paths[start : start + _WINDOW])
        layouts = footers.files()[0]
        for layout, first in enumerate(footers.first.tolist()[:_MOST_LAYOUTS]):
            if _is_plain_layout(footers, first, schema, spellings):
                is_plain[start : start + _WINDOW] |= layouts == layout
                firsts.append(paths[start + first])
    return is_plain, firsts


def _is_plain_layout(footers: Footers, first: int, schema: pa.Schema, spellings: list[dict[str, Any]]) -> bool:
    try:
        file = open_footer(footers.footer(first)[0])
        found, metadata = file.schema_arrow, file.metadata
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return False
    if read_calendar(metadata.metadata, frozenset()) is not None:
        return False
    leaves = [metadata.schema.column(i) for i in range(len(metadata.schema))]
    paths = [leaf.path for leaf in leaves]
    stored = next((s for s in spellings if list(s) == paths), None)
    return (
        stored is not None
        and found.names == schema.names
        and all(map(_has_type, found, schema))
        and all(map(_is_stored, leaves, stored.values()))
        and _has_known_chunks(metadata)
    )


def _has_type(found: pa.Field, wanted: pa.Field) -> bool:
    """Whether a column of a file has a type, whatever the fields within lists and maps are called and may be null."""
    return _shape(found.type) == _shape(wanted.type) and (wanted.nullable or not found.nullable)


def _shape(t: pa.DataType) -> Any:
    if pa.types.is_struct(t):
        return "struct", *((f.name, _shape(f.type)) for f in t)
    if pa.types.is_list(t):
        return "list", _shape(t.value_type)
    if pa.types.is_map(t):
        return "map", _shape(t.key_type), _shape(t.item_type)
    return t


def _is_stored(leaf: Any, wanted: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    kind = leaf.logical_type.type
    if leaf.physical_type not in wanted[0] or kind not in wanted[1]:
        return False
    return kind != "TIMESTAMP" or "timeUnit=microseconds" in str(leaf.logical_type)


def _has_known_chunks(metadata: Any) -> bool:
    """Whether the first row group is compressed and encoded in ways that every reader of today has."""
    if not metadata.num_row_groups:
        return True
    group = metadata.row_group(0)
    chunks = [group.column(i) for i in range(metadata.num_columns)]
    return all(c.compression in _CODECS and _ENCODINGS.issuperset(c.encodings) for c in chunks)
