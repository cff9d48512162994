"""The format "delta" of a Spark session: what spark.read and df.write do with it is done by `read` and `write`."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedOperationError
from delta_core.spark.failures import convert_failures
from delta_core.spark.plan.private import callback, check_version, is_available
from delta_core.spark.read import read
from delta_core.spark.save import write

__all__ = ["configure"]

_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "error", "Ignore": "ignore"}
_READ = frozenset({"path", "versionasof", "timestampasof"})
_WRITE = frozenset(
    {
        "path",
        "mergeschema",
        "overwriteschema",
        "replacewhere",
        "partitionoverwritemode",
        "usermetadata",
        "txnappid",
        "txnversion",
        "__partition_columns",
    }
)


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Return a builder whose session has the format ``delta``, for ``spark.read``, ``df.write`` and paths in SQL.

    Parameters
    ----------
    builder : SparkSession.Builder
        Of a classic session that does not exist yet.

    Raises
    ------
    UnsupportedOperationError
        By ``getOrCreate``: delta-spark is in the session, a session exists already, it is one of Spark Connect, or the
        version of PySpark is untested.
    EngineError
        By ``getOrCreate``: this version of Spark can't compile the format.

    Notes
    -----
    Nothing is downloaded: the driver compiles the format with Spark's own compiler, and executors need none of it.
    Tables in a catalog (``saveAsTable``, ``CREATE TABLE``) and SQL that changes rows are rejected by name.
    """
    found = _Builder()
    found._options = dict(builder._options)
    return found


class _Builder(SparkSession.Builder):  # type: ignore[misc, unused-ignore]  # PySpark declares a property
    def getOrCreate(self) -> SparkSession:  # noqa: N802 (PySpark's name)
        check_version()
        before = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
        spark = super().getOrCreate()
        if not is_available(spark):
            raise UnsupportedOperationError(
                "Spark Connect and untested versions of PySpark can't have the format delta. Use delta_core.spark.read "
                "and delta_core.spark.write."
            )
        if getattr(spark, "_delta_core_format", None) is None:
            loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
            _check_alone(loader)
            if before is spark:
                raise UnsupportedOperationError(
                    "A session exists already, and the format delta can only be added to a new one. Call "
                    "delta_core.spark.configure before the first getOrCreate, or stop the session."
                )
            _install(spark, loader)
        return spark


def _check_alone(loader: Any) -> None:
    for name in (
        "org/apache/spark/sql/delta/sources/DeltaDataSource.class",
        "io/delta/sql/DeltaSparkSessionExtension.class",
    ):
        if loader.getResource(name) is not None:
            raise UnsupportedOperationError(
                "Found delta-spark in the session, whose format is also named delta. Remove its jar, or use "
                "delta_core.spark.read and delta_core.spark.write without configure."
            )


def _install(spark: Any, loader: Any) -> None:
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    try:
        compiler.cook(files(__package__).joinpath("DefaultSource.java").read_text(encoding="utf-8"))
    except Exception as e:
        raise EngineError(f"Spark {spark.version} can't compile the format delta: {str(e)[:300]}") from e
    folder = Path(tempfile.mkdtemp(prefix="delta_core_"))
    # the driver's Java process opens it as long as it runs
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jar = folder / "format.jar"
    with zipfile.ZipFile(jar, "w") as out:
        for name, body in compiler.getBytecodes().items():
            out.writestr(f"{str(name).replace('.', '/')}.class", bytes(body))
    loader.addURL(spark._jvm.java.io.File(str(jar)).toURI().toURL())
    source = loader.loadClass("delta.DefaultSource").getConstructors()[0].newInstance(None)
    convert_failures()
    source.connect(spark._jsparkSession, callback(spark, _Format(spark).answer))
    spark._delta_core_format = source


class _Format:
    """What the driver calls for each table."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def answer(self, request: Any) -> Any:
        kind, *arguments = list(request)
        if kind == "reject":
            raise UnsupportedOperationError(
                f"Found {arguments[0]} for the format delta, which delta_core.spark.configure does not offer. Use "
                "delta_core.spark.sql for statements and delta_core.spark.write for rows."
            )
        session, options, *rest = arguments
        spark = self._session(session)
        given = {str(name).lower(): str(value) for name, value in dict(options).items()}
        if "path" not in given:
            raise InvalidArgumentError("Found no path for the format delta. Pass the table's path to load or save.")
        return self._read(spark, given)._jdf if kind == "read" else self._write(spark, given, *rest)

    def _session(self, session: Any) -> Any:
        same = session.equals(self._spark._jsparkSession)
        return self._spark if same else SparkSession(self._spark.sparkContext, session)

    def _read(self, spark: Any, options: dict[str, str]) -> DataFrame:
        _known(options, _READ, "read")
        version = options.get("versionasof")
        return read(
            spark,
            options["path"],
            None if version is None else _number("versionAsOf", version),
            options.get("timestampasof"),
        )

    def _write(self, spark: Any, options: dict[str, str], mode: str, rows: Any) -> None:
        _known(options, _WRITE, "write")
        merge, replace = _flag(options, "mergeschema"), _flag(options, "overwriteschema")
        if ("txnappid" in options) != ("txnversion" in options):
            raise InvalidArgumentError("Found only one of the options txnAppId and txnVersion, expected both or none.")
        txn = (options["txnappid"], _number("txnVersion", options["txnversion"])) if "txnappid" in options else None
        partition_by = options.get("__partition_columns")
        write(
            DataFrame(rows, spark),
            options["path"],
            _MODES[mode],  # type: ignore[arg-type]
            partition_by=json.loads(partition_by) if partition_by else None,
            schema_mode="overwrite" if replace else "merge" if merge else None,
            replace_where=options.get("replacewhere"),
            partition_overwrite_mode=options.get("partitionoverwritemode", "static").lower(),  # type: ignore[arg-type]
            user_metadata=options.get("usermetadata"),
            txn=txn,
        )


def _known(options: dict[str, str], known: frozenset[str], what: str) -> None:
    if unknown := sorted(options.keys() - known):
        raise UnsupportedOperationError(
            f"Found the options {', '.join(unknown)}, which the format delta of delta_core does not have. Use the "
            f"arguments of delta_core.spark.{what}, or read_changes for the change feed."
        )


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InvalidArgumentError(f"Found {text!r} for the option {name}, expected true or false.")
    return text == "true"


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidArgumentError(f"Found {text!r} for the option {name}, expected a whole number from 0 on.")
    return int(text)
