"""Indices that are created: their files, their commits, and the rows that are found by them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from delta_core.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    InvalidArgumentError,
    SpillError,
    UnsupportedFeatureError,
)
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.commit.commits import commit_operation
from delta_plugins.lance.commit.conflicts import is_retryable
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.index import creating, sorting
from delta_plugins.lance.index.listing import list_indices
from delta_plugins.lance.index.sorting import SortedValues

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
KINDS = ["btree", "bitmap", "zonemap"]


def made(root: Path, rows: int = 1000, **options: Any) -> LanceDataset:
    table = pa.table(
        {
            "x": pa.array([None if i % 9 == 0 else i % 40 for i in range(rows)], pa.int32()),
            "s": [None if i % 7 == 0 else {"t": None if i % 5 == 0 else f"t{i % 30}"} for i in range(rows)],
            "n": range(rows),
        }
    )
    return write_lance(str(root), table, max_rows_per_file=300, **options)


def found(dataset: LanceDataset, predicate: str, *, use_indices: bool = True) -> list[int]:
    rows: list[int] = dataset.scan(["n"], predicate, use_indices=use_indices).to_table()["n"].to_pylist()
    return rows


def use(dataset: LanceDataset, predicate: str) -> dict[str, str]:
    return dict(dataset.scan([], predicate).explain().effects)


def names(dataset: LanceDataset) -> list[str]:
    return [i["name"] for i in list_indices(dataset.files)]


def files_below(root: Path) -> set[str]:
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}


# --- rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_are_found_by_a_created_index(tmp_path: Path, kind: Any, is_stable: bool) -> None:
    dataset = made(tmp_path / "d", stable_row_ids=is_stable)
    dataset.delete("n % 13 = 0")
    done = dataset.create_index("x", kind)
    assert done == {"version": dataset.version, "dropped_indices": []}
    for predicate in ("x = 3", "x in (1, 39)", "x is null", "not (x > 2)", "x > 37 and n < 500"):
        assert found(dataset, predicate) == found(dataset, predicate, use_indices=False)
    if kind != "zonemap":
        assert use(dataset, "x = 3")["index 'x_idx'"].startswith("used for 4 of 4 fragments")
    assert not dataset.verify().findings


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_appended_later_are_found(tmp_path: Path, kind: Any) -> None:
    dataset = made(tmp_path / "d")
    dataset.create_index("x", kind)
    dataset = write_lance(
        str(tmp_path / "d"), pa.table({"x": pa.array([3, None], pa.int32()), "n": [-1, -2]}), "append"
    )
    assert found(dataset, "x = 3")[-1] == -1
    assert found(dataset, "x is null")[-1] == -2


@pytest.mark.parametrize("kind", KINDS)
def test_field_of_a_struct_is_indexed_and_is_null_where_the_struct_is(tmp_path: Path, kind: Any) -> None:
    dataset = made(tmp_path / "d")
    dataset.create_index("s.t", kind)
    assert names(dataset) == ["s.t_idx"]
    for predicate in ("s.t = 't3'", "s.t is null", "not (s.t > 't2')"):
        assert found(dataset, predicate) == found(dataset, predicate, use_indices=False) != []
    if kind != "zonemap":
        assert use(dataset, "s.t is null")["index 's.t_idx'"].startswith("used")


def test_zones_without_a_row_are_left_out(tmp_path: Path) -> None:
    dataset = write_lance(str(tmp_path / "d"), pa.table({"n": range(50_000)}), max_rows_per_file=20_000)
    dataset.delete("n < 100 or n between 8100 and 8300")
    dataset.create_index("n", "zonemap")
    assert found(dataset, "n = 8192 or n = 8400") == [8400]
    assert use(dataset, "n = 20001")["index 'n_idx'"] == "used for 3 of 3 fragments: 8192 rows"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1])
def test_index_of_few_rows_is_created(tmp_path: Path, kind: Any, rows: int) -> None:
    dataset = write_lance(str(tmp_path / "d"), pa.table({"n": pa.array(range(rows), pa.int64())}))
    dataset.create_index("n", kind)
    assert found(dataset, "n = 0") == list(range(rows))
    dataset = write_lance(str(tmp_path / "d"), pa.table({"n": [0, 5]}), "append")
    assert found(dataset, "n = 0") == [*range(rows), 0]


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int8": (pa.int8(), [-3, 5]), "uint64": (pa.uint64(), [0, 2**64 - 1]), "float16": (pa.float16(), [np.float16(1.5)]),
    "float": (pa.float32(), [float("nan"), -0.0, 0.0, float("-inf")]), "bool": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "b", "é"]), "large text": (pa.large_string(), ["b"]),
    "bytes": (pa.binary(), [b"", b"\xff"]),
    "large bytes": (pa.large_binary(), [b"b"]), "date": (pa.date32(), [dt.date(1960, 1, 1)]),
    "date64": (pa.date64(), [dt.date(1960, 1, 1)]), "time": (pa.time64("ns"), [dt.time(3)]),
    "time32": (pa.time32("s"), [dt.time(3)]), "moment": (pa.timestamp("us", "UTC"), [dt.datetime(1960, 1, 1)]),
    "moment in ns": (pa.timestamp("ns"), [dt.datetime(2160, 1, 1)]),
    "duration": (pa.duration("ms"), [dt.timedelta(-1)]),
    "decimal": (pa.decimal128(38, 2), [Decimal("-1.25")]), "wide decimal": (pa.decimal256(50, 2), [Decimal("-1.25")]),
    "fixed bytes": (pa.binary(3), [b"abc"]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.peer
def test_index_of_each_type_is_read_by_pylance(tmp_path: Path, name: str, kind: Any) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    of, values = VALUES[name]
    column = pa.array([*values, None] * 50, of)
    dataset = write_lance(str(tmp_path / "d"), pa.table({"x": column, "n": range(len(column))}))
    dataset.create_index("x", kind)
    peer = lance.dataset(tmp_path / "d")
    assert [(i["name"], i["type"].lower()) for i in peer.list_indices()] == [("x_idx", kind)]
    for predicate in ("x is null", "x is not null"):
        expected = peer.to_table(["n"], filter=predicate, use_scalar_index=False)["n"].to_pylist()
        assert peer.to_table(["n"], filter=predicate)["n"].to_pylist() == expected != []
    assert "ScalarIndexQuery" in peer.scanner(filter="x is null").explain_plan()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.peer
def test_pylance_uses_created_indices_and_finds_the_same_rows(tmp_path: Path, kind: Any) -> None:
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    dataset = made(tmp_path / "d", rows=20_000, stable_row_ids=True)
    dataset.delete("n % 13 = 0")
    for column in ("x", "s.t", "n"):
        dataset.create_index(column, kind)
    dataset.update({"x": "3"}, predicate="n % 31 = 0")
    peer = lance.dataset(tmp_path / "d")
    for predicate in ("x = 3", "s.t = 't11'", "n > 15000", "x is null", "s.t in ('t1', 't3') and n < 9000"):
        expected = peer.to_table(["n"], filter=predicate, use_scalar_index=False)["n"].to_pylist()
        assert sorted(peer.to_table(["n"], filter=predicate)["n"].to_pylist()) == sorted(expected)
        assert sorted(found(dataset, predicate)) == sorted(expected)
        assert "ScalarIndexQuery" in peer.scanner(filter=predicate).explain_plan()
    peer.optimize.optimize_indices()
    peer.optimize.compact_files()
    after = open_dataset(str(tmp_path / "d"))
    assert sorted(found(after, "x = 3")) == sorted(found(after, "x = 3", use_indices=False))


# --- order ---------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.floats(width=32), st.sampled_from([0.0, -0.0])), max_size=40), max_size=80
    ),
    st.integers(1, 4000),
)
def test_values_are_sorted_in_any_memory(batches: list[list[Any]], memory: int) -> None:
    expected: list[tuple[float | None, int]] = []
    with SortedValues(pa.float32(), memory) as values:
        for batch in batches:
            ids = np.arange(len(expected), len(expected) + len(batch), dtype=np.uint64)
            values.add(pa.array(batch, pa.float32()), pa.array(ids))
            expected += list(zip(batch, ids.tolist(), strict=True))
        rows = [r for b in values.batches() for r in zip(*(c.to_pylist() for c in b.columns), strict=True)]

    def order(row: tuple[float | None, int]) -> tuple[bool, int]:
        bits = 0 if row[0] is None else int(np.float32(row[0]).view(np.int32))
        return row[0] is not None, bits ^ 0x7FFFFFFF if bits < 0 else bits

    wanted = sorted(expected, key=order)
    assert [i for _, i in rows] == [i for _, i in wanted]
    assert np.array_equal(
        np.array([v for v, _ in rows], float), np.array([v for v, _ in wanted], float), equal_nan=True
    )


def test_runs_that_were_merged_are_merged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorting, "MOST_RUNS", 3)
    numbers = np.random.default_rng(1).integers(0, 50, 20_000)
    with SortedValues(pa.int64(), 4 * 16 * 700) as values:
        for part in np.split(numbers, 40):
            values.add(pa.array(part), pa.array(np.arange(len(part), dtype=np.uint64)))
        assert max(level for level, _ in values._runs) >= 2
        batches = list(values.batches())
    assert np.array_equal(np.concatenate([b.column(0).to_numpy() for b in batches]), np.sort(numbers))
    assert max(b.num_rows for b in batches) < 10_000


def test_index_is_the_same_in_little_memory(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d", rows=30_000)
    found_files = []
    for memory in (1, 256 << 20):
        dataset.create_index("s.t", "bitmap", replace=True, max_memory=memory)
        [path] = (tmp_path / "d" / "_indices").glob(f"*{list_indices(dataset.files)[0]['uuid']['uuid'].hex()[:8]!s}*/*")
        found_files.append(path.read_bytes())
    assert found_files[0] == found_files[1]


def test_missing_temporary_folder_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = made(tmp_path / "d")
    before = files_below(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(SpillError, match="nowhere"):
        dataset.create_index("x", "btree", max_memory=1)
    assert files_below(tmp_path) == before


# --- commits -------------------------------------------------------------------------------


def test_index_is_replaced_or_dropped_by_its_name(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d")
    dataset.create_index("x", "btree")
    with pytest.raises(InvalidArgumentError, match="replace=True"):
        dataset.create_index("x", "bitmap")
    with pytest.raises(InvalidArgumentError, match="another column"):
        dataset.create_index("n", "bitmap", name="x_idx", replace=True)
    assert dataset.create_index("x", "bitmap", replace=True)["dropped_indices"] == []
    dataset.create_index("x", "zonemap", name="zones of x")
    assert names(dataset) == ["x_idx", "zones of x"]
    dataset.drop_index("x_idx")
    assert names(dataset) == ["zones of x"]
    with pytest.raises(InvalidArgumentError, match="the indices are 'zones of x'"):
        dataset.drop_index("x_idx")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (("y", "btree"), ColumnNotFoundError, "'y'"),
        (("x", "vector"), InvalidArgumentError, "btree, bitmap, zonemap"),
        (("s", "btree"), UnsupportedFeatureError, "struct"),
        (("l", "zonemap"), UnsupportedFeatureError, "list"),
        (("x", "btree", ""), InvalidArgumentError, "not empty"),
    ],
    ids=["column", "kind", "struct", "list", "name"],
)
def test_index_that_can_not_be_made_is_rejected_and_leaves_nothing(
    tmp_path: Path, call: tuple[Any, ...], error: type[Exception], text: str
) -> None:
    rows = pa.table({"x": [1], "s": [{"t": 1}], "l": [[1]]})
    dataset = write_lance(str(tmp_path / "d"), rows)
    before = files_below(tmp_path)
    with pytest.raises(error, match=text):
        dataset.create_index(*call)
    assert files_below(tmp_path) == before


def test_failure_while_an_index_is_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = made(tmp_path / "d")
    before = files_below(tmp_path)
    monkeypatch.setattr("delta_plugins.lance.index.creating.DataFileWriter.finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dataset.create_index("x", "btree")
    assert files_below(tmp_path) == before


def test_index_is_made_again_if_rows_moved_meanwhile(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d")
    made_for = creating.created_index(dataset, "x", "btree", None, False, 1 << 20)
    open_dataset(str(tmp_path / "d")).compact()
    before = files_below(tmp_path) - {p[len("d/") :] for p in made_for.paths}
    with pytest.raises(CommitConflictError, match="rewrite") as caught:
        commit_operation(dataset.storage, made_for.operation, dataset.manifest, written=made_for.paths)
    assert is_retryable(caught.value)
    assert not any("_indices" in p for p in files_below(tmp_path))
    assert len(before) >= len(files_below(tmp_path))
    dataset.create_index("x", "btree")
    assert use(dataset, "x = 3")["index 'x_idx'"].startswith("used for 1 of 1")


def test_index_lands_after_rows_were_appended_deleted_and_updated_meanwhile(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d")
    made_for = creating.created_index(dataset, "x", "btree", None, False, 1 << 20)
    other = open_dataset(str(tmp_path / "d"))
    other.delete("n < 20")
    other.update({"x": "3"}, predicate="n = 77")
    write_lance(str(tmp_path / "d"), pa.table({"x": pa.array([3], pa.int32()), "n": [-1]}), "append")
    commit_operation(dataset.storage, made_for.operation, dataset.manifest, written=made_for.paths)
    after = open_dataset(str(tmp_path / "d"))
    assert found(after, "x = 3") == found(after, "x = 3", use_indices=False)
    assert {-1, 77} <= {*found(after, "x = 3")}
    assert use(after, "x = 3")["index 'x_idx'"].startswith("used for 4 of 6")


def test_cleanup_deletes_the_files_of_indices_that_no_version_has(tmp_path: Path) -> None:
    dataset = made(tmp_path / "d")
    dataset.create_index("x", "btree")
    dataset.create_index("x", "bitmap", replace=True)
    dataset.cleanup(keep_versions=1)
    assert {p.name for p in (tmp_path / "d" / "_indices").rglob("*.lance")} == {"bitmap_page_lookup.lance"}
