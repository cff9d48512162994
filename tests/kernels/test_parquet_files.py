"""Small files that are read together hold what PyArrow reads of them; a different or damaged file ends the run."""

from __future__ import annotations

import io
import math
import os
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.engines.conditions import ColumnTest, NullTest, ValuePattern, ValueRange, ValueSet
from delta_core.errors import InvalidArgumentError
from delta_core.kernels._kept_memory import used_bytes
from delta_core.parquet.many_files import FileLayout, FlatColumn, PickedRows, footer_key, read_files
from delta_core.parquet.pages import compiled_test

SCHEMA = pa.schema(
    [
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64(), False),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("s", pa.string()),
        pa.field("b", pa.binary()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("flag", pa.bool_()),
        pa.field("small", pa.int8()),
        pa.field("money", pa.decimal128(9, 2)),
        pa.field("amount", pa.decimal128(30, 2)),
    ]
)

PHYSICAL = ["INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "BYTE_ARRAY", "INT64", "INT32"]
PHYSICAL += ["BOOLEAN", "INT32", "FIXED_LEN_BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]
STORED = [0] * 8 + [1, 4, -4, -13]
COLUMNS = tuple(
    FlatColumn(k, p, f.type, int(f.nullable), s)
    for k, (p, f, s) in enumerate(zip(PHYSICAL, SCHEMA, STORED, strict=True))
)
ROW = st.tuples(
    st.none() | st.integers(-9, 9),
    st.integers(-(2**62), 2**62),
    st.none() | st.floats(width=32),
    st.none() | st.floats(),
    st.none() | st.text(max_size=5),
    st.none() | st.binary(max_size=5),
    st.none() | st.integers(0, 2**50),
    st.none() | st.integers(0, 9),
)
FORMS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip"]),
        "use_dictionary": st.booleans(),
        "row_group_size": st.sampled_from([1, 3, 50]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([16, 1 << 20]),
        "write_statistics": st.booleans(),
        "write_page_index": st.booleans(),
    }
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * 8
    firsts = columns[0]
    columns.append([None if v is None else v % 2 > 0 for v in firsts])
    columns.append(firsts)
    columns += [[None if v is None else Decimal(v * n) for v in firsts] for n in (10**5, 10**20)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def written(table: pa.Table, **form: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **{"store_schema": False, **form})
    return out.getvalue()


def key_of(data: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(data[-8:-4], "little")
    found = footer_key(data[len(data) - 8 - length : len(data) - 8])
    assert found is not None
    return found


def read(
    folder: Path,
    files: list[bytes],
    most_rows: int = 1 << 20,
    layout: FileLayout | None = None,
    whole_bytes: int = 1 << 20,
    picked: PickedRows | None = None,
) -> tuple[list[int], pa.Table]:
    paths = []
    for number, data in enumerate(files):
        path = folder / f"{number}.parquet"
        path.write_bytes(data)
        paths.append(os.fsencode(path))
    layout = FileLayout(*key_of(files[0]), COLUMNS) if layout is None else layout
    found = read_files([layout], paths, np.array([len(f) for f in files]), most_rows, 1 << 30, whole_bytes, picked)
    for column in found.columns[0]:
        column.validate(full=True)
    return found.rows.tolist(), pa.table(found.columns[0], schema=SCHEMA)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


FILES = st.lists(st.tuples(st.lists(ROW, max_size=20), FORMS), min_size=1, max_size=5)


@given(files=FILES, whole_bytes=st.sampled_from([-1, 1 << 20]))
def test_files_come_behind_one_another(
    folder: Path, files: list[tuple[list[tuple[Any, ...]], dict[str, Any]]], whole_bytes: int
) -> None:
    tables = [table_of(rows) for rows, _ in files]
    stored = [written(t, **form) for t, (_, form) in zip(tables, files, strict=True)]
    rows, found = read(folder, stored, whole_bytes=whole_bytes)
    assert rows == [t.num_rows for t in tables]
    # NaN equals nothing: its text does
    assert [str(r) for r in found.to_pylist()] == [str(r) for r in pa.concat_tables(tables).to_pylist()]


#: Tests of a column's values, with what they are in Python.
TESTS: dict[int, list[tuple[ColumnTest, Callable[[Any], bool]]]] = {
    0: [
        (ValueRange(0, -3, 4), lambda v: v is not None and -3 <= v <= 4),
        (NullTest(0, True), lambda v: v is None),
        (ValueSet(0, np.array([-1, 2, 7], np.int64)), lambda v: v in (-1, 2, 7)),
    ],
    1: [(ValueRange(1, 0, 2**62), lambda v: v >= 0)],
    3: [
        (ValueRange(3, -1.5, math.inf, True), lambda v: v is not None and (math.isnan(v) or v >= -1.5)),
        (NullTest(3, False), lambda v: v is not None),
    ],
    4: [
        (ValueSet(4, (b"", b"0", b"a")), lambda v: v in ("", "0", "a")),
        (ValuePattern(4, (b"0", b"")), lambda v: v is not None and v.startswith("0")),
    ],
}


#: Rows come so many times: masks of few rows are not evaluated as those of many.
TIMES = st.sampled_from([1, 50])


@given(files=FILES, times=TIMES, whole_bytes=st.sampled_from([-1, 1 << 20]), data=st.data())
def test_rows_that_pass_are_those_of_a_filter(
    folder: Path,
    files: list[tuple[list[tuple[Any, ...]], dict[str, Any]]],
    times: int,
    whole_bytes: int,
    data: st.DataObject,
) -> None:
    tables = [table_of(rows * times) for rows, _ in files]
    stored = [written(t, **form) for t, (_, form) in zip(tables, files, strict=True)]
    chosen = {
        column: data.draw(st.sampled_from(TESTS[column]))
        for column in data.draw(st.lists(st.sampled_from(sorted(TESTS)), min_size=1, max_size=3, unique=True))
    }
    tests = []
    for column, (values, _) in chosen.items():
        compiled = compiled_test(values, COLUMNS[column].type)
        assert compiled is not None
        tests.append((COLUMNS[column], compiled))
    layout = FileLayout(*key_of(stored[0]), COLUMNS, tuple(tests))
    rows, found = read(folder, stored, layout=layout, whole_bytes=whole_bytes)
    passing = [
        [row for row in t.to_pylist() if all(keeps(row[SCHEMA.names[c]]) for c, (_, keeps) in chosen.items())]
        for t in tables
    ]
    assert rows == [len(some) for some in passing]
    assert [str(r) for r in found.to_pylist()] == [str(r) for some in passing for r in some]


def selected(file_rows: list[int], flags: list[bool]) -> PickedRows:
    mask = np.zeros((len(flags) + 63) // 64 or 1, np.uint64)
    for row in np.flatnonzero(flags).tolist():
        mask[row // 64] |= np.uint64(1 << row % 64)
    return PickedRows(mask, np.array(file_rows, np.int64))


@given(
    files=FILES,
    times=TIMES,
    whole_bytes=st.sampled_from([-1, 1 << 20]),
    share=st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]),
    seed=st.integers(0, 1 << 32),
    is_tested=st.booleans(),
)
def test_picked_rows_are_those_of_a_mask(
    folder: Path,
    files: list[tuple[list[tuple[Any, ...]], dict[str, Any]]],
    times: int,
    whole_bytes: int,
    share: float,
    seed: int,
    is_tested: bool,
) -> None:
    tables = [table_of(rows * times) for rows, _ in files]
    stored = [written(t, **form) for t, (_, form) in zip(tables, files, strict=True)]
    numbers = random.Random(seed)
    flags = [[numbers.random() < share for _ in range(t.num_rows)] for t in tables]
    values, keeps = TESTS[0][0]
    compiled = compiled_test(values, COLUMNS[0].type)
    assert compiled is not None
    layout = FileLayout(*key_of(stored[0]), COLUMNS, ((COLUMNS[0], compiled),) if is_tested else ())
    picked = selected([t.num_rows for t in tables], [flag for own in flags for flag in own])
    rows, found = read(folder, stored, layout=layout, whole_bytes=whole_bytes, picked=picked)
    expected = [
        [row for row, flag in zip(t.to_pylist(), own, strict=True) if flag and (not is_tested or keeps(row["i"]))]
        for t, own in zip(tables, flags, strict=True)
    ]
    assert rows == [len(some) for some in expected]
    assert [str(r) for r in found.to_pylist()] == [str(r) for some in expected for r in some]


def test_file_of_other_rows_than_picked_ends_the_run(folder: Path) -> None:
    files = [written(table_of([(k, k, None, None, "a", None, None, None)] * 3)) for k in range(3)]
    assert read(folder, files, picked=selected([3, 3, 3], [True] * 9))[0] == [3, 3, 3]
    assert read(folder, files, picked=selected([3, 2, 3], [True] * 9))[0] == [3]
    assert read(folder, files, picked=selected([3, 4, 3], [True] * 9))[0] == [3]
    # more rows than the mask has bits
    assert read(folder, files, picked=selected([3, 70, 3], [True] * 9))[0] == [3]
    assert read(folder, files, picked=selected([3, -1, 3], [True] * 9))[0] == [3]
    # a file without a picked row is opened too, unless it was read before
    none = selected([3, 2, 3], [True] * 3 + [False] * 2 + [True] * 3)
    assert read(folder, files, picked=none)[0] == [3]
    assert read(folder, files, picked=PickedRows(none.mask, none.file_rows, is_known=True))[0] == [3, 0, 3]
    with pytest.raises(ValueError, match="rows of each file"):
        read(folder, files, picked=selected([3, 3], [True] * 9))


@given(seed=st.integers(0, 1 << 32), form=FORMS, whole_bytes=st.sampled_from([-1, 1 << 20]), is_tested=st.booleans())
def test_damage_ends_the_run_or_is_bytes_that_are_valid(
    folder: Path, seed: int, form: dict[str, Any], whole_bytes: int, is_tested: bool
) -> None:
    good = written(GOOD, **form)
    numbers = random.Random(seed)
    damaged = bytearray(good)
    for _ in range(numbers.randint(1, 4)):
        damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
    compiled = compiled_test(TESTS[0][0][0], COLUMNS[0].type)
    assert compiled is not None
    layout = FileLayout(*key_of(good), COLUMNS, ((COLUMNS[0], compiled),) if is_tested else ())
    rows, found = read(folder, [good, bytes(damaged), good], layout=layout, whole_bytes=whole_bytes)
    kept = 5 if is_tested else 50
    assert rows[0] == kept
    assert len(rows) in (1, 3)
    assert found.num_rows == sum(rows)
    assert found.slice(0, kept).equals(GOOD.slice(0, kept))


def test_test_of_another_form_is_rejected(folder: Path) -> None:
    compiled = compiled_test(ValueRange(0, 1, 2), pa.int32())
    assert compiled is not None
    with pytest.raises(InvalidArgumentError, match="in the form"):
        read(folder, [written(GOOD)], layout=FileLayout(*key_of(written(GOOD)), COLUMNS, ((COLUMNS[4], compiled),)))


def test_run_ends_with_the_file_that_reaches_the_rows(folder: Path) -> None:
    data = written(table_of([(1, 2, 3.0, 4.0, "5", b"6", 7, 8)] * 10))
    assert read(folder, [data] * 5, 25)[0] == [10, 10, 10]
    assert read(folder, [data] * 5, 30)[0] == [10, 10, 10]


GOOD = table_of([(i, i, float(i), None, f"name {i}", b"x" * i, i, None) for i in range(50)])


@pytest.mark.parametrize(
    "other",
    [
        written(GOOD, compression="lz4"),
        written(GOOD.drop_columns(["day"])),
        written(GOOD.set_column(0, pa.field("i", pa.int64()), GOOD.column("i").cast("int64"))),
        written(GOOD.rename_columns(["j", *SCHEMA.names[1:]])),
        written(GOOD, store_schema=True),
        b"",
        b"PAR1",
        b"PAR1PAR1PAR1",
    ],
    ids=["codec", "columns", "type", "name", "metadata", "empty", "magic", "no footer"],
)
def test_file_that_differs_ends_the_run(folder: Path, other: bytes) -> None:
    good = written(GOOD)
    rows, found = read(folder, [good, good, other, good])
    assert rows == [50, 50]
    assert found.equals(pa.concat_tables([GOOD, GOOD]).combine_chunks())


def test_file_that_is_missing_or_of_another_size_ends_the_run(folder: Path) -> None:
    good = written(GOOD)
    read(folder, [good] * 3)
    layout = FileLayout(*key_of(good), COLUMNS)
    paths = [os.fsencode(folder / name) for name in ("0.parquet", "missing.parquet", "1.parquet")]
    assert read_files([layout], paths, np.full(3, len(good)), 1000, 1 << 30, 1 << 20).rows.tolist() == [50]
    assert read_files([layout], paths[2:], np.array([len(good) - 1]), 1000, 1 << 30, 1 << 20).rows.tolist() == []


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(ROW, max_size=8)), min_size=1, max_size=9))
def test_files_of_several_layouts_are_each_behind_those_of_their_own(
    folder: Path, files: list[tuple[int, list[tuple[Any, ...]]]]
) -> None:
    names = (SCHEMA.names, [n.upper() for n in SCHEMA.names], [f"{n}2" for n in SCHEMA.names])
    stored = [written(table_of(rows).rename_columns(names[kind])) for kind, rows in files]
    layouts = [FileLayout(*key_of(written(table_of([]).rename_columns(n))), COLUMNS) for n in names[:2]]
    paths = [folder / f"{number}.several" for number in range(len(files))]
    for path, data in zip(paths, stored, strict=True):
        path.write_bytes(data)
    sizes = np.array([len(f) for f in stored])
    found = read_files(layouts, [os.fsencode(p) for p in paths], sizes, 1 << 20, 1 << 30, 1 << 20)
    taken = [*(kind for kind, _ in files), 2].index(2)
    assert found.layouts.tolist() == [kind for kind, _ in files[:taken]]
    assert found.rows.tolist() == [len(rows) for _, rows in files[:taken]]
    for number, columns in enumerate(found.columns):
        expected = table_of([row for kind, rows in files[:taken] if kind == number for row in rows])
        own = pa.table(columns, schema=SCHEMA)
        own.validate(full=True)
        assert [str(r) for r in own.to_pylist()] == [str(r) for r in expected.to_pylist()]


@settings(max_examples=300)
@given(data=st.data(), form=FORMS)
def test_damaged_file_is_left_out_or_read_without_harm(folder: Path, data: st.DataObject, form: dict[str, Any]) -> None:
    good = written(GOOD, **form)
    damaged = bytearray(good)
    for _ in range(data.draw(st.integers(1, 4))):
        # mostly within the footer, if lengths and offsets are
        at = len(damaged) - 1 - data.draw(st.integers(0, min(len(damaged) - 1, 1500)))
        damaged[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3))
    end = len(damaged) - data.draw(st.integers(1, len(damaged))) if cut == 0 else len(damaged)
    layout = FileLayout(*key_of(good), COLUMNS)
    rows, found = read(folder, [good, bytes(damaged[:end])], layout=layout)
    assert rows[0] == 50
    assert found.slice(0, 50).equals(GOOD)


