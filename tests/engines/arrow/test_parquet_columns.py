"""Row groups come out the same whichever reader takes which column."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.arrow import parquet_columns
from delta_core.engines.arrow.parquet_columns import GroupReader
from delta_core.kernels.gather import Picks, gather
from delta_core.kernels.parquet_pages import ColumnChunk, UnsupportedPagesError, read_chunk

ROWS = 1_000
TABLE = pa.table({
    "id": pa.array(range(ROWS)),
    "name": pa.array([None if i % 7 == 0 else f"name {i % 5}" for i in range(ROWS)]),
    "s": pa.array([{"x": i, "name": str(i)} for i in range(ROWS)]),
    "s.x": pa.array([-i for i in range(ROWS)], pa.int32()),
    "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
    "list": pa.array([[i] * (i % 3) for i in range(ROWS)]),
    "none": pa.nulls(ROWS, pa.float64()),
})  # fmt: skip


def read(path: Path, leaves: list[int], dictionary: list[str] | None = None, rows: int = 300) -> pa.Table:
    with pq.ParquetFile(path, read_dictionary=dictionary, pre_buffer=False) as file:
        groups = list(range(file.metadata.num_row_groups))
        found = list(GroupReader(file, str(path), leaves).batches(groups, 0, rows))
    assert [first for first, *_ in found] == list(accumulate([b.num_rows for _, b, _ in found], initial=0))[:-1]
    assert all(picked is None for *_, picked in found)
    return pa.Table.from_batches([batch for _, batch, _ in found])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=400, compression={"id": "snappy", "name": "zstd"}, store_schema=False)
    return path


def test_columns_of_both_readers_stand_in_the_order_of_the_file(path: Path) -> None:
    leaves = list(range(pq.read_metadata(path).num_columns))
    assert read(path, leaves).equals(TABLE)


def test_a_name_with_a_dot_is_not_taken_for_a_field(path: Path) -> None:
    found = read(path, [2, 4])
    assert found.column_names == ["s", "s.x"]
    assert found.column("s.x").equals(TABLE.column("s.x"))
    assert found.column("s").combine_chunks().field("x").to_pylist() == list(range(ROWS))


def test_big_row_groups_are_streamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = []
    monkeypatch.setattr(parquet_columns, "read_chunk", lambda *a, **k: whole.append(a) or read_chunk(*a, **k))
    assert read(path, [0]).equals(TABLE.select(["id"]))
    assert len(whole) == 3
    monkeypatch.setattr(parquet_columns, "GROUP_BYTES", 5_000)
    assert read(path, [0]).equals(TABLE.select(["id"]))
    assert len(whole) == 3 + 1  # the last row group is small


def test_strings_are_kept_encoded(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["name"]), path, store_schema=False)
    found = read(path, [0], ["name"])
    assert found.schema.field("name").type == pa.dictionary(pa.int32(), pa.string())
    assert found.column("name").cast(pa.string()).equals(TABLE.column("name"))


def test_damaged_column_raises_what_pyarrow_says(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id"]), path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    damaged = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset
    damaged[start + 40 : start + 200] = b"\xff" * 160
    path.write_bytes(damaged)
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)snappy|page|thrift"):
        read(path, [0])


def kept(path: Path, leaves: list[int], flags: np.ndarray, rows: int = 130) -> tuple[list[int], pa.Table, int]:
    """Read wanted rows; return the rows' positions, their table, and how many batches came with rows left out."""
    positions: list[int] = []
    batches = []
    with pq.ParquetFile(path, pre_buffer=False) as file:
        groups = list(range(file.metadata.num_row_groups))
        wanted = lambda first, n: Picks.of_flags(flags[first : first + n])  # noqa: E731
        reduced = 0
        for first, batch, picked in GroupReader(file, str(path), leaves).batches(groups, 0, rows, wanted):
            reduced += picked is not None
            rest = Picks.of_flags(flags[first : first + batch.num_rows]) if picked is None else picked
            positions += (rest.indices + first).tolist()
            batches.append(gather(batch, rest) if picked is None else batch)
        return positions, pa.Table.from_batches(batches), reduced


def assert_kept(path: Path, leaves: list[int], flags: np.ndarray, whole: pa.Table) -> None:
    """Check that the reader leaves out rows, and gives those of the whole table that are wanted, at their positions."""
    positions, table, reduced = kept(path, leaves, flags)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.equals(whole.filter(pa.array(flags)))
    assert reduced > 0


@pytest.mark.parametrize("dropped", [3, 1, 400, 333])
def test_wanted_rows_keep_their_positions(path: Path, dropped: int) -> None:
    flags = np.arange(ROWS) // dropped % 2 == 0
    assert_kept(path, [0, 4, 7], flags, TABLE.select(["id", "s.x", "none"]))


def test_columns_of_both_readers_keep_the_same_rows(path: Path) -> None:
    flags = np.arange(ROWS) % 3 > 0
    assert_kept(path, list(range(pq.read_metadata(path).num_columns)), flags, TABLE)


def test_a_column_that_turns_out_to_be_pyarrows_keeps_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id", "s.x", "name"]), path, row_group_size=400, store_schema=False)

    def only_longs(source: int, chunk: ColumnChunk, *rest: object) -> pa.Array:
        if chunk.type != pa.int64():
            raise UnsupportedPagesError("not this one")
        return read_chunk(source, chunk, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(parquet_columns, "read_chunk", only_longs)
    flags = np.arange(ROWS) % 3 > 0
    assert_kept(path, [0, 1, 2], flags, TABLE.select(["id", "s.x", "name"]))


def test_batches_that_are_smaller_than_a_word_stay_small(path: Path) -> None:
    flags = np.arange(ROWS) % 3 > 0
    with pq.ParquetFile(path) as file:
        reader = GroupReader(file, str(path), [0])
        found = list(reader.batches([0, 1, 2], 0, 10, lambda first, n: Picks.of_flags(flags[first : first + n])))
    assert all(batch.num_rows <= 10 and picked is None for _, batch, picked in found)
    assert [first for first, *_ in found] == list(range(0, ROWS, 10))


def test_few_strings_hold_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [f"{i:060}" for i in range(100_000)]}), path, use_dictionary=False)
    flags = np.arange(100_000) % 10_000 == 0
    before = pa.total_allocated_bytes()
    positions, table, _ = kept(path, [0], flags, 100_000)
    assert positions == np.flatnonzero(flags).tolist()
    assert table.num_rows == 10
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_row_groups_of_which_nothing_is_wanted_are_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(parquet_columns, "read_chunk", lambda *a, **k: asked.append(a) or read_chunk(*a, **k))
    flags = np.arange(ROWS) >= 800
    positions, _, _ = kept(path, [0], flags)
    assert positions == list(range(800, ROWS))
    assert len(asked) == 1
