"""MERGE on Spark: the matching pairs of rows are found by one join, kept by their places, and used by all that follows.

A pair is the place of a row of the table (number of its file, position) and the number of a row of the source. Which
rows change is aggregated to bitmaps; updated rows are read by position alone, and rows of the source without a pair are
inserted.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F

from delta_core.engines.spark.expressions import to_column
from delta_core.engines.spark.failures import failing_as, is_checkpoint_lost
from delta_core.engines.spark.latest import fixed_rows
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.relations import SparkRelation, bitmaps_of, row_sets
from delta_core.engines.spark.write.rows import given_schema
from delta_core.errors import (
    EngineError,
    InternalError,
    MultipleMatchesError,
    SchemaMismatchError,
    UnsupportedOperationError,
    shortened,
)
from delta_core.expressions import ast
from delta_core.expressions.ast import Call, Expression, Leaf, Literal as Constant, TaskRow, all_of, any_of, leaves
from delta_core.expressions.printing import quote_name
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.plan import ROW_INDEX
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels.arrow_buffers import number_array
from delta_core.kernels.row_set import RowSets
from delta_core.operations.changes import FILE_NUMBER, Changed
from delta_core.operations.facts import has_transactions
from delta_core.operations.merge.clauses import SOURCE, TARGET, BoundClause, Key, MergeNames, on_target, split_condition
from delta_core.operations.merge.operation import MergeCounts, MergeOptions, begin_merge
from delta_core.operations.row_changes import RowChanges, with_numbers
from delta_core.schema.fields import Path, Schema, find
from delta_core.schema.types import PrimitiveType, StructType, UserDefinedType

__all__ = ["merge_frame"]

_LONG, _STRING, _BOOLEAN = (PrimitiveType(n) for n in ("long", "string", "boolean"))
_FILE, _ROW, _SOURCE_ROW, _CLAUSE, _PLACE = (f"__delta_{n}" for n in ("file", "row", "source_row", "clause", "place"))
#: Types of keys whose least and greatest values are constants that statistics can be compared with.
_COMPARED = frozenset(("byte", "short", "integer", "long", "string", "date", "decimal"))
#: New values that a job which rewrites files can broadcast: rows, and bytes of their texts.
_MOST_ROWS, _MOST_BYTES = 500_000, 32 << 20
#: Bits of a row's position beside the number of its file.
_POSITION_BITS = 40
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
#: How often a merge runs whose executors are lost.
_MOST_ATTEMPTS = 4
_log = logging.getLogger(__name__)


def merge_frame(spark: Any, base: Snapshot, source: DataFrame, options: MergeOptions) -> Changed:
    """Merge the rows of a DataFrame into a table and commit. No changed row and no added column: no commit.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the jobs.
    base : Snapshot
        The latest version, of an engine by `spark_engine`.
    source : DataFrame
        The rows; the query runs once, and again if an executor is lost that kept its rows.
    options : MergeOptions
        The clauses: which rows match, and their changes; conditions and values are texts or expressions.

    Raises
    ------
    ExpressionError, ColumnNotFoundError, SchemaMismatchError
        A condition or a value does not fit the table and the source.
    MultipleMatchesError
        Several rows of the source match one row of the table.
    ConstraintViolationError
        A row that is written breaks a constraint; nothing was committed.
    UnsupportedOperationError
        Several clauses insert rows that the table numbers.
    CommitConflictError
        Another writer's commit contradicts this one. The files that were written are deleted again.
    """
    if has_transactions(base, options.transactions):
        return Changed(base, MergeCounts().metrics())
    for attempt in range(1, _MOST_ATTEMPTS):
        try:
            return _merged(spark, base, source, options)
        except EngineError as e:
            if not is_checkpoint_lost(e):
                raise
            _log.warning("An executor was lost with rows of attempt %d to merge into %s", attempt, base.uri)
    return _merged(spark, base, source, options)


def _merged(spark: Any, base: Snapshot, source: DataFrame, options: MergeOptions) -> Changed:
    # an attempt that fails commits nothing, and deletes what it wrote
    read = fixed_rows(source, base)
    merge = _Merge(spark, base, read.rows, options)
    read.note_in(merge.transaction, base)
    with merge.changes, failing_as(f"Spark failed to merge rows into {base.uri}", path=base.uri):
        if read.read_version is not None:
            merge.transaction.check_read_since(read.read_version, any(c.kind != "not_matched" for c in merge.clauses))
        return merge.run(read.rows)


class _Merge:
    def __init__(self, spark: Any, base: Snapshot, source: DataFrame, options: MergeOptions) -> None:
        self.spark, self.options, self.counts = spark, options, MergeCounts()
        rows = given_schema(source)
        _check_names(rows)
        changes = begin_merge(base, rows, options)
        assert isinstance(changes, RowChanges)
        self.changes, self.transaction = changes, changes.transaction
        #: The version that is merged into, as the table will be defined.
        self.base = changes.base
        functions = self.base.plugins.functions
        names = MergeNames(
            self.base.schema,
            rows,
            options.target_alias,
            options.source_alias,
            functions,
            is_evolving=options.merge_schema,
            default_of=self.transaction.plan.default_of,
            rules=options.fitting,
        )
        bound = names.condition(options.predicate)
        self.condition = split_condition(bound)
        self.clauses = [names.clause(c) for c in options.clauses]
        for clause in self.clauses:
            if clause.action == "update":
                self.transaction.plan.check_assigned(clause.assigned)
        self._check_inserts()
        self._places = {
            (side, f.name): f"__{side}_{i}"
            for side, t in ((TARGET, self.base.schema), (SOURCE, rows))
            for i, f in enumerate(t.members)
        }
        self._bound, self._rows = bound, rows

    def _check_inserts(self) -> None:
        is_numbered = any(
            isinstance(leaf, TaskRow) for r in self.transaction.plan.fills for leaf in leaves(r.expression)
        )
        if is_numbered and len(self._numbers("not_matched")) > 1:
            raise UnsupportedOperationError(
                "The table numbers inserted rows (an identity column), which Spark does for one INSERT clause only. "
                "Use one clause with CASE expressions, or delta_core.DeltaTable.merge.",
                operation="merge",
            )

    def _numbers(self, kind: str, action: str = "") -> list[int]:
        return [i for i, c in enumerate(self.clauses) if c.kind == kind and action in ("", c.action)]

    def run(self, source: DataFrame) -> Changed:
        """Find the pairs, write what changes, and commit."""
        new = source.select(
            *[F.col(quote_name(n)).alias(self._places[SOURCE, n]) for n in source.columns],
            F.monotonically_increasing_id().alias(_SOURCE_ROW),
        ).localCheckpoint()  # computed twice, a query may return other rows
        keys = [k for k in self.condition.keys if _is_compared(k, self.base.schema)]
        self.counts.source, test = self._facts(new, keys)
        predicate = self._predicate(test)
        files = self._files(predicate)
        with _cached(self._pairs(new, files, predicate)) as pairs:
            matched, chosen = self._matches(pairs, files, new)
            for number, rows in self._unmatched(files, matched):
                chosen[number] = rows
            self.counts.timing.scanned()
            self._read(predicate, files, [matched, *chosen.values()])
            self._write(new, pairs, files, chosen)
        is_changed = any(rows.cardinalities().any() for rows in chosen.values()) or self.changes.num_inserted
        if not (is_changed or self.transaction.intents.metadata or self.options.commits_empty):
            return Changed(self.transaction.base or self.base, self.counts.metrics())
        return self.changes.commit(self.options, self.counts.metrics(self.changes.metrics()))

    # --- finding pairs ---

    def _facts(self, new: DataFrame, keys: Sequence[Key]) -> tuple[int, Expression | None]:
        """Return the number of rows of the source, and a test that holds for every row of the table that can match."""
        values = [self._column(k.source) for k in keys]
        # a day may be one that Python's dates do not reach
        days = [
            F.unix_date(v) if _family(_kind(k, self.base.schema)) == "date" else v
            for k, v in zip(keys, values, strict=True)
        ]
        ends = [f(v) for v in days for f in (F.min, F.max)]
        count, *found = new.agg(F.count("*"), *ends).first() or [0]
        if not count:
            return 0, Constant(False, _BOOLEAN)
        pairs = zip(keys, found[::2], found[1::2], strict=True)
        return count, all_of(
            [t for k, low, high in pairs if (t := _range_test(k, self.base.schema, low, high)) is not None]
        )

    def _predicate(self, test: Expression | None) -> Expression | None:
        """Return the predicate of the rows that can match, or that a clause for rows without a match applies to."""
        only = self.condition.target_only
        matching = all_of([e for e in (None if only is None else on_target(only), test) if e is not None])
        others = [self.clauses[i].condition for i in self._numbers("not_matched_by_source")]
        if matching is None or None in others:
            return None
        return any_of([matching, *(on_target(c) for c in others if c is not None)])

    def _files(self, predicate: Expression | None) -> pa.Table:
        files, self.counts.skipped = self.changes.candidates(predicate)
        self.counts.scanned = files.num_rows
        return files

    def _pairs(self, new: DataFrame, files: pa.Table, predicate: Expression | None) -> DataFrame:
        """Return the pairs that match, each with the number of the clause that applies, -1: none."""
        matched = [(i, self.clauses[i].condition) for i in self._numbers("matched")]
        used = [self._bound, *(c for _, c in matched if c is not None)]
        # the predicate is wider than what can match, if clauses apply to rows without a match
        scan = self.changes.numbered_rows(with_numbers(files), predicate, [(n,) for n in _names(used, TARGET)])
        own = [self._places[SOURCE, n] for n in _names(used, SOURCE)]
        both = self._target(scan).join(new.select(*own, _SOURCE_ROW), self._column(self._bound), "inner")
        return both.select(_FILE, _ROW, _SOURCE_ROW, self._first(matched).alias(_CLAUSE))

    def _first(self, conditions: Sequence[tuple[int, Expression | None]]) -> Column:
        """Return the number of the first clause whose condition is true, -1: none."""
        chosen: Any = F
        for number, condition in conditions:
            chosen = chosen.when(F.lit(True) if condition is None else self._column(condition), F.lit(number))
        return F.lit(-1) if chosen is F else chosen.otherwise(F.lit(-1))

    def _matches(self, pairs: DataFrame, files: pa.Table, new: DataFrame) -> tuple[RowSets, dict[int, RowSets]]:
        """Return the rows of the table that match, and those to which each clause applies."""
        table = bitmaps_of(pairs, _FILE, _ROW, _CLAUSE).toArrow()
        sets: dict[int, RowSets] = {}
        clauses = table.column(_CLAUSE).to_numpy()
        for number in np.unique(clauses).tolist():
            sets[number] = row_sets(table.filter(pa.array(clauses == number)), files.num_rows)
        matched = _none(files)
        for rows in sets.values():
            matched |= rows
        num_pairs = int(table.column("count").to_numpy().sum())
        kinds = [(self.clauses[i].action, self.clauses[i].condition) for i in self._numbers("matched")]
        is_single = bool(kinds or self._numbers("not_matched_by_source")) and kinds != [("delete", None)]
        if is_single and num_pairs > int(matched.cardinalities().sum()):
            raise self._ambiguous(pairs, new)
        sets.pop(-1, None)
        return matched, sets

    def _ambiguous(self, pairs: DataFrame, new: DataFrame) -> MultipleMatchesError:
        twice = (
            pairs.groupBy(_FILE, _ROW)
            .agg(F.count("*").alias("n"), F.min(_SOURCE_ROW).alias(_SOURCE_ROW))
            .where("n > 1")
        )
        shown = _names([self._bound], SOURCE) or list(dict.fromkeys(n for s, n in self._places if s == SOURCE))[:5]
        columns = [F.col(self._places[SOURCE, n]).alias(n) for n in shown]
        found = new.join(twice.limit(1), _SOURCE_ROW).select(*columns).first()
        row = {} if found is None else found.asDict(True)
        return MultipleMatchesError(
            f"Several rows of the source match one row of the table, such as those with {shortened(row)}. Keep one row "
            "of the source for each row of the table, or narrow the merge condition.",
            row=row,
        )

    def _unmatched(self, files: pa.Table, matched: RowSets) -> Iterator[tuple[int, RowSets]]:
        """Yield the rows without a match to which each clause for such rows applies."""
        done = matched
        for number in self._numbers("not_matched_by_source"):
            condition = self.clauses[number].condition
            found = self.changes.positions(files, None if condition is None else on_target(condition))
            both = np.flatnonzero((found.cardinalities() > 0) & (done.cardinalities() > 0))
            yield number, found if not len(both) else RowSets(a - b for a, b in zip(found, done, strict=True))
            done |= found

    def _read(self, predicate: Expression | None, files: pa.Table, sets: Iterable[RowSets]) -> None:
        touched = np.zeros(files.num_rows, np.bool_)
        for rows in sets:
            touched |= rows.cardinalities() > 0
        self.transaction.read(predicate, files.take(number_array(np.flatnonzero(touched))))

    # --- writing ---

    def _write(self, new: DataFrame, pairs: DataFrame, files: pa.Table, chosen: Mapping[int, RowSets]) -> None:
        updated, deleted = _none(files), _none(files)
        for number, rows in chosen.items():
            clause, count = self.clauses[number], int(rows.cardinalities().sum())
            counts = self.counts.updated if clause.action == "update" else self.counts.deleted
            counts[clause.kind] += count
            if clause.action == "update":
                updated |= rows
            else:
                deleted |= rows
        gone = deleted if deleted.cardinalities().any() else None
        again = updated if updated.cardinalities().any() else None
        updates = [n for n, s in chosen.items() if self.clauses[n].action == "update" and s.cardinalities().any()]
        values = None if again is None else self._broadcast_values(updates, new, pairs)
        if again is not None and values is not None:
            self.changes.rewrite_updated(files, gone, again, lambda scan: self._with_values(scan, updates, values))
        else:
            self.changes.drop(files, deleted=gone, updated=again)
            for number in updates:
                rows = self._updated(number, chosen[number], new, pairs, files)
                self.changes.write_updated(SparkRelation(rows))
        if self.changes.num_updated != sum(self.counts.updated.values()):
            raise InternalError(
                f"{sum(self.counts.updated.values())} rows were to be updated, {self.changes.num_updated} were written."
            )
        self._insert(new, pairs)
        self.counts.inserted = self.changes.num_inserted
        if gone is not None or again is not None:
            self.changes.write_changes()

    def _broadcast_values(self, updates: Sequence[int], new: DataFrame, pairs: DataFrame) -> DataFrame | None:
        """Return what updates need of the source, by the place of the row; None if rows can't be rewritten with them.

        They can if the values fit into the memory of each executor, and are simple ones of the columns' own types.
        """
        clauses = [self.clauses[n] for n in updates]
        assignments = [a for c in clauses for a in c.assignments]
        names = _names((a.value for a in assignments), SOURCE)
        kinds = [find(self._rows, (n,))[1].type for n in names]
        own = [find(self.base.schema, a.path)[1].type for a in assignments]
        is_simple = all(
            isinstance(t, PrimitiveType) and not isinstance(t, UserDefinedType) for t in (*kinds, *own)
        ) and not any(a.path[1:] for a in assignments)
        is_matched = all(c.kind == "matched" for c in clauses)
        is_small = sum(self.counts.updated.values()) <= _MOST_ROWS
        if not (self.changes.rewrites_at_once and is_simple and is_matched and is_small):
            return None
        wanted = [self._places[SOURCE, n] for n in names]
        chosen = pairs.where(F.col(_CLAUSE).isin(list(updates))).join(new.select(*wanted, _SOURCE_ROW), _SOURCE_ROW)
        texts = [n for n, t in zip(wanted, kinds, strict=True) if _family(t) in ("string", "binary")]
        if texts:
            sizes = [F.coalesce(F.sum(F.octet_length(n)), F.lit(0)) for n in texts]
            if sum(chosen.agg(*sizes).first() or ()) > _MOST_BYTES:
                return None
        return chosen.select(_place().alias(_PLACE), F.col(_CLAUSE), *wanted)

    def _with_values(self, scan: Any, updates: Sequence[int], values: DataFrame) -> SparkRelation:
        """Return rows of the table in which those that have new values are updated."""
        old = self._target(scan).withColumn(_PLACE, _place()).join(F.broadcast(values), _PLACE, "left")
        columns = []
        for field in self.base.schema.members:
            kept, made = F.col(self._places[TARGET, field.name]), None
            for number in updates:
                given = {a.path: a.value for a in self.clauses[number].assignments}.get((field.name,))
                if given is not None:
                    start: Any = F if made is None else made
                    made = start.when(F.col(_CLAUSE) == number, self._column(given))
            columns.append((kept if made is None else made.otherwise(kept)).alias(field.name))
        return SparkRelation(old.select(*columns))

    def _updated(self, number: int, rows: RowSets, new: DataFrame, pairs: DataFrame, files: pa.Table) -> DataFrame:
        """Return the rows that a clause updates, with their new values."""
        clause, schema = self.clauses[number], self.base.schema
        left_out = frozenset(self.transaction.plan.computed) - clause.assigned
        values = {a.path: a.value for a in clause.assignments}
        made = {f.name: _assigned(schema, (f.name,), values) for f in schema.members if f.name not in left_out}
        carried = self.changes.carried
        touched = np.flatnonzero(rows.cardinalities())
        own = with_numbers(files).take(number_array(touched))
        scan = self.base.scan(
            columns=[(n,) for n in _names(made.values(), TARGET)],
            metadata=(ROW_INDEX, *carried),
            files=FileSet.of(own, keep=rows.take(touched).by_number()),
            constants={FILE_NUMBER: (FILE_NUMBER, _LONG)},
        )
        old = self._target(scan, carried)
        if clause.kind == "matched":
            wanted = [self._places[SOURCE, n] for n in _names(made.values(), SOURCE)]
            partners = pairs.where(F.col(_CLAUSE) == number).join(new.select(*wanted, _SOURCE_ROW), _SOURCE_ROW)
            old = old.join(partners, [_FILE, _ROW])
        columns = [self._column(e).alias(n) for n, e in made.items()]
        return old.select(*columns, *[F.col(h) for h in carried.values()])

    def _insert(self, new: DataFrame, pairs: DataFrame) -> None:
        """Write the rows of the source that match no row, as the clauses specify."""
        clauses = [(i, self.clauses[i].condition) for i in self._numbers("not_matched")]
        if not clauses:
            return
        alone = new.join(pairs.select(_SOURCE_ROW), _SOURCE_ROW, "left_anti")
        alone = alone.withColumn(_CLAUSE, self._first(clauses))
        for number, _ in clauses:
            values = [self._column(a.value).alias(a.path[0]) for a in self.clauses[number].assignments]
            self.changes.write_inserted(SparkRelation(alone.where(F.col(_CLAUSE) == number).select(*values)))

    # --- columns ---

    def _target(self, scan: Any, carried: Mapping[str, str] = {}) -> DataFrame:
        """Return rows of the table under the names of their places, which no column of the source has."""
        rows = frame(self.spark, scan, is_even=True)
        names = {n: self._places[TARGET, n] for n in private.column_names(rows) if (TARGET, n) in self._places}
        names |= {FILE_NUMBER: _FILE, ROW_INDEX: _ROW, **carried}
        return rows.select(*[F.col(quote_name(n)).alias(names[n]) for n in private.column_names(rows)])

    def _column(self, expression: Expression) -> Column:
        return to_column(expression, self._place, self.base.plugins.functions, strict_in=self.spark)

    def _place(self, leaf: Leaf) -> Expression:
        return (
            ast.Column((self._places[leaf.path[0], leaf.path[1]], *leaf.path[2:]))
            if isinstance(leaf, ast.Column)
            else leaf
        )


def _place() -> Column:
    """Return the place of a row as one number."""
    return F.shiftleft(F.col(_FILE), _POSITION_BITS).bitwiseOR(F.col(_ROW))


@contextmanager
def _cached(rows: DataFrame) -> Iterator[DataFrame]:
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _none(files: pa.Table) -> RowSets:
    return RowSets.from_positions(files.num_rows, np.empty(0, np.int64), np.empty(0, np.int64))


def _check_names(rows: Schema) -> None:
    lower = [n.lower() for n in rows.names]
    twice = next((n for n in rows.names if lower.count(n.lower()) > 1), None)
    if twice is not None:
        raise SchemaMismatchError(f"The source has two columns {twice!r} (case does not count).", column=twice)


def _expressions(clauses: Sequence[BoundClause]) -> Iterator[Expression]:
    for clause in clauses:
        if clause.condition is not None:
            yield clause.condition
        yield from (a.value for a in clause.assignments)


def _names(expressions: Iterable[Expression], side: str) -> list[str]:
    """Return the columns of a side that expressions read."""
    paths = [leaf.path for e in expressions for leaf in leaves(e) if isinstance(leaf, ast.Column)]
    return list(dict.fromkeys(p[1] for p in paths if p[0] == side))


def _assigned(schema: StructType, path: Path, values: Mapping[Path, Expression]) -> Expression:
    """Return the value at a path: a new one, or a struct made again with new fields."""
    if path in values:
        return values[path]
    if not any(p[: len(path)] == path for p in values):
        return ast.Column((TARGET, *path))
    t: Any = StructType(schema.members)
    for name in path:
        t = t.get(name).type
    parts = [(Constant(f.name, _STRING), _assigned(schema, (*path, f.name), values)) for f in t.members]
    return Call("named_struct", tuple(e for pair in parts for e in pair))


def _kind(key: Key, schema: StructType) -> Any:
    found = schema.get(key.target.path[1]) if isinstance(key.target, ast.Column) and len(key.target.path) == 2 else None
    return None if found is None else found.type


def _family(kind: Any) -> str:
    return str(kind.type).partition("(")[0] if isinstance(kind, PrimitiveType) else ""


def _is_compared(key: Key, schema: StructType) -> bool:
    """Whether a key is a column of the table whose values bounds of the source's side can be compared with."""
    return isinstance(key.source, ast.Column) and _family(_kind(key, schema)) in _COMPARED


def _range_test(key: Key, schema: StructType, low: Any, high: Any) -> Expression | None:
    """Return a test that holds for every row of the table with a key from one bound to the other; days are numbers."""
    if low is None:
        return None
    target, kind = on_target(key.target), _kind(key, schema)
    if _family(kind) == "date":
        if not 0 < low + _FIRST_DAY <= high + _FIRST_DAY <= datetime.date.max.toordinal():
            return None
        low, high = datetime.date.fromordinal(low + _FIRST_DAY), datetime.date.fromordinal(high + _FIRST_DAY)
    inside = Call("and", (Call(">=", (target, Constant(low, kind))), Call("<=", (target, Constant(high, kind)))))
    return Call("or", (inside, Call("isnull", (target,)))) if key.matches_null else inside
