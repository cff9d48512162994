"""Tests of files: the parts of a predicate over partition values, statistics and constants, run chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.errors import ExpressionError, InvalidArgumentError
from delta_core.expressions.ast import (
    Call,
    Expression,
    FileConstant,
    FileStatistic,
    Leaf,
    PartitionValue,
    all_of,
    conjuncts,
    leaves,
)
from delta_core.expressions.bound_tests import bound_test
from delta_core.kernel.log import value_parts
from delta_core.kernel.log.file_columns import PARTITION, Chunk, pick_all, statistic_type
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, mask_of, values_of
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from delta_core.engines.interface import CheckpointHandle, Compiled, Evaluator
    from delta_core.kernel.log.file_columns import Mask
    from delta_core.kernel.log.group_tests import GroupTest

__all__ = ["FilePruner", "plan_tests"]

_CHEAP, _MIDDLE, _EXPENSIVE = range(3)
#: Values of more files are compared by the engine.
_FEW_FILES = 64


def plan_tests(expression: Expression | None, evaluator: Evaluator, zone: str, exact: bool) -> list[FilePruner]:
    """Compile the parts that AND joins, cheap ones first; those over statistics are one test: one pass serves them.

    Parameters
    ----------
    expression : Expression or None
        A condition over partition values and statistics; None has no tests.
    evaluator : Evaluator
        Compiles expressions.
    zone : str
        The zone of partition timestamps that name none.
    exact : bool
        Whether only files for which it is true pass; otherwise also those for which it is unknown.
    """
    by_cost: list[list[Expression]] = [[], [], []]
    for part in conjuncts(expression):
        by_cost[_cost(part)].append(part)
    *cheap, expensive = by_cost
    tests = [FilePruner(e, evaluator, zone, exact) for parts in cheap for e in parts]
    return tests if not expensive else [*tests, _statistics_test(expensive, evaluator, zone, exact)]


def _statistics_test(parts: list[Expression], evaluator: Evaluator, zone: str, exact: bool) -> FilePruner:
    whole = all_of(parts)
    assert whole is not None
    bounded = {leaf.path for e in parts for leaf in leaves(e) if isinstance(leaf, FileStatistic) and leaf.kind == "min"}
    late = [] if exact else [e for e in parts if _all_null_path(e) in bounded]
    first, rest = all_of([e for e in parts if e not in late]), all_of(late)
    if first is None or rest is None:
        return FilePruner(whole, evaluator, zone, exact)
    return StagedPruner(whole, evaluator, zone, first, rest)


def _all_null_path(e: Expression) -> tuple[str, ...] | None:
    """Return the column of a test that is false only if that is all null."""
    if isinstance(e, Call) and e.function == "!=" and all(isinstance(a, FileStatistic) for a in e.args):
        first, second = e.args
        if first.kind == "nullCount" and second.kind == "numRecords":  # type: ignore[union-attr]  # by `all`
            return first.path  # type: ignore[union-attr]  # by `all`
    return None


def _cost(expression: Expression) -> int:
    kinds = {type(leaf) for leaf in leaves(expression)}
    return _EXPENSIVE if FileStatistic in kinds else _MIDDLE if kinds != {PartitionValue} else _CHEAP


class FilePruner:
    """One test, compiled once; simple tests of a few files are not compiled."""

    def __init__(self, expression: Expression, evaluator: Evaluator, zone: str, exact: bool) -> None:
        self._types = {leaf: _leaf_type(leaf) for leaf in leaves(expression)}
        self._expression = expression
        self._evaluator = evaluator
        self._zone = zone
        self._exact = exact
        self._quick = bound_test(expression)
        if self._quick is None:  # an expression that can't be evaluated is rejected before files are looked at
            self._compiled  # noqa: B018  # a cached property

    @cached_property
    def _compiled(self) -> Compiled:
        return self._evaluator.compile(self._expression, self._types)

    @property
    def leaves(self) -> Sequence[Leaf]:
        """The test that is evaluated for each file."""
        return tuple(self._types)

    @cached_property
    def _of_groups(self) -> GroupTest | None:
        return value_parts.plan_group_test(self._expression, self._evaluator, self._exact)

    def keeps(self, handle: CheckpointHandle, group: int) -> bool:
        """Whether a row group of a checkpoint may hold a file that passes, by its footer.

        Parameters
        ----------
        handle : CheckpointHandle
            The file of the checkpoint.
        group : int
            The number of the row group.
        """
        return self._of_groups is None or self._of_groups.keeps(handle, group)

    def run(self, chunk: Chunk, rows: Mask | None) -> Mask:
        """Return which rows of a chunk pass; those outside ``rows`` do not.

        It may raise for a row outside ``rows`` too: then `run_alone` decides.

        Parameters
        ----------
        chunk : Chunk
            The files, a row each.
        rows : bool, **shape (n,)**, or None
            Which rows are tested; None: all.
        """
        leaves = self.leaves
        if len(leaves) == 1 and isinstance(leaves[0], PartitionValue):
            passed = self._run_distinct(chunk, leaves[0])
            return passed if rows is None else passed & rows
        return self._run_rows(chunk, rows)

    def run_alone(self, chunk: Chunk, rows: Mask) -> Mask:
        """Return which rows of a chunk pass, looking at no value of another row.

        Parameters
        ----------
        chunk : Chunk
            The files, a row each.
        rows : bool, **shape (n,)**
            Which rows are tested.

        Raises
        ------
        LogError
            A partition value that is not a value of its column's type.
        ExpressionError
            The test fails on a value. One that only skips files keeps them instead: reading the rows decides.
        """
        if not rows.any():
            return rows
        try:
            return self._run_rows(chunk, rows)
        except ExpressionError:
            if self._exact:
                raise
            return rows

    def _run_rows(self, chunk: Chunk, rows: Mask | None) -> Mask:
        selected = None if rows is None or rows.all() else rows
        passed = self._passed(
            self._columns(chunk, selected), chunk.num_rows if selected is None else int(selected.sum())
        )
        if selected is None:
            return passed
        out = np.zeros(chunk.num_rows, np.bool_)
        out[selected] = passed
        return out

    def _columns(self, chunk: Chunk, rows: Mask | None) -> list[pa.Array]:
        leaves = self.leaves
        statistics = [leaf for leaf in leaves if isinstance(leaf, FileStatistic)]
        found: dict[Leaf, pa.Array] = {}
        if statistics:
            known = chunk.statistics(statistics, rows)
            found |= {leaf: _bound(leaf, column) for leaf, column in zip(statistics, known, strict=True)}
        unloaded = [leaf for leaf in leaves if leaf not in found]
        if unloaded:
            loaded = pick_all(chunk.load([_column_name(leaf) for leaf in unloaded]), rows)
            found |= {leaf: self._typed(leaf, column) for leaf, column in zip(unloaded, loaded, strict=True)}
        return [found[leaf] for leaf in leaves]

    def _typed(self, leaf: Leaf, column: pa.Array) -> pa.Array:
        if not isinstance(leaf, PartitionValue):
            return column
        return value_parts.parse_partition_values(column, leaf.type, self._zone, column=leaf.name)

    def _run_distinct(self, chunk: Chunk, leaf: PartitionValue) -> Mask:
        """Query each distinct value once."""
        (text,) = chunk.load([PARTITION + leaf.name])
        coded: Any = text if pa.types.is_dictionary(text.type) else pc.dictionary_encode(text)
        distinct = value_parts.parse_dictionary(coded, leaf.type, self._zone, column=leaf.name)
        # the last row of the table is for null
        passed = self._passed([pa.concat_arrays([distinct, pa.nulls(1, distinct.type)])], len(distinct) + 1)
        codes = values_of(coded)
        rows: Mask = passed[np.where(is_valid(coded.indices), codes, len(distinct)) if coded.null_count else codes]
        return rows

    def _passed(self, columns: Sequence[pa.Array], count: int) -> Mask:
        quick = self._passed_few(columns, count) if self._quick is not None and count <= _FEW_FILES else None
        if quick is not None:
            return quick
        in_order = dict(zip(self.leaves, columns, strict=True))
        return mask_of(self._compiled([in_order[leaf] for leaf in self._compiled.leaves], count), null=not self._exact)

    def _passed_few(self, columns: Sequence[pa.Array], count: int) -> Mask | None:
        """Return which files pass, without the evaluator; None if one has NaN, which has an order of its own."""
        assert self._quick is not None
        values = [_stored(c).to_pylist() for c in columns]
        if any(pa.types.is_floating(c.type) and any(v != v for v in vs) for c, vs in zip(columns, values, strict=True)):
            return None
        rows = zip(*values, strict=True) if values else [()] * count
        found = [self._quick(dict(zip(self.leaves, row, strict=True))) for row in rows]
        return np.array([v is True if self._exact else v is not False for v in found], np.bool_)


class StagedPruner(FilePruner):
    """A test over bounds, and whether all is null evaluated only for rows without bounds: a bound proves a value.

    If a checkpoint has statistics as columns, this reads half as many. If they are text, one pass finds all.
    """

    def __init__(
        self, whole: Expression, evaluator: Evaluator, zone: str, bounds: Expression, nulls: Expression
    ) -> None:
        super().__init__(whole, evaluator, zone, exact=False)
        self._stages = bounds, nulls

    # the two stages are compiled when a checkpoint with such columns is read; statistics as text need neither
    @cached_property
    def _bounds(self) -> FilePruner:
        return FilePruner(self._stages[0], self._evaluator, self._zone, exact=False)

    @cached_property
    def _all_null(self) -> FilePruner:
        return FilePruner(self._stages[1], self._evaluator, self._zone, exact=False)

    def run(self, chunk: Chunk, rows: Mask | None) -> Mask:
        """Return which rows of a chunk pass; those outside ``rows`` do not.

        Parameters
        ----------
        chunk : Chunk
            The files, a row each.
        rows : bool, **shape (n,)**, or None
            Which rows are tested; None: all.
        """
        if not chunk.has_statistics_columns:
            return super().run(chunk, rows)
        bounds = [leaf for leaf in self._bounds.leaves if isinstance(leaf, FileStatistic)]
        paths = {leaf.path for leaf in self._all_null.leaves if isinstance(leaf, FileStatistic) and leaf.path}
        chunk.statistics(bounds, None)  # one read, kept for both
        passed = self._bounds.run(chunk, rows)
        unknown = np.zeros(chunk.num_rows, np.bool_)
        for column in chunk.statistics([leaf for leaf in bounds if leaf.path in paths], None):
            if column.null_count:
                unknown |= ~is_valid(column)
        unknown &= passed
        if unknown.any():
            passed = passed & (self._all_null.run(chunk, unknown) | ~unknown)
        return passed


def _stored(column: pa.Array) -> pa.Array:
    """Return dates and timestamps as `bound_test` takes them."""
    t = column.type
    if pa.types.is_date32(t):
        return column.view(pa.int32())
    return column.view(pa.int64()) if pa.types.is_timestamp(t) and t.unit == "us" else column


def _bound(leaf: FileStatistic, column: pa.Array) -> pa.Array:
    if leaf.kind not in ("min", "max") or not pa.types.is_decimal(column.type):
        return column
    return value_parts.widen_bounds(column, leaf.kind == "max")


def _column_name(leaf: Leaf) -> str:
    if isinstance(leaf, PartitionValue):
        return PARTITION + leaf.name
    assert isinstance(leaf, FileConstant)
    return leaf.name


def _leaf_type(leaf: Leaf) -> pa.DataType:
    if isinstance(leaf, FileStatistic):
        return statistic_type(leaf)
    if isinstance(leaf, (PartitionValue, FileConstant)):
        return leaf.type.to_arrow()
    raise InvalidArgumentError(
        f"Files can't be filtered by {leaf}: only partition values, statistics and file constants."
    )
