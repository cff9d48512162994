"""How a scan reads, as a report: the files that each step leaves, where the predicate is tested, what a run took.

Formats fill the records in; `RunCounters` counts a run of any of them that reads through the engine's `DataFiles`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace

from delta_core.engines.records import FileRead, RowTest
from delta_core.kernels.gather import SelectionVector
from delta_core.runtime.html import grid, page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from delta_core.engines.interface import Apply

__all__ = ["FileStep", "PredicatePart", "RunCounters", "RunReport", "ScanReport"]

#: Characters of a predicate's part, beyond which it is cut.
MOST_TEXT = 80


class FileStep(Struct, frozen=True):
    """The files that a step of planning leaves.

    Parameters
    ----------
    step : str
        ``table``, ``partition values`` or ``statistics``.
    files : int
    size_bytes : int
        Of these files, as far as the log specifies.
    time_ms : float
    """

    step: str
    files: int
    size_bytes: int
    time_ms: float


class PredicatePart(Struct, frozen=True):
    """A part that AND joins, and where it is tested.

    Parameters
    ----------
    sql : str
    origin : str
        ``predicate``, or the features whose row filter it is.
    partition_values, statistics : bool
        Whether it leaves out files by these.
    row_groups : bool
        Whether it leaves out row groups of Parquet files by their statistics.
    decoder : bool
        Whether values may be tested while their column is decoded: once for each value of a dictionary, after Bloom
        filters and the page index left out row groups and pages. It is then not evaluated for the rows of such a file.
    rows : bool
        Whether it is tested for rows; not if partition values alone decide it.
    """

    sql: str
    origin: str
    partition_values: bool
    statistics: bool
    row_groups: bool
    decoder: bool
    rows: bool


class RunReport(Struct, frozen=True):
    """The measurements of a run of a scan.

    Parameters
    ----------
    rows : int
        The rows that were returned.
    rows_examined : int
        The rows whose first filter was evaluated; without a filter, the rows that were decoded.
    files : int
        The files that were opened.
    row_groups, row_groups_left : int
        Of these files, and those whose statistics may match. Small files that are read together are not parted in
        groups: see ``whole_files``.
    pages, pages_decoded : int
        The data pages of the column chunks that were read, and those whose values were decoded: the others have no row
        that may be returned, by the page index, the dictionary, another condition or a deletion vector. If no row
        of a column chunk is needed, it is not read, and its pages are not known. A column that is read for a
        condition and again for its values counts twice; small files that are read together, and what PyArrow decodes,
        do not count.
    whole_files : int
        Small files that were read as a whole, several at once.
    size_bytes : int
        The stored bytes of the requested columns in the row groups that were left, and of whole small files. Pages
        without a matching row are skipped among these.
    read_ms : float
        From the first request to the last row, by the clock.
    filter_ms, output_ms : float
        Within it the time of all threads that evaluated filters, and that made the returned columns. Values that are
        tested as they are decoded count with their decoding. If an engine evaluates filters with the output, as of
        small files, the time is in ``output_ms``.
    """

    rows: int
    rows_examined: int
    files: int
    row_groups: int
    row_groups_left: int
    pages: int
    pages_decoded: int
    whole_files: int
    size_bytes: int
    read_ms: float
    filter_ms: float
    output_ms: float


class ScanReport(Struct, frozen=True):
    """How a scan reads: ``str()`` is a text, notebooks show tables.

    Parameters
    ----------
    table : str
    columns : tuple of str
        Of the rows that are returned.
    limit : int or None
    files : tuple of FileStep
        Each step with the files that it leaves.
    predicate : tuple of PredicatePart
        In the order in which it was written.
    effects : tuple of (str, str)
        Features with what they do to the rows of this scan.
    run : RunReport or None
        None if the scan was not run.

    Examples
    --------
    >>> report = table.scan(predicate="id = 3").explain()
    >>> [(step.step, step.files) for step in report.files]
    [('table', 2), ('statistics', 1)]
    """

    table: str
    columns: tuple[str, ...]
    limit: int | None
    files: tuple[FileStep, ...]
    predicate: tuple[PredicatePart, ...]
    effects: tuple[tuple[str, str], ...]
    run: RunReport | None = None

    def __str__(self) -> str:
        facts = "".join(f"  {name:<9} {value}\n" for name, value in self._facts().items())
        tables = "".join(f"{title}\n{_aligned(head, rows)}" for title, head, rows in self._tables())
        return f"Scan of {self.table}\n{facts}{tables}".rstrip("\n")

    def _repr_html_(self) -> str:
        tables = (grid((title, *head[1:]), rows) for title, head, rows in self._tables())
        return page(f"Scan of {self.table}", self._facts(), *tables)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON.

        Examples
        --------
        >>> table.scan(columns=["id"]).explain(run=True).to_dict()["run"]["rows"]
        3
        """
        return {
            **asdict(self),
            "columns": list(self.columns),
            "files": [asdict(step) for step in self.files],
            "predicate": [asdict(part) for part in self.predicate],
            "effects": [{"feature": feature, "effect": effect} for feature, effect in self.effects],
            "run": None if self.run is None else asdict(self.run),
        }

    def _facts(self) -> dict[str, str]:
        limit = {} if self.limit is None else {"limit": f"{self.limit:,}"}
        return {"columns": ", ".join(self.columns) or "none", **limit}

    def _tables(self) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]]]]:
        """Yield each table: its title, its columns, and its rows."""
        steps = [(s.step, f"{s.files:,}", f"{s.size_bytes:,}", f"{s.time_ms:.1f}") for s in self.files]
        yield "Files", ("after", "files", "bytes", "ms"), steps
        if self.predicate:
            head = ("part", "origin", "partition values", "statistics", "row groups", "decoder", "rows")
            tested = [(p.partition_values, p.statistics, p.row_groups, p.decoder, p.rows) for p in self.predicate]
            texts = [
                (_cut(p.sql), p.origin, *("yes" if t else "-" for t in flags))
                for p, flags in zip(self.predicate, tested, strict=True)
            ]
            yield "Predicate, and where it is tested", head, texts
        if self.effects:
            yield "Features", ("feature", "effect"), list(self.effects)
        if self.run is not None:
            r = self.run
            counts = {
                "rows returned": r.rows,
                "rows examined": r.rows_examined,
                "files opened": r.files,
                "row groups": r.row_groups,
                "row groups left by statistics": r.row_groups_left,
                "pages of columns read": r.pages,
                "pages decoded": r.pages_decoded,
                "small files read together": r.whole_files,
                "bytes of columns in these": r.size_bytes,
            }
            times = {
                "reading, ms": r.read_ms,
                "filters, ms of threads": r.filter_ms,
                "output, ms of threads": r.output_ms,
            }
            rows = [(name, f"{n:,}") for name, n in counts.items()]
            yield "Run", ("", ""), [*rows, *((name, f"{ms:.1f}") for name, ms in times.items())]


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} ..."


