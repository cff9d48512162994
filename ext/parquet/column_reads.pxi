# Included by pages.pyx: column chunks decoded as a whole or in ranges of rows; `delta_core.parquet.pages` is the public API.

def read_columns(Workspace space not None, source, list chunks, int64_t num_rows, const uint64_t[::1] keep=None):
    """Decode column chunks of a row group in one step, without the interpreter's lock.

    Parameters
    ----------
    source : int, buffer or function
        A file descriptor, bytes that start where the file does, or a function(offset, size) that returns bytes.
    chunks : list of tuple
        For each: its offset and size in bytes, its codec, the bytes of a value (0: strings), its layout in pages (see
        `ValueLayout` in value_layout.h), the definition level of a value, whether strings are requested as codes, an
        estimate of the most bytes of its strings, and for pages of a codec that is not Snappy a
        function(pyarrow.Buffer, int) -> buffer that returns that many plain bytes.
    num_rows : int
        The rows of each chunk.
    keep : uint64[n], optional
        A mask of the rows, which selects the returned ones.

    Returns
    -------
    int, list of tuple or None
        The number of selected rows; and for each chunk the validity (None: nothing is null), the number of nulls, and
        the buffers of its values: of numbers; of strings offsets and data; of codes the codes, the dictionary's offsets
        and data, and its length. None for a chunk that has to be read with PyArrow.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef const uint64_t* mask = NULL
    cdef int64_t num_kept = num_rows, i
    cdef ColumnJobs jobs = ColumnJobs(chunks)
    if keep is not None and num_rows > 0:
        mask = checked_mask(keep, num_rows)
        num_kept = mask_count(mask, num_rows)
    # the bytes of the selected strings are not known in advance
    jobs.make_room(num_kept, 1 if mask is NULL else 0)
    space.bytes.decompress = decompress_page
    with nogil:
        run_jobs(space.bytes[0], opened.source, num_rows, mask, num_kept, MOST_TEXT, jobs.jobs, jobs.count)
    opened.check()
    return num_kept, [jobs.found(i, num_kept, None) for i in range(jobs.count)]


def read_joined(Workspace space not None, source, list columns, list group_rows):
    """Decode all rows of columns of consecutive row groups in one step, without the interpreter's lock.

    Parameters
    ----------
    source
        See `read_columns`.
    columns : list of list of tuple
        For each column, one chunk of each row group, all with the same layout; strings are not returned as codes.
    group_rows : list of int
        The rows of each row group.

    Returns
    -------
    list of tuple or None
        For each column, see `read_columns`.
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
    """Column chunks of a row group that are decoded in consecutive ranges of rows.

    Parameters
    ----------
    source, chunks, num_rows
        See `read_columns`.
    window : int
        The chunks are read in windows of this many bytes, or in whole pages if they are longer.
    most_kept : int
        The most bytes of a chunk's pages, and of its dictionary, that remain in memory between two ranges. Longer ones
        are read again, except the dictionary of one chunk.
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
        """Decode the rows from `first` to `stop`, which the mask `keep` selects from; see `read_columns`.

        Once None was returned for a chunk, it is None for all further ranges.
        """
        cdef const uint64_t* mask = NULL
        cdef int64_t rows = stop - first, num_kept = rows, i
        cdef ColumnJobs jobs = ColumnJobs(self.chunks)
        if not self.at <= first < stop <= self.num_rows:
            raise InvalidArgumentError(f"rows {first} to {stop} of {self.num_rows} are no range after row {self.at}")
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


def page_values(source, int64_t offset, int64_t size, int64_t num_values):
    """Count the values of the pages of a chunk, from the page headers alone.

    Parameters
    ----------
    source : int or buffer or function
        See `read_columns`.
    offset, size : int
        The place of the chunk in the file, in bytes.
    num_values : int
        The values of the chunk by the footer; pages after the one with the last of them are not counted.

    Returns
    -------
    int
        Less than ``num_values`` if a header can't be parsed.
    """
    cdef OpenSource opened = OpenSource(source)
    cdef Workspace space = Workspace()
    cdef int64_t found
    with nogil:
        found = count_page_values(space.bytes[0], opened.source, offset, size, num_values)
    opened.check()
    return found
