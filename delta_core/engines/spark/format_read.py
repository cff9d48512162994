"""Tables of other formats as DataFrames: executors read the parts of a version with the format's own reader.

Columns and filters of a query are pushed into the format's scan. Rows pass Python as Arrow batches: no row is an object
of Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession, functions as F, types as T

from delta_core.engines.opening import make_engine
from delta_core.engines.spark.arrow_types import arrow_target, converted_batch, spark_field
from delta_core.engines.spark.conditions import portable_text
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.filter_texts import read_filter
from delta_core.errors import DeltaError, InvalidArgumentError, UnsupportedOperationError
from delta_core.expressions.ast import Column, Expression, all_of
from delta_core.expressions.filters import to_expression
from delta_core.expressions.printing import quote_name
from delta_core.formats import SplitTable, TableFormat, format_named, format_of, installed_formats
from delta_core.handles.secrets import shown_uri
from delta_core.runtime.arguments import path_text

__all__ = ["FormatPlace", "check_options", "place_of", "read_format", "recognised", "split_formats"]

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_MAX_BYTES, _OPEN_BYTES = "spark.sql.files.maxPartitionBytes", 4 << 20
#: The column of rows that are only counted.
_NOTHING = T.StructType([T.StructField("nothing", T.BooleanType())])


class FormatPlace(Struct, frozen=True):
    """Where a table of a format is, as each process opens it.

    Parameters
    ----------
    table_format : TableFormat
        The format; executors get a pickle of it, and need its package.
    uri : str
        The place.
    storage_options : Mapping, optional
        Of the file system.
    allow_external : sequence of str or False, optional
        As of `open_snapshot`.
    """

    table_format: TableFormat
    uri: str
    storage_options: Mapping[str, Any] | None = None
    allow_external: Sequence[str] | Literal[False] | None = None

    def __repr__(self) -> str:
        return f"{self.table_format.name} {shown_uri(self.uri)}"

    def open(self, options: Mapping[str, Any]) -> SplitTable:
        """Open a version.

        Parameters
        ----------
        options : Mapping
            Of `TableFormat.open`.
        """
        engine = make_engine("arrow", self.uri, self.storage_options, self.allow_external)
        found: Any = self.table_format.open(engine, self.uri, **options)
        return found  # type: ignore[no-any-return]


class _Split(Struct, frozen=True):
    """The parts of a version, and the columns and rows of them that executors read.

    Parameters
    ----------
    pinned : Mapping
        The options that open the version.
    splits : pyarrow.Table
        As `SplitTable.plan_splits` returns them.
    target : pyarrow.Schema
        The types that Spark expects.
    columns : sequence of path
        Requested columns.
    """

    place: FormatPlace
    pinned: Mapping[str, Any]
    splits: pa.Table
    target: pa.Schema
    columns: Sequence[tuple[str, ...]]
    metadata: Sequence[str]
    predicate: Expression | None

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part."""
        [split] = self.splits.slice(number, 1).to_pylist()
        table = self.place.open(self.pinned)
        scan = table.scan_split(split, self.columns, metadata=self.metadata, predicate=self.predicate)
        has_columns = bool(self.columns or self.metadata)
        for batch in scan.batches():
            if has_columns:
                yield converted_batch(batch, self.target)
            else:
                yield pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.bool_())], schema=self.target)


