"""Physical batches to the rows that were requested: the only place of the Arrow path that does so.

Everything is compiled once per plan. Per batch: rows dropped by selectors are left out (with dictionary encoded
strings decoded for the kept rows only), what is left is checked, then filtered, then named and typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_core.engines.conditions import ColumnTest, RowCondition
from delta_core.engines.records import RowTest
from delta_core.errors import DataFileError
from delta_core.expressions.ast import Expression, Leaf, conjuncts, leaves
from delta_core.kernel.plugins.rules import ReadCheck
from delta_core.kernel.scan.file_context import FileContext, OneFile, RowOrigin, WholeFiles
from delta_core.kernel.scan.plan import Output, ReadPlan
from delta_core.kernels import parts as kernels
from delta_core.kernels.arrow_buffers import is_valid, scalar_of
from delta_core.kernels.gather import SelectionVector, as_views, gather, gather_column
from delta_core.kernels.memory import zeros
from delta_core.kernels.nested import batch_of, empty_rows, narrow, reach, relabel
from delta_core.scan.order import test_order
from delta_core.scan.rows import Texts
from delta_core.scan.sources import ConstantSource, PhysicalSource, PositionSource
from delta_core.scan.value_ranges import Accepted, Build, joined_test, part_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delta_core.engines.interface import Compiled

__all__ = ["CompiledPlan"]

#: Rows that a condition is tested for at once.
_STEP = 1 << 16
#: Physical columns by their number in the read.
Columns = Mapping[int, pa.Array]


class CompiledPlan:
    """A compiled plan: called per batch on the engine's threads, it keeps no state between calls.

    Parameters
    ----------
    plan : ReadPlan
    files : FileContext
    build : function(Expression) -> Compiled
        Compiles an expression over the columns of the plan.
    texts : str
        How strings are returned. Whether a column is of codes, or of views, may differ from batch to batch.

    Raises
    ------
    UnsupportedExpressionError
        When it is made, for an expression that the engine can't evaluate.
    """

    def __init__(self, plan: ReadPlan, files: FileContext, build: Build, *, texts: Texts = "plain") -> None:
        self._plan = plan
        self._texts = texts
        self._decodes = texts == "plain"
        self._files = files
        self._checks = [(check, build(check.expression)) for check in plan.checks]
        self._build = build
        #: By the identity of each part of the filter its test of a column: many keys take long to be put in order.
        self._part_tests: dict[int, Accepted | RowCondition | None] = {}
        #: The parts of the filter, in the order in which they are run.
        self._steps = [(part, self._built(part)) for part in test_order(plan.filter, plan.types, self._is_value_test)]
        self._required = [(i, o.field) for i, o in enumerate(plan.outputs) if not o.field.nullable]
        #: Whether the rows of a batch are returned as they are, once conditions on them are tested.
        self._is_plain = _is_plain(plan)
        self._outputs = [] if self._is_plain else [_Column(o, plan, build) for o in plan.outputs]
        self._is_untested = not self._checks and not self._steps

    def tests(self) -> tuple[RowTest, ...]:
        """Return checks and filter as steps, for an engine that decodes other columns of the left rows only."""
        checks = [RowTest(self._columns(c), partial(self._checked, rule, c)) for rule, c in self._checks]
        steps = [
            RowTest(self._columns(compiled), partial(self._passing, compiled), self._column_test(part))
            for part, compiled in self._steps
        ]
        return (*checks, *steps)

    def _built(self, condition: Expression) -> Compiled:
        is_tested = all(self._is_value_test(part) for part in conjuncts(condition))
        return _CompiledLater(condition, self._build) if is_tested else self._build(condition)

    def _is_value_test(self, part: Expression) -> bool:
        return self._part_test(part) is not None

    def _column_test(self, condition: Expression) -> ColumnTest | RowCondition | None:
        return joined_test([self._part_test(part) for part in conjuncts(condition)])

    def _part_test(self, part: Expression) -> Accepted | RowCondition | None:
        if id(part) not in self._part_tests:
            self._part_tests[id(part)] = part_test(part, self._plan.sources, self._plan.types, self._build)
        return self._part_tests[id(part)]

    def tested_only(self) -> frozenset[int]:
        """Return the physical columns that checks and filter alone look at."""
        used: set[int] = set()
        for output in self._plan.outputs:
            value = output.value
            if isinstance(value, PhysicalSource):
                used.add(value.index)
            elif not isinstance(value, (ConstantSource, PositionSource)):
                used.update(self._columns_of(leaves(value)))
        return frozenset(range(len(self._plan.columns.members))) - used

    def _columns(self, compiled: Compiled) -> tuple[int, ...]:
        return self._columns_of(compiled.leaves)

    def _columns_of(self, used: Iterable[Leaf]) -> tuple[int, ...]:
        sources = (self._plan.sources[leaf] for leaf in used)
        return tuple(dict.fromkeys(s.index for s in sources if isinstance(s, PhysicalSource)))

    def _checked(
        self,
        check: ReadCheck,
        compiled: Compiled,
        file: int,
        first: int,
        columns: Columns,
        num_rows: int,
        picked: SelectionVector | None,
    ) -> None:
        self._run_check(
            check, compiled, _View(self._plan, OneFile(self._files, file, first, picked), columns, num_rows)
        )

    def _passing(
        self, compiled: Compiled, file: int, first: int, columns: Columns, num_rows: int, picked: SelectionVector | None
    ) -> SelectionVector | None:
        mask = self._mask(compiled, _View(self._plan, OneFile(self._files, file, first, picked), columns, num_rows))
        return None if mask.true_count == num_rows else SelectionVector.where(mask)

    def _mask(self, compiled: Compiled, view: _View) -> pa.BooleanArray:
        """Return for which rows a condition is true."""
        sources = [self._plan.sources[leaf] for leaf in compiled.leaves]
        if view.num_rows <= _STEP or not all(isinstance(source, PhysicalSource) for source in sources):
            return view.evaluate(compiled)
        # what steps of an expression hold stays small, and in the processor's caches
        return pa.concat_arrays(
            view.stretch(self._columns(compiled), start, min(_STEP, view.num_rows - start)).evaluate(compiled)
            for start in range(0, view.num_rows, _STEP)
        )

    def select_files(
        self, first: int, ends: NDArray[np.int64], columns: Columns, num_rows: int
    ) -> SelectionVector | None:
        """Return which rows of neighbouring files the filter is true of. See `FileRead.select_files`."""
        return self._filtered(_View(self._plan, WholeFiles(self._files, first, ends), columns, num_rows)).picks

    def _filtered(self, view: _View) -> _View:
        """Return the rows that the filter is true of, with its parts in the order in which any engine runs them."""
        for _, compiled in self._steps:
            if not view.num_rows:
                break
            mask = self._mask(compiled, view)
            if mask.true_count < view.num_rows:
                view = view.filtered(mask)
        return view

    def __call__(
        self,
        file: int,
        first: int,
        batch: pa.RecordBatch,
        picked: SelectionVector | None = None,
        is_tested: bool = False,
    ) -> pa.RecordBatch | None:
        """Return the rows of a batch that are requested, None if there are none. See `engines.interface.Apply`."""
        picks = self._files.selection(file, first, batch.num_rows) if picked is None else None
        return self._rows(batch, OneFile(self._files, file, first, picked), picks, is_tested)

    def whole_files(self, first: int, ends: NDArray[np.int64], batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the rows of neighbouring whole files that are requested. See `FileRead.apply_files`."""
        if not batch.num_rows:
            return None
        return self._rows(
            batch, WholeFiles(self._files, first, ends), self._files.selection_of_files(first, ends), False
        )

    @property
    def looks_at_positions(self) -> bool:
        """Whether the positions of rows in their files matter: rows are checked, or returned with them."""
        values = (*(o.value for o in self._plan.outputs), *self._plan.sources.values())
        return bool(self._checks) or any(isinstance(v, PositionSource) for v in values)

    def passing_files(self, first: int, ends: NDArray[np.int64], batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """Return the rows of neighbouring files that passed all tests. See `FileRead.apply_passing`."""
        return self._rows(batch, WholeFiles(self._files, first, ends), None, True) if batch.num_rows else None

    def _rows(
        self, batch: pa.RecordBatch, origin: RowOrigin, picks: SelectionVector | None, is_tested: bool
    ) -> pa.RecordBatch | None:
        found = self._rows_left(batch, origin, picks, is_tested)
        return found if found is None or self._texts != "views" else as_views(found)

    def _rows_left(
        self, batch: pa.RecordBatch, origin: RowOrigin, picks: SelectionVector | None, is_tested: bool
    ) -> pa.RecordBatch | None:
        if not batch.num_rows or (picks is not None and not len(picks)):
            return None
        if self._is_plain and (is_tested or self._is_untested):
            kept = gather(batch, picks, self._decodes)
            if kept.schema.equals(self._plan.schema, check_metadata=True) and not self._required:
                return kept
            columns = kept.columns
            self._check_required(_View(self._plan, origin, {}, batch.num_rows, picks), columns)
            return self._batch(columns) if columns else relabel(kept, self._plan.schema)
        view = _View(self._plan, origin, dict(enumerate(batch.columns)), batch.num_rows, picks)
        if not is_tested:
            for check, compiled in self._checks:
                self._run_check(check, compiled, view)
            view = self._filtered(view)
            if not view.num_rows:
                return None
        arrays = self._arrays(view)
        self._check_required(view, arrays)
        if not arrays:
            return empty_rows(view.num_rows)
        return self._batch(arrays)

    def _arrays(self, view: _View) -> list[pa.Array]:
        if self._is_plain:
            return [view.physical(PhysicalSource(i), self._decodes) for i in range(len(self._plan.outputs))]
        return [column(view, self._decodes) for column in self._outputs]

    def _batch(self, arrays: Sequence[pa.Array]) -> pa.RecordBatch:
        schema = self._plan.schema
        coded = [] if self._decodes else [i for i, a in enumerate(arrays) if pa.types.is_dictionary(a.type)]
        for i in coded:
            schema = schema.set(i, schema.field(i).with_type(arrays[i].type))
        return batch_of(arrays, schema)

    def _run_check(self, check: ReadCheck, compiled: Compiled, view: _View) -> None:
        passed = view.evaluate(compiled)
        if passed.false_count == 0:
            return
        path, row = view.place(passed.index(scalar_of(False, pa.bool_())).as_py())
        raise DataFileError(
            f"Row {row} of data file {path!r} fails the check {check.name!r} of {check.feature}: {check.message}",
            path=path,
            row=row,
            check=check.name,
            feature=check.feature,
        )

    def _check_required(self, view: _View, arrays: Sequence[pa.Array]) -> None:
        for index, f in self._required:
            if arrays[index].null_count:
                path, _ = view.place(int(np.flatnonzero(~is_valid(arrays[index]))[0]))
                raise DataFileError(
                    f"Column {f.name!r} of data file {path!r} holds nulls, but the table's schema specifies that it "
                    "has none. Rewrite the file, or make the column nullable.",
                    path=path,
                    column=f.name,
                )


def _is_plain(plan: ReadPlan) -> bool:
    """Whether the columns that are returned are the physical ones, in their order."""
    values = [o.value for o in plan.outputs]
    if len(values) != len(plan.columns):
        return False
    if any(not isinstance(v, PhysicalSource) or v.index != i or v.path for i, v in enumerate(values)):
        return False
    return plan.schema.equals(plan.logical) or all(
        own.equals(stored) for own, stored in zip(plan.schema.types, plan.logical.types, strict=True)
    )


class _CompiledLater:
    """A condition that the engine may test while it decodes values: compiled if it has to be evaluated.

    Every engine evaluates such conditions, so that nothing is left to reject before rows are read.
    """

    def __init__(self, condition: Expression, build: Build) -> None:
        self.leaves = leaves(condition)
        self.type = pa.bool_()
        self._compile = partial(build, condition)
        self._compiled: Compiled | None = None

    def __call__(self, columns: Sequence[Any], num_rows: int) -> pa.Array:
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = self._compile()
        values = dict(zip(self.leaves, columns, strict=True))
        return compiled([values[leaf] for leaf in compiled.leaves], num_rows)


class _View:
    """Rows of one batch under evaluation: columns, constants and positions, each made when first requested.

    Columns are picked from the whole batch, so that what a filter drops is copied for the filter's own columns only.
    ``picks`` specifies which of the ``stored_rows`` are looked at; None: each one.
    """

    def __init__(
        self,
        plan: ReadPlan,
        origin: RowOrigin,
        columns: Columns,
        stored_rows: int,
        picks: SelectionVector | None = None,
    ) -> None:
        self._plan = plan
        self._origin = origin
        self.picks = picks
        self._stored = columns
        self._stored_rows = stored_rows
        self._columns: dict[int, pa.Array] = {}
        self.num_rows: int = stored_rows if picks is None else len(picks)

    def filtered(self, mask: pa.BooleanArray) -> _View:
        """Return the rows if the mask is true."""
        inner = SelectionVector.where(mask)
        picks = inner if self.picks is None else self.picks.narrowed(inner)
        return _View(self._plan, self._origin, self._stored, self._stored_rows, picks)

    def positions(self) -> pa.Array:
        return self._origin.positions(None if self.picks is None else self.picks.indices, self._stored_rows)

    def place(self, row: int) -> tuple[str, int]:
        """Return the file and the position of a row."""
        return self._origin.place(row if self.picks is None else int(self.picks.indices[row]))

    def stretch(self, columns: Iterable[int], start: int, num_rows: int) -> _View:
        """Return neighbouring rows, with some physical columns and without positions or constants."""
        own = {column: self._column(column, decode=False).slice(start, num_rows) for column in columns}
        return _View(self._plan, self._origin, own, num_rows)

    def physical(self, source: PhysicalSource, decode: bool = True) -> pa.Array:
        """Return a physical column; strings may stay dictionary encoded unless they are to be decoded."""
        return reach(self._column(source.index, decode), source.path)

    def _column(self, index: int, decode: bool) -> pa.Array:
        column = self._columns.get(index)
        if column is None or (decode and pa.types.is_dictionary(column.type)):
            column = self._columns[index] = gather_column(self._stored[index], self.picks, decode)
        return column

    def constant(self, source: ConstantSource) -> pa.Scalar | pa.Array | None:
        if source.index is None:
            return None
        return self._origin.constant(source.index, None if self.picks is None else self.picks.indices)

    def leaf(self, leaf: Leaf) -> Any:
        plan = self._plan
        source = plan.sources[leaf]
        if isinstance(source, PositionSource):
            return self.positions()
        if isinstance(source, ConstantSource):
            value = self.constant(source)
            return scalar_of(None, plan.types[leaf]) if value is None else value
        return _as(self.physical(source, decode=False), plan.types[leaf])

    def evaluate(self, compiled: Compiled) -> Any:
        return compiled([self.leaf(leaf) for leaf in compiled.leaves], self.num_rows)


class _Column:
    """How one output column is made."""

    def __init__(self, output: Output, plan: ReadPlan, build: Build) -> None:
        value = self._value = output.value
        self._type = output.field.type
        sources = (PhysicalSource, ConstantSource, PositionSource)
        self._compiled = None if isinstance(value, sources) else build(value)
        self._narrows = False
        if isinstance(value, PhysicalSource):
            stored = plan.logical.field(value.index).type
            self._narrows = pa.types.is_nested(stored) and not stored.equals(self._type)
            self._logical = stored

    def __call__(self, view: _View, decode: bool = True) -> pa.Array:
        """Return the column; strings may stay, or become, dictionary codes unless they are to be decoded."""
        value = self._value
        if self._compiled is not None:
            array = view.evaluate(self._compiled)
            return array if array.type.equals(self._type) else kernels.checked_cast(array, self._type)
        if isinstance(value, PhysicalSource):
            array = view.physical(value, decode)
            return narrow(_as(array, self._logical), self._type) if self._narrows else array
        if isinstance(value, PositionSource):
            return view.positions()
        assert isinstance(value, ConstantSource)
        found = view.constant(value)
        if isinstance(found, pa.Array):
            return found
        if found is None or not found.is_valid:
            return pa.nulls(view.num_rows, self._type)
        if not decode and found.type == pa.string():
            codes = pa.Array.from_buffers(pa.int32(), view.num_rows, [None, zeros(4 * view.num_rows)])
            return pa.DictionaryArray.from_arrays(codes, pa.repeat(found, 1), safe=False)
        return pa.repeat(found, view.num_rows)


def _as(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the array under the logical names of its type."""
    if not pa.types.is_nested(wanted) or array.type.equals(wanted):
        return array
    batch = pa.RecordBatch.from_arrays([array], ["x"])
    return relabel(batch, pa.schema([pa.field("x", wanted)])).column(0)
