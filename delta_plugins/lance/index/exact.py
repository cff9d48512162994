"""Indices that list the rows of each value. Protocol: BTreeIndexDetails, BitmapIndexDetails, LabelListIndexDetails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core import api
from delta_core.api import CorruptTableError
from delta_core.kernels.arrow_buffers import number_array, values_of
from delta_core.kernels.row_set import RowSet
from delta_plugins.lance.index.files import IndexFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_plugins.lance.files import Rows
    from delta_plugins.lance.index.conditions import Condition
    from delta_plugins.lance.index.listing import Index
    from delta_plugins.lance.version_files import VersionFiles

__all__ = ["bitmap_rows", "btree_rows", "label_rows"]

#: Entries of a page, if the file does not specify it.
_BATCH_SIZE = 4096
#: A tree is used if at most this part of its pages, or this number of them, has to be read.
_MOST_PART, _FEW_PAGES = 0.5, 16
_LABELS = "it answers array_contains of a constant"


def btree_rows(dataset: VersionFiles, index: Index, condition: Condition) -> Any:
    """Return the ids, or addresses, uint64[n], of rows for which a condition is true; or why they are not known.

    Reads only those pages of the sorted values that may have one for which it is true.

    Raises
    ------
    DataFileError
        If the index is damaged.
    """
    lookup = IndexFile(dataset, index, "page_lookup.lance")
    if lookup.metadata.get("range_partitioned", b"false") != b"false":
        return "its pages are in several files"
    if lookup.type_of("min") != condition.type:
        return f"its values have the type {lookup.type_of('min')}"
    least, greatest, nulls, pages = lookup.read(["min", "max", "null_count", "page_idx"])
    data = IndexFile(dataset, index, "page_data.lance")
    name = data.first_of("ids", "row_ids")  # the latter is that of writers before 0.39
    if data.type_of("values") != condition.type or data.type_of(name) != pa.uint64():
        raise data.damaged(f"its columns have the types {data.type_of('values')} and {data.type_of(name)}")
    text = lookup.metadata.get("batch_size", b"%d" % _BATCH_SIZE)
    size = int(text) if text.isdigit() and len(text) < 10 else 0
    numbers = values_of(pages).astype(np.int64)
    count = -(-data.num_rows // size) if size else 0
    if len(numbers) != count or not _are_all(numbers):
        raise lookup.damaged(f"it lists {len(numbers)} pages of {size} entries, but there are {data.num_rows} entries")
    rows = np.minimum(size, data.num_rows - numbers * size)
    bounds = {"min": least, "max": greatest, "nullCount": number_array(values_of(nulls).astype(np.int64))}
    chosen = np.sort(numbers[condition.may_be_true(bounds, rows)])
    if len(chosen) > max(_FEW_PAGES, _MOST_PART * count):
        return f"{len(chosen)} of its {count} pages may have rows that pass"
    values, ids = data.read(["values", name], _rows_of(chosen, size, data.num_rows))
    found: NDArray[np.uint64] = values_of(ids)[condition.is_true(values)]
    return found


def _are_all(numbers: NDArray[np.int64]) -> bool:
    """Return whether each number from 0 on is there once."""
    expected = np.arange(len(numbers))
    return bool((numbers == expected).all() or (np.sort(numbers) == expected).all())


def _rows_of(pages: NDArray[np.int64], size: int, num_rows: int) -> Rows:
    """Return the rows of pages, which rise; neighbouring pages are one range."""
    if len(pages) and pages[-1] - pages[0] < len(pages):
        return int(pages[0]) * size, min(int(pages[-1] + 1) * size, num_rows)
    at = (pages[:, None] * size + np.arange(size)).ravel()
    return at[at < num_rows]


def bitmap_rows(dataset: VersionFiles, index: Index, condition: Condition) -> Any:
    """Return the ids, or addresses, uint64[n], of rows for which a condition is true; or why they are not known.

    Raises
    ------
    DataFileError
        If the index is damaged.
    """
    file = IndexFile(dataset, index, "bitmap_page_lookup.lance")
    if file.type_of("keys") != condition.type:
        return f"its values have the type {file.type_of('keys')}"
    [keys] = file.read(["keys"])
    [maps] = file.read(["bitmaps"], np.flatnonzero(condition.is_true(keys)))
    parts = [p for m in maps for p in _parsed(dataset, index, m.as_buffer(), file)]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def label_rows(dataset: VersionFiles, index: Index, condition: Condition) -> Any:
    """Return the ids, or addresses, uint64[n], of rows whose list has a label; or why they are not known.

    The only condition that is answered is ``array_contains`` of a constant.

    Raises
    ------
    DataFileError
        If the index is damaged.
    """
    e = condition.expression
    if not isinstance(e, api.Call) or e.function != "array_contains" or not pa.types.is_list(condition.type):
        return _LABELS
    if e.args[0] != condition.column or not isinstance(e.args[1], api.Literal):
        return _LABELS
    equals = api.Call("=", (condition.column, e.args[1]))
    return bitmap_rows(dataset, index, replace(condition, expression=equals, type=condition.type.value_type))


def _parsed(dataset: VersionFiles, index: Index, data: pa.Buffer, file: IndexFile) -> list[NDArray[np.uint64]]:
    """Return the ids of a map of bitmaps: the upper 32 bits of ids are keys, each with a bitmap of the lower ones."""
    view = memoryview(data)
    if len(view) < 4:
        raise file.damaged(f"a bitmap has {len(view)} bytes")
    found, at = [], 4
    for _ in range(int.from_bytes(view[:4], "little")):
        if len(view) - at < 8:
            raise file.damaged(f"a bitmap ends after {len(view)} bytes")
        key, size = (int.from_bytes(view[i : i + 4], "little") for i in (at, at + 4))
        at += 8
        if size > len(view) - at:
            raise file.damaged(f"a bitmap of {size} bytes ends after {len(view) - at}")
        lower = _all_rows(dataset, index, key, file) if not size else _positions(view[at : at + size], file)
        found.append(lower.astype(np.uint64) | np.uint64(key << 32))
        at += size
    if at != len(view):
        raise file.damaged(f"{len(view) - at} bytes follow its last bitmap")
    return found


def _positions(data: memoryview, file: IndexFile) -> NDArray[np.int64]:
    try:
        return RowSet.from_roaring(data, 32).positions()
    except CorruptTableError as e:
        raise file.damaged(f"a bitmap can't be decoded, {e}") from None


def _all_rows(dataset: VersionFiles, index: Index, key: int, file: IndexFile) -> NDArray[np.int64]:
    if not index.has_addresses:
        raise file.damaged("a bitmap has all 4294967296 ids with the same upper 32 bits")
    [fragment] = dataset.manifest.fragments.find(np.array([key])).tolist()
    return np.arange(dataset.physical_rows(fragment) if fragment >= 0 else 0)
