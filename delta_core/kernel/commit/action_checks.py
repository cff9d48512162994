"""Checks of staged file actions: every reader of the protocol has to support them.

Protocol: Add File and Remove File; Add CDC File. The checks are of whole columns: a file costs no Python object, unless
its statistics lack a count of rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from delta_core.errors import InvalidArgumentError, LogError, UnsupportedFeatureError
from delta_core.kernel.commit.base import TableBase
from delta_core.kernel.commit.intents import REMOVED_FILE, ROW_COUNT, Reads
from delta_core.kernel.log.indexed_columns import statistics_fields
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.plugins.registry import PluginSet
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.protocol.actions import ADD_FIELDS, ADDED_FILE, CHANGE_FILE, FILE_COLUMNS
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, is_valid, mask_of, number_array, one_array, strings_of
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.stats import parse_stats, unreadable_stats
from delta_core.schema.fields import format_path

__all__ = ["check_added", "check_removed", "typed_files"]

#: Fields that each action must have, in every table.
_REQUIRED = {
    "add": ("path", "partitionValues", "size", "modificationTime", "dataChange"),
    "remove": ("path", "dataChange"),
    "cdc": ("path", "partitionValues", "size"),
}
_SCHEMAS = {"add": ADDED_FILE, "remove": REMOVED_FILE, "cdc": CHANGE_FILE}
#: Fields of adds that mean something with a table feature only: it permits ``add.<field>``.
_OF_FEATURES = tuple(n for n in ADD_FIELDS if n not in (*_REQUIRED["add"], "stats", "tags"))


def typed_files(files: Any, action: str, declared: Collection[str] | None) -> pa.Table:
    """Return files with the types of their action; reject a column or a value that it can't have, or that is missing.

    Parameters
    ----------
    files : pyarrow.Table, or any object with ``__arrow_c_stream__`` or ``__arrow_c_array__``
        Files to stage, a row each.
    action : str
        ``add``, ``remove`` or ``cdc``.
    declared : collection of str or None
        Fields that features of the table add to the action; None if the table is not defined yet.

    Raises
    ------
    InvalidArgumentError
        Naming the column, and the first row that is wrong.
    """
    if not isinstance(files, pa.Table):
        files = _table_of(files, action)
    schema = _SCHEMAS[action]
    missing = [n for n in _REQUIRED[action] if n not in files.column_names]
    if missing:
        raise InvalidArgumentError(
            f"The files to {action} have no column {missing[0]}; expected {', '.join(_REQUIRED[action])}, and any of "
            f"{', '.join(n for n in schema.names if n not in _REQUIRED[action])}.",
            column=missing[0],
        )
    known = {*schema.names, *FILE_COLUMNS, *(declared or ())}
    for name in files.column_names:
        if declared is not None and name not in known and not name.startswith("partition:"):
            raise InvalidArgumentError(
                f"The files to {action} have a column {name!r}, which is no field of the action and none of the "
                f"table's features; expected some of {', '.join(schema.names)}.",
                column=name,
            )
        if name in schema.names and files.column(name).type != schema.field(name).type:
            index = files.schema.get_field_index(name)
            files = files.set_column(index, name, _typed(files.column(name), schema.field(name), action))
    for name in _REQUIRED[action]:
        column = files.column(name)
        if column.null_count:
            raise _wrong(files, int(np.argmin(is_valid(column))), action, name, "null", "a value")
    empty = pc.equal(pc.binary_length(files.column("path")), 0)
    _reject(files, empty, action, "path", "the path of a file, relative to the table or a URI")
    if "size" in files.column_names:
        _reject(files, pc.less(files.column("size"), 0), action, "size", "bytes, 0 or more")
    return files


def _table_of(files: Any, action: str) -> pa.Table:
    """Return files of another Arrow library as a table."""
    is_arrow = hasattr(files, "__arrow_c_stream__") or hasattr(files, "__arrow_c_array__")
    try:
        if is_arrow:
            return pa.table(files)
    except (pa.ArrowException, ValueError) as e:
        raise InvalidArgumentError(
            f"Found the files to {action} as {type(files).__name__}, which has no columns: {e}."
        ) from e
    raise InvalidArgumentError(
        f"Found the files to {action} as {type(files).__name__}, expected Arrow data (anything with "
        "__arrow_c_stream__), such as a pyarrow.Table."
    )


def check_added(files: pa.Table, table: TableState, plugins: PluginSet, timezone: str) -> None:
    """Reject new files that a reader of the table would misread, or call damaged.

    Parameters
    ----------
    files : pyarrow.Table
        Files to add that `typed_files` returned. Those that were live before (``fresh`` is false) stay as they are.
    table : TableState
        The table as the transaction leaves it.
    plugins : PluginSet
        Its features.
    timezone : str
        The zone of timestamps without one in partition values.

    Raises
    ------
    InvalidArgumentError
        For partition values or statistics that are wrong, naming column and row.
    UnsupportedFeatureError
        For a field whose feature the table does not support.
    """
    if "fresh" in files.column_names:
        files = pc.filter(files, pc.fill_null(files.column("fresh"), True))
    if not files.num_rows:
        return
    permitted = {n for f in plugins.features.values() for n in f.permits}
    for name in _OF_FEATURES:
        present = name in files.column_names and files.column(name).null_count < files.num_rows
        if present and f"add.{name}" not in permitted:
            row = int(np.argmax(is_valid(files.column(name))))
            raise UnsupportedFeatureError(
                f"Row {row} of the files to add ({_path(files, row)}) has a value of {name}, and no feature of the "
                f"table permits it ({', '.join(plugins.features) or 'it has none'}). Add the feature first, or leave "
                "the value out.",
                column=name,
            )
    _check_vectors(files)
    _check_partition_values(files, table, timezone)
    _check_statistics(files, table)


def check_removed(pieces: Iterable[pa.Table], reads: Reads, base: TableBase | None) -> None:
    """Reject the removal of a file that is not live.

    Parameters
    ----------
    pieces : iterable of pyarrow.Table
        Files to remove that `typed_files` returned.
    reads : Reads
        Files that the transaction read are live.
    base : TableBase or None
        The version that it began on.

    Raises
    ------
    InvalidArgumentError
        Naming the first file that is not there.
    """
    removed = [p for p in pieces if p.num_rows]
    if not removed:
        return
    known = KeySet()
    for files in reads.files:
        known.insert(files.column("path"), files.column("dvId"))
    unread = [p for p in removed if not known.contains(p.column("path"), _vector_ids(p)).all()]
    if not unread:
        return
    if base is not None:
        live = base.files.columns(["path", "dvId"])
        known.insert(live.column("path"), live.column("dvId"))
    for files in unread:
        found = known.contains(files.column("path"), _vector_ids(files))
        if not found.all():
            row = int(np.argmin(found))
            vector = _vector_ids(files)[row].as_py()
            raise InvalidArgumentError(
                f"Row {row} of the files to remove ({_path(files, row)}"
                f"{f', deletion vector {vector}' if vector else ''}) is no live file of "
                f"{'the table' if base is None else f'version {base.version}'}. Remove files as snapshot.files returns "
                "them, with dvId.",
                path=files.column("path")[row].as_py(),
            )


def _vector_ids(files: pa.Table) -> pa.ChunkedArray:
    if "dvId" in files.column_names:
        return files.column("dvId")
    return pa.chunked_array([pa.nulls(files.num_rows, pa.string())])


def _typed(column: pa.ChunkedArray, field: pa.Field, action: str) -> pa.ChunkedArray:
    found = column.type
    fits = pa.types.is_null(found) or pa.types.is_string(field.type) == _is_text(found)
    if fits and not pa.types.is_floating(found):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return pc.cast(column, field.type)
    raise InvalidArgumentError(
        f"The files to {action} have the column {field.name} as {found}, expected {field.type}.", column=field.name
    )


def _is_text(t: pa.DataType) -> bool:
    text = pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)
    return text or (pa.types.is_dictionary(t) and _is_text(t.value_type))


def _check_vectors(files: pa.Table) -> None:
    if "deletionVector" not in files.column_names:
        return
    vectors = one_array(files.column("deletionVector"))
    if vectors.null_count == len(vectors):
        return
    present = is_valid(vectors)
    fields = dict(zip((f.name for f in vectors.type), vectors.flatten(), strict=True))
    # Deletion Vector Descriptor Schema: only the offset may be null
    for name in ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"):
        absent = present & ~is_valid(fields[name]) if name in fields else present
        _reject(files, absent, "add", "deletionVector", f"a descriptor with {name}")
    known = mask_of(pc.is_in(fields["storageType"], value_set=strings_of(["u", "i", "p"])))
    _reject(files, present & ~known, "add", "deletionVector", "a storageType of u, i or p")


def _check_partition_values(files: pa.Table, table: TableState, timezone: str) -> None:
    """Each file has each partition column, by physical name, once, with a text of the column's type."""
    physical = dict(zip(table.schema.names, table.column_map.physical.names, strict=True))
    names = [physical[c] for c in table.partition_columns]
    values = one_array(files.column("partitionValues"))
    offsets = int64_values(values.offsets)
    lengths = np.diff(offsets)
    if not names and not lengths.any():
        return
    entries = slice(int(offsets[0]), int(offsets[-1]))
    keys = values.keys[entries]
    places = int64_values(pc.fill_null(pc.index_in(keys, value_set=strings_of(names)), -1))
    order = _order(places, lengths, len(names))
    if order is None:
        row = _first_odd(places, lengths, len(names))
        found = [k for k, _ in files.column("partitionValues")[row].as_py()]
        raise _wrong(files, row, "add", "partitionValues", f"{found}", f"one value for each of {names}")
    for number, column in enumerate(table.partition_columns):
        texts = pc.take(values.items[entries], number_array(np.ascontiguousarray(order[:, number])))
        _check_texts(files, texts, column, table, timezone)


