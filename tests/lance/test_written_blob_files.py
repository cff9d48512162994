"""Blobs of the extension type, which version 2.2 has: in the data file, packed beside it, or in files of their own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import convert
from delta_core.errors import InvalidArgumentError, SchemaError, SchemaMismatchError, UnsupportedFeatureError
from delta_plugins.lance import open_dataset, write_lance
from delta_plugins.lance.schema import BLOB_VALUES
from tests.lance.blob_datasets import EXTENSION, LIMITS, check_blobs

Blobs = list[bytes | None]

#: Blobs of each kind, at the limits of them, and two packed files.
MIXED: Blobs = [b"abc", None, b"", b"i" * 10, b"p" * 11, b"q" * 100, b"d" * 101, b"r" * 60, b"e" * 300, None, b"z"]
CASES: dict[str, Blobs] = {
    "mixed": MIXED,
    "all null": [None] * 3,
    "all empty": [b""] * 2,
    "no null": [b"a", b"bc"],
    "inline alone": [bytes([i % 256]) * (i % 10) for i in range(30_000)],
    "packed alone": [b"p" * 50] * 4,
    "own files alone": [b"d" * 200] * 3,
}


def rows(first: int, blobs: Blobs, metadata: dict[str, str] | None = None, nullable: bool = True) -> pa.Table:
    ids = [*range(first, first + len(blobs))]
    field = pa.field("photo", pa.large_binary(), nullable, EXTENSION | LIMITS if metadata is None else metadata)
    schema = pa.schema([pa.field("id", pa.int64()), field, pa.field("text", pa.string())])
    return pa.table([ids, pa.array(blobs, pa.large_binary()), [f"t{i}" for i in ids]], schema=schema)


def kinds(where: str) -> list[int | None]:
    """Return the kind of each blob, None for null."""
    found = open_dataset(where).to_pyarrow_table(["photo"]).column("photo").to_pylist()
    return [None if d is None else d["kind"] for d in found]


def files_of(where: str) -> set[str]:
    return {p.relative_to(where).as_posix() for p in Path(where).rglob("*") if p.is_file()}


@pytest.mark.parametrize("case", CASES)
def test_blobs_are_read_back_by_us_and_by_pylance(tmp_path: Path, case: str) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, CASES[case]))
    check_blobs(where, dict(enumerate(CASES[case])))


@pytest.mark.parametrize("limits", [{}, LIMITS, {**LIMITS, "lance-encoding:blob-dedicated-size-threshold": "4"}])
def test_descriptors_and_files_equal_those_of_pylance(tmp_path: Path, limits: dict[str, str]) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    sizes = [0, 3, 4, 5, 11, 100, 101, 60, 70]
    if not limits:
        sizes = [0, 64 << 10, (64 << 10) + 1, 4 << 20, (4 << 20) + 1]
    blobs: Blobs = [b"x" * n for n in sizes]
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write_lance(ours, rows(0, blobs, EXTENSION | limits))
    of = lance.blob_field("photo").with_metadata(limits)
    lance.write_dataset(pa.table([lance.blob_array(blobs)], schema=pa.schema([of])), theirs)

    def shape(where: str) -> list[Any]:
        found = open_dataset(where).to_pyarrow_table(["photo"]).column("photo").to_pylist()
        # blobs in the data file are anywhere in it
        return [{k: v for k, v in d.items() if d["kind"] or k != "position"} for d in found]

    def sizes_of(where: str) -> dict[str, int]:
        return {p.name: p.stat().st_size for p in Path(where).rglob("*.blob")}

    assert shape(ours) == shape(theirs)
    assert sizes_of(ours) == sizes_of(theirs)


def test_blobs_of_the_extension_type_of_pylance_are_written(tmp_path: Path) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    write_lance(where, pa.table({"id": [0, 1, 2], "photo": lance.blob_array([b"a", None, b"d" * 70_000])}))
    assert lance.dataset(where).schema.field("photo").type.extension_name == "lance.blob.v2"
    assert kinds(where) == [0, None, 1]
    expected: dict[int, bytes | None] = {0: b"a", 1: None, 2: b"d" * 70_000}
    # bytes, and the struct of the type in plain Arrow
    write_lance(where, pa.table({"id": [3, 4], "photo": pa.array([b"b", None], pa.binary())}), "append")
    plain = pa.array([{"data": b"c", "uri": None, "position": None, "size": None}, None], BLOB_VALUES)
    write_lance(where, pa.table({"id": [5, 6], "photo": plain}), "append")
    lance.write_dataset(pa.table({"id": [7], "photo": lance.blob_array([b"theirs"])}), where, mode="append")
    check_blobs(where, {**expected, 3: b"b", 4: None, 5: b"c", 6: None, 7: b"theirs"})


def test_two_columns_of_blobs_share_the_numbers_of_files(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    first = rows(0, MIXED)
    field = first.schema.field("photo").with_name("scan")
    other = pa.array(MIXED[::-1], pa.large_binary())
    write_lance(where, first.append_column(field, other))
    check_blobs(where, dict(enumerate(MIXED)))
    check_blobs(where, dict(enumerate(MIXED[::-1])), "scan")
    paths = [p.name for p in Path(where).rglob("*.blob")]
    assert len(set(paths)) == len(paths) == 8


@pytest.mark.parametrize("stable", [False, True])
def test_all_changes_of_rows_carry_blobs(tmp_path: Path, stable: bool) -> None:
    lance: Any = pytest.importorskip("lance", reason="pylance is not installed")
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, MIXED), max_rows_per_file=4, stable_row_ids=stable)
    expected = dict(enumerate(MIXED))

    def same() -> None:
        order = open_dataset(where).to_pyarrow_table(["id"]).column("id").to_pylist()
        assert sorted(order) == sorted(expected)
        check_blobs(where, {i: expected[i] for i in order})

    same()
    write_lance(where, rows(20, [b"x" * 120, None]), "append")
    expected |= {20: b"x" * 120, 21: None}
    dataset = open_dataset(where)
    dataset.delete("id in (0, 4)")
    del expected[0], expected[4]
    same()
    dataset.update({"text": "'changed'"}, predicate="id in (5, 6)")
    dataset.update({"photo": "X'00FF'"}, predicate="id = 1")
    dataset.update(new_values={"photo": b"n" * 500}, predicate="id = 2")
    expected |= {1: b"\x00\xff", 2: b"n" * 500}
    same()
    changes = pa.table({"id": [3, 30], "photo": pa.array([b"three" * 10, b"thirty" * 30], pa.binary())})
    dataset.merge(changes, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    expected |= {3: b"three" * 10, 30: b"thirty" * 30}
    same()
    theirs = lance.dataset(where)
    blobs = lance.blob_array([b"pylance" * 9, b"again"])
    theirs.insert(pa.table({"id": [40, 41], "photo": blobs, "text": ["a", "b"]}))
    theirs.delete("id = 7")
    expected |= {40: b"pylance" * 9, 41: b"again"}
    del expected[7]
    same()
    dataset = open_dataset(where)
    dataset.overwrite(rows(40, [b"forty" * 20]), "id = 40")
    expected |= {40: b"forty" * 20}
    dataset.add_columns({"size": "octet_length(photo)"})
    same()
    done = dataset.compact()
    assert done["num_added_fragments"] == 1
    same()
    dataset.cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
    [file] = [p for p in files_of(where) if p.endswith(".lance")]
    assert {p.rpartition("/")[0] for p in files_of(where) if p.endswith(".blob")} == {file.removesuffix(".lance")}
    same()
    lance.dataset(where).optimize.compact_files()
    same()


def test_cleanup_keeps_the_blobs_of_each_version_that_stays(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, MIXED))
    dataset.tags.create("first", 1)
    write_lance(where, rows(0, [b"second" * 20]), "overwrite")
    write_lance(where, rows(0, [b"third" * 20, b"i"]), "overwrite")
    stray = Path(where) / "data" / ("0" * 32) / f"{'1' * 32}.blob"
    stray.parent.mkdir()
    stray.write_bytes(b"of a writer that was killed")
    dataset = open_dataset(where)
    before = {p for p in files_of(where) if p.endswith(".blob")}
    assert len(before) == 4 + 1 + 1 + 1
    dataset.cleanup(keep_versions=1)
    assert stray.exists()
    dataset.cleanup(keep_versions=1, unreferenced_older_than=timedelta(0))
    assert not stray.exists()
    assert len([p for p in files_of(where) if p.endswith(".blob")]) == 4 + 1
    check_blobs(where, {0: b"third" * 20, 1: b"i"})
    first = dataset.checkout(tag="first").to_pyarrow_table(["photo"], blobs="bytes")
    assert first.column("photo").to_pylist() == MIXED


def test_new_columns_of_blobs_and_new_rows_without_them(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, pa.table({"id": [*range(len(MIXED))]}), max_rows_per_file=4)
    dataset.add_columns(rows(0, MIXED).select(["photo"]))
    check_blobs(where, dict(enumerate(MIXED)))
    write_lance(where, pa.table({"id": [50]}), "append")
    open_dataset(where).compact()
    check_blobs(where, {**dict(enumerate(MIXED)), 50: None})


def test_blobs_that_are_larger_than_the_memory_of_a_compaction_are_carried(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    blobs: Blobs = [bytes([i]) * 3_000_000 for i in range(6)]
    write_lance(where, rows(0, blobs, EXTENSION), max_rows_per_file=2)
    assert open_dataset(where).compact(max_memory=1 << 20)["num_added_fragments"] == 1
    check_blobs(where, dict(enumerate(blobs)))


def test_failed_writes_and_lost_commits_leave_no_files_of_blobs(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    dataset = write_lance(where, rows(0, MIXED))
    before = files_of(where)
    reader = pa.RecordBatchReader.from_batches(rows(0, MIXED).schema, _failing())
    with pytest.raises(RuntimeError, match="no more rows"):
        write_lance(where, reader, "append")
    assert files_of(where) == before
    with pytest.raises(SchemaMismatchError, match="rows"):
        dataset.add_columns(rows(0, [b"d" * 200] * 20).select(["photo"]).rename_columns(["scan"]))
    assert files_of(where) == before
    check_blobs(where, dict(enumerate(MIXED)))


def _failing() -> Any:
    yield from rows(0, MIXED).to_batches()
    raise RuntimeError("no more rows")


BAD: dict[str, tuple[type[Exception], str, Callable[[], pa.Table]]] = {
    "a URI that is relative": (InvalidArgumentError, "expected an absolute URI", lambda: _of_structs({"uri": "a/b"})),
    "bytes and a URI": (
        SchemaMismatchError,
        "both bytes and a URI",
        lambda: _of_structs({"uri": "file:///a", "data": b"x"}),
    ),
    "neither bytes nor a URI": (SchemaMismatchError, "neither bytes nor a URI", lambda: _of_structs({})),
    "text": (SchemaError, "expected binary values", lambda: pa.table([["a"]], schema=_schema(pa.string()))),
    "other struct": (
        SchemaError,
        "expected binary values",
        lambda: pa.table([[None]], schema=_schema(pa.struct({"a": pa.int8()}))),
    ),
    "in a list": (
        UnsupportedFeatureError,
        "stores no blobs",
        lambda: pa.table([[None]], schema=pa.schema([pa.field("l", pa.list_(_schema(pa.binary()).field(0)))])),
    ),
    "limit": (
        InvalidArgumentError,
        "'lance-encoding:blob-inline-size-threshold' = 'few'",
        lambda: rows(0, [b"a"], {**EXTENSION, "lance-encoding:blob-inline-size-threshold": "few"}),
    ),
    "no dedicated ones": (
        InvalidArgumentError,
        "from 1 on",
        lambda: rows(0, [b"a"], {**EXTENSION, "lance-encoding:blob-dedicated-size-threshold": "0"}),
    ),
    "compression": (
        InvalidArgumentError,
        "lance-encoding:compression",
        lambda: rows(0, [b"a"], {**EXTENSION, "lance-encoding:compression": "zstd"}),
    ),
    "earlier kind": (
        UnsupportedFeatureError,
        "extension type 'lance.blob.v2'",
        lambda: rows(0, [b"a"], {"lance-encoding:blob": "true"}),
    ),
}


def test_descriptors_are_not_written_as_values(tmp_path: Path) -> None:
    dataset = write_lance(str(tmp_path / "d"), rows(0, MIXED))
    with pytest.raises(UnsupportedFeatureError, match=r"'photo'.*stores no blobs"):
        write_lance(str(tmp_path / "copy"), dataset)
    write_lance(str(tmp_path / "copy"), dataset.to_pyarrow_table(blobs="bytes"))
    copied = open_dataset(str(tmp_path / "copy")).to_pyarrow_table(["photo"])
    assert copied.column("photo").to_pylist() == MIXED


def test_converted_blobs_are_the_same_bytes(tmp_path: Path) -> None:
    where, other, back = (str(tmp_path / n) for n in ("d", "delta", "back"))
    write_lance(where, rows(0, MIXED))
    convert(where, other, to="delta", without=["blobs"])
    convert(other, back, to="lance")
    found = open_dataset(back).to_pyarrow_table(["id", "photo"]).sort_by("id")
    assert found.column("photo").to_pylist() == MIXED


def _schema(of: Any) -> pa.Schema:
    return pa.schema([pa.field("photo", of, True, EXTENSION)])


def _of_structs(value: dict[str, Any]) -> pa.Table:
    return pa.table([pa.array([value], BLOB_VALUES)], schema=_schema(BLOB_VALUES))


@pytest.mark.parametrize("case", BAD)
def test_blobs_that_are_not_written_are_rejected_by_name(tmp_path: Path, case: str) -> None:
    error, text, made = BAD[case]
    with pytest.raises(error, match=text):
        write_lance(str(tmp_path / "d"), made())
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_extension_type_is_rejected_in_earlier_versions(tmp_path: Path, version: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"files of version 2\.2 store columns of the extension type"):
        write_lance(str(tmp_path / "d"), rows(0, [b"a"]), file_version=version)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_null_in_a_required_column_of_blobs_is_rejected(tmp_path: Path) -> None:
    where = str(tmp_path / "d")
    write_lance(where, rows(0, [b"a", b""], nullable=False))
    check_blobs(where, {0: b"a", 1: b""})
    with pytest.raises(SchemaMismatchError, match="photo"):
        write_lance(where, pa.table({"id": [1], "photo": pa.array([None], pa.large_binary())}), "append")
