"""The committer of stores that can create a file only if there is none. Protocol: Delta Log Entries."""

from __future__ import annotations

import json
from collections.abc import Callable

from delta_core.engines.interface import Storage
from delta_core.errors import CommitError, CommitStateUnknownError, EngineError
from delta_core.kernel.commit.publishing import Rejected, Unsettled, publish_file
from delta_core.kernel.log.names import LOG_DIRECTORY, commit_name
from delta_core.kernel.plugins.committer import Committed, Conflict, Outcome, Proposal

__all__ = ["StoreCommitter", "holds_transaction"]


class StoreCommitter:
    """Publishes ``<version>.json`` by put-if-absent, as `publish_file` does.

    Parameters
    ----------
    storage : Storage
        Where the table is.
    ready : function(), optional
        Called before a commit can be seen; nothing is committed if it raises, and that error is raised.
    """

    def __init__(self, storage: Storage, ready: Callable[[], None] | None = None) -> None:
        self._storage = storage
        self._ready = ready

    def commit(self, proposal: Proposal) -> Outcome:
        """Put the commit; an unknown outcome is settled by the transaction id in the file that is there.

        Raises
        ------
        CommitError
            If the store rejects the first put: nothing was committed.
        CommitStateUnknownError
            If the store does not report the outcome of any put.
        EngineError
            Of ``ready``: nothing was committed.
        """
        name = commit_name(proposal.version)
        path = f"{LOG_DIRECTORY}/{name}"
        outcome = publish_file(
            self._storage,
            path,
            proposal.lines,
            folder=LOG_DIRECTORY,
            is_ours=lambda data: holds_transaction(data, proposal.txn_id),
            ready=self._ready,
        )
        if isinstance(outcome, Rejected):
            raise _rejected(proposal, outcome.cause) from outcome.cause
        if isinstance(outcome, Unsettled):
            raise _unknown(proposal, path, outcome)
        return Committed(proposal.version, name) if outcome == "created" else Conflict(proposal.version)


def _rejected(proposal: Proposal, cause: EngineError) -> CommitError:
    return CommitError(
        f"Version {proposal.version} could not be written: {cause} Nothing was committed; the data files that were "
        "written are not part of the table.",
        version=proposal.version,
    )


def _unknown(proposal: Proposal, path: str, outcome: Unsettled) -> CommitStateUnknownError:
    failures = outcome.failures
    found = f"{failures[-1]}" if failures else "the store specifies that it exists and that it does not."
    error = CommitStateUnknownError(
        f"Whether version {proposal.version} was committed is not known after {outcome.puts} tries: {found} The store "
        f"may still finish one of them. Look for txnId {proposal.txn_id} in {path} before trying again; nothing was "
        "deleted.",
        version=proposal.version,
        txn_id=proposal.txn_id,
    )
    error.__cause__ = failures[-1] if failures else None
    return error


def holds_transaction(data: bytes, txn_id: str) -> bool:
    """Whether a commit's ``commitInfo`` carries a transaction id.

    Parameters
    ----------
    data : bytes
        The JSON lines of a commit.
    txn_id : str
        The id of the attempt, in ``commitInfo``.
    """
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
