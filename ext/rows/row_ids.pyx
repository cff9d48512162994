"""Row id arithmetic with checks of overflow; `delta_core.kernels.row_ids` is its public API."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t


def assign(const int64_t[::1] num_records, const uint8_t[::1] valid, int64_t mark, int64_t[::1] base):
    """Write the base row id of each file; return the new mark and -1, or the mark so far and the first row without an id."""
    cdef int64_t i, n = num_records.shape[0], bad = -1
    with nogil:
        for i in range(n):
            # `mark` is the last assigned id (-1 at first), so the free ids are those from mark + 1 to INT64_MAX.
            if not valid[i] or num_records[i] < 0 or mark == INT64_MAX or (mark >= 0 and num_records[i] > INT64_MAX - mark):
                bad = i
                break
            base[i] = mark + 1
            mark += num_records[i]
    return mark, bad
