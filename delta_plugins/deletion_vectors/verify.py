"""Deletion vectors against the number of rows of their files. Protocol: Writer Requirements for Deletion Vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from delta_core.api import Finding
from delta_core.kernels.arrow_buffers import is_valid, values_of

__all__ = ["check_files"]


def check_files(files: pa.Table) -> Iterator[Finding]:
    """Yield files with a vector whose statistics lack the number of rows, or that deletes more rows than there are."""
    vectors = files.column("deletionVector").combine_chunks()
    if vectors.null_count == len(vectors):
        return
    rows = np.flatnonzero(is_valid(vectors) & is_valid(vectors.field("storageType")))
    counts, deleted = files.column("numRecords").combine_chunks(), vectors.field("cardinality")
    is_counted = is_valid(counts)[rows]
    for row in rows[~is_counted].tolist():
        yield Finding(
            "vector-without-row-count",
            "a deletion vector, and statistics without numRecords",
            "numRecords, the rows of the file with the deleted ones",
            "Write the file's rows again, such as by purge.",
            "warning",
            files.column("path")[row].as_py(),
        )
    known = rows[is_counted]
    # a cardinality that is missing is counted when the vector is read
    many = is_valid(deleted)[known] & (values_of(deleted)[known] > values_of(counts)[known])
    for row in known[many].tolist():
        yield Finding(
            "vector-wrong",
            f"the deletion vector deletes {deleted[row].as_py()} rows",
            f"at most {counts[row].as_py()}, the number of rows of the file",
            "Restore the table to an earlier version, or write the file's rows again.",
            "error",
            files.column("path")[row].as_py(),
        )
