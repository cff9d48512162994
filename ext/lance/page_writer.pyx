# distutils: language = c++
"""Pages of Lance data files from Arrow arrays; `delta_plugins.lance.files.write_file` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint64_t, uintptr_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.vector cimport vector

import pyarrow as pa

include "lance/blocks.pxi"


cdef extern from "lance/page_writer.h" namespace "delta_lance" nogil:
    cdef cppclass LayerIn:
        int kind
        const uint8_t* validity
        uint64_t offset
        const uint8_t* offsets
        uint64_t size
    cdef cppclass ItemsIn:
        uint64_t size
        const uint8_t* validity
        uint64_t offset
    cdef cppclass ValuesIn:
        const uint8_t* data
        uint64_t offset
        const uint8_t* offsets
        bool is_wide
        vector[ItemsIn] lists
    cdef cppclass PageSource:
        unsigned bits, code_bits
        bool is_wide
        uint64_t list_items, num_rows, most_codes
        vector[uint64_t] list_sizes
        void set_layers(const vector[bool]& is_list)
        void lend_from(KeptBlocks* source)
        Error append(const vector[LayerIn]& layers, const ValuesIn& values, uint64_t n)
        uint64_t size()
        void clear()
    ctypedef int64_t (*Zip)(void* state, int scheme, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept nogil
    cdef cppclass WriteOptions:
        bool has_constants, has_large_chunks, wants_fsst, needs_fsst, splits_bytes
        int scheme, structure
        bool wants_dictionary
        double run_threshold, dictionary_divisor, dictionary_ratio
        uint64_t chunk_bytes
        int dictionary_scheme
        Zip zip
        void* state
        void* dictionary_state
    cdef cppclass PageOut:
        int layout, rep_bits, def_bits, value, scheme, dictionary_scheme
        vector[int] layers
        uint64_t num_rows, value_bits, num_dictionary_items, num_buffers, num_items, num_entries, bits_per_offset, bits_per_value
        bool has_dictionary, has_constant
        vector[uint8_t] table, constant
        vector[bool] list_validity
        vector[Block] buffers
    cdef cppclass PageWriter:
        Error write(PageSource& source, const WriteOptions& options, uint64_t multiple, vector[PageOut]& out)


class UnwritablePageError(Exception):
    """Rows that can't be stored in a page; the text states why."""


cdef int check(Error error) except -1:
    if error == NULL:
        return 0
    if error == NO_MEMORY:
        raise MemoryError
    raise UnwritablePageError(error.decode())


