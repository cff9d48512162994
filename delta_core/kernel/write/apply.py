"""Rows as users pass them to physical batches: the only place of the Arrow path that does so.

Everything is compiled once per write. Per batch: columns are converted to the table's types, missing ones filled, rows
checked, hidden columns added, and what is left goes out by partition under physical names.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from delta_core.engines.interface import Compiled, Evaluator
from delta_core.errors import (
    ConstraintViolationError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
    did_you_mean,
    shortened,
)
from delta_core.expressions.ast import (
    Column,
    Expression,
    Leaf,
    Literal,
    PhysicalColumn,
    TaskCount,
    TaskIndex,
    TaskRow,
    leaves,
)
from delta_core.expressions.printing import format_sql
from delta_core.kernel.plugins.rules import FillColumn, HiddenColumn, RowCheck
from delta_core.kernel.write.convert import Convert, conversion
from delta_core.kernel.write.layout import FileColumn, arrow_type, file_columns
from delta_core.kernel.write.partition_text import empty_is_null
from delta_core.kernel.write.partitions import Partitions
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernel.write.schema_checks import schema_checks
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import is_valid, nulls_of, number_array, one_array, scalar_of, shown_value
from delta_core.kernels.decimals import checked_cast
from delta_core.kernels.nested import batch_of, empty_rows, narrow, null_rows, reach
from delta_core.runtime.plugin_errors import contract_error
from delta_core.schema.fields import Path, find

__all__ = ["PrepareRows"]

#: Columns that a message shows of a row.
_SHOWN = 20


class PrepareRows:
    """A compiled write: called per batch on the engine's threads.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the rows that will come; columns are matched by name, ignoring case.
    origin : str
        Where the rows come from. Change rows contain the column of the table's `ChangeCapture`, moved and updated ones
        the hidden columns of `WritePlan.carried`.
    task : (int, int)
        The values of `TaskIndex` and `TaskCount`; `TaskRow` counts the rows of the whole write.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the physical batches.
    partitions : Partitions
        The values that the numbers of the partitions represent.
    reported : dict of Path to (min, max)
        The bounds of values that ``report_bounds`` generated so far.

    Raises
    ------
    SchemaMismatchError
        A column that the table does not have, one that it needs, or one of another type; all are named.
    UnsupportedExpressionError
        An expression that the engine can't evaluate.
    """

    def __init__(
        self,
        plan: WritePlan,
        schema: pa.Schema,
        evaluator: Evaluator,
        *,
        origin: Origin = "new",
        task: tuple[int, int] = (0, 1),
    ) -> None:
        self._compiled = compiled = _compiled_rows(plan, schema, evaluator, origin)
        self._task = scalar_of(task[0], pa.int64()), scalar_of(task[1], pa.int64())
        self.schema: pa.Schema = compiled.schema
        self.partitions: Partitions = Partitions(compiled.partition_columns)
        self.reported: dict[Path, tuple[Any, Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, first_row: int, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """Return the physical rows of a batch by the number of their partition. See `engines.records.Split`."""
        compiled = self._compiled
        rows = _Rows(compiled, self._task, first_row, batch)
        for rule, fill in compiled.fills:
            with _naming(f"Column {rule.column[0]} can't be filled"):
                self._fill(rows, rule, fill)
        for name in compiled.void:
            rows.column(name)
        for name, check in compiled.schema_checks.items():
            check.run(rows.column(name), rows.show)
        for row_check, expression in compiled.checks:
            with _naming(f"The check {row_check.name!r} can't be evaluated"):
                self._run_check(rows, row_check, expression)
        for name, hidden in compiled.hidden.items():
            rows.set(name, rows.evaluate(hidden))
        names = compiled.plan.table.partition_columns
        return self.partitions.split([rows.column(n) for n in names], self._physical(rows))

    def _physical(self, rows: _Rows) -> pa.RecordBatch:
        columns = self._compiled.columns
        if not columns:
            return empty_rows(rows.num_rows)
        encodings = self._compiled.encodings
        arrays = [
            narrow(rows.column(c.name), c.stored) if c.name not in encodings else self._encoded(rows, c)
            for c in columns
        ]
        return batch_of(arrays, self.schema)

    def _encoded(self, rows: _Rows, column: FileColumn) -> pa.Array:
        """Return the stored form of a column; it is null for the same rows."""
        name = column.name
        rule, compiled = self._compiled.encodings[name]
        values, stored = rows.column(name), one_array(rows.evaluate(compiled))
        if stored.null_count != values.null_count or (is_valid(stored) != is_valid(values)).any():
            what = (
                f"returned {stored.null_count} nulls for {values.null_count} nulls in column {name!r}; expected null "
                "for null, and for nothing else"
            )
            raise contract_error(rule.feature, "column_encodings", "ColumnEncoding.encode", what, column=name)
        return stored if stored.type.equals(column.stored) else checked_cast(stored, column.stored)

    def _fill(self, rows: _Rows, rule: FillColumn, compiled: Compiled) -> None:
        name = rule.column[0]
        if rule.when != "null" or not rows.has(name):
            made = generated = rows.evaluate(compiled)
        else:
            old = rows.column(name)
            if not old.null_count:
                return
            absent = old.is_null()
            values = rows.evaluate(compiled)
            made = pc.if_else(absent, values, old)
            generated = values.filter(absent)
        rows.set(name, made)
        if rule.report_bounds and len(generated) > generated.null_count:
            self._report(rule.column, generated)

    def _report(self, path: Path, generated: pa.Array) -> None:
        found = pc.min_max(generated).as_py()
        with self._lock:
            low, high = self.reported.get(path, (found["min"], found["max"]))
            self.reported[path] = min(low, found["min"]), max(high, found["max"])

    def _run_check(self, rows: _Rows, check: RowCheck, compiled: Compiled) -> None:
        passed = rows.evaluate(compiled)
        if pa.types.is_null(passed.type):  # such as the condition NULL
            passed = nulls_of(len(passed), pa.bool_())
        broken = passed.false_count + (0 if check.null_passes else passed.null_count)
        if not broken:
            return
        good = passed.fill_null(check.null_passes) if passed.null_count else passed
        row = rows.show(good.index(scalar_of(False, pa.bool_())).as_py())
        text = check.sql or format_sql(check.expression)
        raise ConstraintViolationError(
            f"{broken} row{'s' * (broken != 1)} of {rows.num_rows} break{'s' * (broken == 1)} the check {check.name!r} "
            f"({text}); the first is {shortened(row)}. Correct the rows; nothing was written.",
            name=check.name,
            expression=text,
            feature=check.feature,
            count=broken,
            row=row,
        )


class _CompiledRows:
    """The compiled plan for rows of one schema: made once, and the same for every write of such rows.

    The arguments are those of `PrepareRows`.
    """

    def __init__(self, plan: WritePlan, schema: pa.Schema, evaluator: Evaluator, origin: Origin) -> None:
        self.plan = plan
        self.given_schema = schema
        self.evaluator = evaluator
        table = plan.table
        self.types = {f.name: arrow_type(f.type, table.types) for f in table.schema}
        changes = origin == "changes"
        extra = {r.name: arrow_type(r.type, table.types) for r in plan.carried(origin)}
        if changes and plan.capture is not None:
            extra[plan.capture.change_column] = pa.string()
        given = _match(schema, {**self.types, **extra})
        self.sources = _conversions(schema, given, {**self.types, **extra})
        #: Columns in which an empty value is null, to every reader: so it is to checks, fills and what is computed.
        self.empty_is_null = frozenset(empty_is_null(table))
        self._carried = frozenset(given) & frozenset(extra)
        # no file holds them, but values that are lost with them are rejected all the same
        self.void = [n for n, t in self.types.items() if n in given and pa.types.is_null(t)]
        build = partial(_compile, plan, evaluator, {**self.types, **{n: extra[n] for n in self._carried}})
        old = origin in ("changes", "moved")
        fills = () if old else [r for r in plan.fills if r.when != "absent" or r.column[0] not in given]
        self.fills = []
        for r in fills:
            # constants are computed here already, and may fail
            with _naming(f"Column {r.column[0]} can't be filled"):
                self.fills.append((r, build(r.expression)))
        self.schema_checks = {} if old else schema_checks(table.schema)
        if not old:
            self._check_given(given, origin)
        checks = () if old else [c for c in plan.checks if c.given is None or c.given[0] in given]
        self.checks = [(c, build(c.expression)) for c in checks]
        self._left_out = frozenset(r.name for r in plan.hidden if changes or self._is_empty(r, origin))
        made = [r for r in plan.hidden if r.name not in self._left_out | self._carried]
        self.hidden = {r.name: build(r.expression) for r in made}
        self.encodings = {name: (rule, build(rule.encode)) for name, rule in table.encodings.items()}
        self.columns = self._file_columns(changes)
        self.schema = pa.schema([c.field for c in self.columns])
        self.partition_columns = _partition_columns(plan)

    def _check_given(self, given: Mapping[str, int], origin: Origin) -> None:
        """Reject rows that contain what only the table may fill, or lack what nothing fills."""
        exclusive = [r for r in self.plan.fills if r.exclusive and origin == "new"]
        refused = next((r for r in exclusive if r.column[0] in given), None)
        if refused is not None:
            raise SchemaMismatchError(
                f"The rows have a column {refused.column[0]}, whose values come from the table alone "
                f"({refused.feature}). Leave it out.",
                column=refused.column[0],
                feature=refused.feature,
            )
        filled = {r.column[0] for r, _ in self.fills}
        missing = [n for n, c in self.schema_checks.items() if c.required and n not in given and n not in filled]
        if missing:
            raise SchemaMismatchError(
                f"The rows have no column {', '.join(missing)}, which the table requires (NOT NULL) and nothing fills. "
                "Pass it a value, or make it nullable.",
                column=missing[0],
            )

    def _is_empty(self, rule: HiddenColumn, origin: Origin) -> bool:
        """Whether a hidden column would hold nulls only: nothing is carried and nothing computed."""
        if rule.name in self._carried or rule.expression != Literal(None, rule.type):
            return False
        if origin in ("moved", "updated") and rule in self.plan.carried(origin):
            raise InvalidArgumentError(
                f"Rows of the table are {origin} without {rule.carries}, which {rule.feature} keeps. Read them with "
                f"that metadata column and name it {rule.name!r}.",
                feature=rule.feature,
                column=rule.carries,
            )
        return True

    def _file_columns(self, changes: bool) -> tuple[FileColumn, ...]:
        columns = tuple(c for c in file_columns(self.plan) if c.name not in self._left_out)
        if not changes or self.plan.capture is None:
            return columns
        name = self.plan.capture.change_column
        return (*columns, FileColumn(name, pa.field(name, pa.string()), pa.string()))


def _compiled_rows(plan: WritePlan, schema: pa.Schema, evaluator: Evaluator, origin: Origin) -> _CompiledRows:
    """Return the plan compiled for rows of a schema; what an earlier write of such rows compiled serves again."""
    known: _CompiledRows | None = plan.compiled.get(origin)
    if known is not None and known.evaluator is evaluator and known.given_schema.equals(schema, check_metadata=True):
        return known
    made = _CompiledRows(plan, schema, evaluator, origin)
    plan.compiled[origin] = made
    return made


@contextlib.contextmanager
def _naming(what: str) -> Iterator[None]:
    """Report in the error of an expression what it was for."""
    try:
        yield
    except ExpressionError as e:
        raise type(e)(f"{what}: {e.message}", **e.facts) from e


def _match(schema: pa.Schema, wanted: Mapping[str, pa.DataType]) -> dict[str, int]:
    """Return which column of the rows is which of the table's, by name ignoring case."""
    by_lower = {name.lower(): name for name in wanted}
    given: dict[str, int] = {}
    for i, name in enumerate(schema.names):
        own = by_lower.get(name.lower())
        if own is None:
            raise SchemaMismatchError(
                f"The rows have a column {name!r}, which the table does not have; its columns are: "
                f"{', '.join(list(wanted)[:20])}.{did_you_mean(name, wanted)} Leave it out, or add it to the table "
                "with schema_mode='merge'.",
                column=name,
            )
        if own in given:
            raise SchemaMismatchError(f"The rows have two columns {own!r} (case does not count).", column=own)
        given[own] = i
    return given


