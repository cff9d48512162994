"""The schemas of a streaming source, kept beside the query's checkpoint, so that it passes changes of the schema."""

from __future__ import annotations

import os
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pyspark.sql import SparkSession

from delta_core.engines.spark.plan.private import SchemaFiles
from delta_core.engines.spark.settings import session_settings
from delta_core.errors import InvalidArgumentError, StreamRestartError, StreamSchemaError
from delta_core.handles.secrets import shown_uri
from delta_core.kernel.log.commits import Commit
from delta_core.kernel.log.position import StreamPosition
from delta_core.kernel.snapshot import Snapshot
from delta_core.operations.follow import FollowOptions
from delta_core.operations.stream_schema import (
    ColumnChanges,
    StoredDefinition,
    StoredSchema,
    VersionDefinition,
    column_changes,
    why_different,
    why_not_readable,
)

__all__ = ["Allowed", "TrackedSchema", "TrackedSource", "Tracking", "check_tracking", "schema_version"]

#: Which changes of columns a stream may pass: all, or that to the schema of one version.
Allowed = int | str | None
_CONF = "spark.databricks.delta.streaming.allowSourceColumn"
#: How many versions after a change are looked at, for further changes without rows between them.
_MOST_MERGED = 1000
_MERGED = "streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled"


class Tracking(Struct, frozen=True):
    """Where the schemas of a source are kept, and which changes of columns it passes.

    Parameters
    ----------
    location : str
        A folder below the query's checkpoint.
    source_id : str or None
        Distinguishes two sources of one query that read the same table.
    drop, rename, type_change : "always", int, str or None
        The changes that are allowed: every such change, or that to the schema of a version.
    """

    location: str
    source_id: str | None
    drop: Allowed
    rename: Allowed
    type_change: Allowed

    @classmethod
    def of(
        cls,
        location: str | os.PathLike[str] | None,
        source_id: str | None,
        drop: Allowed,
        rename: Allowed,
        type_change: Allowed,
    ) -> Tracking | None:
        """Return what the arguments of a stream specify, None if its schemas are not kept.

        Raises
        ------
        InvalidArgumentError
            For a change that is allowed without a place for schemas, or a value that it can't have.
        """
        given = {
            "source_tracking_id": source_id,
            "allow_source_column_drop": drop,
            "allow_source_column_rename": rename,
            "allow_source_column_type_change": type_change,
        }
        if location is None:
            name = next((n for n, v in given.items() if v is not None), None)
            if name is not None:
                raise InvalidArgumentError(
                    f"Found {name}= without schema_tracking_location=, which has the schemas of the stream. Pass a "
                    "folder below the query's checkpoint."
                )
            return None
        for name in list(given)[1:]:
            value = given[name]
            if isinstance(value, bool) or not re.fullmatch(r"always|\d+|None", str(value), re.ASCII):
                raise InvalidArgumentError(f"Found {name}={value!r}, expected 'always' or a version of the table.")
        return cls(os.fspath(location), source_id, drop, rename, type_change)


def check_tracking(options: FollowOptions, tracking: Tracking | None) -> None:
    """Check that the schemas of a stream can be kept.

    Raises
    ------
    InvalidArgumentError
        If commits, which may change the schema, may be lost.
    """
    if tracking is not None and not options.fail_on_data_loss:
        raise InvalidArgumentError(
            "Found schema_tracking_location= with fail_on_data_loss=False: the schemas of commits that are lost can't "
            "be tracked. Pass one of the two."
        )


