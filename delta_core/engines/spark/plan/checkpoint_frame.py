"""The file actions of a checkpoint as a DataFrame: executors read its Parquet files, only what is queried.

Statistics are typed here as the kernel types them. A doubtful value is read as null: a statistic that is not known
keeps its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct
from pyspark.sql import Column, DataFrame, functions as F, types as T

from delta_core.engines.interface import CheckpointHandle
from delta_core.expressions.ast import FileStatistic
from delta_core.expressions.printing import quote_name
from delta_core.kernel.log.file_columns import statistic_path
from delta_core.schema.fields import Path
from delta_core.schema.types import PrimitiveType, parse_decimal

__all__ = [
    "NUM_RECORDS",
    "VECTOR",
    "Shape",
    "canonical_path",
    "is_readable",
    "leaf_type",
    "read_checkpoint",
    "vector_id",
]

NUM_RECORDS = FileStatistic("numRecords", (), PrimitiveType("long"))
#: Whole numbers are read as the widest: files of other writers have narrower ones.
VECTOR = T.StructType(
    [
        T.StructField("storageType", T.StringType()),
        T.StructField("pathOrInlineDv", T.StringType()),
        T.StructField("offset", T.LongType()),
        T.StructField("sizeInBytes", T.LongType()),
        T.StructField("cardinality", T.LongType()),
    ]
)
_MAP = T.MapType(T.StringType(), T.StringType())
_WHOLE = ("byte", "short", "integer", "long")
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?"
_ZONE = r"(Z|[+-]\d{2}:\d{2})$"
#: Values in Parquet are of the calendar that Delta uses, whatever the session takes them for.
_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "recursiveFileLookup": "true",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_GLOB = str.maketrans({c: f"\\{c}" for c in "[]{}*?\\"})


class Shape(Struct, frozen=True):
    """Which columns of file actions are requested.

    Parameters
    ----------
    partitions : tuple of str
        Physical names of partition columns.
    constants : tuple of str
        Further fields of ``add``.
    vectors : bool
        Whether descriptors of vectors are, and the rows of the files that have one.
    leaves : tuple of FileStatistic
    records : bool
        Whether the rows of every file are.
    """

    partitions: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    vectors: bool = False
    leaves: tuple[FileStatistic, ...] = ()
    records: bool = False

    def covers(self, other: Shape) -> bool:
        """Whether it has all that another has."""
        return (
            set(self.partitions) >= set(other.partitions)
            and set(self.constants) >= set(other.constants)
            and self.vectors >= other.vectors
            and self.records >= other.records
            and set(self.leaves) >= set(other.leaves)
        )

    def joined(self, other: Shape, most_leaves: int) -> Shape:
        """Return what has all of both; statistics of the other alone if they would be too many."""
        leaves = tuple(dict.fromkeys((*self.leaves, *other.leaves)))
        return Shape(
            tuple(dict.fromkeys((*self.partitions, *other.partitions))),
            tuple(dict.fromkeys((*self.constants, *other.constants))),
            self.vectors or other.vectors,
            leaves if len(leaves) <= most_leaves else other.leaves,
            self.records or other.records,
        )

    def partition(self, name: str) -> str:
        """Return the column of a partition column's text."""
        return f"partition_{self.partitions.index(name)}"

    def constant(self, name: str) -> str:
        """Return the column of a constant."""
        return f"constant_{self.constants.index(name)}"

    def leaf(self, leaf: FileStatistic) -> str:
        """Return the column of a statistic."""
        return f"statistic_{self.leaves.index(leaf)}"


def is_readable(handles: Sequence[CheckpointHandle], constants: Iterable[str]) -> bool:
    """Whether Spark reads fields of ``add`` as the kernel does: simple ones, of one type in all files."""
    for name in constants:
        found = {h.arrow_type(("add", name)) for h in handles}
        if len(found) > 1 or any(t is not None and _spark(t) is None for t in found):
            return False
    return True


def read_checkpoint(spark: Any, files: Mapping[str, CheckpointHandle], shape: Shape) -> DataFrame:
    """Return path, size, ``vector``, ``records`` and a shape's columns, a row for each ``add`` of checkpoint files.

    Parameters
    ----------
    spark : SparkSession
        The session that reads the files.
    files : Mapping
        Files as Hadoop spells them, with their footers.
    shape : Shape
        The columns that are requested.
    """
    by_form: dict[_Form, list[str]] = {}
    for place, handle in files.items():
        by_form.setdefault(_form(handle, shape), []).append(place)
    parts = [_read(spark, places, form, shape) for form, places in by_form.items()]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    return whole


def vector_id(vector: Column) -> Column:
    """Return a vector's unique id, null without one. Protocol: Derived Fields."""
    offset = F.coalesce(F.concat(F.lit("@"), vector.getField("offset").cast("string")), F.lit(""))
    return F.concat(vector.getField("storageType"), vector.getField("pathOrInlineDv"), offset)


