"""What a catalog tells of a table whose versions it decides. Protocol: Catalog-managed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["CommitSource", "StagedCommit"]


@dataclass(frozen=True)
class StagedCommit:
    """A ratified commit that need not be published yet.

    Parameters
    ----------
    content : str or bytes
        The name of its file below ``_delta_log/_staged_commits`` (or its path from the table's root), or the
        commit itself.
    timestamp_ms : int or None
        When the catalog ratified it.
    """

    version: int
    content: str | bytes
    timestamp_ms: int | None = None


class CommitSource(Protocol):
    """A catalog, as one table sees it."""

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        """Return the latest ratified version and the ratified commits above ``since`` that may be unpublished."""
        ...

    def propose(self, version: int, commit: Any) -> Any:
        """Ask the catalog to ratify a commit; returns what `delta_core.commit` defines as its outcome."""
        ...

    def published(self, version: int) -> None:
        """Tell the catalog that every version up to this one stands in the log."""
        ...
