"""DataFrames to data files of a table, and to what the log specifies for them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import DataFrame, functions as F

from delta_core.engines.engine import Engine
from delta_core.engines.spark.failures import cause_of, failing_as, is_task_of_write
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.write.checks import translated
from delta_core.engines.spark.write.job import Job
from delta_core.engines.spark.write.rows import PhysicalRows, physical_rows
from delta_core.errors import UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.log.partition_values import parse_partition_values
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.write.files import Written, describe_files
from delta_core.kernel.write.layout import file_columns
from delta_core.kernel.write.names import CHANGE_DIRECTORY, HIVE_NULL, encode_path, random_prefix
from delta_core.kernel.write.partition_text import format_partition_values
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.kernel.write.properties import writer_properties
from delta_core.kernels.arrow_buffers import one_array
from delta_core.schema.fields import Path, find

__all__ = ["FrameOptions", "FrameWritten", "write_frame"]


class FrameOptions(Struct, frozen=True):
    """How Spark writes files.

    Parameters
    ----------
    max_records_per_file : int, optional
    optimize : bool, optional
        Whether rows are first shuffled into about as many tasks as files of the target size need (a shuffle); what
        ``delta.autoOptimize.optimizeWrite`` specifies unless given.
    options : Mapping
        Further options of Spark's Parquet writer.
    plain : bool
        Whether to go without Spark's private interfaces, as on Spark Connect.
    """

    max_records_per_file: int | None = None
    optimize: bool | None = None
    options: Mapping[str, str] = {}
    plain: bool = False


class FrameWritten(Written, frozen=True):
    """Files that lie in a directory of their own."""

    job: Job

    def cleanup(self) -> None:
        """Delete the directory: for a write that is not going to be committed."""
        self.job.delete()


def write_frame(
    spark: Any,
    engine: Engine,
    plan: WritePlan,
    rows: DataFrame,
    options: FrameOptions,
    *,
    data_change: bool = True,
    origin: Origin = "new",
) -> Written:
    """Write rows as data files (or change files) of a table, in one Spark job; no rows make no file.

    Parameters
    ----------
    spark : SparkSession
        The session that runs the job.
    engine : Engine
        The engine that reads the footers of the files.
    plan : WritePlan
        The plan of the table's writes.
    rows : DataFrame
        The rows; columns are matched by name, ignoring case.
    options : FrameOptions
        How Spark writes files.
    data_change : bool
        False for files that hold rows which the table has already.
    origin : str
        As of `write.apply.PrepareRows`.

    Raises
    ------
    SchemaMismatchError, ConstraintViolationError, UnsupportedExpressionError
        The rows don't fit the table.
    EngineError
        The job failed otherwise. All written files are deleted.
    """
    _check_reported(plan)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    prepared = physical_rows(engine, plan, rows, zone, origin=origin, plain=options.plain)
    changes = origin == "changes"
    job = Job(spark, engine.storage, _directory(plan, changes), _parquet_options(plan, options), options.plain)
    optimize = plan.table.flag("delta.autoOptimize.optimizeWrite") if options.optimize is None else options.optimize
    frame = _balanced(prepared) if optimize or prepared.is_scattered else prepared.frame
    paths = _run(job, frame, prepared)
    try:
        return _written(engine, plan, prepared, job, paths, data_change, changes)
    except BaseException:
        job.delete()
        raise


def _check_reported(plan: WritePlan) -> None:
    """Reject encoded columns if a feature needs bounds of generated values: footers have those of the stored form."""
    for rule in plan.fills:
        encoding = plan.table.encodings.get(rule.column[0])
        if rule.report_bounds and encoding is not None:
            raise UnsupportedOperationError(
                f"Column {rule.column[0]!r} is filled by {rule.feature} and encoded by {encoding.feature}, and Spark "
                "can't report the values that it generates. Write the rows with delta_core.write_deltalake.",
                column=rule.column[0],
                feature=encoding.feature,
            )


def _run(job: Job, frame: DataFrame, prepared: PhysicalRows) -> list[str]:
    try:
        return job.run(frame, prepared.directories)
    except Exception as e:
        known = translated(e, prepared.conditions)
        if known is not None:
            raise known from cause_of(e)
        # of constants, delta-spark reports the failure itself: it calculates them without a task
        is_task = is_task_of_write(e) and not private.has_constant_rows(frame)
        facts = {"condition": "TASK_WRITE_FAILED"} if is_task else {}
        with failing_as(f"The Spark job that writes {job.place} failed", path=job.place, **facts):
            raise


def _directory(plan: WritePlan, changes: bool) -> str:
    parts = [CHANGE_DIRECTORY] if changes else []
    if plan.requirements.folder:
        parts.append(plan.requirements.folder)
    if plan.requirements.random_prefix:
        parts.append(random_prefix())
    return "/".join([*parts, f"job-{uuid.uuid4()}"])


def _parquet_options(plan: WritePlan, options: FrameOptions) -> dict[str, str]:
    properties = writer_properties(plan.table)
    # without a codec of the table, Spark takes that of the session
    codec = plan.table.configuration.get("delta.parquet.compression.codec")
    found = {} if codec is None else {"compression": codec.strip().lower()}
    if properties.data_page_version == "2.0":
        found["parquet.writer.version"] = "v2"
    if options.max_records_per_file is not None:
        found["maxRecordsPerFile"] = str(options.max_records_per_file)
    return {**found, **options.options}


def _balanced(prepared: PhysicalRows) -> DataFrame:
    """Return the rows in tasks of about equal size, each partition's rows in few of them."""
    columns = [F.col(quote_name(n)) for n in prepared.directories]
    return prepared.frame.hint("rebalance", *columns)