class TrackedSchema:
    """The schemas that are stored for a source, as they are when this is made.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    options : Tracking
        Where they are, and which changes the source passes.
    base : Snapshot
        A version of the table.

    Raises
    ------
    LogError
        If what is stored can't be read.
    """

    def __init__(self, spark: SparkSession, options: Tracking, base: Snapshot) -> None:
        self._spark = spark
        self._options = options
        self._base = base
        self._source = ""
        suffix = "" if options.source_id is None else f"_{options.source_id}"
        folder = f"{options.location.rstrip('/')}/_schema_log_{base.metadata.id}{suffix}"
        self._files = SchemaFiles(spark, folder)
        self._entries = {
            number: StoredSchema.parse(text, f"{self._files.folder}/{number}")
            for number, text in self._files.read().items()
        }
        #: The schema that the source has; None if none is stored yet.
        self.current = self._definition(self.number)

    @property
    def number(self) -> int:
        """The number of the last entry, -1 if there is none."""
        return max(self._entries, default=-1)

    def _previous_number(self) -> int:
        """Return the number of the entry that came before the last one."""
        found = self._entries[self.number].previous
        return self.number - 1 if found is None else found

    def _definition(self, number: int) -> StoredDefinition | None:
        found = self._entries.get(number)
        return None if found is None else StoredDefinition.of(found, self._base)

    # --- a query begins ---

    def begin(self, source: str, number: int) -> None:
        """Check that a source may go on with the schema.

        Parameters
        ----------
        source : str
            The source's folder in the query's checkpoint.
        number : int
            Of the last entry when the DataFrame was made.

        Raises
        ------
        InvalidArgumentError
            If the schemas are not kept below the checkpoint, or belong to another source.
        StreamRestartError
            If another one was stored after the DataFrame was made.
        StreamSchemaError
            If columns were dropped, renamed, or changed their type, and that is not allowed.
        """
        self._source = source
        checkpoint, _, _ = source.rpartition("/sources/")
        is_free = session_settings(self._spark).requests("streaming.allowSchemaLocationOutsideCheckpointLocation")
        if not is_free and not _plain(self._files.folder).startswith(f"{_plain(checkpoint)}/"):
            raise InvalidArgumentError(
                f"Found schema_tracking_location={self._options.location!r}, expected a folder below the query's "
                f"checkpoint, {checkpoint}."
            )
        entry = self._entries.get(self.number)
        if entry is None:
            return
        if entry.source != source:
            raise InvalidArgumentError(
                f"The schemas in {self._files.folder} belong to the source {entry.source}, and this one is {source}. "
                "Pass another schema_tracking_location=, or a source_tracking_id= for each of the sources of one query."
            )
        if self.number != number:
            raise self._restart("A schema was stored for the stream after read_stream was called.", entry.version)
        self._check_allowed(entry)

    def _check_allowed(self, entry: StoredSchema) -> None:
        previous, current = self._definition(self._previous_number()), self.current
        if previous is None or current is None:
            return
        changes = column_changes(previous, current)
        options = self._options
        needed = {
            "Drop": (bool(changes.dropped), options.drop),
            "Rename": (bool(changes.renamed), options.rename),
            "TypeChange": (bool(changes.widened), options.type_change),
        }
        setting = session_settings(self._spark).rejects_wider_types if changes.widened else None
        if setting is not None:
            raise StreamSchemaError(
                f"The stream of {shown_uri(self._base.uri)} goes on with another schema: between versions "
                f"{previous.version} and {entry.version}, {changes}; the setting {setting} is "
                "false. Remove it, or begin again with another checkpoint.",
                version=entry.version,
                previous_version=previous.version,
                kinds=("TypeChange",),
            )
        blocked = [
            n for n, (is_there, allowed) in needed.items() if is_there and not self._allows(n, allowed, entry.version)
        ]
        if blocked:
            raise self._blocked(blocked, changes, previous.version, entry.version)

    def _allows(self, kind: str, given: Allowed, version: int) -> bool:
        if str(given) in ("always", str(version)):
            return True
        names = [f"{_CONF}{kind}"] + ([f"{_CONF}RenameAndDrop"] if kind != "TypeChange" else [])
        values = [
            (str(self._spark.conf.get(key, "")).lower(), expected)
            for name in names
            for key, expected in ((name, "always"), *((f"{name}.{self._hash}", v) for v in ("always", str(version))))
        ]
        return any(value == expected for value, expected in values)

    @property
    def _hash(self) -> str:
        """The name of the source in settings of the session: the hash that Java has of its folder."""
        found = 0
        units = self._source.encode("utf-16-be")
        for i in range(0, len(units), 2):
            found = (31 * found + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
        return f"ckpt_{found - (1 << 32) if found >> 31 else found}"

    def _blocked(self, kinds: list[str], changes: ColumnChanges, previous: int, version: int) -> StreamSchemaError:
        arguments = {
            "Drop": "allow_source_column_drop",
            "Rename": "allow_source_column_rename",
            "TypeChange": "allow_source_column_type_change",
        }
        passed = " and ".join(f"{arguments[k]}={version}" for k in kinds)
        settings = " and ".join(f"{_CONF}{k}.{self._hash}" for k in kinds)
        return StreamSchemaError(
            f"The stream of {shown_uri(self._base.uri)} goes on with another schema: between versions {previous} and "
            f"{version}, {changes}. Change what takes the rows, if it needs that; then pass {passed} (or 'always') to "
            f"read_stream, or set {settings} to {version} or always in the session.",
            version=version,
            previous_version=previous,
            kinds=tuple(kinds),
        )

    # --- the schema changes ---

    def known(
        self, base: Snapshot, position: StreamPosition, end: StreamPosition | None
    ) -> tuple[StoredDefinition, StreamPosition]:
        """Return the schema that the source has at a position, and the place from which it is read with it.

        Parameters
        ----------
        base : Snapshot
            The latest version of the table.
        position : StreamPosition
            Where the source continues.
        end : StreamPosition, optional
            Where a batch ends that was planned before.

        Raises
        ------
        StreamRestartError
            If the schema had to be stored again.
        StreamSchemaError
            If no schema can read all of the batch.
        """
        if self.current is None:
            self._store(StoredSchema.of(self._first_schema(base, position, end), self._source))
            assert self.current is not None
        current = self.current
        if position.is_initial_snapshot and position.version > current.version:
            found = base.at(position.version)
            if why_different(current, found) is not None:
                self._store(StoredSchema.of(found, self._source, self._previous_number()))
                raise self._restart(
                    f"The rows of version {found.version}, with which the stream begins, have another schema.",
                    found.version,
                )
        return current, _behind_merged(base, position, current.version)

    def _first_schema(self, base: Snapshot, position: StreamPosition, end: StreamPosition | None) -> Snapshot:
        """Return the version with the schema that is stored first."""
        if end is None:
            return base.at(min(position.version, base.version))
        is_within = end.is_initial_snapshot or end.index >= 0
        found = base.at(end.version if is_within else max(end.version - 1, position.version))
        earlier = [position.version, *found.definition_changes(position.version + 1)]
        for version in earlier:
            why = why_not_readable(found.at(version), found)
            if why is not None:
                raise StreamSchemaError(
                    f"The batch from {position.to_json()} to {end.to_json()} was planned before schemas were stored, "
                    f"and no schema reads all of it: {why}, between versions {version} and {found.version}. Begin "
                    "again with another checkpoint.",
                    version=version,
                    position=position,
                )
        return found

    def evolve(self, error: StreamSchemaError, reader: Snapshot, changed: int | None) -> None:
        """Store the schema of the version that changes it, if an error is that of the change.

        Parameters
        ----------
        error : StreamSchemaError
            The error that was raised.
        reader : Snapshot
            A version with the schema so far.
        changed : int or None
            The version that changes it. If it and the next ones have no rows, the last one of them with a change is
            stored.

        Raises
        ------
        StreamRestartError
            If it is.
        """
        if changed is None or error.facts.get("version") != changed:
            return
        latest = reader.update()
        version = changed
        most = _MOST_MERGED if session_settings(self._spark).permits(_MERGED) else 0
        for commit in latest.commits(changed, min(latest.version, changed + most)):
            if _has_files(commit):
                break
            if commit.metadata is None and commit.protocol is None:
                break
            version = commit.version
        found = latest.at(version)
        why = why_different(reader, found) or "it was changed and changed back"
        self._store(StoredSchema.of(found, self._source))
        raise self._restart(
            f"Version {changed} of {shown_uri(reader.uri)} changes the schema: {why}. All earlier versions were read.",
            version,
        ) from error

    def _store(self, entry: StoredSchema) -> None:
        number = self.number + 1
        if not self._files.add(number, entry.to_text()):
            raise InvalidArgumentError(
                f"Another query stores its schemas in {self._files.folder}. Pass another schema_tracking_location= to "
                "one of the two."
            )
        self._entries[number] = entry
        self.current = self._definition(number)

    def _restart(self, what: str, version: int) -> StreamRestartError:
        return StreamRestartError(
            f"{what} The schema of version {version} is stored in {self._files.folder}. Call read_stream again, and "
            "start the query with the same checkpoint, to go on with it.",
            version=version,
        )


class TrackedSource:
    """The part that the sources of rows and of changes share: answers to the driver, and the schemas of the stream.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    tracking : Tracking or None
        None: the schemas are not kept.
    number : int
        Of the last stored schema when the DataFrame was made.
    """

    def __init__(self, spark: SparkSession, tracking: Tracking | None, number: int) -> None:
        self._spark = spark
        self._tracking = tracking
        self._number = number
        self._tracked: TrackedSchema | None = None
        self._start = ""

    def answer(self, request: str) -> Any:
        """Return what the driver requests: a position as JSON, or the rows between two."""
        kind, *arguments = request.split("\n")
        return getattr(self, f"_{kind}")(*arguments)

    def _known(self) -> Snapshot:
        """Return a version of the table."""
        raise NotImplementedError

    def _begin(self, start: str, folder: str) -> None:
        self._start = start
        if self._tracking is not None:
            self._tracked = TrackedSchema(self._spark, self._tracking, self._known())
            self._tracked.begin(folder, self._number)


def schema_version(tracked: TrackedSchema | None, base: Snapshot, first: StreamPosition) -> VersionDefinition | None:
    """Return the schema that the rows of a DataFrame have, None if it is the latest one.

    Parameters
    ----------
    tracked : TrackedSchema or None
        The record that is stored for the stream.
    base : Snapshot
        The latest version.
    first : StreamPosition
        Where the stream begins if it continues no other one.
    """
    if tracked is None:
        return None
    return tracked.current or base.at(min(first.version, base.version))


def _behind_merged(base: Snapshot, position: StreamPosition, version: int) -> StreamPosition:
    """Return the version of a stored schema as the position if there are only changes without rows before it."""
    if position.is_initial_snapshot or position.index >= 0 or position.version >= version:
        return position
    for commit in base.commits(position.version, version - 1):
        if _has_files(commit):
            return position
    return replace(position, version=version)


def _has_files(commit: Commit) -> bool:
    return any(t.num_rows for t in (commit.adds, commit.removes, commit.cdcs))


def _plain(place: str) -> str:
    return re.sub(r"^file:/+", "/", place)