def canonical_path(path: Column) -> Column:
    """Return what a path of the log names, as `KeySet` compares paths: equal if these are.

    Escapes that make no text are left as they are written.
    """
    stripped = F.when(
        F.lower(F.substring(path, 1, 6)) == "file:/",
        F.regexp_replace(path, r"(?i)^file:(?:(?=/(?!/))|//(?=/)|//localhost(?=/))", ""),
    ).otherwise(path)
    whole = F.regexp_replace(stripped, "%(?![0-9A-Fa-f]{2})", "%25")
    decoded = F.try_url_decode(F.replace(whole, F.lit("+"), F.lit("%2B")))
    text = F.when(F.contains(decoded, F.lit("\ufffd")), stripped).otherwise(F.coalesce(decoded, stripped))
    return F.when(F.contains(stripped, F.lit("%")), text).otherwise(stripped)


# --- one form of files ---------------------------------------------------------------------


class _Form(Struct, frozen=True):
    """Properties of the files of one writer: types of constants, each statistic's place, whether its text exists."""

    constants: tuple[Any, ...]
    structs: tuple[Any, ...]
    text: bool
    records: bool


def _form(handle: CheckpointHandle, shape: Shape) -> _Form:
    structs = [_struct_type(handle, leaf) for leaf in shape.leaves]
    return _Form(
        tuple(handle.arrow_type(("add", name)) for name in shape.constants),
        tuple(structs),
        handle.arrow_type(("add", "stats")) is not None,
        (shape.vectors or shape.records) and _struct_type(handle, NUM_RECORDS) is not None,
    )


def _struct_type(handle: CheckpointHandle, leaf: FileStatistic) -> T.DataType | None:
    """Return the type of a statistic that is in a column, None if it is to be found in the text, if at all."""
    found = handle.arrow_type(("add", "stats_parsed", *statistic_path(leaf)))
    kind = None if found is None else _spark(found)
    return kind if kind is not None and _is_exact(kind, leaf) else None


def _is_exact(stored: T.DataType, leaf: FileStatistic) -> bool:
    if leaf.kind in ("nullCount", "numRecords"):
        return isinstance(stored, T.IntegralType)
    type_name = "boolean" if leaf.kind == "tightBounds" else str(leaf.type.type)
    if type_name in _WHOLE:
        return isinstance(stored, T.IntegralType)
    if parse_decimal(type_name) is not None:
        return isinstance(stored, (T.DecimalType, T.IntegralType))
    kinds: Mapping[str, tuple[type[T.DataType], ...]] = {
        "float": (T.FloatType,),
        "double": (T.FloatType, T.DoubleType),
        "string": (T.StringType,),
        "date": (T.DateType,),
        "boolean": (T.BooleanType,),
        "timestamp": (T.TimestampType,),
        "timestamp_ntz": (T.TimestampNTZType,),
    }
    return isinstance(stored, kinds.get(type_name, ()))


def _spark(t: pa.DataType) -> T.DataType | None:
    """Return the type by which Spark reads what is stored as an Arrow type, None for none."""
    if pa.types.is_decimal(t):
        return T.DecimalType(t.precision, t.scale)
    if pa.types.is_timestamp(t):
        return None if t.unit not in ("us", "ms") else T.TimestampType() if t.tz else T.TimestampNTZType()
    return next((kind for test, kind in _STORED if test(t)), None)


_STORED: tuple[tuple[Any, T.DataType], ...] = (
    (pa.types.is_int8, T.ByteType()),
    (pa.types.is_int16, T.ShortType()),
    (pa.types.is_int32, T.IntegerType()),
    (pa.types.is_int64, T.LongType()),
    (pa.types.is_float32, T.FloatType()),
    (pa.types.is_float64, T.DoubleType()),
    (pa.types.is_string, T.StringType()),
    (pa.types.is_large_string, T.StringType()),
    (pa.types.is_boolean, T.BooleanType()),
    (pa.types.is_date32, T.DateType()),
    (pa.types.is_binary, T.BinaryType()),
)


