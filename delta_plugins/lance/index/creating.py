"""Files of new indices: B-trees, bitmaps and zone maps, in the layout of their latest versions.

Protocol: BTreeIndexDetails, BitmapIndexDetails, ZoneMapIndexDetails.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.api import EngineError, InvalidArgumentError, UnsupportedFeatureError, check_number
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, number_array, one_array, values_of
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.arrow_fields import lance_fields
from delta_plugins.lance.chosen_rows import ChosenScan
from delta_plugins.lance.commit.indices import decoded_index, index_messages
from delta_plugins.lance.commit.operations import CreateIndex
from delta_plugins.lance.files import DataFileWriter
from delta_plugins.lance.files.streams import FileStream
from delta_plugins.lance.index.sorting import SortedValues, order_keys
from delta_plugins.lance.projection import find_path
from delta_plugins.lance.schema import LanceField, arrow_field, blob_kind, is_packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.dataset_version import DatasetVersion
    from delta_plugins.lance.wire import Message

__all__ = ["KINDS", "NewIndex", "created_index", "dropped_index"]

#: Entries of a page of a B-tree, and rows of a zone.
PAGE_ROWS, ZONE_ROWS = 4096, 8192
MEMORY = 256 << 20
_VERSION = (2, 2)
#: Bytes of bitmaps that are collected, and bytes of a batch of the column.
_MAPS_BYTES, _BATCH_BYTES = 8 << 20, 16 << 20
_LOW = np.uint64(0xFFFFFFFF)
#: Checks of `pyarrow.types` for the types that indices are of.
_TYPES = (
    "boolean", "integer", "floating", "decimal", "temporal", "string", "large_string", "binary", "large_binary",
    "fixed_size_binary",
)  # fmt: skip


class NewIndex(Struct, frozen=True):
    """An operation that creates an index, and the paths of its files.

    Parameters
    ----------
    operation : CreateIndex
        The operation that is committed.
    paths : tuple of str
        The files, as the storage takes them.
    """

    operation: CreateIndex
    paths: tuple[str, ...]


class _File:
    """One file of an index that is being written."""

    def __init__(self, folder: _Folder, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._schema = schema
        path = f"{folder.path}/{name}"
        self._stream = FileStream(folder.storage.put_stream(path, replace=False))
        folder.paths.append(path)
        folder.streams.append(self._stream)
        with self._stream.writing():
            self._writer = DataFileWriter(self._stream.sink, lance_fields(schema, 0), version=_VERSION)
        self._folder = folder

    def write(self, columns: Sequence[Any]) -> None:
        with self._stream.writing():
            self._writer.write(pa.RecordBatch.from_arrays(list(columns), schema=self._schema))

    def finish(self, metadata: Mapping[str, str] | None = None, buffers: Sequence[bytes] = ()) -> None:
        with self._stream.writing():
            done = self._writer.finish({k: v.encode() for k, v in (metadata or {}).items()}, buffers)
        self._stream.finish()
        self._folder.files.append({"path": self._name, "size_bytes": done.size})


class _Folder:
    """The folder of a new index."""

    def __init__(self, dataset: DatasetVersion) -> None:
        self.storage = dataset.storage
        self.uuid = uuid.uuid4()
        self.path = dataset.files.other_path(-1, f"_indices/{self.uuid}")
        self.paths: list[str] = []
        self.files: list[Message] = []
        self.streams: list[FileStream] = []

    def abandon(self) -> None:
        """Delete what was written."""
        for stream in self.streams:
            stream.abandon()
        with suppress(EngineError):
            self.storage.delete(self.paths)


class _Column:
    """The values of a column, with the ids or addresses of their rows; null if a struct above it is null.

    Parameters
    ----------
    dataset : LanceDataset
        The version.
    path : sequence of str
        Of the column.
    type : pyarrow.DataType
        Of its values.
    """

    def __init__(self, dataset: DatasetVersion, path: Sequence[str], type: pa.DataType) -> None:
        self.dataset = dataset
        self.type = type
        self._path = tuple(path)

    def batches(self, rows: str) -> Iterator[tuple[pa.Array[Any], pa.Array[Any]]]:
        """Yield the values of all live rows and a metadata column, in the order of fragments."""
        files = self.dataset.files
        chosen = dict.fromkeys(range(len(files.manifest.fragments)))
        scan = ChosenScan(files, [self._path], None, [rows], chosen, _BATCH_BYTES)
        for batch in scan.read_batches():
            values = batch.column(0)
            for name in self._path[1:]:
                values = pc.struct_field(values, name)
            yield one_array(values), one_array(batch.column(1))

    def sorted(self, rows: str, memory: int) -> Iterator[pa.RecordBatch]:
        """Yield ``values`` and ``ids`` in the order of the values, nulls first."""
        with SortedValues(self.type, memory) as values:
            for some, ids in self.batches(rows):
                values.add(some, ids)
            yield from values.batches()


def _write_btree(column: _Column, folder: _Folder, memory: int) -> None:
    values = pa.field("values", column.type)
    data = _File(folder, "page_data.lance", pa.schema([values, pa.field("ids", pa.uint64(), False)]))
    least, greatest, nulls = [], [], []
    for batch in _in_pages(column.sorted("_rowaddr", memory)):
        data.write(batch.columns)
        starts = np.arange(0, batch.num_rows, PAGE_ROWS)
        ends = np.minimum(starts + PAGE_ROWS, batch.num_rows) - 1
        found = batch.column(0)
        # nulls come first: a page with some has none as its least value
        least.append(one_array(pc.take(found, number_array(starts))))
        greatest.append(one_array(pc.take(found, number_array(ends))))
        nulls.append(np.add.reduceat(~is_valid(found), starts, dtype=np.uint32))
    data.finish()
    lookup = [
        pa.field("min", column.type), pa.field("max", column.type), pa.field("null_count", pa.uint32(), False),
        pa.field("page_idx", pa.uint32(), False),
    ]  # fmt: skip
    pages = _File(folder, "page_lookup.lance", pa.schema(lookup))
    if least:
        counts = np.concatenate(nulls)
        numbers = number_array(np.arange(len(counts), dtype=np.uint32))
        pages.write([pa.concat_arrays(least), pa.concat_arrays(greatest), number_array(counts), numbers])
    pages.finish({"batch_size": f"{PAGE_ROWS}", "range_partitioned": "false"})


def _in_pages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of whole pages; the last one may have fewer rows."""
    rest: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        whole = (count + batch.num_rows) // PAGE_ROWS * PAGE_ROWS - count
        left = batch
        if whole > 0:
            yield _joined([*rest, batch.slice(0, whole)])
            rest, count, left = [], 0, batch.slice(whole)
        if left.num_rows:
            rest.append(left)
            count += left.num_rows
    if rest:
        yield _joined(rest)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(batches[0].num_columns)]
    return pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def _write_bitmap(column: _Column, folder: _Folder, memory: int) -> None:
    # as their version is 0, they list stable ids where rows have some
    schema = pa.schema([pa.field("keys", column.type), pa.field("bitmaps", pa.binary())])
    file = _File(folder, "bitmap_page_lookup.lance", schema)
    keys: list[pa.Array[Any]] = []
    maps: list[bytes] = []
    size = count = 0
    for key, data in _bitmaps(column.sorted("_rowid", memory)):
        keys.append(key)
        maps.append(data)
        size, count = size + len(data) + key.nbytes, count + 1
        if size > _MAPS_BYTES:
            file.write([pa.concat_arrays(keys), pa.array(maps, pa.binary())])
            keys, maps, size = [], [], 0
    if keys:
        file.write([pa.concat_arrays(keys), pa.array(maps, pa.binary())])
    file.finish({"lance:index_stats": f'{{"num_bitmaps":{count}}}'})


