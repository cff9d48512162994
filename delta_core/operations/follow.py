"""Follow a table: the rows that it has, and those that commits append to it, in steps that can be resumed."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct

from delta_core.errors import (
    InvalidArgumentError,
    RowsChangedError,
    StreamError,
    StreamSchemaError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.commit.intents import read_columns
from delta_core.kernel.log.commits import Commit
from delta_core.kernel.log.files import FileSet
from delta_core.kernel.log.paths import are_excluded
from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.log.timestamps import parse_ms, parse_version
from delta_core.kernel.plugins.features import supported_features
from delta_core.kernel.protocol.actions import FILE_COLUMNS
from delta_core.kernel.scan import Scan
from delta_core.kernel.snapshot import Snapshot
from delta_core.kernels import compute as pc
from delta_core.kernels.arrow_buffers import int64_values, strings_of
from delta_core.operations.stream_schema import VersionDefinition, why_different, why_not_readable
from delta_core.runtime.arguments import check_number
from delta_core.runtime.threads import Flag

__all__ = ["FollowOptions", "StreamBatch", "TableStream", "check_options", "check_position", "first_position"]

#: How many commits are planned at a time.
_WINDOW = 64
#: After this many commits the table is opened again, so that their actions do not pile up.
_MOST_TAIL = 256


class FollowOptions(Struct, frozen=True):
    """Where a stream begins and ends, what a step reads, and what stops it.

    Parameters
    ----------
    start : int or "latest", optional
        The first version whose commit is read; ``latest``: the next one. None: first all rows that the table has.
    start_timestamp : str or datetime, optional
        Instead: begin with the first version committed at or after a time.
    position : StreamPosition, str, bytes or Mapping, optional
        Instead: where an earlier stream ended.
    position_file : str or path, optional
        A local file that keeps the position. Once it exists, it goes before the other starts.
    stop_at : int, optional
        The last version that is read.
    available_now : bool
        Stop after the version that is the latest when the stream is made.
    max_files, max_bytes : int, optional
        The most that a step reads; a single file may have more bytes.
    poll_interval : float
        Seconds between two looks for new commits.
    timeout : float, optional
        Seconds without new rows after which the stream ends.
    skip_change_commits, ignore_deletes, ignore_changes : bool
        As of Spark's source: leave out commits that delete or change rows; ignore commits that only delete; read the
        rows that other commits write again.
    fail_on_data_loss : bool
        Whether commits that were cleaned up before they were read are an error; otherwise the stream goes on after
        them.
    exclude_regex : str, optional
        Leave out the files whose path, as the log has it, contains a match of this regular expression (RE2's syntax).
    """

    columns: Sequence[str] | None = None
    predicate: Any = None
    start: int | Literal["latest"] | None = None
    start_timestamp: str | datetime | None = None
    position: StreamPosition | str | bytes | Mapping[str, Any] | None = None
    position_file: str | os.PathLike[str] | None = None
    stop_at: int | None = None
    available_now: bool = False
    max_files: int | None = 1000
    max_bytes: int | None = None
    poll_interval: float = 1.0
    timeout: float | None = None
    skip_change_commits: bool = False
    ignore_deletes: bool = False
    ignore_changes: bool = False
    fail_on_data_loss: bool = True
    exclude_regex: str | None = None


class StreamBatch:
    """The rows of one step of a stream, which may be read several times.

    DuckDB, Polars, pandas, PyArrow and `write_deltalake` take it as a stream.

    Attributes
    ----------
    number : int
        Counts the steps, from 0; with a position file also over several runs.
    start, position : StreamPosition
        Where the step begins, and where the next one continues.
    num_files, num_bytes : int
        The files that are read, and their sizes.
    schema : pyarrow.Schema
        Of the rows; the same in all steps of a stream.

    Examples
    --------
    >>> [(batch.number, batch.num_files) for batch in table.follow(available_now=True, max_files=1)]
    [(0, 1), (1, 1)]
    """

    def __init__(self, number: int, start: StreamPosition, step: _Step, scan: Scan) -> None:
        self.number = number
        self.start = start
        self.position: StreamPosition = step.position
        self.num_files: int = step.files.num_rows
        self.num_bytes: int = int(pc.sum(step.files.column("size")).as_py() or 0)
        self._scan = scan
        self.schema: pa.Schema = scan.schema

    def __repr__(self) -> str:
        return f"StreamBatch(number={self.number}, num_files={self.num_files}, position={self.position.to_json()})"

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches, in bounded memory.

        Examples
        --------
        >>> [batch.to_reader().read_all().num_rows for batch in table.follow(available_now=True)]
        [3]
        """
        return self._scan.to_reader()

    def to_table(self) -> pa.Table:
        """Return the rows in memory.

        Examples
        --------
        >>> [batch.to_table().num_rows for batch in table.follow(1, available_now=True)]
        [1]
        """
        return self._scan.to_table()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._scan.__arrow_c_stream__(requested_schema)


class _Step(Struct, frozen=True):
    """Files to read, and where the next step begins."""

    files: pa.Table
    position: StreamPosition


class TableStream:
    """The steps of a stream of rows; iterate over it. Made by `DeltaTable.follow`.

    Parameters
    ----------
    definition : VersionDefinition, optional
        Read with the schema of this definition, and end before the version that changes it. The position is after its
        version, or rows before it can be read with it.

    Attributes
    ----------
    position : StreamPosition
        Where the next step begins.
    schema : pyarrow.Schema
        Of the rows of all steps.

    Examples
    --------
    >>> stream = table.follow(available_now=True)
    >>> [batch.to_table().num_rows for batch in stream]
    [3]
    """

    def __init__(self, snapshot: Snapshot, options: FollowOptions, definition: VersionDefinition | None = None) -> None:
        check_options(options)
        self._options = options
        self._stopped = Flag()
        self._number = 0
        self._repeated: StreamPosition | None = None
        #: The files of the table that the stream begins with, in their order; loaded when they are needed.
        self._initial: pa.Table | None = None
        #: The version that changes the schema, once it is known.
        self._changed: int | None = None
        base = snapshot.latest()
        self._table_id = base.metadata.id
        self._num_opened = len(base.segment.deltas)
        self._uri = shown_uri(base.uri)
        self.position: StreamPosition = self._first(base)
        limits = [v for v in (options.stop_at, base.version if options.available_now else None) if v is not None]
        self._stop = min(limits, default=None)
        #: The version that the rows are read with: the latest one with the schema of the stream.
        self._reader = base if self._stop is None or self._stop >= base.version else base.at(self._stop)
        if definition is not None:
            self._hold(definition)
        #: Versions up to here were committed before the stream began: the stream's schema may be younger than they.
        self._begun = self._reader.version
        self._check_earlier()
        self.schema: pa.Schema = self._reader.scan(options.columns).schema

    def __repr__(self) -> str:
        return f"TableStream({self._uri!r}, position={self.position.to_json()})"

    def stop(self) -> None:
        """End the stream after the current step; may be called by another thread.

        Examples
        --------
        >>> stream = table.follow(max_files=1)
        >>> for batch in stream:
        ...     stream.stop()  # with more steps to read, and without an end of its own
        ...     print(batch.number)
        0
        """
        self._stopped.set()

    # --- steps of an engine that keeps positions itself ---

    @property
    def changed_version(self) -> int | None:
        """The version that changes the schema, once it is known.

        Examples
        --------
        >>> print(table.follow().changed_version)
        None
        """
        return self._changed

    @property
    def reader(self) -> Snapshot:
        """The version that rows are read with: the latest one with the schema of the stream.

        Examples
        --------
        >>> table.follow().reader.version
        1
        """
        return self._reader

    def next_position(self, start: StreamPosition, unlimited: bool = False) -> StreamPosition | None:
        """Return where the step that begins at a position ends, None if there is nothing new.

        Parameters
        ----------
        start : StreamPosition
            Where the step begins.
        unlimited : bool
            Whether the step may read more than the stream's limits allow.

        Raises
        ------
        StreamSchemaError
            If the next commit changes the schema.

        Examples
        --------
        >>> stream = table.follow(1)
        >>> stream.next_position(stream.position).version
        2
        """
        self.position = start
        self._update()
        while (step := self._plan(None, unlimited)) is not None and step.position != self.position:
            if step.files.num_rows:
                return step.position
            self.position = step.position  # versions without rows for the stream
        if self.position != start:
            return self.position
        if self._changed is not None:
            raise self._schema_error(self._changed)
        return None

    def scan_until(self, end: StreamPosition) -> Scan:
        """Return the rows from the stream's position to an end that `next_position` returned, in this run or before.

        Parameters
        ----------
        end : StreamPosition
            Where the step ends.

        Examples
        --------
        >>> stream = table.follow(1)
        >>> end = stream.next_position(stream.position)
        >>> stream.scan_until(end).count()
        1
        """
        step = self._step([], end) if end == self.position else self._plan(end)
        assert step is not None  # there is a step to every end
        return self._scan(step)

    def __iter__(self) -> Iterator[StreamBatch]:
        idle_since = time.monotonic()
        while not self._stopped.is_set:
            step = self._plan(self._repeated)
            if step is not None and step.files.num_rows:
                batch = self._batch(step)
                self._store(self.position, step.position)
                self._repeated = None
                yield batch
                # the caller that takes the next step has processed this one: no later run returns it again, even if
                # this run ends here, waits or fails
                self._number += 1
                self.position = step.position
                self._store(self.position, self.position)
                idle_since = time.monotonic()
                continue
            if step is not None and step.position != self.position:
                # versions without rows for the stream: what was stored remains to be valid, but may be cleaned up
                self.position = step.position
                self._repeated = None
                self._store(self.position, self.position)
                continue
            self._repeated = None
            if self._stop is not None and not self.position.is_initial_snapshot and self.position.version > self._stop:
                return
            if self._changed is not None:
                raise self._schema_error(self._changed)
            if not self._wait(idle_since):
                return
            self._update()

    def _batch(self, step: _Step) -> StreamBatch:
        return StreamBatch(self._number, self.position, step, self._scan(step))

    def _scan(self, step: _Step) -> Scan:
        options = self._options
        files = step.files
        if options.exclude_regex is not None:
            files = files.filter(pc.invert(are_excluded(files.column("path"), options.exclude_regex)))
        return self._reader.scan(options.columns, predicate=options.predicate, files=FileSet.of(files))

    # --- where it begins ---

    def _first(self, base: Snapshot) -> StreamPosition:
        options = self._options
        stored = None if options.position_file is None else _read_position_file(Path(options.position_file))
        if stored is not None:
            self._number, start, end = stored
            self._repeated = None if start == end else end
            return check_position(start, base)
        if options.position is not None:
            return check_position(StreamPosition.parse(options.position), base)
        return first_position(base, options)

    def _hold(self, definition: VersionDefinition) -> None:
        """Read with the last version that has a definition."""
        newest = self._reader
        first = max(definition.version + 1, self.position.version)
        changes = newest.definition_changes(first) if first <= newest.version else []
        self._changed = next((v for v in changes if why_different(definition, newest.at(v)) is not None), None)
        if self._changed is not None:
            self._reader = newest.at(self._changed - 1)
        why = why_different(definition, self._reader)
        if why is not None:
            raise StreamSchemaError(
                f"Version {self._reader.version} of {self._uri} has another schema than the one that was stored for "
                f"the stream at version {definition.version}: {why}. Begin again, with another place for stored "
                "schemas.",
                version=self._reader.version,
                position=self.position,
            )

    def _check_earlier(self) -> None:
        """Check that rows of the first version can be read with the stream's schema; later ones follow."""
        reader, position = self._reader, self.position
        if position.version < reader.version:
            with suppress(VersionNotFoundError):  # of a log that was cleaned up; its commits are checked on the way
                self._check_readable(reader.at(position.version), position.version)

    def _check_readable(self, older: Snapshot, version: int) -> None:
        reader = self._reader
        _check_features(reader, older.state.reader_features, version)
        why = why_not_readable(older, reader)
        if why is not None:
            raise StreamSchemaError(
                f"The rows of version {version} of {self._uri} can't be read with the schema of version "
                f"{reader.version}: {why}. Read them with the older schema, by stop_at= the last version that has it, "
                "or begin after the change.",
                version=version,
                position=self.position,
            )

    # --- new commits ---

    def _wait(self, idle_since: float) -> bool:
        """Wait for a poll interval; returns False if the stream ends."""
        options = self._options
        left = math.inf if options.timeout is None else options.timeout - (time.monotonic() - idle_since)
        return left > 0 and not self._stopped.wait(min(options.poll_interval, left))

    def _update(self) -> None:
        """Take the commits that are new."""
        known = self._reader
        latest = known.update()
        if latest.metadata.id != self._table_id:
            raise StreamError(
                f"The table at {self._uri} was dropped and made again: its id is {latest.metadata.id}, and that of the "
                f"table which was followed is {self._table_id}. Begin a stream of the new table without a position.",
                position=self.position,
            )
        if self._stop is not None and latest.version > self._stop:
            latest = known.at(self._stop) if self._stop > known.version else known
        if latest.version <= known.version:
            return
        try:
            changes = latest.definition_changes(known.version + 1)
        except VersionNotFoundError as e:
            if self._options.fail_on_data_loss or why_different(known, latest) is not None:
                raise self._lost(known.version + 1, e) from e
            changes = []
        self._changed = next((v for v in changes if why_different(known, known.at(v)) is not None), None)
        if self._changed is not None:
            self._reader = known.at(max(self._changed - 1, known.version))
            return
        if len(latest.segment.deltas) > self._num_opened + _MOST_TAIL:
            latest = latest.context.read(latest.version)
            self._num_opened = len(latest.segment.deltas)
        self._reader = latest

    def _schema_error(self, version: int) -> StreamSchemaError:
        after = self._reader.at(version)
        return StreamSchemaError(
            f"Version {version} of {self._uri} changes the schema: {why_different(self._reader, after)}. All rows of "
            f"earlier versions were read. Begin the stream again at its position, {self.position.to_json()}, to read "
            "the rows that follow with the new schema.",
            version=version,
            position=self.position,
        )

    # --- steps ---

    def _plan(self, until: StreamPosition | None, unlimited: bool = False) -> _Step | None:
        """Return the next step; without files if only versions are passed over, None at the end of what there is."""
        room = _Room(math.inf, math.inf) if unlimited or until is not None else _Room.of(self._options)
        if self.position.is_initial_snapshot:
            return self._plan_initial(room, until)
        return self._plan_commits(room, until)

    def _plan_initial(self, room: _Room, until: StreamPosition | None) -> _Step:
        version, first = self.position.version, self.position.index + 1
        if self._initial is None:
            self._initial = self._ordered_files(version)
        files = self._initial.slice(first)
        if until is not None and until.is_initial_snapshot:
            return _Step(files.slice(0, until.index + 1 - first), until)
        taken = room.take(files)
        if taken == files.num_rows:
            return _Step(files, StreamPosition(self._table_id, version + 1))
        return _Step(files.slice(0, taken), StreamPosition(self._table_id, version, first + taken - 1, True))

    def _ordered_files(self, version: int) -> pa.Table:
        """Return the files of a version in the order of Spark's source: by time, then by path."""
        try:
            base = self._reader.at(version)
        except VersionNotFoundError as e:
            raise self._lost(version, e) from e
        names = read_columns(self._reader.action_fields)
        if self._options.predicate is None:
            names = [n for n in names if n != "stats"]
        table = base.files.columns(names)
        keys = [("modificationTime", "ascending"), ("path", "ascending")]
        return table.take(pc.sort_indices(table.select(["modificationTime", "path"]), sort_keys=keys))

    def _plan_commits(self, room: _Room, until: StreamPosition | None) -> _Step | None:
        position = self.position
        found: list[pa.Table] = []
        last = self._reader.version if until is None else until.version - (until.index < 0)
        try:
            for commit in self._commits(position.version, last):
                self._check_commit(commit)
                files = self._appended(commit).slice(position.index + 1)
                if until is not None and commit.version == until.version:
                    return self._step([*found, files.slice(0, until.index - position.index)], until)
                taken = room.take(files)
                found += [files.slice(0, taken)] if taken else []
                if taken < files.num_rows:
                    index = position.index + taken
                    return self._step(
                        found, StreamPosition(self._table_id, commit.version, index) if taken else position
                    )
                position = StreamPosition(self._table_id, commit.version + 1)
        except (StreamError, UnsupportedOperationError, VersionNotFoundError) as e:
            if found and until is None:  # first what comes before it
                return self._step(found, position)
            if isinstance(e, VersionNotFoundError):
                return self._behind_loss(position.version, e)
            raise
        if until is not None:
            return self._step(found, until)
        return self._step(found, position) if position != self.position else None

    def _commits(self, start: int, last: int) -> Iterator[Commit]:
        """Yield commits; a few are read at a time."""
        for first in range(start, last + 1, _WINDOW):
            yield from self._reader.commits(first, min(first + _WINDOW - 1, last))

    def _step(self, found: Sequence[pa.Table], position: StreamPosition) -> _Step:
        names = read_columns(self._reader.action_fields)
        empty = pa.table({n: pa.nulls(0, FILE_COLUMNS[n]) for n in ("path", "size")})
        tables = [_typed(t.select([n for n in names if n in t.column_names])) for t in found]
        return _Step(pa.concat_tables(tables, promote_options="default") if tables else empty, position)

    def _check_commit(self, commit: Commit) -> None:
        """Check that a commit may be read: it changes no rows, and its rows fit the stream's schema."""
        reader = self._reader
        if commit.protocol is not None:
            supported = supported_features(commit.protocol).reader
            _check_features(reader, reader.plugins.canonical(supported), commit.version)
        if commit.metadata is not None and commit.version < self._begun:
            self._check_readable(reader.at(commit.version), commit.version)
        options = self._options
        if options.skip_change_commits or options.ignore_changes or not _has_data(commit.removes):
            return
        changes = _has_data(commit.adds)
        if not changes and options.ignore_deletes:
            return
        hint = (
            "skip_change_commits=True to leave such commits out, or ignore_changes=True to read again all rows of the "
            "files that they write"
            if changes
            else "ignore_deletes=True to go on"
        )
        info = commit.info or {}
        raise RowsChangedError(
            f"Version {commit.version} of {self._uri} ({info.get('operation', 'unknown operation')}) "
            f"{'deletes or changes' if changes else 'deletes'} rows, which a stream of appended rows can't show. Pass "
            f"{hint}; or read table.changes(...), if the change data feed is on.",
            version=commit.version,
            position=self.position,
        )

    def _appended(self, commit: Commit) -> pa.Table:
        """Return the files whose rows a commit appends, in the order of its lines."""
        adds = commit.adds
        if self._options.skip_change_commits and _has_data(commit.removes):
            return adds.slice(0, 0)
        return adds.filter(adds.column("dataChange").fill_null(False))

    def _behind_loss(self, version: int, error: VersionNotFoundError) -> _Step:
        """Return a step past commits that were cleaned up, if that is allowed."""
        first = getattr(error, "first", None)
        if self._options.fail_on_data_loss or first is None or first <= version:
            raise self._lost(version, error) from error
        return self._step([], StreamPosition(self._table_id, first))

    def _lost(self, version: int, error: VersionNotFoundError) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"The stream continues with version {version}, whose log was cleaned up: {error} Rows that were appended "
            "since are lost to it. Begin again without a position, or pass fail_on_data_loss=False to go on with the "
            "first commit that exists.",
            version=version,
            position=self.position,
        )

    # --- the position file ---

    def _store(self, start: StreamPosition, end: StreamPosition) -> None:
        """Keep a step before it is yielded, so that a run that ends meanwhile repeats it, and its end after that."""
        if self._options.position_file is None:
            return
        final = Path(self._options.position_file)
        text = json.dumps({"number": self._number, "start": start.to_json(), "end": end.to_json()})
        made = final.with_name(f".{final.name}.{os.getpid()}")
        with made.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.replace(final)


