"""Rows of columns selected by index; `delta_core.kernels.gather` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import numpy as np

from delta_core.errors import DataFileError, InvalidArgumentError
from delta_core.kernels.memory import allocate


cdef extern from "rows/gather.h" nogil:
    enum: MOST_SHORT
    ctypedef struct text_column:
        const int32_t* offsets
        const uint8_t* data
        int64_t length
        int64_t data_bytes
    ctypedef struct picks_t:
        const int32_t* codes
        const int32_t* rows
        const uint8_t* valid
        int64_t valid_offset
        int64_t n
    int rows_in_range(const int32_t*, int64_t, int64_t)
    int gather_fixed(const uint8_t*, int, const int32_t*, int64_t, uint8_t*)
    int64_t gather_bits(const uint8_t*, int64_t, const int32_t*, int64_t, uint8_t*)
    int text_is_sound(const text_column*)
    int text_rows_are_sound(const text_column*, const picks_t*)
    int64_t text_offsets(const text_column*, const picks_t*, int32_t*)
    void text_copy(const text_column*, const picks_t*, const int32_t*, uint8_t*)
    ctypedef struct short_texts:
        uint8_t* slots
        const uint8_t* lengths
        int width, common
    int text_slot_width(const text_column*)
    void text_slots(const text_column*, uint8_t*, uint8_t*, int, short_texts*)
    int64_t short_text_bytes(const short_texts*, const picks_t*, int64_t, int32_t*)
    void short_text_copy(const short_texts*, const picks_t*, int64_t, int64_t, int32_t*, uint8_t*)

cdef extern from "rows/compact.h" nogil:
    int64_t mask_count(const uint64_t*, int64_t)
    void mask_indices(const uint64_t*, int64_t, int32_t*)
    int compact_fixed(const uint8_t*, int, const uint64_t*, int64_t, uint8_t*)
    int64_t compact_bits(const uint8_t*, int64_t, const uint64_t*, int64_t, uint8_t*)
    int64_t mask_narrow(const uint64_t*, int64_t, const uint64_t*, int64_t, uint64_t*)

include "generated_code.pxi"


#: Dictionaries of up to this many strings are stored in slots.
cdef int64_t MOST_SLOTS = 1 << 16


cdef class View:
    """The bytes of one buffer, held while this object exists; None is no buffer. Buffers from `allocate` are also written to."""

    cdef Py_buffer view
    cdef bint held
    cdef uint8_t* data
    cdef int64_t size

    def __cinit__(self, source):
        if source is not None:
            PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
            self.held = True
            self.data = <uint8_t*>self.view.buf
            self.size = self.view.len

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef int check(bint fits, str what) except -1:
    if not fits:
        raise InvalidArgumentError(f"the array's {what} is shorter than its length says")
    return 0


cdef const int32_t* row_pointer(const int32_t[::1] rows):
    return &rows[0] if rows is not None and rows.shape[0] else NULL


def check_rows(const int32_t[::1] rows, int64_t num_rows):
    """Reject indices that are not rows of a batch."""
    cdef int good = 1
    if rows.shape[0]:
        with nogil:
            good = rows_in_range(&rows[0], rows.shape[0], num_rows)
    if not good:
        raise InvalidArgumentError(f"row indices lie within 0 and {num_rows - 1}")


def fixed(source, int64_t offset, int64_t length, int width, const int32_t[::1] rows, out):
    """Select values of `width` bytes; precondition: rows were checked against `length`."""
    cdef View values = View(source), target = View(out)
    cdef int64_t n = rows.shape[0]
    cdef int known = 1
    check(offset >= 0 and (offset + length) * width <= values.size, "data")
    check(n * width <= target.size, "output")
    if n:
        with nogil:
            known = gather_fixed(values.data + offset * width, width, &rows[0], n, target.data)
    if not known:
        raise InvalidArgumentError(f"values have 1, 2, 4, 8 or 16 bytes, not {width}")


def bits(source, int64_t offset, int64_t length, const int32_t[::1] rows, out):
    """Select bits (all of `length` if rows is None) and return how many of them are set."""
    cdef View values = View(source), target = View(out)
    cdef int64_t n = length if rows is None else rows.shape[0], found
    cdef const int32_t* chosen = row_pointer(rows)
    check(offset >= 0 and (offset + length + 7) // 8 <= values.size, "validity")
    check((n + 7) // 8 <= target.size, "output")
    if rows is not None and n == 0:
        return 0
    with nogil:
        found = gather_bits(values.data, offset, chosen, n, target.data)
    return found


cdef const uint64_t* mask_pointer(const uint64_t[::1] keep, int64_t length) except? NULL:
    check(length >= 0 and (length + 63) // 64 <= keep.shape[0], "mask")
    return &keep[0] if keep.shape[0] else NULL


def count_kept(const uint64_t[::1] keep, int64_t length):
    """Return how many of `length` rows a mask selects."""
    cdef const uint64_t* mask = mask_pointer(keep, length)
    cdef int64_t found
    with nogil:
        found = mask_count(mask, length)
    return found


def narrow(const uint64_t[::1] keep, int64_t length, const uint64_t[::1] inner, int64_t count):
    """Return the mask of `length` rows that a mask selects and whose bit in a second mask, of the `count` selected rows, is set."""
    cdef const uint64_t* mask = mask_pointer(keep, length)
    cdef const uint64_t* second = mask_pointer(inner, count)
    out = np.empty(keep.shape[0], np.uint64)
    cdef uint64_t[::1] view = out
    if length:
        with nogil:
            mask_narrow(mask, length, second, count, &view[0])
    return out


def kept_indices(const uint64_t[::1] keep, int64_t length):
    """Return the indices of the rows that a mask selects."""
    cdef const uint64_t* mask = mask_pointer(keep, length)
    check(length < (1 << 31), "mask")
    cdef int64_t n = mask_count(mask, length)
    out = np.empty(n + 1, np.int32)
    cdef int32_t[::1] view = out
    with nogil:
        mask_indices(mask, length, &view[0])
    return out[:n]


def kept_fixed(source, int64_t offset, int64_t length, int width, const uint64_t[::1] keep, out):
    """Select values of `width` bytes; `out` has room for all `length`."""
    cdef View values = View(source), target = View(out)
    cdef const uint64_t* mask = mask_pointer(keep, length)
    cdef int known
    check(offset >= 0 and (offset + length) * width <= values.size, "data")
    check(length * width <= target.size, "output")
    with nogil:
        known = compact_fixed(values.data + offset * width, width, mask, length, target.data)
    if not known:
        raise InvalidArgumentError(f"values have 1, 2, 4, 8 or 16 bytes, not {width}")


def kept_bits(source, int64_t offset, int64_t length, const uint64_t[::1] keep, out):
    """Select bits and return how many of them are set; `out` has 8 bytes more than all `length` fill."""
    cdef View values = View(source), target = View(out)
    cdef const uint64_t* mask = mask_pointer(keep, length)
    cdef int64_t found
    check(offset >= 0 and (offset + length + 7) // 8 <= values.size, "validity")
    check((length + 7) // 8 + 8 <= target.size, "output")
    with nogil:
        found = compact_bits(values.data, offset, mask, length, target.data)
    return found


def text(offsets, data, int64_t first, int64_t length, codes, int64_t codes_first, valid, int64_t valid_offset,
         int64_t num_rows, const int32_t[::1] rows):
    """Select strings and return (offsets, data) as Arrow buffers.

    Parameters
    ----------
    offsets, data, first, length
        The strings: 32-bit offsets; those of the array begin at index `first`.
    codes, codes_first
        32-bit indices of strings, one for each row; None: row i is string i.
    valid, valid_offset
        Validity of the rows; None: no nulls.
    num_rows, rows
        The number of rows, and the indices of the requested ones (checked); None: all.
    """
    cdef View ends = View(offsets), content = View(data), numbers = View(codes), validity = View(valid)
    cdef View out_ends, out_content
    cdef text_column column
    cdef picks_t picks
    cdef int64_t total
    cdef int sound, width = 0
    cdef uint8_t* slots = NULL
    cdef short_texts short
    short.slots = NULL
    short.lengths = NULL
    short.width = short.common = 0
    check(first >= 0 and length >= 0 and (length == 0 or (first + length + 1) * 4 <= ends.size), "offsets")
    check(codes is None or (codes_first + num_rows) * 4 <= numbers.size, "codes")
    check(codes is not None or num_rows <= length, "length")
    check(valid is None or (valid_offset + num_rows + 7) // 8 <= validity.size, "validity")
    column.offsets = <const int32_t*>ends.data + first
    column.data, column.length, column.data_bytes = content.data, length, content.size
    picks.codes = NULL
    if codes is not None:
        picks.codes = <const int32_t*>numbers.data + codes_first
    picks.rows = row_pointer(rows)
    picks.valid, picks.valid_offset = validity.data, valid_offset
    picks.n = num_rows if rows is None else rows.shape[0]
    out_offsets = allocate((picks.n + 1) * 4)
    out_ends = View(out_offsets)
    with nogil:
        if codes is None and rows is not None and picks.n < length // 2:
            sound = text_rows_are_sound(&column, &picks)
        else:
            sound = text_is_sound(&column)
        if sound and codes is not None and length <= MOST_SLOTS and length < picks.n:
            width = text_slot_width(&column)
            slots = <uint8_t*>calloc(length + 1, width + 1) if width else NULL
        if not sound:
            total = -1
        elif slots != NULL:
            text_slots(&column, slots, slots + (length + 1) * width, width, &short)
            total = short_text_bytes(&short, &picks, length, <int32_t*>out_ends.data)
        else:
            total = text_offsets(&column, &picks, <int32_t*>out_ends.data)
    if total < 0:
        free(slots)
    if total == -1:
        raise DataFileError("a string column's offsets or dictionary codes do not fit its data")
    if total == -2:
        raise DataFileError("a batch of a string column has more than 2 GiB")
    try:
        out_data = allocate(total + MOST_SHORT)
        out_content = View(out_data)
        with nogil:
            if slots == NULL:
                text_copy(&column, &picks, <const int32_t*>out_ends.data, out_content.data)
            else:
                short_text_copy(&short, &picks, length, total, <int32_t*>out_ends.data, out_content.data)
    finally:
        free(slots)
    return out_offsets, out_data