cdef int64_t zip_bytes(void* state, int scheme, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept with gil:
    """Compress with a codec of PyArrow."""
    try:
        found = (<object>state).compress(pa.foreign_buffer(<uintptr_t>data, n), asbytes=True)
        if len(found) > size:
            return -1
        memcpy(out, <const char*>found, len(found))
        return len(found)
    except Exception:  # noqa: BLE001
        return -1


cdef class PageCollector:
    """The rows of one column that are not written yet, and how they become a page.

    Parameters
    ----------
    bits : int
        Of a value; 0 if each has its own length.
    is_wide : bool
        Whether the offsets of values have 64 bits.
    list_sizes : list of int
        Of lists of a fixed size within a value, the outermost first.
    layers : list of bool
        Whether each layer is a list, the outermost first.
    code_bits, most_codes : int
        Of the keys of a dictionary type, and how many there are; 0 for another one.
    multiple : int
        Entries for each row of the table, at which pages begin.
    """

    cdef PageSource source
    cdef PageWriter writer
    cdef uint64_t multiple

    def __init__(self, unsigned bits, bint is_wide, list_sizes, layers, unsigned code_bits, uint64_t most_codes, uint64_t multiple):
        self.multiple = multiple
        self.source.code_bits = code_bits
        self.source.most_codes = most_codes
        self.source.bits = bits
        self.source.is_wide = is_wide
        self.source.list_sizes = list_sizes
        self.source.list_items = 1
        for size in list_sizes:
            self.source.list_items *= size
        self.source.lend_from(source())
        self.source.set_layers(<vector[bool]>layers)

    @property
    def num_bytes(self):
        """Bytes in memory."""
        return self.source.size()

    @property
    def num_rows(self):
        """Rows that are collected; more than one for each row of the table above lists of structs."""
        return self.source.num_rows

    def append(self, layers, values, uint64_t n):
        """Append rows of an Arrow array.

        Parameters
        ----------
        layers : list of tuple
            (kind, address of the validity, offset, address of offsets, size) of each layer, the outermost first; kinds are
            0 item, 1 list, 2 large list, 3 list of a fixed size, 4 only nulls. An address of 0 is no buffer.
        values : tuple
            (address of the values, offset, address of offsets, has 64-bit offsets, lists), where lists are
            (size, address of the validity, offset) of lists of a fixed size.
        n : int
            The rows.
        """
        cdef vector[LayerIn] found
        cdef LayerIn layer
        cdef ItemsIn items
        cdef ValuesIn given
        cdef Error error
        for kind, validity, offset, offsets, size in layers:
            layer.kind = kind
            layer.validity = <const uint8_t*><uintptr_t>validity
            layer.offset = offset
            layer.offsets = <const uint8_t*><uintptr_t>offsets
            layer.size = size
            found.push_back(layer)
        data, at, value_offsets, is_wide, lists = values
        given.data = <const uint8_t*><uintptr_t>data
        given.offset = at
        given.offsets = <const uint8_t*><uintptr_t>value_offsets
        given.is_wide = is_wide
        for size, validity, offset in lists:
            items.size = size
            items.validity = <const uint8_t*><uintptr_t>validity
            items.offset = offset
            given.lists.push_back(items)
        with nogil:
            error = self.source.append(found, given, n)
        check(error)

    def write(self, bint is_later, requests):
        """Write the rows as pages of version 2.1 or 2.2, and forget them.

        Parameters
        ----------
        is_later : bool
            Whether the version is 2.2: it has constant pages, and chunks of any size.
        requests : Requests
            Those of the field.

        Returns
        -------
        list of tuple
            The facts of the layout by their names, and the buffers, of each page.
        """
        cdef WriteOptions options
        cdef vector[PageOut] pages
        cdef Error error
        cdef size_t i
        codec, dictionary_codec = requests.codec, requests.dictionary_codec
        options.has_constants = is_later
        options.has_large_chunks = is_later
        options.scheme = requests.scheme
        options.structure = requests.structure
        options.wants_fsst = requests.wants_fsst
        options.needs_fsst = requests.needs_fsst
        options.splits_bytes = requests.splits_bytes
        options.run_threshold = requests.run_threshold
        options.chunk_bytes = requests.chunk_bytes
        options.wants_dictionary = requests.wants_dictionary
        options.dictionary_divisor = requests.dictionary_divisor
        options.dictionary_ratio = requests.dictionary_ratio
        options.dictionary_scheme = requests.dictionary_scheme
        options.zip = zip_bytes
        options.state = <void*>codec
        options.dictionary_state = <void*>dictionary_codec
        with nogil:
            error = self.writer.write(self.source, options, self.multiple, pages)
        check(error)
        self.source.clear()
        return [page_of(pages[i]) for i in range(pages.size())]


cdef tuple page_of(PageOut& page):
    cdef size_t i
    facts = {
        "layout": page.layout,
        "layers": list(page.layers),
        "rep_bits": page.rep_bits,
        "def_bits": page.def_bits,
        "value": page.value,
        "value_bits": page.value_bits,
        "scheme": page.scheme,
        "num_buffers": page.num_buffers,
        "num_items": page.num_items,
        "num_entries": page.num_entries,
        "num_dictionary_items": page.num_dictionary_items if page.has_dictionary else None,
        "dictionary_scheme": page.dictionary_scheme,
        "bits_per_offset": page.bits_per_offset,
        "bits_per_value": page.bits_per_value,
        "table": bytes_of(page.table),
        "constant": bytes_of(page.constant) if page.has_constant else None,
        "list_validity": list(page.list_validity),
        "rows": page.num_rows,
    }
    return facts, [exported(page.buffers[i]) for i in range(page.buffers.size())]


cdef bytes bytes_of(const vector[uint8_t]& data):
    return (<const char*>data.data())[:data.size()] if data.size() else b""
