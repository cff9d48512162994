"""Columns of bytes of one length, as other writers store UUIDs, are read as they were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake
from delta_core.parquet.opened_file import DataFile

ROWS = 600


def values(width: int, share_of_nulls: int) -> pa.Array:
    texts = [bytes([i % 251, i // 251] * width)[:width] for i in range(ROWS)]
    return pa.array(
        [None if share_of_nulls and i % share_of_nulls == 0 else t for i, t in enumerate(texts)], pa.binary(width)
    )


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 20])
@pytest.mark.parametrize("share_of_nulls", [0, 1, 3])
@pytest.mark.parametrize("encoding", ["dictionary", None, "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"])
def test_bytes_of_one_length_are_read_as_they_were_written(
    tmp_path: Path, width: int, share_of_nulls: int, encoding: str | None
) -> None:
    written = pa.table({"u": values(width, share_of_nulls), "i": pa.array(range(ROWS))})
    form = None if encoding in (None, "dictionary") else {"u": encoding}
    for number in range(5):
        pq.write_table(
            written,
            tmp_path / f"{number}.parquet",
            use_dictionary=["u"] if encoding == "dictionary" else False,
            column_encoding=form,
            row_group_size=250,
            data_page_size=300,
        )
    convert_to_deltalake(tmp_path)
    table = DeltaTable(tmp_path)
    everything = pa.concat_tables([written] * 5)
    expected = everything["u"].cast(pa.binary())
    assert table.scan().to_table()["u"].equals(expected)
    for predicate, numbers in (("i < 50", range(50)), ("i % 7 = 3", range(3, ROWS, 7))):
        found = table.scan(["u"], predicate=predicate).to_table()["u"].to_pylist()
        assert found == [written["u"][i].as_py() for _ in range(5) for i in numbers]
    text = written["u"][1].as_py() or bytes(width)
    equal = table.scan(["u"], predicate=f"u = X'{text.hex()}'").to_table()
    assert equal["u"].to_pylist() == [text] * everything["u"].to_pylist().count(text)
    assert table.scan(predicate="u is null").count() == expected.null_count


@pytest.mark.parametrize(("width", "is_decoded"), [(2, True), (16, True), (20, False)])
def test_bytes_of_a_power_of_two_are_decoded_without_pyarrow(tmp_path: Path, width: int, is_decoded: bool) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"u": values(width, 3)}), path)
    file = DataFile(str(path))
    try:
        assert bool(file.layout.forms) == is_decoded
    finally:
        file.close()
