"""Write rows into a table: append, overwrite, replace what a predicate selects, or whole partitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import (
    ConcurrentAppendError,
    DeltaError,
    InvalidArgumentError,
    SchemaMismatchError,
    TableExistsError,
)
from delta_core.expressions import to_condition
from delta_core.expressions.ast import Call, Column, Expression, Literal as Constant, all_of, any_of
from delta_core.expressions.printing import format_sql
from delta_core.expressions.sql import portable_sql
from delta_core.kernel.commit.intents import READ_TO_REMOVE, removed_files
from delta_core.kernel.commit.options import MAX_COMMIT_RETRIES, PostCommit
from delta_core.kernel.commit.property_requests import parse_property_requests
from delta_core.kernel.commit.transaction import CommitResult, Transaction
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.plugins.rules import RowCheck
from delta_core.kernel.protocol.properties import is_same_value
from delta_core.kernel.snapshot import Snapshot, TableContext
from delta_core.kernel.write.files import Written, write_files
from delta_core.kernel.write.plan import WritePlan
from delta_core.kernel.write.source import open_source
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array, one_array
from delta_core.operations import parts
from delta_core.operations.create import given_properties, partition_columns, property_texts, stage_definition
from delta_core.operations.facts import has_transactions, live_rows
from delta_core.runtime.arguments import check_number
from delta_core.runtime.json_text import compact_json
from delta_core.schema.evolution import merge_rows_schema
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType

if TYPE_CHECKING:
    from delta_core.engines.engine import Engine
    from delta_core.operations.changes import Dropped
    from delta_core.operations.row_changes import RowChanges

__all__ = ["QueryBatch", "TableWrite", "WriteOptions", "has_transactions", "live_rows", "run_write", "write_table"]

Mode = Literal["error", "append", "overwrite", "ignore"]
#: Partitions that a conflict check names one by one; of more, all files count as read.
_MAX_PARTITIONS_READ = 200


class QueryBatch(Struct, frozen=True):
    """The batch of a streaming query that rows are; it is written once.

    Parameters
    ----------
    query_id : str
        The query, also if it was started again with its checkpoint.
    epoch_id : int
        The number of the batch.
    output_mode : "append" or "complete"
        Spark's output mode.
    """

    query_id: str
    epoch_id: int
    output_mode: str

    @property
    def parameters(self) -> dict[str, str]:
        """The ``operationParameters`` of its commit."""
        return {"outputMode": self.output_mode.capitalize(), "queryId": self.query_id, "epochId": str(self.epoch_id)}


class WriteOptions(Struct, frozen=True):
    """How rows are written.

    Parameters
    ----------
    mode : str
        ``error`` and ``ignore`` speak of a table that exists.
    replace_where : str or Expression, optional
        With ``overwrite``: replace only the rows that it selects; the new rows must fit it.
    partition_overwrite : str
        ``dynamic``, with ``overwrite``: replace only the partitions that the new rows are in.
    schema_mode : str, optional
        ``merge`` adds columns that only the rows have; ``overwrite``, with mode overwrite, takes the rows' schema.
    partition_by, cluster_by, properties, name, description
        Of a table that is created, or whose schema is overwritten: there what is not given stays as it is. Without
        effect on other writes, but that ``partition_by`` must then name the table's own columns.
    replaces_definition : bool
        With mode overwrite: nothing of the definition stays, as if the table were created.
    keeps_definition : bool
        Whether a write to a table that exists warns of a name, a description and properties that it does not apply,
        instead of rejecting them.
    writer_properties : WriterProperties, optional
        How the Parquet files are encoded; goes before the table's properties.
    target_file_size : int, optional
        Bytes of a file; ``delta.targetFileSize`` unless given.
    transactions : Mapping of str to int
        Application ids and versions: rows of versions that the table has already are not written again.
    batch : QueryBatch, optional
        The rows are this batch of a stream: a transaction of its query, and a STREAMING UPDATE in the history.
    data_change : bool
        False, with ``overwrite``: the rows are those that they replace, arranged otherwise.
    checks_replaced : bool
        Whether new rows must fit ``replace_where``.
    parameters : Mapping of str to str
        Further ``operationParameters`` of the commit.
    may_widen : function(str, str) -> bool
        Whether ``merge`` may change a column of a type to another type, if the table allows that.
    user_metadata : str, optional
        The field ``userMetadata`` of ``commitInfo``.
    custom_metadata : Mapping
        Further fields of ``commitInfo``.
    max_commit_retries : int
        How often a lost race is run again.
    post : PostCommit
        The upkeep that follows the commit.
    """

    mode: Mode = "error"
    replace_where: Any = None
    partition_overwrite: Literal["static", "dynamic"] = "static"
    schema_mode: Literal["merge", "overwrite"] | None = None
    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[str] = ()
    properties: Mapping[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    replaces_definition: bool = False
    keeps_definition: bool = False
    writer_properties: WriterProperties | None = None
    target_file_size: int | None = None
    transactions: Mapping[str, int] = {}
    batch: QueryBatch | None = None
    data_change: bool = True
    checks_replaced: bool = True
    parameters: Mapping[str, str] = {}
    may_widen: Callable[[str, str], bool] = lambda old, new: True
    user_metadata: str | None = None
    custom_metadata: Mapping[str, Any] = {}
    max_commit_retries: int = MAX_COMMIT_RETRIES
    post: PostCommit = field(default_factory=PostCommit)

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions of `transactions`, and that of the batch."""
        if self.batch is None:
            return self.transactions
        return {**self.transactions, self.batch.query_id: self.batch.epoch_id}