def _order(places: NDArray[np.int64], lengths: NDArray[np.int64], count: int) -> NDArray[np.int64] | None:
    """Return the entry of each column for each file, int64[n_files, n_columns]; None if a file has others."""
    if (lengths != count).any() or (places < 0).any():
        return None
    rows = places.reshape(-1, count)
    order = np.argsort(rows, axis=1, kind="stable")
    if (np.take_along_axis(rows, order, 1) != np.arange(count)).any():
        return None
    found: NDArray[np.int64] = order + np.arange(0, rows.size, max(count, 1), dtype=np.int64)[:, None]
    return found


def _first_odd(places: NDArray[np.int64], lengths: NDArray[np.int64], count: int) -> int:
    ends = np.cumsum(lengths)
    for row, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        if sorted(places[end - length : end]) != list(range(count)):
            return row
    return 0


def _check_texts(files: pa.Table, texts: pa.Array, column: str, table: TableState, timezone: str) -> None:
    field = table.schema.get(column)
    assert field is not None
    try:
        values = parse_partition_values(texts, field.type, timezone, column=column, types=table.types)
    except LogError as e:
        text = e.facts.get("value")
        row = texts.to_pylist().index(text)
        raise _wrong(files, row, "add", "partitionValues", repr(text), f"a {field.type.type} for {column}") from e
    if not field.nullable and values.null_count:
        _reject(files, ~is_valid(values), "add", "partitionValues", f"a value for {column}, which is NOT NULL")


