"""Every use of Spark's private interfaces, on the versions on which they were tried.

Whoever can't have them (Spark Connect, other versions) takes the route of plain DataFrames.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from delta_core.engines.spark.driver_classes import class_loader
from delta_core.engines.spark.failures import remembering
from delta_core.engines.spark.java_source import PACKAGE
from delta_core.errors import InternalError, UnsupportedOperationError

__all__ = [
    "NEWEST", "OLDEST", "ReplayedRows", "bit_test", "check_version", "file_relation", "heap_bytes", "is_available",
    "register_table_function", "roaring_test", "with_names",
]  # fmt: skip

#: Versions of PySpark that these interfaces were tried on: from the first up to, not including, the second.
OLDEST, NEWEST = (4, 0, 1), (4, 4, 0)
_loaders: dict[int, tuple[Any, Any]] = {}


def _version() -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", pyspark.__version__)[:3])


def check_version() -> None:
    """Refuse a PySpark that is too old for any route; raises UnsupportedOperationError."""
    if _version() < OLDEST:
        raise UnsupportedOperationError(
            f"Found pyspark {pyspark.__version__}, expected {'.'.join(map(str, OLDEST))} or newer. Upgrade pyspark.",
            version=pyspark.__version__,
        )


def is_available(spark: SparkSession) -> bool:
    """Whether the session's driver is at hand, and of a version whose interfaces are known."""
    return OLDEST <= _version() < NEWEST and getattr(spark, "_jsparkSession", None) is not None


def _compiled(spark: Any, name: str) -> Any:
    """Return a class of ours; all are loaded once in a driver."""
    gateway = spark._sc._gateway
    held, loader = _loaders.get(id(gateway), (None, None))
    if held is not gateway:
        loader = class_loader(spark)
        _loaders[id(gateway)] = gateway, loader
    return loader.loadClass(f"{PACKAGE}.{name}")


def _call_static(spark: Any, name: str, method: str, *args: Any) -> None:
    found = next(m for m in _compiled(spark, name).getMethods() if m.getName() == method)
    found.invoke(None, _objects(spark, args))


def _objects(spark: Any, values: Sequence[Any]) -> Any:
    out = spark._jvm.java.util.ArrayList()
    for value in values:  # one by one: an array takes no Python function
        out.add(value)
    return out.toArray()


class _Function:
    """A Python function that the driver calls."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def apply(self, request: Any) -> Any:
        with remembering():
            return self._function(request)

    class Java:
        implements = ("java.util.function.Function",)


def file_relation(
    spark: Any, root: str, columns: T.StructType, constants: T.StructType, *,
    vector_columns: int, by_field_id: bool, ask: Callable[[str], Any],
) -> DataFrame:  # fmt: skip
    """Return the rows of files by Spark's own Parquet reader, each with its file's constants as partition columns.

    Parameters
    ----------
    constants : StructType
        Of the partition columns; the last ``vector_columns`` of them are binary.
    ask : function(str) -> object
        Asked when a query is planned: ``files <filters as JSON>`` for the name of a file by `write_files`, or the object of
        `ReplayedRows`, or None where the filters tell nothing of files; ``size`` for the bytes of all files, as text; and
        ``vectors <numbers>`` (for `ReplayedRows`: a line for each file, of its number and descriptor) for the name of a
        file of vectors.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    jvm, session = spark._jvm, spark._jsparkSession
    ensure_callback_server_started(spark._sc._gateway)
    parse = session.parseDataType
    schema = parse(constants.json())
    path = jvm.org.apache.hadoop.fs.Path(root)
    made = _new(spark, "TableFiles", path, schema, vector_columns, by_field_id, _Function(ask))
    _call_static(spark, "PruneFiles", "install", session.experimental())
    sources = jvm.org.apache.spark.sql.execution.datasources
    # a file that is missing or broken is never passed over, whatever the session says
    options = jvm.PythonUtils.toScalaMap({"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"})
    parquet, no_buckets = sources.parquet.ParquetFileFormat(), jvm.scala.Option.apply(None)
    relation = sources.HadoopFsRelation(made, schema, parse(columns.json()), no_buckets, parquet, options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


@cache
def _table_frame() -> Any:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    class TableFrame(ClassicDataFrame):  # type: ignore[misc, valid-type, unused-ignore]  # where pyspark is not there
        """A DataFrame whose files are named in one call: py4j hands over an array name by name."""

        def inputFiles(self) -> list[str]:  # noqa: N802 (PySpark's name)
            # names are encoded: none has a line's end
            names = _new(self.sparkSession, "Names").joined(self._jdf.inputFiles())
            return str(names).split("\n") if names else []

        def filter(self, condition: Any) -> DataFrame:
            return with_names(super().filter(condition))

    return TableFrame


def with_names(frame: DataFrame) -> DataFrame:
    """Return a DataFrame that names its files in one call, and so does what is filtered of it."""
    return _table_frame()(frame._jdf, frame.sparkSession)


def _new(spark: Any, name: str, *arguments: Any) -> Any:
    """Make an object of ours, by the constructor that takes what is given."""
    values = _objects(spark, arguments)
    for constructor in _compiled(spark, name).getConstructors():
        kinds = constructor.getParameterTypes()
        if len(kinds) == len(values) and all(k.isInstance(v) for k, v in zip(kinds, values, strict=True)):
            return constructor.newInstance(values)
    raise InternalError(f"{name} has no constructor of {len(arguments)} such arguments.")


class ReplayedRows:
    """The files that a job over the log left, in the driver's JVM: no row of it passes Python.

    Parameters
    ----------
    files : DataFrame
        path, size, descriptor of a vector as JSON, then the constants.
    kinds : str
        A letter a constant: ``v``: the value is at hand; ``t``: the text of a partition value; ``p``: the file's place.
    constants : StructType
        What the constants are to become.
    """

    def __init__(self, spark: Any, files: DataFrame, kinds: str, constants: T.StructType) -> None:
        rows = files._jdf.queryExecution().executedPlan().executeCollect()
        schema = spark._jsparkSession.parseDataType(constants.json())
        #: The object that the file index takes.
        self.java = _new(spark, "Replay", rows, schema, kinds)

    def texts(self, column: int) -> list[str]:
        """Return the distinct texts of a constant."""
        return list(json.loads(self.java.texts(column)))

    def type(self, column: int, values: DataFrame) -> None:
        """Say what the texts of a constant mean, in the order of `texts`."""
        self.java.type(column, values._jdf.queryExecution().executedPlan().executeCollect())

    def odd(self) -> list[str]:
        """Return the paths that the log spells as more than names, and those of `unsized`."""
        return list(json.loads(self.java.odd()))

    def unsized(self) -> list[str]:
        """Return the paths of files whose size the log does not tell."""
        return list(json.loads(self.java.unsized()))

    def place(self, path: str, place: str, hadoop: str, size: int) -> None:
        """Say where a file lies, here and as Hadoop spells it."""
        self.java.place(path, place, hadoop, str(size))

    def finish(self, root: str, hadoop_root: str) -> Any:
        """Make the files; other paths are names below a root."""
        self.java.finish(root, hadoop_root)
        return self.java


def heap_bytes(spark: Any) -> int:
    """Return the most memory that the driver may use."""
    return int(spark._jvm.java.lang.Runtime.getRuntime().maxMemory())


# --- tests within generated code -----------------------------------------------------------


def _sequence(spark: Any, *items: Any) -> Any:
    values = spark._jvm.java.util.ArrayList()
    for item in items:
        values.add(item)
    return spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq()


def _expression(spark: Any, column: Column) -> Any:
    return spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)