def write_table(
    context: TableContext, data: Any, options: WriteOptions, known: Snapshot | None = None
) -> CommitResult[Snapshot] | None:
    """Write rows and commit them; returns None if mode ``ignore`` or a known application version left nothing to do.

    Parameters
    ----------
    context : TableContext
        Where the table is or is to be, and how it is reached.
    data : object
        Rows, as `write.source.open_source` takes them.
    options : WriteOptions
        How the rows are written.
    known : Snapshot, optional
        The table as it is open already: only what is newer is read. Its version is `run_write`'s ``read_version``.

    Raises
    ------
    TableExistsError
        Mode ``error`` and there is a table.
    SchemaMismatchError, ConstraintViolationError
        The rows don't fit; nothing was written.
    CommitConflictError
        A writer that was faster contradicts; what was written is deleted again.

    Notes
    -----
    Memory is bounded by row groups, whatever the length of the stream.
    """
    _check(options)
    latest, version = (None, None) if known is None else (known.latest, known.version)
    return run_write(
        context, options, lambda base: TableWrite(context, base, open_source(data), options), latest, version
    )


def run_write(
    context: TableContext,
    options: WriteOptions,
    begin: Callable[[Snapshot | None], TableWrite],
    latest: Callable[[], Snapshot | None] | None = None,
    read_version: int | None = None,
) -> CommitResult[Snapshot] | None:
    """Run a write of any engine, if the mode and the application's version leave something to do.

    Parameters
    ----------
    context : TableContext
        Where the table is or is to be, and how it is reached.
    options : WriteOptions
        How the rows are written.
    begin : function(Snapshot or None) -> TableWrite
        From the latest version, None if there is no table. If another writer creates the table meanwhile, the rows
        are written into that one.
    latest : function() -> Snapshot or None, optional
        Returns the latest version of the table, None if there is none; it is looked for unless given.
    read_version : int, optional
        The version that the caller has loaded. Rows that were added or removed since are not overwritten, but by a
        dynamic overwrite of partitions, which states what it replaces by its rows.

    Raises
    ------
    TableExistsError
        If there is a table and the mode is ``error``.
    """
    _check(options)
    base = (latest or context.find)()
    if base is not None and options.mode == "error":
        raise TableExistsError(
            f"There is a table at {context.log.uri} already (version {base.version}). "
            "Use mode append, overwrite or ignore.",
            path=context.log.uri,
        )
    if base is not None and (options.mode == "ignore" or has_transactions(base, options.versions)):
        return None
    write = begin(base)
    if read_version is not None and options.mode == "overwrite" and options.partition_overwrite == "static":
        write.read_version = read_version
    try:
        return write.run()
    except ConcurrentAppendError:
        # None of a listing that lags
        created = context.find() if base is None and options.mode != "error" else None
        if created is None:
            write.cleanup()
            raise
        return _run_on(created, write, options)
    except BaseException:
        write.cleanup()
        raise


def _run_on(created: Snapshot, lost: TableWrite, options: WriteOptions) -> CommitResult[Snapshot] | None:
    """Write the rows of a write that was to create a table into the one that another writer created first."""
    try:
        if options.mode == "ignore" or has_transactions(created, options.versions):
            return None
        write = lost.moved_to(created)
        try:
            return write.run()
        except BaseException:
            write.cleanup()
            raise
    finally:
        lost.cleanup()


