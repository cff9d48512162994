"""Footers: what both parsers find in them, and damaged ones, which would end the process if PyArrow read a column."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from delta_core.parquet.footer import read_footer
from delta_core.parquet.opened_file import ArrowFooter, DataFile
from delta_core.parquet.types import plan_file
from delta_core.schema.types import Field, PrimitiveType, StructType, arrow_to_type

ROOT = Path(__file__).parents[3]
CASES = 3000


def sample(rows: int = 300) -> bytes:
    """Return a file with columns of every physical type, nested ones too."""
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "small": pa.array(range(rows), pa.int32()),
            "flag": [True, None, False] * (rows // 3),
            "name": [f"n{i}" for i in range(rows)],
            "x": [i / 2 for i in range(rows)],
            "fixed": pa.array([b"abcd"] * rows, pa.binary(4)),
            "s": [{"a": i, "b": [i, None]} for i in range(rows)],
            "price": pa.array([1] * rows, pa.decimal128(20, 2)),
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=100)
    return out.getvalue()


def read_everything(data: bytes) -> int:
    """Request all that a footer specifies; return how many columns it has."""
    metadata = read_footer(pa.BufferReader(data))
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            assert chunk.path_in_schema is not None
            assert (chunk.compression, chunk.encodings, chunk.physical_type, chunk.data_page_offset) is not None
            if chunk.statistics is not None and chunk.statistics.has_min_max:
                assert (chunk.statistics.min_raw, chunk.statistics.max_raw) is not None
    return int(metadata.num_columns)


def damage_and_read(seed: int, cases: int) -> None:
    """Change bytes of footers; a column's values may be rejected, but nothing else may happen."""
    data = sample()
    first = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for case in range(cases):
        rng = random.Random(f"{seed}:{case}")
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(first, len(data) - 8)
            changed[at] = rng.choice([changed[at] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 127, 255])
        try:
            read_everything(bytes(changed))
        except (pa.ArrowException, OSError, UnicodeDecodeError, ValueError):
            continue


@pytest.mark.parametrize("tail", [64 << 10, 16])
@pytest.mark.parametrize("as_path", [True, False])
def test_sound_footer_is_read_from_paths_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_path: bool, tail: int
) -> None:
    monkeypatch.setattr("delta_core.parquet.footer._TAIL_BYTES", tail)
    (tmp_path / "f").write_bytes(sample())
    source = str(tmp_path / "f") if as_path else pa.OSFile(str(tmp_path / "f"))
    assert read_footer(source).equals(pq.read_metadata(tmp_path / "f"))
    assert read_everything(sample()) == 9


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1PAR1", b"\xff\xff\xff\x7fPAR1", b"PAR1\x00\x00\x00\x00PAR1", sample()[:-1]]
)
def test_torn_file_raises_an_arrow_error(data: bytes) -> None:
    with pytest.raises((pa.ArrowException, OSError)):
        read_footer(pa.BufferReader(data))


def test_footer_with_an_unknown_codec_is_rejected() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), out, compression="snappy")
    data = out.getvalue()
    first = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # ColumnMetaData: the path ["a"] is field 3, then the codec as an i32
    at = data.index(b"\x18\x01a\x15\x02", first) + 4
    with pytest.raises(pa.ArrowInvalid, match="column 0 of row group 0 has an unknown codec"):
        read_footer(pa.BufferReader(data[:at] + b"\x40" + data[at + 1 :]))


def test_damaged_footers_never_end_the_process() -> None:
    code = f"from tests.engines.arrow.test_parquet_footer import damage_and_read\ndamage_and_read(1, {CASES})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def _coded(rows: int = 6400) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "flag": [True, None, False, True] * (rows // 4),
            "few": [f"name {i % 3}" for i in range(rows)],
            "many": [f"a long name with the number {i}" for i in range(rows)],
            "price": pa.array([1] * rows, pa.decimal128(9, 2)),
            "tags": [[i] for i in range(rows)],
            "none": pa.nulls(rows, pa.int32()),
        }
    )


