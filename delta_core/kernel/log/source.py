"""TableLog: one table's log as a snapshot uses it: find a segment, read its commits, find protocol and metadata."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from delta_core.engines.records import ActionQuery, FileIdentity
from delta_core.errors import (
    CheckpointError,
    DeltaError,
    LogChangedError,
    LogError,
    TableNotFoundError,
    VersionNotFoundError,
)
from delta_core.kernel.log import parts
from delta_core.kernel.log.commit_chunks import BASE_COLUMNS
from delta_core.kernel.log.files import MOST_CHANGES
from delta_core.kernel.log.hint import Hint, read_hint
from delta_core.kernel.log.listing import LogListing, list_log
from delta_core.kernel.log.names import LOG_DIRECTORY, STAGED_DIRECTORY, commit_name
from delta_core.kernel.log.reconcile import Reconciled, reconcile
from delta_core.kernel.log.segment import choose_segment
from delta_core.kernel.plugins.plans import LogFile, LogSegment
from delta_core.kernel.protocol.actions import Metadata, Protocol, parse_action
from delta_core.kernels.arrow_buffers import number_array
from delta_core.kernels.json_actions import ParsedActions
from delta_core.runtime.processes import cached_property

if TYPE_CHECKING:
    from delta_core.engines.engine import Engine
    from delta_core.kernel.log.cache_folder import SnapshotCache
    from delta_core.kernel.log.checkpoint import CheckpointReader
    from delta_core.kernel.plugins.catalog import CommitSource, StagedCommit

__all__ = ["LogContents", "LogMark", "TableLog", "concat_actions", "newest"]

#: Kinds that opening a table never needs: they can be as large as the rest of a commit.
_PASSED_OVER = frozenset({"commitInfo", "cdc"})
_MAX_CHUNKS = 64


class LogMark(Struct, frozen=True):
    """A file of a log that is this table's alone: a table made again at the same place has another one of its name."""

    name: str
    identity: FileIdentity


class LogContents(Struct, frozen=True, dict=True):
    """The parts of the log that were read to build a version.

    Parameters
    ----------
    tail : ParsedActions
        The actions of the commits above the checkpoint, oldest first.
    checkpoint : CheckpointReader or None
    rejected : tuple of str
        Checkpoint files that turned out to be unreadable.
    by_checksum : bool
        Protocol or metadata are a version checksum's.
    mark : LogMark or None
        One of its files, as it was before any was read.
    identities : tuple of str or None
        The identity of each file of the segment, as of before any was read; the
        checkpoint's first. None if it is not known or no cache needs it.
    """

    segment: LogSegment
    tail: ParsedActions
    checkpoint: CheckpointReader | None
    protocol: Protocol
    metadata: Metadata
    rejected: tuple[str, ...] = ()
    by_checksum: bool = False
    mark: LogMark | None = None
    identities: tuple[str, ...] | None = None

    @cached_property
    def reconciled(self) -> Reconciled:
        """Which file actions of the commits count, and the keys that they hide in the checkpoint."""
        compacted = {f.end_version for f in self.segment.deltas if f.kind == "compacted"}
        return reconcile(self.tail, compacted)

    def newest(self, kind: str, *key: str) -> dict[str, dict[str, Any]]:
        """Return a kind's newest actions by the fields of its key, from commits and checkpoint.

        Parameters
        ----------
        kind : str
            The kind of action.
        *key : str
            The fields of its key.
        """
        out = newest(self.tail.other_actions, kind, key)
        if self.checkpoint is not None:
            for value in self.checkpoint.actions(kind)[kind]:
                out.setdefault(_key(value, key), value)
        return out


class Newer(Struct, frozen=True):
    """The commits above a segment, and a mark of the log as it was listed with them."""

    commits: list[LogFile]
    mark: LogMark | None


def _listed_mark(file: LogFile) -> LogMark | None:
    if file.size is None or file.modified_ms is None:
        return None
    return LogMark(file.name, FileIdentity(file.size, file.tag, file.modified_ms))


def _listed_identity(file: LogFile) -> FileIdentity | None:
    if file.data is not None:
        return FileIdentity(len(file.data), parts.sha256(file.data).hexdigest())
    if file.size is None or not file.tag:  # stores list times in whole seconds, too coarse for a file written again
        return None
    return FileIdentity(file.size, file.tag, file.modified_ms)


