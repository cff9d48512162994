"""Reads of open files; `delta_core.storage.open_files` is its public API."""

import os

from cpython.exc cimport PyErr_SetFromErrno
from libc.stdint cimport int64_t, uint8_t


cdef extern from "platform/files.h" nogil:
    int file_open(const char* path)
    int64_t file_read_at(int descriptor, void* out, size_t size, int64_t at)


def open_shared(bytes path):
    """Return the descriptor of a file, which others may replace or delete while it is open."""
    cdef const char* name = path
    cdef int descriptor
    with nogil:
        descriptor = file_open(name)
    if descriptor < 0:
        raise_error(path)
    return descriptor


def read_into(int descriptor, uint8_t[::1] out not None, int64_t at):
    """Read bytes from a place on, regardless of the position in the file; return how many, 0 at its end."""
    cdef int64_t size = out.shape[0], count = 0
    if size:
        with nogil:
            count = file_read_at(descriptor, &out[0], <size_t>size, at)
        if count < 0:
            raise_error(None)
    return count


cdef int raise_error(path) except -1:
    try:
        PyErr_SetFromErrno(OSError)
    except OSError as e:
        raise OSError(e.errno, os.strerror(e.errno), None if path is None else os.fsdecode(path)) from None
    return 0
