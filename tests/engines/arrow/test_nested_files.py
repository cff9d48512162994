"""Nested columns of files that are read together hold what PyArrow reads of each file."""

from __future__ import annotations

import random
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from delta_core import DeltaTable
from delta_core.errors import DataFileError
from delta_core.parquet import columns, data_files, joined_files
from delta_core.schema.types import arrow_to_type
from delta_core.testing.comparison import assert_same_rows
from delta_core.testing.table_builder import TableBuilder
from tests.example_counts import examples

_SMALL = st.integers(-9, 9)
_MONEY = st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-2))
#: Types, and values of them; no booleans: of pages without one, as PyArrow writes them, it reads too few.
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.list_(pa.int64()), st.lists(st.none() | _SMALL, max_size=4)),
    (pa.list_(pa.string()), st.lists(st.none() | st.text("ab", max_size=9), max_size=4)),
    (pa.list_(pa.list_(pa.int32())), st.lists(st.none() | st.lists(st.none() | _SMALL, max_size=3), max_size=3)),
    (
        pa.map_(pa.string(), pa.list_(pa.float64())),
        st.dictionaries(
            st.text("ab", max_size=3), st.none() | st.lists(st.none() | st.just(0.5), max_size=2), max_size=3
        ),
    ),
    (
        pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.list_(pa.int32()))])),
        st.lists(
            st.none()
            | st.fixed_dictionaries(
                {"x": st.none() | _SMALL, "y": st.none() | st.text("ab"), "z": st.none() | st.lists(_SMALL)}
            ),
            max_size=3,
        ),
    ),
    (
        pa.struct([("m", pa.decimal128(16, 2)), ("s", pa.struct([("b", pa.float32()), ("i", pa.int16())]))]),
        st.fixed_dictionaries(
            {
                "m": st.none() | _MONEY,
                "s": st.none() | st.fixed_dictionaries({"b": st.none() | st.just(0.5), "i": st.none() | _SMALL}),
            }
        ),
    ),
]
FORMS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "use_dictionary": st.booleans(),
        "row_group_size": st.sampled_from([2, 1000]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([30, 1 << 20]),
        "write_batch_size": st.sampled_from([1, 1024]),
    }
)


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, pa.DataType], list[list[dict[str, Any]]]]:
    chosen = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    names = [f"c{k}" for k in range(len(chosen))]
    row = st.fixed_dictionaries(
        {"id": st.integers(0, 5)} | {n: st.none() | values for n, (_, values) in zip(names, chosen, strict=True)}
    )
    # rows come several times: masks of few rows are not evaluated as those of many
    times = draw(st.sampled_from([1, 1, 40]))
    found = [part * times for part in draw(st.lists(st.lists(row, min_size=1, max_size=6), min_size=2, max_size=6))]
    return dict(zip(names, (t for t, _ in chosen), strict=True)), found


@pytest.fixture(scope="module")
def opened() -> Any:
    """The numbers of files that were read by themselves."""
    found: list[int] = []
    file = data_files._Job.file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            data_files._Job, "file", lambda self, index, *a, **k: found.append(index) or file(self, index, *a, **k)
        )
        yield found


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(made=files(), form=FORMS, small_bytes=st.sampled_from([-1, 256 << 10]))
def test_nested_columns_are_those_that_pyarrow_reads(
    opened: list[int],
    made: tuple[dict[str, pa.DataType], list[list[dict[str, Any]]]],
    form: dict[str, Any],
    small_bytes: int,
) -> None:
    types, rows = made
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(joined_files, "SMALL_BYTES", small_bytes)
        patch.setattr(joined_files, "MEDIUM_FILES", 1)
        builder = TableBuilder(place).create(
            {"id": arrow_to_type(pa.int64())} | {n: arrow_to_type(t) for n, t in types.items()}
        )
        for part in rows:
            builder.append(part, statistics=False, parquet=form)
        patch.setattr(joined_files, "OTHERS_BYTES", 0)
        predicates = [None, "id >= 2", "id in (1, 4)", "id % 2 = 1", "c0 is null or id + 0 = 2"]
        for scan in [{"predicate": p, "columns": c} for p in predicates for c in (None, list(types)[:1])]:
            opened.clear()
            found = DeltaTable(place).snapshot().scan(**scan).to_table()
            # of small files the first one; of others also those that are larger than it, and runs of a single one
            assert small_bytes < 0 or len(opened) <= 1
            found.validate(full=True)
            with pytest.MonkeyPatch.context() as inner:
                inner.setattr(columns, "USES_OWN_DECODER", False)
                assert_same_rows(found, DeltaTable(place).snapshot().scan(**scan).to_table())


