# Included by footer.pyx: footers of many files; `delta_core.parquet.local_footers` is its public API.

cdef extern from "parquet/local_footers.h" namespace "delta_parquet" nogil:
    cdef cppclass FooterOfFile:
        string bytes
        FooterFacts facts
        int64_t layout
    cdef cppclass BoundColumn:
        vector[int64_t] nulls, least, most, least_ends, most_ends
        vector[uint8_t] known
        vector[double] least_number, most_number
        string least_bytes, most_bytes
    cdef cppclass FooterWindow:
        void read(const char* path) except +
        int64_t size()
        const FooterOfFile& file(int64_t i)
        const vector[int64_t]& first()
        int64_t bytes()
        void column(int64_t layout, int64_t leaf, int64_t physical, int kind, bint has_bounds, BoundColumn& out) except +


cdef object integers(const vector[int64_t]& values):
    out = np.empty(values.size(), np.int64)
    cdef int64_t[::1] view = out
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(int64_t))
    return out


cdef object numbers(const vector[double]& values):
    out = np.empty(values.size(), np.float64)
    cdef double[::1] view = out
    if values.size():
        memcpy(&view[0], values.data(), values.size() * sizeof(double))
    return out


cdef class Footers:
    """Footers of files, as bytes and as facts."""

    cdef FooterWindow window

    def __init__(self, const int64_t[::1] ends not None, bytes names not None):
        """Read the footers of files; ``names`` are their paths, each followed by a zero byte, which end at ``ends``."""
        cdef const char* text = names
        cdef int64_t i, start = 0, n = ends.shape[0], size = len(names)
        for i in range(n):
            if ends[i] <= start or ends[i] > size or text[ends[i] - 1]:
                raise ValueError("the ends are not those of the names")
            start = ends[i]
        with nogil:
            start = 0
            for i in range(n):
                self.window.read(text + start)
                start = ends[i]

    @property
    def nbytes(self):
        """The bytes of memory that the footers take."""
        return self.window.bytes()

    @property
    def first(self):
        """The number of the first file of each layout."""
        return integers(self.window.first())

    def files(self):
        """Return the layout (-1: to be read with PyArrow) and the rows of each file."""
        cdef int64_t i, n = self.window.size()
        layouts, rows = np.empty(n, np.int64), np.empty(n, np.int64)
        cdef int64_t[::1] layout_view = layouts
        cdef int64_t[::1] row_view = rows
        for i in range(n):
            layout_view[i] = self.window.file(i).layout
            row_view[i] = self.window.file(i).facts.num_rows
        return layouts, rows

    def footer(self, int64_t i):
        """Return the footer of a file as bytes, and the program that wrote it."""
        if not 0 <= i < self.window.size():
            raise IndexError(i)
        cdef const FooterOfFile* file = &self.window.file(i)
        return (
            file.bytes.data()[:file.bytes.size()],
            file.facts.created_by.data()[:file.facts.created_by.size()],
        )

    def column(self, int64_t layout, int64_t leaf, int64_t physical, int kind, bint has_bounds):
        """Return (null counts, whether there are bounds, lower, upper bounds) of a column; bytes as (ends, bytes)."""
        cdef BoundColumn out
        if leaf < 0:
            raise IndexError(leaf)
        with nogil:
            self.window.column(layout, leaf, physical, kind, has_bounds, out)
        known = np.empty(out.known.size(), np.uint8)
        cdef uint8_t[::1] view = known
        if out.known.size():
            memcpy(&view[0], out.known.data(), out.known.size())
        nulls = integers(out.nulls)
        if kind <= 1:
            return nulls, known, integers(out.least), integers(out.most)
        if kind <= 3:
            return nulls, known, numbers(out.least_number), numbers(out.most_number)
        least = out.least_bytes.data()[:out.least_bytes.size()]
        most = out.most_bytes.data()[:out.most_bytes.size()]
        return nulls, known, (integers(out.least_ends), least), (integers(out.most_ends), most)