class _CatalogFiles(Struct, frozen=True):
    """The versions of a catalog and the log: the latest one, the ratified commits by version, and the listing."""

    latest: int
    ratified: Mapping[int, LogFile]
    listing: LogListing


class TableLog:
    """The log of one table, through an engine; and its catalog, if one decides the versions.

    Parameters
    ----------
    recover : function(), optional
        Called before each listing: publishes to the log what was committed and is not there yet.
    cache : SnapshotCache, optional
        The folder in which processes share the file tables of versions.
    """

    def __init__(
        self,
        engine: Engine,
        uri: str,
        commits: CommitSource | None = None,
        recover: Callable[[], None] | None = None,
        cache: SnapshotCache | None = None,
    ) -> None:
        self.engine = engine
        self.uri = uri
        self.catalog = commits
        self._recover = recover
        self.cache = cache

    def _list(self, start: int = 0, hint: Hint | None = None) -> LogListing:
        if self._recover is not None:
            self._recover()
        return list_log(self.engine.storage, start, hint)

    def read(
        self,
        version: int | None = None,
        rejected: Sequence[str] = (),
        failure: CheckpointError | None = None,
        segment: LogSegment | None = None,
        explains: bool = True,
    ) -> LogContents:
        """Find and read what makes a version; None for the latest. ``segment``: its files, if they were chosen already.

        ``explains``: whether the error of a place without a table states what is there, for which it is listed.

        A checkpoint that can't be read is passed over if older files can serve; ``rejected`` ones are not tried. If
        files are replaced or deleted while they are read, the log is listed again.

        Parameters
        ----------
        version : int, optional
            The version; the latest unless given.
        rejected : sequence of str
            Names of checkpoint files that can't be read.
        failure : CheckpointError, optional
            The error of the last of them, for which the version is read again.
        segment : LogSegment, optional
            The log files of the version, if they were chosen already.
        explains : bool
            Whether the error of a place without a table states what is there, which takes a listing.
        """
        rejected = list(rejected)
        changes = 0
        while True:
            try:
                return replace(
                    self.contents(segment or self.segment(version, rejected, explains)), rejected=tuple(rejected)
                )
            except CheckpointError as e:
                if isinstance(e, LogChangedError) and changes < MOST_CHANGES:
                    changes += 1
                    segment = None
                    continue
                segment = None
                if failure is not None and str(e) == str(failure):
                    raise
                failure = e
                rejected += [str(e.facts.get("path", "")).removeprefix("_delta_log/")]
            except (LogError, VersionNotFoundError, TableNotFoundError):
                if failure is not None:
                    raise failure from None
                raise

    def again(self, contents: LogContents) -> LogContents:
        """Read a version again from a fresh listing, because its files changed.

        Parameters
        ----------
        contents : LogContents
            The version as it was read.

        Raises
        ------
        LogError
            If another table has been made at its place.
        VersionNotFoundError
            If the version is gone.
        """
        found = self.read(contents.segment.version, contents.rejected)
        if found.metadata.id != contents.metadata.id:
            raise LogError(
                f"The table at {self.uri} is another one by now: its id is {found.metadata.id}, that of the table "
                f"which was opened is {contents.metadata.id}. Open it again.",
                path=self.uri,
                version=contents.segment.version,
            )
        return found

    def instead_of(self, contents: LogContents, failure: CheckpointError, attempt: int) -> LogContents:
        """Read a version again whose files failed after it was opened.

        After a change from a fresh listing, `MOST_CHANGES` times; otherwise from what lies before the checkpoint,
        and if nothing does, the failure is raised.

        Parameters
        ----------
        contents : LogContents
            The version as it was read.
        failure : CheckpointError
            The error.
        attempt : int
            How many times in a row the version has failed.
        """
        if isinstance(failure, LogChangedError) and attempt <= MOST_CHANGES:
            return self.again(contents)
        if contents.checkpoint is None:
            raise failure
        names = [f.name for f in contents.checkpoint.checkpoint.files]
        return self.read(contents.segment.version, [*contents.rejected, *names], failure)

    def without_checksum(self, contents: LogContents) -> LogContents:
        """Read a version again without its checksum, whose protocol and metadata make no table.

        Parameters
        ----------
        contents : LogContents
            The version as it was read.
        """
        return self.read(segment=replace(contents.segment, checksum=None))

    def segment(self, version: int | None = None, rejected: Sequence[str] = (), explains: bool = True) -> LogSegment:
        """Choose the log files of a version. Two calls: the hint and a listing from it.

        Parameters
        ----------
        version : int, optional
            The version; the latest unless given.
        rejected : sequence of str
            Names of checkpoint files that can't be read.
        explains : bool
            Whether the error of a place without a table states what is there, which takes a listing.
        """
        if self.catalog is not None:
            return self._catalog_segment(version, rejected)
        hint = None if rejected else read_hint(self.engine.storage)
        usable = hint is not None and (version is None or hint.version <= version)
        listing = self._list(hint.version if usable and hint is not None else 0, hint)
        return self._choose(listing, version, rejected, explains)

    def _choose(self, listing: LogListing, version: int | None, rejected: Sequence[str], explains: bool) -> LogSegment:
        hint = listing.hint
        if listing.start > 0:
            # a dangling hint must not fail the load: without a checkpoint here, look at the whole log
            covered = any(f.kind == "checkpoint" for f in listing.files)
            with contextlib.suppress(VersionNotFoundError, LogError):
                if covered:
                    segment = choose_segment(listing.files, version, hint=hint, where=self.uri)
                    if segment.checkpoint is not None:
                        return _with_embedded(segment, listing)
            listing = self._list(0, hint)
        try:
            segment = choose_segment(listing.files, version, hint=hint, where=self.uri, rejected=rejected)
        except TableNotFoundError as e:
            why = self.why_no_table() if explains else ""
            raise (TableNotFoundError(f"No Delta table at {self.uri}. {why}", **e.facts) if why else e) from None
        return _with_embedded(segment, listing)

    def why_no_table(self) -> str:
        """Return what is at the place instead of a table, as a sentence; empty if that cannot be determined."""
        storage = self.engine.storage
        return parts.why_no_table(storage.root) if self._is_local else parts.why_no_table_on_store(storage)

    def _catalog_files(self) -> _CatalogFiles:
        """Query the catalog, then list the log."""
        assert self.catalog is not None
        latest, staged = self.catalog.latest(None)
        if latest < 0:
            raise TableNotFoundError(f"The catalog has no table at {self.uri} yet.", path=self.uri)
        ratified = {c.version: _staged_file(c) for c in staged if c.version <= latest}
        return _CatalogFiles(latest, ratified, self._list(0, read_hint(self.engine.storage)))

    def _catalog_segment(
        self, version: int | None, rejected: Sequence[str], found: _CatalogFiles | None = None
    ) -> LogSegment:
        files = found or self._catalog_files()
        latest, ratified, listing = files.latest, files.ratified, files.listing
        target = latest if version is None else version
        if target > latest:
            raise VersionNotFoundError(
                f"Version {target} of {self.uri} does not exist; its catalog's latest is {latest}.",
                version=target,
                latest=latest,
            )
        merged = self._merged(files)
        segment = choose_segment(merged, target, hint=listing.hint, where=self.uri, rejected=rejected)
        note = f"The catalog's latest version is {latest}; {len(ratified)} of its commits replace published ones."
        return replace(segment, notes=(*segment.notes, note))

    def _merged(self, found: _CatalogFiles) -> list[LogFile]:
        # the catalog's commit beats a published one, and what lies above its latest version does not exist
        published = [f for f in found.listing.files if f.end_version <= found.latest and f.kind != "staged"]
        files = [f for f in published if not (f.kind == "commit" and f.version in found.ratified)]
        return sorted([*files, *found.ratified.values()], key=lambda f: (f.version, f.name))

    def is_latest(self, version: int) -> bool:
        """Whether a version is known to be the latest without a listing.

        Two looks at this machine's disk, however long the log. Always False elsewhere: there a listing from the
        version on is one call.

        Parameters
        ----------
        version : int
            The version.
        """
        if self.catalog is not None or not self._is_local:
            return False
        storage = self.engine.storage
        try:
            storage.stat([f"{LOG_DIRECTORY}/{commit_name(version)}"])
        except FileNotFoundError:
            return False
        try:
            storage.stat([f"{LOG_DIRECTORY}/{commit_name(version + 1)}"])
        except FileNotFoundError:
            return True
        return False

    def is_there(self, mark: LogMark | None) -> bool:
        """Whether a file of the log is still the same: a look at this machine's disk. Always False elsewhere.

        Parameters
        ----------
        mark : LogMark, optional
            A file of the log as it was seen last.
        """
        if mark is None or self.catalog is not None or not self._is_local:
            return False
        return self._local_mark(mark.name) == mark

    def _local_mark(self, name: str) -> LogMark | None:
        try:
            (found,) = self.engine.storage.identify([f"{LOG_DIRECTORY}/{name}"])
        except FileNotFoundError:
            return None
        return LogMark(name, found)

    def mark_of(self, segment: LogSegment) -> LogMark | None:
        """Return the newest file of a segment with a known size or time; a look on a local disk, else no call.

        Parameters
        ----------
        segment : LogSegment
            The log files of a version.
        """
        own = [*segment.commits, *(segment.checkpoint.files if segment.checkpoint is not None else ())]
        if self.catalog is not None or not own:
            return None
        if self._is_local:
            return self._local_mark(own[len(segment.commits) - 1].name)
        return next((m for f in reversed(own) if (m := _listed_mark(f)) is not None), None)

    def commits_above(self, segment: LogSegment, mark: LogMark | None, is_trusted: bool = False) -> Newer | None:
        """List the commits above a segment.

        None if files of its own are gone, so that it can't be built upon, and where the mark shows another table's log
        or is not listed. If ``is_trusted``, no mark is needed.

        Parameters
        ----------
        segment : LogSegment
            The log files of a version.
        mark : LogMark, optional
            A file of the log as it was seen last.
        is_trusted : bool
            Whether no mark is needed, because the log was listed a moment ago.
        """
        own = [*segment.deltas, *(segment.checkpoint.files if segment.checkpoint is not None else ())]
        if self.catalog is not None:
            found = self._catalog_files()
            if not self._are_there(own, found):
                return None
            newer = [f for f in self._catalog_segment(None, (), found).commits if f.version > segment.version]
            return Newer(newer, None)
        first = min(f.version for f in own)
        if mark is not None:
            first = min(first, int(mark.name[:20]))
        by_name = {f.name: f for f in self._list(first).files}
        if any(f.name not in by_name for f in own):
            return None
        if self._is_local:
            if not self.is_there(mark):
                return None
        else:
            listed = None if mark is None or mark.name not in by_name else _listed_mark(by_name[mark.name])
            if listed != mark or mark is None and not is_trusted:
                return None
            commits = (by_name[f.name] for f in reversed(segment.deltas))
            mark = next((m for f in commits if (m := _listed_mark(f)) is not None), mark)
        return Newer([f for f in by_name.values() if f.kind == "commit" and f.version > segment.version], mark)

    def _are_there(self, own: Sequence[LogFile], found: _CatalogFiles) -> bool:
        """Whether files of a segment can still be read: a staged commit may be deleted as soon as it is published."""
        named = {f.name for f in (*found.listing.files, *found.ratified.values())}
        gone = [f for f in own if f.name not in named and f.data is None]
        if any(f.kind != "staged" for f in gone):
            return False
        try:
            self.engine.storage.stat([f"{LOG_DIRECTORY}/{f.name}" for f in gone])
        except FileNotFoundError:
            return False
        return True

    def listed(self) -> list[LogFile]:
        """Return every file of the log in order of versions.

        If a catalog decides the versions, its commits replace published ones, and what is above its latest is left out.
        """
        if self.catalog is None:
            return list(self._list().files)
        return self._merged(self._catalog_files())

    def commit_files(self, start: int = 0) -> list[LogFile]:
        """List the commits from a version on, as far as they still exist.

        Parameters
        ----------
        start : int
            The first version.
        """
        if self.catalog is not None:
            return [f for f in self._catalog_segment(None, ()).commits if f.version >= start]
        return [f for f in self._list(start).files if f.kind == "commit"]

    def contents(self, segment: LogSegment) -> LogContents:
        """Read a version from these files of the log and no others.

        Parameters
        ----------
        segment : LogSegment
            The log files of a version.

        Raises
        ------
        LogError
            If they have no protocol or metadata, or a commit can't be read.
        CheckpointError
            If the checkpoint can't be read.
        """
        mark = self.mark_of(segment)
        identities = None if self.cache is None else self.identities(segment)
        chosen = segment.checkpoint
        checkpoint = None if chosen is None else parts.CheckpointReader(self.engine.logs, chosen)
        tail = self._read_tail(segment, checkpoint)
        protocol, metadata = newest_definition(tail.other_actions, self.uri)
        checksum = None
        if protocol is None or metadata is None:
            checksum = self._from_checksum(segment, tail)
            earlier = checksum or _from_checkpoint(checkpoint, self.uri)
            protocol, metadata = protocol or earlier[0], metadata or earlier[1]
        for found, name in ((protocol, "protocol"), (metadata, "metaData")):
            if found is None and checkpoint is not None:
                raise checkpoint.without(name)
            if found is None:
                raise LogError(
                    f"Version {segment.version} of {self.uri} has no {name} action in its "
                    f"{len(segment.deltas)} commits: the log is not whole.",
                    path=self.uri,
                    version=segment.version,
                    action=name,
                )
        assert protocol is not None and metadata is not None
        return LogContents(
            segment,
            tail,
            checkpoint,
            protocol,
            metadata,
            by_checksum=checksum is not None,
            mark=mark,
            identities=identities,
        )

    def identities(self, segment: LogSegment) -> tuple[str, ...] | None:
        """Return what distinguishes each file that a version is built from: the checkpoint's, then those above it.

        As the listing reports if it has entity tags, else a look at each file. None if a file is gone, or its store
        reports neither an entity tag nor a time.

        Parameters
        ----------
        segment : LogSegment
            The log files of the version.
        """
        files = [*(segment.checkpoint.files if segment.checkpoint is not None else ()), *segment.deltas]
        found = [_listed_identity(f) for f in files]
        missing = [i for i, identity in enumerate(found) if identity is None]
        if missing:
            try:
                looked = self.engine.storage.identify([f"{LOG_DIRECTORY}/{files[i].name}" for i in missing])
            except (OSError, DeltaError):
                return None
            for i, identity in zip(missing, looked, strict=True):
                if not identity.tag and identity.modified_ms is None:
                    return None
                found[i] = identity
        return tuple(f"{f.name}:{identity}" for f, identity in zip(files, found, strict=True))

    def is_unchanged(self, segment: LogSegment, identities: Sequence[str]) -> bool:
        """Whether a look at each file of a version finds what `identities` found.

        Parameters
        ----------
        segment : LogSegment
            The log files of the version.
        identities : sequence of str
            Their identities, of before they were read.
        """
        files = [*(segment.checkpoint.files if segment.checkpoint is not None else ()), *segment.deltas]
        stored = [(f, known) for f, known in zip(files, identities, strict=True) if f.data is None]
        try:
            looked = self.engine.storage.identify([f"{LOG_DIRECTORY}/{f.name}" for f, _ in stored])
        except (OSError, DeltaError):
            return False
        for (f, known), now in zip(stored, looked, strict=True):
            listed = _listed_identity(f)
            if not (f"{f.name}:{now}" == known if listed is None else now.is_as_listed(listed)):
                return False
        return True

    def _read_tail(self, segment: LogSegment, checkpoint: CheckpointReader | None) -> ParsedActions:
        """Read the commits; on a remote store the checkpoint's footers come in the same round."""
        query = ActionQuery(BASE_COLUMNS, skip=_PASSED_OVER)

        def commits() -> ParsedActions:
            return self.engine.logs.read_commits(segment.deltas, query)

        if checkpoint is None:
            return commits()
        tasks = [commits, checkpoint.prefetch]
        found = self.engine.map(lambda task: task(), tasks) if not self._is_local else [commits()]
        return found[0]

    @property
    def _is_local(self) -> bool:
        return self.engine.storage.local_path("") is not None

    def _from_checksum(
        self, segment: LogSegment, tail: ParsedActions
    ) -> tuple[Protocol | None, Metadata | None] | None:
        """Return protocol and metadata of a checksum file within the segment, None if there is none."""
        if segment.checksum is None or segment.checkpoint is None:
            return None
        found = parts.read_checksum(self.engine.storage, segment.checksum)
        if found is None:
            return None
        try:
            where = segment.checksum.name
            return Protocol.parse(found["protocol"], where), Metadata.parse(found["metadata"], where)
        except LogError:
            return None


