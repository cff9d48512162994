"""rowIds: the draft from which rowTracking grew. Rows keep an id; its high water mark is an action of its own."""

from collections.abc import Iterable
from operator import methodcaller

import pyarrow as pa

from delta_core.api import (
    ActionKind,
    Call,
    Expression,
    FileConstant,
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

__all__ = ["COLUMN", "FEATURE", "HIGH_WATER_MARK"]

COLUMN = "delta.rowIds.physicalColumnName"
_LONG = PrimitiveType("long")

#: One per table, the latest wins.
HIGH_WATER_MARK = ActionKind(
    "rowIdHighWaterMark", pa.struct([("highWaterMark", pa.int64()), ("preservedRowIds", pa.bool_())]), rebasable=True
)
FEATURE = TableFeature(
    "rowIds",
    "writer",
    "Every row keeps an id (the draft of rowTracking).",
    aliases=("delta.rowIds",),
    properties={
        "delta.enableRowIds": "true once every row has an id",
        COLUMN: "physical column that holds ids which rows brought along",
    },
    actions=(HIGH_WATER_MARK,),
    active=methodcaller("flag", "delta.enableRowIds"),
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
