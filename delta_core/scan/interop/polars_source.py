"""A lazy Polars frame over a source, through Polars' IO-source plugin.

Polars hands in its expression. The scan takes the parts of it that certainly mean the same here, and Polars evaluates
the expression on every batch unless that was all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.expressions.polars_filters import from_polars
from delta_core.scan.interop.predicates import Pushed, exact_parts
from delta_core.scan.interop.rows import gathered, schema_of_rows
from delta_core.scan.rows import Scannable

if TYPE_CHECKING:
    import polars as pl

__all__ = ["frame_schema", "scan_polars"]


def scan_polars(source: Scannable) -> pl.LazyFrame:
    """Return a lazy frame; columns, predicate and limit are pushed into the scan when it is collected.

    Parameters
    ----------
    source : Scannable
        The version of a table.
    """
    from polars.io.plugins import register_io_source

    schema = schema_of_rows(source)
    frame_columns = frame_schema(schema)

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return _read(source, schema, columns, predicate, rows)

    detail = f"{source.uri} version {source.version}"
    return register_io_source(
        read, schema=frame_columns, is_pure=True, explain_name=source.format_name.upper(), explain_detail=detail
    )


@lru_cache(maxsize=16)
def frame_schema(schema: pa.Schema) -> pl.Schema:
    """Return the types of Polars for those of Arrow."""
    import polars as pl

    # not of an empty table's arrays, for which pyarrow imports an installed pandas
    return pl.DataFrame(pa.Table.from_batches([], schema)).schema


def _read(
    source: Scannable, schema: pa.Schema, columns: list[str] | None, predicate: pl.Expr | None, rows: int | None
) -> Iterator[pl.DataFrame]:
    import polars as pl

    names = schema.names if columns is None else columns
    pushed = Pushed(None, is_all=True) if predicate is None else _pushed(source, predicate)
    if pushed.is_all:
        predicate = None
    needed = set(names) | set(() if predicate is None else predicate.meta.root_names())
    read = [(n,) for n in schema.names if n in needed] or [(schema.names[0],)]
    scan = source.scan(read, predicate=pushed.predicate, limit=rows if predicate is None else None)
    left = rows
    batches = scan.view_batches()
    for batch in gathered(batches) if rows is None else batches:
        frame = pl.DataFrame(batch)
        if predicate is not None:
            frame = frame.filter(predicate)
        if frame.columns != names:
            # what selects nothing has no rows
            frame = frame.select(names) if names else frame.drop(frame.columns)
        yield frame if left is None else frame.head(left)
        if left is not None:
            left -= frame.height
            if left <= 0:
                return


def _pushed(source: Scannable, predicate: pl.Expr) -> Pushed:
    found = from_polars(predicate)
    pushed = exact_parts(source, found.expression, ranks_nan=True)
    return pushed if found.is_whole else pushed._replace(is_all=False)
