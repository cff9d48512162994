"""The change feed: any columns in any order, predicates over the feed's own columns too, in steps that continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from delta_core.errors import InvalidArgumentError
from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column, Expression, all_of, column, conjuncts, leaves
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.log.timestamps import parse_ms
from delta_core.kernel.plugins.plans import ReadRequest
from delta_core.kernel.plugins.rules import MetadataColumn
from delta_core.kernel.snapshot import Snapshot
from delta_core.runtime.arguments import check_names
from delta_core.schema.fields import Path, Schema
from delta_core.schema.types import Field

__all__ = ["ChangeFeed"]


class ChangeFeed:
    """The rows that a range of versions changed, which may be read several times; of a step of it if there are limits.

    Made by `DeltaTable.changes`. DuckDB, Polars, pandas and PyArrow take it as a stream.

    Attributes
    ----------
    schema : pyarrow.Schema
        The table's columns as at the end of the range, then ``_change_type``, ``_commit_version`` and
        ``_commit_timestamp``; or the columns that were requested.
    versions : range
        The versions whose changes are read.
    position : StreamPosition
        Where the next step, or a later feed, continues.
    is_complete : bool
        Whether the range has no further version.

    Examples
    --------
    >>> feed = tracked.changes(1, columns=["id", "_change_type"])
    >>> feed.versions, feed.to_table().to_pylist()
    (range(1, 2), [{'id': 2, '_change_type': 'delete'}])
    """

    def __init__(
        self,
        plan: Callable[..., Any],
        snapshot: Snapshot,
        columns: Sequence[str] | None,
        predicate: Any,
        position: StreamPosition | str | bytes | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        check_names("columns", columns)
        self._again = partial(ChangeFeed, plan, snapshot, columns, predicate)
        self._options = options
        self._snapshot = snapshot
        if position is not None:
            options = _resumed(StreamPosition.parse(position), snapshot, options)
        rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest(purpose="changes"))
        own = [Field(r.name, r.type) for r in rules if isinstance(r, MetadataColumn)]
        pushed, self._rest = _divide(snapshot, own, predicate)
        names = {f.name for f in own}
        spelled = {f.name.lower(): f.name for f in own}
        if columns is not None and not isinstance(columns, str):
            columns = [spelled.get(c.lower(), c) if isinstance(c, str) else c for c in columns]
        read = None if columns is None else [c for c in columns if c not in names]
        used = () if self._rest is None else leaves(self._rest)
        needed = [leaf.path[0] for leaf in used if isinstance(leaf, Column)]
        if read is not None:
            read += [c for c in dict.fromkeys(needed) if c not in names and c not in read]
        planned = plan(columns=read, predicate=pushed, **options)
        self._scan = planned.scan
        schema = self._scan.schema
        self.schema: pa.Schema = schema if columns is None else _chosen(schema, columns)
        self.versions: range = range(planned.start, planned.stop)
        self.position: StreamPosition = StreamPosition(snapshot.metadata.id, planned.stop)
        self.is_complete: bool = planned.stop > planned.end

    def __repr__(self) -> str:
        return f"ChangeFeed({shown_uri(self._snapshot.uri)!r}, versions={self.versions})"

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches, in bounded memory; in the order of the versions.

        Examples
        --------
        >>> tracked.changes(columns=["id", "_change_type"]).to_reader().read_all().num_rows
        4
        """
        batches = _filtered(self._snapshot, self._scan.to_reader(), self._rest)
        return pa.RecordBatchReader.from_batches(self.schema, (b.select(self.schema.names) for b in batches))

    def to_table(self) -> pa.Table:
        """Return the rows in memory.

        Examples
        --------
        >>> tracked.changes(1, columns=["id", "_change_type"]).to_table().to_pylist()
        [{'id': 2, '_change_type': 'delete'}]
        """
        return self.to_reader().read_all()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def steps(self) -> Iterator[ChangeFeed]:
        """Yield this feed, and then those of the further steps up to the end of the range.

        Each step is planned when it is requested.

        Examples
        --------
        >>> [(step.versions, step.to_table().num_rows) for step in tracked.changes(max_files=1).steps()]
        [(range(0, 1), 3), (range(1, 2), 1)]
        """
        step = self
        while not step.is_complete:
            yield step
            step = self._again(step.position, **self._options)
        yield step


