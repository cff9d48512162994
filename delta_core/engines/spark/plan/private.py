"""Every use of Spark's private interfaces, on the versions on which they were tried.

Sessions without them (Spark Connect, other versions) take the route of plain DataFrames.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote

import pyspark
from pyspark.errors import PySparkValueError
from pyspark.sql import Column, DataFrame, SparkSession, types as T

from delta_core.engines.spark.failures import failing_as, names_root, remembering
from delta_core.engines.spark.java.driver_classes import class_loader
from delta_core.engines.spark.java.sources import PACKAGE
from delta_core.engines.spark.plan.files import hadoop_path
from delta_core.errors import EngineError, InvalidArgumentError, UnsupportedFeatureError, UnsupportedOperationError
from delta_core.expressions.printing import quote_name
from delta_core.kernel.log.names import LOG_DIRECTORY
from delta_core.schema.fields import format_path, walk
from delta_core.schema.types import StructType, UserDefinedType

__all__ = [
    "NEWEST",
    "OLDEST",
    "ReplayedRows",
    "SchemaFiles",
    "alias_of",
    "analyzed",
    "bit_test",
    "callback",
    "check_loads",
    "check_stream",
    "check_version",
    "column_names",
    "default_location",
    "embedded",
    "empty_frame",
    "file_relation",
    "fixed",
    "format_relation",
    "heap_bytes",
    "has_constant_rows",
    "is_available",
    "is_delta_table",
    "has_files",
    "is_known_name",
    "is_managed",
    "is_local",
    "latest_relation",
    "local_place",
    "mark_read",
    "num_tasks",
    "own_python",
    "qualified_name",
    "qualified_place",
    "read_marks",
    "refresh_cached",
    "register_delta_table",
    "register_table_function",
    "roaring_test",
    "run_sink",
    "schema_json",
    "select",
    "settings",
    "stream_relation",
    "table_location",
    "with_names",
    "with_strict_casts",
]

#: The error of PySpark for a schema with a type whose class it can't import.
_NO_CLASS = (PySparkValueError, ImportError, AttributeError)

#: Versions of PySpark that these interfaces were tried on: from the first up to, not including, the second.
OLDEST, NEWEST = (4, 0, 1), (4, 4, 0)
_CATALOG_TABLE = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
_made: dict[tuple[int, str], tuple[Any, Any]] = {}
_lock = threading.RLock()


def _version() -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", pyspark.__version__)[:3])


def check_version() -> None:
    """Reject a PySpark that is too old for any route.

    Raises
    ------
    UnsupportedOperationError
        If the version is below `OLDEST`.
    """
    if _version() < OLDEST:
        raise UnsupportedOperationError(
            f"Found pyspark {pyspark.__version__}, expected {'.'.join(map(str, OLDEST))} or newer. Upgrade pyspark.",
            version=pyspark.__version__,
        )


def is_available(spark: SparkSession) -> bool:
    """Whether the session's driver is available, and of a version whose interfaces are known."""
    return is_known_version() and getattr(spark, "_jsparkSession", None) is not None


def is_known_version() -> bool:
    """Whether the interfaces of this PySpark are known."""
    return OLDEST <= _version() < NEWEST


def _once(spark: Any, what: str, make: Callable[[], Any]) -> Any:
    """Return what is made once in each driver's JVM.

    Never twice, for two threads either: py4j finds methods by the name of their class, whichever loader it has.
    """
    gateway = spark._sc._gateway
    with _lock:
        owner, found = _made.get((id(gateway), what), (None, None))
        if owner is not gateway:
            found = make()
            _made[id(gateway), what] = gateway, found
    return found


def _driver(spark: Any) -> Any:
    """Return the Java class Driver, which makes things of Spark in one call each."""
    return _instance(spark, "Driver")


def _instance(spark: Any, name: str) -> Any:
    """Return the only object of a Java class of ours."""

    def make() -> Any:
        loader = _once(spark, "classes", lambda: class_loader(spark))
        return loader.loadClass(f"{PACKAGE}.{name}").getConstructors()[0].newInstance(None)

    return _once(spark, name, make)


