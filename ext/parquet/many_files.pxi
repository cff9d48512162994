# Included by pages.pyx: runs of small Parquet files; `delta_core.parquet.many_files` is its public API.

from cpython.bytes cimport PyBytes_AS_STRING

import numpy as np
import pyarrow as pa


cdef extern from "memory/kept_memory.h" namespace "delta_memory" nogil:
    cdef cppclass KeptBlocks:
        pass

cdef extern from "parquet/footer.h" namespace "delta_parquet" nogil:
    cdef cppclass string_view "std::string_view":
        const char* data()
        size_t size()
    cdef cppclass FooterFacts:
        string_view schema
        string_view metadata
        bint is_plain
    cdef cppclass FooterReader:
        FooterReader(const uint8_t* data, const uint8_t* end)
        bint footer(FooterFacts& out)

cdef extern from "parquet/many_files.h" namespace "delta_parquet" nogil:
    cdef cppclass Growing:
        uint8_t* data
    cdef cppclass RunColumn:
        ValueLayout layout
        Growing data, ends, bits
        int64_t text, nulls
        bint has_bits
    cdef cppclass RunShared "delta_parquet::RunLeaf::Shared":
        int key, repetition, slot
    cdef cppclass RunLeaf:
        int width, most_repetition
        Growing definitions, repetitions, out, bits, text
        int64_t entries, slots, nulls, used
        vector[RunShared] shared
        int64_t out_bytes(int64_t n)
    cdef cppclass FileRun:
        RunLeaf* add_leaf(int leaf, int type, int width, int decimal_bytes, int most_definition, int most_repetition, int slot_definition)
        RunLeaf& leaf(int64_t i)
        void add_column(int leaf, int type, int width, int stored, int most_level)
        void begin_tests(bint is_any)
        void end_tests()
        void add_test(int leaf, int type, int width, int stored, int most_level, const Test* test)
        int64_t rows()
        RunColumn& column(int64_t i)
    cdef cppclass PickedRows:
        const uint64_t* mask
        int64_t first, rows
        bint is_known
    cdef cppclass FileRuns:
        FileRuns(int64_t whole_bytes, KeptBlocks* blocks)
        FileRun* add(const char* schema, size_t schema_size, const char* metadata, size_t metadata_size)
        void add_codec(int codec, Decompress decompress, void* object)
        FileRun& run(int64_t i)
        void expect(int64_t rows)
        int64_t rows()
        int64_t bytes()
        int64_t read(WorkspaceBytes& space, const char* path, int64_t size, int64_t left, const PickedRows& picked)


def footer_key(const uint8_t[::1] footer not None):
    """Return the bytes of a footer's schema and of its key-value metadata; None if the footer has to be read with PyArrow."""
    cdef FooterFacts facts
    if not footer.shape[0]:
        return None
    cdef FooterReader* reader = new FooterReader(&footer[0], &footer[0] + footer.shape[0])
    try:
        if not reader.footer(facts) or not facts.is_plain:
            return None
        return facts.schema.data()[:facts.schema.size()], facts.metadata.data()[:facts.metadata.size()]
    finally:
        del reader


cdef int add_test(FileRun* run, tuple described) except -1:
    if isinstance(described[0], bool):
        is_any, parts = described
        run.begin_tests(is_any)
        for part in parts:
            add_test(run, part)
        run.end_tests()
        return 0
    leaf, type, width, stored, most_level, test = described
    run.add_test(leaf, type, width, stored, most_level, <const Test*><size_t>test.address_for(width, stored))
    return 0


