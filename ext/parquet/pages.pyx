# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
# distutils: depends = ext/parquet/pages.h ext/parquet/bloom_filter.h ext/parquet/page_index.h ext/parquet/footer.h ext/parquet/nested_pages.h ext/parquet/zstd_library.h ext/memory/byte_copies.h ext/parquet/inflate.h ext/rows/compact.h ext/parquet/crc32.h ext/parquet/foreign_pages.pxi ext/parquet/nested_columns.pxi ext/parquet/column_batch.h ext/parquet/column_batch.pxi ext/memory/kept_memory.h
"""Pages of Parquet column chunks as Arrow buffers; `delta_core.parquet.pages` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset
from libcpp.vector cimport vector

from pyarrow import ArrowInvalid, RecordBatch

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.memory import allocate, zeros


cdef extern from "parquet/pages.h" namespace "delta_parquet" nogil:
    enum: SLACK
    ctypedef enum Status:
        DONE
        PAGE
        UNSUPPORTED
        NO_MEMORY
        DAMAGED
        BAD_CHECKSUM
    cdef cppclass Scratch:
        uint8_t* room(size_t size)
    ctypedef int (*Decompress)(void* codec, const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept nogil
    cdef cppclass PageCounts:
        int64_t met, decoded
    cdef cppclass WorkspaceBytes "delta_parquet::Workspace":
        PageCounts own_pages
        Decompress decompress
        void* codec
        Scratch chunk
        size_t size()
    ctypedef int (*ReadBytes)(void* reader, int64_t offset, int64_t size, uint8_t* out) noexcept nogil
    cdef cppclass Source:
        int file
        const uint8_t* bytes
        int64_t size
        ReadBytes read_bytes
        void* reader
    const uint8_t* read_source(WorkspaceBytes& space, const Source& source, int64_t offset, int64_t size)
    int64_t count_page_values(WorkspaceBytes& space, const Source& source, int64_t offset, int64_t size, int64_t num_values)
    enum: WINDOW_BYTES
    cdef cppclass ChunkBytes:
        ChunkBytes(Scratch& block, const Source& source, int64_t offset, int64_t size, int64_t window)
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
    ctypedef enum Form:
        NUMBERS
        STRINGS
        CODES
    cdef cppclass Text:
        uint8_t* data()
        int64_t room()
        uint8_t* release(int64_t used)
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
    cdef cppclass BigDictionary:
        pass
    cdef cppclass ChunkStream:
        ChunkStream(const Source& source, const ChunkJob& job, int64_t num_rows, int64_t window, int64_t most_kept,
                    BigDictionary* big)
        void run(WorkspaceBytes& space, int64_t first, int64_t stop, const uint64_t* keep, int64_t num_kept, int64_t most_text,
                 bint with_dictionary, ChunkJob& job)
    cdef cppclass ZstdLibrary:
        @staticmethod
        const ZstdLibrary* loaded()
    bint snappy_numbers "delta_parquet::snappy_decompress<false>"(const uint8_t* data, size_t n, uint8_t* out, size_t size)
    bint gunzip(const uint8_t* data, size_t n, uint8_t* out, size_t size)
    bint snappy_texts "delta_parquet::snappy_decompress<true>"(const uint8_t* data, size_t n, uint8_t* out, size_t size)

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


#: The strings of a column chunk are rejected beyond so many bytes.
cdef int64_t MOST_TEXT = 256 << 20
#: A page index is not used beyond so many bytes.
cdef int64_t MOST_INDEX = 4 << 20
#: Columns share a block of memory up to so many bytes: jemalloc returns one of 8 MB or more to the system at once, and
#: fresh memory takes longer than what is done in it.
cdef int64_t MOST_BLOCK = 4 << 20
#: Strings that take more are not copied from where they were decoded: malloc has blocks of their own for such sizes.
cdef int64_t LEAST_TAKEN = 33 << 20
#: A workspace that grew beyond this is not kept.
cdef size_t MOST_KEPT = 64 << 20


class UnsupportedPagesError(Exception):
    """The chunk holds what this reader does not decode, or what is damaged: a complete reader reports which."""


include "parquet/foreign_pages.pxi"


cdef int check_status(Status status) except -1:
    """Raise for what a complete reader can't read either, or would return without an error."""
    if status == NO_MEMORY:
        raise MemoryError("no memory for a page of a Parquet file")
    if status == BAD_CHECKSUM:
        raise ArrowInvalid(
            "a page has another checksum than its header specifies; with DELTA_CORE_PAGE_CHECKSUMS=ignore in the environment "
            "checksums are not compared"
        )
    return 0


cdef class Block:
    """Bytes of an Arrow buffer that nobody else has yet, with SLACK bytes behind `size`."""

    cdef Py_buffer view
    cdef object buffer
    cdef uint8_t* data
    cdef int64_t size

    def __cinit__(self, int64_t size):
        self.buffer = allocate(size + SLACK)
        PyObject_GetBuffer(self.buffer, &self.view, PyBUF_SIMPLE)
        self.data = <uint8_t*>self.view.buf
        self.size = size

    def __dealloc__(self):
        if self.data is not NULL:
            PyBuffer_Release(&self.view)

    cdef object cut(self, int64_t size):
        return self.buffer.slice(0, size)


