"""Columns of blobs, written in files of versions 2.0 and 2.1, and carried by all changes of rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedExpressionError
from delta_plugins.lance import open_dataset, write_lance

VERSIONS = ("2.0", "2.1")
BLOB = {"lance-encoding:blob": "true"}


def schema(nullable: bool = True, **metadata: str) -> pa.Schema:
    blob = pa.field("photo", pa.large_binary(), nullable, {**BLOB, **metadata})
    return pa.schema([pa.field("id", pa.int64()), blob, pa.field("text", pa.string())])


def rows(first: int, blobs: list[bytes | None], **options: Any) -> pa.Table:
    ids = [*range(first, first + len(blobs))]
    return pa.table([ids, pa.array(blobs, pa.large_binary()), [f"t{i}" for i in ids]], schema=schema(**options))


def check(where: str, expected: dict[int, bytes | None]) -> None:
    """Compare the blobs of each id, as bytes and as files, and as pylance reads them."""
    dataset = open_dataset(where)
    table = dataset.to_pyarrow_table(["id", "photo"], blobs="bytes")
    ids = table.column("id").to_pylist()
    assert dict(zip(ids, table.column("photo").to_pylist(), strict=True)) == expected
    assert len(ids) == len(expected)
    files = dataset.take_blobs("photo", range(len(ids)))
    assert [None if f is None else f.readall() for f in files] == [expected[i] for i in ids]
    assert not dataset.verify().findings
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    theirs = lance.dataset(where)
    theirs.validate()
    assert theirs.to_table(columns=["id"]).column("id").to_pylist() == ids
    found = theirs.take_blobs("photo", indices=[*range(len(ids))])
    assert [None if f is None else f.readall() for f in found] == [expected[i] for i in ids]


CASES: dict[str, list[bytes | None]] = {
    "mixed": [b"abc", None, b"", b"z" * 70, None, b"\x00"],
    "all null": [None, None, None],
    "all empty": [b"", b""],
    "no null": [b"a", b"bc"],
    "null first": [None, b"a"],
    "one": [b"x" * 100_000],
    "many": [None if i % 7 == 0 else bytes([i % 256]) * (i % 50) for i in range(30_000)],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read_back_by_us_and_by_pylance(tmp_path: Path, version: str, case: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, CASES[case]), file_version=version)
    check(where, dict(enumerate(CASES[case])))


@pytest.mark.parametrize("version", VERSIONS)
def test_same_rows_make_the_same_bytes_however_they_come(tmp_path: Path, version: str) -> None:
    table = rows(0, CASES["many"])
    parts = pa.concat_tables([table.slice(0, 11), table.slice(11)])
    found = []
    for name, some in (("a", table), ("b", table), ("c", parts)):
        write_lance(str(tmp_path / name), some, file_version=version)
        [file] = (tmp_path / name / "data").iterdir()
        found.append(file.read_bytes())
    assert found[0] == found[1]
    check(str(tmp_path / "c"), dict(enumerate(CASES["many"])))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_compaction_and_overwrites_carry_blobs(tmp_path: Path, version: str, stable: bool) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    blobs = CASES["mixed"]
    write_lance(where, rows(0, blobs), file_version=version, max_rows_per_file=2, stable_row_ids=stable)
    lance.write_dataset(rows(6, [b"theirs", None]), where, mode="append")
    write_lance(where, rows(8, [None, b"ours"]), "append")
    expected = {**dict(enumerate(blobs)), 6: b"theirs", 7: None, 8: None, 9: b"ours"}
    check(where, expected)
    open_dataset(where).delete("id in (0, 4)")
    expected = {i: b for i, b in expected.items() if i not in (0, 4)}
    check(where, expected)
    dataset = open_dataset(where)
    done = dataset.compact()
    assert (done["num_removed_fragments"], done["num_added_fragments"]) == (5, 1)
    check(where, expected)
    dataset.cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
    assert len([*(tmp_path / "d" / "data").iterdir()]) == 1
    check(where, expected)
    dataset.overwrite(rows(9, [b"again", b"new"]), "id >= 9")
    check(where, {**expected, 9: b"again", 10: b"new"})
    lance.dataset(where).optimize.compact_files()
    check(where, {**expected, 9: b"again", 10: b"new"})
    open_dataset(where).add_columns({"twice": "id * 2"})
    check(where, {**expected, 9: b"again", 10: b"new"})


def test_blobs_that_are_larger_than_the_memory_of_a_compaction_are_carried(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    blobs: list[bytes | None] = [bytes([i]) * 3_000_000 for i in range(8)]
    write_lance(where, rows(0, blobs), file_version="2.1", max_rows_per_file=2)
    done = open_dataset(where).compact(max_memory=1 << 20)
    assert done["num_added_fragments"] == 1
    check(where, dict(enumerate(blobs)))


def test_column_of_blobs_that_rows_lack_is_null(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, [b"a"]), file_version="2.1")
    write_lance(where, pa.table({"id": [1]}), "append")
    write_lance(where, pa.table({"id": [2]}), "append")
    open_dataset(where).compact()
    check(where, {0: b"a", 1: None, 2: None})


@pytest.mark.parametrize("version", VERSIONS)
def test_null_in_a_required_column_of_blobs_is_rejected(tmp_path: Path, version: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, [b"a", b""], nullable=False), file_version=version)
    check(where, {0: b"a", 1: b""})
    with pytest.raises(SchemaMismatchError, match="photo"):
        write_lance(where, pa.table({"id": [1], "photo": pa.array([None], pa.large_binary())}), "append")


@pytest.mark.parametrize("key", ["compression", "blob-inline-size-threshold", "structural-encoding"])
def test_requests_for_blobs_are_rejected_by_name(tmp_path: Path, key: str) -> None:
    options = {f"lance-encoding:{key}": "1"}
    with pytest.raises(InvalidArgumentError, match=f"'photo'.*lance-encoding:{key}"):
        write_lance(str(tmp_path / "d"), rows(0, [b"a"], **options), file_version="2.1")
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_updates_and_merges_carry_blobs_and_assign_new_ones(tmp_path: Path, version: str, stable: bool) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    blobs = CASES["mixed"]
    dataset = write_lance(where, rows(0, blobs), file_version=version, max_rows_per_file=4, stable_row_ids=stable)
    expected = dict(enumerate(blobs))
    dataset.update({"text": "'changed'"}, predicate="id < 3")
    moved = {i: expected[i] for i in (3, 4, 5, 0, 1, 2)}
    check(where, moved)
    dataset.update({"photo": "X'00FF'"}, predicate="id = 1")
    dataset.update(new_values={"photo": None}, predicate="id = 0")
    dataset.update(new_values={"photo": b"other"}, predicate="id in (4, 5)")
    expected |= {0: None, 1: b"\x00\xff", 4: b"other", 5: b"other"}
    check(where, {i: expected[i] for i in (3, 2, 1, 0, 4, 5)})
    changes = pa.table({"id": [2, 5, 9], "photo": pa.array([b"two", None, b"nine"], pa.binary())})
    done = dataset.merge(changes, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all()
    assert done.execute()["num_target_rows_updated"] == 2
    expected |= {2: b"two", 5: None, 9: b"nine"}
    text = pa.table({"id": [0, 9], "text": ["a", "b"]})
    dataset.merge(text, "target.id = source.id").when_matched_update({"text": "source.text"}).execute()
    dataset.merge(rows(3, [b"three"]), "target.photo = source.photo or target.id = source.id").when_matched_delete(
        "source.id = 3"
    ).execute()
    del expected[3]
    order = open_dataset(where).to_pyarrow_table(["id"]).column("id").to_pylist()
    check(where, {i: expected[i] for i in order})
    lance.dataset(where).merge_insert("id").when_not_matched_insert_all().execute(rows(20, [b"theirs"]))
    check(where, {**{i: expected[i] for i in order}, 20: b"theirs"})


def test_columns_are_computed_of_the_bytes_of_blobs(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [b"abc", None, b""]), file_version="2.1")
    dataset.add_columns({"size": "octet_length(photo)", "one": "1"})
    assert dataset.to_pyarrow_table(["size", "one"]).to_pydict() == {"size": [3, None, 0], "one": [1, 1, 1]}


CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "update": lambda d: d.update({"id": "7"}, predicate="photo is null"),
    "delete": lambda d: d.delete("photo = X'61'"),
    "merge": lambda d: (
        d.merge(rows(0, [b"b"]), "target.id = source.id and target.photo is null").when_matched_delete().execute()
    ),
}


@pytest.mark.parametrize("change", CONDITIONS)
def test_conditions_on_blobs_are_rejected_by_name_and_change_nothing(tmp_path: Path, change: str) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [b"a"]), file_version="2.1")
    files = {p for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(UnsupportedExpressionError, match="'photo' can't be part of a predicate: its values are blobs"):
        CONDITIONS[change](dataset)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == files
