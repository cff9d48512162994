"""Streams into tables: each batch of a query of Spark is one commit, exactly once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import signature
from threading import Event
from typing import Any, Literal

from pyspark.sql import DataFrame

from delta_core.engines.spark.failures import convert_failures, remembering
from delta_core.engines.spark.plan.private import check_version, is_available
from delta_core.engines.spark.save import write
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedOperationError
from delta_core.operations.write import QueryBatch

__all__ = ["write_stream"]

#: Arguments of `write` that each batch sets itself, or that only a single write can have.
_SINGLE = ("mode", "txn", "data_change", "replace_where", "replace_using", "replace_on", "partition_overwrite_mode")
#: Those that every batch can have.
_SHARED = [n for n, p in signature(write).parameters.items() if p.kind == p.KEYWORD_ONLY and n not in _SINGLE]


@raises_spark_errors
def write_stream(
    df: DataFrame,
    uri: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str],
    mode: Literal["append", "complete"] = "append",
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    **options: Any,
) -> Any:
    """Start a query that writes the rows of a streaming DataFrame into a table, creating it if there is none.

    Parameters
    ----------
    df : DataFrame
        A streaming one, of a classic session.
    uri : str or path
        The table, as for `write`.
    checkpoint : str or path
        The folder of the query's checkpoint, as Spark's ``checkpointLocation``. A query that starts with the checkpoint
        of an earlier one continues it.
    mode : "append" or "complete"
        Spark's output mode: append the new rows; or replace all rows by the whole result of an aggregation.
    trigger : Mapping, optional
        The arguments of Spark's ``DataStreamWriter.trigger``, as ``{"availableNow": True}``.
    query_name : str, optional
        The query's name in Spark.
    **options
        Further arguments of `write`, for each batch, as ``partition_by`` and ``schema_mode="merge"``.

    Returns
    -------
    StreamingQuery
        Spark's own.

    Raises
    ------
    InvalidArgumentError
        If the DataFrame is no streaming one, or an argument does not fit a stream.
    UnsupportedOperationError
        On Spark Connect, and on untested versions of PySpark.

    Notes
    -----
    Each batch is one commit, a STREAMING UPDATE with the transaction id (the query's id, the batch's number), as
    delta-spark's sink writes it. A batch that is repeated after a failure is skipped if its commit exists; what an
    interrupted one wrote is never part of the table. A query with another checkpoint is another query, and writes
    all its batches. An error of `write` ends the query: ``awaitTermination`` raises it, and ``exception()`` has it
    as its ``__cause__``.
    """
    check_version()
    _check(df, mode, options)
    session_settings(df.sparkSession)
    convert_failures()
    started = Event()
    query: list[Any] = []

    def write_batch(rows: DataFrame, number: int) -> None:
        started.wait()
        if not query:
            raise EngineError("The query failed to start; this batch was not written.")
        # the checkpoint keeps the query's id, so a query that continues another one has the same
        txn = QueryBatch(str(query[0].id), number, mode)
        with remembering():
            if mode == "append":
                write(rows, uri, "append", txn=txn, **options)
            else:
                write(rows, uri, "overwrite", txn=txn, partition_overwrite_mode="static", **options)

    writer = df.writeStream.outputMode(mode).option("checkpointLocation", os.fspath(checkpoint))
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    try:
        query.append(writer.foreachBatch(write_batch).start())
    finally:
        started.set()
    return query[0]


def _check(df: DataFrame, mode: str, options: Mapping[str, Any]) -> None:
    if not getattr(df, "isStreaming", False):
        raise InvalidArgumentError(
            f"Found {type(df).__name__} without a stream for df, expected a streaming DataFrame of PySpark. Use "
            "delta_core.spark.write for the rows of a batch."
        )
    if not is_available(df.sparkSession):
        raise UnsupportedOperationError(
            "The query's batches are written by this process, which Spark Connect and untested versions of PySpark do "
            "not allow. Start the query in a classic session."
        )
    if mode not in ("append", "complete"):
        raise InvalidArgumentError(
            f"Found mode {mode!r}, expected append or complete. To merge the changed rows of an aggregation, call "
            "DeltaTable.merge in a function of foreachBatch."
        )
    other = next((n for n in options if n not in _SHARED), None)
    if other is not None:
        reason = "is set for each batch, or is for a single write" if other in _SINGLE else "is no argument of write"
        raise InvalidArgumentError(
            f"Found {other}= for a stream, which {reason}. Expected some of {', '.join(_SHARED)}."
        )
