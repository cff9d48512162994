"""The change feed as `deltalake` returns it: any columns in any order, and predicates over the feed's own columns too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from delta_core.expressions import to_expression
from delta_core.expressions.ast import Column, Expression, all_of, conjuncts, leaves
from delta_core.plugins.plans import ReadRequest
from delta_core.plugins.rules import MetadataColumn
from delta_core.protocol.schema import Schema
from delta_core.protocol.types import Field
from delta_core.snapshot import Snapshot

__all__ = ["read_changes"]


def read_changes(
    changes: Callable[..., Any], snapshot: Snapshot, columns: Sequence[str] | None, predicate: Any, **versions: Any
) -> pa.RecordBatchReader:
    """Stream what the operation ``changes`` returns for a range of versions.

    Parameters
    ----------
    changes : function
        The table's operation ``changes``.
    snapshot : Snapshot
        The table's latest version.
    columns : sequence of str, optional
        Names of the table's columns and of the feed's own; all if not given.
    predicate : optional
        What it specifies for the table's columns alone is pushed into the scans.
    **versions
        The range, as ``changes`` takes it.
    """
    rules = snapshot.plugins.collect("read_rules", table=snapshot.state, request=ReadRequest(purpose="changes"))
    own = [Field(r.name, r.type) for r in rules if isinstance(r, MetadataColumn)]
    pushed, rest = _divide(snapshot, own, predicate)
    names = {f.name for f in own}
    read = None if columns is None else [c for c in columns if c not in names]
    needed = [leaf.path[0] for leaf in (() if rest is None else leaves(rest)) if isinstance(leaf, Column)]
    if read is not None:
        read += [c for c in dict.fromkeys(needed) if c not in names and c not in read]
    scan = changes(columns=read, predicate=pushed, **versions)
    schema = scan.schema if columns is None else pa.schema([scan.schema.field(c) for c in columns])
    batches = _filtered(snapshot, scan.to_reader(), rest)
    return pa.RecordBatchReader.from_batches(schema, (b.select(schema.names) for b in batches))


def _divide(snapshot: Snapshot, own: list[Field], predicate: Any) -> tuple[Expression | None, Expression | None]:
    """Return the part of a predicate over the table's columns alone, and the rest."""
    if predicate is None:
        return None, None
    schema = Schema([*snapshot.schema.fields, *(f for f in own if snapshot.schema.get(f.name) is None)])
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
