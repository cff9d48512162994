"""Write rows in place of the rows of a table that they match: by equal columns, or by a condition on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from delta_core.errors import InvalidArgumentError, SchemaMismatchError, did_you_mean
from delta_core.expressions.ast import Call, Column, Expression, all_of, leaves
from delta_core.kernel.commit.transaction import CommitResult
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.source import open_source
from delta_core.operations.merge.builder import MergeClause
from delta_core.operations.merge.candidate_files import Matching
from delta_core.operations.merge.clauses import SOURCE, MergeNames, sql_text
from delta_core.operations.merge.decision_store import DecisionRuns
from delta_core.operations.merge.source import load_source
from delta_core.operations.row_changes import RowChanges
from delta_core.operations.write import TableWrite, WriteOptions, run_write
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType

__all__ = ["ReplaceOptions", "check_replacing", "replaced_columns", "replacing_parameters", "write_replacing"]

#: What a condition calls the table and the new rows, as in delta-spark.
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
    return run_write(context, options, lambda base: _ReplacingWrite(context, base, source, options), known)


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
        if self.options.replace_on is not None:
            return self.options.replace_on
        columns = replaced_columns(self.transaction.table.schema, self.options.replace_using)
        t, s = _ALIASES
        return all_of([Call("=", (Column((t, c)), Column((s, c)))) for c in columns])

    def _replace(self, base: Snapshot, predicate: Expression | None) -> None:
        """Drop the rows that a new row matches; these are read from the files just written, in the table's types."""
        new = FileSet.of(self.written[0].adds)
        changes = self.row_changes = RowChanges(base, self.transaction, self.options.writer_properties)
        condition = self._condition()
        bound = self._names(base.schema, base.schema).condition(condition)
        needed = {leaf.path[1] for leaf in leaves(bound) if isinstance(leaf, Column) and leaf.path[0] == SOURCE}
        rows = Schema([f for f in base.schema.fields if f.name in needed] or base.schema.fields[:1])
        scan = base.scan([(f.name,) for f in rows.fields], files=new)
        with load_source(scan.to_reader(), rows, base.state.types) as source:
            names = self._names(base.schema, rows)
            matching = Matching(changes, source, rows, names, condition, [MergeClause("matched", "delete")])
            with DecisionRuns() as gone:
                decided = matching.decide(gone)
                deleted = gone.row_sets(decided.files)
        if gone.num_rows:
            changes.drop(decided.files, deleted=deleted)
        self.finish_dropped(changes, gone.num_rows)
