"""The committer of stores that can create a file only if there is none. Protocol: Delta Log Entries."""

from __future__ import annotations

import contextlib
import errno
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from delta_core.engines.interface import Storage
from delta_core.engines.records import PutResult, RangeRequest
from delta_core.errors import CommitError, CommitStateUnknownError, EngineError
from delta_core.kernel.log.names import LOG_DIRECTORY, commit_name
from delta_core.kernel.plugins.committer import Committed, Conflict, Outcome, Proposal
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import ThreadPool

__all__ = ["StoreCommitter", "holds_transaction", "is_refusal", "prove_exclusive"]

#: How often a put whose fate is unknown is repeated, and how long to wait before, in s.
PUTS = 4
PAUSE = 0.05
#: Puts at once by which a store proves itself.
RACERS = 8
#: So long each waits for the others to begin.
RACE_SECONDS = 10
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTSUP, errno.EFBIG})

_proven: set[str] = set()
_proving = PerProcess(threading.Lock)


class StoreCommitter:
    """Publishes ``<version>.json`` by put-if-absent.

    A store other than a local disk first proves, once a process, that it creates a file once.

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
        self._not_ready: BaseException | None = None

    def commit(self, proposal: Proposal) -> Outcome:
        """Put the commit; an unknown outcome is settled by the transaction id in what lies there.

        A put that failed is put again: it is the same commit, and the store takes it once, so that it does not matter
        whether the first put was lost, landed, or lands later.

        Raises
        ------
        CommitError
            If the store rejects the first put: nothing was committed.
        CommitStateUnknownError
            If the store does not report the outcome of any put.
        EngineError
            Of ``ready``: nothing was committed.
        """
        prove_exclusive(self._storage)
        name = commit_name(proposal.version)
        path = f"{LOG_DIRECTORY}/{name}"
        failures: list[EngineError] = []
        for attempt in range(PUTS):
            if attempt:
                time.sleep(PAUSE * 4 ** (attempt - 1))
            try:
                # a client library may have repeated a put whose first answer was lost: what exists may be ours
                if self._put(path, proposal) == "created" or self._is_ours(path, proposal):
                    return Committed(proposal.version, name)
                return Conflict(proposal.version)
            except FileNotFoundError:  # of a listing that lags
                continue
            except EngineError as e:
                if e is self._not_ready:
                    raise
                failures.append(e)
                if is_refusal(e) and len(failures) == 1:
                    raise _refused(proposal, e) from e
        raise _unknown(proposal, path, failures)

    def _put(self, path: str, proposal: Proposal) -> PutResult:
        if self._ready is None:
            return self._storage.put_if_absent(path, proposal.lines)
        return self._storage.put_if_absent(path, proposal.lines, ready=self._check_ready)

    def _check_ready(self) -> None:
        assert self._ready is not None
        try:
            self._ready()
        except BaseException as e:
            self._not_ready = e
            raise

    def _is_ours(self, path: str, proposal: Proposal) -> bool:
        (found,) = self._storage.read([RangeRequest(path)])
        return holds_transaction(bytes(found), proposal.txn_id)


def is_refusal(error: EngineError) -> bool:
    """Whether a failed put was certainly rejected: the disk is full, the store forbids it or can't do it."""
    cause = error.__cause__
    if isinstance(cause, (PermissionError, NotImplementedError)):
        return True
    return isinstance(cause, OSError) and cause.errno in _REFUSALS


def _refused(proposal: Proposal, cause: EngineError) -> CommitError:
    return CommitError(
        f"Version {proposal.version} could not be written: {cause} Nothing was committed; the data files that were "
        "written are not part of the table.",
        version=proposal.version,
    )


def _unknown(proposal: Proposal, path: str, failures: list[EngineError]) -> CommitStateUnknownError:
    found = f"{failures[-1]}" if failures else "the store specifies that it exists and that it does not."
    error = CommitStateUnknownError(
        f"Whether version {proposal.version} was committed is not known after {PUTS} tries: {found} The store may "
        f"still finish one of them. Look for txnId {proposal.txn_id} in {path} before trying again; nothing was "
        "deleted.",
        version=proposal.version,
        txn_id=proposal.txn_id,
    )
    error.__cause__ = failures[-1] if failures else None
    return error


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


# --- proof ---------------------------------------------------------------------------------


def prove_exclusive(storage: Storage) -> None:
    """Prove, once a process and store, that the store creates a file once: among puts at once, and afterwards.

    Does nothing for local disks. Its files are deleted again.

    Raises
    ------
    CommitError
        If two puts succeed: writers on such a store would overwrite each other's commits.
    """
    if storage.store is None or storage.store in _proven:
        return
    with _proving.get():
        if storage.store in _proven:
            return
        with _probe(storage) as path:
            try:
                problem = _find_problem(storage, path)
            except EngineError as e:
                raise CommitError(
                    f"{storage.root} can't create a file only if there is none: {e} Pass a committer=, such as the one "
                    "on DynamoDB.",
                    path=storage.root,
                ) from e
        if problem:
            raise CommitError(
                f"{storage.root} let {problem}: concurrent writers would lose commits there. Writing is rejected; pass "
                "a committer=, such as the one on DynamoDB.",
                path=storage.root,
            )
        _proven.add(storage.store)


@contextlib.contextmanager
def _probe(storage: Storage) -> Iterator[str]:
    path = f"{LOG_DIRECTORY}/.probe-{uuid.uuid4().hex}"
    try:
        yield path
    finally:
        # credentials may allow writes but no deletions
        with contextlib.suppress(EngineError):
            storage.delete([path])


def _find_problem(storage: Storage, path: str) -> str:
    """Return what the store let happen that it should not have; empty if it behaves."""
    barrier = threading.Barrier(RACERS, timeout=RACE_SECONDS)

    def put(number: int) -> PutResult | EngineError:
        try:
            barrier.wait()
        except threading.BrokenBarrierError as e:
            raise EngineError(
                f"The system has no {RACERS} threads for this process, which are necessary to find out whether the "
                f"store of {storage.root} creates files exclusively. Raise the limit, or pass a committer=."
            ) from e
        try:
            return storage.put_if_absent(path, b"%d" % number)
        except EngineError as e:
            return e

    with ThreadPool(RACERS, "delta-race") as pool:
        results = pool.map(put, range(RACERS))
    winners = [i for i, r in enumerate(results) if r == "created"]
    if len(winners) > 1:
        return f"{len(winners)} of {RACERS} conditional puts at once succeed"
    # also if all failed: by then the store reports why
    again = storage.put_if_absent(path, b"again")
    if winners and again == "created":
        return "a second conditional put succeed"
    (found,) = storage.read([RangeRequest(path)])
    if winners and bytes(found) != b"%d" % winners[0]:
        return "a rejected conditional put change the file"
    return ""
