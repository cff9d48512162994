"""Rows that selectors and tests leave come out the same, whichever reader decodes which column and in which parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.engines.records import FileRead, RowTest
from delta_core.kernels.gather import SelectionVector
from delta_core.kernels.memory import allocated_bytes
from delta_core.parquet import columns as parquet_columns, filtered_groups
from delta_core.parquet.columns import GroupReader
from delta_core.parquet.filtered_groups import FilteredGroups
from delta_core.parquet.opened_file import DataFile
from delta_core.parquet.pages import ColumnChunk, read_chunks
from delta_core.parquet.types import plan_file
from delta_core.schema.types import Field, StructType, arrow_to_type

ROWS = 1_000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS)),
        "name": pa.array([None if i % 7 == 0 else f"name {i % 5}" for i in range(ROWS)]),
        "s": pa.array([{"x": i, "name": str(i)} for i in range(ROWS)]),
        "s.x": pa.array([-i for i in range(ROWS)], pa.int32()),
        "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "list": pa.array([[i] * (i % 3) for i in range(ROWS)]),
        "none": pa.nulls(ROWS, pa.float64()),
    }
)
NUMBERS = [2, 3, 61, 64, 97]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "x.parquet"
    pq.write_table(
        TABLE,
        path,
        row_group_size=400,
        compression={"id": "snappy", "name": "brotli"},
        store_schema=False,
        data_page_size=256,
    )
    return path


def kept(path: Path, names: list[str], flags: np.ndarray, rows: int = 130) -> tuple[list[int], pa.Table, int]:
    """Read requested rows; return the rows' positions, their table, and how many batches came with rows left out."""
    return filtered(path, names, rows, selection=lambda _, first, n: SelectionVector.of_flags(flags[first : first + n]))


def filtered(
    path: Path, names: list[str], rows: int = 130, local: bool = True, **options: Any
) -> tuple[list[int], pa.Table, int]:
    positions: list[int] = []
    batches = []
    reduced = 0
    with closing(DataFile(str(path) if local else pa.OSFile(str(path)))) as file:
        schema = pa.schema([_plain(file.schema.field(n)) for n in names])
        columns = StructType([Field(f.name, arrow_to_type(f.type)) for f in schema])
        plan = plan_file(file.schema, schema, columns)
        read = FileRead([str(path)], [None], columns, "name", schema, batch_rows=rows, **options)
        reader = GroupReader(file, plan.leaves, read.most_rows is not None, is_collected=read.is_collected)
        groups = range(len(file.footer.group_rows))
        for first, batch, picked in FilteredGroups(reader, plan, read, 0).batches(groups, 0):
            assert 0 < batch.num_rows <= rows
            reduced += picked is not None
            chosen = np.arange(batch.num_rows) if picked is None else picked.indices
            assert len(chosen) == batch.num_rows
            positions += (chosen + first).tolist()
            batches.append(batch)
    return positions, pa.Table.from_batches(batches, schema), reduced


def _plain(field: pa.Field) -> pa.Field:
    """Return a field without the ids that the file returns to those within it."""
    kind = TABLE.schema.field(field.name).type if field.name in TABLE.column_names else field.type
    return pa.field(field.name, kind)


def assert_kept(path: Path, names: list[str], flags: np.ndarray, whole: pa.Table) -> None:
    """Check that the reader leaves out rows, and returns the requested ones of the whole table, by position."""
    positions, table, reduced = kept(path, names, flags)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.equals(whole.filter(pa.array(flags)))
    assert reduced > 0


@pytest.mark.parametrize("dropped", [3, 1, 400, 333])
def test_requested_rows_keep_their_positions(path: Path, dropped: int) -> None:
    flags = np.arange(ROWS) // dropped % 2 == 0
    assert_kept(path, ["id", "s.x", "none"], flags, TABLE.select(["id", "s.x", "none"]))


def test_columns_of_both_readers_keep_the_same_rows(path: Path) -> None:
    flags = np.arange(ROWS) % 3 > 0
    assert_kept(path, TABLE.column_names, flags, TABLE)


