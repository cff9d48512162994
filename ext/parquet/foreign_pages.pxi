# Included by the kernels that decode pages whose codec is not compiled in.
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from pyarrow import foreign_buffer


cdef int decompress_page(void* codec, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept with gil:
    """Call a Python function that decompresses a page; an exception, or a result of another size, is damage."""
    cdef Py_buffer view
    cdef bint good
    try:
        plain = (<object>codec)(foreign_buffer(<size_t>data, n), size)
        PyObject_GetBuffer(plain, &view, PyBUF_SIMPLE)
    except Exception:
        return False
    good = view.len == size
    if good:
        memcpy(out, view.buf, size)
    PyBuffer_Release(&view)
    return good