def _from_checkpoint(checkpoint: CheckpointReader | None, where: str) -> tuple[Protocol | None, Metadata | None]:
    if checkpoint is None:
        return None, None
    found = checkpoint.actions("protocol", "metaData")
    name = checkpoint.checkpoint.files[0].name
    protocol = Protocol.parse(found["protocol"][-1], name) if found["protocol"] else None
    metadata = Metadata.parse(found["metaData"][-1], name) if found["metaData"] else None
    return protocol, metadata


def _staged_file(commit: StagedCommit) -> LogFile:
    if isinstance(commit.content, bytes):
        name = commit_name(commit.version)
        return LogFile(
            name, "staged", commit.version, commit.version, modified_ms=commit.timestamp_ms, data=commit.content
        )
    name = commit.content.removeprefix("_delta_log/")
    if "/" not in name:
        name = f"{STAGED_DIRECTORY.removeprefix('_delta_log/')}/{name}"
    return LogFile(name, "staged", commit.version, commit.version, modified_ms=commit.timestamp_ms)


def _with_embedded(segment: LogSegment, listing: LogListing) -> LogSegment:
    """Attach what the hint embeds, if it belongs to the very checkpoint that was chosen."""
    checkpoint, hint = segment.checkpoint, listing.hint
    if checkpoint is None or hint is None or hint.embedded is None or hint.version != checkpoint.version:
        return segment
    path = str(hint.embedded.get("path") or "").rpartition("/")[2]
    if len(checkpoint.files) != 1 or path != checkpoint.files[0].name:
        return segment
    return replace(segment, checkpoint=replace(checkpoint, embedded=hint.embedded))