def _bitmaps(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Array[Any], bytes]]:
    """Yield each distinct value, an array of length 1, with the map of bitmaps of its rows."""
    last: pa.Array[Any] | None = None
    held: list[NDArray[np.uint64]] = []
    for batch in batches:
        values, ids = batch.column(0), values_of(batch.column(1))
        starts = [0, *(np.flatnonzero(_differs(order_keys(values))) + 1).tolist(), len(ids)]
        for start, stop in pairwise(starts):
            key = values.slice(start, 1)
            if last is not None and (start or _differs(order_keys(pa.concat_arrays([last, key])))[0]):
                yield last, _tree_map(np.concatenate(held))
                held = []
            last = key
            held.append(ids[start:stop])
    if last is not None:
        yield last, _tree_map(np.concatenate(held))


def _differs(keys: pa.Array[Any]) -> NDArray[np.bool_]:
    """Return for each value but the first one whether it differs from the one before; nulls come first."""
    valid = is_valid(keys)
    found: NDArray[np.bool_] = valid[1:] != valid[:-1]
    first = len(keys) - int(valid.sum())
    some = keys.slice(first)
    if len(some) > 1:
        found[first:] = values_of(pc.not_equal(some.slice(1), some.slice(0, len(some) - 1)).cast(pa.uint8())) > 0
    return found


