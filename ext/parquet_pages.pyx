# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
# distutils: depends = ext/parquet_pages.h
"""Pages of Parquet column chunks as Arrow buffers; `delta_core.kernels.parquet_pages` is its face."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset
from posix.unistd cimport pread

import pyarrow as pa


cdef extern from "parquet_pages.h" namespace "delta_parquet" nogil:
    enum: SLACK
    ctypedef enum Status:
        DONE
        PAGE
        UNSUPPORTED
        NO_MEMORY
    cdef cppclass ChunkReader:
        ChunkReader(const uint8_t* data, int64_t size, int codec, int width, int most_level, int64_t num_rows)
        Status next_page()
        int64_t rows()
        int64_t nulls()
        bint is_coded()
        int64_t dictionary_length()
        int64_t dictionary_bytes()
        const int32_t* dictionary_offsets()
        const uint8_t* dictionary_data()
        int64_t text_bytes()
        bint append_fixed(uint8_t* out)
        void append_codes(uint32_t* out)
        bint append_text(int32_t* offsets, uint8_t* data, int64_t used)
        void append_validity(uint8_t* bits, int64_t first)
    bint snappy_decompress(const uint8_t* data, size_t n, uint8_t* out, size_t size)


#: The strings of a column chunk are refused beyond so many bytes.
cdef int64_t MOST_TEXT = 1 << 30


class UnsupportedPages(Exception):
    """The chunk holds what this reader does not decode, or what is damaged: a complete reader tells which."""


cdef class Block:
    """Bytes of an Arrow buffer, writable, with SLACK bytes behind `size`."""

    cdef Py_buffer view
    cdef object buffer
    cdef uint8_t* data
    cdef int64_t size

    def __cinit__(self, int64_t size):
        self.buffer = pa.allocate_buffer(size + SLACK)
        PyObject_GetBuffer(self.buffer, &self.view, PyBUF_WRITABLE)
        self.data = <uint8_t*>self.view.buf
        self.size = size

    def __dealloc__(self):
        if self.data is not NULL:
            PyBuffer_Release(&self.view)

    cdef object cut(self, int64_t size):
        return self.buffer.slice(0, size)


cdef Block bitmap(int64_t rows):
    cdef Block out = Block((rows + 7) // 8)
    memset(out.data, 0, out.size)
    return out


cdef class Column:
    """One column chunk, read page by page.

    Parameters
    ----------
    source : int or buffer
        A file descriptor, or bytes that start where the file does.
    offset, size
        Where the chunk lies.
    """

    cdef ChunkReader* reader
    cdef Block chunk
    cdef int width
    cdef int64_t num_rows

    def __cinit__(self, source, int64_t offset, int64_t size, int codec, int width, int most_level, int64_t num_rows):
        self.chunk = Block(size)
        self.width, self.num_rows = width, num_rows
        self._fill(source, offset, size)
        self.reader = new ChunkReader(self.chunk.data, size, codec, width, most_level, num_rows)

    def __dealloc__(self):
        del self.reader

    cdef int _fill(self, source, int64_t offset, int64_t size) except -1:
        cdef Py_buffer view
        cdef int file
        cdef int64_t got = 1, done = 0
        if isinstance(source, int):
            file = source
            with nogil:
                while done < size and got > 0:
                    got = pread(file, self.chunk.data + done, size - done, offset + done)
                    done += got if got > 0 else 0
        else:
            PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
            if 0 <= offset <= view.len and size <= view.len - offset:
                memcpy(self.chunk.data, <const uint8_t*>view.buf + offset, size)
                done = size
            PyBuffer_Release(&view)
        if done < size:
            raise UnsupportedPages(f"the chunk has {size} bytes from {offset}, of which {done} are there")
        memset(self.chunk.data + size, 0, SLACK)
        return 0

    cdef bint _next(self) except -1:
        cdef Status status
        with nogil:
            status = self.reader.next_page()
        if status == NO_MEMORY:
            raise MemoryError("no memory for a page of a Parquet file")
        if status == UNSUPPORTED:
            raise UnsupportedPages("a page is encoded, or damaged, in a way that is left to a complete reader")
        return status == PAGE

    def values(self):
        """Return (validity or None, nulls, data) of a column of numbers."""
        cdef Block out = Block(self.num_rows * self.width), valid = None
        cdef int64_t first = 0, nulls = 0
        cdef bint good
        while self._next():
            with nogil:
                good = self.reader.append_fixed(out.data + first * self.width)
            if not good:
                raise UnsupportedPages("a page's values do not fill it")
            valid = self._validity(valid, first, nulls, self.num_rows)
            nulls += self.reader.nulls()
            first += self.reader.rows()
        return self._finished(first, valid, nulls), nulls, out.cut(self.num_rows * self.width)

    def codes(self):
        """Return (validity or None, nulls, codes, offsets, data, length) of a column of which all pages are coded."""
        cdef Block out = Block(self.num_rows * 4), valid = None, ends, text
        cdef int64_t first = 0, nulls = 0, length
        while self._next():
            if not self.reader.is_coded():
                raise UnsupportedPages("a page holds strings where only codes of the dictionary were expected")
            with nogil:
                self.reader.append_codes(<uint32_t*>out.data + first)
            valid = self._validity(valid, first, nulls, self.num_rows)
            nulls += self.reader.nulls()
            first += self.reader.rows()
        length = self.reader.dictionary_length()
        ends, text = Block((length + 1) * 4), Block(self.reader.dictionary_bytes())
        memset(ends.data, 0, ends.size)
        if length:
            memcpy(ends.data, self.reader.dictionary_offsets(), ends.size)
            memcpy(text.data, self.reader.dictionary_data(), text.size)
        return (self._finished(first, valid, nulls), nulls, out.cut(self.num_rows * 4), ends.cut(ends.size),
                text.cut(text.size), length)

    def text(self, int64_t expected):
        """Return (validity or None, nulls, offsets, data) of a column of strings of about `expected` bytes."""
        cdef Block ends = Block((self.num_rows + 1) * 4), data = Block(expected), valid = None, bigger
        cdef int64_t first = 0, nulls = 0, used = 0, more
        (<int32_t*>ends.data)[0] = 0
        while self._next():
            more = self._text_bytes(used)
            if used + more > data.size:
                bigger = Block(2 * (used + more))
                memcpy(bigger.data, data.data, used)
                data = bigger
            self._append_text(<int32_t*>ends.data + first, data.data, used)
            used += more
            valid = self._validity(valid, first, nulls, self.num_rows)
            nulls += self.reader.nulls()
            first += self.reader.rows()
        return self._finished(first, valid, nulls), nulls, ends.cut(ends.size), data.cut(used)

    def text_page(self):
        """Return (rows, validity or None, nulls, offsets, data) of the next page of strings; None at the end."""
        cdef Block ends, data, valid
        cdef int64_t rows, size
        if not self._next():
            return None
        rows = self.reader.rows()
        size = self._text_bytes(0)
        ends, data = Block((rows + 1) * 4), Block(size)
        (<int32_t*>ends.data)[0] = 0
        self._append_text(<int32_t*>ends.data, data.data, 0)
        valid = self._validity(None, 0, 0, rows)
        bits = None if valid is None else valid.cut(valid.size)
        return rows, bits, self.reader.nulls(), ends.cut(ends.size), data.cut(size)

    cdef int64_t _text_bytes(self, int64_t used) except -1:
        cdef int64_t more
        with nogil:
            more = self.reader.text_bytes()
        if more < 0 or used + more > MOST_TEXT:
            raise UnsupportedPages(f"the strings of a chunk have more than {MOST_TEXT} bytes")
        return more

    cdef int _append_text(self, int32_t* ends, uint8_t* data, int64_t used) except -1:
        cdef bint good
        with nogil:
            good = self.reader.append_text(ends, data, used)
        if not good:
            raise UnsupportedPages("a page's strings do not fill it")
        return 0

    cdef Block _validity(self, Block valid, int64_t first, int64_t nulls, int64_t rows):
        """Note which of the page's rows are null; there is no bitmap before the first null."""
        cdef int64_t i
        if valid is None:
            if not self.reader.nulls():
                return None
            valid = bitmap(rows)
            memset(valid.data, 0xff, first // 8)
            for i in range(first // 8 * 8, first):
                valid.data[i >> 3] |= 1 << (i & 7)
        with nogil:
            self.reader.append_validity(valid.data, first)
        return valid

    cdef object _finished(self, int64_t rows, Block valid, int64_t nulls):
        if rows != self.num_rows:
            raise UnsupportedPages(f"the chunk has {rows} rows, expected {self.num_rows}")
        return None if valid is None else valid.cut(valid.size)


def decompress_snappy(const uint8_t[::1] data, int64_t size):
    """Return the `size` plain bytes of a Snappy block; None where it does not have as many. For tests."""
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        good = snappy_decompress(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None
