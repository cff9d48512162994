# distutils: language = c++
"""Pages of Lance data files as Arrow buffers; `delta_plugins.lance.files.structural` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t, uintptr_t
from libc.string cimport memcpy
from libcpp cimport bool
from libcpp.string cimport string
from libcpp.utility cimport move
from libcpp.vector cimport vector

import pyarrow as pa

include "lance/blocks.pxi"


cdef extern from "lance/utf8.h" namespace "delta_lance" nogil:
    bool are_texts[T](const T* offsets, uint64_t n, const uint8_t* data)


cdef extern from "lance/pages.h" namespace "delta_lance" nogil:
    cdef cppclass Bytes:
        const uint8_t* data
        uint64_t size
    cdef cppclass Bits:
        uint64_t size()
        uint64_t zeros()
        bool is_stored()
        Block& block()
        void lend_from(KeptBlocks* source)
    cdef cppclass SymbolTable:
        Error parse(Bytes data)
    cdef cppclass Coding:
        int kind, scheme, child, other
        uint64_t bits, packed, items
        bool has_validity
        SymbolTable table
        vector[uint8_t] value
    cdef cppclass Values:
        unsigned bits
        bool is_wide
        uint64_t count
        Block fixed, offsets, text
        vector[Bits] validity
        void lend_from(KeptBlocks* source)
        Error add_offsets(uint64_t n)
    ctypedef int64_t (*Unzip)(const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept nogil
    cdef cppclass Context:
        Context(Unzip unzip)
    cdef cppclass Codings:
        vector[Coding] nodes
        Error append_block(Context& context, int node, Bytes data, uint64_t n, Values& out)
    cdef cppclass Layers:
        Error assign(const vector[int]& kinds)
    cdef cppclass Levels:
        vector[uint16_t] rep
        vector[uint16_t] definition "def"
        uint64_t count
        bool has_rep, has_def
    cdef cppclass Range:
        uint64_t first, last
    cdef cppclass Part:
        uint64_t at
        Bytes bytes
    cdef cppclass PackedField:
        int coding
        uint64_t bits
        bool is_variable
    cdef cppclass CPage "delta_lance::Page":
        int layout, value, rep, definition "def", dictionary
        uint64_t num_rows, num_buffers, num_items, num_dictionary_items, bits_per_value, bits_per_offset, data_size
        unsigned bits_rep, bits_def
        bool is_blob, is_large, is_null
        Layers layers, outer
        Codings codings
        Levels levels
        vector[PackedField] fields
        vector[uint8_t] constant
        Error find_chunks(Bytes words, Bytes index, uint64_t depth, uint64_t size)
        Error find_rows(Bytes index)
        Error open_constant(Context& context, bool has_value, Bytes rep_bytes, Bytes def_bytes, uint64_t num_rep, uint64_t num_def)
        void fill_levels(uint16_t level)
        Error plan(const vector[Range]& ranges, uint64_t gap, vector[Range]& found)
    cdef cppclass LayerOut:
        bool is_list, is_wide
        Bits valid
        Block offsets
        Error add_offsets(uint64_t n)
    cdef cppclass CColumn "delta_lance::Column":
        vector[LayerOut] layers
        Values values
        vector[Values] children
        uint64_t list_items
        vector[uint64_t] list_sizes
        vector[vector[uint64_t]] child_sizes
        void expect(const CPage& page, uint64_t rows)
        Error read_dictionary(Context& context, CPage& page, Bytes data)
        Error append(Context& context, const CPage& page, const vector[Range]& ranges, const vector[Part]& parts)


cdef extern from "lance/codings.h" namespace "delta_lance" nogil:
    cdef cppclass Slices:
        const uint8_t* offsets
        bool is_wide
        Bytes data
    Error append_slices "delta_lance::Codings::append_slices"(
        Context& context, const Slices& slices, uint64_t first, uint64_t last, const SymbolTable* table, Values& out)


cdef extern from "lance/ends.h" namespace "delta_lance" nogil:
    cdef cppclass EndRange:
        uint64_t rows
        bool has_before
    cdef cppclass Ends:
        Block offsets
        Bits valid
        vector[uint64_t] spans
        Error read(const uint8_t* ends, uint64_t n, const vector[EndRange]& ranges, uint64_t adjustment, uint64_t limit, bool is_wide)


cdef extern from "lance/small_files.h" namespace "delta_lance" nogil:
    cdef cppclass PageLayout:
        CPage* page
        uint64_t depth, num_rep, num_def
        bool has_value
    cdef cppclass CLayoutKey "std::pair<size_t, const std::string *>":
        size_t first
        const string* second
    cdef cppclass CSmallFiles "delta_lance::SmallFiles":
        CSmallFiles(unsigned major, unsigned minor)
        void add_column(CColumn* column, uint64_t index, uint64_t multiple) except +
        bool read(const char* path, uint64_t size, uint64_t rows) except +
        const vector[CLayoutKey]& unknown()
        void set_layout(size_t i, const PageLayout& layout)
        Error append(Context& context) except +


cdef extern from "lance/page_tests.h" namespace "delta_lance" nogil:
    cdef cppclass Test "delta_parquet::Test":
        pass
    cdef cppclass CTestedColumn "delta_lance::TestedColumn"(CColumn):
        const Test* test
        unsigned bits
        Error append_flags(Context& context, const CPage& page, const vector[Range]& ranges, const vector[Part]& parts, uint8_t* flags)
        Error array_flags(uint64_t n, Bytes valid, Bytes offsets, Bytes data, uint8_t* flags)

include "generated_code.pxi"


class DamagedPageError(Exception):
    """A page that can't be decoded; the text states why."""


