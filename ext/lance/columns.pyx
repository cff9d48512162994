# distutils: language = c++
"""The metadata of columns of Lance data files; `delta_plugins.lance.files.container` is its public API."""

import numpy as np

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.vector cimport vector


cdef extern from "lance/columns.h" namespace "delta_lance" nogil:
    cdef cppclass Place:
        int64_t start, size
    cdef cppclass Encoding:
        Place kind, value
        bool is_direct
    cdef cppclass Buffers:
        vector[uint64_t] offsets, sizes
    cdef cppclass ColumnMetadata:
        vector[uint64_t] rows, ends
        vector[Encoding] encodings
        Buffers buffers, own
        Encoding own_encoding
        uint64_t num_offsets, num_sizes
        bool parse(const uint8_t* data, int64_t size)


class DamagedColumnError(Exception):
    """Metadata that can't be interpreted; the text states why."""


cdef object places_of(Buffers& buffers, uint64_t file_size):
    """Return the (offset, size) of each buffer, which lies in the file."""
    cdef size_t i
    cdef size_t n = buffers.offsets.size()
    found = np.empty((n, 2), np.int64)
    cdef int64_t[:, ::1] places = found
    for i in range(n):
        if buffers.sizes[i] > file_size or buffers.offsets[i] > file_size - buffers.sizes[i]:
            raise DamagedColumnError(
                f"a buffer is expected at {buffers.offsets[i]} with {buffers.sizes[i]} bytes, "
                f"but the file has {file_size}"
            )
        places[i, 0] = <int64_t>buffers.offsets[i]
        places[i, 1] = <int64_t>buffers.sizes[i]
    return found


cdef object array_of(vector[uint64_t]& numbers):
    found = np.empty(numbers.size(), np.uint64)
    cdef uint64_t[::1] out = found
    if numbers.size():
        memcpy(&out[0], numbers.data(), 8 * numbers.size())
    return found


cdef void write_encoding(Encoding& encoding, int64_t[::1] out):
    out[0] = encoding.kind.start if encoding.is_direct else -1
    out[1] = encoding.kind.size
    out[2] = encoding.value.start
    out[3] = encoding.value.size


def parse_column(data, uint64_t file_size):
    """Parse the metadata of a column.

    Returns
    -------
    tuple of ndarray
        - uint64[n]: the rows of each page;
        - int64[n + 1, 4]: where the type and the bytes of each page's encoding are in ``data``, as start and length; -1 if
          it is missing; the last is that of the column;
        - uint64[n]: where the buffers of each page end in
        - int64[m, 2]: the (offset, size) of the buffers of all pages;
        - int64[k, 2]: those of the column itself.

    Raises
    ------
    DamagedColumnError
        If the bytes are no such metadata, or a buffer lies outside of the file.
    """
    cdef Py_buffer view
    cdef ColumnMetadata column
    cdef size_t i
    cdef size_t n
    cdef bool is_message
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        is_message = column.parse(<const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    if not is_message:
        raise DamagedColumnError("its metadata are no message of protobuf")
    if column.num_offsets != column.num_sizes:
        raise DamagedColumnError(f"a page has {column.num_offsets} offsets and {column.num_sizes} sizes of buffers")
    n = column.encodings.size()
    encodings = np.empty((n + 1, 4), np.int64)
    cdef int64_t[:, ::1] out = encodings
    for i in range(n):
        write_encoding(column.encodings[i], out[i])
    write_encoding(column.own_encoding, out[n])
    return (
        array_of(column.rows),
        encodings,
        array_of(column.ends),
        places_of(column.buffers, file_size),
        places_of(column.own, file_size),
    )


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