def test_a_column_that_turns_out_to_be_pyarrows_keeps_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id", "s.x", "name"]), path, row_group_size=400, store_schema=False)

    def only_longs(source: int, chunks: Mapping[int, ColumnChunk], *rest: object) -> dict[int, pa.Array]:
        longs = {leaf: chunk for leaf, chunk in chunks.items() if chunk.type == pa.int64()}
        return read_chunks(source, longs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(parquet_columns, "read_chunks", only_longs)
    flags = np.arange(ROWS) % 3 > 0
    names = ["id", "s.x", "name"]
    assert_kept(path, names, flags, TABLE.select(names))


def test_batches_that_are_smaller_than_a_word_stay_small(path: Path) -> None:
    flags = np.arange(ROWS) % 3 > 0
    positions, table, _ = kept(path, ["id"], flags, 10)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.column("id").to_pylist() == positions


def test_few_strings_hold_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [f"{i:060}" for i in range(100_000)]}), path, use_dictionary=False)
    flags = np.arange(100_000) % 10_000 == 0
    before = allocated_bytes()
    positions, table, _ = kept(path, ["x"], flags, 100_000)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.num_rows == 10
    assert allocated_bytes() - before < 1_000_000


def test_row_groups_of_which_nothing_is_requested_are_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(parquet_columns, "read_chunks", lambda *a, **k: asked.append(a) or read_chunks(*a, **k))
    flags = np.arange(ROWS) >= 800
    positions, _, _ = kept(path, ["id"], flags)
    assert positions == list(range(800, ROWS))
    assert len(asked) == 1


# --- tests of rows ---

Rows = Mapping[int, pa.Array]


def divides(column: int, number: int, seen: list[list[int]] | None = None) -> RowTest:
    """Return a test that keeps rows whose number, in a column of ids, is no multiple of another."""

    def select(
        file: int, first: int, columns: Rows, rows: int, picked: SelectionVector | None
    ) -> SelectionVector | None:
        ids = np.abs(np.array(columns[column].to_pylist(), np.int64))
        assert len(ids) == rows
        positions = np.arange(rows) if picked is None else picked.indices
        assert (ids == positions + first).all()  # rows and their positions belong together
        if seen is not None:
            seen.append(ids.tolist())
        flags = ids % number != 0
        return None if flags.all() else SelectionVector.of_flags(flags)

    return RowTest((column,), select)


STRETCHES = ("STRETCH_BYTES", "NESTED_STRETCH_BYTES", "WHOLE_BYTES")
SMALL_GROUPS: list[Callable[[pytest.MonkeyPatch], object]] = [
    lambda patch: None,
    lambda patch: patch.setattr(filtered_groups, "GROUP_BYTES", 0),
    lambda patch: patch.setattr(parquet_columns, "GROUP_BYTES", 0),
    lambda patch: patch.setattr(filtered_groups, "GROUP_BYTES", 4_000),
    lambda patch: [patch.setattr(parquet_columns, name, 900) for name in STRETCHES],
]


