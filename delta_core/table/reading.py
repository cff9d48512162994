"""Reads of a table: its files, its rows, and the rows that changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from delta_core import expressions, operations
from delta_core.errors import InvalidArgumentError
from delta_core.kernel import log as delta_log
from delta_core.runtime.arguments import check_kinds, check_names, check_number
from delta_core.table import interop
from delta_core.table.opened_table import OpenedTable

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

    from delta_core.expressions.filters import PredicateLike
    from delta_core.kernel.log.position import StreamPosition
    from delta_core.kernel.scan import Scan
    from delta_core.operations import TableStream
    from delta_core.table.interop import ChangeFeed

__all__ = ["ReadMethods"]


class ReadMethods(OpenedTable):
    """Reads: files, rows, and the rows that changed; nothing is written."""

    # --- files ---

    def file_uris(
        self, partition_filters: PredicateLike | None = None, *, file_pruning_predicate: PredicateLike | None = None
    ) -> list[str]:
        """Return the absolute URIs of the data files; local ones are plain paths.

        Parameters
        ----------
        file_pruning_predicate : str or filters
            SQL, or tuples such as ``[("year", "=", "2021")]`` (a list of lists is OR over AND). It chooses files by
            partition exactly and by statistics as far as they report: rows are not filtered. ``("year", "=", "")``
            matches null.
        partition_filters
            The older name of the same.

        Examples
        --------
        >>> len(by_city.file_uris([("city", "=", "Oslo")]))
        1
        """
        return interop.file_uris(self._snapshot, _one_of(partition_filters, file_pruning_predicate))

    def partitions(
        self, partition_filters: PredicateLike | None = None, *, file_pruning_predicate: PredicateLike | None = None
    ) -> list[dict[str, Any]]:
        """Return the distinct partitions, each column's value as the text of the log, None for null.

        Parameters
        ----------
        partition_filters : filters, optional
            The older name of ``file_pruning_predicate``.
        file_pruning_predicate : str or filters, optional
            Only partitions with files for which this may be true, as for `file_uris`.

        Examples
        --------
        >>> by_city.partitions([("city", "=", "Oslo")])
        [{'city': 'Oslo'}]
        """
        return interop.partition_values(self._snapshot, _one_of(partition_filters, file_pruning_predicate))

    def get_add_actions(self, flatten: bool = False) -> pa.Table:
        """Return a row for each data file: path, size, time, rows, statistics and partition values.

        Parameters
        ----------
        flatten : bool
            Columns ``null_count.a``, ``min.a``, ``max.a`` and ``partition.p`` instead of four structs.

        Examples
        --------
        >>> table.get_add_actions(flatten=True).column("max.id").to_pylist()
        [2, 3]
        """
        check_kinds([("flatten", flatten)])
        return interop.add_actions(self._snapshot, flatten)

    def count(self) -> int:
        """Return the number of rows, from statistics where files have them, and else from footers.

        Examples
        --------
        >>> table.count()
        3
        """
        return self.scan().count()

    def deletion_vectors(self) -> pa.RecordBatchReader:
        """Return ``filepath`` and ``selection_vector`` (true: the row is there) of each file with deleted rows.

        Examples
        --------
        >>> tracked.deletion_vectors().read_all().column("selection_vector").to_pylist()
        [[True, False, True]]
        """
        return interop.keep_masks(self._snapshot)

    # --- rows ---

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: PredicateLike | None = None,
        *,
        metadata: Sequence[str] = (),
        limit: int | None = None,
    ) -> Scan:
        """Plan a read of rows, to be read many times: by ``to_table()``, ``to_reader()``, ``count()`` and so on.

        See `scan.scan.Scan` for the arguments, and for what it does. DuckDB, Polars, pandas and PyArrow take it as a
        stream.

        Parameters
        ----------
        columns : sequence of str, optional
            In this order, dotted for fields of structs; all unless given.
        predicate : str, filters or Expression, optional
            Only rows for which it is true are returned.
        metadata : sequence of str
            Further columns, such as ``_file_path`` and ``_file_row_index``.
        limit : int, optional
            The most rows.

        Examples
        --------
        >>> table.scan(columns=["id", "city"], predicate="amount > 15").to_table().to_pylist()
        [{'id': 2, 'city': 'Rome'}, {'id': 3, 'city': 'Oslo'}]
        """
        return self._snapshot.scan(columns, metadata, predicate, limit)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._snapshot.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._snapshot.scan().schema.__arrow_c_schema__()

    def to_pyarrow_table(
        self,
        partitions: PredicateLike | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: PredicateLike | None = None,
    ) -> pa.Table:
        """Read rows into memory.

        Parameters
        ----------
        partitions : filters, optional
            Filters on partition columns; the same as putting them into ``filters``.
        columns : sequence of str, optional
            In this order; a name may be twice.
        filesystem : pyarrow.fs.FileSystem, optional
            Reads the data files instead of the table's own storage; its root is the table's. Only for tables that
            `to_pyarrow_dataset` serves.
        filters : filters, SQL text, or a pyarrow expression
            Rows for which it is true are returned. A pyarrow expression keeps pyarrow's semantics. In filters, null is
            a value for ``in`` and ``not in``, as for pyarrow.

        Examples
        --------
        >>> table.to_pyarrow_table(columns=["id"], filters=[("city", "=", "Oslo")]).to_pydict()
        {'id': [1, 3]}
        """
        if filesystem is not None:
            return interop.read_table(self.to_pyarrow_dataset(partitions, filesystem), columns, filters)
        if expressions.is_pyarrow(filters):
            return interop.read_table(
                interop.scan_dataset(self._snapshot, interop.file_filter(self._snapshot, partitions)), columns, filters
            )
        return interop.read_rows(self._snapshot, partitions, columns, filters)

    def to_pyarrow_dataset(
        self,
        partitions: PredicateLike | None = None,
        filesystem: Any = None,
        parquet_read_options: Any = None,
        schema: pa.Schema | None = None,
        as_large_types: bool = False,
        file_pruning_predicate: PredicateLike | None = None,
    ) -> Any:
        """Return a pyarrow dataset of the data files, with each file's partition values and bounds as guarantees.

        Filters are pyarrow's own from then on: NaN is neither equal to, less nor greater than anything. Row groups are
        pruned by the bounds of their columns, but for floating-point columns of files whose bounds leave NaN out.

        Parameters
        ----------
        partitions : filters, optional
            The older name of ``file_pruning_predicate``.
        filesystem : pyarrow.fs.FileSystem, optional
            Reads the data files instead of the table's own storage; its root is the table's.
        parquet_read_options : pyarrow.dataset.ParquetReadOptions or dict, optional
            How Parquet columns are read.
        schema : pyarrow.Schema, optional
            Of the dataset, instead of the table's.
        as_large_types : bool
            Whether strings, binary values and lists have 64-bit offsets.
        file_pruning_predicate : str or filters, optional
            Only files that may hold rows for which this is true, as for `file_uris`.

        Raises
        ------
        UnsupportedOperationError
            For a table whose files alone don't report its rows (deletion vectors, column mapping, hidden rows ...):
            `dataset` serves those.

        Examples
        --------
        >>> table.to_pyarrow_dataset().count_rows()
        3
        """
        check_kinds([("as_large_types", as_large_types)])
        return interop.parquet_dataset(
            self._snapshot,
            _one_of(partitions, file_pruning_predicate),
            filesystem,
            parquet_read_options,
            schema,
            as_large_types,
        )

    def dataset(self, *, encoded: bool = False) -> Any:
        """Return a ``pyarrow.dataset.Dataset`` that scans through this library, for any table.

        DuckDB and DataFusion push columns and filters into it.

        Parameters
        ----------
        encoded : bool
            Whether top-level strings are of the type ``dictionary<int32, string>``. DuckDB returns them as strings all
            the same, but takes half the time to group, count, compare or join repeated ones of files with many rows.

        Examples
        --------
        >>> import pyarrow.dataset as ds
        >>> table.dataset().to_table(columns=["id"], filter=ds.field("amount") > 15).to_pydict()
        {'id': [2, 3]}
        """
        return interop.scan_dataset(self._snapshot, encoded=encoded)

    def to_pandas(
        self,
        partitions: PredicateLike | None = None,
        columns: Sequence[str] | None = None,
        filesystem: Any = None,
        filters: PredicateLike | None = None,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
    ) -> pd.DataFrame:
        """Read rows into a pandas data frame; the arguments are `to_pyarrow_table`'s.

        Parameters
        ----------
        partitions, columns, filesystem, filters : optional
            As for `to_pyarrow_table`.
        types_mapper : function(pyarrow.DataType), optional
            Returns the pandas type for an Arrow type, or None for the default one.

        Examples
        --------
        >>> table.to_pandas(columns=["amount"])["amount"].tolist()
        [10.0, 20.0, 30.0]
        """
        interop.require("pandas")
        table = self.to_pyarrow_table(partitions, columns, filesystem, filters)
        return table.to_pandas(types_mapper=types_mapper)

    def to_polars(self) -> pl.LazyFrame:
        """Return a Polars lazy frame that pushes columns, predicate and limit into the scan.

        Large files of a local disk that need nothing of this library (no vectors, partitions or missing
        columns) are read by Polars itself, unless a condition of the query leaves few of their rows.

        Notes
        -----
        Polars plans its own scan when the frame is collected; the errors are its own if files are deleted before.
        The rows of the files that Polars reads come before those of others.

        Examples
        --------
        >>> import polars as pl
        >>> table.to_polars().select(pl.col("amount").sum()).collect().item()
        60.0
        """
        interop.require("polars")
        return interop.frame_of(self._snapshot)

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        *,
        file_pruning_predicate: PredicateLike | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """Return a relation of DuckDB, for queries of most of the rows.

        Large files of a local disk that need nothing of this library (no vectors, partitions or missing
        columns) are read by DuckDB itself, all others as by `dataset`.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection, optional
            The connection that the relation belongs to; DuckDB's default connection unless given.
        file_pruning_predicate : str or filters, optional
            Only files that may hold rows for which this is true, as for `file_uris`; rows are not filtered.

        Raises
        ------
        InvalidArgumentError
            If the connection is none of DuckDB.
        MissingDependencyError
            If DuckDB is not installed.

        Notes
        -----
        The footers of the files that DuckDB reads are looked at now. For a filter that leaves few rows, `dataset`
        takes less time: DuckDB hands it its filters, by which files and rows are chosen. DuckDB's own errors are raised
        if files are deleted before the relation is used.

        Examples
        --------
        >>> relation = table.to_duckdb()
        >>> relation.aggregate("sum(amount)").fetchall()
        [(60.0,)]
        """
        interop.require("duckdb")
        return interop.relation_of(self._snapshot, connection, file_pruning_predicate)

    # --- rows that changed ---

    def diff(
        self,
        start_version: int,
        end_version: int | None = None,
        columns: Sequence[str] | None = None,
        predicate: PredicateLike | None = None,
    ) -> Scan:
        """Return the rows in which two versions differ, by their row ids; needs row tracking, not the change feed.

        Parameters
        ----------
        start_version, end_version : int
            The two versions; the end is the version that is loaded unless it is given.
        columns, predicate : optional
            Of the rows, as for `scan`.

        Returns
        -------
        Scan
            The table's columns, ``_change_type`` (insert, delete, update_preimage, update_postimage), ``_row_id`` and
            ``_row_commit_version``.

        Raises
        ------
        UnsupportedOperationError
            If row tracking was not on at both versions.
        SchemaError
            If rows of the older version can't be read by the later one's schema.

        Examples
        --------
        >>> tracked.diff(0, 1, columns=["id"]).to_table().select(["id", "_change_type"]).to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        scan: Scan = self.operation("diff")(start_version, end_version, columns=columns, predicate=predicate)
        return scan

    def load_cdf(
        self,
        starting_version: int = 0,
        ending_version: int | None = None,
        starting_timestamp: str | datetime | None = None,
        ending_timestamp: str | datetime | None = None,
        columns: Sequence[str] | None = None,
        predicate: PredicateLike | None = None,
        allow_out_of_range: bool = False,
    ) -> pa.RecordBatchReader:
        """Stream the rows that changed, with ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

        Parameters
        ----------
        starting_version, ending_version : int
            Both inclusive; an end that is not given, or lies above the version that is loaded, means that version. A
            version goes before a timestamp.
        starting_timestamp, ending_timestamp : str or datetime
            The first commit at or after, and the last at or before.
        columns : sequence of str, optional
            Of the table and of the feed, in this order.
        predicate : str, filters or Expression
            Over the columns of the table and of the feed.
        allow_out_of_range : bool
            Return no rows for a range above the latest version instead of an error.

        Examples
        --------
        >>> tracked.load_cdf(starting_version=1, columns=["id", "_change_type"]).read_all().to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        check_kinds([("allow_out_of_range", allow_out_of_range)])
        for name, number in (("starting_version", starting_version), ("ending_version", ending_version)):
            check_number(name, number, 0)
        for time in (starting_timestamp, ending_timestamp):
            if time is not None:
                delta_log.parse_ms(time, self._snapshot.timezone)
        check_names("columns", columns)
        by_time = starting_timestamp is not None and starting_version == 0
        if ending_version is not None:
            ending_version = min(delta_log.parse_version(ending_version, "ending_version"), self.version())
        feed = interop.ChangeFeed(
            self.operation("plan_changes"),
            self._snapshot,
            columns,
            predicate,
            start_version=None if by_time else starting_version,
            end_version=ending_version,
            start_timestamp=starting_timestamp if by_time else None,
            end_timestamp=ending_timestamp if ending_version is None else None,
            allow_out_of_range=allow_out_of_range,
        )
        return feed.to_reader()

    def changes(
        self,
        start_version: int | None = None,
        end_version: int | None = None,
        *,
        start_timestamp: str | datetime | None = None,
        end_timestamp: str | datetime | None = None,
        position: StreamPosition | str | bytes | Mapping[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        predicate: PredicateLike | None = None,
        max_files: int | None = None,
        max_bytes: int | None = None,
    ) -> ChangeFeed:
        """Plan a read of the rows that changed, with ``_change_type``, ``_commit_version`` and ``_commit_timestamp``.

        Parameters
        ----------
        start_version, end_version : int, optional
            Both are part of the range; 0 and the version that is loaded unless given.
        start_timestamp, end_timestamp : str or datetime, optional
            Instead of a version: the first version committed at or after, the last one at or before.
        position : StreamPosition, str, bytes or Mapping, optional
            Instead of a start: the ``position`` of an earlier feed, or its JSON. If no later version exists, the feed
            is empty.
        columns : sequence of str, optional
            Of the table and of the feed, in this order.
        predicate : str, filters or Expression, optional
            Over the columns of the table and of the feed.
        max_files, max_bytes : int, optional
            How much a step reads at most: files, and bytes of files. The changes of a version are never divided, and a
            step that has more to read includes one version with changes at least.

        Returns
        -------
        ChangeFeed
            To read by ``to_table()``, ``to_reader()``, or step by step by ``steps()``.

        Raises
        ------
        UnsupportedOperationError
            The change data feed was off at a version of the range.
        SchemaError
            The schema changed within the range so that older rows can't be read by the newer one.
        VersionNotFoundError
            A commit of the range was cleaned up, or does not exist yet.
        InvalidArgumentError
            For a range or limit that is none, or a position of another table.

        Examples
        --------
        >>> tracked.changes(1, columns=["id", "_change_type"]).to_table().to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        if position is not None and (start_version is not None or start_timestamp is not None):
            raise InvalidArgumentError("Found both a position and a start, expected one of the two.")
        return interop.ChangeFeed(
            self.operation("plan_changes"),
            self._snapshot,
            columns,
            predicate,
            position,
            start_version=start_version,
            end_version=end_version,
            start_timestamp=start_timestamp,
            end_timestamp=end_timestamp,
            max_files=max_files,
            max_bytes=max_bytes,
        )

    def follow(
        self,
        start: int | Literal["latest"] | None = None,
        *,
        start_timestamp: str | datetime | None = None,
        position: StreamPosition | str | bytes | Mapping[str, Any] | None = None,
        position_file: str | os.PathLike[str] | None = None,
        stop_at: int | None = None,
        available_now: bool = False,
        columns: Sequence[str] | None = None,
        predicate: PredicateLike | None = None,
        max_files: int | None = 1000,
        max_bytes: int | None = None,
        poll_interval: float = 1.0,
        timeout: float | None = None,
        skip_change_commits: bool = False,
        ignore_deletes: bool = False,
        ignore_changes: bool = False,
        fail_on_data_loss: bool = True,
        exclude_regex: str | None = None,
    ) -> TableStream:
        """Stream the rows of the table, and those that commits append to it as they arrive, in steps.

        Commits that only write rows again, such as those of optimize, are passed over. See docs/changes.md.

        Parameters
        ----------
        start : int or "latest", optional
            The first version whose appended rows are read; ``latest``: the next one. Unless a start is given, all rows
            of the latest version come first.
        start_timestamp : str or datetime, optional
            Instead: begin with the first version committed at or after a time.
        position : StreamPosition, str, bytes or Mapping, optional
            Instead: the ``position`` of a batch of an earlier stream, or its JSON.
        position_file : str or path, optional
            A local file that keeps the position from one run to the next; once it exists, it goes before the other
            starts. A step after which the caller took no further one is returned again, with the same
            rows and the same number.
        stop_at : int, optional
            The last version that is read; the stream waits for it. Rows are read with the schema of this version if it
            exists already.
        available_now : bool
            Stop after the version that is the latest now.
        columns, predicate : optional
            Of the rows, as for `scan`.
        max_files, max_bytes : int, optional
            How many files and bytes of files a step reads at most. A single file may have more bytes.
        poll_interval : float
            Seconds between two looks for new commits.
        timeout : float, optional
            End after this many seconds without new rows; 0 ends at the last commit that there is.
        skip_change_commits : bool
            Leave out commits that delete or change rows, with the rows that they append.
        ignore_deletes : bool
            Ignore commits that remove whole files and append nothing.
        ignore_changes : bool
            Read all rows of the files that any commit adds: rows that an update or merge copied come again.
        fail_on_data_loss : bool
            Whether commits that were cleaned up before they were read are an error; otherwise the stream goes on with
            the first commit that exists.
        exclude_regex : str, optional
            Leave out files whose path, as the log has it, contains a match of this regular expression (RE2's syntax).

        Returns
        -------
        TableStream
            Iterate over it: each `StreamBatch` has the rows of a step (``to_reader()``, ``to_table()``, Arrow's stream
            interface), its ``position`` and its ``number``. Its ``stop()`` ends the stream. The errors below, but for
            wrong arguments, may come with any step.

        Raises
        ------
        RowsChangedError
            A commit deletes or changes rows.
        StreamSchemaError
            A commit changes the schema; ``position`` is where to begin again.
        VersionNotFoundError
            A commit was cleaned up before it was read.
        StreamError
            The table was dropped and made again.
        InvalidArgumentError
            For arguments that exclude each other, and a position of another table.

        Examples
        --------
        >>> for batch in table.follow(available_now=True, max_files=1):
        ...     print(batch.number, batch.to_table().num_rows)
        0 2
        1 1
        """
        return operations.TableStream(
            self._snapshot,
            operations.FollowOptions(
                columns=columns,
                predicate=predicate,
                start=start,
                start_timestamp=start_timestamp,
                position=position,
                position_file=position_file,
                stop_at=stop_at,
                available_now=available_now,
                max_files=max_files,
                max_bytes=max_bytes,
                poll_interval=poll_interval,
                timeout=timeout,
                skip_change_commits=skip_change_commits,
                ignore_deletes=ignore_deletes,
                ignore_changes=ignore_changes,
                fail_on_data_loss=fail_on_data_loss,
                exclude_regex=exclude_regex,
            ),
        )


def _one_of(older: Any, newer: Any) -> Any:
    if older is not None and newer is not None:
        raise InvalidArgumentError("Found two filters, expected one: pass file_pruning_predicate alone.")
    return newer if older is None else older
