"""The intents of a transaction, staged until an attempt makes actions of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.expressions.ast import Expression
from delta_core.kernel.protocol.actions import ADDED_FILE, FILE_COLUMNS, ActionField, Metadata, Protocol
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import empty_table, scalar_of
from delta_core.kernels.row_set import RowSets
from delta_core.kernels.stats import StatField, parse_stats
from delta_core.schema.fields import Path

__all__ = [
    "READ_FILE",
    "ROW_COUNT",
    "REMOVED_FILE",
    "Intents",
    "Reads",
    "RowRemoval",
    "READ_TO_REMOVE",
    "added_again",
    "read_columns",
    "removed_files",
    "changes_data",
    "with_num_records",
]

#: The count of rows in a file's statistics.
ROW_COUNT = StatField(("numRecords",), "long")
#: Columns of a live file that is changed: what its next add repeats, and ``dvId``.
READ_FILE = ("dvId", *(n for n in ADDED_FILE.names if n not in ("dataChange", "numRecords", "fresh")))
#: A file that it removes: the descriptor of the vector is that of the add as it was read.
REMOVED_FILE = pa.schema(
    [
        (n, FILE_COLUMNS[n])
        for n in (
            "path",
            "dvId",
            "partitionValues",
            "size",
            "dataChange",
            "stats",
            "tags",
            "deletionVector",
            "baseRowId",
            "defaultRowCommitVersion",
        )
    ]
)


#: Columns of a live file that is removed: its line does not repeat statistics, which are larger than all the rest.
READ_TO_REMOVE = tuple(n for n in REMOVED_FILE.names if n not in ("dataChange", "stats"))


def removed_files(files: pa.Table, data_change: bool | pa.Array = True) -> pa.Table:
    """Return files as they were read as `Transaction.remove_files` takes them.

    Parameters
    ----------
    files : pyarrow.Table
        The columns of `READ_TO_REMOVE`; further ones are left out.
    data_change : bool or bool[n_files]
        Whether rows go with them.
    """
    names = [n for n in READ_TO_REMOVE if n in files.column_names]
    change = (
        pa.repeat(scalar_of(data_change, pa.bool_()), files.num_rows) if isinstance(data_change, bool) else data_change
    )
    return files.select(names).append_column("dataChange", change)


def read_columns(fields: Iterable[ActionField]) -> list[str]:
    """Return the columns of files that are read to be added again: `READ_FILE`, and those that features add to adds."""
    return [*dict.fromkeys((*READ_FILE, *(f.name for f in fields if f.action == "add")))]


def added_again(files: pa.Table) -> pa.Table:
    """Return live files, as read, as `Transaction.add_files` takes them to add them again with the same rows."""
    for name in ("dataChange", "fresh"):
        files = files.append_column(name, pa.repeat(scalar_of(False, pa.bool_()), files.num_rows))
    return files


class RowRemoval(Struct, frozen=True):
    """Rows to drop of files.

    Parameters
    ----------
    files : pyarrow.Table
        The adds as they were read, columns of `ADDED_FILE` and ``dvId``.
    rows : RowSets
        Physical positions to drop in each file, beside those that its vector drops already.
    """

    files: pa.Table
    rows: RowSets


class Reads(Struct):
    """The reads of a transaction, for the conflict check.

    Parameters
    ----------
    predicates : list
        Predicates over the table's columns whose files were read; None means every file.
    files : list of pyarrow.Table
        ``path`` and ``dvId`` of files whose content was used.
    """

    predicates: list[Expression | None] = []
    files: list[pa.Table] = []

    @property
    def is_blind(self) -> bool:
        """Whether nothing was read."""
        return not self.predicates and not self.files


class Intents(Struct):
    """Everything staged. Tables are lists of pieces, joined when an attempt is built.

    Parameters
    ----------
    domains, system_domains : dict
        Configuration of the domains that the user, and that features, set; None removes one.
    replaces_definition : bool
        Whether nothing of the definition of a table that exists stays.
    """

    adds: list[pa.Table] = []
    removes: list[pa.Table] = []
    cdcs: list[pa.Table] = []
    row_removals: list[RowRemoval] = []
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    replaces_definition: bool = False
    domains: dict[str, str | None] = {}
    system_domains: dict[str, str | None] = {}
    transactions: dict[str, int] = {}
    actions: list[tuple[str, Mapping[str, Any]]] = []
    reported: dict[Path, tuple[Any, Any]] = {}

    def report(self, bounds: Mapping[Path, tuple[Any, Any]]) -> None:
        """Unite what one more write reports of a column's values with what others did."""
        for path, (low, high) in bounds.items():
            least, greatest = self.reported.get(path, (low, high))
            self.reported[path] = min(least, low), max(greatest, high)

    def table(self, pieces: list[pa.Table], schema: pa.Schema) -> pa.Table:
        """Join pieces; columns of the schema that a piece lacks are null, and further columns are left out."""
        if not pieces:
            return _empty(schema)
        filled = [_conform(p, schema) for p in pieces]
        return filled[0] if len(filled) == 1 else pa.concat_tables(filled)

    def domains_on(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the domains that are left when these edits follow others."""
        after = {**before, **self.domains, **self.system_domains}
        return {d: c for d, c in after.items() if c is not None}

    def with_rows_removed(self, removes: pa.Table, adds: pa.Table) -> Intents:
        """Return the intents with the actions that row removals came to."""
        return replace(self, removes=[*self.removes, removes], adds=[*self.adds, adds], row_removals=[])


@functools.lru_cache(16)
def _empty(schema: pa.Schema) -> pa.Table:
    return empty_table(schema)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        return table
    present = {n: table.column(n) for n in table.column_names}
    columns = [present[f.name] if f.name in present else pa.nulls(table.num_rows, f.type) for f in schema]
    return pa.table([c if c.type == f.type else c.cast(f.type) for f, c in zip(schema, columns, strict=True)], schema)


def changes_data(files: pa.Table) -> bool:
    """Whether any of the file actions changes rows."""
    return any(chunk.true_count for chunk in files.column("dataChange").chunks)


def with_num_records(files: pa.Table) -> pa.Table:
    """Return files to add with ``numRecords``: from the statistics if it is not given, null if these lack it."""
    given = files.column("numRecords") if "numRecords" in files.column_names else pa.nulls(files.num_rows, pa.int64())
    if not given.null_count or "stats" not in files.column_names:
        return files
    (counts,) = parse_stats(files.column("stats"), [ROW_COUNT])
    counts = pc.if_else(pc.less(counts, 0), scalar_of(None, pa.int64()), counts)
    kept = files.drop_columns([n for n in ("numRecords",) if n in files.column_names])
    return kept.append_column("numRecords", pc.coalesce(pc.cast(given, pa.int64()), counts))
