"""Rows dropped without rewriting files: staged positions to removes, adds and vector bytes, again for each base."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct

from delta_core.commit.base import TableBase
from delta_core.commit.intents import REMOVED_FILE, RowRemoval, num_records
from delta_core.errors import ConcurrentDeleteDeleteError, InvalidArgumentError, plugin_errors
from delta_core.kernels.row_set import RowSet
from delta_core.log.commits import Commit
from delta_core.plugins.rules import EncodedRows, RemoveRows
from delta_core.protocol.actions import ADDED_FILE

__all__ = ["Resolved", "rebase", "resolve"]


class Resolved(Struct, frozen=True):
    """What row removals come to.

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
    files = pa.concat_tables([_plain(r.file, snapshot) for r in removals], promote_options="default")
    before = snapshot.row_sets(files)
    rows = [before[i] | r.rows if i in before else r.rows for i, r in enumerate(removals)]
    counts = [_num_records(files, i) for i in range(files.num_rows)]
    for i, removal in enumerate(removals):
        _check_fits(removal.rows, counts[i], files.column("path")[i].as_py())
        rows[i].check_fits(counts[i])
    changed = [i for i, united in enumerate(rows) if len(united) > len(before.get(i, ()))]
    left = [i for i in changed if len(rows[i]) < counts[i]]
    with plugin_errors(rule.feature, "RemoveRows.encode of hook write_rules", "write_rules"):
        encoded = rule.encode([rows[i] for i in left], prefix) if left else None
    removed = files.take(pa.array(changed, pa.int64()))
    removed = _set(removed.select([n for n in REMOVED_FILE.names if n in files.column_names]), "dataChange", True)
    if encoded is None:
        return Resolved(removed, ADDED_FILE.empty_table(), None)
    return Resolved(removed, _added(files.take(pa.array(left)), encoded, [counts[i] for i in left]), encoded)


def _check_fits(rows: RowSet, count: int, path: str) -> None:
    last = rows.max
    if last is not None and last >= count:
        raise InvalidArgumentError(f"Row {last} of {path} is to be dropped, which has {count} rows.", path=path)


def _plain(file: pa.Table, snapshot: TableBase) -> pa.Table:
    """Return what an add may hold: files come from scans and from winners' commits, with columns of their own."""
    wanted = {*ADDED_FILE.names, *REMOVED_FILE.names, *(f.name for f in snapshot.action_fields if f.action == "add")}
    return file.select([n for n in file.column_names if n in wanted])


def _added(files: pa.Table, encoded: EncodedRows, counts: Sequence[int]) -> pa.Table:
    out = _set(files.drop_columns(["dvId"]), "deletionVector", encoded.descriptors)
    out = _set(out, "dataChange", True)
    out = _set(out, "stats", pa.array([_loosened(s) for s in files.column("stats").to_pylist()], pa.string()))
    out = _set(out, "numRecords", pa.array(counts, pa.int64()))
    return _set(out, "fresh", False)


def _loosened(stats: str) -> str:
    """Return statistics that specify their bounds are no longer tight; counts stay physical."""
    return json.dumps({**json.loads(stats), "tightBounds": False}, separators=(",", ":"), ensure_ascii=False)


def _set(table: pa.Table, name: str, value: pa.Array | bool) -> pa.Table:
    column = pa.repeat(pa.scalar(value), table.num_rows) if isinstance(value, bool) else value
    index = table.schema.get_field_index(name)
    return table.append_column(name, column) if index < 0 else table.set_column(index, name, column)


def _num_records(files: pa.Table, row: int) -> int:
    found = num_records(files.column("stats")[row].as_py())
    if found is None:
        raise InvalidArgumentError(
            f"{files.column('path')[row].as_py()} has no numRecords in its statistics, which a file with dropped rows "
            "needs. Rewrite the file instead.",
            path=files.column("path")[row].as_py(),
        )
    return found


def rebase(winner: Commit, removals: Sequence[RowRemoval], snapshot: TableBase) -> list[RowRemoval]:
    """Carry row removals over a winner: files that it changed are taken as it left them.

    Raises
    ------
    ConcurrentDeleteDeleteError
        If the winner removed a file whole, dropped rows that are to be dropped too, or restored dropped rows.
    """
    gone = set(_keys(winner.removes))
    added = {p: i for i, (p, _) in enumerate(_keys(winner.adds))}
    return [_rebased(winner, removal, gone, added, snapshot) for removal in removals]


def _rebased(
    winner: Commit,
    removal: RowRemoval,
    gone: set[tuple[str, str | None]],
    added: Mapping[str, int],
    snapshot: TableBase,
) -> RowRemoval:
    ((path, dv_id),) = _keys(removal.file)
    if path not in added:
        if (path, dv_id) in gone:
            raise _lost(winner, path, "removed the file")
        return removal
    file = winner.adds.slice(added[path], 1)
    before, after = (snapshot.row_sets(f).get(0, RowSet.empty()) for f in (removal.file, file))
    if not (after - before).isdisjoint(removal.rows):
        raise _lost(winner, path, "dropped rows of it that this transaction drops too")
    if before - after:
        raise _lost(winner, path, "restored rows of it that had been dropped")
    return RowRemoval(file, removal.rows)


def _keys(table: pa.Table) -> list[tuple[str, str | None]]:
    return list(zip(table.column("path").to_pylist(), table.column("dvId").to_pylist(), strict=True))


def _lost(winner: Commit, path: str, what: str) -> ConcurrentDeleteDeleteError:
    operation = (winner.info or {}).get("operation", "a commit")
    return ConcurrentDeleteDeleteError(
        f"Version {winner.version} ({operation}), committed meanwhile, {what}: {path}. Repeat the operation on the table "
        "as it is now.",
        version=winner.version,
        path=path,
    )