def _read(spark: Any, places: Sequence[str], form: _Form, shape: Shape) -> DataFrame:
    fields = [T.StructField("path", T.StringType()), T.StructField("size", T.LongType())]
    if shape.partitions:
        fields.append(T.StructField("partitionValues", _MAP))
    if shape.vectors:
        fields.append(T.StructField("deletionVector", VECTOR))
    for name, stored in zip(shape.constants, form.constants, strict=True):
        if stored is not None and name != "size":
            fields.append(T.StructField(name, _spark(stored)))
    in_struct = {leaf: kind for leaf, kind in zip(shape.leaves, form.structs, strict=True) if kind is not None}
    in_text = [leaf for leaf in shape.leaves if leaf not in in_struct] if form.text else []
    paths = {statistic_path(x): k for x, k in in_struct.items()} | (
        {("numRecords",): T.LongType()} if form.records else {}
    )
    if paths:
        fields.append(T.StructField("stats_parsed", _nested(paths)))
    if in_text or ((shape.vectors or shape.records) and form.text and not form.records):
        fields.append(T.StructField("stats", T.StringType()))
    schema = T.StructType([T.StructField("add", T.StructType(fields))])
    # a path is taken for a pattern
    rows = spark.read.schema(schema).options(**_OPTIONS).parquet(*[p.translate(_GLOB) for p in places])
    rows = rows.where(F.col("add.path").isNotNull())
    texts = [_column("add", "partitionValues")[F.lit(n)].alias(shape.partition(n)) for n in shape.partitions]
    have = {f.name for f in fields}
    constants = [(_column("add", n) if n in have else F.lit(None)).alias(shape.constant(n)) for n in shape.constants]
    parsed = _parsed(F.col("add.stats"), in_text)
    statistics = [
        (_column("add", "stats_parsed", *statistic_path(x)) if x in in_struct else parsed.get(x, F.lit(None)))
        .try_cast(leaf_type(x))
        .alias(shape.leaf(x))
        for x in shape.leaves
    ]
    vector = _column("add", "deletionVector") if shape.vectors else F.lit(None).cast(VECTOR)
    # a struct of nothing but nulls is no vector
    vector = F.when(vector.getField("storageType").isNotNull(), vector).alias("vector")
    return rows.select("add.path", "add.size", vector, _records(form, shape), *texts, *constants, *statistics)


def _records(form: _Form, shape: Shape) -> Column:
    """Return the rows of files; of those with a vector only, if requested: text statistics are parsed for these."""
    found = F.lit(None)
    if form.records:
        found = F.col("add.stats_parsed.numRecords")
    elif form.text and (shape.vectors or shape.records):
        text = F.col("add.stats")
        if not shape.records:
            text = F.when(F.col("add.deletionVector.storageType").isNotNull(), text)
        found = F.from_json(text, "numRecords long").getField("numRecords")
    return found.cast("long").alias("records")


def _column(*names: str) -> Column:
    return F.col(".".join(map(quote_name, names)))


def _nested(leaves: Mapping[Path, T.DataType]) -> T.StructType:
    """Return nested structs of leaves by path."""
    tops: dict[str, dict[Path, T.DataType]] = {}
    for path, kind in leaves.items():
        tops.setdefault(path[0], {})[path[1:]] = kind
    return T.StructType([T.StructField(n, below[()] if () in below else _nested(below)) for n, below in tops.items()])


# --- statistics as text --------------------------------------------------------------------


def leaf_type(leaf: FileStatistic) -> str:
    """Return the name of a statistic's type in Spark's SQL."""
    if leaf.kind in ("nullCount", "numRecords"):
        return "long"
    return "boolean" if leaf.kind == "tightBounds" else str(leaf.type.type)


def _parsed(text: Column, leaves: Sequence[FileStatistic]) -> dict[FileStatistic, Column]:
    """Return statistics from their JSON text, found in one pass."""
    # names that differ in case alone could not be distinguished
    folded = [tuple(n.lower() for n in statistic_path(x)) for x in leaves]
    known = [x for x, name in zip(leaves, folded, strict=True) if folded.count(name) == 1]
    if not known:
        return {}
    whole = F.from_json(text, _nested({statistic_path(x): _json_type(leaf_type(x)) for x in known}))
    out = {}
    for leaf in known:
        value = whole
        for name in statistic_path(leaf):
            value = value.getField(name)
        out[leaf] = _value(value, leaf_type(leaf))
    return out


def _json_type(kind: str) -> T.DataType:
    if kind in _WHOLE:
        return T.LongType()
    if (decimal := parse_decimal(kind)) is not None:
        return T.DecimalType(*decimal)
    kinds: Mapping[str, T.DataType] = {"float": T.FloatType(), "double": T.DoubleType(), "boolean": T.BooleanType()}
    return kinds.get(kind, T.StringType())


def _value(value: Column, kind: str) -> Column:
    """Return a value of JSON as text that Spark casts as the kernel reads it: a timestamp without a zone is UTC."""
    if kind == "date":
        return F.when(F.rlike(value, F.lit(_DATE)), value)
    if kind == "timestamp":
        zoned = F.when(F.rlike(value, F.lit(_TIME + _ZONE)), value)
        return F.coalesce(zoned, F.when(F.rlike(value, F.lit(_TIME + "$")), F.concat(value, F.lit("Z"))))
    return F.when(F.rlike(value, F.lit(_TIME + "$")), value) if kind == "timestamp_ntz" else value
