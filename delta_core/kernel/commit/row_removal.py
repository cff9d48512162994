"""Rows dropped without rewriting files: staged positions to removes, adds and vector bytes, again for each base."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import ConcurrentDeleteDeleteError, InvalidArgumentError
from delta_core.expressions.ast import NUM_RECORDS
from delta_core.kernel.commit.base import TableBase
from delta_core.kernel.commit.intents import REMOVED_FILE, RowRemoval
from delta_core.kernel.log.commits import Commit
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.plugins.answers import check_array, find_misfit
from delta_core.kernel.plugins.rules import EncodedRows, RemoveRows
from delta_core.kernel.protocol.actions import ADDED_FILE, DELETION_VECTOR
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import (
    empty_table,
    int64_values,
    is_valid,
    number_array,
    one_array,
    scalar_of,
    strings_of,
)
from delta_core.kernels.dedup import KeySet
from delta_core.kernels.row_set import RowSets
from delta_core.runtime.plugin_errors import contract_error, plugin_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Resolved", "rebase", "resolve"]


class Resolved(Struct, frozen=True):
    """The file actions that result from row removals.

    Parameters
    ----------
    removes, adds : pyarrow.Table
        Each file as it was read; and where rows are left, as it is from now on.
    encoded : EncodedRows or None
        The vectors to write before the commit is proposed.
    """

    removes: pa.Table
    adds: pa.Table
    encoded: EncodedRows | None


def resolve(removals: Sequence[RowRemoval], snapshot: TableBase, rule: RemoveRows, prefix: str) -> Resolved:
    """Unite the rows to drop with those that vectors drop already, and encode them.

    Files without further dropped rows stay as they are.

    Raises
    ------
    InvalidArgumentError
        For a position beyond the file, or a file without a count of rows.
    """
    files, given = _joined(removals, snapshot)
    before = snapshot.dropped_rows(files)
    rows = given | before
    found = one_array(FileSet.of(files).statistics([NUM_RECORDS]).column(0))
    _check_counted(files, found)
    counts = int64_values(found)
    _check_fit(files, given, counts)
    for i in np.flatnonzero(rows.last() >= counts).tolist():
        rows[i].check_fits(int(counts[i]))
    known, after = before.cardinalities(), rows.cardinalities()
    changed, left = np.flatnonzero(after > known), np.flatnonzero((after > known) & (after < counts))
    encoded = _encoded(rule, rows.take(left), prefix) if len(left) else None
    removed = files.take(number_array(changed))
    removed = _set(removed.select([n for n in REMOVED_FILE.names if n in files.column_names]), "dataChange", True)
    if encoded is None:
        return Resolved(removed, empty_table(ADDED_FILE), None)
    return Resolved(removed, _added(files.take(number_array(left)), encoded, counts[left]), encoded)


def _encoded(rule: RemoveRows, rows: RowSets, prefix: str) -> EncodedRows:
    """Return the rows as the feature encodes them; HookContractError for anything but a descriptor for each set."""
    part, hook = "RemoveRows.encode", "write_rules"
    with plugin_errors(rule.feature, f"{part} of hook {hook}", hook):
        found = rule.encode(rows, prefix)
    if not isinstance(found, EncodedRows):
        raise contract_error(rule.feature, hook, part, f"returned {type(found).__name__}; expected EncodedRows")
    misfit = find_misfit(found)
    if misfit is not None:
        raise contract_error(rule.feature, hook, part, f"returned {misfit}")
    check_array(found.descriptors, len(rows), DELETION_VECTOR, rule.feature, hook, f"{part}.descriptors")
    return found


def _joined(removals: Sequence[RowRemoval], snapshot: TableBase) -> tuple[pa.Table, RowSets]:
    """Return the files of all removals, and their rows."""
    if len(removals) == 1:
        return _plain(removals[0].files, snapshot), removals[0].rows
    files = pa.concat_tables([_plain(r.files, snapshot) for r in removals], promote_options="default")
    return files, RowSets.joined([r.rows for r in removals])


def _check_counted(files: pa.Table, counts: pa.Array) -> None:
    if counts.null_count:
        path = files.column("path")[int(np.argmin(is_valid(counts)))].as_py()
        raise InvalidArgumentError(
            f"{path} has no numRecords in its statistics, which a file with dropped rows needs. Rewrite the file "
            "instead.",
            path=path,
        )


def _check_fit(files: pa.Table, rows: RowSets, counts: NDArray[np.int64]) -> None:
    last = rows.last()
    beyond = np.flatnonzero(last >= counts)
    if len(beyond):
        i = int(beyond[0])
        path = files.column("path")[i].as_py()
        raise InvalidArgumentError(f"Row {last[i]} of {path} is to be dropped, which has {counts[i]} rows.", path=path)


def _plain(files: pa.Table, snapshot: TableBase) -> pa.Table:
    """Return what an add may hold: files come from scans and from winners' commits, with columns of their own."""
    wanted = {*ADDED_FILE.names, *REMOVED_FILE.names, *(f.name for f in snapshot.action_fields if f.action == "add")}
    return files.select([n for n in files.column_names if n in wanted])


