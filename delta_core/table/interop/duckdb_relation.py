"""A table as a relation of DuckDB: DuckDB reads plain files by itself, and takes all others from a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import duckdb
import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels.arrow_buffers import array_of
from delta_core.scan.interop.dataset_of_scan import ScanDataset
from delta_core.table.interop.plain_files import SomeFiles, first_of_layouts, plain_files, stored_names
from delta_core.table.interop.predicates import plan_files
from delta_core.table.names_in_sql import quoted_name

__all__ = ["relation_of"]

#: Floating-point bounds of Parquet leave NaN out, which DuckDB takes into account only with the first option.
_OPTIONS = "can_have_nan = true, hive_partitioning = false, union_by_name = false, binary_as_string = false"


def relation_of(snapshot: Snapshot, connection: Any = None, predicate: Any = None) -> Any:
    """Return a ``duckdb.DuckDBPyRelation`` of the rows of files that may hold one for which a predicate is true.

    Parameters
    ----------
    snapshot : Snapshot
        The version of the table.
    connection : duckdb.DuckDBPyConnection, optional
        DuckDB's default connection unless given.
    predicate : str or filters, optional
        It chooses files, and filters no rows.

    Raises
    ------
    InvalidArgumentError
        If the connection is none of DuckDB.
    """
    if connection is None:
        connection = duckdb.default_connection()
    elif not isinstance(connection, duckdb.DuckDBPyConnection):
        raise InvalidArgumentError(
            f"Found a connection of type {type(connection).__name__}, expected one that duckdb.connect() returns."
        )
    files = plan_files(snapshot, predicate)
    everything = connection.from_arrow(ScanDataset(SomeFiles(snapshot, files), encoded=True))
    native, others = _native(snapshot, files, connection)
    if native is None or native.types != everything.types or native.columns != everything.columns:
        return everything
    if not others.count:
        return native
    return native.union(connection.from_arrow(ScanDataset(SomeFiles(snapshot, others), encoded=True)))


def _native(snapshot: Snapshot, files: FileSet, connection: Any) -> tuple[Any, FileSet]:
    """Return the relation of the files that DuckDB reads by itself, None if there are none, and all other files."""
    plain = plain_files(snapshot)
    names = stored_names(snapshot)
    # DuckDB ignores case: of names in files that differ by case only, it would take one for the other
    if plain is None or len({stored.lower() for stored in names.values()}) < len(names):
        return None, files
    numbers = plain.numbers(files)
    is_plain, _ = first_of_layouts(snapshot, [plain.paths[i] for i in numbers])
    chosen = list(compress(numbers, is_plain))
    if not chosen:
        return None, files
    try:
        found = connection.sql(_query(names, [plain.paths[i] for i in chosen]))
    except duckdb.Error:
        # the connection must not open files, or its version lacks an option
        return None, files
    named = plain.named.take(array_of(chosen, pa.int64()))
    return found, plain.chosen(snapshot, files, named, are_in=False)


def _query(names: Mapping[str, str], paths: Sequence[str]) -> str:
    # plain files have these columns and no others; hundreds that are listed take longer to bind
    is_renamed = any(stored != name for name, stored in names.items())
    listed = (f"{quoted_name(stored)} AS {quoted_name(name)}" for name, stored in names.items())
    columns = ", ".join(listed) if is_renamed else "*"
    files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"SELECT {columns} FROM read_parquet([{files}], {_OPTIONS})"  # noqa: S608 (both are quoted)
