"""Predicates that may raise: the same rows, or an error, whatever files, partitions and row groups are left out."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, WriterProperties, write_deltalake
from delta_core.errors import ExpressionError
from tests.example_counts import examples

SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("d", pa.decimal128(20, 1)), ("s", pa.string()), ("p", pa.string()), ("n", pa.int64()),
        ("t", pa.string()), ("l", pa.list_(pa.int64())), ("f", pa.float64()), ("i", pa.int32()),
    ]
)  # fmt: skip
#: Each raises for some of the values below.
RAISING = [
    "cast(d as decimal(9, 1)) = 0", "cast(d as decimal(9, 1)) > 1", "cast(d as int) IN (0, 5)", "cast(s as int) = 1",
    "cast(p as int) = 1", "cast(p as int) IS NULL", "100 / n = 10", "100 % n = 0", "100 div n > 1", "id / n > 1",
    "cast(id as int) = 3", "cast(id as int) < 3", "cast(id as int) <> 3", "id + 9223372036854775000 > 0", "-id > 5",
    "i * 2000000000 > 0", "to_date(t, 'yyyy-MM-dd') > DATE '2024-01-01'", "cast(t as date) = DATE '2024-01-02'",
    "t > DATE '2024-01-01'", "element_at(l, 2) = 2", "l[0] = 1", "cast(f as int) = 1", "cast(f as long) < 3",
    "cast(d as decimal(9, 1)) = NULL", "cast(s as int) IN (NULL)", "cast(p as int) = id", "cast(s as int) = n",
    "cast(d as decimal(9, 1)) <=> 0", "NOT (cast(d as decimal(9, 1)) = 5)", "cast(d as decimal(9,1)) BETWEEN 0 AND 1",
    "cast(cast(id as int) as string) LIKE '1%'", "year(cast(t as date)) = 2024",
]  # fmt: skip
TOTAL = [
    "id = 3", "id > 2", "id < 0", "p = '1'", "p <> 'x'", "p IS NULL", "n <> 0", "n > 0", "d < 100", "s LIKE '1%'",
    "s IS NULL", "t LIKE '2024%'", "f < 5", "cast(i as long) = 3", "size(l) > 1", "year(DATE '2024-01-01') = 2024",
    "cast(n as double) > 1", "cast(id as string) = '3'", "true", "p IN ('1', '2')",
]  # fmt: skip
ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from([0, 1, 3, 5, 1 << 40, (1 << 63) - 1]),
        "d": st.none() | st.sampled_from(list(map(Decimal, ("0", "5", "10", "1e15", "-1e15")))),
        "s": st.none() | st.sampled_from(["1", "2", "x", ""]),
        "p": st.none() | st.sampled_from(["1", "2", "x"]),
        "n": st.none() | st.sampled_from([0, 1, 10, 99999]),
        "t": st.none() | st.sampled_from(["2024-01-02", "2023-01-01", "soon"]),
        "l": st.none() | st.lists(st.integers(0, 3), max_size=3),
        "f": st.none() | st.sampled_from([0.0, 1.0, 1e300, float("nan")]),
        "i": st.none() | st.sampled_from([0, 1, 3]),
    }
)
PARTS = st.sampled_from(RAISING) | st.sampled_from(TOTAL)
NESTED = st.recursive(
    PARTS,
    lambda part: st.one_of(
        st.tuples(part, part).map(lambda p: f"({p[0]} AND {p[1]})"),
        st.tuples(part, part).map(lambda p: f"({p[0]} OR {p[1]})"),
        part.map(lambda p: f"NOT ({p})"),
    ),
    max_leaves=4,
)


def _outcome(table: DeltaTable, predicate: str) -> list[Any] | None:
    """Return the numbers of the rows that are found; None for an error of a value."""
    try:
        return sorted(table.scan(["row"], predicate=predicate).to_table().column("row").to_pylist())
    except ExpressionError as e:
        if not e.condition:  # not a value's
            raise
        return None


def _written(folder: Path, rows: list[dict[str, Any]], **options: Any) -> DeltaTable:
    """Return a table of these rows, divided into files of these sizes."""
    sizes = options.pop("sizes")
    data = pa.Table.from_pylist(rows, SCHEMA).append_column("row", pa.array(range(len(rows)), pa.int64()))
    start = 0
    for size in sizes:
        write_deltalake(str(folder), data.slice(start, size), mode="append", **options)
        start += size
    return DeltaTable(str(folder))


@settings(max_examples=examples(8))
@given(st.lists(ROWS, min_size=4, max_size=10), st.lists(NESTED, min_size=1, max_size=3), st.integers(1, 4))
def test_predicates_raise_alike_whatever_is_pruned(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], parts: list[str], size: int
) -> None:
    folder = tmp_path_factory.mktemp("t")
    without = {"delta.dataSkippingNumIndexedCols": "0"}
    whole = _written(folder / "whole", rows, sizes=[len(rows)], configuration=without)
    sizes = [size] * -(-len(rows) // size)
    small = WriterProperties(max_row_group_size=2)
    others = [
        _written(folder / "files", rows, sizes=sizes),
        _written(folder / "groups", rows, sizes=[len(rows)], writer_properties=small),
        _written(folder / "partitions", rows, sizes=sizes, partition_by=["p"]),
    ]
    for order in itertools.islice(itertools.permutations(parts), 3):
        predicate = " AND ".join(f"({p})" for p in order)
        expected = _outcome(whole, predicate)
        for table in others:
            assert _outcome(table, predicate) == expected, (predicate, table)


@pytest.fixture
def parted(tmp_path: Path) -> DeltaTable:
    """Return a table whose first file has values that do not cast, and whose statistics exclude other values."""
    values = [("5", "1", "a"), ("1e15", "x", "a"), ("5", "1", "7"), ("0", "2", "7")]
    rows = pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "d": pa.array([Decimal(d) for d, _, _ in values], pa.decimal128(20, 1)),
            "s": [s for _, s, _ in values],
            "p": [p for _, _, p in values],
        }
    )
    for start in (0, 2):
        write_deltalake(str(tmp_path / "t"), rows.slice(start, 2), mode="append", partition_by=["p"])
    return DeltaTable(str(tmp_path / "t"))


@pytest.mark.parametrize(
    "predicate",
    [
        "cast(d as decimal(9, 1)) = 0",
        "cast(d as decimal(9, 1)) = NULL",
        "cast(p as int) = 8 AND id < 100",
        "id = 0 AND cast(p as int) = 7",
        "cast(s as int) = 2",
        "10 / (id - 1) > 100",
        "(cast(p as int) = 8 AND id = 3) OR id = 99",
    ],
)
def test_what_raises_for_a_row_raises_although_statistics_exclude_its_file(parted: DeltaTable, predicate: str) -> None:
    with pytest.raises(ExpressionError) as e:
        parted.scan(predicate=predicate).to_table()
    assert e.value.condition


@pytest.mark.parametrize(
    "other", ["id = 3", "id > 2 AND p IS NOT NULL", "p = '7' AND id = 3", "d = 0 AND p <> 'a'", "s LIKE '2%'"]
)
@pytest.mark.parametrize("raising", ["cast(d as decimal(9, 1)) = 0", "cast(p as int) = 7", "cast(s as int) = 2"])
def test_rows_that_another_conjunct_excludes_do_not_raise_in_either_order(
    parted: DeltaTable, other: str, raising: str
) -> None:
    for predicate in (f"{other} AND {raising}", f"{raising} AND {other}"):
        found = parted.scan(["id"], predicate=predicate)
        assert found.to_table().column("id").to_pylist() == [3]
        assert found.count() == 1


def test_casts_that_fit_all_values_of_a_file_still_exclude_it(parted: DeltaTable) -> None:
    assert parted.scan(predicate="cast(id as int) = 3").file_set.count == 1
    assert parted.scan(predicate="cast(id as decimal(5, 1)) > 1.5").file_set.count == 1
    assert parted.scan(predicate="p = '7' AND cast(s as int) = 2").file_set.count == 1
    assert parted.scan(predicate="id < 100 AND cast(p as int) = 7").file_set.count == 2
