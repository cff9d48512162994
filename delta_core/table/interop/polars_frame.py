"""A table as a lazy Polars frame: Polars reads plain files by itself, and takes all others from a scan.

Polars calls `PlainDataset` when it plans a query. It gets the names of the files, so that its optimizer and its
streaming engine see a scan of their own; or the rows, if the query has a limit, or a condition that leaves few of them,
for which this library reads less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from delta_core.expressions.ast import Expression
from delta_core.kernel.snapshot import Snapshot
from delta_core.runtime.patterns import lazy_pattern
from delta_core.scan.interop.polars_source import frame_schema, scan_polars
from delta_core.scan.interop.predicates import exact_parts
from delta_core.scan.interop.rows import gathered, schema_of_rows
from delta_core.scan.rows import PlannedRows
from delta_core.table.interop.plain_files import (
    PlainFiles,
    SomeFiles,
    first_of_layouts,
    plain_files,
    renamed,
    stored_names,
)
from delta_core.table.interop.polars_conditions import parse_condition
from delta_core.table.interop.share_of_rows import share_of_rows

__all__ = ["frame_of"]

#: The first version whose calls of a dataset this module supports.
_FIRST_VERSION = (2, 0)
_VERSION = lazy_pattern(r"(\d+)\.(\d+)")
#: Of fewer rows, this library decodes less than Polars.
_LEAST_SHARE = 0.25
#: Whether Polars reads a file of a version as this library does.
_readable: WeakKeyDictionary[Snapshot, dict[str, bool]] = WeakKeyDictionary()


def frame_of(snapshot: Snapshot) -> pl.LazyFrame:
    """Return a lazy frame of all rows of a version.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    """
    make = _frame_maker()
    plain = None if make is None else plain_files(snapshot)
    if make is None or plain is None:
        return scan_polars(snapshot)
    frame = make(PlainDataset(snapshot, plain))
    others = {stored: name for name, stored in stored_names(snapshot).items() if stored != name}
    if others:
        frame = frame.rename(others)
    if not plain.has_others:
        return frame
    left = plain.chosen(snapshot, snapshot.files, plain.named, are_in=False)
    return pl.concat([frame, scan_polars(SomeFiles(snapshot, left))])


def _frame_maker() -> Callable[[Any], pl.LazyFrame] | None:
    """Return a function from a dataset that Polars calls when it plans to its frame; None in versions without it."""
    found = _VERSION.match(pl.__version__)
    if found is None or tuple(map(int, found.groups())) < _FIRST_VERSION:
        return None
    try:
        from polars._plr import PyLazyFrame
        from polars._utils.wrap import wrap_ldf
    except ImportError:
        return None
    make = getattr(PyLazyFrame, "new_from_dataset_object", None)
    return None if make is None else lambda dataset: wrap_ldf(make(dataset))


class PlainDataset:
    """Files that seem plain, as the object that Polars calls for a scan when it plans a query.

    Its columns have their names in files (column mapping), since Polars takes no other result than a scan.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    plain : PlainFiles
        Its files that seem plain.
    """

    def __init__(self, snapshot: Snapshot, plain: PlainFiles) -> None:
        self._snapshot = snapshot
        self._plain = plain
        self._logical = {stored: name for name, stored in stored_names(snapshot).items()}
        types = frame_schema(schema_of_rows(snapshot)).values()
        self._schema = pl.Schema(zip(self._logical, types, strict=True))
        self._files = plain.chosen(snapshot, snapshot.files, plain.named) if plain.has_others else snapshot.files

    def __reduce__(self) -> tuple[Any, ...]:
        return _dataset_again, (self._snapshot,)

    def schema(self) -> pl.Schema:
        """Return the columns."""
        return self._schema

    def to_dataset_scan(
        self,
        *,
        existing_resolved_version_key: str | None = None,
        limit: int | None = None,
        projection: list[str] | None = None,
        filter_columns: list[str] | None = None,
        pyarrow_predicate: str | None = None,
        **_: Any,
    ) -> tuple[pl.LazyFrame, str] | None:
        """Return the scan of one query, and a key that is the same for the same scan; None if Polars has it already."""
        key = repr((limit, projection, filter_columns, pyarrow_predicate))
        if key == existing_resolved_version_key:
            return None
        predicate = self._predicate(pyarrow_predicate, filter_columns or ())
        frame = None if limit is not None else self._native(predicate)
        return self._scanned(projection, predicate, limit) if frame is None else frame, key

    def _predicate(self, text: str | None, columns: Sequence[str]) -> Expression | None:
        """Return the part of a query's condition that certainly drops no row that Polars keeps."""
        found = None if text is None else parse_condition(text, {name: self._logical[name] for name in columns})
        return None if found is None else exact_parts(self._snapshot, found, ranks_nan=True).predicate

    def _native(self, predicate: Expression | None) -> pl.LazyFrame | None:
        """Return Polars' own scan of the files that may have a row; None if it takes longer, or returns other rows."""
        paths = self._plain.paths
        if predicate is not None:
            left = SomeFiles(self._snapshot, self._files).scan((), predicate=predicate).file_set
            if share_of_rows(predicate, left, stored_names(self._snapshot)) < _LEAST_SHARE:
                return None
            paths = [paths[i] for i in self._plain.numbers(left)]
        if not self._can_read(paths):
            return None
        return pl.scan_parquet(paths, schema=dict(self._schema), glob=False, hive_partitioning=False)

    def _can_read(self, paths: list[str]) -> bool:
        """Whether files are as they seem, by their footers, and Polars finds the same types; looked up once a file."""
        known = _readable.setdefault(self._snapshot, {})
        new = [path for path in paths if path not in known]
        if new:
            is_plain, firsts = first_of_layouts(self._snapshot, new)
            wanted = dict(self._schema)
            are_known = all(_schema_of_file(path) == wanted for path in firsts)
            known.update(zip(new, (is_plain & are_known).tolist(), strict=True))
        return all(map(known.__getitem__, paths))

    def _scanned(self, columns: list[str] | None, predicate: Expression | None, limit: int | None) -> pl.LazyFrame:
        source = SomeFiles(self._snapshot, self._files)
        # a frame without columns has no rows: for a count, Polars takes those of any column
        names = list(self._schema) if columns is None else columns or list(self._schema)[:1]
        ordered = sorted(names, key=list(self._schema).index)

        def read(*_: Any) -> tuple[Iterator[pl.DataFrame], bool]:
            scan = source.scan([(self._logical[n],) for n in ordered], predicate=predicate, limit=limit)
            # Polars evaluates the condition, if there is one
            return _frames(scan, ordered, names), False

        return pl.LazyFrame._scan_python_function(
            renamed(schema_of_rows(source), self._schema),
            read,
            pyarrow=True,
            is_pure=True,
            explain_name=source.format_name.upper(),
            explain_detail=f"{source.uri} version {source.version}",
        )


def _dataset_again(snapshot: Snapshot) -> PlainDataset:
    plain = plain_files(snapshot)
    assert plain is not None
    return PlainDataset(snapshot, plain)


def _frames(scan: PlannedRows, read: list[str], names: list[str]) -> Iterator[pl.DataFrame]:
    for batch in gathered(scan.view_batches()):
        frame = pl.DataFrame(batch)
        frame.columns = read
        yield frame if read == names else frame.select(names)


def _schema_of_file(path: str) -> dict[str, Any] | None:
    try:
        return dict(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        return None
