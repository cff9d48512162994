"""MERGE: rows of a source update, delete and insert rows of the table.

The columns that the condition and the clauses need are read of the files that can match, and joined with the source.
This decides about each row; then the other columns are read, of updated rows alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from delta_core.expressions.ast import Column
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.source import open_source
from delta_core.operations.changes import Changed, ChangeOptions, ChangeTarget, TableChanges, Timing
from delta_core.operations.merge.builder import MergeClause
from delta_core.operations.merge.candidate_files import Matching, source_blocks
from delta_core.operations.merge.clauses import SOURCE, TARGET, MergeNames, describe_clauses, evolve_schema, sql_text
from delta_core.operations.merge.decision_store import DecisionRuns
from delta_core.operations.merge.key_join import JoinedRows
from delta_core.operations.merge.source import load_source, source_schema, source_types, usable_columns
from delta_core.operations.merge.target_scan import BLOCK_ROWS, CompiledClause, Decided, first_clause
from delta_core.operations.merge.updated_rows import UpdatedRows, converted_values
from delta_core.operations.merge.value_fitting import FittingRules
from delta_core.operations.row_changes import begin_changes, has_applied
from delta_core.operations.temporary import check_limits
from delta_core.runtime.progress_bars import shows_progress
from delta_core.schema.evolution import Accept
from delta_core.schema.fields import Schema
from delta_core.schema.types import PrimitiveType, StructType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MergeCounts", "MergeOptions", "begin_merge", "merge_rows", "run_merge"]

_LONG = PrimitiveType("long")


class MergeOptions(ChangeOptions, frozen=True):
    """How a source is merged; ``predicate`` specifies which rows of the table and of the source match.

    Parameters
    ----------
    clauses : tuple of MergeClause
        Of each kind, the first one applies whose condition is true.
    source_alias, target_alias : str, optional
        Qualifiers of columns.
    merge_schema : bool
        Whether columns that only the source has are added to the table, types are widened if the table allows it, and
        structs may lack fields.
    null_on_failed_cast : bool
        Whether a value that does not fit its column's type becomes null instead of an error.
    fitting : FittingRules
        How values become those of structs.
    is_dry : bool
        Whether nothing is written: only the metrics are requested.
    max_memory_bytes, max_temporary_bytes : int, optional
        Of the source, see `load_source`, and of the decisions about rows of the table, see `DecisionRuns`.
    """

    clauses: tuple[MergeClause, ...] = ()
    source_alias: str | None = None
    target_alias: str | None = None
    merge_schema: bool = False
    null_on_failed_cast: bool = False
    fitting: FittingRules = FittingRules()
    is_dry: bool = False
    max_memory_bytes: int | None = None
    max_temporary_bytes: int | None = None


@shows_progress
def merge_rows(base: Snapshot | ChangeTarget, source: Any, options: MergeOptions) -> Changed:
    """Merge a source into a table and commit. No changed row and no added column: no commit.

    Parameters
    ----------
    base : Snapshot or ChangeTarget
        The latest version that the caller has; a newer one is looked for.
    source : object
        Rows, as `write.source.open_source` takes them; a stream is read once.
    options : MergeOptions
        The rows that match, and the changes to them.

    Raises
    ------
    ExpressionError, ColumnNotFoundError, SchemaMismatchError
        A condition or a value does not fit the table and the source.
    MultipleMatchesError
        Several rows of the source match one row of the table.
    ConstraintViolationError
        A row that is written breaks a constraint; nothing was committed.
    CommitConflictError
        Another writer's commit contradicts this one. The files that were written are deleted again.
    """
    check_limits(options.max_memory_bytes, options.max_temporary_bytes)
    latest = base.latest()
    rows = open_source(source)
    if has_applied(latest, options.transactions):
        return Changed(latest, MergeCounts().metrics())
    return run_merge(latest, rows, options)


def run_merge(base: Snapshot | ChangeTarget, source: pa.Table | pa.RecordBatchReader, options: MergeOptions) -> Changed:
    """Merge into a version; raises what `merge_rows` raises."""
    source, unusable = usable_columns(source, base.schema, options.merge_schema)
    rows = source_schema(source.schema, base.schema)
    limits = options.max_memory_bytes, options.max_temporary_bytes
    with load_source(source, rows, source_types(base.types), *limits) as loaded:
        merge = _Merge(base, loaded, rows, options, unusable)
        if not isinstance(source, pa.Table) and loaded.nbytes > (options.max_memory_bytes or loaded.nbytes):
            merge.spilled = loaded.nbytes
        with merge.changes:
            return merge.run()


class MergeCounts(Struct):
    """The metrics of a merge, beside those of `RowChanges`."""

    source: int = 0
    inserted: int = 0
    updated: dict[str, int] = field(default_factory=lambda: {"matched": 0, "not_matched_by_source": 0})
    deleted: dict[str, int] = field(default_factory=lambda: {"matched": 0, "not_matched_by_source": 0})
    scanned: int = 0
    skipped: int = 0
    timing: Timing = field(default_factory=Timing)

    def metrics(self, changes: Mapping[str, int] = {}) -> dict[str, int]:
        """Return the operation metrics, named as delta-spark's; ``changes`` are those of the `RowChanges`."""
        updated, deleted = sum(self.updated.values()), sum(self.deleted.values())
        copied = changes.get("numCopiedRows", 0)
        return {
            "numSourceRows": self.source,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsMatchedUpdated": self.updated["matched"],
            "numTargetRowsNotMatchedBySourceUpdated": self.updated["not_matched_by_source"],
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedDeleted": self.deleted["matched"],
            "numTargetRowsNotMatchedBySourceDeleted": self.deleted["not_matched_by_source"],
            "numTargetRowsCopied": copied,
            "numOutputRows": copied + updated + self.inserted,
            "numTargetFilesScanned": self.scanned,
            "numTargetFilesSkippedDuringScan": self.skipped,
            "numTargetFilesAdded": changes.get("numAddedFiles", 0),
            "numTargetFilesRemoved": changes.get("numRemovedFiles", 0),
            "numTargetBytesAdded": changes.get("numAddedBytes", 0),
            "numTargetBytesRemoved": changes.get("numRemovedBytes", 0),
            "numTargetDeletionVectorsAdded": changes.get("numDeletionVectorsAdded", 0),
            "numTargetDeletionVectorsUpdated": changes.get("numDeletionVectorsUpdated", 0),
            "numTargetDeletionVectorsRemoved": changes.get("numDeletionVectorsRemoved", 0),
            "numTargetChangeFilesAdded": changes.get("numAddedChangeFiles", 0),
            **self.timing.metrics(),
        }


