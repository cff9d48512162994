"""Tables as DataFrames whose every query reads the version that is the latest one when it is planned.

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

from pyspark.sql import DataFrame, types as T

from delta_core.engines.spark.chars import with_declared_types
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.frame import frame
from delta_core.engines.spark.read import read_changes
from delta_core.engines.spark.read_versions import version_read
from delta_core.engines.spark.settings import SessionSettings, session_settings
from delta_core.engines.spark.snapshots import identity, open_latest
from delta_core.engines.spark.types import declared_schema
from delta_core.errors import SchemaMismatchError
from delta_core.kernel.commit.transaction import Transaction
from delta_core.kernel.plugins.state import TableState
from delta_core.kernel.snapshot import Snapshot
from delta_core.schema.fields import Path, format_path, walk

__all__ = ["FixedRows", "fixed_rows", "latest_changes", "latest_rows"]

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
        The session; in one of Spark Connect, the rows are those of the version that is the latest one now.
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

    def rows(snapshot: Snapshot) -> DataFrame:
        same = identity(snapshot, storage_options, allow_external)
        made = frame(spark, snapshot.scan(), identity=same)
        return with_declared_types(made, snapshot.schema, session_settings(spark))

    place = os.fspath(uri)
    snapshot = opened or _open(spark, place, storage_options, allow_external)
    options = (sorted((storage_options or {}).items()), allow_external)

    def latest() -> Snapshot:
        return _open(spark, place, storage_options, allow_external)

    return _relation(spark, snapshot, options, rows, latest)


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

    def rows(snapshot: Snapshot) -> DataFrame:
        return read_changes(spark, place, start_version, snapshot.version, start_timestamp=start_timestamp)

    return _relation(
        spark, _open(spark, place), ("changes", start_version, start_timestamp), rows, lambda: _open(spark, place)
    )


def _open(
    spark: Any,
    place: str,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: Sequence[str] | Literal[False] | None = None,
) -> Snapshot:
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return open_latest(spark, place, storage_options, zone, allow_external)


def _relation(
    spark: Any, snapshot: Snapshot, options: Any, rows: Callable[[Snapshot], DataFrame], latest: Callable[[], Snapshot]
) -> DataFrame:
    first, version = rows(snapshot), _Version(snapshot, session_settings(spark))
    declared = declared_schema(snapshot.schema, snapshot.state.types)
    if not private.is_available(spark):
        return first
    root = snapshot.engine.storage.uri("")
    key = sha256(repr((root, options)).encode()).hexdigest()
    table = _Latest(spark, root, latest, rows, version, first)
    return private.with_names(
        private.latest_relation(spark, root, _as_declared(first.schema, declared), root, key, table.answer)
    )


def _as_declared(rows: T.StructType, declared: T.StructType) -> T.StructType:
    """Return the schema of rows with what the columns of their table have beside types."""
    fields = {f.name: f for f in declared.fields}

    def found(f: T.StructField) -> T.StructField:
        own = fields.get(f.name)
        if own is None or not _is_same(f.dataType, own.dataType):
            return f
        return T.StructField(f.name, own.dataType, own.nullable, own.metadata | f.metadata)

    return T.StructType([found(f) for f in rows.fields])


def _is_same(a: T.DataType, b: T.DataType) -> bool:
    """Whether types are the same but for what they may have as null."""
    return bool(a.simpleString() == b.simpleString())


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
        return FixedRows(rows, None)
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
        rows: Callable[[Snapshot], DataFrame],
        version: _Version,
        first: DataFrame,
    ) -> None:
        self._spark, self._root, self._latest, self._rows = spark, root, latest, rows
        self._identity, self._first, self._state = version.identity, first, version.snapshot.state

    def answer(self, request: str) -> Any:
        action, _, rest = request.partition(" ")
        if action == "open":
            return private.callback(self._spark, self._open(rest).answer)
        if action == "rows":
            return self._version_rows(_versions[rest])._jdf
        found = T.StructType.fromJson(json.loads(rest)).simpleString()
        raise self._changed(f"found {found}, expected {self._first.schema.simpleString()}")

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
        own = _writes.get(write)
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
