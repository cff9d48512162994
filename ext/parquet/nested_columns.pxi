# Included by pages.pyx: columns inside of structs, lists and maps; `delta_core.parquet.nested_pages` is its public API.

cdef extern from "parquet/nested_pages.h" namespace "delta_parquet" nogil:
    cdef cppclass NestedJob:
        int64_t offset, size, num_entries, room, entries, slots, nulls, used
        int codec, width, decimal_bytes, most_definition, most_repetition, slot_definition
        void* decompressor
        uint8_t* out
        uint8_t* bits
        uint8_t* definitions
        uint8_t* repetitions
        uint8_t* text
        Status status
        Text grown, grown_out
        int64_t out_bytes(int64_t n)
    cdef cppclass NestedStream:
        NestedStream(const Source& source, const NestedJob& job, int64_t num_rows, int64_t window, int64_t most_kept, int64_t most_text)
        void run(WorkspaceBytes& space, int64_t first, int64_t stop, const uint64_t* keep, NestedJob& job)
    cdef cppclass Around:
        int repetition, slot, there, element
        int64_t slots, elements, nulls
    void run_nested(WorkspaceBytes& space, const Source& source, int64_t num_rows, const uint64_t* keep, int64_t most_text,
                    NestedJob* jobs, int64_t count)
    bint find_lists(const uint8_t* definitions, const uint8_t* repetitions, int64_t n, Around& list, int32_t* ends, uint8_t* bits)
    void find_structs(const uint8_t* definitions, const uint8_t* repetitions, int64_t n, Around& around, uint8_t* bits)


cdef extern from *:
    """
    static delta_parquet::NestedJob *new_nested_jobs(int64_t count) { return new delta_parquet::NestedJob[count]; }
    static void delete_nested_jobs(delta_parquet::NestedJob *jobs) { delete[] jobs; }
    """
    NestedJob* new_nested_jobs(int64_t count)
    void delete_nested_jobs(NestedJob* jobs)


cdef object fitted(Block block, int64_t size):
    """Return the first bytes of a block; a slice would hold all of the room."""
    return block.cut(size) if 4 * size >= block.size else copied(block.data, size)