class _Function:
    """A Python function that the driver calls."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def apply(self, request: Any) -> Any:
        with remembering():
            return self._function(request)

    class Java:
        implements = ("java.util.function.Function",)


def callback(spark: Any, function: Callable[[Any], Any]) -> Any:
    """Return a function of Python as the driver's Java calls it; its errors are remembered for `convert_failures`."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    return _Function(function)


def file_relation(
    spark: Any,
    root: str,
    columns: T.StructType,
    stored: T.StructType,
    constants: T.StructType,
    *,
    vector_columns: int,
    by_field_id: bool,
    identity: str,
    table_width: int,
    request: Callable[[str], Any],
    split_bytes: int | None = None,
) -> DataFrame:
    """Return the rows of files by Spark's own Parquet reader, each with its file's constants as partition columns.

    Parameters
    ----------
    spark : SparkSession
        A classic session: Spark Connect has no driver to reach.
    root : str
        The table's root, in the spelling of Python's file systems.
    columns, stored : StructType
        The columns as plans name them, and in parallel as files do: they differ in the fields within columns only.
    constants : StructType
        Of the partition columns; the last ``vector_columns`` of them are binary.
    vector_columns : int
        How many of the constants hold vectors.
    by_field_id : bool
        Whether files' columns are matched by field id, and not by name.
    identity : str
        The same for relations of the same rows, so that Spark reuses what it computed or cached of them; empty: unique.
    table_width : int
        Bytes that Spark would count for a row of all columns that the files hold.
    request : function(str) -> object
        Called when a query is planned: with ``files <filters as JSON>`` for the name of a file by `write_handed_files`,
        or the object of `ReplayedRows`, or None if the filters contain nothing of files; with ``size`` for the bytes of
        all files, as text; with ``vectors <numbers>`` (for `ReplayedRows`: a line for each file, of its number and
        descriptor) for the name of a file of vectors.
    split_bytes : int, optional
        How many bytes of files a task gets; what the session specifies unless given.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    names_root(hadoop_path(root))
    other_names = "" if columns == stored else stored.json()
    made = _driver(spark).relation(
        spark._jsparkSession,
        root,
        columns.json(),
        other_names,
        constants.json(),
        vector_columns,
        by_field_id,
        identity,
        table_width,
        _Function(request),
        split_bytes or 0,
    )
    return DataFrame(made, spark)


def latest_relation(
    spark: Any,
    root: str,
    columns: T.StructType,
    metadata: T.StructType,
    *,
    table: str,
    key: str,
    is_fixed: bool,
    request: Callable[[str], Any],
) -> DataFrame:
    """Return the rows of a table at the version that is chosen when each query is planned.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    root : str
        The table's root, in the spelling of Python's file systems.
    columns : StructType
        The columns of all versions.
    metadata : StructType
        The fields that the struct ``_metadata`` has after those that Spark's files have.
    table : str
        The same for relations that one query reads at one version.
    key : str
        The same for relations of the same rows, so that Spark reuses what it cached of them.
    is_fixed : bool
        Whether one version is always chosen, so that Spark keeps what it cached of it when the table changes.
    request : function(str) -> object
        Called when a query is planned: with ``open`` and what `fixed` was called with, for a function that returns the
        ``name`` of a version and a text, its ``identity``, that is the same for versions of the same rows; with
        ``rows`` and such a name, for a Dataset; with ``metadata`` and such a name, for one that also has ``_metadata``;
        with ``changed`` and the schema as JSON of rows that do not have these
        columns, to reject them.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    made = _driver(spark).latest(
        spark._jsparkSession, root, columns.json(), metadata.json(), table, key, is_fixed, _Function(request)
    )
    return DataFrame(made, spark)


def fixed(rows: DataFrame, request: str) -> DataFrame:
    """Return rows with the versions of `latest_relation` that are chosen now; ``request`` is what it is called with."""
    found = _driver(rows.sparkSession).fixed(rows._jdf, request)
    return rows if found is None else DataFrame(found, rows.sparkSession)


