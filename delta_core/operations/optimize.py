"""Write the rows of files again without changing any: small files joined, deleted rows left out, rows sorted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import CommitConflictError, InvalidArgumentError, MetadataChangedError, ProtocolChangedError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import NUM_RECORDS, Expression
from delta_core.expressions.printing import format_sql
from delta_core.kernel.commit.intents import read_columns, removed_files
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.scan.plan import resolve_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernel.write.files import Written, delete_written, join_written, write_files
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernel.write.properties import target_file_size
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, number_array, one_array
from delta_core.kernels.curves import check_ordered, curve_bits
from delta_core.kernels.dedup import KeySet
from delta_core.operations.bins import (
    Group,
    Groups,
    Ints,
    alone,
    deleted_shares,
    group_bins,
    pack_bins,
    partition_numbers,
)
from delta_core.operations.changes import FILE_NUMBER
from delta_core.operations.facts import has_transactions
from delta_core.operations.progress import OperationProgress
from delta_core.operations.rewrite import carried_columns, moved_rows, rewrite_ordered, rewrite_rows, selects_partitions
from delta_core.operations.row_changes import predicate_text, with_numbers
from delta_core.operations.row_order import Order, OrderedRows, Spill
from delta_core.operations.temporary import check_limits
from delta_core.runtime.arguments import check_number
from delta_core.runtime.threads import Task, ThreadPool, first_done
from delta_core.schema.fields import Path, find, format_path
from delta_core.schema.types import PrimitiveType

__all__ = ["OptimizeOptions", "Optimized", "optimize_table", "plan_optimize"]

#: A file with more deleted rows than this share is written again whatever its size, as by delta-spark.
DELETED_SHARE = 0.05
#: How often a group is written again since other writers changed its files.
MOST_ATTEMPTS = 16
#: Memory for rows that are ordered, unless a limit is given.
MEMORY_BYTES = 2 << 30
#: Partitions are ordered by one read and one write up to so many bytes of files; their rows are in memory together.
ORDERED_TOGETHER_BYTES = 8 << 20
_LONG = PrimitiveType("long")
#: What deltalake reports of the way in which files were chosen.
_STRATEGIES = {"zorder": "zOrder", "hilbert": "hilbert", "linear": "sort"}


class OptimizeOptions(Struct, frozen=True):
    """Which files are written again, and how.

    Parameters
    ----------
    predicate : str, filters or Expression, optional
        Over partition columns: only files of these partitions.
    target_size : int, optional
        Bytes of a file; else ``delta.targetFileSize``.
    purge : bool
        Write every file with a deletion vector again, and no other.
    order : str, optional
        Write all rows of each partition again in another order: ``zorder`` or ``hilbert`` along a curve through
        ``order_by``, ``linear`` sorted by it.
    order_by : sequence of str
        Columns, dotted for fields of structs.
    max_spill_size : int, optional
        Bytes of memory for rows that are ordered; more go by way of temporary files.
    max_temp_directory_size : int, optional
        Bytes of these files; no limit unless given.
    choose : function(pyarrow.Table) -> sequence of int64 arrays, optional
        From the live files (columns of `intents.READ_FILE`), the bins of file numbers to write again, each within one
        partition; in place of the choice made here.
    describe : function(pyarrow.Table) -> pyarrow.Table, optional
        Called with the adds of each bin that was written; returns what is committed, for example with tags.
    parameters : Mapping
        What history states beside, or in place of, the usual operation parameters.
    max_concurrent_tasks : int, optional
        How many groups of files are written at a time; as many as the engine has cores unless given.
    min_commit_interval : float, optional
        Seconds after which what is done is committed; 0: each group by itself. None: everything in one commit.
    writer_properties : WriterProperties, optional
        How the Parquet files are encoded; goes before the table's properties.
    progress : function(OperationProgress), optional
        Called after each group.
    transactions : Mapping of str to int
        Versions of applications that the commit records.
    custom_metadata : Mapping
        Further fields of ``commitInfo``.
    max_commit_retries : int
        How often a lost race is run again.
    post : PostCommit
        What follows the commit.
    """

    predicate: Any = None
    target_size: int | None = None
    purge: bool = False
    order: Order | None = None
    order_by: Sequence[str] = ()
    max_spill_size: int | None = None
    max_temp_directory_size: int | None = None
    choose: Callable[[pa.Table], Sequence[Ints]] | None = None
    describe: Callable[[pa.Table], pa.Table] | None = None
    parameters: Mapping[str, Any] = {}
    max_concurrent_tasks: int | None = None
    min_commit_interval: float | None = None
    writer_properties: WriterProperties | None = None
    progress: Callable[[OperationProgress], None] | None = None
    transactions: Mapping[str, int] = {}
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = MAX_COMMIT_RETRIES
    post: PostCommit = field(default_factory=PostCommit)


class Optimized(Struct, frozen=True):
    """What an optimize came to.

    Parameters
    ----------
    snapshot : Snapshot
        The table after its last commit; as it was if no file was written again.
    metrics : Mapping
        Named as deltalake's.
    """

    snapshot: Snapshot
    metrics: Mapping[str, Any]


class _Done(Struct, frozen=True):
    """A group that is written and not yet committed."""

    group: Group
    written: Written


def plan_optimize(base: Snapshot, options: OptimizeOptions) -> Groups:
    """Return the files that would be written again.

    Raises
    ------
    InvalidArgumentError
        For a predicate that needs other columns than partition columns, or a size or number that is none.
    """
    return _Optimize(base, options).plan()


def optimize_table(base: Snapshot, options: OptimizeOptions) -> Optimized:
    """Write files again and commit; rows, row ids and change feed stay as they are.

    Without ``purge``, files below the target size are joined with others of their partition, in the order in which they
    were written, and files with many deleted rows are written without these. If another writer changes files in the
    meantime, they are read again as they are now; appends never conflict.

    Parameters
    ----------
    base : Snapshot
        The version to begin with.
    options : OptimizeOptions
        Which files are written again, and how.

    Raises
    ------
    InvalidArgumentError
        For a predicate that needs other columns than partition columns, or a size or number that is none.
    CommitConflictError
        Another writer changed the table's definition, or the same files again and again. Groups that are committed
        already stay; what else was written is deleted.
    """
    latest = base.latest()
    done = _Optimize(latest, options)
    if has_transactions(latest, options.transactions):
        return Optimized(latest, done.metrics([]))
    return done.run()


class _Optimize:
    """One optimize: which files, what is written in their place, the commits."""

    def __init__(self, base: Snapshot, options: OptimizeOptions) -> None:
        _check_numbers(options)
        self.base = base
        self.options = options
        self.result = base
        self.plan_of_write: WritePlan = self._begin().plan
        self.carried = carried_columns(self.plan_of_write)
        self.target = target_file_size(base.state, options.target_size)
        self.order_by = self._order_columns()
        self.predicate = _predicate(base, options.predicate)
        self.groups = Groups([], 0, 0, 0)
        relations = base.engine.relations
        self.tasks = options.max_concurrent_tasks or (1 if relations is None else relations.num_tasks)
        self.tasks_of_group = self.tasks
        self.done: list[_Done] = []
        self.committed: list[tuple[pa.Table, Written]] = []
        #: Files that are whole and in no commit, noted by the threads that wrote them: an interrupt loses none.
        self.uncommitted: set[str] = set()
        #: What commits `done`.
        self.transaction: Transaction[Snapshot] | None = None
        #: Counts the times that others committed before this run: files that were read earlier are looked for again.
        self.checked = 0
        self.progress = OperationProgress(0, 0, 0, 0, 0)

    @property
    def commits_each(self) -> bool:
        """Whether each group has a commit of its own: then bins of small partitions are not written together."""
        return self.options.min_commit_interval == 0

    # --- which files ---

    def plan(self) -> Groups:
        """Return the groups of files to write again."""
        base = self.base
        files = base.files if self.predicate is None else base.scan(predicate=self.predicate).file_set
        table = files.columns(read_columns(base.action_fields))
        if not table.num_rows:
            return Groups([], 0, 0, 0)
        partitions = self._partitions(files)
        bins, together = self._bins(files, table, partitions)
        groups = [Group(pc.take(table, number_array(np.concatenate(group))), len(group)) for group in together]
        touched = {int(partitions[one[0]]) for one in bins}
        return Groups(groups, max(map(len, bins), default=0), table.num_rows, len(touched))

    def _partitions(self, files: FileSet) -> Ints:
        """Return the number of each file's partition."""
        schema, columns = self.base.schema, self.base.state.column_map
        names = self.base.state.partition_columns
        return partition_numbers(files, [columns.physical_path(schema, find(schema, (c,))[0])[0] for c in names])

    def _bins(self, files: FileSet, table: pa.Table, partitions: Ints) -> tuple[list[Ints], list[list[Ints]]]:
        """Return the bins, and which of them are written together."""
        if self.options.choose is not None:
            bins = list(self.options.choose(table))
            return bins, alone(bins)
        sizes = int64_values(pc.fill_null(table.column("size"), 0))
        times = int64_values(pc.fill_null(table.column("modificationTime"), 0))
        # disks have coarse clocks; a file in a checkpoint has no version, and is older than all that have
        versions = int64_values(pc.fill_null(files.columns(["version"]).column(0), -1))
        order = np.lexsort((versions, times, partitions))
        if self.options.order is not None:
            bins = list(pack_bins(order, partitions, sizes, int(sizes.sum())))
            if self.base.engine.remote_rows is not None or self.commits_each:
                return bins, alone(bins)
            # those that are written together become a file each
            return bins, list(group_bins(bins, partitions, sizes, min(ORDERED_TOGETHER_BYTES, self.target)))
        shares = deleted_shares(files, table.column("deletionVector"))
        is_due = shares > (0 if self.options.purge else DELETED_SHARE)
        chosen = is_due if self.options.purge else is_due | (sizes < self.target)
        found = pack_bins(order[chosen[order]], partitions, sizes, self.target)
        bins = [one for one in found if len(one) > 1 or is_due[one[0]]]
        return bins, alone(bins) if self.commits_each else list(group_bins(bins, partitions, sizes))

    def _order_columns(self) -> tuple[Path, ...]:
        options, base = self.options, self.base
        if options.order is None:
            return ()
        if options.order not in ("zorder", "hilbert", "linear"):
            raise InvalidArgumentError(f"Found order={options.order!r}, expected zorder, hilbert or linear.")
        found = resolve_columns(base.schema, options.order_by)
        if not found:
            raise InvalidArgumentError("Found no columns to order rows by, expected at least one.")
        by = next((p for p in found if p[0] in base.state.partition_columns), None)
        if by is not None:
            raise InvalidArgumentError(
                f"Column {format_path(by)} is a partition column: all rows of a file have the same value of it. Leave "
                "it out."
            )
        if options.order != "linear":
            curve_bits(len(found), 1)
        for path in found:
            try:
                check_ordered(find(base.schema, path)[1].type.to_arrow(base.state.types))
            except InvalidArgumentError as e:
                raise InvalidArgumentError(f"Column {format_path(path)}: {e.message}") from e
        return found

    # --- the run ---

    def run(self) -> Optimized:
        """Write and commit; where that fails, delete what no commit names."""
        self.groups = self.plan()
        waiting = list(reversed(self.groups.groups))
        self.progress = OperationProgress(
            0, sum(g.files.num_rows for g in waiting), 0, 0, sum(_total(g.files.column("size")) for g in waiting)
        )
        running: dict[Task[Written], Group] = {}
        last_commit = time.monotonic()
        interval = self.options.min_commit_interval
        tasks = min(self.tasks, max(len(waiting), 1))
        self.tasks_of_group = max(1, self.tasks // tasks)
        try:
            with ThreadPool(tasks, "delta-optimize") as pool:
                while waiting or running or self.done:
                    while waiting and len(running) < tasks:
                        group = waiting.pop()
                        running[pool.submit(self._write, self.base, group)] = group
                    if running:
                        self._collect(running)
                    idle = not waiting and not running
                    if self.done and (idle or (interval is not None and time.monotonic() - last_commit >= interval)):
                        waiting += self._commit()
                        last_commit = time.monotonic()
        except BaseException:
            self._clean_up()
            raise
        return Optimized(self.result, self.metrics(self.committed))

    def _collect(self, running: dict[Task[Written], Group]) -> None:
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

    def _write(self, base: Snapshot, group: Group) -> Written:
        if self.order_by:
            written = self._write_ordered_group(base, group)
        else:
            rows = base.scan(metadata=tuple(self.carried), files=FileSet.of(group.files))
            # as `_write_run`: the files of a bin become one, though their sizes are but an estimate of its size
            plan, target, properties = self.plan_of_write, 2 * self.target, self.options.writer_properties
            written = rewrite_rows(
                base.engine,
                plan,
                rows,
                self.carried,
                properties,
                data_change=False,
                in_order=True,
                target_size=target,
                syncs=group.syncs,
            )
        self.uncommitted.update(written.paths)
        describe = self.options.describe
        return written if describe is None else replace(written, files=describe(written.files))

    def _write_ordered_group(self, base: Snapshot, group: Group) -> Written:
        """Write the rows of each partition in order."""
        if group.num_bins == 1:
            return self._write_ordered(base, group.files, group.syncs)
        partitions = self._partitions(FileSet.of(group.files))
        order = np.argsort(partitions, kind="stable")
        files, partitions = pc.take(group.files, number_array(order)), partitions[order]
        written = self._write_together(base, files, partitions, group.syncs)
        if written is not None:
            return written
        bounds = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
        parts = [self._write_ordered(base, files.slice(a, b - a), group.syncs) for a, b in pairwise(bounds)]
        return join_written(base.engine, parts)

    def _write_together(
        self, base: Snapshot, files: pa.Table, partitions: Ints, syncs: list[Callable[[], None]]
    ) -> Written | None:
        """Write the rows of small partitions, each in order, at once; None if they do not fit into memory.

        The files are those of one partition after the other, as ``partitions`` specifies.
        """
        rows = base.scan(
            metadata=tuple(self.carried),
            files=FileSet.of(with_numbers(files)),
            constants={FILE_NUMBER: (FILE_NUMBER, _LONG)},
        )
        held: list[pa.RecordBatch] = []
        size = 0
        with moved_rows(base.engine, rows, self.carried) as batches:
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
            ordered = self._ordered_rows(base, None, 1, own.num_rows)
            orders.append(int64_values(pc.cast(ordered.order_of(own), pa.int64())) + start)
        return self._write_run(base, table, number_array(np.concatenate(orders)), syncs)

    def _write_ordered(self, base: Snapshot, own: pa.Table, syncs: list[Callable[[], None]]) -> Written:
        """Write the rows of a partition in order, a file for each run of rows."""
        assert self.options.order is not None
        files = FileSet.of(own)
        rows = base.scan(metadata=tuple(self.carried), files=files)
        num_files = max(1, round(_total(files.columns(["size"]).column(0)) / self.target))
        num_rows = _total(files.statistics([NUM_RECORDS]).column(0))
        properties, order = self.options.writer_properties, (self.order_by, self.options.order, num_files, num_rows)
        by_engine = rewrite_ordered(base.engine, self.plan_of_write, rows, self.carried, order, properties, syncs)
        if by_engine is not None:
            return by_engine
        ordered = self._ordered_rows(base, files, num_files, num_rows)
        written: list[Task[Written]] = []
        with ThreadPool(self.tasks_of_group, "delta-optimize") as pool:
            for table, order in ordered.parts(moved_rows(base.engine, rows, self.carried)):
                count = max(1, round(num_files * len(order) / max(num_rows, len(order))))
                bounds = [len(order) * i // count for i in range(count + 1)]
                runs = [order.slice(a, b - a) for a, b in pairwise(bounds) if b > a]
                written += [pool.submit(self._write_run, base, table, run, syncs) for run in runs]
                # the next part needs the memory of this one
                for task in written:
                    task.wait()
            return join_written(base.engine, [f.result() for f in written])

    @property
    def _memory(self) -> int:
        """Bytes for the rows of a group."""
        return (self.options.max_spill_size or MEMORY_BYTES) * self.tasks_of_group // self.tasks

    def _ordered_rows(self, base: Snapshot, files: FileSet | None, num_files: int, num_rows: int) -> OrderedRows:
        assert self.options.order is not None
        return OrderedRows(
            self.order_by,
            self.options.order,
            num_files,
            num_rows,
            Spill(self._memory, self.options.max_temp_directory_size),
            lambda: base.scan(columns=[p[:1] for p in self.order_by], files=files).to_reader(),
        )

    def _write_run(self, base: Snapshot, table: pa.Table, run: pa.Array, syncs: list[Callable[[], None]]) -> Written:
        written = write_files(
            base.engine,
            self.plan_of_write,
            pc.take(table, run),
            properties=self.options.writer_properties,
            target_size=2 * self.target,
            data_change=False,
            origin="moved",
            in_order=True,
            syncs=syncs,
        )
        self.uncommitted.update(written.paths)
        return written

    def _clean_up(self) -> None:
        """Delete what did not become part of the table; what may have become part of it stays."""
        in_doubt = self.transaction is not None and self.transaction.in_doubt
        maybe = {path for done in self.done for path in done.written.paths} if in_doubt else set[str]()
        delete_written(self.base.engine, sorted(self.uncommitted - maybe))

    # --- commits ---

    def _begin(self) -> Transaction[Snapshot]:
        return Transaction(self.base.context, self.base, "OPTIMIZE", self._parameters())

    def _parameters(self) -> dict[str, Any]:
        options = self.options
        shown = predicate_text(options.predicate, options.predicate)
        by = json.dumps(list(options.order_by))
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
        self.transaction = transaction = self._begin()
        for done in self.done:
            transaction.remove_files(removed_files(done.group.files, False))
            transaction.add_written(done.written)
            transaction.syncs += done.group.syncs
        now = [(d.group.files, d.written) for d in self.done]
        transaction.metrics.update(self._operation_metrics(now))
        if not self.committed:
            for app_id, version in self.options.transactions.items():
                transaction.set_transaction(app_id, version)
        options = self.options
        try:
            result = transaction.commit(None, options.custom_metadata, options.max_commit_retries, post=options.post)
        except (MetadataChangedError, ProtocolChangedError):
            raise
        except CommitConflictError as e:
            return again + self._rebase(e)
        self.result = self.base = result.snapshot
        self.checked += result.attempts > 1
        self.committed += now
        for done in self.done:
            self.uncommitted.difference_update(done.written.paths)
        self.done = []
        self.transaction = None
        return again

    def _rebase(self, conflict: CommitConflictError) -> list[Group]:
        """Go on from the latest version; return the groups to write again."""
        before = self.base
        self.base = before.update()
        if self.base.metadata != before.metadata or self.base.protocol != before.protocol:
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
        live = self.base.files.columns(self.done[0].group.files.column_names)
        keys = KeySet()
        keys.insert(live.column("path"), live.column("dvId"))
        kept, again = list[_Done](), list[Group]()
        for done in self.done:
            group = done.group
            if keys.contains(group.files.column("path"), group.files.column("dvId")).all():
                group.checked = self.checked
                kept.append(done)
                continue
            done.written.cleanup()
            files = pc.filter(live, pc.is_in(live.column("path"), value_set=one_array(group.files.column("path"))))
            if files.num_rows:
                again.append(Group(files, group.num_bins, group.attempts + 1, self.checked))
        self.done = kept
        return again

    # --- metrics ---

    def metrics(self, done: Sequence[tuple[pa.Table, Written]]) -> dict[str, Any]:
        """Return the metrics of deltalake, and the vectors."""
        added, removed = _sizes([w.adds for _, w in done]), _sizes([files for files, _ in done])
        order = self.options.order
        vectors = [files.column("deletionVector") for files, _ in done]
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
            "numDeletionVectorsRemoved": sum(len(v) - v.null_count for v in vectors),
            "numDeletionVectorRowsRemoved": sum(
                int(pc.sum(pc.struct_field(one_array(v), "cardinality")).as_py() or 0) for v in vectors
            ),
        }

    def _operation_metrics(self, done: Sequence[tuple[pa.Table, Written]]) -> dict[str, int]:
        """Return the metrics of delta-spark."""
        added, removed = _sizes([w.adds for _, w in done]), _sizes([files for files, _ in done])
        vectors = sum(len(f) - f.column("deletionVector").null_count for f, _ in done)
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


def _predicate(base: Snapshot, given: Any) -> Expression | None:
    found = to_expression(given, base.schema, functions=base.plugins.functions)
    columns = base.state.partition_columns
    if found is None or selects_partitions(found, columns):
        return found
    raise InvalidArgumentError(
        f"Found the predicate {format_sql(found)}, expected one over partition columns alone: whole files are written "
        f"again. The table is partitioned by {', '.join(columns) or 'no column'}."
    )


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
    return json.dumps(found, separators=(",", ":"))
