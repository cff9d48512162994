"""Splits of a dataset: all rows in one of them each, whatever their size, deletions, indices and the predicate."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from delta_core.expressions.filters import to_expression
from delta_plugins.lance.format import open_dataset
from tests.example_counts import IS_LONG, examples
from tests.lance.recorded_files import FOLDER, datasets

FIXTURES = Path(__file__).parent / "fixtures"


def joined(dataset: Any, split_bytes: int, **arguments: Any) -> pa.Table:
    splits = dataset.plan_splits(split_bytes, arguments.get("predicate")).to_pylist()
    scans = [dataset.scan_split(split, **arguments) for split in splits]
    found = [s.to_table() for s in scans]
    assert [s.count() for s in scans] == [t.num_rows for t in found]
    return pa.concat_tables([dataset.scan(**arguments).schema.empty_table(), *found])


@pytest.mark.golden
@pytest.mark.parametrize("name", datasets() if IS_LONG else datasets()[::5])
def test_splits_of_recorded_datasets_are_their_rows_in_order(name: str) -> None:
    if FOLDER is None or "blob" in name:
        pytest.skip("read as descriptors elsewhere")
    try:
        dataset = open_dataset(str(FOLDER / name))
        rows = dataset.scan(metadata=["_rowaddr"]).to_table()
    except Exception:  # noqa: BLE001 (test_corpus checks which can't be read)
        pytest.skip("a dataset that can't be read")
    for split_bytes in (1, 1 << 40):
        assert joined(dataset, split_bytes, metadata=["_rowaddr"]).equals(rows)


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A dataset with large and small fragments, deleted rows, and an index on one column."""
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    place = str(tmp_path_factory.mktemp("lance") / "ranges")
    rows = pa.table({"i": range(30_000), "k": [i % 97 for i in range(30_000)], "s": [f"{i:07}" for i in range(30_000)]})
    lance.write_dataset(rows.slice(0, 20_000), place)
    for start in (20_000, 20_010, 20_500):
        lance.write_dataset(rows.slice(start, 10 if start == 20_000 else 490), place, mode="append")
    lance.write_dataset(rows.slice(21_000), place, mode="append")
    found = lance.dataset(place)
    found.create_scalar_index("k", "BTREE")
    found.delete("i % 5 = 0 or (i > 9000 and i < 9500)")
    return open_dataset(place)


@given(data=st.data())
@settings(max_examples=examples(25), deadline=None)
def test_splits_of_any_size_are_the_rows_of_a_scan(ranges: Any, data: st.DataObject) -> None:
    split_bytes = data.draw(st.integers(1, 1 << 20))
    text = data.draw(st.sampled_from([None, "k = 3", "i > 8990 and i < 9600", "s >= '0020400' and k < 50", "i < 0"]))
    predicate = None if text is None else to_expression(text, ranges.schema)
    columns = data.draw(st.sampled_from([None, ["s"], ["k", "i"]]))
    found = joined(ranges, split_bytes, columns=columns, predicate=predicate)
    assert found.equals(ranges.scan(columns, predicate).to_table())


def test_large_fragments_are_divided_and_small_ones_joined(ranges: Any) -> None:
    splits = ranges.plan_splits(100_000)
    first, last = (splits.column(n).to_pylist() for n in ("first_fragment", "last_fragment"))
    assert first.count(0) > 1, "the large fragment is read in ranges of its rows"
    assert any(a < b for a, b in zip(first, last, strict=True)), "small fragments are read together"
    whole = ranges.plan_splits(1 << 40)
    assert whole.num_rows == 1
    assert whole.column("size_bytes").to_pylist() == [ranges.stats().size_bytes]


def test_number_of_splits_does_not_depend_on_small_fragments(ranges: Any) -> None:
    assert ranges.plan_splits(1 << 40).num_rows == 1 < len(ranges.fragments())


def test_split_reads_no_rows_of_other_splits(ranges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    files = type(ranges.files)
    before = files.open_file
    monkeypatch.setattr(files, "open_file", lambda self, f, n: (opened.append(f), before(self, f, n))[1])
    splits = ranges.plan_splits(100_000).to_pylist()
    last = ranges.scan_split(splits[-1], ["i"]).to_table()
    assert last.num_rows
    assert set(opened) == set(range(splits[-1]["first_fragment"], splits[-1]["last_fragment"] + 1))


@pytest.mark.parametrize("name", ["plain", "stable"])
def test_scan_of_a_split_is_pickled(name: str) -> None:
    dataset = open_dataset(str(FIXTURES / name))
    [split] = dataset.plan_splits(1 << 40).to_pylist()
    scan = dataset.scan_split(split, predicate="id > 5")
    assert pickle.loads(pickle.dumps(scan)).to_table().equals(scan.to_table())  # our own bytes
