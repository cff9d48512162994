"""Tables that `FeatureContract` makes with a feature: rows are written, rewritten, moved, dropped and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from delta_core.errors import CommitConflictError
from delta_core.kernel.commit.committer import StoreCommitter
from delta_core.kernel.commit.intents import added_again, read_columns
from delta_core.kernel.log.checkpoint_writer import write_checkpoint
from delta_core.kernel.plugins.committer import Committed, Committer, Conflict, Proposal
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.registry import PluginRegistry
from delta_core.kernel.plugins.rules import HiddenColumn, MetadataColumn
from delta_core.kernel.snapshot import Snapshot, open_context
from delta_core.kernels.row_set import RowSet
from delta_core.operations.create import create_table
from delta_core.operations.write import WriteOptions, write_table
from delta_core.schema.fields import Schema
from delta_core.schema.types import StructType
from delta_core.table.delta_table import DeltaTable

__all__ = ["ExampleTable", "MadeTable", "as_values", "tamper"]


class ExampleTable(Struct, frozen=True):
    """A table of a feature: how it is made, and the rows that are written.

    Parameters
    ----------
    rows : pyarrow.Table
        The rows that are written, at least two.
    select : str
        A predicate in Spark's SQL that is true for some of the rows: those are replaced, and the others are moved.
    schema : StructType, optional
        The table's columns; those of ``rows`` unless given.
    properties, features, partition_by, cluster_by
        As of `DeltaTable.create`; the feature itself is always added.
    expected : pyarrow.Table, optional
        The rows that reads return, in any order; ``rows`` unless given. Needed for filters and filled columns.
    breaking : mapping of str to pyarrow.Table
        Rows that each RowCheck rejects, by the check's name.

    Notes
    -----
    A table that needs a domain, or an action of the feature's own kind, is made by a `FeatureContract.make` of the
    test class: it commits them to what the inherited method returns.
    """

    rows: pa.Table = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "name": ["a", "b", None, "d"]})
    select: str = "id > 2"
    schema: StructType | None = None
    properties: Mapping[str, str] = {}
    features: Sequence[str] = ()
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    expected: pa.Table | None = None
    breaking: Mapping[str, pa.Table] = {}

    @property
    def result(self) -> pa.Table:
        """The rows that reads return."""
        return self.rows if self.expected is None else self.expected


class MadeTable:
    """An `ExampleTable` on disk."""

    def __init__(self, example: ExampleTable, feature: str, registry: PluginRegistry, folder: Path) -> None:
        self.example: ExampleTable = example
        self.feature: str = feature
        self.registry: PluginRegistry = registry
        self.folder: Path = folder
        schema = example.schema or Schema.from_arrow(example.rows.schema)
        create_table(
            self.context,
            schema,
            partition_by=example.partition_by,
            cluster_by=example.cluster_by,
            properties=example.properties,
            features=[feature, *example.features],
        )

    @property
    def context(self) -> Any:
        """The table, opened with the plugin."""
        return open_context(str(self.folder), plugins=self.registry)

    @property
    def snapshot(self) -> Snapshot:
        """The latest version."""
        found: Snapshot = self.context.read(None)
        return found

    def append(self, rows: pa.Table | None = None) -> None:
        """Append rows, the example's unless given."""
        write_table(self.context, self.example.rows if rows is None else rows, WriteOptions(mode="append"))

    def move(self) -> None:
        """Replace the selected rows with themselves; those that share a file with them move to another."""
        chosen = self.read(columns=self._written(), predicate=self.example.select)
        write_table(self.context, chosen, WriteOptions(mode="overwrite", replace_where=self.example.select))
        # where vectors mark the replaced rows, the others are where they were
        DeltaTable(str(self.folder), plugins=self.registry).optimize.purge()

    def overwrite(self) -> None:
        """Replace all rows by the example's."""
        write_table(self.context, self.example.rows, WriteOptions(mode="overwrite"))

    def changes(self) -> pa.Table:
        """Read all changes of the table, which records them."""
        found: pa.Table = DeltaTable(str(self.folder), plugins=self.registry).changes(0).to_table()
        return found

    def _written(self) -> list[str]:
        """Return the columns that rows contain: the others are filled again."""
        return list(self.example.rows.column_names)

    def read(self, **options: Any) -> pa.Table:
        """Read rows with Arrow."""
        return self.snapshot.scan(**options).to_table()

    def carried(self) -> dict[str, Any]:
        """Return the values that rows take along, by metadata column: each with the row that has it."""
        rules = self.snapshot.begin("WRITE").plan.hidden
        names = [r.carries for r in rules if isinstance(r, HiddenColumn) and r.carries]
        return {name: as_values(self.read(metadata=[name], predicate=f"NOT ({self.example.select})")) for name in names}

    def metadata_columns(self) -> list[MetadataColumn]:
        """Return the metadata columns that the feature offers."""
        snapshot = self.snapshot
        rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest())
        return [r for r in rules if isinstance(r, MetadataColumn) and r.feature == self.feature]

    def append_behind(self) -> bool:
        """Append the rows twice, the second time in a commit that loses its race against the first.

        Returns whether the second one landed: it may conflict with the first, if each changes the table's metadata.
        """
        committer = _LateCommitter(StoreCommitter(self.context.log.engine.storage), self.append)
        context = open_context(str(self.folder), plugins=self.registry, committer=committer)
        try:
            write_table(context, self.example.rows, WriteOptions(mode="append"))
        except CommitConflictError:
            return False
        return True

    def remove_two_rows_at_once(self) -> pa.Table:
        """Drop the first two rows of a file in two commits of one version, and return them; none if no file has two."""
        snapshot = self.snapshot
        found = self._positions(snapshot)
        second = found.filter(pc.equal(found["_file_row_index"], 1)).slice(0, 1)
        if not second.num_rows:
            return second
        of_file = pc.equal(found["_file_path"], second["_file_path"][0])
        chosen = found.filter(pc.and_(of_file, pc.less(found["_file_row_index"], 2)))
        own = _own_path(snapshot, str(second["_file_path"][0]))
        first, late = snapshot.begin("DELETE"), snapshot.begin("DELETE")
        first.remove_rows(own, RowSet.from_positions([0]))
        late.remove_rows(own, RowSet.from_positions([1]))
        first.commit()
        late.commit()
        return chosen.drop_columns(["_file_path", "_file_row_index"])

    def _positions(self, snapshot: Snapshot) -> pa.Table:
        names = [c.name for c in self.metadata_columns()]
        return snapshot.scan(metadata=[*names, "_file_path", "_file_row_index"]).to_table()

    def remove_row(self, position: int) -> pa.Table:
        """Drop one row of the first file that has it, by its position, and return it as read; nothing if none has."""
        snapshot = self.snapshot
        found = snapshot.scan(metadata=["_file_path", "_file_row_index"]).to_table()
        chosen = found.filter(pc.equal(found["_file_row_index"], position)).slice(0, 1)
        if not chosen.num_rows:
            return chosen
        own = _own_path(snapshot, str(chosen["_file_path"][0]))
        transaction = snapshot.begin("DELETE")
        transaction.remove_rows(own, RowSet.from_positions([position]))
        transaction.commit()
        return chosen.drop_columns(["_file_path", "_file_row_index"])

    def checkpoint(self) -> None:
        """Write a checkpoint, from which the next snapshot is read."""
        write_checkpoint(self.snapshot)

    def findings(self) -> list[str]:
        """Return the errors and warnings of verify, as text."""
        found = DeltaTable(str(self.folder), plugins=self.registry).verify(deep="rows").findings.to_pylist()
        return [f"{f['rule']}: {f['found']}" for f in found if f["severity"] != "information"]

    def add_again(self) -> None:
        """Commit each live file once more as it is, as operations do that change statistics or vectors."""
        snapshot = self.snapshot
        transaction = snapshot.begin("COMPUTE STATS")
        transaction.read(None)
        transaction.add_files(added_again(snapshot.files.columns(read_columns(snapshot.action_fields))))
        transaction.commit()

    def fields(self) -> dict[tuple[str, str], Any]:
        """Return the values of the feature's own fields of ``add``, by the file's path and the field's name."""
        snapshot = self.snapshot
        names = [f.name for f in snapshot.plugins.features[self.feature].fields if f.action == "add"]
        rows = snapshot.files.columns(["path", *names]).to_pylist()
        return {(row["path"], name): row[name] for row in rows for name in names}

    def actions(self) -> dict[str, list[str]]:
        """Return the feature's own actions, as text in a stable order."""
        snapshot = self.snapshot
        kinds = snapshot.plugins.features[self.feature].actions
        return {kind.name: sorted(map(repr, snapshot.custom_actions(kind.name))) for kind in kinds}

    # --- Spark ---

    def read_on_spark(self, delta: Any, session: Any, **options: Any) -> pa.Table:
        """Read rows with Spark, in Arrow's types of the same rows here; ``delta`` is the module `delta_core.spark`."""
        frame = delta.read(session, str(self.folder), plugins=self.registry, **options)
        return frame.toArrow().cast(self.read(**options).schema)

    def changes_on_spark(self, delta: Any, session: Any) -> pa.Table:
        """Read all changes of the table with Spark, in Arrow's types."""
        frame = delta.read_changes(session, str(self.folder), 0, plugins=self.registry)
        return frame.toArrow().cast(self.changes().schema)

    def move_on_spark(self, delta: Any, session: Any) -> None:
        """Do `move` with Spark."""
        select = self.example.select
        chosen = delta.read(session, str(self.folder), plugins=self.registry, predicate=select, columns=self._written())
        delta.write(chosen, str(self.folder), "overwrite", replace_where=select, plugins=self.registry)