@pytest.mark.parametrize("is_tested", [False, True])
@pytest.mark.parametrize("counts", [(40_000, 1, 0, 90_000, 20_000), (1, 70_000), (70_000, 1, 2, 3, 4)], ids=str)
def test_columns_of_many_rows_lie_in_memory_that_is_kept(
    folder: Path, counts: tuple[int, ...], is_tested: bool
) -> None:
    firsts = [sum(counts[:k]) for k in range(len(counts))]
    tables = [many_rows(first, n) for first, n in zip(firsts, counts, strict=True)]
    compiled = compiled_test(ValueRange(1, 30, 75_000), COLUMNS[1].type)
    assert compiled is not None
    stored = [written(t, data_page_size=100_000) for t in tables]
    layout = FileLayout(*key_of(stored[0]), COLUMNS, ((COLUMNS[1], compiled),) if is_tested else ())
    whole = pa.concat_tables(tables)
    expected = whole.filter((pc.field("l") >= 30) & (pc.field("l") <= 75_000)) if is_tested else whole
    before = used_bytes()
    for _ in range(2):
        rows, found = read(folder, stored, layout=layout)
        assert len(rows) == len(counts)
        assert found.equals(expected.combine_chunks())
        assert used_bytes() > before
        del found
        assert used_bytes() == before


