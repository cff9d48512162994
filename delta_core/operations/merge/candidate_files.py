"""Which rows of a table the rows of a source match: the columns that decide are read of the files that can match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Compiled
from delta_core.expressions.ast import Column, Expression, Leaf, all_of, leaves
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernels.arrow_buffers import number_array
from delta_core.operations.changes import ChangeBase, TableChanges
from delta_core.operations.merge.builder import MergeClause
from delta_core.operations.merge.clauses import (
    SOURCE,
    TARGET,
    BoundClause,
    Key,
    MatchCondition,
    MergeNames,
    split_condition,
)
from delta_core.operations.merge.decision_store import DecisionRuns
from delta_core.operations.merge.key_join import JoinedRows, SourceIndex, is_hashable
from delta_core.operations.merge.source import source_types
from delta_core.operations.merge.target_scan import (
    BLOCK_ROWS,
    CompiledClause,
    Decided,
    Join,
    joined_batches,
    scan_predicate,
)
from delta_core.operations.row_changes import with_numbers
from delta_core.schema.fields import Path, Schema

__all__ = ["Matching", "source_blocks"]


def source_blocks(source: pa.Table) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a source in blocks, each with the number of its first row."""
    first = 0
    for batch in source.to_batches(max_chunksize=BLOCK_ROWS):
        yield first, batch
        first += batch.num_rows


class Matching:
    """The join of a table with a source, and what clauses make of its rows.

    Parameters
    ----------
    changes : TableChanges
        Of the table, as it will be defined.
    source : pyarrow.Table
        The rows of the source, in the Arrow types that expressions are evaluated on.
    rows : Schema
        The columns of the source.
    names : MergeNames
        Binds the condition and the clauses.
    predicate : str or Expression
        Which rows match.
    clauses : sequence of MergeClause
        The decisions about rows.

    Attributes
    ----------
    clauses : list of CompiledClause
        The clauses, ready to run.
    columns : dict of str to pyarrow.DataType
        The columns of the table.
    scanned, skipped : int
        The files whose rows were looked at, and those that could not match.

    Raises
    ------
    ExpressionError, ColumnNotFoundError, SchemaMismatchError
        The condition or a clause does not fit the table and the source.
    """

    def __init__(
        self,
        changes: TableChanges,
        source: pa.Table,
        rows: Schema,
        names: MergeNames,
        predicate: Any,
        clauses: Sequence[MergeClause],
    ) -> None:
        self.changes: TableChanges = changes
        self.source: pa.Table = source
        self.base: ChangeBase = changes.base
        base = self.base
        self.columns: dict[str, pa.DataType] = {f.name: arrow_type(f.type, base.types) for f in base.schema}
        types = source_types(base.types)
        self._arrow = {(TARGET, name): t for name, t in self.columns.items()} | {
            (SOURCE, f.name): arrow_type(f.type, types) for f in rows
        }
        self.condition: MatchCondition = split_condition(names.condition(predicate))
        self.bound: list[BoundClause] = [names.clause(c) for c in clauses]
        self.clauses: list[CompiledClause] = [self._compiled(i, b) for i, b in enumerate(self.bound)]
        self.scanned: int = 0
        self.skipped: int = 0

    def _compiled(self, number: int, bound: BoundClause) -> CompiledClause:
        condition = None if bound.condition is None else self._compile(bound.condition)
        return CompiledClause(
            bound, number, condition, tuple((a.path, self._compile(a.value)) for a in bound.assignments)
        )

    def _compile(self, expression: Expression) -> Compiled:
        types: dict[Leaf, pa.DataType] = {}
        for leaf in leaves(expression):
            if isinstance(leaf, Column):
                t = self._arrow[leaf.path[0], leaf.path[1]]
                for name in leaf.path[2:]:
                    t = t.field(name).type
                types[leaf] = t
        return self.base.engine.evaluator.compile(expression, types, self.base.functions)

    def decide(self, runs: DecisionRuns) -> Decided:
        """Return what becomes of the rows of the table; files with rows that match count as read.

        Raises
        ------
        MultipleMatchesError
            Several rows of the source match one row, and the clauses are not a single DELETE without a condition.
        """
        hashed = [is_hashable(self._compile(k.source).type) for k in self.condition.keys]
        keys = [k for k, is_key in zip(self.condition.keys, hashed, strict=True) if is_key]
        others = [k.as_test() for k, is_key in zip(self.condition.keys, hashed, strict=True) if not is_key]
        rest = all_of([*others, *([] if self.condition.rest is None else [self.condition.rest])])
        target_only = self.condition.target_only
        index = self._index(keys)
        predicate = scan_predicate(keys, index, target_only, self.bound)
        files, self.skipped = self.changes.candidates(predicate)
        self.scanned = files.num_rows
        join = Join(
            self.source,
            index,
            [self._compile(k.target) for k in keys],
            None if target_only is None else self._compile(target_only),
            None if rest is None else self._compile(rest),
            self.clauses,
            self._key_columns(rest),
        )
        needed = [*(k.target for k in keys), *(b.condition for b in self.bound), rest, target_only]
        blocks = self._blocks(files, predicate, [e for e in needed if e is not None])
        decided = join.decide(files, blocks, runs)
        self.changes.read(predicate, files.take(number_array(decided.read)))
        return decided

    def _key_columns(self, rest: Expression | None) -> list[str]:
        """Return the columns of the source that messages show: those that the condition reads, else the first ones."""
        parts = [*(k.source for k in self.condition.keys), *([] if rest is None else [rest])]
        read = [leaf.path for e in parts for leaf in leaves(e) if isinstance(leaf, Column)]
        return list(dict.fromkeys(p[1] for p in read if p[0] == SOURCE)) or self.source.column_names[:5]

    def _index(self, keys: Sequence[Key]) -> SourceIndex:
        usable = None
        if self.condition.source_only is not None:
            test = self._compile(self.condition.source_only)
            found = [JoinedRows({SOURCE: (b, None)}, b.num_rows).where(test) for _, b in source_blocks(self.source)]
            usable = np.concatenate([np.zeros(0, np.bool_), *found])
        columns = [self._source_values(self._compile(k.source)) for k in keys]
        return SourceIndex(columns, [k.matches_null for k in keys], self.source.num_rows, usable)

    def _source_values(self, compiled: Compiled) -> pa.ChunkedArray:
        found = [JoinedRows({SOURCE: (b, None)}, b.num_rows).evaluate(compiled) for _, b in source_blocks(self.source)]
        return pa.chunked_array(found, compiled.type)

    def _blocks(
        self, files: pa.Table, predicate: Expression | None, needed: Sequence[Expression]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the selected rows of files: the columns that decide, file number and position."""
        if not files.num_rows:
            return
        read = [leaf.path for e in needed for leaf in leaves(e) if isinstance(leaf, Column) and leaf.path[0] == TARGET]

        columns: list[str | Path] = [(name,) for name in dict.fromkeys(path[1] for path in read)]

        def batches() -> Iterator[pa.RecordBatch]:
            progress = self.changes.progress
            progress.begin("find", files.column("size"))
            for part in progress.parts(with_numbers(files)):
                scan = self.changes.numbered_rows(part, predicate, columns)
                for batch in scan.batches():
                    yield batch
                    progress.add(rows=batch.num_rows)

        yield from joined_batches(batches(), max(BLOCK_ROWS, 2 * self.source.num_rows))
