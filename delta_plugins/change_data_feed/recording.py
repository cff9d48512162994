"""The rules of a table that records its changes, and of a commit with change files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.api import SchemaError, TableState, UnsupportedOperationError
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array
from delta_plugins.change_data_feed import logic

if TYPE_CHECKING:
    from delta_core.api import AttemptView

__all__ = ["check_change_files", "check_columns"]


def check_columns(table: TableState) -> None:
    """Reject columns of the names that the feed returns its own, while the feed is on.

    Raises
    ------
    SchemaError
        If the table has a column of such a name.
    """
    taken = [f.name for name in logic.COLUMNS if (f := table.schema.get(name)) is not None]
    if taken and logic.is_enabled(table.configuration):
        raise SchemaError(
            f"The table has a column {taken[0]!r}, a name that the change data feed needs: it can't be on "
            f"({logic.PROPERTY}). Rename the column, or switch the feed off.",
            column=taken[0],
        )


def check_change_files(attempt: AttemptView) -> None:
    """Reject change files that readers would misread.

    Once a commit has one, readers look at nothing else of it: it has to change data, and its change files have to
    specify that they do not. Protocol: Writer Requirements for AddCDCFile.

    Raises
    ------
    UnsupportedOperationError
        If the feed is off, a change file has ``dataChange=true``, or the commit changes no data.
    """
    files = attempt.cdcs
    if not files.num_rows:
        return
    sample = files.column("path")[0].as_py()
    if not attempt.table.is_active("changeDataFeed"):
        raise UnsupportedOperationError(
            f"{attempt.operation} stages change files, such as {sample}, but the table does not record changes "
            f"({logic.PROPERTY} is not true). Leave them out, or switch the feed on first.",
            property=logic.PROPERTY,
        )
    if one_array(pc.fill_null(files.column("dataChange"), True)).true_count:
        raise UnsupportedOperationError(
            f"Change files of {attempt.operation}, such as {sample}, have dataChange=true; expected false."
        )
    if not attempt.data_change:
        raise UnsupportedOperationError(
            f"{attempt.operation} stages change files, such as {sample}, but neither adds nor removes rows: the feed "
            "would describe changes that the table does not have."
        )
