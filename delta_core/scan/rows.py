"""Rows of a planned read, as batches, tables and streams: the base of each format's scan."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from delta_core import handles
from delta_core.expressions.ast import Expression
from delta_core.expressions.plugin_functions import Function
from delta_core.runtime.logs import debug_log
from delta_core.schema.fields import Path
from delta_core.schema.types import StructType

if TYPE_CHECKING:
    from logging import Logger

    from delta_core.expressions.filters import PredicateLike
    from delta_core.scan.report import ScanReport

__all__ = ["PlannedRows", "Scannable", "Texts"]

#: How strings are returned: as they are, as dictionary codes where they are stored so, or as string views.
Texts = Literal["plain", "codes", "views"]


class PlannedRows(ABC):
    """A planned read: each call reads the rows again.

    A format implements `schema`, `predicate`, `source`, `explain`, `count` and `read_batches`; the rest follows.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""

    @property
    @abstractmethod
    def predicate(self) -> Expression | None:
        """The predicate, bound to the table's schema."""

    @abstractmethod
    def explain(self, run: bool = False) -> ScanReport:
        """Return how the rows are read; with ``run`` also what reading them took.

        Parameters
        ----------
        run : bool
            Whether the rows are read, too.
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def read_batches(self, texts: Texts = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches; closing the iterator stops the reading.

        Parameters
        ----------
        texts : str
            A format may return strings plain whatever is requested.
        is_collected : bool
            Whether the caller keeps all batches, so that memory need not be bounded.
        """

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as batches; closing the iterator stops the reading.

        Examples
        --------
        >>> sum(batch.num_rows for batch in table.scan().batches())
        3
        """
        return self._logged_batches()

    def encoded_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as `batches` does, but columns of repeated strings as dictionary codes if they are stored so.

        Whether a column is encoded may differ from batch to batch.

        Examples
        --------
        >>> sum(batch.num_rows for batch in table.scan(columns=["city"]).encoded_batches())
        3
        """
        return self._logged_batches("codes")

    def view_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as `batches` does, but strings as string views, which take less time than copies.

        Strings of small batches may stay plain.

        Examples
        --------
        >>> sum(batch.num_rows for batch in table.scan(columns=["city"]).view_batches())
        3
        """
        return self._logged_batches("views")

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches, in bounded memory; files in order, rows in file order.

        Examples
        --------
        >>> with table.scan(columns=["id"]).to_reader() as reader:
        ...     print(reader.read_all().to_pydict())
        {'id': [1, 2, 3]}
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_table(self) -> pa.Table:
        """Return the rows in memory; a read that takes long shows a bar in terminals and notebooks.

        Examples
        --------
        >>> table.scan(columns=["id"], limit=2).to_table().to_pydict()
        {'id': [1, 2]}
        """
        batches = self._logged_batches(is_collected=True)
        return pa.Table.from_batches(_all_with_bar(batches) if _may_be_watched() else list(batches), self.schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def first(self) -> dict[str, Any] | None:
        """Return one of the rows, by column; None if there is none."""
        return next((batch.slice(0, 1).to_pylist()[0] for batch in self.batches() if batch.num_rows), None)

    def _logged_batches(self, texts: Texts = "plain", *, is_collected: bool = False) -> Iterator[pa.RecordBatch]:
        found = self.read_batches(texts, is_collected=is_collected)
        log = debug_log(type(self).__module__)
        return found if log is None else self._logged(found, log)

    def _logged(self, batches: Iterator[pa.RecordBatch], log: Logger) -> Iterator[pa.RecordBatch]:
        start, rows, size = perf_counter(), 0, 0
        try:
            for batch in batches:
                rows += batch.num_rows
                size += batch.nbytes
                yield batch
        finally:
            took = (perf_counter() - start) * 1000
            log.debug("Read %d rows, %d bytes, of %r (%.1f ms)", rows, size, self.source, took)

    @property
    @abstractmethod
    def source(self) -> Any:
        """The version of a table that is read."""


def _may_be_watched() -> bool:
    """Return whether a bar may be drawn; a cheap test, so that other programs need not import bars."""
    try:
        return "IPython" in sys.modules or sys.stderr.isatty()
    except (AttributeError, OSError, ValueError):  # no stderr, closed, or replaced by an object that can only write
        return False


def _all_with_bar(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    found, rows = [], 0
    with handles.progress_bar() as advance:
        for batch in batches:
            found.append(batch)
            rows += batch.num_rows
            if advance is not None:
                advance(f"read: {rows:,} rows")
    return found


class Scannable(Protocol):
    """One version of a table of any format, as libraries that read through a scan need it."""

    @property
    def format_name(self) -> str:
        """The format, such as ``delta``."""
        ...

    @property
    def uri(self) -> str:
        """The place of the table."""
        ...

    @property
    def version(self) -> int:
        """The number of the version."""
        ...

    @property
    def schema(self) -> StructType:
        """The columns with their logical types."""
        ...

    @property
    def functions(self) -> Mapping[str, Function]:
        """Functions of plugins, which predicates may use, by lower-case name."""
        ...

    def scan(
        self,
        columns: Sequence[str | Path] | None = None,
        *,
        metadata: Sequence[str] = (),
        predicate: PredicateLike | None = None,
        limit: int | None = None,
    ) -> PlannedRows:
        """Plan a read of some columns, of the rows for which a predicate is true, of at most ``limit``.

        ``metadata`` names further columns, such as ``_file_path``, that the format or its features have.

        Parameters
        ----------
        columns : sequence of str or Path, optional
            The columns; all unless given.
        metadata : sequence of str
            The further columns.
        predicate : str, filters or Expression, optional
            The condition.
        limit : int, optional
            The most rows.
        """
        ...
