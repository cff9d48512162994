"""``format("delta_core")``: the compatible way, for code that needs Spark's readers. Rows pass Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from delta_core.engines.spark.arrow_types import arrow_target
from delta_core.engines.spark.types import spark_schema
from delta_core.errors import InvalidArgumentError, UnsupportedOperationError
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.snapshot import Snapshot, open_snapshot

__all__ = ["STORAGE", "DeltaSource", "prefixes"]

#: Bytes of data files that one task reads: a task costs more than a file.
_TASK_BYTES = 128 << 20
#: Options that begin so are those of the file system.
STORAGE = "storage."


class DeltaSource(DataSource):  # type: ignore[misc]  # pyspark has no types
    """A table by its path.

    Options: ``path``, ``versionAsOf``, ``timestampAsOf``, ``storage.<name>`` for what the file system takes, and
    ``allowExternal``: prefixes separated by commas, or ``false``, as ``allow_external`` of `read`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that ``format`` takes."""
        return "delta_core"

    def schema(self) -> T.StructType:
        """Return the table's schema."""
        snapshot = _open(self.options)
        return spark_schema(snapshot.schema, snapshot.state.types)

    def writer(self, schema: T.StructType, overwrite: bool) -> Any:
        """Reject: rows are written by `delta_core.spark.write`.

        Raises
        ------
        UnsupportedOperationError
            Always: the source only reads.
        """
        raise UnsupportedOperationError(
            'format("delta_core") only reads. Write with delta_core.spark.write(df, path, mode).'
        )

    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Return a reader of one version, whichever was the latest when the query was planned."""
        return _Reader(dict(self.options), schema, _open(self.options).version)


def _open(options: Any, version: int | None = None) -> Snapshot:
    given = {k.lower(): v for k, v in dict(options).items()}
    if "path" not in given:
        raise InvalidArgumentError('Found no path, expected spark.read.format("delta_core").load(path).')
    storage = {k[len(STORAGE) :]: v for k, v in given.items() if k.startswith(STORAGE)}
    if version is None and "versionasof" in given:
        version = _version(given["versionasof"])
    timestamp = given.get("timestampasof") if version is None else None
    return open_snapshot(
        given["path"],
        version,
        timestamp,
        storage_options=storage or None,
        allow_external=prefixes(given.get("allowexternal")),
    )


def prefixes(text: str | None) -> list[str] | Literal[False] | None:
    """Return ``allow_external`` for the text of an option: prefixes separated by commas, or ``false``."""
    if text is None:
        return None
    return False if text.strip().lower() == "false" else [p.strip() for p in text.split(",")]


def _version(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidArgumentError(f"Found versionAsOf={text!r}, expected the number of a version.") from None


@dataclass
class _Files(InputPartition):  # type: ignore[misc]  # pyspark has no types
    """Files of the version by their number: ``start`` up to, not including, ``stop``."""

    start: int
    stop: int


class _Reader(DataSourceReader):  # type: ignore[misc]  # pyspark has no types
    def __init__(self, options: dict[str, str], schema: T.StructType, version: int) -> None:
        self._options = options
        self._schema = schema
        self._version = version

    def partitions(self) -> Sequence[InputPartition]:
        sizes = _open(self._options, self._version).files.columns(["size"]).column(0).to_pylist()
        out, start, num_bytes = [], 0, 0
        for at, size in enumerate(sizes):
            num_bytes += size or 0
            if num_bytes >= _TASK_BYTES:
                out.append(_Files(start, at + 1))
                start, num_bytes = at + 1, 0
        return [*out, _Files(start, len(sizes))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        snapshot = _open(self._options, self._version)
        fields = [n for n in FILE_COLUMNS if n not in ("deletionTimestamp", "extendedFileMetadata")]
        table = snapshot.files.columns([*fields, *(f.name for f in snapshot.action_fields)])
        files = FileSet.of(table.slice(partition.start, partition.stop - partition.start))
        schema = arrow_target(self._schema)
        for batch in snapshot.scan(self._schema.names, files=files).batches():
            columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
