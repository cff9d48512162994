"""Data files in every encoding that PyArrow writes, for every type, flat and nested: rows are as they were written."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import ColumnProperties, DeltaTable, WriterProperties, write_deltalake
from delta_core.errors import DataFileError
from delta_core.parquet.statistics import parquet_leaves
from delta_core.table.transaction import AddAction

MOMENT = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [1, -1, 127],
    pa.int16(): [1, -1, 300],
    pa.int32(): [1, -5, 2**31 - 1],
    pa.int64(): [1, -5, 2**63 - 1],
    pa.float32(): [0.5, -1.5, 3.0],
    pa.float64(): [0.5, -1.5, 1e300],
    pa.bool_(): [True, False, True],
    pa.string(): ["a", "", "aé"],
    pa.binary(): [b"a", b"", b"\xff" * 40],
    pa.decimal128(5, 1): [Decimal("1.5"), Decimal("-9.9"), Decimal("0.0")],
    pa.decimal128(15, 1): [Decimal("1.5"), Decimal("-9.9"), Decimal("99999999999999.9")],
    pa.decimal128(30, 2): [Decimal("1.50"), Decimal("-9.99"), Decimal("1" + "0" * 25 + ".01")],
    pa.date32(): [dt.date(2024, 5, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [MOMENT, MOMENT + dt.timedelta(microseconds=1), MOMENT.replace(year=1)],
}
NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC")]
DECIMALS = [pa.decimal128(5, 1), pa.decimal128(15, 1)]
ENCODINGS: dict[str, list[pa.DataType]] = {
    "PLAIN": list(VALUES),
    "DICTIONARY": [t for t in VALUES if not pa.types.is_boolean(t)],
    "RLE": [pa.bool_()],
    "DELTA_BINARY_PACKED": [*NUMBERS, *DECIMALS],
    "DELTA_LENGTH_BYTE_ARRAY": [pa.string(), pa.binary()],
    "DELTA_BYTE_ARRAY": [pa.string(), pa.binary(), pa.decimal128(30, 2)],
    "BYTE_STREAM_SPLIT": [*NUMBERS, *DECIMALS, pa.decimal128(30, 2), pa.float32(), pa.float64()],
}
EACH = [pytest.param(encoding, t, id=f"{encoding}-{t}") for encoding, types in ENCODINGS.items() for t in types]


def columns(t: pa.DataType) -> pa.Table:
    """Return the values many times, few and in no order of runs, in a flat column and in each kind of nested one."""
    many = [None, *VALUES[t]] * 300
    pairs = list(zip(many, many[1:] + many[:1], strict=True))
    return pa.table(
        {
            "row": range(len(many)),
            "x": pa.array(many, t),
            "s": pa.array([None if i % 7 == 0 else {"y": v} for i, v in enumerate(many)], pa.struct([("y", t)])),
            "l": pa.array([None if i % 5 == 0 else list(p) for i, p in enumerate(pairs)], pa.list_(t)),
            "m": pa.array([[(str(i), v)] for i, v in enumerate(many)], pa.map_(pa.string(), t)),
        }
    )


def file_options(schema: pa.Schema, encoding: str, t: pa.DataType) -> dict[str, Any]:
    names = [".".join(path) for path, found, _ in parquet_leaves(schema) if found == t and path != ("row",)]
    if encoding == "DICTIONARY":
        return {"use_dictionary": names}
    return {"use_dictionary": False, "column_encoding": dict.fromkeys(names, encoding)}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(("encoding", "t"), EACH)
def test_rows_of_each_encoding_and_type_are_read(tmp_path: Path, encoding: str, t: pa.DataType, version: str) -> None:
    table = columns(t)
    DeltaTable.create(tmp_path, table.schema)
    options = file_options(table.schema, encoding, t)
    pq.write_table(
        table,
        tmp_path / "f.parquet",
        row_group_size=500,
        data_page_version=version,
        version="2.6",
        store_decimal_as_integer=True,
        store_schema=False,
        **options,
    )
    stored = pq.ParquetFile(tmp_path / "f.parquet").metadata.row_group(0)
    found = {e for i in range(1, stored.num_columns) for e in stored.column(i).encodings}
    assert (encoding if encoding != "DICTIONARY" else "RLE_DICTIONARY") in found
    add = AddAction("f.parquet", (tmp_path / "f.parquet").stat().st_size, {}, 0, True, "")
    DeltaTable(tmp_path).create_write_transaction([add], "append", table.schema)
    delta = DeltaTable(tmp_path)
    assert delta.to_pyarrow_table().to_pylist() == table.to_pylist()
    for name in ("x", "s", "l", "m"):
        assert delta.snapshot().scan([name]).to_table()[name].to_pylist() == table[name].to_pylist()
    some = delta.snapshot().scan(["row", "x", "s"], predicate="x is not null and row % 3 = 0").to_table().to_pylist()
    rows = table.select(["row", "x", "s"]).to_pylist()
    assert some == [r for r in rows if r["x"] is not None and r["row"] % 3 == 0]


@pytest.mark.parametrize(("encoding", "t"), EACH)
def test_rows_that_column_properties_encode_are_read_by_us_and_others(
    tmp_path: Path, encoding: str, t: pa.DataType
) -> None:
    table = columns(t).select(["row", "x", "s"])
    chosen = (
        ColumnProperties(dictionary_enabled=True) if encoding == "DICTIONARY" else ColumnProperties(encoding=encoding)
    )
    properties = WriterProperties(column_properties={"x": chosen, "s.y": chosen})
    write_deltalake(tmp_path, table, writer_properties=properties)
    assert DeltaTable(tmp_path).to_pyarrow_table().to_pylist() == table.to_pylist()
    theirs = deltalake.DeltaTable(tmp_path).to_pyarrow_table().select(table.column_names)
    assert theirs.cast(table.schema).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_checkpoints_with_delta_encoded_strings_are_read(tmp_path: Path, encoding: str) -> None:
    configuration = {"delta.checkpoint.writeStatsAsStruct": "true"}
    for number in range(3):
        part = pa.table({"p": ["a", None, f"p{number}"], "x": [number] * 3})
        write_deltalake(
            tmp_path, part, mode="append", partition_by=["p"], configuration=None if number else configuration
        )
    expected = sorted(DeltaTable(tmp_path).to_pyarrow_table().to_pylist(), key=str)
    DeltaTable(tmp_path).create_checkpoint()
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    table = pq.read_table(path)
    names = [".".join(p) for p, t, _ in parquet_leaves(table.schema) if t == pa.string()]
    pq.write_table(
        table, path, use_dictionary=False, column_encoding=dict.fromkeys(names, encoding), store_schema=False
    )
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    delta = DeltaTable(tmp_path)
    assert sorted(delta.to_pyarrow_table().to_pylist(), key=str) == expected
    assert delta.snapshot().scan(predicate="p = 'p1'").to_table().to_pylist() == [{"p": "p1", "x": 1}]


def test_file_that_pyarrow_does_not_decode_is_not_called_damaged(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array(["a", "b"] * 200).dictionary_encode()})
    DeltaTable.create(tmp_path, pa.schema([("x", pa.string())]))
    pq.write_table(table, tmp_path / "f.parquet", use_dictionary=False, column_encoding={"x": "DELTA_BYTE_ARRAY"})
    add = AddAction("f.parquet", (tmp_path / "f.parquet").stat().st_size, {}, 0, True, '{"numRecords":400}')
    DeltaTable(tmp_path).create_write_transaction([add], "append", pa.schema([("x", pa.string())]))
    with pytest.raises(DataFileError, match="PyArrow does not decode"):
        DeltaTable(tmp_path).to_pyarrow_table()


def test_row_groups_of_several_encodings_are_read(tmp_path: Path) -> None:
    """Strings that begin as a dictionary and go on delta encoded, as other writers' pages do."""
    parts = [pa.table({"x": ["a", "b", None] * 200}), pa.table({"x": [f"text {i}" for i in range(600)]})]
    write_deltalake(tmp_path, parts[0])
    plain = WriterProperties(column_properties={"x": ColumnProperties(encoding="DELTA_BYTE_ARRAY")})
    write_deltalake(tmp_path, parts[1], mode="append", writer_properties=plain)
    write_deltalake(tmp_path, parts[0], mode="append")
    expected = [r for p in (parts[0], *parts) for r in p["x"].to_pylist()]
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["x"].to_pylist(), key=str) == sorted(expected, key=str)
