"""The commits up to one version: when each was made, what it specifies, and which was the last at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from delta_core.engines.records import ActionQuery
from delta_core.errors import VersionNotFoundError
from delta_core.kernel.log.commits import Commit, CommitTimes, read_commits, read_infos
from delta_core.kernel.log.source import TableLog
from delta_core.kernel.plugins.plans import LogFile, LogSegment
from delta_core.kernel.plugins.rules import CommitTimestamp
from delta_core.kernel.protocol.actions import ActionField
from delta_core.runtime.processes import cached_property

__all__ = ["CommitHistory"]


class CommitHistory:
    """The commits of a table's log up to one version; nothing is listed or read before it is requested.

    Parameters
    ----------
    segment : LogSegment
        The version's own files: commits that it has need no listing.
    rule : function()
        Returns where in-commit timestamps are, None if the table has none.
    fields : sequence of ActionField
        The fields that plugins add to file actions.
    """

    def __init__(
        self,
        log: TableLog,
        segment: LogSegment,
        rule: Callable[[], CommitTimestamp | None],
        fields: Sequence[ActionField],
    ) -> None:
        self._log = log
        self._segment = segment
        self._rule = rule
        self._fields = tuple(fields)

    @cached_property
    def files(self) -> list[LogFile]:
        """The commits that still exist, oldest first."""
        return [f for f in self._log.commit_files() if f.version <= self._segment.version]

    @cached_property
    def times(self) -> CommitTimes:
        """When each was made."""
        return self._times_of(self.files)

    def _times_of(self, files: Sequence[LogFile]) -> CommitTimes:
        return CommitTimes(self._log.engine, files, self._rule(), self._log.uri)

    def own_time(self) -> int | None:
        """Return the version's own commit time, ms since the epoch, from its commit alone; None if that is gone."""
        version = self._segment.version
        last = [f for f in self._segment.commits[-1:] if f.version == version]
        return self._times_of(last).of([version])[version] if last else None

    def infos(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return ``commitInfo`` of the commits, newest first, each with ``version`` and ``timestamp``.

        The timestamp is the commit time by which versions are selected, not the one that a writer noted: the two differ
        by as long as the commit took, and by more if files were copied.

        Parameters
        ----------
        limit : int, optional
            The most commits; all unless given.
        """
        files = self.files[::-1][:limit]
        if not files:
            return []
        infos = read_infos(self._log.engine, files)
        times = self.times.of([f.version for f in files])
        return [{**infos.get(f.version, {}), "timestamp": times[f.version], "version": f.version} for f in files]

    def read(self, start: int, end: int) -> Iterator[Commit]:
        """Yield the commits of versions ``start`` to ``end``, oldest first.

        Parameters
        ----------
        start, end : int
            The first and the last version.

        Raises
        ------
        VersionNotFoundError
            If a commit of the range was cleaned up.
        """
        chosen = self._files_of(range(start, end + 1))
        return read_commits(self._log.engine, chosen, lambda: self.times, self._fields, self._log.uri)

    def definition_changes(self, start: int) -> list[int]:
        """Return the versions from ``start`` on whose commits contain metadata, ascending.

        Parameters
        ----------
        start : int
            The first version.

        Raises
        ------
        VersionNotFoundError
            If one of the commits was cleaned up.
        """
        chosen = self._files_of(range(start, self._segment.version + 1))
        if not chosen:
            return []
        actions = self._log.engine.logs.read_commits(chosen, ActionQuery(kinds=frozenset({"metaData"}))).other_actions
        return sorted(set(actions.column("version").to_pylist()))

    def _files_of(self, versions: range) -> list[LogFile]:
        files = {f.version: f for f in self._segment.commits}
        if not all(v in files for v in versions):
            files = {f.version: f for f in self.files}
        for v in versions:
            if v not in files:
                first = min(files, default=None)
                raise VersionNotFoundError(
                    f"The commit of version {v} of {self._log.uri} is not there; the first that exists is {first}.",
                    version=v,
                    first=first,
                )
        return [files[v] for v in versions]
