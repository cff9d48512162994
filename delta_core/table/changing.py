"""Changes of a table: of its rows, of its files as a whole, and of its definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_core import operations
from delta_core.errors import ArgumentTypeError, InvalidArgumentError, SchemaMismatchError
from delta_core.kernel import log as delta_log
from delta_core.runtime.arguments import check_kinds, properties_by_position
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table import parts as table_parts
from delta_core.table.opened_table import OpenedTable

if TYPE_CHECKING:
    from delta_core.engines.writer_properties import WriterProperties
    from delta_core.expressions.filters import PredicateLike
    from delta_core.operations import OperationProgress
    from delta_core.operations.changes import Changed
    from delta_core.table.parts import (
        AddAction,
        CommitProperties,
        MergeClause,
        PostCommitHookProperties,
        RemoveAction,
        TableAlterer,
        TableMerger,
    )

__all__ = ["ChangeMethods"]


class ChangeMethods(OpenedTable):
    """Changes of rows and of the definition; each is one commit, or several that the method names."""

    @properties_by_position("post_commithook_properties", "commit_properties")
    def delete(
        self,
        predicate: PredicateLike | None = None,
        writer_properties: WriterProperties | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Delete the rows for which a predicate is true, and commit; the object then has the new version.

        Rows are dropped by deletion vectors where the table has them enabled; else the files that contain such rows are
        rewritten without them. A predicate on partition columns alone reads and writes no data. If no row is selected,
        nothing is committed.

        Parameters
        ----------
        predicate : str, filters or Expression, optional
            Spark SQL, for example ``"amount < 10"``; None deletes all rows.
        writer_properties : WriterProperties, optional
            Of the Parquet files that are rewritten.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        dict
            ``num_added_files``, ``num_removed_files``, ``num_deleted_rows`` (missing if whole files without statistics
            were removed), ``num_copied_rows``, ``num_deletion_vectors_added``, ``_updated`` and ``_removed``,
            ``num_added_change_files``, ``execution_time_ms``, ``scan_time_ms`` and ``rewrite_time_ms``.

        Raises
        ------
        ExpressionError
            The predicate can't be parsed or evaluated.
        ColumnNotFoundError
            The predicate names a column that the table does not have.
        InvalidArgumentError
            An argument is of another class than expected.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.

        Examples
        --------
        >>> table.delete("city = 'Oslo'")["num_deleted_rows"]
        2
        """
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)
        done = operations.delete_rows(
            self._snapshot, operations.ChangeOptions(predicate=predicate, progress=progress, **arguments)
        )
        self._take(done, post_commithook_properties)
        return {_in_snake_case(name): value for name, value in done.metrics.items()}

    @properties_by_position("post_commithook_properties", "commit_properties")
    def update(
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: PredicateLike | None = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> dict[str, int]:
        """Assign new values to columns of the rows for which a predicate is true, and commit.

        The object then has the new version.

        The new values are computed from the row as it was. Generated columns that are not assigned are computed again,
        and all constraints are checked. If no row is selected, nothing is committed.

        Parameters
        ----------
        updates : Mapping of str to str or Expression
            Spark SQL by column, for example ``{"price": "price * 1.1"}``. A dotted name is a field of a struct:
            ``{"address.city": "upper(address.city)"}``.
        new_values : Mapping of str to object
            Python values by column, in place of ``updates``.
        predicate : str, filters or Expression, optional
            Which rows; None updates all.
        writer_properties : WriterProperties, optional
            Of the Parquet files that are written.
        error_on_type_mismatch : bool
            Whether a value that can't be cast to its column's type is an error; if not, it becomes null.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        dict
            ``num_added_files``, ``num_removed_files``, ``num_updated_rows``, ``num_copied_rows``,
            ``num_deletion_vectors_added``, ``_updated`` and ``_removed``, ``num_added_change_files``,
            ``execution_time_ms``, ``scan_time_ms`` and ``rewrite_time_ms``.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            The predicate or an assignment does not fit the table.
        InvalidArgumentError
            Both or none of ``updates`` and ``new_values`` are given, a column is assigned twice, or an argument is of
            another class than expected.
        SchemaMismatchError, ConstraintViolationError
            The new values don't fit the table; nothing was written.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.

        Examples
        --------
        >>> table.update({"amount": "amount * 2"}, predicate="id = 1")["num_updated_rows"]
        1
        """
        if (updates is None) == (new_values is None):
            raise InvalidArgumentError("Pass either updates (SQL by column) or new_values (Python values by column).")
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)
        done = operations.update_rows(
            self._snapshot,
            operations.UpdateOptions(
                predicate=predicate,
                progress=progress,
                updates=updates or {},
                new_values=new_values or {},
                null_on_failed_cast=not error_on_type_mismatch,
                **arguments,
            ),
        )
        self._take(done, post_commithook_properties)
        return {_in_snake_case(name): value for name, value in done.metrics.items()}

    def _take(self, done: Changed, post: PostCommitHookProperties | None) -> None:
        """Move to the version that a change of rows committed."""
        self.adopt(operations.compact_after(done.snapshot, post) if done.is_committed else done.snapshot)

    @properties_by_position("post_commithook_properties", "commit_properties")
    def merge(
        self,
        source: Any,
        predicate: PredicateLike,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        error_on_type_mismatch: bool = True,
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        dry_run: bool = False,
        progress: Callable[[OperationProgress], None] | None = None,
    ) -> TableMerger:
        """Begin a merge: update, delete and insert rows by comparing the table with rows of a source.

        Parameters
        ----------
        source : anything with the Arrow PyCapsule interface, or a pandas data frame
            A stream is read once, by `TableMerger.execute`; a second call rejects it.
        predicate : str or Expression
            Which row of the source matches which row of the table, for example ``"target.id = source.id"``. Null equals
            nothing; use ``<=>`` for keys in which null equals null.
        source_alias, target_alias : str, optional
            The names that qualify columns; ``source`` and ``target`` unless given.
        merge_schema : bool
            Whether columns that only the source has are added to the table, types are widened if the table allows it,
            and structs may lack fields.
        error_on_type_mismatch : bool
            Whether a value that can't be cast to its column's type is an error; otherwise it becomes null.
        writer_properties : WriterProperties, optional
            Of the files that are written.
        streamed_exec : bool
            Without effect: a stream is always read once, and the table is pruned by the values of the source.
        max_spill_size : int, optional
            Bytes of the source that are held in memory, a quarter of the machine's memory unless given, and of the
            places of the table's rows that change, 256 MB unless given. Further rows are written to temporary files.
        max_temp_directory_size : int, optional
            Bytes that temporary files may take.
        commit_properties : CommitProperties, optional
            Custom metadata, retries and application transactions of the commit.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        dry_run : bool
            Whether `TableMerger.execute` writes nothing and only returns what would change.
        progress : function(OperationProgress), optional
            Called as rows are found and written: files, rows and bytes.

        Returns
        -------
        TableMerger
            To which clauses are added; its `execute` runs the merge.

        Raises
        ------
        InvalidArgumentError
            An argument is of another class than expected.

        Examples
        --------
        >>> source = pa.table({"id": [3, 4], "city": ["Bergen", "Paris"], "amount": [35.0, 40.0]})
        >>> merge = table.merge(source, "target.id = source.id")
        >>> metrics = merge.when_matched_update_all().when_not_matched_insert_all().execute()
        >>> metrics["num_target_rows_updated"], metrics["num_target_rows_inserted"]
        (1, 1)
        """
        arguments = table_parts.write_arguments(commit_properties, writer_properties, post_commithook_properties)

        def run(table: ChangeMethods, clauses: tuple[MergeClause, ...]) -> dict[str, int]:
            options = operations.MergeOptions(
                predicate=predicate,
                progress=progress,
                clauses=clauses,
                source_alias=source_alias,
                target_alias=target_alias,
                merge_schema=merge_schema,
                null_on_failed_cast=not error_on_type_mismatch,
                is_dry=dry_run,
                max_memory_bytes=max_spill_size,
                max_temporary_bytes=max_temp_directory_size,
                **arguments,
            )
            done = operations.merge_rows(table.snapshot(), source, options)
            table._take(done, post_commithook_properties)
            return {_in_snake_case(name): value for name, value in done.metrics.items()}

        return table_parts.TableMerger(run, self)

    @properties_by_position("commit_properties", "post_commithook_properties")
    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        schema: Any,
        partition_by: list[str] | str | None = None,
        partition_filters: PredicateLike | None = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit files that were written elsewhere, and removals of files, at once.

        Parameters
        ----------
        actions : sequence of AddAction or RemoveAction
            Files that lie below the table's root; statistics that are missing are read from their footers.
        mode : str
            ``append``, or ``overwrite``: every file, or those of ``partition_filters``, is replaced.
        schema : Schema or anything with ``__arrow_c_schema__``
            Of the files; it must be the table's.
        partition_by : str or list of str, optional
            Accepted for scripts written for `deltalake`; without effect.
        partition_filters : filters, optional
            On partition columns, with ``overwrite``.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.

        Raises
        ------
        InvalidArgumentError
            For an action of another class.
        ArgumentTypeError
            For ``partition_by`` that is neither text nor a sequence.
        SchemaMismatchError
            If the files have a column that the table lacks.

        Examples
        --------
        >>> import pyarrow.parquet as pq
        >>> from pathlib import Path
        >>> from delta_core.table.transaction import AddAction
        >>> pq.write_table(rows, "table/new.parquet")
        >>> added = AddAction("new.parquet", size=Path("table/new.parquet").stat().st_size)
        >>> table.create_write_transaction([added], "append", rows.schema)
        >>> table.count()
        6
        """
        commit, post = table_parts.commit_options(commit_properties, post_commithook_properties)
        actions = table_parts.own_actions(actions, table_parts.AddAction, table_parts.RemoveAction)
        if not isinstance(partition_by, (str, Sequence, type(None))):
            raise ArgumentTypeError(f"Found partition_by as {type(partition_by).__name__}, expected names of columns.")
        given = schema if isinstance(schema, StructType) else Schema.from_arrow(schema)
        unknown = [n for n in given.names if self._snapshot.schema.get(n) is None]
        if unknown:
            raise SchemaMismatchError(
                f"The files have a column {unknown[0]!r}, which the table does not have.", column=unknown[0]
            )
        result = operations.register_files(
            self._snapshot.context,
            self._snapshot,
            [a for a in actions if isinstance(a, table_parts.AddAction)],
            [a for a in actions if isinstance(a, table_parts.RemoveAction)],
            mode=mode,
            replace_filters=partition_filters,
            custom_metadata=commit.custom_metadata,
            max_commit_retries=commit.retries,
            transactions=commit.transactions,
            post=post.post_commit,
        )
        self.adopt(result.snapshot)

    def restore(
        self,
        target: int | datetime | str,
        *,
        ignore_missing_files: bool = False,
        protocol_downgrade_allowed: bool = False,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        dry_run: bool = False,
        progress: Callable[[operations.OperationProgress], None] | None = None,
    ) -> dict[str, Any]:
        """Restore the table to an older version, in a new commit with the files and the definition of that version.

        Parameters
        ----------
        target : int, str or datetime
            A version; or the version of a point in time, ISO 8601 text or a datetime.
        ignore_missing_files : bool
            Whether files that are gone are left out, with their rows; otherwise they are an error.
        protocol_downgrade_allowed : bool
            Whether the table gets the protocol of that version too; otherwise it keeps its own.
        commit_properties : CommitProperties, optional
            Custom metadata of the commit, application versions, and how often it is tried again.
        post_commithook_properties : PostCommitHookProperties, optional
            The upkeep that follows the commit.
        dry_run : bool
            Whether nothing is committed, and only the metrics are returned.
        progress : function(OperationProgress), optional
            Called while the files that come back are looked for.

        Returns
        -------
        dict
            ``numRemovedFile`` and ``numRestoredFile``.

        Raises
        ------
        VersionNotFoundError
            There is no such version, or it can't be built any more.
        DataFileNotFoundError
            Files of the version are gone; the message names the first ones.
        UnsupportedOperationError
            The table is append-only.
        CommitConflictError
            Another writer changed the table meanwhile; nothing was changed.

        Examples
        --------
        >>> table.restore(0)["numRemovedFile"]
        1
        >>> table.version()
        2
        """
        flags = {"ignore_missing_files": ignore_missing_files, "protocol_downgrade_allowed": protocol_downgrade_allowed}
        check_kinds({**flags, "dry_run": dry_run}.items())
        commit = table_parts.commit_arguments(commit_properties, post_commithook_properties)
        parameters: dict[str, Any] = {}
        if isinstance(target, (str, datetime)):
            latest = self._snapshot.update()
            version = latest.version_at(delta_log.parse_ms(target, latest.timezone))
            parameters["timestamp"] = target if isinstance(target, str) else target.isoformat()
        else:
            version = delta_log.parse_version(target)
        options = operations.RestoreOptions(
            ignore_missing_files, protocol_downgrade_allowed, dry_run, parameters, commit, progress
        )
        done = operations.restore_table(self._snapshot, version, options)
        if not dry_run:
            self.adopt(done.snapshot)
        found = done.metrics
        return {"numRemovedFile": found["numRemovedFiles"], "numRestoredFile": found["numRestoredFiles"]}

    @property
    def alter(self) -> TableAlterer:
        """Changes of the table's definition: columns, constraints, properties, features.

        Examples
        --------
        >>> table.alter.add_column("country", "string")
        >>> table.schema().names
        ['id', 'city', 'amount', 'country']
        """
        return table_parts.TableAlterer(self)


def _in_snake_case(name: str) -> str:
    """Return a metric's name of the log, such as numAddedFiles, as ``deltalake`` spells it."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
