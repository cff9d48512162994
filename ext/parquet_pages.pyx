# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
# distutils: depends = ext/parquet_pages.h ext/compact.h ext/foreign_pages.pxi
"""Pages of Parquet column chunks as Arrow buffers; `delta_core.kernels.parquet_pages` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.memory import allocate


cdef extern from "parquet_pages.h" namespace "delta_parquet" nogil:
    enum: SLACK
    ctypedef enum Status:
        DONE
        PAGE
        UNSUPPORTED
        NO_MEMORY
    cdef cppclass Scratch:
        uint8_t* room(size_t size)
    ctypedef int (*Decompress)(void* codec, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept nogil
    cdef cppclass WorkspaceBytes "delta_parquet::Workspace":
        Decompress decompress
        void* codec
        Scratch chunk
        size_t size()
    cdef cppclass ChunkReader:
        ChunkReader(WorkspaceBytes& space, const uint8_t* data, int64_t size, int codec, int width, int most_level,
                    int64_t num_rows, const uint64_t* keep, int64_t num_kept)
        Status next_page()
        int64_t rows()
        int64_t nulls()
        int64_t dictionary_length()
        int64_t dictionary_bytes()
        const int32_t* dictionary_offsets()
        const uint8_t* dictionary_data()
        int64_t text_bytes()
        int64_t append_text(int32_t* offsets, uint8_t* data, int64_t used)
        void append_validity(uint8_t* bits, int64_t first, int64_t nulls, int64_t num_rows)
    ctypedef struct Rows:
        int64_t done
        int64_t nulls
        int64_t kept
    const uint8_t* read_file(WorkspaceBytes& space, int file, int64_t offset, int64_t size)
    Status read_values(ChunkReader& reader, int width, int64_t num_rows, uint8_t* out, uint8_t* bits, Rows& rows)
    Status read_codes(ChunkReader& reader, int64_t num_rows, uint8_t* out, uint8_t* bits, Rows& rows)
    Status read_text(ChunkReader& reader, int64_t num_rows, int32_t* ends, uint8_t* data, int64_t room, uint8_t* bits,
                     Rows& rows, int64_t& used, int64_t& more, bint has_page)
    bint snappy_decompress(const uint8_t* data, size_t n, uint8_t* out, size_t size)

cdef extern from "compact.h" nogil:
    void compact_prepare()
    int64_t mask_count(const uint64_t*, int64_t)
    int64_t compact_bits(const uint8_t*, int64_t, const uint64_t*, int64_t, uint8_t*)

compact_prepare()

#: The strings of a column chunk are rejected beyond so many bytes.
cdef int64_t MOST_TEXT = 256 << 20
#: A workspace that grew beyond this is not kept.
cdef size_t MOST_KEPT = 16 << 20


class UnsupportedPagesError(Exception):
    """The chunk holds what this reader does not decode, or what is damaged: a complete reader reports which."""


include "foreign_pages.pxi"


cdef class Block:
    """Bytes of an Arrow buffer, writable, with SLACK bytes behind `size`."""

    cdef Py_buffer view
    cdef object buffer
    cdef uint8_t* data
    cdef int64_t size

    def __cinit__(self, int64_t size):
        self.buffer = allocate(size + SLACK)
        PyObject_GetBuffer(self.buffer, &self.view, PyBUF_WRITABLE)
        self.data = <uint8_t*>self.view.buf
        self.size = size

    def __dealloc__(self):
        if self.data is not NULL:
            PyBuffer_Release(&self.view)

    cdef object cut(self, int64_t size):
        return self.buffer.slice(0, size)


cdef uint8_t* data_of(Block block):
    if block is None:
        return NULL
    return block.data


cdef class Workspace:
    """Memory that one chunk after the other is read in; one at a time."""

    cdef WorkspaceBytes* bytes

    def __cinit__(self):
        self.bytes = new WorkspaceBytes()

    def __dealloc__(self):
        del self.bytes

    @property
    def is_small(self):
        """Whether it is small enough to be kept."""
        return self.bytes.size() <= MOST_KEPT


cdef class Column:
    """One column chunk, read page by page.

    Parameters
    ----------
    source : int or buffer
        A file descriptor, or bytes that start if the file does.
    offset, size
        Where the chunk lies.
    keep : uint64[n], optional
        A mask of its rows: the others are left out.
    decompress : function(pyarrow.Buffer, int) -> buffer, optional
        For pages of a codec that is not Snappy: returns as many plain bytes.
    """

    cdef ChunkReader* reader
    cdef Workspace space
    cdef object codec
    cdef int width
    cdef int64_t num_rows
    cdef readonly int64_t num_kept
    cdef bint nullable
    cdef const uint64_t[::1] mask
    cdef const uint64_t* keep

    def __cinit__(self, Workspace space not None, source, int64_t offset, int64_t size, int codec, int width,
                  int most_level, int64_t num_rows, const uint64_t[::1] keep=None, decompress=None):
        cdef const uint8_t* data
        self.space, self.width, self.num_rows, self.nullable = space, width, num_rows, most_level > 0
        self.mask, self.num_kept = keep, num_rows
        self.keep = NULL
        if keep is not None and num_rows > 0:
            if keep.shape[0] < (num_rows + 63) // 64:
                raise InvalidArgumentError(f"a mask of {num_rows} rows is longer than {keep.shape[0]} words")
            self.keep = &keep[0]
            self.num_kept = mask_count(self.keep, num_rows)
        data = self._fill(source, offset, size)
        self.codec = decompress
        space.bytes.codec = <void*>decompress
        space.bytes.decompress = decompress_page
        self.reader = new ChunkReader(space.bytes[0], data, size, codec, width, most_level, num_rows, self.keep,
                                      self.num_kept)

    def __dealloc__(self):
        del self.reader

    cdef const uint8_t* _fill(self, source, int64_t offset, int64_t size) except NULL:
        cdef Py_buffer view
        cdef int file
        cdef const uint8_t* data = NULL
        cdef uint8_t* copy
        if isinstance(source, int):
            file = source
            with nogil:
                data = read_file(self.space.bytes[0], file, offset, size)
        else:
            PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
            copy = self.space.bytes.chunk.room(size)
            if copy is not NULL and 0 <= offset <= view.len and size <= view.len - offset:
                memcpy(copy, <const uint8_t*>view.buf + offset, size)
                memset(copy + size, 0, SLACK)
                data = copy
            PyBuffer_Release(&view)
        if data is NULL:
            raise UnsupportedPagesError(f"the chunk has {size} bytes from {offset}, of which not all are there")
        return data

    cdef Block _bitmap(self, int64_t rows):
        return Block((rows + 7) // 8) if self.nullable else None

    def values(self):
        """Return (validity or None, nulls, data) of a column of numbers."""
        cdef Block out = Block(self.num_kept * self.width), bitmap = self._bitmap(self.num_rows)
        cdef uint8_t* bits = data_of(bitmap)
        cdef Rows rows = Rows(0, 0, 0)
        cdef Status status
        with nogil:
            status = read_values(self.reader[0], self.width, self.num_rows, out.data, bits, rows)
        valid, nulls = self._validity(status, rows, bitmap)
        return valid, nulls, out.cut(out.size)

    def codes(self):
        """Return (validity or None, nulls, codes, offsets, data, length) of a column of which all pages are coded."""
        cdef Block out = Block(self.num_kept * 4), bitmap = self._bitmap(self.num_rows), ends, text
        cdef uint8_t* bits = data_of(bitmap)
        cdef Rows rows = Rows(0, 0, 0)
        cdef Status status
        cdef int64_t length
        with nogil:
            status = read_codes(self.reader[0], self.num_rows, out.data, bits, rows)
        valid, nulls = self._validity(status, rows, bitmap)
        length = self.reader.dictionary_length()
        ends, text = Block((length + 1) * 4), Block(self.reader.dictionary_bytes())
        memset(ends.data, 0, ends.size)
        if length:
            memcpy(ends.data, self.reader.dictionary_offsets(), ends.size)
            memcpy(text.data, self.reader.dictionary_data(), text.size)
        return valid, nulls, out.cut(out.size), ends.cut(ends.size), text.cut(text.size), length

    def text(self, int64_t expected):
        """Return (validity or None, nulls, offsets, data) of a column of strings of about `expected` bytes."""
        cdef Block ends = Block((self.num_kept + 1) * 4), bitmap, other
        cdef Block data = Block(expected * self.num_kept // self.num_rows if self.num_rows else 0)
        cdef uint8_t* bits
        cdef int64_t used = 0, more = 0
        cdef bint has_page = False
        cdef Rows rows = Rows(0, 0, 0)
        cdef Status status
        bitmap = self._bitmap(self.num_rows)
        bits = data_of(bitmap)
        (<int32_t*>ends.data)[0] = 0
        while True:
            with nogil:
                status = read_text(self.reader[0], self.num_rows, <int32_t*>ends.data, data.data, data.size, bits, rows,
                                   used, more, has_page)
            if status != PAGE:
                break
            self._check_size(used + more)
            other = Block(2 * (used + more))
            memcpy(other.data, data.data, used)
            data, has_page = other, True
        if 4 * used < data.size:  # a slice would hold all of it
            other = Block(used)
            memcpy(other.data, data.data, used)
            data = other
        valid, nulls = self._validity(status, rows, bitmap)
        return valid, nulls, ends.cut(ends.size), data.cut(used)

    def text_page(self):
        """Return (rows, validity or None, nulls, offsets, data) of the next page of strings; None at the end."""
        cdef Block ends, data, bitmap
        cdef int64_t rows, nulls, size
        cdef Status status
        cdef bint good
        with nogil:
            status = self.reader.next_page()
            rows, nulls = self.reader.rows(), self.reader.nulls()
            size = self.reader.text_bytes() if status == PAGE else 0
        self._check(status)
        if status == DONE:
            return None
        self._check_size(size)
        ends, data, bitmap = Block((rows + 1) * 4), Block(size), self._bitmap(rows)
        (<int32_t*>ends.data)[0] = 0
        with nogil:
            good = self.reader.append_text(<int32_t*>ends.data, data.data, 0) == size
            if nulls:
                self.reader.append_validity(bitmap.data, 0, 0, rows)
        self._check(PAGE if good else UNSUPPORTED)
        valid = bitmap.cut(bitmap.size) if nulls else None
        return rows, valid, nulls, ends.cut(ends.size), data.cut(size)

    cdef int _check(self, Status status) except -1:
        if status == NO_MEMORY:
            raise MemoryError("no memory for a page of a Parquet file")
        if status == UNSUPPORTED:
            raise UnsupportedPagesError("a page is encoded, or damaged, in a way that is left to a complete reader")
        return 0

    cdef int _check_size(self, int64_t size) except -1:
        if not 0 <= size <= MOST_TEXT:
            raise UnsupportedPagesError(f"the strings of a chunk have more than {MOST_TEXT} bytes")
        return 0

    cdef object _validity(self, Status status, Rows rows, Block bitmap):
        """Check that the whole chunk was read, and return the kept rows' bitmap, if any of them is null, and how many are."""
        cdef Block kept
        cdef int64_t nulls
        self._check(status)
        if rows.done != self.num_rows:
            raise UnsupportedPagesError(f"the chunk has {rows.done} rows, expected {self.num_rows}")
        if not rows.nulls:
            return None, 0
        if self.keep is NULL:
            return bitmap.cut(bitmap.size), rows.nulls
        kept = Block((self.num_kept + 7) // 8)
        with nogil:
            nulls = self.num_kept - compact_bits(bitmap.data, 0, self.keep, self.num_rows, kept.data)
        return (kept.cut(kept.size), nulls) if nulls else (None, 0)


def decompress_snappy(const uint8_t[::1] data, int64_t size):
    """Return the `size` plain bytes of a Snappy block; None if it does not have as many. For tests."""
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        good = snappy_decompress(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None
