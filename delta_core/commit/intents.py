"""What a transaction wants to do, staged until an attempt makes actions of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from delta_core.actions import FILE_COLUMNS, Metadata, Protocol
from delta_core.expressions.ast import Expression
from delta_core.kernels.row_set import RowSet
from delta_core.schema import Path

__all__ = ["ADDED_FILE", "CHANGE_FILE", "REMOVED_FILE", "Intents", "Reads", "RowRemoval"]

#: What is known of a file that a transaction adds: the columns of an ``add``, and ``numRecords`` (physical rows) and
#: ``fresh``: true for a new data file, false for one that is added again with other properties.
ADDED_FILE = pa.schema([
    *((n, FILE_COLUMNS[n]) for n in (
        "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector",
        "baseRowId", "defaultRowCommitVersion", "clusteringProvider",
    )),
    ("numRecords", pa.int64()), ("fresh", pa.bool_()),
])  # fmt: skip
#: A file that it removes: the descriptor of the vector is that of the add as it was read.
REMOVED_FILE = pa.schema([
    (n, FILE_COLUMNS[n]) for n in (
        "path", "dvId", "partitionValues", "size", "dataChange", "stats", "tags", "deletionVector", "baseRowId",
        "defaultRowCommitVersion",
    )
])  # fmt: skip
#: A change file.
CHANGE_FILE = pa.schema([(n, FILE_COLUMNS[n]) for n in ("path", "partitionValues", "size", "dataChange", "tags")])


@dataclass(frozen=True)
class RowRemoval:
    """Rows to drop of one file.

    Parameters
    ----------
    file : pyarrow.Table
        One row: the add as it was read, columns of `ADDED_FILE` and ``dvId``.
    rows : RowSet
        Physical positions to drop, beside those that its vector drops already.
    """

    file: pa.Table
    rows: RowSet


@dataclass
class Reads:
    """What a transaction looked at, for the conflict check.

    Parameters
    ----------
    predicates : list
        Predicates over the table's columns whose files were read; None means every file.
    files : list of pyarrow.Table
        ``path`` and ``dvId`` of files whose content was used.
    """

    predicates: list[Expression | None] = field(default_factory=list)
    files: list[pa.Table] = field(default_factory=list)

    @property
    def is_blind(self) -> bool:
        """Whether nothing was read."""
        return not self.predicates and not self.files


@dataclass
class Intents:
    """Everything staged. Tables are lists of pieces, joined when an attempt is built."""

    adds: list[pa.Table] = field(default_factory=list)
    removes: list[pa.Table] = field(default_factory=list)
    cdcs: list[pa.Table] = field(default_factory=list)
    row_removals: list[RowRemoval] = field(default_factory=list)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: dict[str, str | None] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    actions: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    reported: dict[Path, tuple[Any, Any]] = field(default_factory=dict)

    def table(self, pieces: list[pa.Table], schema: pa.Schema) -> pa.Table:
        """Join pieces; columns that a piece lacks are null, further columns (plugins' fields) stay."""
        if not pieces:
            return schema.empty_table()
        filled = [_conform(p, schema) for p in pieces]
        return pa.concat_tables(filled, promote_options="default")


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = {
        f.name: table.column(f.name).cast(f.type) if f.name in table.column_names else pa.nulls(table.num_rows, f.type)
        for f in schema
    }
    extra = {n: table.column(n) for n in table.column_names if n not in columns and n != "dvId"}
    return pa.table({**columns, **extra})
