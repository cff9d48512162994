# Included by pages.pyx: chunks of strings, one page at a time.

cdef class Column:
    """A chunk of strings, read page by page.

    Parameters
    ----------
    source : int or buffer
        A file descriptor, or bytes that start where the file does.
    offset, size
        The place of the chunk in the file, in bytes.
    decompress : function(pyarrow.Buffer, int) -> buffer, optional
        For pages of a codec that is not Snappy: returns that many plain bytes.
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
            raise UnsupportedPagesError("a page is damaged, or encoded in an unsupported way")
        return 0

    cdef int _check_size(self, int64_t size) except -1:
        if not 0 <= size <= MOST_TEXT:
            raise UnsupportedPagesError(f"the strings of a chunk have more than {MOST_TEXT} bytes")
        return 0