# --- what the log specifies ---------------------------------------------------------------------


def _written(
    engine: Engine,
    plan: WritePlan,
    prepared: PhysicalRows,
    job: Job,
    paths: Sequence[str],
    data_change: bool,
    changes: bool,
) -> FrameWritten:
    unpartitioned = _unpartitioned(plan)
    table = (
        _change_files(engine, paths)
        if changes
        else describe_files(engine, unpartitioned, paths, data_change=data_change)
    )
    values = _partition_values(plan, job.directory, paths)
    place = table.column_names.index("partitionValues")
    table = table.set_column(place, "partitionValues", pa.array(values, FILE_COLUMNS["partitionValues"]))
    empty = [p for p, n in zip(paths, table.column("numRecords").to_pylist(), strict=True) if not n]
    if empty:
        job.delete(empty if len(empty) < len(paths) else None)
        table = table.filter(pa.array([bool(n) for n in table.column("numRecords").to_pylist()]))
    left = [p for p in paths if p not in set(empty)]
    rows, size = (sum(table.column(n).to_pylist()) for n in ("numRecords", "size"))
    if changes:
        table = table.select(["path", "partitionValues", "size", "dataChange", "tags"])
    reported = _reported(engine, plan, prepared, left)
    return FrameWritten(engine, table, reported, rows, size, tuple(left), job)


def _unpartitioned(plan: WritePlan) -> WritePlan:
    """Return the plan of the same files without partition values: those are in the directories' names."""
    table = replace(plan.table, metadata=replace(plan.table.metadata, partition_columns=()))
    return replace(plan, table=table)


def _change_files(engine: Engine, paths: Sequence[str]) -> pa.Table:
    sizes = [size for size, _ in engine.storage.stat(paths)]
    nothing = [None] * len(paths)
    values = {
        "path": [encode_path(p) for p in paths],
        "partitionValues": nothing,
        "size": sizes,
        "dataChange": [False] * len(paths),
        "tags": nothing,
    }
    table = pa.table({n: pa.array(v, FILE_COLUMNS[n]) for n, v in values.items()})
    counts = engine.data.row_counts(paths, sizes) if paths else []
    return table.append_column("numRecords", pa.array(counts, pa.int64()))


def _partition_values(plan: WritePlan, directory: str, paths: Sequence[str]) -> list[list[tuple[str, str | None]]]:
    """Return what the directories specify, in the log's spelling."""
    table = plan.table
    if not table.partition_columns:
        return [[] for _ in paths]
    named = [_named_values(p[len(directory) + 1 :]) for p in paths]
    columns = []
    for place, column in enumerate(table.partition_columns):
        path, found = find(table.schema, (column,))
        physical = table.column_map.physical_path(table.schema, path)[0]
        texts = pa.array([row[place] for row in named], pa.string())
        values = parse_partition_values(pa.chunked_array([texts]), found.type, "UTC", column=column, types=table.types)
        flat = one_array(values)
        if pa.types.is_dictionary(flat.type):
            flat = flat.dictionary_decode()
        columns.append([(physical, text) for text in format_partition_values(flat, found.type, column)])
    return [list(row) for row in zip(*columns, strict=True)]


def _named_values(path: str) -> list[str | None]:
    values = [part.partition("=")[2] for part in path.split("/")[:-1]]
    return [None if v == HIVE_NULL else unquote(v) for v in values]


def _reported(
    engine: Engine, plan: WritePlan, prepared: PhysicalRows, paths: Sequence[str]
) -> dict[Path, tuple[Any, Any]]:
    """Return least and greatest value of each column that is to be reported: a filled column holds nothing else."""
    rules = {}
    for rule in prepared.fills:
        if rule.report_bounds:
            rules[plan.table.column_map.physical_path(plan.table.schema, rule.column)] = rule.column
    if not rules or not paths:
        return {}
    schema = pa.schema([c.field for c in file_columns(_unpartitioned(plan))])
    found: dict[Path, tuple[Any, Any]] = {}
    for file in engine.data.describe(paths, schema, tuple(rules)):
        for column in file.statistics:
            if column.low is not None:
                low, high = found.get(rules[column.path], (column.low, column.high))
                found[rules[column.path]] = min(low, column.low), max(high, column.high)
    return found
