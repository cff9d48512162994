"""Commits one by one: history, commit times, and the file actions of a range of versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, Literal, get_args

import pyarrow as pa
from msgspec import Struct

from delta_core.engines.engine import Engine
from delta_core.engines.records import ActionQuery
from delta_core.errors import LogChangedError, LogError, VersionNotFoundError
from delta_core.kernel.log.commit_chunks import extra_fields, json_values
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.kernel.plugins.plans import LogFile
from delta_core.kernel.plugins.rules import CommitTimestamp
from delta_core.kernel.protocol.actions import ADD_FIELDS, REMOVE_FIELDS, ActionField, Metadata, Protocol, parse_action
from delta_core.kernels.arrow_buffers import int64_values, one_array

__all__ = ["Commit", "CommitTimes", "read_commits", "read_infos"]

#: How many commits one pass reads: bounds memory over long ranges.
_BATCH = 512
_COLUMNS = tuple(n for n in dict.fromkeys((*ADD_FIELDS, *REMOVE_FIELDS)) if n != "path")


FileActions = Literal["adds", "removes", "cdcs"]


class Commit(Struct, frozen=True):
    """One commit's actions.

    Parameters
    ----------
    version : int
        The version.
    stamps : function()
        Returns the commit times of a few versions, this one among them; requested when a time is.
    info : dict or None
        ``commitInfo``.
    protocol : Protocol or None
        The protocol action, if it has one.
    metadata : Metadata or None
        The metadata action, if it has one.
    rows : Mapping of str to (pyarrow.Table, int, int)
        Of ``adds``, ``removes`` and ``cdcs``: the file table of all commits that were read together, and the first and
        the number of this commit's rows in it.
    other_actions : tuple of (kind, value)
        Every other action.
    """

    version: int
    stamps: Callable[[], Mapping[int, int]]
    info: dict[str, Any] | None
    protocol: Protocol | None
    metadata: Metadata | None
    rows: Mapping[FileActions, tuple[pa.Table, int, int]]
    other_actions: tuple[tuple[str, Any], ...] = ()

    @property
    def adds(self) -> pa.Table:
        """The files that it adds, in the order of the lines."""
        return self._table("adds")

    @property
    def removes(self) -> pa.Table:
        """The files that it removes."""
        return self._table("removes")

    @property
    def cdcs(self) -> pa.Table:
        """Its change files."""
        return self._table("cdcs")

    @staticmethod
    def joined(commits: Sequence[Commit], kind: FileActions) -> pa.Table:
        """Return the file actions of several commits, in their order; those read together in one piece.

        Parameters
        ----------
        commits : sequence of Commit
            Oldest first.
        kind : str
            ``adds``, ``removes`` or ``cdcs``.
        """
        pieces: list[tuple[pa.Table, int, int]] = []
        for table, first, count in (c.rows[kind] for c in commits):
            if pieces and pieces[-1][0] is table and (not count or first == sum(pieces[-1][1:])):
                pieces[-1] = (table, pieces[-1][1], pieces[-1][2] + count)
            else:
                pieces.append((table, first, count))
        return pa.concat_tables([table.slice(first, count) for table, first, count in pieces])

    def _table(self, kind: FileActions) -> pa.Table:
        table, first, count = self.rows[kind]
        return table.slice(first, count)

    @property
    def timestamp_ms(self) -> int:
        """Its commit time: in-commit timestamp if the table has them, else adjusted file time."""
        return self.stamps()[self.version]


class CommitTimes:
    """When each version was committed.

    Parameters
    ----------
    files : sequence of LogFile
        Every commit there is, oldest first.
    rule : CommitTimestamp or None
        The field of in-commit timestamps.

    Notes
    -----
    File times are made monotone: a commit's is at least one ms above its predecessor's. Those files are requested
    their times once, on first need; in-commit timestamps are read as few as a binary search takes.
    """

    def __init__(self, engine: Engine, files: Sequence[LogFile], rule: CommitTimestamp | None, where: str) -> None:
        self._engine = engine
        self._files = {f.version: f for f in files}
        self._rule = rule
        self._where = where
        self._known: dict[int, int] = {}
        self._file_times_known = False

    @property
    def versions(self) -> list[int]:
        """The versions whose commits exist, ascending."""
        return sorted(self._files)

    def _in_commit(self, version: int) -> bool:
        return self._rule is not None and version >= self._rule.enablement_version

    def of(self, versions: Sequence[int]) -> dict[int, int]:
        """Return the times of some versions, in ms since the epoch.

        Parameters
        ----------
        versions : sequence of int
            Versions whose commits exist.
        """
        missing = [v for v in versions if v not in self._known]
        inside = [v for v in missing if self._in_commit(v)]
        if len(inside) < len(missing):
            self._load_file_times()
        if inside:
            infos = read_infos(self._engine, [self._file(v) for v in inside])
            self._known |= {v: self._required(v, infos.get(v)) for v in inside}
        for v in missing:
            self._file(v)
        return {v: self._known[v] for v in versions}

    def _file(self, version: int) -> LogFile:
        found = self._files.get(version)
        if found is None:
            raise VersionNotFoundError(
                f"The commit of version {version} of {self._where} was cleaned up: its time is not known.",
                version=version,
            )
        return found

    def _required(self, version: int, info: Mapping[str, Any] | None) -> int:
        assert self._rule is not None
        value = (info or {}).get(self._rule.field)
        if not isinstance(value, int):
            raise LogError(
                f"Version {version} of {self._where} has no {self._rule.field} in its commitInfo, which the table's "
                "protocol requires.",
                version=version,
            )
        return value

    def _load_file_times(self) -> None:
        if self._file_times_known:
            return
        files = [f for v, f in sorted(self._files.items()) if not self._in_commit(v)]
        untimed = [f for f in files if f.modified_ms is None]
        try:
            stats = self._engine.storage.stat([f"{LOG_DIRECTORY}/{f.name}" for f in untimed]) if untimed else []
        except FileNotFoundError as e:
            raise LogChangedError(
                f"A commit of {self._where} was listed but is gone, with the time that it was made: {e}. Open the "
                "table again.",
                path=self._where,
            ) from e
        fetched = {f.version: m for f, (_, m) in zip(untimed, stats, strict=True)}
        last: int | None = None
        for f in files:
            time = fetched[f.version] if f.modified_ms is None else f.modified_ms
            last = time if last is None else max(time, last + 1)
            self._known[f.version] = last
        self._file_times_known = True

    def version_at(self, timestamp_ms: int) -> int:
        """Return the last version committed at or before a time.

        Parameters
        ----------
        timestamp_ms : int
            Milliseconds since the epoch, UTC.

        Raises
        ------
        VersionNotFoundError
            For a time before the first commit that still exists.
        """
        versions = self.versions
        if self._rule is not None and self._rule.enablement_timestamp_ms is not None:
            inside = timestamp_ms >= self._rule.enablement_timestamp_ms
            versions = [v for v in versions if self._in_commit(v) == inside]
        low, high = 0, len(versions)
        while low < high:
            middle = (low + high) // 2
            if self.of([versions[middle]])[versions[middle]] <= timestamp_ms:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            first = "no commit is there"
            if versions:
                first = f"its first commit, version {versions[0]}, is of {_moment(self.of(versions[:1])[versions[0]])}"
            raise VersionNotFoundError(
                f"{self._where} has no version at or before {_moment(timestamp_ms)}: {first}.",
                timestamp_ms=timestamp_ms,
            )
        return versions[low - 1]


def _moment(time_ms: int) -> str:
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms since the epoch"
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_infos(engine: Engine, files: Sequence[LogFile]) -> dict[int, dict[str, Any]]:
    """Return the ``commitInfo`` of commits by version; one pass over them.

    Parameters
    ----------
    engine : Engine
        Reads the log.
    files : sequence of LogFile
        The commits, oldest first.
    """
    actions = engine.logs.read_commits(files, ActionQuery(kinds=frozenset({"commitInfo"}))).other_actions
    rows = zip(actions.column("version").to_pylist(), actions.column("json").to_pylist(), strict=True)
    return {
        version: info for version, text in rows if isinstance(info := parse_action(text, f"version {version}"), dict)
    }


def read_commits(
    engine: Engine,
    files: Sequence[LogFile],
    times: Callable[[], CommitTimes],
    fields: Sequence[ActionField],
    where: str,
) -> Iterator[Commit]:
    """Yield commits oldest first, read a batch at a time; their times are found out when one is requested.

    Parameters
    ----------
    engine : Engine
        Reads the log.
    files : sequence of LogFile
        The commits, oldest first.
    times : function() -> CommitTimes
        Called when a time is requested first.
    fields : sequence of ActionField
        The fields that features add to file actions.
    where : str
        The place, for errors.
    """
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        parsed = engine.logs.read_commits(batch, ActionQuery(_COLUMNS, extra_fields=extra_fields(fields)))
        stamps = cache(partial(_stamps, times, [f.version for f in batch]))
        tables = [
            _typed(t, kind, fields)
            for t, kind in ((parsed.adds, "add"), (parsed.removes, "remove"), (parsed.cdcs, "cdc"))
        ]
        places = [_places(t, [f.version for f in batch]) for t in tables]
        other_actions: dict[int, list[tuple[str, Any]]] = {}
        for row in parsed.other_actions.select(["version", "kind", "json"]).to_pylist():
            other_actions.setdefault(row["version"], []).append((row["kind"], parse_action(row["json"], where)))
        for f, *own in zip(batch, *places, strict=True):
            rows = dict(zip(get_args(FileActions), own, strict=True))
            yield _commit(f.version, stamps, other_actions.get(f.version, []), rows, where)


def _stamps(times: Callable[[], CommitTimes], versions: Sequence[int]) -> Mapping[int, int]:
    return times().of(versions)


def _commit(
    version: int,
    stamps: Callable[[], Mapping[int, int]],
    other_actions: list[tuple[str, Any]],
    rows: Mapping[FileActions, tuple[pa.Table, int, int]],
    where: str,
) -> Commit:
    last = dict(other_actions)
    place = f"version {version} of {where}"
    protocol = Protocol.parse(last["protocol"], place) if "protocol" in last else None
    metadata = Metadata.parse(last["metaData"], place) if "metaData" in last else None
    info = last.get("commitInfo")
    return Commit(
        version, stamps, info if isinstance(info, dict) else None, protocol, metadata, rows, tuple(other_actions)
    )


def _places(table: pa.Table, versions: Sequence[int]) -> list[tuple[pa.Table, int, int]]:
    """Return the first and the number of the rows of each version; a version's rows lie together."""
    import numpy as np

    found, first, counts = np.unique(int64_values(table.column("version")), return_index=True, return_counts=True)
    places = dict(zip(found.tolist(), zip(first.tolist(), counts.tolist(), strict=True), strict=True))
    out = []
    end = 0
    for version in versions:
        # an empty range begins after the rows before it
        start, count = places.get(version, (end, 0))
        end = start + count
        out.append((table, start, count))
    return out


def _typed(table: pa.Table, action: str, fields: Sequence[ActionField]) -> pa.Table:
    """Replace the raw JSON columns of plugins' fields by typed ones."""
    for f in fields:
        name = f"extra:{f.name}"
        if f.action == action and name in table.column_names:
            text = one_array(table.column(name))
            table = table.drop_columns([name]).append_column(f.name, json_values(text, f.type))
    return table
