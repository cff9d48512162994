# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
"""Buffers whose memory is kept for the next ones; `delta_core.kernels.memory` is its public API."""

from libc.stdint cimport uintptr_t

import pyarrow as pa


cdef extern from "memory/kept_memory.h" namespace "delta_memory" nogil:
    ctypedef void (*Release "void (*)(delta_memory::ArrowArray *)")(ArrowArray* array)
    cdef cppclass ArrowArray:
        Release release
    bint lend(size_t size, ArrowArray* array)
    cdef cppclass KeptBlocks:
        void clear()
        size_t limit()
        size_t kept_bytes()
        size_t used_bytes()
    KeptBlocks& kept_blocks()

cdef object BYTES = pa.uint8()
cdef object from_c = pa.Array._import_from_c


def lent_buffer(size_t size):
    """Return a buffer that its maker fills through its address, once; None if there is none left for it."""
    cdef ArrowArray array
    if not lend(size, &array):
        return None
    try:
        return from_c(<uintptr_t>&array, BYTES).buffers()[1]
    finally:
        if array.release != NULL:  # not taken over
            array.release(&array)


def blocks_address():
    """Return where the blocks lie, for a compiled module that takes some."""
    return <uintptr_t>&kept_blocks()


def used_bytes():
    """Return what buffers hold."""
    return kept_blocks().used_bytes()


def kept_bytes():
    """Return what is kept and not used."""
    return kept_blocks().kept_bytes()


def limit():
    """Return how many bytes buffers and what is kept have at most; others come from elsewhere."""
    return kept_blocks().limit()


def release_kept():
    """Return what is kept and not used to the system."""
    kept_blocks().clear()
