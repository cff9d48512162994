"""Bloom filter indices leave out zones that certainly lack the values of a condition."""

from __future__ import annotations

import contextlib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import DataFileError
from delta_plugins.lance import _metadata
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from tests.example_counts import IS_LONG

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


def _texts(of: pa.DataType) -> pa.Array:
    return pa.array([f"text {i}" for i in range(400)]).cast(of)


def _times(of: pa.DataType) -> pa.Array:
    return pa.array([EPOCH + timedelta(hours=i) for i in range(400)], pa.timestamp("us", "UTC")).cast(of)


def _numbers(of: pa.DataType, least: int = 0) -> pa.Array:
    return pa.array(range(least, least + 400), pa.decimal128(38, 0)).cast(of)


#: Columns of 400 rising values, and how SQL has one of them.
COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "int8": (pa.array([i // 4 - 50 for i in range(400)], pa.int8()), "7"),
    "int16": (_numbers(pa.int16(), -20), "7"),
    "int32": (_numbers(pa.int32(), -200), "-7"),
    "int64": (_numbers(pa.int64(), 2**63 - 400), str(2**63 - 20)),
    "uint8": (pa.array([i // 4 + 150 for i in range(400)], pa.uint8()), "200"),
    "uint16": (_numbers(pa.uint16(), 2**16 - 400), str(2**16 - 20)),
    "uint32": (_numbers(pa.uint32(), 2**32 - 400), str(2**32 - 20)),
    "uint64": (_numbers(pa.uint64(), 2**63 - 200), str(2**63 - 20)),
    "float32": (pa.array([i / 4 for i in range(400)], pa.float32()), "2.25"),
    "float64": (pa.array([i / 10 for i in range(400)], pa.float64()), "2.7"),
    "string": (_texts(pa.string()), "'text 333'"),
    "large_string": (_texts(pa.large_string()), "'text 333'"),
    "binary": (_texts(pa.binary()), f"X'{b'text 333'.hex()}'"),
    "large_binary": (_texts(pa.large_binary()), f"X'{b'text 333'.hex()}'"),
    "date32": (pa.array([date(2020, 1, 1) + timedelta(i) for i in range(400)]), "date'2020-03-04'"),
    "timestamp": (_times(pa.timestamp("us", "UTC")), "timestamp'2020-01-04 05:00:00Z'"),
    "timestamp_ntz": (_times(pa.timestamp("us")), "timestamp'2020-01-04 05:00:00'"),
    "timestamp_s": (_times(pa.timestamp("s")), "timestamp'2020-01-04 05:00:00'"),
    "timestamp_ns": (_times(pa.timestamp("ns")), "timestamp'2020-01-04 05:00:00'"),
}
CONDITIONS = (
    "x = {}", "{} = x", "x in ({}, {})", "x <=> {}", "x is null", "x = {} or x is null", "not (x != {})",
    "x = {} and n > 3", "x in ({}) or (x is null and n < 200)",
)  # fmt: skip


def with_nulls(values: pa.Array, nulls: range) -> pa.Array:
    parts = [values.slice(0, nulls.start), pa.nulls(len(nulls), values.type), values.slice(nulls.stop)]
    return pa.concat_arrays(parts)


def write(path: Path, values: pa.Array, items: int = 50, **options: Any) -> LanceDataset:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    from lance.indices import IndexConfig

    table = pa.table({"x": values, "n": range(len(values))})
    dataset = lance.write_dataset(table, path, **options)
    parameters = {"number_of_items": items, "probability": 0.001}
    dataset.create_scalar_index("x", IndexConfig(index_type="bloomfilter", parameters=parameters))
    return open_dataset(str(path))


def rows(dataset: LanceDataset, predicate: str, use_indices: bool) -> list[int]:
    scan = dataset.scan(["n"], predicate, use_indices=use_indices)
    found: list[int] = scan.to_table()["n"].to_pylist()
    assert scan.count() == len(found)
    return found


def effect(dataset: LanceDataset, predicate: str) -> str:
    [(_, text)] = dataset.scan([], predicate).explain().effects
    return text


@pytest.mark.peer
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_every_type_are_those_of_a_scan(tmp_path: Path, name: str) -> None:
    values, literal = COLUMNS[name]
    dataset = write(tmp_path / "t", with_nulls(values, range(120, 130)), max_rows_per_file=200)
    for condition in CONDITIONS:
        predicate = condition.replace("{}", literal)
        found = rows(dataset, predicate, True)
        assert found == rows(dataset, predicate, False), predicate
        assert found, predicate
        assert effect(dataset, predicate).startswith("used for 2 of 2 fragments: "), predicate
        assert int(effect(dataset, predicate).split()[-2]) <= 150, predicate


@pytest.mark.peer
def test_conditions_that_a_filter_does_not_answer_are_scanned(tmp_path: Path) -> None:
    dataset = write(tmp_path / "t", COLUMNS["float64"][0])
    for predicate in ("x > 38", "x != 3", "x is not null", "x = 3 or x > 39", "x = double('NaN')", "not (x = 3)"):
        assert rows(dataset, predicate, True) == rows(dataset, predicate, False)
        assert effect(dataset, predicate) == "not used: it answers equality, IN and IS NULL", predicate


@pytest.mark.peer
@pytest.mark.parametrize("of", [pa.float32(), pa.float64()])
def test_filter_finds_zeros_of_both_signs(tmp_path: Path, of: pa.DataType) -> None:
    values = [float(i) for i in range(1, 200)]
    dataset = write(tmp_path / "t", pa.array([0.0, *values, -0.0, *values, float("nan")], of))
    for predicate in ("x = 0", "x = -0.0", "x in (0, 500)"):
        assert rows(dataset, predicate, True) == [0, 200]
        assert effect(dataset, predicate).startswith("used for 1 of 1"), predicate


@pytest.mark.peer
def test_value_that_a_type_lacks_is_in_no_zone(tmp_path: Path) -> None:
    for name, literal in (("int8", "300"), ("int64", "1.5"), ("uint8", "1")):
        dataset = write(tmp_path / name, COLUMNS[name][0])
        for predicate in (f"x = {literal}", f"x in ({literal}, {literal})"):
            assert rows(dataset, predicate, True) == rows(dataset, predicate, False) == []


@pytest.mark.peer
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_deleted_updated_and_appended_rows_are_those_of_a_scan(tmp_path: Path, is_stable: bool) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    path = tmp_path / "t"
    write(path, _texts(pa.string()), max_rows_per_file=150, enable_stable_row_ids=is_stable)
    lance.dataset(path).delete("n % 5 = 2 or n < 60")
    lance.dataset(path).update({"x": "'text 7'"}, where="n in (100, 333)")
    lance.write_dataset(pa.table({"x": ["text 9", "text 333"], "n": [1000, 1001]}), path, mode="append")
    dataset = open_dataset(str(path))
    for text in ("text 7", "text 333", "text 9", "text 62", "text 70", "none"):
        for predicate in (f"x = '{text}'", f"x in ('{text}', 'text 71')"):
            assert rows(dataset, predicate, True) == rows(dataset, predicate, False), predicate


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(500 if IS_LONG else 25))
def test_damaged_index_file_is_an_error_or_leaves_the_rows_of_a_scan(tmp_path: Path, seed: int) -> None:
    dataset = write(tmp_path / "t", _texts(pa.string()))
    [path] = tmp_path.glob("t/_indices/*/bloomfilter.lance")
    chance, data = Random(seed), path.read_bytes()
    # behind the filters' own bits, which have no checksum
    low = len(data) * 3 // 4
    at = chance.randrange(low, len(data))
    damaged = bytearray(data)
    kind = seed % 4
    if kind == 0:
        damaged[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        damaged[at:] = b""
    elif kind == 2:
        damaged[at : at + 8] = (2**64 - 1).to_bytes(8, "little")
    else:
        del damaged[at : at + chance.randrange(1, 100)]
    path.write_bytes(damaged)
    with contextlib.suppress(DataFileError):
        assert rows(dataset, "x = 'text 70'", True) == [70]


@pytest.mark.parametrize("sizes", [[], [31], [0], [32, 33]])
def test_filter_that_has_no_whole_blocks_is_named(sizes: list[int]) -> None:
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    found = np.zeros(len(sizes), np.uint8)
    keys = np.array([0, 3], np.int64)
    damaged = _metadata.may_have_any(bytes(sum(sizes)), ends, b"key", keys, found)
    assert damaged == (len(sizes) - 1 if sizes else -1)


def test_filter_without_a_bit_may_have_any_value() -> None:
    found = np.zeros(2, np.uint8)
    filters = bytes(64) + bytes(32) + b"\1" + bytes(31)
    ends, keys = np.array([0, 64, 128], np.int64), np.array([0, 3], np.int64)
    assert _metadata.may_have_any(filters, ends, b"key", keys, found) == -1
    assert found.tolist() == [1, 0]
