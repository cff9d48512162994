"""A session that has the format delta: its extension and its catalog are compiled before it starts."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping
from typing import Any, cast

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from delta_core.engines.spark.connect import SERVER, has_format
from delta_core.engines.spark.drop_in.answers import Answers
from delta_core.engines.spark.failures import convert_failures
from delta_core.engines.spark.format_read import split_formats
from delta_core.engines.spark.java.driver_classes import compiled
from delta_core.engines.spark.java.sources import source
from delta_core.engines.spark.plan.private import callback, check_version, is_available, settings
from delta_core.engines.spark.spark_errors import raises_spark_errors
from delta_core.engines.spark.unconfigured import REMEDY, note_format
from delta_core.errors import UnsupportedOperationError

__all__ = ["configure", "save_jar"]

_EXTENSIONS, _CATALOG = "spark.sql.extensions", "spark.sql.catalog.spark_catalog"
_OWN = {_EXTENSIONS: "delta.Extensions", _CATALOG: "delta.Catalog"}
#: Classes that programs for delta-spark name in these settings: those of this library are in their places.
_PEER = {
    _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
    _CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: The connector of Unity Catalog for Spark, whose tables need delta-spark: it loads its classes by their names.
_UNITY = "io.unitycatalog.spark."
_INSTEAD = "Use delta_core.spark.read, write, sql and DeltaTable, which need no set-up."


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Return a builder whose session has the format ``delta``, for paths and for tables of its catalog.

    It also has the formats of installed packages that plan splits, such as ``lance``, for reads of paths.

    Parameters
    ----------
    builder : SparkSession.Builder
        Of a classic session that does not exist yet; or of one of Spark Connect, whose server has the format.

    Raises
    ------
    UnsupportedOperationError
        By ``getOrCreate``: delta-spark is in the session, a session exists already, it is one of Spark Connect whose
        server does not have the format, another catalog has the name ``spark_catalog``, or the version of PySpark is
        untested.
    EngineError
        By ``getOrCreate``: this version of Spark can't compile the format.

    Notes
    -----
    Nothing is downloaded: the driver compiles the format with Spark's own compiler, and executors need none of it. The
    settings ``spark.sql.extensions`` and ``spark.sql.catalog.spark_catalog`` get classes of this library; those of
    delta-spark are left out of them.
    """
    found = _Builder()
    found._options = dict(builder._options)
    return found


class _Builder(SparkSession.Builder):  # type: ignore[misc, unused-ignore]  # PySpark declares a property
    @raises_spark_errors
    def getOrCreate(self) -> SparkSession:  # noqa: N802 (PySpark's name)
        check_version()
        before = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
        if before is None and "spark.remote" not in self._options:
            self._load()
        spark = super().getOrCreate()
        if has_format(spark):
            return spark
        if not is_available(spark):
            raise UnsupportedOperationError(
                "This session can't get the format delta: it is one of Spark Connect, whose server was started without "
                f"it, or PySpark {pyspark.__version__} is untested. {SERVER} Or: {_INSTEAD}"
            )
        if getattr(spark, "_delta_core_format", None) is None:
            _connect(spark)
        return spark

    def _load(self) -> None:
        """Have the driver's Java process load the format, and the session's settings name it."""
        conf = SparkConf()
        for name, value in self._options.items():
            conf.set(name, value)
        SparkContext._ensure_initialized(conf=conf)  # starts that process, as the session would
        defaults = SparkConf()
        _check_catalogs({**dict(defaults.getAll()), **self._options})
        _check_alone(_loader(SparkContext))
        _add_classes(SparkContext)
        given = {name: self._options.get(name) or defaults.get(name, "") for name in _OWN}
        other = given[_CATALOG] not in ("", "builtin", _PEER[_CATALOG], _OWN[_CATALOG])
        if other:
            raise UnsupportedOperationError(
                f"Found the catalog {given[_CATALOG]} as {_CATALOG}, in whose place the format delta needs its own. "
                f"Configure that catalog under another name. Or: {_INSTEAD}"
            )
        extensions = [
            e for e in str(given[_EXTENSIONS]).split(",") if e and e not in (_PEER[_EXTENSIONS], _OWN[_EXTENSIONS])
        ]
        self._options[_EXTENSIONS] = ",".join([*extensions, _OWN[_EXTENSIONS]])
        self._options[_CATALOG] = _OWN[_CATALOG]