def _chosen(schema: pa.Schema, columns: Sequence[str | Path]) -> pa.Schema:
    """Return the fields of columns in their order; a struct once, however many of its fields are requested.

    Raises
    ------
    InvalidArgumentError
        For a column named twice.
    """
    positions = {name.lower(): i for i, name in enumerate(schema.names)}
    found: dict[int, None] = {}
    for name in columns:
        whole = positions.get(name.lower()) if isinstance(name, str) else None
        path = column(name).path if isinstance(name, str) else tuple(name)
        if whole is not None and whole in found:
            raise InvalidArgumentError(f"Column {name} is requested twice.", column=name)
        found[positions[path[0].lower()] if whole is None else whole] = None
    return pa.schema([schema.field(i) for i in found])


def _resumed(position: StreamPosition, snapshot: Snapshot, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a feed that continues at a position.

    Raises
    ------
    InvalidArgumentError
        If the position is one of another table, of a later version, or within a version.
    """
    found, latest = position.version, snapshot.version
    if position.table_id != snapshot.metadata.id:
        raise InvalidArgumentError(
            f"The position is one of the table {position.table_id}, and {shown_uri(snapshot.uri)} is the table "
            f"{snapshot.metadata.id}: another table was made at its place, or the position belongs to another stream. "
            "Begin again with start_version.",
            version=found,
        )
    if position.index != -1 or position.is_initial_snapshot:
        raise InvalidArgumentError(
            f"The position {position.to_json()} is within version {found}; a change feed continues at the beginning of "
            "a version only, with the index -1 and isStartingVersion false.",
            version=found,
        )
    if found > latest + 1:
        raise InvalidArgumentError(
            f"The position continues with version {found}, and the table is loaded at version {latest}. Load the "
            "latest version: table.update_incremental().",
            version=found,
        )
    end, until = options.get("end_version"), options.get("end_timestamp")
    if end is None:
        end = latest if until is None else snapshot.version_at(parse_ms(until, snapshot.timezone))
        options = {**options, "end_version": end, "end_timestamp": None}
    return {**options, "start_version": found, "start_timestamp": None, "allow_out_of_range": found > end}


def _divide(snapshot: Snapshot, own: list[Field], predicate: Any) -> tuple[Expression | None, Expression | None]:
    """Return the part of a predicate over the table's columns alone, and the rest."""
    if predicate is None:
        return None, None
    schema = Schema([*snapshot.schema.members, *(f for f in own if snapshot.schema.get(f.name) is None)])
    bound = to_expression(predicate, schema, functions=snapshot.plugins.functions)
    names = {f.name for f in own}
    parts: dict[bool, list[Expression]] = {True: [], False: []}
    for part in conjuncts(bound):
        parts[any(isinstance(leaf, Column) and leaf.path[0] in names for leaf in leaves(part))].append(part)
    return all_of(parts[False]), all_of(parts[True])


def _filtered(snapshot: Snapshot, reader: pa.RecordBatchReader, rest: Expression | None) -> Iterator[pa.RecordBatch]:
    if rest is None:
        yield from reader
        return
    used = [leaf for leaf in leaves(rest) if isinstance(leaf, Column)]
    types: Any = {leaf: _reach(reader.schema, leaf.path).type for leaf in used}
    test = snapshot.engine.evaluator.compile(rest, types, snapshot.plugins.functions)
    for batch in reader:
        values = [_values(batch, leaf.path) for leaf in test.leaves if isinstance(leaf, Column)]
        yield batch.filter(test(values, batch.num_rows))


def _reach(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field:
    found = schema.field(path[0])
    for part in path[1:]:
        found = found.type.field(part)
    return found


def _values(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    found = batch.column(path[0])
    for part in path[1:]:
        found = found.flatten()[found.type.get_field_index(part)]
    return found
