"""Rows dropped without rewriting files: staged positions to removes, adds and vector bytes, anew for each base."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from delta_core.commit.intents import ADDED_FILE, REMOVED_FILE, Intents, RowRemoval
from delta_core.errors import ConcurrentDeleteDeleteError, InvalidArgumentError
from delta_core.kernels.row_set import RowSet
from delta_core.log.commits import Commit
from delta_core.rules import EncodedRows, RemoveRows
from delta_core.snapshot import Snapshot

__all__ = ["Resolved", "rebase", "resolve"]


@dataclass(frozen=True)
class Resolved:
    """Intents with every row removal turned into a remove and, where rows are left, an add.

    Parameters
    ----------
    encoded : EncodedRows or None
        The vectors to write before the commit is proposed.
    """

    intents: Intents
    encoded: EncodedRows | None


def resolve(intents: Intents, snapshot: Snapshot, rule: RemoveRows, prefix: str) -> Resolved:
    """Unite the rows to drop with those that vectors drop already, and encode them."""
    removals = intents.row_removals
    files = pa.concat_tables([r.file for r in removals], promote_options="default")
    before = snapshot.row_sets(files)
    rows = [before[i] | r.rows if i in before else r.rows for i, r in enumerate(removals)]
    counts = [_num_records(files, i) for i in range(files.num_rows)]
    for i, (united, count) in enumerate(zip(rows, counts, strict=True)):
        united.check_fits(count)
        if united.cardinality == 0:
            raise InvalidArgumentError(f"No row of {files.column('path')[i].as_py()} is to be dropped.")
    left = [i for i, (united, count) in enumerate(zip(rows, counts, strict=True)) if united.cardinality < count]
    encoded = rule.encode([rows[i] for i in left], prefix) if left else None
    changed = pa.repeat(pa.scalar(True), files.num_rows)
    removed = _set(files.select([n for n in REMOVED_FILE.names if n in files.column_names]), "dataChange", changed)
    adds = [] if encoded is None else [_added(files.take(pa.array(left)), encoded, [counts[i] for i in left])]
    done = replace(intents, removes=[*intents.removes, removed], adds=[*intents.adds, *adds], row_removals=[])
    return Resolved(done, encoded)


def _added(files: pa.Table, encoded: EncodedRows, counts: Sequence[int]) -> pa.Table:
    names = [n for n in files.column_names if n in ADDED_FILE.names or n not in REMOVED_FILE.names]
    out = files.select(names)
    out = _set(out, "deletionVector", encoded.descriptors)
    out = _set(out, "dataChange", pa.repeat(pa.scalar(True), files.num_rows))
    out = _set(out, "stats", pa.array([_loosened(s) for s in files.column("stats").to_pylist()], pa.string()))
    out = _set(out, "numRecords", pa.array(counts, pa.int64()))
    return _set(out, "fresh", pa.repeat(pa.scalar(False), files.num_rows))


def _loosened(stats: str) -> str:
    """Return statistics that say their bounds are no longer tight; counts stay physical."""
    return json.dumps({**json.loads(stats), "tightBounds": False}, separators=(",", ":"), ensure_ascii=False)


def _set(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.append_column(name, column) if index < 0 else table.set_column(index, name, column)


def _num_records(files: pa.Table, row: int) -> int:
    stats = files.column("stats")[row].as_py()
    found = json.loads(stats).get("numRecords") if stats else None
    if not isinstance(found, int):
        raise InvalidArgumentError(
            f"{files.column('path')[row].as_py()} has no numRecords in its statistics, which a file with dropped rows needs. "
            "Rewrite the file instead.", path=files.column("path")[row].as_py(),
        )  # fmt: skip
    return found


def rebase(winner: Commit, removals: Sequence[RowRemoval], snapshot: Snapshot) -> list[RowRemoval]:
    """Carry row removals over a winner that dropped other rows of the same files.

    Raises ConcurrentDeleteDeleteError where the winner dropped the file whole, or rows that are to be dropped too.
    """
    gone = {(p, d) for p, d in _keys(winner.removes)}
    added = {p: i for i, (p, _) in enumerate(_keys(winner.adds))}
    out = []
    for removal in removals:
        ((path, dv_id),) = _keys(removal.file)
        if (path, dv_id) not in gone:
            out.append(removal)
            continue
        if path not in added:
            raise _lost(winner, path, "removed the file")
        file = winner.adds.slice(added[path], 1)
        before, after = snapshot.row_sets(removal.file).get(0, RowSet.empty()), snapshot.row_sets(file).get(0, RowSet.empty())
        if not (after - before).isdisjoint(removal.rows):
            raise _lost(winner, path, "dropped rows of it that this transaction drops too")
        out.append(RowRemoval(file, removal.rows))
    return out


def _keys(table: pa.Table) -> list[tuple[str, str | None]]:
    return list(zip(table.column("path").to_pylist(), table.column("dvId").to_pylist(), strict=True))


def _lost(winner: Commit, path: str, what: str) -> ConcurrentDeleteDeleteError:
    operation = (winner.info or {}).get("operation", "a commit")
    return ConcurrentDeleteDeleteError(
        f"Version {winner.version} ({operation}), committed meanwhile, {what}: {path}. Repeat the operation on the table "
        "as it is now.", version=winner.version, path=path,
    )  # fmt: skip
