"""Columns of file actions: the chunks that return them, and what the log's texts hold of partitions and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from delta_core.expressions.ast import FileStatistic
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernels import compute as pc, parts as kernels
from delta_core.kernels.arrow_buffers import int64_values, is_valid, nulls_of, number_array, one_array, values_of
from delta_core.kernels.gather import gather_column
from delta_core.kernels.stats import StatField, parse_stats
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import CheckpointHandle

    Mask = NDArray[np.bool_]

__all__ = [
    "COUNTS",
    "PARTITION",
    "Chunk",
    "Mask",
    "TableChunk",
    "json_statistics",
    "known_counts",
    "partition_text",
    "pick",
    "pick_all",
    "statistic_path",
    "statistic_type",
]

PARTITION = "partition:"
#: Kinds of statistics that count rows.
COUNTS = ("nullCount", "numRecords")


class Chunk(Protocol):
    """Rows of file actions from one place of the log."""

    #: The source of the rows: ``commits``, or a checkpoint part and its row group.
    source: str
    num_rows: int

    @property
    def place(self) -> tuple[CheckpointHandle, int] | None:
        """The checkpoint file and its row group, if the rows come from one."""
        ...

    @property
    def has_statistics_columns(self) -> bool:
        """Whether each statistic is read alone: requesting some of them later costs no more than for all at once."""
        ...

    @property
    def nbytes(self) -> int:
        """The bytes of the columns that it keeps."""
        ...

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns, one row per row of the chunk; rows that hold no file are null in ``path``.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        ...

    def pick(self, names: Sequence[str], rows: Mask) -> list[pa.Array]:
        """Return columns of the rows if ``rows`` is true.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        rows : bool, **shape (n,)**
            Whether each row of the chunk is requested.
        """
        ...

    def statistics(
        self, leaves: Sequence[FileStatistic], rows: Mask | None, keep: bool = True, beside: Sequence[str] = ()
    ) -> list[pa.Array]:
        """Return statistics, of the rows if ``rows`` is true (None: all), null if they are not known.

        ``keep`` False: they are queried once only. ``beside`` are columns that will be requested next: if statistics
        take a pass over text, it serves both.

        Parameters
        ----------
        leaves : sequence of FileStatistic
            The statistics.
        rows : bool, **shape (n,)**, or None
            Whether each row of the chunk is requested; None: all.
        keep : bool
            Whether the columns are kept for the next call.
        beside : sequence of str
            Columns that will be requested next, so that one pass may serve both.
        """
        ...


class TableChunk:
    """A chunk whose columns are all in memory."""

    place: tuple[CheckpointHandle, int] | None
    has_statistics_columns = False

    def __init__(self, table: pa.Table, source: str = "table") -> None:
        self.table: pa.Table = table.combine_chunks()
        self.source = source
        self.place = None
        self.num_rows: int = table.num_rows

    @property
    def nbytes(self) -> int:
        """The bytes of its columns."""
        return int(self.table.nbytes)

    def load(self, names: Sequence[str]) -> list[pa.Array]:
        """Return columns; a missing one is null.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        """
        return [self._column(n) for n in names]

    def pick(self, names: Sequence[str], rows: Mask) -> list[pa.Array]:
        """Return columns of some rows.

        Parameters
        ----------
        names : sequence of str
            Columns of `FILE_COLUMNS`.
        rows : bool, **shape (n,)**
            Whether each row of the chunk is requested.
        """
        return pick_all(self.load(names), rows)

    def _column(self, name: str) -> pa.Array:
        index = self.table.schema.get_field_index(name)
        if index >= 0:
            return one_array(self.table.column(index))
        if name.startswith(PARTITION) and self.table.schema.get_field_index("partitionValues") >= 0:
            return partition_text(one_array(self.table.column("partitionValues")), name.removeprefix(PARTITION))
        return nulls_of(self.num_rows, FILE_COLUMNS.get(name, pa.string()))

    def statistics(
        self, leaves: Sequence[FileStatistic], rows: Mask | None, keep: bool = True, beside: Sequence[str] = ()
    ) -> list[pa.Array]:
        """Return statistics from the column ``stats``.

        Parameters
        ----------
        leaves : sequence of FileStatistic
            The statistics.
        rows : bool, **shape (n,)**, or None
            Whether each row of the chunk is requested; None: all.
        keep : bool
            Whether the columns are kept for the next call.
        beside : sequence of str
            Columns that will be requested next, so that one pass may serve both.
        """
        (text,) = self.load(["stats"])
        return json_statistics(pick(text, rows), leaves)


def pick(column: pa.Array, rows: Mask | None) -> pa.Array:
    """Return the rows of a column for which a mask is true; None: all.

    Parameters
    ----------
    column : pyarrow.Array, **shape (n,)**
        Of any type.
    rows : bool, **shape (n,)**, or None
        The mask.
    """
    return pick_all([column], rows)[0]


def pick_all(columns: Sequence[pa.Array], rows: Mask | None) -> list[pa.Array]:
    """Return the rows of columns for which a mask is true; None: all.

    Parameters
    ----------
    columns : sequence of pyarrow.Array, **shape (n,)** each
        Of any type.
    rows : bool, **shape (n,)**, or None
        The mask.
    """
    if rows is None:
        return list(columns)
    chosen = np.flatnonzero(rows).astype(np.int32)
    if _is_long_run(chosen, len(rows)):
        return [column.slice(int(chosen[0]), len(chosen)) for column in columns]
    return [_picked(column, chosen) for column in columns]


def _is_long_run(chosen: NDArray[np.int32], count: int) -> bool:
    """Whether most rows are picked, one after the other: those of other actions are first, and old files go first."""
    return 2 * len(chosen) > count and int(chosen[-1] - chosen[0]) + 1 == len(chosen)


def _picked(column: pa.Array, chosen: NDArray[np.int32]) -> pa.Array:
    if len(chosen) == len(column):
        return column
    if column.null_count == len(column):
        return nulls_of(len(chosen), column.type)
    return gather_column(column, chosen, decode=False)


def statistic_path(leaf: FileStatistic) -> Path:
    """Return where a statistic is in the statistics object of a file. Protocol: Per-file Statistics.

    Parameters
    ----------
    leaf : FileStatistic
        The statistic.
    """
    top = {"min": "minValues", "max": "maxValues"}.get(leaf.kind, leaf.kind)
    return (top,) if leaf.kind in ("numRecords", "tightBounds") else (top, *leaf.path)


def statistic_type(leaf: FileStatistic) -> pa.DataType:
    """Return the Arrow type of a statistic.

    Parameters
    ----------
    leaf : FileStatistic
        The statistic.
    """
    if leaf.kind in COUNTS:
        return pa.int64()
    return pa.bool_() if leaf.kind == "tightBounds" else leaf.type.to_arrow()


def json_statistics(text: pa.Array, leaves: Sequence[FileStatistic]) -> list[pa.Array]:
    """Return statistics from their JSON text, each with the leaf's own type.

    Parameters
    ----------
    text : string array, **shape (n,)**
        The column ``stats``; null = the file has none.
    leaves : sequence of FileStatistic
        The statistics.
    """
    fields = [StatField(statistic_path(w), _statistic_kind(w)) for w in leaves]
    found = zip(parse_stats(text, fields), leaves, strict=True)
    return [known_counts(w, _as(c, statistic_type(w))) for c, w in found]


def known_counts(leaf: FileStatistic, column: pa.Array) -> pa.Array:
    """Return a statistic as it may be believed: of counts, those below 0 are null, that is unknown.

    Parameters
    ----------
    leaf : FileStatistic
        The statistic.
    column : pyarrow.Array, **shape (n,)**
        Its values; nulls stay.
    """
    if leaf.kind not in COUNTS or column.null_count == len(column):
        return column
    counts = int64_values(column)
    sound = counts >= 0
    if sound.all():
        return column
    return number_array(counts, column.type, sound & is_valid(column))


def _statistic_kind(leaf: FileStatistic) -> str:
    if leaf.kind in COUNTS:
        return "long"
    return "boolean" if leaf.kind == "tightBounds" else str(leaf.type.type)


def _as(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast a bound; values that the type can't hold become null, that is unknown."""
    if column.type == target:
        return column
    try:
        return kernels.checked_cast(column, target)
    except pa.ArrowInvalid:
        return pa.array([_try_cast(v, target) for v in column], target)