def newest_definition(actions: pa.Table, where: str) -> tuple[Protocol | None, Metadata | None]:
    """Return the last protocol and metadata among the actions of commits, oldest first.

    Parameters
    ----------
    actions : pyarrow.Table, **n rows**
        ``other_actions`` of `ParsedActions`.
    where : str
        The place, for errors.
    """
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    kinds = actions.column("kind").to_pylist()
    for i in range(len(kinds) - 1, -1, -1):
        if kinds[i] == "protocol" and protocol is None:
            protocol = Protocol.parse(*_value(actions, i, where))
        elif kinds[i] == "metaData" and metadata is None:
            metadata = Metadata.parse(*_value(actions, i, where))
        if protocol is not None and metadata is not None:
            break
    return protocol, metadata


def _value(actions: pa.Table, row: int, where: str) -> tuple[Mapping[str, Any], str]:
    version = actions.column("version")[row].as_py()
    value = parse_action(actions.column("json")[row].as_py(), f"version {version} of {where}")
    kind = actions.column("kind")[row].as_py()
    if not isinstance(value, dict):
        raise LogError(
            f"Action {kind} in version {version} of {where} is {value!r}, expected an object.", version=version
        )
    return value, f"version {version} of {where}"


def newest(actions: pa.Table, kind: str, key: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a kind's newest action by the fields of its key among the actions of commits, oldest first.

    Parameters
    ----------
    actions : pyarrow.Table, **n rows**
        ``other_actions`` of `ParsedActions`.
    kind : str
        The kind of action.
    key : sequence of str
        The fields of its key.

    Raises
    ------
    LogError
        For an action that is not an object.
    """
    kinds = actions.column("kind").to_pylist()
    rows = [i for i, k in enumerate(kinds) if k == kind]
    texts = actions.column("json").take(number_array(np.array(rows, np.int64))).to_pylist() if rows else []
    values = [parse_action(t, f"the {kind} actions") for t in texts]
    invalid = next((v for v in values if not isinstance(v, dict)), None)
    if invalid is not None:
        raise LogError(f"An action {kind} is {str(invalid)[:200]}, expected an object.", action=kind)
    return {_key(v, key): v for v in values}


def _key(value: Mapping[str, Any], key: Sequence[str]) -> str:
    return str(value.get(key[0])) if len(key) == 1 else json.dumps([value.get(k) for k in key])


def concat_actions(first: ParsedActions, second: ParsedActions) -> ParsedActions:
    """Join the actions of two runs of commits, oldest first.

    Parameters
    ----------
    first, second : ParsedActions
        The actions of the older and of the newer commits.
    """
    return ParsedActions(
        *(_concat(getattr(first, n), getattr(second, n)) for n in ("adds", "removes", "cdcs", "other_actions"))
    )


def _concat(first: pa.Table, second: pa.Table) -> pa.Table:
    if not first.num_rows or not second.num_rows:
        return second if not first.num_rows else first
    joined = pa.concat_tables([first, second])
    # many small commits on one open table would pile up chunks
    return joined.combine_chunks() if joined.column(0).num_chunks > _MAX_CHUNKS else joined