def mark_read(rows: DataFrame, text: str) -> None:
    """Remember a text of one line in the plan of rows; plans that are made of it contain it too."""
    _driver(rows.sparkSession).mark(rows._jdf, text)


def read_marks(rows: DataFrame) -> list[str]:
    """Return the texts of `mark_read` in the plan of rows."""
    return str(_driver(rows.sparkSession).marks(rows._jdf)).splitlines()


def refresh_cached(spark: Any, root: str) -> None:
    """Have Spark compute again what it cached of `latest_relation` of a table."""
    if is_available(spark) and not spark._jsparkSession.sharedState().cacheManager().isEmpty():
        spark._jsparkSession.catalog().refreshByPath(f"{hadoop_path(root).rstrip('/')}/{LOG_DIRECTORY}")


def format_relation(
    spark: Any, schema: T.StructType, name: str, num_bytes: int, request: Callable[[str], DataFrame]
) -> DataFrame:
    """Return the rows of a version of a table of another format.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    schema : StructType
        Of all columns.
    name : str
        Its name in plans.
    num_bytes : int
        The size by which Spark plans joins.
    request : function(str) -> DataFrame
        Called when a query is planned, with JSON: the names of its columns, and its filters as `FilterText.java` writes
        them. Returns rows with these columns; those for which a filter is not true may be left out.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    function = _Function(lambda text: request(str(text))._jdf)
    made = _driver(spark).formatRows(spark._jsparkSession, schema.json(), name, num_bytes, function)
    return DataFrame(made, spark)


def check_stream(spark: Any) -> None:
    """Reject a session whose streaming queries can't have their batches planned by this process.

    Raises
    ------
    UnsupportedOperationError
        On Spark Connect, and on untested versions of PySpark.
    """
    check_version()
    if not is_available(spark):
        raise UnsupportedOperationError(
            "A query's batches are planned by this process, which Spark Connect and untested versions of PySpark do "
            "not allow. Use a classic session, or DeltaTable.follow."
        )


def stream_relation(spark: Any, schema: T.StructType, open_source: Callable[[], Callable[[str], Any]]) -> DataFrame:
    """Return a streaming DataFrame.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    schema : StructType
        Of the rows of all batches.
    open_source : function() -> function(str) -> object
        Called for each query; what it returns is called with ``first``, the source's folder in the checkpoint and the
        lines of the first recorded offsets (none of a new query) for the position at which the query begins; with
        ``begin``, this position and the folder; with ``available`` if the query ends at the table's latest version;
        with ``latest``, a batch's start (empty: where the query began) and ``all`` or nothing for the batch's end; and
        with ``rows`` and both for the batch's rows, as a DataFrame of the driver. Arguments are on lines of their own.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    made = _driver(spark).stream(spark._jsparkSession, schema.json(), _Function(lambda _: _Function(open_source())))
    return DataFrame(made, spark)


class SchemaFiles:
    """Numbered files in a folder that Hadoop reaches, which nothing changes once they are written.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    folder : str
        It need not exist.
    """

    def __init__(self, spark: Any, folder: str) -> None:
        self._spark = spark
        self._java = _instance(spark, "StreamLog")
        #: The folder, with its file system.
        self.folder: str = str(self._java.qualified(spark._jsparkSession, folder))

    def read(self) -> dict[int, str]:
        """Return the texts by their numbers."""
        found = [str(text) for text in self._java.read(self._spark._jsparkSession, self.folder)]
        return {int(number): text for number, text in zip(found[::2], found[1::2], strict=True)}

    def add(self, number: int, text: str) -> bool:
        """Write a file; returns False if there is one of this number."""
        return bool(self._java.add(self._spark._jsparkSession, self.folder, str(number), text))


