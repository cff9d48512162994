"""rowIds: the draft from which rowTracking grew. Rows keep an id; its high water mark is an action of its own.

Tables of the draft are read like any other. They are written only if the table specifies that it wants that.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.api import (
    ActionColumn,
    ActionKind,
    Call,
    Expression,
    FileConstant,
    HiddenColumn,
    Metadata,
    MetadataColumn,
    PhysicalColumn,
    PrimitiveType,
    ReadRequest,
    ReadRule,
    RowPosition,
    TableFeature,
    TableState,
    hookimpl,
)
from delta_plugins.row_ids import write
from delta_plugins.row_ids.write import COLUMN

if TYPE_CHECKING:
    from delta_core.api import AttemptView, CommitRule

__all__ = ["COLUMN", "FEATURE", "HIGH_WATER_MARK"]

_LONG = PrimitiveType("long")

#: One per table, the latest wins; a writer that loses a race takes the winner's and goes on.
HIGH_WATER_MARK = ActionKind(
    write.MARK, pa.struct([("highWaterMark", pa.int64()), ("preservedRowIds", pa.bool_())]), rebasable=True
)
FEATURE = TableFeature(
    "rowIds",
    "writer",
    "Every row keeps an id (the draft of rowTracking).",
    aliases=("delta.rowIds",),
    properties={
        write.SWITCH: "true once every row has an id",
        COLUMN: "physical column that holds ids which rows carry along",
        write.OPT_IN: "true allows writers to write what a draft of the protocol says",
    },
    reserved=(COLUMN,),
    actions=(HIGH_WATER_MARK,),
    permits=("add.baseRowId", "add.defaultRowCommitVersion"),
    active=methodcaller("flag", write.SWITCH),
)


@hookimpl
def read_rules(table: TableState, request: ReadRequest) -> Iterable[ReadRule]:
    # change files carry no row ids; the final feature offers the same column
    if request.purpose != "rows" or table.is_supported("rowTracking"):
        return
    row_id: Expression = Call("+", (FileConstant("baseRowId", _LONG), RowPosition()))
    if column := table.property(COLUMN):
        row_id = Call("coalesce", (PhysicalColumn(column, _LONG), row_id))
    yield MetadataColumn(FEATURE.name, "_row_id", _LONG, row_id)


@hookimpl
def prepare_metadata(metadata: Metadata, previous: TableState | None) -> Metadata:
    return write.with_column_name(metadata, previous)


@hookimpl
def check_metadata(table: TableState) -> None:
    write.check_opt_in(table)


@hookimpl
def write_rules(table: TableState) -> Iterable[HiddenColumn]:
    write.check_opt_in(table)
    return write.hidden_columns(table)


@hookimpl
def rebase_files(table: TableState, adds: pa.Table, removes: pa.Table, winner: pa.Table) -> Iterable[ActionColumn]:
    return write.rebase_files(table, adds, removes, winner)


@hookimpl
def commit_rules(attempt: AttemptView) -> Iterable[CommitRule]:
    write.check_opt_in(attempt.table)
    return write.commit_rules(attempt)
