"""The rows that a merge updates, with their new values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_core.errors import InternalError
from delta_core.expressions.ast import Column
from delta_core.kernel.scan.plan import ROW_INDEX
from delta_core.kernel.write.convert import conversion
from delta_core.kernels.arrow_buffers import int64_values, number_array
from delta_core.kernels.nested import empty_rows, replace_field
from delta_core.operations.changes import TableChanges
from delta_core.operations.merge.clauses import SOURCE, TARGET
from delta_core.operations.merge.decision_store import DecisionRuns, Decisions
from delta_core.operations.merge.key_join import JoinedRows
from delta_core.operations.merge.target_scan import BLOCK_ROWS, CompiledClause
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["UpdatedRows", "converted_values"]


class UpdatedRows:
    """The updated rows of some clauses: unchanged columns from the table, the others from the clauses.

    Columns of the table that every clause replaces and none reads are not read.

    Parameters
    ----------
    columns : Mapping of str to pyarrow.DataType
        The columns of the table.
    clauses : sequence of CompiledClause
        Updates that assign the same computed columns.
    decisions : DecisionRuns
        The rows to which clauses apply, these or others.
    files : pyarrow.Table
        The files that the decisions number.
    """

    def __init__(
        self,
        changes: TableChanges,
        columns: Mapping[str, pa.DataType],
        source: pa.Table,
        clauses: Sequence[CompiledClause],
        decisions: DecisionRuns,
        files: pa.Table,
    ) -> None:
        self._changes, self._columns, self._source = changes, columns, source
        self._clauses, self._decisions, self._files = clauses, decisions, files
        left_out = changes.computed - clauses[0].bound.assigned
        self._names = [n for n in columns if n not in left_out]
        read = set()
        for clause in clauses:
            whole = {path[0] for path, _ in clause.values if len(path) == 1}
            read |= set(self._names) - whole
            needed = [leaf for _, value in clause.values for leaf in value.leaves]
            read |= {leaf.path[1] for leaf in needed if isinstance(leaf, Column) and leaf.path[0] == TARGET}
        self._read = [n for n in columns if n in read]
        self._carried = changes.carried

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        types = self._changes.carried_types
        fields = [pa.field(n, self._columns[n]) for n in self._names]
        schema = pa.schema([*fields, *(pa.field(self._carried[n], t) for n, t in types.items())])
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _old(self, decisions: Decisions) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are, in the order of the decisions."""
        if not self._read and not self._carried:
            for first in range(0, len(decisions.files), BLOCK_ROWS):
                yield empty_rows(min(BLOCK_ROWS, len(decisions.files) - first))
            return
        numbers = np.unique(decisions.files)
        rows = decisions.row_sets(self._files).take(numbers)
        files = self._files.take(number_array(numbers))
        scan = self._changes.rows(files, rows, [(n,) for n in self._read], metadata=(ROW_INDEX,))
        yield from scan.batches()

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        numbers = [c.number for c in self._clauses]
        for run in self._decisions:
            own = run.of(np.isin(run.clauses, numbers))
            if len(own.files):
                yield from self._run(own, schema)

    def _run(self, decisions: Decisions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in self._old(decisions):
            own = slice(first, first + batch.num_rows)
            first += batch.num_rows
            clauses, sources = decisions.clauses[own], decisions.sources[own]
            if ROW_INDEX in batch.schema.names:
                found = int64_values(batch.column(ROW_INDEX))
                if not np.array_equal(found, decisions.positions[own]):
                    raise InternalError("Rows to update came in another order than they were chosen in.")
            for clause in self._clauses:
                rows = np.flatnonzero(clauses == clause.number)
                if len(rows):
                    yield self._updated(clause, batch, rows, sources, schema)
        if first != len(decisions.files):
            raise InternalError(f"{len(decisions.files)} rows were to be updated, {first} came.")

    def _updated(
        self,
        clause: CompiledClause,
        batch: pa.RecordBatch,
        rows: NDArray[np.int64],
        sources: NDArray[np.int64],
        schema: pa.Schema,
    ) -> pa.RecordBatch:
        own = None if len(rows) == batch.num_rows else rows
        joined = JoinedRows({TARGET: (batch, own), SOURCE: (self._source, sources[rows])}, len(rows))
        made: dict[str, pa.Array] = {}
        for path, value in clause.values:
            name = path[0]
            new = converted_values(joined.evaluate(value), self._columns[name], path)
            old = made[name] if name in made else joined.column((TARGET, name)) if len(path) > 1 else None
            made[name] = new if old is None else replace_field(old, path[1:], new)
        columns = [made[n] if n in made else joined.column((TARGET, n)) for n in self._names]
        columns += [joined.column((TARGET, n)) for n in self._carried]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def converted_values(values: pa.Array, column: pa.DataType, path: Path) -> pa.Array:
    """Return values in the type of a column, or of the field within it that a path leads to."""
    wanted = column
    for name in path[1:]:
        wanted = wanted.field(name).type
    change = conversion(values.type, wanted, path)
    return values if change is None else change(values)