@pytest.mark.parametrize(
    "shrink", SMALL_GROUPS, ids=["whole", "tested in parts", "in parts", "some in parts", "in stretches"]
)
@pytest.mark.parametrize("local", [True, False])
@given(
    numbers=st.lists(st.sampled_from(NUMBERS), max_size=3),
    dropped=st.sampled_from([None, 5, 400]),
    rows=st.sampled_from([7, 64, 130, 1_000]),
    most=st.sampled_from([None, 1, 60, 250, 5_000]),
)
def test_rows_that_pass_all_tests_are_those_of_a_full_read(
    path: Path,
    shrink: Callable[[pytest.MonkeyPatch], object],
    local: bool,
    numbers: list[int],
    dropped: int | None,
    rows: int,
    most: int | None,
) -> None:
    flags = np.full(ROWS, True) if dropped is None else np.arange(ROWS) // dropped % 2 == 0
    wanted = None if dropped is None else lambda _, first, n: SelectionVector.of_flags(flags[first : first + n])
    tests = tuple(divides(k % 2 * 3, n) for k, n in enumerate(numbers))
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        options = {"selection": wanted, "tests": tests, "most_passing": most}
        positions, table, _ = filtered(path, TABLE.column_names, rows, local, **options)
    for n in numbers:
        flags = flags & (np.arange(ROWS) % n != 0)
    expected = np.flatnonzero(flags)[: most if numbers else None]
    assert positions == expected.tolist()
    assert table.equals(TABLE.take(expected).cast(table.schema))


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("coded", [True, False])
@settings(max_examples=25)
@given(data=st.data())
def test_stretches_of_a_row_group_are_those_of_a_full_read(
    tmp_path_factory: pytest.TempPathFactory, codec: str, coded: bool, data: st.DataObject
) -> None:
    flat = TABLE.select(["id", "name", "s.x", "none"])
    path = tmp_path_factory.getbasetemp() / f"flat-{codec}-{coded}.parquet"
    if not path.exists():
        pq.write_table(
            flat,
            path,
            row_group_size=400,
            compression=codec,
            use_dictionary=coded,
            store_schema=False,
            data_page_size=256,
        )
    size, number = data.draw(st.integers(1, 9_000)), data.draw(st.sampled_from(NUMBERS))
    flags = np.array(data.draw(st.lists(st.booleans(), min_size=1, max_size=200)))
    flags = np.resize(np.repeat(flags, data.draw(st.sampled_from([1, 7, 64, 150]))), ROWS)
    read: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in STRETCHES:
            patch.setattr(parquet_columns, name, size)
        patch.setattr(parquet_columns, "SMALL_GROUP_BYTES", 0)  # such groups are read together
        patch.setattr(FilteredGroups, "_stretches", _counted(FilteredGroups._stretches, read))
        positions, table, _ = filtered(
            path,
            flat.column_names,
            data.draw(st.sampled_from([7, 64, 130, 1_000])),
            selection=lambda _, first, n: SelectionVector.of_flags(flags[first : first + n]),
            tests=(divides(0, number),),
        )
    kept = flags & (np.arange(ROWS) % number != 0)
    assert positions == np.flatnonzero(kept).tolist()
    assert table.equals(flat.filter(pa.array(kept)))
    assert read or size > 500 or kept.sum() < 200


@pytest.mark.parametrize("rows", [7, 130, 1_000])
@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize("dropped", [None, 3, 60])
def test_small_groups_are_tested_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: int | None, most: int | None, rows: int
) -> None:
    path = tmp_path / "x.parquet"
    flat = TABLE.select(["id", "name", "s.x", "none"])
    pq.write_table(flat, path, row_group_size=20, store_schema=False)
    flags = np.full(ROWS, True) if dropped is None else np.arange(ROWS) // dropped % 2 == 0
    wanted = None if dropped is None else lambda _, first, n: SelectionVector.of_flags(flags[first : first + n])
    joined: list[int] = []
    monkeypatch.setattr(GroupReader, "joined", _counted(GroupReader.joined, joined))
    options = {"selection": wanted, "tests": (divides(0, 3), divides(2, 2)), "most_passing": most}
    positions, table, _ = filtered(path, flat.column_names, rows, **options)
    expected = np.flatnonzero(flags & (np.arange(ROWS) % 3 != 0) & (np.arange(ROWS) % 2 != 0))[:most]
    assert positions == expected.tolist()
    assert table.equals(flat.take(expected))
    assert bool(joined) == (rows >= 130)


@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(0, 0), (20 << 20, 16 << 10)])
def test_groups_of_many_columns_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: int, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(parquet_columns, "_SHARED_BYTES", sizes[0])
    monkeypatch.setattr(parquet_columns, "_CHUNK_BYTES", sizes[1])
    flat = TABLE.select(["id", "name", "s.x", "none"])
    wide = pa.table({f"{name} {i}": flat[name] for i in range(20) for name in flat.column_names})
    path = tmp_path / "x.parquet"
    pq.write_table(wide, path, row_group_size=300, store_schema=False)
    monkeypatch.setattr(parquet_columns, "SMALL_GROUP_BYTES", 0)
    joined: list[int] = []
    monkeypatch.setattr(GroupReader, "wide_batch", _counted(GroupReader.wide_batch, joined))
    file = DataFile(str(path))
    with closing(file):
        reader = GroupReader(file, range(wide.num_columns), lanes=lanes)
        batches = list(reader.batches(range(4), 0, ROWS))
    assert [(first, batch.num_rows) for first, batch in batches] == [(0, ROWS)]
    assert joined
    assert pa.Table.from_batches([batch for _, batch in batches]).equals(wide)