def empty_frame(spark: Any, schema: T.StructType) -> DataFrame:
    """Return a DataFrame without rows: a constant of the plan, which Spark makes without a job."""
    session = spark._jsparkSession
    return DataFrame(
        session.createDataFrame(spark._jvm.java.util.ArrayList(), session.parseDataType(schema.json())), spark
    )


def schema_json(rows: DataFrame) -> str:
    """Return the JSON of a DataFrame's schema, also if Python lacks the class of a user-defined type."""
    try:
        return str(rows.schema.json())
    except _NO_CLASS:
        if not is_available(rows.sparkSession):
            raise
        return str(rows._jdf.schema().json())


def column_names(rows: DataFrame) -> list[str]:
    """Return the names of a DataFrame's columns, also if Python lacks the class of a user-defined type."""
    try:
        return list(rows.columns)
    except _NO_CLASS:
        return [f["name"] for f in json.loads(schema_json(rows))["fields"]]


def check_loads(spark: Any, schema: StructType) -> None:
    """Reject columns of a user-defined type that Spark's driver can't load.

    Raises
    ------
    UnsupportedFeatureError
        For a type whose class the driver lacks.
    """
    for path, f in walk(schema):
        if isinstance(f.type, UserDefinedType) and is_available(spark):
            _check_loads(spark, f.type, format_path(path))


def _check_loads(spark: Any, t: UserDefinedType, column: str) -> None:
    try:
        with failing_as(f"Spark can't load the type {t.type} of column {column}"):
            spark._jsparkSession.parseDataType(t.to_json())
    except EngineError as e:
        raise UnsupportedFeatureError(
            f"{e.message}. Add its class to the session's class path (spark.jars), read other columns (columns=), or "
            "read the table with engine 'arrow', where values are those that files hold.",
            feature="udt",
            column=column,
            type=t.type,
        ) from e


def select(rows: DataFrame, columns: Sequence[tuple[str, str]]) -> DataFrame:
    """Return columns of a DataFrame, each found by the first name and given the second one."""
    text = "&".join(quote(name, safe="") for pair in columns for name in pair)
    return DataFrame(_driver(rows.sparkSession).select(rows._jdf, text), rows.sparkSession)


@cache
def _table_frame() -> Any:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    class TableFrame(ClassicDataFrame):  # type: ignore[misc, valid-type, unused-ignore]  # where pyspark is not there
        """A DataFrame whose files are named in one call: py4j hands over an array name by name."""

        def inputFiles(self) -> list[str]:  # noqa: N802 (PySpark's name)
            names = _driver(self.sparkSession).inputFiles(self._jdf)
            return str(names).split("\n") if names else []

        def filter(self, condition: Any) -> DataFrame:
            return with_names(super().filter(condition))

    return TableFrame


def with_names(frame: DataFrame) -> DataFrame:
    """Return a DataFrame that names its files in one call, and so does what is filtered of it."""
    return _table_frame()(frame._jdf, frame.sparkSession)


class ReplayedRows:
    """The files that a job over the log left, in the driver's JVM: no row of it passes Python.

    Parameters
    ----------
    files : DataFrame
        path, size, descriptor of a vector as JSON, then the constants.
    kinds : str
        A letter for each constant: ``v``: the value is known; ``t``: the text of a partition value; ``p``: the file's
        place.
    constants : StructType
        The types that the constants get.
    """

    def __init__(self, spark: Any, files: DataFrame, kinds: str, constants: T.StructType) -> None:
        rows = files._jdf.queryExecution().executedPlan().executeCollect()
        #: The object that the file index takes.
        self.java: Any = _driver(spark).replay(rows, constants.json(), kinds)

    def texts(self, column: int) -> list[str]:
        """Return the distinct texts of a constant."""
        return list(json.loads(self.java.texts(column)))

    def type(self, column: int, values: DataFrame) -> None:
        """Return the meaning of the texts of a constant, in the order of `texts`."""
        self.java.type(column, values._jdf.queryExecution().executedPlan().executeCollect())

    def odd(self) -> list[str]:
        """Return the paths that the log spells as more than names, and those of `unsized`."""
        return list(json.loads(self.java.odd()))

    def unsized(self) -> list[str]:
        """Return the paths of files whose size the log does not report."""
        return list(json.loads(self.java.unsized()))

    def place(self, path: str, place: str, hadoop: str, size: int) -> None:
        """Report where a file lies, here and as Hadoop spells it."""
        self.java.place(path, place, hadoop, str(size))

    def finish(self, root: str, hadoop_root: str) -> Any:
        """Make the files; other paths are names below a root."""
        self.java.finish(root, hadoop_root)
        return self.java


