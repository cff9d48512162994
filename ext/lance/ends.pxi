# Included by pages.pyx: values that files of version 2.0 describe by their ends; `delta_plugins.lance.files.array_pages` is
# its public API.

def read_ends(ends, const int64_t[:, ::1] ranges, uint64_t adjustment, uint64_t limit, bint is_wide):
    """Turn the ends of rows into offsets from 0 on.

    Parameters
    ----------
    ends : buffer of uint64
        The ends of the rows of each range, and before them the end of the row before the range, unless it begins at 0.
    ranges : int64, shape (n, 2)
        First row and the row after the last one of each range.
    adjustment : int
        The number added to the end of a null row.
    limit : int
        How many bytes (or items) the page has.
    is_wide : bool
        Whether offsets have 64 bits.

    Returns
    -------
    tuple
        The offsets, the validity (None = all valid) and the number of nulls, and the first and last byte of each range, a
        flat list.
    """
    cdef Ends found
    cdef Py_buffer view
    cdef vector[EndRange] parts
    cdef EndRange part
    cdef Error error
    cdef Py_ssize_t i
    found.offsets.lend_from(source())
    found.valid.lend_from(source())
    for i in range(ranges.shape[0]):
        part.rows = <uint64_t>(ranges[i, 1] - ranges[i, 0])
        part.has_before = ranges[i, 0] > 0
        parts.push_back(part)
    PyObject_GetBuffer(ends, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            error = found.read(<const uint8_t*>view.buf, <uint64_t>view.len // 8, parts, adjustment, limit, is_wide)
    finally:
        PyBuffer_Release(&view)
    check(error)
    nulls = found.valid.zeros()
    return exported(found.offsets), exported(found.valid.block()) if nulls else None, nulls, found.spans


def decode_texts(table, offsets, data, uint64_t n, bint is_wide):
    """Decode ``n`` texts of FSST; offsets have 32 or 64 bits, as those that are returned with the bytes."""
    cdef Py_buffer table_view, offset_view, data_view
    cdef SymbolTable symbols
    cdef Slices slices
    cdef Values out
    cdef Bytes bytes
    cdef Error error
    cdef Context* context
    out.is_wide = is_wide
    out.lend_from(source())
    PyObject_GetBuffer(table, &table_view, PyBUF_SIMPLE)
    bytes.data = <const uint8_t*>table_view.buf
    bytes.size = <uint64_t>table_view.len
    error = symbols.parse(bytes)
    PyBuffer_Release(&table_view)
    check(error)
    if len(memoryview(offsets)) < (n + 1) * (8 if is_wide else 4):
        raise DamagedPageError("texts of FSST have fewer offsets than rows")
    context = new Context(NULL)
    PyObject_GetBuffer(offsets, &offset_view, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(data, &data_view, PyBUF_SIMPLE)
        try:
            slices.offsets = <const uint8_t*>offset_view.buf
            slices.is_wide = is_wide
            slices.data.data = <const uint8_t*>data_view.buf
            slices.data.size = <uint64_t>data_view.len
            with nogil:
                error = append_slices(context[0], slices, 0, n, &symbols, out)
        finally:
            PyBuffer_Release(&data_view)
    finally:
        PyBuffer_Release(&offset_view)
        del context
    check(error)
    check(out.add_offsets(0))
    return exported(out.offsets), exported(out.text)