def recognised(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> FormatPlace | None:
    """Return the place of a table of an installed format other than Delta; None if none recognises it.

    Raises
    ------
    UnsupportedOperationError
        Spark can't read tables of the format.
    """
    place = path_text(uri)
    found = format_of(make_engine("arrow", place, storage_options, allow_external))
    if found is None:
        return None
    _options_of(found)
    return FormatPlace(found, _absolute(place), storage_options, allow_external)


def place_of(
    name: str,
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> FormatPlace:
    """Return the place of a table of a format that is named; whether there is one shows when it is opened."""
    return FormatPlace(format_named(name), _absolute(uri), storage_options, allow_external)


def split_formats() -> list[str]:
    """Return the names of the installed formats that Spark can read."""
    return [f.name for f in installed_formats() if getattr(f, "split_options", None) is not None]


def _absolute(place: str) -> str:
    return place if ":" in place.partition("/")[0] else os.path.abspath(place)


def _options_of(found: TableFormat) -> Mapping[str, type]:
    options: Mapping[str, type] | None = getattr(found, "split_options", None)
    if options is None:
        raise UnsupportedOperationError(
            f"Spark can't read tables of the format {found.name}, which does not plan splits. Read the table with "
            "delta_core.open_table.",
            format=found.name,
        )
    return options


def check_options(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return options that Spark passes as those of `TableFormat.open`.

    Parameters
    ----------
    name : str
        The format.
    given : Mapping of str to str
        The options by their names in lower case, without those that all formats have.

    Raises
    ------
    UnsupportedOperationError
        For an option that the format does not have.
    InvalidArgumentError
        For a number that is none.
    """
    known = {n.lower(): (n, kind) for n, kind in _options_of(format_named(name)).items()}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise UnsupportedOperationError(
            f"Found the options {', '.join(unknown)}, which the format {name} does not have; there are: "
            f"{', '.join(n for n, _ in known.values())}, allowExternal and storage.<option>."
        )
    return {known[n][0]: _value(n, text, known[n][1]) for n, text in given.items()}


def _value(name: str, text: str, kind: type) -> Any:
    if kind is not int:
        return text
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f"Found {text!r} for the option {name}, expected a whole number from 0 on.")
    return int(text)


def read_format(
    spark: SparkSession,
    place: FormatPlace,
    options: Mapping[str, Any],
    *,
    columns: Sequence[str] | None = None,
    metadata: Sequence[str] = (),
    predicate: Any = None,
) -> DataFrame:
    """Return the rows of a version, which is fixed by this call.

    Parameters
    ----------
    spark : SparkSession
        The session.
    place : FormatPlace
        The table.
    options : Mapping
        Of `TableFormat.open`; those that are None are left out.
    columns : sequence of str, optional
        The columns; all unless given.
    metadata : sequence of str
        Metadata columns of the format, after the others.
    predicate : str, filters or Expression, optional
        As of `delta_core.spark.read`.

    Raises
    ------
    UnsupportedFeatureError
        For a column whose type Spark does not have.
    """
    table = place.open({n: v for n, v in options.items() if v is not None})
    bound = to_expression(portable_text(spark, predicate), table.schema, table.functions)
    rows = _Rows(spark, place, table, columns, metadata, bound)
    if private.is_available(spark):
        name = f"{place!r} version {table.version}"
        return private.format_relation(spark, rows.schema, name, rows.num_bytes, rows.planned)
    return rows.scanned(rows.schema.names)


class _Rows:
    """Rows of a version, as queries of a session read them."""

    def __init__(
        self,
        spark: Any,
        place: FormatPlace,
        table: SplitTable,
        columns: Sequence[str] | None,
        metadata: Sequence[str],
        predicate: Expression | None,
    ) -> None:
        self._spark, self._place, self._table, self._predicate = spark, place, table, predicate
        arrow = table.scan(columns, metadata=metadata, predicate=predicate).schema
        self.schema = T.StructType([spark_field(f) for f in arrow])
        self._metadata = tuple(metadata)
        #: The requested paths of each column at the top.
        self._paths: dict[str, list[Any]] = {}
        for path in [(n,) for n in table.schema.names] if columns is None else columns:
            self._paths.setdefault(table.scan([path]).schema.names[0], []).append(path)

    def planned(self, request: str) -> DataFrame:
        """Return the rows that a query needs, with its columns in their order; a request of `format_relation`."""
        columns, filters = json.loads(request)
        parts = [p for node in filters if (p := read_filter(node, self._column)) is not None]
        return self.scanned(columns, [p for p in parts if self._can_test(p)])

    def _column(self, names: list[str]) -> Expression | None:
        return Column(tuple(names)) if names[0] in self._paths else None

    def _can_test(self, part: Expression) -> bool:
        try:
            self._table.scan([], predicate=part)
        except DeltaError:  # of a type that has no order here: Spark tests the rows
            return False
        return True

    def scanned(self, names: Sequence[str], parts: Sequence[Expression] = ()) -> DataFrame:
        """Return the rows of columns for which conditions are true, read by executors."""
        by_name = {f.name: f for f in self.schema.fields}
        schema = T.StructType([by_name[n] for n in names]) if names else _NOTHING
        predicate = all_of([*([] if self._predicate is None else [self._predicate]), *parts])
        splits = self._table.plan_splits(self._split_bytes(), predicate)
        rows = _Split(
            self._place,
            self._table.pinned,
            splits,
            arrow_target(schema),
            [path for n in names for path in self._paths.get(n, ())],
            [n for n in names if n in self._metadata],
            predicate,
        )
        with private.own_python(self._spark):
            numbers = self._spark.range(0, splits.num_rows, 1, max(splits.num_rows, 1))
            found: DataFrame = numbers.mapInArrow(_reading(rows), schema)
        return found.select(*[F.col(quote_name(n)) for n in names]) if names else found

    @property
    def num_bytes(self) -> int:
        """About how many bytes the files of the version have."""
        return int(self._table.plan_splits(1 << 62).column("size_bytes").to_numpy().sum())

    def _split_bytes(self) -> int:
        """Return the bytes of a part, by the rules with which Spark divides files of its own."""
        match = _SIZE.fullmatch(str(self._spark.conf.get(_MAX_BYTES)).strip())
        most = 128 << 20 if match is None else int(match[1]) << 10 * " kmgt".index(match[2].lower() or " ")
        if not private.is_available(self._spark):
            return most
        cores = int(self._spark.sparkContext.defaultParallelism)
        return min(most, max(_OPEN_BYTES, -(-self.num_bytes // cores)))


def _reading(rows: _Split) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read_splits(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from rows.read(number)

    return read_splits