@pytest.mark.parametrize("compression", ["snappy", {"name_7": "brotli"}], ids=["own", "one of PyArrow's"])
@pytest.mark.parametrize("predicate", [None, "`id_3` % 3 = 1", "`id_3` < 700 and `id_4` > 5", "`name_0` = 'name 3'"])
@pytest.mark.parametrize("columns", [80, 75])
def test_many_columns_are_those_of_pyarrow(
    tmp_path: Path, predicate: str | None, compression: Any, columns: int
) -> None:
    flat = pa.concat_tables([TABLE.select(["id", "name", "s.x", "none"])] * 5)
    wide = pa.table({f"{name}_{i}": flat[name].combine_chunks() for i in range(20) for name in flat.column_names})
    pq.write_table(wide, tmp_path / "x.parquet", compression=compression)
    convert_to_deltalake(str(tmp_path))
    table = DeltaTable(str(tmp_path))
    names = wide.column_names[:columns]
    found = table.scan(names, predicate=predicate).to_table()
    ids, text = flat["id"].to_numpy(), flat["name"].to_pylist()
    flags = {
        None: ids >= 0,
        "`id_3` % 3 = 1": ids % 3 == 1,
        "`id_3` < 700 and `id_4` > 5": (ids < 700) & (ids > 5),
        "`name_0` = 'name 3'": np.array([value == "name 3" for value in text]),
    }
    found.validate(full=True)
    assert found.equals(wide.select(names).filter(pa.array(flags[predicate])))


@pytest.mark.parametrize("rows", [7, 130, 1_000])
@pytest.mark.parametrize("tests", [(), (divides(0, 3),)], ids=["all", "tested"])
def test_big_groups_of_many_columns_are_read_in_stretches(
    path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, tests: tuple[RowTest, ...]
) -> None:
    flat = TABLE.select(["id", "s.x", "none"])
    read: list[int] = []
    sizes = {"WIDE_LEAVES": 2, "WIDE_STRETCH_BYTES": 2_000, "GROUP_BYTES": 1_000, "WHOLE_BYTES": 1_000}
    for name, size in sizes.items():
        monkeypatch.setattr(parquet_columns, name, size)
    monkeypatch.setattr(GroupReader, "stretches", _counted(GroupReader.stretches, read))
    positions, table, _ = filtered(path, flat.column_names, rows, tests=tests)
    flags = np.arange(ROWS) % 3 != 0 if tests else np.ones(ROWS, np.bool_)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.equals(flat.filter(pa.array(flags)))
    # the last row group is small
    assert len(read) == (2 if tests else 3)


@pytest.mark.parametrize("is_collected", [True, False])
def test_rows_that_are_collected_in_the_end_are_decoded_without_stretches(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_collected: bool
) -> None:
    read: list[int] = []
    for name in STRETCHES:
        monkeypatch.setattr(parquet_columns, name, 900)
    monkeypatch.setattr(parquet_columns, "SMALL_GROUP_BYTES", 0)  # such groups are read together
    monkeypatch.setattr(GroupReader, "stretches", _counted(GroupReader.stretches, read))
    positions, table, _ = filtered(path, TABLE.column_names, 130, tests=(divides(0, 3),), is_collected=is_collected)
    flags = np.arange(ROWS) % 3 != 0
    assert positions == np.flatnonzero(flags).tolist()
    assert table.equals(TABLE.filter(pa.array(flags)).cast(table.schema))
    assert bool(read) != is_collected


def _counted(function: Callable[..., Any], calls: list[int]) -> Callable[..., Any]:
    def count(*args: Any) -> Any:
        calls.append(1)
        return function(*args)

    return count


