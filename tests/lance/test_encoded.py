"""Predicates tested on encoded values select the rows that the condition is true of, evaluated value by value."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from tests.example_counts import IS_LONG

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

NAN = float("nan")
DAY = date(2020, 1, 1)
TIME = datetime(2020, 1, 1, tzinfo=UTC)
#: Three-valued truth of a row.
Truth = Callable[[dict[str, Any]], "bool | None"]


def _runs(make: Callable[[int], Any]) -> Callable[[Random, int], list[Any]]:
    return lambda chance, n: [make(i // 37) for i in range(n)]


def _each(make: Callable[[Random], Any]) -> Callable[[Random, int], list[Any]]:
    return lambda chance, n: [make(chance) for _ in range(n)]


#: By name: the type, values, how a constant is written in SQL, and metadata of the field.
COLUMNS: dict[str, tuple[pa.DataType, Callable[[Random, int], list[Any]], Callable[[Any], str], dict[str, str]]] = {
    "packed": (pa.int64(), _each(lambda c: c.randrange(300)), str, {}),
    "negative": (pa.int32(), _each(lambda c: c.randrange(-(2**31), 2**31)), str, {}),
    "small": (pa.int8(), _each(lambda c: c.randrange(-128, 128)), str, {}),
    "runs": (pa.int16(), _runs(lambda k: k * k % 101), str, {}),
    "constant": (pa.int64(), _runs(lambda k: 7), str, {}),
    "empty": (pa.int32(), _runs(lambda k: None), lambda v: "7", {}),
    "real": (
        pa.float64(),
        _each(lambda c: c.choice([NAN, -NAN, 0.0, -0.0, 1.5, -math.inf, math.inf, c.random()])),
        lambda v: {math.inf: "double('Infinity')", -math.inf: "double('-Infinity')"}.get(v, f"double('{v!r}')"),
        {},
    ),
    "flag": (pa.bool_(), _each(lambda c: c.random() < 0.5), lambda v: str(v).lower(), {}),
    "day": (pa.date32(), _each(lambda c: DAY + timedelta(c.randrange(500))), lambda v: f"date'{v}'", {}),
    "time": (
        pa.timestamp("us", "UTC"),
        _each(lambda c: TIME + timedelta(seconds=c.randrange(9999))),
        lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S}+00:00'",
        {},
    ),
    "local_time": (
        pa.timestamp("us"),
        _each(lambda c: TIME.replace(tzinfo=None) + timedelta(seconds=c.randrange(9999))),
        lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S}'",
        {},
    ),
    "fine_time": (
        pa.timestamp("ns", "UTC"),
        _each(lambda c: TIME + timedelta(seconds=c.randrange(9999))),
        lambda v: f"timestamp'{v:%Y-%m-%d %H:%M:%S}+00:00'",
        {},
    ),
    "unsigned": (pa.uint8(), _each(lambda c: c.randrange(256)), str, {}),
    "wide": (pa.uint32(), _each(lambda c: c.randrange(2**31 - 200, 2**31 + 200)), str, {}),
    "widest": (pa.uint64(), _each(lambda c: c.randrange(2**63 - 200, 2**63)), str, {}),
    "large": (pa.large_string(), _each(lambda c: c.choice(["", "ab", "abc", "ä", "q" * 9])), lambda v: f"'{v}'", {}),
    "money": (pa.decimal128(20, 2), _each(lambda c: Decimal(c.randrange(9999)) / 100), lambda v: f"{v:.2f}", {}),
    "few": (pa.string(), _each(lambda c: c.choice(["", "ab", "abc", "ä", "zzz" * 9])), lambda v: f"'{v}'", {}),
    "text": (pa.string(), _each(lambda c: f"{c.randrange(10**6):06}"), lambda v: f"'{v}'", {}),
    "words": (
        pa.string(),
        _each(lambda c: "".join(c.choice(["the ", "of ", "é", "x"]) for _ in range(c.randrange(9)))),
        lambda v: f"'{v}'",
        {},
    ),
    "zipped": (
        pa.string(),
        _each(lambda c: f"key {c.randrange(999)}"),
        lambda v: f"'{v}'",
        {"lance-encoding:compression": "zstd"},
    ),
    "long": (pa.string(), _each(lambda c: f"{c.randrange(99)}" * 300), lambda v: f"'{v}'", {}),
}


def _made(chance: Random, num_rows: int, nulls: str) -> pa.Table:
    arrays, fields = [], []
    for name, (of, make, _, metadata) in COLUMNS.items():
        values = make(chance, num_rows)
        if nulls == "some":
            values = [None if chance.random() < 0.1 else v for v in values]
        elif nulls == "runs":
            values = [None if i // 53 % 3 == 0 else v for i, v in enumerate(values)]
        arrays.append(pa.array(values, of))
        fields.append(pa.field(name, of, metadata=metadata))
    numbers = pa.array(np.arange(num_rows))
    return pa.Table.from_arrays([numbers, *arrays], schema=pa.schema([pa.field("n", pa.int64()), *fields]))


def _nested(table: pa.Table, chance: Random, *, has_null_structs: bool) -> pa.Table:
    """Return a table whose columns, but not the number of the row, are fields of ``a.b``."""
    columns = table.drop_columns(["n"]).combine_chunks()
    arrays, fields = [c.combine_chunks() for c in columns.columns], list(columns.schema)
    for name, share in (("b", 0.1), ("a", 0.2)):
        is_null = pa.array([has_null_structs and chance.random() < share for _ in range(table.num_rows)])
        arrays = [pa.StructArray.from_arrays(arrays, fields=fields, mask=is_null)]
        fields = [pa.field(name, arrays[0].type)]
    return pa.table({"n": table["n"], "a": arrays[0]})


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a row of `_nested`; those of a null struct are null."""
    inner = (row["a"] or {}).get("b")
    return {"n": row["n"], **(inner or dict.fromkeys(COLUMNS))}


