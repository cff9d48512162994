"""Delete the rows that a predicate selects: whole files by the log alone, rows by vectors or by rewrites."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from delta_core.expressions import to_condition
from delta_core.kernel.scan.plan import FILE_PATH
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.operations.changes import Changed, ChangeOptions, ChangeTarget, Timing
from delta_core.operations.rewrite import selects_partitions
from delta_core.operations.row_changes import begin_changes, has_applied, predicate_text
from delta_core.runtime.progress_bars import shows_progress

__all__ = ["count_selected", "delete_rows"]


@shows_progress
def delete_rows(base: Snapshot | ChangeTarget, options: ChangeOptions) -> Changed:
    """Delete rows and commit.

    A predicate on partition columns alone touches the log and no data. For any other, the columns that the predicate
    reads are read of the files that may match; then rows are dropped by deletion vectors where the table has a feature
    for it active, else files with selected rows are rewritten without them. No selected row: no commit.

    Parameters
    ----------
    base : Snapshot or ChangeTarget
        The latest version that the caller has; a newer one is looked for.
    options : ChangeOptions
        Which rows, and how they are deleted.

    Raises
    ------
    ExpressionError, ColumnNotFoundError
        The predicate does not fit the table.
    UnsupportedOperationError
        The table is append-only.
    CommitConflictError
        Another writer's commit contradicts this one. The files that were written are deleted again.
    """
    latest = base.latest()
    delete = _Delete(latest, options)
    if has_applied(latest, options.transactions):
        return Changed(latest, delete.metrics())
    with delete.changes:
        return delete.run()


def count_selected(base: Snapshot, predicate: Any) -> tuple[int, int]:
    """Return how many files have rows for which a predicate is true, and how many such rows there are.

    Parameters
    ----------
    base : Snapshot
        The version that is read.
    predicate : str, filters or Expression, optional
        Which rows; None selects all.

    Raises
    ------
    ExpressionError, ColumnNotFoundError
        The predicate does not fit the table.

    Notes
    -----
    A predicate on partition columns alone is answered by the log, if its statistics have the numbers of rows.
    """
    condition = to_condition(predicate, base.schema, functions=base.plugins.functions)
    if condition is None or selects_partitions(condition, base.state.partition_columns):
        scan = base.scan([], predicate=condition)
        return scan.file_set.count, scan.count()
    paths: set[str] = set()
    num_rows = 0
    for batch in base.scan([], predicate=condition, metadata=(FILE_PATH,)).batches():
        num_rows += batch.num_rows
        paths.update(pc.unique(batch.column(FILE_PATH)).to_pylist())
    return len(paths), num_rows


class _Delete:
    """One delete: which files and rows, and the commit."""

    def __init__(self, base: Snapshot | ChangeTarget, options: ChangeOptions) -> None:
        self.timing = Timing()
        self.base = base
        self.options = options
        self.predicate = to_condition(options.predicate, base.schema, functions=base.functions)
        parameters = {"predicate": predicate_text(options.predicate, self.predicate)}
        self.changes = begin_changes(base, "DELETE", parameters, options)
        self.deleted: int | None = 0

    def run(self) -> Changed:
        whole = self.changes.whole_units(self.predicate, to_remove=True)
        touched = self._remove_rows() if whole is None else self._remove_files(*whole)
        if not touched and not self.options.commits_empty:
            return Changed(self.base, self.metrics())
        return self.changes.commit(self.options, self.metrics())

    def _remove_files(self, files: pa.Table, num_rows: int | None) -> bool:
        self.deleted = num_rows
        self.changes.drop_files(files)
        return bool(files.num_rows)

    def _remove_rows(self) -> bool:
        files, rows = self.changes.find(self.predicate)
        self.timing.scanned()
        self.deleted = int(rows.cardinalities().sum())
        if self.deleted:
            self.changes.drop(files, deleted=rows)
            self.changes.write_changes()
        return bool(self.deleted)

    def metrics(self) -> dict[str, int]:
        """Return what was done so far."""
        return {
            **self.changes.metrics(),
            **({} if self.deleted is None else {"numDeletedRows": self.deleted}),
            **self.timing.metrics(),
        }
