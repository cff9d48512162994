"""Ray: tables as datasets of `ray.data` whose blocks are read by tasks, and datasets as one version of a table.

``pip install "delta-core-lake[ray]"``. Workers need this package, and the credentials of the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.distributed.reading import ReadPart, opened_table, plan_parts
from delta_core.distributed.writing import WritePart, WrittenPart, write_parts
from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.options import kind_name
from delta_core.scan.interop import require

if TYPE_CHECKING:
    from ray.data import Dataset

    from delta_core.expressions.filters import PredicateLike
    from delta_core.table.delta_table import DeltaTable

__all__ = ["read", "write"]

#: Where no value depends on the number of tasks.
_MANY = 2**31


def read(
    table_or_uri: DeltaTable | str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    predicate: PredicateLike | None = None,
    *,
    version: int | None = None,
    metadata: Sequence[str] = (),
    block_bytes: int | None = None,
    storage_options: dict[str, str] | None = None,
    pickle_secrets: bool = False,
) -> Dataset:
    """Return a version of a table as a dataset of Ray. Its log is read now, its rows by tasks when they are needed.

    Every table feature is applied, such as deletion vectors and column mapping. Each task reads files of about
    ``block_bytes``, or a range of rows of a larger file. All tasks read the same version.

    Parameters
    ----------
    table_or_uri : DeltaTable, str or path
        The table; of a `DeltaTable` the version that is loaded.
    columns : sequence of str, optional
        The columns; all unless given.
    predicate : str, filters or Expression, optional
        Only rows for which it is true; files, row groups and pages that can't hold one are not read.
    version : int, optional
        The version, if a path or URI is given; the latest unless given.
    metadata : sequence of str
        Metadata columns, such as ``_file_path`` and ``_row_id``.
    block_bytes : int, optional
        128 MiB of files unless given.
    storage_options : dict, optional
        Options of the file system, if a path or URI is given.
    pickle_secrets : bool
        Whether secret storage options are passed to workers; otherwise these need their own credentials.

    Raises
    ------
    MissingDependencyError
        If Ray is not installed.
    TableNotFoundError, VersionNotFoundError, ColumnNotFoundError, ExpressionError
        As of `DeltaTable` and `DeltaTable.scan`.
    InvalidArgumentError
        For an argument of another type, and a table that can't be pickled.
    """
    require("ray")
    import ray

    table = opened_table(table_or_uri, version, storage_options, pickle_secrets)
    schema, parts = plan_parts(table.snapshot(), columns, predicate, metadata, block_bytes)
    if not parts:
        empty: Dataset = ray.data.from_arrow(schema.empty_table())
        return empty
    found: Dataset = ray.data.read_datasource(_classes()[0](schema, parts), override_num_blocks=len(parts))
    return found


def write(
    dataset: Dataset,
    table_or_uri: DeltaTable | str | os.PathLike[str],
    mode: str = "error",
    *,
    schema: pa.Schema | None = None,
    **options: Any,
) -> int | None:
    """Write a dataset of Ray as one version of a table: tasks write the files, this process commits them.

    If the rows of a block are rejected, nothing is committed, and the files of all tasks are deleted. A task that Ray
    runs again, after a worker died, is committed once; files of the first attempt are not part of the table, and a
    vacuum deletes them. A commit that loses a race is tried again without writing rows again.

    Blocks are written as they are computed. Only if the table has generated identity columns, all blocks are computed
    first, since their values depend on the number of tasks.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows.
    table_or_uri : DeltaTable, str or path
        The table.
    mode : str
        ``error``, ``append``, ``overwrite`` or ``ignore``.
    schema : pyarrow.Schema, optional
        Of the rows; that of the dataset unless given, which a dataset of pandas frames does not have.
    **options
        ``partition_by``, ``schema_mode``, ``predicate``, ``partition_overwrite``, ``configuration``, ``name``,
        ``description``, ``storage_options``, ``target_file_size``, ``writer_properties``, ``commit_properties``,
        ``post_commithook_properties`` and ``cluster_by`` of `write_deltalake`, and ``pickle_secrets`` of `read`.

    Returns
    -------
    int or None
        The version; None if the mode is ``ignore`` and there is a table, or the application transaction of
        ``commit_properties`` is in the table already.

    Raises
    ------
    MissingDependencyError
        If Ray is not installed.
    InvalidArgumentError
        For an argument of another type, a dataset whose schema is not known, and rows that do not fit the schema.
    TableExistsError, SchemaMismatchError, ConstraintViolationError, CommitConflictError
        As of `write_deltalake`.
    """
    require("ray")
    if not hasattr(dataset, "write_datasink"):
        raise InvalidArgumentError(f"Found rows as {kind_name(dataset)}; expected a dataset of Ray.")

    def run(part: WritePart) -> list[WrittenPart]:
        rows, num_tasks = dataset, _MANY
        if part.counts_tasks:
            rows = dataset.materialize()
            num_tasks = max(rows.num_blocks(), 1)
        sink = _classes()[1](part, num_tasks)
        rows.write_datasink(sink)
        found: list[WrittenPart] = sink.found
        return found

    return write_parts(
        table_or_uri, lambda table: _schema_of(dataset) if schema is None else schema, run, mode=mode, **options
    )


def _schema_of(dataset: Dataset) -> pa.Schema:
    """Return the Arrow schema of a dataset.

    Raises
    ------
    InvalidArgumentError
        If it is not known, or its types do not state what the values are.
    """
    found = dataset.schema()
    base = getattr(found, "base_schema", found)
    if isinstance(base, pa.Schema):
        return base.remove_metadata()
    unclear = "it is not known" if found is None else f"it is one of pandas: {', '.join(found.names)}"
    raise InvalidArgumentError(f"The schema of the dataset is needed, but {unclear}. Pass schema=, a pyarrow.Schema.")


@cache
def _classes() -> tuple[Any, Any]:
    """Return the classes of the source and of the sink, whose bases are Ray's: Ray takes a second to import."""
    from ray.data import Datasink, Datasource
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import ReadTask

    class DeltaSource(Datasource):  # type: ignore[misc]  # Ray has no types
        """The parts of a scan, a task each."""

        def __init__(self, schema: pa.Schema, parts: Sequence[ReadPart]) -> None:
            self._schema, self._parts = schema, parts

        def estimate_inmemory_data_size(self) -> int:
            return sum(part.num_bytes for part in self._parts)

        def get_read_tasks(self, parallelism: int, *arguments: Any, **options: Any) -> list[Any]:
            return [
                ReadTask(
                    lambda part=part: [part.to_table()],
                    BlockMetadata(num_rows=None, size_bytes=part.num_bytes, exec_stats=None, input_files=None),
                    schema=self._schema,
                )
                for part in self._parts
            ]

    class DeltaSink(Datasink):  # type: ignore[misc]
        """The write of one version."""

        def __init__(self, part: WritePart, num_tasks: int) -> None:
            self._part, self._num_tasks = part, num_tasks
            self.found: list[WrittenPart] = []

        def write(self, blocks: Iterable[Any], ctx: Any) -> WrittenPart:
            tables = [BlockAccessor.for_block(block).to_arrow() for block in blocks]
            rows = pa.concat_tables(tables) if tables else self._part.schema.empty_table()
            return self._part.write(rows, ctx.task_idx, self._num_tasks)

        def on_write_complete(self, write_result: Any) -> None:
            self.found = list(write_result.write_returns)

    return DeltaSource, DeltaSink
