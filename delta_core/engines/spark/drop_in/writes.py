"""The work of ``df.write`` and ``df.writeStream``, as calls of `write`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from delta_core.engines.spark.drop_in.options import Options, write_arguments
from delta_core.engines.spark.save import write
from delta_core.operations.write import QueryBatch
from delta_core.table.delta_table import DeltaTable

__all__ = ["overwriting", "save", "save_batch"]

_log = logging.getLogger(__name__)
_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "error", "Ignore": "ignore"}


def save(rows: DataFrame, options: Options, mode: str) -> None:
    """Write rows as ``df.write.format("delta").save`` does."""
    arguments = _arguments(options)
    found: Any = _MODES[mode]
    if found == "overwrite" and DeltaTable.is_deltatable(options.path):
        arguments = overwriting(rows, options.path, arguments)
    write(rows, options.path, found, **arguments)


def _arguments(options: Options) -> dict[str, Any]:
    """Return the arguments of a write; properties are those of a new table, as in delta-spark."""
    found = write_arguments(options)
    if "properties" in found and DeltaTable.is_deltatable(options.path):
        names = ", ".join(found.pop("properties"))
        _log.warning("The table %s exists, and keeps its properties %s. Use ALTER TABLE.", options.path, names)
    return found


def overwriting(rows: DataFrame, path: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an overwrite of a table that exists, with what delta-spark chooses if they do not."""
    found = dict(arguments)
    if found.get("schema_mode") != "overwrite":
        return found
    lost = {c.lower() for c in DeltaTable(path).metadata().partition_columns} - {c.lower() for c in rows.columns}
    return {"partition_by": [], **found} if lost else found


def save_batch(rows: DataFrame, options: Options, partition_by: Sequence[str], batch: QueryBatch) -> None:
    """Write a batch of a stream, unless the table has it."""
    arguments = _arguments(options)
    if partition_by:
        arguments["partition_by"] = list(partition_by)
    arguments["txn"] = batch
    if batch.output_mode == "append":
        write(rows, options.path, "append", **arguments)
    else:
        write(rows, options.path, "overwrite", **{"partition_overwrite_mode": "static", **arguments})