def test_each_test_sees_only_rows_that_passed_those_before(path: Path) -> None:
    first: list[list[int]] = []
    second: list[list[int]] = []
    filtered(path, ["id", "s.x"], tests=(divides(0, 2, first), divides(1, 3, second)))
    assert list(chain.from_iterable(first)) == list(range(ROWS))
    assert list(chain.from_iterable(second)) == list(range(1, ROWS, 2))


def test_of_a_group_without_a_passing_row_other_columns_are_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    columns = GroupReader.columns
    monkeypatch.setattr(
        GroupReader,
        "columns",
        lambda self, group, leaves, picks: read.append((group, leaves)) or columns(self, group, leaves, picks),
    )
    last = RowTest(
        (0,), lambda file, first, columns, rows, picked: SelectionVector.of_flags(np.array(columns[0]) >= 900)
    )
    positions, table, _ = filtered(path, ["id", "name"], tests=(last,))
    assert positions == list(range(900, ROWS))
    assert read == [(0, [0]), (1, [0]), (2, [0]), (2, [1])]
    assert table.equals(TABLE.select(["id", "name"]).slice(900))


def test_columns_that_only_tests_need_come_as_nulls(path: Path) -> None:
    _, table, _ = filtered(path, ["id", "s.x"], tests=(divides(0, 2),), tested_only=frozenset([0]))
    assert table.column("id").null_count == table.num_rows == 500
    assert table.column("s.x").to_pylist() == [-i for i in range(1, ROWS, 2)]


def test_pages_without_a_kept_row_are_not_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(
        pa.table({"x": pa.array(range(10_000))}), path, use_dictionary=False, data_page_size=1_000, store_schema=False
    )
    damaged = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(0)
    end = chunk.data_page_offset + chunk.total_compressed_size
    damaged[end - 2_000 : end - 1_600] = b"\xff" * 400  # within the values of a late page
    path.write_bytes(damaged)
    flags = np.arange(10_000) < 1_000
    positions, table, _ = kept(path, ["x"], flags, 10_000)
    assert table.column("x").to_pylist() == positions == list(range(1_000))


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("most", [1, 399, 400, 401, 5000])
def test_no_more_than_the_first_rows_of_a_file_are_read(path: Path, most: int, local: bool) -> None:
    flags = np.arange(ROWS) % 3 != 1
    wanted = {"selection": lambda _, first, n: SelectionVector.of_flags(flags[first : first + n])}
    positions, rows, _ = filtered(path, TABLE.column_names, local=local, most_rows=most, **wanted)
    expected = np.flatnonzero(flags)[:most]
    assert positions == expected.tolist()
    assert rows.equals(TABLE.take(expected).cast(rows.schema))


def test_no_page_of_lists_behind_the_last_row_of_a_limit_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    table = pa.table({"x": [[k, k + 1] for k in range(10_000)]})
    pq.write_table(table, path, data_page_size=1_000, write_batch_size=100, use_dictionary=False)
    totals = []
    for last in (9, 9_999):
        flags = np.zeros(10_000, np.bool_)
        flags[[3, last]] = True
        file = DataFile(str(path))
        reader = GroupReader(file, [0], is_limited=True)
        rows = reader.columns(0, [0], SelectionVector.of_flags(flags))["x"]
        file.close()
        assert rows.to_pylist() == [[3, 4], [last, last + 1]]
        totals.append(reader.pages.total)
    assert totals[0] <= 2 < 50 < totals[1]


@pytest.mark.parametrize("condition", ["name like '%nowhere%'", "id >= 0 and name like '%nowhere%'"])
def test_strings_of_a_big_group_are_tested_without_being_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    names = [f"name {i}" * 20 for i in range(1_000)]
    table = pa.table({"id": range(1_000), "name": names})
    write_deltalake(str(tmp_path), table)
    monkeypatch.setattr(filtered_groups, "GROUP_BYTES", 1_000)
    scan = DeltaTable(str(tmp_path)).scan
    assert scan(predicate="id < 500 and name like '%name 77%'").to_table()["id"].to_pylist() == [77]
    monkeypatch.setattr(FilteredGroups, "_tested_stretches", None)
    assert scan(predicate=condition).to_table().num_rows == 0
    assert scan(predicate="name like 'name 77name%'").to_table()["id"].to_pylist() == [77]
