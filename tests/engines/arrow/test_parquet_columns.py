"""Row groups come out the same whichever reader takes which column."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.arrow.parquet import columns as parquet_columns
from delta_core.engines.arrow.parquet import stretches
from delta_core.engines.arrow.parquet.columns import GroupReader
from delta_core.engines.arrow.parquet.opened_file import DataFile
from delta_core.engines.arrow.parquet.stretches import Own
from delta_core.kernels.gather import SelectionVector
from delta_core.kernels.parquet_pages import ColumnChunk, read_chunks

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


def read(path: Path, leaves: list[int], dictionary: list[str] | None = None, rows: int = 300) -> pa.Table:
    with closing(DataFile(str(path))) as file:
        file.encode(dictionary or [])
        groups = list(range(len(file.footer.group_rows)))
        found = list(GroupReader(file, leaves).batches(groups, 0, rows))
    assert [first for first, _ in found] == list(accumulate([b.num_rows for _, b in found], initial=0))[:-1]
    return pa.Table.from_batches([batch for _, batch in found])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=400, compression={"id": "snappy", "name": "brotli"}, store_schema=False)
    return path


def test_columns_of_both_readers_are_in_the_order_of_the_file(path: Path) -> None:
    leaves = list(range(pq.read_metadata(path).num_columns))
    assert read(path, leaves).equals(TABLE)


@pytest.mark.parametrize("picks", [None, SelectionVector.of_flags(np.arange(400) % 3 == 0)])
def test_columns_on_several_threads_are_the_same(
    path: Path, picks: SelectionVector | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "_LANE_NANOSECONDS", 0)
    with closing(DataFile(str(path))) as file:
        leaves = range(len(file.layout.leaves))
        readers = [GroupReader(file, leaves, lanes=lanes) for lanes in (1, 2, 3, 20)]
        found = [(reader.columns(1, leaves, picks), reader.pages) for reader in readers]
    assert found[0][1].decoded > 0
    for columns, pages in found[1:]:
        assert columns == found[0][0]
        assert pages == found[0][1]


def test_columns_are_shared_out_by_their_time() -> None:
    def chunk(t: pa.DataType, stored: int) -> ColumnChunk:
        return ColumnChunk(t, 0, stored, "SNAPPY", 1, 1_000_000, stored)

    flat = {0: chunk(pa.string(), 2_000_000), 1: chunk(pa.int64(), 8_000_000), 2: chunk(pa.float64(), 8_000_000)}
    own = Own(flat, {})
    assert [set(part.flat) for part in own.shares((), 2)] == [{0}, {1, 2}]
    # as codes the strings take no longer than numbers
    assert [len(part.flat) for part in own.shares((0,), 3)] == [1, 1, 1]
    assert own.shares((), 1) == own.shares((), 2, share=0.01) == [own]


def test_a_name_with_a_dot_is_not_taken_for_a_field(path: Path) -> None:
    found = read(path, [2, 4])
    assert found.column_names == ["s", "s.x"]
    assert found.column("s.x").equals(TABLE.column("s.x"))
    assert found.column("s").combine_chunks().field("x").to_pylist() == list(range(ROWS))


def test_big_row_groups_are_streamed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = []
    monkeypatch.setattr(parquet_columns, "read_chunks", lambda *a, **k: whole.append(a) or read_chunks(*a, **k))
    assert read(path, [0]).equals(TABLE.select(["id"]))
    assert len(whole) == 3
    monkeypatch.setattr(parquet_columns, "GROUP_BYTES", 3_000)
    assert read(path, [0]).equals(TABLE.select(["id"]))
    assert len(whole) == 3 + 1  # the last row group is small


def test_strings_are_kept_encoded(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["name"]), path, store_schema=False)
    found = read(path, [0], ["name"])
    assert found.schema.field("name").type == pa.dictionary(pa.int32(), pa.string())
    assert found.column("name").cast(pa.string()).equals(TABLE.column("name"))


def test_damaged_column_raises_what_pyarrow_states(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id"]), path)
    chunk = pq.read_metadata(path).row_group(0).column(0)
    damaged = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset
    damaged[start + 40 : start + 200] = b"\xff" * 160
    path.write_bytes(damaged)
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)snappy|page|thrift"):
        read(path, [0])


def test_small_row_groups_share_batches(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id", "name"]), path, row_group_size=7, store_schema=False)
    with closing(DataFile(str(path))) as file:
        file.encode(["name"])  # each row group has a dictionary of its own
        found = list(GroupReader(file, [0, 1]).batches(range(3, 143), 21, 300))
    assert [first for first, _ in found] == [21, 21 + 42 * 7, 21 + 84 * 7, 21 + 126 * 7]
    table = pa.Table.from_batches([batch for _, batch in found])
    assert table.column("name").cast(pa.string()).equals(TABLE.column("name").slice(21))
    assert table.column("id").equals(TABLE.column("id").slice(21))


@pytest.mark.parametrize("rows", [1, 60, 300, 5_000])
@pytest.mark.parametrize("joined", [0, 500, 1 << 20])
def test_row_groups_of_any_size_are_read_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, joined: int
) -> None:
    monkeypatch.setattr(parquet_columns, "JOINED_BYTES", joined)
    monkeypatch.setattr(parquet_columns, "GROUP_BYTES", 1_600)  # PyArrow streams the larger row groups
    path = tmp_path / "x.parquet"
    sizes = [5, 90, 200, 10, 1, 300, 120, 3, 4, 250, 17]
    with pq.ParquetWriter(path, TABLE.select(["id", "s"]).schema, store_schema=False) as writer:
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
            writer.write_table(TABLE.select(["id", "s"]).slice(start, size), row_group_size=size)
    assert read(path, [0], rows=rows).equals(TABLE.select(["id"]))
    assert read(path, [0, 1, 2], rows=rows).equals(TABLE.select(["id", "s"]))


@pytest.mark.parametrize("codec", ["none", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", ["id", "name", "s", "flag", "list"])
def test_a_page_with_another_checksum_than_its_own_is_an_error(
    tmp_path: Path, name: str, version: str, codec: str
) -> None:
    path = tmp_path / "x.parquet"
    options = {"store_schema": False, "data_page_version": version, "compression": codec, "use_dictionary": ["name"]}
    pq.write_table(TABLE.select([name]), path, write_page_checksum=True, **options)
    leaves = range(pq.read_metadata(path).num_columns)
    assert read(path, list(leaves)).equals(TABLE.select([name]))
    sound = path.read_bytes()
    for leaf in leaves:
        chunk = pq.read_metadata(path).row_group(0).column(leaf)
        first = chunk.dictionary_page_offset or chunk.data_page_offset
        damaged = bytearray(sound)
        damaged[first + chunk.total_compressed_size - 1] ^= 64  # a value, or a code
        path.write_bytes(damaged)
        with pytest.raises((OSError, pa.ArrowInvalid), match=r"(?i)checksum|CRC"):
            read(path, list(leaves))
        path.write_bytes(sound)


@pytest.mark.parametrize("rows", [*range(1, 40), 500])
def test_pages_of_any_size_have_the_checksum_of_their_writer(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"b": pa.array([bytes(range(i % 13)) for i in range(rows)]), "i": pa.array(range(rows))})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    assert read(path, [0, 1]).equals(table)


def test_checksums_are_compared_unless_they_are_to_be_ignored(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.select(["id"]), path, compression="none", use_dictionary=False, write_page_checksum=True)
    damaged = bytearray(path.read_bytes())
    damaged[pq.read_metadata(path).row_group(0).column(0).total_compressed_size + 3] ^= 64
    path.write_bytes(damaged)
    code = (
        "import sys; from tests.engines.arrow.test_parquet_columns import read; from pathlib import Path;"
        " print(read(Path(sys.argv[1]), [0]).num_rows)"
    )
    command = [sys.executable, "-c", code, str(path)]
    ignored = {**os.environ, "DELTA_CORE_PAGE_CHECKSUMS": "ignore"}
    assert subprocess.run(command, env=ignored, capture_output=True, text=True, check=True).stdout == f"{ROWS}\n"
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode
    assert "another checksum than its header specifies" in checked.stderr