def _check(options: WriteOptions) -> None:
    if options.mode not in ("error", "append", "overwrite", "ignore"):
        raise InvalidArgumentError(f"Found mode {options.mode!r}, expected error, append, overwrite or ignore.")
    for name, found, allowed in (
        ("partition_overwrite", options.partition_overwrite, ("static", "dynamic")),
        ("schema_mode", options.schema_mode, (None, "merge", "overwrite")),
    ):
        # taken for the default, a misspelt one would replace what was to stay
        if found not in allowed:
            raise InvalidArgumentError(f"Found {name}={found!r}, expected one of {', '.join(map(str, allowed))}.")
    check_number("target_file_size", options.target_file_size, 1, what="a number of bytes")
    if options.schema_mode == "overwrite" and options.mode != "overwrite":
        raise InvalidArgumentError("schema_mode='overwrite' needs mode='overwrite'.")
    if options.replace_where is not None and options.mode != "overwrite":
        raise InvalidArgumentError("A predicate specifies which rows are replaced: it needs mode='overwrite'.")
    if options.partition_overwrite == "dynamic" and options.replace_where is not None:
        raise InvalidArgumentError("Dynamic partition overwrite and a predicate exclude each other.")
    if options.schema_mode == "overwrite" and (options.replace_where or options.partition_overwrite == "dynamic"):
        raise InvalidArgumentError(
            "schema_mode='overwrite' replaces every row: it excludes a predicate and dynamic partition overwrite."
        )
    _check_definition(options)
    if not options.data_change and (options.mode != "overwrite" or options.schema_mode is not None):
        raise InvalidArgumentError(
            "data_change=False only arranges rows again: it needs mode='overwrite' and the table's schema."
        )


def _check_definition(options: WriteOptions) -> None:
    is_partial = options.replace_where is not None or options.partition_overwrite == "dynamic"
    if options.replaces_definition and (options.mode != "overwrite" or options.schema_mode is not None or is_partial):
        raise InvalidArgumentError(
            "A definition is replaced with every row: this needs mode='overwrite', and excludes schema_mode, a "
            "predicate and dynamic partition overwrite."
        )


def _warn_of(differences: Sequence[tuple[str, str | None, str | None]]) -> None:
    """Warn of what a write to a table that exists requests and does not apply."""
    for what, found, asked_for in differences:
        warnings.warn(
            f"The write does not change the table's {what}: it stays {found!r}, {asked_for!r} was passed. Change it by "
            "table.alter, or overwrite the schema too.",
            UserWarning,
            stacklevel=2,
        )


