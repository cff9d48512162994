"""Hashes of texts; `delta_core.storage.folders` is its public API."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t, uint8_t

include "memory/arrow_strings.pxi"

cdef extern from "log/key_set.h" nogil:
    uint64_t hash_bytes(const uint8_t* data, int64_t size, uint64_t seed, const uint64_t* secret)


def hashes(texts, const uint64_t[::1] secret):
    """Return a hash of 64 bits of each text, 0 for null; the secret is two random numbers."""
    cdef Strings strings = Strings(texts, 0)
    cdef int64_t i
    cdef text_t text
    out = np.empty(strings.array.n, np.uint64)
    cdef uint64_t[::1] view = out
    with nogil:
        for i in range(strings.array.n):
            text = string_at(&strings.array, i)
            view[i] = 0 if text.size < 0 else hash_bytes(text.data, text.size, 0, &secret[0])
    return out
