"""The scanner of a scan's own rows does what pyarrow's does, call by call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.scan.interop.scanner_of_scan import ScanScanner

_ROWS = pa.table({"id": list(range(100)), "name": [f"n{i % 7}" for i in range(100)], "x": [i / 4 for i in range(100)]})
_KEPT = pc.field("id") >= 20


@pytest.fixture(scope="module", params=["plain", "encoded"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ds.Dataset:
    path = tmp_path_factory.mktemp("scanner") / "t"
    for start in (0, 50):
        write_deltalake(path, _ROWS.slice(start, 50), mode="append")
    return DeltaTable(path).dataset(encoded=request.param == "encoded")


def _tagged(scanner: ds.Scanner) -> pa.Table:
    return pa.Table.from_batches([tagged.record_batch for tagged in scanner.scan_batches()])


@pytest.mark.parametrize("columns", [None, ["id"], ["x", "id"], ["x", "x"], [], {"twice": pc.field("id") * 2}])
@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.to_table(),
        lambda s: pa.table(s) if hasattr(s, "__arrow_c_stream__") else s.to_table(),
        lambda s: s.to_reader().read_all(),
        lambda s: pa.Table.from_batches(list(s.to_batches())),
        _tagged,
        lambda s: s.head(70),
        lambda s: s.head(0),
        lambda s: s.take([79, 0, 5]),
        lambda s: s.count_rows(),
        lambda s: s.projected_schema,
    ],
)
def test_each_call_returns_what_pyarrows_scanner_returns(
    dataset: ds.Dataset, columns: Any, call: Callable[[ds.Scanner], Any]
) -> None:
    own = dataset.scanner(columns=columns, filter=_KEPT)
    theirs = ds.dataset(_in_order(dataset)).scanner(columns=columns, filter=_KEPT)
    found, expected = call(own), call(theirs)
    assert type(found) is type(expected)
    if isinstance(found, pa.Table):
        assert found.schema.equals(expected.schema)
        assert found.to_pylist() == expected.to_pylist()
    else:
        assert found == expected


def _in_order(dataset: ds.Dataset) -> pa.Table:
    """Return the rows in the order of the files, which later tables list first."""
    return dataset.to_table()


def test_scanner_is_the_scans_own_only_if_nothing_is_left_to_pyarrow(dataset: ds.Dataset) -> None:
    assert isinstance(dataset.scanner(["x", "id"], _KEPT), ScanScanner)
    assert dataset.scanner(["x", "id"], _KEPT).dataset_schema == dataset.schema
    partly = pc.field("id") * 2 > 1
    for columns, kept in ((["x", "x"], _KEPT), ([], _KEPT), ({"a": pc.field("id")}, None), (None, partly)):
        assert type(dataset.scanner(columns, kept)) is ds.Scanner
    assert type(dataset.scanner(filter=_KEPT, use_threads=False)) is ds.Scanner


@pytest.mark.parametrize(
    "rows", [lambda d: d, lambda d: d.scanner(filter=_KEPT), lambda d: d.scanner({"a": pc.field("id")}, _KEPT)]
)
def test_pyarrow_writes_a_dataset_and_its_scanners(
    dataset: ds.Dataset, rows: Callable[[ds.Dataset], Any], tmp_path: Path
) -> None:
    ds.write_dataset(rows(dataset), tmp_path, format="parquet")
    assert ds.dataset(tmp_path).count_rows() == (100 if rows(dataset) is dataset else 80)


def test_scanner_reads_again_for_each_call(dataset: ds.Dataset) -> None:
    scanner = dataset.scanner(filter=_KEPT)
    assert scanner.to_table().num_rows == scanner.count_rows() == scanner.to_reader().read_all().num_rows == 80


def test_unknown_columns_and_rows_are_errors_as_pyarrows(dataset: ds.Dataset) -> None:
    with pytest.raises(pa.ArrowInvalid, match="nothing"):
        dataset.scanner(["nothing"], _KEPT)
    with pytest.raises(IndexError):
        dataset.scanner(filter=_KEPT).take([80])


def test_head_reads_no_file_behind_its_rows(tmp_path: Path) -> None:
    for start in (0, 50):
        write_deltalake(tmp_path, _ROWS.slice(start, 50), mode="append")
    table = DeltaTable(tmp_path)
    last = table.scan(metadata=["_file_path"]).to_table().column("_file_path")[-1].as_py()
    (tmp_path / Path(last).name).unlink()
    assert table.dataset().scanner().head(50).num_rows == 50
