# distutils: language = c++
"""Footers of Parquet files, for `delta_core.parquet`: `opened_file`, `footer_check`, `local_footers`, `row_group_files`."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.utility cimport pair
from libcpp.vector cimport vector

import numpy as np


cdef extern from "parquet/footer.h" namespace "delta_parquet" nogil:
    cdef cppclass ChunkFacts:
        int64_t type, codec, encodings, num_values, uncompressed, compressed, data_page, dictionary_page, null_count
        int64_t bloom_filter, bloom_filter_size, column_index, column_index_size, offset_index, offset_index_size
        string_view least, most
        bint has_least, has_most, is_plain, has_uncoded_pages
    cdef cppclass GroupFacts:
        int64_t num_rows
        vector[ChunkFacts] chunks
    cdef cppclass FooterFacts:
        int64_t num_rows
        vector[GroupFacts] groups
        string_view schema, metadata, created_by
        bint has_orders, is_plain
    cdef cppclass FooterReader:
        FooterReader(const uint8_t* data, const uint8_t* end)
        bint footer(FooterFacts& out) except +


cdef extern from "parquet/schema.h" namespace "delta_parquet" nogil:
    cdef cppclass SchemaElement:
        string_view name
        int64_t type, length, repetition, children, converted, field_id, logical, unit
        bint is_utc
    cdef cppclass SchemaReader:
        SchemaReader(const uint8_t* data, const uint8_t* end)
        bint elements(vector[SchemaElement]& out) except +
        bint pairs(vector[pair[string_view, string_view]]& out) except +


cdef enum:  # of parquet.thrift
    INT32_TYPE = 1
    INT64_TYPE = 2
    FLOAT_TYPE = 4
    DOUBLE_TYPE = 5
    BYTE_ARRAY_TYPE = 6


cdef bytes text_of(string_view text):
    return text.data()[:text.size()]


cdef int64_t first_page(ChunkFacts* chunk) noexcept:
    """Return the offset of the first page of a chunk."""
    return chunk.dictionary_page if 0 < chunk.dictionary_page < chunk.data_page else chunk.data_page


cdef int64_t null_count_of(const ChunkFacts* chunk) noexcept nogil:
    """Return the nulls of a chunk, -1 if the number is unknown or contradicts other facts of the footer."""
    if chunk.null_count > chunk.num_values or (chunk.null_count == chunk.num_values and (chunk.has_least or chunk.has_most)):
        return -1
    return chunk.null_count


cdef bint read_bound(const ChunkFacts* chunk, bint most, int64_t* whole, double* number) noexcept nogil:
    """Read a bound of numbers, of floats into `number`; return false if there is none."""
    cdef bint is_float = chunk.type == FLOAT_TYPE or chunk.type == DOUBLE_TYPE
    cdef bint is_small = chunk.type == FLOAT_TYPE or chunk.type == INT32_TYPE
    cdef const char* text = chunk.most.data() if most else chunk.least.data()
    cdef int32_t small
    cdef float single
    if not (chunk.has_most if most else chunk.has_least):
        return False
    if (chunk.most.size() if most else chunk.least.size()) != <size_t>(4 if is_small else 8):
        return False
    if is_float and is_small:
        memcpy(&single, text, 4)
        number[0] = single
    elif is_float:
        memcpy(number, text, 8)
    elif is_small:
        memcpy(&small, text, 4)
        whole[0] = small
    else:
        memcpy(whole, text, 8)
    return not is_float or number[0] == number[0]


cdef class Footer:
    """The facts of a parsed footer; `is_known` is false if the footer has to be read with PyArrow.

    Parameters
    ----------
    data : bytes
        Thrift's bytes, without their length and magic.
    """

    cdef FooterFacts facts
    cdef readonly bytes data
    cdef readonly bint is_known

    def __cinit__(self, bytes data not None):
        self.data = data  # the facts refer to these bytes
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t size = len(data)
        cdef FooterReader* reader = new FooterReader(start, start + size)
        cdef int64_t rows = 0
        cdef size_t i
        try:
            with nogil:
                self.is_known = reader.footer(self.facts) and self.facts.is_plain and self.facts.has_orders
                for i in range(self.facts.groups.size()):
                    rows += self.facts.groups[i].num_rows
                self.is_known = self.is_known and rows == self.facts.num_rows
        finally:
            del reader

    @property
    def key(self):
        """The bytes of the schema and of the key-value metadata."""
        return text_of(self.facts.schema), text_of(self.facts.metadata)

    def schema(self):
        """Return the elements of the schema, the root first; None if they can't be parsed.

        Each consists of name, physical type, length, repetition, number of children, converted type, field id, member of
        the union LogicalType, and for a timestamp the member of the union TimeUnit and whether it is adjusted to UTC.
        Numbers that are absent in the footer are -1.
        """
        cdef vector[SchemaElement] found
        cdef SchemaElement* e
        cdef size_t i
        cdef const uint8_t* start = <const uint8_t*>self.facts.schema.data()
        cdef SchemaReader* reader = new SchemaReader(start, start + self.facts.schema.size())
        cdef list out = []
        try:
            if not reader.elements(found):
                return None
        finally:
            del reader
        for i in range(found.size()):
            e = &found[i]
            out.append((
                text_of(e.name), e.type, e.length, e.repetition, e.children, e.converted, e.field_id, e.logical, e.unit,
                bool(e.is_utc),
            ))
        return out

    def metadata(self):
        """Return the pairs of the key-value metadata; None if they can't be parsed."""
        cdef vector[pair[string_view, string_view]] found
        cdef size_t i
        cdef const uint8_t* start = <const uint8_t*>self.facts.metadata.data()
        if self.facts.metadata.size() == 0:
            return []
        cdef SchemaReader* reader = new SchemaReader(start, start + self.facts.metadata.size())
        try:
            if not reader.pairs(found):
                return None
        finally:
            del reader
        return [(text_of(found[i].first), text_of(found[i].second)) for i in range(found.size())]

    def has_chunks(self, size_t columns):
        """Return whether each row group has this number of chunks."""
        cdef size_t i
        for i in range(self.facts.groups.size()):
            if self.facts.groups[i].chunks.size() != columns:
                return False
        return True

    @property
    def group_rows(self):
        """The rows of each row group."""
        return [self.facts.groups[i].num_rows for i in range(self.facts.groups.size())]

    cdef ChunkFacts* _chunk(self, int64_t group, int64_t leaf) except NULL:
        if not 0 <= group < <int64_t>self.facts.groups.size() or not 0 <= leaf < <int64_t>self.facts.groups[group].chunks.size():
            raise IndexError(f"the footer has no column {leaf} of row group {group}")
        return &self.facts.groups[group].chunks[leaf]

    def chunk(self, int64_t group, int64_t leaf):
        """Return the facts of a column chunk.

        These are its physical type, codec, encodings as bits, values, compressed and plain bytes, and offset; and the
        offset and the bytes of its Bloom filter, of its column index and of its offset index, -1 for those absent in the
        footer. None if the chunk is encrypted or in another file.
        """
        cdef ChunkFacts* chunk = self._chunk(group, leaf)
        if not chunk.is_plain:
            return None
        return (
            chunk.type, chunk.codec, chunk.encodings, chunk.num_values, chunk.compressed, chunk.uncompressed,
            first_page(chunk),
            chunk.bloom_filter, chunk.bloom_filter_size,
            chunk.column_index, chunk.column_index_size, chunk.offset_index, chunk.offset_index_size,
        )

    def column_chunks(self, int64_t group, columns, tuple codecs, int64_t known, make):
        """Return the results of `make` for the chunks of flat columns of a row group; None for those that PyArrow has to read.

        Parameters
        ----------
        columns : iterable of (leaf, physical type, type, most level, stored)
        codecs : tuple of str or None
            By their numbers; None for a codec that is not supported.
        known : int
            The encodings that are supported, as bits.
        make : function
            Its arguments are the type, the offset and the compressed bytes, the codec, the most level, the rows, the plain
            bytes, the places of the Bloom filter and of the page index, and `stored`.
        """
        cdef ChunkFacts* chunk
        cdef int64_t leaf, physical, rows
        cdef list out = []
        for leaf, physical, type_, most_level, stored in columns:
            chunk = self._chunk(group, leaf)
            rows = self.facts.groups[group].num_rows
            codec = codecs[chunk.codec] if 0 <= chunk.codec < len(codecs) else None
            if (not chunk.is_plain or chunk.num_values != rows or chunk.type != physical or codec is None
                    or chunk.encodings & ~known or rows <= 0 or chunk.compressed <= 0 or chunk.uncompressed <= 0):
                out.append(None)
                continue
            bloom = (chunk.bloom_filter, chunk.bloom_filter_size) if chunk.bloom_filter >= 0 else None
            index = None
            if chunk.column_index >= 0 and chunk.column_index_size >= 0 and chunk.offset_index >= 0 and chunk.offset_index_size >= 0:
                index = chunk.column_index, chunk.column_index_size, chunk.offset_index, chunk.offset_index_size
            out.append(make(type_, first_page(chunk), chunk.compressed, codec, most_level, rows, chunk.uncompressed, bloom, index, stored))
        return out

    def plain_bytes(self, int64_t group, leaves):
        """Return the plain bytes of columns of a row group; those without facts (see `chunk`) count as 0."""
        return self._num_bytes(group, leaves, is_stored=False)

    def stored_bytes(self, int64_t group, leaves):
        """Return the compressed bytes of columns of a row group, as `plain_bytes`."""
        return self._num_bytes(group, leaves, is_stored=True)

    cdef object _num_bytes(self, int64_t group, leaves, bint is_stored):
        cdef ChunkFacts* chunk
        size = 0  # an object: the numbers of a damaged footer are arbitrary
        for leaf in leaves:
            chunk = self._chunk(group, leaf)
            if chunk.is_plain:
                size += chunk.compressed if is_stored else chunk.uncompressed
        return size

    def null_leaves(self, int64_t group, leaves):
        """Return the leaves whose chunks in a row group are nulls alone, by their null counts and sizes."""
        cdef int64_t leaf
        cdef ChunkFacts* chunk
        cdef list out = []
        for leaf in leaves:
            chunk = self._chunk(group, leaf)
            rows = self.facts.groups[group].num_rows
            if chunk.is_plain and chunk.null_count == rows and chunk.uncompressed <= rows // 64:
                out.append(leaf)
        return out

    def short_texts(self, leaves, int64_t known, int64_t most_bytes):
        """Return the leaves of strings whose values take fewer bytes than this each in the first row group.

        Excluded are those whose chunk has another encoding than the known ones (bits), has pages that are stored plain
        because its dictionary was full, or has no facts (see `chunk`).
        """
        cdef int64_t leaf, nulls
        cdef size_t group, count = self.facts.groups.size()
        cdef ChunkFacts* chunk
        cdef list out = []
        if most_bytes < 1:
            raise ValueError("a value has at least one byte")
        for leaf in leaves:
            for group in range(count):
                chunk = self._chunk(group, leaf)
                if not chunk.is_plain or chunk.encodings & ~known or chunk.has_uncoded_pages:
                    break
                nulls = max(null_count_of(chunk), 0)
                if not group and (chunk.type != BYTE_ARRAY_TYPE or chunk.uncompressed / most_bytes >= chunk.num_values - nulls):
                    break
            else:
                if count:
                    out.append(leaf)
        return out

    def null_counts(self, int64_t leaf):
        """Return the null counts of a column's chunks, **int64[row groups]** as bytes; below zero: unknown."""
        cdef size_t group, count = self.facts.groups.size()
        cdef bytearray out = bytearray(8 * count)
        cdef char* at = PyByteArray_AS_STRING(out)
        cdef int64_t nulls
        for group in range(count):
            nulls = null_count_of(self._chunk(group, leaf))
            memcpy(at + 8 * group, &nulls, 8)
        return out

    def bounds(self, int64_t leaf, bint most, bint is_float):
        """Return the lower or the upper bounds of a column's chunks of numbers, and whether each chunk has one.

        Parameters
        ----------
        is_float : bool
            Whether values are FLOAT or DOUBLE; else INT32 or INT64.

        Returns
        -------
        (bytearray, bytearray) or None
            **float64 or int64[row groups]** and **bool[row groups]**; a chunk has no bound if it is NaN, or if the lower
            one exceeds the upper one. None if a chunk has values of another type.
        """
        cdef size_t group, count = self.facts.groups.size()
        cdef bytearray out = bytearray(8 * count), flags = bytearray(count)
        cdef char* at = PyByteArray_AS_STRING(out)
        cdef char* known = PyByteArray_AS_STRING(flags)
        cdef ChunkFacts* chunk
        cdef int64_t whole[2]
        cdef double numbers[2]
        cdef bint other
        for group in range(count):
            chunk = self._chunk(group, leaf)
            if is_float and chunk.type != FLOAT_TYPE and chunk.type != DOUBLE_TYPE:
                return None
            if not is_float and chunk.type != INT32_TYPE and chunk.type != INT64_TYPE:
                return None
            if not read_bound(chunk, most, &whole[most], &numbers[most]):
                continue
            other = not most
            if read_bound(chunk, other, &whole[other], &numbers[other]):
                if numbers[0] > numbers[1] if is_float else whole[0] > whole[1]:
                    continue  # neither is a bound
            if is_float:
                memcpy(at + 8 * group, &numbers[most], 8)
            else:
                memcpy(at + 8 * group, &whole[most], 8)
            known[group] = 1
        return out, flags

    def statistics(self, int64_t group, int64_t leaf):
        """Return (physical type, null count, lower bound, upper bound) of a column chunk; None for absent ones."""
        cdef ChunkFacts* chunk = self._chunk(group, leaf)
        cdef int64_t nulls = null_count_of(chunk)
        return (
            chunk.type,
            None if nulls < 0 else nulls,
            text_of(chunk.least) if chunk.has_least else None,
            text_of(chunk.most) if chunk.has_most else None,
        )


include "parquet/footer_check.pxi"
include "parquet/local_footers.pxi"
include "parquet/row_group_files.pxi"
