# distutils: language = c++
"""Variants to JSON text, and shredded columns to variants: the compiled half of `delta_plugins.variant_type.binary_form`."""

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.utility cimport pair
from libcpp.vector cimport vector


cdef extern from "features/variant.h" namespace "delta_variant" nogil:
    cdef cppclass BinaryColumn:
        const int64_t* offsets
        const char* data
        int64_t data_size
        const uint8_t* valid

    cdef cppclass Typed:
        int kind
        const uint8_t* valid
        int64_t rows
        uint8_t type
        int width
        int stride
        int scale
        const char* data
        BinaryColumn text
        vector[pair[string, int]] fields
        const int64_t* offsets
        int element

    cdef cppclass Slot:
        const uint8_t* valid
        int64_t rows
        cbool has_value
        BinaryColumn value
        int typed

    cdef cppclass Unshredder:
        vector[Slot] slots
        vector[Typed] typed
        void run(const BinaryColumn&, string&, int64_t*) except +ValueError

    void json "delta_variant::to_json"(const BinaryColumn&, const BinaryColumn&, int64_t, string&, int64_t*) except +ValueError


cdef const uint8_t* bytes_of(array, int64_t size, list keep) except? NULL:
    cdef const uint8_t[::1] view = array
    if view.shape[0] < size:
        raise ValueError(f"an array has {view.shape[0]} bytes, expected {size}")
    keep.append(array)
    return &view[0] if view.shape[0] else NULL


cdef const int64_t* offsets_of(array, int64_t rows, list keep) except? NULL:
    cdef const int64_t[::1] view = array
    if view.shape[0] != rows + 1:
        raise ValueError(f"an array of {rows} rows has {view.shape[0]} offsets")
    keep.append(array)
    return &view[0]


cdef int fill_binary(BinaryColumn* column, tuple source, int64_t rows, list keep) except -1:
    offsets, data, valid = source
    column.offsets = offsets_of(offsets, rows, keep)
    column.data = <const char*>bytes_of(data, 0, keep)
    column.data_size = len(data)
    column.valid = bytes_of(valid, rows, keep)
    return 0


cdef int add_slot(Unshredder* target, tuple source, list keep) except -1:
    """Add a group (valid, value or None, typed or None) and the columns below it; return its index."""
    cdef Slot slot
    valid, value, typed = source
    slot.rows = len(valid)
    slot.valid = bytes_of(valid, slot.rows, keep)
    slot.has_value = value is not None
    slot.typed = -1
    if value is not None:
        fill_binary(&slot.value, value, slot.rows, keep)
    cdef int index = <int>target.slots.size()
    target.slots.push_back(slot)
    cdef int below
    if typed is not None:
        below = add_typed(target, typed, slot.rows, keep)
        target.slots[index].typed = below
    return index


cdef int add_typed(Unshredder* target, tuple source, int64_t rows, list keep) except -1:
    cdef Typed typed
    cdef pair[string, int] field
    kind, valid, parts = source
    typed.kind = KINDS[kind]
    typed.rows = rows
    typed.valid = bytes_of(valid, rows, keep)
    typed.scale = typed.element = -1
    if kind == "boolean":
        typed.data = <const char*>bytes_of(parts, rows, keep)
    elif kind == "fixed":
        typed.type, typed.width, typed.stride, typed.scale, data = parts
        if not 0 < typed.width <= typed.stride:
            raise ValueError(f"values of {typed.stride} bytes have no {typed.width} bytes")
        typed.data = <const char*>bytes_of(data, rows * typed.stride, keep)
    elif kind == "text":
        typed.type, column = parts
        fill_binary(&typed.text, column, rows, keep)
    elif kind == "fields":
        for name, slot in sorted(parts.items()):
            if len(slot[0]) != rows:
                raise ValueError(f"field {name!r} has {len(slot[0])} rows, expected {rows}")
            field.first, field.second = name, add_slot(target, slot, keep)
            typed.fields.push_back(field)
    else:
        offsets, slot = parts
        typed.offsets = offsets_of(offsets, rows, keep)
        typed.element = add_slot(target, slot, keep)
    target.typed.push_back(typed)
    return <int>target.typed.size() - 1


KINDS = {"fixed": 0, "boolean": 1, "text": 2, "fields": 3, "elements": 4}


def to_json(tuple metadata, tuple value, int64_t rows):
    """Return (text, int64[rows + 1] ends); rows that are not valid in ``value`` are empty."""
    cdef list keep = []
    cdef BinaryColumn names, values
    fill_binary(&names, metadata, rows, keep)
    fill_binary(&values, value, rows, keep)
    ends = np.empty(rows + 1, np.int64)
    cdef int64_t[::1] view = ends
    cdef string out
    with nogil:
        json(names, values, rows, out, &view[0])
    return PyBytes_FromStringAndSize(out.data(), out.size()), ends


def unshred(tuple metadata, tuple slot):
    """Return (values, int64[rows + 1] ends) of the variants that a group of columns represents."""
    cdef list keep = []
    cdef BinaryColumn names
    cdef Unshredder work
    add_slot(&work, slot, keep)
    cdef int64_t rows = work.slots[0].rows
    fill_binary(&names, metadata, rows, keep)
    ends = np.empty(rows + 1, np.int64)
    cdef int64_t[::1] view = ends
    cdef string out
    with nogil:
        work.run(names, out, &view[0])
    return PyBytes_FromStringAndSize(out.data(), out.size()), ends
