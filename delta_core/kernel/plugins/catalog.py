"""The description that a catalog has of a table whose versions it decides. Protocol: Catalog-managed tables."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

__all__ = ["MAINTENANCE", "CommitSource", "StagedCommit", "allows"]

#: The work of writers on a table beside commits, and whether a catalog that does not specify lets them.
MAINTENANCE = {
    "checkpoint": True,
    "checksum": True,
    "compact_log": False,
    "cleanup": False,
    "vacuum": False,
    "optimize": False,
}


class StagedCommit(Struct, frozen=True):
    """A ratified commit that need not be published yet.

    Parameters
    ----------
    version : int
        The version.
    content : str or bytes
        The name of its file below ``_delta_log/_staged_commits`` (or its path from the table's root), or the
        commit itself.
    timestamp_ms : int or None
        When the catalog ratified it; of a commit that is proposed its own time.
    data : bytes or None
        The commit itself if it is proposed; a catalog leaves it None.
    """

    version: int
    content: str | bytes
    timestamp_ms: int | None = None
    data: bytes | None = None


class CommitSource(Protocol):
    """A catalog, as one table sees it.

    A catalog may have further attributes. ``inline_below``: commits of fewer bytes are proposed themselves, not as
    files. ``allows(operation) -> bool``: which maintenance it lets writers do, of `MAINTENANCE`.
    """

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        """Return the latest ratified version, -1 before the first, and the ratified commits above ``since``.

        Commits that are published may be left out.

        Parameters
        ----------
        since : int, optional
            Only commits above this version are returned; all that the log may lack unless given.
        """
        ...

    def propose(self, version: int, commit: StagedCommit) -> object:
        """Propose a commit to the catalog, which ratifies each version once, after the one before it.

        Parameters
        ----------
        version : int
            The version that the commit is to become.
        commit : StagedCommit
            The file with its actions, which is written already.

        Returns
        -------
        object
            `plugins.committer.Conflict` if another commit became this version, anything else if this one did.

        Raises
        ------
        CommitError
            The catalog rejects the commit: it is no version, and will be none.
        Exception
            Any other, if it is not known which of them it is.
        """
        ...

    def published(self, version: int) -> None:
        """Report the catalog that every version up to this one is in the log.

        Parameters
        ----------
        version : int
            The last published version.
        """
        ...


def allows(catalog: CommitSource | None, operation: str) -> bool:
    """Whether an operation of `MAINTENANCE` may run; a table without a catalog allows all.

    Protocol: Maintenance Operations on Catalog-managed Tables.
    """
    if catalog is None:
        return True
    allows_operation = getattr(catalog, "allows", None)
    return MAINTENANCE[operation] if allows_operation is None else bool(allows_operation(operation))
