# Blocks of memory of kernels as PyArrow buffers.

from libc.stdint cimport uint8_t, uint64_t, uintptr_t
from libcpp cimport bool

import pyarrow as pa

from delta_core.kernels.memory import kept_blocks


cdef extern from "lance/blocks.h" namespace "delta_lance" nogil:
    ctypedef const char* Error
    const char* NO_MEMORY
    const char* TOO_LONG
    ctypedef void (*Release "void (*)(delta_memory::ArrowArray *)")(ArrowArray* array)
    cdef cppclass ArrowArray "delta_memory::ArrowArray":
        Release release
    cdef cppclass KeptBlocks "delta_memory::KeptBlocks":
        pass
    cdef cppclass Block:
        uint8_t* data()
        uint64_t size()
        bool append(const uint8_t* data, uint64_t n)
        bool append_zeros(uint64_t n)
        bool export_to(ArrowArray* array)
        void lend_from(KeptBlocks* source)


cdef object BYTES = pa.uint8()
cdef object from_c = pa.Array._import_from_c


cdef KeptBlocks* source() except? NULL:
    return <KeptBlocks*><uintptr_t>kept_blocks()


cdef object exported(Block& block):
    cdef ArrowArray array
    if not block.export_to(&array):
        raise MemoryError
    try:
        return from_c(<uintptr_t>&array, BYTES).buffers()[1]
    finally:
        if array.release != NULL:
            array.release(&array)