BOOLEANS = pa.schema(
    [
        ("id", pa.int64()),
        ("l", pa.list_(pa.bool_())),
        ("s", pa.struct([("b", pa.bool_()), ("l", pa.list_(pa.struct([("b", pa.bool_()), ("i", pa.int64())])))])),
        ("m", pa.map_(pa.string(), pa.bool_())),
    ]
)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1 << 32),
    num_rows=st.sampled_from([3, 70, 2000]),
    form=FORMS,
    small_bytes=st.sampled_from([-1, 256 << 10]),
)
def test_nested_booleans_are_those_that_were_written(
    seed: int, num_rows: int, form: dict[str, Any], small_bytes: int
) -> None:
    """Compared without PyArrow, which reads too few of them where a page has none."""
    numbers = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if numbers.random() < 0.2 else value

    def boolean() -> bool | None:
        return maybe(numbers.random() < 0.5)

    def row(k: int) -> dict[str, Any]:
        structs = [maybe({"b": boolean(), "i": maybe(k)}) for _ in range(numbers.randrange(3))]
        return {
            "id": k,
            "l": maybe([boolean() for _ in range(numbers.randrange(4))]),
            "s": maybe({"b": boolean(), "l": maybe(structs)}),
            "m": maybe({f"k{n}": boolean() for n in range(numbers.randrange(3))}),
        }

    parts = [[row(k) for k in range(start, start + num_rows)] for start in range(0, 4 * num_rows, num_rows)]
    wanted = [r | {"m": None if r["m"] is None else list(r["m"].items())} for part in parts for r in part]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(joined_files, "SMALL_BYTES", small_bytes)
        patch.setattr(joined_files, "MEDIUM_FILES", 1)
        builder = TableBuilder(place).create({f.name: arrow_to_type(f.type) for f in BOOLEANS})
        for part in parts:
            builder.append(part, statistics=False, parquet=form)
        scan = DeltaTable(place).scan
        assert scan().to_table().sort_by("id").to_pylist() == wanted
        some = scan(predicate="id % 3 = 1").to_table().sort_by("id")
        assert some.to_pylist() == [r for r in wanted if r["id"] % 3 == 1]
        nulls = scan(predicate="l IS NULL", columns=["id", "m"]).to_table().sort_by("id")
        assert nulls.to_pylist() == [{"id": r["id"], "m": r["m"]} for r in wanted if r["l"] is None]


ROWS = [
    {"id": k, "l": [{"x": k, "y": f"text {k}"}] * (k % 4) if k % 5 else None, "m": [(f"k{k}", k)]} for k in range(60)
]
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("l", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32), form=FORMS)
def test_damaged_nested_columns_are_those_of_the_file_read_by_itself(seed: int, form: dict[str, Any]) -> None:
    numbers = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(joined_files, "SMALL_BYTES", -1)
        builder = TableBuilder(place).create({f.name: arrow_to_type(f.type) for f in NESTED})
        for _ in range(4):
            builder.append(ROWS, statistics=False, parquet=form)
        path = Path(place) / builder.paths()[2]
        data = bytearray(path.read_bytes())
        for _ in range(numbers.randint(1, 3)):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        path.write_bytes(bytes(data))

        def read() -> pa.Table | None:
            try:
                return DeltaTable(place).snapshot().scan(predicate="id >= 3").to_table()
            except DataFileError:
                return None

        found = read()
        patch.setattr(joined_files, "MEDIUM_FILES", 1000)
        expected = read()
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert found.equals(expected)  # strings may be no UTF-8
