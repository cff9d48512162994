"""Rows of a batch picked by mask or index, with dictionary encoded strings turned into plain ones on the way.

Columns of fixed width, booleans and strings go through compiled code in one pass each, and so do the parts of maps;
other columns through Arrow's ``take``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.errors import DataFileError, InvalidArgumentError
from delta_core.kernels import _gather, compute as pc
from delta_core.kernels.arrow_buffers import (
    bool_array,
    is_valid,
    mask_of,
    null_array,
    number_array,
    values_of,
    without_views,
)
from delta_core.kernels.memory import allocate
from delta_core.kernels.nested import empty_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int32]

__all__ = ["SelectionVector", "as_views", "check_rows", "gather", "gather_column"]

#: Of a string view.
_VIEW_BYTES = 16
#: Strings of shorter batches are not worth being turned into views.
_FEW_ROWS = 8_192


class SelectionVector:
    """Which rows of a batch are requested: those that a mask keeps, or those of an index, in its order.

    Made by `of_mask`, `of_flags` and `of_indices`, each of which checks that the rows are rows of the batch. A mask
    that keeps most rows is several times faster.
    """

    __slots__ = ("_indices", "count", "mask", "num_rows")

    def __init__(self, num_rows: int, count: int, mask: NDArray[np.uint64] | None, indices: Rows | None) -> None:
        #: Rows of the batch.
        self.num_rows: int = num_rows
        #: Rows that are requested.
        self.count: int = count
        #: Which ones, by bits; None if they were given as indices.
        self.mask: NDArray[np.uint64] | None = mask
        self._indices = indices

    @classmethod
    def of_mask(cls, mask: NDArray[np.uint64], num_rows: int) -> SelectionVector:
        """Pick rows by bits.

        Parameters
        ----------
        mask : uint64, **shape (n,)**
            Bit ``i % 64``, least significant first, of word ``i // 64`` = row ``i`` is requested; bits after the last
            row are ignored.
        num_rows : int
            Of the batch; InvalidArgumentError if the mask has fewer bits.
        """
        return cls(num_rows, _gather.count_kept(mask, num_rows), mask, None)

    @classmethod
    def of_flags(cls, flags: NDArray[np.bool_]) -> SelectionVector:
        """Pick the rows at which a bool array, **shape (num_rows,)**, is true.

        Parameters
        ----------
        flags : bool, **shape (num_rows,)**
            True: the row is picked. Copied.
        """
        mask = np.zeros((len(flags) + 63) // 64, np.uint64)
        bits = np.packbits(flags, bitorder="little")
        mask.view(np.uint8)[: len(bits)] = bits
        return cls.of_mask(mask, len(flags))

    @classmethod
    def where(cls, condition: pa.BooleanArray) -> SelectionVector:
        """Pick the rows for which a condition is true, neither false nor null.

        Parameters
        ----------
        condition : bool array, **shape (num_rows,)**
            Slices are allowed. Copied.
        """
        if condition.offset % 8 or not len(condition):
            return cls.of_flags(mask_of(condition))
        mask = np.zeros((len(condition) + 63) // 64, np.uint64)
        packed = mask.view(np.uint8)[: (len(condition) + 7) // 8]
        start = condition.offset // 8
        valid, values = condition.buffers()
        packed[:] = np.frombuffer(values, np.uint8)[start : start + len(packed)]
        if valid is not None and condition.null_count:
            packed &= np.frombuffer(valid, np.uint8)[start : start + len(packed)]
        return cls.of_mask(mask, len(condition))

    @classmethod
    def of_indices(cls, indices: Rows, num_rows: int) -> SelectionVector:
        """Pick rows by int32 indices, **shape (n,)**; InvalidArgumentError for one that is no row of the batch.

        Parameters
        ----------
        indices : int32, **shape (n,)**
            From 0 to ``num_rows - 1``, in any order, repeated ones too. Shared, not copied.
        num_rows : int
            Rows of the batch.
        """
        check_rows(indices, num_rows)
        return cls(num_rows, len(indices), None, indices)

    def __len__(self) -> int:
        return self.count

    @property
    def stop(self) -> int:
        """The index after the last of the rows; 0 if there is none."""
        if self.mask is None:
            return int(self.indices.max()) + 1 if self.count else 0
        words = np.flatnonzero(self.mask[: (self.num_rows + 63) // 64])
        if not len(words):
            return 0
        last = int(words[-1])
        return min(64 * last + int(self.mask[last]).bit_length(), self.num_rows)

    def part(self, start: int, stop: int) -> SelectionVector:
        """Return those among the rows ``start`` to ``stop``, as rows of a batch of these; cheapest at multiples of 64.

        Parameters
        ----------
        start, stop : int
            Rows of the batch, ``0 <= start <= stop <= num_rows``.

        Raises
        ------
        InvalidArgumentError
            For rows that are not in the batch.
        """
        if not 0 <= start <= stop <= self.num_rows:
            raise InvalidArgumentError(f"rows {start} to {stop} are no part of {self.num_rows} rows")
        if self.mask is None or start % 64:
            return SelectionVector.of_flags(self.flags()[start:stop])
        return SelectionVector.of_mask(self.mask[start // 64 : (stop + 63) // 64], stop - start)

    def narrowed(self, inner: SelectionVector) -> SelectionVector:
        """Return those of the picked rows that a second selection, of as many rows as are picked, keeps.

        Parameters
        ----------
        inner : SelectionVector
            Over the ``count`` picked rows, in their order.

        Raises
        ------
        InvalidArgumentError
            For a selection of another number of rows.
        """
        if inner.num_rows != self.count:
            raise InvalidArgumentError(f"a selection of {inner.num_rows} rows does not fit {self.count} picked rows")
        if self.mask is not None and inner.mask is not None:
            words = _gather.narrow(self.mask, self.num_rows, inner.mask, self.count)
            return SelectionVector(self.num_rows, inner.count, words, None)
        return SelectionVector(self.num_rows, inner.count, None, self.indices[inner.indices])

    def words(self) -> NDArray[np.uint64]:
        """Return the mask; made if the rows were given as indices.

        Returns
        -------
        uint64, **shape (m,)**, with at least ``num_rows`` bits
            As `of_mask` takes it.
        """
        mask = self.masked().mask
        assert mask is not None
        return mask

    def masked(self) -> SelectionVector:
        """Return the same rows with a mask of them, which pages are decoded by."""
        return self if self.mask is not None else SelectionVector.of_flags(self.flags())

    def flags(self) -> NDArray[np.bool_]:
        """Return whether each row is picked, **shape (num_rows,)**."""
        if self.mask is not None:
            bits = np.unpackbits(self.mask.view(np.uint8), count=self.num_rows, bitorder="little")
            return bits.view(np.bool_)
        out = np.zeros(self.num_rows, np.bool_)
        out[self._indices] = True
        return out

    @property
    def indices(self) -> Rows:
        """Indices of the rows, **shape (n,)**."""
        if self._indices is None:
            assert self.mask is not None
            self._indices = _gather.kept_indices(self.mask, self.num_rows)
        return self._indices


def gather(batch: pa.RecordBatch, selection: SelectionVector | None, decode: bool = True) -> pa.RecordBatch:
    """Return rows of a batch, in the order in which they are picked.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, **num_rows rows**
        Columns of type ``dictionary<int32, string>`` come back as strings.
    selection : SelectionVector, or None
        A selection of ``num_rows`` rows; None: all rows, and columns that need no decoding are passed through.
    decode : bool
        False leaves dictionary encoded strings as they are.

    Returns
    -------
    pyarrow.RecordBatch, **n rows**
        The rows that are picked, in their order.

    Raises
    ------
    DataFileError
        Offsets or dictionary codes that lead outside their column.
    """
    if selection is not None:
        if not batch.num_columns:
            return empty_rows(len(selection))
        arrays = [gather_column(c, selection, decode) for c in batch.columns]
    elif not decode:
        return batch
    else:
        coded = [i for i, t in enumerate(batch.schema.types) if t.id == pa.lib.Type_DICTIONARY]
        if not coded:
            return batch
        arrays = batch.columns
        for i in coded:
            arrays[i] = gather_column(arrays[i], None)
    return pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def check_rows(rows: Rows, num_rows: int) -> None:
    """Reject indices that are not rows of a batch of ``num_rows``, with InvalidArgumentError.

    Parameters
    ----------
    rows : int32, **shape (n,)**
        The indices; no nulls.
    num_rows : int
        Rows of the batch.
    """
    _gather.check_rows(rows, num_rows)


def gather_column(array: pa.Array[Any], selection: SelectionVector | Rows | None, decode: bool = True) -> pa.Array[Any]:
    """Return rows of one column; indices that come as a plain array were checked (`check_rows`). See `gather`.

    ``decode`` false leaves dictionary encoded strings as they are.

    Parameters
    ----------
    array : pyarrow.Array, **shape (num_rows,)**
        Of any type; nulls stay. All rows without decoding: the array itself.
    selection : SelectionVector, int32 of **shape (n,)**, or None
        The rows; None: all.
    decode : bool
        False leaves dictionary encoded strings as they are.

    Returns
    -------
    pyarrow.Array, **shape (n,)**
        The rows that are picked, in their order.
    """
    if isinstance(selection, SelectionVector):
        # few are picked sooner by their indices
        if selection.mask is not None and 2 * selection.count >= selection.num_rows > 0:
            return _keep(array, selection, selection.mask, decode)
        return _take(array, selection.indices, decode)
    return _take(array, selection, decode)


def _keep(array: pa.Array[Any], selection: SelectionVector, mask: NDArray[np.uint64], decode: bool) -> pa.Array[Any]:
    t = array.type
    if array.null_count == len(array):
        return _nulls(t, len(selection), decode)
    if pa.types.is_dictionary(t):
        selected = pa.DictionaryArray.from_arrays(
            _keep(array.indices, selection, mask, False), array.dictionary, safe=False
        )
        return _take(selected, None) if decode else selected
    if pa.types.is_boolean(t):
        return _select_values(array, selection, mask, _select_bits(array.buffers()[1], array, mask)[0])
    if pa.types.is_primitive(t) or pa.types.is_decimal128(t):
        width = t.bit_width // 8
        data = allocate(len(array) * width)
        _gather.kept_fixed(array.buffers()[1], array.offset, len(array), width, mask, data)
        return _select_values(array, selection, mask, data)
    return _take(array, selection.indices, decode)


def _select_bits(source: pa.Buffer, array: pa.Array[Any], mask: NDArray[np.uint64]) -> tuple[pa.Buffer, int]:
    bits = allocate((len(array) + 7) // 8 + 8)
    return bits, _gather.kept_bits(source, array.offset, len(array), mask, bits)


def _select_values(
    array: pa.Array[Any], selection: SelectionVector, mask: NDArray[np.uint64], data: pa.Buffer
) -> pa.Array[Any]:
    if not array.null_count:
        return pa.Array.from_buffers(array.type, len(selection), [None, data], 0)
    valid, set_bits = _select_bits(array.buffers()[0], array, mask)
    return pa.Array.from_buffers(array.type, len(selection), [valid, data], len(selection) - set_bits)


def _nulls(t: pa.DataType, n: int, decode: bool) -> pa.Array[Any]:
    return null_array(t.value_type if decode and pa.types.is_dictionary(t) else t, n)


def _take(array: pa.Array[Any], rows: Rows | None, decode: bool = True) -> pa.Array[Any]:
    t = array.type
    if array.null_count == len(array) and (rows is not None or (decode and pa.types.is_dictionary(t))):
        return _nulls(t, len(array) if rows is None else len(rows), decode)
    if pa.types.is_dictionary(t):
        if not decode:
            return array if rows is None else _codes(array, rows)
        if t.index_type != pa.int32() or t.value_type != pa.string() or array.dictionary.null_count:
            plain = array.dictionary_decode()
            return plain if rows is None else _take(plain, rows)
        return _text(array, rows, array.dictionary)
    if rows is None:
        return array
    if pa.types.is_string(t) or pa.types.is_binary(t):
        return _text(array, rows, None)
    if pa.types.is_boolean(t):
        data = allocate((len(rows) + 7) // 8)
        _gather.bits(array.buffers()[1], array.offset, len(array), rows, data)
        return _built(t, array, rows, [data])
    if pa.types.is_primitive(t) or pa.types.is_decimal128(t):
        width = t.bit_width // 8
        data = allocate(len(rows) * width)
        _gather.fixed(array.buffers()[1], array.offset, len(array), width, rows, data)
        return _built(t, array, rows, [data])
    array = without_views(array)
    if pa.types.is_map(t) or pa.types.is_list(t):
        return _lists(array, rows)
    return pc.take(array, number_array(rows))


def _lists(array: pa.Array[Any], rows: Rows) -> pa.Array[Any]:
    """Pick lists or maps: Arrow's ``take`` of them is several times slower than that of their parts."""
    t = array.type
    parts = (array.keys, array.items) if pa.types.is_map(t) else (array.values,)
    ends = values_of(array.offsets)
    lengths = np.diff(ends)
    if ends[0] < 0 or ends[-1] > len(parts[0]) or (lengths < 0).any():
        raise DataFileError("the offsets of a column of lists or maps do not fit its entries")
    lengths = lengths[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise DataFileError("a batch of a column of lists or maps has more than 2**31 entries")
    entries = np.repeat(ends[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
    chosen = entries.astype(np.int32)
    nulls = bool_array(~is_valid(array)[rows]) if array.null_count else None
    make: Any = pa.MapArray if pa.types.is_map(t) else pa.ListArray
    picked = (_take(part, chosen, decode=False) for part in parts)
    return make.from_arrays(number_array(offsets.astype(np.int32)), *picked, type=t, mask=nulls)


def _codes(array: pa.Array[Any], rows: Rows) -> pa.Array[Any]:
    return pa.DictionaryArray.from_arrays(_take(array.indices, rows), array.dictionary, safe=False)


def _text(array: pa.Array[Any], rows: Rows | None, dictionary: pa.Array[Any] | None) -> pa.Array[Any]:
    strings = array if dictionary is None else dictionary
    _, offsets, data = strings.buffers()
    valid, first = array.buffers()[:2]
    valid = valid if array.null_count else None
    codes, start = (None, 0) if dictionary is None else (first, array.offset)
    out = _gather.text(offsets, data, strings.offset, len(strings), codes, start, valid, array.offset, len(array), rows)
    return _built(strings.type, array, rows, list(out))


def as_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with its top-level strings, plain or dictionary encoded, as string views.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, **num_rows rows**
        Of few rows, and of a dictionary that is larger than the views, the strings stay plain.

    Returns
    -------
    pyarrow.RecordBatch, **num_rows rows**
        Views refer to the memory of the batch's dictionaries.

    Raises
    ------
    InvalidArgumentError, DataFileError
        Codes that are not in the dictionary; the latter where they become plain strings.
    """
    schema, columns = batch.schema, batch.columns
    for i, t in enumerate(schema.types):
        if not (t == pa.string() or pa.types.is_dictionary(t)):
            continue
        array, is_long = columns[i], batch.num_rows >= _FEW_ROWS
        views = _views_of_codes(array) if is_long and pa.types.is_dictionary(t) else None
        if views is None:
            views = gather_column(array, None)
            if is_long and views.type == pa.string():
                views = pc.cast(views, pa.string_view())
        columns[i] = views
        schema = schema.set(i, schema.field(i).with_type(views.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@cache
def _makes_views() -> bool:
    """Return whether PyArrow makes views of buffers, which 18 does not."""
    try:
        pa.Array.from_buffers(pa.string_view(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    except ValueError:
        return False
    return True


def _views_of_codes(array: pa.Array[Any]) -> pa.Array[Any] | None:
    """Return dictionary encoded strings as views of the dictionary's, which takes a part of the time of a copy.

    None if the dictionary is larger than the views, which keep it in memory, or if it has a null or is of another type.

    Raises
    ------
    InvalidArgumentError
        Codes that are not in the dictionary.
    """
    t, n = array.type, len(array)
    if t.index_type != pa.int32() or t.value_type != pa.string() or not _makes_views():
        return None
    dictionary = array.dictionary
    if len(dictionary) > n or dictionary.null_count or array.null_count == n:
        return None
    entries = pc.cast(dictionary, pa.string_view())
    _, views, *texts = entries.buffers()
    if sum(len(text) for text in texts) > n * _VIEW_BYTES:
        return None
    rows = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + n]
    if array.null_count:
        rows = np.where(is_valid(array), rows, np.int32(0))  # a null's code means nothing
    check_rows(rows, len(dictionary))
    out = allocate(n * _VIEW_BYTES)
    _gather.fixed(views, entries.offset, len(dictionary), _VIEW_BYTES, rows, out)
    return _built(pa.string_view(), array, None, [out, *texts])


def _built(t: pa.DataType, array: pa.Array[Any], rows: Rows | None, buffers: list[pa.Buffer]) -> pa.Array[Any]:
    n = len(array) if rows is None else len(rows)
    if not array.null_count:
        return pa.Array.from_buffers(t, n, [None, *buffers], 0)
    valid = allocate((n + 7) // 8)
    set_bits = _gather.bits(array.buffers()[0], array.offset, len(array), rows, valid)
    return pa.Array.from_buffers(t, n, [valid, *buffers], n - set_bits)