def _try_cast(value: Any, target: pa.DataType) -> Any:
    try:
        return kernels.checked_cast(value, target).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def partition_text(values: Any, key: str) -> pa.DictionaryArray:
    """Return one key's values of a partitionValues column as dictionary<int32, string>, null if absent.

    Parameters
    ----------
    values : pyarrow.MapArray
        Keys and values may be dictionary-encoded.
    key : str
        The partition column's physical name.
    """
    keys, items = _dictionary(values.keys), _dictionary(values.items)
    names = keys.dictionary.to_pylist()
    code = names.index(key) if key in names else -1
    offsets = values_of(values.offsets)
    found = values_of(keys)[offsets[0] : offsets[-1]] == code
    place = _place_in_each(found, offsets) if code >= 0 else None
    if place is not None:
        entries = items.slice(offsets[0], len(found))
        step = len(found) // len(values)
        return entries if step == 1 else _every(entries, place, step)
    codes = np.full(len(values), -1, np.int32)
    if code >= 0:
        positions = offsets[0] + np.flatnonzero(found)
        picked = np.where(is_valid(items.indices), values_of(items), -1)
        codes[_rows_of(positions, offsets)] = picked[positions]
    return pa.DictionaryArray.from_arrays(number_array(codes, valid=codes >= 0), items.dictionary)


def _place_in_each(found: NDArray[np.bool_], offsets: NDArray[Any]) -> int | None:
    """Return the place of the one entry that is found in each list, if it is the same in all, which have one length."""
    count = len(offsets) - 1
    step = len(found) // count if count else 0
    if not step or not (np.diff(offsets) == step).all():
        return None
    place = int(found[:step].argmax())
    return place if found[place::step].all() and np.count_nonzero(found) == count else None


def _every(entries: pa.DictionaryArray, first: int, step: int) -> pa.DictionaryArray:
    """Return every n-th entry."""
    valid = is_valid(entries.indices)[first::step] if entries.null_count else None
    codes = number_array(np.ascontiguousarray(values_of(entries)[first::step]), valid=valid)
    return pa.DictionaryArray.from_arrays(codes, entries.dictionary)


def _rows_of(entries: NDArray[Any], offsets: NDArray[Any]) -> NDArray[Any] | slice:
    """Return the rows of lists that entries are in, ascending."""
    # most often every row has each key once
    if len(entries) == len(offsets) - 1 and (entries >= offsets[:-1]).all() and (entries < offsets[1:]).all():
        return slice(None)
    rows: NDArray[Any] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    found: NDArray[Any] = rows[entries - offsets[0]]
    return found


def _dictionary(column: pa.Array) -> Any:
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
