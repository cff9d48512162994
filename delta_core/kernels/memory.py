"""The allocator of the kernels' buffers."""

from __future__ import annotations

import ctypes
import os
import sys

import pyarrow as pa

__all__ = ["POOL_OF_BATCHES", "allocate", "release_unused"]


def _pool() -> pa.MemoryPool | None:
    chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ
    return pa.jemalloc_memory_pool() if not chosen and "jemalloc" in pa.supported_memory_backends() else None


#: None: PyArrow's default.
POOL_OF_BATCHES = _pool()
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def allocate(size: int) -> pa.Buffer:
    """Return a writable buffer, not initialised.

    They are jemalloc's, if PyArrow has it and nobody chose another allocator (``ARROW_DEFAULT_MEMORY_POOL``): it
    returns the memory of a dropped batch to the next one. PyArrow's default takes fresh memory from the system instead,
    in huge pages. That is a tenth faster if the machine has them at hand, and takes half as long again on a virtual
    machine that returned its free memory back to its host: the first work of a process there would wait for it.
    """
    return pa.allocate_buffer(size, memory_pool=POOL_OF_BATCHES)


def release_unused() -> None:
    """Return memory that nothing uses to the system.

    Between two steps that need much of it: what the allocators kept of the first one would stay beside what the second
    one needs. It takes a millisecond.
    """
    pa.default_memory_pool().release_unused()
    if POOL_OF_BATCHES is not None:
        POOL_OF_BATCHES.release_unused()
    if _trim is not None:
        _trim(0)