cdef class Levels:
    """The levels of the entries of a chunk in the selected rows."""

    cdef Block definitions, repetitions
    cdef int64_t n
    cdef int most_repetition

    def lists(self, int repetition, int slot, int there, int element):
        """Return (lists, elements, nulls, validity, ends) of a list; None if the levels are invalid for a list.

        Parameters
        ----------
        repetition : int
            The repetition level of an element.
        slot, there, element : int
            The least definition levels of entries with a list or null, with a list, and with an element of it.
        """
        cdef Around around
        cdef Block ends = Block((self.n + 1) * 4), bits = Block((self.n + 8) // 8)
        cdef bint good
        if not 0 < repetition <= self.most_repetition:
            raise InvalidArgumentError(f"elements of the repetition level {repetition} in columns of {self.most_repetition}")
        around.repetition, around.slot, around.there, around.element = repetition, slot, there, element
        with nogil:
            memset(bits.data, 0, bits.size + SLACK)
            good = find_lists(self.definitions.data, self.repetitions.data, self.n, around, <int32_t*>ends.data, bits.data)
        if not good:
            return None
        valid = fitted(bits, (around.slots + 7) // 8) if around.nulls else None
        return around.slots, around.elements, around.nulls, valid, fitted(ends, (around.slots + 1) * 4)

    def structs(self, int repetition, int slot, int there):
        """Return (structs, nulls, validity) of a struct, see `lists`."""
        cdef Around around
        cdef Block bits = Block((self.n + 8) // 8)
        cdef const uint8_t* inner = self.repetitions.data if self.most_repetition > repetition else NULL
        around.repetition, around.slot, around.there = repetition, slot, there
        with nogil:
            memset(bits.data, 0, bits.size + SLACK)
            find_structs(self.definitions.data, inner, self.n, around, bits.data)
        return around.slots, around.nulls, fitted(bits, (around.slots + 7) // 8) if around.nulls else None


def copied_levels(const uint8_t[::1] definitions not None, const uint8_t[::1] repetitions not None, int most_repetition):
    """Return the levels of entries that another module decoded."""
    cdef Levels found = Levels()
    cdef int64_t n = definitions.shape[0]
    if repetitions.shape[0] != (n if most_repetition else 0):
        raise InvalidArgumentError(f"{n} definition levels and {repetitions.shape[0]} repetition levels")
    found.definitions = copy_of(&definitions[0] if n else NULL, n)
    found.repetitions = copy_of(&repetitions[0] if repetitions.shape[0] else NULL, repetitions.shape[0])
    found.n, found.most_repetition = n, most_repetition
    return found


cdef class NestedJobs:
    """Chunks to decode, with memory for their entries; see `read_nested`."""

    cdef NestedJob* jobs
    cdef int64_t count
    cdef list chunks, held

    def __cinit__(self, list chunks):
        cdef NestedJob* job
        cdef int64_t i
        self.chunks, self.count = chunks, len(chunks)
        self.jobs = new_nested_jobs(self.count)
        for i in range(self.count):
            job = &self.jobs[i]
            (job.offset, job.size, job.codec, job.width, job.decimal_bytes, job.most_definition, job.most_repetition,
             job.slot_definition, job.num_entries, job.room, decompress) = chunks[i]
            if job.width == 16 and not 1 <= job.decimal_bytes <= 16:
                raise InvalidArgumentError(f"a decimal of {job.decimal_bytes} bytes")
            if job.num_entries < 0 or job.width not in (0, 1, 4, 8, 16) or not 0 <= job.slot_definition <= job.most_definition <= 255:
                raise InvalidArgumentError(
                    f"a chunk of {job.num_entries} entries of {job.width} bytes and {job.most_definition} levels"
                )
            if not 0 <= job.most_repetition <= 255:
                raise InvalidArgumentError(f"a chunk of {job.most_repetition} repetition levels")
            job.decompressor = <void*>decompress  # the list holds a reference
            job.room = 0 if job.width else job.room

    def __dealloc__(self):
        delete_nested_jobs(self.jobs)

    cdef int make_room(self, double share, double text_share) except -1:
        """Make room for a share of the entries, and of the strings."""
        cdef NestedJob* job
        cdef Levels levels
        cdef Block out, bits
        cdef int64_t i, n
        self.held = []
        for i in range(self.count):
            job = &self.jobs[i]
            if share < 1:  # otherwise for all of them
                job.num_entries = <int64_t>(share * job.num_entries) + 1
            job.room = <int64_t>(text_share * job.room)
            n = job.num_entries
            levels = Levels()
            levels.definitions, levels.repetitions = Block(n), Block(n if job.most_repetition else 0)
            out, bits, text = Block(job.out_bytes(n)), Block((n + 7) // 8), Block(job.room) if job.room else None
            self.held.append((levels, out, bits, text))
            job.definitions, job.repetitions = levels.definitions.data, levels.repetitions.data
            job.out, job.bits = out.data, bits.data
            memset(job.bits, 0, bits.size + SLACK)
            if job.room:
                job.text = (<Block>text).data
        return 0

    cdef object found(self, int64_t i):
        cdef NestedJob* job = &self.jobs[i]
        cdef Levels levels
        check_status(job.status)
        if job.status == DAMAGED:  # PyArrow would return the number of rows in the footer, whichever rows these are
            raise ArrowInvalid("the pages of a nested column have more rows or values than the footer specifies")
        if job.status != DONE:
            return None
        levels, out, bits, text = self.held[i]
        levels.n, levels.most_repetition = job.entries, job.most_repetition
        if job.grown_out.data() is not NULL:  # there were more entries than room
            levels.definitions = copy_of(job.definitions, job.entries)
            levels.repetitions = copy_of(job.repetitions, job.entries if job.most_repetition else 0)
            out, bits = copy_of(job.out, job.out_bytes(job.slots)), copy_of(job.bits, (job.slots + 7) // 8)
        valid = fitted(bits, (job.slots + 7) // 8) if job.nulls else None
        values = fitted(out, job.slots * job.width if job.width else job.out_bytes(job.slots))
        if job.width:
            return levels, job.slots, job.nulls, valid, values
        data = copied(job.grown.data(), job.used) if job.grown.data() is not NULL else fitted(text, job.used)
        return levels, job.slots, job.nulls, valid, values, data


cdef Block copy_of(const uint8_t* data, int64_t size):
    cdef Block out = Block(size)
    if size:
        memcpy(out.data, data, size)
    return out


def read_nested(Workspace space not None, source, list chunks, int64_t num_rows, const uint64_t[::1] keep=None):
    """Decode chunks of a row group that are inside of structs, lists and maps, without the interpreter's lock.

    Parameters
    ----------
    source : int or buffer
        A file descriptor, or bytes that start where the file does.
    chunks : list of tuple
        For each: its offset and size in bytes, its codec, the bytes of a value (0: strings; 1: booleans, a byte each; 16:
        decimals), the bytes of a decimal in the file, highest first (0: no decimal), the definition and the repetition
        level of a value, the definition level of an element of the innermost list around it (0: there is none), the number
        of entries, an estimate of the most bytes of its strings, and its decompressor (see `read_columns`).
    num_rows : int
        The rows of each chunk.
    keep : uint64[n], optional
        A mask of the rows, which selects the returned ones.

    Returns
    -------
    list of tuple or None
        For each chunk its `Levels`; the number of values and nulls, which are elements of the innermost list or rows; the
        validity (None: nothing is null); the number of nulls; and the buffers of the values: of numbers; of strings
        offsets and data. None for a chunk that has to be read with PyArrow.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef const uint64_t* mask = NULL
    cdef int64_t i
    cdef NestedJobs jobs = NestedJobs(chunks)
    if num_rows < 0:
        raise InvalidArgumentError(f"a row group of {num_rows} rows")
    if keep is not None and num_rows:
        mask = checked_mask(keep, num_rows)
    jobs.make_room(1, 1 if mask is NULL else 0)
    space.bytes.decompress = decompress_page
    with nogil:
        run_nested(space.bytes[0], opened.source, num_rows, mask, MOST_TEXT, jobs.jobs, jobs.count)
    opened.check()
    return [jobs.found(i) for i in range(jobs.count)]


cdef class NestedStretches:
    """Chunks of a row group that are decoded in consecutive ranges of rows.

    Parameters
    ----------
    source, chunks, num_rows
        See `read_nested`.
    window, most_kept
        See `ColumnStretches`.
    """

    cdef OpenSource opened
    cdef vector[NestedStream*] streams
    cdef list chunks
    cdef int64_t num_rows, at

    def __cinit__(self, source, list chunks, int64_t num_rows, int64_t window, int64_t most_kept):
        cdef NestedJobs jobs = NestedJobs(chunks)
        cdef int64_t i
        self.opened, self.chunks, self.num_rows, self.at = OpenSource(source), chunks, num_rows, 0
        for i in range(jobs.count):
            self.streams.push_back(new NestedStream(self.opened.source, jobs.jobs[i], num_rows, window, most_kept, MOST_TEXT))

    def __dealloc__(self):
        for stream in self.streams:
            del stream

    def read(self, Workspace space not None, int64_t first, int64_t stop, const uint64_t[::1] keep=None):
        """Decode the rows from `first` to `stop`, selected by the mask `keep`; see `read_nested`. After a None nothing more is decoded."""
        cdef const uint64_t* mask = NULL
        cdef int64_t rows = stop - first, i
        cdef double share = <double>rows / self.num_rows
        cdef NestedJobs jobs = NestedJobs(self.chunks)
        if not self.at <= first < stop <= self.num_rows:
            raise InvalidArgumentError(f"rows {first} to {stop} of {self.num_rows} are no range after row {self.at}")
        if keep is not None:
            mask = checked_mask(keep, rows)
        jobs.make_room(min(1.0, 1.05 * share), 0 if mask is not NULL else share)
        space.bytes.decompress = decompress_page
        with nogil:
            for i in range(jobs.count):
                self.streams[i].run(space.bytes[0], first, stop, mask, jobs.jobs[i])
                if jobs.jobs[i].status != DONE:
                    break
        self.opened.check()
        self.at = stop
        return [jobs.found(i) for i in range(jobs.count)]