def _column(spark: Any, expression: Any) -> Column:
    from pyspark.sql.classic.column import Column as ClassicColumn

    return ClassicColumn(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def _static(spark: Any, name: str, kind: Any, method: str, *args: Any) -> Any:
    objects = spark._jvm.org.apache.spark.sql.catalyst.expressions.objects
    cls = spark._jvm.java.lang.Class.forName(name)
    option = spark._jvm.scala.Option.apply(None)
    return objects.StaticInvoke(cls, kind, method, _sequence(spark, *args), _sequence(spark), True, False, True, option)


def bit_test(spark: Any, bitmap: Column, row: Column) -> Column:
    """Whether a row's bit is set in a bitmap, least significant bit first; false beyond its end.

    The class reads memory without a look at its bounds: the comparison before it is what keeps it within them.
    """
    kind = spark._jsparkSession.parseDataType(T.BooleanType().json())
    offset = spark._jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET
    test = _static(
        spark, "org.apache.spark.unsafe.bitset.BitSetMethods", kind, "isSet", _expression(spark, bitmap),
        _expression(spark, F.lit(int(offset)).cast("long")), _expression(spark, row.cast("int")),
    )  # fmt: skip
    inside = (row >= 0) & (row < F.octet_length(bitmap).cast("long") * 8)
    return F.when(inside, _column(spark, test)).otherwise(F.lit(False))


def roaring_test(spark: Any, bitmap: Column, row: Column) -> Column:
    """Whether a row is in a 32-bit portable roaring bitmap; false from row 2**31 on."""
    jvm = spark._jvm
    objects = jvm.org.apache.spark.sql.catalyst.expressions.objects
    boolean = spark._jsparkSession.parseDataType(T.BooleanType().json())
    kind, named = jvm.org.apache.spark.sql.types.ObjectType, jvm.java.lang.Class.forName
    roaring, nothing = named("org.roaringbitmap.buffer.ImmutableRoaringBitmap"), _sequence(spark)
    buffer = kind(named("java.nio.ByteBuffer"))
    wrapped = _static(spark, "java.nio.ByteBuffer", buffer, "wrap", _expression(spark, bitmap))
    new = getattr(objects, "NewInstance$").__getattr__("MODULE$").apply
    made = new(roaring, _sequence(spark, wrapped), nothing, False, kind(roaring), jvm.scala.Option.apply(None))
    position = _sequence(spark, _expression(spark, row.cast("int")))
    test = objects.Invoke(made, "contains", boolean, position, nothing, False, False, True)
    return F.when((row >= 0) & (row < 2**31), _column(spark, test)).otherwise(F.lit(False))


# --- SQL -----------------------------------------------------------------------------------


class _TableFunction:
    """A table function of SQL: from its constant arguments to a DataFrame."""

    def __init__(self, function: Callable[..., DataFrame]) -> None:
        self._function = function

    def apply(self, expressions: Any) -> Any:
        values = []
        while not expressions.isEmpty():
            value = expressions.head().eval(None)
            values.append(None if value is None else value if isinstance(value, int) else value.toString())
            expressions = expressions.tail()
        return self._function(*values)._jdf.queryExecution().analyzed()

    class Java:
        implements = ("scala.Function1",)


def register_table_function(spark: Any, name: str, function: Callable[..., DataFrame]) -> None:
    """Make a function known to the session's SQL: ``SELECT * FROM name('...')``."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(spark._sc._gateway)
    registry = spark._jsparkSession.sessionState().tableFunctionRegistry()
    registry.createOrReplaceTempFunction(name, _TableFunction(function), "scala_udf")
