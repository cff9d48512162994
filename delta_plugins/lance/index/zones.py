"""Indices that have facts about zones of rows. Protocol: ZoneMapIndexDetails, BloomFilterIndexDetails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.kernels.arrow_buffers import mask_of, number_array, string_bytes, string_ends, values_of
from delta_plugins.lance._metadata import may_have_any
from delta_plugins.lance.index.files import IndexFile
from delta_plugins.lance.index.keys import required_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.index.conditions import Condition
    from delta_plugins.lance.index.listing import Index
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["bloom_filter_rows", "zone_map_rows"]

#: Zones are used if they leave out at least this part of the rows.
_LEAST_PART = 0.25


def zone_map_rows(dataset: VersionFiles, index: Index, condition: Condition) -> Any:
    """Return the addresses, uint64[n], of rows for which a condition may be true; or why they are not known.

    Raises
    ------
    DataFileError
        If the index is damaged.
    """
    file = IndexFile(dataset, index, "zonemap.lance")
    if file.type_of("min") != condition.type:
        return f"its values have the type {file.type_of('min')}"
    least, greatest, nulls = file.read(["min", "max", "null_count"])
    zones = _Zones(dataset, index, file)
    bounds = {"min": least, "max": greatest, "nullCount": number_array(values_of(nulls).astype(np.int64))}
    is_float = pa.types.is_floating(condition.type)
    if is_float:
        # NaN may be the least, or may not count
        [nans] = file.read(["nan_count"])
        known = values_of(nans) == 0
        bounds |= {
            n: number_array(values_of(bounds[n]), valid=known & bounds[n].is_valid().to_numpy(False))
            for n in ("min", "max")
        }
    return zones.rows(condition.may_be_true(bounds, zones.lengths))


def bloom_filter_rows(dataset: VersionFiles, index: Index, condition: Condition) -> Any:
    """Return the addresses, uint64[n], of rows for which a condition may be true; or why they are not known.

    Raises
    ------
    DataFileError
        If the index is damaged.
    """
    values = required_values(condition)
    if values is None:
        return "it answers equality, IN and IS NULL"
    file = IndexFile(dataset, index, "bloomfilter.lance")
    zones = _Zones(dataset, index, file)
    has_null = file.read_as("has_null", pa.bool_())
    may_pass = mask_of(has_null) if values.with_null else np.zeros(len(has_null), np.bool_)
    if values.keys:
        may_pass = may_pass | _may_have_any(file, values.keys)
    return zones.rows(may_pass)


def _may_have_any(file: IndexFile, keys: Sequence[bytes]) -> NDArray[np.bool_]:
    """Return which zones may have a key."""
    filters = file.read_as("bloom_filter_data", pa.binary())
    found = np.zeros(len(filters), np.uint8)
    if not len(filters):
        return found.view(np.bool_)
    ends = np.ascontiguousarray(string_ends(filters), np.int64)
    key_ends = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    damaged = may_have_any(string_bytes(filters), ends, b"".join(keys), key_ends, found)
    if damaged >= 0:
        raise file.damaged(f"the filter of zone {damaged} has {len(filters[damaged].as_py())} bytes")
    return found.view(np.bool_)


class _Zones:
    """The zones of an index: each one begins at a row of a fragment, and ends where the next one begins.

    Lengths of zones are not used: of rows that were deleted before, writers may count some or none.
    """

    def __init__(self, dataset: VersionFiles, index: Index, file: IndexFile) -> None:
        ids, starts, lengths = (
            values_of(file.read_as(name, pa.uint64())).astype(np.int64)
            for name in ("fragment_id", "zone_start", "zone_length")
        )
        self._file = file
        self._dataset = dataset
        self._is_covered = index.fragments
        self._fragment = dataset.manifest.fragments.find(ids)
        self._start = starts
        #: Rows of each zone, with those that were deleted as far as the writer counted them.
        self.lengths = lengths

    def rows(self, is_kept: NDArray[np.bool_]) -> Any:
        """Return the addresses of the rows of zones, uint64[n]; or why they are not worth it."""
        listed, rows_of = self._dataset.manifest.fragments, self._dataset.all_rows()
        order = np.lexsort((self._start, self._fragment))
        fragment, start, kept = self._fragment[order], self._start[order], is_kept[order]
        is_there = fragment >= 0
        fragment, start, kept = fragment[is_there], start[is_there], kept[is_there]
        if len(start) and ((start < 0) | (start > rows_of[fragment])).any():
            raise self._file.damaged(f"a zone begins at row {int(start.max())} of a fragment with fewer rows")
        is_first = np.concatenate([np.ones(min(len(fragment), 1), np.bool_), fragment[1:] != fragment[:-1]])
        start = np.where(is_first, 0, start)
        is_last = np.concatenate([is_first[1:], np.ones(min(len(fragment), 1), np.bool_)])
        stop = np.where(is_last, rows_of[fragment], np.concatenate([start[1:], np.zeros(min(len(start), 1), np.int64)]))
        # fragments without zones: all of their rows may pass
        without = self._is_covered.copy()
        without[fragment] = False
        rest = np.flatnonzero(without)
        at = np.concatenate([fragment[kept], rest])
        first = np.concatenate([start[kept], np.zeros(len(rest), np.int64)])
        count = np.concatenate([stop[kept], rows_of[rest]]) - first
        total = int(rows_of[self._is_covered].sum())
        if int(count.sum()) > (1 - _LEAST_PART) * total:
            return f"its zones leave out {max(total - int(count.sum()), 0)} of {total} rows"
        offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        addresses = np.repeat((listed.id[at] << 32) + first, count) + offset
        return addresses.astype(np.uint64)
