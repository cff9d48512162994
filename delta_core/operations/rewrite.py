"""Rows of the table written again: to files of their own when their neighbours change, and as changes for the feed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from delta_core.engines.engine import Engine
from delta_core.engines.interface import Relation, Relations
from delta_core.engines.writer_properties import WriterProperties
from delta_core.errors import UnsupportedOperationError
from delta_core.expressions.ast import Call, Column, Expression, Literal as Constant, leaves
from delta_core.expressions.functions import can_test_files
from delta_core.kernel.scan.scan import Scan
from delta_core.kernel.write.files import Written
from delta_core.kernel.write.plan import Origin, WritePlan
from delta_core.schema.fields import Path
from delta_core.schema.types import PrimitiveType

__all__ = [
    "carried_columns",
    "moved_rows",
    "not_selected",
    "relations_of",
    "rewrite_ordered",
    "rewrite_rows",
    "selects_partitions",
    "write_change_rows",
]


def carried_columns(plan: WritePlan, origin: Origin = "moved") -> dict[str, str]:
    """Return the hidden columns that rows carry along: metadata column of a scan to the hidden column's name."""
    return {h.carries: h.name for h in plan.carried(origin)}


def not_selected(predicate: Expression) -> Expression:
    """Return the predicate of the rows that a predicate does not select: it is false or null for them."""
    return Call("not", (Call("coalesce", (predicate, Constant(False, PrimitiveType("boolean")))),))


def rewrite_rows(
    engine: Engine,
    plan: WritePlan,
    rows: Scan,
    carried: Mapping[str, str],
    properties: WriterProperties | None = None,
    observe: Callable[[pa.RecordBatchReader], pa.RecordBatchReader] | None = None,
    data_change: bool = True,
    in_order: bool = False,
    target_size: int | None = None,
    syncs: list[Callable[[], None]] | None = None,
) -> Written:
    """Write rows of the table to new files.

    Parameters
    ----------
    engine : Engine
        The engine that reads and writes the files.
    plan : WritePlan
        The plan of the table's writes.
    rows : Scan
        The rows, with the metadata columns of ``carried``.
    carried : Mapping of str to str
        The result of `carried_columns`.
    properties : WriterProperties, optional
        Of the new Parquet files; goes before the table's properties.
    observe : function(RecordBatchReader) -> RecordBatchReader, optional
        As of `Relations.write`.
    data_change : bool
        False if the files that had the rows are removed in the same commit, with all their rows.
    in_order, target_size, syncs
        As of `Relations.write`.

    Raises
    ------
    UnsupportedOperationError
        If the engine has no relations.
    """
    relations = relations_of(engine)
    moved = _moved(relations, rows, carried)
    written: Written = relations.write(
        engine,
        plan,
        moved,
        origin="moved",
        data_change=data_change,
        properties=properties,
        in_order=in_order,
        target_size=target_size,
        observe=observe,
        syncs=syncs,
    )
    return written


def rewrite_ordered(
    engine: Engine,
    plan: WritePlan,
    rows: Scan,
    carried: Mapping[str, str],
    order: tuple[Sequence[Path], Literal["zorder", "hilbert", "linear"], int, int],
    properties: WriterProperties | None = None,
    syncs: list[Callable[[], None]] | None = None,
) -> Written | None:
    """Write rows of the table to new files in another order; None if the caller has to order them itself.

    Parameters
    ----------
    engine, plan, rows, carried, properties, syncs
        As of `rewrite_rows`.
    order : (sequence of Path, str, int, int)
        The last arguments of `Relations.order`.
    """
    relations = relations_of(engine)
    ordered = relations.order(_moved(relations, rows, carried), *order)
    if ordered is None:
        return None
    written: Written = relations.write(
        engine, plan, ordered, origin="moved", data_change=False, properties=properties, syncs=syncs
    )
    return written


def moved_rows(engine: Engine, rows: Scan, carried: Mapping[str, str]) -> pa.RecordBatchReader:
    """Return rows of the table as they are written again: with the values of hidden columns under their own names.

    The arguments and errors are those of `rewrite_rows`.
    """
    relations = relations_of(engine)
    return relations.stream(_moved(relations, rows, carried))


def _moved(relations: Relations, rows: Scan, carried: Mapping[str, str]) -> Relation:
    kept = relations.scan(rows)
    return relations.select(kept, [(carried.get(n, n), Column((n,))) for n in kept.schema.names])


def write_change_rows(
    engine: Engine, plan: WritePlan, changes: Sequence[tuple[Scan, str]], syncs: list[Callable[[], None]] | None = None
) -> Written:
    """Write change files of rows, each with its kind of change, such as ``delete``; ``syncs`` as of `Relations.write`.

    Raises
    ------
    UnsupportedOperationError
        If the engine has no relations.
    """
    assert plan.capture is not None
    relations, name = relations_of(engine), plan.capture.change_column
    parts = []
    for scan, kind in changes:
        rows = relations.scan(scan)
        columns: list[tuple[str, Expression]] = [(n, Column((n,))) for n in rows.schema.names]
        parts.append(relations.select(rows, [*columns, (name, Constant(kind, PrimitiveType("string")))]))
    written: Written = relations.write(engine, plan, relations.union(parts), origin="changes", syncs=syncs)
    return written


def selects_partitions(predicate: Expression, partition_columns: Sequence[str]) -> bool:
    """Return whether a predicate selects whole partitions: it needs nothing but partition columns."""
    names = {c.lower() for c in partition_columns}
    return can_test_files(predicate) and all(
        isinstance(leaf, Column) and leaf.path[0].lower() in names for leaf in leaves(predicate)
    )


def relations_of(engine: Engine) -> Relations:
    """Return the engine's relations.

    Raises
    ------
    UnsupportedOperationError
        If the engine has none.
    """
    if engine.relations is None:
        raise UnsupportedOperationError(
            f"Engine {engine.name} can't rewrite rows: it has no relations. Open the table with engine='arrow'."
        )
    return engine.relations
