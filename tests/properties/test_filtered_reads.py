"""A filtered read returns the rows that a filter of all rows returns: by our evaluator, by PyArrow and by Polars."""

from __future__ import annotations

import datetime as dt
import math
import operator
import tempfile
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import Struct

from delta_core import DeltaTable
from delta_core.expressions.ast import Expression
from delta_core.kernel.scan.apply import CompiledPlan
from delta_core.kernel.snapshot import open_snapshot
from delta_core.parquet import columns, joined_files
from delta_core.schema.types import PrimitiveType, arrow_to_type
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples
from tests.properties.test_pruning import PARTITION, SCHEMA, VALUES, predicate, row

#: Files as different as those of other writers are.
form = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
        "use_deprecated_int96_timestamps": st.booleans(),
        # of lists in small pages by dictionary, PyArrow writes what it does not read
        "use_dictionary": st.sampled_from([False, [n for n in SCHEMA if n != "b"]]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([1, 1 << 20]),
        "write_batch_size": st.sampled_from([1, 1024]),
        "row_group_size": st.sampled_from([3, 1000]),
        "write_statistics": st.booleans(),
        "write_page_index": st.booleans(),
        "bloom_filter_options": st.sampled_from([None, {"l": {"ndv": 9}, "s": {"ndv": 9}}]),
    }
)
files = st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=4)
#: Rows of a file come so many times: masks of few rows are not evaluated as those of many.
TIMES = st.sampled_from([1, 1, 30])
QUIET = settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))


def build(
    place: str, rows: list[list[dict[str, Any]]], parquet: dict[str, Any], mapped: bool, dropped: int, times: int
) -> TableBuilder:
    features = ["deletionVectors", "timestampNtz"]
    inner = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    schema = {n: PrimitiveType(t) for n, t in SCHEMA.items()} | {"nested": arrow_to_type(inner)}
    table = TableBuilder(place).create(
        schema, partition_by=PARTITION, features=features, column_mapping="name" if mapped else None
    )
    for part in rows:
        nested = [{"x": r["l"], "tags": None if r["s"] is None else [r["s"]] * 2} for r in part]
        rows_of_file = [r | {"nested": n} for r, n in zip(part, nested, strict=True)]
        table.append(rows_of_file * times, statistics=False, parquet=parquet)
    hits = {path: [0] for path in table.paths()[:dropped]}
    return table.delete_rows(hits) if hits else table


@QUIET
@given(
    rows=files,
    parquet=form,
    mapped=st.booleans(),
    dropped=st.integers(0, 3),
    tests=st.lists(predicate, min_size=2, max_size=5),
    small_bytes=st.sampled_from([-1, 256 << 10]),
    times=TIMES,
)
def test_filtered_read_equals_a_filter_of_all_rows(
    rows: list[list[dict[str, Any]]],
    parquet: dict[str, Any],
    mapped: bool,
    dropped: int,
    tests: list[Expression],
    small_bytes: int,
    times: int,
) -> None:
    with pytest.MonkeyPatch.context() as sizes, tempfile.TemporaryDirectory() as place:
        sizes.setattr(joined_files, "SMALL_BYTES", small_bytes)
        sizes.setattr(joined_files, "MEDIUM_FILES", 1)
        made = build(place, rows, parquet, mapped, dropped, times)
        snapshot = open_snapshot(made.uri)
        assert_same_rows(snapshot.scan().to_table(), made.expected())
        for where in tests:
            found = snapshot.scan(predicate=where).to_table()
            count = snapshot.scan(predicate=where).count()
            with pytest.MonkeyPatch.context() as patch:  # PyArrow decodes, and the filter runs on whole batches
                patch.setattr(columns, "USES_OWN_DECODER", False)
                patch.setattr(CompiledPlan, "tests", lambda _: ())
                patch.setattr(CompiledPlan, "tested_only", lambda _: frozenset())
                expected = snapshot.scan(predicate=where).to_table()
            assert_same_rows(found, expected)
            assert count == expected.num_rows
            flat = [name for name in found.column_names if name != "nested"]
            assert_same_rows(snapshot.scan(flat, predicate=where).to_table(), expected.select(flat))
            first_ones = snapshot.scan(predicate=where, limit=3).to_table()
            assert_same_rows(first_ones, found.slice(0, 3))