class TooLongError(Exception):
    """Values that 32-bit offsets can't describe: fewer rows have to be decoded at once."""


cdef int64_t unzip(const uint8_t* data, int64_t n, uint8_t* out, int64_t size) noexcept with gil:
    """Decompress a zstd frame with PyArrow, where the system has no libzstd."""
    try:
        frame = pa.CompressedInputStream(pa.BufferReader(pa.foreign_buffer(<uintptr_t>data, n)), "zstd")
        found = frame.read(size + 1)
        if len(found) <= size:
            memcpy(out, <const char*>found, len(found))
            return len(found)
    except Exception:  # noqa: BLE001
        pass
    return -1


cdef int check(Error error) except -1:
    if error == NULL:
        return 0
    if error == NO_MEMORY:
        raise MemoryError
    if error == TOO_LONG:
        raise TooLongError(error.decode())
    raise DamagedPageError(error.decode())


cdef object exported_bits(Bits& bits):
    return exported(bits.block()) if bits.zeros() else None


cdef class View:
    """The bytes of a buffer, as long as this object is there."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, data):
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef Bytes bytes(self):
        cdef Bytes found
        found.data = <const uint8_t*>self.view.buf
        found.size = <uint64_t>self.view.len
        return found


cdef vector[uint8_t] vector_of(View view):
    cdef vector[uint8_t] found
    found.assign(<const uint8_t*>view.view.buf, <const uint8_t*>view.view.buf + view.view.len)
    return found


cdef vector[Range] ranges_of(const int64_t[:, ::1] ranges):
    cdef vector[Range] found
    cdef Range r
    cdef Py_ssize_t i
    found.reserve(ranges.shape[0])
    for i in range(ranges.shape[0]):
        r.first = <uint64_t>ranges[i, 0]
        r.last = <uint64_t>ranges[i, 1]
        found.push_back(r)
    return found


cdef class Page:
    """A page: its layout, and the positions of its chunks or rows.

    Parameters
    ----------
    layout : int
        1 mini-blocks, 2 constant, 3 full-zip.
    num_rows, data_size : int
        The rows of the page, and the bytes of its value buffer.
    layers : list of int
        The kinds of its layers, the innermost first.
    codings : list of tuple
        (kind, bits, packed bits, scheme, items, has validity, child, other, symbol table, constant) of each compression.
    nodes : tuple of int
        The codings of values, repetition levels, definition levels and the dictionary; -1 = none.
    numbers : dict of str to int
        Further fields of the layout.
    outer : list of int, optional
        The layers of a blob page.
    fields : list of tuple
        (coding, bits, is variable) of the fields of a packed struct of values of any length.
    """

    cdef CPage page

    def __init__(self, int layout, num_rows, data_size, layers, codings, nodes, numbers, outer, fields):
        cdef Coding node
        cdef PackedField field
        cdef View view
        cdef size_t i
        self.page.layout = layout
        self.page.num_rows = num_rows
        self.page.data_size = data_size
        check(self.page.layers.assign(<vector[int]>layers))
        if outer is not None:
            self.page.is_blob = True
            check(self.page.outer.assign(<vector[int]>outer))
        self.page.codings.nodes.resize(len(codings))
        for i, c in enumerate(codings):
            self.page.codings.nodes[i].kind = c[0]
            self.page.codings.nodes[i].bits = c[1]
            self.page.codings.nodes[i].packed = c[2]
            self.page.codings.nodes[i].scheme = c[3]
            self.page.codings.nodes[i].items = c[4]
            self.page.codings.nodes[i].has_validity = c[5]
            self.page.codings.nodes[i].child = c[6]
            self.page.codings.nodes[i].other = c[7]
            if c[8] is not None:
                view = View(c[8])
                check(self.page.codings.nodes[i].table.parse(view.bytes()))
            if c[9] is not None:
                self.page.codings.nodes[i].value = vector_of(View(c[9]))
        self.page.value, self.page.rep, self.page.definition, self.page.dictionary = nodes
        self.page.num_buffers = numbers.get("num_buffers", 0)
        self.page.num_items = numbers.get("num_items", 0)
        self.page.num_dictionary_items = numbers.get("num_dictionary_items", 0)
        self.page.is_large = numbers.get("is_large", 0)
        self.page.bits_rep = numbers.get("bits_rep", 0)
        self.page.bits_def = numbers.get("bits_def", 0)
        self.page.bits_per_value = numbers.get("bits_per_value", 0)
        self.page.bits_per_offset = numbers.get("bits_per_offset", 0)
        for f in fields:
            field.coding, field.bits, field.is_variable = f
            self.page.fields.push_back(field)

    def open_chunks(self, words, index, uint64_t depth):
        """Read the positions of mini-blocks, and which rows begin in them."""
        cdef View w = View(words), i = View(index)
        check(self.page.find_chunks(w.bytes(), i.bytes(), depth, self.page.data_size))

    def open_rows(self, index):
        """Read the positions of the rows of a full-zip page."""
        cdef View i = View(index)
        check(self.page.find_rows(i.bytes()))

    def open_constant(self, value, rep, definition, uint64_t num_rep, uint64_t num_def):
        """Set the value (None = null) and the levels of a constant page; levels are bytes, None = not stored."""
        cdef View r, d
        cdef Bytes rep_bytes, def_bytes
        cdef Context* context = new Context(unzip)
        try:
            if value is not None:
                self.page.constant = vector_of(View(value))
            if rep is not None:
                r = View(rep)
                rep_bytes = r.bytes()
            if definition is not None:
                d = View(definition)
                def_bytes = d.bytes()
            check(self.page.open_constant(context[0], value is not None, rep_bytes, def_bytes, num_rep, num_def))
        finally:
            del context

    def fill_levels(self, uint16_t level):
        """Have every row of a constant page without lists have the same definition level."""
        self.page.fill_levels(level)

    def plan(self, const int64_t[:, ::1] ranges, uint64_t gap):
        """Return the (offset, length) of the bytes of the value buffer that ranges of rows need, near ones joined."""
        cdef vector[Range] found, requested = ranges_of(ranges)
        check(self.page.plan(requested, gap, found))
        return [(r.first, r.last - r.first) for r in found]


cdef list views_of(parts, vector[Part]& found):
    """Append (offset, bytes) to parts, and return what holds their bytes."""
    cdef Part part
    cdef View view
    views = []
    for at, data in parts:
        view = View(data)
        views.append(view)
        part.at = at
        part.bytes = view.bytes()
        found.push_back(part)
    return views


cdef class Column:
    """The rows of one column of a file, appended page after page.

    Parameters
    ----------
    layers : list of tuple
        (is list, has 64-bit offsets) of each layer, the innermost first.
    bits : int
        Of a value; 0 if each has its own length.
    is_wide : bool
        Whether values of any length have 64-bit offsets.
    list_sizes : list of int
        Of lists of a fixed size within a value, the outermost first.
    children : list of tuple
        (bits, is wide, list sizes) of the fields of a packed struct whose rows have their own length.
    """

    cdef CColumn column
    cdef Context* context

    def __cinit__(self):
        self.context = new Context(unzip)

    def __dealloc__(self):
        del self.context

    def __init__(self, layers, unsigned bits, bint is_wide, list_sizes, children):
        cdef KeptBlocks* blocks = source()
        cdef size_t i
        self.column.values.bits = bits
        self.column.values.is_wide = is_wide
        self.column.values.lend_from(blocks)
        self.column.values.validity.resize(len(list_sizes))
        self.column.list_sizes = list_sizes
        self.column.list_items = 1
        for size in list_sizes:
            self.column.list_items *= size
        self.column.layers.resize(len(layers))
        for i, (is_list, has_wide) in enumerate(layers):
            self.column.layers[i].is_list = is_list
            self.column.layers[i].is_wide = has_wide
            self.column.layers[i].valid.lend_from(blocks)
            self.column.layers[i].offsets.lend_from(blocks)
        self.column.children.resize(len(children))
        for i, (child_bits, child_wide, child_sizes) in enumerate(children):
            self.column.children[i].bits = child_bits
            self.column.children[i].is_wide = child_wide
            self.column.children[i].validity.resize(len(child_sizes))
            self.column.child_sizes.push_back(child_sizes)

    def read_dictionary(self, Page page, data):
        """Decode the dictionary of a page."""
        cdef View view = View(data)
        cdef Bytes found = view.bytes()
        cdef Error error
        with nogil:
            error = self.column.read_dictionary(self.context[0], page.page, found)
        check(error)

    def expect(self, Page page, uint64_t rows):
        """Expect rows of a page: room for all rows that are expected is taken when the first ones are appended."""
        self.column.expect(page.page, rows)

    def append(self, Page page, const int64_t[:, ::1] ranges, parts):
        """Append ranges of the rows of a page; ``parts`` are (offset, bytes) of what `Page.plan` specifies.

        Raises
        ------
        DamagedPageError
            If the page can't be decoded; the column can't be used any more.
        TooLongError
            If fewer rows have to be appended at once.
        """
        cdef vector[Range] requested = ranges_of(ranges)
        cdef vector[Part] found
        cdef Error error
        views = views_of(parts, found)
        with nogil:
            error = self.column.append(self.context[0], page.page, requested, found)
        check(error)

    def finish(self):
        """Return the layers and the values, which the caller owns; nothing can be appended afterwards.

        Returns
        -------
        tuple
            A list with (length, nulls, validity, offsets) of each layer, buffers or None; the values as in `values_of`;
            and a list with those of the fields of a packed struct.
        """
        cdef size_t i
        layers = []
        for i in range(self.column.layers.size()):
            if self.column.layers[i].is_list:
                check(self.column.layers[i].add_offsets(0))
            layers.append((
                self.column.layers[i].valid.size(),
                self.column.layers[i].valid.zeros(),
                exported_bits(self.column.layers[i].valid),
                exported(self.column.layers[i].offsets) if self.column.layers[i].is_list else None,
            ))
        children = [values_of(self.column.children[i]) for i in range(self.column.children.size())]
        return layers, values_of(self.column.values), children


cdef object values_of(Values& values):
    """Return the number of values, their buffer (or offsets and bytes), and (length, nulls, validity) of inner lists."""
    cdef size_t i
    validity = []
    for i in range(values.validity.size()):
        validity.append((values.validity[i].size(), values.validity[i].zeros(), exported_bits(values.validity[i])))
    if values.bits:
        return values.count, [exported(values.fixed)], validity
    check(values.add_offsets(0))
    return values.count, [exported(values.offsets), exported(values.text)], validity


cdef class TestedColumn:
    """Tests rows of one column of a file, without lists, on encoded data; or values in buffers of Arrow.

    Parameters
    ----------
    num_layers : int
        The field and the structs around it.
    bits : int
        Of a value; 0 if each has its own length.
    is_wide : bool
        Whether values of any length have 64-bit offsets.
    test : object
        Holds the test; it has ``address_for(width, stored)``.
    """

    cdef CTestedColumn column
    cdef Context* context
    cdef object test

    def __cinit__(self):
        self.context = new Context(unzip)

    def __dealloc__(self):
        del self.context

    def __init__(self, size_t num_layers, unsigned bits, bint is_wide, test):
        self.test = test
        self.column.layers.resize(num_layers)
        self.column.test = <const Test*><uintptr_t>test.address_for(1 if bits == 1 else bits // 8, bits == 1)
        self.column.bits = self.column.values.bits = bits
        self.column.values.is_wide = is_wide
        self.column.list_items = 1

    def read_dictionary(self, Page page, data):
        """Decode the dictionary of a page."""
        cdef View view = View(data)
        cdef Bytes found = view.bytes()
        cdef Error error
        with nogil:
            error = self.column.read_dictionary(self.context[0], page.page, found)
        check(error)

    def append(self, Page page, const int64_t[:, ::1] ranges, parts, uint8_t[::1] flags not None):
        """Set the flags of ranges of the rows of a page; ``parts`` are (offset, bytes) of what `Page.plan` specifies.

        Parameters
        ----------
        flags : uint8[n]
            One for each row, which becomes 1 if the row passes, else 0.

        Raises
        ------
        DamagedPageError
            If the page can't be decoded.
        """
        cdef vector[Range] requested = ranges_of(ranges)
        cdef vector[Part] found
        cdef Error error
        cdef int64_t i, rows = 0
        for i in range(ranges.shape[0]):
            if ranges[i, 0] < 0 or ranges[i, 1] < ranges[i, 0]:
                raise DamagedPageError("rows are requested that the page does not have")
            rows += ranges[i, 1] - ranges[i, 0]
        if rows != flags.shape[0]:
            raise ValueError(f"{rows} rows have {flags.shape[0]} flags")
        if not rows:
            return
        views = views_of(parts, found)
        with nogil:
            error = self.column.append_flags(self.context[0], page.page, requested, found, &flags[0])
        check(error)

    def mark(self, validity, offsets, data, uint8_t[::1] flags not None):
        """Set the flags of values in buffers of Arrow, which begin at their first value.

        Parameters
        ----------
        validity, offsets, data : buffer or None
            Those of an array; None for one that it does not have.
        flags : uint8[n]
            One for each value, which becomes 1 if the value passes, else 0.

        Raises
        ------
        DamagedPageError
            If a buffer is too small, or offsets do not rise.
        """
        cdef Bytes valid, ends, values
        cdef uint64_t n = flags.shape[0]
        cdef Error error
        views = [None if x is None else View(x) for x in (validity, offsets, data)]
        if views[0] is not None:
            valid = (<View>views[0]).bytes()
        if views[1] is not None:
            ends = (<View>views[1]).bytes()
        if views[2] is not None:
            values = (<View>views[2]).bytes()
        if not n:
            return
        with nogil:
            error = self.column.array_flags(n, valid, ends, values, &flags[0])
        check(error)


cdef class SmallFiles:
    """Reads all rows of small local files of version 2.1 or 2.2 that have the same columns.

    Parameters
    ----------
    major, minor : int
        The version of the files.
    columns : list of tuple
        (`Column`, index, entries for each row) of each requested column.
    """

    cdef CSmallFiles* files
    cdef Context* context
    cdef list kept

    def __cinit__(self, unsigned major, unsigned minor, columns):
        self.files = new CSmallFiles(major, minor)
        self.context = new Context(unzip)
        self.kept = []

    def __dealloc__(self):
        del self.files
        del self.context

    def __init__(self, unsigned major, unsigned minor, columns):
        cdef Column column
        for column, index, multiple in columns:
            self.kept.append(column)
            self.files.add_column(&column.column, index, multiple)

    def read(self, bytes names not None, const int64_t[::1] ends not None, const int64_t[::1] sizes not None, const int64_t[::1] rows not None):
        """Read files and find their pages; ``names`` are paths, each followed by a zero byte, which end at ``ends``.

        Parameters
        ----------
        sizes, rows : int64[n]
            The bytes and the rows of each file.

        Returns
        -------
        bool
            False if a file is missing, damaged or different: its own reader reports why.
        """
        cdef const char* text = names
        cdef int64_t i, start = 0, n = ends.shape[0], size = len(names)
        cdef bint good = True
        if sizes.shape[0] != n or rows.shape[0] != n:
            raise ValueError("there are more names than sizes, or more sizes than rows")
        for i in range(n):
            if ends[i] <= start or ends[i] > size or text[ends[i] - 1] or sizes[i] < 0 or rows[i] < 0:
                raise ValueError("the ends are not those of the names, or a size is negative")
            start = ends[i]
        with nogil:
            start = 0
            for i in range(n):
                good = self.files.read(text + start, <uint64_t>sizes[i], <uint64_t>rows[i])
                if not good:
                    break
                start = ends[i]
        return good

    def layouts(self):
        """Return the (number of the column, bytes) of each distinct layout of pages."""
        cdef size_t i
        cdef const string* text
        found = []
        for i in range(self.files.unknown().size()):
            text = self.files.unknown()[i].second
            found.append((self.files.unknown()[i].first, text.data()[:text.size()]))
        return found

    def set_layout(self, size_t i, Page page not None, value, uint64_t depth, uint64_t num_rep, uint64_t num_def):
        """Set what a layout of `layouts` is: a page of its own, and the value of constant pages or None."""
        cdef PageLayout layout
        if i >= self.files.unknown().size():
            raise IndexError(i)
        if value is not None:
            page.page.constant = vector_of(View(value))
        self.kept.append(page)
        layout.page = &page.page
        layout.depth, layout.num_rep, layout.num_def, layout.has_value = depth, num_rep, num_def, value is not None
        self.files.set_layout(i, layout)

    def append(self):
        """Append the rows of all files to the columns; each layout has to be set.

        Raises
        ------
        DamagedPageError, TooLongError, MemoryError
            The columns can't be used any more.
        """
        cdef Error error
        with nogil:
            error = self.files.append(self.context[0])
        check(error)


def check_texts(offsets, data, uint64_t n, bint is_wide):
    """Check that each of ``n`` texts is UTF-8; offsets rise and end within the bytes.

    Raises
    ------
    DamagedPageError
        If one of them is not.
    """
    cdef View o, d
    cdef bint good
    if not n:
        return
    o, d = View(offsets), View(data)
    if o.view.len < <Py_ssize_t>((n + 1) * (8 if is_wide else 4)):
        raise DamagedPageError("texts have fewer offsets than rows")
    with nogil:
        if is_wide:
            good = are_texts[int64_t](<const int64_t*>o.view.buf, n, <const uint8_t*>d.view.buf)
        else:
            good = are_texts[int32_t](<const int32_t*>o.view.buf, n, <const uint8_t*>d.view.buf)
    if not good:
        raise DamagedPageError("a text is no UTF-8")


include "lance/ends.pxi"
