"""The public API for optimize: `table.optimize`, with the names and call forms of `deltalake`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from delta_core import operations
from delta_core.engines.writer_properties import WriterProperties
from delta_core.kernel.commit.options import CommitProperties, PostCommitHookProperties, write_arguments
from delta_core.kernel.snapshot import Snapshot
from delta_core.runtime.arguments import check_names, check_number, properties_by_position
from delta_core.table import interop

if TYPE_CHECKING:
    from delta_core.expressions.filters import PredicateLike

__all__ = ["TableOptimizer"]


class OptimizedTable(Protocol):
    """A table whose files are written again: a `DeltaTable`."""

    def snapshot(self) -> Snapshot:
        """Return the version that is loaded."""
        ...

    def operation(self, name: str) -> Callable[..., Any]:
        """Return a feature's own operation, bound to the version that is loaded."""
        ...

    def adopt(self, snapshot: Snapshot) -> None:
        """Take a later version."""
        ...


class TableOptimizer:
    """Calls that write files of a table again without changing its rows; made by `DeltaTable.optimize`.

    Examples
    --------
    >>> table.optimize.compact()["numFilesAdded"]
    1
    """

    def __init__(self, table: OptimizedTable, *, prunes_files: bool = True, commit_size: int | None = None) -> None:
        self.table = table
        self._commit_size = commit_size
        #: Whether filters on other columns than partition columns choose files; if not, they are errors.
        self._prunes_files = prunes_files

    def __repr__(self) -> str:
        return f"TableOptimizer({self.table!r})"

    @properties_by_position("post_commithook_properties", "commit_properties")
    def compact(
        self,
        partition_filters: PredicateLike | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
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
            Only files that may hold rows for which this is true, such as ``[("year", "=", "2021")]``: exact for
            partitions, else as far as statistics report.
        target_size : int, optional
            Bytes of a file; ``delta.targetFileSize`` or 128 MiB unless given.
        max_concurrent_tasks : int, optional
            How many groups of files are written at a time; the number of cores unless given.
        max_spill_size, max_temp_directory_size : int, optional
            Accepted for moved scripts: files are streamed, so nothing is spilled.
        min_commit_interval : float or timedelta, optional
            Seconds after which what is done is committed; 0: each group of files by itself. Everything in one commit
            unless given.
        writer_properties : WriterProperties, optional
            How the files are encoded; goes before the table's properties.
        commit_properties : CommitProperties, optional
            How each commit is made.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.
        progress : function(OperationProgress), optional
            Called after each group of files.

        Returns
        -------
        dict
            ``numFilesAdded``, ``numFilesRemoved``, ``filesAdded`` and ``filesRemoved`` (JSON texts), and the other
            names that `deltalake` returns.

        Raises
        ------
        InvalidArgumentError
            For arguments of another kind than expected.
        CommitConflictError
            Another writer changed the table's definition, or the same files, at each attempt.

        Examples
        --------
        >>> metrics = table.optimize.compact(target_size=1 << 20)
        >>> metrics["numFilesRemoved"], metrics["numFilesAdded"]
        (2, 1)
        """
        check_number("max_spill_size", max_spill_size, 0)
        check_number("max_temp_directory_size", max_temp_directory_size, 0)
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

    @properties_by_position("post_commithook_properties", "commit_properties")
    def z_order(
        self,
        columns: Iterable[str],
        partition_filters: PredicateLike | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """Write all rows of each partition again, in the order of a Z-order curve through columns.

        Files then have narrow ranges of values in each of the columns, so that queries over any of them read few files.

        Parameters
        ----------
        columns : iterable of str
            Names, dotted for fields of structs; at most 16.
        partition_filters : str or filters, optional
            Only these partitions.
        target_size : int, optional
            Bytes of a file; ``delta.targetFileSize`` or 128 MiB unless given.
        max_concurrent_tasks : int, optional
            How many files are written at a time; the number of cores unless given.
        max_spill_size : int, optional
            Bytes of memory for the rows, 2 GiB unless given; more rows are sorted by way of temporary files.
        max_temp_directory_size : int, optional
            Bytes of these files; no limit unless given.
        min_commit_interval : float or timedelta, optional
            Seconds after which finished partitions are committed; 0: each by itself. Everything in one commit unless
            given.
        writer_properties : WriterProperties, optional
            How the files are encoded; goes before the table's properties.
        commit_properties : CommitProperties, optional
            How each commit is made.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.
        progress : function(OperationProgress), optional
            Called after each partition.

        Returns
        -------
        dict
            As of `compact`.

        Raises
        ------
        ColumnNotFoundError
            The table lacks a column.
        InvalidArgumentError
            For partition columns, columns of a type without an order, and arguments of another kind than expected.
        SpillLimitError
            The temporary files need more than ``max_temp_directory_size``.
        CommitConflictError
            Another writer changed the table's definition, or the same files, at each attempt.

        Examples
        --------
        >>> table.optimize.z_order(["id", "amount"])["numFilesAdded"]
        1
        """
        return self._ordered(
            "zorder",
            columns,
            partition_filters,
            target_size,
            max_concurrent_tasks,
            max_spill_size,
            max_temp_directory_size,
            min_commit_interval,
            writer_properties,
            commit_properties,
            post_commithook_properties,
            progress,
        )

    def hilbert(
        self, columns: Iterable[str], partition_filters: PredicateLike | None = None, **options: Any
    ) -> dict[str, Any]:
        """Write all rows of each partition again, in the order of a Hilbert curve through columns.

        Neighbours on the curve are neighbours in every column, so that files have narrower ranges than with `z_order`.

        Parameters
        ----------
        columns : iterable of str
            Names, dotted for fields of structs; at most 16.
        partition_filters : str or filters, optional
            Only these partitions.
        **options : object
            The other arguments of `z_order`, by name. Results and errors are the same too.

        Examples
        --------
        >>> table.optimize.hilbert(["id", "amount"])["numFilesAdded"]
        1
        """
        return self._ordered("hilbert", columns, partition_filters, **options)

    def sort(
        self, columns: Iterable[str], partition_filters: PredicateLike | None = None, **options: Any
    ) -> dict[str, Any]:
        """Write all rows of each partition again, sorted by columns: ascending, nulls first.

        Parameters
        ----------
        columns : iterable of str
            Names, the most important first; dotted for fields of structs.
        partition_filters : str or filters, optional
            Only these partitions.
        **options : object
            The other arguments of `z_order`, by name. Results and errors are the same too.

        Examples
        --------
        >>> table.optimize.sort(["city", "id"])["numFilesAdded"]
        1
        >>> table.to_pyarrow_table(columns=["id"]).to_pydict()
        {'id': [1, 3, 2]}
        """
        return self._ordered("linear", columns, partition_filters, **options)

    def cluster(
        self,
        *,
        full: bool = False,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """Order the rows of a clustered table by its clustering columns, along a Hilbert curve.

        Files that are clustered well enough stay as they are: see docs/optimize.md.

        Parameters
        ----------
        full : bool
            Write files that are clustered by other columns again, too.
        target_size : int, optional
            Bytes of a file; ``delta.targetFileSize`` or 128 MiB unless given.
        max_concurrent_tasks : int, optional
            How many files are written at a time; the number of cores unless given.
        max_spill_size : int, optional
            Bytes of memory for the rows, 2 GiB unless given; more rows are sorted by way of temporary files.
        max_temp_directory_size : int, optional
            Bytes of these files; no limit unless given.
        min_commit_interval : float or timedelta, optional
            Seconds after which the finished groups are committed.
        writer_properties : WriterProperties, optional
            How the files are encoded; goes before the table's properties.
        commit_properties : CommitProperties, optional
            How each commit is made.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.
        progress : function(OperationProgress), optional
            Called after each group of files.

        Returns
        -------
        dict
            As of `compact`.

        Raises
        ------
        UnsupportedOperationError
            The table is not clustered.
        CommitConflictError
            Another writer changed the table's definition, or the same files, at each attempt.

        Examples
        --------
        >>> write_deltalake("clustered", rows, cluster_by=["city"])
        >>> DeltaTable("clustered").optimize.cluster()["numFilesAdded"]
        1
        """
        arguments = write_arguments(commit_properties, writer_properties, post_commithook_properties)
        options = operations.OptimizeOptions(
            target_size=target_size,
            max_concurrent_tasks=max_concurrent_tasks,
            max_spill_size=max_spill_size,
            max_temp_directory_size=max_temp_directory_size,
            min_commit_interval=_seconds(min_commit_interval),
            commit_size=self._commit_size,
            progress=progress,
            **arguments,
        )
        done = self.table.operation("cluster")(options, full=full)
        self.table.adopt(done.snapshot)
        return dict(done.metrics)

    def purge(
        self,
        partition_filters: PredicateLike | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        """Write every file with deleted rows without these, so that no deletion vector is left.

        The arguments, results and errors are those of `compact`.

        Parameters
        ----------
        partition_filters, target_size, max_concurrent_tasks, min_commit_interval, writer_properties : optional
            As for `compact`.
        commit_properties : CommitProperties, optional
            How each commit is made.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows each commit.
        progress : function(OperationProgress), optional
            Called after each group of files.

        Examples
        --------
        >>> tracked.optimize.purge()["numFilesRemoved"]
        1
        >>> tracked.deletion_vectors().read_all().num_rows
        0
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

    def _ordered(
        self,
        order: str,
        columns: Iterable[str],
        partition_filters: PredicateLike | None = None,
        target_size: int | None = None,
        max_concurrent_tasks: int | None = None,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        min_commit_interval: float | timedelta | None = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[Any], None] | None = None,
    ) -> dict[str, Any]:
        check_names("columns", columns)
        return self._run(
            partition_filters,
            commit_properties,
            writer_properties,
            post_commithook_properties,
            order=order,
            order_by=tuple(columns),
            target_size=target_size,
            max_concurrent_tasks=max_concurrent_tasks,
            max_spill_size=max_spill_size,
            max_temp_directory_size=max_temp_directory_size,
            min_commit_interval=_seconds(min_commit_interval),
            progress=progress,
        )

    def _run(
        self,
        partition_filters: PredicateLike | None,
        commit_properties: CommitProperties | None,
        writer_properties: WriterProperties | None,
        post_commithook_properties: PostCommitHookProperties | None,
        **options: Any,
    ) -> dict[str, Any]:
        arguments = write_arguments(commit_properties, writer_properties, post_commithook_properties)
        snapshot = self.table.snapshot()
        done = operations.optimize_table(
            snapshot,
            operations.OptimizeOptions(
                predicate=interop.file_filter(snapshot, partition_filters),
                prunes_files=self._prunes_files,
                commit_size=self._commit_size,
                **arguments,
                **options,
            ),
        )
        self.table.adopt(done.snapshot)
        return dict(done.metrics)


def _seconds(interval: float | timedelta | None) -> float | None:
    return interval.total_seconds() if isinstance(interval, timedelta) else interval
