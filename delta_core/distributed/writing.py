"""One write with one commit, whose files other processes write."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.distributed.reading import check_not_opened_again
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import DeltaError, EngineError, InvalidArgumentError
from delta_core.expressions.ast import TaskCount, TaskIndex, leaves
from delta_core.handles.opening import Pickled
from delta_core.kernel.commit.options import kind_name, write_arguments
from delta_core.kernel.snapshot import Snapshot, TableContext, open_context
from delta_core.kernel.write.files import Written, join_written, write_files
from delta_core.kernel.write.plan import WritePlan
from delta_core.operations.auto_compact import compact_after
from delta_core.operations.write import TableWrite, WriteOptions, run_write
from delta_core.runtime.arguments import path_text
from delta_core.schema.fields import Schema
from delta_core.table.writer import write_options

__all__ = ["WritePart", "WrittenPart", "write_parts"]


class WrittenPart(Struct, frozen=True):
    """The files that one task wrote, or the error that it ended with; it can be pickled.

    Parameters
    ----------
    files : pyarrow.Table or None
        For the log; None after an error.
    reported, num_rows, num_bytes, paths
        As of `Written`.
    error : DeltaError or None
        The rejection of the rows, or the error of the store. The files of the task are deleted.
    """

    files: pa.Table | None = None
    reported: Any = None
    num_rows: int = 0
    num_bytes: int = 0
    paths: tuple[str, ...] = ()
    error: DeltaError | None = None


class WritePart(Struct, frozen=True):
    """Writes the rows of one task to files that no version has yet; it can be pickled.

    Parameters
    ----------
    place : Pickled
        How the table was opened.
    plan : WritePlan
        Of the table's writes.
    schema : pyarrow.Schema
        Of the rows.
    properties, target_size, data_change
        As of `write_files`.
    """

    place: Pickled
    plan: WritePlan
    schema: pa.Schema
    properties: WriterProperties | None
    target_size: int | None
    data_change: bool

    @property
    def counts_tasks(self) -> bool:
        """Whether values depend on the number of tasks, as those of identity columns do."""
        found = (leaf for fill in self.plan.fills for leaf in leaves(fill.expression))
        return any(isinstance(leaf, (TaskCount, TaskIndex)) for leaf in found)

    def write(self, rows: Any, number: int, num_tasks: int) -> WrittenPart:
        """Write rows, and return the files or the error of this library.

        Errors are returned, so that the process that commits deletes the files of the other tasks.

        Parameters
        ----------
        rows : pyarrow.Table or pandas.DataFrame
            Those of the task.
        number, num_tasks : int
            The number of the task, from 0, and how many there are; two tasks never have the same number.
        """
        try:
            engine = open_context(**self.place.arguments).log.engine
            table = _as_table(rows, self.schema)
            made = write_files(
                engine,
                self.plan,
                table,
                properties=self.properties,
                target_size=self.target_size,
                data_change=self.data_change,
                task_index=number,
                num_tasks=num_tasks,
            )
        except EngineError as e:
            return WrittenPart(error=self.place.explained(e))
        except DeltaError as e:
            return WrittenPart(error=e)
        return WrittenPart(made.files, made.reported, made.num_rows, made.num_bytes, made.paths)


def _as_table(rows: Any, schema: pa.Schema) -> pa.Table:
    """Return rows of a task with the schema of the write, so that all tasks have one."""
    is_frame = hasattr(rows, "to_records")  # of pandas
    columns = ", ".join(f"{f.name} {f.type}" for f in schema)
    extra = [str(name) for name in (rows.columns if is_frame else rows.column_names) if str(name) not in schema.names]
    if extra:
        raise InvalidArgumentError(
            f"Rows of a task have the column {', '.join(extra)}, which the schema of the write lacks ({columns}). Drop "
            "it before, or add it to schema=."
        )
    try:
        if is_frame:
            return pa.Table.from_pandas(rows, schema=schema, preserve_index=False)
        return rows.select(schema.names).cast(schema)
    except (pa.ArrowException, KeyError, TypeError) as e:
        raise InvalidArgumentError(
            f"Rows of a task do not fit the schema of the write ({columns}): {e} "
            "Cast the columns before, or pass another schema=."
        ) from e


#: Runs the write of all tasks and returns their results, in any order.
Run = Callable[[WritePart], Sequence[WrittenPart]]


class _DistributedWrite(TableWrite):
    """A write whose new rows are written by `run`."""

    def __init__(
        self, context: TableContext, base: Snapshot | None, schema: pa.Schema, run: Run, options: WriteOptions
    ) -> None:
        super().__init__(context, base, schema, options)
        self._run = run

    def given_schema(self) -> Any:
        """Return the schema of the rows that are to be written."""
        return Schema.from_arrow(self.source)

    def moved_to(self, base: Snapshot) -> TableWrite:
        """Return the same write for a table that another writer created meanwhile."""
        return _DistributedWrite(self.context, base, self.source, self._run, self.options)

    def write_new(self, plan: WritePlan) -> Written:
        """Write the rows by tasks; if one fails, the files of all are deleted."""
        opening, options = self.context.opening, self.options
        if opening is None:
            raise InvalidArgumentError("The table was not opened by its URI: other processes can't write to it.")
        part = WritePart(
            opening.pickled(0),
            plan,
            self.source,
            options.writer_properties,
            options.target_file_size,
            options.data_change,
        )
        done = self._run(part)
        files = [
            Written(self.engine, d.files, d.reported, d.num_rows, d.num_bytes, d.paths)
            for d in done
            if d.files is not None
        ]
        failed = next((d.error for d in done if d.error is not None), None)
        if failed is not None:
            for written in files:
                written.cleanup()
            raise failed
        return join_written(self.engine, files)


def write_parts(
    table_or_uri: Any,
    schema_of: Callable[[pa.Schema | None], pa.Schema],
    run: Run,
    *,
    storage_options: Any = None,
    pickle_secrets: bool = False,
    writer_properties: Any = None,
    commit_properties: Any = None,
    post_commithook_properties: Any = None,
    **options: Any,
) -> int | None:
    """Write rows that other processes hold as one version, and return it; None if nothing was to do.

    Parameters
    ----------
    table_or_uri : DeltaTable, str or path
        The table.
    schema_of : function(pyarrow.Schema or None) -> pyarrow.Schema
        Returns the schema of the rows, from that of the table if it exists and keeps it.
    run : function(WritePart) -> sequence of WrittenPart
        Calls `WritePart.write` for the rows of each task, in other processes.
    storage_options, writer_properties, commit_properties, post_commithook_properties
        As of `write_deltalake`.
    pickle_secrets : bool
        Whether secret storage options are passed to the other processes.
    **options
        Those of `write_options`.

    Raises
    ------
    TableExistsError, SchemaMismatchError, ConstraintViolationError, CommitConflictError
        As of `write_deltalake`.
    InvalidArgumentError
        For an argument of another type, an option of the opening that is passed with a `DeltaTable`, and rows that do
        not fit the schema.
    """
    arguments = write_arguments(commit_properties, writer_properties, post_commithook_properties)
    given = WriteOptions(**write_options(**options), **arguments)
    table = read_version = None
    if hasattr(table_or_uri, "adopt"):
        check_not_opened_again(storage_options=storage_options, pickle_secrets=pickle_secrets)
        table, known = table_or_uri, table_or_uri.snapshot()
        context, read_version = known.context, known.version
    elif isinstance(table_or_uri, (str, os.PathLike)):
        context = open_context(path_text(table_or_uri), storage_options, pickle_secrets=pickle_secrets)
        known = context.find()
    else:
        raise InvalidArgumentError(
            f"Found a table as {kind_name(table_or_uri)}; expected a path, a URI or a DeltaTable of delta_core."
        )
    keeps_schema = known is not None and given.schema_mode != "overwrite"
    schema = schema_of(known.schema.to_arrow() if keeps_schema else None)

    def newest() -> Snapshot | None:
        return None if known is None else known.latest()

    done = run_write(
        context, given, lambda base: _DistributedWrite(context, base, schema, run, given), newest, read_version
    )
    if done is None:
        return None
    latest = compact_after(done.snapshot, post_commithook_properties)
    if table is not None:
        table.adopt(latest)
    return int(done.snapshot.version)
