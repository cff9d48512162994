"""Files of a Delta table written again: joined, without deleted rows, in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.errors import InvalidArgumentError
from delta_core.expressions.ast import NUM_RECORDS, Expression
from delta_core.expressions.printing import format_sql
from delta_core.kernel.commit.intents import read_columns, removed_files
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.commit.upkeep import check_upkeep
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.plan import resolve_columns
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.files import Written, delete_written, join_written, write_files
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernel.write.properties import target_file_size
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, one_array
from delta_core.kernels.dedup import KeySet
from delta_core.operations.bins import deleted_shares, partition_numbers
from delta_core.operations.changes import FILE_NUMBER
from delta_core.operations.facts import has_transactions
from delta_core.operations.rewrite import carried_columns, moved_rows, rewrite_ordered, rewrite_rows, selects_partitions
from delta_core.operations.rewrites import Ints, OptimizeOptions, RewriteTarget, RowOrder, Syncs, TableRewrites, Units
from delta_core.operations.row_changes import with_numbers
from delta_core.schema.fields import Path, find, format_path
from delta_core.schema.types import PrimitiveType

__all__ = ["FileRewrites", "begin_rewrites", "has_rewritten"]

_LONG = PrimitiveType("long")


def has_rewritten(base: Snapshot | RewriteTarget, transactions: Mapping[str, int]) -> bool:
    """Return whether a table of any format has these versions of applications, or later ones; False for none."""
    return has_transactions(base, transactions) if isinstance(base, Snapshot) else base.has_applied(transactions)


def begin_rewrites(
    base: Snapshot | RewriteTarget, parameters: Mapping[str, Any], options: OptimizeOptions
) -> TableRewrites[Any]:
    """Begin to write rows of a table of any format again; see `RewriteTarget.begin_rewrites`."""
    if isinstance(base, Snapshot):
        return FileRewrites(base, parameters, options)
    return base.begin_rewrites(parameters, options)


class FileRewrites:
    """The `TableRewrites` of Delta.

    Parameters
    ----------
    base : Snapshot
        The version to begin with.
    parameters : Mapping of str to object
        Of the operation.
    options : OptimizeOptions
        How rows are written.

    Raises
    ------
    UnsupportedOperationError
        The table's catalog does not allow it.
    """

    def __init__(self, base: Snapshot, parameters: Mapping[str, Any], options: OptimizeOptions) -> None:
        check_upkeep(base, "optimize")
        self.base: Snapshot = base
        self._operation = "REORG" if options.purge else "OPTIMIZE"
        self._parameters = parameters
        self._properties = options.writer_properties
        self._plan: WritePlan = self._begin().plan
        self._carried = carried_columns(self._plan)
        self.target_size: int = target_file_size(base.state, options.target_size)
        #: The last commit, if it did not end.
        self._transaction: Transaction[Snapshot] | None = None

    def _begin(self) -> Transaction[Snapshot]:
        return Transaction(self.base.context, self.base, self._operation, self._parameters)

    @property
    def num_tasks(self) -> int:
        """The tasks that the engine can run at a time."""
        relations = self.base.engine.relations
        return 1 if relations is None else relations.num_tasks

    @property
    def is_spread(self) -> bool:
        """Whether the engine's rows are on other machines."""
        return self.base.engine.remote_rows is not None

    @property
    def in_doubt(self) -> bool:
        """Whether the last commit may have landed."""
        return self._transaction is not None and self._transaction.in_doubt

    @property
    def facts(self) -> Mapping[str, Any]:
        """None: Delta's metrics are complete."""
        return {}

    # --- which files ---

    def check_predicate(self, predicate: Expression) -> None:
        """Reject a predicate that needs other columns than partition columns.

        Raises
        ------
        InvalidArgumentError
            If it does.
        """
        columns = self.base.state.partition_columns
        if not selects_partitions(predicate, columns):
            raise InvalidArgumentError(
                f"Found the predicate {format_sql(predicate)}, expected one over partition columns alone: whole files "
                f"are written again. The table is partitioned by {', '.join(columns) or 'no column'}."
            )

    def order_columns(self, names: Sequence[str]) -> tuple[Path, ...]:
        """Return columns by name.

        Raises
        ------
        InvalidArgumentError
            For a partition column.
        """
        found = resolve_columns(self.base.schema, names)
        by = next((p for p in found if p[0] in self.base.state.partition_columns), None)
        if by is not None:
            raise InvalidArgumentError(
                f"Column {format_path(by)} is a partition column: all rows of a file have the same value of it. Leave "
                "it out."
            )
        return tuple(found)

    def units(self, predicate: Expression | None) -> Units:
        """Return the files that a predicate selects, in the order in which they were written."""
        base = self.base
        files = base.files if predicate is None else base.scan(predicate=predicate).file_set
        table = files.columns(read_columns(base.action_fields))
        partitions = self._partitions(files)
        times = int64_values(pc.fill_null(table.column("modificationTime"), 0))
        # disks have coarse clocks; a file in a checkpoint has no version, and is older than all that have
        versions = int64_values(pc.fill_null(files.columns(["version"]).column(0), -1))
        shares = deleted_shares(files, table.column("deletionVector"))
        return Units(table, partitions, np.lexsort((versions, times, partitions)), shares)

    def partitions(self, units: pa.Table) -> Ints:
        """Return the numbers of the files' partitions."""
        return self._partitions(FileSet.of(units))

    def _partitions(self, files: FileSet) -> Ints:
        schema, columns = self.base.schema, self.base.state.column_map
        names = self.base.state.partition_columns
        return partition_numbers(files, [columns.physical_path(schema, find(schema, (c,))[0])[0] for c in names])

    def num_rows(self, units: pa.Table) -> int:
        """Return the rows of files as their statistics have them."""
        return int(pc.sum(FileSet.of(units).statistics([NUM_RECORDS]).column(0)).as_py() or 0)

    def deletions(self, units: pa.Table) -> tuple[int, int]:
        """Return how many of the files have vectors, and how many rows these drop."""
        vectors = units.column("deletionVector")
        dropped = pc.sum(pc.struct_field(one_array(vectors), "cardinality")).as_py()
        return len(vectors) - vectors.null_count, int(dropped or 0)

    def live(self, columns: Sequence[str]) -> _LiveFiles:
        """Return the files of `base`."""
        return _LiveFiles(self.base.files.columns(list(columns)))

    # --- rows ---

    def column_rows(self, units: pa.Table | None, columns: Sequence[Path]) -> Scan:
        """Return a scan of some columns of files, of all without any."""
        return self.base.scan(columns=list(columns), files=None if units is None else FileSet.of(units))

    def moved(self, units: pa.Table, *, numbered: bool = False) -> pa.RecordBatchReader:
        """Return the rows of files with the values of hidden columns under their own names."""
        return moved_rows(self.base.engine, self._scan(units, numbered), self._carried)

    def _scan(self, units: pa.Table, numbered: bool = False) -> Scan:
        constants = {FILE_NUMBER: (FILE_NUMBER, _LONG)} if numbered else {}
        files = FileSet.of(with_numbers(units) if numbered else units)
        return self.base.scan(metadata=tuple(self._carried), files=files, constants=constants)

    def write(self, units: pa.Table, syncs: Syncs) -> Written:
        """Write the rows of files; those of a bin become one, though their sizes are but an estimate of its size."""
        return rewrite_rows(
            self.base.engine,
            self._plan,
            self._scan(units),
            self._carried,
            self._properties,
            data_change=False,
            in_order=True,
            target_size=2 * self.target_size,
            syncs=syncs,
        )

    def write_ordered(self, units: pa.Table, order: RowOrder, syncs: Syncs) -> Written | None:
        """Write the rows of files in order if the engine orders them."""
        given = (order.columns, order.order, order.num_files, order.num_rows)
        rows = self._scan(units)
        return rewrite_ordered(self.base.engine, self._plan, rows, self._carried, given, self._properties, syncs)

    def write_rows(self, rows: pa.Table, syncs: Syncs) -> Written:
        """Write rows to one file of each partition, as `write` does."""
        return write_files(
            self.base.engine,
            self._plan,
            rows,
            properties=self._properties,
            target_size=2 * self.target_size,
            data_change=False,
            origin="moved",
            in_order=True,
            syncs=syncs,
        )

    def join(self, parts: Sequence[Written]) -> Written:
        """Return the files of several calls as those of one."""
        return join_written(self.base.engine, parts)

    def described(self, written: Written, describe: Callable[[pa.Table], pa.Table]) -> Written:
        """Return the same files with other actions."""
        return replace(written, files=describe(written.files))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files that no commit names."""
        delete_written(self.base.engine, paths)

    # --- commits ---

    def follow(self) -> bool:
        """Take the latest version as `base`; return whether its metadata and protocol are the same."""
        before = self.base
        self.base = before.update()
        return bool(self.base.metadata == before.metadata and self.base.protocol == before.protocol)

    def commit(
        self,
        done: Sequence[tuple[pa.Table, Written]],
        syncs: Syncs,
        options: OptimizeOptions,
        metrics: Mapping[str, int],
    ) -> int:
        """Replace files by those written for them, and return the attempts."""
        self._transaction = transaction = self._begin()
        for files, written in done:
            transaction.remove_files(removed_files(files, False))
            transaction.add_written(written)
        transaction.syncs += syncs
        transaction.metrics.update(metrics)
        for app_id, version in options.transactions.items():
            transaction.set_transaction(app_id, version)
        result = transaction.commit(None, options.custom_metadata, options.max_commit_retries, post=options.post)
        self.base = result.snapshot
        self._transaction = None
        return result.attempts


class _LiveFiles:
    """The files of a version, looked up by path and vector."""

    def __init__(self, files: pa.Table) -> None:
        self._files = files
        self._keys = KeySet()
        self._keys.insert(files.column("path"), files.column("dvId"))

    def have(self, units: pa.Table) -> bool:
        """Whether all of these files are live, with the same vectors."""
        return bool(self._keys.contains(units.column("path"), units.column("dvId")).all())

    def now(self, units: pa.Table) -> pa.Table:
        """Return the files of the same paths."""
        paths = one_array(units.column("path"))
        return pc.filter(self._files, pc.is_in(self._files.column("path"), value_set=paths))
