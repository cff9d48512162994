"""DataFrames into tables of other formats: executors write files with the format's own writer, the driver commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, types as T

from delta_core.engines.opening import make_engine
from delta_core.engines.spark.arrow_types import arrow_target
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.format_read import FormatPlace
from delta_core.engines.spark.plan import private
from delta_core.errors import InvalidArgumentError, UnsupportedFeatureError, UnsupportedOperationError
from delta_core.formats import SpreadPart

__all__ = ["FrameStream", "check_write_options", "write_format"]

#: Spark's modes, as `SpreadFormat.begin_spread_write` has them.
_MODES = {
    "append": "append",
    "overwrite": "overwrite",
    "errorifexists": "create",
    "error": "create",
    "ignore": "create",
}


def write_format(df: DataFrame, place: FormatPlace, mode: str, options: Mapping[str, Any]) -> int | None:
    """Write rows as one version; rows pass Python as Arrow batches.

    Parameters
    ----------
    df : DataFrame
        The rows.
    place : FormatPlace
        The table.
    mode : str
        ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.
    options : Mapping
        Of the format's ``write_options``.

    Returns
    -------
    int or None
        The version; None if ``ignore`` found a table.

    Raises
    ------
    TableExistsError
        With ``errorifexists``, if there is a table.
    SchemaMismatchError, UnsupportedFeatureError
        If the rows don't fit, or have a type without a counterpart; nothing is committed.
    InvalidArgumentError
        For another mode.
    """
    if mode.lower() not in _MODES:
        raise InvalidArgumentError(f"Found mode {mode!r}, expected append, overwrite, errorifexists or ignore.")
    spark = df.sparkSession
    if private.is_available(spark):
        convert_failures()
    engine = make_engine("arrow", place.uri, place.storage_options, place.allow_external)
    if mode.lower() == "ignore" and place.table_format.recognise(engine):
        return None
    schema = _arrow_schema(df.schema)
    found: Any = place.table_format
    write = found.begin_spread_write(engine, place.uri, schema, _MODES[mode.lower()], options)
    with private.own_python(spark):
        rows = df.mapInArrow(_writing(place, write.part, schema), "part string").collect()
    return int(write.commit([r.part for r in rows]))


class FrameStream:
    """The rows of a DataFrame as a stream of Arrow batches in the driver's Python process.

    Each stream runs the query, one partition at a time: the driver's Java holds the rows of a partition, this process a
    batch.

    Parameters
    ----------
    rows : DataFrame
        The rows.
    """

    def __init__(self, rows: DataFrame) -> None:
        self._rows, self._schema = rows, _arrow_schema(rows.schema)
        self._query_failure: Exception | None = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            with private.own_python(self._rows.sparkSession):
                packed = self._rows.mapInArrow(_packing(self._schema), "batch binary").toLocalIterator()
            for row in packed:
                yield from pa.ipc.open_stream(row.batch)
        except Exception as e:
            self._query_failure = e
            raise

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise the error of the query, which a stream of Arrow has as a text only, if it fails what is done within."""
        try:
            yield
        except Exception as e:
            if self._query_failure is None:
                raise
            raise self._query_failure from e


def _packing(schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as out:
                out.write_batch(_named(batch, schema))
            yield pa.RecordBatch.from_pydict({"batch": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    return pack


def _named(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows in the types of a schema, which Spark has by place."""
    return pa.RecordBatch.from_arrays(batch.columns, names=schema.names).cast(schema)


def _arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the types of rows as Python gets them; every column takes nulls."""
    fields = []
    for field in schema.fields:
        try:
            [found] = arrow_target(T.StructType([field]))
        except PySparkException as e:
            raise UnsupportedFeatureError(
                f"Column {field.name!r} is {field.dataType.simpleString()}, which has no Arrow type. Cast it, or drop "
                "it.",
                column=field.name,
            ) from e
        fields.append(found.with_nullable(True))
    return pa.schema(fields)


def _writing(
    place: FormatPlace, part: SpreadPart, schema: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write_rows(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = make_engine("arrow", place.uri, place.storage_options, place.allow_external)
        text = part.write(engine, schema, (_named(b, schema) for b in rows))
        yield pa.RecordBatch.from_pydict({"part": [text]})

    return write_rows


def check_write_options(name: str, table_format: Any, given: Mapping[str, str]) -> dict[str, Any]:
    """Return options that Spark passes as those of the format's writes.

    Parameters
    ----------
    name : str
        The format.
    table_format : TableFormat
        The format itself.
    given : Mapping of str to str
        The options by their names in lower case, without those that all formats have.

    Raises
    ------
    UnsupportedOperationError
        If the format is not written by Spark, or does not have an option.
    InvalidArgumentError
        For a value that is none of the option's type.
    """
    options: Mapping[str, type] | None = getattr(table_format, "write_options", None)
    if options is None:
        raise UnsupportedOperationError(
            f"Found a write of the format {name}, which Spark only reads here. Write it with the package of the format."
        )
    known = {n.replace("_", ""): (n, kind) for n, kind in options.items()}
    found = {}
    for key, text in given.items():
        entry = known.get(key.replace("_", ""))
        if entry is None:
            names = ", ".join([*(n for n, _ in known.values()), "storage.<option>"])
            raise UnsupportedOperationError(
                f"Found the option {key}, which writes of the format {name} do not have; there are: {names}."
            )
        found[entry[0]] = _value(key, text, entry[1])
    return found


def _value(name: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InvalidArgumentError(f"Found {text!r} for the option {name}, expected true or false.")
        return text.lower() == "true"
    if kind is int:
        if not (text.isascii() and text.isdigit() and int(text)):
            raise InvalidArgumentError(f"Found {text!r} for the option {name}, expected a whole number from 1 on.")
        return int(text)
    return text
