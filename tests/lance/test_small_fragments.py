"""Scans of datasets with many small fragments: their rows are joined to batches."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_core.errors import DataFileNotFoundError, DeltaError
from delta_plugins.lance.files import SmallFilesReader
from delta_plugins.lance.files.rows import page_rows
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.version_files import VersionFiles
from tests.lance.made_arrays import CASES, MISSING, made_array

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


def write(folder: Path, version: str, **options: Any) -> tuple[str, pa.Table]:
    n = 300
    table = pa.table(
        {
            "i": range(n),
            "s": [None if i % 3 == 0 else f"text {i}" for i in range(n)],
            "l": [list(range(i % 4)) for i in range(n)],
            "d": pa.array([f"w{i // 10 % 3}" for i in range(n)]).dictionary_encode(),
        }
    )
    lance.write_dataset(table, str(folder), data_storage_version=version, max_rows_per_file=3, **options)
    return str(folder), table


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_rows_of_small_fragments_are_joined_in_order(tmp_path: Path, version: str, stable: bool) -> None:
    uri, table = write(tmp_path / "d", version, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("i % 7 = 2 or i between 90 and 101")
    dataset = open_dataset(uri)
    expected = [i for i in range(300) if i % 7 != 2 and not 90 <= i <= 101]
    batches = list(dataset.scan(metadata=["_rowid", "_rowaddr"]).batches())
    assert len(batches) < len(dataset.fragments()) / 30
    found = pa.Table.from_batches(batches)
    assert found.select(table.column_names).to_pylist() == table.take(expected).to_pylist()
    by_pylance = lance.dataset(uri).to_table(with_row_id=True, with_row_address=True)
    for name in ("_rowid", "_rowaddr"):
        assert found[name].to_pylist() == by_pylance[name].to_pylist()
    assert sum(b.num_rows for b in dataset.scan([]).batches()) == len(expected)
    some = dataset.scan(["i"], "i > 100 and s is not null")
    assert some.to_table()["i"].to_pylist() == [i for i in expected if i > 100 and i % 3]
    assert some.count() == some.to_table().num_rows


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 100])
def test_joined_batches_have_at_most_the_requested_rows(tmp_path: Path, batch_rows: int) -> None:
    uri, table = write(tmp_path / "d", "2.2")
    batches = list(open_dataset(uri).scan(batch_rows=batch_rows).batches())
    assert max(b.num_rows for b in batches) <= batch_rows
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("ranges", [[[0, 5]], [[2, 3]], [[0, 0]], [[4, 5]]])
@pytest.mark.parametrize("starts", [[0, 5], [0, 9]])
def test_rows_of_one_page_are_those_that_it_has(ranges: list[list[int]], starts: list[int]) -> None:
    requested, one = np.array(ranges), np.array(starts)
    two = np.array([0, 0, starts[1]])  # an empty page before it
    expected = [p.ranges.tolist() for p in page_rows(requested, two)]
    assert [p.ranges.tolist() for p in page_rows(requested, one)] == expected


def read_one_by_one(*_: Any) -> None:
    """Take the place of `SmallFilesReader.read`: no files are read together."""


def together_only(self: VersionFiles, fragment: int, file: int) -> Any:
    raise AssertionError(f"file {file} of fragment {fragment} is opened by itself")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("nulls", ["none", "some", "all", "runs"])
def test_small_files_of_every_type_have_the_written_rows(tmp_path: Path, version: str, nulls: str) -> None:
    cases = [c for c in CASES if c not in MISSING[version]]
    table = pa.table({"n": range(40), **{c: made_array(c, nulls, 40) for c in cases}})
    uri = str(tmp_path / "d")
    lance.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=4)
    lance.dataset(uri).delete("n % 5 = 3")
    found = open_dataset(uri).to_pyarrow_table()
    found.validate(full=True)
    expected = table.take([i for i in range(40) if i % 5 != 3])
    for case in table.column_names:
        assert found[case].to_pylist() == expected[case].to_pylist(), case


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_small_files_are_not_opened_one_by_one(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, table = write(tmp_path / "d", version)
    lance.dataset(uri).add_columns({"twice": "i * 2"})
    lance.dataset(uri).delete("i % 3 = 1")
    monkeypatch.setattr(VersionFiles, "open_file", together_only)
    found = open_dataset(uri).to_pyarrow_table()
    assert found["i"].to_pylist() == [i for i in range(300) if i % 3 != 1]
    assert found["twice"].to_pylist() == [2 * i for i in range(300) if i % 3 != 1]
    assert found["s"].to_pylist() == [table["s"][i].as_py() for i in range(300) if i % 3 != 1]


def outcome(uri: str) -> Any:
    """Return the rows of a dataset, or the error that reading it raises."""
    try:
        table = open_dataset(uri).to_pyarrow_table()
    except DeltaError as e:
        return type(e), str(e)
    table.validate(full=True)
    return table.to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("seed", range(3000 if os.environ.get("DELTA_CORE_LONG") else 40))
def test_damaged_small_files_are_read_or_rejected_as_one_by_one(
    small_files: dict[str, Path], seed: int, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage of any kind: the file's own reader decides whether it can be read, and names the file if not."""
    choose = random.Random(seed)
    folder = small_files[version]
    chosen = choose.choice(sorted((folder / "data").iterdir()))
    before = chosen.read_bytes()
    data = bytearray(before)
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(data))
        data[at] = choose.choice([0, 255, data[at] ^ 1 << choose.randrange(8), choose.randrange(256)])
    if choose.random() < 0.2:
        del data[choose.randrange(len(data)) :]
    try:
        chosen.write_bytes(data)
        together = outcome(str(folder))
        with monkeypatch.context() as patch:
            patch.setattr(SmallFilesReader, "read", read_one_by_one)
            assert together == outcome(str(folder))
    finally:
        chosen.write_bytes(before)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_missing_small_file_is_reported_by_name(tmp_path: Path, version: str) -> None:
    uri, _ = write(tmp_path / "d", version)
    missing = sorted((tmp_path / "d" / "data").iterdir())[50]
    missing.unlink()
    with pytest.raises(DataFileNotFoundError, match=missing.name):
        open_dataset(uri).to_pyarrow_table()


@pytest.fixture(scope="module")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("small")
    for version in ("2.1", "2.2"):
        table = pa.table({c: made_array(c, "some", 12) for c in ("int64", "string", "list", "bool")})
        lance.write_dataset(table, str(folder / version), data_storage_version=version, max_rows_per_file=3)
    return {version: folder / version for version in ("2.1", "2.2")}
