"""Casts to decimals: the Arrow engine's results are Spark's, in ANSI mode."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.expressions import bind, parse_sql
from delta_core.expressions.ast import column
from delta_core.schema.fields import Schema

pytestmark = pytest.mark.spark

TARGETS = ((1, 0), (2, 2), (5, 2), (12, 1), (18, 9), (19, 5), (38, 0), (38, 1), (38, 18), (38, 37), (38, 38))
NUMBERS = {"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}


def decimals(r: random.Random, precision: int, scale: int) -> list[Decimal]:
    """Return values near the limits of rounding and of the digits, and any others."""
    made = []
    for _ in range(25):
        near = (10**precision - 1, 10 ** r.randrange(precision + 1) - 1, 5 * 10 ** r.randrange(precision))
        number = r.choice((*near, r.randrange(10**precision), 0)) % 10**precision
        made.append(Decimal((r.randrange(2), tuple(map(int, str(number))), -scale)))
    return made


def cases() -> dict[str, pa.Array]:
    r = random.Random(11)
    found: dict[str, pa.Array] = {
        f"decimal({p},{s})": pa.array(decimals(r, p, s), pa.decimal128(p, s))
        for p, s in ((2, 2), (10, 2), (19, 4), (20, 20), (37, 1), (38, 0), (38, 38))
    }
    for name, t in NUMBERS.items():
        limit = 2 ** (t.bit_width - 1)
        few = [0, 1, -1, 9, 99, -100, limit - 1, -limit]
        found[name] = pa.array([*few, *(r.randrange(-limit, limit) for _ in range(8))], t)
    # what Java 17 prints with more digits than it takes is left out: short numbers, and powers of two
    floats = [0.0, -0.0, 0.5, -2.5, 0.05, 9.5, 0.995, -9.995, 2.675, 99999999.995, 5e-19, 1e20, 1e37, 2.0**53, 1e300]
    floats += [
        float("nan"),
        float("inf"),
        float("-inf"),
        *(round(r.uniform(-999, 999), r.randrange(6)) for _ in range(30)),
    ]
    found["double"] = pa.array(floats)
    singles = [struct.unpack("f", struct.pack("f", f))[0] for f in floats if abs(f) < 1e38 or f != f]
    found["float"] = pa.array(singles, pa.float32())
    found["boolean"] = pa.array([True, False])
    instants = [0, -1, 500_000, -500_000, 1_577_836_800_123_456, *(r.randrange(-(10**16), 10**16) for _ in range(10))]
    found["timestamp"] = pa.array(instants, pa.timestamp("us", "UTC"))
    texts = [
        "1",
        "-0.5",
        "2.5",
        "99.995",
        "1e3",
        "1E-3",
        " 7\t",
        "+7",
        ".5",
        "5.",
        "nan",
        "inf",
        "",
        "-",
        "1e400",
        "1e-400",
    ]
    found["string"] = pa.array([*texts, "9" * 38, "9" * 39, "0." + "9" * 40, "1d", "1_0", "0" * 50 + "1"])
    return found


def ours(array: pa.Array, text: str) -> pa.Array:
    bound = bind(parse_sql(text), Schema.from_arrow(pa.schema([("x", array.type)])))
    compiled = ArrowEvaluator().compile(bound, {column("x"): array.type})
    return compiled([array] * len(compiled.leaves), len(array))


def test_cast_to_decimal_equals_spark(spark: Any) -> None:
    from pyspark.sql import functions as F

    for source, array in cases().items():
        if source == "timestamp" and spark.version.startswith("4.0."):
            continue  # Spark 4.0 casts them by way of a double, and loses microseconds
        frame = spark.createDataFrame(pa.table({"x": array})).coalesce(1)
        texts = [F.expr(f"cast(try_cast(x as decimal({p},{s})) as string)").alias(f"{p}_{s}") for p, s in TARGETS]
        spark_values = frame.select(*texts).toArrow()
        for p, s in TARGETS:
            expected = [None if v is None else Decimal(v) for v in spark_values[f"{p}_{s}"].to_pylist()]
            assert ours(array, f"try_cast(x as decimal({p},{s}))").to_pylist() == expected, (source, p, s)


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_cast_of_no_number_is_null_as_in_spark(spark: Any, kind: str, number: str) -> None:
    text = f"cast({kind}('{number}') as decimal(10,2))"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert [spark.sql(f"SELECT {text}").collect()[0][0], ours(pa.array([1]), text)[0].as_py()] == [None, None]