def settings(spark: Any) -> dict[str, str]:
    """Return the settings of Delta and of SQL that are set in a session, in one call."""
    if not is_available(spark):
        return {str(name): str(text) for name, text in spark.conf.getAll.items()}
    try:
        driver = _driver(spark)
    except EngineError:  # this Spark can't compile our classes; the route "plain" needs none
        between = f"&{uuid.uuid4()}&"
        entries = str(spark._jsparkSession.sessionState().conf().getAllConfs().mkString(between))
        return dict(entry.split(" -> ", 1) for entry in entries.split(between) if entry)
    found = str(driver.settings(spark._jsparkSession))
    return dict(parse_qsl(found, keep_blank_values=True, strict_parsing=True)) if found else {}


def heap_bytes(spark: Any) -> int:
    """Return the most memory that the driver may use."""
    return int(_once(spark, "heap", lambda: spark._jvm.java.lang.Runtime.getRuntime().maxMemory()))


# --- tests within generated code -----------------------------------------------------------


def bit_test(spark: Any, bitmap: Column, row: Column) -> Column:
    """Whether a row's bit is set in a bitmap, least significant bit first; false beyond its end."""
    return _column(_driver(spark).bitTest(bitmap._jc, row._jc))


def roaring_test(spark: Any, bitmap: Column, row: Column) -> Column:
    """Whether a row is in a 32-bit portable roaring bitmap; false from row 2**31 on."""
    return _column(_driver(spark).roaringTest(bitmap._jc, row._jc))


def _column(made: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(made)


# --- writing -------------------------------------------------------------------------------


def run_sink(spark: Any, sinks: Sequence[str], arguments: Sequence[Any], rows: DataFrame) -> None:
    """Write rows through a sink as a query of its own: with an execution id, the session's settings and listeners.

    Parameters
    ----------
    spark : SparkSession
        A classic session.
    sinks : sequence of str
        Names that the sink's class has in known versions: the first that exists is made of the arguments.
    arguments : sequence
        Of the sink's constructor, as objects of Java.
    rows : DataFrame
        The rows that are written.
    """
    values = spark._jvm.java.util.ArrayList()
    for value in arguments:
        values.add(value)
    _instance(spark, "Writer").run("\n".join(sinks), values, rows._jdf)


def has_constant_rows(rows: DataFrame) -> bool:
    """Whether a DataFrame is calculated of constants alone, as that of VALUES."""
    if not is_available(rows.sparkSession):
        return False
    leaves = rows._jdf.queryExecution().analyzed().collectLeaves()
    names = {str(leaves.apply(i).nodeName()) for i in range(leaves.size())}
    return names <= {"LocalRelation", "OneRowRelation"}


def num_tasks(spark: Any) -> Column:
    """Return how many tasks the stage has that evaluates this: each has a ``spark_partition_id()`` below it."""
    return _column(_instance(spark, "Writer").numTasks())


# --- Python workers ------------------------------------------------------------------------


@contextmanager
def own_python(spark: Any) -> Iterator[None]:
    """Have functions that are made within run under this interpreter, unless the user chose another one.

    Spark takes ``python3`` from PATH for its workers. In local mode these run on this machine: what runs here serves
    there.
    """
    context = getattr(spark, "sparkContext", None) if is_available(spark) else None
    if context is None or not sys.executable or "PYSPARK_PYTHON" in os.environ or not is_local(spark):
        yield
        return
    paths = os.pathsep.join(p for p in sys.path if p)
    with _lock:
        before = context.pythonExec, context.environment
        context.pythonExec, context.environment = sys.executable, {**context.environment, "PYTHONPATH": paths}
        try:
            yield
        finally:
            context.pythonExec, context.environment = before


def is_local(spark: Any) -> bool:
    """Whether a classic session's executor is in its driver's process."""
    return re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)) is not None