def _added(files: pa.Table, encoded: EncodedRows, counts: NDArray[np.int64]) -> pa.Table:
    out = _set(files.drop_columns(["dvId"]), "deletionVector", encoded.descriptors)
    out = _set(out, "dataChange", True)
    out = _set(out, "stats", _loosened(one_array(files.column("stats"))))
    out = _set(out, "numRecords", number_array(counts))
    return _set(out, "fresh", False)


def _loosened(stats: pa.Array) -> pa.Array:
    """Return statistics that specify their bounds are no longer tight; counts stay physical."""
    named = pc.match_substring(stats, '"tightBounds"')
    # at the very end it is a key of the outer object
    last = pc.match_substring_regex(stats, r',"tightBounds":(true|false)\}$')
    plain = pc.replace_substring_regex(stats, r'(,"tightBounds":(true|false))?\}$', ',"tightBounds":false}')
    odd = pc.or_(pc.and_(named, pc.invert(last)), pc.invert(pc.match_substring_regex(stats, r'^\{".*[^\s]\}$')))
    if not odd.true_count:
        return plain
    return pc.if_else(odd, strings_of([_loosened_text(s) for s in stats.to_pylist()]), plain)


def _loosened_text(stats: str) -> str:
    return json.dumps({**json.loads(stats), "tightBounds": False}, separators=(",", ":"), ensure_ascii=False)


def _set(table: pa.Table, name: str, value: pa.Array | bool) -> pa.Table:
    column = pa.repeat(scalar_of(value, pa.bool_()), table.num_rows) if isinstance(value, bool) else value
    index = table.schema.get_field_index(name)
    return table.append_column(name, column) if index < 0 else table.set_column(index, name, column)


def rebase(winner: Commit, removals: Sequence[RowRemoval], snapshot: TableBase) -> list[RowRemoval]:
    """Carry row removals over a winner: files that it changed are taken as it left them.

    Raises
    ------
    ConcurrentDeleteDeleteError
        If the winner removed a file whole, dropped rows that are to be dropped too, or restored dropped rows.
    """
    return [_rebased(winner, removal, snapshot) for removal in removals]


def _rebased(winner: Commit, removal: RowRemoval, snapshot: TableBase) -> RowRemoval:
    files = removal.files
    paths = one_array(files.column("path"))
    place = pc.index_in(paths, value_set=one_array(winner.adds.column("path")))
    gone = KeySet()
    gone.insert(winner.removes.column("path"), winner.removes.column("dvId"))
    lost = gone.contains(paths, one_array(files.column("dvId"))) & ~is_valid(place)
    if lost.any():
        raise _lost(winner, paths[int(np.argmax(lost))].as_py(), "removed the file")
    mine = np.flatnonzero(is_valid(place))
    if not len(mine):
        return removal
    theirs = winner.adds.take(place.drop_null())
    before, after = (snapshot.dropped_rows(t) for t in (files.take(number_array(mine)), theirs))
    both_drop = ((after - before) & removal.rows.take(mine)).cardinalities()
    for found, what in (
        (both_drop, "dropped rows of it that this transaction drops too"),
        ((before - after).cardinalities(), "restored rows of it that had been dropped"),
    ):
        if found.any():
            raise _lost(winner, paths[int(mine[np.argmax(found > 0)])].as_py(), what)
    order = np.arange(files.num_rows)
    order[mine] = files.num_rows + np.arange(len(mine))
    both = pa.concat_tables([_plain(files, snapshot), _plain(theirs, snapshot)], promote_options="default")
    return RowRemoval(both.take(number_array(order)), removal.rows)


def _lost(winner: Commit, path: str, what: str) -> ConcurrentDeleteDeleteError:
    operation = (winner.info or {}).get("operation", "a commit")
    return ConcurrentDeleteDeleteError(
        f"Version {winner.version} ({operation}), committed meanwhile, {what}: {path}. Repeat the operation on the "
        "table as it is now.",
        version=winner.version,
        path=path,
    )
