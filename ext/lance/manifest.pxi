# Included by metadata.pyx: fragments of manifests as columns; `delta_plugins.lance.fragments` and `.row_ids` are its public API.

cdef extern from "lance/manifest.h" namespace "lance" nogil:
    enum: NUM_SEQUENCES
    cdef struct Fault:
        const char* what
        int64_t at
    cdef cppclass SequenceColumns:
        vector[uint8_t] place
        vector[int64_t] start, size
        vector[uint64_t] file_start, file_size
    cdef cppclass Layouts:
        vector[int64_t] field_ends, column_ends
        vector[int32_t] fields, columns
        vector[uint32_t] major, minor
    cdef cppclass Shapes:
        vector[int64_t] ends
        vector[int32_t] layouts
    cdef cppclass FragmentColumns:
        vector[uint64_t] id, physical_rows, deletion_version, deletion_id, num_deleted, file_size
        vector[int64_t] file_ends, deletion_base, path_ends, file_base, start, stop
        vector[int32_t] shape, deletion_kind, layout
        vector[uint8_t] has_rows, has_overlays, paths, rest
        SequenceColumns[3] sequences
        Layouts layouts
        Shapes shapes
        Fault fault
    bint read_manifest(FragmentColumns&, const uint8_t*, int64_t) except +
    cdef cppclass Segment:
        uint64_t first, end, version
        int64_t count
        int32_t sequence
        uint8_t kind
    cdef cppclass SegmentColumns:
        vector[Segment] segments
        vector[int64_t] ends
        Fault fault
    bint read_segments(SegmentColumns&, const uint8_t*, int64_t, int64_t, int32_t, bint) except +
    void write_numbers(const uint8_t*, const Segment&, int64_t, int64_t, uint64_t*)
    cdef cppclass IdRanges:
        vector[uint64_t] first, last
        vector[int64_t] offset
        vector[int32_t] sequence
    void collect_ranges(const uint8_t*, const SegmentColumns&, IdRanges&) except +


cdef object array_of(const void* values, size_t count, kind):
    out = np.empty(count, kind)
    cdef uint8_t[::1] view
    if count:
        view = out.view(np.uint8)
        memcpy(&view[0], values, view.shape[0])
    return out


cdef object bytes_of(const uint8_t* data, size_t size):
    return PyBytes_FromStringAndSize(<const char*>data, size)


cdef class View:
    """Bytes of the caller, held while this lives."""

    cdef Py_buffer view
    cdef bint is_held

    def __cinit__(self, source):
        PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
        self.is_held = True

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.view)


def split_manifest(source):
    """Return the fields of a manifest message that are no fragments, as bytes, and the columns of its fragments.

    The columns are arrays by name; those of files and of distinct layouts and shapes are among them.
    """
    cdef View data = View(source)
    cdef FragmentColumns columns
    cdef bint good
    cdef int i
    with nogil:
        good = read_manifest(columns, <const uint8_t*>data.view.buf, data.view.len)
    if not good:
        raise CorruptTableError(f"{columns.fault.what.decode()} at byte {columns.fault.at}", offset=columns.fault.at)
    found = {
        "id": array_of(columns.id.data(), columns.id.size(), np.uint64),
        "physical_rows": array_of(columns.physical_rows.data(), columns.physical_rows.size(), np.uint64),
        "has_overlays": array_of(columns.has_overlays.data(), columns.has_overlays.size(), np.uint8),
        "start": array_of(columns.start.data(), columns.start.size(), np.int64),
        "stop": array_of(columns.stop.data(), columns.stop.size(), np.int64),
        "file_ends": array_of(columns.file_ends.data(), columns.file_ends.size(), np.int64),
        "shape": array_of(columns.shape.data(), columns.shape.size(), np.int32),
        "deletion_kind": array_of(columns.deletion_kind.data(), columns.deletion_kind.size(), np.int32),
        "deletion_version": array_of(columns.deletion_version.data(), columns.deletion_version.size(), np.uint64),
        "deletion_id": array_of(columns.deletion_id.data(), columns.deletion_id.size(), np.uint64),
        "num_deleted": array_of(columns.num_deleted.data(), columns.num_deleted.size(), np.uint64),
        "deletion_base": array_of(columns.deletion_base.data(), columns.deletion_base.size(), np.int64),
        "path_ends": array_of(columns.path_ends.data(), columns.path_ends.size(), np.int64),
        "paths": bytes_of(columns.paths.data(), columns.paths.size()),
        "layout": array_of(columns.layout.data(), columns.layout.size(), np.int32),
        "file_size": array_of(columns.file_size.data(), columns.file_size.size(), np.uint64),
        "file_base": array_of(columns.file_base.data(), columns.file_base.size(), np.int64),
        "layout_field_ends": array_of(columns.layouts.field_ends.data(), columns.layouts.field_ends.size(), np.int64),
        "layout_column_ends": array_of(columns.layouts.column_ends.data(), columns.layouts.column_ends.size(), np.int64),
        "layout_fields": array_of(columns.layouts.fields.data(), columns.layouts.fields.size(), np.int32),
        "layout_columns": array_of(columns.layouts.columns.data(), columns.layouts.columns.size(), np.int32),
        "layout_major": array_of(columns.layouts.major.data(), columns.layouts.major.size(), np.uint32),
        "layout_minor": array_of(columns.layouts.minor.data(), columns.layouts.minor.size(), np.uint32),
        "shape_ends": array_of(columns.shapes.ends.data(), columns.shapes.ends.size(), np.int64),
        "shape_layouts": array_of(columns.shapes.layouts.data(), columns.shapes.layouts.size(), np.int32),
    }
    for i in range(NUM_SEQUENCES):
        name = ("row_ids", "last_updated", "created")[i]
        found[f"{name}_place"] = array_of(columns.sequences[i].place.data(), columns.sequences[i].place.size(), np.uint8)
        found[f"{name}_start"] = array_of(columns.sequences[i].start.data(), columns.sequences[i].start.size(), np.int64)
        found[f"{name}_size"] = array_of(columns.sequences[i].size.data(), columns.sequences[i].size.size(), np.int64)
        found[f"{name}_file_start"] = array_of(columns.sequences[i].file_start.data(), columns.sequences[i].file_start.size(), np.uint64)
        found[f"{name}_file_size"] = array_of(columns.sequences[i].file_size.data(), columns.sequences[i].file_size.size(), np.uint64)
    return bytes_of(columns.rest.data(), columns.rest.size()), found


