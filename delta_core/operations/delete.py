"""Delete the rows that a predicate selects: whole files by the log alone, rows by vectors or by rewriting their files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from delta_core.commit.intents import READ_FILE, REMOVED_FILE
from delta_core.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.commit.transaction import Transaction
from delta_core.expressions import to_expression
from delta_core.expressions.ast import NUM_RECORDS, Expression
from delta_core.expressions.printing import format_sql
from delta_core.kernels.row_set import RowSet
from delta_core.log.files import FileSet
from delta_core.operations.rewrite import (
    carried_columns,
    not_selected,
    rewrite_rows,
    selects_partitions,
    write_change_rows,
)
from delta_core.operations.write import has_transactions, live_rows
from delta_core.protocol.properties import WriterProperties
from delta_core.protocol.types import PrimitiveType
from delta_core.scan.plan import ROW_INDEX
from delta_core.snapshot import Snapshot
from delta_core.write.files import Written

__all__ = ["DeleteOptions", "Deleted", "delete_rows"]

_LONG = PrimitiveType("long")
#: The column of a scan with the number of the file that a row is in.
_FILE_NUMBER = "__file_number"


class DeleteOptions(Struct, frozen=True):
    """How rows are deleted.

    Parameters
    ----------
    predicate : str, filters or Expression, optional
        Which rows: those for which it is true. None: all.
    transactions : Mapping of str to int
        Application ids and versions: a version that the table has already deletes nothing.
    """

    predicate: Any = None
    writer_properties: WriterProperties | None = None
    transactions: Mapping[str, int] = {}
    user_metadata: str | None = None
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = MAX_COMMIT_RETRIES
    post: PostCommit = field(default_factory=PostCommit)


class Deleted(Struct, frozen=True):
    """What a delete came to.

    Parameters
    ----------
    snapshot : Snapshot
        The table right after it; as it was if no row was selected.
    metrics : Mapping of str to int
        Named as delta-spark's operation metrics; ``numDeletedRows`` is missing where whole files without statistics were
        removed.
    """

    snapshot: Snapshot
    metrics: Mapping[str, int]


def delete_rows(base: Snapshot, options: DeleteOptions) -> Deleted:
    """Delete rows and commit.

    A predicate on partition columns alone touches the log and no data. For any other, the columns that the predicate
    reads are read of the files that may match; then rows are dropped by deletion vectors where the table has a feature
    for it active, else files with selected rows are rewritten without them. No selected row: no commit.

    Parameters
    ----------
    base : Snapshot
        The latest version that the caller has; a newer one is looked for.

    Raises
    ------
    ExpressionError, ColumnNotFoundError
        The predicate does not fit the table.
    UnsupportedOperationError
        The table is append-only.
    CommitConflictError
        Another writer's commit contradicts this one. What was written is deleted again.
    """
    latest = base.update()
    base.check_id_of(latest)
    if has_transactions(latest, options.transactions):
        return Deleted(latest, _Delete(latest, options).metrics())
    return _Delete(latest, options).run_or_clean_up()


class _Delete:
    """One delete: which files and rows, what is written in their place, the commit."""

    def __init__(self, base: Snapshot, options: DeleteOptions) -> None:
        self.started = time.perf_counter()
        self.scan_ms = 0
        self.base = base
        self.options = options
        self.engine = base.engine
        self.predicate: Expression | None = None
        if options.predicate is not None:
            self.predicate = to_expression(options.predicate, base.schema, functions=base.plugins.functions)
        shown = [] if self.predicate is None else [_text(options.predicate, self.predicate)]
        self.transaction = Transaction(base.context, base, "DELETE", {"predicate": json.dumps(shown)})
        self.rewritten: Written | None = None
        self.changes: Written | None = None
        self.deleted: int | None = 0
        self.copied = 0
        self.vectors = {"Added": 0, "Updated": 0, "Removed": 0}
        self.removed_sizes: list[int | None] = []

    def run_or_clean_up(self) -> Deleted:
        """Delete and commit; where that fails, delete what was written."""
        try:
            return self.run()
        except BaseException:
            self.cleanup()
            raise

    def run(self) -> Deleted:
        base, options, transaction = self.base, self.options, self.transaction
        whole = self.predicate is None or selects_partitions(self.predicate, base.state.partition_columns)
        touched = self._remove_files() if whole else self._remove_rows()
        if not touched:
            return Deleted(base, self.metrics())
        for app_id, version in options.transactions.items():
            transaction.set_transaction(app_id, version)
        transaction.metrics.update(self.metrics())
        result = transaction.commit(
            options.user_metadata, options.custom_metadata, options.max_commit_retries, post=options.post
        )
        return Deleted(result.snapshot, transaction.metrics)

    def cleanup(self) -> None:
        """Delete what did not become part of the table; what may have become part of it stays."""
        for files in () if self.transaction.in_doubt else (self.rewritten, self.changes):
            if files is not None:
                files.cleanup()

    # --- whole files ---

    def _remove_files(self) -> bool:
        files = self.base.files if self.predicate is None else self.base.scan(predicate=self.predicate).file_set
        table = files.columns([n for n in REMOVED_FILE.names if n != "dataChange"])
        self.transaction.read(self.predicate, table)
        self.deleted = live_rows(files, table)
        self._stage_removed(table)
        return bool(table.num_rows)

    def _stage_removed(self, table: pa.Table) -> None:
        if table.num_rows:
            names = [n for n in REMOVED_FILE.names if n in table.column_names and n != "dataChange"]
            removed = table.select(names).append_column("dataChange", pa.repeat(pa.scalar(True), table.num_rows))
            self.transaction.remove_files(removed)
            self.removed_sizes += table.column("size").to_pylist()

    # --- rows ---

    def _remove_rows(self) -> bool:
        assert self.predicate is not None
        fields = [f.name for f in self.base.action_fields if f.action == "add"]
        files = self.base.scan(predicate=self.predicate).file_set.columns([*READ_FILE, *fields])
        selected = self._selected(files)
        self.scan_ms = _ms_since(self.started)
        touched = files.take(pa.array(sorted(selected), pa.int64()))
        self.transaction.read(self.predicate, touched)
        if not selected:
            return False
        rows = [selected[number] for number in sorted(selected)]
        self.deleted = sum(len(r) for r in rows)
        counts = FileSet.of(touched).statistics([NUM_RECORDS]).column(0).combine_chunks()
        # a vector needs the file's number of rows beside it
        by_vector = np.zeros(len(rows), np.bool_)
        if self.transaction.plan.remove_rows is not None:
            by_vector = counts.is_valid().to_numpy(zero_copy_only=False)
        for i in np.flatnonzero(by_vector).tolist():
            self._drop_rows(touched.slice(i, 1), rows[i], int(counts[i].as_py()))
        self._rewrite(touched.filter(pa.array(~by_vector)))
        if self.transaction.plan.capture is not None:
            lost = self.base.scan(files=FileSet.of(touched, keep=dict(enumerate(rows))))
            self.changes = write_change_rows(self.engine, self.transaction.plan, [(lost, "delete")])
            self.transaction.add_change_files(self.changes.files)
        return True

    def _selected(self, files: pa.Table) -> dict[int, RowSet]:
        """Return the positions of the selected rows by the number of their file."""
        if not files.num_rows:
            return {}
        numbered = files.append_column(_FILE_NUMBER, pa.array(np.arange(files.num_rows)))
        scan = self.base.scan(
            columns=[],
            metadata=(ROW_INDEX,),
            predicate=self.predicate,
            files=FileSet.of(numbered),
            constants={_FILE_NUMBER: (_FILE_NUMBER, _LONG)},
        )
        parts: dict[int, list[Any]] = {}
        for batch in scan.batches():
            numbers = batch.column(_FILE_NUMBER).to_numpy(zero_copy_only=False)
            positions = batch.column(ROW_INDEX).to_numpy(zero_copy_only=False)
            ends = [*(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
            start = 0
            for end in ends:
                if end > start:
                    parts.setdefault(int(numbers[start]), []).append(positions[start:end])
                start = end
        return {number: RowSet.from_positions(np.concatenate(found)) for number, found in parts.items()}

    def _drop_rows(self, file: pa.Table, rows: RowSet, count: int) -> None:
        self.transaction.remove_rows(file, rows)
        before = file.column("deletionVector")[0]
        dropped = int(before["cardinality"].as_py() or 0) if before.is_valid else 0
        if len(rows) + dropped == count:
            self.vectors["Removed"] += dropped > 0
            self.removed_sizes += file.column("size").to_pylist()
        else:
            self.vectors["Updated" if dropped else "Added"] += 1

    def _rewrite(self, files: pa.Table) -> None:
        """Write the rows that stay of files to new ones."""
        if not files.num_rows:
            return
        assert self.predicate is not None
        plan = self.transaction.plan
        carried = carried_columns(plan)
        kept = self.base.scan(metadata=tuple(carried), predicate=not_selected(self.predicate), files=FileSet.of(files))
        self.rewritten = rewrite_rows(self.engine, plan, kept, carried, self.options.writer_properties)
        self.copied = self.rewritten.num_rows
        self.transaction.add_files(self.rewritten.adds)
        self.transaction.intents.report(self.rewritten.reported)
        self._stage_removed(files)

    # --- metrics ---

    def metrics(self) -> dict[str, int]:
        """Return what was done so far."""
        new, changes = self.rewritten, self.changes
        took = _ms_since(self.started)
        return {
            "numRemovedFiles": len(self.removed_sizes),
            "numRemovedBytes": sum(s or 0 for s in self.removed_sizes),
            "numAddedFiles": new.adds.num_rows if new else 0,
            "numAddedBytes": new.num_bytes if new else 0,
            "numCopiedRows": self.copied,
            **({} if self.deleted is None else {"numDeletedRows": self.deleted}),
            "numDeletionVectorsAdded": self.vectors["Added"],
            "numDeletionVectorsUpdated": self.vectors["Updated"],
            "numDeletionVectorsRemoved": self.vectors["Removed"],
            "numAddedChangeFiles": changes.adds.num_rows if changes else 0,
            "executionTimeMs": took,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": max(0, took - self.scan_ms),
        }


def _text(given: Any, predicate: Expression) -> str:
    return given if isinstance(given, str) else format_sql(predicate)


def _ms_since(start: float) -> int:
    return int((time.perf_counter() - start) * 1000)
