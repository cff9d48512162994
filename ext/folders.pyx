"""Many files of a local disk at once; `delta_core.kernels.folders` is its public API."""

import os

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

include "arrow_strings.pxi"

cdef extern from "string.h" nogil:
    void* memset(void*, int, size_t)
    void* memcpy(void*, const void*, size_t)

cdef extern from "folders.h" nogil:
    ctypedef struct entry_t:
        int64_t end, size, modified_ms, kind
    ctypedef struct entries_t:
        uint8_t* names
        entry_t* entries
        int64_t used, n
    int list_entries(const char* folder, const char* prefix, size_t prefix_size, entries_t* out)
    void entries_free(entries_t*)
    int visit_files(const char* root, const strings_t* paths, int64_t* sizes, int64_t* times, int32_t* errors)
    void hash_strings(const strings_t*, const uint64_t* secret, uint64_t* out)


def entries(bytes folder, bytes prefix):
    """Return names (with a prefix) as bytes, and their ends, sizes, times and kinds."""
    cdef entries_t found
    cdef const char* path = folder
    cdef const char* before = prefix
    cdef size_t size = len(prefix)
    cdef int error
    with nogil:
        memset(&found, 0, sizeof(entries_t))
        error = list_entries(path, before, size, &found)
    try:
        if error:
            raise OSError(error, os.strerror(error), os.fsdecode(folder))
        table = np.empty((found.n, 4), np.int64)
        if found.n:
            copy(table, found.entries, found.n)
        return (<char*>found.names)[:found.used] if found.used else b"", table
    finally:
        entries_free(&found)


cdef int copy(int64_t[:, ::1] table, const entry_t* source, int64_t n) noexcept:
    memcpy(&table[0, 0], source, n * sizeof(entry_t))
    return 0


def visit(bytes root, paths, bint delete):
    """Find or delete files below a root; return sizes, times and error numbers, the first two empty if files are deleted."""
    cdef Strings texts = Strings(paths, 0)
    cdef const char* top = root
    cdef int64_t n = texts.array.n
    errors = np.zeros(n, np.int32)
    sizes = np.full(0 if delete else n, -1, np.int64)
    times = np.full(0 if delete else n, -1, np.int64)
    cdef int32_t[::1] error_view = errors
    cdef int64_t[::1] size_view = sizes
    cdef int64_t[::1] time_view = times
    cdef int failed = 0
    if n:
        with nogil:
            if delete:
                failed = visit_files(top, &texts.array, NULL, NULL, &error_view[0])
            else:
                failed = visit_files(top, &texts.array, &size_view[0], &time_view[0], &error_view[0])
    if failed:
        raise OSError(failed, os.strerror(failed), os.fsdecode(root))
    return sizes, times, errors


def hashes(texts, const uint64_t[::1] secret):
    """Return a hash of 64 bits of each text, 0 for null; the secret is two random numbers."""
    cdef Strings strings = Strings(texts, 0)
    out = np.empty(strings.array.n, np.uint64)
    cdef uint64_t[::1] view = out
    if strings.array.n:
        with nogil:
            hash_strings(&strings.array, &secret[0], &view[0])
    return out
