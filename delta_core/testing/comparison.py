"""Comparing tables as sets of rows."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

__all__ = ["assert_same_rows"]


def assert_same_rows(found: pa.Table, expected: pa.Table) -> None:
    """Assert that two tables have the same columns, types and rows; order means nothing, NaN equals NaN.

    Raises
    ------
    AssertionError
        If they differ; the message shows up to five rows of either kind.
    """
    columns = [(f.name, f.type) for f in found.schema]
    expected_columns = [(f.name, f.type) for f in expected.schema]
    assert columns == expected_columns, f"found columns {columns}, expected {expected_columns}"
    left, right = (Counter(map(repr, table.to_pylist())) for table in (found, expected))
    extra, lost = list((left - right).elements()), list((right - left).elements())
    assert not [*extra, *lost], (
        f"found {found.num_rows} rows, expected {expected.num_rows}; "
        f"{len(extra)} too many: {extra[:5]}; {len(lost)} lost: {lost[:5]}"
    )
