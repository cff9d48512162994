"""Rows along a curve or sorted, in as many tasks as they are to become files: by Spark's expressions alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.plan import private
from delta_core.expressions.printing import quote_name
from delta_core.kernels.curves import cell_ranks, curve_bits
from delta_core.schema.fields import Path

__all__ = ["ordered_rows"]

#: Rows whose values decide the ranges.
_SAMPLE_ROWS = 1 << 18
_KEY, _BOUNDS, _RANGE, _RANKS, _PLACE = (f"__delta_{n}" for n in ("key", "bounds", "range", "ranks", "place"))


def ordered_rows(
    rows: DataFrame,
    columns: Sequence[Path],
    order: Literal["zorder", "hilbert", "linear"],
    num_files: int,
    num_rows: int,
) -> DataFrame:
    """Return rows in another order, in tasks of about the same number of rows, one after the other.

    A job looks at a sample of the rows to divide the values of each column into ranges. The place on the curve is
    looked up by the numbers of the ranges.

    Parameters
    ----------
    rows : DataFrame
        The rows.
    columns : sequence of Path
        The columns that they are ordered by; nulls come first.
    order : str
        As of `operations.OptimizeOptions`.
    num_files : int
        The tasks.
    num_rows : int
        The rows, about.
    """
    names = [quote_name(n) for n in private.column_names(rows)]
    keys = [F.col(".".join(map(quote_name, path))) for path in columns]
    if order == "linear":
        by = [k.asc_nulls_first() for k in keys]
        return rows.repartitionByRange(num_files, *by).sortWithinPartitions(*by)
    bits = curve_bits(len(keys), num_files)
    keyed = rows.select(*names, *[k.alias(f"{_KEY}{i}") for i, k in enumerate(keys)])
    numbered = _with_ranges(keyed, len(keys), bits, num_rows)
    cell = reduce(
        lambda found, i: F.shiftleft(found, bits).bitwiseOR(F.col(f"{_RANGE}{i}")),
        range(1, len(keys)),
        F.col(f"{_RANGE}0"),
    )
    ranks = pa.table({_RANKS: pa.array([cell_ranks(order, len(keys), bits)], pa.list_(pa.uint32())).cast(_INTS)})
    known = rows.sparkSession.createDataFrame(ranks)
    placed = numbered.crossJoin(F.broadcast(known)).withColumn(_PLACE, F.get(F.col(_RANKS), cell)).drop(_RANKS)
    # rows of one cell are sorted, so that constant columns and few values are divided too
    by = [F.col(_PLACE), *[F.col(f"{_KEY}{i}") for i in range(len(keys))]]
    return placed.repartitionByRange(num_files, *by).sortWithinPartitions(*by).select(*names)


_INTS = pa.list_(pa.int32())


def _with_ranges(rows: DataFrame, count: int, bits: int, num_rows: int) -> DataFrame:
    """Add to each row the number of the range of each key; null is in the first one."""
    keys, ranges = [f"{_KEY}{i}" for i in range(count)], [f"{_RANGE}{i}" for i in range(count)]
    bounds = [f"{_BOUNDS}{i}" for i in range(count)]
    names = [quote_name(n) for n in private.column_names(rows)]
    found = rows.crossJoin(F.broadcast(_bounds(rows.select(*keys), keys, bounds, bits, num_rows)))
    found = found.select(*names, *bounds, *[F.lit(0).alias(n) for n in ranges])
    step = 1 << bits
    while step > 1:  # a binary search, a bit of the number in each step
        step //= 2
        found = found.select(
            *names, *bounds, *[_next(k, b, n, step).alias(n) for k, b, n in zip(keys, bounds, ranges, strict=True)]
        )
    return found.select(*names, *ranges)


def _next(key: str, bounds: str, number: str, step: int) -> Column:
    bound = F.get(F.col(bounds), F.col(number) + (step - 1))
    return F.col(number) + F.when(F.col(key) >= bound, F.lit(step)).otherwise(F.lit(0))


def _bounds(rows: DataFrame, keys: Sequence[str], names: Sequence[str], bits: int, num_rows: int) -> DataFrame:
    """Return one row: by key, the least values of all ranges but the first."""
    share = _SAMPLE_ROWS / max(num_rows, 1)
    some = rows.sample(share, seed=0) if share < 1 else rows
    lists = some.agg(*[F.sort_array(F.collect_list(key)).alias(key) for key in keys])
    numbers = F.sequence(F.lit(1), F.lit((1 << bits) - 1))
    return lists.select(*[F.transform(numbers, _nth(key, bits)).alias(n) for key, n in zip(keys, names, strict=True)])


def _nth(key: str, bits: int) -> Any:
    size = F.size(F.col(key)).cast("bigint")
    return lambda i: F.get(F.col(key), F.shiftright(i * size, bits).cast("int"))