def _tree_map(ids: NDArray[np.uint64]) -> bytes:
    """Return ids as a map: the number of their upper halves; of each one its number, a size and a roaring bitmap."""
    ids = np.sort(ids)
    upper = (ids >> np.uint64(32)).astype(np.int64)
    starts = np.concatenate([np.zeros(min(len(ids), 1), np.int64), np.flatnonzero(upper[1:] != upper[:-1]) + 1])
    out = [len(starts).to_bytes(4, "little")]
    lower = (ids & _LOW).astype(np.int64)
    for start, stop in pairwise([*starts.tolist(), len(ids)]):
        data = RowSet.from_positions(lower[start:stop]).to_roaring(32)
        out += [int(upper[start]).to_bytes(4, "little"), len(data).to_bytes(4, "little"), data]
    return b"".join(out)


class _Zones:
    """The bounds of zones: as many live rows of one fragment as a zone has, in their order."""

    def __init__(self, type: pa.DataType) -> None:
        self._type = type
        self._held: list[pa.Array[Any]] = []
        self._num_held = 0
        self._at = self._first = self._last = -1
        self.least: list[pa.Array[Any]] = []
        self.greatest: list[pa.Array[Any]] = []
        self.counts: list[tuple[int, ...]] = []
        self.nulls: list[NDArray[np.uint64]] = []

    def add(self, values: pa.Array[Any], addresses: NDArray[np.uint64]) -> None:
        """Add rows, in the order of fragments."""
        self.nulls.append(addresses[~is_valid(values)])
        fragments = (addresses >> np.uint64(32)).astype(np.int64)
        start = 0
        while start < len(values):
            fragment = int(fragments[start])
            if fragment != self._at or self._num_held == ZONE_ROWS:
                self.end()
                self._at, self._first = fragment, int(addresses[start] & _LOW)
            same = int(np.searchsorted(fragments[start:], fragment, side="right")) if self._rises(fragments) else 1
            stop = start + min(same, ZONE_ROWS - self._num_held)
            self._held.append(values.slice(start, stop - start))
            self._num_held += stop - start
            self._last = int(addresses[stop - 1] & _LOW)
            start = stop

    @staticmethod
    def _rises(fragments: NDArray[np.int64]) -> bool:
        return bool((fragments[1:] >= fragments[:-1]).all())

    def end(self) -> None:
        """End the zone."""
        if not self._num_held:
            return
        values = one_array(pa.chunked_array(self._held))
        least, greatest, nans = _bounds(values)
        self.least.append(least)
        self.greatest.append(greatest)
        self.counts.append((values.null_count, nans, self._at, self._first, self._last - self._first + 1))
        self._held, self._num_held = [], 0


def _bounds(values: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any], int]:
    """Return the least and the greatest value, arrays of length 1, and the number of NaN, which are the greatest."""
    rest = values.drop_null()
    nans = 0
    if pa.types.is_floating(values.type):
        numbers = values_of(rest)
        is_nan = np.isnan(numbers)
        nans = int(is_nan.sum())
        rest = rest.filter(pa.array(~is_nan))
        keys = values_of(order_keys(rest))
        at = [int(keys.argmin()), int(keys.argmax())] if len(keys) else []
        found = [rest.slice(i, 1) for i in at] or [pa.nulls(1, values.type)] * 2
        if nans:
            found[1] = number_array(numbers[is_nan][:1])
        return found[0], found[1], nans
    # PyArrow has no bounds of durations
    is_duration = pa.types.is_duration(values.type)
    bounds = pc.min_max(rest.cast(pa.int64()) if is_duration else rest)
    least, greatest = (pa.array([bounds[n]], bounds[n].type).cast(values.type) for n in ("min", "max"))
    return least, greatest, nans


def _write_zone_map(column: _Column, folder: _Folder, memory: int) -> None:
    zones = _Zones(column.type)
    for values, addresses in column.batches("_rowaddr"):
        zones.add(values, values_of(addresses))
    zones.end()
    names = {"null_count": pa.uint32(), "nan_count": pa.uint32()}
    names |= dict.fromkeys(("fragment_id", "zone_start", "zone_length"), pa.uint64())
    fields = [pa.field(n, column.type) for n in ("min", "max")] + [pa.field(n, t, False) for n, t in names.items()]
    file = _File(folder, "zonemap.lance", pa.schema(fields))
    if zones.counts:
        counts = np.array(zones.counts, np.int64).T
        numbers = [number_array(c.astype(t.to_pandas_dtype())) for c, t in zip(counts, names.values(), strict=True)]
        file.write([pa.concat_arrays(zones.least), pa.concat_arrays(zones.greatest), *numbers])
    nulls = np.concatenate([np.zeros(0, np.uint64), *zones.nulls])
    # the number of the global buffer with the rows that are null; the first one is the schema
    file.finish({"rows_per_zone": f"{ZONE_ROWS}", "null_bitmap": "1"}, [_tree_map(nulls)])