def _check_statistics(files: pa.Table, table: TableState) -> None:
    if "stats" not in files.column_names:
        return
    stats = one_array(files.column("stats"))
    (counts,) = parse_stats(stats, [ROW_COUNT])
    _reject(files, pc.less(counts, 0), "add", "stats", "numRecords of 0 or more")
    for row in np.flatnonzero(~is_valid(counts) & is_valid(stats)):
        text = stats[int(row)].as_py()
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "numRecords" in found:
            expected = "a JSON object, whose numRecords is a whole number; leave it null if there are none"
            raise _wrong(files, int(row), "add", "stats", repr(text[:100]), expected)
    fields = statistics_fields(table)
    for (field, column), wrong in zip(fields.items(), unreadable_stats(stats, list(fields)), strict=True):
        _reject(files, wrong, "add", "stats", f"a {field.kind} in {field.path[0]} for {format_path(column)}")


def _reject(
    files: pa.Table, wrong: NDArray[np.bool_] | pa.Array | pa.ChunkedArray, action: str, column: str, expected: str
) -> None:
    """Raise for the first row that is wrong, if any."""
    found = wrong if isinstance(wrong, np.ndarray) else mask_of(one_array(wrong))
    if found.any():
        row = int(np.argmax(found))
        raise _wrong(files, row, action, column, repr(files.column(column)[row].as_py()), expected)


def _wrong(files: pa.Table, row: int, action: str, column: str, found: str, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Row {row} of the files to {action} ({_path(files, row)}): {column} is {found}, expected {expected}.",
        column=column,
        row=row,
    )


def _path(files: pa.Table, row: int) -> str:
    return f"path {files.column('path')[row].as_py()!r}"
