"""AttemptView: one attempt at a commit, as hooks see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from delta_core.kernel.plugins.state import TableState
from delta_core.schema.fields import Path

__all__ = ["AttemptView", "no_actions"]


def no_actions(kind: str) -> Sequence[Mapping[str, Any]]:
    """Return no actions, as a table that does not exist yet has none."""
    return ()


class AttemptView(Struct, frozen=True):
    """One attempt at a commit, as hooks see it.

    Parameters
    ----------
    table : TableState
        The state after the commit: the latest one with this transaction's protocol and metadata on top.
    previous : TableState or None
        The latest state, which the attempt builds on; None for a new table.
    version : int
        The version that the attempt would write.
    operation : str
        The operation, as history names it.
    adds : pyarrow.Table
        Columns of `actions.ADDED_FILE`, and the fields that features of the table add to the action: null in new files.
    removes, cdcs : pyarrow.Table
        The same for `intents.REMOVED_FILE` and `actions.CHANGE_FILE`, with the fields that features add to ``remove``
        and ``cdc``: null before `commit_rules`, also if the file's ``add`` has a field of this name. ``stats`` of
        removed files may be null although they have statistics: no line of a commit repeats these.
    domains : Mapping
        Domains that the user edits: configuration, None for a removal.
    metadata_changed, protocol_changed : bool
        Whether the commit has such an action.
    data_change : bool
        Whether any file action changes rows.
    now_ms : int
        The clock.
    previous_timestamp_ms : int or None
        The latest version's commit time, if it is known.
    reported : Mapping
        Column path to the (min, max) of what a FillColumn with ``report_bounds`` generated.
    lost : int
        How many attempts were lost before this one.
    custom_actions : function(kind) -> list of actions
        The latest version's live actions of a kind that a feature declares; querying may read the log.
    """

    table: TableState
    previous: TableState | None
    version: int
    operation: str
    adds: pa.Table
    removes: pa.Table
    cdcs: pa.Table
    domains: Mapping[str, str | None]
    metadata_changed: bool
    protocol_changed: bool
    data_change: bool
    now_ms: int
    previous_timestamp_ms: int | None = None
    reported: Mapping[Path, tuple[Any, Any]] = {}
    lost: int = 0
    custom_actions: Callable[[str], Sequence[Mapping[str, Any]]] = no_actions
