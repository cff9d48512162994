"""Row groups come out the same whichever reader takes which column."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from contextlib import closing
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from delta_core.kernels.gather import SelectionVector
from delta_core.parquet import columns as parquet_columns, stretches
from delta_core.parquet.columns import GroupReader
from delta_core.parquet.opened_file import DataFile
from delta_core.parquet.pages import ColumnChunk, read_chunks
from delta_core.parquet.stretches import Own

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


def own_pages(path: Path, table: pa.Table) -> int:
    """Return how many pages of a file our own decoder reads, whose rows must be those of a table."""
    with closing(DataFile(str(path))) as file:
        reader = GroupReader(file, range(len(file.layout.leaves)))
        found = pa.Table.from_batches([b for _, b in reader.batches(range(len(file.footer.group_rows)), 0, 10_000)])
        assert found.equals(table)
        return reader.pages.decoded


#: Literals and copies of any length, near and far, and bytes that don't shrink.
PARTS = st.lists(
    st.tuples(st.one_of(st.binary(max_size=20), st.sampled_from([b"abcd", bytes(300)])), st.integers(1, 90)),
    max_size=30,
)


@given(parts=st.lists(PARTS, min_size=1, max_size=8), dictionary=st.booleans(), version=st.sampled_from(["1.0", "2.0"]))
def test_lz4_returns_what_was_compressed(parts: list[list[tuple[bytes, int]]], dictionary: bool, version: str) -> None:
    values = [b"".join(text * n for text, n in value) for value in parts]
    table = pa.table({"b": pa.array([*values, None], pa.binary()), "i": pa.array([len(v) for v in values] + [2**40])})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        pq.write_table(table, path, compression="lz4", use_dictionary=dictionary, data_page_version=version)
        assert own_pages(path, table) == 2


@pytest.mark.parametrize("name", ["id", "name", "list"])
def test_damaged_lz4_is_an_error_or_other_values(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    table = TABLE.select([name])
    pq.write_table(table, path, compression="lz4", use_dictionary=False, store_schema=False)
    sound = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    rng = random.Random(7)
    errors = 0
    for _ in range(200):
        damaged = bytearray(sound)
        damaged[chunk.data_page_offset + rng.randrange(chunk.total_compressed_size)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = read(path, [0], rows=ROWS)
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            errors += 1
        else:
            assert found.num_rows == ROWS
    assert errors > 20


def test_instants_of_int96_are_what_pyarrow_reads(tmp_path: Path) -> None:
    path = tmp_path / "x"
    days = [-719_162, -141_428, -1, 0, 1, 2_932_896]
    micros = [day * 86_400_000_000 + more for day in days for more in (0, 1, 999, 1_000, 86_399_999_999)]
    table = pa.table({"t": pa.array([*micros, None, *micros], pa.timestamp("us")), "i": pa.array(range(61))})
    for dictionary in (False, True):
        pq.write_table(table, path, use_deprecated_int96_timestamps=True, use_dictionary=dictionary, store_schema=False)
        assert own_pages(path, table) == 2
        reread = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
        assert reread.equals(table)


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


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_strings_of_a_dictionary_that_grew_too_big_are_not_encoded(tmp_path: Path, share: float) -> None:
    path = tmp_path / "x"
    few = pa.array([None if i % 10 else f"text {i % 50}" for i in range(20_000)])
    many = pa.array([f"text {i}" for i in range(int(20_000 * share))], pa.string())
    table = pa.table({"s": pa.chunked_array([few, many])})
    pq.write_table(table, path, dictionary_pagesize_limit=2_000, data_page_size=1_000, store_schema=False)
    with closing(DataFile(str(path))) as file:
        assert file.footer.short_texts([0], 4) == ([] if share else [0])
    assert own_pages(path, table.combine_chunks())


def test_strings_with_few_values_are_not_taken_for_short(tmp_path: Path) -> None:
    path = tmp_path / "x"
    table = pa.table({"s": pa.array([None if i % 20 else f"a long text {i}" for i in range(20_000)])})
    pq.write_table(table, path, store_schema=False)
    with closing(DataFile(str(path))) as file:
        assert file.footer.short_texts([0], 4) == []


def test_a_dictionary_that_is_longer_than_what_is_kept_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "x"
    texts = [f"{i:07d}" * 10_000 for i in range(600)]
    table = pa.table({"s": pa.array(texts), "i": pa.array(range(600))})
    pq.write_table(table, path, use_dictionary=["s"], compression="none", store_schema=False)
    with closing(DataFile(str(path))) as file:
        reader = GroupReader(file, [0, 1])
        size = path.stat().st_size
        stretches = reader.stretches(0, [0, 1])
        before = _read_bytes()
        for start in range(0, 600, 64):
            found = stretches.read(start, min(start + 64, 600))
            assert found["s"].to_pylist() == texts[start : start + 64]
        assert _read_bytes() - before < 1.5 * size


def test_bodies_of_pages_without_a_requested_row_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    values = np.random.default_rng(0).integers(0, 1 << 60, 2_000_000)
    pq.write_table(pa.table({"i": values}), path, use_dictionary=False, data_page_size=200_000, store_schema=False)
    size = path.stat().st_size
    for rows in ([70, 90], [1_999_999], [1_000_000, 1_000_400]):
        with closing(DataFile(str(path))) as file:
            reader = GroupReader(file, [0])
            flags = np.zeros(reader.group_rows[0], np.bool_)
            flags[[row % len(flags) for row in rows]] = True
            before = _read_bytes()
            found = reader.columns(0, [0], SelectionVector.of_flags(flags))
            assert found["i"].equals(pa.array(values[: len(flags)][flags]))
            # a window before the first page that is passed over, and one from a requested page on
            assert _read_bytes() - before < size / 10
            assert reader.pages.total > 20
            assert reader.pages.decoded == 1


def _read_bytes() -> int:
    """Return how many bytes the process has read."""
    text = Path("/proc/self/io").read_text()
    return int(text.partition("rchar:")[2].split()[0])


def test_row_groups_that_are_collected_are_decoded_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_columns, "GROUP_BYTES", 3_000)
    path = tmp_path / "x"
    pq.write_table(TABLE, path, store_schema=False)
    whole = []
    monkeypatch.setattr(parquet_columns, "read_chunks", lambda *a, **k: whole.append(a) or read_chunks(*a, **k))
    leaves = list(range(pq.read_metadata(path).num_columns))
    for is_collected in (False, True):
        with closing(DataFile(str(path))) as file:
            batches = list(GroupReader(file, leaves, is_collected=is_collected).batches([0], 0, 300))
        assert pa.Table.from_batches([b for _, b in batches]).equals(TABLE)
        assert len(whole) == is_collected
