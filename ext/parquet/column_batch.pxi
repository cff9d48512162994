# Included by pages.pyx: many columns as one batch; `delta_core.parquet.pages.read_batch` is its public API.

cdef object batch_from_c = RecordBatch._import_from_c


cdef class ColumnBatch:
    """Columns that several threads decode, each one at a time, and that are returned as one batch.

    Parameters
    ----------
    source
        See `read_columns`.
    groups : list of list of tuple
        For each row group, one chunk of each column (see `read_columns`); the chunks of a column have the same layout.
        Strings are requested as codes of a single row group only.
    group_rows : list of int
        The rows of each row group.
    keep : uint64[n], optional
        A mask of the rows of a single row group, which selects the returned rows.
    """

    cdef ColumnJobs jobs
    cdef OpenSource opened
    cdef SharedJobs* shared
    cdef vector[ChunkPart] parts
    cdef const uint64_t[::1] keep
    cdef const uint64_t* mask
    cdef int64_t num_rows, num_kept
    cdef bint is_finished

    def __cinit__(self, source, list groups, list group_rows, const uint64_t[::1] keep=None):
        self.opened, self.keep = OpenSource(source), keep
        self.mask = NULL
        self.jobs = ColumnJobs(groups[0])
        self.num_rows = num_rows_of(group_rows)
        if len(groups) != len(group_rows):
            raise InvalidArgumentError(f"{len(groups)} row groups with the rows of {len(group_rows)}")
        if len(group_rows) > 1:
            if keep is not None:
                raise InvalidArgumentError("a mask is one of the rows of a single row group")
            self.jobs.join([list(chunks) for chunks in zip(*groups, strict=True)], group_rows, &self.parts)
        self.num_kept = self.num_rows
        if keep is not None and self.num_rows > 0:
            self.mask = checked_mask(keep, self.num_rows)
            self.num_kept = mask_count(self.mask, self.num_rows)
        self.jobs.make_room(self.num_kept, 1 if self.mask is NULL else 0)
        self.shared = new SharedJobs(self.jobs.jobs, self.jobs.count, &self.parts)

    def __dealloc__(self):
        del self.shared

    def decode(self, Workspace space not None):
        """Decode columns until none remains; each thread that runs this has a workspace of its own."""
        space.bytes.decompress = decompress_page
        with nogil:
            self.shared.run(space.bytes[0], self.opened.source, self.num_rows, self.mask, self.num_kept, MOST_TEXT)

    def finish(self, schema):
        """Return the batch, once; None if a column has to be read with PyArrow.

        Parameters
        ----------
        schema : pyarrow.Schema
            A field for each column, with the type of the chunks, or for codes a dictionary of it.
        """
        cdef BatchArray array
        cdef BatchColumns* columns
        cdef ColumnJobs jobs = self.jobs
        cdef ChunkJob* job
        cdef int64_t i, size = 0
        cdef list owners = [jobs.blocks]
        cdef Block texts
        cdef uint8_t* at
        if self.is_finished:
            raise InvalidArgumentError("the batch was returned before")
        for i in range(jobs.count):
            check_status(jobs.jobs[i].status)
            if jobs.jobs[i].status != DONE:
                return None
            size += jobs.copied_bytes(i)
        self.opened.check()
        self.is_finished = True
        texts = Block(size)
        owners.append(texts)
        columns, at = new BatchColumns(jobs.count), texts.data
        array.release = NULL
        try:
            for i in range(jobs.count):
                at += jobs.export(i, self.num_kept, at, columns, owners)
            finish_batch(columns, self.num_kept, owners, &array)
            columns = NULL
            return batch_from_c(<uintptr_t>&array, schema)
        finally:
            del columns
            if array.release != NULL:  # not imported
                array.release(&array)


cdef int64_t num_rows_of(list group_rows) except -1:
    cdef int64_t rows, total = 0
    for rows in group_rows:
        if rows < 0:
            raise InvalidArgumentError(f"a row group of {rows} rows")
        total += rows
    return total
