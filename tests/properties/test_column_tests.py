"""Conditions that are tested while a column is decoded pass the same rows as in Python, whoever wrote the file.

The writers differ in what lets pages be skipped: Bloom filters, page indexes with cut bounds, dictionaries that end
within a chunk.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core.engines.conditions import (
    ColumnTest,
    JoinedTest,
    NullTest,
    TextBound,
    ValuePattern,
    ValueRange,
    ValueSet,
)
from delta_core.kernels.gather import SelectionVector
from delta_core.parquet.columns import GroupReader
from delta_core.parquet.opened_file import DataFile
from tests.example_counts import examples

TYPES = {
    "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "text": pa.string(),
    "bytes": pa.binary(), "date": pa.date32(), "time": pa.timestamp("us"), "byte": pa.int8(), "short": pa.int16(),
    "flag": pa.bool_(), "money": pa.decimal128(9, 2), "amount": pa.decimal128(17, 2), "wide": pa.decimal128(38, 2),
}  # fmt: skip
#: Values as they are stored, beside a range of small ones.
ODD: dict[str, list[Any]] = {
    "int": [2**31 - 1, -(2**31)],
    "long": [2**63 - 1, -(2**63), 2**32],
    "float": [0.0, -0.0, math.nan, math.inf, -math.inf, 3.4028234663852886e38],
    "double": [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308],
    "text": ["", "é" * 33, "\U0010ffff" * 3, "a" * 63 + "é", "a" * 65, "\uffff" * 30, "x\0y", "L" * 3000],
    "bytes": [b"", b"\xff\xff", b"\xff" * 70, b"\x80", b"a" * 65],
    "date": [-1, 2**31 - 1],
    "time": [-1, 2**62],
    "byte": [127, -128],
    "short": [2**15 - 1, -(2**15)],
    "flag": [],
    "money": [10**9 - 1, 1 - 10**9],
    "amount": [10**17 - 1, 1 - 10**17, 2**32],
    "wide": [10**38 - 1, 1 - 10**38, 2**64, -(2**63) - 1],
}
Passes = Callable[[Any], bool]
Write = Callable[[Random, pa.Table, str], None]


def values(rnd: Random, name: str) -> list[Any]:
    small: list[Any] = list(range(rnd.choice([3, 50, 100 if name == "byte" else 400])))
    if name == "flag":
        return [True, False]
    if name in ("text", "bytes"):
        texts = [rnd.choice("abz%_é\U0001f600") * rnd.choice([1, 2, 40]) + str(k) for k in small]
        small = texts if name == "text" else [t.encode() for t in texts]
    return [*(k / 4 if name in ("float", "double") else k for k in small), *rnd.sample(ODD[name], rnd.randint(0, 2))]


def column(rnd: Random, known: list[Any], n: int) -> list[Any]:
    found = [rnd.choice(known) for _ in range(n)] if rnd.random() < 0.9 else [rnd.choice(known)] * n
    if rnd.random() < 0.6:
        found.sort(key=lambda v: (v != v, v))
    nulls = rnd.choice(["none", "some", "runs", "all"])
    if nulls == "runs":
        return [None if i // 64 % 3 == 1 else v for i, v in enumerate(found)]
    share = {"none": 0.0, "some": 0.2, "all": 1.0}[nulls]
    return [None if rnd.random() < share else v for v in found]


def by_pyarrow(rnd: Random, table: pa.Table, path: str) -> None:
    pq.write_table(
        table,
        path,
        compression=rnd.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=rnd.choice([True, False]),
        dictionary_pagesize_limit=rnd.choice([10, 300, 1 << 20]),
        data_page_version=rnd.choice(["1.0", "2.0"]),
        data_page_size=rnd.choice([1, 300, 1 << 20]),
        write_batch_size=rnd.choice([1, 20, 1024]),
        row_group_size=rnd.choice([100, 1000]),
        write_page_index=rnd.choice([True, True, False]),
        bloom_filter_options={"x": {"ndv": rnd.choice([1, 300]), "fpp": 0.1}} if rnd.random() < 0.5 else None,
    )


def by_datafusion(rnd: Random, table: pa.Table, path: str) -> None:
    import datafusion

    options = datafusion.ParquetWriterOptions(
        compression=rnd.choice(["uncompressed", "snappy", "zstd(1)"]),
        dictionary_enabled=rnd.choice([True, False]),
        dictionary_page_size_limit=rnd.choice([10, 300, 1 << 20]),
        writer_version=rnd.choice(["1.0", "2.0"]),
        encoding=rnd.choice([None, "plain"]),
        data_pagesize_limit=rnd.choice([10, 300, 1 << 20]),
        data_page_row_count_limit=rnd.choice([10, 100]),
        write_batch_size=rnd.choice([1, 20, 1024]),
        column_index_truncate_length=rnd.choice([None, 1, 3, 64]),
        bloom_filter_on_write=rnd.choice([True, False]),
        allow_single_file_parallelism=False,
    )
    datafusion.SessionContext().from_arrow(table).write_parquet_with_options(path, options)


def by_duckdb(rnd: Random, table: pa.Table, path: str) -> None:
    import duckdb

    with duckdb.connect() as session:
        session.register("written", table)
        limit = rnd.choice([1, 100, 100_000])
        session.execute(f"COPY written TO '{path}' (FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT {limit})")


def by_polars(rnd: Random, table: pa.Table, path: str) -> None:
    import polars as pl

    form: dict[str, Any] = {
        "compression": rnd.choice(["uncompressed", "zstd"]),
        "data_page_size": rnd.choice([50, None]),
    }
    pl.DataFrame(table).write_parquet(path, row_group_size=rnd.choice([100, None]), **form)


def condition(rnd: Random, name: str, known: list[Any]) -> tuple[ColumnTest, Passes]:
    """Return a test of a column, and which values it lets pass."""
    if rnd.random() < 0.2:
        is_null = rnd.choice([True, False])
        return NullTest(0, is_null), lambda v: (v is None) == is_null
    if rnd.random() < 0.6:
        return of_values(rnd, name, known)
    return joined(rnd, name, known, rnd.choice([True, False]), 0)


def joined(rnd: Random, name: str, known: list[Any], with_null: bool, depth: int) -> tuple[JoinedTest, Passes]:
    parts = [
        of_values(rnd, name, known) if depth == 2 or rnd.random() < 0.7 else joined(rnd, name, known, False, depth + 1)
        for _ in range(rnd.choice([1, 1, 2, 3]))
    ]
    is_any, is_negated = rnd.choice([True, False]), rnd.choice([True, False])
    combine = any if is_any else all
    test = JoinedTest(0, tuple(test for test, _ in parts), is_any, is_negated, with_null)
    return test, lambda v: with_null if v is None else combine(passes(v) for _, passes in parts) != is_negated


def of_values(rnd: Random, name: str, known: list[Any]) -> tuple[Any, Passes]:
    """Return a test of values that null never passes."""
    some = [rnd.choice(known) for _ in range(rnd.choice([1, 1, 2, 30]))]
    kind = rnd.choice(["set", "other", "other", "bound"])
    if name in ("text", "bytes"):
        keys = [k if isinstance(k, bytes) else k.encode() for k in (*some, known[0][:1])]
        if kind == "bound":
            bound = TextBound(0, keys[0], rnd.choice([True, False]))
            return bound, lambda v: v is not None and (_bytes(v) < keys[0] or (bound.with_key and _bytes(v) == keys[0]))
        if kind == "set":
            return ValueSet(0, tuple(sorted(set(keys)))), lambda v: v is not None and _bytes(v) in keys
        parts = [key[: rnd.choice([0, 1, 2, 64, 65])] for key in keys[:3]] + [rnd.choice(keys)[-1:], b""][
            rnd.randint(0, 1) :
        ]
        pattern = re.compile(b".*".join(map(re.escape, parts)), re.DOTALL)
        passes = lambda v: v is not None and pattern.fullmatch(_bytes(v)) is not None  # noqa: E731
        return (ValuePattern(0, tuple(parts)), passes) if len(parts) > 1 else (ValueSet(0, (parts[0],)), passes)
    if name == "flag":
        low, high = rnd.choice([0, 1]), rnd.choice([0, 1])
        return ValueRange(0, low, high), lambda v: v is not None and low <= v <= high
    numbers = [v for v in some if v == v] or [1]
    if kind == "set" and name == "wide":
        kind = "range"
    if kind == "set":
        found = np.unique(np.array(numbers, np.float64 if name in ("float", "double") else np.int64) + 0)
        return ValueSet(0, found), lambda v: v in numbers
    least, most, has_nan = min(numbers), max(numbers), name in ("float", "double") and rnd.choice([True, False])
    return ValueRange(0, least, most, has_nan), lambda v: v is not None and (least <= v <= most or (v != v and has_nan))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def plain(array: pa.Array, t: pa.DataType) -> list[Any]:
    """Return values as they are stored; decimals without their point."""
    if pa.types.is_decimal(t):
        return [None if v is None else int(v.scaleb(2, Context(prec=40))) for v in array.to_pylist()]
    if pa.types.is_temporal(t):
        array = array.cast(pa.int32() if pa.types.is_date(t) else pa.int64())
    return list(array.to_pylist())


@pytest.mark.parametrize("write", [by_pyarrow, by_datafusion, by_duckdb, by_polars])
@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(rnd=st.randoms(use_true_random=True))
def test_rows_that_pass_while_they_are_decoded_pass_in_python(write: Write, rnd: Random) -> None:
    pytest.importorskip(write.__name__.removeprefix("by_"))
    name = rnd.choice(sorted(TYPES))
    t, known = TYPES[name], values(rnd, name)
    rows = column(rnd, known, rnd.choice([1, 64, 1000]))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "x.parquet"))
        write(rnd, pa.table({"x": array_of(rows, t)}), path)
        file = DataFile(path)
        try:
            stored = pq.ParquetFile(path)
            if name == "text" and rnd.random() < 0.5:
                file.encode(["x"])
            reader = GroupReader(file, [0])
            for group in range(min(stored.num_row_groups, 2)):
                check_group(rnd, name, known, reader, group, stored.read_row_group(group).column(0))
        finally:
            file.close()


def array_of(rows: list[Any], t: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal(t):
        return pa.array(rows, t)
    return pa.array([None if v is None else Decimal(v).scaleb(-2, Context(prec=40)) for v in rows], t)


def check_group(
    rnd: Random, name: str, known: list[Any], reader: GroupReader, group: int, rows: pa.ChunkedArray
) -> None:
    found = plain(rows.combine_chunks(), TYPES[name])
    for _ in range(6):
        test, passes = condition(rnd, name, known)
        flags = np.array([rnd.random() < 0.5 for _ in found])
        picks = SelectionVector.of_flags(flags) if rnd.random() < 0.5 else None
        result = reader.passing(group, 0, test, rnd.random() < 0.5, picks)
        if result is None:  # left to the evaluator
            continue
        expected = [i for i, v in enumerate(found) if passes(v) and (picks is None or flags[i])]
        assert np.flatnonzero(result[0].flags()).tolist() == expected, test
        if result[1] is not None:
            decoded = result[1].dictionary_decode() if pa.types.is_dictionary(result[1].type) else result[1]
            assert list(map(repr, plain(decoded, TYPES[name]))) == [repr(found[i]) for i in expected], test