def alias_of(rows: DataFrame) -> str | None:
    """Return the alias by which SQL names the columns of a DataFrame, None if it has none."""
    plan = rows._jdf.queryExecution().analyzed()
    return str(plan.alias()) if str(plan.nodeName()) == "SubqueryAlias" else None


def analyzed(rows: DataFrame, value: Column, target: str = "") -> Any:
    """Return an expression as Spark analyzes it on rows: see `Analyzed.java`.

    Parameters
    ----------
    rows : DataFrame
        The rows that it is evaluated on.
    value : Column
        The expression.
    target : str
        JSON of the type that it is cast to, as values are cast that are assigned; empty for its own.

    Returns
    -------
    py4j.java_gateway.JavaObject or None
        None if it is more than an expression of one row, such as an aggregate.

    Raises
    ------
    AnalysisException
        It does not fit the rows.
    """
    spark = rows.sparkSession
    return _driver(spark).analyzed(rows._jdf, rows.select(value.alias("value"))._jdf, target)


def with_strict_casts(spark: Any, column: Column, stored_in: str = "") -> Column:
    """Return a column, not yet analyzed, whose casts fail for a value that does not fit, also without ANSI mode.

    The error of one that is ``stored_in`` a column of a table names that column.

    Without private interfaces it stays as it is: expressions with casts are then rejected without ANSI mode.
    """
    from pyspark.sql.classic.column import Column as ClassicColumn

    if not is_available(spark):
        return column
    return ClassicColumn(_driver(spark).strict(spark._jsparkSession, column._jc, stored_in))


def default_places(spark: Any, plan: Any) -> list[int]:
    """Return the places of the columns that have the word DEFAULT as a value in a plan that Spark has not analyzed."""
    return [int(i) for i in _driver(spark).defaultPlaces(spark._jsparkSession, plan)]


def with_defaults(spark: Any, plan: Any, texts: Mapping[int, str]) -> Any:
    """Return such a plan with SQL texts for the word, by the places of columns."""
    given = spark._sc._gateway.new_array(spark._jvm.java.lang.String, max(texts) + 1)
    for i, text in texts.items():
        given[i] = text
    return _driver(spark).defaults(spark._jsparkSession, plan, given)


def embedded(column: Column, name: str, call: Any, arguments: Sequence[str]) -> Column:
    """Return a column with an expression that Spark analyzed in the place of a name.

    Parameters
    ----------
    column : Column
        It contains the name as a column.
    name : str
        That name.
    call : py4j.java_gateway.JavaObject
        The expression: see `Call.java`.
    arguments : sequence of str
        SQL of the columns that it reads.
    """
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(call.embedded(column._jc, name, "&".join(quote(a, safe="") for a in arguments)))


# --- the catalog ---------------------------------------------------------------------------


def _identifier(spark: Any, name: str) -> Any:
    """Parse the name of a table of the session's catalog, which may begin with that catalog's own name."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    parts = parser.parseMultipartIdentifier(name)
    if parts.size() == 3 and str(parts.head()).lower() == "spark_catalog":
        name = ".".join(quote_name(str(parts.apply(i))) for i in (1, 2))
    return parser.parseTableIdentifier(name)


def table_location(spark: Any, name: str) -> tuple[str, str]:
    """Return the location of a table of the session's catalog, not encoded, and its provider's name."""
    table = spark._jsparkSession.sessionState().catalog().getTableMetadata(_identifier(spark, name))
    provider = table.provider()
    return _decoded(spark, table.location()), str(provider.get()) if provider.isDefined() else ""


def _decoded(spark: Any, uri: Any) -> str:
    return local_place(str(spark._jvm.org.apache.hadoop.fs.Path(uri).toString()))


def qualified_place(spark: Any, location: str, database: str) -> str:
    """Return a location in a statement, not encoded; a relative one is below that of a database."""
    uri = spark._jvm.org.apache.spark.sql.catalyst.catalog.CatalogUtils.stringToURI(location)
    return _decoded(spark, spark._jsparkSession.sessionState().catalog().makeQualifiedTablePath(uri, database))


def local_place(place: str) -> str:
    """Return a place as Hadoop spells it, a local one as a path."""
    is_local = place.startswith("file:/") and not place.startswith("file://")
    return place.removeprefix("file:") if is_local else place


def default_location(spark: Any, name: str) -> str:
    """Return where the session's catalog would put a new table, not encoded."""
    return _decoded(spark, spark._jsparkSession.sessionState().catalog().defaultTablePath(_identifier(spark, name)))


