# distutils: language = c++
"""JSON of the log and columns; `delta_core.kernels.json_actions`, `.json_lines` and `.stats` are its public API."""

from cpython.buffer cimport PyBUF_CONTIG_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.memory cimport make_shared, shared_ptr, unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport pair
from libcpp.vector cimport vector


cdef extern from "log/arrow_out.h":
    cdef struct ArrowArray:
        pass


cdef extern from "log/arrow_out.h" namespace "delta_json":
    object array_capsule(ArrowArray &) except +


cdef class Exported:
    """A record batch to be exported to Arrow, once."""

    cdef object schema
    cdef object array

    def __arrow_c_array__(self, requested_schema=None):
        if self.array is None:
            raise ValueError("this batch was taken already")
        array, self.array = self.array, None
        return self.schema.__arrow_c_schema__(), array


cdef class View:
    """The memory of a buffer, which is held as long as this object exists; None has no memory."""

    cdef Py_buffer view
    cdef cbool held
    cdef const char *data
    cdef int64_t size

    def __cinit__(self, source):
        if source is not None:
            PyObject_GetBuffer(source, &self.view, PyBUF_CONTIG_RO)
            self.held = True
            self.data = <const char *> self.view.buf
            self.size = self.view.len

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


include "log/json_actions.pxi"
include "log/json_lines.pxi"
include "log/json_stats.pxi"
