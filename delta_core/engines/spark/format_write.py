"""DataFrames into tables of other formats: executors write files with the format's own writer, the driver commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

__all__ = ["check_write_options", "write_format"]

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
        named = (pa.RecordBatch.from_arrays(b.columns, names=schema.names).cast(schema) for b in rows)
        text = part.write(engine, schema, named)
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
