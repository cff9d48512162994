# Included by footer.pyx: a file cut by row groups; `delta_core.parquet.row_group_files` is its public API.

cdef extern from "parquet/row_group_files.h" namespace "delta_parquet" nogil:
    cdef cppclass RowGroupFiles:
        RowGroupFiles(const uint8_t* file, const uint8_t* footer, const uint8_t* end)
        string bytes
        vector[int64_t] ends
        bint cut() except +


cdef class Files:
    """The consecutive files, as a buffer of bytes."""

    cdef RowGroupFiles* files
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]

    def __cinit__(self, const uint8_t[::1] file not None):
        cdef int64_t size = file.shape[0]
        cdef const uint8_t* start
        cdef int64_t length
        cdef bint good
        if size < 12:
            raise ValueError("the file is too short")
        start = &file[0]
        length = start[size - 8] | start[size - 7] << 8 | start[size - 6] << 16 | <int64_t>start[size - 5] << 24
        if length > size - 12:
            raise ValueError("the footer is longer than the file")
        self.files = new RowGroupFiles(start, start + size - 8 - length, start + size - 8)
        with nogil:
            good = self.files.cut()
        if not good:
            raise ValueError("the file holds what can't be moved to another place")

    def __dealloc__(self):
        del self.files

    def ends(self):
        """Return the end of each file."""
        return integers(self.files.ends)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        self.shape[0] = self.files.bytes.size()
        self.strides[0] = 1
        buffer.buf = <void*>self.files.bytes.data()
        buffer.format = "B"
        buffer.internal = NULL
        buffer.itemsize = 1
        buffer.len = self.shape[0]
        buffer.ndim = 1
        buffer.obj = self
        buffer.readonly = 1
        buffer.shape = self.shape
        buffer.strides = self.strides
        buffer.suboffsets = NULL
