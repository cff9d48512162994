"""What is measured on Lance datasets: each case, its dataset, and its share of pylance's processor time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LANCE_CASES", "LanceCase"]


@dataclass(frozen=True)
class LanceCase:
    """One row of the report.

    Parameters
    ----------
    key : str
        The case.
    title : str
        What the row is called.
    work : str
        The method of the sides in `benchmarks.lance_child` that does the work.
    table : str
        Key of `benchmarks.lance_tables.LANCE_GENERATORS`.
    at_most : float
        The share of pylance's processor time.
    most_mb : float, optional
        The peak of the process at scale 1.
    most_bytes : float, optional
        The share of the bytes of the other side's files.
    """

    key: str
    title: str
    work: str
    table: str
    at_most: float
    most_mb: float | None = None
    most_bytes: float | None = None


LANCE_CASES = (
    LanceCase("stream-2.2", "stream all rows, 2.2", "stream", "rows-2.2", 0.6, 300),
    LanceCase("stream-2.1", "stream all rows, 2.1", "stream", "rows-2.1", 0.6, 300),
    LanceCase("stream-2.0", "stream all rows, 2.0", "stream", "rows-2.0", 1, 300),
    LanceCase("ints", "the ints alone, 2.2", "ints", "rows-2.2", 0.7),
    LanceCase("texts", "the strings alone, 2.2", "texts", "rows-2.2", 0.6),
    LanceCase("table", "to one Arrow table, 2.2", "table", "rows-2.2", 0.7, 700),
    LanceCase("take-2.2", "take 10,000 random rows, 2.2", "take", "rows-2.2", 1),
    LanceCase("take-2.0", "take 10,000 random rows, 2.0", "take", "rows-2.0", 1),
    LanceCase("range", "range of 0.01 %, no index", "some", "rows-2.2", 0.4),
    LanceCase("range-index", "range of 0.01 %, B-tree", "some", "indexed", 1),
    LanceCase("equals", "string equals, no index", "equals", "rows-2.2", 0.4),
    LanceCase("fragments-open", "open 10,000 fragments of 10 rows", "open", "fragments", 1),
    LanceCase("fragments-scan", "scan 10,000 fragments of 10 rows", "stream", "fragments", 0.4),
    LanceCase("fragments-compact", "compact 10,000 fragments of 10 rows", "compact", "fragments", 0.4),
    LanceCase("deleted-compact", "compact after 20 % were deleted, 2.2", "compact", "deleted", 0.3, 400),
    LanceCase("append-2.2", "append all rows, 2.2", "append_2.2", "stream", 0.8, 400, 1.1),
    LanceCase("append-2.0", "append all rows, 2.0", "append_2.0", "stream", 1, 400, 1.1),
    LanceCase("delete", "delete 1 %, 2.2", "delete", "rows-2.2", 1, 232),
    LanceCase("update", "update 1 %, 2.2", "update", "rows-2.2", 0.5, 232),
    LanceCase("merge", "merge 110,000 rows, 2.2", "merge", "rows-2.2", 0.4, 232),
    LanceCase("appends", "200 appends of 3 rows", "appends", "few", 1.5),
    LanceCase("to-delta", "convert to Delta, beside our read and write", "to_delta", "rows-2.2", 1.2, 300),
    LanceCase("from-delta", "convert from Delta, beside our read and write", "to_lance", "delta", 1.2, 300),
    LanceCase("fresh", "fresh process: import, open, one row", "fresh", "rows-2.2", 0.5),
    LanceCase("wide", "stream 1,000 columns", "stream", "wide", 1),
    LanceCase("wide-one", "one of 1,000 columns", "one_of_many", "wide", 1),
    LanceCase("wide-take", "take 100 rows of 1,000 columns", "take_few", "wide", 1),
    LanceCase("nested", "stream lists and structs", "stream", "nested", 1),
    LanceCase("vectors", "take 1,000 vectors of 768 floats", "take_vectors", "vectors", 1),
    LanceCase("versions", "open the latest of 50,000 versions", "open", "versions", 1),
)
