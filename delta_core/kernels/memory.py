"""Where the kernels' buffers come from."""

from __future__ import annotations

import os

import pyarrow as pa

__all__ = ["POOL_OF_BATCHES", "allocate"]

#: Buffers up to this size come and go with the batches of a stream, made by one thread and dropped by another.
_SMALL_BYTES = 4 << 20


def _pool() -> pa.MemoryPool | None:
    chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ
    return pa.jemalloc_memory_pool() if not chosen and "jemalloc" in pa.supported_memory_backends() else None


#: None: PyArrow's default.
POOL_OF_BATCHES = _pool()


def allocate(size: int) -> pa.Buffer:
    """Return a writable buffer, not initialised.

    Small ones are jemalloc's, where PyArrow has it and nobody chose another allocator (``ARROW_DEFAULT_MEMORY_POOL``): it
    gives the memory of a dropped batch to the next one. PyArrow's default takes fresh memory from the system instead,
    which costs as much as the decoding; but for big results it takes huge pages, which cost less than small ones.
    """
    return pa.allocate_buffer(size, memory_pool=POOL_OF_BATCHES if size <= _SMALL_BYTES else None)
