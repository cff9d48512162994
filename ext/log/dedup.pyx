"""The set of file actions that log replay has seen; `delta_core.kernels.dedup` is its public API."""

import os

import numpy as np

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

include "memory/arrow_strings.pxi"


cdef extern from "log/key_set.h" nogil:
    ctypedef struct keys_t:
        uint64_t[2] secret
        int64_t n
    int keys_reserve(keys_t*, int64_t)
    int keys_insert(keys_t*, const strings_t*, const strings_t*, uint8_t*)
    int keys_contain(const keys_t*, const strings_t*, const strings_t*, uint8_t*)
    void keys_free(keys_t*)


cdef int check_lengths(Strings paths, Strings ids) except -1:
    if paths.array.n != ids.array.n:
        raise InvalidArgumentError(f"{paths.array.n} paths come with {ids.array.n} deletion vector ids")
    return 0


cdef class Keys:
    cdef keys_t keys
    cdef list arrays  # the arrays that contain the bytes of the keys
    cdef int readers
    cdef bint writing

    def __cinit__(self):
        cdef bytes secret = os.urandom(16)
        memcpy(self.keys.secret, <const char*>secret, 16)
        self.arrays = []

    def __dealloc__(self):
        keys_free(&self.keys)

    def __len__(self):
        return self.keys.n

    def reserve(self, int64_t more):
        """Make room for `more` further keys."""
        if self.writing or self.readers:
            raise InvalidArgumentError("a KeySet takes no keys while another thread uses it")
        if more > 0 and not keys_reserve(&self.keys, more):
            raise MemoryError

    def insert(self, paths, ids):
        cdef Strings path_strings = Strings(paths, 0)
        cdef Strings id_strings = Strings(ids, path_strings.array.n)
        cdef uint8_t[::1] view
        cdef int done = 1
        cdef int64_t before = self.keys.n
        check_lengths(path_strings, id_strings)
        # The interpreter's lock is released below, so two threads may be in this function; counters change only while it is
        # held.
        if self.writing or self.readers:
            raise InvalidArgumentError("a KeySet takes no keys while another thread uses it")
        out = np.empty(path_strings.array.n, np.uint8)
        if path_strings.array.n:
            view = out
            self.arrays += [path_strings, id_strings]
            self.writing = True
            with nogil:
                done = keys_insert(&self.keys, &path_strings.array, &id_strings.array, &view[0])
            self.writing = False
            if self.keys.n == before:
                del self.arrays[-2:]
        if not done:
            raise MemoryError
        return out

    def contains(self, paths, ids):
        cdef Strings path_strings = Strings(paths, 0)
        cdef Strings id_strings = Strings(ids, path_strings.array.n)
        cdef uint8_t[::1] view
        cdef int done = 1
        check_lengths(path_strings, id_strings)
        if self.writing:
            raise InvalidArgumentError("a KeySet isn't asked while another thread adds keys")
        out = np.empty(path_strings.array.n, np.uint8)
        if path_strings.array.n:
            view = out
            self.readers += 1
            with nogil:
                done = keys_contain(&self.keys, &path_strings.array, &id_strings.array, &view[0])
            self.readers -= 1
        if not done:
            raise MemoryError
        return out


cdef char* write_number(char* out, int64_t value) noexcept nogil:
    """Write "@" and the number, at most 21 characters, and return the end."""
    cdef char[20] digits
    cdef int n = 0
    # The lowest int64 has no positive counterpart, but its uint64 value has.
    cdef uint64_t rest = <uint64_t>0 - <uint64_t>value if value < 0 else <uint64_t>value
    while True:
        digits[n] = <char>(48 + rest % 10)
        rest = rest // 10
        n += 1
        if not rest:
            break
    out[0] = c"@"
    out += 1
    if value < 0:
        out[0] = c"-"
        out += 1
    while n:
        n -= 1
        out[0] = digits[n]
        out += 1
    return out


def unique_ids(storage, paths, const int64_t[::1] at, const uint8_t[::1] has_at):
    """Return the offsets and bytes of storageType + pathOrInlineDv, followed by "@" + offset if the vector has an offset."""
    cdef Strings kinds = Strings(storage, 0), texts = Strings(paths, 0)
    cdef int64_t i, n = kinds.array.n, most = 0
    cdef text_t kind, text
    cdef char* target
    cdef char* first
    if texts.array.n != n or at.shape[0] != n or has_at.shape[0] != n:
        raise InvalidArgumentError(f"columns of {n}, {texts.array.n}, {at.shape[0]} and {has_at.shape[0]} rows")
    for i in range(n):
        most += max(string_at(&kinds.array, i).size, 0) + max(string_at(&texts.array, i).size, 0) + 21
    offsets, data = np.zeros(n + 1, np.int64), np.empty(most, np.uint8)
    cdef int64_t[::1] ends = offsets
    cdef uint8_t[::1] view = data
    if not most:
        return offsets, data
    first = target = <char*>&view[0]
    with nogil:
        for i in range(n):
            kind, text = string_at(&kinds.array, i), string_at(&texts.array, i)
            if kind.size >= 0 and text.size >= 0:
                memcpy(target, kind.data, kind.size)
                memcpy(target + kind.size, text.data, text.size)
                target += kind.size + text.size
                if has_at[i]:
                    target = write_number(target, at[i])
            ends[i + 1] = target - first
    return offsets, data[:ends[n]]