class _Kind(Struct, frozen=True):
    """How an index is written: its type and version, its details encoded, and the function that writes its files."""

    type: str
    version: int
    details: bytes
    write: Callable[[_Column, _Folder, int], None]


#: 8,192 rows of a zone, no seeds in data files, and a bitmap of nulls.
_ZONE_DETAILS = b"\x08\x80\x40\x10\x00\x18\x01"
KINDS: Mapping[str, _Kind] = {
    "btree": _Kind("BTree", 1, b"", _write_btree),
    "bitmap": _Kind("Bitmap", 0, b"", _write_bitmap),
    "zonemap": _Kind("ZoneMap", 0, _ZONE_DETAILS, _write_zone_map),
}


def created_index(
    dataset: DatasetVersion, column: str, kind: str, name: str | None, replace: bool, memory: int
) -> NewIndex:
    """Return the operation that creates an index; its files are written.

    Raises
    ------
    ColumnNotFoundError
        If there is no such column.
    InvalidArgumentError
        For an unknown kind, and a name that another index has.
    UnsupportedFeatureError
        For a column of a type that indices are not of.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(f"Found the kind {kind!r} of index, expected one of {', '.join(KINDS)}.")
    check_number("max_memory", memory, 1)
    path = find_path(dataset.manifest.fields, column)
    field = path[-1]
    wanted = f"{column}_idx" if name is None else name
    removed = _replaced(dataset, wanted, field, replace)
    chosen = KINDS[kind]
    values = _Column(dataset, [f.name for f in path], _indexed_type(path, column))
    folder = _Folder(dataset)
    try:
        chosen.write(values, folder, memory)
    except BaseException:
        folder.abandon()
        raise
    index: Message = {
        "uuid": {"uuid": folder.uuid.bytes},
        "fields": [field.id],
        "name": wanted,
        "dataset_version": dataset.manifest.version,
        "fragment_bitmap": RowSet.from_positions(np.sort(dataset.manifest.fragments.id)).to_roaring(32),
        "index_details": {"type_url": f"/lance.table.{chosen.type}IndexDetails", "value": chosen.details},
        "index_version": chosen.version,
        "created_at": time.time_ns() // 10**6,
        "files": folder.files,
    }
    return NewIndex(CreateIndex((index,), removed), tuple(folder.paths))


def _indexed_type(path: Sequence[LanceField], column: str) -> pa.DataType:
    """Return the type of the values of a column."""
    found = arrow_field(path[-1]).type
    is_apart = any(is_packed(f) or blob_kind(f) for f in path)
    if is_apart or not any(getattr(pa.types, f"is_{t}")(found) for t in _TYPES):
        shown = path[-1].logical_type if is_apart else str(found)
        raise UnsupportedFeatureError(
            f"Column {column!r} has the type {shown}; indices are of columns with numbers, booleans, dates, times, "
            "strings or binary values, and of such fields of structs.",
            feature=f"indices of type {shown}",
            column=column,
        )
    return found


def _replaced(dataset: DatasetVersion, name: str, field: LanceField, replace: bool) -> tuple[Message, ...]:
    """Return the indices with a name, which the new one is in place of."""
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"Found the name {name!r} for an index, expected a text that is not empty.")
    found = _named(dataset, name)
    if found and not replace:
        raise InvalidArgumentError(
            f"There is an index {name!r} already. Pass replace=True, or another name.", name=name
        )
    if any(list(i["fields"])[:1] != [field.id] for i in found):
        raise InvalidArgumentError(
            f"The index {name!r} is of another column, so that it is not replaced. Pass another name.", name=name
        )
    return found


def _named(dataset: DatasetVersion, name: str) -> tuple[Message, ...]:
    listed = (decoded_index(i) for i in index_messages(dataset.manifest))
    return tuple(i for i in listed if i["name"] == name)


def dropped_index(dataset: DatasetVersion, name: str) -> CreateIndex:
    """Return the operation that drops an index, all of its parts; its files stay until a cleanup.

    Raises
    ------
    InvalidArgumentError
        If there is no index with the name.
    """
    found = _named(dataset, name)
    if not found:
        names = sorted({decoded_index(i)["name"] for i in index_messages(dataset.manifest)})
        raise InvalidArgumentError(
            f"There is no index {name!r}; the indices are {', '.join(map(repr, names)) or 'none'}.", name=name
        )
    return CreateIndex((), found)