def _aligned(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as text in columns; numbers are set to the right."""
    lines = [tuple(head)] if any(head) else []
    lines += [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_number = [all(_is_number(line[i]) for line in lines[any(head) :]) for i in range(len(widths))]
    out = []
    for line in lines:
        cells = zip(line, widths, is_number, strict=True)
        out.append("  " + "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in cells).rstrip())
    return "\n".join(out) + "\n"


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit()


#: The counters, by the names of `RunReport`.
_COUNTS = ("rows_examined", "row_groups", "row_groups_left", "pages", "pages_decoded", "whole_files", "size_bytes")


class RunCounters:
    """Counts and times a run; called from the threads of the engine. See `engines.records.ReadObserver`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads = 0
        self._files: set[tuple[int, int]] = set()
        self._counts = dict.fromkeys(_COUNTS, 0)
        self._times = {"filter_ms": 0.0, "output_ms": 0.0}

    def observed(self, read: FileRead, apply: Apply) -> tuple[FileRead, Apply]:
        """Return a read, and what it calls, with counters."""
        self._reads += 1
        examines_first = not read.tests

        def counting(*arguments: Any) -> pa.RecordBatch | None:
            if examines_first:
                self._add(rows_examined=arguments[2].num_rows)
            return self._timed("output_ms", apply, *arguments)

        def counting_files(first: int, ends: NDArray[np.int64], batch: pa.RecordBatch) -> pa.RecordBatch | None:
            assert read.apply_files is not None
            sizes = read.sizes[first : first + len(ends)]
            self._add(rows_examined=batch.num_rows, whole_files=len(ends), size_bytes=sum(size or 0 for size in sizes))
            self._opened(range(first, first + len(ends)))
            return self._timed("output_ms", read.apply_files, first, ends, batch)

        tests = tuple(self._counted(test, number == 0) for number, test in enumerate(read.tests))
        files = None if read.apply_files is None else counting_files
        # files that are read together have no steps to be timed
        own = replace(read, tests=tests, apply_files=files, apply_passing=None, select_files=None, observer=self)
        return own, counting

    def row_groups(self, file: int, total: int, left: int, size_bytes: int) -> None:
        """See `engines.records.ReadObserver`."""
        self._opened((file,))
        self._add(row_groups=total, row_groups_left=left, size_bytes=size_bytes)

    def pages(self, total: int, decoded: int) -> None:
        """See `engines.records.ReadObserver`."""
        self._add(pages=total, pages_decoded=decoded)

    def decoded(self, number: int, rows: int, took_ms: float) -> None:
        """See `engines.records.ReadObserver`."""
        self._add(rows_examined=0 if number else rows)
        with self._lock:
            self._times["filter_ms"] += took_ms

    def finished(self, rows: int, read_ms: float) -> RunReport:
        """Return the sums."""
        filter_ms, output_ms = self._times["filter_ms"], self._times["output_ms"]
        return RunReport(
            rows=rows, files=len(self._files), read_ms=read_ms, filter_ms=filter_ms, output_ms=output_ms, **self._counts
        )

    def _counted(self, test: RowTest, is_first: bool) -> RowTest:
        def select(
            file: int, first: int, columns: Any, num_rows: int, picked: SelectionVector | None
        ) -> SelectionVector | None:
            if is_first:
                self._add(rows_examined=num_rows)
            found: SelectionVector | None = self._timed(
                "filter_ms", test.select, file, first, columns, num_rows, picked
            )
            return found

        return replace(test, select=select)

    def _timed(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        start = perf_counter()
        try:
            return function(*arguments)
        finally:
            took = (perf_counter() - start) * 1000
            with self._lock:
                self._times[name] += took

    def _add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                self._counts[name] += count

    def _opened(self, files: Iterable[int]) -> None:
        with self._lock:
            self._files.update((self._reads, file) for file in files)
