"""Changes of a dataset: of its rows, its columns and its configuration; each one is a new version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

# what changes datasets is loaded with the first change
from delta_core import api
from delta_core.api import CommitConflictError, InvalidArgumentError, UnsupportedOperationError
from delta_plugins.lance import parts
from delta_plugins.lance.manifest import Manifest
from delta_plugins.lance.version_files import VersionFiles

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_core.api import (
        Changed,
        ChangeOptions,
        CommitProperties,
        Engine,
        MergeClause,
        OperationProgress,
        OptimizeOptions,
        TableMerger,
        TypeDef,
    )
    from delta_plugins.lance.commit.operations import Operation

__all__ = ["ChangeMethods"]

Progress = Callable[["OperationProgress"], None]
#: A LanceDataset, whose module imports this one.
Dataset = Any


class ChangeMethods:
    """The changes of a dataset; the object then has the new version."""

    files: VersionFiles

    # --- what operations need (`ChangeTarget`) ---------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine of the dataset's place."""
        return self.files.engine

    @property
    def types(self) -> Mapping[str, TypeDef]:
        """The types of Delta; those of Lance specify their Arrow types themselves."""
        return api.KNOWN_TYPES

    @property
    def _target(self) -> Any:
        """The dataset, as operations take it: columns of blobs have the type of their bytes."""
        raise NotImplementedError

    def at(self, manifest: Manifest) -> Dataset:
        """Return another version of the same branch."""
        files = self.files
        return type(self)(VersionFiles(files.engine, files.uri, manifest, files.branch, files.opening))  # type: ignore[call-arg]

    def latest(self) -> Dataset:
        """Return the latest version of the branch."""
        return self.checkout()  # type: ignore[attr-defined]

    def has_applied(self, transactions: Mapping[str, int]) -> bool:
        """Reject versions of applications: Lance has no place for them.

        Raises
        ------
        UnsupportedOperationError
            If there are some.
        """
        if transactions:
            raise UnsupportedOperationError(
                "Lance datasets do not record versions of applications. Leave app_transactions out."
            )
        return False

    def begin_changes(
        self,
        operation: Literal["DELETE", "UPDATE", "MERGE", "WRITE"],
        parameters: Mapping[str, Any],
        options: ChangeOptions,
        evolve: Any = None,
    ) -> Any:
        """Begin changes of rows in one version; operations call it.

        Raises
        ------
        UnsupportedOperationError
            If columns are to be added by the change.
        """
        if evolve is not None:
            raise UnsupportedOperationError("A merge does not add columns to a Lance dataset. Call add_columns first.")
        return parts.LanceChanges(self._target, operation, parameters, options)

    def begin_rewrites(self, parameters: Mapping[str, Any], options: OptimizeOptions) -> Any:
        """Begin to write fragments again; operations call it."""
        return parts.LanceRewrites(self._target, parameters, options)

    # --- rows ------------------------------------------------------------------------------

    def delete(
        self,
        predicate: Any = None,
        *,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Delete the rows for which a predicate is true, and commit. If no row is selected, nothing is committed.

        Parameters
        ----------
        predicate : str, filters or Expression, optional
            Spark SQL; None deletes all rows.
        commit_properties : CommitProperties, optional
            Properties of the transaction, and how often the deletion runs again if another writer changes the same
            rows.
        progress : function(OperationProgress), optional
            Called as rows are found.

        Returns
        -------
        dict
            As of `delta_core.DeltaTable.delete`; files are fragments.

        Raises
        ------
        ExpressionError, ColumnNotFoundError
            The predicate does not fit the dataset.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        options = _arguments(commit_properties)
        return self._change(
            lambda: api.delete_rows(self._target, api.ChangeOptions(predicate=predicate, progress=progress, **options)),
            options,
        )

    def update(
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: Any = None,
        error_on_type_mismatch: bool = True,
        *,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Assign new values to columns of the rows for which a predicate is true, and commit.

        Rows with stable ids keep them. If no row is selected, nothing is committed.

        Parameters
        ----------
        updates : Mapping of str to str or Expression
            Spark SQL by column; a dotted name is a field of a struct.
        new_values : Mapping of str to object
            Python values by column, in place of ``updates``.
        predicate : str, filters or Expression, optional
            Which rows; None updates all.
        error_on_type_mismatch : bool
            Whether a value that can't be cast to its column's type is an error; if not, it becomes null.
        commit_properties : CommitProperties, optional
            As of `delete`.
        progress : function(OperationProgress), optional
            Called as rows are found and written.

        Returns
        -------
        dict
            As of `delta_core.DeltaTable.update`; files are fragments.

        Raises
        ------
        InvalidArgumentError
            Both or none of ``updates`` and ``new_values`` are given, or a column is assigned twice.
        ExpressionError, ColumnNotFoundError, SchemaMismatchError
            The predicate or an assignment does not fit the dataset.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        if (updates is None) == (new_values is None):
            raise InvalidArgumentError("Pass either updates (SQL by column) or new_values (Python values by column).")
        options = _arguments(commit_properties)
        given = api.UpdateOptions(
            predicate=predicate,
            progress=progress,
            updates=updates or {},
            new_values=new_values or {},
            null_on_failed_cast=not error_on_type_mismatch,
            **options,
        )
        return self._change(lambda: api.update_rows(self._target, given), options)

    def merge(
        self,
        source: Any,
        predicate: Any,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        error_on_type_mismatch: bool = True,
        max_spill_size: int | None = None,
        max_temp_directory_size: int | None = None,
        commit_properties: CommitProperties | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> TableMerger:
        """Begin a merge: update, delete and insert rows by comparing the dataset with rows of a source.

        Parameters
        ----------
        source : anything with the Arrow PyCapsule interface, or a pandas data frame
            A stream is read once: if another writer gets in the way, the merge does not run again.
        predicate : str or Expression
            Which row of the source matches which row of the dataset, such as ``"target.id = source.id"``.
        source_alias, target_alias : str, optional
            Qualifiers of columns; ``source`` and ``target`` unless given.
        error_on_type_mismatch : bool
            As of `update`.
        max_spill_size, max_temp_directory_size : int, optional
            Bytes in memory, and in temporary files, as of `delta_core.DeltaTable.merge`.
        commit_properties : CommitProperties, optional
            As of `delete`.
        dry_run : bool
            Whether nothing is written, and only the metrics are returned.
        progress : function(OperationProgress), optional
            Called as rows are found and written.

        Returns
        -------
        TableMerger
            To which clauses are added; its ``execute`` runs the merge.
        """
        options = _arguments(commit_properties)

        def run(_: Any, clauses: tuple[MergeClause, ...]) -> dict[str, int]:
            given = api.MergeOptions(
                predicate=predicate,
                progress=progress,
                clauses=clauses,
                source_alias=source_alias,
                target_alias=target_alias,
                null_on_failed_cast=not error_on_type_mismatch,
                is_dry=dry_run,
                max_memory_bytes=max_spill_size,
                max_temporary_bytes=max_temp_directory_size,
                **options,
            )
            rows = parts.blob_values(self._target, source, takes_uris=False)
            return self._change(lambda: api.merge_rows(self._target, rows, given), options)

        return api.TableMerger(run, self)

    def overwrite(
        self,
        data: Any,
        predicate: Any = None,
        *,
        replace_using: Sequence[str] = (),
        replace_on: Any = None,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Write rows in place of others, and commit; the columns stay as they are (`write_lance` changes them).

        Parameters
        ----------
        data : anything with the Arrow PyCapsule interface, or a pandas data frame
            The new rows.
        predicate : str, filters or Expression, optional
            Rows for which it is true are replaced, and the new rows must fit it. None replaces all rows.
        replace_using : sequence of str
            Rows that are equal to a new row in these columns are replaced, instead of a predicate.
        replace_on : str or Expression, optional
            Rows for which the condition is true with a new row; columns of the dataset are those of ``t``, of the new
            rows those of ``s``.
        commit_properties : CommitProperties, optional
            As of `delete`.
        progress : function(OperationProgress), optional
            Called as rows are found and written.

        Returns
        -------
        dict
            The metrics, named as of `update`, with ``num_output_rows``.

        Raises
        ------
        InvalidArgumentError
            Several of the ways to choose rows are given.
        SchemaMismatchError, ConstraintViolationError
            The new rows do not fit.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        options = _arguments(commit_properties)
        given = api.ReplaceRowsOptions(
            predicate=predicate, progress=progress, replace_using=tuple(replace_using), replace_on=replace_on, **options
        )
        rows = parts.blob_values(self._target, data, takes_uris=not replace_using and replace_on is None)
        return self._change(lambda: api.replace_rows(self._target, rows, given), options)

    def compact(
        self,
        *,
        target_rows: int = 1 << 20,
        max_bytes: int = 90 << 30,
        materialize_deletions: float | None = 0.1,
        max_memory: int = 256 << 20,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Join small fragments, and leave out deleted rows where there are many; rows and their ids stay as they are.

        Fragments are joined in their order, and the new ones come after all others. One with at least ``target_rows``
        rows or ``max_bytes`` bytes is not touched, unless many of its rows are deleted. If there is nothing to do,
        nothing is committed; otherwise two versions are. The first one only reserves the ids of the new fragments.

        Parameters
        ----------
        target_rows : int
            Rows of new fragments, or a few more; the last one may have fewer.
        max_bytes : int
            A new fragment ends with the page that makes its file longer.
        materialize_deletions : float, optional
            A fragment is written again if a greater share of its rows is deleted; None: not for that alone.
        max_memory : int
            Bytes of rows in memory, about, whatever the width of rows; a row and the pages that it is read from are
            in memory whole.
        commit_properties : CommitProperties, optional
            As of `delete`.
        progress : function(OperationProgress), optional
            Called after each group of fragments.

        Returns
        -------
        dict
            ``version``, ``num_removed_fragments``, ``num_removed_bytes``, ``num_added_fragments``, ``num_added_bytes``,
            ``num_removed_deletion_files``, ``num_removed_deleted_rows``, and ``dropped_indices``, the names of the
            indices that do not have these rows any more: those that list rows by addresses.

        Raises
        ------
        InvalidArgumentError
            For a number that is out of range.
        UnsupportedFeatureError
            For a dataset with a feature, or values such as external blobs, that are not written.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        options = _arguments(commit_properties)
        given = parts.CompactOptions(
            target_rows, max_bytes, materialize_deletions, max_memory, progress=progress, **options
        )
        done = _with_retries(lambda: parts.compact_dataset(self._target, given), options["max_commit_retries"])
        self._take(done.dataset)
        found: dict[str, Any] = done.metrics
        return found

    def cleanup(
        self,
        *,
        older_than: timedelta | None = None,
        keep_versions: int | None = None,
        unreferenced_older_than: timedelta | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Remove old versions of the branch, and delete the files that no other version needs.

        The latest version stays, and those that tags name or that branches began with. Other branches and detached
        versions keep all that they need. Files of other names than those of the format stay.

        Parameters
        ----------
        older_than : timedelta, optional
            Only versions that were committed longer ago; 14 days unless this or ``keep_versions`` is given.
        keep_versions : int, optional
            That many of the latest versions stay; unless ``older_than`` is given, all others go, whatever their
            timestamps are.
        unreferenced_older_than : timedelta, optional
            Files that are in no version go if they are older: a writer that is not done may still commit younger ones.
            7 days unless given.
        dry_run : bool
            Whether nothing is deleted.

        Returns
        -------
        dict
            ``removed_versions``, and ``num_files`` and ``num_bytes`` of the files that are deleted; ``paths`` with
            ``dry_run``.

        Raises
        ------
        InvalidArgumentError
            For an age or a number that is none, or a branch that was opened by the path of its folder.
        CorruptTableError, UnsupportedFeatureError
            If a manifest, a tag or a branch can't be read: it is not known what it needs. Nothing was deleted.
        EngineError
            If files can't be deleted; others may be deleted by then, and another cleanup goes on.

        Notes
        -----
        A dataset elsewhere that was cloned without its data is not known here: it would lack the files.
        """
        given = parts.CleanupOptions(older_than, keep_versions, unreferenced_older_than, dry_run)
        with api.progress_bar():
            found: dict[str, Any] = parts.clean_dataset(self._target, given)
        return found

    def repair(
        self, *, dry_run: bool = False, deep: bool = False, commit_properties: CommitProperties | None = None
    ) -> dict[str, Any]:
        """Remove the fragments of the latest version that can't be read, in a new version; their rows are lost.

        A fragment can't be read if one of its data files or its deletion file is missing, has another size or another
        number of rows than the manifest specifies, or is damaged, or if a file of its blobs is. Nothing is deleted, so
        that an earlier version has the fragments again if their files are restored. If all can be read, nothing is
        committed.

        Parameters
        ----------
        dry_run : bool
            Whether the fragments are only listed.
        deep : bool
            Whether all rows are read; otherwise the ends of data files and all of the deletion files.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version``, and ``removed_fragments``, each with ``fragment`` (its id), ``rows`` (those that the manifest
            specifies, less deleted ones), ``file`` and ``reason``.

        Raises
        ------
        CorruptTableError
            If the manifest itself is damaged: restore an earlier version.
        EngineError
            If a file can't be reached: it is not known whether it is damaged.
        """
        found: list[Any] = []

        def operation(latest: Dataset) -> Operation:
            found[:] = parts.unreadable_fragments(latest, deep=deep)
            made: Operation = parts.removal_of(latest, found)
            return made

        with api.progress_bar():
            latest = self.latest()
            found[:] = parts.unreadable_fragments(latest, deep=deep)
            if dry_run or not found:
                return {"version": latest.version, "removed_fragments": parts.described(found)}
            done = self._commit(operation, commit_properties)
        return {"version": done["version"], "removed_fragments": parts.described(found)}

    def _change(self, run: Callable[[], Changed], options: Mapping[str, Any]) -> dict[str, int]:
        """Run a change of rows, again if it lost a race, and take its version."""
        done = _with_retries(run, options["max_commit_retries"])
        self._take(done.snapshot)
        return {_in_snake_case(name): value for name, value in done.metrics.items()}

    def _take(self, other: Dataset) -> None:
        self.files = other.files
        self.__dict__.pop("schema", None)

    # --- versions, configuration, columns --------------------------------------------------

    def restore(
        self,
        target: int | str | datetime | None = None,
        *,
        tag: str | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Restore an earlier version, as a new version with its rows, columns and indices.

        Parameters
        ----------
        target : int, str or datetime
            A version, or the version of a point in time.
        tag : str, optional
            A tag instead.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        VersionNotFoundError
            There is no such version or tag.
        InvalidArgumentError
            Both or none of them are given, or the tag is of another branch.
        DataFileNotFoundError
            Files of the version are gone.
        DataFileError
            A data file of the version has another size, or a deletion file is damaged.
        """
        if (target is None) == (tag is None):
            raise InvalidArgumentError("Pass either a version (or a point in time) or a tag.")

        def operation(latest: Dataset) -> Operation:
            earlier = latest.checkout(target, tag=tag)
            if earlier.branch != latest.branch:
                raise InvalidArgumentError(
                    f"Tag {tag!r} is of branch {earlier.branch or 'main'!r}, this is {latest.branch or 'main'!r}. Open "
                    "that branch to restore it."
                )
            earlier.check_files()
            found: Operation = parts.Restore(earlier.manifest, parts.index_messages(earlier.manifest))
            return found

        return self._commit(operation, commit_properties)

    def set_config(
        self,
        config: Mapping[str, str | None] | None = None,
        *,
        table_metadata: Mapping[str, str | None] | None = None,
        schema_metadata: Mapping[str, str | None] | None = None,
        field_metadata: Mapping[str, Mapping[str, str | None]] | None = None,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Change the configuration, and metadata of the dataset, its schema and its columns, key by key.

        Parameters
        ----------
        config, table_metadata, schema_metadata : Mapping of str to (str or None), optional
            Values by key; None removes one.
        field_metadata : Mapping of str to Mapping, optional
            The same by column; a dotted name is a field of a struct.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        InvalidArgumentError
            If nothing is changed, or a value is no text.
        ColumnNotFoundError
            If there is no such column.
        CommitConflictError
            Another writer changed the same keys.
        """
        groups = [config or {}, table_metadata or {}, schema_metadata or {}]
        by_field = field_metadata or {}
        if not any(groups) and not by_field:
            raise InvalidArgumentError("Found no key to set, expected at least one.")
        for key, value in [kv for g in (*groups, *by_field.values()) for kv in g.items()]:
            if not isinstance(key, str) or not (value is None or isinstance(value, str)):
                raise InvalidArgumentError(f"Found {key!r} = {value!r}, expected texts, or None to remove a key.")

        def operation(latest: Dataset) -> Operation:
            fields = {parts.find_path(latest.manifest.fields, n)[-1].id: m for n, m in by_field.items()}
            found: Operation = parts.UpdateConfig(config or {}, table_metadata or {}, schema_metadata or {}, fields)
            return found

        return self._commit(operation, commit_properties)

    def drop_columns(
        self, columns: Sequence[str], *, commit_properties: CommitProperties | None = None
    ) -> dict[str, Any]:
        """Drop columns, or fields of structs by dotted names; data files stay as they are.

        Parameters
        ----------
        columns : sequence of str
            The names.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version``, and ``dropped_indices``, the names of the indices of these columns.

        Raises
        ------
        ColumnNotFoundError
            If there is no such column.
        InvalidArgumentError
            If no column would be left.
        """
        return self._commit(lambda latest: parts.dropped_columns(latest, columns), commit_properties)

    def rename_column(
        self, name: str, new_name: str, *, commit_properties: CommitProperties | None = None
    ) -> dict[str, Any]:
        """Rename a column, or a field of a struct by its dotted name; data files and indices stay as they are.

        Parameters
        ----------
        name : str
            The column.
        new_name : str
            Its new name, without those of the structs above it.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        ColumnNotFoundError
            If there is no such column.
        InvalidArgumentError
            If another column has the new name.
        """
        return self._commit(lambda latest: parts.renamed_column(latest, name, new_name), commit_properties)

    def add_columns(self, columns: Any, *, commit_properties: CommitProperties | None = None) -> dict[str, Any]:
        """Add columns, with one new data file for each fragment.

        Parameters
        ----------
        columns : Mapping of str to str, pyarrow.Schema, pyarrow.Field, or rows
            Spark SQL by new column, computed from each row; a schema, whose columns are null; or anything with the
            Arrow PyCapsule interface with one row for each row of a scan, in its order.
        commit_properties : CommitProperties, optional
            As of `delete`. Expressions are computed again if another writer changes rows; a stream of rows is read
            once, so that such a conflict is an error.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        InvalidArgumentError
            If there is such a column already.
        ExpressionError, ColumnNotFoundError
            An expression does not fit the dataset.
        SchemaMismatchError
            There are more rows, or fewer, than the dataset has.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        return self._commit(lambda latest: parts.added_columns(latest, columns), commit_properties)

    def cast_column(
        self, name: str, type: pa.DataType, *, commit_properties: CommitProperties | None = None
    ) -> dict[str, Any]:
        """Cast a column, or a field of a struct, to another type: its values are written to new data files.

        Parameters
        ----------
        name : str
            The column; a dotted name is a field of a struct.
        type : pyarrow.DataType
            The new type; no value is rounded or cut.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version``, and ``dropped_indices``, the names of the indices of the column.

        Raises
        ------
        ColumnNotFoundError
            If there is no such column.
        SchemaMismatchError
            If a value does not fit the type.
        """
        return self._commit(lambda latest: parts.cast_column(latest, name, type), commit_properties)

    # --- indices ---------------------------------------------------------------------------

    def create_index(
        self,
        column: str,
        kind: Literal["btree", "bitmap", "zonemap"] = "btree",
        name: str | None = None,
        replace: bool = False,
        *,
        max_memory: int = 256 << 20,
        commit_properties: CommitProperties | None = None,
    ) -> dict[str, Any]:
        """Create a scalar index of all rows of a column; rows that are added later are scanned.

        Parameters
        ----------
        column : str
            A column with numbers, booleans, dates, times, strings or binary values; a dotted name is a field of a
            struct.
        kind : "btree", "bitmap" or "zonemap"
            Sorted values; the rows of each of a few distinct values; or the bounds of each 8,192 rows.
        name : str, optional
            ``<column>_idx`` unless it is passed.
        replace : bool
            Whether an index of the column with the name goes; otherwise it is an error.
        max_memory : int
            Bytes of values in memory, about; the rest is in temporary files while the values are sorted.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        ColumnNotFoundError
            If there is no such column.
        InvalidArgumentError
            For an unknown kind, and a name that is in use.
        UnsupportedFeatureError
            For a column of another type.
        SpillError
            If temporary files can't be written.
        CommitConflictError
            Another writer's commit contradicts this one; nothing of it is left.
        """
        return self._commit(
            lambda latest: parts.created_index(latest, column, kind, name, replace, max_memory), commit_properties
        )

    def drop_index(self, name: str, *, commit_properties: CommitProperties | None = None) -> dict[str, Any]:
        """Drop an index; its files stay until `cleanup` finds that no version needs them.

        Parameters
        ----------
        name : str
            Of the index.
        commit_properties : CommitProperties, optional
            As of `delete`.

        Returns
        -------
        dict
            ``version`` and ``dropped_indices``.

        Raises
        ------
        InvalidArgumentError
            If there is no such index.
        CommitConflictError
            Another writer's commit contradicts this one.
        """
        return self._commit(lambda latest: parts.dropped_index(latest, name), commit_properties)

    def _commit(self, operation: Callable[[Dataset], Any], properties: CommitProperties | None) -> dict[str, Any]:
        """Commit an operation that is made from the latest version, and take the new one."""
        options = _arguments(properties)

        def run() -> Any:
            latest = self._target.latest()
            parts.check_changeable(latest)
            made = operation(latest)
            done = parts.commit_operation(
                latest.storage,
                getattr(made, "operation", made),
                latest.manifest,
                below=latest.files.below,
                scheme=parts.manifest_scheme(latest.manifest.path),
                properties={k: str(v) for k, v in options["custom_metadata"].items()},
                max_attempts=options["max_commit_retries"] + 1,
                written=getattr(made, "paths", ()),
            )
            return latest.at(done.manifest), done.dropped_indices

        with api.progress_bar():
            dataset, dropped = _with_retries(run, options["max_commit_retries"])
        self._take(dataset)
        return {"version": dataset.version, "dropped_indices": list(dropped)}


def _arguments(properties: CommitProperties | None) -> dict[str, Any]:
    """Return what options of operations take for properties of a commit.

    Raises
    ------
    InvalidArgumentError
        For an object of another class.
    UnsupportedOperationError
        For versions of applications, which Lance does not record.
    """
    if properties is not None and not isinstance(properties, api.CommitProperties):
        raise InvalidArgumentError(
            f"Found commit_properties as {type(properties).__name__}; expected CommitProperties of delta_core."
        )
    found = properties or api.CommitProperties()
    found.check()
    if found.transactions:
        raise UnsupportedOperationError(
            "Lance datasets do not record versions of applications. Leave app_transactions out."
        )
    return {"custom_metadata": found.custom_metadata or {}, "max_commit_retries": found.retries}


def _with_retries(run: Callable[[], Any], retries: int) -> Any:
    """Run an operation, again if it lost a race that it may run again after."""
    lost: CommitConflictError | None = None
    for left in reversed(range(retries + 1)):
        try:
            return run()
        except CommitConflictError as e:
            if not left or not parts.is_retryable(e):
                raise
            lost = e
        except InvalidArgumentError as e:
            if lost is None:
                raise
            # the rows came as a stream, which was read by the first attempt
            raise lost from e
    raise AssertionError


def _in_snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
