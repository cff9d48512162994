"""A committer that lets a SQLite database decide which commit becomes a version."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from delta_core.api import CommitStateUnknownError, Committed, Committer, Conflict, Proposal, Storage

__all__ = ["SqliteCommitter", "committer"]

OPTION = "acme_committer_database"
_TABLE = "CREATE TABLE IF NOT EXISTS versions (root TEXT, version INTEGER, txn TEXT, PRIMARY KEY (root, version))"


def committer(storage: Storage, options: Mapping[str, Any]) -> Committer | None:
    """Return the committer of a store, None if its options name no database."""
    database = options.get(OPTION)
    return None if database is None else SqliteCommitter(storage, str(database))


class SqliteCommitter:
    """Claims each version in the database, and then writes its file.

    Parameters
    ----------
    storage : Storage
        The store of the table.
    database : str
        The file of the database.
    """

    def __init__(self, storage: Storage, database: str) -> None:
        self._storage = storage
        self._database = database

    def commit(self, proposal: Proposal) -> Committed | Conflict:
        """Make a commit the version that it proposes, unless another one is."""
        path = f"_delta_log/{proposal.version:020}.json"
        data = proposal.data  # formatted first: lines that can't be written claim nothing
        owner = self._claim(proposal)
        if owner != proposal.txn_id:
            return Conflict(proposal.version)
        try:
            put = self._storage.put_if_absent(path, data)
        except Exception as e:
            raise CommitStateUnknownError(
                f"Version {proposal.version} is claimed in {self._database}, but writing {path} failed: {e}. Look for "
                f"txnId {proposal.txn_id} in it before trying again.",
                version=proposal.version,
            ) from e
        if put != "created" and not self._is_own(path, proposal):
            return Conflict(proposal.version)  # a writer without the database was there first
        return Committed(proposal.version, path.removeprefix("_delta_log/"))

    def _is_own(self, path: str, proposal: Proposal) -> bool:
        """Whether the file is of this transaction: an earlier try of it may have been interrupted."""
        with self._storage.open(path) as file:
            return proposal.txn_id.encode() in file.read()

    def _claim(self, proposal: Proposal) -> str:
        """Return the transaction that has the version: this one if it was free."""
        key = (self._storage.root, proposal.version)
        with closing(sqlite3.connect(self._database, timeout=30)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(_TABLE)
            database.execute("INSERT OR IGNORE INTO versions VALUES (?, ?, ?)", (*key, proposal.txn_id))
            (owner,) = database.execute("SELECT txn FROM versions WHERE root = ? AND version = ?", key).fetchone()
        return str(owner)