@pytest.mark.parametrize("codec", ["none", "snappy", "brotli", {"id": "brotli", "few": "snappy"}])
@pytest.mark.parametrize("size", [100, 1000, 6400])
def test_both_footers_specify_the_same_chunks(tmp_path: Path, codec: Any, size: int) -> None:
    encodings = {"id": "DELTA_BINARY_PACKED"}
    path, table = str(tmp_path / "f"), _coded()
    pq.write_table(
        table, path, compression=codec, row_group_size=size, use_dictionary=["few", "many"], column_encoding=encodings
    )
    other = ArrowFooter(pq.read_metadata(path))
    with closing(DataFile(path)) as file:
        footer, forms = file.footer, list(file.layout.forms.values())
        leaves = range(len(file.layout.leaves))
        assert not isinstance(footer, ArrowFooter)
        assert [f.name for f in forms] == ["id", "flag", "few", "many", "price", "none"]
        assert footer.group_rows == other.group_rows
        assert footer.short_texts([2, 3], 4) == other.short_texts([2, 3], 4) == [2]
        assert footer.short_texts([0], 4) == other.short_texts([0], 4) == []
        for group in range(len(footer.group_rows)):
            # bounds of pages are not known to PyArrow
            found = [c and replace(c, bloom_filter=None, page_index=None) for c in footer.chunks(group, forms)]
            assert found == other.chunks(group, forms)
            codecs = codec if isinstance(codec, dict) else dict.fromkeys(table.column_names, codec)
            assert [c is None for c in found] == [codecs.get(f.name) == "brotli" for f in forms]
            is_short = footer.plain_bytes(group, [6]) <= footer.group_rows[group] // 64
            assert footer.null_leaves(group, leaves) == other.null_leaves(group, leaves) == [6] * is_short
            for few in ([], [0], [1, 3], leaves):
                assert footer.plain_bytes(group, few) == other.plain_bytes(group, few)
                assert footer.stored_bytes(group, few) == other.stored_bytes(group, few)
            with pytest.raises(IndexError):
                footer.plain_bytes(group, [len(leaves)])
        with pytest.raises(IndexError):
            footer.chunks(len(footer.group_rows), forms)


def test_plan_of_coded_strings_is_that_of_the_file_with_codes(tmp_path: Path) -> None:
    path, table = str(tmp_path / "f"), _coded()
    pq.write_table(table, path)
    schema = pa.schema([table.schema.field(n) for n in ("many", "few", "id")])
    columns = StructType([Field(f.name, arrow_to_type(f.type)) for f in schema])
    with closing(DataFile(path)) as file:
        plan = plan_file(file.schema, schema, columns, encoded=True)
        assert plan.texts == {3: "many", 2: "few"}
        found = plan.encoded(["few"])
        file.encode(["few"])
        planned = plan_file(file.schema, schema, columns, encoded=True)
    assert found is not None
    # the bounds of codes are those of their strings
    assert found.stored["few",] == (2, pa.string())
    assert replace(found, stored=planned.stored) == planned
    assert found.schema.field("few").type == pa.dictionary(pa.int32(), pa.string())


def test_file_of_the_requested_columns_alone_is_planned_as_others_are(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    table = pa.table({"id": pa.array([1], pa.int32()), "Name": ["x"], "flag": [True]})
    pq.write_table(table, path)
    required = pa.schema([table.schema.field(0).with_nullable(False), *list(table.schema)[1:]])
    with closing(DataFile(path)) as file:
        for schema in (table.schema, required):
            columns = StructType([Field(f.name, arrow_to_type(f.type)) for f in schema])
            plan = plan_file(file.schema, schema, columns, num_stored=3)
            assert plan == plan_file(file.schema, schema, columns)
            assert plan.convert(table.to_batches()[0]).schema == schema


def test_no_plan_of_codes_for_a_column_that_is_read_as_another_type_too(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    pq.write_table(pa.table({"a": ["x"] * 9}), path)
    schema = pa.schema([pa.field("a", pa.string()), pa.field("A", pa.binary())])
    columns = StructType([Field("a", PrimitiveType("string")), Field("A", PrimitiveType("binary"))])
    with closing(DataFile(path)) as file:
        plan = plan_file(file.schema, schema, columns, encoded=True)
    assert plan.encoded(["a"]) is None
