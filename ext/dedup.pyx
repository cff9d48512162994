"""The seen set of log replay; `delta_core.kernels.dedup` is its face."""

import os

import numpy as np

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

include "arrow_strings.pxi"


cdef extern from "key_set.h" nogil:
    ctypedef struct keys_t:
        uint64_t[2] secret
        int64_t n, used
    int keys_insert(keys_t*, const strings_t*, const strings_t*, uint8_t*)
    int keys_contain(const keys_t*, const strings_t*, const strings_t*, uint8_t*)
    void keys_free(keys_t*)


cdef int check_lengths(Strings paths, Strings ids) except -1:
    if paths.array.n != ids.array.n:
        raise InvalidArgumentError(f"{paths.array.n} paths come with {ids.array.n} deletion vector ids")
    return 0


cdef class Keys:
    cdef keys_t keys
    cdef int readers
    cdef bint writing

    def __cinit__(self):
        cdef bytes secret = os.urandom(16)
        memcpy(self.keys.secret, <const char*>secret, 16)

    def __dealloc__(self):
        keys_free(&self.keys)

    def __len__(self):
        return self.keys.n

    def insert(self, paths, ids):
        cdef Strings path_strings = Strings(paths, 0)
        cdef Strings id_strings = Strings(ids, path_strings.array.n)
        cdef uint8_t[::1] view
        cdef int done = 1
        check_lengths(path_strings, id_strings)
        # The GIL is released below, so two threads may meet here; counters change only while it is held.
        if self.writing or self.readers:
            raise InvalidArgumentError("a KeySet takes no keys while another thread uses it")
        out = np.empty(path_strings.array.n, np.uint8)
        if path_strings.array.n:
            view = out
            self.writing = True
            with nogil:
                done = keys_insert(&self.keys, &path_strings.array, &id_strings.array, &view[0])
            self.writing = False
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
