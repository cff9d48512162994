"""Rows for a predicate are the same with indices, without them, and as pylance returns them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import DataFileError, DataFileNotFoundError
from delta_plugins.lance.dataset import LanceDataset
from delta_plugins.lance.format import open_dataset
from delta_plugins.lance.write.write_lance import write_lance
from tests.example_counts import IS_LONG

lance = pytest.importorskip("lance", reason="pylance is not installed")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


NAN = float("nan")
KINDS = {
    "i": "BTREE", "f": "BTREE", "s": "BITMAP", "b": "BITMAP", "z": "ZONEMAP", "y": "ZONEMAP", "l": "LABEL_LIST",
    "w": "BLOOMFILTER", "v": "BLOOMFILTER",
}  # fmt: skip
SCHEMA = pa.schema(
    {
        "n": pa.int64(), "i": pa.int32(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "z": pa.int64(),
        "y": pa.float64(), "l": pa.list_(pa.string()), "w": pa.string(), "v": pa.int32(),
    }
)  # fmt: skip


class Rows:
    """Makes rows with nulls, NaN and few distinct values; ``z`` and ``n`` rise."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.made = 0

    def table(self, count: int) -> pa.Table:
        rows = [self.row() for _ in range(count)]
        return pa.Table.from_pylist(rows, SCHEMA)

    def row(self) -> dict[str, Any]:
        chance = self.chance
        self.made += 1
        labels = [chance.choice(["a", "b", "c", None]) for _ in range(chance.randrange(3))]
        values = {
            "i": chance.randrange(40), "f": chance.choice([NAN, chance.random() * 100, 1.5]),
            "s": f"s{chance.randrange(9)}", "b": chance.random() < 0.5, "z": self.made // 3,
            "y": chance.choice([self.made / 7, self.made / 7, NAN]), "l": labels, "w": f"w{chance.randrange(400)}",
            "v": chance.randrange(400),
        }  # fmt: skip
        return {"n": self.made} | {k: None if chance.random() < 0.1 else v for k, v in values.items()}


