# distutils: language = c++
# distutils: extra_compile_args = -std=c++17 -O3
# distutils: depends = ext/footer_check.h ext/parquet_pages.h ext/compact.h
"""Footers of Parquet files; `delta_core.kernels.footer_check` is its public API."""

from libc.stdint cimport int64_t, uint8_t


cdef extern from "footer_check.h" namespace "delta_parquet" nogil:
    cdef cppclass FooterCheck:
        FooterCheck(const uint8_t* data, const uint8_t* end)
        int64_t group
        int64_t column
        int check() except +


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
