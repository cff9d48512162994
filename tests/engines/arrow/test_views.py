"""Columns that their writer held as views or large strings are read as strings and binaries, by the same decoders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.parquet.opened_file import DataFile
from delta_core.table.transaction import AddAction

TEXTS = ["a", None, "", "a text that is longer than the twelve bytes of a view"] * 5


def written(path: Path, files: int = 1, *, large: bool = False, **options: Any) -> DeltaTable:
    """Return a table of files with views or large strings."""
    text_type, data_type = (pa.large_string(), pa.large_binary()) if large else (pa.string_view(), pa.binary_view())
    texts = pa.array(TEXTS, text_type)
    data = [None if t is None else t.encode() for t in TEXTS]
    rows = pa.table(
        {
            "id": pa.array(range(len(TEXTS)), pa.int64()),
            "text": texts,
            "data": pa.array(data, data_type),
            "none": pa.nulls(len(TEXTS), text_type),
            "s": pa.StructArray.from_arrays([texts], ["x"]),
        }
    )
    plain = pa.schema(
        [
            ("id", "int64"),
            ("text", "string"),
            ("data", "binary"),
            ("none", "string"),
            ("s", pa.struct([("x", "string")])),
        ]
    )
    table = DeltaTable.create(path, plain)
    names = [f"{i}.parquet" for i in range(files)]
    for name in names:
        pq.write_table(rows, path / name, **options)
    adds = [AddAction(n, os.path.getsize(path / n), {}, 0, True, f'{{"numRecords":{len(TEXTS)}}}') for n in names]
    table.create_write_transaction(adds, "append", table.schema())
    return DeltaTable(path)


@pytest.mark.parametrize("decoder", ["own", "pyarrow"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "zstd"}, {"large": True}])
def test_views_are_read_as_what_parquet_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], decoder: str
) -> None:
    monkeypatch.setattr("delta_core.parquet.columns.USES_OWN_DECODER", decoder == "own")
    table = written(tmp_path, **options)
    rows = table.to_pyarrow_table()
    assert rows.schema.types[1:4] == [pa.string(), pa.binary(), pa.string()]
    assert rows.column("text").to_pylist() == TEXTS
    assert rows.column("data").to_pylist() == [None if t is None else t.encode() for t in TEXTS]
    assert rows.column("none").null_count == len(TEXTS)
    assert rows.column("s").to_pylist() == [{"x": t} for t in TEXTS]
    few = table.scan(["id", "data", "s"], predicate="text = '' and id > 4").to_table().to_pylist()
    assert [(r["id"], r["data"], r["s"]["x"]) for r in few] == [(i, b"", "") for i in (6, 10, 14, 18)]


def test_files_with_views_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = written(tmp_path, files=12)
    opened: list[Any] = []
    init = DataFile.__init__

    def counted(self: DataFile, source: Any, *args: Any) -> None:
        opened.append(source)
        init(self, source, *args)

    monkeypatch.setattr(DataFile, "__init__", counted)
    rows = table.to_pyarrow_table(columns=["id", "text", "data"])
    assert rows.column("text").to_pylist() == TEXTS * 12
    assert len(opened) <= 2