def _conversions(
    schema: pa.Schema, given: Mapping[str, int], wanted: Mapping[str, pa.DataType]
) -> dict[str, tuple[int, Convert | None]]:
    found: dict[str, tuple[int, Convert | None]] = {}
    wrong: list[SchemaMismatchError] = []
    for name, place in given.items():
        try:
            found[name] = place, conversion(schema.field(place).type, wanted[name], (name,))
        except SchemaMismatchError as e:
            wrong.append(e)
    if wrong:
        raise SchemaMismatchError("\n".join(e.message for e in wrong), **wrong[0].facts)
    return found


def _compile(
    plan: WritePlan, evaluator: Evaluator, known: Mapping[str, pa.DataType], expression: Expression
) -> Compiled:
    types: dict[Leaf, pa.DataType] = {}
    for leaf in leaves(expression):
        if isinstance(leaf, Column):
            types[leaf] = arrow_type(find(plan.table.schema, leaf.path)[1].type, plan.table.types)
        elif isinstance(leaf, PhysicalColumn):
            types[leaf] = known.get(leaf.name, arrow_type(leaf.type, plan.table.types))
        elif not isinstance(leaf, (TaskCount, TaskIndex, TaskRow)):
            raise InvalidArgumentError(f"A write can't evaluate {leaf}: it represents what is read.")
    return evaluator.compile(expression, types, plan.functions)


