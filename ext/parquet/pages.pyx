# distutils: language = c++
"""Pages of Parquet column chunks as Arrow buffers; `delta_core.parquet.pages` is its public API."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset
from libcpp.vector cimport vector

from pyarrow import ArrowInvalid, RecordBatch

from delta_core.errors import InvalidArgumentError
from delta_core.kernels.memory import allocate, zeros


include "parquet/page_kernels.pxi"


#: The most bytes of the strings of a column chunk; more are rejected.
cdef int64_t MOST_TEXT = 256 << 20


class UnsupportedPagesError(Exception):
    """The chunk has unsupported or damaged content, which PyArrow reads, or reports as an error."""


include "parquet/foreign_pages.pxi"


cdef int check_status(Status status) except -1:
    """Raise for content that PyArrow can't read either, or would read without an error."""
    if status == NO_MEMORY:
        raise MemoryError("no memory for a page of a Parquet file")
    if status == BAD_CHECKSUM:
        raise ArrowInvalid(
            "a page has another checksum than its header specifies; with DELTA_CORE_PAGE_CHECKSUMS=ignore in the environment "
            "checksums are not compared"
        )
    return 0


include "parquet/page_memory.pxi"
include "parquet/column_jobs.pxi"
include "parquet/column_reads.pxi"
include "parquet/value_tests.pxi"
include "parquet/text_column.pxi"
include "parquet/page_codecs.pxi"
include "parquet/column_batch.pxi"
include "parquet/nested_columns.pxi"
include "parquet/many_files.pxi"

include "generated_code.pxi"