def _catalog_table(spark: Any, name: str) -> Any:
    return spark._jsparkSession.sessionState().catalog().getTableMetadata(_identifier(spark, name))


def partition_schema(spark: Any, name: str) -> T.StructType:
    """Return the partition columns of a table of the session's catalog."""
    return T.StructType.fromJson(json.loads(str(_catalog_table(spark, name).partitionSchema().json())))


def partition_places(spark: Any, name: str) -> list[str]:
    """Return the places of the partitions that the session's catalog has of a table."""
    if not partition_schema(spark, name).fields:
        return []
    catalog = spark._jsparkSession.sessionState().catalog()
    found = catalog.listPartitions(_identifier(spark, name), spark._jvm.scala.Option.empty())
    return [_decoded(spark, found.apply(i).location()) for i in range(found.size())]


def own_properties(spark: Any, name: str) -> dict[str, str]:
    """Return the properties that a table of the session's catalog has from its definition."""
    pairs = _catalog_table(spark, name).properties().toSeq()
    found = {str(pairs.apply(i)._1()): str(pairs.apply(i)._2()) for i in range(pairs.size())}
    kept = ("spark.sql.", "transient_lastDdlTime", "numFiles", "totalSize", "EXTERNAL")
    return {k: v for k, v in found.items() if not k.startswith(kept)}


def become_delta_table(spark: Any, name: str) -> None:
    """Turn a table of the session's catalog into one of Delta: its log has the columns and properties from now on."""
    table = _catalog_table(spark, name)
    names = str(table.productElementNames().mkString(",")).split(",")
    parts = [getattr(table, f"copy$default${i + 1}")() for i in range(len(names))]
    jvm = spark._jvm
    parts[names.index("provider")] = jvm.scala.Option.apply("delta")
    parts[names.index("schema")] = jvm.org.apache.spark.sql.types.StructType()
    for emptied in ("partitionColumnNames", "unsupportedFeatures"):
        parts[names.index(emptied)] = jvm.PythonUtils.toSeq([])
    parts[names.index("tracksPartitionsInCatalog")] = False
    catalog = spark._jsparkSession.sessionState().catalog()
    made = table.copy(*parts)
    catalog.externalCatalog().alterTable(made)
    catalog.refreshTable(_identifier(spark, name))


def is_temp_view(spark: Any, name: str) -> bool:
    """Whether a name is that of a temporary view."""
    return bool(spark._jsparkSession.sessionState().catalog().isTempView(_identifier(spark, name)))


def is_known_name(spark: Any, name: str) -> bool:
    """Whether the session's catalog has a table or view of a name."""
    catalog, identifier = spark._jsparkSession.sessionState().catalog(), _identifier(spark, name)
    return bool(catalog.isTempView(identifier) or catalog.tableExists(identifier))


def qualified_name(spark: Any, name: str) -> list[str]:
    """Return the parts of a name of the session's catalog: those of the catalog and of its database, and its own."""
    found = spark._jsparkSession.sessionState().catalog().qualifyIdentifier(_identifier(spark, name))
    return [str(found.catalog().get()), str(found.database().get()), str(found.table())]


