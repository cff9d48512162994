"""Many files of a local disk at once; `delta_core.storage.folders` is its public API."""

import os

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

include "memory/arrow_strings.pxi"

cdef extern from "string.h" nogil:
    void* memset(void*, int, size_t)
    void* memcpy(void*, const void*, size_t)

cdef extern from "storage/folders.h" nogil:
    ctypedef struct entry_t:
        int64_t end, size, modified_ms, kind
    ctypedef struct entries_t:
        uint8_t* names
        entry_t* entries
        int64_t used, n
    ctypedef struct first_t:
        char** names
        int64_t n, count
    int first_names(const char* folder, const char* start, int64_t limit, first_t* out)
    void first_free(first_t*)
    int list_entries(const char* folder, const char* prefix, size_t prefix_size, entries_t* out)
    void entries_free(entries_t*)
    int visit_files(const char* root, const strings_t* paths, int64_t* sizes, int64_t* times, int32_t* errors)
    int create_files(char* names, const int64_t* name_ends, const uint8_t* data, const int64_t* ends, int64_t n,
                     int64_t* times, int64_t* failed)
    int sync_files(const char* names, const int64_t* name_ends, int64_t n, int64_t* failed)


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


def first_files(bytes folder, bytes start, int64_t limit):
    """Return the first names of files from a start name on, in their order, and how many there are.

    Links count as what they lead to. ``limit`` is the most names that are returned, or -1 for all.
    """
    cdef first_t found
    cdef const char* path = folder
    cdef const char* first = start
    cdef int error
    cdef int64_t i
    memset(&found, 0, sizeof(first_t))
    with nogil:
        error = first_names(path, first, limit, &found)
    try:
        if error:
            raise OSError(error, os.strerror(error), os.fsdecode(folder))
        return [<bytes>found.names[i] for i in range(found.n)], found.count
    finally:
        first_free(&found)


cdef int copy(int64_t[:, ::1] table, const entry_t* source, int64_t n) noexcept:
    memcpy(&table[0, 0], source, n * sizeof(entry_t))
    return 0


def visit(bytes root, paths, bint delete):
    """Find or delete files below a root; return sizes, times and error numbers. Sizes and times are empty for deletions."""
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


cdef int check_names(const uint8_t[::1] names, const int64_t[::1] ends) except -1:
    cdef int64_t i, name = 0
    for i in range(ends.shape[0]):
        if ends[i] <= name or ends[i] > names.shape[0] or names[ends[i] - 1]:
            raise ValueError("the ends are not those of the names")
        name = ends[i]
    return 0


def create(uint8_t[::1] names not None, const int64_t[::1] name_ends not None, const uint8_t[::1] data not None,
           const int64_t[::1] ends not None):
    """Create files; return their times, an error number (0: none) and the index of the file that failed."""
    cdef int64_t i, n = ends.shape[0], start = 0, failed = 0
    cdef int error = 0
    check_names(names, name_ends)
    if name_ends.shape[0] != n:
        raise ValueError("each file needs a path")
    for i in range(n):
        if ends[i] < start or ends[i] > data.shape[0]:
            raise ValueError("the ends are not those of the files")
        start = ends[i]
    times = np.zeros(n, np.int64)
    cdef int64_t[::1] view = times
    cdef const uint8_t* content = &data[0] if start else NULL
    if n:
        with nogil:
            error = create_files(<char*>&names[0], &name_ends[0], content, &ends[0], n, &view[0], &failed)
    return times, error, failed


def sync(const uint8_t[::1] names not None, const int64_t[::1] name_ends not None):
    """Sync files and folders; return an error number (0: none) and the index of the path that failed."""
    cdef int64_t n = name_ends.shape[0], failed = 0
    cdef int error = 0
    check_names(names, name_ends)
    if n:
        with nogil:
            error = sync_files(<const char*>&names[0], &name_ends[0], n, &failed)
    return error, failed
