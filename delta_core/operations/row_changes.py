"""Changes of rows of a Delta table: rows found, dropped, written again and recorded, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.engines.interface import Relation, Relations
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import InternalError
from delta_core.expressions.ast import NUM_RECORDS, Column, Expression
from delta_core.expressions.printing import format_sql
from delta_core.expressions.sql import portable_sql
from delta_core.kernel.commit.intents import READ_TO_REMOVE, read_columns, removed_files
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import decode_paths
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernel.scan.plan import ROW_INDEX
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.layout import arrow_type
from delta_core.kernel.write.plan import Origin
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, is_valid, number_array, one_array
from delta_core.kernels.memory import release_unused
from delta_core.kernels.row_set import RowSet, RowSets
from delta_core.operations.changes import (
    FILE_NUMBER,
    Changed,
    ChangeOptions,
    ChangeTarget,
    Dropped,
    Evolve,
    TableChanges,
)
from delta_core.operations.facts import has_transactions, live_rows
from delta_core.operations.progress import OperationProgress, ProgressReport
from delta_core.operations.rewrite import (
    carried_columns,
    not_selected,
    relations_of,
    rewrite_rows,
    selects_partitions,
    write_change_rows,
)
from delta_core.schema.fields import Path
from delta_core.schema.types import DataType, PrimitiveType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RowChanges", "begin_changes", "has_applied", "predicate_text", "with_numbers"]

_LONG = PrimitiveType("long")
#: A file is written again although it could get a deletion vector if at least this many of its rows are deleted for
#: each one that remains: to write a row takes about as long as to fetch nine from a store of 100 MB/s, so that the
#: first scan which need not fetch the deleted rows makes up for it.
DELETED_FOR_ONE_LEFT = 9
#: And if the deleted rows take this many bytes: less is not worth a conflict with a writer that changes the rows that
#: remain, which could have added to a vector.
DELETED_BYTES = 8 << 20
#: Writes of this many bytes return their memory before the next step needs its own.
RELEASED_BYTES = 8 << 20


class RowChanges:
    """The `TableChanges` of Delta.

    Parameters
    ----------
    base : Snapshot
        The rows that are read, in the schema of the transaction's target.
    properties : WriterProperties, optional
        Of the files that are written.
    progress : function(OperationProgress), optional
        Called as rows are found and written.
    data_change : bool
        False if the rows that are written are those that they replace.
    deletion_vectors : bool
        Whether rows are dropped by deletion vectors where the table has them enabled.

    Attributes
    ----------
    num_copied, num_updated, num_inserted : int
        Rows written so far: those of rewritten files that did not change, updated and inserted ones.
    """

    def __init__(
        self,
        base: Snapshot,
        transaction: Transaction[Snapshot],
        properties: WriterProperties | None,
        progress: Callable[[OperationProgress], None] | None = None,
        data_change: bool = True,
        deletion_vectors: bool = True,
    ) -> None:
        self.progress: ProgressReport = ProgressReport(progress)
        self.base = base
        self.transaction = transaction
        self.num_copied: int = 0
        self.num_updated: int = 0
        self.num_inserted: int = 0
        self._properties = properties
        self._data_change = data_change
        self._deletion_vectors = deletion_vectors
        self._written: list[Written] = []
        self._recorded: Written | None = None
        self._changes: list[tuple[Scan, str]] = []
        self._removed: list[pa.Table] = []
        self._vectors = {"Added": 0, "Updated": 0, "Removed": 0}

    @property
    def relations(self) -> Relations:
        """The engine's relations.

        Raises
        ------
        UnsupportedOperationError
            If the engine has none.
        """
        return relations_of(self.base.engine)

    @property
    def carried(self) -> dict[str, str]:
        """The values that updated rows keep: metadata column of a scan to the column of the rows that are written."""
        return carried_columns(self.transaction.plan, "updated")

    @property
    def changes_definition(self) -> bool:
        """Whether the commit has new metadata."""
        return self.transaction.intents.metadata is not None

    @property
    def carried_types(self) -> dict[str, pa.DataType]:
        """The Arrow types of `carried`, by metadata column."""
        plan = self.transaction.plan
        types = {h.name: arrow_type(h.type, plan.table.types) for h in plan.hidden}
        return {metadata: types[name] for metadata, name in self.carried.items()}

    @property
    def computed(self) -> frozenset[str]:
        """Columns whose values the table calculates if rows are written without them."""
        return frozenset(self.transaction.plan.computed)

    def default_of(self, path: Path, updates: bool = False) -> Expression | None:
        """Return the default of a column; None if it is calculated from the new row."""
        return self.transaction.plan.default_of(path, updates=updates)

    def check_assigned(self, names: Collection[str], used: Collection[Path] = ()) -> None:
        """Reject assignments to columns whose values only the table assigns."""
        self.transaction.plan.check_assigned(names)

    # --- finding rows ---

    def whole_units(self, predicate: Expression | None, *, to_remove: bool) -> tuple[pa.Table, int | None] | None:
        """Return the files of partitions that a predicate selects, and their rows; None if it tests other columns."""
        base = self.base
        if predicate is not None and not selects_partitions(predicate, base.state.partition_columns):
            return None
        files = base.files if predicate is None else base.scan(predicate=predicate).file_set
        table = files.columns(READ_TO_REMOVE if to_remove else read_columns(base.action_fields))
        self.transaction.read(predicate, table)
        return table, live_rows(files, table) if to_remove else None

    def candidates(self, predicate: Expression | None) -> tuple[pa.Table, int]:
        """Return the files that may hold rows for which a predicate is true, and how many others there are."""
        files = self.files(predicate)
        return files, self.base.files.count - files.num_rows

    def read(self, predicate: Expression | None, files: pa.Table) -> None:
        """Note what the transaction depends on."""
        self.transaction.read(predicate, files)

    def numbered_rows(self, files: pa.Table, predicate: Expression | None, columns: Sequence[str | Path]) -> Scan:
        """Return rows of files with `FILE_NUMBER`, a column of ``files``, and `ROW_INDEX`."""
        return self.base.scan(
            columns,
            metadata=(ROW_INDEX,),
            predicate=predicate,
            files=FileSet.of(files),
            constants={FILE_NUMBER: (FILE_NUMBER, _LONG)},
        )

    def find(self, predicate: Expression | None) -> tuple[pa.Table, RowSets]:
        """Return the files with rows for which a predicate is true, and these rows; both count as read."""
        files = self.files(predicate)
        rows = self.positions(files, predicate)
        touched = np.flatnonzero(rows.cardinalities())
        files, rows = pc.take(files, number_array(touched)), rows.take(touched)
        self.transaction.read(predicate, files)
        return files, rows

    def files(self, predicate: Expression | None) -> pa.Table:
        """Return the files that may hold rows for which a predicate is true, with all columns that changes need."""
        return self.base.scan(predicate=predicate).file_set.columns(read_columns(self.base.action_fields))

    def positions(self, files: pa.Table, predicate: Expression | None) -> RowSets:
        """Return the physical positions, in each of some files, of the rows for which a predicate is true.

        Only the columns that the predicate uses are read.
        """
        found = RowSets.from_positions(files.num_rows, np.empty(0, np.int64), np.empty(0, np.int64))
        if not files.num_rows:
            return found
        self.progress.begin("find", files.column("size"))
        for part in self.progress.parts(with_numbers(files)):
            rows = self.relations.scan(self.numbered_rows(part, predicate, []))
            places = self.relations.select(rows, [(n, Column((n,))) for n in (FILE_NUMBER, ROW_INDEX)])
            found |= self.relations.positions(places, files.num_rows, lambda n: self.progress.add(rows=n))
        return found

    def rows(
        self,
        files: pa.Table,
        rows: RowSets | None,
        columns: Sequence[str | Path] | None = None,
        metadata: Sequence[str] = (),
    ) -> Scan:
        """Return a scan of rows by position (None: of all rows), with the metadata columns of `carried` and others."""
        return self.base.scan(columns, metadata=(*metadata, *self.carried), files=_only(files, rows))

    # --- dropping rows ---

    def drop(self, files: pa.Table, deleted: RowSets | None = None, updated: RowSets | None = None) -> None:
        """Drop rows of files: by deletion vectors, or by writing the other rows again.

        Parameters
        ----------
        files : pyarrow.Table
            As `files` returns them.
        deleted, updated : RowSets, optional
            Positions in each of the files. Updated rows are written again by `write_updated`.

        Notes
        -----
        Files without rows to drop stay as they are; those without further rows are removed. Files get vectors if the
        table has them enabled, unless so few rows remain that the next scan pays for writing them again.
        """
        rows = deleted if updated is None else updated if deleted is None else deleted | updated
        if rows is None:
            return
        release_unused()
        for some, kind in ((deleted, "delete"), (updated, "update_preimage")):
            if some is not None:
                self.record(files, some, kind)
        touched = np.flatnonzero(rows.cardinalities())
        if len(touched) < files.num_rows:
            files, rows = pc.take(files, number_array(touched)), rows.take(touched)
        counts = one_array(FileSet.of(files).statistics([NUM_RECORDS]).column(0))
        known, numbers = is_valid(counts), int64_values(counts)
        # a vector needs the file's number of rows beside it
        by_vector = known & (self._deletion_vectors and self.transaction.plan.remove_rows is not None)
        by_vector &= ~(known & _is_worth_rewriting(files, rows.cardinalities() + _num_dropped(files), numbers))
        chosen, others = np.flatnonzero(by_vector), np.flatnonzero(~by_vector)
        if len(chosen):
            self._drop_by_vector(pc.take(files, number_array(chosen)), rows.take(chosen), numbers[chosen])
        if len(others):
            self._rewrite(pc.take(files, number_array(others)), rows.take(others))

    def drop_files(self, files: pa.Table, updated: bool = False) -> None:
        """Remove whole files; ``updated``: their rows are written again by `write_updated`."""
        if updated:
            self.record(files, None, "update_preimage")
        self._remove(files)

    def drop_where(self, predicate: Expression | None) -> Dropped:
        """Drop the rows for which a predicate is true: whole files, by vectors, or by one pass over the other rows."""
        whole = self.whole_units(predicate, to_remove=True)
        if whole is not None:
            files, num_rows = whole
            if self._changes:
                # beside recorded rows, a removed file is no change by itself
                self.record(files, None, "delete")
            self._remove(files)
            return Dropped(num_rows)
        if self.transaction.plan.remove_rows is None or self.base.engine.relations is None or not self._data_change:
            return self._keep_others(predicate)
        files, rows = self.find(predicate)
        self.drop(files, deleted=rows)
        return Dropped(int(rows.cardinalities().sum()) + self.num_copied, self.num_copied)

    def _keep_others(self, predicate: Expression | None) -> Dropped:
        """Write the rows that a predicate does not select again, of all files that may have rows that it selects."""
        assert predicate is not None
        chosen = self.base.scan(predicate=predicate).file_set
        files = chosen.columns(READ_TO_REMOVE)
        self.transaction.read(predicate, files)
        self._copy(files, not_selected(predicate), chosen)
        if self.transaction.plan.capture is not None and files.num_rows:
            self._changes.append((self.base.scan(predicate=predicate, files=chosen), "delete"))
        self._remove(files)
        return Dropped(live_rows(chosen, files), self.num_copied)

    def _drop_by_vector(self, files: pa.Table, rows: RowSets, counts: NDArray[np.int64]) -> None:
        self.transaction.remove_rows(files, rows)
        dropped = _num_dropped(files)
        whole = rows.cardinalities() + dropped == counts
        self._vectors["Removed"] += int((whole & (dropped > 0)).sum())
        self._vectors["Updated"] += int((~whole & (dropped > 0)).sum())
        self._vectors["Added"] += int((~whole & (dropped == 0)).sum())
        self._removed.append(pc.filter(files.select(["size"]), bool_array(whole)))

    def _rewrite(self, files: pa.Table, rows: RowSets) -> None:
        """Write the rows that stay of files to new ones."""
        # a wrong number of rows in the log would lose rows: so the footers are read
        sizes = files.column("size").to_pylist()
        counts = self.base.engine.data.row_counts(decode_paths(files.column("path")), sizes)
        kept = RowSets(RowSet.from_range(0, n) - own for n, own in zip(counts, rows, strict=True))
        self._copy(files, None, _only(files, kept))
        self._vectors["Removed"] += int((_num_dropped(files) > 0).sum())
        self._remove(files)

    def _copy(self, files: pa.Table, predicate: Expression | None, rows: FileSet) -> None:
        """Write rows of files to new ones: those of ``rows`` for which a predicate is true."""
        carried = carried_columns(self.transaction.plan)
        scan = self.base.scan(metadata=tuple(carried), predicate=predicate, files=rows, beside_write=True)
        self.progress.begin("write", files.column("size"))
        plan, counted, syncs = self.transaction.plan, self.progress.counted, self.transaction.syncs
        # at once: an interrupt deletes what is noted
        self._written.append(
            rewrite_rows(
                self.base.engine, plan, scan, carried, self._properties, counted, self._data_change, syncs=syncs
            )
        )
        written = self._stage_last()
        self.progress.add(files=files.num_rows, num_bytes=int(pc.sum(files.column("size")).as_py() or 0))
        self.num_copied += written.num_rows

    @property
    def rewrites_at_once(self) -> bool:
        """Whether `rewrite_updated` can be used: updated rows are written as the rows beside them are."""
        plan = self.transaction.plan
        return plan.remove_rows is None and plan.capture is None and not (plan.computed or plan.checks or plan.hidden)

    def rewrite_updated(
        self, files: pa.Table, deleted: RowSets | None, updated: RowSets, values: Callable[[Scan], Relation]
    ) -> None:
        """Write files again without their deleted rows, and with new values of the updated ones, in one pass.

        In place of `drop` and `write_updated`, if `rewrites_at_once`.

        Parameters
        ----------
        files : pyarrow.Table
            As `files` returns them.
        deleted, updated : RowSets
            Positions in each of the files. Files without either stay as they are.
        values : function(Scan) -> Relation
            From the rows that remain, with `FILE_NUMBER` and `ROW_INDEX`, to the columns of the table, a row for each.

        Raises
        ------
        InternalError
            ``values`` returned more or fewer rows.
        """
        gone = updated if deleted is None else updated | deleted
        touched = number_array(np.flatnonzero(gone.cardinalities()))
        some = pc.take(with_numbers(files), touched)
        # a wrong number of rows in the log would lose rows: so the footers are read
        counts = self.base.engine.data.row_counts(decode_paths(some.column("path")), some.column("size").to_pylist())
        num_rows, kept = sum(counts) - int(_num_dropped(some).sum()), None
        if deleted is not None:
            dropped = deleted.take(touched.to_numpy())
            num_rows -= int(dropped.cardinalities().sum())
            kept = RowSets(RowSet.from_range(0, n) - own for n, own in zip(counts, dropped, strict=True)).by_number()
        constants = {FILE_NUMBER: (FILE_NUMBER, _LONG)}
        rows = values(self.base.scan(metadata=(ROW_INDEX,), files=FileSet.of(some, keep=kept), constants=constants))
        written = self._write(rows, "updated")
        if written.num_rows != num_rows:
            raise InternalError(f"{num_rows} rows were to be written again, {written.num_rows} were written.")
        num_updated = int(updated.cardinalities().sum())
        self.num_updated += num_updated
        self.num_copied += num_rows - num_updated
        self._vectors["Removed"] += int((_num_dropped(some) > 0).sum())
        self._remove(pc.take(files, touched))

    def _remove(self, files: pa.Table) -> None:
        if files.num_rows:
            self.transaction.remove_files(removed_files(files, self._data_change))
            self._removed.append(files.select(["size"]))

    # --- writing rows ---

    def write_updated(self, rows: Relation) -> None:
        """Write rows of the table with new values.

        Parameters
        ----------
        rows : Relation
            The table's columns and the values of `carried`. Columns of `WritePlan.computed` that have no new value are
            left out, and computed again.

        Raises
        ------
        SchemaMismatchError, ConstraintViolationError
            The new values don't fit the table.
        """
        written = self._write(rows, "updated")
        self.num_updated += written.num_rows
        self.record(written.adds, None, "update_postimage")

    def write_inserted(
        self, rows: Relation, *, task_index: int = 0, num_tasks: int = 1, checks: Sequence[RowCheck] = ()
    ) -> None:
        """Write new rows that pass some checks, as `write_files` does; the other arguments are its own."""
        written = self._write(rows, "new", task_index, num_tasks, checks)
        self.num_inserted += written.num_rows
        self.record(written.adds, None, "insert")

    def _write(
        self, rows: Relation, origin: Origin, task_index: int = 0, num_tasks: int = 1, checks: Sequence[RowCheck] = ()
    ) -> Written:
        self.progress.begin("write")
        plan = self.transaction.plan
        plan = replace(plan, checks=(*plan.checks, *checks)) if checks else plan
        # at once, as above
        self._written.append(
            self.relations.write(
                self.base.engine,
                plan,
                rows,
                origin=origin,
                properties=self._properties,
                task_index=task_index,
                num_tasks=num_tasks,
                observe=self.progress.counted,
                syncs=self.transaction.syncs,
            )
        )
        return self._stage_last()

    def _stage_last(self) -> Written:
        written = self._written[-1]
        if written.num_bytes >= RELEASED_BYTES:
            release_unused()
        self.transaction.add_written(written)
        return written

    # --- recording changes ---

    @property
    def has_records(self) -> bool:
        """Whether changes of rows were noted for change files."""
        return bool(self._changes)

    def write_changes(self) -> None:
        """Write change files if the table keeps them: once a commit has one, its adds and removes are no changes."""
        if self.transaction.plan.capture is not None and self._changes:
            transaction = self.transaction
            self._recorded = write_change_rows(
                self.base.engine, transaction.plan, self._changes, syncs=transaction.syncs
            )
            self.transaction.add_change_files(self._recorded.files)

    def record(self, files: pa.Table, rows: RowSets | None, kind: str) -> None:
        """Note rows of files, all if ``rows`` is None, for the change files: ``kind`` is their kind of change."""
        if self.transaction.plan.capture is not None and files.num_rows:
            self._changes.append((self.base.scan(files=_only(files, rows)), kind))

    # --- the end ---

    def metrics(self) -> dict[str, int]:
        """Return the files and vectors of what was done so far, named as delta-spark's operation metrics."""
        sizes = pa.concat_tables(self._removed).column("size") if self._removed else pa.nulls(0, pa.int64())
        recorded = self._recorded
        return {
            "numRemovedFiles": len(sizes),
            "numRemovedBytes": int(pc.sum(sizes).as_py() or 0),
            "numAddedFiles": sum(w.adds.num_rows for w in self._written),
            "numAddedBytes": sum(w.num_bytes for w in self._written),
            "numCopiedRows": self.num_copied,
            **{f"numDeletionVectors{what}": count for what, count in self._vectors.items()},
            "numAddedChangeFiles": recorded.files.num_rows if recorded else 0,
        }

    def commit(self, options: ChangeOptions, metrics: Mapping[str, int]) -> Changed:
        """Commit what was done.

        Raises
        ------
        CommitConflictError
            Another writer's commit contradicts this one.
        """
        for app_id, version in options.transactions.items():
            self.transaction.set_transaction(app_id, version)
        self.transaction.metrics.update(metrics)
        result = self.transaction.commit(
            options.user_metadata, options.custom_metadata, options.max_commit_retries, post=options.post
        )
        return Changed(result.snapshot, self.transaction.metrics, is_committed=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.cleanup()

    def cleanup(self) -> None:
        """Delete what did not become part of the table; what may have become part of it stays."""
        if not self.transaction.in_doubt:
            for files in (*self._written, *([self._recorded] if self._recorded else [])):
                files.cleanup()


def has_applied(base: Snapshot | ChangeTarget, transactions: Mapping[str, int]) -> bool:
    """Return whether a table of any format has these versions of applications, or later ones; False for none."""
    return has_transactions(base, transactions) if isinstance(base, Snapshot) else base.has_applied(transactions)


def begin_changes(
    base: Snapshot | ChangeTarget,
    operation: Literal["DELETE", "UPDATE", "MERGE", "WRITE"],
    parameters: Mapping[str, Any],
    options: ChangeOptions,
    evolve: Evolve | None = None,
) -> TableChanges:
    """Begin changes of rows of a table of any format; see `ChangeTarget.begin_changes`."""
    if not isinstance(base, Snapshot):
        return base.begin_changes(operation, parameters, options, evolve)
    transaction = Transaction(base.context, base, operation, parameters)
    if evolve is not None:
        state, plugins = base.state, base.plugins

        def accept(path: Path, old: DataType, new: DataType) -> bool:
            fits = plugins.single("accept_type_change", False, table=state, path=path, old=old, new=new)
            return bool(fits) and options.may_widen(str(old.type), str(new.type))

        evolved = evolve(state.schema, accept)
        if evolved != state.schema:
            transaction.set_metadata(replace(state.metadata, schema_string=evolved.to_json()))
        base = base.redefined(transaction.table, transaction.plugins)
    return RowChanges(
        base, transaction, options.writer_properties, options.progress, deletion_vectors=options.deletion_vectors
    )


def with_numbers(files: pa.Table) -> pa.Table:
    """Return files with a constant `FILE_NUMBER`: the row of the table that each is."""
    return files.append_column(FILE_NUMBER, number_array(np.arange(files.num_rows)))


def predicate_text(given: Any, predicate: Expression | None) -> str:
    """Return a predicate as a commit's parameter: a JSON list of its text, as the user wrote it or as SQL."""
    if predicate is None:
        return "[]"
    if isinstance(given, str):
        return json.dumps([portable_sql(given, "name")])
    return json.dumps([getattr(given, "sql", "") or format_sql(predicate)])


def _num_dropped(files: pa.Table) -> NDArray[np.int64]:
    """Return how many rows the vector of each file drops already."""
    vectors = one_array(files.column("deletionVector"))
    return int64_values(pc.fill_null(pc.struct_field(vectors, "cardinality").cast(pa.int64()), 0))


def _is_worth_rewriting(files: pa.Table, deleted: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each file whether the rows that remain had better be written again than kept beside deleted ones."""
    left = counts - deleted
    is_mostly_gone = (left > 0) & (deleted >= DELETED_FOR_ONE_LEFT * left)
    deleted_bytes = int64_values(files.column("size")) * (deleted / np.maximum(counts, 1))
    return is_mostly_gone & (deleted_bytes >= DELETED_BYTES)


def _only(files: pa.Table, rows: RowSets | None) -> FileSet:
    """Return files, restricted to some rows."""
    if rows is None:
        return FileSet.of(files)
    touched = np.flatnonzero(rows.cardinalities())
    return FileSet.of(pc.take(files, number_array(touched)), keep=rows.take(touched).by_number())