def begin_merge(base: Snapshot | ChangeTarget, rows: StructType, options: MergeOptions) -> TableChanges:
    """Return changes for a merge of rows with these columns; the table gets those that it is to be evolved by.

    Raises
    ------
    SchemaMismatchError
        If a column is a struct, list or map on one side only.
    """
    shown = {
        "predicate": json.dumps([sql_text(options.predicate)]),
        "matchedPredicates": describe_clauses(options.clauses, "matched"),
        "notMatchedPredicates": describe_clauses(options.clauses, "not_matched"),
        "notMatchedBySourcePredicates": describe_clauses(options.clauses, "not_matched_by_source"),
    }

    def evolve(schema: Schema, accept: Accept) -> Schema:
        return evolve_schema(schema, rows, options.clauses, accept)

    return begin_changes(base, "MERGE", shown, options, evolve if options.merge_schema else None)


class _Merge:
    """One merge: the decisions about rows, what is written for them, the commit."""

    def __init__(
        self,
        base: Snapshot | ChangeTarget,
        source: pa.Table,
        rows: Schema,
        options: MergeOptions,
        unusable: Mapping[str, str],
    ) -> None:
        self.options = options
        self.counts = MergeCounts()
        self.given = base
        self.changes = begin_merge(base, rows, options)
        #: The version that is merged into, as the table will be defined.
        self.base = self.changes.base
        self.source = source
        #: Bytes of the source that are in a temporary file.
        self.spilled = 0
        names = MergeNames(
            self.base.schema,
            rows,
            options.target_alias,
            options.source_alias,
            self.base.functions,
            options.null_on_failed_cast,
            self.changes.default_of,
            options.merge_schema,
            unusable,
            options.fitting,
        )
        self.matching = Matching(self.changes, source, rows, names, options.predicate, options.clauses)
        self.clauses = self.matching.clauses
        for clause in self.clauses:
            if clause.bound.action == "update":
                values = (leaf for _, value in clause.values for leaf in value.leaves)
                used = {v.path[1:] for v in values if isinstance(v, Column) and v.path[0] == TARGET}
                self.changes.check_assigned(clause.bound.assigned, used)

    def run(self) -> Changed:
        """Decide about all rows, write what changes, and commit."""
        self.counts.source = self.source.num_rows
        temporary = self.options.max_temporary_bytes
        if temporary is not None:
            temporary = max(0, temporary - self.spilled)
        with DecisionRuns(self.options.max_memory_bytes, temporary) as runs:
            return self._run(self.matching.decide(runs))

    def _run(self, decided: Decided) -> Changed:
        self.counts.scanned, self.counts.skipped = self.matching.scanned, self.matching.skipped
        inserts = self._chosen_inserts(decided.is_matched)
        self.counts.timing.scanned()
        self._count(decided.decisions, inserts)
        is_changed = decided.decisions.num_rows or self.counts.inserted or self.changes.changes_definition
        is_changed = is_changed or self.options.commits_empty
        if self.options.is_dry or not is_changed:
            return Changed(self.given, self.counts.metrics())
        self._write(decided, inserts)
        return self.changes.commit(self.options, self.counts.metrics(self.changes.metrics()))

    # --- inserts ---

    def _chosen_inserts(self, is_matched: NDArray[np.bool_]) -> list[tuple[CompiledClause, NDArray[np.int64]]]:
        """Return the rows of the source that each clause inserts."""
        clauses = [c for c in self.clauses if c.bound.kind == "not_matched"]
        chosen: dict[int, list[NDArray[np.int64]]] = {c.number: [np.zeros(0, np.int64)] for c in clauses}
        for first, batch in source_blocks(self.source) if clauses else ():
            rows = JoinedRows({SOURCE: (batch, None)}, batch.num_rows)
            found = first_clause(clauses, rows, ~is_matched[first : first + batch.num_rows])
            for number, kept in chosen.items():
                kept.append(np.flatnonzero(found == number) + first)
        return [(c, np.concatenate(chosen[c.number])) for c in clauses]

    def _count(self, decisions: DecisionRuns, inserts: Sequence[tuple[CompiledClause, NDArray[np.int64]]]) -> None:
        found = decisions.counts(len(self.clauses))
        for clause in self.clauses:
            bound = clause.bound
            if bound.action != "insert":
                counts = self.counts.updated if bound.action == "update" else self.counts.deleted
                counts[bound.kind] += int(found[clause.number])
        self.counts.inserted = sum(len(rows) for _, rows in inserts)

    # --- writing ---

    def _write(self, decided: Decided, inserts: Sequence[tuple[CompiledClause, NDArray[np.int64]]]) -> None:
        decisions, files = decided.decisions, decided.files
        is_update = np.array([c.bound.action == "update" for c in self.clauses], np.bool_)
        counts = decisions.counts(len(self.clauses))
        if decisions.num_rows:
            deleted, updated = (decisions.row_sets(files, chosen) for chosen in (~is_update, is_update))
            self.changes.drop(files, deleted=deleted, updated=updated)
        for clauses in self._update_groups():
            if any(counts[c.number] for c in clauses):
                rows = UpdatedRows(self.changes, self.columns, self.source, clauses, decisions, files)
                self.changes.write_updated(self.changes.relations.from_arrow(rows.reader()))
        groups = self._insert_groups(inserts)
        for i, group in enumerate(groups):
            new = self.changes.relations.from_arrow(self._inserted(group))
            self.changes.write_inserted(new, task_index=i, num_tasks=len(groups))
        if decisions.num_rows:
            self.changes.write_changes()

    def _update_groups(self) -> list[list[CompiledClause]]:
        """Return the updates in groups that leave the same computed columns to the table."""
        computed = self.changes.computed
        groups: dict[frozenset[str], list[CompiledClause]] = {}
        for clause in self.clauses:
            if clause.bound.action == "update":
                groups.setdefault(computed & clause.bound.assigned, []).append(clause)
        return list(groups.values())

    def _insert_groups(
        self, inserts: Sequence[tuple[CompiledClause, NDArray[np.int64]]]
    ) -> list[list[tuple[CompiledClause, NDArray[np.int64]]]]:
        """Return the inserts in groups that assign the same columns: the others are filled as the table specifies."""
        groups: dict[frozenset[str], list[tuple[CompiledClause, NDArray[np.int64]]]] = {}
        for clause, rows in inserts:
            if len(rows):
                groups.setdefault(clause.bound.assigned, []).append((clause, rows))
        return list(groups.values())

    def _inserted(self, group: Sequence[tuple[CompiledClause, NDArray[np.int64]]]) -> pa.RecordBatchReader:
        names = [f.name for f in self.base.schema if f.name in group[0][0].bound.assigned]
        schema = pa.schema([pa.field(n, self.columns[n]) for n in names])

        def batches() -> Iterator[pa.RecordBatch]:
            for clause, chosen in group:
                for first in range(0, len(chosen), BLOCK_ROWS):
                    own = chosen[first : first + BLOCK_ROWS]
                    rows = JoinedRows({SOURCE: (self.source, own)}, len(own))
                    made = {
                        path[0]: converted_values(rows.evaluate(value), self.columns[path[0]], path)
                        for path, value in clause.values
                    }
                    yield pa.RecordBatch.from_arrays([made[n] for n in names], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """The columns of the table."""
        return self.matching.columns
