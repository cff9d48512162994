"""Conditions on columns of each logical type of the format, as they are bound and evaluated for a scan."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_core.engines.arrow.evaluate.evaluator import ArrowEvaluator
from delta_core.errors import ExpressionError, UnsupportedExpressionError
from delta_plugins.lance.predicates import bind_predicate
from delta_plugins.lance.schema import LanceField, arrow_field
from tests.lance.test_dataset import opened

T0 = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
VECTORS = [[1.0, 2.0], [3.0, 4.0], None]
#: A logical type, three values, a condition, and which rows pass.
CASES: list[tuple[str, list[Any], str, list[bool]]] = [
    *((f"uint{bits}", [0, 2**bits - 1, None], f"c > {2 ** bits - 2}", [False, True, False])
      for bits in (8, 16, 32, 64)),
    ("uint64", [0, 2**64 - 1, None], "c > -1", [True, True, False]),
    ("uint64", [0, 2**64 - 1, None], "c + 1 = 18446744073709551616", [False, True, False]),
    ("uint16", [7, 300, None], "c in (7, -7, 65536)", [True, False, False]),
    ("halffloat", [1.5, float("nan"), None], "c > 65504", [False, True, False]),
    ("time32:s", [time(1), time(2), None], "c >= '01:30:00'", [False, True, False]),
    ("time32:ms", [time(1), time(2), None], "c = '02:00:00.000'", [False, True, False]),
    ("time64:us", [time(1), time(2), None], "hour(c) between 1 and 1", [True, False, False]),
    ("time64:ns", [time(1), time(2), None], "c in ('01:00:00', '01:00:00.000000001')", [True, False, False]),
    *((f"duration:{unit}", [timedelta(seconds=-1), timedelta(days=2), None], "c > INTERVAL 1 DAY",
       [False, True, False]) for unit in ("s", "ms", "us", "ns")),
    *((f"timestamp:{unit}:-", [datetime(2020, 1, 2), datetime(1969, 1, 1), None], "c < '1970-01-01'",
       [False, True, False]) for unit in ("s", "ms", "us", "ns")),
    *((f"timestamp:{unit}:Asia/Tokyo", [T0, T0 + timedelta(days=1), None], "c = '2020-01-02 12:04:05+09:00'",
       [True, False, False]) for unit in ("s", "ms", "us", "ns")),
    ("date64:ms", [datetime(2020, 1, 2), datetime(2021, 1, 1), None], "year(c) = 2021", [False, True, False]),
    ("decimal:256:60:2", [Decimal(10**50), Decimal("1.25"), None], "c > 1.25", [True, False, False]),
    ("decimal:128:10:-2", [Decimal(500), Decimal(100), None], "c = 500", [True, False, False]),
    ("fixed_size_binary:2", [b"ab", b"zz", None], "c > X'6162'", [False, True, False]),
    ("fixed_size_list:float:2", VECTORS, "c[0] > 1 or c = array(1e0, 2e0)", [True, True, False]),
    ("fixed_size_list:uint8:2", [[1, 2], [3, 4], None], "array_contains(c, 3)", [False, True, False]),
    ("large_string", ["abc", "xyz", None], "c like 'a%'", [True, False, False]),
    ("large_binary", [b"ab", b"", None], "length(c) = 0", [False, True, False]),
    ("dict:string:int16:false", ["abc", "xyz", None], "upper(c) in ('XYZ', 'Q')", [False, True, False]),
    ("dict:large_string:uint8:true", ["abc", "xyz", None], "c >= 'b'", [False, True, False]),
]  # fmt: skip


def field(logical_type: str, **arguments: Any) -> LanceField:
    return LanceField(0, -1, "c", logical_type, **arguments)


@pytest.mark.parametrize(
    ("logical_type", "values", "condition", "expected"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES]
)
def test_condition_selects_rows(logical_type: str, values: list[Any], condition: str, expected: list[bool]) -> None:
    column = field(logical_type)
    array = pa.array(values, arrow_field(column).type)
    for text, wanted in (
        (condition, expected),
        (f"not ({condition})", [not e and v is not None for e, v in zip(expected, values, strict=True)]),
        ("c is not null", [v is not None for v in values]),
        ("c <=> c", [True] * 3),
    ):
        predicate = bind_predicate(text, [column], ArrowEvaluator())
        assert predicate is not None
        assert predicate.passing({"c": array}, 3).tolist() == [i for i, passes in enumerate(wanted) if passes]
        assert str(predicate)


@pytest.mark.parametrize(
    ("column", "why"),
    [(field("large_binary", metadata={"lance-encoding:blob": b"true"}), "blobs"), (field("json"), "JSON")],
)
def test_column_whose_bytes_encode_something_else_is_rejected(column: LanceField, why: str) -> None:
    with pytest.raises(UnsupportedExpressionError, match=f"Column 'c' can't be part of a predicate: .*{why}"):
        bind_predicate("C is null", [column], ArrowEvaluator())


def test_extension_type_of_the_format_is_only_tested_for_null() -> None:
    column = field("fixed_size_binary:2", metadata={"ARROW:extension:name": b"lance.bfloat16"})
    predicate = bind_predicate("c is null", [column], ArrowEvaluator())
    assert predicate is not None
    assert predicate.passing({"c": pa.array([b"ab", None], pa.binary(2))}, 2).tolist() == [1]
    for condition in ("c = X'6162'", "c < c", "c in (X'6162', X'6161')", "length(c) = 2"):
        with pytest.raises(ExpressionError, match=r"lance\.bfloat16"):
            bind_predicate(condition, [column], ArrowEvaluator())


def test_scan_tests_a_column_of_unsigned_numbers() -> None:
    dataset = opened("plain")
    whole = dataset.to_pyarrow_table(["id", "u"])
    expected = [row["id"] for row in whole.to_pylist() if row["u"] is not None and row["u"] % 7 == 3]
    assert expected
    found = dataset.scan(["id"], "U % 7 = 3 and u > -1")
    assert found.to_table()["id"].to_pylist() == expected
    assert dataset.schema.get("u").type.to_arrow() == pa.uint16()  # type: ignore[union-attr]