cdef class Runs:
    """The columns of files, separately for each layout, and their memory.

    `layouts` are (schema, metadata, columns, tests, leaves). Columns are (leaf, type, width, stored, most level). Tests
    consist of the same followed by a `ValueTest` that fits values of this layout, or are
    (is any, tests): rows pass any of these or all. Leaves, inside of nested columns, are (leaf, type, width, bytes of a
    decimal, definition and repetition level, definition level of an element, shared) as in
    `read_nested`; `shared` lists the lists around the leaf as (key, repetition, definition level). `codecs`
    maps the numbers of codecs in parquet.thrift to functions that decompress their pages. Files of up to `whole_bytes`
    are read whole. `blocks` is the address of the reused blocks for large columns, or 0.
    """

    cdef FileRuns* runs
    cdef list counts
    cdef dict codecs
    cdef object layouts

    def __cinit__(self, layouts, dict codecs not None, int64_t whole_bytes, size_t blocks):
        self.runs = new FileRuns(whole_bytes, <KeptBlocks*>blocks)
        self.codecs = codecs
        self.layouts = layouts  # holds their tests
        for number, decompress in codecs.items():
            self.runs.add_codec(number, &decompress_page, <void*>decompress)
        self.counts = []
        cdef FileRun* run
        cdef bytes schema, metadata
        cdef RunLeaf* inner
        cdef RunShared shared
        for schema, metadata, columns, tests, leaves in layouts:
            run = self.runs.add(PyBytes_AS_STRING(schema), len(schema), PyBytes_AS_STRING(metadata), len(metadata))
            for leaf, type, width, stored, most_level in columns:
                run.add_column(leaf, type, width, stored, most_level)
            for test in tests:
                add_test(run, test)
            for number, type, width, decimal_bytes, definition, repetition, slot, around in leaves:
                if (width not in (0, 1, 4, 8, 16) or not 0 <= slot <= definition <= 255 or not 0 <= repetition <= 255
                        or (width == 16 and not 1 <= decimal_bytes <= 16)):
                    raise ValueError(f"values of {width} bytes and {definition} levels")
                inner = run.add_leaf(number, type, width, decimal_bytes, definition, repetition, slot)
                for key, repetition, slot in around:
                    shared.key, shared.repetition, shared.slot = key, repetition, slot
                    inner.shared.push_back(shared)
            self.counts.append((len(columns), len(leaves)))

    def __dealloc__(self):
        del self.runs

    def read(
        self, size_t space, list paths not None, const int64_t[::1] sizes not None, int64_t most_rows, int64_t most_bytes,
        const uint64_t[::1] mask=None, const int64_t[::1] file_rows=None, int64_t first_row=0, bint is_known=False,
    ):
        """Read files up to one that has to be read with PyArrow, or to a limit; return the layout and the rows of each.

        `space` is the address of a `Workspace`. `mask` selects rows of all files, and
        `file_rows` contains their numbers of rows; bit `first_row` is that of the first file's first row. With `is_known`,
        these numbers are certain, and files without a selected row are not opened.
        """
        cdef int64_t n = min(len(paths), sizes.shape[0]), i, done = 0
        cdef PickedRows picked
        if mask is not None:
            if file_rows is None or file_rows.shape[0] < n or not mask.shape[0] or not 0 <= first_row <= 64 * mask.shape[0]:
                raise ValueError("a mask needs the rows of each file")
            picked.mask = &mask[0]
            picked.first = first_row
            picked.is_known = is_known
        cdef vector[const char*] names
        cdef bytes path
        cdef int64_t before
        names.reserve(n)
        for path in paths:
            names.push_back(PyBytes_AS_STRING(path))
        chosen_out, rows_out = np.zeros(n, np.int64), np.zeros(n, np.int64)
        cdef int64_t[::1] chosen = chosen_out, rows = rows_out
        self.runs.expect(max(most_rows, 0))
        with nogil:
            for i in range(n):
                before = self.runs.rows()
                if before >= most_rows or self.runs.bytes() >= most_bytes:
                    break
                if picked.mask is not NULL:
                    picked.first += picked.rows
                    picked.rows = file_rows[i]
                    if picked.rows < 0 or picked.rows > 64 * mask.shape[0] - picked.first:
                        break
                chosen[i] = self.runs.read((<WorkspaceBytes*>space)[0], names[i], sizes[i], n - 1 - i, picked)
                if chosen[i] < 0:
                    break
                rows[i] = self.runs.rows() - before
                done += 1
        return chosen_out[:done], rows_out[:done]

    def column(self, int number, int i):
        """Return (validity or None, nulls, buffers) of a column of a layout; each holds the memory of all columns."""
        if not 0 <= number < len(self.counts) or not 0 <= i < self.counts[number][0]:
            raise IndexError(i)
        cdef FileRun* run = &self.runs.run(number)
        cdef RunColumn* column = &run.column(i)
        cdef int64_t rows = run.rows()
        valid = self._buffer(column.bits.data, (rows + 7) // 8) if column.nulls else None
        if column.layout.width:
            return valid, column.nulls, [self._buffer(column.data.data, column.layout.bytes_of(rows))]
        ends = self._buffer(column.ends.data, (rows + 1) * 4) if rows else pa.py_buffer(bytes(4))
        return valid, column.nulls, [ends, self._buffer(column.data.data, column.text)]

    def leaf(self, int number, int i):
        """Return (definitions, repetitions, highest repetition level, values, nulls, validity or None, buffers), see `column`."""
        if not 0 <= number < len(self.counts) or not 0 <= i < self.counts[number][1]:
            raise IndexError(i)
        cdef RunLeaf* leaf = &self.runs.run(number).leaf(i)
        levels = self._buffer(leaf.definitions.data, leaf.entries)
        repetitions = self._buffer(leaf.repetitions.data, leaf.entries if leaf.most_repetition else 0)
        valid = self._buffer(leaf.bits.data, (leaf.slots + 7) // 8) if leaf.nulls else None
        if leaf.width or leaf.out.data is not NULL:
            buffers = [self._buffer(leaf.out.data, leaf.out_bytes(leaf.slots))]
        else:
            buffers = [pa.py_buffer(bytes(4))]
        if not leaf.width:
            buffers.append(self._buffer(leaf.text.data, leaf.used))
        return levels, repetitions, leaf.most_repetition, leaf.slots, leaf.nulls, valid, buffers

    cdef object _buffer(self, uint8_t* data, int64_t size):
        # an address is required even for 0 bytes
        return pa.foreign_buffer(<size_t>data, size, self) if data is not NULL else pa.py_buffer(b"")
