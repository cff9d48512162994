# Included by json.pyx: columns to lines of JSON; `delta_core.kernels.json_lines` is its public API.

cdef extern from "log/json_lines.h" namespace "delta_json":
    cdef enum class Shape:
        Null, Bool, Int, UInt, Float, Digits, String, List, Map, Struct

    cdef enum class Trouble:
        Utf8, Key, Number, Space

    cdef cppclass Node:
        Shape shape
        int width
        string label
        const uint8_t *valid
        const char *values
        const char *text
        int64_t offset
        int64_t length
        vector[Node] children
        cbool offsets_fit(int64_t) nogil

    cdef cppclass Failure:
        Trouble trouble
        int64_t row
        string where

    int64_t measure_lines(const string &, const string &, const Node &, Failure &) except + nogil
    cbool write_lines(const string &, const string &, const Node &, char *, int64_t, Failure &) except + nogil


cdef dict SHAPES = {
    "null": Shape.Null, "bool": Shape.Bool, "int": Shape.Int, "uint": Shape.UInt, "float": Shape.Float,
    "digits": Shape.Digits, "string": Shape.String, "list": Shape.List, "map": Shape.Map, "struct": Shape.Struct,
}


cdef dict WIDTHS = {
    **dict.fromkeys(("null", "bool", "struct"), (0,)), **dict.fromkeys(("int", "uint"), (1, 2, 4, 8)),
    **dict.fromkeys(("float", "digits", "string", "list", "map"), (4, 8)),
}


cdef class Rows:
    """A batch of rows as a tree of arrays, which are checked once.

    An array is a tuple (shape, width, label, length, offset, validity, values, text, children): width in bytes of a
    value or an offset, buffers or None.
    """

    cdef Node root
    cdef list views

    def __cinit__(self, source):
        self.views = []
        self.root = self.node(source)

    cdef const char *hold(self, source, int64_t least, what) except? NULL:
        cdef View view = View(source)
        if view.size < least:
            raise ValueError(f"{what}: a buffer of {view.size} bytes where {least} are needed")
        self.views.append(view)
        return view.data

    cdef Node node(self, source) except *:
        cdef Node out, child
        cdef int64_t end
        cdef View data
        shape, out.width, label, out.length, out.offset, valid, values, text, children = source
        out.shape = SHAPES[shape]
        out.label = label
        if out.length < 0 or out.offset < 0 or out.length > (<int64_t> 1 << 56) or out.offset > (<int64_t> 1 << 56):
            raise ValueError(f"{label}: {out.length} values from {out.offset}")
        if out.width not in WIDTHS[shape]:
            raise ValueError(f"{label}: values of {out.width} bytes")
        end = out.offset + out.length
        if valid is not None:
            out.valid = <const uint8_t *> self.hold(valid, (end + 7) // 8, label)
        for c in children:
            child = self.node(c)
            out.children.push_back(child)
        if out.shape == Shape.Null:
            return out
        if out.shape == Shape.Struct:
            for i in range(<int64_t> out.children.size()):
                if out.children[i].length < out.length:
                    raise ValueError(f"{label}: a field of {out.children[i].length} values where {out.length} are needed")
            return out
        if out.shape == Shape.Bool:
            out.values = self.hold(values, (end + 7) // 8, label)
            return out
        if out.shape in (Shape.Int, Shape.UInt, Shape.Float):
            out.values = self.hold(values, end * out.width, label)
            return out
        if values is None and out.length == 0:
            out.shape = Shape.Null
            return out
        out.values = self.hold(values, (end + 1) * out.width, label)
        if out.shape in (Shape.String, Shape.Digits):
            data = View(text)
            self.views.append(data)
            out.text, end = data.data, data.size
        else:
            if out.children.size() != (2 if out.shape == Shape.Map else 1):
                raise ValueError(f"{label}: {out.children.size()} children")
            if out.shape == Shape.Map and out.children[0].shape != Shape.String and out.children[0].length:
                raise ValueError(f"{label}: keys that are no strings")
            end = out.children[0].length
            if out.shape == Shape.Map and out.children[1].length < end:
                end = out.children[1].length
        if not out.offsets_fit(end):
            raise ValueError(f"{label}: the offsets do not ascend within what they point into")
        return out


def format_rows(bytes head, bytes tail, list batches):
    """Return the objects of batches of rows, each between head and tail, as bytes; or (trouble, batch, row, label) of the first value that can't be written."""
    cdef string start = head, end = tail
    cdef Failure failure
    cdef vector[int64_t] sizes
    cdef int64_t size, total = 0
    cdef Rows rows
    cdef char *target
    cdef cbool good
    for i, batch in enumerate(batches):
        rows = batch
        with nogil:
            size = measure_lines(start, end, rows.root, failure)
        if size < 0:
            kind = {Trouble.Utf8: "utf8", Trouble.Key: "key", Trouble.Number: "number"}.get(failure.trouble, "")
            return kind, i, failure.row, (<bytes> failure.where)
        sizes.push_back(size)
        total += size
    out = PyBytes_FromStringAndSize(NULL, total)
    target = PyBytes_AS_STRING(out)
    for i, batch in enumerate(batches):
        rows = batch
        size = sizes[i]
        with nogil:
            good = write_lines(start, end, rows.root, target, size, failure)
        if not good:
            raise RuntimeError("the columns changed while their lines were written")
        target += size
    return out
