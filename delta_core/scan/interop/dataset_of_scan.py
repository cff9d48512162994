"""A `pyarrow.dataset.Dataset` that scans through this library.

DuckDB and DataFusion recognise the class and push columns and filters into `scanner`. The filter keeps pyarrow's
semantics: the scan takes what certainly means the same, and pyarrow evaluates the filter on every batch unless that was
all of it. DataFusion, which reads fragments, gets its own meaning of NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from delta_core.errors import UnsupportedOperationError
from delta_core.expressions.ast import Expression, all_of
from delta_core.expressions.printing import format_sql
from delta_core.runtime.arguments import check_names
from delta_core.scan.interop.coded_rows import coded_reader, coded_schema
from delta_core.scan.interop.predicates import prunable, referenced_columns
from delta_core.scan.interop.rows import schema_of_rows, with_repeated
from delta_core.scan.interop.scanner_of_scan import ScanScanner, reader_of
from delta_core.scan.rows import PlannedRows, Scannable

__all__ = ["ScanDataset", "read_table", "scan_dataset"]

Columns = Sequence[str] | Mapping[str, ds.Expression] | None


def scan_dataset(source: Scannable, predicate: Expression | None = None, *, encoded: bool = False) -> ScanDataset:
    """Return a dataset of the rows for which a bound predicate is true.

    Parameters
    ----------
    source : Scannable
        The version of a table.
    predicate : Expression, optional
        Bound to its schema; all rows unless given.
    encoded : bool
        Whether top-level strings are of the type ``dictionary<int32, string>``.
    """
    return ScanDataset(source, predicate, encoded=encoded)


def read_table(source: ds.Dataset, columns: Sequence[str] | None, filters: Any) -> pa.Table:
    """Read a dataset into memory; filters are those that pyarrow's Parquet reader takes."""
    if isinstance(filters, (list, tuple)):
        import pyarrow.parquet as pq

        filters = pq.filters_to_expression(filters)
    return with_repeated(columns, lambda names: source.to_table(columns=names, filter=filters))


class ScanDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A version of a table as a dataset.

    Nothing of pyarrow's own dataset follows it: what would need one raises UnsupportedOperationError.
    """

    def __init__(self, source: Scannable, predicate: Expression | None = None, *, encoded: bool = False) -> None:
        # the base class holds no dataset, and its constructor rejects; every public method is defined here
        self._source = source
        self._predicate = predicate
        self._is_encoded = encoded

    def __repr__(self) -> str:
        where = "" if self._predicate is None else f", {format_sql(self._predicate)}"
        return f"ScanDataset({self._source!r}{where})"

    def __reduce__(self) -> Any:
        raise UnsupportedOperationError(
            "A dataset of a table can't be pickled; pickle the table, and call its dataset()."
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        schema = schema_of_rows(self._source)
        return coded_schema(schema) if self._is_encoded else schema

    @property
    def partition_expression(self) -> ds.Expression:
        """True: nothing is promised of all rows."""
        return ds.scalar(True)

    def scanner(
        self, columns: Columns = None, filter: ds.Expression | None = None, **options: Any
    ) -> ds.Scanner | ScanScanner:
        """Return a scanner; options of pyarrow's own Parquet reader have no meaning here.

        With options it is pyarrow's own, which `pyarrow.dataset.write_dataset` needs.
        """
        return self._scanner(columns, filter, is_own=not options)

    def scanner_ranking_nan(self, columns: Columns, filter: ds.Expression | None) -> ds.Scanner | ScanScanner:
        """Return a scanner whose filter takes NaN for equal to itself and greater than every number.

        A filter that is not about floats, or does not translate, keeps pyarrow's semantics.
        """
        return self._scanner(columns, filter, takes_floats=True)

    def _scanner(
        self, columns: Columns, filter: ds.Expression | None, *, is_own: bool = True, takes_floats: bool = False
    ) -> ds.Scanner | ScanScanner:
        """Return a scanner; pyarrow evaluates the filter on every batch unless the scan does so completely."""
        check_names("columns", columns)
        pushed = prunable(self._source, filter, takes_floats=takes_floats)
        left = None if pushed.is_all else filter
        predicate = self._joined(pushed.predicate)

        def plan(names: Sequence[str], limit: int | None = None) -> PlannedRows:
            return self._source.scan([(n,) for n in names], predicate=predicate, limit=limit)

        schema = schema_of_rows(self._source)
        every = schema.names
        if is_own and left is None and not isinstance(columns, Mapping):
            chosen = every if columns is None else list(columns)
            if chosen and len(set(chosen)) == len(chosen) and set(every).issuperset(chosen):
                return ScanScanner(partial(plan, chosen), self.schema, encoded=self._is_encoded)
        names = every
        if columns is not None:
            needed = set() if isinstance(columns, Mapping) else set(columns)
            requested = [
                *(columns.values() if isinstance(columns, Mapping) else ()),
                *(() if left is None else (left,)),
            ]
            needed |= referenced_columns(requested, schema)
            names = [n for n in names if n in needed]
        rows = reader_of(plan(names or every[:1]))
        if not self._is_encoded or not columns and columns is not None:
            return ds.Scanner.from_batches(rows, columns=columns, filter=left)
        # the filter is evaluated on strings, and what columns are calculated from too
        once = columns if columns is None or isinstance(columns, Mapping) else list(dict.fromkeys(columns))
        found = ds.Scanner.from_batches(rows, columns=once, filter=left).to_reader()
        again = None if isinstance(columns, Mapping) else columns
        return ds.Scanner.from_batches(coded_reader(found.schema, found), columns=again)

    def _joined(self, pushed: Expression | None) -> Expression | None:
        """Return the dataset's own filter and one that is pushed, both bound, as one."""
        return all_of([e for e in (self._predicate, pushed) if e is not None])

    def get_fragments(self, filter: ds.Expression | None = None) -> Iterator[Any]:
        """Return one fragment: the scan divides its work itself."""
        return iter([_Fragment(self)])

    _get_fragments = get_fragments

    def to_batches(self, **options: Any) -> Iterator[pa.RecordBatch]:
        """Return the rows as batches."""
        return iter(self.scanner(**options).to_batches())

    def to_table(self, **options: Any) -> pa.Table:
        """Return the rows in memory."""
        return self.scanner(**options).to_table()

    def head(
        self, num_rows: int, columns: Columns = None, filter: ds.Expression | None = None, **options: Any
    ) -> pa.Table:
        """Return the first rows."""
        return self.scanner(columns, filter).head(num_rows)

    def take(self, indices: Any, **options: Any) -> pa.Table:
        """Return rows by number."""
        return self.to_table(**options).take(indices)

    def count_rows(self, filter: ds.Expression | None = None, **options: Any) -> int:
        """Return the number of rows."""
        pushed = prunable(self._source, filter)
        if pushed.is_all:
            return self._source.scan(predicate=self._joined(pushed.predicate)).count()
        return int(self.scanner([], filter).count_rows())

    def filter(self, expression: ds.Expression) -> ds.Dataset:
        """Reject: pass the filter to `scanner`.

        Raises
        ------
        UnsupportedOperationError
            Always; the message names what takes a filter.
        """
        raise self._refusal("filter", "scanner(filter=...)")

    def replace_schema(self, schema: pa.Schema) -> ds.Dataset:
        """Reject: the schema is the table's.

        Raises
        ------
        UnsupportedOperationError
            Always; the message names what casts.
        """
        raise self._refusal("replace_schema", "to_table().cast(...)")

    def sort_by(self, sorting: Any, **options: Any) -> ds.Dataset:
        """Return the rows sorted, in memory; strings are plain."""
        return ds.InMemoryDataset(_plain_table(self, **options).sort_by(sorting))

    def join(self, right_dataset: ds.Dataset, *args: Any, **kwargs: Any) -> ds.Dataset:
        """Return a join, in memory; strings are plain."""
        return ds.InMemoryDataset(_plain_table(self).join(_plain_table(right_dataset), *args, **kwargs))

    def join_asof(self, right_dataset: ds.Dataset, *args: Any, **kwargs: Any) -> ds.Dataset:
        """Return an as-of join, in memory; strings are plain."""
        return ds.InMemoryDataset(_plain_table(self).join_asof(_plain_table(right_dataset), *args, **kwargs))

    def _refusal(self, name: str, instead: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(f"A table's dataset has no {name!r}; use {instead}.", method=name)


def _plain_table(source: Any, **options: Any) -> pa.Table:
    """Return rows in memory: pyarrow neither sorts nor joins codes of several dictionaries."""
    if isinstance(source, ScanDataset):
        return ScanDataset(source._source, source._predicate).to_table(**options)
    return source.to_table(**options) if isinstance(source, ds.Dataset) else source


class _Fragment:
    """The whole dataset as a fragment, which is what DataFusion scans."""

    def __init__(self, dataset: ScanDataset) -> None:
        self._dataset = dataset

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self._dataset.schema

    @property
    def partition_expression(self) -> ds.Expression:
        """True: nothing is promised of all rows."""
        return ds.scalar(True)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns = None,
        filter: ds.Expression | None = None,
        **options: Any,
    ) -> ds.Scanner | ScanScanner:
        """Return a scanner of the dataset.

        DataFusion leaves its filters to fragments and looks at no row again. To it NaN is above all numbers, while to
        pyarrow, in whose expressions it words them, NaN fails every comparison.
        """
        return self._dataset.scanner_ranking_nan(columns, filter)
