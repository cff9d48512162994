# Included by pages.pyx: tests of values, and the rows that pass them.

#: The most bytes of a page index; longer ones are not used.
cdef int64_t MOST_INDEX = 4 << 20


cdef int set_wide(Wide* out, value) except -1:
    out.low, out.high = value & ((1 << 64) - 1), (value >> 64) & ((1 << 64) - 1)
    if not -(1 << 127) <= value < 1 << 127:
        raise InvalidArgumentError(f"{value} is no number of 128 bits")
    return 0


cdef class ValueTest:
    """A test of the values of a chunk.

    Parameters
    ----------
    kind : int
        0: values from ``least`` to ``most``; 1: values that are keys; 2: strings that start with the first of two or
        more keys and end with the last, with the others in between in order; 3: nulls; 4: values that are not null; 5:
        strings below the only key; 6: values that pass any of ``parts``, 7: all of them.
    is_float : bool
        Whether its bounds or keys are floats.
    least, most : int or float
        Bounds, both included.
    with_nan : bool
        Whether NaN passes a test of a range.
    is_wide : bool
        Whether the values of a range have 16 bytes.
    keys : uint8[n], optional
        Ascending, without NaN: 8 bytes for each number, or consecutive strings.
    ends : int32[n + 1], optional
        For keys that are strings: 0, and the end of each.
    with_key : bool
        Whether the key itself passes, for strings below it.
    is_negated : bool
        Whether the result is inverted for values.
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
            # an empty range, if no number of 8 bytes is in it
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
        """Return whether values of `width` bytes, stored in a form, can be tested."""
        cdef ChunkJob job
        job.layout.width, job.layout.stored = width, stored
        return self.fits(job.layout)

    def address_for(self, int width, int stored):
        """Return the address of the test, for a module that holds this object and tests values of this form."""
        if not self.fits_form(width, stored):
            raise InvalidArgumentError(f"the test is none of values of {width} bytes in the form {stored}")
        return <size_t>&self.test

    def is_excluded(self, source, int64_t offset, int64_t size, int width, int stored=0):
        """Return whether no value of a chunk can pass, by the chunk's Bloom filter.

        Parameters
        ----------
        source : int or buffer
            A file descriptor, or bytes that start where the file does.
        offset, size : int
            The place of the filter in the file, in bytes; a size of -1 is unknown.
        width, stored : int
            The bytes of a value, 0 for strings, and its layout in pages; see `read_columns`.
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
            The bytes of a value, 0 for strings, and its layout in pages; see `read_columns`.
        num_rows : int
            The rows of the chunk.
        rows : uint64[n]
            Zeros; undefined after the call if the index can't be used.

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
        """Return whether values of a layout can be tested."""
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
        # the type contains the bounds; 8 bytes contain all
        return (width == 8 or self.test.kind == IN_SET
                or -(<int64_t>1 << (8 * width - 1)) <= self.test.least <= self.test.most < <int64_t>1 << (8 * width - 1))


cdef bint has_stored_bounds(ValueLayout* layout) noexcept:
    """Return whether the bounds or keys of a test can be compared with values in the layout of pages."""
    return not layout.is_converted() or layout.width < 4


def read_passing(Workspace space not None, source, tuple chunk, int64_t num_rows, ValueTest values not None, bint has_values,
                 uint64_t[::1] passed not None, const uint64_t[::1] keep=None):
    """Find the rows of a chunk whose values pass a test.

    Parameters
    ----------
    chunk : tuple
        See `read_columns`.
    values : ValueTest
        Its bounds or keys have the type of the chunk.
    has_values : bool
        Whether the values that pass are also returned; not possible for a test that null passes.
    passed : uint64[n]
        Zeros; the bits of the rows that pass are set.
    keep : uint64[n], optional
        A mask of the rows; rows that it does not select do not pass.

    Returns
    -------
    int, tuple or None
        The number of rows that pass, and the buffers of their values: of numbers; of strings the offsets and data; or of
        codes the codes, the dictionary's offsets and data, and its length. None for a chunk that has to be read with
        PyArrow.
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
