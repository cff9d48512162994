"""Chosen rows, in the order in which they are requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.api import InvalidArgumentError
from delta_core.kernels.arrow_buffers import number_array, values_of
from delta_plugins.lance.blobs import BlobFile, Blobs
from delta_plugins.lance.fragments import AS_COLUMN
from delta_plugins.lance.projection import select_fields
from delta_plugins.lance.scan import FragmentReader, RowReader
from delta_plugins.lance.schema import blob_kind
from delta_plugins.lance.version_files import VersionFiles

__all__ = ["sample_rows", "take_blobs", "take_rows"]

By = Literal["position", "address", "id"]
#: Absent rows in a message, at most.
_SHOWN = 5


class _Found:
    """Places of requested rows: the index of the fragment and the physical position, -1 = not found."""

    def __init__(self, count: int) -> None:
        self.fragment: NDArray[np.int64] = np.full(count, -1, np.int64)
        self.position: NDArray[np.int64] = np.full(count, -1, np.int64)


def take_rows(
    dataset: VersionFiles,
    rows: Any,
    columns: Sequence[str] | None,
    by: By,
    metadata: Sequence[str] = (),
    blobs: Blobs = "descriptor",
) -> pa.Table:
    """Return chosen rows.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    rows : sequence of int, **shape (n,)**
        In any order; repeated ones are returned repeatedly.
    columns : sequence of str, optional
        See `projection.select_fields`.
    by : "position", "address" or "id"
        The meaning of numbers of rows: counted over the rows that are not deleted, ``_rowaddr`` or ``_rowid``.
    metadata : sequence of str
        Metadata columns, after the others.
    blobs : "descriptor" or "bytes"
        See `scan.LanceScan`.

    Returns
    -------
    pyarrow.Table
        One row for each requested one, in their order.

    Raises
    ------
    InvalidArgumentError
        For a row that is not there, or was deleted; the message lists such rows.
    """
    return _read(dataset, _located(dataset, rows, by), columns, metadata, blobs)


def take_blobs(dataset: VersionFiles, column: str, rows: Any, by: By) -> list[BlobFile | None]:
    """Return the blobs of chosen rows as files; errors of the files as of `blobs.locate_blobs`.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    column : str
        A column of blobs, or the path of one in structs.
    rows : sequence of int, **shape (n,)**
        See `take_rows`.
    by : "position", "address" or "id"
        See `take_rows`.

    Returns
    -------
    list of BlobFile or None
        One for each requested row, in their order; None for null.

    Raises
    ------
    InvalidArgumentError
        For a row that is not there, or was deleted; for a column without blobs.
    UnsupportedFeatureError
        For blobs in lists.
    """
    fields = select_fields(dataset.manifest.fields, [column])
    reader = RowReader(dataset, fields, blobs="bytes")
    field = fields[0]
    while not blob_kind(field) and len(field.children) == 1:
        field = field.children[0]
    if not blob_kind(field):
        raise InvalidArgumentError(
            f"Column {column!r} is of type {field.logical_type!r}, expected a column of blobs.", column=column
        )
    places = _located(dataset, rows, by)
    found: list[BlobFile | None] = [None] * len(places.fragment)
    for fragment, group in _groups(places.fragment):
        positions, inverse = np.unique(places.position[group], return_inverse=True)
        blobs = FragmentReader(reader, fragment).blobs(positions)
        for i, at in zip(group.tolist(), inverse.tolist(), strict=True):
            found[i] = None if (blob := blobs[at]) is None else blob.again()
    return found


def _located(dataset: VersionFiles, rows: Any, by: By) -> _Found:
    numbers = _numbers(rows)
    if by not in _LOOKUPS:
        raise InvalidArgumentError(f"Found by={by!r}, expected 'position', 'address' or 'id'.")
    places = _LOOKUPS[by](dataset, numbers)
    if (places.fragment < 0).any():
        absent = numbers[places.fragment < 0]
        shown = ", ".join(str(i) for i in absent[:_SHOWN].tolist())
        more = f" and {len(absent) - _SHOWN} others" if len(absent) > _SHOWN else ""
        raise InvalidArgumentError(
            f"Found rows that are not there by {by}: {shown}{more}. Version {dataset.manifest.version} has "
            f"{dataset.count()} rows; rows that were deleted can't be taken.",
            rows=absent[:_SHOWN].tolist(),
        )
    return places


def _numbers(rows: Any) -> NDArray[np.uint64]:
    if isinstance(rows, (pa.Array, pa.ChunkedArray)):
        rows = rows.to_pylist() if rows.null_count else rows.to_numpy()
    found = np.asarray(rows)
    if found.size == 0:
        return np.zeros(0, np.uint64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InvalidArgumentError(f"Rows are a sequence of whole numbers; found {found.dtype} of shape {found.shape}.")
    if found.dtype.kind == "i" and found.min() < 0:
        raise InvalidArgumentError(f"Row {int(found.min())} is requested; rows are counted from 0 on.")
    return found.astype(np.uint64)


def _by_position(dataset: VersionFiles, numbers: NDArray[np.uint64]) -> _Found:
    live = dataset.live_rows()
    ends = np.cumsum(live)
    found = _Found(len(numbers))
    total = int(ends[-1]) if len(ends) else 0
    there = np.flatnonzero(numbers < total)
    wanted = numbers[there].astype(np.int64)
    fragment = np.searchsorted(ends, wanted, "right")
    position = wanted - (ends - live)[fragment]
    for i, group in _groups(fragment):
        deleted = dataset.deleted_rows([i])[0]
        if deleted is not None:
            kept = np.flatnonzero(~deleted.mask(dataset.physical_rows(i)))
            position[group] = kept[position[group]]
    found.fragment[there], found.position[there] = fragment, position
    return found


def _by_address(dataset: VersionFiles, numbers: NDArray[np.uint64]) -> _Found:
    found = _Found(len(numbers))
    fragment = dataset.manifest.fragments.find((numbers >> np.uint64(32)).astype(np.int64))
    position = (numbers & np.uint64(0xFFFF_FFFF)).astype(np.int64)
    is_there = fragment >= 0
    for i, group in _groups(fragment[is_there]):
        rows = np.flatnonzero(is_there)[group]
        is_live = _is_live(dataset, i, position[rows])
        found.fragment[rows[is_live]] = i
        found.position[rows[is_live]] = position[rows[is_live]]
    return found


def _is_live(dataset: VersionFiles, fragment: int, position: NDArray[np.int64]) -> NDArray[np.bool_]:
    total = dataset.physical_rows(fragment)
    inside = position < total
    deleted = dataset.deleted_rows([fragment])[0]
    if deleted is not None:
        inside[inside] = ~deleted.mask(total)[position[inside]]
    return inside


def _by_id(dataset: VersionFiles, numbers: NDArray[np.uint64]) -> _Found:
    if not dataset.manifest.has_stable_row_ids:
        return _by_address(dataset, numbers)
    matches = dataset.numbers_of("row_ids").find(numbers)
    requests, fragments, positions = [matches.request], [matches.fragment], [matches.position]
    for i in np.flatnonzero(dataset.manifest.fragments.row_ids.place == AS_COLUMN).tolist():
        request, position = _in_column(dataset, i, numbers)
        requests.append(request)
        fragments.append(np.full(len(request), i, np.int64))
        positions.append(position)
    request, fragment, position = (np.concatenate(x) for x in (requests, fragments, positions))
    found = _Found(len(numbers))
    for i, group in _groups(fragment):
        is_live = _is_live(dataset, i, position[group])
        chosen = group[is_live]
        found.fragment[request[chosen]], found.position[request[chosen]] = i, position[chosen]
    return found


def _in_column(
    dataset: VersionFiles, fragment: int, numbers: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which requested ids a hidden column has, and at which positions."""
    reader = FragmentReader(RowReader(dataset, (), ["_rowid"]), fragment)
    requests, positions = [], []
    order = np.argsort(numbers, kind="stable")
    for window in reader.windows(None, 1 << 16):
        ids = values_of(window.arrays[0])
        sorting = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids[sorting], numbers[order]), max(len(ids) - 1, 0))
        hit = ids[sorting][at] == numbers[order] if len(ids) else np.zeros(len(order), np.bool_)
        requests.append(order[hit])
        positions.append(window.at(sorting[at[hit]]))
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *requests]), np.concatenate([empty, *positions])