def has_files(spark: Any, path: str) -> bool:
    """Whether a folder of one of Hadoop's file systems is there and not empty.

    The empty log that a first write leaves when it is stopped does not count.
    """
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not system.exists(place):
        return False
    found = list(system.listStatus(place))
    if len(found) == 1 and found[0].isDirectory() and str(found[0].getPath().getName()) == "_delta_log":
        return len(system.listStatus(found[0].getPath())) > 0
    return bool(found)


def is_managed(spark: Any, name: str) -> bool:
    """Whether a table's files are deleted with its entry of the session's catalog."""
    table = spark._jsparkSession.sessionState().catalog().getTableMetadata(_identifier(spark, name))
    return str(table.tableType().name()) == "MANAGED"


def register_delta_table(spark: Any, name: str, path: str, is_managed: bool = False) -> None:
    """Add a table to the session's catalog, as delta-spark does: its place and provider, without its columns.

    The files of a managed table are deleted with its entry.
    """
    jvm, defined = spark._jvm, spark._jvm.org.apache.spark.sql.catalyst.catalog
    number = jvm.java.lang.Class.forName(_CATALOG_TABLE).getConstructors()[0].getParameterCount()
    storage = defined.CatalogStorageFormat.empty()
    names = str(storage.productElementNames().mkString(",")).split(",")
    parts = [getattr(storage, f"copy$default${i + 1}")() for i in range(len(names))]
    parts[names.index("locationUri")] = jvm.scala.Option.apply(jvm.org.apache.hadoop.fs.Path(path).toUri())
    others = [getattr(defined.CatalogTable, f"apply$default${i + 1}")() for i in range(5, number)]
    table = defined.CatalogTable.apply(
        _identifier(spark, name),
        defined.CatalogTableType.MANAGED() if is_managed else defined.CatalogTableType.EXTERNAL(),
        storage.copy(*parts),
        jvm.org.apache.spark.sql.types.StructType(),
        jvm.scala.Option.apply("delta"),
        *others,
    )
    spark._jsparkSession.sessionState().catalog().createTable(table, False, False)


def is_delta_table(spark: Any, name: str) -> bool:
    """Whether a name is that of a Delta table in the session's catalog, not of a view or of another provider."""
    try:
        state = spark._jsparkSession.sessionState()
        identifier = _identifier(spark, name)
        if state.catalog().isTempView(identifier) or not state.catalog().tableExists(identifier):
            return False
        return table_location(spark, name)[1].lower() == "delta"
    except Exception:  # noqa: BLE001 (a name of another catalog; Spark reports what is wrong with it)
        return False


# --- SQL -----------------------------------------------------------------------------------


_WHOLE = ("tinyint", "smallint", "int", "bigint")


class _TableFunction:
    """A table function of SQL: from its constant arguments (texts and whole numbers) to a DataFrame."""

    def __init__(self, name: str, function: Callable[..., DataFrame]) -> None:
        self._name = name
        self._function = function

    def apply(self, expressions: Any) -> Any:
        with remembering():
            values = []
            while not expressions.isEmpty():
                values.append(self._value(expressions.head()))
                expressions = expressions.tail()
            return self._function(*values)._jdf.queryExecution().analyzed()

    def _value(self, expression: Any) -> str | int:
        try:
            kind = str(expression.dataType().simpleString())
            value = expression.eval(None) if kind == "string" or kind in _WHOLE else None
        except Exception:  # noqa: BLE001 (a column has no value, and each version of Spark says so in its own way)
            value = None
        if value is None:
            raise InvalidArgumentError(
                f"Found {expression.sql()} in a call of {self._name}, expected text or a whole number."
            )
        return value if isinstance(value, int) else str(value.toString())

    class Java:
        implements = ("scala.Function1",)


def register_table_function(spark: Any, name: str, function: Callable[..., DataFrame]) -> None:
    """Make a function known to the session's SQL: ``SELECT * FROM name('...')``."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    registry.createOrReplaceTempFunction(name, _TableFunction(name, function), "scala_udf")
