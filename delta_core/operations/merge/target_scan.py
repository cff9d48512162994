"""The work of a merge on each row of the target: the join with the source by blocks, and tests of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.engines.interface import Compiled
from delta_core.errors import MultipleMatchesError, shortened
from delta_core.expressions.ast import Call, Expression, Literal as Constant, Values, all_of, any_of
from delta_core.expressions.coercion import name_of
from delta_core.kernel.scan.plan import ROW_INDEX
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, shown_value
from delta_core.operations.changes import FILE_NUMBER
from delta_core.operations.merge.clauses import SOURCE, TARGET, BoundClause, Key, on_target
from delta_core.operations.merge.decision_store import DecisionRuns, Decisions
from delta_core.operations.merge.key_join import JoinedRows, SourceIndex
from delta_core.schema.fields import Path
from delta_core.schema.logical import open_type
from delta_core.schema.types import DataType, PrimitiveType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BLOCK_ROWS", "CompiledClause", "Decided", "Join", "first_clause", "joined_batches", "scan_predicate"]

#: Distinct keys up to which the table is tested against the keys themselves, not their range alone. The test runs as
#: rows are read, so that of 10,000,000 rows with 100,000 matches the read returns 100,000.
_MOST_KEYS = 1_000_000
#: Rows that are joined at a time, at least, unless they take more bytes.
BLOCK_ROWS = 1 << 18
_BLOCK_BYTES = 64 << 20
#: Types whose keys are constants that statistics can be compared with.
_COMPARED = frozenset(
    ("byte", "short", "integer", "long", "float", "double", "string", "date", "timestamp", "timestamp_ntz", "decimal")
)
_NOTHING = Constant(False, PrimitiveType("boolean"))


class CompiledClause(Struct, frozen=True):
    """A bound clause with its conditions and values ready to run.

    Parameters
    ----------
    values : tuple of (Path, Compiled)
        The values that it assigns.
    """

    bound: BoundClause
    number: int
    condition: Compiled | None
    values: tuple[tuple[Path, Compiled], ...]


class Decided(Struct, frozen=True):
    """The result of a join.

    Parameters
    ----------
    files : pyarrow.Table
        The files that the decisions number.
    read : int64[n]
        The numbers of the files with rows that match or change.
    is_matched : bool[num_source_rows]
        Whether a row of the source matches a row.
    """

    decisions: DecisionRuns
    files: pa.Table
    read: NDArray[np.int64]
    is_matched: NDArray[np.bool_]


class Join:
    """Decides about rows of the target.

    Parameters
    ----------
    source : pyarrow.Table
        The rows of the source.
    keys : sequence of Compiled
        The target's side of the keys of the index.
    target_only, rest : Compiled, optional
        The parts of the condition that read the target alone, and both sides.
    clauses : sequence of CompiledClause
        All clauses.
    shown : sequence of str
        The columns of the source that a message shows.
    """

    def __init__(
        self,
        source: pa.Table,
        index: SourceIndex,
        keys: Sequence[Compiled],
        target_only: Compiled | None,
        rest: Compiled | None,
        clauses: Sequence[CompiledClause],
        shown: Sequence[str],
    ) -> None:
        self._source, self._index, self._shown = source, index, shown
        self._keys, self._target_only, self._rest = keys, target_only, rest
        self._matched = [c for c in clauses if c.bound.kind == "matched"]
        self._others = [c for c in clauses if c.bound.kind == "not_matched_by_source"]
        is_plain_delete = [(c.bound.action, c.condition) for c in self._matched] == [("delete", None)]
        #: Whether several matches of one row are an error, whatever the conditions of clauses, as in delta-spark.
        self._is_single = bool(self._matched or self._others) and not is_plain_delete
        self._is_matched = np.zeros(source.num_rows, np.bool_)

    def decide(self, files: pa.Table, blocks: Iterable[pa.RecordBatch], runs: DecisionRuns) -> Decided:
        """Return what becomes of the rows of some files.

        Parameters
        ----------
        files : pyarrow.Table
            The files, as they are numbered.
        blocks : iterable of pyarrow.RecordBatch
            The rows, with the columns that are needed, `FILE_NUMBER` and ``_file_row_index``, in their order.
        runs : DecisionRuns
            Takes the decisions.

        Raises
        ------
        MultipleMatchesError
            Several rows of the source match one row, and the clauses are not a single DELETE without a condition.
        """
        read = [np.zeros(0, np.int64)]
        for block in blocks:
            made, matching = self._decide(block)
            runs.add(made)
            read += [np.unique(made.files), matching]
        return Decided(runs, files, np.unique(np.concatenate(read)), self._is_matched)

    def _decide(self, block: pa.RecordBatch) -> tuple[Decisions, NDArray[np.int64]]:
        """Return the decisions about a block, and the numbers of the files with matching rows."""
        n = block.num_rows
        rows = JoinedRows({TARGET: (block, None)}, n)
        clauses, partners = np.full(n, -1, np.int16), np.full(n, -1, np.int64)
        num_matches = np.zeros(n, np.int64)
        for t, s, pairs in self._matches(block, rows):
            self._is_matched[s] = True
            num_matches += np.bincount(t, minlength=n)
            if self._is_single and (num_matches > 1).any():
                raise self._ambiguous(int(s[np.argmax(num_matches[t] > 1)]))
            chosen = first_clause(self._matched, pairs, np.ones(len(t), np.bool_))
            applied = np.flatnonzero(chosen >= 0)
            clauses[t[applied]], partners[t[applied]] = chosen[applied], s[applied]
        if self._others:
            chosen = first_clause(self._others, rows, num_matches == 0)
            clauses = np.where(chosen >= 0, chosen, clauses)
        files = int64_values(block.column(FILE_NUMBER))
        positions = int64_values(block.column(ROW_INDEX))
        hit = np.flatnonzero(clauses >= 0)
        return Decisions(files[hit], positions[hit], partners[hit], clauses[hit]), np.unique(files[num_matches > 0])

    def _matches(
        self, block: pa.RecordBatch, rows: JoinedRows
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], JoinedRows]]:
        """Yield the pairs that match: their rows in the block and in the source, and both beside each other."""
        eligible = None if self._target_only is None else rows.where(self._target_only)
        for t, s in self._index.pairs([rows.evaluate(k) for k in self._keys], rows.num_rows):
            pairs = JoinedRows({TARGET: (block, t), SOURCE: (self._source, s)}, len(t))
            hit = np.ones(len(t), np.bool_) if eligible is None else eligible[t]
            if self._rest is not None:
                left = np.flatnonzero(hit)
                hit[left] = pairs.take(left).where(self._rest)
            yield (t, s, pairs) if hit.all() else (t[hit], s[hit], pairs.take(np.flatnonzero(hit)))

    def _ambiguous(self, source_row: int) -> MultipleMatchesError:
        row = {n: shown_value(self._source.column(n)[source_row]) for n in self._shown}
        return MultipleMatchesError(
            f"Several rows of the source match one row of the table, such as those with {shortened(row)}. Keep one row "
            "of the source for each row of the table, or narrow the merge condition.",
            row=row,
        )


def first_clause(clauses: Sequence[CompiledClause], rows: JoinedRows, is_open: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Return the number of the first clause that applies to each open row, -1 for none.

    A condition is evaluated on the rows alone that no earlier clause applies to.
    """
    chosen = np.full(rows.num_rows, -1, np.int16)
    left = np.flatnonzero(is_open)
    for clause in clauses:
        if not len(left):
            break
        if clause.condition is None:
            chosen[left] = clause.number
            break
        own = rows if len(left) == rows.num_rows else rows.take(left)
        hit = own.where(clause.condition)
        chosen[left[hit]] = clause.number
        left = left[~hit]
    return chosen