def _check_catalogs(found: Mapping[str, Any]) -> None:
    for name, text in found.items():
        if name.startswith("spark.sql.catalog.") and str(text).startswith(_UNITY):
            raise UnsupportedOperationError(
                f"Found Unity Catalog's connector {text} as {name}: its tables need delta-spark, whose format has the "
                "name of this one. Leave the setting out, and set UNITY_CATALOG_URL and UNITY_CATALOG_TOKEN in the "
                "environment: uc://catalog.schema.table is then a path of the format delta, and "
                "delta.`uc://catalog.schema.table` the table in SQL."
            )


def _loader(context: Any) -> Any:
    return context._jvm.java.lang.Thread.currentThread().getContextClassLoader()


def _check_alone(loader: Any) -> None:
    for name in (
        "org/apache/spark/sql/delta/sources/DeltaDataSource.class",
        "io/delta/sql/DeltaSparkSessionExtension.class",
    ):
        if loader.getResource(name) is not None:
            raise UnsupportedOperationError(
                "Found delta-spark in the session, whose format is also named delta. Remove its jar. Or: "
                f"{_INSTEAD} It is without configure then."
            )


def _add_classes(context: Any) -> None:
    """Add the classes to those of the driver, unless it has them from an earlier session."""
    loader, jvm = _loader(context), context._jvm
    for name, text in _sources().items():
        if loader.getResource(f"{name}/DefaultSource.class") is None:
            loader.addURL(jvm.java.io.File(str(compiled(jvm, text))).toURI().toURL())


@raises_spark_errors
def save_jar(spark: SparkSession, path: str | os.PathLike[str]) -> None:
    """Write the classes of the format ``delta`` as a jar, for sessions that exist before a program.

    A session that is started with this jar (``spark.jars``, or ``spark.driver.extraClassPath``), with
    ``spark.sql.extensions=delta.Extensions`` and ``spark.sql.catalog.spark_catalog=delta.Catalog``, has the format as
    soon as the program calls `configure` and ``getOrCreate``.

    Parameters
    ----------
    spark : SparkSession
        A classic session of the version of Spark that is to have the jar.
    path : str or path
        The file to write; one that exists is replaced.

    Raises
    ------
    UnsupportedOperationError
        For a session of Spark Connect.
    EngineError
        If this version of Spark can't compile the format.
    """
    if not is_available(spark):
        raise UnsupportedOperationError(f"Spark Connect has no driver whose compiler could be used. {SERVER}")
    with zipfile.ZipFile(path, "w") as jar:
        for text in _sources().values():
            with zipfile.ZipFile(compiled(cast(Any, spark)._jvm, text)) as classes:
                for name in classes.namelist():
                    jar.writestr(name, classes.read(name))
        jar.writestr(_mark(), "")


def _sources() -> dict[str, str]:
    """Return the sources of formats by their packages."""
    return {"delta": source(__package__)} | {name: _format_source(name) for name in split_formats()}


def _mark() -> str:
    """Return the name of a file in a jar of these very classes."""
    return f"delta/source-{hashlib.sha256(_sources()['delta'].encode()).hexdigest()[:32]}"


def _check_classes(spark: Any, loader: Any) -> None:
    """Reject classes that another version of this package compiled."""
    place = str(loader.getResource("delta/Python.class").getPath())
    own = compiled(spark._jvm, _sources()["delta"])
    if loader.getResource(_mark()) is None and not place.endswith(f"{own.name}!/delta/Python.class"):
        raise UnsupportedOperationError(
            f"The jar {place.partition('!')[0]} is of another version of this package. Write it again with "
            "delta_core.spark.save_jar, and restart the session."
        )


def _format_source(name: str) -> str:
    """Return the Java class by which Spark finds a format of this name."""
    body = f'public DefaultSource() {{ super("{name}"); }}'
    return f"package {name};\npublic class DefaultSource extends delta.FormatSource {{ {body} }}\n"


def _connect(spark: Any) -> None:
    """Have the session's driver call this process for its tables."""
    loader = _loader(spark)
    _check_alone(loader)
    made = None
    if loader.getResource("delta/Python.class") is not None:
        made = loader.loadClass("delta.Python").getConstructors()[0].newInstance(None)
    if made is None or not made.serves(spark._jsparkSession):
        raise UnsupportedOperationError(
            "A session or its SparkContext exists already, and the format delta can only be added to a new one: "
            f"stop it before. {REMEDY}"
        )
    _check_classes(spark, loader)
    _check_catalogs(settings(spark))
    convert_failures()
    note_format()
    made.connect(callback(spark, Answers(spark).answer))
    spark._delta_core_format = made
