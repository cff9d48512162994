# Included by pages.pyx: memory of pages and Arrow buffers, and the sources of column chunks.

#: Workspaces that grew beyond this are not reused.
cdef size_t MOST_KEPT = 64 << 20


cdef class Block:
    """Bytes of an Arrow buffer under construction, with SLACK bytes after `size`."""

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
    """Memory in which chunks are read, one at a time."""

    cdef WorkspaceBytes* bytes

    def __cinit__(self):
        self.bytes = new WorkspaceBytes()

    def __dealloc__(self):
        del self.bytes

    @property
    def address(self):
        """The address, for a module that reads files in this workspace while it holds this object."""
        return <size_t>self.bytes

    @property
    def is_small(self):
        """Whether it is small enough to be reused."""
        return self.bytes.size() <= MOST_KEPT

    def take_page_counts(self):
        """Return the number of data pages found since the last call, and how many of them were decoded."""
        found = self.bytes.own_pages.met, self.bytes.own_pages.decoded
        self.bytes.own_pages.met = self.bytes.own_pages.decoded = 0
        return found


cdef int read_by_call(void* reader, int64_t offset, int64_t size, uint8_t* out) noexcept with gil:
    """Call the function of a `CalledSource`; an exception is stored there."""
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
    """The source of chunks: a file's descriptor, bytes that start where the file does, or a function(offset, size)."""

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
        """Raise the exception of the function, if it raised one."""
        if self.called is not None and self.called.error is not None:
            error, self.called.error = self.called.error, None
            raise error
        return 0


cdef int64_t room_of(int64_t size) noexcept nogil:
    """Return the bytes that `size` bytes take in a block: with SLACK bytes after them, rounded up to the alignment of the next part."""
    return (size + SLACK + 63) // 64 * 64


cdef class Malloced:
    """Memory that is freed when this object is."""

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
