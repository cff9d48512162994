# distutils: language = c++
"""Buffers whose memory is reused; `delta_core.kernels.memory` is its public API."""

from libc.stdint cimport uintptr_t

import pyarrow as pa


cdef extern from "memory/kept_memory.h" namespace "delta_memory" nogil:
    ctypedef void (*Release "void (*)(delta_memory::ArrowArray *)")(ArrowArray* array)
    cdef cppclass ArrowArray:
        Release release
    bint lend(size_t size, ArrowArray* array)
    size_t c_memory_of_process "delta_memory::memory_of_process"()
    cdef cppclass KeptBlocks:
        void clear()
        size_t limit()
        size_t kept_bytes()
        size_t used_bytes()
    KeptBlocks& kept_blocks()

cdef object BYTES = pa.uint8()
cdef object from_c = pa.Array._import_from_c


def lent_buffer(size_t size):
    """Return a buffer that its maker fills through its address, once; None if no block is available."""
    cdef ArrowArray array
    if not lend(size, &array):
        return None
    try:
        return from_c(<uintptr_t>&array, BYTES).buffers()[1]
    finally:
        if array.release != NULL:  # not taken over
            array.release(&array)


def blocks_address():
    """Return the address of the blocks, for a compiled module that uses them."""
    return <uintptr_t>&kept_blocks()


def used_bytes():
    """Return the bytes of the buffers in use."""
    return kept_blocks().used_bytes()


def kept_bytes():
    """Return the bytes of the unused blocks."""
    return kept_blocks().kept_bytes()


def limit():
    """Return the most bytes of buffers and unused blocks together; further buffers are allocated elsewhere."""
    return kept_blocks().limit()


def memory_of_process():
    """Return the memory of the system, or that of the process's control group if it has less."""
    return c_memory_of_process()


def release_kept():
    """Return the unused blocks to the system."""
    kept_blocks().clear()
