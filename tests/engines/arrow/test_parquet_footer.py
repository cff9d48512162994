"""Footers that are damaged: PyArrow ends the process when it is requested columns of some, so it is not requested."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.engines.arrow.parquet.footer import read_footer

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
    monkeypatch.setattr("delta_core.engines.arrow.parquet.footer._TAIL_BYTES", tail)
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