cdef class Segments:
    """Sequences of row ids, or of versions in runs of rows, that lie in one buffer.

    Parameters
    ----------
    source : bytes-like
        Kept, and not to be changed.
    starts, sizes : int64[n]
        Where each sequence is.
    has_versions : bool
        Whether they are sequences of versions.
    """

    cdef View data
    cdef SegmentColumns columns
    cdef bint has_versions
    cdef readonly object counts

    def __cinit__(self, source, const int64_t[::1] starts, const int64_t[::1] sizes, bint has_versions):
        cdef int64_t i, n = starts.shape[0], k = 0, total
        cdef bint good = True
        self.data = View(source)
        self.has_versions = has_versions
        if sizes.shape[0] != n:
            raise InvalidArgumentError(f"{n} starts come with {sizes.shape[0]} sizes")
        counts = np.zeros(n, np.int64)
        cdef int64_t[::1] count_view = counts
        for i in range(n):
            if starts[i] < 0 or sizes[i] < 0 or starts[i] > self.data.view.len - sizes[i]:
                raise InvalidArgumentError(f"sequence {i} is not within {self.data.view.len} bytes")
        with nogil:
            for i in range(n):
                good = read_segments(
                    self.columns, <const uint8_t*>self.data.view.buf, starts[i], sizes[i], <int32_t>i, has_versions
                )
                if not good:
                    break
                total = 0
                while k < self.columns.ends[i]:
                    if self.columns.segments[k].count > INT64_MAX - total:
                        good = False
                        self.columns.fault.what = "a sequence is too long"
                        break
                    total += self.columns.segments[k].count
                    k += 1
                if not good:
                    break
                count_view[i] = total
        if not good:
            raise CorruptTableError(
                f"{self.columns.fault.what.decode()} (byte {self.columns.fault.at})", sequence=i, offset=self.columns.fault.at
            )
        self.counts = counts

    def numbers(self, int64_t sequence, int64_t start, int64_t stop):
        """Return the numbers `start` to `stop` (not included) of a sequence as uint64: row ids, or versions."""
        cdef int64_t k, first, from_, to, done = 0
        cdef uint64_t version
        if not 0 <= sequence < <int64_t>self.columns.ends.size():
            raise InvalidArgumentError(f"there is no sequence {sequence}")
        if not 0 <= start <= stop <= self.counts[sequence]:
            raise InvalidArgumentError(f"rows {start} to {stop} are no part of {self.counts[sequence]}")
        out = np.empty(stop - start, np.uint64)
        cdef uint64_t[::1] view = out
        first = 0
        k = self.columns.ends[sequence - 1] if sequence else 0
        while done < stop - start:
            count = self.columns.segments[k].count
            from_, to = max(start - first, 0), min(stop - first, count)
            if from_ < to:
                if self.has_versions:
                    version = self.columns.segments[k].version
                    view[done : done + to - from_] = version
                else:
                    write_numbers(
                        <const uint8_t*>self.data.view.buf, self.columns.segments[k], from_, to, &view[done]
                    )
                done += to - from_
            first += count
            k += 1
        return out

    def joined(self, const int64_t[::1] sequences):
        """Return the numbers of whole sequences, one after the other, as uint64."""
        cdef int64_t i, k, n, at = 0, sequence, total = 0
        cdef int64_t[::1] counts = self.counts
        for i in range(sequences.shape[0]):
            sequence = sequences[i]
            if not 0 <= sequence < <int64_t>self.columns.ends.size():
                raise InvalidArgumentError(f"there is no sequence {sequence}")
            if counts[sequence] > INT64_MAX - total:
                raise InvalidArgumentError("the sequences are too long")
            total += counts[sequence]
        out = np.empty(total, np.uint64)
        cdef uint64_t[::1] view = out
        for i in range(sequences.shape[0]):
            sequence = sequences[i]
            for k in range(self.columns.ends[sequence - 1] if sequence else 0, self.columns.ends[sequence]):
                n = self.columns.segments[k].count
                if n == 0:
                    continue
                if self.has_versions:
                    view[at : at + n] = self.columns.segments[k].version
                else:
                    write_numbers(<const uint8_t*>self.data.view.buf, self.columns.segments[k], 0, n, &view[at])
                at += n
        return out

    def ranges(self):
        """Return runs of consecutive ids: the first and the last id, the sequence, and the row of the first id in it."""
        cdef IdRanges found
        with nogil:
            collect_ranges(<const uint8_t*>self.data.view.buf, self.columns, found)
        return (
            array_of(found.first.data(), found.first.size(), np.uint64),
            array_of(found.last.data(), found.last.size(), np.uint64),
            array_of(found.sequence.data(), found.sequence.size(), np.int32),
            array_of(found.offset.data(), found.offset.size(), np.int64),
        )
