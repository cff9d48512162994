# Included by json.pyx: JSON statistics to typed columns; `delta_core.kernels.stats` is its public API.

cdef extern from "log/json_stats.h" namespace "delta_json":
    cdef cppclass StatTree:
        int child(int, const string &) except +
        cbool set_field(int, char, int, int) except +

    cdef cppclass Texts:
        const char *text
        size_t text_bytes
        const void *offsets
        cbool large
        const uint8_t *valid
        size_t first
        size_t rows

    cbool read_stats(const StatTree &, const Texts &, int, ArrowArray *) except + nogil


cdef class Fields:
    """The fields to read: tuples of (path, type, precision, scale), types as in ext/log/json_stats.h."""

    cdef StatTree tree
    cdef object schema

    def __cinit__(self, fields, schema):
        cdef int node
        for path, of_type, precision, scale in fields:
            if of_type not in "ldfbsDTNmp" or len(of_type) != 1 or not path:
                raise ValueError(f"no field of type {of_type!r} at path {path!r}")
            if of_type == "l" and not 1 <= precision <= 64:
                raise ValueError(f"no whole number has {precision} bits")
            if of_type == "m" and not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise ValueError(f"no decimal has precision {precision} and scale {scale}")
            node = 0
            for name in path:
                node = self.tree.child(node, name.encode())
            if not self.tree.set_field(node, ord(of_type), precision, scale):
                raise ValueError(f"path {path!r} is asked for twice")
        self.schema = schema

    def read(self, size_t rows, size_t first, validity, offsets, text, cbool large, int threads):
        """Read ``rows`` strings from the buffers of an Arrow array, whose offset is ``first``."""
        cdef View valid = View(validity), places = View(offsets), data = View(text)
        cdef Texts texts
        cdef ArrowArray array
        cdef cbool sound
        cdef Exported out = Exported.__new__(Exported)
        if first + rows < first or (rows and <size_t> places.size // (8 if large else 4) < first + rows + 1):
            raise ValueError(f"offsets of {places.size} bytes are too short for {rows} rows from {first}")
        if validity is not None and <size_t> valid.size < (first + rows + 7) // 8:
            raise ValueError(f"a validity of {valid.size} bytes is too short for {rows} rows from {first}")
        texts.valid = <const uint8_t *> valid.data
        texts.offsets = places.data
        texts.text = data.data
        texts.text_bytes = data.size
        texts.large = large
        texts.first = first
        texts.rows = rows
        with nogil:
            sound = read_stats(self.tree, texts, threads, &array)
        if not sound:
            raise ValueError("the array's offsets point outside its text")
        out.schema = self.schema
        out.array = array_capsule(array)
        return out
