"""The allocator of the kernels' buffers."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.kernels._kept_memory import blocks_address, lent_buffer, memory_of_process, release_kept, used_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LEAST_KEPT",
    "POOL_OF_BATCHES",
    "allocate",
    "allocated_bytes",
    "call_at_release",
    "fresh_array",
    "kept_blocks",
    "memory_of_process",
    "release_unused",
    "zeros",
]

_is_chosen = "ARROW_DEFAULT_MEMORY_POOL" in os.environ


def _pool() -> pa.MemoryPool | None:
    return pa.jemalloc_memory_pool() if not _is_chosen and "jemalloc" in pa.supported_memory_backends() else None


#: None: PyArrow's default.
POOL_OF_BATCHES = _pool()
#: Buffers of fewer bytes come from the pool.
LEAST_KEPT = 256 << 10
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def allocate(size: int) -> pa.Buffer:
    """Return a buffer, not initialised, that its maker fills through its address before anyone else sees it.

    Large ones have memory that is kept for the next ones when they are dropped, within the limits of
    ``ext/memory/kept_memory.h``: to take fresh memory from the system takes longer than to decode into it. jemalloc,
    whose the others are, returns neighbouring blocks of 8 MB to the system as soon as they are free. PyArrow's default
    keeps more, but takes memory in huge pages. They are a tenth faster if the machine has some free, and take half
    as long again on a virtual machine that returned its free memory to its host. Where an allocator is chosen
    (``ARROW_DEFAULT_MEMORY_POOL``), all are its.

    Parameters
    ----------
    size : int
        Bytes, from 0 on.
    """
    if size >= LEAST_KEPT and not _is_chosen:
        found = lent_buffer(size)
        if found is not None:
            return found
    return pa.allocate_buffer(size, memory_pool=POOL_OF_BATCHES)


class _Lent:
    """Memory of `allocate` as NumPy takes it; it is the base of the array, and returns the memory with it."""

    __slots__ = ("__array_interface__", "_buffer")

    def __init__(self, size: int, kind: np.dtype[Any]) -> None:
        self._buffer = allocate(kind.itemsize * size)
        address = (self._buffer.address, False)
        self.__array_interface__ = {"data": address, "shape": (size,), "typestr": kind.str, "version": 3}


def fresh_array(size: int, dtype: Any = np.int64) -> NDArray[Any]:
    """Return numbers of **shape (size,)** that are not initialised; a large array is of memory that `allocate` kept.

    Parameters
    ----------
    size : int
        Values, from 0 on.
    dtype : NumPy type of numbers
        Of the values.
    """
    kind = np.dtype(dtype)
    return np.empty(size, kind) if kind.itemsize * size < LEAST_KEPT else np.asarray(_Lent(size, kind))


def kept_blocks() -> int:
    """Return where the memory of `allocate` lies, for a kernel that takes some itself; 0 if an allocator is chosen."""
    return 0 if _is_chosen else blocks_address()


_drops: list[Callable[[], None]] = []
_zeros = pa.py_buffer(b"")


def zeros(size: int) -> pa.Buffer:
    """Return a shared buffer of zeros, for which the system uses no memory until it is read.

    Parameters
    ----------
    size : int
        Bytes, from 0 on.
    """
    global _zeros
    found = _zeros
    if found.size < size:
        found = _zeros = pa.py_buffer(bytes(size))
    return found.slice(0, size)


def allocated_bytes() -> int:
    """Return what buffers hold, PyArrow's own and those of `allocate`."""
    pools = {p.backend_name: p for p in (pa.default_memory_pool(), POOL_OF_BATCHES) if p is not None}
    total: int = used_bytes() + sum(p.bytes_allocated() for p in pools.values())
    return total


def call_at_release(drop: Callable[[], None]) -> None:
    """Have `release_unused` call a function that drops what a module keeps for its next call.

    Parameters
    ----------
    drop : function()
        It must not raise, and may be called from any thread.
    """
    _drops.append(drop)


def release_unused() -> None:
    """Return memory that nothing uses to the system.

    Between two steps that need much of it: what the allocators kept of the first one would stay beside what the second
    one needs. It takes a millisecond.
    """
    for drop in _drops:
        drop()
    release_kept()
    pa.default_memory_pool().release_unused()
    if POOL_OF_BATCHES is not None:
        POOL_OF_BATCHES.release_unused()
    if _trim is not None:
        _trim(0)
