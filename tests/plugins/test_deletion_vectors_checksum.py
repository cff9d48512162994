"""The numbers of vectors in a version's checksum: from the one before, or of the whole state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from delta_core.api import CommitSummary, CorruptTableError
from delta_plugins.deletion_vectors.checksum import BINS, vector_counts

ROWS, VECTORS, HISTOGRAM = "numDeletedRecordsOpt", "numDeletionVectorsOpt", "deletedRecordCountsHistogramOpt"


def counts(
    previous: dict[str, Any] | None, added: Sequence[int | None] = (), removed: Sequence[int | None] = ()
) -> dict[str, Any]:
    files = [pa.table({"dvCardinality": pa.array(c, pa.int64())}) for c in (added, removed)]
    return vector_counts(CommitSummary(1, {}, previous, *files))


def histogram(**files: int) -> dict[str, list[int]]:
    return {"deletedRecordCounts": [files.get(f"from_{start}", 0) for start in BINS]}


def test_whole_state_counts_rows_vectors_and_files_of_each_bin() -> None:
    assert counts(None, [None, 1, 9, 10, 2**31]) == {
        ROWS: 20 + 2**31,
        VECTORS: 4,
        HISTOGRAM: histogram(from_0=1, from_1=2, from_10=1, from_2147483647=1),
    }


def test_commit_moves_the_numbers_of_the_version_before() -> None:
    before = counts(None, [None, 5])
    assert counts(before, [7, None], [5]) == counts(None, [None, 7, None])


@pytest.mark.parametrize(
    "histogram", [None, [1], {"deletedRecordCounts": [0] * 9}, {"deletedRecordCounts": ["1"] * 10}]
)
def test_histogram_that_cannot_be_read_stays_unknown(histogram: Any) -> None:
    assert counts({ROWS: 3, VECTORS: 1, HISTOGRAM: histogram}, [2]) == {ROWS: 5, VECTORS: 2}


@pytest.mark.parametrize("previous", [{}, {ROWS: 3}, {ROWS: None, VECTORS: 1}])
def test_numbers_that_the_version_before_lacks_stay_unknown(previous: dict[str, Any]) -> None:
    assert counts(previous, [2]) == {}


def test_more_vectors_removed_than_counted_is_an_error() -> None:
    with pytest.raises(CorruptTableError, match="Version 1 removes more deletion vectors"):
        counts(counts(None, [1]), removed=[1, 1])
