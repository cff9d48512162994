"""One distributed write: Spark's own Parquet writer into a fresh directory, and the list of what it committed.

Classic Spark writes through the sink that keeps a manifest: files go straight to their place, nothing is renamed or
listed, and files of attempts that lost or failed are never named. Elsewhere plain ``DataFrame.write`` does it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from pyspark.sql import DataFrame

from delta_core.engines.interface import Storage
from delta_core.engines.records import RangeRequest
from delta_core.engines.spark.plan import private
from delta_core.engines.spark.plan.files import hadoop_path
from delta_core.errors import EngineError

__all__ = ["Job"]

_MANIFEST = "_spark_metadata"
#: The form of the files, whatever the session specifies: no INT96, no hybrid calendar, variants whole.
_CONF = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.streaming.commitProtocolClass": "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol",
}
#: Names that moved within Spark, newest first.
_SINKS = (
    "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
    "org.apache.spark.sql.execution.streaming.FileStreamSink",
)
_PROTOCOLS = (
    "org.apache.spark.sql.execution.streaming.sinks.ManifestFileCommitProtocol",
    "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol",
)


class Job(Struct):
    """Writes rows into one directory of a table.

    Parameters
    ----------
    directory : str
        From the table's root; used by no other job, and not hidden.
    options : Mapping
        Of Spark's Parquet writer.
    plain : bool
        Whether to go without Spark's private interfaces.
    """

    spark: Any
    storage: Storage
    directory: str
    options: Mapping[str, str] = {}
    plain: bool = False

    @property
    def place(self) -> str:
        """The directory as Hadoop spells it."""
        return hadoop_path(self.storage.uri(self.directory))

    @property
    def _is_classic(self) -> bool:
        return not self.plain and private.is_available(self.spark)

    def run(self, rows: DataFrame, partition_columns: Sequence[str]) -> list[str]:
        """Write rows and return the paths of the files, from the table's root and decoded.

        After any error, the directory is deleted before it is raised.
        """
        try:
            if self._is_classic:
                self._run_sink(rows, partition_columns)
                return self._listed()
            return self._run_plain(rows, partition_columns)
        except BaseException:
            self.delete()
            raise

    def delete(self, paths: Sequence[str] | None = None) -> None:
        """Delete some files, or the directory with all that is in it; what a store rejects is left to vacuum."""
        with contextlib.suppress(Exception):
            if not private.is_available(self.spark):
                self.storage.delete(self._inputs() if paths is None else paths)
            elif paths is None:
                _delete(self.spark, self.place)
            else:
                for path in paths:
                    _delete(self.spark, hadoop_path(self.storage.uri(path)))

    # --- the manifest sink -----------------------------------------------------------------

    def _run_sink(self, rows: DataFrame, partition_columns: Sequence[str]) -> None:
        spark, jvm = self.spark, self.spark._jvm
        # settings are in a session of their own: another thread's queries don't see them
        session = spark._jsparkSession.cloneSession()
        for key, value in _CONF.items():
            session.conf().set(key, value)
        session.conf().set("spark.sql.streaming.commitProtocolClass", _first_class(jvm, _PROTOCOLS))
        parquet = jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        arguments = [
            session,
            self.place,
            parquet,
            jvm.PythonUtils.toSeq(list(partition_columns)),
            jvm.PythonUtils.toScalaMap(self._options()),
        ]
        with _calendar(spark):
            private.run_sink(spark, _SINKS, arguments, rows)

    def _options(self) -> dict[str, str]:
        # partition timestamps become directories in UTC
        return {**self.options, "timeZone": "UTC"}

    def _listed(self) -> list[str]:
        """Return what the manifest names, and delete it."""
        path = f"{self.directory}/{_MANIFEST}/0"
        try:
            (data,) = self.storage.read([RangeRequest(path)])
        except FileNotFoundError:
            raise EngineError(
                f"Spark's sink left no list of files at {path}. Does the driver's Hadoop see the store that Python "
                "sees?",
                path=path,
            ) from None
        lines = bytes(data).decode().splitlines()[1:]
        found = [self._relative(unquote(json.loads(line)["path"])) for line in lines if line.strip()]
        _delete(self.spark, f"{self.place}/{_MANIFEST}")
        return found

    def _relative(self, place: str) -> str:
        start = place.rfind(f"/{self.directory}/")
        if start < 0:
            raise EngineError(f"Spark wrote {place}, which does not lie in {self.place}.", path=place)
        return place[start + 1 :]

    # --- plain data frames -----------------------------------------------------------------

    def _run_plain(self, rows: DataFrame, partition_columns: Sequence[str]) -> list[str]:
        writer = rows.write.mode("error").options(**self._options())
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        with _set(self.spark, {k: v for k, v in _CONF.items() if "streaming" not in k}):
            (writer.partitionBy(*partition_columns) if partition_columns else writer).parquet(self.place)
        return self._inputs()

    def _inputs(self) -> list[str]:
        files = self.spark.read.option("recursiveFileLookup", "true").schema("x INT").parquet(self.place).inputFiles()
        return [self._relative(unquote(urlsplit(f).path)) for f in files]


@contextlib.contextmanager
def _calendar(spark: Any) -> Iterator[None]:
    """Have executors write dates as they are: this one setting they take from the session that runs the query."""
    key = "spark.sql.parquet.datetimeRebaseModeInWrite"
    if str(spark.conf.get(key)).upper() == "CORRECTED":
        yield
    else:
        with _set(spark, {key: "CORRECTED"}):
            yield


@contextlib.contextmanager
def _set(spark: Any, values: Mapping[str, str]) -> Iterator[None]:
    """Set the session's settings for a while; those that this Spark does not support are left out."""
    before: dict[str, str | None] = {}
    for key, value in values.items():
        before[key] = spark.conf.get(key, None)
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


# --- Spark's inside ------------------------------------------------------------------------


def _first_class(jvm: Any, names: Sequence[str]) -> str:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in names:
        with contextlib.suppress(Exception):
            jvm.java.lang.Class.forName(name, False, loader)
            return name
    raise EngineError(f"This Spark has none of the classes {', '.join(names)}.")


def _delete(spark: Any, place: str) -> None:
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).delete(path, True)