class Predicates:
    """Makes predicates that both dialects have."""

    def __init__(self, chance: Random, most: int) -> None:
        self.chance = chance
        self.most = most

    def any(self, depth: int = 2) -> str:
        chance = self.chance
        kind = chance.randrange(6) if depth else 0
        if kind in (1, 2):
            return f"({self.any(depth - 1)} {('and', 'or')[kind - 1]} {self.any(depth - 1)})"
        if kind == 3:
            return f"(not {self.any(depth - 1)})"
        return self.one()

    def one(self) -> str:
        chance = self.chance
        column = chance.choice(["n", "i", "f", "s", "b", "z", "y", "l", "w", "v"])
        if column == "l":
            return f"array_contains(l, '{chance.choice('abcd')}')"
        if chance.random() < 0.2:
            return f"({column} is {chance.choice(['', 'not '])}null)"
        if column == "b":
            return chance.choice(["b", "(not b)", "(b = true)"])
        value = self.value(column)
        if chance.random() < 0.2:
            return f"({column} in ({value}, {self.value(column)}))"
        return f"({column} {chance.choice(['=', '=', '<', '>', '<=', '>=', '!='])} {value})"

    def value(self, column: str) -> str:
        chance = self.chance
        if column in "sw":
            return f"'{column}{chance.randrange(10 if column == 's' else 400)}'"
        if column in "fy":
            return repr(chance.choice([1.5, chance.random() * 100]))
        return str(chance.randrange({"i": 42, "v": 400, "n": self.most, "z": self.most // 3 + 1}[column]))


def answered(dataset: LanceDataset, predicate: str, use_indices: bool) -> list[tuple[int, int]]:
    scan = dataset.scan(["n"], predicate, metadata=["_rowaddr"], use_indices=use_indices)
    table = scan.to_table()
    assert scan.count() == table.num_rows
    return list(zip(table["n"].to_pylist(), table["_rowaddr"].to_pylist(), strict=True))


def check(path: Path, predicates: Predicates, count: int) -> int:
    """Check predicates on the latest version; returns for how many of them an index was used."""
    dataset, peer = open_dataset(str(path)), lance.dataset(path)
    used = 0
    for _ in range(count):
        predicate = predicates.any()
        found = answered(dataset, predicate, True)
        assert found == answered(dataset, predicate, False), predicate
        if "array_contains" not in predicate or "not" not in predicate:
            # for pylance, a list with null certainly lacks what is not in it
            expected = peer.to_table(["n"], filter=predicate, use_scalar_index=False)["n"].to_pylist()
            assert sorted(n for n, _ in found) == sorted(expected), predicate
        used += any(text.startswith("used") for _, text in dataset.scan([], predicate).explain().effects)
    return used


def changes(path: Path, rows: Rows) -> list[Callable[[], Any]]:
    chance = rows.chance

    def delete() -> None:
        lance.dataset(path).delete(f"n % 11 = {chance.randrange(11)}")

    def update() -> None:
        lance.dataset(path).update({"i": "7", "s": "'s1'"}, where=f"n % 17 = {chance.randrange(17)}")

    def update_elsewhere() -> None:
        lance.dataset(path).update({"f": "2.5"}, where=f"n % 19 = {chance.randrange(19)}")

    def append() -> None:
        lance.write_dataset(rows.table(150), path, mode="append")

    def compact() -> None:
        lance.dataset(path).optimize.compact_files(target_rows_per_fragment=1000)

    def index_rest() -> None:
        lance.dataset(path).optimize.optimize_indices()

    def merge() -> None:
        new = pa.concat_tables([rows.table(20), lance.dataset(path).to_table().slice(3, 20)])
        lance.dataset(path).merge_insert("n").when_matched_update_all().when_not_matched_insert_all().execute(new)

    return [delete, update, update_elsewhere, append, compact, index_rest, merge]


def indexed(path: Path, rows: Rows, **options: Any) -> None:
    dataset = lance.write_dataset(rows.table(700), path, max_rows_per_file=300, **options)
    for column, kind in KINDS.items():
        more = {"rows_per_zone": 64} if kind == "ZONEMAP" else {}
        dataset.create_scalar_index(column, kind, **more)


@pytest.mark.parametrize("seed", range(40 if IS_LONG else 2))
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_are_the_same_with_and_without_indices_after_changes(tmp_path: Path, is_stable: bool, seed: int) -> None:
    rows = Rows(Random(seed))
    version = rows.chance.choice(["2.0", "2.1", "2.2"])
    path = tmp_path / "t"
    indexed(path, rows, enable_stable_row_ids=is_stable, data_storage_version=version)
    assert check(path, Predicates(rows.chance, rows.made), 20) >= 5
    for _ in range(6):
        rows.chance.choice(changes(path, rows))()
        check(path, Predicates(rows.chance, rows.made), 12)


def our_changes(path: Path, rows: Rows) -> list[Callable[[], Any]]:
    chance = rows.chance

    def create() -> None:
        kinds: list[Any] = ["btree", "bitmap", "zonemap"]
        open_dataset(str(path)).create_index(chance.choice("ifsbzy"), chance.choice(kinds), replace=True)

    def merge() -> None:
        new = pa.concat_tables([rows.table(20), open_dataset(str(path)).to_pyarrow_table().slice(3, 20)])
        (
            open_dataset(str(path))
            .merge(new, "target.n = source.n")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    return [
        create,
        merge,
        lambda: open_dataset(str(path)).delete(f"n % 11 = {chance.randrange(11)}"),
        lambda: open_dataset(str(path)).update({"i": "7", "z": "0"}, predicate=f"n % 17 = {chance.randrange(17)}"),
        lambda: write_lance(str(path), rows.table(150), "append"),
        lambda: open_dataset(str(path)).compact(target_rows=1000),
    ]


@pytest.mark.parametrize("seed", range(40 if IS_LONG else 2))
@pytest.mark.parametrize("is_stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_are_the_same_with_and_without_created_indices_after_changes(
    tmp_path: Path, is_stable: bool, seed: int
) -> None:
    rows = Rows(Random(seed))
    path = tmp_path / "t"
    version = rows.chance.choice(["2.0", "2.1", "2.2"])
    dataset = write_lance(
        str(path), rows.table(700), max_rows_per_file=300, stable_row_ids=is_stable, file_version=version
    )
    kinds: dict[str, Any] = {"i": "btree", "f": "btree", "s": "bitmap", "b": "bitmap", "z": "zonemap", "y": "zonemap"}
    for column, kind in kinds.items():
        dataset.create_index(column, kind)
    assert check(path, Predicates(rows.chance, rows.made), 20) > 0
    check_peer(path, Predicates(rows.chance, rows.made), 20)
    for _ in range(6):
        rows.chance.choice([*changes(path, rows), *our_changes(path, rows)])()
        check(path, Predicates(rows.chance, rows.made), 12)
        check_peer(path, Predicates(rows.chance, rows.made), 12)
        assert not open_dataset(str(path)).verify().findings


def check_peer(path: Path, predicates: Predicates, count: int) -> None:
    """Check that pylance finds the same rows with the indices and without them."""
    peer = lance.dataset(path)
    for _ in range(count):
        predicate = predicates.any()
        found, expected = (
            peer.to_table(["n"], filter=predicate, use_scalar_index=used)["n"].to_pylist() for used in (True, False)
        )
        if " f " not in predicate and "(f " not in predicate and "y " not in predicate:
            # pylance compares NaN in another way with indices of its own, too
            assert sorted(found) == sorted(expected), predicate


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP"])
def test_index_finds_zeros_of_both_signs_and_nan(tmp_path: Path, kind: str) -> None:
    values = [0.0, -0.0, NAN, -NAN, None, 1.0, -1.0, float("inf")] + [float(i) for i in range(2, 500)]
    table = pa.table({"x": pa.array(values, pa.float64()), "n": range(len(values))})
    dataset = lance.write_dataset(table, tmp_path / "t")
    if kind != "BITMAP":
        dataset.create_scalar_index("x", kind, **({"rows_per_zone": 4} if kind == "ZONEMAP" else {}))
    else:
        dataset.create_scalar_index("x", kind)
    found = open_dataset(str(tmp_path / "t"))
    for predicate, expected in {
        "x = 0": {0, 1}, "x = -0.0": {0, 1}, "x in (0, 1)": {0, 1, 5}, "x < 0": {6}, "x <= 0": {0, 1, 6},
        "x = double('NaN')": {2, 3}, "x > 498": {2, 3, 7, len(values) - 1}, "x is null": {4}, "not (x < 499)":
        {2, 3, 7, len(values) - 1}, "x > 1 and x < 3": {8}, "x <=> null": {4},
    }.items():  # fmt: skip
        scan = found.scan(["n"], predicate)
        assert set(scan.to_table()["n"].to_pylist()) == expected, predicate


def test_index_of_a_field_of_a_struct_is_used(tmp_path: Path) -> None:
    rows = [{"s": None if i % 5 == 0 else {"x": None if i % 7 == 0 else i % 50}, "n": i} for i in range(1000)]
    schema = pa.schema({"s": pa.struct({"x": pa.int64()}), "n": pa.int64()})
    lance.write_dataset(pa.Table.from_pylist(rows, schema), tmp_path / "t").create_scalar_index("s.x", "BTREE")
    found = open_dataset(str(tmp_path / "t"))
    for predicate in ("s.x = 3", "s.x is null", "not (s.x > 4)"):
        assert answered(found, predicate, True) == answered(found, predicate, False)
        assert dict(found.scan([], predicate).explain().effects)["index 's.x_idx'"].startswith("used for 1 of 1")


def test_predicate_that_may_fail_uses_no_index(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1, 2, 3], "s": ["1", "2", "a"]}), tmp_path / "t").create_scalar_index(
        "x", "BTREE"
    )
    scan = open_dataset(str(tmp_path / "t")).scan([], "x = 1 and cast(s as int) = 1")
    assert dict(scan.explain().effects) == {"index 'x_idx'": "not used: the predicate may fail for a row"}


def test_damaged_index_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": range(100)}), tmp_path / "t").create_scalar_index("x", "BTREE")
    [path] = tmp_path.glob("t/_indices/*/page_data.lance")
    path.write_bytes(path.read_bytes()[:-20])
    dataset = open_dataset(str(tmp_path / "t"))
    with pytest.raises(DataFileError, match="page_data"):
        dataset.count("x = 3")
    path.unlink()
    with pytest.raises(DataFileNotFoundError, match="use_indices=False"):
        dataset.count("x = 3")
    assert dataset.scan([], "x = 3", use_indices=False).count() == 1
