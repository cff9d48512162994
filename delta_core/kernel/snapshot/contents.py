"""The contents of a version: its live files, its other actions, and the commits that led to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from delta_core.errors import InvalidArgumentError, LogChangedError, VersionNotFoundError
from delta_core.kernel import log as delta_log
from delta_core.kernel.log import parts
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.source import LogContents
from delta_core.kernel.plugins.rules import CommitTimestamp
from delta_core.kernel.protocol.actions import SetTransaction
from delta_core.kernel.snapshot.definition import SnapshotDefinition
from delta_core.kernel.snapshot.live_files import LiveFileListing, domains_of, read_of
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import bool_array
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from delta_core.engines.interface import CheckpointHandle
    from delta_core.kernel.log.commits import Commit
    from delta_core.kernel.log.history import CommitHistory

__all__ = ["SnapshotContents"]

T = TypeVar("T")


class SnapshotContents(SnapshotDefinition):
    """The files, actions and commits of a version, read from the log when they are first used."""

    # --- files and other reconciled actions ---

    @property
    def files(self) -> FileSet:
        """The live files. Reads the footers of the checkpoint; columns only when they are requested.

        Examples
        --------
        >>> table.snapshot().files.count
        2
        """
        files = self._files
        if files is None:
            files = self._files = self._list_files()
        return files

    def _list_files(self) -> FileSet:
        listing = self._listing
        if self._later is not None:
            # what is kept of the earlier version may be on files that are replaced by now
            with suppress(LogChangedError):
                files = self._later.files_after(self.engine, self.action_fields)
                return listing.renewable(files, self._contents)
        return self._reading(listing.of)

    @property
    def _listing(self) -> LiveFileListing:
        return LiveFileListing(self.context.log, self.state, self.plugins, self.action_fields)

    def reload(self) -> None:
        """Read the version again from a fresh listing, for engines whose own readers found files of its log changed.

        Raises
        ------
        LogError
            If another table has been made at its place.
        VersionNotFoundError
            If the version is gone.
        """
        self._contents = self.context.log.again(self._contents)
        self._later = None
        self._files = None

    def _reading(self, read: Callable[[LogContents], T]) -> T:
        """Run what reads the log's files; if it fails on a checkpoint, again on what replaces that."""
        found, self._contents = read_of(self.context.log, self._contents, read)
        return found

    def touched(self) -> pa.Table:
        """Return what the commits above the checkpoint touch: ``path`` and ``dvId``, as the log spells them.

        It hides the checkpoint's own rows.

        Examples
        --------
        >>> table.snapshot().touched().num_rows
        2
        """
        return self.files.touched

    def tombstones(self, columns: Sequence[str] = ("deletionTimestamp",)) -> pa.Table:
        """Return the removed files that readers of older versions may need: path, dvId and the requested columns.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove`` beside path and dvId.

        Examples
        --------
        >>> table.optimize.compact()["numFilesRemoved"]
        2
        >>> table.snapshot().tombstones().num_rows
        2
        """

        def read(contents: LogContents) -> pa.Table:
            return pa.concat_tables([table for _, table in self._tombstones_of(contents, columns)])

        return self._reading(read)

    def tombstone_tables(self, columns: Sequence[str]) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        """Yield the tombstones piece by piece, each with the checkpoint file that it is in: what bounds memory.

        Parameters
        ----------
        columns : sequence of str
            Columns of ``remove`` beside path and dvId.

        Raises
        ------
        LogChangedError
            If files of the log are replaced meanwhile.
        """
        yield from self._tombstones_of(self._contents, columns)

    def _tombstones_of(
        self, contents: LogContents, columns: Sequence[str]
    ) -> Iterator[tuple[CheckpointHandle | None, pa.Table]]:
        found = contents.reconciled
        names = ["path", "dvId", *(c for c in columns if c not in ("path", "dvId"))]
        # commits without a tombstone are not parsed again
        deltas = contents.segment.deltas if found.removes.any() else ()
        newer = parts.read_removes(self.engine.logs, deltas, names, self.action_fields)
        if deltas:
            if not newer.column("path").equals(contents.tail.removes.column("path")):
                raise LogChangedError.of_replaced(self.uri)
            newer = pc.filter(newer, bool_array(found.removes))
        yield None, newer
        if contents.checkpoint is not None:
            for handle, table in contents.checkpoint.removes(names, self.action_fields, self._listing.sidecars):
                hidden = found.keys.contains(table.column("path"), table.column("dvId"))
                yield handle, pc.filter(table, bool_array(~hidden)).cast(newer.schema)

    def transactions(self) -> dict[str, SetTransaction]:
        """Return the last version that each application wrote, by application id.

        Examples
        --------
        >>> properties = CommitProperties(app_transactions=[AppTransaction("nightly", 7)])
        >>> write_deltalake(table, rows, mode="append", commit_properties=properties)
        >>> table.snapshot().transactions()["nightly"].version
        7
        """
        found = self._reading(lambda contents: contents.newest("txn", "appId"))
        return {a: SetTransaction.parse(v, f"version {self.version} of {self.uri}") for a, v in found.items()}

    def domains(self) -> dict[str, str]:
        """Return every domain's configuration, removed ones left out.

        Examples
        --------
        >>> tracked.snapshot().domains()
        {'delta.rowTracking': '{"rowIdHighWaterMark":2}'}
        """
        return self._reading(domains_of)

    def custom_actions(self, kind: str) -> list[dict[str, Any]]:
        """Return the live actions of a kind that a plugin declares, reconciled by its key.

        Parameters
        ----------
        kind : str
            The kind of action.

        Raises
        ------
        InvalidArgumentError
            For a kind that no feature of the table declares.

        Examples
        --------
        >>> try:
        ...     table.snapshot().custom_actions("acme.origin")
        ... except ValueError as error:
        ...     print(error)
        No feature of the table declares the action 'acme.origin'; declared: [].
        """
        declared = {k.name: k for f in self.plugins.features.values() for k in f.actions}
        if kind not in declared:
            raise InvalidArgumentError(
                f"No feature of the table declares the action {kind!r}; declared: {sorted(declared)}."
            )
        return list(self._reading(lambda contents: contents.newest(kind, *declared[kind].key)).values())

    def others(self, kind: str) -> list[dict[str, Any]]:
        """Return `custom_actions` of a kind; the earlier name of that method.

        Parameters
        ----------
        kind : str
            The kind of action.

        Examples
        --------
        >>> try:
        ...     table.snapshot().others("acme.origin")
        ... except ValueError as error:
        ...     print(error)
        No feature of the table declares the action 'acme.origin'; declared: [].
        """
        return self.custom_actions(kind)

    # --- commits and time ---

    @cached_property
    def _history(self) -> CommitHistory:
        def rule() -> CommitTimestamp | None:
            found: CommitTimestamp | None = self.plugins.single("commit_timestamps", table=self.state)
            return found

        return delta_log.CommitHistory(self.context.log, self.segment, rule, self.action_fields)

    @property
    def timestamp_ms(self) -> int:
        """When the version was committed, ms since the epoch.

        Examples
        --------
        >>> table.snapshot().timestamp_ms == table.history(1)[0]["timestamp"]
        True
        """
        return self._history.times.of([self.version])[self.version]

    @property
    def commit_timestamp_ms(self) -> int | None:
        """The version's own commit time, as `timestamp_ms` but read from its commit alone; None if that is gone.

        A file time is as the store has it, not made monotone.

        Examples
        --------
        >>> table.snapshot().commit_timestamp_ms >= table.snapshot(version=0).commit_timestamp_ms
        True
        """
        if self._commit_timestamp_ms is None:
            self._commit_timestamp_ms = self._history.own_time()
        return self._commit_timestamp_ms

    def version_at(self, timestamp_ms: int) -> int:
        """Return the last version, up to this one, that was committed at or before a time.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since the epoch, UTC.

        Examples
        --------
        >>> table.snapshot().version_at(table.snapshot().timestamp_ms)
        1
        """
        return self._history.times.version_at(timestamp_ms)

    def version_since(self, timestamp_ms: int) -> int:
        """Return the first version that was committed at or after a time; the one after this if none was.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since the epoch, UTC.

        Examples
        --------
        >>> table.snapshot().version_since(table.snapshot().timestamp_ms)
        1
        """
        try:
            before = self.version_at(timestamp_ms)
        except VersionNotFoundError:  # before the first commit that exists
            return int(self.history()[-1]["version"])
        (commit,) = self.commits(before, before)
        return before if commit.timestamp_ms == timestamp_ms else before + 1

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return ``commitInfo`` of the commits that exist, newest first, each with ``version`` and ``timestamp``.

        Parameters
        ----------
        limit : int, optional
            The most commits; all unless given.

        Examples
        --------
        >>> [commit["version"] for commit in table.snapshot().history()]
        [1, 0]
        """
        return self._history.infos(limit)

    def commits(self, start: int, end: int | None = None) -> Iterator[Commit]:
        """Yield the commits of versions ``start`` to ``end`` (this one unless given), oldest first.

        Parameters
        ----------
        start, end : int
            The first and the last version.

        Raises
        ------
        VersionNotFoundError
            If a commit of the range was cleaned up.

        Examples
        --------
        >>> [commit.version for commit in table.snapshot().commits(0)]
        [0, 1]
        """
        return self._history.read(start, self.version if end is None else end)

    def definition_changes(self, start: int) -> list[int]:
        """Return the versions, from ``start`` to this one, whose commits contain metadata.

        Parameters
        ----------
        start : int
            The first version.

        Raises
        ------
        VersionNotFoundError
            If a commit of the range was cleaned up.

        Examples
        --------
        >>> table.snapshot().definition_changes(0)
        [0]
        """
        return self._history.definition_changes(start)
