"""Paths of many files as Python strings; `delta_core.kernels.path_texts` is its public API."""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy

include "memory/arrow_strings.pxi"

cdef extern from "log/path_texts.h" nogil:
    int NOT_ASCII, PERCENT, COLON, DOTS, NUL
    int text_traits(const uint8_t*, int64_t)
    int64_t percent_decode(const uint8_t*, int64_t, uint8_t*)
    bint has_scheme(const uint8_t*, int64_t)
    bint is_normal(const uint8_t*, int64_t)

cdef extern from "Python.h":
    str PyUnicode_New(Py_ssize_t, Py_UCS4)
    uint8_t* PyUnicode_1BYTE_DATA(object)
    str PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)

cdef extern from *:
    """
    /* Move the items of a list after the first `at` ones of another list, which has room for them. */
    static Py_ssize_t move_items(PyObject *into, Py_ssize_t at, PyObject *from) {
        Py_ssize_t n = PyList_GET_SIZE(from);
        for (Py_ssize_t i = 0; i < n; i++) {
            PyList_SET_ITEM(into, at + i, PyList_GET_ITEM(from, i));
            PyList_SET_ITEM(from, i, NULL);
        }
        return at + n;
    }
    """
    Py_ssize_t move_items(object into, Py_ssize_t at, object source)

#: This many paths are processed together, so that their bytes are still in a core's cache when they are copied.
cdef int64_t BLOCK = 2048


cdef class Room:
    """Bytes that grow, and are overwritten by each text."""

    cdef uint8_t* data
    cdef int64_t size

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef uint8_t* reserve(self, int64_t size) except NULL:
        if size > self.size or self.data == NULL:
            PyMem_Free(self.data)
            self.size = 2 * size + 256
            self.data = <uint8_t*>PyMem_Malloc(self.size)
            if self.data == NULL:
                self.size = 0
                raise MemoryError
        return self.data


cdef class Texts:
    """A list that is filled part by part, and the rows that have no text yet."""

    cdef list found, missing
    cdef int64_t n

    def __cinit__(self, int64_t size):
        self.found = PyList_New(size)
        self.missing = []

    cdef int add(self, object text) except -1:
        if text is None:
            self.missing.append(self.n)
        Py_INCREF(text)
        PyList_SET_ITEM(self.found, self.n, text)
        self.n += 1
        return 0


def decoded(parts, int64_t size):
    """Return each path percent-decoded, and the rows that are None, which `delta_core.kernel.log.paths` decodes."""
    cdef Texts texts = Texts(size)
    cdef Room room = Room()
    cdef Strings strings
    cdef int64_t row
    for part, length in parts:
        strings = Strings(part, length)
        for row in range(strings.array.n):
            texts.add(one_decoded(string_at(&strings.array, row), room))
    return texts.found, texts.missing


cdef object one_decoded(text_t path, Room room):
    cdef int traits
    cdef int64_t size
    cdef uint8_t* out
    if path.size < 0:
        return None
    traits = text_traits(path.data, path.size)
    if not traits & PERCENT:
        return joined(NULL, 0, path.data, path.size, NULL, 0, not traits & NOT_ASCII)
    out = room.reserve(path.size)
    size = percent_decode(path.data, path.size, out)
    # an encoded colon does not end a scheme
    if not traits & COLON and has_scheme(out, size):
        return None
    return joined(NULL, 0, out, size, NULL, 0, not text_traits(out, size) & NOT_ASCII)


def uris(
    parts, int64_t size, const uint8_t[::1] before, const uint8_t[::1] behind, bint percents, bint colons
):
    """Return each path between two texts, percent-decoded, and the rows that are None, which the storage resolves.

    The arguments `percents` and `colons` specify whether the storage leaves such signs in a decoded path.
    """
    cdef Texts texts = Texts(size)
    cdef Room room = Room()
    cdef Strings strings
    cdef int64_t row, first, last
    cdef bint simple
    cdef Around around
    around.before, around.before_size = &before[0] if before.shape[0] else NULL, before.shape[0]
    around.behind, around.behind_size = &behind[0] if behind.shape[0] else NULL, behind.shape[0]
    around.traits = text_traits(around.before, around.before_size) | text_traits(around.behind, around.behind_size)
    around.percents, around.colons = percents, colons
    for part, length in parts:
        strings = Strings(part, length)
        for first in range(0, strings.array.n, BLOCK):
            last = min(first + BLOCK, strings.array.n)
            simple = block_is_simple(&strings.array, first, last)
            for row in range(first, last):
                texts.add(one_uri(string_at(&strings.array, row), simple, &around, room))
    return texts.found, texts.missing


def moved_together(list lists not None):
    """Return the items of lists as one list, and empty these; the items are moved, so no reference count changes."""
    cdef Py_ssize_t size = 0, at = 0
    cdef list part, found
    for part in lists:
        size += len(part)
    found = PyList_New(size)
    for part in lists:
        at = move_items(found, at, part)
        part.clear()
    if at < size:
        raise InvalidArgumentError("lists that are joined have to be distinct")
    return found


cdef struct Around:
    const uint8_t* before
    const uint8_t* behind
    int64_t before_size, behind_size
    int traits
    bint percents, colons


cdef extern from *:
    """
    /* Whether the bytes of some rows are ASCII without any sign that needs a look. */
    static int block_is_simple(const strings_t *s, int64_t first, int64_t last) {
        if (!s->offsets) return 1;
        int64_t start = string_offset(s, first);
        return !text_traits(s->data + start, string_offset(s, last) - start);
    }
    """
    bint block_is_simple(const strings_t*, int64_t, int64_t)


cdef object one_uri(text_t path, bint simple, const Around* around, Room room):
    cdef int traits = 0
    cdef uint8_t* out
    if path.size < 0:
        return None
    if not simple:
        traits = text_traits(path.data, path.size)
        if traits & COLON:  # it may be a URI
            return None
        if traits & PERCENT:
            out = room.reserve(path.size)
            path.size = percent_decode(path.data, path.size, out)
            path.data = out
            traits = text_traits(path.data, path.size)
        if traits & (NUL | DOTS) or (traits & PERCENT and not around.percents):
            return None
        if traits & COLON and not (
            around.colons and not traits & PERCENT and not has_scheme(path.data, path.size) and is_normal(path.data, path.size)
        ):
            return None
    # not a path, or an absolute one
    if not path.size or path.data[0] == c"/":
        return None
    return joined(
        around.before, around.before_size, path.data, path.size, around.behind, around.behind_size,
        not (traits | around.traits) & NOT_ASCII,
    )


cdef object joined(
    const uint8_t* before, int64_t before_size, const uint8_t* text, int64_t size, const uint8_t* behind,
    int64_t behind_size, bint ascii
):
    """Return the concatenation of three texts; None if it is not UTF-8."""
    cdef int64_t whole = before_size + size + behind_size
    cdef uint8_t* place
    cdef object found
    cdef Room room
    if ascii:
        # Python stores ASCII unchanged
        found = PyUnicode_New(whole, 127)
        if not whole:
            return found
        place = PyUnicode_1BYTE_DATA(found)
    else:
        room = Room()
        place = room.reserve(whole)
    if before_size:
        memcpy(place, before, before_size)
    memcpy(place + before_size, text, size)
    if behind_size:
        memcpy(place + before_size + size, behind, behind_size)
    if ascii:
        return found
    try:
        return PyUnicode_DecodeUTF8(<const char*>place, whole, NULL)
    except UnicodeDecodeError:
        return None
