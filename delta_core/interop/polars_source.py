"""A lazy Polars frame over a snapshot, through Polars' IO-source plugin.

Polars hands in its expression; it is evaluated by Polars on every batch, and the parts of it that certainly mean
the same here prune files and rows before that.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from delta_core.expressions.ast import Call, Column, Expression, Literal
from delta_core.interop.predicates import exact_parts
from delta_core.snapshot import Snapshot

__all__ = ["from_polars", "scan_polars"]

_OPERATORS = {
    "Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">=", "And": "and", "LogicalAnd": "and",
    "Or": "or", "LogicalOr": "or",
}  # fmt: skip
_TESTS = {"IsNull": "isnull", "IsNotNull": "isnotnull", "Not": "not"}


def scan_polars(snapshot: Snapshot) -> pl.LazyFrame:
    """Return a lazy frame; columns, predicate and limit are pushed into the scan when it is collected."""
    from polars.io.plugins import register_io_source

    schema = snapshot.scan().schema
    empty = pl.DataFrame(schema.empty_table())

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return _read(snapshot, schema, columns, predicate, rows)

    detail = f"{snapshot.uri} version {snapshot.version}"
    return register_io_source(read, schema=empty.schema, is_pure=True, explain_name="DELTA", explain_detail=detail)


def _read(
    snapshot: Snapshot, schema: pa.Schema, columns: list[str] | None, predicate: pl.Expr | None, rows: int | None
) -> Iterator[pl.DataFrame]:
    names = schema.names if columns is None else columns
    needed = set(names) | set(() if predicate is None else predicate.meta.root_names())
    read = [(n,) for n in schema.names if n in needed] or [(schema.names[0],)]
    pushed = None if predicate is None else exact_parts(snapshot, from_polars(predicate))
    scan = snapshot.scan(read, predicate=pushed, limit=rows if predicate is None else None)
    left = rows
    for batch in scan.to_reader():
        frame = pl.DataFrame(batch)
        if predicate is not None:
            frame = frame.filter(predicate)
        frame = frame.select(names) if left is None else frame.select(names).head(left)
        yield frame
        if left is not None:
            left -= frame.height
            if left <= 0:
                return


def from_polars(predicate: pl.Expr) -> Expression | None:
    """Return what of a predicate can be said in our expressions: parts that AND joins are left out one by one."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (pl.exceptions.ComputeError, ValueError):
        return None
    return _conjunction(tree)


def _conjunction(node: Any) -> Expression | None:
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary and _OPERATORS.get(binary["op"]) == "and":
        parts = [p for p in (_conjunction(binary["left"]), _conjunction(binary["right"])) if p is not None]
        return Call("and", tuple(parts)) if len(parts) == 2 else parts[0] if parts else None
    try:
        return _convert(node)
    except (_UnknownError, KeyError, TypeError, ValueError, AttributeError):
        return None


class _UnknownError(Exception):
    """A node that has no counterpart."""


def _convert(node: Any) -> Expression:
    ((kind, value),) = node.items()
    if kind == "Column":
        return Column((value,))
    if kind == "Literal":
        return Literal(_values(node)[0])
    if kind == "BinaryExpr" and value["op"] in _OPERATORS:
        return Call(_OPERATORS[value["op"]], (_convert(value["left"]), _convert(value["right"])))
    if kind == "Function":
        return _function(value)
    raise _UnknownError(kind)


def _function(value: Any) -> Expression:
    what = value["function"]["Boolean"]
    if isinstance(what, str):
        return Call(_TESTS[what], (_convert(value["input"][0]),))
    ((name, options),) = what.items()
    if name == "IsIn" and not options["nulls_equal"]:
        candidates = _values(value["input"][1])
        if len(candidates) == 1 and isinstance(candidates[0], list):
            candidates = candidates[0]
        if candidates and None not in candidates:
            return Call("in", (_convert(value["input"][0]), *(Literal(v) for v in candidates)))
    if name == "IsBetween":
        arg, low, high = (_convert(v) for v in value["input"])
        above = Call(">=" if options["closed"] in ("Both", "Left") else ">", (arg, low))
        return Call("and", (above, Call("<=" if options["closed"] in ("Both", "Right") else "<", (arg, high))))
    raise _UnknownError(name)


def _values(node: Any) -> list[Any]:
    """Return a literal's values as Python's, read by Polars itself."""
    expression = pl.Expr.deserialize(io.BytesIO(json.dumps(node).encode()), format="json")
    values: list[Any] = pl.select(expression).to_series().to_list()
    return values