def _ordered(value: Any) -> Any:
    """Return the key of a value in the order of comparisons: NaN is the greatest number, and -0.0 equals 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return value.encode() if isinstance(value, str) else value


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _one(chance: Random, table: pa.Table, within: str) -> tuple[str, Truth]:
    name = chance.choice(list(COLUMNS))
    path = within + name
    of, _, sql, _ = COLUMNS[name]
    kind = chance.randrange(8)
    constant = table[name][chance.randrange(table.num_rows)].as_py()
    if kind == 0 or constant is None:
        return f"{path} is null", lambda row: row[name] is None
    if kind == 1:
        return f"{path} is not null", lambda row: row[name] is not None
    if kind == 2 and name != "flag":
        others = [*[v for v in table[name].slice(0, 40).to_pylist() if v is not None][:3], constant]
        keys = {_ordered(v) for v in others}
        return (
            f"{path} in ({', '.join(map(sql, others))})",
            lambda row: None if row[name] is None else _ordered(row[name]) in keys,
        )
    if kind == 3 and (pa.types.is_string(of) or pa.types.is_large_string(of)):
        head = constant[: chance.randrange(len(constant) + 1)]
        form = chance.randrange(3)
        pattern = (f"{head}%", f"%{head}", f"%{head}%")[form]
        test = (str.startswith, str.endswith, str.__contains__)[form]
        return f"{path} like '{pattern}'", lambda row: None if row[name] is None else test(row[name], head)
    if name == "flag":
        return f"{path} = {sql(constant)}", lambda row: None if row["flag"] is None else row["flag"] == constant
    operator = chance.choice(list(OPERATORS))
    key = _ordered(constant)
    return (
        f"{path} {operator} {sql(constant)}",
        lambda row: None if row[name] is None else OPERATORS[operator](_ordered(row[name]), key),
    )


def _any(chance: Random, table: pa.Table, within: str = "", depth: int = 2) -> tuple[str, Truth]:
    kind = chance.randrange(5) if depth else 0
    if kind == 1:
        text, truth = _any(chance, table, within, depth - 1)
        return f"(not {text})", lambda row: None if truth(row) is None else not truth(row)
    if kind in (2, 3):
        (left, first), (right, second) = (_any(chance, table, within, depth - 1) for _ in range(2))
        decisive = kind == 3

        def joined(row: dict[str, Any]) -> bool | None:
            found = first(row), second(row)
            return decisive if decisive in found else None if None in found else not decisive

        return f"({left} {'or' if decisive else 'and'} {right})", joined
    return _one(chance, table, within)


def _numbers(dataset: LanceDataset, predicate: str, **options: Any) -> list[int]:
    return [n for b in dataset.scan(["n"], predicate, **options).batches() for n in b["n"].to_pylist()]


VERSIONS = ["0.1", "2.0", "2.1", "2.2"]
CASES = list(product(VERSIONS, [1, 1025, 3000] + [100_000] * IS_LONG, ["none", "some", "runs"], [False, True]))
SHORT = [c for c in CASES if c[2] == "runs" and c[1] + c[3] not in (2, 1025)]


@pytest.mark.parametrize(("version", "num_rows", "nulls", "is_nested"), CASES if IS_LONG else SHORT)
def test_rows_of_a_predicate_are_those_that_it_is_true_of(
    tmp_path: Path, version: str, num_rows: int, nulls: str, is_nested: bool
) -> None:
    chance = Random(f"{version} {num_rows} {nulls} {is_nested}")
    table = _made(chance, num_rows, nulls)
    # version 2.0 stores no null structs
    stored = _nested(table, chance, has_null_structs=nulls != "none" and version != "2.0") if is_nested else table
    # pylance 14.0.2 fails on slices of null structs
    most_rows = num_rows if is_nested else max(num_rows // 2, 1)
    lance.write_dataset(stored, tmp_path / "t", data_storage_version=version, max_rows_per_file=most_rows)
    lance.dataset(tmp_path / "t").delete("n % 13 = 5")
    dataset = open_dataset(str(tmp_path / "t"))
    rows = dataset.to_pyarrow_table().to_pylist()
    rows = [_fields(row) for row in rows] if is_nested else rows
    assert [r["n"] for r in rows] == [n for n in range(num_rows) if n % 13 != 5]
    tested = 0
    for _ in range(300 if IS_LONG else 25):
        predicate, truth = _any(chance, table, "a.b." if is_nested else "")
        expected = [row["n"] for row in rows if truth(row)]
        assert _numbers(dataset, predicate) == expected, predicate
        assert _numbers(dataset, predicate, batch_rows=100, limit=3) == expected[:3], predicate
        assert dataset.count(predicate) == len(expected), predicate
        tested += any(part.decoder for part in dataset.scan([], predicate).explain().predicate)
    assert tested > 0


def test_conditions_on_numbers_times_and_strings_are_tested_before_decoding(tmp_path: Path) -> None:
    table = _made(Random(1), 100, "none")
    lance.write_dataset(table, tmp_path / "t")
    dataset = open_dataset(str(tmp_path / "t"))
    for name, (_, _, sql, _) in COLUMNS.items():
        if name in ("empty", "real", "flag"):
            continue
        value = sql(table[name][3].as_py())
        for predicate in (f"{name} = {value}", f"{name} in ({value}, {value})", f"{name} > {value}"):
            if name != "money" or " in " not in predicate:
                [part] = dataset.scan([], predicate).explain().predicate
                assert part.decoder, predicate


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_columns_of_a_file_that_lacks_them_are_null(tmp_path: Path, version: str) -> None:
    place = tmp_path / "t"
    lance.write_dataset(pa.table({"n": range(10)}), place, data_storage_version=version)
    lance.dataset(place).add_columns(pa.schema([pa.field("x", pa.int64()), pa.field("s", pa.string())]))
    more = pa.table({"n": range(10, 20), "x": [None, *range(9)], "s": [None, *"abcdefghi"]})
    lance.write_dataset(more, place, mode="append")
    dataset = open_dataset(str(place))
    for predicate, expected in {
        "x is null": [*range(11)], "x is not null and s is not null": [*range(11, 20)], "x = 3": [14],
        "x > 5 or s = 'a'": [11, 17, 18, 19], "not (x <= 7) or s is null": [*range(11), 19],
        "x <=> 4": [15], "not (s <=> 'b') and n % 2 = 1": [1, 3, 5, 7, 9, 11, 13, 15, 17, 19],
    }.items():  # fmt: skip
        assert _numbers(dataset, predicate) == expected, predicate


def test_other_columns_are_read_for_rows_that_pass(tmp_path: Path) -> None:
    n = 200_000
    texts = [f"{i * 7919 % n:06}" for i in range(n)]
    table = pa.table({"n": range(n), "s": texts, "w": np.random.default_rng(0).random(n)})
    lance.write_dataset(table, tmp_path / "t")
    dataset = open_dataset(str(tmp_path / "t"))
    read: list[int] = []
    storage = dataset.storage
    before = type(storage).read

    def counted(self: Any, requests: Any, *arguments: Any, **options: Any) -> Any:
        read.extend(r.length for r in requests)
        return before(self, requests, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(storage), "read", counted)
        assert dataset.to_pyarrow_table(["w", "n"], "s = '000042'").num_rows == 1
    [file] = (tmp_path / "t" / "data").iterdir()
    # the strings, and a page of each other column: not the 1.6 MB of w
    assert sum(read) < file.stat().st_size - 1_500_000


def test_predicate_that_may_fail_for_a_row_is_evaluated_as_a_whole(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"n": range(5), "s": ["1", "2", "x", "4", "5"]}), tmp_path / "t")
    scan = open_dataset(str(tmp_path / "t")).scan([], "n < 2 and cast(s as int) = 1")
    assert not any(part.decoder for part in scan.explain().predicate)
