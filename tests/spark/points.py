"""Classes of Python with user-defined types, for tests of such columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T


class _Type(T.UserDefinedType):  # type: ignore[misc]  # pyspark has no types
    @classmethod
    def module(cls) -> str:
        return __name__


class PointType(_Type):
    """A `Point` as a list of its coordinates."""

    @classmethod
    def sqlType(cls) -> T.DataType:  # noqa: N802 (PySpark's name)
        return T.ArrayType(T.DoubleType(), False)

    def serialize(self, obj: Point) -> list[float]:
        return [obj.x, obj.y]

    def deserialize(self, datum: Any) -> Point:
        return Point(*datum)


class LabelType(_Type):
    """A `Label` as its text."""

    @classmethod
    def sqlType(cls) -> T.DataType:  # noqa: N802 (PySpark's name)
        return T.StringType()

    def serialize(self, obj: Label) -> str:
        return obj.text

    def deserialize(self, datum: str) -> Label:
        return Label(datum)


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    __UDT__ = PointType()


@dataclass(frozen=True)
class Label:
    text: str
    __UDT__ = LabelType()


def frames(spark: Any) -> dict[str, Any]:
    """Return DataFrames with columns ``id`` and ``x``, by the kind of type that ``x`` has; one value is null."""
    from pyspark.ml.linalg import Matrices, MatrixUDT, Vectors, VectorUDT

    values: dict[str, tuple[T.DataType, list[Any]]] = {
        "vector": (VectorUDT(), [Vectors.dense(1.0, 2.0), Vectors.sparse(3, [1], [5.0]), None]),
        "matrix": (MatrixUDT(), [Matrices.dense(1, 2, [1.0, 2.0]), Matrices.sparse(1, 1, [0, 1], [0], [2.0]), None]),
        "list": (PointType(), [Point(1.0, 2.0), Point(3.0, 4.0), None]),
        "text": (LabelType(), [Label("a"), Label("b"), None]),
        "in a struct": (
            T.StructType([T.StructField("v", VectorUDT()), T.StructField("n", T.IntegerType())]),
            [(Vectors.dense(1.0), 1), (None, 2), None],
        ),
        "in an array": (T.ArrayType(PointType()), [[Point(1.0, 2.0), None], [], None]),
        "in a map": (T.MapType(LabelType(), VectorUDT()), [{Label("a"): Vectors.dense(1.0)}, {Label("b"): None}, None]),
    }
    return {
        name: spark.createDataFrame(
            list(enumerate(column, 1)), T.StructType([T.StructField("id", T.LongType()), T.StructField("x", kind)])
        )
        for name, (kind, column) in values.items()
    }
