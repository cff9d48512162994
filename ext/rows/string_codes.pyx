"""Codes of strings; `delta_core.kernels.string_codes` is its public API."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, uintptr_t

include "memory/arrow_strings.pxi"

cdef extern from "rows/string_codes.h" nogil:
    int CODES_DONE, CODES_MANY, CODES_NO_MEMORY
    ctypedef struct codes_t:
        int64_t count, bytes
    int codes_begin(codes_t*, int64_t)
    void codes_end(codes_t*)
    int codes_add(codes_t*, const strings_t*, int32_t*)
    void codes_values(const codes_t*, int32_t*, uint8_t*)


def string_codes(list parts, list outs, int64_t most_bytes):
    """Write the codes of the rows of each part; return the ends and bytes of the distinct values, None if they are too many.

    An output is the address of a buffer and its size in bytes.
    """
    cdef codes_t codes
    cdef Strings strings
    cdef int32_t* out
    cdef int result
    cdef bytes ends, data
    if not 0 <= most_bytes < 1 << 30 or len(parts) != len(outs):
        raise InvalidArgumentError("too many bytes, or an output for another part")
    # held until the end: values are compared with those of earlier parts
    held = [Strings(part, length) for part, length in parts]
    result = codes_begin(&codes, most_bytes)
    try:
        for strings, (address, size) in zip(held, outs):
            if size // 4 < strings.array.n:
                raise InvalidArgumentError("an output is too short")
            out = <int32_t*><uintptr_t>address
            if result == CODES_DONE:
                with nogil:
                    result = codes_add(&codes, &strings.array, out)
        if result == CODES_NO_MEMORY:
            raise MemoryError
        if result == CODES_MANY:
            return None
        ends = PyBytes_FromStringAndSize(NULL, 4 * (codes.count + 1))
        data = PyBytes_FromStringAndSize(NULL, codes.bytes - 4 * codes.count)
        codes_values(&codes, <int32_t*>PyBytes_AS_STRING(ends), <uint8_t*>PyBytes_AS_STRING(data))
        return ends, data
    finally:
        codes_end(&codes)