class TableWrite:
    """One write: the definition, the new files, what they replace, the commit.

    New rows go through `given_schema` and `write_new` alone, which an engine with rows of its own overrides; rows of
    the table through `RowChanges`.
    """

    def __init__(self, context: TableContext, base: Snapshot | None, source: Any, options: WriteOptions) -> None:
        self.context = context
        self.base = base
        #: The version from which the caller read what it overwrites, if it is known.
        self.read_version: int | None = None
        self.source = source
        self.options = options
        operation = "WRITE" if options.batch is None else "STREAMING UPDATE"
        self.transaction: Transaction[Snapshot] = Transaction(context, base, operation, self._parameters())
        self.engine: Engine = context.log.engine
        self.written: list[Written] = []
        self.changes: list[Written] = []
        self.dropped: Dropped | None = None
        #: For writes that drop some rows of files.
        self.row_changes: RowChanges | None = None

    def run(self) -> CommitResult[Snapshot]:
        """Write the rows and commit; raises what `write_table` raises."""
        transaction, options = self.transaction, self.options
        self._define()
        predicate = self._predicate()
        if predicate is not None and options.batch is None:
            transaction.parameters["predicate"] = self._replaced_text(predicate)
        self._write_rows(predicate)
        if options.mode == "overwrite" and self.base is not None:
            # what stays and what changes is read as the table will be, with the columns and types that this write adds
            self._replace(self.base.redefined(self.transaction.table, self.transaction.plugins), predicate)
        for app_id, version in options.versions.items():
            transaction.set_transaction(app_id, version)
        self._measure()
        return transaction.commit(
            options.user_metadata, options.custom_metadata, options.max_commit_retries, post=options.post
        )

    def cleanup(self) -> None:
        """Delete what did not become part of the table; what may have become part of it stays."""
        for files in () if self.transaction.in_doubt else (*self.written, *self.changes):
            files.cleanup()
        if self.row_changes is not None:
            self.row_changes.cleanup()

    def moved_to(self, base: Snapshot) -> TableWrite:
        """Return the same write for a table that another writer created meanwhile."""
        return TableWrite(self.context, base, self._rows_again(base), self.options)

    def _rows_again(self, base: Snapshot) -> Any:
        """Return the rows that were given: a stream's, which can be read once, from the files written."""
        if not isinstance(self.source, pa.RecordBatchReader):
            return self.source
        made = base.redefined(self.transaction.table, self.transaction.plugins)
        files = FileSet.of(pa.concat_tables([w.adds for w in self.written]))
        return made.scan(self.source.schema.names, files=files).to_reader()

    def _parameters(self) -> dict[str, Any]:
        options = self.options
        if options.batch is not None:
            return {**options.batch.parameters, **options.parameters}
        mode = {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}.get(options.mode, "ErrorIfExists")
        out: dict[str, Any] = {"mode": mode, "partitionBy": compact_json(list(options.partition_by or ()))}
        if options.partition_overwrite == "dynamic":
            out["isDynamicPartitionOverwrite"] = "true"
        return {**out, **options.parameters}

    def _replaced_text(self, predicate: Expression) -> str:
        """Return which rows are replaced as text, as the log contains it: as the user wrote it, or as SQL."""
        given = self.options.replace_where
        if isinstance(given, str):
            return portable_sql(given, "name")
        return getattr(given, "sql", "") or format_sql(predicate)

    # --- definition ---

    def _define(self) -> None:
        options = self.options
        if self.base is None or options.replaces_definition:
            stage_definition(
                self.transaction,
                self._rows_schema(),
                partition_by=options.partition_by or (),
                cluster_by=options.cluster_by,
                name=options.name,
                description=options.description,
                properties=options.properties,
            )
            return
        state = self.base.state
        if options.schema_mode != "overwrite":
            self._check_partitioning(state.partition_columns)
            self._check_definition(self.base)
        metadata = state.metadata
        if options.schema_mode == "overwrite":
            asked = state.partition_columns if options.partition_by is None else options.partition_by
            rows = self._rows_schema()
            lists = {"cluster_by": options.cluster_by} if options.cluster_by else {}
            request = self.transaction.context.registry.requests(lists)
            metadata = replace(
                metadata,
                schema_string=rows.to_json(),
                partition_columns=self._partitions(rows, asked),
                configuration={**metadata.configuration, **given_properties(options.properties), **request},
                name=metadata.name if options.name is None else options.name,
                description=metadata.description if options.description is None else options.description,
            )
        elif options.schema_mode == "merge":
            merged = merge_rows_schema(state.schema, self._rows_schema(), self._accept)
            metadata = replace(metadata, schema_string=merged.to_json()) if merged != state.schema else metadata
        if metadata != state.metadata:
            whole = options.replace_where is None and options.partition_overwrite == "static"
            self.transaction.set_metadata(metadata, replaces=whole and options.mode == "overwrite")

    def _rows_schema(self) -> Schema:
        return Schema(self.given_schema().members)

    def _partitions(self, rows: Schema, names: Sequence[str]) -> tuple[str, ...]:
        if self.options.partition_by is None:
            missing = [c for c in names if rows.get(c) is None]
            if missing:
                raise SchemaMismatchError(
                    f"Column {missing[0]!r}, by which the table is partitioned, is not among the rows' columns. Pass "
                    "the rows that column, or specify with partition_by how the table is to be partitioned; [] for not "
                    "at all.",
                    column=missing[0],
                )
        return partition_columns(rows, names)

    def _accept(self, path: Any, old: Any, new: Any) -> bool:
        plugins = self.transaction.plugins
        return self.options.may_widen(old.type, new.type) and bool(
            plugins.single("accept_type_change", False, table=self.transaction.table, path=path, old=old, new=new)
        )

    def _check_partitioning(self, columns: Sequence[str]) -> None:
        asked = self.options.partition_by
        if asked is not None and [c.lower() for c in asked] != [c.lower() for c in columns]:
            raise InvalidArgumentError(
                f"The table is partitioned by {list(columns)}, the write requests {list(asked)}. "
                "Leave partition_by out, or overwrite the schema too."
            )

    def _check_definition(self, base: Snapshot) -> None:
        """Reject a definition that is not the table's, or warn of it: such a write does not change it."""
        options, metadata = self.options, base.metadata
        columns = base.plugins.request_values("cluster_by", base.state) if options.cluster_by else ()
        texts = [("name", metadata.name, options.name), ("description", metadata.description, options.description)]
        if options.keeps_definition:
            try:
                properties = self._other_properties(base)
            except DeltaError:  # values that no table may have: they are not applied either
                given = property_texts(options.properties or {})
                properties = [(f"property {n}", metadata.configuration.get(n, "unset"), v) for n, v in given.items()]
            _warn_of([d for d in [*texts, *properties] if d[2] is not None and d[1] != d[2]])
            differences = []
        else:
            differences = [*texts, *self._other_properties(base)]
        clustering = ("cluster_by", ", ".join(columns), ", ".join(options.cluster_by) or None)
        for what, found, asked_for in [*differences, clustering]:
            if asked_for is not None and asked_for != found:
                raise InvalidArgumentError(
                    f"The table's {what} is {found!r}, the write requests {asked_for!r}: a write to a table that "
                    "exists changes no definition. Leave it out, change the table by table.alter first, or overwrite "
                    "the schema too."
                )

    def _other_properties(self, base: Snapshot) -> list[tuple[str, str | None, str | None]]:
        """Return the requested features and properties that the table does not have: what, as it is, as requested."""
        if not self.options.properties:
            return []
        have = base.metadata.configuration
        asked = parse_property_requests(property_texts(self.options.properties), [have], base.registry)
        features = [(f"feature {n}", "unsupported", n) for n in asked.features if n not in base.state.features]
        return [
            *features,
            *(
                (f"property {n}", have.get(n, "unset"), v)
                for n, v in asked.configuration.items()
                if n not in have or not is_same_value(n, have[n], v)
            ),
        ]

    def _predicate(self) -> Expression | None:
        if self.options.replace_where is None:
            return None
        return to_condition(
            self.options.replace_where, self.transaction.table.schema, functions=self.transaction.plugins.functions
        )

    # --- files ---

    def _write_rows(self, predicate: Expression | None) -> None:
        if self.read_version is not None:
            self.transaction.check_read_since(self.read_version, self.options.mode == "overwrite", predicate)
        plan = self.transaction.plan
        if predicate is not None and self.options.checks_replaced:
            check = RowCheck("", "replaceWhere", predicate, sql=self._replaced_text(predicate))
            plan = replace(plan, checks=(*plan.checks, check))
        # at once: an interrupt deletes what is noted
        self.written.append(self.write_new(plan))
        self._stage_last()

    def _stage_last(self) -> Written:
        written = self.written[-1]
        self.transaction.add_written(written)
        return written

    def _replace(self, base: Snapshot, predicate: Expression | None) -> None:
        if self.options.partition_overwrite == "dynamic" and base.state.partition_columns:
            self._replace_partitions(base)
            return
        if predicate is None:
            table = base.files.columns(READ_TO_REMOVE)
            self.transaction.read(None, table)
            self._remove(table)
            return
        changes = self._begin_changes(base)
        self._finish_changes(changes, changes.drop_where(predicate))

    def _begin_changes(self, base: Snapshot) -> RowChanges:
        options = self.options
        self.row_changes = parts.RowChanges(
            base, self.transaction, options.writer_properties, data_change=options.data_change
        )
        return self.row_changes

    def _finish_changes(self, changes: RowChanges, dropped: Dropped) -> None:
        """Record the new rows beside those that were dropped, for the change feed and the metrics."""
        if changes.has_records:
            changes.record(self.written[0].adds, None, "insert")
            changes.write_changes()
        self.dropped = dropped

    # --- rows ---

    def given_schema(self) -> StructType:
        """Return the schema of the rows that are to be written."""
        return Schema.from_arrow(self.source.schema)

    def write_new(self, plan: WritePlan) -> Written:
        """Write the rows that were given."""
        options = self.options
        return write_files(
            self.engine,
            plan,
            self.source,
            properties=options.writer_properties,
            target_size=options.target_file_size,
            data_change=options.data_change,
            syncs=self.transaction.syncs,
        )

    # --- what is replaced ---

    def _replace_partitions(self, base: Snapshot) -> None:
        """Remove the files of the partitions that the new files are in; values are compared typed."""
        state = base.state
        columns = [
            (f.name, state.schema.get(n))
            for f, n in zip(_physical_partitions(base), state.partition_columns, strict=True)
        ]
        new = FileSet.of(self.written[0].adds)
        wanted = _partition_keys(new, columns, base)
        distinct = wanted.unique()
        table = base.files.columns(READ_TO_REMOVE)
        hit = np.isin(
            _partition_keys(base.files, columns, base).to_numpy(zero_copy_only=False),
            distinct.to_numpy(zero_copy_only=False),
        )
        table = table.filter(bool_array(hit))
        self.transaction.read(_partitions_predicate(new, columns, base, len(distinct)), table)
        self._remove(table)

    def _remove(self, table: pa.Table) -> None:
        if table.num_rows:
            self.transaction.remove_files(removed_files(table, self.options.data_change))

    @property
    def _count(self) -> str:
        """The metric of new files, which the batches of streams have under another name."""
        return "numFiles" if self.options.batch is None else "numAddedFiles"

    def _measure(self) -> None:
        new = self.written
        if self.options.batch is not None:
            self.transaction.metrics["numRemovedFiles"] = 0
        self.transaction.metrics.update(
            {self._count: sum(w.adds.num_rows for w in new)},
            numOutputRows=sum(w.num_rows for w in new),
            numOutputBytes=sum(w.num_bytes for w in (*new, *self.changes)),
        )
        removed = self.transaction.intents.removes
        if self.dropped is not None:
            self.transaction.metrics.update(
                self.dropped.metrics(), numAddedChangeFiles=sum(w.adds.num_rows for w in self.changes)
            )
        if removed or self.dropped is not None:
            sizes = [s for t in removed for s in t.column("size").to_pylist()]
            self.transaction.metrics.update(numRemovedFiles=len(sizes), numRemovedBytes=sum(s or 0 for s in sizes))
        if self.row_changes is not None:
            metrics, done = self.transaction.metrics, self.row_changes.metrics()
            metrics[self._count] += done["numAddedFiles"]
            metrics["numOutputRows"] += done["numCopiedRows"]
            metrics["numOutputBytes"] += done["numAddedBytes"]
            names = ("numRemovedFiles", "numRemovedBytes", "numAddedChangeFiles")
            metrics.update({name: done[name] for name in names})