class _LateCommitter:
    """Lets another commit take the version of the first proposal."""

    def __init__(self, committer: Committer, other: Callable[[], None]) -> None:
        self._committer = committer
        self._others = [other]

    def commit(self, proposal: Proposal) -> Committed | Conflict:
        while self._others:
            self._others.pop()()
        return self._committer.commit(proposal)


def _own_path(snapshot: Snapshot, place: str) -> str:
    """Return the path in the log of the file at a place."""
    files = snapshot.files.columns(["path"])["path"].to_pylist()
    (own,) = [f for f in files if unquote(place).endswith(unquote(f))]
    return str(own)


def as_values(table: pa.Table) -> list[str]:
    """Return rows in a form that can be compared, in a stable order."""
    names = sorted(table.column_names)
    return sorted(repr(row) for row in table.select(names).to_pylist())


def tamper(folder: Path, column: str) -> Iterator[Path]:
    """Change the values of a column in every data file without a commit; yields each file that was changed."""
    for place, directories, names in os.walk(folder):
        directories[:] = [d for d in directories if not d.startswith("_")]
        for name in names:
            path = Path(place) / name
            if not name.endswith(".parquet"):
                continue
            found = pq.read_table(path, partitioning=None)
            if column in found.column_names:
                index = found.column_names.index(column)
                changed = found.set_column(index, found.schema.field(index), _other(found.column(index)))
                pq.write_table(changed, path)
                yield path


def _other(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return other values of the same type."""
    t = values.type
    if pa.types.is_integer(t) or pa.types.is_floating(t):
        return pc.add(pc.fill_null(values, 0), 1).cast(t)
    if pa.types.is_string(t):
        return pc.binary_join_element_wise(pc.fill_null(values, ""), "x", "")
    if pa.types.is_boolean(t):
        return pc.invert(pc.fill_null(values, False))
    return pa.chunked_array([pa.nulls(len(values), t)])
