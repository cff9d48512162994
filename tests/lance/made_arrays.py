"""Arrays of all types that files store, with and without nulls."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Make = Callable[[int, np.random.Generator], list[Any]]


def _texts(distinct: int, most: int) -> Make:
    def make(n: int, random: np.random.Generator) -> list[Any]:
        known = [f"{'é' if i % 7 == 0 else 'x'}{i}" * int(random.integers(0, most)) for i in range(distinct)]
        return [known[i] for i in random.integers(0, distinct, n)]

    return make


def _lists(make: Make, most: int = 4) -> Make:
    def lists(n: int, random: np.random.Generator) -> list[Any]:
        sizes = random.integers(0, most, n)
        items = make(int(sizes.sum()) + 1, random)
        ends = np.cumsum(sizes)
        return [items[e - s : e] for e, s in zip(ends.tolist(), sizes.tolist(), strict=True)]

    return lists


def _numbers(low: int, high: int) -> Make:
    return lambda n, random: random.integers(low, high, n).tolist()


def _constant(value: Any) -> Make:
    return lambda n, random: [value] * n


def _runs(n: int, random: np.random.Generator) -> list[Any]:
    return np.repeat(random.integers(0, 50, n // 100 + 1), 100)[:n].tolist()


def _structs(**fields: Make) -> Make:
    def structs(n: int, random: np.random.Generator) -> list[Any]:
        columns = {k: make(n, random) for k, make in fields.items()}
        return [{k: c[i] for k, c in columns.items()} for i in range(n)]

    return structs


def _maps(n: int, random: np.random.Generator) -> list[Any]:
    return [[(f"k{k}", int(k) * 3) for k in range(s)] for s in random.integers(0, 4, n)]


SMALL = _numbers(0, 100)
INT = pa.int64()
CASES: dict[str, tuple[pa.DataType, Make]] = {
    "int8": (pa.int8(), _numbers(-128, 128)),
    "uint16": (pa.uint16(), SMALL),
    "int32": (pa.int32(), _numbers(-(2**31), 2**31)),
    "int64": (INT, _numbers(0, 5000)),
    "wide int64": (INT, _numbers(-(2**63), 2**63 - 1)),
    "runs": (INT, _runs),
    "constant": (INT, _constant(7)),
    "bool": (pa.bool_(), lambda n, random: (random.integers(0, 2, n) == 1).tolist()),
    "half": (pa.float16(), lambda n, random: random.random(n).astype(np.float16).tolist()),
    "float": (pa.float32(), lambda n, random: random.integers(0, 9, n).astype(np.float32).tolist()),
    "double": (pa.float64(), lambda n, random: random.random(n).tolist()),
    "timestamp": (pa.timestamp("us", "+05:30"), _numbers(10**15, 2 * 10**15)),
    "decimal128": (pa.decimal128(20, 3), lambda n, random: [Decimal(int(v)) / 8 for v in random.integers(0, 99, n)]),
    "decimal256": (pa.decimal256(40, 3), lambda n, random: [Decimal(int(v)) / 8 for v in random.integers(0, 99, n)]),
    "fixed binary": (pa.binary(5), lambda n, random: [bytes(r) for r in random.integers(0, 256, (n, 5), np.uint8)]),
    "string": (pa.string(), _texts(4000, 5)),
    "few strings": (pa.string(), _texts(5, 4)),
    "constant string": (pa.string(), _constant("constant")),
    "long constant string": (pa.string(), _constant("constant" * 100)),
    "long strings": (pa.string(), _texts(20, 200)),
    "large string": (pa.large_string(), _texts(300, 5)),
    "binary": (pa.binary(), lambda n, random: [bytes(random.integers(0, 256, k % 9, np.uint8)) for k in range(n)]),
    "dictionary": (pa.dictionary(pa.int16(), pa.string()), _texts(9, 4)),
    "list": (pa.list_(pa.int32()), _lists(SMALL)),
    "list of strings": (pa.list_(pa.string()), _lists(_texts(900, 4))),
    "large list": (pa.large_list(INT), _lists(SMALL)),
    "long list": (pa.list_(INT), _lists(_numbers(0, 2**40), 400)),
    "list of constants": (pa.list_(INT), _lists(_constant(3))),
    "list of lists": (pa.list_(pa.list_(INT)), _lists(_lists(SMALL))),
    "fixed list": (pa.list_(pa.float32(), 3), lambda n, random: random.random((n, 3)).tolist()),
    "vectors": (pa.list_(pa.float32(), 128), lambda n, random: random.random((n, 128)).tolist()),
    "fixed list of fixed lists": (pa.list_(pa.list_(pa.int8(), 2), 3), lambda n, random: [[[1, 2]] * 3] * n),
    "fixed list of bools": (pa.list_(pa.bool_(), 8), lambda n, random: (random.random((n, 8)) > 0.5).tolist()),
    "struct": (pa.struct({"a": INT, "b": pa.string()}), _structs(a=SMALL, b=_texts(9, 4))),
    "struct of structs": (
        pa.struct({"a": pa.struct({"x": INT, "y": pa.string()}), "b": pa.float64()}),
        _structs(a=_structs(x=SMALL, y=_texts(9, 4)), b=lambda n, random: random.random(n).tolist()),
    ),
    "list of structs": (
        pa.list_(pa.struct({"a": INT, "b": pa.list_(pa.string())})),
        _lists(_structs(a=SMALL, b=_lists(_texts(9, 4)))),
    ),
    "struct of lists": (
        pa.struct({"a": pa.list_(INT), "b": pa.list_(pa.string())}),
        _structs(a=_lists(SMALL), b=_lists(_texts(9, 4))),
    ),
    "map": (pa.map_(pa.string(), INT), _maps),
    "fixed list of structs": (
        pa.list_(pa.struct({"a": INT, "b": pa.string()}), 2),
        lambda n, random: [[{"a": i, "b": str(i)}, {"a": -i, "b": None}] for i in range(n)],
    ),
    "null": (pa.null(), _constant(None)),
}
#: What each version of files does not store.
MISSING = {
    "2.2": {"fixed list of bools"},
    "2.1": {"map", "fixed list of structs", "fixed list of bools"},
    "2.0": {"map", "fixed list of structs"},
    "legacy": {"map", "fixed list of structs", "null", "dictionary", "half", "fixed list of bools"},
}


def made_array(case: str, nulls: str, n: int) -> pa.Array:
    of, make = CASES[case]
    random = np.random.default_rng(len(case) * 1000 + n)
    values = make(n, random)
    null = {
        "none": np.zeros(n, bool),
        "some": random.random(n) < 0.2,
        "all": np.ones(n, bool),
        "runs": np.arange(n) // 200 % 2 == 1,
    }[nulls]
    values = [None if is_null else v for v, is_null in zip(values, null.tolist(), strict=True)]
    if pa.types.is_dictionary(of):
        return pa.array(values, of.value_type).dictionary_encode().cast(of)
    if of == pa.float16():  # PyArrow 18 takes no other numbers
        values = [None if v is None else np.float16(v) for v in values]
    return pa.array(values, of)