def _physical_partitions(base: Snapshot) -> list[Any]:
    by_logical = dict(zip((f.name for f in base.schema.members), base.state.column_map.physical.members, strict=True))
    return [by_logical[n] for n in base.state.partition_columns]


def _typed(files: FileSet, columns: Sequence[tuple[str, Any]], base: Snapshot) -> list[pa.Array]:
    table = files.columns([f"partition:{name}" for name, _ in columns])
    return [
        parse_partition_values(table.column(i), f.type, base.timezone, column=name, types=base.state.types)
        for i, (name, f) in enumerate(columns)
    ]


def _partition_keys(files: FileSet, columns: Sequence[tuple[str, Any]], base: Snapshot) -> pa.Array:
    """Return one text a file that reports its partition: typed values, so that two spellings of one are equal."""
    parts = []
    for values in _typed(files, columns, base):
        flat = one_array(values)
        if pa.types.is_dictionary(flat.type):
            flat = flat.dictionary_decode()
        text = flat.cast(pa.string())
        # with their lengths, since texts may hold whatever would separate them
        size = pc.binary_length(text).cast(pa.string())
        parts.append(pc.binary_join_element_wise(size, text, ":").fill_null("n"))
    return pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0]


def _partitions_predicate(
    files: FileSet, columns: Sequence[tuple[str, Any]], base: Snapshot, count: int
) -> Expression | None:
    """Return the predicate of the files' partitions for the conflict check; None if they are too many to name."""
    if count > _MAX_PARTITIONS_READ:
        return None
    values = zip(*(v.to_pylist() for v in _typed(files, columns, base)), strict=True)
    names = base.state.partition_columns
    parts = [
        all_of(
            [Call("<=>", (Column((n,)), Constant(v, f.type))) for n, v, (_, f) in zip(names, row, columns, strict=True)]
        )
        for row in dict.fromkeys(values)
    ]
    return any_of([p for p in parts if p is not None])
