"""The numbers of vectors and of deleted rows in a version's checksum. Protocol: Version Checksum File."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.api import CommitSummary, CorruptTableError
from delta_core.kernels.arrow_buffers import int64_values, scalar_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BINS", "vector_counts"]

#: Where the bins of deleted rows of a file begin, the same for every Delta writer.
BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)
_ROWS, _VECTORS, _HISTOGRAM = "numDeletedRecordsOpt", "numDeletionVectorsOpt", "deletedRecordCountsHistogramOpt"


def vector_counts(commit: CommitSummary) -> dict[str, Any]:
    """Return the numbers after a commit, by field; those that the checksum before it lacks stay unknown.

    Raises
    ------
    CorruptTableError
        For a number that would be negative: the checksum before it can't be right.
    """
    before = np.zeros(2 + len(BINS), np.int64) if commit.previous is None else _known(commit.previous)
    after = before + (_numbers(commit.added) - _numbers(commit.removed))[: len(before)]
    if len(after) and after.min() < 0:
        raise CorruptTableError(
            f"Version {commit.version} removes more deletion vectors, or rows that they delete, than the checksum of "
            f"the version before counts, expected at most that many."
        )
    rows_and_vectors, counts = after[:2].tolist(), after[2:].tolist()
    out: dict[str, Any] = dict(zip((_ROWS, _VECTORS), rows_and_vectors, strict=False))
    return {**out, _HISTOGRAM: {"deletedRecordCounts": counts}} if counts else out


def _known(previous: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the numbers of a checksum, as far as it has them: rows and vectors, then the histogram."""
    numbers, found = [previous.get(_ROWS), previous.get(_VECTORS)], previous.get(_HISTOGRAM)
    if not all(isinstance(n, int) for n in numbers):
        return np.empty(0, np.int64)
    counts = found.get("deletedRecordCounts") if isinstance(found, dict) else None
    if isinstance(counts, list) and len(counts) == len(BINS) and all(isinstance(n, int) for n in counts):
        numbers += counts
    return np.array(numbers, np.int64)


def _numbers(files: pa.Table) -> NDArray[np.int64]:
    """Return the deleted rows, the vectors, and the files of each bin."""
    cardinality = files.column("dvCardinality")
    rows: NDArray[np.int64] = int64_values(cardinality.fill_null(scalar_of(0, cardinality.type)))
    bins = np.bincount(np.searchsorted(np.array(BINS), rows, side="right") - 1, minlength=len(BINS))
    return np.concatenate([[rows.sum(), len(rows) - cardinality.null_count], bins])
