"""Relations of the Arrow engine: streams of record batches, transformed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.arrow.evaluate.evaluator import read_column
from delta_core.engines.engine import Engine
from delta_core.engines.interface import Evaluator, Relation
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import SchemaMismatchError
from delta_core.expressions.ast import Column, Expression, Leaf, leaves
from delta_core.expressions.plugin_functions import Function
from delta_core.kernel.write.files import Written, write_change_files, write_files
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values
from delta_core.kernels.row_set import RowSets
from delta_core.runtime.threads import num_cores
from delta_core.schema.fields import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ArrowRelation", "ArrowRelations"]

#: Positions that are collected before they become row sets, which take less memory.
_RUN = 4_000_000


class ArrowRelation(Struct, frozen=True):
    """A schema, and a function that begins a stream of batches of it."""

    schema: pa.Schema
    begin: Callable[[], Iterator[pa.RecordBatch]]


class ArrowRelations:
    """Relations of the seam.

    Parameters
    ----------
    evaluator : Evaluator
        Evaluates predicates and columns.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    @property
    def num_tasks(self) -> int:
        """The cores that this process may run on."""
        return num_cores()

    def scan(self, scan: Any) -> ArrowRelation:
        """Return the rows of a planned scan."""
        return ArrowRelation(scan.schema, scan.batches)

    def from_arrow(self, rows: pa.RecordBatchReader | pa.Table) -> ArrowRelation:
        """Return rows that the caller has."""
        return ArrowRelation(rows.schema, lambda: iter(rows.to_batches() if isinstance(rows, pa.Table) else rows))

    def filter(
        self, relation: Relation, predicate: Expression, functions: Mapping[str, Function] | None = None
    ) -> ArrowRelation:
        """Keep the rows for which a predicate is true."""
        given = _arrow(relation)
        keep = self._compile(predicate, given.schema, functions)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in given.begin():
                mask = keep(batch)
                yield pc.filter(batch, pc.fill_null(mask, False) if mask.null_count else mask)

        return ArrowRelation(given.schema, batches)

    def select(
        self,
        relation: Relation,
        columns: Sequence[tuple[str, Expression]],
        functions: Mapping[str, Function] | None = None,
    ) -> ArrowRelation:
        """Compute columns; a plain column is handed on as it is."""
        given = _arrow(relation)
        computed = [(name, self._compile(e, given.schema, functions)) for name, e in columns]
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, t) for t in given.schema.types], schema=given.schema)
        schema = pa.schema([pa.field(name, compute(empty).type) for name, compute in computed])

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in given.begin():
                yield pa.RecordBatch.from_arrays([compute(batch) for _, compute in computed], schema=schema)

        return ArrowRelation(schema, batches)

    def union(self, relations: Sequence[Relation]) -> ArrowRelation:
        """Return the rows of all, one relation after the other.

        Raises
        ------
        SchemaMismatchError
            For relations of different columns.
        """
        given = [_arrow(r) for r in relations]
        schema = pa.schema([f.with_nullable(True) for f in given[0].schema])
        for other in given[1:]:
            if other.schema.names != schema.names or other.schema.types != schema.types:
                raise SchemaMismatchError(f"Relations of {schema.names} and {other.schema.names} can't be united.")

        def batches() -> Iterator[pa.RecordBatch]:
            for relation in given:
                for batch in relation.begin():
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

        return ArrowRelation(schema, batches)

    def stream(self, relation: Relation) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        given = _arrow(relation)
        return pa.RecordBatchReader.from_batches(given.schema, given.begin())

    def order(self, relation: Relation, columns: Sequence[Path], order: str, num_files: int, num_rows: int) -> None:
        """Return None: the caller that streams the rows orders them."""

    def positions(self, relation: Relation, num_files: int, found: Callable[[int], None]) -> RowSets:
        """Collect the positions of rows within their files."""
        sets = _row_sets(num_files, [])
        run: list[tuple[NDArray[Any], NDArray[Any]]] = []
        held = 0
        for batch in _arrow(relation).begin():
            run.append((int64_values(batch.column(0)), int64_values(batch.column(1))))
            held += batch.num_rows
            found(batch.num_rows)
            if held > _RUN:
                sets, run, held = sets | _row_sets(num_files, run), [], 0
        return sets | _row_sets(num_files, run) if run else sets

    def write(
        self,
        engine: Engine,
        plan: WritePlan,
        relation: Relation,
        *,
        origin: Origin,
        data_change: bool = True,
        properties: WriterProperties | None = None,
        task_index: int = 0,
        num_tasks: int = 1,
        in_order: bool = False,
        target_size: int | None = None,
        observe: Callable[[pa.RecordBatchReader], pa.RecordBatchReader] | None = None,
        syncs: list[Callable[[], None]] | None = None,
    ) -> Written:
        """Write rows as data files or change files."""
        rows = self.stream(relation)
        rows = rows if observe is None else observe(rows)
        if origin == "changes":
            return write_change_files(engine, plan, rows, properties=properties, syncs=syncs)
        return write_files(
            engine,
            plan,
            rows,
            properties=properties,
            data_change=data_change,
            origin=origin,
            task_index=task_index,
            num_tasks=num_tasks,
            in_order=in_order,
            target_size=target_size,
            syncs=syncs,
        )

    def _compile(
        self, expression: Expression, schema: pa.Schema, functions: Mapping[str, Function] | None
    ) -> Callable[[pa.RecordBatch], Any]:
        if isinstance(expression, Column):
            path = expression.path
            return lambda batch: read_column(batch, path)
        types = {leaf: _type(leaf, schema) for leaf in leaves(expression)}
        compiled = self._evaluator.compile(expression, types, functions)

        def run(batch: pa.RecordBatch) -> Any:
            columns = [read_column(batch, leaf.path) for leaf in compiled.leaves]  # type: ignore[union-attr]  # columns, by `_type`
            return compiled(columns, batch.num_rows)

        return run


def _arrow(relation: Relation) -> ArrowRelation:
    if not isinstance(relation, ArrowRelation):
        raise SchemaMismatchError(f"Found a relation of another engine ({type(relation).__name__}).")
    return relation


def _row_sets(num_files: int, run: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> RowSets:
    none = np.empty(0, np.int64)
    numbers, positions = (np.concatenate(arrays) for arrays in zip((none, none), *run, strict=True))
    return RowSets.from_positions(num_files, numbers, positions)


def _type(leaf: Leaf, schema: pa.Schema) -> pa.DataType:
    if not isinstance(leaf, Column):
        raise SchemaMismatchError(f"A relation has columns only, found {leaf}.")
    found = schema.field(leaf.path[0]).type
    for name in leaf.path[1:]:
        found = found.field(name).type
    return found
