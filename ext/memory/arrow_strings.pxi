# Included by the kernels that read Arrow string arrays.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t

from delta_core.errors import InvalidArgumentError


cdef extern from "memory/arrow_strings.h" nogil:
    ctypedef struct strings_t:
        const uint8_t* valid
        const uint8_t* offsets
        const uint8_t* data
        int64_t n, offset, valid_bytes, offsets_bytes, data_bytes
        bint wide
    ctypedef struct text_t:
        const uint8_t* data
        int64_t size
    int strings_check(const strings_t*)
    text_t string_at(const strings_t*, int64_t)


cdef class Strings:
    """The buffers of `(validity, offsets, data, offset, length, wide)`, held while this object exists; None = all null."""

    cdef Py_buffer[3] views
    cdef int held
    cdef strings_t array

    def __cinit__(self, source, int64_t length):
        cdef int i
        self.array.n = length
        if source is None:
            return
        self.array.offset, self.array.n, self.array.wide = source[3:]
        for i in range(3):
            PyObject_GetBuffer(b"" if source[i] is None else source[i], &self.views[i], PyBUF_SIMPLE)
            self.held = i + 1
        if source[0] is not None:
            self.array.valid = <const uint8_t*>self.views[0].buf
        self.array.offsets = <const uint8_t*>self.views[1].buf
        self.array.data = <const uint8_t*>self.views[2].buf
        self.array.valid_bytes, self.array.offsets_bytes = self.views[0].len, self.views[1].len
        self.array.data_bytes = self.views[2].len
        if not strings_check(&self.array):
            raise InvalidArgumentError("the string array's offsets don't ascend within its buffers")

    def __dealloc__(self):
        cdef int i
        for i in range(self.held):
            PyBuffer_Release(&self.views[i])
