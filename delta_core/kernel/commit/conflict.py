"""Whether a commit that won the race contradicts a transaction. Rules on effects, not on operations.

Checked per winner, oldest first: protocol, metadata, application ids, domains, appended files that match what was
read, removed files that were read, files that both remove. Row-level: if a winner changed the vector of a file
whose rows this transaction drops, disjoint rows rebase.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from delta_core.expressions.ast import Expression
from delta_core.kernel.commit.intents import Intents, Reads, changes_data
from delta_core.kernel.log.commits import Commit
from delta_core.kernel.protocol.actions import ActionKind
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import one_array
from delta_core.kernels.dedup import KeySet

__all__ = ["IsolationLevel", "Matches", "check_conflicts", "check_read_since"]

#: Which of a winner's files may hold rows that a predicate matches: from file table and predicate to a table.
Matches = Callable[[pa.Table, "Expression | None"], pa.Table]


class IsolationLevel(Enum):
    """The commits since its read version that a transaction may ignore.

    Serializable: nothing. WriteSerializable: blind appends, as if they had landed after it. SnapshotIsolation: every
    append; for transactions that change no rows.
    """

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT_ISOLATION = "SnapshotIsolation"


def check_read_since(winner: Commit, replaces: bool, predicate: Expression | None, matches: Matches) -> None:
    """Raise an error if a commit since rows were read removed rows, or added some that are replaced by them.

    Parameters
    ----------
    winner : Commit
        A later commit than the version that was read.
    replaces : bool
        Whether rows of the table are replaced; rows that are appended to others replace none.
    predicate : Expression or None
        Which rows are replaced; None: any.
    matches : function(Table, Expression or None) -> Table
        Which files may hold rows that a predicate matches.
    """
    advice = "The table or the rows to write were read before it: read them again, and repeat the operation."
    if changes_data(winner.removes):
        _fail(ConcurrentDeleteReadError, winner, "removed rows of the table", advice)
    added = winner.adds.filter(winner.adds.column("dataChange")) if replaces else None
    if added is not None and matches(added, predicate).num_rows:
        _fail(ConcurrentAppendError, winner, "added rows, which this operation would replace", advice)


class _Check(Struct, frozen=True):
    intents: Intents
    reads: Reads
    isolation: IsolationLevel
    matches: Matches


def check_conflicts(
    winner: Commit,
    intents: Intents,
    reads: Reads,
    isolation: IsolationLevel,
    matches: Matches,
    kinds: Iterable[ActionKind] = (),
) -> None:
    """Raise the error of the first rule that a winner breaks; return where the transaction may go on.

    ``kinds`` are the actions that features declare.
    """
    check = _Check(intents, reads, isolation, matches)
    _check_definition(winner)
    _check_keys(winner, intents)
    _check_declared(winner, intents, kinds)
    if not reads.is_blind:
        _check_appends(winner, check)
        _check_removed_reads(winner, check)
    _check_removes(winner, intents)


def _fail(kind: type[CommitConflictError], winner: Commit, what: str, advice: str) -> NoReturn:
    operation = (winner.info or {}).get("operation", "a commit")
    raise kind(f"Version {winner.version} ({operation}), committed meanwhile, {what}. {advice}", version=winner.version)


def _check_definition(winner: Commit) -> None:
    if winner.protocol is not None:
        advice = "Open the table again and repeat the operation."
        _fail(ProtocolChangedError, winner, "changed the table's protocol", advice)
    if winner.metadata is not None:
        _fail(
            MetadataChangedError,
            winner,
            "changed the table's metadata (schema, properties or partitioning)",
            "Open the table again, see that the operation still fits, and repeat it.",
        )


def _check_keys(winner: Commit, intents: Intents) -> None:
    for kind, value in winner.other_actions:
        if kind == "txn" and value.get("appId") in intents.transactions:
            _fail(
                ConcurrentTransactionError,
                winner,
                f"carries the same application id {value.get('appId')!r}",
                "Two writers use one id: see which version the table holds (transaction_version) before trying again.",
            )
        domain = value.get("domain") if kind == "domainMetadata" else None
        if domain is not None and intents.replaces_definition:
            _fail(
                CommitConflictError,
                winner,
                f"changed the domain {domain!r} of the table, which this transaction replaces",
                "Repeat the operation on the table as it is now.",
            )
        if domain in intents.domains or domain in intents.system_domains:
            _fail(
                CommitConflictError,
                winner,
                f"changed the domain {domain!r}, which this transaction changes too",
                "Read the domain again and repeat the change.",
            )


def _check_declared(winner: Commit, intents: Intents, kinds: Iterable[ActionKind]) -> None:
    """Two commits that write one key of a feature's action conflict, unless it specifies that they don't."""
    keys = {k.name: k.key for k in kinds if not k.rebasable}
    mine = {(kind, _key(value, keys[kind])) for kind, value in intents.actions if kind in keys}
    for kind, value in winner.other_actions:
        if kind in keys and (kind, _key(value, keys[kind])) in mine:
            _fail(
                CommitConflictError,
                winner,
                f"wrote the action {kind} that this transaction writes too",
                "Read it again and repeat the change.",
            )


def _key(value: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(json.dumps(value.get(n)) for n in names)


def _check_appends(winner: Commit, check: _Check) -> None:
    if not winner.adds.num_rows:
        return
    # rows that landed before a new definition can't be taken for rows that landed after it
    weakest = check.isolation if check.intents.metadata is None else IsolationLevel.SERIALIZABLE
    if weakest is IsolationLevel.SNAPSHOT_ISOLATION:
        return
    blind = bool((winner.info or {}).get("isBlindAppend")) and not winner.removes.num_rows
    if weakest is IsolationLevel.WRITE_SERIALIZABLE and blind:
        return
    added = winner.adds.filter(winner.adds.column("dataChange"))
    removed = one_array(winner.removes.column("path"))
    added = added.filter(pc.invert(pc.is_in(added.column("path"), value_set=removed)))
    for predicate in check.reads.predicates:
        found = check.matches(added, predicate)
        if found.num_rows:
            _fail(
                ConcurrentAppendError,
                winner,
                f"added {found.num_rows} file(s) that may hold rows which this transaction read, such as "
                f"{found.column('path')[0].as_py()}",
                "Repeat the operation; narrower predicates, on partition columns above all, meet fewer other writers.",
            )


def _check_removed_reads(winner: Commit, check: _Check) -> None:
    # a file that comes back with fewer rows is judged row by row, if rows of it are to be dropped
    removed = winner.removes
    for removal in check.intents.row_removals:
        mine, back = (one_array(t.column("path")) for t in (removal.files, winner.adds))
        paths = removed.column("path")
        judged = pc.and_(pc.is_in(paths, value_set=mine), pc.is_in(paths, value_set=back))
        removed = removed.filter(pc.invert(judged))
    if not removed.num_rows:
        return
    if check.isolation is IsolationLevel.SNAPSHOT_ISOLATION:
        removed = removed.filter(removed.column("dataChange"))
    keys = _keys(check.reads.files)
    hit = keys.contains(removed.column("path"), removed.column("dvId"))
    whole = any(p is None for p in check.reads.predicates)
    if hit.any() or (whole and removed.num_rows):
        path = removed.column("path")[int(np.argmax(hit))].as_py()
        _fail(
            ConcurrentDeleteReadError,
            winner,
            f"removed a file that this transaction read, such as {path}",
            "Repeat the operation on the table as it is now.",
        )


def _check_removes(winner: Commit, intents: Intents) -> None:
    mine = _keys(intents.removes)
    hit = mine.contains(winner.removes.column("path"), winner.removes.column("dvId"))
    if hit.any():
        path = winner.removes.column("path")[int(np.argmax(hit))].as_py()
        _fail(
            ConcurrentDeleteDeleteError,
            winner,
            f"removed a file, or rows of it, that this transaction removes too: {path}",
            "Repeat the operation on the table as it is now.",
        )


def _keys(tables: Sequence[pa.Table]) -> KeySet:
    keys = KeySet()
    for table in tables:
        keys.insert(table.column("path"), table.column("dvId"))
    return keys