def _partition_columns(plan: WritePlan) -> list[tuple[str, Any]]:
    table = plan.table
    found = []
    for name in table.partition_columns:
        path, own = find(table.schema, (name,))
        found.append((table.column_map.physical_path(table.schema, path)[0], own.type))
    return found


class _Rows:
    """One batch on its way: logical columns, each made when first requested."""

    def __init__(
        self, owner: _CompiledRows, task: tuple[pa.Scalar, pa.Scalar], first_row: int, batch: pa.RecordBatch
    ) -> None:
        self._owner = owner
        self._task_index, self._num_tasks = task
        self._first_row = first_row
        self._batch = batch
        self._made: dict[str, pa.Array] = {}
        self.num_rows: int = batch.num_rows

    def has(self, name: str) -> bool:
        return name in self._made or name in self._owner.sources

    def set(self, name: str, array: pa.Array) -> None:
        wanted = self._owner.types.get(name)
        made = array if wanted is None or array.type.equals(wanted) else checked_cast(array, wanted)
        self._made[name] = self._without_empty(name, made)

    def column(self, name: str) -> pa.Array:
        made = self._made.get(name)
        if made is None:
            source = self._owner.sources.get(name)
            if source is None:
                made = null_rows(self.num_rows, self._owner.types.get(name, pa.string()))
            else:
                place, convert = source
                made = self._batch.column(place)
                made = self._without_empty(name, made if convert is None else convert(made))
            self._made[name] = made
        return made

    def _without_empty(self, name: str, array: pa.Array) -> pa.Array:
        if name not in self._owner.empty_is_null:
            return array
        empty = pc.equal(pc.binary_length(array), 0)
        return pc.if_else(empty, scalar_of(None, array.type), array) if pc.any(empty).as_py() else array

    def leaf(self, leaf: Leaf) -> Any:
        if isinstance(leaf, TaskIndex):
            return self._task_index
        if isinstance(leaf, TaskCount):
            return self._num_tasks
        if isinstance(leaf, TaskRow):
            return number_array(np.arange(self._first_row, self._first_row + self.num_rows, dtype=np.int64))
        if isinstance(leaf, PhysicalColumn):
            if self.has(leaf.name):
                return self.column(leaf.name)
            return pa.nulls(self.num_rows, arrow_type(leaf.type, self._owner.plan.table.types))
        assert isinstance(leaf, Column)
        array = self.column(leaf.path[0])
        numbers = []
        t = array.type
        for part in leaf.path[1:]:
            numbers.append(t.get_field_index(part))
            t = t.field(numbers[-1]).type
        return reach(array, numbers)

    def evaluate(self, compiled: Compiled) -> Any:
        return compiled([self.leaf(leaf) for leaf in compiled.leaves], self.num_rows)

    def show(self, row: int) -> dict[str, Any]:
        """Return a row for a message."""
        return {name: shown_value(self.column(name)[row]) for name in list(self._owner.types)[:_SHOWN]}