_LOOKUPS: Mapping[By, Callable[[VersionFiles, NDArray[np.uint64]], _Found]] = {
    "position": _by_position,
    "address": _by_address,
    "id": _by_id,
}


def _groups(values: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
    """Return each distinct value with the indices that have it."""
    if not len(values):
        return []
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([np.ones(1, np.bool_), ordered[1:] != ordered[:-1]]))
    return list(zip(ordered[starts].tolist(), np.split(order, starts[1:]), strict=True))


def _read(
    dataset: VersionFiles, places: _Found, columns: Sequence[str] | None, metadata: Sequence[str], blobs: Blobs
) -> pa.Table:
    reader = RowReader(dataset, select_fields(dataset.manifest.fields, columns), metadata, blobs)
    batches: list[pa.RecordBatch] = []
    at = np.zeros(len(places.fragment), np.int64)
    done = 0
    for fragment, group in _groups(places.fragment):
        positions, inverse = np.unique(places.position[group], return_inverse=True)
        at[group] = done + inverse
        done += len(positions)
        part = FragmentReader(reader, fragment)
        batches += part.batches(part.read(positions), len(positions))
    table = pa.Table.from_batches(batches, reader.schema) if batches else reader.empty()
    if len(at) == done and (at == np.arange(done)).all():
        return table
    return table.take(number_array(at))


def sample_rows(dataset: VersionFiles, num_rows: int, chance: Random, columns: Sequence[str] | None) -> pa.Table:
    """Return rows chosen at random, without repetition, in the order of the dataset.

    Parameters
    ----------
    dataset : VersionFiles
        The version.
    num_rows : int
        At most all rows are returned.
    chance : random.Random
        Chooses them; the same ones from the same state.
    columns : sequence of str, optional
        See `projection.select_fields`.

    Raises
    ------
    InvalidArgumentError
        For a negative number of rows.
    """
    if isinstance(num_rows, bool) or not isinstance(num_rows, int) or num_rows < 0:
        raise InvalidArgumentError(f"Found {num_rows!r} rows to sample, expected a whole number from 0 on.")
    total = dataset.count()
    chosen = sorted(chance.sample(range(total), min(num_rows, total)))
    return take_rows(dataset, chosen, columns, "position")
