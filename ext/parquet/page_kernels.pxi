# Included by pages.pyx: the C++ declarations of the decoder.

cdef extern from "memory/byte_copies.h" namespace "delta_parquet" nogil:
    enum: SLACK

cdef extern from "parquet/status.h" namespace "delta_parquet" nogil:
    ctypedef enum Status:
        DONE
        PAGE
        UNSUPPORTED
        NO_MEMORY
        DAMAGED
        BAD_CHECKSUM

cdef extern from "parquet/codecs.h" namespace "delta_parquet" nogil:
    ctypedef int (*Decompress)(void* codec, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept nogil

cdef extern from "parquet/workspace.h" namespace "delta_parquet" nogil:
    cdef cppclass Scratch:
        uint8_t* room(size_t size)
    cdef cppclass PageCounts:
        int64_t met, decoded
    cdef cppclass WorkspaceBytes "delta_parquet::Workspace":
        PageCounts own_pages
        Decompress decompress
        void* codec
        Scratch chunk
        size_t size()

cdef extern from "parquet/source.h" namespace "delta_parquet" nogil:
    ctypedef int (*ReadBytes)(void* reader, int64_t offset, int64_t size, uint8_t* out) noexcept nogil
    cdef cppclass Source:
        int file
        const uint8_t* bytes
        int64_t size
        ReadBytes read_bytes
        void* reader
    const uint8_t* read_source(WorkspaceBytes& space, const Source& source, int64_t offset, int64_t size)
    cdef cppclass ChunkBytes:
        ChunkBytes(Scratch& block, const Source& source, int64_t offset, int64_t size, int64_t window)

cdef extern from "parquet/page_counts.h" namespace "delta_parquet" nogil:
    int64_t count_page_values(WorkspaceBytes& space, const Source& source, int64_t offset, int64_t size, int64_t num_values)

cdef extern from "parquet/value_layout.h" namespace "delta_parquet" nogil:
    cdef cppclass ValueLayout:
        int width, stored
        ValueLayout()
        bint is_known()
        bint is_bits()
        bint is_converted()
        int page_bytes()
        int64_t bytes_of(int64_t n)
    cdef cppclass Wide:
        uint64_t low, high

cdef extern from "parquet/value_tests.h" namespace "delta_parquet" nogil:
    ctypedef enum Kind:
        IN_RANGE
        IN_SET
        LIKE_PATTERN
        IS_NULL
        HAS_VALUE
        IS_BELOW
        ANY_OF
        ALL_OF
    enum: WILDCARD "delta_parquet::Test::WILDCARD"
    cdef cppclass Test:
        bint is_of_levels()
        bint is_joined()
        int kind
        bint is_float, with_nan, is_wide, with_key, is_negated, with_null, has_wildcard
        vector[const Test*] parts
        int64_t least, most
        Wide wide_least, wide_most
        double low, high
        const uint8_t* keys
        const int32_t* ends
        int64_t num_keys
        void hash_keys()
        uint64_t first
        @staticmethod
        uint64_t head_of(const uint8_t* text, size_t size)

cdef extern from "parquet/chunk_reader.h" namespace "delta_parquet" nogil:
    enum: WINDOW_BYTES
    cdef cppclass ChunkReader:
        ChunkReader(WorkspaceBytes& space, const ChunkBytes& bytes, int codec, const ValueLayout& layout, int most_level, int64_t num_rows,
                    const uint64_t* keep, int64_t num_kept)
        Status next_page()
        int64_t rows()
        int64_t nulls()
        int64_t dictionary_length()
        int64_t dictionary_bytes()
        const int32_t* dictionary_offsets()
        const uint8_t* dictionary_data()
        int64_t text_bytes()
        int64_t append_text(int32_t* offsets, uint8_t* data, int64_t used)
        bint append_validity(uint8_t* bits, int64_t first, int64_t& nulls, int64_t num_rows)

cdef extern from "parquet/chunk_jobs.h" namespace "delta_parquet" nogil:
    ctypedef enum Form:
        NUMBERS
        STRINGS
        CODES
    cdef cppclass Text:
        uint8_t* data()
        int64_t room()
        uint8_t* release(int64_t used)
    cdef cppclass ChunkJob:
        int64_t offset, size, room, nulls, used, kept, length
        const Test* test
        uint64_t* passed
        int codec, most_level, form
        ValueLayout layout
        void* decompressor
        uint8_t* out
        uint8_t* bits
        uint8_t* text
        Status status
        bint is_null
        Text grown, ends
    void run_jobs(WorkspaceBytes& space, const Source& source, int64_t num_rows, const uint64_t* keep, int64_t num_kept,
                  int64_t most_text, ChunkJob* jobs, int64_t count)
    cdef cppclass ChunkPart:
        int64_t offset, size, num_rows
        int codec, most_level
        void* decompressor
    void run_joined(WorkspaceBytes& space, const Source& source, const ChunkPart* parts, int64_t count, int64_t num_rows,
                    int64_t most_text, ChunkJob& job)

cdef extern from "parquet/chunk_stream.h" namespace "delta_parquet" nogil:
    cdef cppclass BigDictionary:
        pass
    cdef cppclass ChunkStream:
        ChunkStream(const Source& source, const ChunkJob& job, int64_t num_rows, int64_t window, int64_t most_kept,
                    BigDictionary* big)
        void run(WorkspaceBytes& space, int64_t first, int64_t stop, const uint64_t* keep, int64_t num_kept, int64_t most_text,
                 bint with_dictionary, ChunkJob& job)

cdef extern from "parquet/zstd_library.h" namespace "delta_parquet" nogil:
    cdef cppclass ZstdLibrary:
        @staticmethod
        const ZstdLibrary* loaded()

cdef extern from "parquet/snappy.h" namespace "delta_parquet" nogil:
    bint snappy_numbers "delta_parquet::snappy_decompress<false>"(const uint8_t* data, size_t n, uint8_t* out, size_t size)
    bint snappy_texts "delta_parquet::snappy_decompress<true>"(const uint8_t* data, size_t n, uint8_t* out, size_t size)

cdef extern from "parquet/deflate_library.h" namespace "delta_parquet" nogil:
    cdef cppclass DeflateLibrary:
        @staticmethod
        const DeflateLibrary* loaded()
    cdef cppclass GzipContext:
        bint decompress(const uint8_t* data, int64_t n, uint8_t* out, int64_t size)

cdef extern from *:
    """
    static delta_parquet::ChunkJob *new_jobs(int64_t count) { return new delta_parquet::ChunkJob[count]; }
    static void delete_jobs(delta_parquet::ChunkJob *jobs) { delete[] jobs; }
    """
    ChunkJob* new_jobs(int64_t count)
    void delete_jobs(ChunkJob* jobs)

cdef extern from "parquet/column_batch.h" namespace "delta_parquet" nogil:
    ctypedef void (*ReleaseBatch "void (*)(delta_memory::ArrowArray *)")(BatchArray* array)
    cdef cppclass BatchArray "delta_memory::ArrowArray":
        ReleaseBatch release
    cdef cppclass BatchColumns:
        BatchColumns(int64_t count) except +
        void set(int64_t i, int64_t n, int64_t nulls, const void* valid, const void* values, bint is_text, const void* text)
        void set_dictionary(int64_t i, int64_t n, const void* ends, const void* text)
    cdef cppclass SharedJobs:
        SharedJobs(ChunkJob* jobs, int64_t count, const vector[ChunkPart]* parts)
        void run(WorkspaceBytes& space, const Source& source, int64_t num_rows, const uint64_t* keep, int64_t num_kept, int64_t most_text)

cdef extern from "parquet/column_batch.h" namespace "delta_parquet":
    void finish_batch "delta_parquet::BatchColumns::finish"(BatchColumns* columns, int64_t n, object owner, BatchArray* out)

cdef extern from "parquet/bloom_filter.h" namespace "delta_parquet" nogil:
    cdef cppclass BloomFilter:
        BloomFilter(const Source& source, int64_t offset, int64_t size)
    bint lacks_keys(BloomFilter& filter, const Test& test, int width)

cdef extern from "parquet/page_index.h" namespace "delta_parquet" nogil:
    bint find_rows(const uint8_t* columns, int64_t columns_size, const uint8_t* offsets, int64_t offsets_size, const Test& test,
                   int width, int64_t num_rows, uint64_t* bits) except +

cdef extern from "rows/compact.h" nogil:
    int64_t mask_count(const uint64_t*, int64_t)
