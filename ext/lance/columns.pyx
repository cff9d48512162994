# distutils: language = c++
"""The metadata of columns of Lance data files; `delta_plugins.lance.files.container` is its public API."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector


cdef extern from "lance/columns.h" namespace "delta_lance" nogil:
    cdef cppclass Place:
        int64_t start, size
    cdef cppclass Encoding:
        Place kind, value
        bool is_direct
    cdef cppclass PageMetadata:
        uint64_t rows
        vector[uint64_t] offsets, sizes
        Encoding encoding
    cdef cppclass ColumnMetadata:
        vector[PageMetadata] pages
        PageMetadata own
        bool parse(const uint8_t* data, int64_t size)


class DamagedColumnError(Exception):
    """Metadata that can't be interpreted; the text states why."""


cdef dict _kinds = {}


cdef object encoding_of(const uint8_t* data, Encoding& encoding):
    """Return the type and the bytes of an encoding; None if it is not there."""
    if not encoding.is_direct:
        return None
    kind = PyBytes_FromStringAndSize(<const char*>data + encoding.kind.start, encoding.kind.size)
    text = _kinds.get(kind)
    if text is None:
        text = kind.decode("utf-8", "replace")
        if len(_kinds) < 64:
            _kinds[kind] = text
    return text, PyBytes_FromStringAndSize(<const char*>data + encoding.value.start, encoding.value.size)


cdef list buffers_of(PageMetadata& page, uint64_t file_size):
    cdef size_t i
    cdef list found = []
    if page.offsets.size() != page.sizes.size():
        raise DamagedColumnError(f"a page has {page.offsets.size()} offsets and {page.sizes.size()} sizes of buffers")
    for i in range(page.offsets.size()):
        if page.sizes[i] > file_size or page.offsets[i] > file_size - page.sizes[i]:
            raise DamagedColumnError(
                f"a buffer is expected at {page.offsets[i]} with {page.sizes[i]} bytes, but the file has {file_size}"
            )
        found.append((page.offsets[i], page.sizes[i]))
    return found


def parse_column(data, uint64_t file_size):
    """Parse the metadata of a column.

    Returns
    -------
    tuple
        The rows of each page; the (offset, size) of its buffers; its encoding as type and bytes, None if it is missing; and
        the buffers and the encoding of the column itself.

    Raises
    ------
    DamagedColumnError
        If the bytes are no such metadata, or a buffer lies outside of the file.
    """
    cdef Py_buffer view
    cdef ColumnMetadata column
    cdef const uint8_t* bytes
    cdef size_t i
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        bytes = <const uint8_t*>view.buf
        if not column.parse(bytes, view.len):
            raise DamagedColumnError("its metadata are no message of protobuf")
        rows, buffers, encodings = [], [], []
        for i in range(column.pages.size()):
            rows.append(column.pages[i].rows)
            buffers.append(buffers_of(column.pages[i], file_size))
            encodings.append(encoding_of(bytes, column.pages[i].encoding))
        return rows, buffers, encodings, buffers_of(column.own, file_size), encoding_of(bytes, column.own.encoding)
    finally:
        PyBuffer_Release(&view)


cdef extern from "lance/columns.h" namespace "delta_lance" nogil:
    bool read_length(const uint8_t* data, int64_t size, uint64_t& rows)


def descriptor_rows(data):
    """Return the number of rows that a FileDescriptor specifies, without decoding its schema."""
    cdef Py_buffer view
    cdef uint64_t rows = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if not read_length(<const uint8_t*>view.buf, view.len, rows):
            raise DamagedColumnError("its descriptor is no message of protobuf")
    finally:
        PyBuffer_Release(&view)
    return rows
