"""All rows of a table written again under another definition: for a commit that replaces every file at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from delta_core.kernel.commit.intents import read_columns, removed_files
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernel.write.properties import target_file_size
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, int64_values, number_array
from delta_core.kernels.dedup import KeySet
from delta_core.operations.bins import pack_bins, partition_numbers
from delta_core.operations.rewrite import carried_columns, relations_of, rewrite_rows
from delta_core.runtime.threads import ThreadPool, first_done

__all__ = ["TableRewrite"]


class TableRewrite:
    """The files that replace those of a table, written in groups of neighbours, several groups at a time.

    If the commit loses a race, the groups whose files are still live are kept, and the next attempt writes the others
    only: other writers delay the operation by as much as they write.

    Notes
    -----
    Memory is bounded by the groups that are written at a time, the engine's number of cores.
    """

    def __init__(self) -> None:
        self._groups: list[tuple[pa.Table, Written]] = []
        self._base: Snapshot | None = None
        #: The transaction that stages the groups.
        self._transaction: Transaction[Snapshot] | None = None

    def stage(self, transaction: Transaction[Snapshot], latest: Snapshot) -> None:
        """Write the rows of files that have no replacement yet, and stage the replacement of every file.

        Parameters
        ----------
        transaction : Transaction
            Built on ``latest``, with the new definition.
        latest : Snapshot
            The version whose files are replaced.
        """
        base = self._base
        if self._in_doubt() or (
            base is not None and (base.metadata, base.protocol) != (latest.metadata, latest.protocol)
        ):
            self.discard()
        self._base, self._transaction = latest, transaction
        files = latest.files.columns(read_columns(latest.action_fields))
        left = self._take_live(files)
        if left.num_rows:
            self._write(latest, transaction.plan, left)
        transaction.remove_files(removed_files(files, False))
        for _, written in self._groups:
            transaction.add_written(written)

    def _take_live(self, files: pa.Table) -> pa.Table:
        """Discard groups with a file that is no longer live; return the files that are in no group."""
        live, done = KeySet(), KeySet()
        live.insert(files.column("path"), files.column("dvId"))
        kept = []
        for group, written in self._groups:
            keys = group.column("path"), group.column("dvId")
            if live.contains(*keys).all():
                done.insert(*keys)
                kept.append((group, written))
            else:
                written.cleanup()
        self._groups = kept
        return files.filter(bool_array(~done.contains(files.column("path"), files.column("dvId"))))

    def _write(self, latest: Snapshot, plan: WritePlan, files: pa.Table) -> None:
        carried = carried_columns(plan)
        target = target_file_size(latest.state, None)

        def write(group: pa.Table) -> None:
            rows = latest.scan(metadata=tuple(carried), files=FileSet.of(group))
            written = rewrite_rows(latest.engine, plan, rows, carried, data_change=False, target_size=2 * target)
            # by the thread that wrote them: an interrupt of the caller loses none
            self._groups.append((group, written))

        with ThreadPool(relations_of(latest.engine).num_tasks, "delta-rewrite") as pool:
            running = {pool.submit(write, group) for group in _groups(latest, files, target)}
            while running:
                for task in first_done(running):
                    running.discard(task)
                    task.result()

    def _in_doubt(self) -> bool:
        return self._transaction is not None and self._transaction.in_doubt

    def discard(self) -> None:
        """Delete the files, unless a commit names them, or may."""
        groups = [] if self._in_doubt() else self._groups
        self._groups, self._base, self._transaction = [], None, None
        for _, written in groups:
            written.cleanup()


def _groups(latest: Snapshot, files: pa.Table, target: int) -> Iterator[pa.Table]:
    """Yield the files of one partition that have about ``target`` bytes together."""
    state = latest.state
    physical = [state.column_map.physical_path(latest.schema, (name,))[0] for name in state.partition_columns]
    partitions = partition_numbers(FileSet.of(files), physical)
    sizes = int64_values(pc.fill_null(files.column("size"), 0))
    for group in pack_bins(np.argsort(partitions, kind="stable"), partitions, sizes, target):
        yield pc.take(files, number_array(group))
