"""Delete the rows that a predicate selects: whole files by the log alone, rows by vectors or by rewriting their files."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from delta_core.commit.intents import REMOVED_FILE
from delta_core.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.commit.transaction import Transaction
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Expression
from delta_core.operations.rewrite import selects_partitions
from delta_core.operations.row_changes import RowChanges, elapsed_ms, predicate_text
from delta_core.operations.write import has_transactions, live_rows
from delta_core.protocol.properties import WriterProperties
from delta_core.snapshot import Snapshot

__all__ = ["DeleteOptions", "Deleted", "delete_rows"]


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
    options : DeleteOptions
        Which rows, and how they are deleted.

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
    """One delete: which files and rows, and the commit."""

    def __init__(self, base: Snapshot, options: DeleteOptions) -> None:
        self.started = time.perf_counter()
        self.scan_ms = 0
        self.base = base
        self.options = options
        self.predicate: Expression | None = None
        if options.predicate is not None:
            self.predicate = to_expression(options.predicate, base.schema, functions=base.plugins.functions)
        shown = [] if self.predicate is None else [predicate_text(options.predicate, self.predicate)]
        self.transaction = Transaction(base.context, base, "DELETE", {"predicate": json.dumps(shown)})
        self.changes = RowChanges(base, self.transaction, options.writer_properties)
        self.deleted: int | None = 0

    def run_or_clean_up(self) -> Deleted:
        """Delete and commit; where that fails, delete what was written."""
        try:
            return self.run()
        except BaseException:
            self.changes.cleanup()
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

    def _remove_files(self) -> bool:
        files = self.base.files if self.predicate is None else self.base.scan(predicate=self.predicate).file_set
        table = files.columns([n for n in REMOVED_FILE.names if n != "dataChange"])
        self.transaction.read(self.predicate, table)
        self.deleted = live_rows(files, table)
        self.changes.drop_files(table)
        return bool(table.num_rows)

    def _remove_rows(self) -> bool:
        files, rows = self.changes.find(self.predicate)
        self.scan_ms = elapsed_ms(self.started)
        self.deleted = int(rows.cardinalities().sum())
        if self.deleted:
            self.changes.drop(files, deleted=rows)
            self.changes.write_changes()
        return bool(self.deleted)

    def metrics(self) -> dict[str, int]:
        """Return what was done so far."""
        took = elapsed_ms(self.started)
        return {
            **self.changes.metrics(),
            **({} if self.deleted is None else {"numDeletedRows": self.deleted}),
            "executionTimeMs": took,
            "scanTimeMs": self.scan_ms,
            "rewriteTimeMs": max(0, took - self.scan_ms),
        }
