# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
# distutils: depends = ext/parquet_footer.h ext/parquet_pages.h ext/compact.h
"""Footers of Parquet files; `delta_core.engines.arrow.parquet.opened_file` reads them."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector


cdef extern from "parquet_footer.h" namespace "delta_parquet" nogil:
    cdef cppclass string_view "std::string_view":
        const char* data()
        size_t size()
    cdef cppclass ChunkFacts:
        int64_t type, codec, encodings, num_values, uncompressed, compressed, data_page, dictionary_page, null_count
        int64_t bloom_filter, bloom_filter_size, column_index, column_index_size, offset_index, offset_index_size
        string_view least, most
        bint has_least, has_most, is_plain
    cdef cppclass GroupFacts:
        int64_t num_rows
        vector[ChunkFacts] chunks
    cdef cppclass FooterFacts:
        int64_t num_rows
        vector[GroupFacts] groups
        string_view schema, metadata
        bint has_orders, is_plain
    cdef cppclass FooterReader:
        FooterReader(const uint8_t* data, const uint8_t* end)
        bint footer(FooterFacts& out) except +


cdef bytes text_of(string_view text):
    return text.data()[:text.size()]


cdef class Footer:
    """A footer as it was parsed; `is_known` is false if it is left to a complete reader.

    Parameters
    ----------
    data : bytes
        Thrift's bytes, without their length and magic.
    """

    cdef FooterFacts facts
    cdef readonly bytes data
    cdef readonly bint is_known

    def __cinit__(self, bytes data not None):
        self.data = data  # the facts lie in it
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

    @property
    def group_rows(self):
        """The rows of each row group."""
        return [self.facts.groups[i].num_rows for i in range(self.facts.groups.size())]

    cdef ChunkFacts* _chunk(self, int64_t group, int64_t leaf) except NULL:
        if not 0 <= group < <int64_t>self.facts.groups.size() or not 0 <= leaf < <int64_t>self.facts.groups[group].chunks.size():
            raise IndexError(f"the footer has no column {leaf} of row group {group}")
        return &self.facts.groups[group].chunks[leaf]

    def chunk(self, int64_t group, int64_t leaf):
        """Return what a column chunk is, and where it lies.

        These are its physical type, codec, encodings as bits, values, compressed and plain bytes, and offset; and the offset
        and the bytes of its Bloom filter, of its column index and of its offset index, -1 for what the footer does not have.
        None if it is encrypted or in another file.
        """
        cdef ChunkFacts* chunk = self._chunk(group, leaf)
        cdef int64_t first = chunk.data_page
        if not chunk.is_plain:
            return None
        if 0 < chunk.dictionary_page < first:
            first = chunk.dictionary_page
        return (
            chunk.type, chunk.codec, chunk.encodings, chunk.num_values, chunk.compressed, chunk.uncompressed, first,
            chunk.bloom_filter, chunk.bloom_filter_size,
            chunk.column_index, chunk.column_index_size, chunk.offset_index, chunk.offset_index_size,
        )

    def statistics(self, int64_t group, int64_t leaf):
        """Return (physical type, null count, least, most value) of a column chunk; None for what is not there."""
        cdef ChunkFacts* chunk = self._chunk(group, leaf)
        return (
            chunk.type,
            None if chunk.null_count < 0 else chunk.null_count,
            text_of(chunk.least) if chunk.has_least else None,
            text_of(chunk.most) if chunk.has_most else None,
        )