class Condition(Struct):
    """A condition in three languages."""

    sql: str
    arrow: Any
    polars: Any


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TYPES = {"l": pa.int64(), "f": pa.float64(), "s": pa.string(), "d": pa.date32(), "c": pa.decimal128(12, 3)}
_TYPES["n"] = pa.timestamp("us")


def _sql(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if isinstance(value, Decimal):
        return f"CAST('{value}' AS DECIMAL(12, 3))"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value)


@st.composite
def comparison(draw: st.DrawFn) -> Condition:
    import polars as pl

    name = draw(st.sampled_from(sorted(_TYPES)))
    t, field, column = _TYPES[name], pc.field(name), pl.col(name)
    if draw(st.integers(0, 4)) == 0:
        return Condition(f"{name} IS NULL", field.is_null(), column.is_null())
    known = [v for v in VALUES[name] if not (isinstance(v, float) and math.isnan(v)) and v != -(2**63)]
    if draw(st.integers(0, 3)) == 0:
        some = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        found = Condition(f"{name} IN ({', '.join(map(_sql, some))})", None, None)
        parts = [(field == pa.scalar(v, t), column == pl.lit(v, dtype=_polars_type(t))) for v in some]
        found.arrow, found.polars = parts[0]
        for arrow, polars in parts[1:]:
            found.arrow, found.polars = found.arrow | arrow, found.polars | polars
        return found
    sign, value = draw(st.sampled_from(sorted(_COMPARE))), draw(st.sampled_from(known))
    arrow = _COMPARE[sign](field, pa.scalar(value, t))
    if pa.types.is_floating(t) and sign in (">", ">="):
        arrow |= pc.is_nan(field)  # which is above all numbers in Spark and Polars
    return Condition(
        f"{name} {sign} {_sql(value)}", arrow, _COMPARE[sign](column, pl.lit(value, dtype=_polars_type(t)))
    )


def _polars_type(t: pa.DataType) -> Any:
    import polars as pl

    return pl.Series(pa.nulls(0, t)).dtype


conditions = st.recursive(
    comparison(),
    lambda inner: st.one_of(
        st.builds(
            lambda a, b: Condition(f"({a.sql} AND {b.sql})", a.arrow & b.arrow, a.polars & b.polars), inner, inner
        ),
        st.builds(
            lambda a, b: Condition(f"({a.sql} OR {b.sql})", a.arrow | b.arrow, a.polars | b.polars), inner, inner
        ),
        st.builds(lambda a: Condition(f"(NOT {a.sql})", ~a.arrow, ~a.polars), inner),
    ),
    max_leaves=4,
)


@QUIET
@given(
    rows=files,
    parquet=form,
    dropped=st.integers(0, 3),
    small_bytes=st.sampled_from([-1, 256 << 10]),
    times=TIMES,
    data=st.data(),
)
def test_filtered_read_equals_the_filters_of_pyarrow_and_polars(
    rows: list[list[dict[str, Any]]],
    parquet: dict[str, Any],
    dropped: int,
    small_bytes: int,
    times: int,
    data: st.DataObject,
) -> None:
    pl = pytest.importorskip("polars")
    with pytest.MonkeyPatch.context() as sizes, tempfile.TemporaryDirectory() as place:
        sizes.setattr(joined_files, "SMALL_BYTES", small_bytes)
        sizes.setattr(joined_files, "MEDIUM_FILES", 1)
        table = DeltaTable(build(place, rows, parquet, False, dropped, times).uri)
        everything = table.scan().to_table()
        flat = [n for n in everything.column_names if n != "nested"]
        for test in data.draw(st.lists(conditions, min_size=3, max_size=5)):
            found = table.scan(predicate=test.sql).to_table()
            assert_same_rows(found, everything.filter(test.arrow))
            assert_same_rows(table.scan(flat, predicate=test.sql).to_table(), found.select(flat))
            frame = pl.DataFrame(everything.select(flat))
            lazy = table.to_polars().select(flat)
            for kept in (frame.filter(test.polars), lazy.filter(test.polars).collect()):
                assert kept.height == found.num_rows
                assert sorted(map(repr, kept["s"].to_list())) == sorted(map(repr, found["s"].to_pylist()))
            assert_same_rows(table.dataset().to_table(filter=test.arrow), found)