def joined_batches(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in larger batches: what is looked up in a batch costs time for each one."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0

    def joined() -> Iterator[pa.RecordBatch]:
        if len(kept) == 1:
            yield kept[0]
        elif kept:
            yield from pa.Table.from_batches(kept).combine_chunks().to_batches()

    for batch in batches:
        if batch.num_rows:
            kept.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= num_rows or size >= _BLOCK_BYTES:
            yield from joined()
            kept, rows, size = [], 0, 0
    yield from joined()


def scan_predicate(
    keys: Sequence[Key], index: SourceIndex, target_only: Expression | None, clauses: Sequence[BoundClause]
) -> Expression | None:
    """Return the predicate of the rows that can match, or that a clause for unmatched rows applies to; None: all."""
    others = [c.condition for c in clauses if c.kind == "not_matched_by_source"]
    parts = [] if target_only is None else [on_target(target_only)]
    tests = [_key_test(key, members) for key, members in zip(keys, index.members, strict=True)]
    parts += [t for t in tests if t is not None] if index.num_usable else [_NOTHING]
    matching = all_of(parts)
    if matching is None or None in others:
        return None
    return any_of([matching, *(on_target(c) for c in others if c is not None)])


def _key_test(key: Key, members: pa.Array) -> Expression | None:
    """Return a test on the table that holds for every row with one of these keys; None if there is none."""
    kind = open_type(members.type)
    if name_of(kind) not in _COMPARED:
        return None
    target = on_target(key.target)
    if not len(members):
        test: Expression | None = _NOTHING
    elif len(members) <= _MOST_KEYS:
        test = Call("in", (target, Values(members, kind)))
    else:
        test = _range_test(target, members, kind)
    return any_of([test, Call("isnull", (target,))]) if key.matches_null and test is not None else test


def _range_test(target: Expression, members: pa.Array, kind: DataType) -> Expression | None:
    try:
        ends = pc.min_max(members).as_py()
    except (ValueError, OverflowError):  # a time that Python can't hold
        return None
    above = Call(">=", (target, Constant(ends["min"], kind)))
    if pa.types.is_floating(members.type) and pc.any(pc.is_nan(members)).as_py():
        return above  # NaN is above every number
    return Call("and", (above, Call("<=", (target, Constant(ends["max"], kind)))))
