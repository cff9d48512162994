"""The allocator of the kernels' buffers."""

from __future__ import annotations

import os

import pyarrow as pa

__all__ = ["POOL_OF_BATCHES", "allocate"]


def _pool() -> pa.MemoryPool | None:
    chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ
    return pa.jemalloc_memory_pool() if not chosen and "jemalloc" in pa.supported_memory_backends() else None


#: None: PyArrow's default.
POOL_OF_BATCHES = _pool()


def allocate(size: int) -> pa.Buffer:
    """Return a writable buffer, not initialised.

    They are jemalloc's, if PyArrow has it and nobody chose another allocator (``ARROW_DEFAULT_MEMORY_POOL``): it
    returns the memory of a dropped batch to the next one. PyArrow's default takes fresh memory from the system instead,
    in huge pages. That is a tenth faster if the machine has them at hand, and takes half as long again on a virtual
    machine that returned its free memory back to its host: the first work of a process there would wait for it.
    """
    return pa.allocate_buffer(size, memory_pool=POOL_OF_BATCHES)
