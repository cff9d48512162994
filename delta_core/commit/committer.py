"""The committer of stores that can create a file only where there is none. Protocol: Delta Log Entries."""

from __future__ import annotations

import json
import threading
import uuid

from delta_core.commit.outcome import Committed, Conflict, Outcome, Proposal
from delta_core.engine import RangeRequest, Storage
from delta_core.errors import CommitError, CommitStateUnknownError, EngineError
from delta_core.log.names import LOG_DIRECTORY, commit_name

__all__ = ["StoreCommitter", "holds_transaction", "prove_exclusive"]

_proven: set[str] = set()
_proving = threading.Lock()


class StoreCommitter:
    """Publishes ``<version>.json`` by put-if-absent.

    Parameters
    ----------
    storage : Storage
    proven : str or None
        The store's name, if it must first prove once per process that a second put fails; None for local disks, whose
        link call is atomic by contract.
    """

    def __init__(self, storage: Storage, proven: str | None = None) -> None:
        self._storage = storage
        self._proven = proven

    def commit(self, proposal: Proposal) -> Outcome:
        """Put the commit; an unknown outcome is settled by the transaction id in what lies there."""
        if self._proven is not None:
            prove_exclusive(self._storage, self._proven)
        name = commit_name(proposal.version)
        path = f"{LOG_DIRECTORY}/{name}"
        try:
            outcome = self._storage.put_if_absent(path, proposal.data)
        except EngineError as e:
            return self._settle(proposal, path, name, e)
        if outcome == "created":
            return Committed(proposal.version, name)
        # a client library may have repeated a put whose first answer was lost
        return Committed(proposal.version, name) if self._is_ours(path, proposal) else Conflict(proposal.version)

    def _is_ours(self, path: str, proposal: Proposal) -> bool:
        (found,) = self._storage.read([RangeRequest(path)])
        return holds_transaction(bytes(found), proposal.txn_id)

    def _settle(self, proposal: Proposal, path: str, name: str, cause: EngineError) -> Outcome:
        try:
            return Committed(proposal.version, name) if self._is_ours(path, proposal) else Conflict(proposal.version)
        except FileNotFoundError:
            if isinstance(cause.__cause__, (PermissionError, NotImplementedError)) or _is_full(cause.__cause__):
                raise CommitError(
                    f"Version {proposal.version} could not be written: {cause}. Nothing was committed; the data files "
                    "that were written are not part of the table.", version=proposal.version,
                ) from cause  # fmt: skip
            raise CommitStateUnknownError(
                f"Whether version {proposal.version} was committed is not known: {cause}. It is not there now, but the "
                f"store may still finish the request. Look for txnId {proposal.txn_id} in {path} before trying again; "
                "nothing was deleted.", version=proposal.version, txn_id=proposal.txn_id,
            ) from cause  # fmt: skip
        except EngineError as e:
            raise CommitStateUnknownError(
                f"Whether version {proposal.version} was committed is not known: {cause}; looking for it failed too: {e}. "
                f"Look for txnId {proposal.txn_id} in {path} before trying again; nothing was deleted.",
                version=proposal.version, txn_id=proposal.txn_id,
            ) from e  # fmt: skip


def _is_full(error: BaseException | None) -> bool:
    import errno

    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def holds_transaction(data: bytes, txn_id: str) -> bool:
    """Whether a commit's ``commitInfo`` carries a transaction id."""
    if txn_id.encode() not in data:
        return False
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        info = value.get("commitInfo") if isinstance(value, dict) else None
        if isinstance(info, dict) and info.get("txnId") == txn_id:
            return True
    return False


def prove_exclusive(storage: Storage, name: str) -> None:
    """Prove once per process that a store refuses to create a file twice.

    Raises CommitError where the second put succeeds: writers on such a store would overwrite each other's commits.
    """
    with _proving:
        if name in _proven:
            return
        path = f"{LOG_DIRECTORY}/.probe-{uuid.uuid4().hex}"
        try:
            first = storage.put_if_absent(path, b"1")
            second = storage.put_if_absent(path, b"2")
        except EngineError as e:
            raise CommitError(f"{name} can't create a file only where there is none: {e}. Give a committer=.") from e
        finally:
            storage.delete([path])
        if (first, second) != ("created", "exists"):
            raise CommitError(
                f"{name} let a second conditional put succeed: concurrent writers would lose commits there. Writing is "
                "refused; give a committer=, such as the one on DynamoDB."
            )
        _proven.add(name)
