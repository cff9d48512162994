"""Statistics of many files at once: the texts are those of each file by itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.errors import DataFileError, DataFileNotFoundError, InvalidArgumentError, SchemaMismatchError
from delta_core.kernel.write.stats import statistics_json, statistics_texts
from delta_core.parquet.data_files import ArrowDataFiles
from delta_core.parquet.local_footers import read_footers
from delta_core.storage.local import LocalStorage

_TIMES = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))
_VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "short": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "text": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    "plain": (pa.string(), st.text("abc ", max_size=40)),
    "day": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us", "UTC"), _TIMES.map(lambda t: t.replace(tzinfo=dt.UTC))),
    "local": (pa.timestamp("us"), _TIMES),
    "small": (pa.decimal128(9, 2), st.decimals(-9999999, 9999999, places=2)),
    "big": (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
    "number": (pa.float64(), st.floats()),
    "flag": (pa.bool_(), st.booleans()),
    "bytes": (pa.binary(), st.binary(max_size=5)),
}
_SCHEMA = pa.schema([
    *((name, t) for name, (t, _) in _VALUES.items()),
    ("in", pa.struct([("long", pa.int64()), ("deep", pa.struct([("text", pa.string())]))])),
])  # fmt: skip
_PATHS = [*((name,) for name in _VALUES), ("in", "long"), ("in", "deep", "text")]
_TYPES = {
    **{(name,): t for name, (t, _) in _VALUES.items()},
    ("in", "long"): pa.int64(),
    ("in", "deep", "text"): pa.string(),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(0, 4))
    columns = {
        name: pa.array(draw(st.lists(st.none() | values, min_size=count, max_size=count)), t)
        for name, (t, values) in _VALUES.items()
    }
    inner = [
        draw(
            st.none()
            | st.builds(lambda a, b: {"long": a, "deep": {"text": b}}, st.integers(0, 9), st.none() | st.text("ab"))
        )
        for _ in range(count)
    ]
    return pa.table({**columns, "in": pa.array(inner, _SCHEMA.field("in").type)})


def data_files(folder: Path) -> ArrowDataFiles:
    return ArrowDataFiles(LocalStorage(str(folder)))


def texts_of(files: ArrowDataFiles, names: list[str]) -> list[str]:
    found: dict[int, str] = {}
    for part in files.footers(names).statistics(_SCHEMA, _PATHS):
        found |= dict(zip(part.files.tolist(), statistics_texts(part, _TYPES).to_pylist(), strict=True))
    return [found[i] for i in range(len(names))]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(tables(), st.integers(1, 3), st.booleans()), min_size=1, max_size=6))
def test_texts_are_those_of_each_file(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[pa.Table, int, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    names = []
    for i, (rows, group, is_whole) in enumerate(made):
        names.append(f"{i}.parquet")
        part = rows if is_whole else rows.select(rows.column_names[::2])
        pq.write_table(part, folder / names[-1], row_group_size=group, store_decimal_as_integer=is_whole)
    files = data_files(folder)
    alone = files.describe(names, _SCHEMA, _PATHS, strict=False)
    assert texts_of(files, names) == [statistics_json(f.num_rows, f.statistics, _TYPES) for f in alone]
    schemas = files.footers(names).schemas()
    assert [number for _, number in schemas] == sorted({number for _, number in schemas})
    assert {str(s) for s, _ in schemas} == {str(pq.read_schema(folder / name)) for name in names}


def test_files_of_other_stores_have_the_same_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table(
        {"long": [1, 2], "text": ["a", 'b"'], "big": pa.array([Decimal("1.5"), None], pa.decimal128(38, 10))}
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    files = data_files(tmp_path)
    local = texts_of(files, ["a.parquet"])
    monkeypatch.setattr("delta_core.parquet.footers.ArrowFooters._window", lambda *_: None)
    assert texts_of(data_files(tmp_path), ["a.parquet"]) == local


def test_more_files_than_one_window_are_in_order(tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(pa.table({"long": pa.array([i], pa.int64())}), tmp_path / f"{i}.parquet")
    names = [f"{i % 3}.parquet" for i in range(2500)]
    assert texts_of(data_files(tmp_path), names)[1022:1026] == texts_of(data_files(tmp_path), names[1022:1026])


def test_footers_that_are_not_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_core.parquet.footers._MOST_BYTES", 0)
    pq.write_table(pa.table({"long": pa.array([7], pa.int64())}), tmp_path / "a.parquet")
    footers = data_files(tmp_path).footers(["a.parquet"])
    assert len(footers.schemas()) == 1
    (found,) = footers.statistics(_SCHEMA, _PATHS)
    assert found.num_rows.tolist() == [1]


def test_file_of_another_type_is_rejected_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"long": pa.array([[1]])}), tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatchError, match=r"'a\.parquet' can't be read"):
        list(data_files(tmp_path).footers(["a.parquet"]).statistics(_SCHEMA, _PATHS))


@pytest.mark.parametrize(
    "content", [None, b"", b"PAR1", b"PAR1\0\0\0\0PAR1", b"x" * 50, b"PAR1" + b"\xff" * 40 + b"\x20\0\0\0PAR1"]
)
def test_file_that_is_no_parquet_file_is_rejected_by_name(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "a.parquet").write_bytes(content)
    error = DataFileNotFoundError if content is None else DataFileError
    with pytest.raises(error, match=r"a\.parquet"):
        data_files(tmp_path).footers(["a.parquet"]).schemas()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_footer_is_read_or_left_to_a_complete_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    file = folder / "a.parquet"
    pq.write_table(pa.table({"long": [1, 2], "text": ["a", "b"]}), file)
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(len(content) // 2, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    footers = read_footers([str(file), str(file)])
    layouts, _ = footers.files()
    for layout in {n for n in layouts.tolist() if n >= 0}:
        for kind in range(6):
            nulls, known, _, _ = footers.column(layout, 0, 2, kind, True)
            assert len(nulls) == len(known) == int(np.sum(layouts == layout))


def test_path_with_a_zero_byte_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="zero byte"):
        read_footers(["a\0b"])