cdef class Workspace:
    """Memory that one chunk after the other is read in; one at a time."""

    cdef WorkspaceBytes* bytes

    def __cinit__(self):
        self.bytes = new WorkspaceBytes()

    def __dealloc__(self):
        del self.bytes

    @property
    def address(self):
        """Where it lies, for a module that reads files in it while it keeps this object."""
        return <size_t>self.bytes

    @property
    def is_small(self):
        """Whether it is small enough to be kept."""
        return self.bytes.size() <= MOST_KEPT

    def take_page_counts(self):
        """Return how many data pages were met since the last call, and how many of them were decoded."""
        found = self.bytes.own_pages.met, self.bytes.own_pages.decoded
        self.bytes.own_pages.met = self.bytes.own_pages.decoded = 0
        return found


cdef int read_by_call(void* reader, int64_t offset, int64_t size, uint8_t* out) noexcept with gil:
    """Call the function of a `CalledSource`; whatever it raises is kept there."""
    cdef CalledSource source = <CalledSource>reader
    cdef Py_buffer view
    cdef bint good
    try:
        found = source.function(offset, size)
        PyObject_GetBuffer(found, &view, PyBUF_SIMPLE)
    except BaseException as e:
        source.error = e
        return False
    good = view.len == size
    if good:
        memcpy(out, view.buf, size)
    PyBuffer_Release(&view)
    return good


cdef class CalledSource:
    """A function that returns bytes of a file."""

    cdef object function, error


cdef class OpenSource:
    """Where chunks are read from: a file's descriptor, bytes that start where the file does, or a function(offset, size)."""

    cdef Source source
    cdef Py_buffer view
    cdef CalledSource called

    def __cinit__(self, source):
        if isinstance(source, int):
            self.source.file = source
        elif callable(source):
            self.called = CalledSource()
            self.called.function = source
            self.source.reader = <void*>self.called
            self.source.read_bytes = read_by_call
        else:
            PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
            self.source.bytes = <const uint8_t*>self.view.buf
            self.source.size = self.view.len

    def __dealloc__(self):
        if self.view.buf is not NULL:
            PyBuffer_Release(&self.view)

    cdef int check(self) except -1:
        """Raise what the function raised."""
        if self.called is not None and self.called.error is not None:
            error, self.called.error = self.called.error, None
            raise error
        return 0


cdef int64_t room_of(int64_t size) noexcept nogil:
    """Return what a part of a block takes: with SLACK bytes behind it, and an end that the next one may begin at."""
    return (size + SLACK + 63) // 64 * 64


cdef class Malloced:
    """Memory that is freed when nothing refers to it any more."""

    cdef uint8_t* data

    def __dealloc__(self):
        free(self.data)


cdef object taken(Text* text, int64_t used):
    """Return a text as a buffer, without a copy."""
    cdef Malloced owner = Malloced()
    owner.data = text.release(used)
    return foreign_buffer(<size_t>owner.data, used, owner)


cdef object copied(const uint8_t* data, int64_t size):
    cdef Block out = Block(size)
    if size:
        memcpy(out.data, data, size)
    return out.cut(size)


cdef bint describe(ChunkJob* job, tuple chunk) except -1:
    """Set what a job decodes, and return whether strings are requested as codes."""
    cdef bint coded
    (job.offset, job.size, job.codec, job.layout.width, job.layout.stored, job.most_level, coded, job.room,
     decompress) = chunk
    job.decompressor = <void*>decompress  # the tuple holds it
    if not job.layout.is_known():
        raise InvalidArgumentError(f"no values of {job.layout.width} bytes are stored in the form {job.layout.stored}")
    return coded