def many_rows(first: int, n: int) -> pa.Table:
    numbers = np.arange(first, first + n)
    few = pa.array(numbers % 100)
    late = pa.array(numbers, mask=numbers < 50_000)
    texts = pc.binary_join_element_wise("text", late.cast("string"), " ")
    money, amount = (pc.cast(c, pa.decimal128(25, 0)).cast(pa.decimal128(30, 2)) for c in (few, late))
    columns = [few, numbers, late, late, texts, texts, late, few.cast("int32"), pc.equal(few, 3), few, money, amount]
    return pa.table([pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def test_few_rows_of_many_hold_little_memory(folder: Path) -> None:
    table = many_rows(0, 60_000)
    compiled = compiled_test(ValueRange(1, 50_010, 50_020), COLUMNS[1].type)
    assert compiled is not None
    stored = [written(table)] * 3
    layout = FileLayout(*key_of(stored[0]), COLUMNS, ((COLUMNS[1], compiled),))
    before = used_bytes()
    rows, found = read(folder, stored, layout=layout)
    assert rows == [11, 11, 11]
    assert found.equals(pa.concat_tables([table.slice(50_010, 11)] * 3).combine_chunks())
    assert used_bytes() == before


def test_files_of_further_encodings_are_read_with_the_others(folder: Path) -> None:
    encodings = {
        "i": "DELTA_BINARY_PACKED",
        "l": "DELTA_BINARY_PACKED",
        "f": "BYTE_STREAM_SPLIT",
        "s": "DELTA_BYTE_ARRAY",
        "b": "DELTA_LENGTH_BYTE_ARRAY",
        "small": "DELTA_BINARY_PACKED",
        "money": "BYTE_STREAM_SPLIT",
        "amount": "DELTA_BYTE_ARRAY",
    }
    other = written(GOOD, column_encoding=encodings, use_dictionary=False)
    rows, found = read(folder, [written(GOOD), other])
    assert rows == [50, 50]
    assert found.equals(pa.concat_tables([GOOD, GOOD]))
