"""Options of the format delta, as arguments of the functions that read and write."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from pyspark.sql import DataFrame

from delta_core.engines.spark.drop_in.paths import table_path_of
from delta_core.engines.spark.format_read import check_options, place_of, read_format
from delta_core.engines.spark.format_write import check_write_options, write_format
from delta_core.engines.spark.latest import changes_until, latest_changes, latest_rows, version_rows
from delta_core.engines.spark.read import read
from delta_core.engines.spark.settings import session_settings
from delta_core.engines.spark.snapshots import open_latest
from delta_core.engines.spark.source import STORAGE, prefixes
from delta_core.engines.spark.stream_changes import read_changes_stream
from delta_core.engines.spark.stream_read import read_stream
from delta_core.errors import InvalidArgumentError, TableNotFoundError, UnsupportedOperationError, VersionNotFoundError
from delta_core.kernel.log.timestamps import parse_ms
from delta_core.kernel.snapshot import open_snapshot

__all__ = ["Options", "check_time", "read_frame", "save_format", "stream_frame", "write_arguments"]

_log = logging.getLogger(__name__)

_READ = frozenset({"path", "versionasof", "timestampasof"})
_CHANGES = frozenset({"readchangefeed", "readchangedata"})
_CHANGES_READ = _CHANGES | {"path", "startingversion", "startingtimestamp", "endingversion", "endingtimestamp"}
#: Of both kinds of streams.
_STARTS = frozenset({
    "path", "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger", "failondataloss",
    "schematrackinglocation", "schemalocation", "streamingsourcetrackingid", "allowsourcecolumndrop",
    "allowsourcecolumnrename", "allowsourcecolumntypechange", "excluderegex",
})  # fmt: skip
_STREAM = _STARTS | {"ignoredeletes", "ignorechanges", "ignorefiledeletion", "skipchangecommits"}
_WRITE = frozenset({
    "path", "mergeschema", "overwriteschema", "replacewhere", "partitionoverwritemode", "usermetadata", "txnappid",
    "txnversion", "__partition_columns", "__clustering_columns", "optimizewrite", "maxrecordsperfile", "compression",
    "datachange", "replaceusing", "replaceon",
})  # fmt: skip
#: Beginnings of options that a write follows: properties of a new table, and those of the Parquet writer.
_PROPERTIES, _PARQUET = "delta.", "parquet."
#: And of settings of Hadoop's file systems, which have the session's.
_HADOOP = ("fs.", "hadoop.", "spark.hadoop.")
_CHOOSES_ROWS = frozenset({
    "versionasof", "timestampasof", "startingversion", "startingtimestamp", "endingversion", "endingtimestamp",
    "ignoredeletes", "ignorechanges", "ignorefiledeletion", "skipchangecommits", "replacewhere", "replaceusing",
    "replaceon",
})  # fmt: skip
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)


class Options(Struct, frozen=True):
    """Options by their names: in lower case, but those of properties as they were spelled."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, given: Mapping[Any, Any]) -> Options:
        """Return options that Spark passes."""
        names = {str(name): str(value) for name, value in dict(given).items()}
        return cls({n if n.startswith((_PROPERTIES, _PARQUET)) else n.lower(): value for n, value in names.items()})

    @property
    def path(self) -> str:
        """The path; InvalidArgumentError if there is none."""
        self.check_path()
        return self.texts["path"]

    def check_path(self) -> None:
        """Reject options without a path.

        Raises
        ------
        InvalidArgumentError
            There is none.
        """
        if "path" not in self.texts:
            raise InvalidArgumentError(
                "Found no path for the format delta. Pass the table's path to load, save or start."
            )

    def check(self, known: frozenset[str], instead: str) -> None:
        """Name options that are not known in a warning, and reject those among them that have to be followed.

        delta-spark passes over options that it does not have, and programs set some that are meant for another source.

        Raises
        ------
        UnsupportedOperationError
            For an option that chooses rows in another call, and for one of Hadoop's file systems.
        """
        others = self.texts.keys() - known
        if hadoop := sorted(n for n in others if n.startswith(_HADOOP)):
            raise UnsupportedOperationError(
                f"Found the options {', '.join(hadoop)}. Files are read and written with the settings of the session: "
                "set these in its configuration as spark.hadoop.fs...."
            )
        if misplaced := sorted(others & _CHOOSES_ROWS):
            raise UnsupportedOperationError(
                f"Found the options {', '.join(misplaced)}, which the format delta has in another call. {instead}"
            )
        if unknown := sorted(others):
            names = ", ".join(unknown)
            _log.warning("The options %s have no effect: the format delta does not have them. %s", names, instead)

    def text(self, name: str) -> str | None:
        """Return an option, None if it is not given."""
        return self.texts.get(name.lower())

    def starting(self, beginning: str) -> dict[str, str]:
        """Return the options whose names have a beginning."""
        return {name: text for name, text in self.texts.items() if name.startswith(beginning)}

    def flag(self, name: str, default: bool = False) -> bool:
        """Return whether an option is true.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        found = (self.text(name) or str(default)).lower()
        if found not in ("true", "false"):
            raise InvalidArgumentError(f"Found {found!r} for the option {name}, expected true or false.")
        return found == "true"

    def number(self, name: str) -> int | None:
        """Return an option as a whole number, None if it is not given.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        found = self.text(name)
        if found is not None and not (found.isascii() and found.isdigit()):
            raise InvalidArgumentError(f"Found {found!r} for the option {name}, expected a whole number from 0 on.")
        return None if found is None else int(found)

    def size(self, name: str) -> int | None:
        """Return an option as bytes, None if it is not given.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        found = self.text(name)
        match = None if found is None else _SIZE.fullmatch(found.strip())
        if found is not None and match is None:
            raise InvalidArgumentError(f"Found {found!r} for the option {name}, expected a size such as 512m.")
        return None if match is None else int(match[1]) << 10 * " kmgt".index(match[2].lower() or " ")

    def version(self, name: str) -> Any:
        """Return an option as a version or ``latest``, None if it is not given.

        Raises
        ------
        InvalidArgumentError
            It has another value.
        """
        return "latest" if (self.text(name) or "").lower() == "latest" else self.number(name)


def _has_changes(options: Options) -> bool:
    return any(options.flag(name) for name in _CHANGES if options.text(name) is not None)


def read_frame(spark: Any, options: Options) -> DataFrame:
    """Return the rows that ``spark.read`` loads."""
    if not _has_changes(options):
        options.check(_READ | _CHANGES, "Use the arguments of delta_core.spark.read.")
        version, timestamp = options.number("versionAsOf"), options.text("timestampAsOf")
        path = table_path_of(spark, options.path)
        path.check_travel(version is not None or timestamp is not None)
        version, timestamp = path.version if version is None else version, timestamp or path.timestamp
        if version is None and timestamp is None:
            with contextlib.suppress(TableNotFoundError):  # it may be a table of another format
                return path.chosen(latest_rows(spark, path.place))
        if timestamp is not None and version is None:
            timestamp = session_settings(spark).time(timestamp)
            check_time(spark, path.place, timestamp)
        with contextlib.suppress(TableNotFoundError):
            zone = str(spark.conf.get("spark.sql.session.timeZone"))
            return path.chosen(version_rows(spark, open_snapshot(path.place, version, timestamp, timezone=zone)))
        try:
            return path.chosen(read(spark, path.place, version, timestamp))
        except TableNotFoundError:
            path.check_alone()
            raise
    options.check(_CHANGES_READ, "Use the arguments of delta_core.spark.read_changes.")
    start, start_timestamp = options.number("startingVersion"), options.text("startingTimestamp")
    end, end_timestamp = options.number("endingVersion"), options.text("endingTimestamp")
    if end is None and end_timestamp is None:
        return latest_changes(spark, options.path, start, start_timestamp)
    return changes_until(
        spark,
        options.path,
        start_version=start,
        end_version=end,
        start_timestamp=start_timestamp,
        end_timestamp=end_timestamp,
    )


def check_time(
    spark: Any, place: str, timestamp: str | int, instead: str = "Read the latest version without a time."
) -> None:
    """Reject a time after the last commit, as delta-spark does: its version may be another one later.

    Parameters
    ----------
    spark : SparkSession
        The session, whose time zone a text without one has.
    place : str
        The table.
    timestamp : str or int
        A text, or microseconds since 1970.
    instead : str
        The remedy, for the error.

    Raises
    ------
    VersionNotFoundError
        The time is after the last commit.
    """
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    with contextlib.suppress(TableNotFoundError):  # `read` reports it, or reads another format
        last = open_latest(spark, place, None, zone).timestamp_ms
        given = timestamp // 1000 if isinstance(timestamp, int) else parse_ms(timestamp, zone)
        if given > last:
            raise VersionNotFoundError(
                f"The time {timestamp} is after the last commit of the table at {place}, which was made "
                f"{datetime.fromtimestamp(last / 1000, UTC):%Y-%m-%d %H:%M:%S.%f} UTC. {instead}",
                path=place,
            )


def format_frame(spark: Any, name: str, options: Options) -> DataFrame:
    """Return the rows that ``spark.read`` loads of a format other than delta.

    Raises
    ------
    TableNotFoundError
        There is no table of the format.
    UnsupportedOperationError
        For an option that the format does not have.
    InvalidArgumentError
        There is no path, or a number is none.
    """
    storage = {n[len(STORAGE) :]: text for n, text in options.texts.items() if n.startswith(STORAGE)}
    own = {n: text for n, text in options.texts.items() if not n.startswith(STORAGE)}
    path, external = own.pop("path", None), prefixes(own.pop("allowexternal", None))
    if path is None:
        raise InvalidArgumentError(f"Found no path for the format {name}. Pass the table's path to load.")
    return read_format(spark, place_of(name, path, storage or None, external), check_options(name, own))


def save_format(rows: DataFrame, name: str, options: Options, mode: str) -> None:
    """Write rows as ``df.write.format(name).save`` does.

    Raises
    ------
    UnsupportedOperationError
        For an option that the format does not have, and partition columns.
    InvalidArgumentError
        There is no path, or a value is none of the option's type.
    """
    storage = {n[len(STORAGE) :]: text for n, text in options.texts.items() if n.startswith(STORAGE)}
    own = {n: text for n, text in options.texts.items() if not n.startswith(STORAGE)}
    path = own.pop("path", None)
    if path is None:
        raise InvalidArgumentError(f"Found no path for the format {name}. Pass the table's path to save.")
    place = place_of(name, path, storage or None, None)
    write_format(rows, place, mode, check_write_options(name, place.table_format, own))


def stream_frame(spark: Any, options: Options) -> DataFrame:
    """Return the rows that ``spark.readStream`` loads."""
    starts: dict[str, Any] = {
        "start": options.version("startingVersion"),
        "start_timestamp": options.text("startingTimestamp"),
        "max_bytes": options.size("maxBytesPerTrigger"),
        "fail_on_data_loss": options.flag("failOnDataLoss", True),
        "exclude_regex": options.text("excludeRegex"),
        "schema_tracking_location": options.text("schemaTrackingLocation") or options.text("schemaLocation"),
        "source_tracking_id": options.text("streamingSourceTrackingId"),
        "allow_source_column_drop": options.text("allowSourceColumnDrop"),
        "allow_source_column_rename": options.text("allowSourceColumnRename"),
        "allow_source_column_type_change": options.text("allowSourceColumnTypeChange"),
    }
    if starts["start_timestamp"] is not None:
        check_time(spark, options.path, starts["start_timestamp"], "Pass startingVersion=latest.")
    files = options.number("maxFilesPerTrigger")
    if files is not None or starts["max_bytes"] is not None:
        starts["max_files"] = files
    if _has_changes(options):
        # the feed has the changes, so there is nothing to skip
        options.check(_STREAM | _CHANGES, "Use the arguments of delta_core.spark.read_changes_stream.")
        return read_changes_stream(spark, options.path, **starts)
    options.check(_STREAM | _CHANGES, "Use the arguments of delta_core.spark.read_stream.")
    return read_stream(
        spark,
        options.path,
        **starts,
        skip_change_commits=options.flag("skipChangeCommits"),
        ignore_deletes=options.flag("ignoreDeletes"),
        # the older name of ignoreChanges
        ignore_changes=options.flag("ignoreChanges") or options.flag("ignoreFileDeletion"),
    )


def write_arguments(options: Options) -> dict[str, Any]:
    """Return the arguments of `write` for the options of ``df.write``, without those at their defaults.

    Raises
    ------
    UnsupportedOperationError
        For an option that is not known.
    InvalidArgumentError
        For a value that an option can't have.
    """
    parquet, properties = options.starting(_PARQUET), options.starting(_PROPERTIES)
    options.check(_WRITE | parquet.keys() | properties.keys(), "Use the arguments of delta_core.spark.write.")
    app, number = options.text("txnAppId"), options.number("txnVersion")
    if (app is None) != (number is None):
        raise InvalidArgumentError("Found only one of the options txnAppId and txnVersion, expected both or none.")
    merge, replace = options.flag("mergeSchema"), options.flag("overwriteSchema")
    mode_without = "fixed" if options.text("mergeSchema") is not None else None
    codec = options.text("compression")
    using = options.text("replaceUsing")
    partition_by, cluster_by = options.text("__partition_columns"), options.text("__clustering_columns")
    mode = options.text("partitionOverwriteMode")
    found: dict[str, Any] = {
        "schema_mode": "overwrite" if replace else "merge" if merge else mode_without,
        "partition_by": json.loads(partition_by) if partition_by else None,
        "cluster_by": json.loads(cluster_by) if cluster_by else None,
        "replace_where": options.text("replaceWhere"),
        "partition_overwrite_mode": None if mode is None else mode.lower(),
        "user_metadata": options.text("userMetadata"),
        "txn": None if app is None else (app, number),
        "optimize_write": options.flag("optimizeWrite") if options.text("optimizeWrite") is not None else None,
        "max_records_per_file": options.number("maxRecordsPerFile"),
        "parquet_options": {**parquet, **({} if codec is None else {"compression": codec})} or None,
        "properties": properties or None,
        "data_change": False if not options.flag("dataChange", True) else None,
        "replace_using": None if using is None else [name.strip() for name in using.split(",")],
        "replace_on": options.text("replaceOn"),
    }
    return {name: value for name, value in found.items() if value is not None}
