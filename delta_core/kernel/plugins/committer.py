"""The outcomes of publishing a commit: values, not exceptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Union

from msgspec import Struct

from delta_core.runtime.processes import cached_property

__all__ = ["Committed", "Committer", "Conflict", "Outcome", "Proposal"]


class Proposal(Struct, frozen=True, dict=True):
    """A commit that wants to become a version.

    Parameters
    ----------
    version : int
        The version.
    lines : bytes or iterable of bytes
        The commit's lines: whole, or in pieces that each iteration makes again, which may raise
        InvalidArgumentError; nothing must be committed then.
    txn_id : str
        Unique to the transaction: it is in ``commitInfo``, so that a commit whose fate is unknown can be found.
    timestamp_ms : int
        Its commit time.
    """

    version: int
    lines: bytes | Iterable[bytes]
    txn_id: str
    timestamp_ms: int

    @cached_property
    def data(self) -> bytes:
        """The commit's lines, whole."""
        return self.lines if isinstance(self.lines, bytes) else b"".join(self.lines)


class Committed(Struct, frozen=True):
    """The commit is a version of the table.

    ``path`` is where its bytes lie below ``_delta_log``; None if a catalog keeps them.

    Parameters
    ----------
    version : int
        The version.
    path : str or None
        The file of the commit, from ``_delta_log``; None if a catalog keeps it.
    """

    version: int
    path: str | None


class Conflict(Struct, frozen=True):
    """Another commit became this version first.

    Parameters
    ----------
    version : int
        The version.
    """

    version: int


Outcome = Union[Committed, Conflict]


class Committer(Protocol):
    """Makes commits into versions, each version once."""

    def commit(self, proposal: Proposal) -> Outcome:
        """Publish a commit, or specify that its version is taken.

        Parameters
        ----------
        proposal : Proposal
            The version, the actions and the place of the commit.

        Raises
        ------
        CommitStateUnknownError
            If it can't be found out whether the commit landed.
        CommitError
            If it certainly did not and another try makes no sense.
        """
        ...
