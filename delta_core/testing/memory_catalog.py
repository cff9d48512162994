"""A catalog in memory: ratifies each version once, in order, and forgets commits that are published."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from delta_core.kernel.plugins.catalog import StagedCommit
from delta_core.kernel.plugins.committer import Committed, Conflict, Outcome

__all__ = ["MemoryCatalog"]


class MemoryCatalog:
    """The catalog of one table, shared by its writers.

    Parameters
    ----------
    inline_below : int
        Commits of fewer bytes come inline.
    allowed : iterable of str
        The maintenance that it lets writers do.
    version : int
        The latest version that is published already; -1 for a table that is to be created.
    """

    def __init__(
        self, inline_below: int = 0, allowed: Iterable[str] = ("checkpoint", "checksum"), version: int = -1
    ) -> None:
        self.inline_below = inline_below
        self.ratified: dict[int, StagedCommit] = {}
        self.published_versions: list[int] = []
        self._version = version
        self._allowed = frozenset(allowed)
        self._lock = threading.Lock()

    def allows(self, operation: str) -> bool:
        """Whether writers may do a kind of maintenance."""
        return operation in self._allowed

    def latest(self, since: int | None = None) -> tuple[int, list[StagedCommit]]:
        """Return the latest version, and the commits above ``since`` that are not published."""
        with self._lock:
            return self._version, [c for v, c in sorted(self.ratified.items()) if since is None or v > since]

    def propose(self, version: int, commit: StagedCommit) -> Outcome:
        """Ratify a commit if its version is the next one."""
        with self._lock:
            if version != self._version + 1:
                return Conflict(version)
            self.ratified[version] = commit
            self._version = version
            return Committed(version, commit.content if isinstance(commit.content, str) else None)

    def published(self, version: int) -> None:
        """Forget the commits up to a version."""
        with self._lock:
            self.published_versions.append(version)
            self.ratified = {v: c for v, c in self.ratified.items() if v > version}