class _Room:
    """The rest that a step may read."""

    def __init__(self, files: float, num_bytes: float) -> None:
        self._files = files
        self._bytes = num_bytes
        self._is_empty = True

    @classmethod
    def of(cls, options: FollowOptions) -> _Room:
        return cls(*(math.inf if v is None else v for v in (options.max_files, options.max_bytes)))

    def take(self, files: pa.Table) -> int:
        """Return how many of the files fit, the first of a step always, and count them."""
        if not files.num_rows:
            return 0
        sizes = np.cumsum(int64_values(pc.fill_null(files.column("size"), 0)))
        fit = int(min(self._files, np.searchsorted(sizes, self._bytes, "right"), files.num_rows))
        taken = max(fit, int(self._is_empty))
        if taken:
            self._is_empty = False
            self._files -= taken
            self._bytes -= int(sizes[taken - 1])
        return taken


def first_position(base: Snapshot, options: FollowOptions) -> StreamPosition:
    """Return where a stream begins that continues no other one.

    Raises
    ------
    InvalidArgumentError
        If it is to begin after the next version, or at a time in the future: commits before it would be read.
    """
    table_id = base.metadata.id
    if options.start_timestamp is not None:
        start_ms = parse_ms(options.start_timestamp, base.timezone)
        if start_ms > max(base.timestamp_ms, time.time_ns() // 1_000_000):
            raise InvalidArgumentError(
                f"The stream of {shown_uri(base.uri)} begins at {options.start_timestamp}, which is in the future; "
                "commits before then would be read. Pass start='latest' to read what comes next."
            )
        return StreamPosition(table_id, base.version_since(start_ms))
    if options.start is None:
        return StreamPosition(table_id, base.version, -1, True)
    version = base.version + 1 if options.start == "latest" else parse_version(options.start, "start")
    return check_position(StreamPosition(table_id, version), base)


def check_position(position: StreamPosition, base: Snapshot) -> StreamPosition:
    """Return a position at which a stream of a table can continue.

    Raises
    ------
    InvalidArgumentError
        If it is one of another table, or of a version after the next one.
    """
    if position.table_id != base.metadata.id:
        raise InvalidArgumentError(
            f"The position is one of the table {position.table_id}, and {shown_uri(base.uri)} is the table "
            f"{base.metadata.id}: another table was made at its place, or the position belongs to another stream. "
            "Begin again without it.",
            version=position.version,
        )
    if position.version > base.version + (not position.is_initial_snapshot):
        raise InvalidArgumentError(
            f"The stream is to begin with version {position.version}, and the latest version of {shown_uri(base.uri)} "
            f"is {base.version}. Pass start='latest' to read what comes next.",
            version=position.version,
        )
    return position


def check_options(options: FollowOptions) -> None:
    """Check the values of options.

    Raises
    ------
    InvalidArgumentError
        For one that it can't have, and for two starts.
    """
    for name in ("max_files", "max_bytes"):
        check_number(name, getattr(options, name), 1)
    for name in ("poll_interval", "timeout"):
        check_number(name, getattr(options, name), 0, what="a number of seconds", kinds=(int, float))
    if options.stop_at is not None:
        parse_version(options.stop_at, "stop_at")
    if isinstance(options.start, str) and options.start != "latest":
        raise InvalidArgumentError(f"Found start={options.start!r}, expected a version or 'latest'.")
    if options.exclude_regex is not None:
        are_excluded(strings_of([""]), options.exclude_regex)
    starts = [n for n in ("start", "start_timestamp", "position") if getattr(options, n) is not None]
    if len(starts) > 1:
        raise InvalidArgumentError(f"Found {' and '.join(starts)}, expected one of them.")


def _has_data(actions: pa.Table) -> bool:
    """Whether one of some file actions changes data."""
    return bool(pc.any(actions.column("dataChange").fill_null(False)).as_py())


def _typed(files: pa.Table) -> pa.Table:
    """Return files with the columns' own types, in place of those of a single commit."""
    return files.cast(pa.schema([(f.name, FILE_COLUMNS.get(f.name, f.type)) for f in files.schema]))


def _check_features(reader: Snapshot, needed: frozenset[str], version: int) -> None:
    gone = sorted(needed - reader.state.features)
    if gone:
        raise UnsupportedOperationError(
            f"Version {version} needs the reader feature {gone[0]}, which version {reader.version} no longer has: its "
            "files can't be read by the later protocol. Begin the stream after the version that drops the feature.",
            version=version,
            feature=gone[0],
        )


def _read_position_file(path: Path) -> tuple[int, StreamPosition, StreamPosition] | None:
    """Return the number, start and end of the step that a position file keeps; None if there is no such file."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)
        return int(found["number"]), StreamPosition.parse(found["start"]), StreamPosition.parse(found["end"])
    except (ValueError, KeyError, TypeError) as e:
        raise InvalidArgumentError(
            f"The position file {str(path)!r} holds no position of a stream: {text[:200]!r}. Delete it to begin again.",
            path=str(path),
        ) from e
