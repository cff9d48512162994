"""Dask: tables as data frames whose partitions are read by workers, and data frames as one version of a table.

``pip install "delta-core-lake[dask]"``. Workers need this package, and the credentials of the store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_core.distributed.reading import ReadPart, opened_table, plan_parts
from delta_core.distributed.writing import WritePart, WrittenPart, write_parts
from delta_core.errors import InvalidArgumentError
from delta_core.kernel.commit.options import kind_name
from delta_core.scan.interop import require

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

    from delta_core.expressions.filters import PredicateLike
    from delta_core.table.delta_table import DeltaTable

__all__ = ["read", "write"]


def read(
    table_or_uri: DeltaTable | str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    predicate: PredicateLike | None = None,
    *,
    version: int | None = None,
    metadata: Sequence[str] = (),
    partition_bytes: int | None = None,
    types_mapper: Any = None,
    storage_options: dict[str, str] | None = None,
    pickle_secrets: bool = False,
) -> DataFrame:
    """Return a version of a table as a data frame of Dask: its log is read now, its rows by workers later.

    Every table feature is applied, such as deletion vectors and column mapping. Each partition has files of about
    ``partition_bytes``, or a range of rows of a larger file. All partitions read the same version.

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
    partition_bytes : int, optional
        128 MiB of files unless given.
    types_mapper : function(pyarrow.DataType) -> type of pandas, optional
        The types of the frame. Unless given they are types that have nulls, so that partitions with and without nulls
        have the same: ``Int64``, ``Float64``, ``boolean``, ``string``, ``datetime64``, else those of Arrow.
    storage_options : dict, optional
        Options of the file system, if a path or URI is given.
    pickle_secrets : bool
        Whether secret storage options are passed to workers; otherwise these need their own credentials.

    Raises
    ------
    MissingDependencyError
        If Dask or pandas is not installed.
    TableNotFoundError, VersionNotFoundError, ColumnNotFoundError, ExpressionError
        As of `DeltaTable` and `DeltaTable.scan`.
    InvalidArgumentError
        For an argument of another type, and a table that can't be pickled.
    """
    require("dask")
    require("pandas")
    import dask.dataframe as frames

    table = opened_table(table_or_uri, version, storage_options, pickle_secrets)
    mapper = _nullable_type if types_mapper is None else types_mapper
    schema, parts = plan_parts(table.snapshot(), columns, predicate, metadata, partition_bytes)
    meta = schema.empty_table().to_pandas(types_mapper=mapper)
    found: DataFrame
    if parts:
        found = frames.from_map(_Frame(mapper), parts, meta=meta, label="delta-core-read", enforce_metadata=True)
    else:
        found = frames.from_pandas(meta, npartitions=1)
    return found


def _nullable_type(kind: pa.DataType) -> Any:
    """Return the type of pandas with nulls that holds an Arrow type."""
    import pandas as pd

    if pa.types.is_integer(kind):
        return pd.array([], dtype=str(kind).replace("int", "Int").replace("uI", "UI")).dtype
    if pa.types.is_floating(kind) and kind != pa.float16():
        return pd.Float64Dtype() if kind == pa.float64() else pd.Float32Dtype()
    if pa.types.is_boolean(kind):
        return pd.BooleanDtype()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pd.StringDtype("pyarrow")
    # pandas has times with nulls of its own
    return None if pa.types.is_timestamp(kind) else pd.ArrowDtype(kind)


class _Frame:
    """Reads a part as a frame of pandas."""

    def __init__(self, types_mapper: Any) -> None:
        self._types_mapper = types_mapper

    def __call__(self, part: ReadPart) -> Any:
        return part.to_table().to_pandas(types_mapper=self._types_mapper)


def write(
    frame: DataFrame,
    table_or_uri: DeltaTable | str | os.PathLike[str],
    mode: str = "error",
    *,
    schema: pa.Schema | None = None,
    compute_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> int | None:
    """Write a data frame of Dask as one version of a table: workers write the files, this process commits them.

    If the rows of a partition are rejected, nothing is committed, and the files of all partitions are deleted. A
    partition that Dask computes again, after a worker died, is committed once; files of the first attempt are not part
    of the table, and a vacuum deletes them. A commit that loses a race is tried again without writing rows again.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        The rows. The index is not written.
    table_or_uri : DeltaTable, str or path
        The table.
    mode : str
        ``error``, ``append``, ``overwrite`` or ``ignore``.
    schema : pyarrow.Schema, optional
        Of the rows. Unless given it comes from the frame's types; a column of type ``object`` needs it, unless the
        table has the column.
    compute_options : Mapping, optional
        Arguments of ``dask.compute``, such as ``{"scheduler": "processes"}``.
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
        If Dask is not installed.
    InvalidArgumentError
        For an argument of another type, a column without a type, and rows of a partition that do not fit the schema.
    TableExistsError, SchemaMismatchError, ConstraintViolationError, CommitConflictError
        As of `write_deltalake`.
    """
    require("dask")
    import dask

    if not hasattr(frame, "to_delayed"):
        raise InvalidArgumentError(f"Found rows as {kind_name(frame)}; expected a data frame of Dask.")
    parts = frame.to_delayed()

    def run(part: WritePart) -> list[WrittenPart]:
        tasks = [dask.delayed(part.write, pure=False)(rows, n, len(parts)) for n, rows in enumerate(parts)]
        return list(dask.compute(*tasks, **(compute_options or {})))

    return write_parts(
        table_or_uri, lambda table: _schema_of(frame, table) if schema is None else schema, run, mode=mode, **options
    )


def _schema_of(frame: DataFrame, table: pa.Schema | None) -> pa.Schema:
    """Return the Arrow schema of a frame by its types; of columns of objects, by those of the table.

    Raises
    ------
    InvalidArgumentError
        For a column of objects that the table does not have.
    """
    known = {} if table is None else {f.name: f for f in table}
    objects = [str(name) for name, kind in frame.dtypes.items() if str(kind) == "object"]
    unclear = [name for name in objects if name not in known]
    if unclear:
        raise InvalidArgumentError(
            f"The type object of column {', '.join(unclear)} does not state what the values are: pass schema=, or cast "
            "to another type, such as string[pyarrow]."
        )
    made = pa.Schema.from_pandas(frame._meta, preserve_index=False).remove_metadata()
    for name in objects:
        made = made.set(made.get_field_index(name), known[name].remove_metadata())
    return made
