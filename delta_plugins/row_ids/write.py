"""Ids for an attempt's files, as the draft specifies, if the table requires it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from delta_core.api import (
    ActionColumn,
    CorruptTableError,
    ExtraAction,
    HiddenColumn,
    Literal,
    Metadata,
    PrimitiveType,
    RemainingFilesCheck,
    TableState,
    UnsupportedFeatureError,
)
from delta_core.kernels.arrow_buffers import int64_values, is_valid, mask_of, number_array, one_array
from delta_core.kernels.row_ids import assign_base_row_ids, take_values

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = [
    "COLUMN",
    "MARK",
    "OPT_IN",
    "SWITCH",
    "check_opt_in",
    "commit_rules",
    "hidden_columns",
    "rebase_files",
    "with_column_name",
]

NAME = "rowIds"
MARK = "rowIdHighWaterMark"
SWITCH = "delta.enableRowIds"
COLUMN = "delta.rowIds.physicalColumnName"
OPT_IN = "delta_core.writeDrafts"
_LONG = PrimitiveType("long")


def check_opt_in(table: TableState) -> None:
    """Reject to write a table that does not specify that drafts may be written.

    Raises
    ------
    UnsupportedFeatureError
        If the table's property for drafts is not true.
    """
    if not table.flag(OPT_IN):
        raise UnsupportedFeatureError(
            f"Feature {NAME} comes from a draft of the protocol; rowTracking took its place. The table can be read; to "
            f"write it as the draft specifies, set its property {OPT_IN} to true.",
            feature=NAME,
            property=OPT_IN,
        )


def with_column_name(metadata: Metadata, previous: TableState | None) -> Metadata:
    """Return the metadata with a name for the hidden column, once ids are on, and then for ever."""
    known = None if previous is None else previous.property(COLUMN)
    is_on = metadata.configuration.get(SWITCH, "").strip().lower() == "true"
    if COLUMN in metadata.configuration or not (known or is_on):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, COLUMN: known or f"_row-id-col-{uuid.uuid4()}"})


def hidden_columns(table: TableState) -> Iterator[HiddenColumn]:
    """Yield the column that holds ids of rows which were moved here; the final feature has one of its own."""
    name = table.property(COLUMN)
    if name and table.is_active(NAME) and not table.is_supported("rowTracking"):
        yield HiddenColumn(NAME, name, _LONG, Literal(None, _LONG), carries="_row_id")


def commit_rules(attempt: AttemptView) -> Iterator[ActionColumn | RemainingFilesCheck | ExtraAction]:
    """Yield base row ids for files that have none, and the mark whenever ids are given."""
    if attempt.table.is_supported("rowTracking"):
        return
    adds, previous = attempt.adds, attempt.previous
    if attempt.table.is_active(NAME) and previous is not None and not previous.is_active(NAME):
        yield RemainingFilesCheck(NAME, "baseRowId", "of the table have no row ids. Assign them ids first.")
    given, counts = (one_array(adds.column(n)) for n in ("baseRowId", "numRecords"))
    fresh = mask_of(one_array(adds.column("fresh")))
    needed = np.flatnonzero(fresh | ~is_valid(given))
    if not len(needed):
        return
    base, mark = assign_base_row_ids(
        int64_values(counts.fill_null(0))[needed], _mark(attempt), is_valid(counts)[needed]
    )
    ids = int64_values(given.fill_null(0)).copy()
    ids[needed] = base
    yield ActionColumn(NAME, "add", "baseRowId", number_array(ids))
    # whatever moves rows carries their ids along, or is rejected
    yield ExtraAction(NAME, MARK, {"highWaterMark": mark, "preservedRowIds": attempt.table.is_active(NAME)})


def rebase_files(table: TableState, adds: pa.Table, removes: pa.Table, winner: pa.Table) -> Iterator[ActionColumn]:
    """Yield the row ids of staged files that a winner assigned; the final feature does so itself."""
    if table.is_supported("rowTracking"):
        return
    for action, files in (("add", adds), ("remove", removes)):
        for values in take_values(files, winner, ("baseRowId",)):
            yield ActionColumn(NAME, action, "baseRowId", values)


def _mark(attempt: AttemptView) -> int:
    for action in attempt.custom_actions(MARK):
        mark = action.get("highWaterMark")
        if not isinstance(mark, int) or isinstance(mark, bool):
            raise CorruptTableError(f"Action {MARK} is {action!r}, expected a whole number as highWaterMark.")
        return mark
    return -1
