"""Write the rows of files again without changing any: small files joined, deleted rows left out, rows sorted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.errors import CommitConflictError, InvalidArgumentError, MetadataChangedError, ProtocolChangedError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Expression
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, number_array
from delta_core.kernels.curves import check_ordered, curve_bits
from delta_core.operations.bins import Group, Groups, Ints, alone, group_bins, pack_bins
from delta_core.operations.changes import FILE_NUMBER
from delta_core.operations.file_rewrites import begin_rewrites, has_rewritten
from delta_core.operations.progress import OperationProgress
from delta_core.operations.rewrites import (
    OptimizeOptions,
    RewriteTarget,
    Rewritten,
    RowOrder,
    Syncs,
    TableRewrites,
    Units,
)
from delta_core.operations.row_changes import predicate_text
from delta_core.operations.row_order import OrderedRows, Spill
from delta_core.operations.temporary import check_limits
from delta_core.runtime.arguments import check_number
from delta_core.runtime.json_text import compact_json
from delta_core.runtime.progress_bars import shows_progress
from delta_core.runtime.threads import Task, ThreadPool, first_done
from delta_core.schema.fields import Path, find, format_path

__all__ = ["OptimizeOptions", "Optimized", "optimize_table", "plan_optimize"]

#: A file with more deleted rows than this share is written again whatever its size, as by delta-spark.
DELETED_SHARE = 0.05
#: How often a group is written again since other writers changed its files.
MOST_ATTEMPTS = 16
#: Memory for rows that are ordered, unless a limit is given.
MEMORY_BYTES = 2 << 30
#: Partitions are ordered by one read and one write up to this many bytes of files; their rows are in memory together.
ORDERED_TOGETHER_BYTES = 8 << 20
#: The report of deltalake about the way in which files were chosen.
_STRATEGIES = {"zorder": "zOrder", "hilbert": "hilbert", "linear": "sort"}


class Optimized(Struct, frozen=True):
    """The result of an optimize.

    Parameters
    ----------
    snapshot : Snapshot or RewriteTarget
        The table after its last commit; as it was if no file was written again.
    metrics : Mapping
        Named as deltalake's.
    """

    snapshot: Any
    metrics: Mapping[str, Any]


class _Done(Struct, frozen=True):
    """A group that is written and not yet committed."""

    group: Group
    written: Rewritten


def plan_optimize(base: Snapshot | RewriteTarget, options: OptimizeOptions) -> Groups:
    """Return the files that would be written again.

    Parameters
    ----------
    base : Snapshot or RewriteTarget
        The version.
    options : OptimizeOptions
        Which files are written again, and how.

    Raises
    ------
    InvalidArgumentError
        For a predicate that needs other columns than partition columns, or a size or number that is none.
    """
    return _Optimize(base, options).plan()


@shows_progress
def optimize_table(base: Snapshot | RewriteTarget, options: OptimizeOptions) -> Optimized:
    """Write files again and commit; rows, row ids and change feed stay as they are.

    Without ``purge``, files below the target size are joined with others of their partition, in the order in which they
    were written, and files with many deleted rows are written without these. If another writer changes files in the
    meantime, they are read again as they are now; appends never conflict.

    Parameters
    ----------
    base : Snapshot or RewriteTarget
        The version to begin with.
    options : OptimizeOptions
        Which files are written again, and how.

    Raises
    ------
    InvalidArgumentError
        For a predicate that needs other columns than partition columns, or a size or number that is none.
    UnsupportedOperationError
        The table's catalog does not allow it.
    CommitConflictError
        Another writer changed the table's definition, or the same files, at each attempt. Groups that are committed
        already stay; what else was written is deleted.
    """
    latest = base.latest()
    done = _Optimize(latest, options)
    if has_rewritten(latest, options.transactions):
        return Optimized(latest, done.metrics([]))
    return done.run()


class _Optimize:
    """One optimize: which files, what is written in their place, the commits."""

    def __init__(self, base: Snapshot | RewriteTarget, options: OptimizeOptions) -> None:
        _check_numbers(options)
        self.options = options
        self.rewrites: TableRewrites[Any] = begin_rewrites(base, self._parameters(), options)
        self.result: Any = base
        self.target = self.rewrites.target_size
        self.order_by = self._order_columns()
        self.predicate = self._predicate()
        self.groups = Groups([], 0, 0, 0)
        self.tasks = options.max_concurrent_tasks or self.rewrites.num_tasks
        self.tasks_of_group = self.tasks
        self.done: list[_Done] = []
        self.committed: list[tuple[pa.Table, Rewritten]] = []
        #: Files that are whole and in no commit, noted by the threads that wrote them: an interrupt loses none.
        self.uncommitted: set[str] = set()
        #: Counts the times that others committed before this run: files that were read earlier are looked for again.
        self.checked = 0
        self.progress = OperationProgress(0, 0, 0, 0, 0)

    @property
    def commits_each(self) -> bool:
        """Whether bins of small partitions are not written together, since groups may have commits of their own."""
        return self.options.min_commit_interval == 0 or self.options.commit_size is not None

    # --- which files ---

    def plan(self) -> Groups:
        """Return the groups of files to write again."""
        units = self.rewrites.units(self.predicate)
        table = units.table
        if not table.num_rows:
            return Groups([], 0, 0, 0)
        bins, together = self._bins(units)
        groups = [Group(pc.take(table, number_array(np.concatenate(group))), len(group)) for group in together]
        touched = {int(units.partitions[one[0]]) for one in bins}
        return Groups(groups, max(map(len, bins), default=0), table.num_rows, len(touched))

    def _bins(self, units: Units) -> tuple[list[Ints], list[list[Ints]]]:
        """Return the bins, and which of them are written together."""
        if self.options.choose is not None:
            bins = list(self.options.choose(units.table))
            return bins, alone(bins)
        partitions, order = units.partitions, units.order
        sizes = int64_values(pc.fill_null(units.table.column("size"), 0))
        if self.options.order is not None:
            bins = list(pack_bins(order, partitions, sizes, int(sizes.sum())))
            if self.rewrites.is_spread or self.commits_each:
                return bins, alone(bins)
            # those that are written together become a file each
            return bins, list(group_bins(bins, partitions, sizes, min(ORDERED_TOGETHER_BYTES, self.target)))
        is_due = units.deleted > (0 if self.options.purge else DELETED_SHARE)
        chosen = is_due if self.options.purge else is_due | (sizes < self.target)
        found = pack_bins(order[chosen[order]], partitions, sizes, self.target)
        bins = [one for one in found if len(one) > 1 or is_due[one[0]]]
        return bins, alone(bins) if self.commits_each else list(group_bins(bins, partitions, sizes))

    def _order_columns(self) -> tuple[Path, ...]:
        options, base = self.options, self.rewrites.base
        if options.order is None:
            return ()
        if options.order not in ("zorder", "hilbert", "linear"):
            raise InvalidArgumentError(f"Found order={options.order!r}, expected zorder, hilbert or linear.")
        found = self.rewrites.order_columns(options.order_by)
        if not found:
            raise InvalidArgumentError("Found no columns to order rows by, expected at least one.")
        if options.order != "linear":
            curve_bits(len(found), 1)
        for path in found:
            try:
                check_ordered(find(base.schema, path)[1].type.to_arrow(base.types))
            except InvalidArgumentError as e:
                raise InvalidArgumentError(f"Column {format_path(path)}: {e.message}") from e
        return found

    def _predicate(self) -> Expression | None:
        base = self.rewrites.base
        found = to_expression(self.options.predicate, base.schema, functions=base.functions)
        if found is not None and not self.options.prunes_files:
            self.rewrites.check_predicate(found)
        return found

    # --- the run ---

    def run(self) -> Optimized:
        """Write and commit; where that fails, delete what no commit names."""
        self.groups = self.plan()
        waiting = list(reversed(self.groups.groups))
        self.progress = OperationProgress(
            0, sum(g.files.num_rows for g in waiting), 0, 0, sum(_total(g.files.column("size")) for g in waiting)
        )
        running: dict[Task[Rewritten], Group] = {}
        last_commit = time.monotonic()
        interval = self.options.min_commit_interval
        tasks = min(self.tasks, max(len(waiting), 1))
        self.tasks_of_group = max(1, self.tasks // tasks)
        try:
            with ThreadPool(tasks, "delta-optimize") as pool:
                while waiting or running or self.done:
                    while waiting and len(running) < tasks:
                        group = waiting.pop()
                        running[pool.submit(self._write, group)] = group
                    if running:
                        self._collect(running)
                    idle = not waiting and not running
                    late = interval is not None and time.monotonic() - last_commit >= interval
                    if self.done and (idle or late or self._is_large()):
                        waiting += self._commit()
                        last_commit = time.monotonic()
        except BaseException:
            self._clean_up()
            raise
        return Optimized(self.result, self.metrics(self.committed))

    def _is_large(self) -> bool:
        """Whether the files that were written again since the last commit are as large as one may be."""
        size = self.options.commit_size
        return size is not None and sum(_total(d.group.files.column("size")) for d in self.done) >= size

    def _collect(self, running: dict[Task[Rewritten], Group]) -> None:
        """Wait for a group and take what was written."""
        for future in first_done(running)[: 1 if self.commits_each else None]:
            written = future.result()
            group = running.pop(future)
            self.done.append(_Done(group, written))
            before = self.progress
            self.progress = OperationProgress(
                before.files + group.files.num_rows,
                before.total_files,
                before.rows + written.num_rows,
                before.bytes + _total(group.files.column("size")),
                before.total_bytes,
            )
            if self.options.progress is not None:
                self.options.progress(self.progress)

    def _write(self, group: Group) -> Rewritten:
        written = self._write_ordered_group(group) if self.order_by else self.rewrites.write(group.files, group.syncs)
        self.uncommitted.update(written.paths)
        describe = self.options.describe
        return written if describe is None else self.rewrites.described(written, describe)

    def _write_ordered_group(self, group: Group) -> Rewritten:
        """Write the rows of each partition in order."""
        if group.num_bins == 1:
            return self._write_ordered(group.files, group.syncs)
        partitions = self.rewrites.partitions(group.files)
        order = np.argsort(partitions, kind="stable")
        files, partitions = pc.take(group.files, number_array(order)), partitions[order]
        written = self._write_together(files, partitions, group.syncs)
        if written is not None:
            return written
        bounds = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
        return self._join([self._write_ordered(files.slice(a, b - a), group.syncs) for a, b in pairwise(bounds)])

    def _join(self, parts: Sequence[Rewritten]) -> Rewritten:
        joined: Rewritten = self.rewrites.join(parts)
        return joined

    def _write_together(self, files: pa.Table, partitions: Ints, syncs: Syncs) -> Rewritten | None:
        """Write the rows of small partitions, each in order, at once; None if they do not fit into memory.

        The files are those of one partition after the other, as ``partitions`` specifies.
        """
        held: list[pa.RecordBatch] = []
        size = 0
        with self.rewrites.moved(files, numbered=True) as batches:
            for batch in batches:
                held.append(batch)
                size += batch.nbytes
                if size > self._memory // 2:
                    return None
            table = pa.Table.from_batches(held, batches.schema).combine_chunks()
        numbers = partitions[int64_values(table.column(FILE_NUMBER))]
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        table = table.drop_columns([FILE_NUMBER])
        orders = []
        for start, end in pairwise(bounds):
            own = table.slice(start, end - start)
            ordered = self._ordered_rows(None, 1, own.num_rows)
            orders.append(int64_values(pc.cast(ordered.order_of(own), pa.int64())) + start)
        return self._write_run(table, number_array(np.concatenate(orders)), syncs)

    def _write_ordered(self, files: pa.Table, syncs: Syncs) -> Rewritten:
        """Write the rows of a partition in order, a file for each run of rows."""
        assert self.options.order is not None
        num_files = max(1, round(_total(files.column("size")) / self.target))
        num_rows = self.rewrites.num_rows(files)
        wanted = RowOrder(self.order_by, self.options.order, num_files, num_rows)
        by_engine: Rewritten | None = self.rewrites.write_ordered(files, wanted, syncs)
        if by_engine is not None:
            return by_engine
        ordered = self._ordered_rows(files, num_files, num_rows)
        written: list[Task[Rewritten]] = []
        with ThreadPool(self.tasks_of_group, "delta-optimize") as pool:
            for table, order in ordered.parts(self.rewrites.moved(files)):
                count = max(1, round(num_files * len(order) / max(num_rows, len(order))))
                bounds = [len(order) * i // count for i in range(count + 1)]
                runs = [order.slice(a, b - a) for a, b in pairwise(bounds) if b > a]
                written += [pool.submit(self._write_run, table, run, syncs) for run in runs]
                # the next part needs the memory of this one
                for task in written:
                    task.wait()
            return self._join([f.result() for f in written])

    @property
    def _memory(self) -> int:
        """Bytes for the rows of a group."""
        return (self.options.max_spill_size or MEMORY_BYTES) * self.tasks_of_group // self.tasks

    def _ordered_rows(self, files: pa.Table | None, num_files: int, num_rows: int) -> OrderedRows:
        assert self.options.order is not None
        return OrderedRows(
            self.order_by,
            self.options.order,
            num_files,
            num_rows,
            Spill(self._memory, self.options.max_temp_directory_size),
            lambda: self.rewrites.column_rows(files, [p[:1] for p in self.order_by]).to_reader(),
        )

    def _write_run(self, table: pa.Table, run: pa.Array, syncs: Syncs) -> Rewritten:
        written: Rewritten = self.rewrites.write_rows(pc.take(table, run), syncs)
        self.uncommitted.update(written.paths)
        return written

    def _clean_up(self) -> None:
        """Delete what did not become part of the table; what may have become part of it stays."""
        maybe = {p for done in self.done for p in done.written.paths} if self.rewrites.in_doubt else set[str]()
        self.rewrites.delete(sorted(self.uncommitted - maybe))

    # --- commits ---

    def _parameters(self) -> dict[str, Any]:
        options = self.options
        shown = predicate_text(options.predicate, options.predicate)
        by = compact_json(list(options.order_by))
        if options.purge:
            return {"predicate": shown, "applyPurge": True, **options.parameters}
        found: dict[str, Any] = {"predicate": shown, "zOrderBy": "[]", "clusterBy": "[]", "auto": False}
        if options.order == "zorder":
            found["zOrderBy"] = by
        elif options.order is not None:
            found.update(orderBy=by, order=options.order)
        return {**found, **options.parameters}

    def _commit(self) -> list[Group]:
        """Commit what is done; return the groups to write again since other writers changed their files."""
        again = self._take_live()
        if not self.done:
            return again
        now = [(d.group.files, d.written) for d in self.done]
        syncs = [sync for d in self.done for sync in d.group.syncs]
        options = replace(self.options, transactions={}) if self.committed else self.options
        try:
            attempts = self.rewrites.commit(now, syncs, options, self._operation_metrics(now))
        except (MetadataChangedError, ProtocolChangedError):
            raise
        except CommitConflictError as e:
            return again + self._rebase(e)
        self.result = self.rewrites.base
        self.checked += attempts > 1
        self.committed += now
        for done in self.done:
            self.uncommitted.difference_update(done.written.paths)
        self.done = []
        return again

    def _rebase(self, conflict: CommitConflictError) -> list[Group]:
        """Go on from the latest version; return the groups to write again."""
        if not self.rewrites.follow():
            raise conflict
        self.checked += 1
        before_check = len(self.done)
        again = self._take_live()
        if len(self.done) == before_check or any(group.attempts > MOST_ATTEMPTS for group in again):
            raise conflict
        return again

    def _take_live(self) -> list[Group]:
        """Discard what was written for files no longer live; return groups of these files as they are now."""
        if all(d.group.checked == self.checked for d in self.done):
            return []
        live = self.rewrites.live(self.done[0].group.files.column_names)
        kept, again = list[_Done](), list[Group]()
        for done in self.done:
            group = done.group
            if live.have(group.files):
                group.checked = self.checked
                kept.append(done)
                continue
            done.written.cleanup()
            files = live.now(group.files)
            if files.num_rows:
                again.append(Group(files, group.num_bins, group.attempts + 1, self.checked))
        self.done = kept
        return again

    # --- metrics ---

    def metrics(self, done: Sequence[tuple[pa.Table, Rewritten]]) -> dict[str, Any]:
        """Return the metrics of deltalake, and the vectors."""
        added, removed = _sizes([w.adds for _, w in done]), _sizes([files for files, _ in done])
        order = self.options.order
        deletions = [self.rewrites.deletions(files) for files, _ in done]
        return {
            "numFilesAdded": len(added),
            "numFilesRemoved": len(removed),
            "filesAdded": _summary(added),
            "filesRemoved": _summary(removed),
            "partitionsOptimized": self.groups.num_partitions,
            "numBatches": sum(g.num_bins for g in self.groups.groups),
            "totalConsideredFiles": self.groups.num_considered,
            "totalFilesSkipped": self.groups.num_considered - len(removed),
            "preserveInsertionOrder": order is None,
            "plannerStrategy": _STRATEGIES.get(order or "", "preserveLocality"),
            "preservedStableOrder": order is None,
            "maxBinSpanFiles": self.groups.most_files,
            "numDeletionVectorsRemoved": sum(n for n, _ in deletions),
            "numDeletionVectorRowsRemoved": sum(rows for _, rows in deletions),
            **self.rewrites.facts,
        }

    def _operation_metrics(self, done: Sequence[tuple[pa.Table, Rewritten]]) -> dict[str, int]:
        """Return the metrics of delta-spark."""
        added, removed = _sizes([w.adds for _, w in done]), _sizes([files for files, _ in done])
        vectors = sum(self.rewrites.deletions(files)[0] for files, _ in done)
        quantiles = {"minFileSize": 0, "p25FileSize": 25, "p50FileSize": 50, "p75FileSize": 75, "maxFileSize": 100}
        return {
            "numAddedFiles": len(added),
            "numAddedBytes": int(added.sum()),
            "numRemovedFiles": len(removed),
            "numRemovedBytes": int(removed.sum()),
            "numDeletionVectorsRemoved": vectors,
            **{
                name: int(np.percentile(added, q, method="inverted_cdf")) if len(added) else 0
                for name, q in quantiles.items()
            },
        }


def _check_numbers(options: OptimizeOptions) -> None:
    check_number("target_size", options.target_size, 1, what="a number")
    check_number("max_concurrent_tasks", options.max_concurrent_tasks, 1, what="a number")
    check_number("min_commit_interval", options.min_commit_interval, 0, what="a number", kinds=(int, float))
    check_limits(options.max_spill_size, options.max_temp_directory_size, least_memory=1)


def _total(sizes: pa.ChunkedArray) -> int:
    return int(pc.sum(sizes).as_py() or 0)


def _sizes(tables: Sequence[pa.Table]) -> Any:
    if not tables:
        return np.zeros(0, np.int64)
    return np.concatenate([int64_values(pc.fill_null(t.column("size"), 0)) for t in tables])


def _summary(sizes: Any) -> str:
    """Return what deltalake reports of files, as the JSON text that it is there."""
    count, total = len(sizes), int(sizes.sum())
    found = {
        "avg": total / count if count else 0.0,
        "max": int(sizes.max(initial=0)),
        "min": int(sizes.min()) if count else 0,
        "totalFiles": count,
        "totalSize": total,
    }
    return compact_json(found)
