"""The public API of writing, in the call forms of ``deltalake``: `write_deltalake` and what it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from delta_core import operations
from delta_core.engines.engine import Engine
from delta_core.engines.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties
from delta_core.errors import InvalidArgumentError, TableExistsError, TableNotFoundError
from delta_core.kernel.commit.options import kind_name, write_arguments
from delta_core.kernel.snapshot import open_context
from delta_core.kernel.write.source import open_source
from delta_core.operations.create import column_names
from delta_core.operations.write import WriteOptions, write_table
from delta_core.runtime.arguments import check_kinds, is_of_deltalake, mode_text, path_text, properties_by_position
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table.transaction import CommitProperties, PostCommitHookProperties

if TYPE_CHECKING:
    from delta_core.expressions.filters import PredicateLike
    from delta_core.operations import OperationProgress
    from delta_core.table.delta_table import DeltaTable

__all__ = ["BloomFilterProperties", "ColumnProperties", "WriterProperties", "convert_to_deltalake", "write_deltalake"]


def write_deltalake(
    table_or_uri: str | os.PathLike[str] | DeltaTable,
    data: Any,
    *,
    partition_by: list[str] | str | None = None,
    mode: Literal["error", "append", "overwrite", "ignore"] = "error",
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    schema_mode: Literal["merge", "overwrite"] | None = None,
    storage_options: dict[str, str] | None = None,
    predicate: str | None = None,
    target_file_size: int | None = None,
    writer_properties: WriterProperties | None = None,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    partition_overwrite: Literal["static", "dynamic"] = "static",
    cluster_by: Sequence[str] = (),
    allow_external: Sequence[str] | Literal[False] | None = None,
    replace_using: Sequence[str] | str = (),
    replace_on: Any = None,
    progress: Callable[[OperationProgress], None] | None = None,
) -> None:
    """Write rows into a table, creating it if there is none.

    Parameters
    ----------
    table_or_uri : str, path or DeltaTable
        A table that is given moves to the version that was written.
    data : object
        Anything with the Arrow PyCapsule interface: PyArrow, Polars, pandas and DuckDB results, a scan, a stream.
    partition_by : str or list of str, optional
        The partition columns of a table that is created; of one that exists, they must be its own.
    mode : str
        ``error``, ``append``, ``overwrite`` or ``ignore``, by what to do with a table that exists.
    schema_mode : str, optional
        ``merge`` adds columns that only the rows have; ``overwrite`` takes the rows' schema.
    predicate : str, optional
        With overwrite: replace only the rows that it selects (Spark SQL); the new rows must fit it.
    partition_overwrite : str
        ``dynamic``, with overwrite: replace only the partitions that the new rows are in.
    configuration, name, description
        Properties and texts of a table that is created, or whose schema is overwritten: what is not given stays there.
        Other writes change none of them, and warn of those that the table does not have.
    storage_options : dict, optional
        Options of the file system, if a path or URI is given: credentials, endpoints.
    target_file_size : int, optional
        Bytes of a file; ``delta.targetFileSize`` unless given.
    writer_properties : WriterProperties, optional
        Of the Parquet files; goes before the table's properties.
    commit_properties : CommitProperties, optional
        Custom metadata of the commit, application versions, and how often it is tried again.
    post_commithook_properties : PostCommitHookProperties, optional
        The upkeep that follows the commit.
    cluster_by : sequence of str
        Clustering columns of a table that is created, or whose schema is overwritten.
    allow_external
        As of `DeltaTable`, if a path or URI is given.
    replace_using : str or sequence of str
        With overwrite: replace only the rows that are equal to a new row in these columns; null equals nothing.
    replace_on : str or Expression, optional
        With overwrite: replace only the rows for which this is true with a new row; the table's columns are those of
        ``t``, the new rows' those of ``s``: ``"t.id = s.id and t.day >= s.day"``.
    progress : function(OperationProgress), optional
        Called as rows are written: rows and, unless a stream is passed, bytes.

    Raises
    ------
    TableExistsError, SchemaMismatchError, ConstraintViolationError, CommitConflictError
        The table exists, or the rows do not fit it, or another writer's commit contradicts this one; and the errors of
        opening a table.
    InvalidArgumentError
        For an argument of another type, or with a value that it can't have.

    Notes
    -----
    A write that fails leaves no file that it wrote. An overwrite by a `DeltaTable`, but for a dynamic one and
    ``replace_using``, replaces no rows that were added or changed since the table was loaded: it fails, and
    `DeltaTable.update_incremental` loads them. By a path, it refers to the latest version.

    Examples
    --------
    >>> write_deltalake("events", rows, partition_by="city")
    >>> write_deltalake("events", rows.slice(0, 1), mode="overwrite", predicate="city = 'Oslo'")
    >>> DeltaTable("events").count()
    2
    """
    arguments = write_arguments(commit_properties, writer_properties, post_commithook_properties)
    peer: Any = table_or_uri if is_of_deltalake(table_or_uri, "DeltaTable") else None
    if peer is not None:
        context = open_context(peer.table_uri, peer._storage_options, allow_external=allow_external)
        table, known = None, context.read(peer.version())
    elif isinstance(table_or_uri, (str, os.PathLike)):
        context = open_context(path_text(table_or_uri), storage_options, allow_external=allow_external)
        table, known = None, None
    else:
        if not hasattr(table_or_uri, "adopt"):
            raise InvalidArgumentError(
                f"Found a table as {kind_name(table_or_uri)}; expected a path, a URI or a DeltaTable of delta_core."
            )
        table, known = table_or_uri, table_or_uri.snapshot()
        context = known.context
    given = write_options(
        mode=mode,
        predicate=predicate,
        partition_overwrite=partition_overwrite,
        schema_mode=schema_mode,
        partition_by=partition_by,
        cluster_by=cluster_by,
        configuration=configuration,
        name=name,
        description=description,
        target_file_size=target_file_size,
    )
    given |= arguments
    with operations.progress_bar(progress) as progress:
        if progress is not None:
            data = operations.report_rows(open_source(data), progress)
        if replace_using or replace_on is not None:
            using = column_names("replace_using", replace_using)
            replacing = operations.ReplaceOptions(replace_using=using, replace_on=replace_on, **given)
            result = operations.write_replacing(context, data, replacing, known)
        else:
            result = write_table(context, data, WriteOptions(**given), known)
    if result is not None:
        latest = operations.compact_after(result.snapshot, post_commithook_properties)
        if table is not None:
            table.adopt(latest)
        if peer is not None:
            peer.update_incremental()


def write_options(
    *,
    mode: Any = "error",
    predicate: PredicateLike | None = None,
    partition_overwrite: Any = "static",
    schema_mode: Any = None,
    partition_by: Any = None,
    cluster_by: Any = (),
    configuration: Any = None,
    name: Any = None,
    description: Any = None,
    target_file_size: int | None = None,
) -> dict[str, Any]:
    """Return what `WriteOptions` takes for these arguments of a write.

    Parameters
    ----------
    mode, predicate, partition_overwrite, schema_mode, partition_by, cluster_by, configuration, name, description
        As of `write_deltalake`.
    target_file_size : int, optional
        As of `write_deltalake`.

    Raises
    ------
    ArgumentTypeError, ArgumentInterfaceError
        For an argument of another type.
    """
    given: dict[str, Any] = {
        "mode": mode_text(mode),
        "replace_where": predicate,
        "partition_overwrite": partition_overwrite,
        "schema_mode": mode_text(schema_mode),
        "partition_by": None if partition_by is None else column_names("partition_by", partition_by),
        "cluster_by": column_names("cluster_by", cluster_by),
        "properties": configuration,
        "name": name,
        "description": description,
        "keeps_definition": True,
        "target_file_size": target_file_size,
    }
    check_kinds((("schema_mode", schema_mode), ("mode", mode), ("configuration", configuration)))
    check_kinds((("name", name), ("description", description)))
    return given


@properties_by_position("commit_properties", "post_commithook_properties")
def convert_to_deltalake(
    uri: str | os.PathLike[str],
    mode: Literal["error", "ignore", "append"] = "error",
    partition_by: Any = None,
    partition_strategy: Literal["hive", "directory"] | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: dict[str, str] | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    dry_run: bool = False,
    progress: Callable[[OperationProgress], None] | None = None,
    engine: str | Engine = "arrow",
    null_on_failed_cast: bool = False,
    use_sink_log: bool = True,
) -> dict[str, int] | None:
    """Make a table of a folder of Parquet files, in place: a commit names the files; of each the footer is read.

    All columns are nullable, and those of files that lack them are null there. Files and folders whose names begin with
    ``_`` or ``.`` are left out, and so are files whose names do not end in ``.parquet``, ``.parq`` or ``.pq``.

    Parameters
    ----------
    uri : str or path
        The folder: a local path or the URI of any file system that fsspec supports.
    mode : str
        The treatment of a folder that is a table already: ``error``; ``ignore`` does nothing; ``append`` adds the files
        that are new, if nothing but conversions wrote to the table.
    partition_by : Schema, optional
        The partition columns with their types, in the order of the folders; anything with ``__arrow_c_schema__`` too.
    partition_strategy : str, optional
        ``hive`` for ``year=2026/part-0.parquet``, ``directory`` for ``2026/part-0.parquet``; required with
        ``partition_by``.
    name, description : str, optional
        Texts of the table's metadata.
    configuration : Mapping, optional
        Table properties; known ones are validated, custom ones kept.
    storage_options : dict, optional
        Options of the file system: credentials, endpoints.
    collect_stats : bool
        Whether bounds and counts of nulls are taken from the footers, so that reads skip files.
    commit_properties : CommitProperties, optional
        Custom metadata of the commit, and how often it is tried again.
    post_commithook_properties : PostCommitHookProperties, optional
        The upkeep that follows the commit.
    dry_run : bool
        Whether everything is checked, and nothing committed.
    progress : function(OperationProgress), optional
        Called while footers are read (step ``find``).
    engine : str or Engine
        The engine that reads the footers.
    null_on_failed_cast : bool
        Whether a value of a partition becomes null that is none of its column's type; otherwise it is an error.
    use_sink_log : bool
        Whether the log of a streaming query of Spark (``_spark_metadata``) decides which files are taken, if the folder
        has one: others are of batches that failed.

    Returns
    -------
    dict or None
        With ``dry_run`` ``num_files``, the files that the table would get.

    Raises
    ------
    TableExistsError
        If there is a table already, unless ``mode`` allows it.
    InvalidArgumentError
        For arguments that are not known, a folder without Parquet files, and partition folders other than
        ``partition_by``.
    SchemaError
        If a column has a type that no Delta type stores.
    SchemaMismatchError
        If two files have columns of one name but not of one type or spelling.
    DataFileError
        If a file is no Parquet file, or a damaged one; an IrregularFileError for a pipe, a socket or a device.
    UnsupportedOperationError
        With ``append``, if the table was changed by other operations.

    Examples
    --------
    >>> import pyarrow.parquet as pq
    >>> from pathlib import Path
    >>> Path("files").mkdir()
    >>> pq.write_table(rows, "files/part-0.parquet")
    >>> convert_to_deltalake("files")
    >>> DeltaTable("files").count()
    3
    """
    if mode not in ("error", "ignore", "append"):
        raise InvalidArgumentError(f"Found mode {mode!r}, expected error, ignore or append.")
    if partition_strategy not in (None, "hive", "directory"):
        raise InvalidArgumentError(f"Found partition_strategy {partition_strategy!r}, expected hive or directory.")
    if partition_by is not None and partition_strategy is None:
        raise InvalidArgumentError("partition_by needs partition_strategy: hive or directory.")
    by = (
        partition_by
        if partition_by is None or isinstance(partition_by, StructType)
        else Schema.from_arrow(partition_by)
    )
    place = path_text(uri)
    context = open_context(place, storage_options, engine)
    try:
        base = context.read()
    except TableNotFoundError:
        base = None
    if base is not None and mode == "ignore":
        return {"num_files": 0} if dry_run else None
    if base is not None and mode == "error":
        raise TableExistsError(
            f"There is a table at {place} already (version {base.version}). To add files that are new since it was "
            "converted, pass "
            'mode="append" (on the command line --mode append).',
            path=place,
        )
    commit = write_arguments(commit_properties, None, post_commithook_properties)
    del commit["writer_properties"]
    options = operations.ConvertOptions(
        by,
        partition_strategy,
        collect_stats,
        name,
        description,
        configuration or {},
        commit,
        dry_run,
        progress,
        null_on_failed_cast,
        use_sink_log,
    )
    done = operations.convert_folder(context, base, options)
    return {"num_files": done.num_files} if dry_run else None
