"""Shallow clones of Parquet tables: a Delta table whose log names the files of another folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

from delta_core.engines.spark.builder import given_columns
from delta_core.engines.spark.catalog import path_in, table_to_convert
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.relations import spark_engine
from delta_core.engines.spark.settings import session_settings
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.kernel.snapshot import open_context
from delta_core.operations import CloneOptions, ConvertOptions, clone_table
from delta_core.operations.convert_format import folder_snapshot
from delta_core.schema.types import StructType
from delta_core.table.delta_table import DeltaTable

__all__ = ["clone_parquet", "is_parquet"]


def is_parquet(spark: Any, name: str) -> bool:
    """Whether a name in SQL is ``parquet.`path```, or a Parquet table of the session's catalog."""
    if path_in(name) is not None:
        return name.strip().lower().startswith("parquet")
    is_known = private.is_available(spark) and private.is_known_name(spark, name)
    return is_known and private.table_location(spark, name)[1].lower() == "parquet"


def clone_parquet(
    spark: Any, name: str, target: str, *, replace: bool, properties: Mapping[str, str], options: Mapping[str, Any]
) -> DeltaTable:
    """Make a table whose log names the files of a Parquet table, which stay where they are.

    Parameters
    ----------
    spark : SparkSession
        The session; executors read the footers of many files.
    name : str
        As of `is_parquet`.
    target : str
        The place of the clone.
    replace : bool
        Whether a table that is there gets another version.
    properties : Mapping of str to str
        Table properties of the clone.
    options : Mapping
        As of `SparkTable`.

    Raises
    ------
    InvalidArgumentError
        The path has no Parquet files, or folders of partitions.
    UnsupportedOperationError
        The path is one of a Delta table, or the catalog's table has partitions outside of its folder.
    DeltaError
        As of `clone_table`, and of a conversion of the folder.
    """
    path, by = path_in(name), T.StructType([])
    storage = options.get("storage_options")
    if path is None:
        path, by = table_to_convert(spark, name, None), private.partition_schema(spark, name)
    elif DeltaTable.is_deltatable(path, storage):
        raise UnsupportedOperationError(
            f"The folder {path} has a Delta table, whose log decides which files it has. Clone delta.`{path}`.",
            path=path,
        )
    folder = open_context(path, storage, spark_engine(spark, path, storage, options.get("allow_external")))
    place = open_context(target, storage, spark_engine(spark, target, storage, options.get("allow_external")))
    partitions = StructType(given_columns(by)) if by.fields else None
    uses_log = session_settings(spark).permits("convert.useMetadataLog")
    converted = ConvertOptions(partitions, None if partitions is None else "hive", use_sink_log=uses_log)
    try:
        with folder_snapshot(folder, converted) as snapshot:
            root = folder.log.engine.storage.uri("")
            clone_table(snapshot, place, CloneOptions(replace=replace, properties=properties, folder=root))
    except InvalidArgumentError as e:
        if path_in(name) is None or "is partitioned by" not in str(e):
            raise
        raise InvalidArgumentError(
            f"The files of {path} are in folders of partitions, whose types only a table of the catalog has. Clone a "
            f"table that is made with CREATE TABLE ... USING parquet PARTITIONED BY (...) LOCATION '{path}'.",
            path=path,
        ) from e
    return DeltaTable(target, storage_options=storage)
