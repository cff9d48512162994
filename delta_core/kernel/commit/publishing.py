"""Files that make a version when they are created, of any format: put-if-absent with settled outcomes."""

from __future__ import annotations

import contextlib
import errno
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from delta_core.engines.interface import Storage
from delta_core.engines.records import PutResult, RangeRequest
from delta_core.errors import CommitError, EngineError
from delta_core.runtime.processes import PerProcess
from delta_core.runtime.threads import ThreadPool

__all__ = ["Rejected", "Unsettled", "is_refusal", "prove_exclusive", "publish_file"]

#: How often a put whose outcome is unknown is repeated, and how long to wait before, in s.
PUTS = 4
PAUSE = 0.05
#: Puts at once by which a store proves itself.
RACERS = 8
#: So long each waits for the others to begin.
RACE_SECONDS = 10
_REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTSUP, errno.EFBIG})

_proven: set[str] = set()
_proving = PerProcess(threading.Lock)


class Unsettled(Struct, frozen=True):
    """No put of a file reported its outcome.

    Parameters
    ----------
    puts : int
        How many there were.
    failures : tuple of EngineError
        The errors that they raised. Empty if the store reported that the file exists, and that it does not.
    """

    puts: int
    failures: tuple[EngineError, ...]


class Rejected(Struct, frozen=True):
    """The store rejected the first put: nothing was created.

    Parameters
    ----------
    cause : EngineError
        The error of the store.
    """

    cause: EngineError


def publish_file(
    storage: Storage,
    path: str,
    data: bytes | Iterable[bytes],
    *,
    folder: str,
    is_ours: Callable[[bytes], bool],
    ready: Callable[[], None] | None = None,
) -> PutResult | Unsettled | Rejected:
    """Create a file if there is none, whole and visible at once.

    A put that failed is put again: it is the same file, and the store takes it once, so that it does not matter whether
    the first put was lost, was stored, or is stored later. A store other than a local disk first proves, once in a
    process, that it creates a file once.

    Parameters
    ----------
    storage : Storage
        Where the table is.
    path : str
        Of the file, from the root.
    data : bytes or iterable of bytes
        Each iteration makes the same pieces.
    folder : str
        Where the store proves itself, from the root.
    is_ours : function(bytes) -> bool
        Whether a file's content is this one's, as an id of the transaction in it shows.
    ready : function(), optional
        Called before the file can be seen; it is not created if it raises, and that error is raised.

    Returns
    -------
    str, Unsettled or Rejected
        ``created``, or ``exists`` if the file is another one.

    Raises
    ------
    EngineError
        Of ``ready``: nothing was created.
    CommitError
        If the store creates a file twice.
    """
    prove_exclusive(storage, folder)
    failures: list[EngineError] = []
    check = None if ready is None else _Checked(ready)
    for attempt in range(PUTS):
        if attempt:
            time.sleep(PAUSE * 4 ** (attempt - 1))
        try:
            put = storage.put_if_absent(path, data) if check is None else storage.put_if_absent(path, data, ready=check)
            # a client library may have repeated a put whose first answer was lost: the file that exists may be ours
            if put == "created" or is_ours(_content(storage, path)):
                return "created"
            return "exists"
        except FileNotFoundError:  # of a listing that lags
            continue
        except EngineError as e:
            if check is not None and e is check.error:
                raise
            if is_refusal(e) and not failures:
                return Rejected(e)
            failures.append(e)
    return Unsettled(PUTS, tuple(failures))


def _content(storage: Storage, path: str) -> bytes:
    (found,) = storage.read([RangeRequest(path)])
    return bytes(found)


class _Checked:
    """Calls a function, and keeps the error that it raises: a store's own errors look the same."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function
        self.error: BaseException | None = None

    def __call__(self) -> None:
        try:
            self._function()
        except BaseException as e:
            self.error = e
            raise


def is_refusal(error: EngineError) -> bool:
    """Whether a failed put was certainly rejected: the disk is full, the store forbids it or can't do it."""
    cause = error.__cause__
    if isinstance(cause, (PermissionError, NotImplementedError)):
        return True
    return isinstance(cause, OSError) and cause.errno in _REFUSALS


def prove_exclusive(storage: Storage, folder: str) -> None:
    """Prove, once a process and store, that the store creates a file once: among puts at once, and afterwards.

    Does nothing for local disks. Its files are deleted again.

    Parameters
    ----------
    storage : Storage
        The store.
    folder : str
        Where files are put for the proof, from the root.

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
        with _probe(storage, folder) as path:
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
def _probe(storage: Storage, folder: str) -> Iterator[str]:
    path = f"{folder}/.probe-{uuid.uuid4().hex}"
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