cdef class ColumnJobs:
    """Chunks to decode, with room for their rows; see `read_columns`."""

    cdef ChunkJob* jobs
    cdef int64_t count
    cdef list chunks, blocks, texts, parts

    def __cinit__(self, list chunks):
        cdef ChunkJob* job
        cdef int64_t i
        cdef bint coded
        self.chunks, self.count = chunks, len(chunks)
        self.jobs = new_jobs(self.count)
        for i in range(self.count):
            job = &self.jobs[i]
            coded = describe(job, chunks[i])
            job.form = NUMBERS if job.layout.width else CODES if coded else STRINGS
            if job.form != STRINGS:
                job.room = 0

    def __dealloc__(self):
        delete_jobs(self.jobs)

    cdef int make_room(self, int64_t num_kept, double text_share) except -1:
        """Make room for so many rows, and strings of a share of the chunk's."""
        cdef int64_t used, i, first = 0
        cdef ChunkJob* job
        cdef Block block
        self.blocks = []
        while first < self.count:
            # a few columns share a block: a column of few rows would take much longer to make room for than to decode
            i, used = first, 0
            while i < self.count and (i == first or used + self.room_for(i, num_kept) <= MOST_BLOCK):
                used += self.room_for(i, num_kept)
                i += 1
            block, used = Block(used), 0
            for first in range(first, i):
                job = &self.jobs[first]
                job.out = block.data + used
                job.bits = job.out + room_of(self.value_bytes(first, num_kept)) if job.most_level else NULL
                job.room = <int64_t>(text_share * job.room)
                used += self.room_for(first, num_kept)
                self.blocks.append(block)
            first = i
        self.texts = [Block(self.jobs[i].room) if self.jobs[i].room else None for i in range(self.count)]
        for i in range(self.count):
            if self.jobs[i].room:
                self.jobs[i].text = (<Block>self.texts[i]).data
        return 0

    cdef int64_t value_bytes(self, int64_t i, int64_t num_kept) noexcept:
        cdef ValueLayout layout = self.jobs[i].layout
        return layout.bytes_of(num_kept) if layout.width else (num_kept + 1) * 4

    cdef int64_t room_for(self, int64_t i, int64_t num_kept) noexcept:
        return room_of(self.value_bytes(i, num_kept)) + (room_of((num_kept + 7) // 8) if self.jobs[i].most_level else 0)

    cdef int join(self, list columns, list group_rows, vector[ChunkPart]* parts) except -1:
        """Describe the chunks of neighbouring row groups, which are decoded as one of each column."""
        cdef int64_t i, k, count = len(group_rows), room
        cdef ChunkPart part
        cdef ChunkJob job
        for i in range(self.count):
            room = 0
            if len(columns[i]) != count:
                raise InvalidArgumentError(f"{len(columns[i])} chunks of {count} row groups")
            for k in range(count):
                describe(&job, columns[i][k])
                if job.layout.width != self.jobs[i].layout.width or job.layout.stored != self.jobs[i].layout.stored:
                    raise InvalidArgumentError("chunks of one column store values differently")
                part.offset, part.size, part.num_rows, part.codec = job.offset, job.size, group_rows[k], job.codec
                part.most_level, part.decompressor = job.most_level, job.decompressor
                self.jobs[i].most_level = max(self.jobs[i].most_level, part.most_level)
                room += job.room
                parts.push_back(part)
            self.jobs[i].room = room if self.jobs[i].form == STRINGS else 0
        self.parts = columns
        return 0

    cdef int64_t copied_bytes(self, int64_t i) noexcept:
        """Return what `export` copies of a chunk."""
        cdef ChunkJob* job = &self.jobs[i]
        if job.is_null or job.form == NUMBERS:
            return 0
        if job.form == CODES:
            return room_of((job.length + 1) * 4) + room_of(job.used)
        return room_of(job.used) if job.used < LEAST_TAKEN else 0

    cdef int64_t export(self, int64_t i, int64_t num_kept, uint8_t* text, BatchColumns* columns, list owners) except -1:
        """Describe what came of a chunk, and return how many bytes of it were copied to a place."""
        cdef ChunkJob* job = &self.jobs[i]
        cdef const void* valid = job.bits if job.nulls else NULL
        cdef const void* values = job.out
        cdef const uint8_t* data = job.grown.data() if job.grown.data() is not NULL else job.text
        cdef int64_t size = self.copied_bytes(i)
        if job.is_null:
            held = zeros(max((num_kept + 7) // 8, self.value_bytes(i, num_kept), 64))
            owners.append(held)
            valid = values = <const void*><uintptr_t>held.address
        if job.form == NUMBERS:
            columns.set(i, num_kept, job.nulls, valid, values, False, NULL)
        elif job.form == CODES:
            columns.set(i, num_kept, job.nulls, valid, values, False, NULL)
            if not job.length or job.is_null:
                held = zeros(64)
                owners.append(held)
                data = <const uint8_t*><uintptr_t>held.address
                columns.set_dictionary(i, 0, data, data)
            else:
                memcpy(text, job.ends.data(), (job.length + 1) * 4)
                memcpy(text + room_of((job.length + 1) * 4), data, job.used)
                columns.set_dictionary(i, job.length, text, text + room_of((job.length + 1) * 4))
        elif job.is_null:
            columns.set(i, num_kept, job.nulls, valid, values, True, values)
        elif size:
            if job.used:
                memcpy(text, data, job.used)
            columns.set(i, num_kept, job.nulls, valid, values, True, text)
        else:
            if data is job.text:
                owners.append(self.texts[i])
            else:
                held = taken(&job.grown, job.used)
                owners.append(held)
                data = <const uint8_t*><uintptr_t>held.address
            columns.set(i, num_kept, job.nulls, valid, values, True, data)
        return size

    cdef object found(self, int64_t i, int64_t num_kept, tuple dictionary):
        """Return what came of a chunk; a dictionary that is not None was returned before."""
        cdef ChunkJob* job = &self.jobs[i]
        cdef Block block = self.blocks[i]
        cdef int64_t size, bits = (num_kept + 7) // 8
        check_status(job.status)
        if job.status != DONE:
            return None
        if job.is_null:
            return self.nulls(i, num_kept, dictionary)
        valid = block.buffer.slice(job.bits - block.data, bits) if job.nulls else None
        size = job.layout.bytes_of(num_kept) if job.layout.width else num_kept * 4 + (4 if job.form == STRINGS else 0)
        values = block.buffer.slice(job.out - block.data, size)
        if job.form == NUMBERS:
            return valid, job.nulls, values
        if job.form == CODES:
            return (valid, job.nulls, values) + (self.dictionary(i) if dictionary is None else dictionary)
        if job.grown.data() is not NULL and job.used >= LEAST_TAKEN:
            return valid, job.nulls, values, taken(&job.grown, job.used)
        if job.grown.data() is not NULL or 4 * job.used < job.room:  # a slice would hold all of the room
            data = job.grown.data() if job.grown.data() is not NULL else job.text
            return valid, job.nulls, values, copied(data, job.used)
        return valid, job.nulls, values, (<Block>self.texts[i]).cut(job.used) if job.room else copied(NULL, 0)

    cdef tuple nulls(self, int64_t i, int64_t num_kept, tuple dictionary):
        """Return a chunk of nulls alone."""
        cdef ChunkJob* job = &self.jobs[i]
        valid = zeros((num_kept + 7) // 8)
        if job.form == NUMBERS:
            return valid, num_kept, zeros(job.layout.bytes_of(num_kept))
        if job.form == CODES:
            return (valid, num_kept, zeros(num_kept * 4)) + (self.dictionary(i) if dictionary is None else dictionary)
        return valid, num_kept, zeros((num_kept + 1) * 4), zeros(0)

    cdef tuple dictionary(self, int64_t i):
        cdef ChunkJob* job = &self.jobs[i]
        offsets = copied(job.ends.data(), (job.length + 1) * 4) if job.length else bytes(4)
        return offsets, copied(job.grown.data(), job.used), job.length


def read_columns(Workspace space not None, source, list chunks, int64_t num_rows, const uint64_t[::1] keep=None):
    """Decode column chunks of a row group in one step, without the interpreter's lock.

    Parameters
    ----------
    source : int, buffer or function
        A file descriptor, bytes that start where the file does, or a function(offset, size) that returns bytes.
    chunks : list of tuple
        Of each: where it lies (offset, size), its codec, the bytes of a value (0: strings), how it is stored (see
        `ValueLayout` in pages.h), the definition level of a value, whether strings are requested as codes, how many bytes its strings have at most, about, and for pages of a
        codec that is not Snappy a function(pyarrow.Buffer, int) -> buffer that returns as many plain bytes.
    num_rows : int
        Of each chunk.
    keep : uint64[n], optional
        A mask of the rows: the others are left out.

    Returns
    -------
    int, list of tuple or None
        The number of rows that are kept; and of each chunk the validity (None: nothing is null), how many are null, and the
        buffers of its values: of numbers; of strings offsets and data; of codes the codes, the dictionary's offsets and
        data, and its length. None for a chunk that is left to a complete reader.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef const uint64_t* mask = NULL
    cdef int64_t num_kept = num_rows, i
    cdef ColumnJobs jobs = ColumnJobs(chunks)
    if keep is not None and num_rows > 0:
        mask = checked_mask(keep, num_rows)
        num_kept = mask_count(mask, num_rows)
    # how many of the strings are kept is not known beforehand
    jobs.make_room(num_kept, 1 if mask is NULL else 0)
    space.bytes.decompress = decompress_page
    with nogil:
        run_jobs(space.bytes[0], opened.source, num_rows, mask, num_kept, MOST_TEXT, jobs.jobs, jobs.count)
    opened.check()
    return num_kept, [jobs.found(i, num_kept, None) for i in range(jobs.count)]


def read_joined(Workspace space not None, source, list columns, list group_rows):
    """Decode columns of neighbouring row groups, all of their rows, in one step and without the interpreter's lock.

    Parameters
    ----------
    source
        See `read_columns`.
    columns : list of list of tuple
        Of each column its chunks, one of each row group, which store values alike; strings are not returned as codes.
    group_rows : list of int
        Of each row group.

    Returns
    -------
    list of tuple or None
        Of each column, see `read_columns`.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef int64_t i, count = len(group_rows), num_rows = num_rows_of(group_rows)
    cdef ColumnJobs jobs = ColumnJobs([chunks[0] for chunks in columns])
    cdef vector[ChunkPart] parts
    jobs.join(columns, group_rows, &parts)
    jobs.make_room(num_rows, 1)
    space.bytes.decompress = decompress_page
    if count:
        with nogil:
            for i in range(jobs.count):
                run_joined(space.bytes[0], opened.source, &parts[i * count], count, num_rows, MOST_TEXT, jobs.jobs[i])
    opened.check()
    return [jobs.found(i, num_rows, None) for i in range(jobs.count)]


cdef const uint64_t* checked_mask(const uint64_t[::1] keep, int64_t num_rows) except NULL:
    if keep.shape[0] < (num_rows + 63) // 64 or not keep.shape[0]:
        raise InvalidArgumentError(f"a mask of {num_rows} rows is longer than {keep.shape[0]} words")
    return &keep[0]


cdef class ColumnStretches:
    """Column chunks of a row group that are decoded one stretch of rows after the other.

    Parameters
    ----------
    source, chunks, num_rows
        See `read_columns`.
    window : int
        In so many bytes the chunks are read, or in pages if they are longer.
    most_kept : int
        So many bytes of a chunk's pages, and of its dictionary, stay in memory between two stretches; what is longer is
        read again, but for the dictionary of one chunk.
    """

    cdef OpenSource opened
    cdef vector[ChunkStream*] streams
    cdef BigDictionary big
    cdef list chunks, dictionaries
    cdef int64_t num_rows, at

    def __cinit__(self, source, list chunks, int64_t num_rows, int64_t window, int64_t most_kept):
        cdef ColumnJobs jobs = ColumnJobs(chunks)
        cdef int64_t i
        self.opened, self.chunks, self.num_rows, self.at = OpenSource(source), chunks, num_rows, 0
        self.dictionaries = [None] * len(chunks)
        for i in range(jobs.count):
            self.streams.push_back(new ChunkStream(self.opened.source, jobs.jobs[i], num_rows, window, most_kept, &self.big))

    def __dealloc__(self):
        for stream in self.streams:
            del stream

    def read(self, Workspace space not None, int64_t first, int64_t stop, const uint64_t[::1] keep=None):
        """Decode the rows from `first` to `stop`, of which `keep` is a mask; see `read_columns`.

        A chunk that is left to a complete reader is never returned again.
        """
        cdef const uint64_t* mask = NULL
        cdef int64_t rows = stop - first, num_kept = rows, i
        cdef ColumnJobs jobs = ColumnJobs(self.chunks)
        if not self.at <= first < stop <= self.num_rows:
            raise InvalidArgumentError(f"a stretch from row {first} to {stop} behind {self.at} of {self.num_rows} rows")
        if keep is not None:
            mask = checked_mask(keep, rows)
            num_kept = mask_count(mask, rows)
        jobs.make_room(num_kept, 0 if mask is not NULL else <double>rows / self.num_rows)
        space.bytes.decompress = decompress_page
        for i in range(jobs.count):
            if self.streams[i] is not NULL:
                is_first = self.dictionaries[i] is None and jobs.jobs[i].form == CODES
                self.run(space, i, first, stop, mask, num_kept, is_first, jobs)
        self.opened.check()
        self.at = stop
        return num_kept, [self.found(i, num_kept, jobs) for i in range(jobs.count)]

    cdef int run(self, Workspace space, int64_t i, int64_t first, int64_t stop, const uint64_t* mask, int64_t num_kept,
                 bint with_dictionary, ColumnJobs jobs) except -1:
        with nogil:
            self.streams[i].run(space.bytes[0], first, stop, mask, num_kept, MOST_TEXT, with_dictionary, jobs.jobs[i])
        return 0

    cdef object found(self, int64_t i, int64_t num_kept, ColumnJobs jobs):
        if self.streams[i] is NULL:
            return None
        found = jobs.found(i, num_kept, self.dictionaries[i])
        if found is None:
            del self.streams[i]
            self.streams[i] = NULL
        elif jobs.jobs[i].form == CODES and jobs.jobs[i].length:
            self.dictionaries[i] = found[3:]
        return found


cdef int set_wide(Wide* out, value) except -1:
    out.low, out.high = value & ((1 << 64) - 1), (value >> 64) & ((1 << 64) - 1)
    if not -(1 << 127) <= value < 1 << 127:
        raise InvalidArgumentError(f"{value} is no number of 128 bits")
    return 0


cdef class ValueTest:
    """Which values of a chunk pass.

    Parameters
    ----------
    kind : int
        0: those from ``least`` to ``most``; 1: those that are keys; 2: strings that start with the first of two or
        more keys and end with the last, with the others in between in order; 3: nulls;
        4: whatever is not null; 5: strings below the only key; 6: values that pass any of ``parts``, 7: all of them.
    is_float : bool
        Whether its bounds or keys are floats.
    least, most : int or float
        Both included.
    with_nan : bool
        Whether NaN passes, of a range.
    is_wide : bool
        Whether the values of a range have 16 bytes.
    keys : uint8[n], optional
        Ascending, without NaN: 8 bytes for each number, or strings one behind the other.
    ends : int32[n + 1], optional
        Of the keys if they are strings: 0, and where each of them ends.
    with_key : bool
        Whether the key passes, of strings below it.
    is_negated : bool
        Whether the other values pass.
    with_null : bool
        Whether null passes a test of values.
    parts : tuple of ValueTest
        Tests of values.
    """

    cdef Test test
    cdef tuple parts
    cdef const uint8_t[::1] keys
    cdef const int32_t[::1] ends

    def __cinit__(self, int kind, bint is_float=False, least=0, most=0, bint with_nan=False,
                  const uint8_t[::1] keys=None, const int32_t[::1] ends=None, bint is_wide=False,
                  bint with_key=False, bint is_negated=False, bint with_null=False, tuple parts=()):
        cdef ValueTest part
        cdef int64_t i, size = 0 if keys is None else keys.shape[0]
        self.keys, self.ends = keys, ends
        self.test.kind, self.test.is_float, self.test.with_nan = kind, is_float, with_nan
        self.test.with_key, self.test.is_negated, self.test.with_null = with_key, is_negated, with_null
        if not IN_RANGE <= kind <= ALL_OF:
            raise InvalidArgumentError(f"a test of values is of a kind from {IN_RANGE} to {ALL_OF}, not {kind}")
        self.parts = parts
        for part in parts:
            if part.test.is_of_levels() or part.test.with_null:
                raise InvalidArgumentError("tests of null have no parts, and are none")
            self.test.parts.push_back(&part.test)
        self.test.is_wide = is_wide
        if is_float:
            self.test.low, self.test.high = least, most
        elif is_wide:
            set_wide(&self.test.wide_least, least)
            set_wide(&self.test.wide_most, most)
            # a range without values, if none has 8 bytes
            is_empty = least >= 1 << 63 or most < -(1 << 63)
            self.test.least = 1 if is_empty else max(least, -(1 << 63))
            self.test.most = 0 if is_empty else min(most, (1 << 63) - 1)
        else:
            self.test.least, self.test.most = least, most
        if kind != IN_SET and kind != LIKE_PATTERN and kind != IS_BELOW:
            return
        self.test.has_wildcard = kind == LIKE_PATTERN and size > 0 and memchr(&keys[0], WILDCARD, size) is not NULL
        if ends is None:
            if kind != IN_SET or size % 8:
                raise InvalidArgumentError(f"keys have 8 bytes each, or ends: {size} bytes without ends are no keys")
            self.test.num_keys = size // 8
        else:
            self.test.num_keys = ends.shape[0] - 1
            if ends.shape[0] < {IN_SET: 1, LIKE_PATTERN: 2 if self.test.has_wildcard else 3, IS_BELOW: 2}[kind] or ends[0] != 0 or ends[ends.shape[0] - 1] != size:
                raise InvalidArgumentError(f"the ends of keys begin with 0 and end with their {size} bytes, and a pattern has two keys, a bound one, and so has a pattern with a wildcard")
            for i in range(self.test.num_keys):
                if ends[i] > ends[i + 1]:
                    raise InvalidArgumentError(f"the ends of keys ascend: found {ends[i]} before {ends[i + 1]}")
            self.test.ends = &ends[0]
        if size:
            self.test.keys = &keys[0]
        if kind == IN_SET:
            self.test.hash_keys()
        elif kind == IS_BELOW:
            self.test.first = self.test.head_of(self.test.keys, size)

    def fits_form(self, int width, int stored):
        """Whether values of so many bytes, stored in a form, can be tested."""
        cdef ChunkJob job
        job.layout.width, job.layout.stored = width, stored
        return self.fits(job.layout)

    def address_for(self, int width, int stored):
        """Return where the test lies, for a module that keeps this object and tests values of this form."""
        if not self.fits_form(width, stored):
            raise InvalidArgumentError(f"the test is none of values of {width} bytes in the form {stored}")
        return <size_t>&self.test

    def is_excluded(self, source, int64_t offset, int64_t size, int width, int stored=0):
        """Whether no value of a chunk can pass, by the chunk's Bloom filter.

        Parameters
        ----------
        source : int or buffer
            A file descriptor, or bytes that start where the file does.
        offset, size : int
            Where the filter lies; a size of -1 is not known.
        width, stored : int
            The bytes of a value, 0 for strings, and how it is stored; see `read_columns`.
        """
        cdef OpenSource opened = OpenSource(source)
        cdef BloomFilter* filter
        cdef bint found
        cdef ValueLayout layout
        layout.width, layout.stored = width, stored
        if not self.fits(layout) or not has_stored_bounds(&layout) or layout.is_bits():
            return False
        width = layout.page_bytes()
        filter = new BloomFilter(opened.source, offset, size)
        try:
            with nogil:
                found = lacks_keys(filter[0], self.test, width)
        finally:
            del filter
        return found

    def find_rows(self, source, tuple columns, tuple offsets, int width, int64_t num_rows, uint64_t[::1] rows not None,
                  int stored=0):
        """Set the bits of the rows that may pass, by a chunk's page index.

        Parameters
        ----------
        source : int or buffer
            A file descriptor, or bytes that start where the file does.
        columns, offsets : tuple of int
            Offset and bytes of the column index, and of the offset index.
        width, stored : int
            The bytes of a value, 0 for strings, and how it is stored; see `read_columns`.
        num_rows : int
            Of the chunk.
        rows : uint64[n]
            Zeros; of no use if the index can't be used.

        Returns
        -------
        bool
            Whether the index can be used.
        """
        cdef OpenSource opened = OpenSource(source)
        cdef Workspace space = Workspace()
        cdef int64_t at, size, first, length
        cdef const uint8_t* data
        cdef bint is_used
        cdef Block copy
        cdef ValueLayout layout
        layout.width, layout.stored = width, stored
        at, size = columns
        first, length = offsets
        if num_rows < 1 or rows.shape[0] < (num_rows + 63) // 64:
            raise InvalidArgumentError(f"a mask of {num_rows} rows has fewer than {(num_rows + 63) // 64} words")
        if at < 0 or first < 0 or not 0 < size <= MOST_INDEX or not 0 < length <= MOST_INDEX or not self.fits(layout):
            return False
        if not (has_stored_bounds(&layout) or self.test.kind == IS_NULL or self.test.kind == HAS_VALUE):
            return False
        width = layout.page_bytes()
        data = read_source(space.bytes[0], opened.source, at, size)
        if data is NULL:
            return False
        copy = Block(size)
        memcpy(copy.data, data, size)
        data = read_source(space.bytes[0], opened.source, first, length)
        if data is NULL:
            return False
        with nogil:
            is_used = find_rows(copy.data, size, data, length, self.test, width, num_rows, &rows[0])
        return is_used

    cdef bint fits(self, ValueLayout layout):
        """Whether values of a layout can be tested."""
        cdef int width = layout.width
        if not layout.is_known():
            return False
        if self.test.kind == IS_NULL or self.test.kind == HAS_VALUE:
            return width == 0 or width == 1 or width == 2 or width == 4 or width == 8 or width == 16
        cdef ValueTest part
        if self.test.is_joined():
            for part in self.parts:
                if not part.fits(layout):
                    return False
            return True
        if layout.is_bits():
            return self.test.kind == IN_RANGE and not self.test.is_float and not self.test.is_wide and -128 <= self.test.least and self.test.most <= 127
        if self.test.kind == LIKE_PATTERN or self.test.ends is not NULL:
            return width == 0
        if self.test.is_wide or width == 16:
            return self.test.is_wide and width == 16 and self.test.kind == IN_RANGE
        if self.test.is_float:
            return width == 4 or width == 8
        if width != 1 and width != 2 and width != 4 and width != 8:
            return False
        # bounds of a wider type, or none at all
        return (width == 8 or self.test.kind == IN_SET
                or -(<int64_t>1 << (8 * width - 1)) <= self.test.least <= self.test.most < <int64_t>1 << (8 * width - 1))


cdef bint has_stored_bounds(ValueLayout* layout) noexcept:
    """Whether a test's bounds or keys can be compared with values as pages store them."""
    return not layout.is_converted() or layout.width < 4


def page_values(source, int64_t offset, int64_t size, int64_t num_values):
    """Return how many values the pages of a chunk have by their headers, which alone are read.

    Parameters
    ----------
    source : int or buffer or function
        See `read_columns`.
    offset, size : int
        Where the chunk lies.
    num_values : int
        Those of the chunk by the footer: pages behind the last of them do not count.

    Returns
    -------
    int
        Fewer than ``num_values`` if not all headers are understood.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef Workspace space = Workspace()
    cdef int64_t found
    with nogil:
        found = count_page_values(space.bytes[0], opened.source, offset, size, num_values)
    opened.check()
    return found


def read_passing(Workspace space not None, source, tuple chunk, int64_t num_rows, ValueTest values not None, bint has_values,
                 uint64_t[::1] passed not None, const uint64_t[::1] keep=None):
    """Find the rows of a chunk whose values pass a test.

    Parameters
    ----------
    chunk : tuple
        See `read_columns`.
    values : ValueTest
        Its bounds or keys are of the chunk's type.
    has_values : bool
        Whether the values that pass are requested too; not of a test that null passes.
    passed : uint64[n]
        Zeros, of which the bits of the rows that pass are set.
    keep : uint64[n], optional
        A mask of the rows: no other one passes.

    Returns
    -------
    int, tuple or None
        How many rows pass, and the buffers of their values: of numbers, of strings the offsets and data, or of codes
        these, the dictionary's offsets and data, and its length. None for a chunk that is left to a complete reader.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef const uint64_t* mask = NULL
    cdef int64_t num_kept = num_rows, words = (num_rows + 63) // 64, size
    cdef bint coded
    cdef ChunkJob job
    cdef Block block = None
    if num_rows < 0 or passed.shape[0] < words or (keep is not None and keep.shape[0] < words):
        raise InvalidArgumentError(f"a mask of {num_rows} rows has fewer than {words} words")
    if not num_rows:
        return None
    if keep is not None:
        mask = &keep[0]
        num_kept = mask_count(mask, num_rows)
    coded = describe(&job, chunk)
    job.room = 0
    if not values.fits(job.layout) or (has_values and (values.test.kind == IS_NULL or values.test.with_null)):
        return None
    job.form = NUMBERS if not has_values or job.layout.width else CODES if coded else STRINGS
    job.test, job.passed = &values.test, &passed[0]
    if has_values:
        block = Block(job.layout.bytes_of(num_kept) if job.layout.width else (num_kept + 1) * 4)
        job.out = block.data
    space.bytes.decompress = decompress_page
    with nogil:
        run_jobs(space.bytes[0], opened.source, num_rows, mask, num_kept, MOST_TEXT, &job, 1)
    opened.check()
    check_status(job.status)
    if job.status != DONE:
        return None
    if not has_values:
        return job.kept, None
    size = job.layout.bytes_of(job.kept) if job.layout.width else (job.kept + (job.form == STRINGS)) * 4
    # a slice would hold all of the room
    found = copied(block.data, size) if 2 * job.kept < num_kept else block.cut(size)
    if job.form == NUMBERS:
        return job.kept, (found,)
    if job.form == STRINGS:
        return job.kept, (found, taken(&job.grown, job.used) if job.used >= LEAST_TAKEN else copied(job.grown.data(), job.used))
    offsets = copied(job.ends.data(), (job.length + 1) * 4) if job.length else bytes(4)
    return job.kept, (found, offsets, copied(job.grown.data(), job.used), job.length)


cdef class Column:
    """A chunk of strings, read page by page.

    Parameters
    ----------
    source : int or buffer
        A file descriptor, or bytes that start where the file does.
    offset, size
        Where the chunk lies.
    decompress : function(pyarrow.Buffer, int) -> buffer, optional
        For pages of a codec that is not Snappy: returns as many plain bytes.
    """

    cdef ChunkReader* reader
    cdef Workspace space
    cdef OpenSource opened
    cdef object codec
    cdef bint nullable

    def __cinit__(self, Workspace space not None, source, int64_t offset, int64_t size, int codec, int most_level,
                  int64_t num_rows, decompress=None):
        self.opened, self.space, self.nullable = OpenSource(source), space, most_level > 0
        self.codec = decompress
        space.bytes.codec = <void*>decompress
        space.bytes.decompress = decompress_page
        self.reader = new ChunkReader(space.bytes[0], ChunkBytes(space.bytes.chunk, self.opened.source, offset, size, WINDOW_BYTES),
                                      codec, ValueLayout(), most_level, num_rows, NULL, num_rows)

    def __dealloc__(self):
        del self.reader

    def text_page(self):
        """Return (rows, validity or None, nulls, offsets, data) of the next page of strings; None at the end."""
        cdef Block ends, data, bitmap
        cdef int64_t rows, nulls, size
        cdef Status status
        cdef bint good
        with nogil:
            status = self.reader.next_page()
            rows, nulls = self.reader.rows(), self.reader.nulls()
            size = self.reader.text_bytes() if status == PAGE else 0
        self._check(status)
        if status == DONE:
            return None
        self._check_size(size)
        ends, data, bitmap = Block((rows + 1) * 4), Block(size), Block((rows + 7) // 8) if self.nullable else None
        (<int32_t*>ends.data)[0] = 0
        with nogil:
            good = self.reader.append_text(<int32_t*>ends.data, data.data, 0) == size
            if nulls:
                nulls = 0
                good = self.reader.append_validity(bitmap.data, 0, nulls, rows) and good
        self._check(PAGE if good else UNSUPPORTED)
        valid = bitmap.cut(bitmap.size) if nulls else None
        return rows, valid, nulls, ends.cut(ends.size), data.cut(size)

    cdef int _check(self, Status status) except -1:
        check_status(status)
        if status == UNSUPPORTED:
            raise UnsupportedPagesError("a page is encoded, or damaged, in a way that is left to a complete reader")
        return 0

    cdef int _check_size(self, int64_t size) except -1:
        if not 0 <= size <= MOST_TEXT:
            raise UnsupportedPagesError(f"the strings of a chunk have more than {MOST_TEXT} bytes")
        return 0


def has_zstd():
    """Whether pages of zstd are decompressed here, by the system's library."""
    return ZstdLibrary.loaded() is not NULL


def decompress_snappy(const uint8_t[::1] data, int64_t size, bint is_text):
    """Return the `size` plain bytes of a Snappy block; None if it does not have as many. For tests."""
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        if is_text:
            good = snappy_texts(source.data, source.size, out.data, size)
        else:
            good = snappy_numbers(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None


def decompress_gzip(const uint8_t[::1] data, int64_t size):
    """Return the `size` plain bytes of a gzip member; None if it has others, or another form. For tests."""
    cdef Block source = Block(data.shape[0]), out = Block(size)
    cdef bint good
    if data.shape[0]:
        memcpy(source.data, &data[0], data.shape[0])
    with nogil:
        good = gunzip(source.data, source.size, out.data, size)
    return out.cut(size).to_pybytes() if good else None


include "parquet/column_batch.pxi"
include "parquet/nested_columns.pxi"
