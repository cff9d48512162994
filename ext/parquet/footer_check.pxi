# Included by footer.pyx: checks of footers; `delta_core.parquet.footer_check` is its public API.


cdef extern from "parquet/footer_check.h" namespace "delta_parquet" nogil:
    cdef cppclass FooterCheck:
        FooterCheck(const uint8_t* data, const uint8_t* end)
        int64_t group
        int64_t column
        int check() except +


cdef extern from "parquet/float_bounds.h" namespace "delta_parquet" nogil:
    cdef cppclass FloatBounds:
        FloatBounds(uint8_t* data, uint8_t* end) except +
        bint find() except +
        string_view writer()
        int64_t hide(bint only_nan)


def hide_float_bounds(uint8_t[::1] footer not None, shows_nan):
    """Replace bounds of floating-point columns by NaN; return their number, 0 for a torn footer.

    ``shows_nan`` is called with the name of the program that wrote the file. If it returns True, only bounds of columns
    with a NaN bound are replaced.
    """
    cdef FloatBounds* reader
    cdef bint is_whole
    cdef string_view name
    if not footer.shape[0]:
        return 0
    reader = new FloatBounds(&footer[0], &footer[0] + footer.shape[0])
    try:
        with nogil:
            is_whole = reader.find()
        if not is_whole:
            return 0
        name = reader.writer()
        return reader.hide(bool(shows_nan(name.data()[:name.size()])))
    finally:
        del reader


def find_problem(const uint8_t[::1] footer not None):
    """Return (number of the problem, row group, column); 0: there is none."""
    cdef FooterCheck* reader
    cdef int found
    if not footer.shape[0]:
        return 1, 0, 0
    reader = new FooterCheck(&footer[0], &footer[0] + footer.shape[0])
    try:
        with nogil:
            found = reader.check()
        return found, reader.group, reader.column
    finally:
        del reader
