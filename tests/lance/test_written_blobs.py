"""Columns of blobs, written in files of versions 2.0 and 2.1, and carried by deletes, compaction and overwrites."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
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


@pytest.mark.parametrize("change", ["update", "merge"])
def test_update_and_merge_are_rejected_by_name_and_change_nothing(tmp_path: Path, change: str) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, [b"a"]), file_version="2.1")
    files = {p for p in tmp_path.rglob("*") if p.is_file()}
    merge = dataset.merge(rows(0, [b"b"]), "target.id = source.id").when_matched_update_all()
    with pytest.raises(UnsupportedFeatureError, match=rf"'photo' has blobs: {change.upper()}"):
        dataset.update({"id": "7"}) if change == "update" else merge.execute()
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == files
