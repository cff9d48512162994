"""Tables as DataFrames whose every query reads the version that is the latest one when it is planned.

Rows of a version that was requested have the same form, for they have the same schema and the same struct `_metadata`.

The relation in a DataFrame's plan specifies the table and its columns. A rule of Spark's optimizer (`LatestRule.java`)
puts the rows of a version in its place, of the same version in all parts of a query. A write first chooses the versions
of what it reads (`fixed_rows`): of its own table the one that its transaction began with.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from pyspark.sql import DataFrame, functions as F, types as T

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.connect import has_format
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.read import read_changes
from delta_core.engines.spark.read_versions import version_read, with_version
from delta_core.engines.spark.settings import SessionSettings, session_settings
from delta_core.engines.spark.snapshots import identity, open_latest
from delta_core.engines.spark.types import as_declared, declared_schema, spark_type
from delta_core.engines.spark.void_columns import paths_without_void, without_void_columns
from delta_core.errors import SchemaMismatchError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.scan.plan import FILE_PATH, ROW_INDEX
from delta_core.kernel.scan.scan import offered_columns
from delta_core.kernel.snapshot import Snapshot
from delta_core.schema.fields import Path, format_path, walk
from delta_core.schema.types import PrimitiveType

__all__ = ["FixedRows", "changes_until", "fixed_rows", "latest_changes", "latest_rows", "version_rows"]

#: Spark's struct of facts about a row's file, and its field that Spark takes from a listing of files.
_METADATA, _MODIFIED = "_metadata", "file_modification_time"
#: The column of that time in milliseconds.
_MODIFIED_MS = "__delta_modified"

#: Writes that choose the versions of what they read now: the version of their own table, and whether they read it.
_writes: dict[str, _OwnTable] = {}
_versions: WeakValueDictionary[str, _Version] = WeakValueDictionary()


class _OwnTable:
    def __init__(self, base: Snapshot | None) -> None:
        self.base, self.is_read = base, False


def latest_rows(
    spark: Any,
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
    opened: Snapshot | None = None,
) -> DataFrame:
    """Return the rows of a Delta table: each query reads its latest version.

    Parameters
    ----------
    spark : SparkSession
        The session; in one of Spark Connect whose server lacks the format delta, the rows are those of the version that
        is the latest one now.
    uri, storage_options, allow_external
        As of `read`.
    opened : Snapshot, optional
        The latest version, if it was opened a moment ago.

    Raises
    ------
    TableNotFoundError
        There is no table; also by a query, if the table was deleted.
    SchemaMismatchError
        By a query: the latest version does not have the columns that the table had when this was called.
    """
    place = os.fspath(uri)
    if storage_options is None and allow_external is None and has_format(spark):
        return spark.read.format("delta").load(place)
    snapshot = opened or _open(spark, place, storage_options, allow_external)

    def latest() -> Snapshot:
        return _open(spark, place, storage_options, allow_external)

    rows = _TableRows(spark, snapshot, storage_options, allow_external)
    return _relation(spark, snapshot, rows.options, rows, latest)


def version_rows(spark: Any, snapshot: Snapshot) -> DataFrame:
    """Return the rows of a version of a Delta table, with the schema and the metadata that `latest_rows` has."""
    rows = _TableRows(spark, snapshot)
    return _relation(spark, snapshot, rows.options, rows, lambda: snapshot, is_fixed=True)


def latest_changes(
    spark: Any, uri: str | os.PathLike[str], start_version: int | None, start_timestamp: str | None
) -> DataFrame:
    """Return the changes of a Delta table from a version on: each query reads those up to its latest version.

    Parameters
    ----------
    spark : SparkSession
        The session; in one of Spark Connect, the changes end with the version that is the latest one now.
    uri : str or path
        As of `read`.
    start_version, start_timestamp : optional
        As of `read_changes`, which also lists the errors.
    """
    place = os.fspath(uri)
    rows = _ChangedRows(spark, place, start_version, start_timestamp)
    options = ("changes", start_version, start_timestamp)
    return _relation(spark, _open(spark, place), options, rows, lambda: _open(spark, place))


def changes_until(spark: Any, uri: str | os.PathLike[str], **bounds: Any) -> DataFrame:
    """Return the changes of a Delta table between two versions or times, with the schema that `latest_changes` has.

    Parameters
    ----------
    spark : SparkSession
        The session.
    uri : str or path
        As of `read_changes`, and so are the others.
    **bounds
        ``start_version``, ``end_version``, ``start_timestamp`` and ``end_timestamp``.
    """
    place = os.fspath(uri)
    snapshot = _open(spark, place)
    rows = _ChangedRows(spark, place, **bounds)
    return _relation(spark, snapshot, ("changes", sorted(bounds.items())), rows, lambda: snapshot, is_fixed=True)


class _TableRows:
    """The rows of versions of a table, and the struct `_metadata` of them.

    Parameters
    ----------
    snapshot : Snapshot
        The version whose features decide which fields the struct has.
    """

    def __init__(
        self,
        spark: Any,
        snapshot: Snapshot,
        storage_options: Mapping[str, Any] | None = None,
        allow_external: Sequence[str] | Literal[False] | None = None,
    ) -> None:
        self._spark, self._storage_options, self._allow_external = spark, storage_options, allow_external
        self._lacks_void = session_settings(spark).drops_void_columns
        self.options = (sorted((storage_options or {}).items()), allow_external, self._lacks_void)
        offered = offered_columns(snapshot)
        #: The metadata columns of features, by the names of the struct's fields.
        self._names = {n.removeprefix("_"): n for n in offered if n not in (FILE_PATH, ROW_INDEX)}
        types = snapshot.state.types
        self.fields = T.StructType(
            [T.StructField(f, spark_type(offered[n].type, types)) for f, n in self._names.items()]
        )

    def __call__(self, snapshot: Snapshot) -> DataFrame:
        """Return the rows of a version."""
        same = identity(snapshot, self._storage_options, self._allow_external)
        made = frame(self._spark, snapshot.scan(self._columns(snapshot)), identity=same)
        return with_declared_types(made, snapshot.schema, session_settings(self._spark))

    def _columns(self, snapshot: Snapshot) -> list[Path] | None:
        return paths_without_void(snapshot.schema) if self._lacks_void else None

    def with_metadata(self, snapshot: Snapshot) -> DataFrame | None:
        """Return the rows of a version with the struct; None if the version does not have all of its fields."""
        names = list(self._names.values())
        if not offered_columns(snapshot).keys() >= set(names):
            return None
        modified = {_MODIFIED_MS: ("modificationTime", PrimitiveType("long"))}
        same = identity(snapshot, self._storage_options, self._allow_external)
        scan = snapshot.scan(self._columns(snapshot), names, constants=modified)
        made = frame(self._spark, scan, identity=f"{same} {_METADATA}")
        own = {f: F.col(quote_name(n)) for f, n in self._names.items()}
        own[_MODIFIED] = F.timestamp_millis(F.col(_MODIFIED_MS))
        files = made.select(f"{_METADATA}.*").columns
        fields = [own.pop(n, F.col(f"{_METADATA}.{n}")).alias(n) for n in files]
        fields += [column.alias(name) for name, column in own.items()]
        shown = without_void_columns(snapshot.schema) if self._lacks_void else snapshot.schema
        columns = [F.col(quote_name(f.name)) for f in shown.members]
        found = made.select(*columns, F.struct(*fields).alias(_METADATA))
        return with_declared_types(found, snapshot.schema, session_settings(self._spark))


class _ChangedRows:
    """The changes of a table: from a version or time to an end, or to the version that is requested."""

    fields = T.StructType([])

    def __init__(
        self,
        spark: Any,
        place: str,
        start_version: int | None = None,
        start_timestamp: str | None = None,
        end_version: int | None = None,
        end_timestamp: str | None = None,
    ) -> None:
        self._spark, self._place, self._end = spark, place, (end_version, end_timestamp)
        self._start, self._start_timestamp = start_version, start_timestamp

    def __call__(self, snapshot: Snapshot) -> DataFrame:
        """Return the changes up to the end, or to a version."""
        end, end_timestamp = self._end
        if end is None and end_timestamp is None:
            end = snapshot.version
        return read_changes(
            self._spark,
            self._place,
            self._start,
            end,
            start_timestamp=self._start_timestamp,
            end_timestamp=end_timestamp,
        )

    def with_metadata(self, snapshot: Snapshot) -> DataFrame | None:
        """Return the rows, which have no such struct: Spark reports it."""
        return self(snapshot)


def _open(
    spark: Any,
    place: str,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> Snapshot:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return open_latest(spark, place, storage_options, zone, allow_external)


def _relation(
    spark: Any,
    snapshot: Snapshot,
    options: Any,
    rows: _TableRows | _ChangedRows,
    latest: Callable[[], Snapshot],
    is_fixed: bool = False,
) -> DataFrame:
    first, version = rows(snapshot), _Version(snapshot, session_settings(spark))
    declared = declared_schema(snapshot.schema, snapshot.state.types)
    if not private.is_available(spark):
        return first if is_fixed else with_version(first, snapshot)
    root = snapshot.engine.storage.uri("")
    name = f"{root} {identity(snapshot)}" if is_fixed else root
    table = _Latest(spark, root, latest, rows, version, first, is_fixed)
    made = private.latest_relation(
        spark,
        root,
        as_declared(first.schema, declared),
        rows.fields,
        table=name,
        key=sha256(repr((name, options)).encode()).hexdigest(),
        is_fixed=is_fixed,
        request=table.answer,
    )
    return private.with_names(made)


class FixedRows(NamedTuple):
    """Rows at versions that are chosen.

    Parameters
    ----------
    rows : DataFrame
        The rows.
    read_version : int or None
        The earliest version at which rows of the table were read that they are written to, None if there are none.
    """

    rows: DataFrame
    read_version: int | None

    def note_in(self, transaction: Transaction[Snapshot], base: Snapshot) -> None:
        """Note in a write's transaction that it read all rows of its own table, if it did."""
        if self.read_version is not None:
            transaction.read(None, base.files.columns(["path", "dvId"]))


