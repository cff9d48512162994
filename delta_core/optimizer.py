"""The public API for optimize: `table.optimize`, with the names and call forms of `deltalake`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from delta_core import interop, operations
from delta_core.commit.options import CommitProperties, PostCommitHookProperties, check_properties
from delta_core.errors import InvalidArgumentError
from delta_core.protocol.properties import WriterProperties
from delta_core.snapshot import Snapshot

__all__ = ["TableOptimizer"]


class OptimizedTable(Protocol):
    """A table whose files are written again: a `DeltaTable`."""

    def snapshot(self) -> Snapshot:
        """Return the version that is loaded."""
        ...

    def adopt(self, snapshot: Snapshot) -> None:
        """Take a later version."""
        ...


class TableOptimizer:
    """Calls that write files of a table again without changing its rows; made by `DeltaTable.optimize`."""

    def __init__(self, table: OptimizedTable) -> None:
        self.table = table

    def compact(
        self,
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *args: Any,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """Join small files of each partition, and write files with many deleted rows without these.

        Rows, row ids, commit versions and the change feed stay as they are, and appends of other writers do not
        conflict. Rows keep the order in which they were written.

        Parameters
        ----------
        partition_filters : str or filters, optional
            Only partitions for which this is true, such as ``[("year", "=", "2021")]``.
        target_size : int, optional
            Bytes of a file; ``delta.targetFileSize`` or 128 MiB unless given.
        max_concurrent_tasks : int, optional
            How many groups of files are written at a time; the number of cores unless given.
        max_spill_size, max_temp_directory_size : int, optional
            Accepted for moved scripts: files are streamed, so nothing is spilled.
        min_commit_interval : int or timedelta, optional
            Seconds after which what is done is committed; 0: each group of files by itself. Everything in one commit
            unless given.
        writer_properties : WriterProperties, optional
            How the files are encoded; goes before the table's properties.
        *args : object
            Rejected: the arguments after these are passed by name.
        commit_properties : CommitProperties, optional
            How each commit is made.
        post_commithook_properties : PostCommitHookProperties, optional
            What follows each commit.
        progress : function(OptimizeProgress), optional
            Called after each group of files.

        Returns
        -------
        dict
            ``numFilesAdded``, ``numFilesRemoved``, ``filesAdded`` and ``filesRemoved`` (JSON texts), and the other
            names that `deltalake` returns.

        Raises
        ------
        InvalidArgumentError
            For filters over other columns than partition columns, and arguments of another kind than expected.
        CommitConflictError
            Another writer changed the table's definition, or the same files again and again.
        """
        _check_positional("compact", args)
        return self._run(
            partition_filters,
            commit_properties,
            writer_properties,
            post_commithook_properties,
            target_size=target_size,
            max_concurrent_tasks=max_concurrent_tasks,
            min_commit_interval=_seconds(min_commit_interval),
            progress=progress,
        )

    def purge(
        self,
        partition_filters: Any = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        min_commit_interval: int | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """Write every file with deleted rows without these, so that no deletion vector is left.

        The arguments, results and errors are those of `compact`.
        """
        return self._run(
            partition_filters,
            commit_properties,
            writer_properties,
            post_commithook_properties,
            target_size=target_size,
            purge=True,
            max_concurrent_tasks=max_concurrent_tasks,
            min_commit_interval=_seconds(min_commit_interval),
            progress=progress,
        )

    def _run(
        self,
        partition_filters: Any,
        commit_properties: CommitProperties | None,
        writer_properties: WriterProperties | None,
        post_commithook_properties: PostCommitHookProperties | None,
        **options: Any,
    ) -> dict[str, Any]:
        commit, post = check_properties(commit_properties, writer_properties, post_commithook_properties)
        snapshot = self.table.snapshot()
        done = operations.optimize_table(
            snapshot,
            operations.OptimizeOptions(
                predicate=interop.file_filter(snapshot, partition_filters),
                writer_properties=writer_properties,
                transactions=commit.transactions,
                custom_metadata=commit.custom_metadata or {},
                max_commit_retries=commit.retries,
                post=post.post_commit,
                **options,
            ),
        )
        self.table.adopt(done.snapshot)
        return dict(done.metrics)


def _seconds(interval: int | timedelta | None) -> float | None:
    return interval.total_seconds() if isinstance(interval, timedelta) else interval


def _check_positional(name: str, given: tuple[Any, ...]) -> None:
    if given:
        raise InvalidArgumentError(f"{name} takes commit_properties and post_commithook_properties by name only.")
