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


cdef object starts_of(vector[uint64_t]& rows, uint64_t most_rows):
    """Return the rows of each page, and where each page starts, and the last one ends."""
    cdef size_t i
    cdef size_t n = rows.size()
    lengths, starts = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    cdef int64_t[::1] length = lengths, start = starts
    cdef uint64_t total = 0
    start[0] = 0
    for i in range(n):
        if rows[i] > most_rows - total:
            raise DamagedColumnError(f"its pages have more than {most_rows} rows")
        total += rows[i]
        length[i] = <int64_t>rows[i]
        start[i + 1] = <int64_t>total
    return lengths, starts


cdef object ends_of(vector[uint64_t]& ends):
    """Return where the buffers of each page start, and those of the last one end."""
    found = np.empty(ends.size() + 1, np.int64)
    cdef int64_t[::1] out = found
    out[0] = 0
    if ends.size():
        memcpy(&out[1], ends.data(), 8 * ends.size())
    return found


cdef void write_encoding(Encoding& encoding, int64_t[::1] out):
    out[0] = encoding.kind.start if encoding.is_direct else -1
    out[1] = encoding.kind.size
    out[2] = encoding.value.start
    out[3] = encoding.value.size


def parse_column(data, uint64_t file_size, uint64_t most_rows):
    """Parse the metadata of a column; ``most_rows`` is less than 2^63.

    Returns
    -------
    tuple of ndarray
        - int64[n]: the rows of each page;
        - int64[n + 1]: the first row of each page, and the number of rows;
        - int64[n + 1]: the first of the buffers of each page, and their number, in
        - int64[m, 2]: the (offset, size) of the buffers of all pages;
        - int64[k, 2]: those of the column itself;
        - int64[n + 1, 4]: where the type and the bytes of each page's encoding are in ``data``, as start and length; the
          last is that of the column.

    Raises
    ------
    DamagedColumnError
        If the bytes are no such metadata, an encoding is missing, there are more rows, or a buffer lies outside of the
        file.
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
    for i in range(n + 1):
        if out[i, 0] < 0:
            raise DamagedColumnError("an encoding is missing, or lies outside of its metadata")
    buffers, own = places_of(column.buffers, file_size), places_of(column.own, file_size)
    return (*starts_of(column.rows, most_rows), ends_of(column.ends), buffers, own, encodings)


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