def fixed_rows(rows: DataFrame, base: Snapshot | None) -> FixedRows:
    """Return rows at versions that are chosen now.

    Parameters
    ----------
    rows : DataFrame
        The rows to write.
    base : Snapshot or None
        The version of the table with which the write's transaction began, None if it makes the table. Rows of this
        table are read at that version, but those of `read`, which has chosen one before.
    """
    if not private.is_available(rows.sparkSession):
        return FixedRows(rows, None if base is None else version_read(rows, base))
    name, own = uuid.uuid4().hex, _OwnTable(base)
    _writes[name] = own
    try:
        found = private.fixed(rows, name)
    finally:
        del _writes[name]
    version = None if base is None else version_read(rows, base)
    if version is None and own.is_read and base is not None:
        version = base.version
    return FixedRows(found, version)


class _Latest:
    """Answers the requests of one relation."""

    def __init__(
        self,
        spark: Any,
        root: str,
        latest: Callable[[], Snapshot],
        rows: _TableRows | _ChangedRows,
        version: _Version,
        first: DataFrame,
        is_fixed: bool,
    ) -> None:
        self._spark, self._root, self._latest, self._rows, self._is_fixed = spark, root, latest, rows, is_fixed
        self._identity, self._first, self._state = version.identity, first, version.snapshot.state

    def answer(self, request: str) -> Any:
        action, _, rest = request.partition(" ")
        if action == "open":
            return private.callback(self._spark, self._open(rest).answer)
        if action == "rows":
            return self._version_rows(_versions[rest])._jdf
        if action == "metadata":
            found = self._rows.with_metadata(_versions[rest].snapshot)
            if found is None:
                raise self._changed("features that provide metadata columns are gone")
            return found._jdf
        now = T.StructType.fromJson(json.loads(rest)).simpleString()
        raise self._changed(f"found {now}, expected {self._first.schema.simpleString()}")

    def _version_rows(self, version: _Version) -> DataFrame:
        if version.identity == self._identity:
            return self._first
        before, now = _physical_paths(self._state), _physical_paths(version.snapshot.state)
        others = [format_path(path) for path, stored in before.items() if now.get(path, stored) != stored]
        if others:
            raise self._changed(f"another column has the name {others[0]} now")
        strict = {path for path, f in walk(self._state.schema) if not f.nullable}
        relaxed = [path for path, f in walk(version.snapshot.schema) if f.nullable and path in strict]
        if relaxed:
            raise self._changed(f"column {format_path(relaxed[0])} may be null now")
        return self._rows(version.snapshot)

    def _changed(self, how: str) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"The columns of the table at {self._root} changed since this DataFrame was made: {how}. "
            "Make the DataFrame again.",
            path=self._root,
        )

    def _open(self, write: str) -> _Version:
        own = None if self._is_fixed else _writes.get(write)
        if own is None or own.base is None or own.base.engine.storage.uri("") != self._root:
            return _Version(self._latest(), session_settings(self._spark))
        own.is_read = True
        return _Version(own.base, session_settings(self._spark))


class _Version:
    """A version that a query reads, as long as the driver has the query."""

    def __init__(self, snapshot: Snapshot, settings: SessionSettings) -> None:
        self.snapshot, self._name = snapshot, uuid.uuid4().hex
        #: The text that is the same for versions whose rows are read by the same plan.
        self.identity = f"{identity(snapshot)} {settings.pads_chars}"
        _versions[self._name] = self

    def answer(self, request: str) -> str:
        return self._name if request == "name" else self.identity


def _physical_paths(state: TableState) -> dict[Path, Path]:
    """Return the names that columns have in files, by those that they have in the table."""
    pairs = zip(walk(state.schema), walk(state.column_map.physical), strict=True)
    return {path: stored for (path, _), (stored, _) in pairs}
