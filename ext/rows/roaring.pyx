"""Sets of row positions and the portable roaring formats; `delta_core.kernels.row_set` and `.roaring` are its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from delta_core.errors import CorruptTableError, InvalidArgumentError


cdef extern from "rows/roaring_format.h" nogil:
    enum: PARSE_FAULT, PARSE_NO_MEMORY, PARSE_OK
    enum: CHUNK_ROWS, SET_OR, SET_AND, SET_SUB, SET_XOR
    ctypedef struct container_t:
        int64_t key
        int32_t count
    ctypedef struct rows_t:
        container_t* items
        int64_t n
        uint8_t* data
        int64_t used, capacity
        bint owns_data
        int64_t count
    ctypedef struct fault_t:
        const char* what
        int64_t at
    void rows_free(rows_t*)
    int parse_rows(const uint8_t*, int64_t, int bits, int trailing, rows_t*, fault_t*)
    int rows_from_positions(rows_t*, const int64_t*, int64_t)
    int rows_from_mask(rows_t*, const uint8_t*, int64_t)
    int rows_from_range(rows_t*, int64_t, int64_t)
    int rows_combine(const rows_t*, const rows_t*, int op, rows_t*)
    int rows_copy(const rows_t*, rows_t*)
    int rows_disjoint(const rows_t*, const rows_t*)
    int rows_equal(const rows_t*, const rows_t*)
    int rows_compact(const rows_t*, rows_t*)
    int64_t rows_bytes(const rows_t*, int bits)
    void write_rows(const rows_t*, int bits, uint8_t*)
    enum: BLOCK_FRAME
    void write_block(const rows_t*, uint32_t magic, uint8_t*)
    const uint8_t* find_bitmap(const uint8_t*, int64_t, uint32_t magic, int64_t*)
    int64_t rows_min(const rows_t*)
    int64_t rows_max(const rows_t*)
    int64_t rows_count_in(const rows_t*, int64_t, int64_t)
    void rows_fill_bytes(const rows_t*, int64_t, int64_t, uint8_t*, int)
    void rows_fill_bits(const rows_t*, int64_t, int64_t, uint8_t*, int)
    void rows_positions(const rows_t*, int64_t*)
    int64_t rows_chunks(const rows_t*, int64_t, int64_t*, uint64_t*)

include "generated_code.pxi"


cdef int check_window(int64_t start, int64_t num_rows, int64_t room) except -1:
    if start < 0 or num_rows < 0 or start > INT64_MAX - num_rows:
        raise InvalidArgumentError(f"a window of {num_rows} rows from row {start} is not within 0 and 2**63 - 1")
    if num_rows > room:
        raise InvalidArgumentError(f"the buffer has room for {room} rows, {num_rows} were asked for")
    return 0


cdef int check_fits(const rows_t* rows, int64_t num_rows) except -1:
    cdef int64_t last = rows_max(rows)
    if last >= num_rows:
        raise CorruptTableError(f"the set holds row {last}, but the file has {num_rows} rows (0 to {num_rows - 1})")
    return 0


cdef int parse(const uint8_t* data, int64_t size, int bits, bint trailing, rows_t* rows) except -1:
    """Fill `rows` with containers that refer to `data`; the caller frees rows, also after an error."""
    cdef fault_t fault
    cdef int status
    if bits != 32 and bits != 64:
        raise InvalidArgumentError(f"roaring bitmaps have 32 or 64 bits, not {bits}")
    with nogil:
        status = parse_rows(data, size, bits, trailing, rows, &fault)
    if status == PARSE_NO_MEMORY:
        raise MemoryError
    if status == PARSE_FAULT:
        raise CorruptTableError(
            f"corrupt {bits}-bit roaring bitmap of {size} bytes: {fault.what.decode()} (byte {fault.at})", offset=fault.at
        )
    return 0


cdef class Rows:
    """An immutable set of row positions, 0 to 2**63 - 1."""

    cdef rows_t rows

    def __dealloc__(self):
        rows_free(&self.rows)

    @staticmethod
    def from_roaring(source, int bits, bint trailing):
        cdef Rows out = Rows.__new__(Rows)
        cdef Py_buffer view
        PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
        # A copy: the set outlives the buffer of the caller, and bytes that were checked must not change.
        cdef uint8_t* data = <uint8_t*>malloc(view.len + 1)
        if data != NULL:
            memcpy(data, view.buf, view.len)
        cdef int64_t size = view.len
        PyBuffer_Release(&view)
        if data == NULL:
            raise MemoryError
        out.rows.data = data
        out.rows.owns_data = True
        out.rows.used = out.rows.capacity = size
        parse(data, size, bits, trailing, &out.rows)
        return out

    @staticmethod
    def from_positions(const int64_t[::1] positions):
        """Return the set of positions that ascend strictly from 0 up; None if they don't."""
        cdef Rows out = Rows.__new__(Rows)
        cdef int64_t n = positions.shape[0]
        cdef int status = 1
        if n:
            with nogil:
                status = rows_from_positions(&out.rows, &positions[0], n)
        if status == 0:
            raise MemoryError
        return out if status == 1 else None

    @staticmethod
    def from_mask(const uint8_t[::1] mask):
        cdef Rows out = Rows.__new__(Rows)
        cdef int64_t n = mask.shape[0]
        cdef int done = 1
        if n:
            with nogil:
                done = rows_from_mask(&out.rows, &mask[0], n)
        if not done:
            raise MemoryError
        return out

    @staticmethod
    def from_range(int64_t start, int64_t stop):
        cdef Rows out = Rows.__new__(Rows)
        cdef int done
        if start < 0:
            raise InvalidArgumentError(f"row positions start at 0, not at {start}")
        with nogil:
            done = rows_from_range(&out.rows, start, stop)
        if not done:
            raise MemoryError
        return out

    def combine(self, Rows other not None, str op):
        cdef Rows out = Rows.__new__(Rows)
        cdef int done, code = {"or": SET_OR, "and": SET_AND, "sub": SET_SUB, "xor": SET_XOR}[op]
        with nogil:
            done = rows_combine(&self.rows, &other.rows, code, &out.rows)
        if not done:
            raise MemoryError
        return out

    def isdisjoint(self, Rows other not None):
        cdef int result
        with nogil:
            result = rows_disjoint(&self.rows, &other.rows)
        return result != 0

    def equals(self, Rows other not None):
        cdef int result
        with nogil:
            result = rows_equal(&self.rows, &other.rows)
        return result != 0

    @property
    def cardinality(self):
        return self.rows.count

    @property
    def min(self):
        return rows_min(&self.rows)

    @property
    def max(self):
        return rows_max(&self.rows)

    @property
    def nbytes(self):
        return self.rows.used + self.rows.n * sizeof(container_t)

    def num_between(self, int64_t start, int64_t stop):
        return rows_count_in(&self.rows, start, stop)

    def check_fits(self, int64_t num_rows):
        check_fits(&self.rows, num_rows)

    def fill_bytes(self, uint8_t[::1] out, int64_t start, int64_t num_rows, bint invert):
        check_window(start, num_rows, out.shape[0])
        if num_rows:
            with nogil:
                rows_fill_bytes(&self.rows, start, num_rows, &out[0], invert)

    def fill_bits(self, uint8_t[::1] out, int64_t start, int64_t num_rows, bint invert):
        check_window(start, num_rows, out.shape[0] // 8 * 64)
        if num_rows:
            with nogil:
                rows_fill_bits(&self.rows, start, num_rows, &out[0], invert)

    def positions(self, make_array):
        """Return the positions in the array that a function makes for their number."""
        cdef int64_t[::1] view
        out = make_array(self.rows.count)
        if self.rows.count:
            view = out
            if view.shape[0] != self.rows.count:
                raise InvalidArgumentError(f"the array has {view.shape[0]} values, the set has {self.rows.count} rows")
            with nogil:
                rows_positions(&self.rows, &view[0])
        return out

    def chunks(self, int64_t width):
        if width < 64 or width > CHUNK_ROWS or width & (width - 1):
            raise InvalidArgumentError(f"a chunk has 64 to {CHUNK_ROWS} rows, a power of two, not {width}")
        cdef int64_t i, n = 0, most = CHUNK_ROWS // width
        for i in range(self.rows.n):
            n += min(<int64_t>self.rows.items[i].count, most)
        index, words = np.empty(n, np.int64), np.empty((n, width // 64), np.uint64)
        cdef int64_t[::1] index_view = index
        cdef uint64_t[:, ::1] words_view = words
        if n:
            with nogil:
                n = rows_chunks(&self.rows, width, &index_view[0], &words_view[0, 0])
        return index[:n], words[:n]

    def to_roaring(self, int bits):
        cdef Rows compact = Rows.__new__(Rows)
        cdef uint8_t* target
        cdef int done
        if bits != 32 and bits != 64:
            raise InvalidArgumentError(f"roaring bitmaps have 32 or 64 bits, not {bits}")
        if bits == 32 and rows_max(&self.rows) >= 1 << 32:
            raise InvalidArgumentError(f"row {rows_max(&self.rows)} doesn't fit a 32-bit roaring bitmap; use bits=64")
        with nogil:
            done = rows_compact(&self.rows, &compact.rows)
        if not done:
            raise MemoryError
        out = PyBytes_FromStringAndSize(NULL, rows_bytes(&compact.rows, bits))
        target = <uint8_t*>PyBytes_AS_STRING(out)
        with nogil:
            write_rows(&compact.rows, bits, target)
        return out


cdef class ManyRows:
    """Sets of row positions, one for each of several files."""

    cdef rows_t* sets
    cdef readonly int64_t count

    def __dealloc__(self):
        cdef int64_t i
        if self.sets != NULL:
            for i in range(self.count):
                rows_free(&self.sets[i])
            free(self.sets)

    @staticmethod
    cdef ManyRows of_size(int64_t count):
        cdef ManyRows out = ManyRows.__new__(ManyRows)
        out.sets = <rows_t*>calloc(count + 1, sizeof(rows_t))
        if out.sets == NULL:
            raise MemoryError
        out.count = count
        return out

    @staticmethod
    def of(rows):
        cdef ManyRows out = ManyRows.of_size(len(rows))
        cdef Rows own
        for i, own in enumerate(rows):
            if not rows_copy(&own.rows, &out.sets[i]):
                raise MemoryError
        return out

    @staticmethod
    def from_positions(int64_t count, const int64_t[::1] files, const int64_t[::1] positions):
        """Return the sets of pairs that ascend strictly, by file and then by position from 0 up; None if they don't."""
        cdef ManyRows out = ManyRows.of_size(count)
        cdef int64_t first = 0, stop, n = files.shape[0]
        cdef int status = 1
        if positions.shape[0] != n:
            raise InvalidArgumentError(f"{n} files and {positions.shape[0]} positions are no pairs")
        if n == 0:
            return out
        with nogil:
            while first < n and status == 1:
                stop = first + 1
                while stop < n and files[stop] == files[first]:
                    stop += 1
                if files[first] < 0 or files[first] >= count or (first and files[first] < files[first - 1]):
                    status = -1
                else:
                    status = rows_from_positions(&out.sets[files[first]], &positions[first], stop - first)
                first = stop
        if status == 0:
            raise MemoryError
        return out if status == 1 else None

    @staticmethod
    def joined(parts):
        cdef ManyRows own
        cdef ManyRows out = ManyRows.of_size(sum([p.count for p in parts]))
        cdef int64_t i, at = 0
        cdef int done = 1
        for own in parts:
            with nogil:
                for i in range(own.count):
                    done = rows_copy(&own.sets[i], &out.sets[at + i])
                    if not done:
                        break
            if not done:
                raise MemoryError
            at += own.count
        return out

    @staticmethod
    def from_blocks(int64_t count, const int64_t[::1] files, const uint8_t[::1] data, const int64_t[::1] starts,
                    const int64_t[::1] sizes, uint32_t magic):
        """Return the sets of vectors within `data`, and for each vector whether it could be read."""
        cdef ManyRows out = ManyRows.of_size(count)
        cdef int64_t i, length, n = files.shape[0], room = data.shape[0]
        cdef const uint8_t* first = &data[0] if room else NULL
        cdef const uint8_t* bitmap
        cdef rows_t borrowed
        cdef fault_t fault
        cdef int status, done = 1
        if starts.shape[0] != n or sizes.shape[0] != n:
            raise InvalidArgumentError(f"{n} files, {starts.shape[0]} starts and {sizes.shape[0]} sizes are no vectors")
        good = np.zeros(n, np.uint8)
        cdef uint8_t[::1] good_view = good
        with nogil:
            for i in range(n):
                if files[i] < 0 or files[i] >= count or out.sets[files[i]].n:
                    continue
                if starts[i] < 0 or sizes[i] < 0 or starts[i] > room or sizes[i] > room - starts[i]:
                    continue
                bitmap = find_bitmap(first + starts[i], sizes[i], magic, &length)
                if bitmap == NULL:
                    continue
                memset(&borrowed, 0, sizeof(rows_t))
                status = parse_rows(bitmap, length, 64, 0, &borrowed, &fault)
                if status == PARSE_OK:
                    done = rows_copy(&borrowed, &out.sets[files[i]])
                    good_view[i] = 1
                rows_free(&borrowed)
                if status == PARSE_NO_MEMORY or not done:
                    done = 0
                    break
        if not done:
            raise MemoryError
        return out, good

    def get(self, int64_t index):
        cdef Rows out = Rows.__new__(Rows)
        cdef int done
        if index < 0 or index >= self.count:
            raise IndexError(f"set {index} of {self.count}")
        with nogil:
            done = rows_copy(&self.sets[index], &out.rows)
        if not done:
            raise MemoryError
        return out

    def combined(self, ManyRows other not None, str op):
        cdef ManyRows out = ManyRows.of_size(self.count)
        cdef int64_t i
        cdef int done = 1, code = {"or": SET_OR, "and": SET_AND, "sub": SET_SUB}[op]
        if other.count != self.count:
            raise InvalidArgumentError(f"sets of {self.count} files can't be combined with those of {other.count}")
        with nogil:
            for i in range(self.count):
                done = rows_combine(&self.sets[i], &other.sets[i], code, &out.sets[i])
                if not done:
                    break
        if not done:
            raise MemoryError
        return out

    def replaced(self, const int64_t[::1] indices, rows):
        """Return the sets with rows added to some of them."""
        cdef ManyRows more = ManyRows.of_size(self.count)
        cdef Rows own
        for i, own in zip(indices, rows, strict=True):
            if i < 0 or i >= self.count or more.sets[i].n:
                raise IndexError(f"set {i} of {self.count}, or named twice")
            if not rows_copy(&own.rows, &more.sets[i]):
                raise MemoryError
        return self.combined(more, "or")

    def take(self, const int64_t[::1] indices):
        cdef ManyRows out = ManyRows.of_size(indices.shape[0])
        cdef int64_t i, n = indices.shape[0]
        cdef int status = 1
        with nogil:
            for i in range(n):
                if indices[i] < 0 or indices[i] >= self.count:
                    status = -1
                    break
                status = rows_copy(&self.sets[indices[i]], &out.sets[i])
                if not status:
                    break
        if status == 0:
            raise MemoryError
        if status < 0:
            raise IndexError(f"set {indices[i]} of {self.count}")
        return out

    def measure(self):
        """Return the number of positions, and the last one (-1 for none), of each set."""
        counts, last = np.empty(self.count, np.int64), np.empty(self.count, np.int64)
        cdef int64_t[::1] count_view = counts, last_view = last
        cdef int64_t i
        with nogil:
            for i in range(self.count):
                count_view[i] = self.sets[i].count
                last_view[i] = rows_max(&self.sets[i]) if self.sets[i].count else -1
        return counts, last

    def fill_bytes(self, uint8_t[::1] out, const int64_t[::1] starts, const int64_t[::1] sizes):
        """Write a byte for each row of each set, from the given places of ``out`` on."""
        cdef int64_t i, n = self.count, room = out.shape[0]
        if starts.shape[0] != n or sizes.shape[0] != n:
            raise InvalidArgumentError(f"{n} sets have {starts.shape[0]} places and {sizes.shape[0]} sizes")
        for i in range(n):
            if starts[i] < 0 or sizes[i] < 0 or starts[i] > room or sizes[i] > room - starts[i]:
                raise InvalidArgumentError(f"{sizes[i]} rows from {starts[i]} on are no part of {room} rows")
        with nogil:
            for i in range(n):
                if sizes[i]:
                    rows_fill_bytes(&self.sets[i], 0, sizes[i], &out[starts[i]], 0)

    def blocks(self, uint32_t magic):
        """Return the consecutive blocks of all sets, and the sizes of their payloads."""
        cdef ManyRows compact = ManyRows.of_size(self.count)
        sizes = np.empty(self.count, np.int64)
        cdef int64_t[::1] size_view = sizes
        cdef int64_t i, total = 0
        cdef uint8_t* target
        cdef int done = 1, fits = 1
        with nogil:
            for i in range(self.count):
                done = rows_compact(&self.sets[i], &compact.sets[i])
                if not done:
                    break
                size_view[i] = rows_bytes(&compact.sets[i], 64) + 4
                fits = fits and size_view[i] <= INT32_MAX
                total += size_view[i] + BLOCK_FRAME - 4
        if not done:
            raise MemoryError
        if not fits:
            raise InvalidArgumentError("a deletion vector doesn't fit the format's 2**31 - 1 bytes")
        out = PyBytes_FromStringAndSize(NULL, total)
        target = <uint8_t*>PyBytes_AS_STRING(out)
        with nogil:
            for i in range(self.count):
                write_block(&compact.sets[i], magic, target)
                target += size_view[i] + BLOCK_FRAME - 4
        return out, sizes


cdef class BorrowedRows(Rows):
    """Containers that refer to the bytes of the caller; they exist during one call only, so that the bytes do not change."""

    cdef Py_buffer view

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


cdef BorrowedRows borrow(source, int bits, bint trailing):
    cdef BorrowedRows out = BorrowedRows.__new__(BorrowedRows)
    PyObject_GetBuffer(source, &out.view, PyBUF_SIMPLE)
    parse(<const uint8_t*>out.view.buf, out.view.len, bits, trailing, &out.rows)
    return out


def decode_bits(source, uint8_t[::1] out, int64_t num_rows, int bits, bint invert):
    check_window(0, num_rows, out.shape[0] // 8 * 64)
    cdef BorrowedRows rows = borrow(source, bits, False)
    check_fits(&rows.rows, num_rows)
    rows.fill_bits(out, 0, num_rows, invert)
    return rows.rows.count


def decode_mask(source, uint8_t[::1] out, int64_t num_rows, int bits, bint invert):
    check_window(0, num_rows, out.shape[0])
    cdef BorrowedRows rows = borrow(source, bits, False)
    check_fits(&rows.rows, num_rows)
    rows.fill_bytes(out, 0, num_rows, invert)
    return rows.rows.count


def decode_positions(source, int bits, make_array):
    return borrow(source, bits, False).positions(make_array)
