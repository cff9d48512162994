"""Write rows in place of the rows of a table that they match: by equal columns, or by a condition on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from delta_core.errors import InvalidArgumentError, SchemaMismatchError, did_you_mean
from delta_core.expressions import to_condition
from delta_core.expressions.ast import Call, Column, Expression, all_of, leaves
from delta_core.expressions.printing import format_sql
from delta_core.kernel.commit.transaction import CommitResult
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.source import open_source
from delta_core.operations.changes import Changed, ChangeOptions, ChangeTarget, Dropped, TableChanges
from delta_core.operations.merge.builder import MergeClause
from delta_core.operations.merge.candidate_files import Matching
from delta_core.operations.merge.clauses import SOURCE, MergeNames, sql_text
from delta_core.operations.merge.decision_store import DecisionRuns
from delta_core.operations.merge.source import load_source, source_schema, source_types
from delta_core.operations.row_changes import begin_changes, has_applied, predicate_text
from delta_core.operations.write import TableWrite, WriteOptions, run_write
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType

__all__ = [
    "ReplaceOptions",
    "ReplaceRowsOptions",
    "check_replacing",
    "drop_matching",
    "matching_condition",
    "replace_rows",
    "replaced_columns",
    "replacing_parameters",
    "write_replacing",
]

#: The names of the table and the new rows in a condition, as in delta-spark.
_ALIASES = ("t", "s")


class ReplaceOptions(WriteOptions, frozen=True):
    """How rows are written in place of those that they match, with mode ``overwrite``.

    Parameters
    ----------
    replace_using : sequence of str
        Rows of the table that are equal to a new row in these columns are replaced; null equals nothing.
    replace_on : str or Expression, optional
        Rows of the table for which the condition is true with a new row are replaced. The table's columns are those of
        ``t``, the new rows' those of ``s``.
    """

    replace_using: Sequence[str] = ()
    replace_on: Any = None


def write_replacing(
    context: TableContext, data: Any, options: ReplaceOptions, known: Snapshot | None = None
) -> CommitResult[Snapshot] | None:
    """Write rows in place of those that they match, and commit; a table that does not exist is created.

    The arguments, results and errors are those of `operations.write.write_table`.

    Raises
    ------
    InvalidArgumentError
        The options exclude each other.
    ExpressionError, ColumnNotFoundError, SchemaMismatchError
        The condition, or a column, does not fit the table; nothing was written.
    """
    check_replacing(options, options.replace_using, options.replace_on)
    source = open_source(data)
    latest = None if known is None else known.latest
    return run_write(context, options, lambda base: _ReplacingWrite(context, base, source, options), latest)


def check_replacing(options: WriteOptions, using: Sequence[str], on: Any) -> None:
    """Check that options of a write that replaces matching rows do not exclude each other.

    Raises
    ------
    InvalidArgumentError
        If they do.
    """
    if using and on is not None:
        raise InvalidArgumentError("replace_using and replace_on exclude each other.")
    if options.mode != "overwrite":
        raise InvalidArgumentError(
            "replace_using and replace_on specify which rows are replaced: they need mode='overwrite'."
        )
    if (
        options.replace_where is not None
        or options.partition_overwrite == "dynamic"
        or options.schema_mode == "overwrite"
    ):
        raise InvalidArgumentError(
            "replace_using and replace_on exclude a predicate, dynamic partition overwrite and schema_mode='overwrite'."
        )
    if not options.data_change:
        raise InvalidArgumentError(
            "data_change=False only arranges rows again: it excludes replace_using and replace_on."
        )


def replacing_parameters(using: Sequence[str], on: Any) -> dict[str, str]:
    """Return what a commit's operation parameters state, named as delta-spark's."""
    found = {"replaceUsingCols": f"({', '.join(using)})"} if using else {}
    return found if on is None else {**found, "replaceOnCond": on if isinstance(on, str) else str(on)}


def replaced_columns(schema: StructType, using: Sequence[str]) -> list[str]:
    """Return the columns of ``replace_using`` as the table spells them.

    Raises
    ------
    SchemaMismatchError
        If the table lacks one.
    """
    found = []
    for name in using:
        column = schema.get(name)
        if column is None:
            names = schema.names
            raise SchemaMismatchError(
                f"Column {name!r} of replace_using is not in the table; its columns are: {', '.join(names)}."
                f"{did_you_mean(name, names)}",
                column=name,
            )
        found.append(column.name)
    return found


class ReplaceRowsOptions(ChangeOptions, frozen=True):
    """Which rows new ones replace.

    Parameters
    ----------
    predicate : str, filters or Expression, optional
        The rows for which it is true, and the new rows must fit it. None: all rows, unless the new rows choose.
    replace_using, replace_on
        As of `ReplaceOptions`; they exclude each other and a predicate.
    """

    replace_using: Sequence[str] = ()
    replace_on: Any = None


def replace_rows(base: Snapshot | ChangeTarget, data: Any, options: ReplaceRowsOptions) -> Changed:
    """Write rows into a table of any format in place of others, and commit.

    Parameters
    ----------
    base : Snapshot or ChangeTarget
        The latest version that the caller has; a newer one is looked for.
    data : object
        Rows, as `write.source.open_source` takes them; a stream is read once.
    options : ReplaceRowsOptions
        Which rows are replaced.

    Raises
    ------
    InvalidArgumentError
        The options exclude each other.
    ExpressionError, ColumnNotFoundError, SchemaMismatchError, ConstraintViolationError
        The rows, or the condition, do not fit the table; nothing was committed.
    CommitConflictError
        Another writer's commit contradicts this one. The files that were written are deleted again.
    """
    using, on = options.replace_using, options.replace_on
    given = [n for n in ("predicate", "replace_using", "replace_on") if getattr(options, n) not in (None, ())]
    if len(given) > 1:
        raise InvalidArgumentError(f"{' and '.join(given)} exclude each other.")
    latest, source = base.latest(), open_source(data)
    if has_applied(latest, options.transactions):
        return Changed(latest, {})
    predicate = to_condition(options.predicate, latest.schema, functions=latest.functions)
    shown = {} if predicate is None else {"predicate": predicate_text(options.predicate, predicate)}
    text = None if on is None else sql_text(on)
    changes = begin_changes(
        latest, "WRITE", {"mode": "Overwrite", **shown, **replacing_parameters(using, text)}, options
    )
    with changes:
        # first the new rows: a change of the table's rows is recorded in another way if others are recorded beside it
        if using or on is not None:
            dropped = _replace_matching(changes, source, options)
        else:
            checks = () if predicate is None else (RowCheck("", "replaceWhere", predicate, sql=format_sql(predicate)),)
            changes.write_inserted(changes.relations.from_arrow(source), checks=checks)
            dropped = changes.drop_where(predicate)
        changes.write_changes()
        return changes.commit(
            options, {**changes.metrics(), **dropped.metrics(), "numOutputRows": changes.num_inserted}
        )


def _replace_matching(changes: TableChanges, source: Any, options: ReplaceRowsOptions) -> Dropped:
    base = changes.base
    rows = source_schema(source.schema, base.schema)
    with load_source(source, rows, source_types(base.types)) as loaded:
        changes.write_inserted(changes.relations.from_arrow(loaded))
        names = MergeNames(base.schema, rows, *_ALIASES, base.functions)
        condition = matching_condition(base.schema, options.replace_using, options.replace_on)
        return Dropped(drop_matching(changes, loaded, rows, names, condition))


def matching_condition(table: StructType, using: Sequence[str], on: Any) -> Any:
    """Return the condition over the columns of both aliases under which a row is replaced.

    Raises
    ------
    SchemaMismatchError
        If the table lacks a column of ``using``.
    """
    if on is not None:
        return on
    t, s = _ALIASES
    return all_of([Call("=", (Column((t, c)), Column((s, c)))) for c in replaced_columns(table, using)])


def drop_matching(changes: TableChanges, source: pa.Table, rows: Schema, names: MergeNames, condition: Any) -> int:
    """Drop the rows of a table that match a row of a source, and return how many.

    Parameters
    ----------
    changes : TableChanges
        Of the table.
    source : pyarrow.Table
        As `load_source` returns it.
    rows : Schema
        The columns of the source.
    names : MergeNames
        Binds the condition.
    condition : str or Expression
        Which rows match.
    """
    matching = Matching(changes, source, rows, names, condition, [MergeClause("matched", "delete")])
    with DecisionRuns() as gone:
        decided = matching.decide(gone)
        if gone.num_rows:
            changes.drop(decided.files, deleted=gone.row_sets(decided.files))
        return gone.num_rows


class _ReplacingWrite(TableWrite):
    """A write whose rows decide what they replace."""

    options: ReplaceOptions

    def moved_to(self, base: Snapshot) -> TableWrite:
        """Return the same write for a table that another writer created meanwhile."""
        return _ReplacingWrite(self.context, base, self._rows_again(base), self.options)

    def _parameters(self) -> dict[str, Any]:
        on = self.options.replace_on
        text = None if on is None else sql_text(on)
        return {**super()._parameters(), **replacing_parameters(self.options.replace_using, text)}

    def _write_rows(self, predicate: Expression | None) -> None:
        if self.base is not None:
            schema = self.transaction.table.schema
            self._names(schema, schema).condition(self._condition())
        super()._write_rows(predicate)

    def _names(self, table: StructType, rows: StructType) -> MergeNames:
        return MergeNames(table, rows, *_ALIASES, self.transaction.plugins.functions)

    def _condition(self) -> Any:
        """Return the condition over the columns of both aliases."""
        options = self.options
        return matching_condition(self.transaction.table.schema, options.replace_using, options.replace_on)

    def _replace(self, base: Snapshot, predicate: Expression | None) -> None:
        """Drop the rows that a new row matches; these are read from the files just written, in the table's types."""
        new = FileSet.of(self.written[0].adds)
        changes = self._begin_changes(base)
        condition = self._condition()
        bound = self._names(base.schema, base.schema).condition(condition)
        needed = {leaf.path[1] for leaf in leaves(bound) if isinstance(leaf, Column) and leaf.path[0] == SOURCE}
        rows = Schema([f for f in base.schema.members if f.name in needed] or base.schema.members[:1])
        scan = base.scan([(f.name,) for f in rows.members], files=new)
        with load_source(scan.to_reader(), rows, base.state.types) as source:
            gone = drop_matching(changes, source, rows, self._names(base.schema, rows), condition)
        self._finish_changes(changes, Dropped(gone + changes.num_copied, changes.num_copied))
